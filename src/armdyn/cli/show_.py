"""`armdyn show ARM`: a summary of the arm."""

from __future__ import annotations

from typing import Annotated

import typer

from armdyn.cli.common import ArmName, AsJson, console, load, print_json, styled, table

EXAMPLE = "Example: armdyn show puma560"


Symbolic = Annotated[
    str | None,
    typer.Option(
        "--symbolic", metavar="QUANTITY", help="Print a quantity as a formula (inertia_matrix, bias, …); needs sympy."
    ),
]
Symbols = Annotated[bool, typer.Option("--symbols", help="With --symbolic: symbols for lengths, masses, …")]
AsLatex = Annotated[bool, typer.Option("--latex", help="With --symbolic: print LaTeX.")]


def command(
    arm: ArmName, symbolic: Symbolic = None, symbols: Symbols = False, latex: AsLatex = False, as_json: AsJson = False
) -> None:
    """Show an arm: joints, links, limits, warnings and sources; or a quantity as a formula."""
    from armdyn.report import card

    if symbolic is not None:
        from armdyn.bridges import sympy_

        for line in sympy_.lines(load(arm).kernel(symbolic), "symbols" if symbols else "numbers", latex):
            typer.echo(line)
        return
    data = card(load(arm))
    if as_json:
        print_json(data)
        return
    out = console()
    out.print(styled((data["name"], "bold"), f"  {data['n']} joints ({data['kinds']}), {data['mass_kg']:.3f} kg"))
    out.print(f"gravity {data['gravity']} m/s²")
    if data["source"]:
        out.print(f"source: {data['source']}", style="dim", highlight=False, markup=False)
    out.print(
        table(
            "Joints (frame i in frame i-1: b along x, β about x, d along z, θ about z)",
            ["joint", "kind", "b [m]", "β [rad]", "d [m]", "θ [rad]", "lower", "upper", "rotor", "viscous", "Coulomb"],
            [
                [j["name"], j["kind"], j["b"], j["beta"], j["d"], j["theta"], j["lower"], j["upper"],
                 j["rotor_inertia"], j["viscous"], j["coulomb"]]
                for j in data["joints"]
            ],
            left=2,
        )
    )  # fmt: skip
    out.print(
        table(
            "Links (centre of mass in the link's frame; inertia about it)",
            ["link", "mass [kg]", "cx [m]", "cy [m]", "cz [m]", "Ixx [kg m²]", "Iyy", "Izz", "Ixy", "Ixz", "Iyz"],
            [[k + 1, link["mass"], *link["com"], *link["inertia"]] for k, link in enumerate(data["links"])],
        )
    )
    for finding in data["checks"]:
        out.print(styled(("warning:", "yellow"), f" {finding}"))
    if not data["checks"]:
        out.print("no problems found", style="green")
