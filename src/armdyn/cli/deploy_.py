"""`armdyn deploy ARM`: one folder for a controller that builds and tests itself."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from armdyn.cli.common import ArmName, AsJson, Quiet, console, load, print_json, progress
from armdyn.cli.options import names, with_records
from armdyn.cli.ranges import Range, range_options
from armdyn.options import TARGETS, CodeOptions

EXAMPLE = "Example: armdyn deploy ur5 --target c -o ur5_c --quantity inverse_dynamics --dtype float32"
CONTROLLER = "A control law, e.g. adaptive (repeatable; a wrong name lists them)."
PANELS = {"The code": (*names(CodeOptions, "dtype", "frame"), "ranges")}


@with_records
def command(
    arm: ArmName,
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder to write.")],
    target: Annotated[str, typer.Option(help=TARGETS.capitalize() + ".")] = "c",
    quantity: Annotated[list[str] | None, typer.Option("--quantity", help="A quantity (repeatable).")] = None,
    controller: Annotated[list[str] | None, typer.Option("--controller", help=CONTROLLER)] = None,
    code: CodeOptions = CodeOptions(),
    ranges: Range = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Write into a folder with files of others.")] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Write a folder with the arm's dynamics for a controller: code, test vectors, Makefile and README."""
    import armdyn
    from armdyn.errors import InputError
    from armdyn.ranges import ACCELERATION

    if ranges and not code.error_bound:
        raise InputError(f"--range is for --error-bound; got {ranges[0]!r} without it")
    loaded = load(arm, at_tool=code.frame is None)
    if code.error_bound:
        code = replace(code, error_bound=range_options(loaded, ranges or [], ACCELERATION))
    with progress("programs", quiet or as_json) as update:
        files = armdyn.deploy(
            loaded,
            output,
            target,
            quantity,
            controllers=controller or (),
            overwrite=overwrite,
            progress=update,
            code=code,
        )
    if as_json:
        print_json([str(path) for path in files])
    elif not quiet:
        for path in files:
            console().print(
                f"wrote {path}  ({path.stat().st_size} bytes)", markup=False, highlight=False, soft_wrap=True
            )
        about = json.loads((output / "manifest.json").read_bytes())
        console().print(f"its test: {about['test']}", markup=False, highlight=False)
        console().print(
            f"to repeat it: make -C {shlex.quote(str(output))} test", markup=False, highlight=False, soft_wrap=True
        )
