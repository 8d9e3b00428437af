"""How long it takes to trace the inertia matrix: every formulation, a general 7R arm and one of 30 joints.

    python benchmarks/tracing.py [repeats]

"trace" is running the formulation on nodes; "program" adds the rewriting to fewer operations.
"""

from __future__ import annotations

import platform
import sys
import time
from collections.abc import Callable
from typing import Any

import armdyn
from armdyn.formulations import QUANTITIES
from armdyn.graph.program import trace
from armdyn.programs.program import program


def best(run: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """The shortest of several runs in seconds, and what it gave."""
    times, result = [], None
    for _ in range(repeats):
        start = time.perf_counter()
        result = run()
        times.append(time.perf_counter() - start)
    return min(times), result


def measure(kinds: str, key: str, run: Callable[..., Any], repeats: int) -> tuple[float, float, str]:
    """Seconds to trace, seconds to the whole program, its operations."""
    chain, n = armdyn.generic_arm(kinds).chain, len(kinds)
    ports = {"q": (n,)}, (("H", (n, n)),)
    traced, _ = best(lambda: trace("H", lambda q: run(chain, q), *ports), repeats)

    def whole() -> Any:
        return program.__wrapped__(chain, "inertia_matrix", key)  # which remembers nothing

    built, found = best(whole, repeats)
    return traced, built, str(found.operations)


def main(repeats: int = 3, sizes: tuple[int, ...] = (7, 30)) -> None:
    """Print a table."""
    print(f"Python {platform.python_version()}, {platform.machine()}, best of {repeats}")
    print(f"{'formulation':14} {'n':>3} {'trace [s]':>10} {'program [s]':>12}  operations")
    for n in sizes:
        for method in QUANTITIES["inertia_matrix"].methods:
            if method.key != "reference":
                traced, built, operations = measure("R" * n, method.key, method.run, repeats)
                print(f"{method.key:14} {n:3} {traced:10.3f} {built:12.3f}  {operations}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
