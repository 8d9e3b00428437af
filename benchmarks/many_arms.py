"""Do arms that come and go leave anything behind? Memory, memory maps and open files while many are made and dropped.

    python benchmarks/many_arms.py [--arms 200] [--loads 100000] [--seconds 60]

The first part makes arms with another payload each, computes with them and drops them: everything is traced and
compiled, some tens per second. The second loads one kernel's object code again and again, which is what a process does
that finds its kernels on disk: a million take a few minutes. It exits with 1 if memory grew by more than 20 MB, or maps
and files by more than 20, after the first tenth.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import time
from collections.abc import Callable

import numpy as np

import armdyn
from armdyn.codegen.compile import load, object_code, shapes
from armdyn.codegen.target import host

MOST_GROWTH = (20_000, 20, 20)  # kB of memory, maps, files


def usage() -> tuple[int, int, int]:
    """Resident memory in kB, memory maps, open files of this process."""
    gc.collect()
    with open("/proc/self/maps", encoding="utf-8") as lines:
        maps = sum(1 for _ in lines)
    with open("/proc/self/statm", encoding="utf-8") as file:
        resident = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024
    return resident, maps, len(os.listdir("/proc/self/fd"))


def watched(label: str, step: Callable[[int], None], count: int, seconds: float) -> bool:
    """Take `count` steps, or as many as fit into `seconds`; whether nothing grew after the first tenth."""
    end, first = time.monotonic() + seconds, None
    done = 0
    for done in range(1, count + 1):
        step(done)
        if first is None and done >= count / 10:
            first = usage()
        if done % max(1, count // 5) == 0:
            print(
                f"{label}: {done:8} resident {usage()[0]:8} kB, {usage()[1]:5} maps, {usage()[2]:3} files", flush=True
            )
        if time.monotonic() > end:
            break
    last = usage()
    grown = [b - a for a, b in zip(first or last, last, strict=True)]
    print(f"{label}: {done} done, grown by {grown[0]} kB, {grown[1]} maps, {grown[2]} files")
    return first is not None and all(g <= most for g, most in zip(grown, MOST_GROWTH, strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arms", type=int, default=200)
    parser.add_argument("--loads", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=60.0, help="at most, for each part")
    given = parser.parse_args()
    os.environ["ARMDYN_CACHE"] = "off"
    base = armdyn.generic_arm("RR", seed=1)
    q = np.array([0.1, 0.2])

    def one_arm(k: int) -> None:
        arm = base.with_payload(0.001 * k, [0, 0, 0.1])
        assert np.isfinite(arm.gravity_load(q)).all()

    program = armdyn.load("puma560").inertia_matrix.program
    code = object_code(program, host())
    configuration = np.zeros(6)
    expected = load("kernel", *shapes(program), code, host())(configuration)

    def one_load(k: int) -> None:
        assert np.array_equal(load("kernel", *shapes(program), code, host())(configuration), expected)

    flat = watched("arms", one_arm, given.arms, given.seconds)
    flat &= watched("loads", one_load, given.loads, given.seconds)
    sys.exit(0 if flat else 1)


if __name__ == "__main__":
    main()
