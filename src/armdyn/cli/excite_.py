"""`armdyn excite ARM`: an excitation trajectory for identification."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from armdyn.cli.common import ArmName, AsJson, Quiet, console, load, print_json, progress, styled, vector

EXAMPLE = "Example: armdyn excite panda --duration 20 -o panda_excitation.csv"


def command(
    arm: ArmName,
    duration: Annotated[float, typer.Option(help="Period, s.")] = 20.0,
    trajectories: Annotated[int, typer.Option(help="Number of trajectories, optimised together.")] = 1,
    harmonics: Annotated[int | None, typer.Option(help="Harmonics of 1 / duration; default: up to 1 Hz.")] = None,
    criterion: Annotated[str, typer.Option(help="information or determinant.")] = "information",
    above: Annotated[float | None, typer.Option(help="Keep joints and tool above this height, m.")] = None,
    clearance: Annotated[float | None, typer.Option(help="Least distance between links, m.")] = None,
    acceleration: Annotated[str, typer.Option(help="Largest accelerations, rad/s²: one, or one per joint.")] = "",
    noise: Annotated[str, typer.Option(help="Noise of the torques, N m: one, or one per joint.")] = "",
    rate: Annotated[float, typer.Option(help="Samples per second.")] = 100.0,
    seed: Annotated[int, typer.Option(help="Seed of the random starts.")] = 0,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="CSV: t, q1 …, qd1 …, qdd1 ….")] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Design a periodic trajectory that determines the arm's parameters as well as possible."""
    from armdyn.identification import excite

    loaded = load(arm)
    plane = None if above is None else ((0.0, 0.0, 1.0), above)
    with progress("designing", quiet or as_json) as update:
        found = excite(
            loaded, duration, trajectories=trajectories, harmonics=harmonics, criterion=criterion, plane=plane,
            clearance=clearance, acceleration=vector(acceleration, "acceleration") if acceleration else None,
            noise=vector(noise, "noise") if noise else None,
            rate=rate, seed=seed, progress=update,
        )  # fmt: skip
    if output is not None:
        found.save(output)
    if as_json:
        print_json(
            {
                "arm": loaded.name,
                "condition": found.condition,
                "names": found.names,
                "deviations": found.deviations,
                "random_deviations": found.random_deviations,
                "warnings": found.warnings,
                "t": found.t,
                "q": found.q,
                "qd": found.qd,
                "qdd": found.qdd,
            }
        )
    elif not quiet:
        out = console()
        out.print(str(found), markup=False)
        for text in found.warnings:
            out.print(styled(("note: ", "yellow"), text))
        if output is not None:
            out.print(
                f"wrote {output}: {len(found.t)} rows per trajectory", markup=False, highlight=False, soft_wrap=True
            )
