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
from armdyn.codegen import straight_line as choice
from armdyn.codegen.compile import Compiled, compile_program
from armdyn.codegen.llvm.blocks import groups, transpose
from armdyn.codegen.llvm.ir import Writer, double
from armdyn.codegen.llvm.plain import PlainCode
from armdyn.codegen.llvm.rows import input_limits, rows_loop
from armdyn.codegen.llvm.straight_line import EMIT, RowsToRows
from armdyn.codegen.llvm.trig import TRIG, sine_cosine
from armdyn.codegen.target import Target, avx2, host
from armdyn.graph.node import Node
from armdyn.studies.speed import best, machine

UNIFORM = ("parameters",)
ROUNDS = 3


class PlainRows(PlainCode):
    """Plain LLVM IR with a function from rows to rows, for programs of any length."""

    def rows_to_rows(self) -> RowsToRows | None:
        limits = input_limits(self.contracted) if len(self.trig_layers) <= 1 else None
        if limits is None:
            return None
        text = rows_loop(self.contracted, self.lanes, self.uniform, limits, lambda w: _Rows(self, w).write())
        return RowsToRows(text, self.uniform)


class _Rows:
    """Writes one block: inputs are transposed before their first use, results once the last of a group is there."""

    def __init__(self, code: PlainRows, w: Writer) -> None:
        self.code, self.w, self.program = code, w, code.contracted
        self.names: dict[int, str] = {}
        self.place = {n.serial: (k, j) for k, p in enumerate(self.program.inputs) for j, n in enumerate(p.nodes)}
        self.sines = {(n.op, n.args[0].serial): n.serial for n in self.program.order if n.op in TRIG}

    def write(self) -> None:
        due = self._groups_due()
        for position, node in enumerate(self.program.order):
            if node.op in TRIG and node.serial not in self.names:
                pair = sine_cosine(self.w, self.code.target.fma, self.operand(node.args[0]))
                for op, name in zip(TRIG, pair, strict=True):
                    self.names[self.sines.get((op, node.args[0].serial), -1)] = name
            elif node.op in EMIT:
                operands = map(self.operand, node.args)
                self.names[node.serial] = EMIT[node.op](self.w, self.code.target.fma, *operands)
            for array, start, nodes in due.get(position, ()):
                self.store(array, start, [self.operand(one) for one in nodes])
        self.w.constant_table("constants_rows", [double(value) for value in self.code.constants])

    def _groups_due(self) -> dict[int, list[tuple[int, int, tuple[Node, ...]]]]:
        """Groups of results by the position of the last that is computed."""
        position = {node.serial: k for k, node in enumerate(self.program.order)}
        due: dict[int, list[tuple[int, int, tuple[Node, ...]]]] = {}
        for array, port in enumerate(self.program.outputs):
            size = self.code.lanes if groups(len(port.nodes), self.code.lanes) else 1
            for start in groups(len(port.nodes), size):
                nodes = port.nodes[start : start + size]
                due.setdefault(max(position[n.serial] for n in nodes), []).append((array, start, nodes))
        return due

    def operand(self, node: Node) -> str:
        if node.op == "const":
            return self.w.load("@constants_rows", self.code.constants[node.value])
        if node.serial not in self.names:
            self._load(*self.place[node.serial])
        return self.names[node.serial]

    def _load(self, array: int, entry: int) -> None:
        w, nodes, lanes = self.w, self.program.inputs[array].nodes, self.code.lanes
        if array in self.code.uniform:
            self.names[nodes[entry].serial] = w.load(f"%in{array}", entry)
            return
        starts = [start for start in groups(len(nodes), lanes) if start <= entry < start + lanes]
        if starts:
            rows = [w.at(f"%in{array}", 8 * (starts[0] + lane * len(nodes))) for lane in range(lanes)]
            for node, name in zip(nodes[starts[0] : starts[0] + lanes], transpose(w, rows), strict=True):
                self.names.setdefault(node.serial, name)
            return
        value = "poison"
        for lane in range(lanes):
            x = w.let(f"load double, ptr {w.at(f'%in{array}', 8 * (entry + lane * len(nodes)))}, align 8")
            value = w.let(f"insertelement {w.vector} {value}, double {x}, i32 {lane}")
        self.names[nodes[entry].serial] = value

    def store(self, array: int, start: int, columns: list[str]) -> None:
        w, lanes, width = self.w, self.code.lanes, len(self.program.outputs[array].nodes)
        if len(columns) == 1:
            for lane in range(lanes):
                x = w.let(f"extractelement {w.vector} {columns[0]}, i32 {lane}")
                w.do(f"store double {x}, ptr {w.at(f'%out{array}', 8 * (start + lane * width))}, align 8")
            return
        half = lanes
        while half > 1:  # transposed between registers
            half //= 2
            low = [p if not p & half else lanes + p - half for p in range(lanes)]
            for i in (i for i in range(lanes) if not i & half):
                a, b = columns[i], columns[i + half]
                columns[i], columns[i + half] = self._shuffle(a, b, low), self._shuffle(a, b, [p + half for p in low])
        for lane, row in enumerate(columns):
            w.do(f"store {w.vector} {row}, ptr {w.at(f'%out{array}', 8 * (start + lane * width))}, align 8")

    def _shuffle(self, a: str, b: str, picks: list[int]) -> str:
        w, mask = self.w, ", ".join(f"i32 {p}" for p in picks)
        return w.let(f"shufflevector {w.vector} {a}, {w.vector} {b}, <{w.lanes} x i32> <{mask}>")


def variants(program: Any) -> dict[str, Compiled]:
    """The program compiled in every way that this processor runs."""
    narrow = avx2()
    if narrow is None:
        raise SystemExit("this processor has no AVX2 with fused multiply-adds")

    def compiled(target: Target, code: type[PlainCode]) -> Compiled:
        with mock.patch.object(choice, "Avx2Code", code), mock.patch.object(choice, "PlainCode", code):
            return compile_program(program, target, UNIFORM)

    found = {"avx2": compile_program(program, narrow, UNIFORM)}
    found |= {"columns": compiled(narrow, PlainCode), "rows": compiled(narrow, PlainRows)}
    if host().lanes == 8:
        found |= {"8 lanes": compiled(host(), PlainCode), "8, rows": compiled(host(), PlainRows)}
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
