"""Straight-line code written for AVX2 against plain LLVM IR, by way of columns and from rows to rows, in one run.

    python benchmarks/rows_to_rows.py [arms…] [--batch 2000] [--seconds 0.1]

Nanoseconds per configuration of the same programs, which give the same bits: `avx2` is the code written here
(`codegen/avx2`), `columns` is LLVM's own, `rows` is LLVM's own in a function from rows to rows, each with 4 lanes;
`8 lanes` and `8, rows` are LLVM's with AVX-512, where the processor has it. Figures are in docs/adr/0010.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np

import armdyn
from armdyn import Arm
from armdyn.codegen.compile import Compiled, compile_program
from armdyn.codegen.llvm import module as choice
from armdyn.codegen.llvm.plain import PlainCode
from armdyn.codegen.llvm.straight_line import RowsToRows
from armdyn.codegen.target import Target, avx2, host
from armdyn.studies.speed import best, machine

UNIFORM = ("parameters",)
ROUNDS = 3


class PlainColumns(PlainCode):
    """Plain LLVM IR by way of columns."""

    def rows_to_rows(self) -> RowsToRows | None:
        return None


class PlainRows(PlainCode):
    """Plain LLVM IR with a function from rows to rows, for programs of any length and vectors of any width."""

    def rows_to_rows(self) -> RowsToRows | None:
        return self._rows_to_rows() if len(self.trig_layers) <= 1 else None


def variants(program: Any) -> dict[str, Compiled]:
    """The program compiled in every way that this processor runs."""
    narrow = avx2()
    if narrow is None:
        raise SystemExit("this processor has no AVX2 with fused multiply-adds")

    def compiled(target: Target, code: type[PlainCode]) -> Compiled:
        with mock.patch.object(choice, "Avx2Code", code), mock.patch.object(choice, "PlainCode", code):
            return compile_program(program, target, UNIFORM)

    found = {"avx2": compile_program(program, narrow, UNIFORM)}
    found |= {"columns": compiled(narrow, PlainColumns), "rows": compiled(narrow, PlainRows)}
    if host().lanes == 8:
        found |= {"8 lanes": compiled(host(), PlainColumns), "8, rows": compiled(host(), PlainRows)}
    return found


def kernels(arm: Arm) -> dict[str, Any]:
    """What is measured."""
    names = ("inertia_matrix", "gravity_load", "jacobian", "inverse_dynamics", "forward_dynamics", "regressor")
    found = {name.replace("_", " "): getattr(arm, name) for name in names}
    found["inertia matrix, run-time parameters"] = arm.inertia_matrix.variant(parameters="runtime")
    found["inverse dynamics' derivatives"] = arm.inverse_dynamics.variant(derivatives=("q", "qd", "qdd"))
    found["forward dynamics' derivatives"] = arm.forward_dynamics.variant(derivatives=("q", "qd", "tau"))
    return found


def times(program: Any, parameters: Any, batch: int, seconds: float) -> dict[str, float]:
    """Nanoseconds per configuration of every variant; they must agree to the last bit."""
    rng = np.random.default_rng(0)
    x = [parameters if p.name in UNIFORM else rng.uniform(-1, 1, (batch, *p.shape)) for p in program.inputs]
    made = variants(program)
    outs = {name: kernel(*x) for name, kernel in made.items()}
    calls: dict[str, Callable[[], Any]] = {}
    for name, kernel in made.items():
        for a, b in zip(*(o if isinstance(o, tuple) else (o,) for o in (outs[name], outs["avx2"])), strict=True):
            np.testing.assert_array_equal(a, b)
        calls[name] = lambda kernel=kernel, out=outs[name]: kernel(*x, out=out)
    return {name: min(1e9 * best(call, seconds) / batch for _ in range(ROUNDS)) for name, call in calls.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("arms", nargs="*", default=["puma560", "panda"])
    parser.add_argument("--batch", type=int, default=2000)
    parser.add_argument("--seconds", type=float, default=0.1)
    given = parser.parse_args()
    print(machine())
    ratios: dict[str, list[float]] = {}
    for name in given.arms:
        arm = armdyn.load(name)
        parameters = np.array([float(value) for value in arm.minimal_parameters.values])
        for label, kernel in kernels(arm).items():
            found = times(kernel.program, parameters, given.batch, given.seconds)
            for key, value in found.items():
                ratios.setdefault(key, []).append(value / found["avx2"])
            row = "  ".join(f"{key} {value:6.1f} ({value / found['avx2']:4.2f}×)" for key, value in found.items())
            print(f"{name:10} {label:36} {row}", flush=True)
    print("geometric means: " + ", ".join(f"{key} {np.exp(np.mean(np.log(r))):.2f}×" for key, r in ratios.items()))


if __name__ == "__main__":
    main()
