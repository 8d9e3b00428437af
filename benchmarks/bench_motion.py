"""Time-optimal motion beside toppra: equal times without friction, time per path, and what friction costs toppra.

Without friction: the times on 200 random paths of five arms, on 1000 steps each, where both have converged. Speed: one
path of a Panda, and a thousand, with 200 steps each, from waypoints to a timed trajectory; in turns, best of several.
toppra's torques come from the same compiled inverse dynamics. With viscous friction: toppra's answer cannot hold it;
what its motion asks of the motors, as a part of their limits.
Run (two minutes, with the extra `peers`): python benchmarks/bench_motion.py [--paths 200] [--many 1000]
"""

from __future__ import annotations

import argparse
import logging
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import armdyn
from armdyn.motion import MotionLimits

CLOCK = time.perf_counter  # or time.process_time, where other programs take the processor
ARMS = ("panda", "ur5", "iiwa14", "xarm7", "puma560")


def random_path(arm: Any, rng: np.random.Generator) -> np.ndarray:
    """Four waypoints within 0.6 of the joint ranges, at most ±2.5 rad."""
    low, high = np.clip(arm.limits, -2.5, 2.5).T
    return (low + high) / 2 + 0.3 * (high - low) * rng.uniform(-1, 1, (4, arm.n))


def limits_of(arm: Any) -> MotionLimits:
    """The file's limits; where it has none, twice what holds the arm, and 3 rad/s."""
    effort = np.where(np.isfinite(arm.effort_limits), arm.effort_limits, 0)
    weight = np.abs(arm.gravity_load(np.random.default_rng(0).uniform(-2, 2, (200, arm.n)))).max(0)
    effort = np.where(effort > 1.5 * weight, effort, 2 * weight + 5)
    velocity = np.where(np.isfinite(arm.velocity_limits), arm.velocity_limits, 3.0)
    return MotionLimits(torque=effort, velocity=velocity)


def by_toppra(arm: Any, way: np.ndarray, limits: MotionLimits, grid: int) -> Any:
    """Toppra's speeds on the same natural spline: (s, ṡ)."""
    import toppra
    from toppra.algorithm import TOPPRA
    from toppra.constraint import JointTorqueConstraint, JointVelocityConstraint

    along = np.r_[0, np.cumsum(np.linalg.norm(np.diff(way, axis=0), axis=1))]
    path = toppra.SplineInterpolator(along / along[-1], way, "natural")
    ends = [np.stack([-x, x], axis=1) for x in (limits.velocity, limits.torque)]
    asked = [
        JointVelocityConstraint(ends[0]),
        JointTorqueConstraint(arm.inverse_dynamics, ends[1], np.zeros(arm.n)),
    ]
    made = TOPPRA(asked, path, gridpoints=np.linspace(0, 1, grid + 1), solver_wrapper="seidel")
    made.compute_parameterization(0, 0)
    return path, made.problem_data.gridpoints, made.problem_data.sd_vec


def duration(s: np.ndarray, speed: np.ndarray) -> float:
    """The time of constant accelerations between the points."""
    return float((2 * np.diff(s) / (speed[1:] + speed[:-1])).sum())


def equal_times(paths: int) -> None:
    """The same times without friction."""
    print(f"{'arm':>10} {'paths':>6} {'median':>10} {'largest':>10}   difference of times, 1000 steps")
    for name in ARMS:
        arm, rng = armdyn.load(name), np.random.default_rng(7)
        limits, differences = limits_of(arm), []
        ways = [random_path(arm, rng) for _ in range(paths // len(ARMS))]
        for way in ways:
            _, s, speed = by_toppra(arm, way, limits, 1000)
            if speed is None or not np.isfinite(speed).all():
                continue
            found = armdyn.time_optimal(arm, way, limits=limits, friction=False, grid=1000)
            differences.append(found.duration / duration(s, speed) - 1)
        size = np.abs(differences)
        print(f"{name:>10} {len(size):>6} {np.median(size):>10.2%} {size.max():>10.2%}")


def best(run: Callable[[], Any], rounds: int) -> float:
    """The least time of a call, s."""
    times = []
    for _ in range(rounds):
        start = CLOCK()
        run()
        times.append(CLOCK() - start)
    return min(times)


def speeds(many: int) -> None:
    """Time per path, in turns."""
    arm, rng = armdyn.load("panda"), np.random.default_rng(0)
    limits, ways = limits_of(arm), [random_path(arm, rng) for _ in range(many)]
    armdyn.time_optimal(arm, ways[0], limits=limits, friction=False)
    theirs, ours = [], []
    for way in ways[:20]:
        theirs.append(best(lambda way=way: by_toppra(arm, way, limits, 200), 3))
        ours.append(best(lambda way=way: armdyn.time_optimal(arm, way, limits=limits, friction=False), 3))
    one = float(np.median(theirs))
    print(f"one path of a Panda, 200 steps: toppra {1e3 * one:.2f} ms, armdyn {1e3 * np.median(ours):.2f} ms, "
          f"ratio {np.median(np.array(theirs) / ours):.1f}")  # fmt: skip
    for threads in (1, 2):
        armdyn.set_threads(threads)
        together = best(lambda: armdyn.time_optimal(arm, ways, limits=limits, friction=False), 3) / many
        print(f"{many} paths on {threads} thread(s): {1e6 * together:.0f} us per path, "
              f"ratio {one / together:.0f} to toppra one after the other")  # fmt: skip


def with_friction(paths: int) -> tuple[list[float], list[float]]:
    """What toppra's motions ask of the motors with viscous friction; how much longer those take that can be run."""
    rows = [{**joint, "viscous": viscous} for joint, viscous in zip(_links(), (6.0, 4.0, 2.0), strict=True)]
    arm = armdyn.from_dh(rows, gravity=(0, -9.81, 0))
    limits = MotionLimits(torque=np.array([60.0, 35.0, 12.0]), velocity=np.full(3, 5.0))
    worst, slower = [], []
    for seed in range(paths):
        way = np.random.default_rng(seed).uniform(-1.5, 1.5, (4, 3))
        path, s, speed = by_toppra(arm, way, limits, 400)
        u = np.diff(speed**2) / (2 * np.diff(s))
        q, dq, ddq = (path(s[1:-1], order) for order in range(3))
        x, acceleration = speed[1:-1, None], u[1:, None]
        tau = arm.inverse_dynamics(q, dq * x, dq * acceleration + ddq * x**2, friction=True)
        worst.append(float((np.abs(tau) / limits.torque).max()))
        slower.append(armdyn.time_optimal(arm, way, limits=limits, grid=400).duration / duration(s, speed))
    return worst, slower


def _links() -> list[dict[str, Any]]:
    return [
        {"a": a, "mass": m, "com": (-a / 2, 0, 0), "inertia": (0.01, m * a * a / 12, m * a * a / 12, 0, 0, 0)}
        for a, m in ((0.5, 4.0), (0.4, 3.0), (0.2, 1.5))
    ]


def main(arguments: list[str] | None = None) -> None:
    """Print all comparisons."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--paths", type=int, default=200, help="random paths whose times are compared")
    parser.add_argument("--many", type=int, default=1000, help="paths computed together")
    parser.add_argument("--processor", action="store_true", help="measure processor time, not the clock on the wall")
    asked = parser.parse_args(arguments)
    if asked.processor:
        global CLOCK
        CLOCK = time.process_time
    logging.getLogger("toppra").setLevel(logging.ERROR)
    equal_times(asked.paths)
    speeds(asked.many)
    worst, slower = with_friction(20)
    print(f"viscous friction, 20 paths of a planar arm: toppra's motions ask for {np.median(worst):.0%} of the torques "
          f"(median; at most {max(worst):.0%}); the motions that the motors can run take "
          f"{np.median(slower) - 1:.1%} longer")  # fmt: skip


if __name__ == "__main__":
    main()
