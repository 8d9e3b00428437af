"""`armdyn list`: the arms of the catalogue."""

from __future__ import annotations

from armdyn.cli.common import AsJson, console, print_json, table

EXAMPLE = "Example: armdyn list"


def command(as_json: AsJson = False) -> None:
    """List the arms of the catalogue, with joints, mass and source."""
    from armdyn import files
    from armdyn.arm import load

    rows = []
    for name in files.catalogue():
        arm = load(name)
        kinds = "".join("R" if joint.revolute else "P" for joint in arm.joints)
        mass = sum(float(link.mass) for link in arm.links)
        rows.append({"name": name, "joints": kinds, "mass_kg": round(mass, 4), "source": arm.source})
    if as_json:
        print_json(rows)
        return
    out = table("Catalogue", ["name", "joints", "mass [kg]", "source"], [], prose=[3])
    for row in rows:
        out.add_row(row["name"], row["joints"], f"{row['mass_kg']:.3f}", _short(str(row["source"])))
    console().print(out)


def _short(text: str, width: int = 90) -> str:
    from textwrap import shorten

    return shorten(text, width, placeholder=" …")
