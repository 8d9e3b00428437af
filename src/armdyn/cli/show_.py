"""`armdyn show ARM`: a summary of the arm."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any

import typer

from armdyn.cli.common import ArmName, AsJson, console, load, print_json, styled, table
from armdyn.errors import count

if TYPE_CHECKING:
    from armdyn.cli.common import Fitted

EXAMPLE = "Example: armdyn show puma560"


Symbolic = Annotated[
    str | None,
    typer.Option(
        "--symbolic",
        metavar="QUANTITY",
        help="Print a quantity as a formula (inertia_matrix, bias, …); a long one with named intermediate values. "
        "Needs sympy.",
    ),
]
Symbols = Annotated[bool, typer.Option("--symbols", help="With --symbolic: symbols for lengths, masses, …")]
AsLatex = Annotated[bool, typer.Option("--latex", help="With --symbolic: print LaTeX.")]
InDegrees = Annotated[bool, typer.Option("--degrees", help="Print angles in degrees (JSON stays in radians).")]


def command(
    arm: ArmName,
    degrees: InDegrees = False,
    symbolic: Symbolic = None,
    symbols: Symbols = False,
    latex: AsLatex = False,
    as_json: AsJson = False,
) -> None:
    """Show an arm: joints, links, limits, warnings and sources; or a quantity as a formula."""
    from armdyn.report.card import card

    if symbolic is not None:
        from armdyn.bridges.derivation import readable

        for line in readable(load(arm).kernel(symbolic), "symbols" if symbols else "numbers", latex):
            typer.echo(line)
        return
    data = card(load(arm))
    if as_json:
        print_json(data)
        return
    out = console()
    base = " on a floating base" if data["floating"] else ""
    out.print(
        styled(
            (data["name"], "bold"), f"  {count(data['n'], 'joint')} ({data['kinds']}){base}, {data['mass_kg']:.3f} kg"
        )
    )
    out.print(f"gravity ({', '.join(f'{x + 0.0:g}' for x in data['gravity'])}) m/s²")
    if data["source"]:
        out.print(f"source: {data['source']}", style="dim", highlight=False, markup=False)
    out.print(_tool(data), highlight=False)
    out.print(_joints(data, degrees))
    followers = [_follows(joint) for joint in data["bodies"] if joint["follows"]]
    if followers:
        out.print(f"mimic joints: {', '.join(followers)}", highlight=False)
    for tendon in data["tendons"]:
        out.print(_tendon(tendon), highlight=False)
    if carried := [f"{mass:g} kg of link {k}" for k, mass in enumerate(data["compensated_kg"], 1) if mass]:
        out.print(f"gravity compensation: the weight of {', '.join(carried)}", highlight=False)
    out.print(
        table(
            "Links (c: centre of mass in the link's frame, m; I: inertia about it, kg m²)",
            ["link", "mass [kg]", "cx [m]", "cy", "cz", "Ixx [kg m²]", "Iyy", "Izz", "Ixy", "Ixz", "Iyz"],
            [[k + 1, link["mass"], *link["com"], *link["inertia"]] for k, link in enumerate(data["links"])],
            groups=[5],
        )
    )
    for finding in data["checks"]:
        out.print(styled(("warning:", "yellow"), f" {finding}"))
    if not data["checks"]:
        out.print("no problems found", style="green")
    parents = {joint["parent"] for joint in data["bodies"]}
    if sum(joint["link"] not in parents for joint in data["bodies"]) > 1:
        out.print(f"tips: {', '.join(data['tips'])}", highlight=False)


def _tendon(tendon: dict[str, Any]) -> str:
    """A tendon in one line, as in tendon t: L = -2 j + 1.5 k, stiffness 20, rest 0.3."""
    length = " ".join(f"{c:+g} {joint}" for joint, c in tendon["ratios"].items()).removeprefix("+")
    numbers = [f"{key} {tendon[key]:g}" for key in ("stiffness", "rest", "damping", "armature") if tendon[key]]
    return f"tendon {tendon['name']}: L = {', '.join([length, *numbers])}"


def _tool(data: dict[str, Any]) -> str:
    """What the tool is, in one line."""
    tool = data["tool"]
    if tool is None:
        return "tool: none, because there are several tips; name one with --tool"
    xyz, rpy = (", ".join(f"{x:.6g}" for x in tool[key]) for key in ("xyz", "rpy"))
    return f"tool: {tool['name']} on link {tool['link']}, at xyz {xyz} m, rpy {rpy} rad"


def _joints(data: dict[str, Any], degrees: bool) -> Fitted:
    """The joints with their constants; those of a robot that is no plain arm with the links they stand on."""
    bodies, parts = data["bodies"], "b along x, β about x, d along z, θ about z"
    forked = any(map(_forked, bodies))
    keys = ["b", "beta", "d", "theta", "lower", "upper", "rotor_inertia", "viscous", "coulomb"]
    angle = "deg" if degrees else "rad"
    heads = ["b [m]", f"β [{angle}]", "d [m]", f"θ [{angle}]"]
    heads += [f"lower [{angle}]", f"upper [{angle}]", "rotor inertia [kg m²]", "viscous [N m s/rad]", "Coulomb [N m]"]
    if any(joint["kind"] == "prismatic" for joint in bodies):  # the unit of a row depends on its kind
        heads[4:] = [f"lower [{angle}, m]", f"upper [{angle}, m]", "rotor inertia [kg m², kg]",
                     "viscous [N m s/rad, N s/m]", "Coulomb [N m, N]"]  # fmt: skip
    if forked:
        keys, heads, parts = (
            ["turn", "shift", *keys],
            [f"turn [{angle}]", "shift [m]", *heads],
            f"turn about z, shift along z, {parts}",
        )
    title = f"Joints (frame i in frame i-1: {parts})"
    if forked or any(j["parent"] != j["link"] - 1 for j in bodies):
        title = f"Joints (frame of the link in the frame of the link it is on, 0 the base: {parts})"
        keys, heads = ["link", "parent", *keys], ["link", "on", *heads]
    constants = {"turn", "shift", "b", "beta", "d", "theta"}
    cells = [
        [
            j["name"],
            j["kind"],
            *(None if j["kind"] == "free" and key in constants else _cell(j, key, degrees) for key in keys),
        ]
        for j in bodies
    ]
    return table(title, ["joint", "kind", *heads], cells, left=2, groups=[2 + keys.index("lower")])


def _cell(joint: dict[str, Any], key: str, degrees: bool) -> Any:
    """A joint's number; angles in degrees if asked for."""
    angle = key in ("turn", "beta", "theta") or (key in ("lower", "upper") and joint["kind"] == "revolute")
    return math.degrees(joint[key]) if degrees and angle and joint[key] is not None else joint[key]


def _forked(joint: dict[str, Any]) -> bool:
    return bool(joint["turn"] or joint["shift"])


def _follows(joint: dict[str, Any]) -> str:
    """What a mimic joint follows, as in right = -1 × left + 0.02."""
    follows = joint["follows"]
    offset = f" {follows['offset']:+g}" if follows["offset"] else ""
    return f"{joint['name']} = {follows['multiplier']:g} × {follows['joint']}{offset}"
