"""A fixed-step integrator as LLVM assembly: the whole loop over steps, one lane per initial state.

`Number` and `Truth` are values in every lane, `Slots` an array of vectors on the stack: an operator writes one
instruction. No fast-math flags: every lane computes what it would compute alone.

The program computes accelerations from the inputs q, qd and u (the time-dependent inputs of a controller, sampled at
the stages). The pose of a floating base follows from its velocity by `formulations.coordinates.pose_rate`.
`integrate(arguments)` takes one array of 64-bit words, named in `ARGUMENTS`, which `Integrator` hands over. `step` has
the step of arms with dry friction and of implicit methods.
"""

from __future__ import annotations

import ctypes
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import Any

import numpy as np

from armdyn.codegen import jit
from armdyn.codegen.fastcall import context
from armdyn.codegen.llvm.ir import Writer, framed
from armdyn.codegen.llvm.straight_line import StraightLine
from armdyn.codegen.llvm.trig import fused
from armdyn.codegen.target import Target, host
from armdyn.programs.stepping import POSE, TWIST, Scheme, advanced, combined, normalised, rates
from armdyn.simulation.request import Layout

ARGUMENTS = (
    "count",  # states
    "steps",
    "every",  # store each so many steps
    "state",  # count × size, the numbers of a state
    "history",  # count × past × size: earlier derivatives, newest first
    "inputs",  # u at lane, step and stage, with the byte strides that follow
    "input_lane",
    "input_step",
    "input_stage",
    "stored",  # count × rows × size, out
    "stored_lane",
    "state_out",
    "history_out",
    "step_size",  # h, the bits of a double
    "constants",  # count × as many as the program's port `constants` has: the same at every step
    "context",
)
POINTERS = frozenset({"state", "history", "inputs", "stored", "state_out", "history_out", "constants", "context"})


class Loop:
    """Writes the function `integrate`."""

    def __init__(self, body: StraightLine, scheme: Scheme, layout: Layout, inputs: int, fma: bool) -> None:
        self.body, self.scheme, self.layout, self.m, self.fma = body, scheme, layout, inputs, fma
        self.n, self.size = layout.nv, layout.size
        self.w = Writer(body.target.vector)
        contracted = body.contracted
        self.outputs = {port.name: [body.slots[node.serial] for node in port.nodes] for port in contracted.outputs}
        self.h = ""  # the step, in every lane
        sizes = {port.name: len(port.nodes) for port in contracted.inputs}
        self.numbers, self.constants = sum(sizes.values()), sizes.get("constants", 0)
        # Where each of the program's inputs begins; ports that a program does not have begin nowhere.
        self.first = dict(zip(sizes, accumulate(sizes.values(), initial=0), strict=False))

    def text(self) -> str:
        """LLVM assembly of `integrate`, which calls the program's `body`."""
        w, size, past = self.w, self.size, len(self.scheme.past)
        w.label("entry")
        for name, slots in (("y", size), ("in", self.numbers), ("out", len(self.body.slots))):
            w.stack_array(name, slots)
        w.stack_array("k", size * len(self.scheme.b))
        w.stack_array("past", size * past)
        for k, name in enumerate(ARGUMENTS):
            kind = "ptr" if name in POINTERS else "i64"
            w.do(f"%{name} = load {kind}, ptr {w.at('%arguments', 8 * k)}")
        self.h = w.broadcast(w.let("bitcast i64 %step_size to double"))
        w.do(f"%final = sub i64 %count, {w.lanes}")  # the last block may take in states of the one before
        w.do("br label %block")
        w.label("block")
        w.do("%i = phi i64 [0, %entry], [%next, %done]")
        w.do("%at = call i64 @llvm.umin.i64(i64 %i, i64 %final)")
        self._gather("%y", self._rows("%state", 8 * size), size)
        self._gather("%past", self._rows("%history", 8 * size * past), size * past)
        if self.constants:
            self._gather("%in", self._rows("%constants", 8 * self.constants), self.constants, self.first["constants"])
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
        at = 8 * ARGUMENTS.index("context")
        loads = (
            f"%context_at = getelementptr i8, ptr %arguments, i64 {at}",
            "%context_here = load ptr, ptr %context_at",
        )
        return framed("void @integrate(ptr %arguments)", w, "%context_here", loads)

    def _step(self) -> None:
        """One step; afterwards store it if it is wanted."""
        w, size = self.w, self.size
        w.label("step")
        w.do("%s = phi i64 [0, %block], [%t, %stepped]")
        w.do("%due = phi i64 [%every, %block], [%wait, %stepped]")
        w.do("%row = phi i64 [0, %block], [%row1, %stepped]")
        self._take()
        w.do("br label %taken")
        w.label("taken")
        w.do("%left = sub i64 %due, 1")
        w.do(f"br i1 {w.let('icmp eq i64 %left, 0')}, label %keep, label %stepped")
        w.label("keep")
        offset = w.let(f"mul i64 %row, {8 * size}")
        self._scatter("%y", [w.at(r, offset) for r in self._rows("%stored", "%stored_lane")], size)
        w.do("%row_next = add i64 %row, 1")
        w.do("br label %stepped")
        w.label("stepped")
        w.do("%wait = phi i64 [%left, %taken], [%every, %keep]")
        w.do("%row1 = phi i64 [%row, %taken], [%row_next, %keep]")
        w.do("%t = add i64 %s, 1")
        w.do(f"br i1 {w.let('icmp slt i64 %t, %steps')}, label %step, label %finish")

    def _take(self) -> None:
        """The step itself."""
        for stage, coefficients in enumerate(self.scheme.a):
            self._stage(stage, coefficients)
        self._advance()

    def _stage(self, stage: int, coefficients: Sequence[Fraction]) -> None:
        """k_stage = f(y + h Σ a k)."""
        w, size = self.w, self.size
        for j in range(size):
            w.store(self.combined(j, list(enumerate(coefficients))), "%in", j)
        self._gather("%in", self._input_rows(stage), self.m, self.first["u"])
        w.do("call void @body(ptr %in, ptr %out, ptr %context)")
        at = Slots(w, "in")
        velocities = [at[self.velocity(i)] for i in range(self.n)]
        self._keep_slope(stage, velocities, [self.out("qdd", i) for i in range(self.n)])

    def _keep_slope(self, stage: int, velocities: list[Number], accelerations: list[Number]) -> None:
        """The slope at a stage, where the program was evaluated."""
        k, at = Slots(self.w, "k", stage * self.size), Slots(self.w, "in")
        coordinates = [at[j] for j in range(self.layout.nq)]
        for j, rate in enumerate([*rates(coordinates, velocities), *accelerations]):
            k[j] = rate

    def port(self, name: str) -> Slots:
        """One of the program's inputs."""
        return Slots(self.w, "in", self.first[name])

    def out(self, name: str, i: int) -> Number:
        """An entry of one of the program's results."""
        return Slots(self.w, "out")[self.outputs[name][i]]

    @property
    def base(self) -> int:
        """How many of the velocities are those of a floating base."""
        return TWIST if self.layout.floating else 0

    def position(self, i: int) -> int:
        """Where the position beside velocity i lies in a state (`Layout.beside`)."""
        return i + self.layout.shift

    def velocity(self, i: int) -> int:
        """Where velocity i lies in a state."""
        return self.layout.nq + i

    def normalise(self) -> None:
        """Give the quaternion of a floating base in y length 1."""
        if self.layout.floating:
            y = Slots(self.w, "y")
            for j, part in enumerate(normalised([y[j] for j in range(POSE)], True)):
                y[j] = part

    def fused(self, factor: Any, x: Number, term: Number) -> Number:
        """The sum of factor · x and term, rounded once where the processor can."""
        return x.times_plus(self.fma, factor if isinstance(factor, Number) else constant(self.w, factor), term)

    def advanced(self) -> list[Number]:
        """The state after the step, of y and the slopes."""
        size, nq = self.size, self.layout.nq
        y = [Slots(self.w, "y")[j] for j in range(size)]
        arrays = [("k", k) for k in range(self.scheme.stages)] + [("past", k) for k in range(len(self.scheme.past))]
        rows = [[Slots(self.w, array, k * size)[j] for j in range(size)] for array, k in arrays]
        slopes = [(row[:nq], row[nq:]) for row in rows]
        q, qd = advanced(self.scheme, y[:nq], y[nq:], Number(self.w, self.h), slopes, self.fused)
        return [*q, *qd]

    def _input_rows(self, stage: int) -> list[str]:
        """Where the inputs of this step and stage lie, lane by lane."""
        w = self.w
        moment = w.let(f"add i64 {w.let('mul i64 %s, %input_step')}, {w.let(f'mul i64 {stage}, %input_stage')}")
        return [w.at(row, moment) for row in self._rows("%inputs", "%input_lane")]

    def combined(self, j: int, weights: list[tuple[int, Fraction]]) -> str:
        """Entry j of y + h Σ weight · k."""
        terms = [(weight, Slots(self.w, "k")[stage * self.size + j]) for stage, weight in weights]
        return str(combined(Slots(self.w, "y")[j], Number(self.w, self.h), terms, self.fused).name)

    def _advance(self) -> None:
        """y⁺, and the past moved on by one."""
        w, size = self.w, self.size
        for j, new in enumerate(self.advanced()):
            w.store(new.name, "%y", j)
        self.normalise()
        for k in reversed(range(len(self.scheme.past))):
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


@dataclass(frozen=True)
class Number:
    """One double per lane."""

    w: Writer
    name: str

    def _binary(self, operation: str, other: Number | float | Fraction) -> Number:
        right = other.name if isinstance(other, Number) else self.w.constant(other)
        return Number(self.w, self.w.let(f"{operation} {self.w.vector} {self.name}, {right}"))

    def _compare(self, how: str, other: Number | float) -> Truth:
        return Truth(self.w, self._binary(f"fcmp {how}", other).name)

    def __add__(self, other: Number | float) -> Number:
        return self._binary("fadd", other)

    def __sub__(self, other: Number | float) -> Number:
        return self._binary("fsub", other)

    def __rsub__(self, other: float) -> Number:
        return constant(self.w, other) - self

    def __mul__(self, other: Number | float | Fraction) -> Number:
        return self._binary("fmul", other)

    __rmul__ = __mul__

    def __truediv__(self, other: Number | float) -> Number:
        return self._binary("fdiv", other)

    def __neg__(self) -> Number:
        return Number(self.w, self.w.let(f"fneg {self.w.vector} {self.name}"))

    def __lt__(self, other: Number | float) -> Truth:
        return self._compare("olt", other)

    def __le__(self, other: Number | float) -> Truth:
        return self._compare("ole", other)

    def __gt__(self, other: Number | float) -> Truth:
        return self._compare("ogt", other)

    def __ge__(self, other: Number | float) -> Truth:
        return self._compare("oge", other)

    def sqrt(self) -> Number:
        """The square root."""
        kind = f"v{self.w.lanes}f64"
        return Number(self.w, self.w.let(f"call {self.w.vector} @llvm.sqrt.{kind}({self.w.vector} {self.name})"))

    def equals(self, other: Number | float) -> Truth:
        """Where both are the same number."""
        return self._compare("oeq", other)

    def least(self, other: Number) -> Number:
        """The lesser of both; this one where the other is not a number."""
        return (other < self).choose(other, self)

    def times_plus(self, fma: bool, factor: Number, term: Number) -> Number:
        """Self · factor + term, rounded once where the processor can."""
        return Number(self.w, fused(self.w, fma, self.name, factor.name, term.name))


@dataclass(frozen=True)
class Truth:
    """One bit per lane."""

    w: Writer
    name: str

    @property
    def _kind(self) -> str:
        return f"<{self.w.lanes} x i1>"

    def _binary(self, operation: str, other: str) -> Truth:
        return Truth(self.w, self.w.let(f"{operation} {self._kind} {self.name}, {other}"))

    def __and__(self, other: Truth) -> Truth:
        return self._binary("and", other.name)

    def __or__(self, other: Truth) -> Truth:
        return self._binary("or", other.name)

    def __invert__(self) -> Truth:
        return self._binary("xor", "<" + ", ".join(["i1 true"] * self.w.lanes) + ">")

    def or_bit(self, bit: str) -> Truth:
        """True in every lane where `bit` is, which is the same for all."""
        everywhere = "<" + ", ".join(["i1 true"] * self.w.lanes) + ">"
        return Truth(self.w, self.w.let(f"select i1 {bit}, {self._kind} {everywhere}, {self._kind} {self.name}"))

    def and_bit(self, bit: str) -> Truth:
        """False in every lane where `bit` is, which is the same for all."""
        return Truth(self.w, self.w.let(f"select i1 {bit}, {self._kind} {self.name}, {self._kind} zeroinitializer"))

    def choose(self, yes: Number | float, no: Number | float) -> Number:
        """`yes` where true, `no` elsewhere."""
        a, b = (x.name if isinstance(x, Number) else self.w.constant(x) for x in (yes, no))
        return Number(self.w, self.w.let(f"select {self._kind} {self.name}, {self.w.vector} {a}, {self.w.vector} {b}"))

    def any(self) -> str:
        """Whether it is true in a lane: one bit, to branch on."""
        bits = self.w.let(f"bitcast {self._kind} {self.name} to i{self.w.lanes}")
        return self.w.let(f"icmp ne i{self.w.lanes} {bits}, 0")


@dataclass(frozen=True)
class Slots:
    """An array of vectors on the stack, `first` slots into the scratch array `array`."""

    w: Writer
    array: str
    first: int = 0

    def __getitem__(self, slot: int) -> Number:
        return Number(self.w, self.w.load(f"%{self.array}", self.first + slot))

    def __setitem__(self, slot: int, value: Number | float) -> None:
        name = value.name if isinstance(value, Number) else self.w.constant(value)
        self.w.store(name, f"%{self.array}", self.first + slot)

    def truth(self, slot: int) -> Truth:
        """A truth that was stored as 1 or 0."""
        return self[slot] > 0.0


@dataclass(frozen=True)
class NamedSlots:
    """An array of vectors on the stack whose slots have names."""

    w: Writer
    array: str
    names: tuple[str, ...]

    def __getitem__(self, name: str) -> Number:
        return Slots(self.w, self.array)[self.names.index(name)]

    def __setitem__(self, name: str, value: Number | float) -> None:
        Slots(self.w, self.array)[self.names.index(name)] = value


def constant(w: Writer, value: float | Fraction) -> Number:
    """A number in every lane."""
    return Number(w, w.constant(value))


def lagrange(x: Number, k: int, nodes: dict[int, Fraction]) -> Number:
    """The k-th Lagrange polynomial of the nodes at x."""
    value = constant(x.w, 1.0)
    for other, c in nodes.items():
        if other != k:
            value = value * ((x - float(c)) * float(1 / (nodes[k] - c)))
    return value


def branch(w: Writer, condition: str, yes: str, no: str) -> None:
    """Go to one of two blocks."""
    w.do(f"br i1 {condition}, label %{yes}, label %{no}")


class Counter:
    """A 64-bit counter on the stack."""

    def __init__(self, w: Writer, name: str) -> None:
        self.w, self.name = w, f"%{name}"
        w.lines.insert(1, f"  {self.name} = alloca i64")

    def reset(self) -> None:
        """Back to 0."""
        self.w.do(f"store i64 0, ptr {self.name}")

    def next_is_below(self, limit: int) -> str:
        """Count on by one; whether the count is still below `limit`."""
        count = self.w.let(f"add i64 {self.w.let(f'load i64, ptr {self.name}')}, 1")
        self.w.do(f"store i64 {count}, ptr {self.name}")
        return self.w.let(f"icmp slt i64 {count}, {limit}")

    def is_below(self, limit: int) -> str:
        """Whether the count is below `limit`."""
        return self.w.let(f"icmp slt i64 {self.w.let(f'load i64, ptr {self.name}')}, {limit}")


# --- the compiled loop, as an object that Python hands arrays to ---


class Integrator:
    """A compiled loop: `run` advances many states by many steps without Python in between.

    `make` returns its object code for a target. The representation of `identity` must contain everything besides
    armdyn's own source and the scheme that determines it. If there are fewer states than SIMD lanes, they are repeated
    to fill a vector: a scalar loop was measured to be only 2 to 8 % faster for a single state, which is not worth a
    second compilation.
    """

    def __init__(
        self,
        identity: object,
        make: Callable[[Target], bytes],
        scheme: Scheme,
        target: Target | None = None,
    ) -> None:
        self.scheme, self.target = scheme, target or host()
        name = jit.key(("integrate", identity, scheme), self.target)
        stored = jit.stored(name, lambda: make(self.target))
        head, _, code = stored.partition(b"\n")
        nq, nv, self.inputs = json.loads(head)
        self.layout = Layout(nq, nv)
        self._code = jit.load(code, ("integrate",), self.target)  # owns the machine code
        self.call = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self._code.address("integrate"))

    def run(
        self,
        state: np.ndarray,
        steps: int,
        h: float,
        inputs: np.ndarray,
        history: np.ndarray,
        every: int = 1,
        constants: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(stored states, last state, history) after `steps` steps.

        `state` is (count, size); `inputs` broadcasts to (count, steps, stages, m); `history` is (count, past, size);
        `constants` is (count, k) for a program whose plant varies.
        """
        constants = np.zeros((len(state), 0)) if constants is None else constants
        given, stages = len(state), len(self.scheme.b)
        u = np.broadcast_to(np.asarray(inputs, float), (given, steps, stages, self.inputs))
        if given < self.target.lanes:
            filled = np.resize(np.arange(given), self.target.lanes if given else 0)
            u = np.broadcast_to(u[:1], (len(filled), *u.shape[1:])) if u.strides[0] == 0 else u[filled]
            state, history, constants = state[filled], history[filled], constants[filled]
        if self.inputs > 1 and u.strides[3] != 8:
            u = np.ascontiguousarray(u)
        state, history, constants = (np.ascontiguousarray(x, float) for x in (state, history, constants))
        stored = np.empty((len(state), steps // every, self.layout.size))
        last, later = state.copy(), history.copy()
        if given and steps:
            self._fill(steps, every, h, u, constants, state, history, stored, last, later)
        return stored[:given], last[:given], later[:given]

    def _fill(self, steps: int, every: int, h: float, u: np.ndarray, *arrays: np.ndarray) -> None:
        """Hand everything over: `arrays` are constants, state and history, then what is written, all contiguous."""
        words = self.words(steps, every, h, u, *arrays)
        self.call(words.ctypes.data)

    def words(self, steps: int, every: int, h: float, u: np.ndarray, *arrays: np.ndarray) -> np.ndarray:
        """The arguments of the compiled loop, in the order of `ARGUMENTS`; they hold no references to the arrays."""
        constants, state, history, stored, last, later = arrays
        values: dict[str, Any] = {
            "count": len(state), "steps": steps, "every": every,
            "state": state.ctypes.data, "history": history.ctypes.data,
            "inputs": u.ctypes.data, "input_lane": u.strides[0], "input_step": u.strides[1],
            "input_stage": u.strides[2], "stored": stored.ctypes.data, "stored_lane": stored.strides[0],
            "state_out": last.ctypes.data, "history_out": later.ctypes.data,
            "constants": constants.ctypes.data,
            "step_size": int(np.float64(h).view(np.int64)), "context": ctypes.addressof(context()),
        }  # fmt: skip
        return np.array([values[name] for name in ARGUMENTS], dtype=np.int64)


class InPlace:
    """A loop with its arrays in place: one call moves all states on, and makes no array.

    There are two arrays of states, and a call reads one and writes the other, so the states before it are still there.
    Rows that fill the last SIMD vector are copies of the states and do the same.
    """

    def __init__(self, loop: Integrator, states: np.ndarray, h: float, common_inputs: bool) -> None:
        lanes, count = loop.target.lanes, len(states)
        self.loop, self.h, self.count = loop, h, count
        rows = max(1, -(-count // lanes)) * lanes if count else 0
        self.rows = np.resize(np.arange(count), rows) if count else np.zeros(0, dtype=int)
        self.states = (np.array(states[self.rows], float), np.array(states[self.rows], float))
        self.inputs = np.zeros((1 if common_inputs else rows, loop.inputs))
        self._nothing = np.zeros((rows, 0, loop.layout.size)), np.zeros((rows, 0))
        self._stored = np.zeros((rows, 1, loop.layout.size))
        self._words = self._arguments(1, self._stored)  # kept, because the loop gets their addresses
        self._addresses = tuple(words.ctypes.data for words in self._words)
        self.current = 0

    def _arguments(self, steps: int, stored: np.ndarray) -> tuple[np.ndarray, ...]:
        """The loop's arguments from either array of states to the other."""
        u = np.broadcast_to(self.inputs[:, None, None], (len(self.rows), steps, 1, self.loop.inputs))
        history, constants = self._nothing
        ways = [(constants, self.states[a], history, stored, self.states[1 - a], history) for a in (0, 1)]
        return tuple(self.loop.words(steps, 1, self.h, u, *arrays) for arrays in ways)

    def advance(self) -> np.ndarray:
        """One step under `inputs`; the new states, in place."""
        if self.count:
            self.loop.call(self._addresses[self.current])
            self.current = 1 - self.current
        return self.states[self.current]

    def advance_by(self, steps: int) -> np.ndarray:
        """So many steps under the same inputs; all states on the way, (count, steps, size)."""
        stored = np.zeros((len(self.rows), steps, self.loop.layout.size))
        if self.count:
            words = self._arguments(steps, stored)[self.current]
            self.loop.call(words.ctypes.data)
            self.current = 1 - self.current
        return stored[: self.count]

    @property
    def state(self) -> np.ndarray:
        """The states (count, size), in place."""
        return self.states[self.current][: self.count]

    @property
    def before(self) -> np.ndarray:
        """The states before the last call, in place."""
        return self.states[1 - self.current][: self.count]

    def put(self, lanes: Any, states: np.ndarray) -> None:
        """Give some lanes other states."""
        self.state[lanes] = states
        self.states[self.current][:] = self.state[self.rows]
