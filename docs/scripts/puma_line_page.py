"""Computes, and writes the tables and pictures of docs/studies: python docs/scripts/puma_line_page.py."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import armdyn
from armdyn.programs.stepping import FIXED
from armdyn.simulation import simulate
from armdyn.studies import integrators, linear_solvers, puma_hypotheses, puma_line, puma_line_page, smoothness

HERE = Path(__file__).parents[1] / "studies"
COLOURS = ("#3b76d1", "#d9822b", "#3d9a6b", "#c4475a", "#7f63c4", "#8a5a44")
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 380, 70, 190, 20, 45
HEAD = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="{x} {y} {w} {h}" font-family="sans-serif" font-size="12">'
Line = tuple[Sequence[float], Sequence[float]]


def chart(lines: Mapping[str, Line], x_title: str, y_title: str) -> str:
    """Lines over a linear x and a logarithmic y."""
    xs = np.concatenate([x for x, _ in lines.values()])
    ys = np.concatenate([[v for v in y if v > 0] for _, y in lines.values()])
    low, high = math.floor(np.log10(ys.min())), math.ceil(np.log10(ys.max()))

    def at(x: float, y: float) -> str:
        across = LEFT + (x - xs.min()) / np.ptp(xs) * (WIDTH - LEFT - RIGHT)
        up = HEIGHT - BOTTOM - (math.log10(y) - low) / (high - low) * (HEIGHT - TOP - BOTTOM)
        return f"{across:.1f},{up:.1f}"

    parts = [HEAD.format(x=0, y=0, w=WIDTH, h=HEIGHT), '<rect width="100%" height="100%" fill="#fff"/>']
    for power in range(low, high + 1, max(1, (high - low) // 8)):
        a, b = at(xs.min(), 10.0**power), at(xs.max(), 10.0**power)
        y = float(a.split(",")[1])
        parts.append(f'<polyline points="{a} {b}" stroke="#dde2e8" fill="none"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">1e{power}</text>')
    for x in np.linspace(xs.min(), xs.max(), 6):
        place = at(x, ys.max()).split(",")[0]
        parts.append(f'<text x="{place}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{x:g}</text>')
    middle = LEFT + (WIDTH - LEFT - RIGHT) / 2
    parts.append(f'<text x="{middle}" y="{HEIGHT - 8}" text-anchor="middle">{x_title}</text>')
    parts.append(f'<text transform="translate(16,{HEIGHT / 2}) rotate(-90)" text-anchor="middle">{y_title}</text>')
    for k, (name, (x, y)) in enumerate(lines.items()):
        colour, level = COLOURS[k % len(COLOURS)], TOP + 16 + 20 * k
        points = " ".join(at(a, b) for a, b in zip(x, y, strict=True) if b > 0)
        parts.append(f'<polyline points="{points}" stroke="{colour}" stroke-width="2" fill="none"/>')
        parts.append(f'<text x="{WIDTH - RIGHT + 12}" y="{level}" fill="{colour}">{name}</text>')
    return "\n".join([*parts, "</svg>", ""])


def arm_picture(data: dict[str, Any]) -> str:
    """The arm at six moments, seen from above and the side at once."""
    arm = puma_line.puma()

    def seen(p: np.ndarray) -> str:
        x = 380 + 520 * (0.8 * p[1] - 0.6 * p[0])
        y = 330 - 520 * (0.9 * p[2] - 0.25 * (0.6 * p[1] + 0.8 * p[0]))
        return f"{x:.1f},{y:.1f}"

    parts = [HEAD.format(x=230, y=100, w=360, h=270), '<rect x="230" y="100" width="360" height="270" fill="#fff"/>']
    for place in range(0, 51, 10):
        q = data["q"][place]
        joints = [np.zeros(3), *arm.dh_poses(q)[:, :3, 3], arm.pose(q)[:3, 3]]
        late = place / 50
        colour = f"rgb({int(59 + 158 * late)},{int(118 + 12 * late)},{int(209 - 166 * late)})"
        points = " ".join(seen(p) for p in joints)
        parts.append(f'<polyline points="{points}" stroke="{colour}" stroke-width="5" fill="none" opacity="0.8"/>')
        parts += [
            f'<circle cx="{seen(p).split(",")[0]}" cy="{seen(p).split(",")[1]}" r="4" fill="{colour}"/>' for p in joints
        ]
    points = " ".join(seen(p) for p in data["path"])
    parts.append(f'<polyline points="{points}" stroke="#1d2733" stroke-width="2" fill="none"/>')
    return "\n".join([*parts, "</svg>", ""])


def drift() -> dict[str, Line]:
    """How far the energy of a frictionless Panda strays, by method, steps of 1 ms."""
    arm = armdyn.load("panda")
    q = np.array([0.1, -0.4, 0.2, -1.8, 0.3, 1.5, 0.4])
    lines = {}
    for method in FIXED:
        out = simulate(arm, q, times=np.linspace(0, 2, 101), step=1e-3, method=method, friction=False, limits=False)
        lines[method] = (out.t, np.abs(out.energy - out.energy[0]) + 1e-16)
    return lines


def listed(heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A list-table of reStructuredText."""
    lines = [".. list-table::", "   :header-rows: 1", ""]
    for row in (heads, *rows):
        cells = [str(cell).replace("|", r"\|") for cell in row]  # |x| would be a substitution
        lines += [f"   {'* -' if k == 0 else '  -'} {cell}" for k, cell in enumerate(cells)]
    return "\n".join(lines) + "\n"


def errors_table(data: dict[str, Any]) -> str:
    each = ["ns an evaluation", *[""] * 4, *(f"{row['nanoseconds']:.0f}" for row in data["table"])]
    return listed(puma_line_page.HEADS, [*puma_line_page.rows(data), each])


def postures_table(all_data: Mapping[str, dict[str, Any]]) -> str:
    heads = [
        "posture",
        "growth a second",
        "position max",
        "methods apart, rad",
        "linear torques, m",
        "held torques, m",
        "order",
    ]
    rows = [
        [
            name, f"{d['growth']:.1f}", f"{d['table'][-1]['position'][0]:.2e}",
            f"{max(r['difference_from_ours'] for r in d['table']):.1e}", f"{d['sampled']['linear']['position']:.2f}",
            f"{d['sampled']['held']['position']:.2f}", f"{d['convergence'][-1]['order']:.2f}",
        ]
        for name, d in all_data.items()
    ]  # fmt: skip
    return listed(heads, rows)


def differences(all_data: Mapping[str, dict[str, Any]]) -> str:
    """The sentences about sizes, methods and sampled torques, from the numbers of the postures' table."""
    sizes = [d["table"][-1]["position"][0] for d in all_data.values()]
    apart = {name: max(row["difference_from_ours"] for row in d["table"]) for name, d in all_data.items()}
    linear, held = ([d["sampled"][kind]["position"] for d in all_data.values()] for kind in ("linear", "held"))
    sentences = [
        f"*Size.* The printed position error is 2.2e-3 m, ours {min(sizes):.1e} m to {max(sizes):.1e} m by posture.",
        f"*Differences between methods.* Ours agree within {max(apart.values()):.1e} rad in every posture (within "
        f"{apart['first']:.1e} rad in the first).",
        f"*Sampled torques.* Joined by lines between samples 0.1 s apart they lead {min(linear):.2f} to "
        f"{max(linear):.2f} m away, held ones {min(held):.2f} to {max(held):.2f} m.",
    ]
    return "\n".join(f"- {sentence}" for sentence in sentences) + "\n"


def main(write: Callable[[Path, str], Any] = Path.write_text) -> None:
    every = {posture: puma_line.data(posture) for posture in puma_line.POSTURES}
    first = every["first"]
    lines = {f"torques {name}": (e["t"], e["position"]) for name, e in first["errors"].items()}
    write(HERE / "puma_line_errors.svg", chart(lines, "time [s]", "position error [m]"))
    write(HERE / "puma_line_arm.svg", arm_picture(first))
    write(HERE / "energy_drift.svg", chart(drift(), "time [s]", "energy drift [J]"))
    write(HERE / "puma_line_table.txt", errors_table(first))
    write(HERE / "puma_line_postures.txt", postures_table(every))
    write(HERE / "puma_line_differences.txt", differences(every))
    for study in (integrators, linear_solvers, smoothness):
        found = study.compare()
        text = "".join(f"- {sentence}\n" for sentence in study.findings(found))
        name = study.__name__.rsplit(".", 1)[1]
        write(HERE / f"{name}.txt", listed(list(study.HEADS), study.table(found)) + "\n" + text)
    for posture in ("first", "second"):
        found = puma_hypotheses.table(puma_hypotheses.outcomes(posture))
        write(HERE / f"puma_line_hypotheses_{posture}.txt", listed(puma_hypotheses.HEADS, found))
    print("\n".join(puma_line_page.findings(first)))


if __name__ == "__main__":
    main()
