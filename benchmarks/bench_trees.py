"""Speed on whole robots beside Pinocchio: an arm with its hand, two arms, a humanoid with a floating base.

    python benchmarks/bench_trees.py                       # Panda, Baxter, Talos of the package example-robot-data
    python benchmarks/bench_trees.py --batch 4096 --only talos
    python benchmarks/bench_trees.py --counts              # operations beside those of the chains from base to tips
    python benchmarks/bench_trees.py --compile --only talos  # how long every quantity takes to compile and to load

Kernels get a batch and write into arrays made beforehand; Pinocchio is called in a Python loop over the same number of
random configurations. Times are the least of several rounds, taken in turn, per configuration, on one thread, and the
thread's own: what it waits for others is not counted. "floor" is what filling the results with a number takes, "copy"
what copying them from another array takes. Pinocchio's two times are with all results kept, as those of a batch are,
and with each dropped at once, as those of single calls are: memory for hundreds of large results costs as much as to
fill it. The first columns are a cold compile (nothing in any cache) and the same kernel from the cache, the last the
operations of the program.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any

os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(prefix="armdyn-bench-")

import numpy as np
import pinocchio as pin

import armdyn
from armdyn.chain import Chain
from armdyn.formulations import QUANTITIES
from armdyn.programs.program import program
from armdyn.programs.search import auto

ROBOTS = {
    "panda": ("panda_description/urdf/panda.urdf", False),
    "baxter": ("baxter_description/urdf/baxter.urdf", False),
    "talos": ("talos_data/robots/talos_reduced.urdf", True),
}
ROUNDS = 25  # the least of many finds a moment at which nothing else disturbs the caches


def urdf(name: str) -> Path:
    """The path of a file of example-robot-data."""
    found = next((file for file in metadata.files("example-robot-data") or () if str(file).endswith(name)), None)
    if found is None:
        raise SystemExit(f"no {name} in the package example-robot-data")
    return Path(str(found.locate()))


def least(functions: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """The least time of every function, called in turn."""
    best = dict.fromkeys(functions, float("inf"))
    for _ in range(ROUNDS):
        for name, function in functions.items():
            start = time.thread_time()
            function()
            best[name] = min(best[name], time.thread_time() - start)
    return best


def each(call: Callable[[int], Any], count: int) -> None:
    """Single calls, one result at a time: memory for hundreds of them would cost more than to fill it."""
    for k in range(count):
        call(k)


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
    root = (pin.JointModelFreeFlyer(),) if floating else ()
    model = pin.buildModelFromUrdf(str(path), *root)
    data, count = model.createData(), min(batch, 512)
    model.lowerPositionLimit[:], model.upperPositionLimit[:] = -1, 1
    x = [pin.randomConfiguration(model) for _ in range(count)]
    w = np.random.default_rng(1).uniform(-1, 1, (2, count, model.nv))
    q, v, a = motions(robot, batch)
    peers: dict[str, tuple[tuple[Any, ...], Callable[[int], Any]]] = {
        "inertia_matrix": ((q,), lambda i: pin.crba(model, data, x[i])),
        "inverse_dynamics": ((q, v, a), lambda i: pin.rnea(model, data, x[i], w[0, i], w[1, i])),
        "forward_dynamics": ((q, v, a), lambda i: pin.aba(model, data, x[i], w[0, i], w[1, i])),
        "inverse_dynamics_derivatives": (
            (q, v, a),
            lambda i: pin.computeRNEADerivatives(model, data, x[i], w[0, i], w[1, i]),
        ),
        "forward_dynamics_derivatives": (
            (q, v, a),
            lambda i: pin.computeABADerivatives(model, data, x[i], w[0, i], w[1, i]),
        ),
    }
    print(f"{name}: {robot.n} joints, {robot.chain.bodies} bodies, {robot.chain.nv} velocities; Pinocchio: {model.nv}")
    for quantity, (inputs, peer) in peers.items():
        kernel = kernel_of(robot, quantity)
        start = time.process_time()
        out = kernel(*inputs)
        cold = time.process_time() - start
        start = time.process_time()
        kernel_of(replace(robot), quantity)(*(array[0] for array in inputs))
        warm = time.process_time() - start
        one, results = [array[0] for array in inputs], out if isinstance(out, tuple) else (out,)
        others = [np.ones_like(result) for result in results]
        times = least(
            {
                "batch": lambda kernel=kernel, inputs=inputs, out=out: kernel(*inputs, out=out),
                "single": lambda kernel=kernel, one=one: each(lambda _: kernel(*one), 200),
                "peer": lambda peer=peer: [peer(i) for i in range(count)],
                "peer_single": lambda peer=peer: each(peer, count),
                "floor": lambda results=results: [result.fill(1.0) for result in results],
                "copy": lambda results=results, others=others: list(map(np.copyto, results, others)),
            }
        )
        ours, single, theirs = times["batch"] / batch, times["single"] / 200, times["peer"] / count
        floor, copy, alone = times["floor"] / batch, times["copy"] / batch, times["peer_single"] / count
        print(
            f"  {quantity:28s} cold {cold:5.1f} s, cached {warm * 1e3:4.0f} ms   batch {ours * 1e6:7.3f} µs "
            f"(floor {floor * 1e6:.3f}, copy {copy * 1e6:.3f})   single {single * 1e6:6.2f} µs   "
            f"Pinocchio {theirs * 1e6:6.2f} and {alone * 1e6:6.2f} µs   ratio {theirs / ours:5.1f} and "
            f"{alone / single:4.1f}   "
            f"{kernel.method}: {kernel.program.operations}",
            flush=True,
        )


def kernel_of(robot: Any, quantity: str) -> Any:
    """A quantity, or the derivatives of one in q, q̇ and the last input."""
    name = quantity.removesuffix("_derivatives")
    if name == quantity:
        return robot.kernel(quantity)
    last = "tau" if name == "forward_dynamics" else "qdd"
    return robot.kernel(name, derivatives=("q", "qd", last))


def chains(chain: Chain) -> list[Chain]:
    """The chains from the base, held, to every tip, mimic joints as joints of their own."""
    found = []
    for tip in chain.tips:
        path = [i for i in chain.path(tip) if not chain.joints[i].free]
        joints = tuple(replace(chain.joints[i], mimic=None) for i in path)
        found.append(replace(chain, joints=joints, links=tuple(chain.links[i] for i in path), parents=()))
    return found


def count(name: str, path: Path, floating: bool) -> None:
    """Print the operations of the whole robot beside the sum over its chains."""
    robot = armdyn.load(path, floating=True) if floating else armdyn.load(path)
    for quantity in ("inertia_matrix", "inverse_dynamics", "forward_dynamics"):
        whole = robot.kernel(quantity).program.operations
        parts = [program(chain, quantity, auto(chain, quantity)).operations for chain in chains(robot.chain)]
        each = " + ".join(str(part.total) for part in parts)
        print(
            f"{name} {quantity}: {whole.total}; its {len(parts)} chains {sum(p.total for p in parts)} = {each}",
            flush=True,
        )


def compile_times(name: str) -> None:
    """Print the processor time of every quantity's first call: compiled, and in another process from the cache."""
    names = [*QUANTITIES, *(f"{q}_derivatives" for q, entry in QUANTITIES.items() if entry.derivative_kernel)]
    with tempfile.TemporaryDirectory() as folder:
        for quantity in names:
            command = [sys.executable, __file__, "--only", name, "--first-call", quantity]
            environment = os.environ | {"ARMDYN_CACHE": folder}
            runs = [subprocess.run(command, env=environment, capture_output=True, text=True) for _ in range(2)]
            if any(run.returncode for run in runs):
                print(f"  {quantity:36s} {runs[0].stderr.strip().splitlines()[-1]}", flush=True)
                continue
            cold, cached = (float(run.stdout) for run in runs)
            print(f"  {quantity:36s} cold {cold:5.1f} s, cached {cached * 1e3:4.0f} ms", flush=True)


def first_call(robot: Any, quantity: str) -> None:
    """Print the processor time of a quantity's first call, after that of another one, which loads LLVM."""
    entry = QUANTITIES[quantity.removesuffix("_derivatives")]
    robot.kernel("potential_energy")(motions(robot, 1)[0])
    kernel = robot.kernel(quantity, frame=robot.frames[-1].name) if entry.at_tool else kernel_of(robot, quantity)
    shapes = entry.input_shapes(robot.chain)
    inputs = [np.linspace(-1, 1, np.prod(shape, dtype=int)).reshape(shape) for _, shape in shapes]
    start = time.process_time()
    kernel(*inputs)
    print(time.process_time() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=16_384)
    parser.add_argument("--only", choices=ROBOTS, action="append")
    parser.add_argument("--counts", action="store_true", help="count operations instead of measuring time")
    parser.add_argument("--compile", action="store_true", help="measure how long every quantity takes to compile")
    parser.add_argument("--first-call", metavar="QUANTITY", help="measure the first call of one quantity")
    asked = parser.parse_args()
    for name in asked.only or ROBOTS:
        path, floating = ROBOTS[name]
        if asked.compile:
            compile_times(name)
            continue
        if asked.first_call:
            robot = armdyn.load(urdf(path), floating=True) if floating else armdyn.load(urdf(path))
            first_call(robot, asked.first_call)
            continue
        if asked.counts:
            count(name, urdf(path), floating)
            continue
        measure(name, urdf(path), floating, asked.batch)


if __name__ == "__main__":
    main()
