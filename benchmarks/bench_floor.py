"""The inertia matrix beside a copy of it, and what its instructions alone would take.

`no waiting` runs the very instructions of the kernel, loads and stores too, but each reads registers
that nobody writes: what is left is what the processor's execution ports need for them. `arithmetic` leaves
loads and stores out as well. The results are nonsense; the times are what no order and no
use of registers can go below. On x86 with AVX2 only.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Collection
from dataclasses import replace
from functools import partial
from itertools import cycle
from unittest import mock

import numpy as np

from armdyn import Arm
from armdyn.codegen import avx2 as avx2_code
from armdyn.codegen.avx2 import InlineAssembly, rows_code
from armdyn.codegen.compile import compile_program
from armdyn.codegen.registers import MOVE
from armdyn.codegen.target import avx2
from armdyn.graph.program import Program
from armdyn.studies.speed import BATCH, best, machine
from bench_kernels import ARMS, arm


def without_waiting(program: Program, uniform: Collection[int], arithmetic: bool = False) -> InlineAssembly:
    """The code from rows to rows with sources from registers 0 and 1, all zero, and results in the others in turn.

    A multiply–add reads what it overwrites, so these have ten registers of their own.
    """
    code = rows_code(program, uniform)
    fused, others = cycle(range(2, 12)), cycle(range(12, 16))
    lines = [f"vxorpd %ymm{k}, %ymm{k}, %ymm{k}" for k in range(12)]
    for line in code.text.split("\\0A"):
        if arithmetic and line.startswith(MOVE):
            continue
        *sources, target = re.split(r", (?![^(]*\))", line)
        sources = [re.sub(r"%ymm\d+", f"%ymm{k % 2}", source) for k, source in enumerate(sources)]
        if arithmetic:
            sources = [re.sub(r"-?\d+\(.*\)", "%ymm0", source) for source in sources]
        register = next(fused if line.startswith("vf") else others)
        lines.append(", ".join([*sources, re.sub(r"%ymm\d+", f"%ymm{register}", target)]))
    return replace(code, text="\\0A".join(lines))


def times(one: Arm, batch: int, rounds: int) -> list[float]:
    """Nanoseconds of the kernel, without waiting, of the arithmetic alone, and of a copy."""
    program = one.inertia_matrix.program
    kernels = [compile_program(program, avx2())]
    for code in (without_waiting, partial(without_waiting, arithmetic=True)):
        with mock.patch.object(avx2_code, "rows_code", code):
            kernels.append(compile_program(program, avx2()))
    q = np.random.default_rng(0).uniform(-2, 2, (batch, one.n))
    H, target = np.zeros((2, batch, one.n, one.n))
    calls = [partial(kernel, q, out=H) for kernel in kernels] + [partial(np.copyto, target, H)]
    return np.min([[1e9 * best(call, 0.1) / batch for call in calls] for _ in range(rounds)], axis=0).tolist()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("arms", nargs="*", default=ARMS, help="catalogue names, files, or R and P for a general arm")
    parser.add_argument("--batch", type=int, default=BATCH)
    parser.add_argument("--rounds", type=int, default=10)
    given = parser.parse_args()
    print(machine())
    print("nanoseconds a configuration, and times a copy")
    print(f"{'arm':10} {'kernel':>15} {'no waiting':>15} {'arithmetic':>15} {'copy':>7}")
    for name in given.arms:
        *ours, copy = times(arm(name), given.batch, given.rounds)
        print(f"{name:10} " + " ".join(f"{t:7.1f} ({t / copy:4.2f}×)" for t in ours) + f" {copy:7.1f}", flush=True)


if __name__ == "__main__":
    main()
