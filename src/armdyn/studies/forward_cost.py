"""Operation counts of every forward-dynamics method for n = 1 … 30 revolute joints, and where O(n) overtakes O(n³).

The arms are in general position (`generic_chain`); `composite` computes H by `meeting_frame`. The counts are of the
programs after constant folding and sharing, before the search for common terms, which saves a kernel another one or two
percent. For comparison, the table has the counts that Saha 1999, section 7, quotes for his algorithm of 1997 and for
Featherstone's of 1983.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from armdyn.algebra import Operations
from armdyn.chain.chain import generic_chain
from armdyn.drawing import import_plotly
from armdyn.formulations import QUANTITIES
from armdyn.graph.program import trace
from armdyn.programs.assemble import assemble

METHODS = tuple(method.key for method in QUANTITIES["forward_dynamics"].methods)
QUOTED = ("Saha 1997", "Featherstone 1983")


@dataclass(frozen=True, slots=True)
class ForwardCostRow:
    """Operation counts for one number of joints: of every method here, and as quoted."""

    n: int
    executed: dict[str, Operations]
    quoted: dict[str, Operations]


def quoted(n: int) -> dict[str, Operations]:
    """Saha 1999, section 7; a division counts as a multiplication there, and the formulas start at n = 2."""
    counts = ((201 * n - 335, 193 * n - 361), (199 * n - 198, 174 * n - 173))
    return {name: Operations(mul=max(m, 0), add=max(a, 0)) for name, (m, a) in zip(QUOTED, counts, strict=True)}


@lru_cache(maxsize=64)
def row(n: int) -> ForwardCostRow:
    """Every method for n revolute joints in general position."""
    chain = generic_chain("R" * n)
    executed = {}
    for method in METHODS:
        made = assemble(chain, "forward_dynamics", method)
        executed[method] = trace(method, made.function, dict(made.inputs), made.outputs).operations
    return ForwardCostRow(n, executed, quoted(n))


def table(joints: Iterable[int] = range(1, 31)) -> list[ForwardCostRow]:
    """One row per number of joints."""
    return [row(n) for n in joints]


def overtakes(rows: Iterable[ForwardCostRow], fast: str = "denoc", slow: str = "composite") -> int | None:
    """The number of joints from which `fast` takes fewer operations than `slow`; None if it never does."""
    first = None
    for r in rows:
        if r.executed[fast].total >= r.executed[slow].total:
            first = None
        elif first is None:
            first = r.n
    return first


def markdown(rows: Iterable[ForwardCostRow]) -> str:
    """The table as Markdown."""
    columns = (*METHODS, *(f"{name}, quoted" for name in QUOTED))
    lines = ["| n | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    for r in rows:
        cells = (*r.executed.values(), *r.quoted.values())
        lines.append(f"| {r.n} | " + " | ".join(str(cell) for cell in cells) + " |")
    return "\n".join(lines)


def figure(rows: list[ForwardCostRow]) -> Any:
    """The table as a plot (a Plotly figure)."""
    go = import_plotly("plotly.graph_objects")
    plot = go.Figure()
    n = [r.n for r in rows]
    for method in METHODS:
        plot.add_scatter(x=n, y=[r.executed[method].total for r in rows], name=method, mode="lines+markers")
    for name in QUOTED:
        y = [r.quoted[name].total for r in rows]
        plot.add_scatter(x=n, y=y, name=f"{name}, as quoted", mode="lines", line={"dash": "dot"})
    plot.update_layout(
        title="Forward dynamics of n revolute joints in general position",
        xaxis_title="joints",
        yaxis_title="multiplications, additions and divisions",
    )
    return plot
