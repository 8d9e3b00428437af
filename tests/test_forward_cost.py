"""The cost of forward dynamics by method: what the page says is what is executed."""

from __future__ import annotations

from pathlib import Path

from armdyn.algebra import Operations
from armdyn.studies import forward_cost

PAGE = Path(__file__).parent.parent / "docs" / "papers" / "forward-dynamics-cost.md"
ROWS = forward_cost.table((2, 3, 6, 9, 10, 11, 12))


def test_the_page_is_up_to_date():
    """Every number of the O(n) methods; `composite`, whose inertia matrix may be tuned, to one in a hundred."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    for row, written in zip(ROWS, forward_cost.markdown(ROWS).splitlines()[2:], strict=True):
        cells = next(line for line in lines if line.startswith(f"| {row.n} |")).split(" | ")
        hint = "python docs/scripts/forward_cost_page.py writes the page anew"
        assert cells[2:] == written.split(" | ")[2:], hint
        total = sum(int(part[:-1]) for part in cells[1].split())
        assert abs(row.executed["composite"].total - total) <= 0.01 * total + 2, hint


def test_where_linear_overtakes_cubic():
    assert forward_cost.overtakes(ROWS) == 10
    assert forward_cost.overtakes(ROWS, "articulated_body") == 12
    assert forward_cost.overtakes(ROWS, "composite", "denoc") is None


def test_linear_methods_are_linear():
    """Equal steps from n to n + 1, less than 200M 180A a joint."""
    denoc = {row.n: row.executed["denoc"] for row in ROWS}
    assert denoc[11] - denoc[10] == denoc[10] - denoc[9] == Operations(198, 178, 1, trig=2)


def test_quoted_counts():
    assert forward_cost.quoted(6) == {
        "Saha 1997": Operations(871, 797),
        "Featherstone 1983": Operations(996, 871),
    }


def test_figure_shows_every_method():
    names = [trace.name for trace in forward_cost.figure(ROWS).data]
    assert names == [*forward_cost.METHODS, *(f"{name}, as quoted" for name in forward_cost.QUOTED)]
