"""`armdyn bound ARM QUANTITY`: guaranteed bounds over the joint limits."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from armdyn.cli.common import ArmName, AsJson, Quiet, console, load, print_json, progress, table
from armdyn.errors import InputError

EXAMPLE = "Example: armdyn bound panda gravity_load --payload 0,3"

Wanted = Annotated[str, typer.Argument(help="The quantity, gravity_load say; any without a division.")]
Gap = Annotated[float, typer.Option("--gap", help="Stop when bound and worst point found are this close, in percent.")]
Seconds = Annotated[float, typer.Option("--seconds", help="Stop after this time; bounds are valid whenever it ends.")]
Payload = Annotated[str | None, typer.Option("--payload", help="Range of a point mass at the tool: LOW,HIGH [kg].")]
Range = Annotated[
    list[str] | None,
    typer.Option("--range", help="A range instead of a joint's limits: INPUT:JOINT=LOW,HIGH, qd:2=-1,1 say."),
]


def command(
    arm: ArmName,
    quantity: Wanted = "gravity_load",
    ranges: Range = None,
    payload: Payload = None,
    gap: Gap = 1.0,
    seconds: Seconds = 60.0,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Bound a quantity over all configurations within the limits, and show the worst configurations found."""
    import armdyn

    loaded = load(arm)
    mass = None if payload is None else _pair(payload, "--payload")
    boxes = _boxes(loaded, ranges or [])
    with progress(f"bounding {quantity}", quiet or as_json) as update:
        found = armdyn.bound(loaded, quantity, **boxes, payload=mass, gap=gap / 100, seconds=seconds, progress=update)
    if as_json:
        print_json(_as_dict(loaded, found))
        return
    shown = table(
        f"{loaded.name}: {quantity} over its ranges; nothing lies outside of lower and upper [SI]",
        ["entry", "lower", "least found", "upper", "largest found", "gap [%]", "where it is largest: q"],
        [],
        left=1,
    )
    for row in _rows(loaded, found):
        shown.add_row(*row)
    out = console()
    out.print(shown)
    out.print(f"{found.boxes} boxes in {found.seconds:.1f} s")


def _pair(text: str, option: str) -> tuple[float, float]:
    try:
        low, high = (float(x) for x in text.split(","))
    except ValueError:
        raise InputError(f"{option} takes two numbers LOW,HIGH; got {text!r}") from None
    return low, high


def _boxes(loaded: Any, ranges: list[str]) -> dict[str, Any]:
    """The limits, with the ranges that were given in their place."""
    import numpy as np

    speeds = loaded.velocity_limits
    boxes = {"q": loaded.limits, "qd": np.stack([-speeds, speeds], axis=1), "qdd": np.zeros((loaded.n, 2))}
    changed = set()
    for text in ranges:
        name, colon, rest = text.partition(":")
        joint, equals, ends = rest.partition("=")
        if not colon or not equals or name not in boxes or not joint.isdigit() or not 1 <= int(joint) <= loaded.n:
            expected = f"INPUT:JOINT=LOW,HIGH with INPUT one of {', '.join(boxes)}, JOINT 1 to {loaded.n}"
            raise InputError(f"--range takes {expected}; got {text!r}")
        boxes[name][int(joint) - 1] = _pair(ends, "--range")
        changed.add(name)
    return {name: boxes[name] for name in changed}


def _rows(loaded: Any, found: Any) -> list[tuple[str, ...]]:
    import numpy as np

    rows = []
    for at in np.ndindex(*found.upper.shape):
        name = loaded.joints[at[0]].name if len(at) == 1 else ", ".join(str(k + 1) for k in at)
        where = ", ".join(f"{x:.3f}" for x in found.witness["q"][1][at])
        numbers = (found.lower[at], found.found[0][at], found.upper[at], found.found[1][at], 100 * found.gap[at])
        rows.append((name or str(at[0] + 1), *(f"{float(x):.4g}" for x in numbers), where))
    return rows


def _as_dict(loaded: Any, found: Any) -> dict[str, Any]:
    return {
        "arm": loaded.name,
        "quantity": found.quantity,
        "lower": found.lower.tolist(),
        "upper": found.upper.tolist(),
        "found": found.found.tolist(),
        "gap": found.gap.tolist(),
        "witness": {name: points.tolist() for name, points in found.witness.items()},
        "boxes": found.boxes,
        "seconds": found.seconds,
    }
