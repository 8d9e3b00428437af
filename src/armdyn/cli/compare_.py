"""`armdyn compare ARM OTHER`: joint order, frames and the largest differences of two robots."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from armdyn.cli.common import ArmName, AsJson, Fitted, console, load, print_json

EXAMPLE = "Example: armdyn compare panda.urdf panda.xml --tip panda_link8"


def command(
    arm: ArmName,
    other: Annotated[str, typer.Argument(metavar="OTHER", help="The robot to compare it with, likewise.")],
    samples: Annotated[int, typer.Option(min=1, help="Random configurations, within the limits of ARM.")] = 20,
    tolerance: Annotated[float, typer.Option(help="Up to which relative difference the robots agree.")] = 1e-9,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Compare two robots: joints, frames, inertia matrix, torques, poses, joint data.

    The options that select a part of a file apply to both. Ends with status 1 if the robots differ.
    """
    from dataclasses import replace

    from armdyn.comparison import compare

    names = (os.path.basename(arm), os.path.basename(other))
    compared = replace(compare(load(arm), load(other), samples=samples, tolerance=tolerance), labels=names)
    if as_json:
        keys = ("joint", "what", "first", "second")
        print_json(
            {
                "agrees": compared.agrees,
                "same_order": compared.same_order,
                "differences": {d.quantity: {"largest": d.largest, "relative": d.relative, "where": d.where}
                                for d in compared.differences},
                "joints": [{"name": name, "first": a, "second": b} for name, a, b in compared.joints],
                "frames": compared.frames,
                "frames_apart": compared.frames_apart,
                "properties": [dict(zip(keys, row, strict=True)) for row in compared.properties],
                "ignored": compared.ignored,
                "notes": compared.notes,
            }
        )  # fmt: skip
    else:
        verdict = "agree" if compared.agrees else "differ"
        table = Fitted(
            f"{names[0]} and {names[1]} {verdict}",
            ["quantity", "largest difference [SI]", "relative", "where"],
            prose=[3],
        )
        for d in compared.differences:
            table.add_row(d.quantity, f"{d.largest:.2e}", f"{d.relative:.1e}", d.where)
        out = console()
        out.print(table)
        for line in compared.details:
            out.print(line)
    raise typer.Exit(0 if compared.agrees else 1)
