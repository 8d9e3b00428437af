"""`armdyn bench ARM`: nanoseconds per configuration, compared with a memory copy of the result."""

from __future__ import annotations

from typing import Annotated

import typer

from armdyn.cli.common import ArmName, AsJson, Quiet, console, load, print_json, progress, table

EXAMPLE = "Example: armdyn bench ur5 --quantity inertia_matrix"


def command(
    arm: ArmName,
    quantity: Annotated[list[str] | None, typer.Option("--quantity", help="A quantity (repeatable).")] = None,
    batch: Annotated[int, typer.Option(min=1, help="Configurations per batch.")] = 16384,
    seconds: Annotated[float, typer.Option(min=0.0, help="Measuring time per quantity.")] = 0.3,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Measure speed on this machine, compared with a memory copy; `make bench` compares with other libraries."""
    from armdyn.errors import choose
    from armdyn.studies import speed

    loaded = load(arm)
    wanted = [choose("quantity to measure", name, speed.QUANTITIES) for name in quantity or speed.QUANTITIES[:3]]
    rows = []
    with progress("measuring", quiet or as_json) as update:
        for k, name in enumerate(wanted):
            update(k, len(wanted), f"measuring {name}")
            rows += speed.run([loaded], [name], batch, seconds)
    if as_json:
        data = [{"quantity": row.quantity, "way": row.way, "ns": row.times} for row in rows]
        print_json({"arm": loaded.name, "machine": speed.machine(), "batch": batch, "rows": data})
        return
    others = list(dict.fromkeys(who for row in rows for who in row.times if who != "armdyn"))
    cells = []
    for row in rows:
        ratios = [f"{row.times[who]:.0f} ({row.ratio(who):.1f}×)" if who in row.times else "" for who in others]
        cells.append([row.quantity, row.way, f"{row.times['armdyn']:.1f}", *ratios])
    out = console()
    out.print(speed.machine(), style="dim", highlight=False)
    columns = ["quantity", "call", "armdyn [ns]", *(f"{who} [ns]" for who in others)]
    out.print(
        table(f"{loaded.name}: nanoseconds per configuration (times as long as armdyn)", columns, cells, left=2, keys=2)
    )
