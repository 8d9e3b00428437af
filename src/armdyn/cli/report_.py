"""`armdyn report ARM`: a self-contained HTML page about an arm."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from armdyn.cli.common import (
    STATE,
    ArmName,
    AsJson,
    Fitted,
    Quiet,
    console,
    load,
    print_json,
    progress,
    styled,
    table,
    xacro_arguments,
)
from armdyn.errors import count

EXAMPLE = "Example: armdyn report puma560 -o puma560.html"


def command(
    arm: ArmName,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="The HTML file; default: ARM.html.")] = None,
    meshes: Annotated[
        bool | None, typer.Option("--meshes/--no-meshes", help="Draw the URDF's shapes; default: if they are found.")
    ] = None,
    gpu: Annotated[
        bool, typer.Option("--gpu", help="Let a thousand arms fall in it, on the reader's graphics processor.")
    ] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Report on an arm: print a summary and write a self-contained interactive HTML page."""
    from armdyn.files.text import file_name, write_text
    from armdyn.references import citation
    from armdyn.report.collect import collect
    from armdyn.report.page import page

    loaded = load(arm)
    shapes, notes = ([], []) if meshes is False else _shapes(arm, loaded, bool(meshes))
    with progress("reporting", quiet) as update:
        data = collect(loaded, update, shapes, arm, gpu=gpu)
    where = output or Path(file_name(loaded.name, ".html"))
    write_text(where, page(data, citation()))
    if as_json:
        print_json({key: value for key, value in data.items() if key not in ("robot", "graphs", "falls")})
    elif not quiet:
        out = console()
        for part in summary(data):
            out.print(part)
        for note in notes:
            out.print(f"mesh of {note}", markup=False, soft_wrap=True)
        out.print(f"report: {where}", markup=False, soft_wrap=True)


def summary(data: dict[str, Any]) -> Iterator[Any]:
    """The data of `collect` for the terminal: the arm in a few lines, operation counts, speeds."""
    from armdyn.report.page import QUANTITY, operations

    card = data["card"]
    parameters = f"{len(data['parameters']['names'])} minimal parameters of {10 * len(card['links'])}"
    about = f"{count(card['n'], 'joint')} ({card['kinds']}), {card['mass_kg']:.2f} kg, {parameters}"
    yield styled((card["name"], "bold cyan"), f"  {about}")
    if card["source"]:
        yield styled((card["source"], "dim"))
    for finding in card["checks"]:
        yield styled(("warning:", "yellow"), f" {finding}")
    yield styled((data["fall"]["text"], "dim"))
    errors = {(row["quantity"], row["method"]): row["error"] for row in data["accuracy"]}
    yield styled(("Formulations", "bold"), " (M multiplications, A additions, D divisions; ◀ fewest)")
    for quantity in dict.fromkeys(row["quantity"] for row in data["costs"]):
        shown = Fitted("", [QUANTITY[quantity], "executed", "compiled", "relative error"])
        for row in data["costs"]:
            if row["quantity"] == quantity:
                error, best = errors.get((quantity, row["method"])), row["best"]
                cells = [row["method"] + " ◀" * best, operations(row["published"]), operations(row["compiled"])]
                cells.append("" if error is None else f"{error:.0e}")
                shown.add_row(*cells, style="bold green" if best else "")
        yield shown
    times = ("batch_ns", "copy_ns", "single_ns", "first_call_ms")
    columns = ["quantity", "in a batch, each [ns]", "copying the result [ns]", "one call [ns]", "first call [ms]"]
    rows = [
        [QUANTITY[row["quantity"]], *(f"{row[key]:.{1 if k < 2 else 0}f}" for k, key in enumerate(times))]
        for row in data["speed"]
    ]
    yield table("Speed, measured now (best of several, one thread)", columns, rows)


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
