"""`armdyn excite ARM`: an excitation trajectory for identification."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from armdyn.cli.common import ArmName, AsJson, Quiet, console, load, print_json, progress, styled, vector
from armdyn.cli.options import with_records
from armdyn.options import Optimisation, Workspace

EXAMPLE = "Example: armdyn excite panda --duration 20 -o panda_excitation.csv"


@with_records
def command(
    arm: ArmName,
    duration: Annotated[float, typer.Option(help="Period, s.")] = 20.0,
    trajectories: Annotated[int, typer.Option(help="Number of trajectories, optimised together.")] = 1,
    above: Annotated[float | None, typer.Option(help="Keep joints and tool above this height, m.")] = None,
    workspace: Workspace = Workspace(),
    search: Optimisation = Optimisation(),
    noise: Annotated[str, typer.Option(help="Noise of the torques, N m: one, or one per joint.")] = "",
    rate: Annotated[float, typer.Option(help="Samples per second.")] = 100.0,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="CSV: t, q1 …, qd1 …, qdd1 ….")] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Design a periodic motion that determines the parameters best."""
    from armdyn.identification import excite

    loaded = load(arm)
    if above is not None:
        workspace = replace(workspace, plane=((0.0, 0.0, 1.0), above))
    with progress("designing", quiet or as_json) as update:
        excitation = excite(
            loaded, duration, trajectories=trajectories, noise=vector(noise, "noise") if noise else None, rate=rate,
            progress=update, workspace=workspace, search=search,
        )  # fmt: skip
    if output is not None:
        excitation.save(output)
    if as_json:
        print_json(
            {
                "arm": loaded.name,
                "condition": excitation.condition,
                "names": excitation.names,
                "deviations": excitation.deviations,
                "random_deviations": excitation.random_deviations,
                "warnings": excitation.warnings,
                "t": excitation.t,
                "q": excitation.q,
                "qd": excitation.qd,
                "qdd": excitation.qdd,
            }
        )
    elif not quiet:
        out = console()
        out.print(str(excitation), markup=False)
        for text in excitation.warnings:
            out.print(styled(("note: ", "yellow"), text))
        if output is not None:
            out.print(
                f"wrote {output}: {len(excitation.t)} rows per trajectory",
                markup=False,
                highlight=False,
                soft_wrap=True,
            )
