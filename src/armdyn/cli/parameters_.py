"""`armdyn parameters ARM`: the minimal (base) inertial parameters of an arm."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from armdyn.cli.common import ArmName, AsJson, console, load, print_json, styled, table

EXAMPLE = "Example: armdyn parameters puma560 --symbolic"

Symbolic = Annotated[
    bool, typer.Option("--symbolic", help="Symbols b₂, d₃, β₂, … for the geometry instead of numbers.")
]
Latex = Annotated[bool, typer.Option("--latex", help="Formulas in LaTeX.")]
Rank = Annotated[bool, typer.Option("--rank", help="Compare with the numerical rank of a random regressor.")]


def command(
    arm: ArmName, symbolic: Symbolic = False, latex: Latex = False, rank: Rank = False, as_json: AsJson = False
) -> None:
    """Show the minimal (identifiable) inertial parameters: names, values, formulas."""
    loaded = load(arm)
    minimal = loaded.minimal_parameters
    form = ("symbolic_latex" if latex else "symbolic") if symbolic else ("latex" if latex else "text")
    formulas = [getattr(expression, form) for expression in minimal.expressions]
    report = _rank(loaded) if rank or as_json else None
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


def _rank(loaded: Any) -> dict[str, Any]:
    from armdyn.studies.identifiability import rank_report

    found = rank_report(loaded)
    return {"rank": found.rank, "kept": found.last_kept, "dropped": found.first_dropped}
