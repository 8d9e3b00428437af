"""Proven bounds: how sharp, how long, and whether any of ten million random points escapes.

Run it with an arm and a quantity: ``python benchmarks/bench_bounds.py panda gravity_load --gap 2 --seconds 60``. Time
is the process's own (CPU), because a search on a busy machine takes longer than it computes.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

import armdyn

BLOCK = 100_000


def ranges(arm: Any, quantity: str, acceleration: float) -> dict[str, Any]:
    """The arm's limits; angles without any, or with more than a turn, over a turn."""
    names = [name for name, _ in arm.kernel(quantity).assembly.inputs]
    speeds = np.where(np.isfinite(arm.velocity_limits), arm.velocity_limits, 1.0)
    known = {"q": np.clip(arm.limits, -np.pi, np.pi), "qd": np.stack([-speeds, speeds], axis=1)}
    known["qdd"] = np.tile([-acceleration, acceleration], (arm.n, 1))
    return {name: known[name] for name in names}


def escapes(arm: Any, quantity: str, found: Any, boxes: dict[str, Any], points: int) -> int:
    """How many of so many random points lie outside; half of them at corners of velocities and accelerations."""
    rng = np.random.default_rng(1)
    count = 0
    for start in range(0, points, BLOCK):
        size = min(BLOCK, points - start)
        state = []
        for name, box in boxes.items():
            x = rng.uniform(box[:, 0], box[:, 1], (size, arm.n))
            if name != "q":
                half = size // 2
                x[:half] = np.where(rng.random((half, arm.n)) < 0.5, box[:, 0], box[:, 1])
            state.append(x)
        values = arm.kernel(quantity)(*state)
        slack = 1e-12 * np.abs(found.upper).max()  # the kernel's own rounding
        count += int(((values > found.upper + slack) | (values < found.lower - slack)).any(axis=-1).sum())
    return count


def main() -> None:
    """Bound, then try to escape."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("arm", nargs="?", default="ur5")
    parser.add_argument("quantity", nargs="?", default="gravity_load")
    parser.add_argument("--gap", type=float, default=2.0, help="percent")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--acceleration", type=float, default=5.0)
    parser.add_argument("--points", type=int, default=10_000_000)
    chosen = parser.parse_args()
    arm = armdyn.load(chosen.arm)
    boxes = ranges(arm, chosen.quantity, chosen.acceleration)
    begun = time.process_time()
    found = armdyn.bound(arm, chosen.quantity, **boxes, gap=chosen.gap / 100, seconds=chosen.seconds)
    print(f"{found}; {time.process_time() - begun:.1f} s of CPU time")
    for k, gap in enumerate(np.ravel(found.gap)):
        print(
            f"  entry {k + 1}: {np.ravel(found.lower)[k]:.4g} .. {np.ravel(found.upper)[k]:.4g}, gap {100 * gap:.2g} %"
        )
    print(f"{escapes(arm, chosen.quantity, found, boxes, chosen.points)} of {chosen.points} random points escape")


if __name__ == "__main__":
    main()
