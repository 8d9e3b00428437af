"""Gains × steps: where PD control of the catalogue's arms runs, where the step is called too long; equilibrium kept.

Every arm is driven 0.1 rad (or m) away from its rest posture. "ran" must mean that it came near where a fine step
comes; a run that ends with a physical event that the fine step does not have is counted as false.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np

import armdyn
from armdyn.simulation import PDGravity, simulate

GAINS = ((20.0, 2.0), (100.0, 20.0), (1000.0, 100.0), (5000.0, 500.0))
STEPS = (5e-4, 1e-3, 2e-3, 4e-3)
NEAR = 2e-3  # rad or m at the end, beside the fine step


def row(arm: armdyn.Arm, kp: float, kd: float, method: str, duration: float) -> tuple[list[str], int]:
    """One word per step, and how many of them were false."""
    start = arm.rest
    lower, upper = np.array(arm.limits, float).T
    target = np.clip(start + 0.1, lower + 1e-3, upper - 1e-3)
    torque = PDGravity(target, kp, kd)
    times = np.linspace(0, duration, 3)
    fine = simulate(arm, start, torque=torque, times=times, method="ARK4", step=1e-4)
    words, false = [], 0
    for step in STEPS:
        out = simulate(arm, start, torque=torque, times=times, method=method, step=step)
        if out.status == "unstable step":
            words.append("unstable step")
        elif out.status != fine.status:
            words.append(f"FALSE {out.status}")
            false += 1
        else:
            near = bool(np.abs(out.q[-1] - fine.q[-1]).max() < NEAR)
            words.append(f"{out.method} {'ran' if near else 'FAR'}" if fine.status == "finished" else fine.status)
            false += not near
    return words, false


def equilibrium(steps: int) -> bool:
    """Whether the Puma stays where dry friction holds it, bit for bit, under a plain Python function."""
    arm = armdyn.load("puma560")
    start = np.array([0.2, 0.5, -0.3, 0.1, 0.4, 0.0])
    load = arm.gravity_load(start)
    out = simulate(arm, start, torque=lambda t, q, qd: load, times=[0, steps * 1e-3], method="semi_implicit_euler")
    return bool(np.all(out.q == start) and np.all(out.qd == 0))


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; how many entries were false."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("arms", nargs="*", default=list(armdyn.catalogue()))
    parser.add_argument("--duration", type=float, default=0.5)
    parser.add_argument("--methods", nargs="*", default=["RK4", "auto"])
    parser.add_argument("--equilibrium", type=int, default=0, help="steps of the Puma at rest under a function")
    given = parser.parse_args(arguments)
    total = 0
    print(f"{'arm':12} {'kp':>6} {'kd':>5} {'asked':6}" + "".join(f"{f'{1e3 * step:g} ms':>15}" for step in STEPS))
    for name in given.arms:
        for kp, kd in GAINS:
            for method in given.methods:
                words, false = row(armdyn.load(name), kp, kd, method, given.duration)
                total += false
                print(f"{name:12} {kp:6g} {kd:5g} {method:6}" + "".join(f"{word:>15}" for word in words), flush=True)
    print(f"false: {total}")
    if given.equilibrium:
        print(f"equilibrium for {given.equilibrium} steps under a function: {equilibrium(given.equilibrium)}")
    return total


if __name__ == "__main__":
    main()
