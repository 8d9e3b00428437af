"""How long reading an arm takes, and importing armdyn; beside it, in the same run, Pinocchio reading the same file.

python benchmarks/loading.py [repeats]
"""

from __future__ import annotations

import platform
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib import metadata
from pathlib import Path

import pinocchio

import armdyn

FILES = ("ur10_robot.urdf", "xarm7.urdf", "kinova.urdf", "talos_left_arm.urdf")


def best(run: Callable[[], object], repeats: int) -> float:
    """The shortest of several runs, in milliseconds."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return 1e3 * min(times)


def robot(name: str) -> str:
    """The path of a file of example-robot-data."""
    files = metadata.files("example-robot-data") or ()
    return str(next(Path(str(file.locate())) for file in files if file.name == name))


def import_time() -> float:
    """Milliseconds of `import armdyn` beyond starting Python, in fresh processes."""

    def start(code: str) -> float:
        return best(lambda: subprocess.run([sys.executable, "-c", code], check=True), 3)

    return start("import armdyn") - start("pass")


def main(repeats: int = 20) -> dict[str, tuple[float, float]]:
    """Print and return (ms here, ms in Pinocchio) of every file."""
    print(f"armdyn {armdyn.__version__}, Python {platform.python_version()}, Pinocchio {pinocchio.__version__}")
    print(f"{'file':24s} {'armdyn':>10s} {'Pinocchio':>12s}")
    found = {}
    for name in FILES:
        path = robot(name)
        ours = best(partial(armdyn.load, path), repeats)
        row = ours, best(partial(pinocchio.buildModelFromUrdf, path), repeats)
        found[name] = row
        print(f"{name:24s} {row[0]:7.1f} ms {row[1]:9.1f} ms")
    print(f"import armdyn: {import_time():.0f} ms")
    return found


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:2]))
