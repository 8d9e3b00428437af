"""`armdyn deploy ARM`: one folder for a controller that builds and tests itself."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Annotated

import typer

from armdyn.cli.common import ArmName, AsJson, Quiet, console, load, print_json, progress
from armdyn.cli.ranges import Range, range_options

EXAMPLE = "Example: armdyn deploy ur5 --target c -o ur5_c --quantity inverse_dynamics --dtype float32"
CONTROLLER = "A control law, e.g. adaptive (repeatable; a wrong name lists them)."


def command(
    arm: ArmName,
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder to write.")],
    target: Annotated[str, typer.Option(help="c, cpp, fmu, object or wasm.")] = "c",
    quantity: Annotated[list[str] | None, typer.Option("--quantity", help="A quantity (repeatable).")] = None,
    dtype: Annotated[str | None, typer.Option(help="double or float; default: double if the processor has it.")] = None,
    parameters: Annotated[str, typer.Option(help="runtime (an input), or baked (constants).")] = "runtime",
    friction: Annotated[bool, typer.Option(help="Friction in inverse and forward dynamics.")] = True,
    controller: Annotated[list[str] | None, typer.Option("--controller", help=CONTROLLER)] = None,
    cpu: Annotated[list[str] | None, typer.Option("--cpu", help="A processor of --target object (repeatable).")] = None,
    frame: Annotated[str | None, typer.Option(help="The frame to use as the tool.")] = None,
    stack: Annotated[bool, typer.Option(help="Measure the stack of each function with gcc, if installed.")] = True,
    build: Annotated[bool, typer.Option(help="Build and test the code before it is written.")] = True,
    binary: Annotated[bool, typer.Option(help="FMU: with a library for this machine.")] = True,
    error_bound: Annotated[bool, typer.Option("--error-bound", help="Write error bounds into the header.")] = False,
    ranges: Range = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Write into a folder with files of others.")] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Write a folder with the arm's dynamics for a controller: code, test vectors, Makefile and README."""
    import armdyn
    from armdyn.errors import InputError
    from armdyn.ranges import ACCELERATION

    if ranges and not error_bound:
        raise InputError(f"--range is for --error-bound; got {ranges[0]!r} without it")
    loaded = load(arm)
    with progress("programs", quiet or as_json) as update:
        files = armdyn.deploy(
            loaded,
            output,
            target,
            quantity,
            dtype=dtype,
            parameters=parameters,
            friction=friction,
            controllers=controller or (),
            cpus=cpu or (),
            frame=frame,
            measure_stack=stack,
            build=build,
            binary=binary,
            error_bound=range_options(loaded, ranges or [], ACCELERATION) if error_bound else False,
            overwrite=overwrite,
            progress=update,
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
