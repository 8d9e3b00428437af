"""`armdyn bound ARM QUANTITY`: guaranteed bounds over the joint limits."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from armdyn.cli.common import ArmName, AsJson, Page, Quiet, console, load, print_json, progress, table
from armdyn.cli.ranges import Range, pair, range_options
from armdyn.errors import count

EXAMPLE = "Example: armdyn bound panda gravity_load --payload 0,3"

Wanted = Annotated[str, typer.Argument(help="The quantity, e.g. gravity_load; any without a division.")]
Gap = Annotated[float, typer.Option("--gap", help="Stop when bound and worst point found are this close, in percent.")]
Seconds = Annotated[float, typer.Option("--seconds", help="Stop after this time; bounds are valid whenever it ends.")]
Payload = Annotated[str | None, typer.Option("--payload", help="Range of a point mass at the tool: LOW,HIGH [kg].")]

SMALLEST = 1e-200  # smaller numbers are shown as 0: outward rounding of an entry that is always 0
ROUNDING = 1e-9  # gaps below this are rounding

SPELLING = {f"give {name}= as an (n, 2) array": f"give --range {name}:1=LOW,HIGH, …" for name in ("q", "qd", "qdd")}


def command(
    arm: ArmName,
    quantity: Wanted = "gravity_load",
    ranges: Range = None,
    payload: Payload = None,
    gap: Gap = 1.0,
    seconds: Seconds = 60.0,
    report: Page = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Bound a quantity over all configurations; show the worst ones found."""
    import armdyn
    from armdyn.formulations.registry import units

    loaded = load(arm)
    mass = None if payload is None else pair(payload, "--payload")
    boxes = range_options(loaded, ranges or [])
    with progress(f"bounding {quantity}", quiet or as_json) as update:
        bounds = armdyn.bound(loaded, quantity, **boxes, payload=mass, gap=gap / 100, seconds=seconds, progress=update)
    if report is not None:
        bounds.plot().save(report)
    if as_json:
        print_json(_as_dict(loaded, bounds))
        return
    unit = units(loaded.chain, quantity, loaded.kernel(quantity).ports[1][0][0])
    place = "rad" if all(joint.revolute for joint in loaded.joints) else "rad, m"
    shown = table(
        f"{loaded.name}: {quantity} over its ranges; all values are between lower and upper [{unit}]",
        ["entry", "lower", "smallest found", "upper", "largest found", "gap [%]", f"q of the largest [{place}]"],
        [],
        prose=[6],
        groups=[6],
    )
    for row in _rows(loaded, bounds):
        shown.add_row(*row)
    out = console()
    out.print(shown)
    out.print(f"{count(bounds.boxes, 'box', 'boxes')} in {bounds.seconds:.1f} s")


def _rows(loaded: Any, bounds: Any) -> list[tuple[str, ...]]:
    import numpy as np

    rows = []
    for at in np.ndindex(*bounds.upper.shape):
        name = loaded.joints[at[0]].name if len(at) == 1 else ", ".join(str(k + 1) for k in at)
        where = ", ".join(f"{round(float(x), 3) + 0.0:.3f}" for x in bounds.witness["q"][1][at])
        gap = 100 * bounds.gap[at] if bounds.gap[at] > ROUNDING else 0.0
        numbers = (bounds.lower[at], bounds.found[0][at], bounds.upper[at], bounds.found[1][at], gap)
        rows.append((name or str(at[0] + 1), *(_number(float(x)) for x in numbers), where))
    return rows


def _number(x: float) -> str:
    return f"{x:.4g}" if abs(x) > SMALLEST else "0"


def _as_dict(loaded: Any, bounds: Any) -> dict[str, Any]:
    return {
        "arm": loaded.name,
        "quantity": bounds.quantity,
        "lower": bounds.lower.tolist(),
        "upper": bounds.upper.tolist(),
        "found": bounds.found.tolist(),
        "gap": bounds.gap.tolist(),
        "witness": {name: points.tolist() for name, points in bounds.witness.items()},
        "boxes": bounds.boxes,
        "seconds": bounds.seconds,
    }
