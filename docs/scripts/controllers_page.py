"""Write docs/tables/controllers-cost.txt: what a step of each control law costs on a few arms."""

from __future__ import annotations

from pathlib import Path

import armdyn
from armdyn.control import CONTROLLERS

ARMS = ("scara", "puma560", "ur5", "panda")
OUT = Path(__file__).parents[1] / "tables" / "controllers-cost.txt"


def table() -> str:
    """The table as text."""
    arms = [armdyn.load(name) for name in ARMS]
    lines = [" ".join([f"{'':26}", *(f"{name:>22}" for name in ARMS)])]
    for name in CONTROLLERS:
        counts = [armdyn.controller(arm, name).operations for arm in arms]
        cells = [f"{f'{o.mul}M {o.add}A {o.div}D {o.trig}T':>22}" for o in counts]
        lines.append(" ".join([f"{name:26}", *cells]))
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    OUT.write_text(table(), encoding="utf-8")
    print(table())
