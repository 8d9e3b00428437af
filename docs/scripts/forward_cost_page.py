"""Writes docs/papers/forward-dynamics-cost.md and its plot: python docs/scripts/forward_cost_page.py."""

from __future__ import annotations

from pathlib import Path

from armdyn.studies.forward_cost import METHODS, QUOTED, ForwardCostRow, markdown, overtakes, table

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 440, 70, 20, 20, 50
COLOURS = ("#c0392b", "#1f77b4", "#2ca02c")

TEXT = """# What forward dynamics costs

Operations for n revolute joints in general position: `composite` forms H and b and eliminates (O(n³)), `denoc`
uses Saha's factors without forming U, b or H (O(n)), `articulated_body` is Featherstone's method (O(n)). The counts are
of the programs traced by `armdyn.studies.forward_cost`, after folding and sharing; the search for common terms that
every kernel also goes through saves another one or two per cent. The last two columns are the counts
that Saha 1999, section 7, quotes: (201n - 335)M (193n - 361)A for his algorithm of 1997 (a division counted as a
multiplication), (199n - 198)M (174n - 173)A for Featherstone's of 1983.

Each further joint costs `denoc` 198M 178A and a division. It overtakes `composite` at n = {denoc}, `articulated_body`
at n = {articulated}; the papers say 9 to 12. On an arm with right angles this may happen earlier, which is
why `method="auto"` counts operations for each arm.

{table}

![Operations by number of joints](../images/forward-dynamics-cost.svg)

`forward_cost.figure(forward_cost.table())` gives the same plot as an interactive figure.
"""


def svg(rows: list[ForwardCostRow]) -> str:
    most = max(row.executed["composite"].total for row in rows)

    def x(n: int) -> float:
        return LEFT + (n - 1) / (rows[-1].n - 1) * (WIDTH - LEFT - RIGHT)

    def y(total: float) -> float:
        return HEIGHT - BOTTOM - total / most * (HEIGHT - TOP - BOTTOM)

    size = f'viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12"'
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" {size}>', '<rect width="100%" height="100%" fill="white"/>']
    for total in range(0, most + 1, 5000):
        lines.append(f'<path d="M{LEFT} {y(total):.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>')
        lines.append(f'<text x="{LEFT - 8}" y="{y(total) + 4:.1f}" text-anchor="end">{total}</text>')
    for n in (1, 5, 10, 15, 20, 25, 30):
        lines.append(f'<text x="{x(n):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{n}</text>')
    curves = [(m, COLOURS[k], "", [r.executed[m].total for r in rows]) for k, m in enumerate(METHODS)]
    for k, m in enumerate(QUOTED):
        totals = [r.quoted[m].total for r in rows]
        curves.append((f"{m}, as quoted by Saha 1999", COLOURS[k + 1], ' stroke-dasharray="4 4"', totals))
    for k, (name, colour, dashes, totals) in enumerate(curves):
        points = " ".join(f"{x(r.n):.1f},{y(t):.1f}" for r, t in zip(rows, totals, strict=True))
        pen = f'fill="none" stroke="{colour}" stroke-width="2"{dashes}'
        lines.append(f'<polyline points="{points}" {pen}/>')
        lines.append(f'<path d="M{LEFT + 16} {TOP + 14 + 18 * k}h26" {pen}/>')
        lines.append(f'<text x="{LEFT + 50}" y="{TOP + 18 + 18 * k}">{name}</text>')
    lines.append(f'<text x="{WIDTH / 2}" y="{HEIGHT - 10}" text-anchor="middle">joints</text>')
    turned = f'transform="translate(16 {HEIGHT / 2}) rotate(-90)" text-anchor="middle"'
    lines.append(f"<text {turned}>multiplications, additions, divisions</text></svg>")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    docs, rows = Path(__file__).parents[1], table()
    text = TEXT.format(denoc=overtakes(rows), articulated=overtakes(rows, "articulated_body"), table=markdown(rows))
    (docs / "papers" / "forward-dynamics-cost.md").write_text(text, encoding="utf-8")
    (docs / "images" / "forward-dynamics-cost.svg").write_text(svg(rows), encoding="utf-8")
