"""`armdyn list`: the arms of the catalogue."""

from __future__ import annotations

from armdyn.cli.common import AsJson, console, print_json, table

EXAMPLE = "Example: armdyn list"


def command(as_json: AsJson = False) -> None:
    """List the arms of the catalogue, with joints, mass and source."""
    from armdyn import files

    rows = [files.listed(name) for name in files.catalogue()]
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
