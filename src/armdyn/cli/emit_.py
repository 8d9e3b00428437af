"""`armdyn emit ARM`: C99 for a controller, or WebAssembly for a browser."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from armdyn.cli.common import ArmName, AsJson, Quiet, console, load, print_json, progress
from armdyn.cli.ranges import Range, range_options

EXAMPLE = "Example: armdyn emit ur5 -o ur5_c --quantity inverse_dynamics --parameters runtime"


def command(
    arm: ArmName,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="The folder; default: c or wasm.")] = None,
    quantity: Annotated[list[str] | None, typer.Option("--quantity", help="A quantity (repeatable).")] = None,
    dtype: Annotated[str, typer.Option(help="double or float (float64, float32).")] = "double",
    parameters: Annotated[str, typer.Option(help="baked (constants), or runtime (an input).")] = "baked",
    friction: Annotated[bool, typer.Option("--friction", help="Friction in inverse and forward dynamics.")] = False,
    error_bound: Annotated[bool, typer.Option("--error-bound", help="Write error bounds into the header.")] = False,
    ranges: Range = None,
    wasm: Annotated[bool, typer.Option("--wasm", help="WebAssembly, an ES module and TypeScript types.")] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:  # fmt: skip
    """Generate the arm's dynamics as C99 (header, source, test program with test vectors, Makefile) or WebAssembly.

    For a controller, use `armdyn deploy`: it has all of this, with a README, control laws and a test before it writes.
    """
    from armdyn.errors import InputError
    from armdyn.ranges import ACCELERATION

    if wasm and dtype not in ("double", "float64"):
        raise InputError(f"WebAssembly is written in double; got --dtype {dtype}")
    if wasm and error_bound:
        raise InputError("error bounds are written into C headers; got --wasm and --error-bound")
    if ranges and not error_bound:
        raise InputError(f"--range is for --error-bound; got {ranges[0]!r} without it")
    loaded, where = load(arm, at_tool=True), output or Path("wasm" if wasm else "c")
    if wasm:
        files = loaded.emit_wasm(where, quantity, parameters=parameters, friction=friction)
    else:
        boxes = range_options(loaded, ranges or [], ACCELERATION) if error_bound else False
        with progress("bounding rounding errors", quiet or as_json or not error_bound):
            files = loaded.emit_c(where, quantity, dtype, parameters, friction, boxes)
    if as_json:
        print_json([str(path) for path in files])
    elif not quiet:
        for path in files:
            console().print(
                f"wrote {path}  ({path.stat().st_size} bytes)", markup=False, highlight=False, soft_wrap=True
            )
        if not wasm:
            console().print(
                f"to test it: make -C {shlex.quote(str(where))} test", markup=False, highlight=False, soft_wrap=True
            )
