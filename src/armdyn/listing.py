"""An arm as a table: in a terminal (Rich) and in a notebook (HTML)."""

from __future__ import annotations

from typing import Any

from armdyn.chain import Chain
from armdyn.html import table, visible

COLUMNS = ("joint", "kind", "b [m]", "β [rad]", "d [m]", "θ [rad]", "mass [kg]", "centre of mass [m]")


def rich_table(title: str, source: str, chain: Chain) -> Any:
    """The table for a terminal; names are shown literally, never as markup."""
    from rich.table import Table
    from rich.text import Text

    out = Table(*COLUMNS, title=Text(visible(title)), caption=Text(visible(source)) if source else None)
    for row in rows(chain):
        out.add_row(*(Text(visible(cell)) for cell in row))
    return out


def html_table(title: str, source: str, chain: Chain) -> str:
    """The table for a notebook."""
    return table(f"{title}. {source}", COLUMNS, rows(chain))


def rows(chain: Chain) -> list[tuple[str, ...]]:
    """One row per joint with its link."""
    found = []
    for joint, link in zip(chain.joints, chain.links, strict=True):
        numbers = (joint.b, joint.beta, joint.d, joint.theta, link.mass)
        com = ", ".join(f"{float(x):.4g}" for x in link.com)
        found.append((joint.name, joint.kind, *(f"{float(x):.5g}" for x in numbers), com))
    return found
