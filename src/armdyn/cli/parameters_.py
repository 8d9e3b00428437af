"""`armdyn parameters ARM`: the minimal (base) inertial parameters of an arm."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from armdyn.cli.common import ArmName, AsJson, console, load, print_json, styled, table
from armdyn.errors import InputError, choose

EXAMPLE = "Example: armdyn parameters puma560 --symbolic"

Symbolic = Annotated[
    bool, typer.Option("--symbolic", help="Symbols b₂, d₃, β₂, … for the geometry instead of numbers.")
]
Latex = Annotated[bool, typer.Option("--latex", help="Formulas in LaTeX.")]
Rank = Annotated[bool, typer.Option("--rank", help="Compare with the numerical rank of a random regressor.")]
SETS = ("all", "gravity", "inertia", "union")
Set = Annotated[
    str,
    typer.Option(
        "--set",
        help="Those of all forces (Theorem 5 of Lin 1994), of the gravity load (4), of the inertia matrix (3), or the "
        "union of the latter two (2), which is another set for all forces.",
    ),
]


def command(
    arm: ArmName,
    which: Set = "all",
    symbolic: Symbolic = False,
    latex: Latex = False,
    rank: Rank = False,
    as_json: AsJson = False,
) -> None:
    """Show the minimal (identifiable) inertial parameters: names, values, formulas."""
    loaded = load(arm)
    minimal = _chosen(loaded, choose("set", which, SETS))
    if rank and which not in ("all", "union"):
        raise InputError(f"--rank compares with the regressor of all forces; it takes --set all or union, not {which}")
    form = ("symbolic_latex" if latex else "symbolic") if symbolic else ("latex" if latex else "text")
    formulas = [getattr(expression, form) for expression in minimal.expressions]
    report = _rank(loaded) if rank or (as_json and which == "all") else None
    if as_json:
        data = {"arm": loaded.name, "kind": minimal.kind, "names": minimal.names, "values": minimal.values}
        print_json(
            {**data, "expressions": formulas, "matrix": minimal.array, "influence": minimal.influence, "rank": report}
        )
        return
    out = console()
    counted = f": {len(minimal.names)} minimal parameters of {10 * len(loaded.links)} ({minimal.kind})"
    out.print(styled((loaded.name, "bold"), counted))
    if latex:  # to be pasted: nothing around the formulas
        for name, formula in zip(minimal.names, formulas, strict=True):
            out.print(f"{name} = {formula}", markup=False, highlight=False, soft_wrap=True)
        return
    shown = table("", ["parameter", "value [SI]", "formula"], [], prose=[2])
    for name, value, formula in zip(minimal.names, minimal.values, formulas, strict=True):
        shown.add_row(name, f"{float(value):.6g}", formula)
    out.print(shown)
    out.print(minimal.summary, markup=False, highlight=False)
    if report is not None:
        out.print(
            f"numerical rank of a random regressor: {report['rank']}; last kept singular value {report['kept']:.2e}, "
            f"first dropped {report['dropped']:.2e}"
        )


def _chosen(loaded: Any, which: str) -> Any:
    """The set of Lin 1994's theorems by its name."""
    from armdyn.parameters import gravity_parameters, inertia_matrix_parameters, union

    if which == "all":
        return loaded.minimal_parameters
    gravity, inertia = gravity_parameters(loaded.chain), inertia_matrix_parameters(loaded.chain)
    return {"gravity": gravity, "inertia": inertia}.get(which) or union(gravity, inertia)


def _rank(loaded: Any) -> dict[str, Any]:
    from armdyn.studies.identifiability import rank_report

    found = rank_report(loaded)
    return {"rank": found.rank, "kept": found.last_kept, "dropped": found.first_dropped}
