"""`armdyn deploy ARM`: one folder for a controller that builds and tests itself."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from armdyn.cli.common import ArmName, AsJson, Quiet, console, load, print_json, progress

EXAMPLE = "Example: armdyn deploy ur5 --target c -o ur5_c --quantity inverse_dynamics --dtype float32"
CONTROLLER = "A control law, adaptive say (repeatable; a wrong name lists them)."


def command(
    arm: ArmName,
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder to write.")],
    target: Annotated[str, typer.Option(help="What the folder is for: c, cpp, fmu or object.")] = "c",
    quantity: Annotated[list[str] | None, typer.Option("--quantity", help="A quantity (repeatable).")] = None,
    dtype: Annotated[str | None, typer.Option(help="double or float; default: double, or the processor's.")] = None,
    parameters: Annotated[str, typer.Option(help="runtime: given at each call; or baked.")] = "runtime",
    friction: Annotated[bool, typer.Option(help="Friction in inverse and forward dynamics.")] = True,
    controller: Annotated[list[str] | None, typer.Option("--controller", help=CONTROLLER)] = None,
    cpu: Annotated[list[str] | None, typer.Option("--cpu", help="A processor of --target object (repeatable).")] = None,
    frame: Annotated[str | None, typer.Option(help="The frame that stands for the tool.")] = None,
    stack: Annotated[bool, typer.Option(help="Measure the stack of each function with gcc, if it is there.")] = True,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Write a folder with the arm's dynamics for a controller: code, test vectors, a Makefile, a read-me file."""
    import armdyn

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
            progress=update,
        )
    if as_json:
        print_json([str(path) for path in files])
    elif not quiet:
        for path in files:
            console().print(f"wrote {path}  ({path.stat().st_size} bytes)", markup=False)
        console().print(f"check it with: make -C {shlex.quote(str(output))} test", markup=False)
