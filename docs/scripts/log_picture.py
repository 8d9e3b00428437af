"""Draws images/ur10.svg, measured and predicted torques of a log: python docs/scripts/log_picture.py LOG [ARM]."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import armdyn

WIDTH, LEFT, RIGHT, ROW, TOP = 760, 64, 20, 118, 40
INK, MODEL = "#8a919e", "#3b76d1"


def row(k: int, name: str, t: np.ndarray, measured: np.ndarray, predicted: np.ndarray) -> str:
    """One joint: the measured torque in grey, the predicted one over it."""
    low, high = float(min(measured.min(), predicted.min())), float(max(measured.max(), predicted.max()))
    top, height = TOP + ROW * k, ROW - 26

    def path(y: np.ndarray) -> str:
        x = LEFT + (t - t[0]) / (t[-1] - t[0]) * (WIDTH - LEFT - RIGHT)
        v = top + height * (high - y) / (high - low)
        return "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in zip(x, v, strict=True))

    labels = [(high, top + 10), (low, top + height)]
    words = "".join(f'<text x="{LEFT - 8}" y="{y:.0f}" text-anchor="end" fill="#666">{v:.0f}</text>' for v, y in labels)
    return (
        f'<text x="{LEFT}" y="{top - 4}" font-weight="600">{name} [N m]</text>{words}'
        f'<path d="{path(measured)}" stroke="{INK}" stroke-width="2.4" fill="none"/>'
        f'<path d="{path(predicted)}" stroke="{MODEL}" stroke-width="1.3" fill="none"/>'
    )


def main() -> None:
    arm = armdyn.load(sys.argv[2] if len(sys.argv) > 2 else "ur10")
    log = armdyn.Log.read(sys.argv[1])
    found = armdyn.identify(arm, log.part(0, 0.7), validate=log.part(0.7, 1))
    seen = found.validation
    joints = (0, 1, 2, 4)
    rows = [row(k, arm.joints[j].name, seen.t, seen.tau[:, j], seen.predicted[:, j]) for k, j in enumerate(joints)]
    height = TOP + ROW * len(joints)
    legend = (
        f'<path d="M{LEFT + 200} 14h26" stroke="{INK}" stroke-width="3"/><text x="{LEFT + 232}" y="18">measured</text>'
        f'<path d="M{LEFT + 320} 14h26" stroke="{MODEL}" stroke-width="2"/><text x="{LEFT + 352}" y="18">'
        "predicted from the first 70 % of the log</text>"
    )
    times = f"{seen.t[0]:.1f} s to {seen.t[-1]:.1f} s"
    span = f'<text x="{WIDTH - RIGHT}" y="{height - 6}" text-anchor="end" fill="#666">{times}</text>'
    text = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="system-ui, sans-serif" '
        f'font-size="12" role="img"><title>Measured and predicted torques</title>'
        f'<rect width="100%" height="100%" fill="white" rx="6"/>{legend}{"".join(rows)}{span}</svg>\n'
    )
    (Path(__file__).parents[1] / "images" / "ur10.svg").write_text(text, encoding="utf-8")
    print(found)


if __name__ == "__main__":
    main()
