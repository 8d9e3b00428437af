"""A fixed-step integrator as machine code: the whole loop over steps, one lane an initial state.

The program gives accelerations: ports q, qd and u in (u: whatever a controller needs of the time,
sampled at the stages), the acceleration out. The state is y = (q, qd) with y' = (qd, acceleration).
`integrate(arguments)` takes one array of 64-bit words, named in `ARGUMENTS`.

Fewer states than lanes are repeated until they fill a vector: a loop with one lane was measured 2 to 8 %
faster for a single state, not worth a second compilation. The loop is kept on disk like every kernel.
"""

from __future__ import annotations

import ctypes
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from armdyn.codegen.llvm.ir import Writer, function
from armdyn.codegen.llvm.module import module
from armdyn.codegen.llvm.straight_line import StraightLine
from armdyn.codegen.llvm.trig import fused
from armdyn.codegen.runtime import jit
from armdyn.codegen.runtime.gufunc import context
from armdyn.codegen.straight_line import straight_line
from armdyn.codegen.target import Target, host
from armdyn.graph.program import Program

ARGUMENTS = (
    "count",  # states
    "steps",
    "every",  # store each so many steps
    "state",  # count × 2n
    "history",  # count × past × 2n: earlier derivatives, newest first
    "inputs",  # u at lane, step and stage, with the byte strides that follow
    "input_lane",
    "input_step",
    "input_stage",
    "stored",  # count × rows × 2n, out
    "stored_lane",
    "state_out",
    "history_out",
    "step_size",  # h, the bits of a double
    "context",
)


@dataclass(frozen=True)
class Scheme:
    """What a step does: the stages' coefficients, the weights, how many past derivatives join, who moves first."""

    a: tuple[tuple[Fraction, ...], ...]
    b: tuple[Fraction, ...]
    past: tuple[Fraction, ...] = ()  # weights of earlier derivatives, newest first
    velocity_first: bool = False  # semi-implicit: the new velocity moves the position


class _Loop:
    """Writes the function `integrate`."""

    def __init__(self, body: StraightLine, scheme: Scheme, n: int, inputs: int, fma: bool) -> None:
        self.body, self.scheme, self.n, self.m, self.fma = body, scheme, n, inputs, fma
        self.w = Writer(body.lanes)
        port = body.contracted.outputs[0]
        self.slots = [body.slots[node.serial] for node in port.nodes]
        self.h = ""  # the step, in every lane

    def text(self) -> str:
        w, size, past = self.w, 2 * self.n, len(self.scheme.past)
        w.label("entry")
        for name, slots in (("y", size), ("in", size + self.m), ("out", len(self.body.slots))):
            w.stack_array(name, slots)
        w.stack_array("k", size * len(self.scheme.b))
        w.stack_array("past", size * past)
        for k, name in enumerate(ARGUMENTS):
            kind = "ptr" if name in _POINTERS else "i64"
            w.do(f"%{name} = load {kind}, ptr {w.at('%arguments', 8 * k)}")
        self.h = w.broadcast(w.let("bitcast i64 %step_size to double"))
        w.do(f"%final = sub i64 %count, {w.lanes}")  # the last block may take in states of the one before
        w.do("br label %block")
        w.label("block")
        w.do("%i = phi i64 [0, %entry], [%next, %done]")
        w.do("%at = call i64 @llvm.umin.i64(i64 %i, i64 %final)")
        self._gather("%y", self._rows("%state", 8 * size), size)
        self._gather("%past", self._rows("%history", 8 * size * past), size * past)
        w.do("br label %step")
        self._step()
        w.label("finish")
        self._scatter("%y", self._rows("%state_out", 8 * size), size)
        self._scatter("%past", self._rows("%history_out", 8 * size * past), size * past)
        w.do("br label %done")
        w.label("done")
        w.do(f"%next = add i64 %i, {w.lanes}")
        w.do(f"br i1 {w.let('icmp slt i64 %next, %count')}, label %block, label %end")
        w.label("end")
        w.do("ret void")
        return function("void @integrate(ptr %arguments)", w.lines)

    def _step(self) -> None:
        """One step; afterwards store it if it is wanted."""
        w, size = self.w, 2 * self.n
        w.label("step")
        w.do("%s = phi i64 [0, %block], [%t, %stepped]")
        w.do("%due = phi i64 [%every, %block], [%wait, %stepped]")
        w.do("%row = phi i64 [0, %block], [%row1, %stepped]")
        for stage, coefficients in enumerate(self.scheme.a):
            self._stage(stage, coefficients)
        self._advance()
        w.do("%left = sub i64 %due, 1")
        w.do(f"br i1 {w.let('icmp eq i64 %left, 0')}, label %keep, label %stepped")
        w.label("keep")
        offset = w.let(f"mul i64 %row, {8 * size}")
        self._scatter("%y", [w.at(r, offset) for r in self._rows("%stored", "%stored_lane")], size)
        w.do("%row_next = add i64 %row, 1")
        w.do("br label %stepped")
        w.label("stepped")
        w.do("%wait = phi i64 [%left, %step], [%every, %keep]")
        w.do("%row1 = phi i64 [%row, %step], [%row_next, %keep]")
        w.do("%t = add i64 %s, 1")
        w.do(f"br i1 {w.let('icmp slt i64 %t, %steps')}, label %step, label %finish")

    def _stage(self, stage: int, coefficients: Sequence[Fraction]) -> None:
        """k_stage = f(y + h Σ a k)."""
        w, n, size = self.w, self.n, 2 * self.n
        for j in range(size):
            w.store(self._combined(j, list(enumerate(coefficients))), "%in", j)
        moment = w.let(f"add i64 {w.let('mul i64 %s, %input_step')}, {w.let(f'mul i64 {stage}, %input_stage')}")
        rows = [w.at(row, moment) for row in self._rows("%inputs", "%input_lane")] if self.m else []
        self._gather("%in", rows, self.m, first=size)
        w.do("call void @body(ptr %in, ptr %out, ptr %context)")
        for j in range(n):
            w.store(w.load("%in", n + j), "%k", stage * size + j)
            w.store(w.load("%out", self.slots[j]), "%k", stage * size + n + j)

    def _combined(self, j: int, weights: list[tuple[int, Fraction]]) -> str:
        """Entry j of y + h Σ weight · k."""
        w, size = self.w, 2 * self.n
        total = ""
        for stage, weight in weights:
            if weight:
                k, c = w.load("%k", stage * size + j), w.constant(weight)
                total = fused(w, self.fma, c, k, total) if total else w.let(f"fmul {w.vector} {c}, {k}")
        y = w.load("%y", j)
        return fused(w, self.fma, self.h, total, y) if total else y

    def _advance(self) -> None:
        """y⁺, and the past moved on by one."""
        w, n, size, past = self.w, self.n, 2 * self.n, self.scheme.past
        if self.scheme.velocity_first:
            for j in range(n):
                v = self._combined(n + j, [(0, Fraction(1))])
                w.store(v, "%y", n + j)
                w.store(fused(w, self.fma, self.h, v, w.load("%y", j)), "%y", j)
            return
        for j in range(size):
            new = self._combined(j, list(enumerate(self.scheme.b)))
            for k, weight in enumerate(past):
                scaled = w.let(f"fmul {w.vector} {w.constant(weight)}, {w.load('%past', k * size + j)}")
                new = fused(w, self.fma, self.h, scaled, new)
            w.store(new, "%y", j)
        for k in reversed(range(len(past))):
            for j in range(size):
                old = w.load("%k", j) if k == 0 else w.load("%past", (k - 1) * size + j)
                w.store(old, "%past", k * size + j)

    def _rows(self, base: str, stride: int | str) -> list[str]:
        """The address of each lane's row."""
        w = self.w
        rows = [w.at(base, w.let(f"mul i64 %at, {stride}"))]
        for _ in range(w.lanes - 1):
            rows.append(w.at(rows[-1], stride))
        return rows

    def _gather(self, array: str, rows: list[str], size: int, first: int = 0) -> None:
        w = self.w
        for j in range(size):
            value = "poison"
            for lane, row in enumerate(rows):
                x = w.let(f"load double, ptr {w.at(row, 8 * j)}, align 8")
                value = w.let(f"insertelement {w.vector} {value}, double {x}, i32 {lane}")
            w.store(value, array, first + j)

    def _scatter(self, array: str, rows: list[str], size: int) -> None:
        w = self.w
        for j in range(size):
            value = w.load(array, j)
            for lane, row in enumerate(rows):
                x = w.let(f"extractelement {w.vector} {value}, i32 {lane}")
                w.do(f"store double {x}, ptr {w.at(row, 8 * j)}, align 8")


def object_code(program: Program, scheme: Scheme, target: Target) -> bytes:
    """The loop as relocatable object code, behind a line that says how many joints and inputs it has."""
    n, width = (program.inputs[k].shape[0] for k in (0, 2))
    body = straight_line(program, target)
    loop = _Loop(body, scheme, n, width, target.fma)
    code = jit.object_code(module(target, [body.text(), loop.text()]), target)
    return json.dumps([n, width]).encode() + b"\n" + code


def _loaded(stored: bytes, target: Target) -> tuple[jit.Code, int, int]:
    head, _, code = stored.partition(b"\n")
    n, width = json.loads(head)
    return jit.load(code, ("integrate",), target), n, width


_POINTERS = frozenset({"state", "history", "inputs", "stored", "state_out", "history_out", "context"})


class Integrator:
    """A compiled loop: `run` advances many states by many steps without Python in between.

    `asked` must print everything that shapes the program which `make` gives, beyond armdyn's own source.
    """

    def __init__(
        self, asked: object, make: Callable[[], Program], scheme: Scheme, target: Target | None = None
    ) -> None:
        self.scheme, self.target = scheme, target or host()
        stored = jit.stored(("integrate", asked, scheme), lambda: object_code(make(), scheme, self.target), self.target)
        self._code, self.n, self.inputs = _loaded(stored, self.target)
        self._call = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self._code.address("integrate"))

    def run(
        self, state: np.ndarray, steps: int, h: float, inputs: np.ndarray, history: np.ndarray, every: int = 1
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(stored states, last state, history) after `steps` steps.

        `state` is (count, 2n); `inputs` broadcasts to (count, steps, stages, m); `history` is (count, past, 2n).
        """
        given, stages = len(state), len(self.scheme.b)
        u = np.broadcast_to(np.asarray(inputs, float), (given, steps, stages, self.inputs))
        if given < self.target.lanes:
            filled = np.resize(np.arange(given), self.target.lanes if given else 0)
            u = np.broadcast_to(u[:1], (len(filled), *u.shape[1:])) if u.strides[0] == 0 else u[filled]
            state, history = state[filled], history[filled]
        if self.inputs > 1 and u.strides[3] != 8:
            u = np.ascontiguousarray(u)
        state, history = np.ascontiguousarray(state, float), np.ascontiguousarray(history, float)
        stored = np.empty((len(state), steps // every, 2 * self.n))
        last, later = state.copy(), history.copy()
        if given and steps:
            self._fill(steps, every, h, u, state, history, stored, last, later)
        return stored[:given], last[:given], later[:given]

    def _fill(self, steps: int, every: int, h: float, u: np.ndarray, *arrays: np.ndarray) -> None:
        """Hand everything over: `arrays` are state and history, then what is written, all contiguous."""
        state, history, stored, last, later = arrays
        values: dict[str, Any] = {
            "count": len(state), "steps": steps, "every": every,
            "state": state.ctypes.data, "history": history.ctypes.data,
            "inputs": u.ctypes.data, "input_lane": u.strides[0], "input_step": u.strides[1],
            "input_stage": u.strides[2], "stored": stored.ctypes.data, "stored_lane": stored.strides[0],
            "state_out": last.ctypes.data, "history_out": later.ctypes.data,
            "step_size": int(np.float64(h).view(np.int64)), "context": ctypes.addressof(context()),
        }  # fmt: skip
        words = np.array([values[name] for name in ARGUMENTS], dtype=np.int64)
        self._call(words.ctypes.data)
