"""`armdyn study NAME`: reproduce a published experiment."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from armdyn.cli.common import AsJson, Quiet, console, print_json, progress, table

EXAMPLE = "Example: armdyn study puma-line -o puma_line.html"
TABLES = {
    "integrators": "AB4 against RK4 and DOP853 at equal evaluations",
    "smoothness": "adaptive steps with O(n) and composite forward dynamics",
    "linear-solvers": "UDUᵀ, LDLᵀ and Gauss-Jordan behind forward dynamics",
}
STUDIES = ("puma-line", *TABLES)


def command(
    name: Annotated[str, typer.Argument(metavar="STUDY", help=f"One of: {', '.join(STUDIES)}.")],
    posture: Annotated[
        str, typer.Option(help="puma-line: arm configuration on the line, first, second or third.")
    ] = "first",
    hypotheses: Annotated[
        bool, typer.Option("--hypotheses", help="puma-line: try what explains the printed errors.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="puma-line: a self-contained HTML page to write.")
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Repeat a paper's experiment, or test what it recommends.

    puma-line: a Puma on a straight line beside the printed numbers (ten seconds). integrators: is AB4 more accurate
    than RK4 and DOP853 at equal evaluations (ten seconds)? smoothness: does an O(n) method let a solver take fewer
    steps (half a minute)? linear-solvers: operations and residuals of three eliminations.
    """
    from armdyn.errors import InputError, choose
    from armdyn.files.text import write_text
    from armdyn.studies import puma_line
    from armdyn.studies.puma_line_page import HEADS, findings, page, rows

    choose("study", name, STUDIES)
    if name != "puma-line":
        if output is not None or hypotheses or posture != "first":
            raise InputError(
                f"--output, --posture and --hypotheses are options of puma-line; {name} takes none of them"
            )
        _tabulated(name, as_json, quiet)
        return
    choose("posture", posture, puma_line.POSTURES)
    if hypotheses:
        _hypotheses(posture, as_json, quiet)
        return
    with progress("simulating the line by four methods", quiet or as_json):
        data = puma_line.data(posture)
    if output is not None:
        write_text(output, page(data))
    if as_json:
        print_json(data)
    elif not quiet:
        out = console()
        out.print(table("Provenzano et al., Table 2 (m, m/s, m/s²)", HEADS, rows(data), left=2, keys=2))
        for text in findings(data):
            out.print(f"· {text}", highlight=False, markup=False)
        if output is not None:
            out.print(f"wrote {output}", markup=False, highlight=False, soft_wrap=True)


def _tabulated(name: str, as_json: bool, quiet: bool) -> None:
    """A study that is a table and what follows from it."""
    from dataclasses import asdict
    from importlib import import_module

    study = import_module(f"armdyn.studies.{name.replace('-', '_')}")
    with progress(TABLES[name], quiet or as_json):
        found = study.compare()
    if as_json:
        print_json([asdict(row) for row in found])
    elif not quiet:
        out = console()
        out.print(table(study.TITLE, study.HEADS, study.table(found), left=study.LEFT, keys=study.LEFT))
        for text in study.findings(found):
            out.print(f"· {text}", highlight=False, markup=False)


def _hypotheses(posture: str, as_json: bool, quiet: bool) -> None:
    """What the program of the paper may have done otherwise, run by run."""
    from armdyn.studies.puma_hypotheses import HEADS, outcomes
    from armdyn.studies.puma_hypotheses import table as rows

    with progress("trying hypotheses", quiet or as_json):
        found = outcomes(posture)
    if as_json:
        print_json(
            [{"name": x.name, "size": x.size, "fingerprints": x.fingerprints, "kept": x.survives()} for x in found]
        )
    elif not quiet:
        out = console()
        title = f"Errors of lengths, posture {posture}; in brackets: a quarter and more off the print"
        out.print(table(title, HEADS, rows(found), left=1, prose=[0]))
