"""What a call of `Simulator.step` costs above the compiled loop, for one arm and per lane of a batch.

`python benchmarks/bench_simulator.py ur5 panda`; the least of many short runs, because other processes disturb.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence

import numpy as np

import armdyn


def least(run: Callable[[], object], steps: int, repeats: int) -> float:
    """The shortest time of one step, s."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times) / steps


def costs(name: str, lanes: int, repeats: int) -> tuple[float, float]:
    """(seconds per call, seconds per step inside the loop)."""
    arm = armdyn.load(name)
    tau = (
        np.tile(np.asarray(arm.gravity_load(arm.rest)), (lanes, 1)) if lanes else np.asarray(arm.gravity_load(arm.rest))
    )
    sim = armdyn.Simulator(arm, batch=lanes or None)
    steps = 2 if lanes else 200

    def by_step() -> None:
        sim.reset()
        for _ in range(steps):
            sim.step(tau)

    def together() -> None:
        sim.reset()
        sim.step(tau, steps)

    resets = least(sim.reset, 1, repeats) / steps
    by_step()
    return least(by_step, steps, repeats) - resets, least(together, steps, repeats) - resets


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("arms", nargs="*", default=["planar3", "puma560", "ur5", "panda"])
    parser.add_argument("--lanes", type=int, default=4096)
    parser.add_argument("--repeats", type=int, default=60)
    given = parser.parse_args(arguments)
    for name in given.arms:
        call, inside = costs(name, 0, given.repeats)
        print(f"{name:10} one arm: {1e6 * call:6.2f} µs per call, {1e6 * inside:6.2f} µs in the loop", end="; ")
        call, inside = (1e9 * x / given.lanes for x in costs(name, given.lanes, given.repeats))
        print(f"per lane of {given.lanes}: {call:6.1f} ns, {inside:6.1f} ns in the loop", flush=True)


if __name__ == "__main__":
    main()
