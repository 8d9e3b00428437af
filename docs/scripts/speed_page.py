"""Measures, and writes docs/benchmarks-*.txt and docs/images/speed.svg: python docs/scripts/speed_page.py."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from pathlib import Path

import armdyn
from armdyn.studies import speed
from armdyn.studies.speed import SpeedRow

DOCS = Path(__file__).parents[1]
sys.path.insert(0, str(DOCS.parent / "benchmarks"))

import rollout  # noqa: E402
from peers import BATCH_PEERS, PEERS  # noqa: E402

ARMS = ("puma560", "ur5", "panda")
GENERAL = ("RRRRRR", "RRRRRRR")
QUANTITIES = speed.QUANTITIES  # all of them, also where a peer comes close
DRAWN = ("inertia_matrix", "inverse_dynamics", "forward_dynamics")
COLOURS = {
    "armdyn": "#3b76d1",
    "Pinocchio": "#d9822b",
    "MuJoCo": "#3d9a6b",
    "Robotics Toolbox": "#8a63b8",
    "copy": "#9aa1ac",
}
WIDTH, LEFT, RIGHT, BAR, GAP, TOP = 760, 215, 70, 15, 14, 64
LEAST, MOST = 1.0, 500_000.0
ROUNDS = 5


def best_of(rounds: list[list[SpeedRow]]) -> list[SpeedRow]:
    """The shortest time of everybody in any round: a busy machine can only add to them."""
    found = []
    for same in zip(*rounds, strict=True):
        times = {who: min(row.times[who] for row in same) for who in same[0].times}
        found.append(replace(same[0], times=times))
    return found


def fewest(rounds: list[list[rollout.Row]]) -> list[rollout.Row]:
    """The same for steps of a simulation."""
    return [
        replace(same[0], ours=min(row.ours for row in same), mujoco=min(row.mujoco for row in same))
        for same in zip(*rounds, strict=True)
    ]


def markdown(rows: list[SpeedRow]) -> str:
    others = [who for who in (*PEERS, *BATCH_PEERS, "copy") if any(who in row.times for row in rows)]
    head = ["arm", "quantity", "way", "armdyn, ns", *(f"{who}, ns" for who in others), *(f"{w} ×" for w in others[:-1])]
    lines = ["| " + " | ".join(head) + " |", "|---|---|---|" + "---:|" * (len(head) - 3)]
    for row in rows:
        cells = [row.arm, row.quantity.replace("_", " "), row.way]
        cells += [f"{row.times[who]:,.0f}" if who in row.times else "–" for who in ("armdyn", *others)]
        ratios = [row.ratio(who) for who in others[:-1]]
        cells += ["–" if math.isnan(r) else f"{r:.1f}" if r < 100 else f"{r:,.0f}" for r in ratios]
        lines.append("| " + " | ".join(cells) + " |")
    return f"{speed.machine()}.\n\n" + "\n".join(lines) + "\n"


def simulation(rows: list[rollout.Row]) -> str:
    lines = [
        "| arm | states at once | armdyn, steps/s | MuJoCo, steps/s | times as many |",
        "|---|---:|---:|---:|---:|",
    ]
    for row in rows:
        ours, theirs = f"{1e9 / row.ours:,.0f}", f"{1e9 / row.mujoco:,.0f}"
        lines.append(f"| {row.arm} | {row.states} | {ours} | {theirs} | {row.ratio:.0f} |")
    return "\n".join(lines) + "\n"


def x(ns: float) -> float:
    share = math.log(max(ns, LEAST) / LEAST) / math.log(MOST / LEAST)
    return LEFT + share * (WIDTH - LEFT - RIGHT)


def svg(rows: list[SpeedRow]) -> str:
    """Bars on a logarithmic scale, one group per quantity and way."""
    parts, y = [], TOP
    for row in rows:
        order = [who for who in COLOURS if who in row.times]
        middle = y + len(order) * BAR / 2
        name = row.quantity.replace("_", " ")
        parts.append(f'<text x="{LEFT - 12}" y="{middle}" text-anchor="end" font-weight="600">{name}</text>')
        way = "in a batch" if row.way == "batch" else "one call"
        parts.append(f'<text x="{LEFT - 12}" y="{middle + 15}" text-anchor="end" fill="#666">{way}</text>')
        for who in order:
            ns, end = row.times[who], x(row.times[who])
            size = f'width="{end - LEFT:.1f}" height="{BAR - 3}"'
            bar = f'<rect x="{LEFT}" y="{y:.1f}" {size} fill="{COLOURS[who]}" rx="2"/>'
            label = f"{ns:,.0f} ns" if ns >= 10 else f"{ns:.1f} ns"
            parts.append(bar + f'<text x="{end + 5:.1f}" y="{y + BAR - 5:.1f}" font-size="11">{label}</text>')
            y += BAR
        y += GAP
    grid = []
    for k in range(6):
        at = x(10.0**k)
        grid.append(f'<path d="M{at:.1f} {TOP - 8}V{y}" stroke="#e3e6eb"/>')
        grid.append(f'<text x="{at:.1f}" y="{y + 16}" text-anchor="middle" fill="#666">{10**k:,} ns</text>')
    legend, at = [], LEFT
    for who, colour in COLOURS.items():
        said = "memory copy" if who == "copy" else who
        legend.append(f'<rect x="{at}" y="32" width="12" height="12" fill="{colour}" rx="2"/>')
        legend.append(f'<text x="{at + 18}" y="43">{said}</text>')
        at += 42 + 7.2 * len(said)
    title = f'<text x="{LEFT}" y="20" font-size="15" font-weight="600">{rows[0].arm}: time for one configuration</text>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y + 28:.0f}" '
        'font-family="system-ui, sans-serif" font-size="13" role="img">'
        "<title>Nanoseconds per configuration, logarithmic scale</title>"
        f'<rect width="100%" height="100%" fill="white" rx="6"/>{"".join([title, *legend, *grid, *parts])}</svg>\n'
    )


def main() -> None:
    arms = [armdyn.load(name) for name in ARMS]
    measured = [*arms, *(armdyn.generic_arm(kinds) for kinds in GENERAL)]
    rows = best_of(
        [
            speed.run(measured, QUANTITIES, seconds=0.1, beside=PEERS, beside_in_batches=BATCH_PEERS)
            for _ in range(ROUNDS)
        ]
    )
    (DOCS / "tables" / "benchmarks-table.txt").write_text(markdown(rows), encoding="utf-8")
    steps = fewest([rollout.measure(arms, (1, 4096), 20_480, 3) for _ in range(ROUNDS)])
    (DOCS / "tables" / "benchmarks-simulation.txt").write_text(simulation(steps), encoding="utf-8")
    drawn = [row for row in rows if row.arm == "ur5" and row.quantity in DRAWN]
    (DOCS / "images" / "speed.svg").write_text(svg(drawn), encoding="utf-8")


if __name__ == "__main__":
    main()
