"""The inertia matrix, a copy of it, and what lies between: its instructions if none had to wait for another.

The third column runs the very instructions of the kernel, with the same loads and stores, but every
one reads registers that nobody writes: the results are nonsense, and the time is what the processor's
pipes need at best. No order of these instructions can be faster. On x86 with AVX2 only.
"""

from __future__ import annotations

import argparse
import re
from dataclasses import replace
from itertools import cycle
from unittest import mock

import numpy as np
from bench_kernels import ARMS, arm

from armdyn import Arm
from armdyn.backends import llvm, x86
from armdyn.graph.program import Program
from armdyn.studies.speed import BATCH, best, machine

WHOLE = x86.whole


def without_waiting(program: Program) -> x86.Straight:
    """The code of `whole` with sources from registers 0 and 1, and results in the others in turn.

    A multiply–add reads what it overwrites, so these have ten registers of their own.
    """
    code = WHOLE(program)
    fused, others = cycle(range(2, 12)), cycle(range(12, 16))
    lines = []
    for line in code.text.split("\\0A"):
        *sources, target = re.split(r", (?![^(]*\))", line)
        sources = [re.sub(r"%ymm\d+", f"%ymm{k % 2}", source) for k, source in enumerate(sources)]
        register = next(fused if line.startswith("vf") else others)
        lines.append(", ".join([*sources, re.sub(r"%ymm\d+", f"%ymm{register}", target)]))
    return replace(code, text="\\0A".join(lines))


def times(one: Arm, rounds: int) -> tuple[float, float, float]:
    """Nanoseconds of the kernel, of its instructions without waiting, and of a copy."""
    program = one.inertia_matrix.program
    kernel = llvm.compiled(program)
    with mock.patch.object(x86, "whole", without_waiting):
        floor = llvm.compiled(program)
    q = np.random.default_rng(0).uniform(-2, 2, (BATCH, one.n))
    H = kernel(q)
    target = np.empty_like(H)
    calls = (lambda: kernel(q, out=H), lambda: floor(q, out=target), lambda: np.copyto(target, H))
    ours, least, copy = np.min([[1e9 * best(call, 0.1) / BATCH for call in calls] for _ in range(rounds)], axis=0)
    return ours, least, copy


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("arms", nargs="*", default=ARMS, help="catalogue names, files, or R and P for a general arm")
    parser.add_argument("--rounds", type=int, default=10)
    given = parser.parse_args()
    print(machine())
    print("nanoseconds a configuration, and times a copy")
    print(f"{'arm':10} {'kernel':>15} {'no waiting':>15} {'copy':>7}")
    for name in given.arms:
        ours, least, copy = times(arm(name), given.rounds)
        print(
            f"{name:10} {ours:7.1f} ({ours / copy:4.2f}×) {least:7.1f} ({least / copy:4.2f}×) {copy:7.1f}", flush=True
        )


if __name__ == "__main__":
    main()
