"""`armdyn report ARM`: a self-contained HTML page about an arm."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from armdyn.cli.common import STATE, ArmName, AsJson, Quiet, console, load, print_json, progress, xacro_arguments

EXAMPLE = "Example: armdyn report puma560 -o puma560.html"


def command(
    arm: ArmName,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="The HTML file; default: ARM.html.")] = None,
    meshes: Annotated[
        bool | None, typer.Option("--meshes/--no-meshes", help="Draw the URDF's shapes; default: if they are found.")
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Report on an arm: print a summary and write a self-contained interactive HTML page."""
    from armdyn.files.text import file_name, write_text
    from armdyn.references import citation
    from armdyn.report import collect, page, summary

    loaded = load(arm)
    shapes, notes = ([], []) if meshes is False else _shapes(arm, loaded, bool(meshes))
    with progress("reporting", quiet) as update:
        data = collect(loaded, update, shapes, arm)
    where = output or Path(file_name(loaded.name, ".html"))
    write_text(where, page(data, citation()))
    if as_json:
        print_json({key: value for key, value in data.items() if key not in ("robot", "graphs")})
    elif not quiet:
        out = console()
        out.print(summary(data))
        for note in notes:
            out.print(f"mesh of {note}", markup=False, soft_wrap=True)
        out.print(f"report: {where}", markup=False, soft_wrap=True)


def _shapes(name: str, arm: Any, wanted: bool) -> tuple[list[dict[str, Any]], list[str]]:
    """The shapes of the file that the arm was read from; without `wanted` only if its meshes are found."""
    from armdyn.errors import InputError
    from armdyn.pages.meshes import SHAPED, found_shapes, shapes

    options = (xacro_arguments(STATE.cut["xacro"] or []), STATE.cut["package_dirs"] or ())
    if not wanted:
        return found_shapes(name, arm, *options)
    if Path(name).suffix.lower() not in SHAPED:
        raise InputError(f"--meshes needs a URDF, which says where they are; got {name!r}")
    return shapes(name, arm, *options)
