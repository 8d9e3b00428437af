"""Citations: BibTeX of the papers behind a formulation."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

from armdyn.errors import choose
from armdyn.formulations import QUANTITIES


@cache
def bibliography() -> dict[str, str]:
    """BibTeX entry of every paper, by key."""
    text = files("armdyn").joinpath("references.bib").read_text(encoding="utf-8")
    entries = [entry.strip() for entry in re.split(r"\n(?=@)", text) if entry.strip()]
    return {entry[entry.index("{") + 1 : entry.index(",")]: entry for entry in entries}


def citation(quantity: str | None = None, method: str | None = None) -> str:
    """BibTeX of the papers used: for one formulation, for all of a quantity, or for everything.

    >>> print(citation("inertia_matrix", "lin_fang_1").splitlines()[0])
    @article{lin_fang_1999,
    """
    entries = bibliography()
    if quantity is None:
        return "\n\n".join(entries.values())
    formulations = QUANTITIES[choose("quantity", quantity, QUANTITIES)].methods
    if method is not None:
        key = choose(f"method of {quantity}", method, [f.key for f in formulations])
        formulations = tuple(f for f in formulations if f.key == key)
    used = {source.strip() for f in formulations for source in f.source.split(",") if source.strip()}
    return "\n\n".join(entry for key, entry in entries.items() if key in used)
