"""Speed on whole robots beside Pinocchio: an arm with its hand, two arms, a humanoid with a floating base.

    python benchmarks/bench_trees.py                       # Panda, Baxter, Talos of the package example-robot-data
    python benchmarks/bench_trees.py --batch 4096 --only talos

Kernels get a batch and write into arrays made beforehand; Pinocchio is called in a Python loop over the same number of
random configurations. Times are the least of several rounds, taken in turn, per configuration, on one thread. The first
column is a cold compile (nothing in any cache), the last the operations of the program.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(prefix="armdyn-bench-")

import numpy as np
import pinocchio as pin

import armdyn

ROBOTS = {
    "panda": ("panda_description/urdf/panda.urdf", False),
    "baxter": ("baxter_description/urdf/baxter.urdf", False),
    "talos": ("talos_data/robots/talos_reduced.urdf", True),
}
ROUNDS = 5


def folder() -> Path:
    """Where example-robot-data keeps its robots."""
    import example_robot_data

    return Path(example_robot_data.__file__).parents[4] / "share" / "example-robot-data" / "robots"


def least(functions: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """The least time of every function, called in turn."""
    best = dict.fromkeys(functions, float("inf"))
    for _ in range(ROUNDS):
        for name, function in functions.items():
            start = time.perf_counter()
            function()
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def motions(robot: Any, batch: int) -> tuple[Any, Any, Any]:
    """Random q, q̇ and q̈ or τ; quaternions have length 1."""
    rng = np.random.default_rng(0)
    q, v, a = (rng.uniform(-1, 1, (batch, size)) for size in (robot.chain.nq, robot.chain.nv, robot.chain.nv))
    if robot.chain.floating:
        q[:, 3:7] /= np.linalg.norm(q[:, 3:7], axis=1, keepdims=True)
    return q, v, a


def measure(name: str, path: Path, floating: bool, batch: int) -> None:
    """Print a row per quantity."""
    robot = armdyn.load(path, floating=True) if floating else armdyn.load(path)
    model = (
        pin.buildModelFromUrdf(str(path), pin.JointModelFreeFlyer()) if floating else pin.buildModelFromUrdf(str(path))
    )
    data, count = model.createData(), min(batch, 2048)
    model.lowerPositionLimit[:], model.upperPositionLimit[:] = -1, 1
    x = [pin.randomConfiguration(model) for _ in range(count)]
    w = np.random.default_rng(1).uniform(-1, 1, (2, count, model.nv))
    q, v, a = motions(robot, batch)
    peers: dict[str, tuple[tuple[Any, ...], Callable[[int], Any]]] = {
        "inertia_matrix": ((q,), lambda i: pin.crba(model, data, x[i])),
        "inverse_dynamics": ((q, v, a), lambda i: pin.rnea(model, data, x[i], w[0, i], w[1, i])),
        "forward_dynamics": ((q, v, a), lambda i: pin.aba(model, data, x[i], w[0, i], w[1, i])),
    }
    print(f"{name}: {robot.n} joints, {robot.chain.bodies} bodies, {robot.chain.nv} velocities; Pinocchio: {model.nv}")
    for quantity, (inputs, peer) in peers.items():
        kernel = getattr(robot, quantity)
        start = time.perf_counter()
        out = kernel(*inputs)
        cold = time.perf_counter() - start
        one = [array[0] for array in inputs]
        times = least(
            {
                "batch": lambda kernel=kernel, inputs=inputs, out=out: kernel(*inputs, out=out),
                "single": lambda kernel=kernel, one=one: [kernel(*one) for _ in range(1000)],
                "peer": lambda peer=peer: [peer(i) for i in range(count)],
            }
        )
        ours, single, theirs = times["batch"] / batch, times["single"] / 1000, times["peer"] / count
        print(
            f"  {quantity:17s} cold {cold:5.1f} s   batch {ours * 1e6:7.3f} µs   single {single * 1e6:6.2f} µs   "
            f"Pinocchio {theirs * 1e6:6.2f} µs   ratio {theirs / ours:5.1f} and {theirs / single:4.1f}   "
            f"{kernel.method}: {kernel.program.operations}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=16_384)
    parser.add_argument("--only", choices=ROBOTS, action="append")
    asked = parser.parse_args()
    for name in asked.only or ROBOTS:
        path, floating = ROBOTS[name]
        measure(name, folder() / path, floating, asked.batch)


if __name__ == "__main__":
    main()
