"""How values are shown: cells as text, and small HTML tables and curves for notebooks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

COLOURS = ("#3b6fb6", "#c8553d", "#4a9c5d", "#8a63b0", "#b08a2e", "#3a9ca6", "#a64b7c", "#6d6d6d")
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
LONGEST = 60  # rows of a table; a longer one says how many are left out


def number(cell: Any) -> str:
    """A cell as text: six significant digits, no minus before zero; empty for None."""
    if cell is None:
        return ""
    return f"{cell + 0.0:.6g}" if isinstance(cell, float) else str(cell)


def visible(text: str) -> str:
    """The text with escaped control characters, including those that change the direction of text."""
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


def table(caption: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table; the first column is text, numbers are to the right; units stand in the columns' names."""
    known = [[number(cell) for cell in row] for row in rows]
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    sides = ["left", *["right"] * (len(columns) - 1)]
    lines = "".join(
        "<tr>" + "".join(f'<td style="text-align:{side}">{escape(c)}</td>' for c, side in zip(row, sides, strict=True))
        + "</tr>"
        for row in known[:LONGEST]
    )  # fmt: skip
    if len(known) > LONGEST:
        lines += f'<tr><td colspan="{len(columns)}">… and {len(known) - LONGEST} more</td></tr>'
    return (
        f'<table><caption style="text-align:left">{escape(caption)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>"
    )


def curves(label: str, names: Sequence[str], t: Sequence[float], values: Sequence[Sequence[float]]) -> str:
    """Curves over time as a picture 560 pixels wide, with the ends of both axes; `values` are the rows in time.

    Every pixel column shows the smallest and the largest value in it, so no peak is lost.
    """
    wide, high, left, top = 480, 130, 60, 14
    finite = [x for row in values for x in row if x == x and abs(x) != float("inf")]
    if not finite or len(t) < 2:
        return ""
    low, top_value = min(finite), max(finite)
    span, length = (top_value - low) or 1.0, (t[-1] - t[0]) or 1.0
    lines = []
    for k, name in enumerate(names):
        ends: dict[int, tuple[float, float]] = {}
        for time, row in zip(t, values, strict=True):
            if row[k] == row[k] and abs(row[k]) != float("inf"):
                x = round(wide * (time - t[0]) / length)
                before = ends.get(x, (row[k], row[k]))
                ends[x] = min(before[0], row[k]), max(before[1], row[k])
        pairs = [(x, y) for x, both in sorted(ends.items()) for y in dict.fromkeys(both)]
        points = " ".join(f"{left + x},{top + high * (1 - (y - low) / span):.1f}" for x, y in pairs)
        style = f'fill="none" stroke="{COLOURS[k % len(COLOURS)]}" stroke-width="1.5"'
        lines.append(f'<polyline points="{points}" {style}><title>{escape(name)}</title></polyline>')
    legend = _legend(names, left, top + high + 30)
    tall = top + high + 22 + 14 * len(legend)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="560" height="{tall}" font-family="sans-serif" font-size="11" '
        f'fill="currentColor" role="img" aria-label="{escape(label)}">'
        f'<rect x="{left}" y="{top}" width="{wide}" height="{high}" fill="none" stroke="currentColor" opacity="0.3"/>'
        f'<text x="{left - 4}" y="{top + 8}" text-anchor="end">{number(float(top_value))}</text>'
        f'<text x="{left - 4}" y="{top + high}" text-anchor="end">{number(float(low))}</text>'
        f'<text x="{left}" y="{top + high + 14}">{number(float(t[0]))} s</text>'
        f'<text x="{left + wide}" y="{top + high + 14}" text-anchor="end">{number(float(t[-1]))} s</text>'
        f'<text x="{left}" y="{top - 3}">{escape(label)}</text>{"".join(legend + lines)}</svg>'
    )


LEGEND = 72  # characters in a line below the curves: some 5.3 pixels each for joint names


def _legend(names: Sequence[str], left: int, top: int) -> list[str]:
    """The names in the colours of their curves, in lines below one another."""
    rows: list[list[tuple[str, str]]] = [[]]
    for name, colour in zip(names, COLOURS, strict=False):
        if rows[-1] and sum(len(other) + 2 for other, _ in rows[-1]) + len(name) > LEGEND:
            rows.append([])
        rows[-1].append((name, colour))
    spans = (" ".join(f'<tspan fill="{colour}">{escape(name)}</tspan>' for name, colour in row) for row in rows)
    return [f'<text x="{left}" y="{top + 14 * k}">{row}</text>' for k, row in enumerate(spans)]
