"""The sweeps of `sweep` as machine code: one call per path, repairs included, on any number of threads.

Eight candidate speeds are looked at at once, one per SIMD lane. `evaluate` gives the interval of u at a point for eight
z. Friction that is constant + viscous · ṡ at every place is part of the rows; any other comes from the arm's own kernel
`joint_forces`, called for the eight speeds. A search evaluates four
candidates spread over its bracket and four around the secant's root, so a bracket shrinks at least fivefold per round
and about ten-thousandfold where the limits are smooth. Then eight places inside every step are checked; where a limit
does not hold there it is drawn in, and the sweeps run again.

Motor curves given as Python functions, load-dependent friction and a limit of power take `sweep`, which is the readable
form of the same algorithm.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from armdyn.codegen import jit
from armdyn.codegen.llvm.ir import VectorType, Writer, double, function
from armdyn.codegen.llvm.module import module
from armdyn.codegen.target import Target, host
from armdyn.simulation.loop import Number, Slots, Truth, branch, constant

LANES = 8  # candidates looked at at once, and places inside a step
FINE = LANES + 1  # parts of a step
MORE_ROUNDS = 24  # of a search, at most
PEAK_ROUNDS = 5  # of a search for the largest value, at most
CLOSE = 1e-13  # of z: a search ends
FLAT = 1e-9  # of a row's largest coefficient: below it, the row says nothing on u
STANDSTILL = 1e-6  # of the largest speed: friction at standstill is that of the slowest forward motion
ROUNDING = 1e-10  # of z: what may be missing by rounding
SLACK = 1e-7  # of z: the backward sweep knows its speeds to that
ROW, NORM, HEAD = 6, 7, 1  # numbers in a record: per row, per norm, before them

WORDS = (
    "points", "fine", "n", "arms", "torques", "rows", "norms",
    "a", "b", "g", "q", "dq", "ddq",  # at the points and between them; (points, n)
    "arm_stride", "drag_stride", "torque", "velocity", "acceleration",
    "A", "B", "C", "norm_stride", "radius",
    "tool_rate", "tool_speed",
    "friction", "context", "strides",  # a C function per arm and its context, the strides of its arrays
    "constant", "viscous", "affine",  # friction as constant + viscous ṡ (points, n), and whether it is that
    "step", "start", "end", "fastest", "tight_low", "tight_high", "tight_norms",
    "size", "record", "z", "u", "largest", "lowest",  # scratch
    "z_out", "u_out", "largest_out", "times", "worst", "stuck",
    "repairs", "slowed_from",
)  # fmt: skip


@dataclass(frozen=True)
class Rules:
    """What the checks between the points go by."""

    overrun: float
    drawn_in: float
    most_drawn_in: float
    most_slowed: float


class _Function:
    """Writes one function of a path's words."""

    def __init__(self, head: str, lanes: int = LANES) -> None:
        self.head, self.w = head, Writer(VectorType(lanes))
        self.w.label("entry")
        self._names = 0

    def text(self) -> str:
        """LLVM assembly."""
        self.w.do("ret void")
        return function(self.head, self.w.lines)

    def fresh(self, name: str) -> str:
        """A name that is used once."""
        self._names += 1
        return f"{name}.{self._names}"

    def word(self, name: str) -> str:
        """A word as an integer."""
        return self.w.let(f"load i64, ptr {self.w.at('%c', 8 * WORDS.index(name))}")

    def pointer(self, name: str) -> str:
        """A word as a pointer."""
        return self.w.let(f"load ptr, ptr {self.w.at('%c', 8 * WORDS.index(name))}")

    def address(self, pointer: str, index: str | int, size: int = 8) -> str:
        """Where an array's entry is."""
        if isinstance(index, int):
            return self.w.at(pointer, index * size)
        return self.w.at(pointer, self.w.let(f"mul i64 {index}, {size}"))

    def add(self, a: str | int, b: str | int) -> str:
        """An integer sum."""
        return self.w.let(f"add i64 {a}, {b}")

    def mul(self, a: str | int, b: str | int) -> str:
        """An integer product."""
        return self.w.let(f"mul i64 {a}, {b}")

    def get(self, pointer: str, index: str | int = 0) -> Number:
        """An entry of an array of doubles, in every lane."""
        value = self.w.let(f"load double, ptr {self.address(pointer, index)}, align 8")
        return Number(self.w, self.w.broadcast(value))

    def put(self, value: Number, pointer: str, index: str | int = 0) -> None:
        """Store the first lane into an array of doubles."""
        first = self.w.let(f"extractelement {self.w.vector} {value.name}, i32 0")
        self.w.do(f"store double {first}, ptr {self.address(pointer, index)}, align 8")

    def put_all(self, value: Number, pointer: str) -> None:
        """Store all lanes."""
        self.w.do(f"store {self.w.vector} {value.name}, ptr {pointer}, align 8")

    def get_all(self, pointer: str) -> Number:
        """Load all lanes."""
        return Number(self.w, self.w.let(f"load {self.w.vector}, ptr {pointer}, align 8"))

    def given(self, *values: float) -> Number:
        """A number for every lane."""
        return Number(self.w, "<" + ", ".join(f"double {double(v)}" for v in values) + ">")

    def number(self, value: float) -> Number:
        """The same number in every lane."""
        return constant(self.w, value)

    def variable(self, name: str) -> Slots:
        """A vector on the stack."""
        name = self.fresh(name)
        self.w.stack_array(name, 1)
        return Slots(self.w, name)

    @contextmanager
    def counted(self, count: str | int, *, down: bool = False) -> Iterator[str]:
        """A loop over 0 … count - 1, or backwards."""
        w, name = self.w, self.fresh("loop")
        w.lines.insert(1, f"  %i.{name} = alloca i64")
        w.do(f"store i64 {self.add(count, -1) if down else 0}, ptr %i.{name}")
        w.do(f"br label %head.{name}")
        w.label(f"head.{name}")
        i = w.let(f"load i64, ptr %i.{name}")
        going = w.let(f"icmp sge i64 {i}, 0" if down else f"icmp slt i64 {i}, {count}")
        branch(w, going, f"body.{name}", f"out.{name}")
        w.label(f"body.{name}")
        yield i
        w.do(f"store i64 {self.add(i, -1 if down else 1)}, ptr %i.{name}")
        w.do(f"br label %head.{name}")
        w.label(f"out.{name}")

    @contextmanager
    def when(self, condition: str) -> Iterator[None]:
        """A block that runs if the bit is set."""
        name = self.fresh("when")
        branch(self.w, condition, f"yes.{name}", f"no.{name}")
        self.w.label(f"yes.{name}")
        yield
        self.w.do(f"br label %no.{name}")
        self.w.label(f"no.{name}")

    def leave(self, condition: str, label: str) -> None:
        """Go to `label` if the bit is set."""
        name = self.fresh("stay")
        branch(self.w, condition, label, name)
        self.w.label(name)

    def across(self, value: Number, pick: Callable[[Number, Number], Number]) -> Number:
        """All lanes reduced to one number, in every lane."""
        w, distance = self.w, self.w.lanes // 2
        while distance:
            order = ", ".join(f"i32 {i ^ distance}" for i in range(w.lanes))
            name = w.let(f"shufflevector {w.vector} {value.name}, {w.vector} poison, <{w.lanes} x i32> <{order}>")
            value, distance = pick(value, Number(w, name)), distance // 2
        return value

    def largest(self, value: Number) -> Number:
        """The largest lane."""
        return self.across(value, most)

    def smallest(self, value: Number) -> Number:
        """The smallest lane."""
        return self.across(value, least)

    def lane(self, value: Number, index: int) -> Number:
        """One lane in all."""
        w = self.w
        order = ", ".join([f"i32 {index}"] * w.lanes)
        name = w.let(f"shufflevector {w.vector} {value.name}, {w.vector} poison, <{w.lanes} x i32> <{order}>")
        return Number(w, name)


def most(a: Number, b: Number) -> Number:
    """The greater of both; a where b is not a number."""
    return (b > a).choose(b, a)


def least(a: Number, b: Number) -> Number:
    """The lesser of both; a where b is not a number."""
    return (b < a).choose(b, a)


def absolute(x: Number) -> Number:
    """|x|."""
    return most(x, -x)


def _sizes() -> str:
    """The largest |α| of every row along the path."""
    f = _Function("internal void @sizes(ptr %c)", 1)
    size, n = f.pointer("size"), f.word("n")
    with f.counted(f.word("rows")) as r:
        f.put(f.number(np.finfo(float).tiny), size, r)
    with f.counted(f.word("points")) as k:
        row = f.mul(f.mul(k, f.word("fine")), n)
        for arm_rows in (True, False):
            _each_row(f, row, arm_rows, lambda r, alpha, *_: f.put(most(f.get(size, r), absolute(alpha)), size, r))
    return f.text()


Use = Callable[[str, Number, Number, Number | None, Number | None, Number, Number], None]


def _each_row(f: _Function, row: str, of_torque: bool, use: Use) -> None:
    """`use(r, α, β, weight, viscous, low, high)` for the rows at a point; its numbers begin at `row` in the arrays."""
    n, w = f.word("n"), f.w
    if of_torque:
        torque = f.pointer("torque")
        with f.counted(f.word("arms")) as arm:
            offset = f.mul(arm, f.word("arm_stride"))
            a, b, g = (w.at(f.pointer(name), offset) for name in "abg")
            offset = f.mul(arm, f.word("drag_stride"))
            constant_part, viscous = (w.at(f.pointer(name), offset) for name in ("constant", "viscous"))
            with f.counted(n) as j:
                at = f.add(row, j)
                weight = f.get(g, at)
                twice = f.mul(j, 2)
                use(
                    f.add(f.mul(arm, n), j), f.get(a, at) - weight, f.get(b, at) - weight,
                    weight + f.get(constant_part, at), f.get(viscous, at), f.get(torque, twice),
                    f.get(torque, f.add(twice, 1)),
                )  # fmt: skip
        return
    some = f.w.let(f"icmp sgt i64 {f.word('rows')}, {f.word('torques')}")
    with f.when(some), f.counted(n) as j:
        at, limit = f.add(row, j), f.get(f.pointer("acceleration"), j)
        use(
            f.add(f.word("torques"), j),
            f.get(f.pointer("dq"), at),
            f.get(f.pointer("ddq"), at),
            None,
            None,
            -limit,
            limit,
        )


def _build() -> str:
    """The record of point k: its smallest speed; per row 1/α, β and the ends for α ≥ 0, and a sign; per norm sums."""
    f = _Function("internal void @build(ptr %c, i64 %k, ptr %record)", 1)
    size, row = f.pointer("size"), f.mul(f.mul("%k", f.word("fine")), f.word("n"))
    fastest = f.get(f.pointer("fastest"), "%k")
    f.put((fastest < np.inf).choose(fastest, 1.0).sqrt() * STANDSTILL, "%record")
    first = f.mul("%k", f.word("rows"))
    low_in, high_in = f.pointer("tight_low"), f.pointer("tight_high")

    def write(
        r: str, alpha: Number, beta: Number, weight: Number | None, viscous: Number | None, low: Number, high: Number
    ) -> None:
        low = low + f.get(low_in, f.add(first, r)) if weight is None else low - weight + f.get(low_in, f.add(first, r))
        high = (high if weight is None else high - weight) - f.get(high_in, f.add(first, r))
        rate = f.number(0.0) if viscous is None else viscous
        flipped, flat = alpha < 0.0, absolute(alpha) <= f.get(size, r) * FLAT
        at = f.address("%record", f.add(f.mul(r, ROW), HEAD))
        inverse = f.number(1.0) / absolute(alpha)
        values = (
            flat.choose(np.inf, inverse), flipped.choose(-beta, beta), flipped.choose(-high, low),
            flipped.choose(-low, high), flipped.choose(-1.0, 1.0), flipped.choose(-rate, rate),
        )  # fmt: skip
        for k, value in enumerate(values):
            f.put(value, at, k)

    for arm_rows in (True, False):
        _each_row(f, row, arm_rows, write)
    with f.counted(f.word("norms")) as i:
        offset = f.mul(i, f.word("norm_stride"))
        place = f.mul(f.mul("%k", f.word("fine")), 3)
        vectors = [f.w.at(f.pointer(name), offset) for name in "ABC"]
        A, B, C = ([f.get(v, f.add(place, x)) for x in range(3)] for v in vectors)
        radius = f.get(f.pointer("radius"), i) - f.get(f.pointer("tight_norms"), f.add(f.mul("%k", f.word("norms")), i))
        sums = (_dot(A, A), _dot(A, B), _dot(A, C), _dot(B, B), _dot(B, C) * 2.0, _dot(C, C), radius * radius)
        at = f.address("%record", f.add(f.add(f.mul(f.word("rows"), ROW), HEAD), f.mul(i, NORM)))
        for k, value in enumerate(sums):
            f.put(value, at, k)
    return f.text()


def _dot(x: Sequence[Number], y: Sequence[Number]) -> Number:
    return x[0] * y[0] + x[1] * y[1] + x[2] * y[2]


def _call_friction(f: _Function, q: str, qd: str, out: str) -> None:
    """The joint forces of all arms at eight speeds: qd and out are (n, 8), q is (n,) or, with a stride, (n, 8)."""
    w = f.w
    w.lines.insert(1, "  %arrays = alloca [4 x ptr]")
    w.lines.insert(1, "  %eight = alloca i64")
    w.do("store i64 8, ptr %eight")
    block = f.mul(f.word("n"), 8 * LANES)
    w.do(f"store ptr {q}, ptr %arrays")
    w.do(f"store ptr {qd}, ptr {w.at('%arrays', 8)}")
    strides = f.pointer("strides")
    w.do(f"store ptr {w.at(strides, 64)}, ptr {w.at('%arrays', 16)}")  # zeros stand behind the strides
    with f.counted(f.word("arms")) as arm:
        w.do(f"store ptr {w.at(out, f.mul(arm, block))}, ptr {w.at('%arrays', 24)}")
        call = w.let(f"load ptr, ptr {f.address(f.pointer('friction'), arm)}")
        context = w.let(f"load ptr, ptr {f.address(f.pointer('context'), arm)}")
        w.do(f"call void {call}(ptr %arrays, ptr %eight, ptr {strides}, ptr {context})")


def _evaluate() -> str:
    """The interval of u at point k for the eight z at `%z`, to `%out`: lower, upper."""
    f = _Function("internal void @evaluate(ptr %c, i64 %k, ptr %record, ptr %z, ptr %out) noinline")
    w, lower, upper = f.w, f.variable("lower"), f.variable("upper")
    z = f.get_all("%z")
    z = most(z, f.number(0.0))
    lower[0], upper[0] = -np.inf, np.inf
    called = w.let(f"icmp ne i64 {f.word('friction')}, 0")
    always = w.let(f"icmp eq i64 {f.word('affine')}, 0")
    friction = w.let(f"and i1 {called}, {always}")
    w.do(f"%rubs = select i1 {friction}, i64 {f.word('torques')}, i64 0")
    w.do(f"%bytes = mul i64 %rubs, {8 * LANES}")
    n = f.word("n")
    w.do(f"%qdbytes = mul i64 {n}, {8 * LANES}")
    w.do("%force = alloca i8, i64 %bytes, align 64")
    w.do("%qd = alloca i8, i64 %qdbytes, align 64")
    x = most(z.sqrt(), f.get("%record"))
    with f.when(friction):
        row = f.mul(f.mul("%k", f.word("fine")), n)
        dq = f.address(f.pointer("dq"), row)
        with f.counted(n) as j:
            f.put_all(f.get(dq, j) * x, f.address("%qd", j, 8 * LANES))
        _call_friction(f, f.address(f.pointer("q"), row), "%qd", "%force")
    rows = f.w.let(f"getelementptr i8, ptr %record, i64 {8 * HEAD}")
    _rows(f, rows, (z, x), ("0", "%rubs"), (lower, upper), True)
    _rows(f, rows, (z, x), ("%rubs", f.word("rows")), (lower, upper), False)
    norms = f.address(rows, f.mul(f.word("rows"), ROW))
    with f.counted(f.word("norms")) as i:
        at = f.address(norms, f.mul(i, NORM))
        aa, ab, ac, bb, bc, cc, square = (f.get(at, k) for k in range(NORM))
        middle, rest = ab * z + ac, (bb * z + bc) * z + cc - square
        root = middle * middle - aa * rest
        half, free, fits = root.sqrt(), aa <= 1e-30, rest <= 0.0
        low = free.choose(fits.choose(-np.inf, np.inf), (root >= 0.0).choose((-middle - half) / aa, np.inf))
        high = free.choose(fits.choose(np.inf, -np.inf), (root >= 0.0).choose((half - middle) / aa, -np.inf))
        lower[0], upper[0] = most(lower[0], low), least(upper[0], high)
    f.put_all(lower[0], "%out")
    f.put_all(upper[0], w.at("%out", 8 * LANES))
    return f.text()


def _rows(
    f: _Function, rows: str, zx: tuple[Number, Number], span: tuple[str, str], ends: tuple[Slots, Slots], rubs: bool
) -> None:
    """Narrow the interval by the rows from span[0] to span[1]; in registers, as this is the innermost loop."""
    w, name = f.w, f.fresh("rows")
    before, lower, upper = f.fresh("before"), ends[0][0], ends[1][0]
    w.do(f"br label %{before}")
    w.label(before)
    w.do(f"br label %{name}")
    w.label(name)
    body = f.fresh("body")
    w.do(f"%r.{name} = phi i64 [{span[0]}, %{before}], [%next.{name}, %{body}]")
    w.do(f"%lower.{name} = phi {w.vector} [{lower.name}, %{before}], [%low.{name}, %{body}]")
    w.do(f"%upper.{name} = phi {w.vector} [{upper.name}, %{before}], [%high.{name}, %{body}]")
    out = f.fresh("done")
    branch(w, w.let(f"icmp slt i64 %r.{name}, {span[1]}"), body, out)
    w.label(body)
    at = f.address(rows, f"%r.{name}", 8 * ROW)
    inverse, shift = f.get(at), f.get(at, 1) * zx[0] + f.get(at, 5) * zx[1]
    if rubs:
        shift = shift + f.get(at, 4) * f.get_all(f.address("%force", f"%r.{name}", 8 * LANES))
    low = most(Number(w, f"%lower.{name}"), (f.get(at, 2) - shift) * inverse)
    high = least(Number(w, f"%upper.{name}"), (f.get(at, 3) - shift) * inverse)
    w.do(f"%low.{name} = select i1 true, {w.vector} {low.name}, {w.vector} {low.name}")
    w.do(f"%high.{name} = select i1 true, {w.vector} {high.name}, {w.vector} {high.name}")
    w.do(f"%next.{name} = add i64 %r.{name}, 1")
    w.do(f"br label %{name}")
    w.label(out)
    ends[0][0], ends[1][0] = Number(w, f"%lower.{name}"), Number(w, f"%upper.{name}")


Test = Callable[[Number], Number]  # z -> by how much it is possible; negative or not a number if it is not


class _Sweeps(_Function):
    """A function that searches speeds."""

    def interval(self, k: str, record: str, z: Number) -> tuple[Number, Number]:
        """The interval of u at point k."""
        at, out = self.variable("at"), self.fresh("out")
        self.w.stack_array(out, 2)
        at[0] = z
        self.w.do(f"call void @evaluate(ptr %c, i64 {k}, ptr {record}, ptr %{at.array}, ptr %{out})")
        both = Slots(self.w, out)
        return both[0], both[1]

    def refined(self, test: Test, good: Number, bad: Number, values: tuple[Number, Number]) -> Number:
        """The last possible value between a possible one and one that is not."""
        f, w = self, self.w
        g, b, sg, sb = (f.variable(name) for name in ("good", "bad", "sgood", "sbad"))
        g[0], b[0], sg[0], sb[0] = good, bad, *values
        done = f.fresh("found")
        spread = f.given(0.2, 0.4, 0.6, 0.8, -(2.0**-6), 2.0**-6, -(2.0**-14), 2.0**-14)
        near = Truth(w, "<" + ", ".join(["i1 false"] * 4 + ["i1 true"] * 4) + ">")
        with f.counted(MORE_ROUNDS):
            width = b[0] - g[0]
            close = absolute(width) <= most(absolute(g[0]), absolute(b[0])) * CLOSE
            f.leave(close.any(), done)
            root = sg[0] / (sg[0] - sb[0])
            root = ((root >= 0.0) & (root <= 1.0)).choose(root, 0.5)
            t = near.choose(root + spread, spread)
            t = least(most(t, f.number(0.0)), f.number(1.0))
            s = test(g[0] + t * width)
            fine = s >= 0.0
            first = f.smallest(fine.choose(2.0, t))
            last = f.largest((fine & (t < first)).choose(t, -1.0))
            better, worse = last >= 0.0, first <= 1.0
            at_good = f.largest((fine & t.equals(last)).choose(s, -np.inf))
            at_bad = f.smallest((~fine & t.equals(first)).choose(s, np.inf))
            start = g[0]
            b[0], sb[0] = worse.choose(start + first * width, b[0]), worse.choose(at_bad, sb[0])
            g[0], sg[0] = better.choose(start + last * width, start), better.choose(at_good, sg[0])
        w.do(f"br label %{done}")
        w.label(done)
        return g[0]

    def peak(self, test: Test, z: Number, values: Number) -> Number:
        """The largest value: of the candidates z, which are in order, and between the best one's two neighbours."""
        f, w = self, self.w
        index, found = f.given(*range(LANES)), f.fresh("peak")
        at, value, top = f.variable("at"), f.variable("value"), f.variable("top")
        at[0], value[0], top[0] = z, values, f.largest(values)
        with f.counted(PEAK_ROUNDS):
            best = f.smallest((value[0] >= f.largest(value[0])).choose(index, np.inf))
            inner = (best > 0.0) & (best < LANES - 1.0)
            f.leave((~inner).any(), found)
            before = f.largest(index.equals(best - 1.0).choose(at[0], -np.inf))
            after = f.largest(index.equals(best + 1.0).choose(at[0], -np.inf))
            at[0] = before + index * (1 / (LANES - 1)) * (after - before)
            value[0] = test(at[0])
            top[0] = most(top[0], f.largest(value[0]))
        w.do(f"br label %{found}")
        w.label(found)
        return top[0]

    def refined_from(self, test: Test, z: Number, s: Number, best: Number, other: Number) -> Number:
        """`refined` from the candidates z: those of the indices `best` and `other`."""
        index = self.given(*range(LANES))

        def pick(values: Number, which: Number) -> Number:
            return self.largest(index.equals(which).choose(values, -np.inf))

        return self.refined(test, pick(z, best), pick(z, other), (pick(s, best), pick(s, other)))


def _controllable() -> str:
    """The least and the largest z at point k from which a step leads between those at k + 1."""
    f = _Sweeps("internal void @controllable(ptr %c, i64 %k, ptr %here, ptr %next) noinline")
    w, step = f.w, f.get(f.pointer("step"))
    after_k = f.add("%k", 1)
    low_next, high_next = f.get(f.pointer("lowest"), after_k), f.get(f.pointer("largest"), after_k)
    index, infinite = f.given(*range(LANES)), f.number(np.inf)

    def ends(after: Number) -> tuple[Number, Number]:
        """What z + Δ u may be at most, and minus what it must be at least, to end a step at `after`."""
        L, U = f.interval(after_k, "%next", after)
        U = least(U, after / (step * 2.0))
        empty = U + after * (2 * ROUNDING) / step < L  # more than the room that `possible` asks for
        return empty.choose(-np.inf, after - step * L), empty.choose(-np.inf, step * U - after)

    after = low_next + index * (1 / (LANES - 1)) * (high_next - low_next)
    after = index.equals(LANES - 1.0).choose(high_next, after)
    first_ends = ends(after)
    braked = f.peak(lambda z: ends(z)[0], after, first_ends[0])
    driven = -f.peak(lambda z: ends(z)[1], after, first_ends[1])
    limit = f.get(f.pointer("fastest"), "%k")

    def possible(z: Number) -> Number:
        L, U = f.interval("%k", "%here", z)
        L = most(L, -z / (step * 2.0))
        slack = (z + high_next) * ROUNDING
        room = (U - L) * step + z * ROUNDING
        # `least` keeps the first where the second is not a number, so a room that is not one has to come first.
        down, up = braked + slack - (z + step * L), z + step * U - driven + slack
        worst = least(least(room, down), up)
        return (room >= -np.inf).choose(worst, -np.inf)

    guess = most(braked, high_next)
    guess = ((guess > 0.0) & (guess < np.inf)).choose(guess, 1.0)
    top, tried = f.variable("top"), f.variable("tried")
    top[0] = least(guess, limit)
    grid = index * (1 / (LANES - 1))
    grid = index.equals(LANES - 1.0).choose(1.0, grid * grid)
    found = f.fresh("bracketed")
    with f.counted(40):
        tried[0] = possible(top[0] * grid)
        up = f.lane((tried[0] >= 0.0).choose(1.0, 0.0), LANES - 1) > 0.0
        grow = up & (top[0] < limit)
        f.leave((~grow).any(), found)
        top[0] = least(top[0] * 4.0, limit)
    w.do(f"br label %{found}")
    w.label(found)
    z, s = top[0] * grid, tried[0]
    fine = s >= 0.0
    best, first = f.largest(fine.choose(index, -1.0)), f.smallest(fine.choose(index, infinite))
    high, low = f.variable("high"), f.variable("low")
    high[0], low[0] = z, 0.0
    lowest, largest = f.pointer("lowest"), f.pointer("largest")
    with f.when((best < 0.0).any()):
        high[0] = 0.0
        _mark_stuck(f, "%k")
    with f.when(best.equals(LANES - 1.0).any()):
        high[0] = top[0]
    with f.when(((best >= 0.0) & (best < LANES - 1.0)).any()):
        high[0] = f.refined_from(possible, z, s, best, best + 1.0)
    with f.when(((first > 0.0) & (first < np.inf)).any()):
        low[0] = f.refined_from(possible, z, s, first, first - 1.0)
    f.put(high[0], largest, "%k")
    f.put(low[0], lowest, "%k")
    return f.text()


def _reach() -> str:
    """The largest z at point k + 1 that a step from k reaches, and u at its two ends."""
    f = _Sweeps("internal void @reach(ptr %c, i64 %k, ptr %here, ptr %next) noinline")
    step, k1 = f.get(f.pointer("step")), f.add("%k", 1)
    zs, us = f.pointer("z"), f.pointer("u")
    low, high = f.get(f.pointer("lowest"), k1), f.get(f.pointer("largest"), k1)
    begin = f.get(zs, "%k")
    L0, U0 = f.interval("%k", "%here", begin)
    L0 = most(L0, -begin / (step * 2.0))
    braked, driven = begin + step * L0, begin + step * U0

    def both(z: Number) -> tuple[Number, Number]:
        L, U = f.interval(k1, "%next", z)
        U = least(U, z / (step * 2.0))
        slack = z * SLACK
        return driven + slack - (z - step * U), z - step * L + slack - braked

    def slow_enough(z: Number) -> Number:
        return both(z)[0]

    def possible(z: Number) -> Number:
        slow, fast = both(z)
        return (slow >= -np.inf).choose(least(slow, fast), -np.inf)

    index = f.given(*range(LANES))
    z = low + index * (1 / (LANES - 1)) * (high - low)
    z = index.equals(LANES - 1.0).choose(high, z)
    reached, any_fine = f.variable("reached"), f.variable("any")
    reached[0], any_fine[0] = low, 0.0
    for test in (possible, slow_enough):
        with f.when((any_fine[0] <= 0.0).any()):
            s = test(z)
            best = f.largest((s >= 0.0).choose(index, -1.0))
            with f.when((best >= 0.0).any()):
                any_fine[0] = 1.0
            with f.when(best.equals(LANES - 1.0).any()):
                reached[0] = high
            with f.when(((best >= 0.0) & (best < LANES - 1.0)).any()):
                reached[0] = f.refined_from(test, z, s, best, best + 1.0)
    end = reached[0]
    f.put(end, zs, k1)
    L1, U1 = f.interval(k1, "%next", end)
    U1 = least(U1, end / (step * 2.0))
    total = (end - begin) / step
    first = least(most(total * 0.5, L0), U0)
    last = least(most(total - first, L1), U1)
    at = f.mul("%k", 2)
    f.put(total - last, us, at)
    f.put(last, us, f.add(at, 1))
    stands = (begin <= 0.0) & (end <= 0.0)
    with f.when(stands.any()):
        _mark_stuck(f, "%k")
    return f.text()


def _mark_stuck(f: _Function, k: str) -> None:
    w, stuck = f.w, f.pointer("stuck")
    known = w.let(f"load i64, ptr {stuck}")
    unset = w.let(f"icmp slt i64 {known}, 0")
    w.do(f"store i64 {w.let(f'select i1 {unset}, i64 {k}, i64 {known}')}, ptr {stuck}")


def _both_sweeps() -> str:
    """Backwards, then forwards."""
    f = _Sweeps("internal void @sweeps(ptr %c)")
    w, points = f.w, f.word("points")
    last = f.add(points, -1)
    fastest, largest, lowest, zs = (f.pointer(name) for name in ("fastest", "largest", "lowest", "z"))
    w.do(f"store i64 -1, ptr {f.pointer('stuck')}")
    end, limit = f.get(f.pointer("end")), f.get(fastest, last)
    with f.when((end > limit * (1 + 1e-9)).any()):
        _mark_stuck(f, last)
    f.put(least(end, limit), largest, last)
    f.put(least(end, limit), lowest, last)
    # Two records, of this point and of the next, change places from step to step.
    size = f.add(f.add(f.mul(f.word("rows"), ROW), f.mul(f.word("norms"), NORM)), HEAD)
    record = f.pointer("record")

    def of(k: str) -> str:
        return f.address(record, f.mul(w.let(f"and i64 {k}, 1"), size))

    w.do(f"call void @build(ptr %c, i64 {last}, ptr {of(last)})")
    with f.counted(last, down=True) as k:
        here, after = of(k), of(f.add(k, 1))
        w.do(f"call void @build(ptr %c, i64 {k}, ptr {here})")
        w.do(f"call void @controllable(ptr %c, i64 {k}, ptr {here}, ptr {after})")
    start, most_first = f.get(f.pointer("start")), f.get(largest)
    with f.when((start > most_first * (1 + 1e-9)).any()):
        _mark_stuck(f, "0")
    f.put(least(start, most_first), zs)
    w.do(f"call void @build(ptr %c, i64 0, ptr {of('0')})")
    with f.counted(last) as k:
        k1 = f.add(k, 1)
        here, after = of(k), of(k1)
        w.do(f"call void @build(ptr %c, i64 {k1}, ptr {after})")
        w.do(f"call void @reach(ptr %c, i64 {k}, ptr {here}, ptr {after})")
    return f.text()


class _Inside(_Function):
    """Looks inside every step, and draws limits in where they do not hold there."""

    def __init__(self, rules: Rules) -> None:
        super().__init__("internal void @inside(ptr %c, i64 %slow) noinline")
        self.rules = rules
        share = np.arange(1, LANES + 1) / FINE
        self.share = self.given(*share)

    def between(self, pointer: str, at: str, stride: str | int) -> Number:
        """The numbers at the places inside the step, whose beginning is at `at`."""
        value = "poison"
        for lane in range(LANES):
            at = self.add(at, stride)
            x = self.w.let(f"load double, ptr {self.address(pointer, at)}, align 8")
            value = self.w.let(f"insertelement {self.w.vector} {value}, double {x}, i32 {lane}")
        return Number(self.w, value)

    def whole(self) -> str:
        """LLVM assembly."""
        w, n, step = self.w, self.word("n"), self.get(self.pointer("step"))
        self.n, self.worst, self.here = n, self.variable("worst"), self.variable("here")
        friction = w.let(f"icmp ne i64 {self.word('friction')}, 0")
        w.do(f"%bytes = mul i64 {self.word('torques')}, {8 * LANES}")
        w.do(f"%qdbytes = mul i64 {n}, {8 * LANES}")
        w.do("%force = alloca i8, i64 %bytes, align 64")
        w.do("%qd = alloca i8, i64 %qdbytes, align 64")
        self.worst[0] = 0.0
        zs, us = self.pointer("z"), self.pointer("u")
        with self.counted(self.add(self.word("points"), -1), down=True) as k:
            self.here[0] = -np.inf
            at, pair = self.mul(self.mul(k, FINE), n), self.mul(k, 2)
            begin, end, z0 = self.get(us, pair), self.get(us, self.add(pair, 1)), self.get(zs, k)
            u = begin + (end - begin) * self.share
            z = z0 + step * (begin * 2.0 * self.share + (end - begin) * self.share * self.share)
            z = most(z, self.number(0.0))
            x = z.sqrt()
            self.speeds(k, at, x, friction)
            for of_torque in (True, False):
                self.rows(k, at, u, z, of_torque)
            self.norms(k, u, z)
            self.worst[0] = most(self.worst[0], self.here[0])
            self.slow_down(k)
        self.put(self.largest(self.worst[0]), self.pointer("worst"))
        return self.text()

    def speeds(self, k: str, at: str, x: Number, friction: str) -> None:
        """Joint and tool speeds; the friction of the arms at them."""
        w, rules, velocity = self.w, self.rules, self.pointer("velocity")
        fast = self.variable("fast")
        fast[0] = -1.0
        with self.counted(self.n) as j:
            rate = self.between(self.pointer("dq"), self.add(at, j), self.n)
            qd = rate * x
            self.put_all(qd, self.address("%qd", j, 8 * LANES))
            fast[0] = most(fast[0], absolute(qd) / self.get(velocity, j) - 1.0)
        tool_speed = self.pointer("tool_speed")
        with self.when(w.let(f"icmp ne ptr {tool_speed}, null")):
            rate = self.between(self.pointer("tool_rate"), self.mul(k, FINE), 1)
            fast[0] = most(fast[0], rate * x / self.get(tool_speed) - 1.0)
        self.here[0] = most(self.here[0], fast[0])
        with self.when((fast[0] > 0.0).any()):
            over = least(self.largest(fast[0]) * rules.drawn_in, self.number(rules.most_drawn_in)) + 1.0
            fastest = self.pointer("fastest")
            for end in (k, self.add(k, 1)):
                self.put(self.get(fastest, end) / (over * over), fastest, end)
        with self.when(friction):
            _call_friction(self, self.address(self.pointer("q"), self.add(at, self.n)), "%qd", "%force")
        with self.when(w.let(f"xor i1 {friction}, true")), self.counted(self.word("arms")) as arm:
            offset = self.mul(arm, self.word("drag_stride"))
            parts = [w.at(self.pointer(name), offset) for name in ("constant", "viscous")]
            with self.counted(self.n) as j:
                still, rate = (self.between(part, self.add(at, j), self.n) for part in parts)
                r = self.add(self.mul(arm, self.n), j)
                self.put_all(still + rate * x, self.address("%force", r, 8 * LANES))

    def rows(self, k: str, at: str, u: Number, z: Number, of_torque: bool) -> None:
        """Torques or joint accelerations."""
        w, n, rows = self.w, self.n, self.word("rows")
        tight = self.pointer("tight_low"), self.pointer("tight_high")

        def look(r: str, value: Number, low: Number, high: Number) -> None:
            half = (high - low) * 0.5
            ends = low - value, value - high
            self.here[0] = most(self.here[0], most(*ends) / half)
            for over, pointer in zip(ends, tight, strict=True):
                with self.when((over > 0.0).any()):
                    first = self.add(self.mul(k, rows), r)
                    self.draw(pointer, first, self.add(first, rows), over, half)

        if of_torque:
            torque = self.pointer("torque")
            with self.counted(self.word("arms")) as arm:
                offset = self.mul(arm, self.word("arm_stride"))
                a, b, g = (w.at(self.pointer(name), offset) for name in "abg")
                with self.counted(n) as j:
                    r, place = self.add(self.mul(arm, n), j), self.add(at, j)
                    weight = self.between(g, place, n)
                    value = (self.between(a, place, n) - weight) * u + (self.between(b, place, n) - weight) * z + weight
                    value = value + self.get_all(self.address("%force", r, 8 * LANES))
                    twice = self.mul(j, 2)
                    look(r, value, self.get(torque, twice), self.get(torque, self.add(twice, 1)))
            return
        some = w.let(f"icmp sgt i64 {rows}, {self.word('torques')}")
        with self.when(some), self.counted(n) as j:
            place, limit = self.add(at, j), self.get(self.pointer("acceleration"), j)
            value = self.between(self.pointer("dq"), place, n) * u + self.between(self.pointer("ddq"), place, n) * z
            look(self.add(self.word("torques"), j), value, -limit, limit)

    def norms(self, k: str, u: Number, z: Number) -> None:
        """The tool's acceleration and the forces in a grip."""
        count, place = self.word("norms"), self.mul(k, 3 * FINE)
        with self.counted(count) as i:
            offset = self.mul(i, self.word("norm_stride"))
            vectors = [self.w.at(self.pointer(name), offset) for name in "ABC"]
            square = self.number(0.0)
            for x in range(3):
                A, B, C = (self.between(v, self.add(place, x), 3) for v in vectors)
                part = A * u + B * z + C
                square = square + part * part
            radius = self.get(self.pointer("radius"), i)
            over = square.sqrt() - radius
            self.here[0] = most(self.here[0], over / radius)
            with self.when((over > 0.0).any()):
                first = self.add(self.mul(k, count), i)
                self.draw(self.pointer("tight_norms"), first, self.add(first, count), over, radius)

    def draw(self, pointer: str, first: str, second: str, over: Number, size: Number) -> None:
        """Draw a limit in at both ends of a step, by a part of its size at most."""
        bound = size * self.rules.most_drawn_in
        drawn = least(self.get(pointer, first) + self.largest(over) * self.rules.drawn_in, bound)
        self.put(drawn, pointer, first)
        self.put(least(most(self.get(pointer, second), drawn), bound), pointer, second)

    def slow_down(self, k: str) -> None:
        """Reduce the speed at both ends of a step, from some repair on."""
        slow = self.w.let("icmp ne i64 %slow, 0")
        over = self.largest(self.here[0])
        with self.when(slow), self.when((over > self.rules.overrun).any()):
            factor = 1.0 - least(over * 4.0, self.number(self.rules.most_slowed))
            zs, fastest = self.pointer("z"), self.pointer("fastest")
            for end in (k, self.add(k, 1)):
                z, limit = self.get(zs, end), self.get(fastest, end)
                self.put((z > 0.0).choose(least(limit, z * factor), limit), fastest, end)


def _times() -> str:
    """The time of every step, ∫ ds / ṡ, by Gauss's rule; z may be 0 at one of its ends."""
    f = _Function("internal void @durations(ptr %c)")
    nodes, weights = np.polynomial.legendre.leggauss(2 * LANES)
    angle = np.pi / 2 * (nodes + 1)
    shares, weights = (1 - np.cos(angle)) / 2, np.pi / 4 * weights * np.sin(angle)
    step, zs, us, times = f.get(f.pointer("step")), f.pointer("z_out"), f.pointer("u_out"), f.pointer("times")
    with f.counted(f.add(f.word("points"), -1)) as k:
        pair = f.mul(k, 2)
        begin, end, z0 = f.get(us, pair), f.get(us, f.add(pair, 1)), f.get(zs, k)
        total = f.number(0.0)
        for part in (slice(None, LANES), slice(LANES, None)):
            share, weight = f.given(*shares[part]), f.given(*weights[part])
            z = most(z0 + step * (begin * 2.0 * share + (end - begin) * share * share), f.number(0.0))
            total = total + weight / z.sqrt()
        f.put(f.across(total, lambda a, b: a + b) * step, times, k)
    return f.text()


def _solve(rules: Rules) -> str:
    """One path: the sweeps, and again with limits drawn in where they do not hold inside a step; the best is kept."""
    f = _Sweeps("void @solve(ptr %c)")
    w, points = f.w, f.word("points")
    best = f.variable("best")
    best[0] = np.inf
    w.do("call void @sizes(ptr %c)")
    worst_at = f.pointer("worst")
    done = f.fresh("solved")
    with f.counted(f.add(f.word("repairs"), 1)) as round_:
        w.do("call void @sweeps(ptr %c)")
        at = w.let(f"load i64, ptr {f.pointer('stuck')}")
        stuck = w.let(f"icmp sge i64 {at}, 0")
        first = w.let(f"icmp eq i64 {round_}, 0")
        with f.when(stuck):
            with f.when(w.let(f"xor i1 {first}, true")):
                w.do(f"store i64 -1, ptr {f.pointer('stuck')}")  # a motion was found before the limits were drawn in
            f.put(best[0], worst_at)
            w.do(f"br label %{done}")
            w.label(f.fresh("never"))
        slow = w.let(f"icmp sge i64 {round_}, {f.word('slowed_from')}")
        f.put(f.number(0.0), worst_at)
        with f.when(w.let(f"icmp eq i64 {f.word('fine')}, {FINE}")):
            w.do(f"call void @inside(ptr %c, i64 {w.let(f'zext i1 {slow} to i64')})")
        worst = f.get(worst_at)
        with f.when((worst < best[0]).any()):
            best[0] = worst
            for name, count in (("z", points), ("u", f.mul(f.add(points, -1), 2)), ("largest", points)):
                source, target = f.pointer(name), f.pointer(f"{name}_out")
                with f.counted(count) as i:
                    value = w.let(f"load double, ptr {f.address(source, i)}")
                    w.do(f"store double {value}, ptr {f.address(target, i)}")
        f.put(best[0], worst_at)
        f.leave((worst <= rules.overrun).any(), done)
    w.do(f"br label %{done}")
    w.label(done)
    w.do("call void @durations(ptr %c)")
    return f.text()


def _text(rules: Rules, target: Target) -> str:
    parts = [_sizes(), _build(), _evaluate(), _controllable(), _reach(), _both_sweeps(), _Inside(rules).whole()]
    parts += [_times(), _solve(rules)]
    extra = [] if target.lanes in (1, LANES) else ["declare <8 x double> @llvm.sqrt.v8f64(<8 x double>)"]
    return module(target, [*parts, *extra])


@lru_cache(maxsize=1)
def _code(rules: Rules) -> tuple[jit.Code, Any]:
    """The machine code, which stays in the process."""
    target = host()
    stored = jit.stored(jit.key(("time-optimal", rules), target), lambda: jit.object_code(_text(rules, target), target))
    code = jit.load(stored, ("solve",), target)
    return code, ctypes.CFUNCTYPE(None, ctypes.c_void_p)(code.address("solve"))


@dataclass(frozen=True)
class LimitRows:
    """What limits the motion along paths, at the points and between them: (lanes, fine · steps + 1, …)."""

    q: np.ndarray
    dq: np.ndarray
    ddq: np.ndarray
    fine: int  # `FINE`, or 1: then nothing is looked at between the points
    torques: np.ndarray  # (3, arms, lanes, points, n): H q' + g, H q'' + C(q, q') q' + g, g
    drag: np.ndarray  # (2, arms, lanes, points, n): friction that is the first, and the second times ṡ
    affine: bool  # whether friction is that; otherwise `drag` is 0, and may have one arm and one lane
    torque: np.ndarray  # (n, 2)
    velocity: np.ndarray
    acceleration: np.ndarray | None
    fastest: np.ndarray  # (lanes, steps + 1) the largest z
    norms: np.ndarray  # (count, 3, lanes, points, 3): A, B, C of |A u + B z + C| <= radius
    radius: np.ndarray
    tool_rate: np.ndarray | None
    tool_speed: float | None
    friction: tuple[Any, ...]  # the kernels of the arms' joint forces, or none


@dataclass(frozen=True)
class Solved:
    """The fastest motions along paths, what is exceeded inside the steps, and the times of the steps."""

    z: np.ndarray
    u: np.ndarray
    largest: np.ndarray
    times: np.ndarray
    worst: np.ndarray
    stuck: np.ndarray


def solve(
    rows: LimitRows, step: np.ndarray, start: np.ndarray, end: np.ndarray, rules: Rules, repairs: tuple[int, int],
    threads: int,
) -> Solved:  # fmt: skip
    """The fastest motion along every path; `repairs` is how many there may be, and from which on speeds are reduced."""
    lanes, points = rows.fastest.shape
    n, arms, norms = rows.q.shape[-1], rows.torques.shape[1], len(rows.norms)
    count = arms * n + (n if rows.acceleration is not None else 0)
    used = min(threads, lanes)
    fastest = np.array(rows.fastest)
    tight, tight_norms = np.zeros((2, lanes, points, count)), np.zeros((lanes, points, norms))
    out = Solved(
        np.empty((lanes, points)), np.empty((lanes, points - 1, 2)), np.empty((lanes, points)),
        np.empty((lanes, points - 1)), np.empty(lanes), np.empty(lanes, np.int64),
    )  # fmt: skip
    scratch = {"size": count, "record": 2 * (HEAD + ROW * count + NORM * norms), "z": points, "u": 2 * (points - 1),
               "largest": points, "lowest": points}  # fmt: skip
    first = np.cumsum([0, *scratch.values()])
    # A cache line and more between the scratch of two threads, so that they do not write to the same line.
    work = np.empty((used, int(first[-1]) + 16))
    thread = np.arange(lanes) * used // max(lanes, 1)
    first_words, strides = dict.fromkeys(WORDS, 0), dict.fromkeys(WORDS, 0)  # of the first path, and to the next
    kept: list[Any] = [fastest, tight, tight_norms, work]

    def put(name: str, value: Any) -> None:
        first_words[name] = value

    def share(name: str, array: np.ndarray | None) -> None:
        """The same for every path."""
        if array is not None and array.size:
            kept.append(np.ascontiguousarray(array, float))
            put(name, _address(kept[-1]))

    def split(name: str, array: np.ndarray | None) -> None:
        """A part for every path."""
        if array is not None and array.size:
            inner = array[0].flags.c_contiguous
            array = array if inner else np.ascontiguousarray(array)
            kept.append(array)
            put(name, _address(array))
            strides[name] = array.strides[0]

    numbers = {
        "points": points, "fine": rows.fine, "n": n, "arms": arms, "torques": arms * n, "rows": count, "norms": norms,
        "arm_stride": rows.torques.strides[1], "drag_stride": rows.drag.strides[1] if rows.drag.shape[1] > 1 else 0,
        "norm_stride": rows.norms.strides[0] if norms else 0, "affine": int(rows.affine), "repairs": repairs[0],
        "slowed_from": repairs[1],
    }  # fmt: skip
    for name, value in numbers.items():
        put(name, value)
    for k, name in enumerate("abg"):
        split(name, rows.torques[k, 0])
    for k, name in enumerate(("constant", "viscous")):
        split(name, np.broadcast_to(rows.drag[k, 0], rows.q.shape))
    for k, name in enumerate("ABC" if norms else ""):
        split(name, rows.norms[0, k])
    for name in ("torque", "velocity", "acceleration", "radius"):
        share(name, getattr(rows, name))
    share("tool_speed", None if rows.tool_speed is None else np.array([rows.tool_speed]))
    for name, array in (("q", rows.q), ("dq", rows.dq), ("ddq", rows.ddq), ("tool_rate", rows.tool_rate),
                        ("step", step), ("start", start), ("end", end), ("fastest", fastest), ("tight_low", tight[0]),
                        ("tight_high", tight[1]), ("tight_norms", tight_norms), ("z_out", out.z), ("u_out", out.u),
                        ("largest_out", out.largest), ("times", out.times), ("worst", out.worst),
                        ("stuck", out.stuck)):  # fmt: skip
        split(name, array)
    for name, offset in zip(scratch, first, strict=False):
        put(name, _address(work) + 8 * int(offset))
    kept.append(_friction(rows.friction, n, put))
    begin, stride = (np.array(list(each.values()), np.int64) for each in (first_words, strides))
    words = begin + np.arange(lanes)[:, None] * stride
    words[:, [WORDS.index(name) for name in scratch]] += (thread * work.strides[0])[:, None]
    call = _code(rules)[1]
    _run(call, words, thread, used)
    return out


def _address(array: np.ndarray) -> int:
    """Where an array's numbers are; `array.ctypes` takes three times as long."""
    return int(array.__array_interface__["data"][0])


def _friction(kernels: Sequence[Any], n: int, put: Callable[[str, Any], None]) -> Any:
    """The words on the arms' friction; what has to live as long as they are used."""
    if not kernels:
        return None
    functions = [kernel.compiled.batch_function for kernel in kernels]
    addresses = np.array([f.address for f in functions], np.int64)
    contexts = np.array([f.context for f in functions], np.int64)
    # q is the same for all eight, the load is nothing; speeds and forces are (n, 8). Zeros for the load follow.
    strides = np.array([0, 8, 0, 8, 8, 8 * LANES, 8, 8 * LANES, *[0] * n], np.int64)
    for name, array in (("friction", addresses), ("context", contexts), ("strides", strides)):
        put(name, _address(array))
    return functions, addresses, contexts, strides


def _run(call: Any, words: np.ndarray, thread: np.ndarray, used: int) -> None:
    """All paths; ctypes releases the lock of Python meanwhile."""

    def part(number: int) -> None:
        for lane in np.flatnonzero(thread == number):
            call(words.ctypes.data + int(lane) * words.strides[0])

    if used == 1:
        part(0)
        return
    with ThreadPoolExecutor(used) as pool:
        list(pool.map(part, range(used)))
