"""How long the minimal parameters take: names, matrix and values of an arm, from nothing.

    python benchmarks/minimal_parameters.py [repeats]

Beside it, in the same run, the numerical way: the singular values of a random regressor.
"""

from __future__ import annotations

import platform
import sys
import time
from collections.abc import Callable

import numpy as np

import armdyn
from armdyn.parameters import minimal

ARMS = {"panda": lambda: armdyn.load("panda"), "general 7R": lambda: armdyn.generic_arm("RRRRRRR", 0)}


def best(run: Callable[[armdyn.Arm], object], arm: armdyn.Arm, repeats: int) -> float:
    """The shortest of several runs, in milliseconds."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run(arm)
        times.append(time.perf_counter() - start)
    return 1e3 * min(times)


def by_structure(arm: armdyn.Arm) -> object:
    """Everything from the chain anew: nothing is remembered."""
    minimal._for_forces.cache_clear()
    minimal._structure.cache_clear()
    parameters = minimal.minimal_parameters(arm.chain)
    return parameters.names, parameters.matrix, parameters.values


def by_numbers(arm: armdyn.Arm) -> object:
    """The rank of a random regressor (compiled before)."""
    rng = np.random.default_rng(0)
    q, qd, qdd = rng.uniform(-np.pi, np.pi, (3, 60 * arm.n, arm.n))
    Y = arm.natural_regressor(q, qd, qdd).reshape(-1, 10 * arm.n)
    return np.linalg.svd(Y, compute_uv=False)


def main(repeats: int = 20) -> dict[str, tuple[int, float, float]]:
    """Print and return (parameters, ms by structure, ms by numbers) of every arm."""
    print(f"armdyn {armdyn.__version__}, Python {platform.python_version()}, NumPy {np.__version__}")
    print(f"{'arm':12s} {'parameters':>10s} {'by structure':>14s} {'by numbers':>12s}")
    found = {}
    for name, make in ARMS.items():
        arm = make()
        by_numbers(arm)
        row = len(arm.minimal_parameters), best(by_structure, arm, repeats), best(by_numbers, arm, 3)
        found[name] = row
        print(f"{name:12s} {row[0]:10d} {row[1]:11.1f} ms {row[2]:9.1f} ms")
    return found


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
