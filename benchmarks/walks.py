"""Which files of armdyn a call enters: the length of a walk that a reader follows.

    python benchmarks/walks.py [load | inertia_matrix | simulate | identify] [--files]

A walk is the list of the files under src/armdyn in which a function was entered, in the order of their first entry. All
modules are imported before, nothing is taken from the kernel cache, and only the main thread counts.
"""

from __future__ import annotations

import argparse
import importlib
import os
import pkgutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).parents[1]
OPTIONAL = ("jax", "torch", "casadi", "sympy", "dask")  # the bridges to other libraries, which no walk enters


def import_everything() -> None:
    """Import every module of armdyn, so that importing is no part of a walk."""
    import armdyn

    for module in pkgutil.walk_packages(armdyn.__path__, "armdyn."):
        script = module.name.endswith(("__main__", "mjcf_compile")) or "_pyinstaller" in module.name
        if not script and not any(name in module.name for name in OPTIONAL):
            importlib.import_module(module.name)


def files_entered(call: Callable[[], Any]) -> list[str]:
    """The files of armdyn in which a call enters a function, relative to the package, in the order of first entry."""
    import armdyn

    package = os.path.dirname(os.path.abspath(armdyn.__file__)) + os.sep
    entered: dict[str, None] = {}

    def profile(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(package):
            entered.setdefault(frame.f_code.co_filename[len(package) :])

    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
    return list(entered)


def load() -> Callable[[], Any]:
    """`armdyn.load("puma560")`."""
    import armdyn

    return lambda: armdyn.load("puma560")


def inertia_matrix() -> Callable[[], Any]:
    """The first inertia matrix of an arm that is loaded."""
    import armdyn

    arm = armdyn.load("puma560")
    return lambda: arm.inertia_matrix([0.1] * arm.n)


def simulate() -> Callable[[], Any]:
    """The first simulation, loading included."""
    import armdyn

    return lambda: armdyn.simulate(armdyn.load("puma560"), duration=0.05)


def identify() -> Callable[[], Any]:
    """Identification of a UR5 from the log of the tests, reading it included."""
    import armdyn

    log = ROOT / "tests" / "data" / "ur5_log.csv"
    arm = armdyn.load("ur5")
    return lambda: armdyn.identify(arm, armdyn.Log.read(log))


WALKS: dict[str, Callable[[], Callable[[], Any]]] = {
    "load": load, "inertia_matrix": inertia_matrix, "simulate": simulate, "identify": identify
}  # fmt: skip


def walk(name: str) -> list[str]:
    """The files of one of the `WALKS`, in a process of its own that has compiled nothing."""
    with tempfile.TemporaryDirectory() as empty:
        environment = os.environ | {"ARMDYN_CACHE": empty}
        command = [sys.executable, __file__, name, "--files", "--here"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return done.stdout.split()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("walks", nargs="*", choices=[[], *WALKS])
    parser.add_argument("--files", action="store_true", help="list the files")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.here:
        import_everything()
        print("\n".join(files_entered(WALKS[asked.walks[0]]())))
        return
    for name in asked.walks or WALKS:
        files = walk(name)
        print(f"{name}: {len(files)} files")
        if asked.files:
            print("".join(f"  {file}\n" for file in files), end="")


if __name__ == "__main__":
    main()
