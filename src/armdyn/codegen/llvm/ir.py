"""Helpers to write LLVM IR as text."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable
from fractions import Fraction
from itertools import accumulate
from typing import NamedTuple

from armdyn.codegen import tuning

CACHE_LINE = 64  # bytes
PAGE = 4096  # bytes; a vector store that crosses a page boundary takes as long as twenty others
LIBRARY = ("sin", "cos", "malloc", "free")  # functions of the C library, with whose addresses a context begins


def double(value: float | Fraction) -> str:
    """A double as a hexadecimal LLVM literal, exact to the last bit."""
    return f"0x{struct.unpack('<Q', struct.pack('<d', float(value)))[0]:016X}"


def literal(number: str, value: float | Fraction) -> str:
    """A literal of "double" or "float", rounded once; LLVM writes single precision with the digits of a double."""
    return double(value) if number == "double" else double(single(value))


def single(value: float | Fraction) -> float:
    """The number of single precision that is nearest to a rational number, ties to even.

    Rounding the nearest double again would take the wrong side of some ties.
    """
    exact = Fraction(value) if math.isfinite(value) else None
    if not exact:
        return float(value)
    exponent = max(math.frexp(float(exact))[1] - 24, -149)
    nearest = float(round(exact / Fraction(2) ** exponent) * Fraction(2) ** exponent)
    return nearest if abs(nearest) < 2.0**128 else math.copysign(math.inf, nearest)


def splat(kind: str, value: object, lanes: int) -> str:
    """A vector constant with one value in every lane."""
    return "<" + ", ".join([f"{kind} {value}"] * lanes) + ">"


class VectorType(NamedTuple):
    """The type of a vector of numbers: how many, and whether they are "double" or "float"."""

    lanes: int
    number: str = "double"

    @property
    def size(self) -> int:
        """Bytes of one number."""
        return 8 if self.number == "double" else 4


class Slot(NamedTuple):
    """A location in memory: an array of vectors and an index into it."""

    array: str
    number: int


class StackArray(NamedTuple):
    """An array in a function's frame: its name, its size and alignment in bytes, the line that allocates it."""

    name: str
    size: int
    align: int
    line: str


class Writer:
    """Builds the body of a function line by line, with fresh names."""

    def __init__(self, kind: VectorType, prefix: str = "t") -> None:
        lanes, self.number = kind
        self.lanes = lanes
        self.size = kind.size  # bytes of one number
        self.bytes = lanes * kind.size  # of a vector
        self.vector = f"<{lanes} x {kind.number}>"
        self.whole = f"i{8 * kind.size}"  # the integer as wide as a number
        self.bits = f"<{lanes} x {self.whole}>"  # the vector bitcast to integers
        self.mask = f"<{lanes} x i1>"  # the type of a comparison's result
        self.suffix = f"v{lanes}f{8 * kind.size}"  # of the names of intrinsics
        self.lanes_mask = f"<{lanes} x i32>"
        self.lines: list[str] = []
        self.tables: list[str] = []
        self.arrays: list[StackArray] = []
        self._prefix = prefix
        self._count = 0

    def do(self, line: str) -> None:
        """Append an instruction without a result."""
        self.lines.append(f"  {line}")

    def let(self, expression: str) -> str:
        """Append an instruction with a result; returns the name of the result."""
        name = f"%{self._prefix}{self._count}"
        self._count += 1
        self.lines.append(f"  {name} = {expression}")
        return name

    def label(self, name: str) -> None:
        """Begin a basic block."""
        self.lines.append(f"{name}:")

    def constant(self, value: float | Fraction) -> str:
        """A constant with a number in every lane."""
        return splat(self.number, literal(self.number, value), self.lanes)

    def integer(self, value: int) -> str:
        """A constant with an integer in every lane."""
        return splat(self.whole, value, self.lanes)

    def broadcast(self, number: str) -> str:
        """A run-time number broadcast to every lane."""
        first = self.let(f"insertelement {self.vector} poison, {self.number} {number}, i32 0")
        return self.let(f"shufflevector {self.vector} {first}, {self.vector} poison, {self.lanes_mask} zeroinitializer")

    def at(self, pointer: str, offset: int | str) -> str:
        """The address `offset` bytes from `pointer`."""
        return pointer if offset == 0 else self.let(f"getelementptr i8, ptr {pointer}, i64 {offset}")

    def load(self, pointer: str, slot: int) -> str:
        """The vector in a slot of an array of vectors."""
        where = self.at(pointer, slot * self.bytes)
        return self.let(f"load {self.vector}, ptr {where}, align {self.bytes}")

    def store(self, value: str, pointer: str, slot: int) -> None:
        """Store a vector into a slot of an array of vectors."""
        where = self.at(pointer, slot * self.bytes)
        self.do(f"store {self.vector} {value}, ptr {where}, align {self.bytes}")

    def stack_array(self, name: str, slots: int, align: int = 0) -> str:
        """An array of vectors on the stack, allocated in the function's entry block."""
        align = max(align, self.bytes)
        line = f"  %{name} = alloca [{max(slots, 1)} x {self.vector}], align {align}"
        self.arrays.append(StackArray(name, max(slots, 1) * self.bytes, align, line))
        self.lines.insert(1, line)
        return f"%{name}"

    def constant_table(self, name: str, literals: Iterable[str]) -> None:
        """Define a global constant array of vectors."""
        rows = [f"{self.vector} {splat(self.number, value, self.lanes)}" for value in literals]
        kind = f"[{len(rows)} x {self.vector}]"
        self.tables.append(f"@{name} = internal constant {kind} [{', '.join(rows)}], align {self.bytes}\n")


def prefetch(w: Writer, first: str, size: int) -> None:
    """Prefetch the cache lines of `size` bytes for writing."""
    for offset in range(0, size + CACHE_LINE - 1, CACHE_LINE):
        w.do(f"call void @llvm.prefetch.p0(ptr {w.at(first, offset)}, i32 1, i32 3, i32 1)")


def prefetch_lines(kind: VectorType) -> str:
    """`prefetch_lines(first, bytes)`: the same as a loop, for sizes that would make the unrolled code long."""
    w = Writer(kind)
    w.label("entry")
    w.do("br label %line")
    w.label("line")
    w.do("%at = phi i64 [0, %entry], [%next, %line]")
    w.do(f"call void @llvm.prefetch.p0(ptr {w.at('%first', '%at')}, i32 1, i32 3, i32 1)")
    w.do(f"%next = add i64 %at, {CACHE_LINE}")
    more = w.let(f"icmp ult i64 %next, {w.let(f'add i64 %bytes, {CACHE_LINE - 1}')}")
    w.do(f"br i1 {more}, label %line, label %out")
    w.label("out")
    w.do("ret void")
    return function("internal void @prefetch_lines(ptr %first, i64 %bytes) noinline", w.lines)


def function(head: str, body: Iterable[str]) -> str:
    """A function's definition."""
    return "\n".join([f"define {head} {{", *body, "}", ""])


def framed(head: str, w: Writer, context: str = "%context", loads: Iterable[str] = ()) -> str:
    """The definition of a function whose arrays are on the stack, or, where they are large, in one block of the heap.

    `context` is the name of the context's address, `loads` the instructions that define it where it is no argument.
    Where the heap has no memory left, the arrays stay on the stack.
    """
    *starts, size = accumulate((-(-array.size // PAGE) * PAGE for array in w.arrays), initial=0)
    if sum(array.size for array in w.arrays) <= tuning.LARGEST_FRAME:
        return function(head, w.lines)
    on_stack = {array.line for array in w.arrays}
    begin = [
        *(f"  {line}" for line in loads),
        f"  %malloc_at = getelementptr i8, ptr {context}, i64 {8 * LIBRARY.index('malloc')}",
        f"  %free_at = getelementptr i8, ptr {context}, i64 {8 * LIBRARY.index('free')}",
        "  %malloc = load ptr, ptr %malloc_at",
        "  %free = load ptr, ptr %free_at",
        f"  %heap = call ptr %malloc(i64 {size + PAGE})",
        "  %exhausted = icmp eq ptr %heap, null",
        f"  %frame_size = select i1 %exhausted, i64 {size + PAGE}, i64 1",
        "  %frame = alloca i8, i64 %frame_size, align 64",
        "  %memory = select i1 %exhausted, ptr %frame, ptr %heap",
        f"  %memory_end = getelementptr i8, ptr %memory, i64 {PAGE - 1}",
        f"  %arrays = call ptr @llvm.ptrmask.p0.i64(ptr %memory_end, i64 -{PAGE})",
        *(f"  %{a.name} = getelementptr i8, ptr %arrays, i64 {at}" for a, at in zip(w.arrays, starts, strict=True)),
    ]
    lines = [w.lines[0], *begin]
    for line in (line for line in w.lines[1:] if line not in on_stack):
        lines += ["  call void %free(ptr %heap)", line] if line.startswith("  ret ") else [line]
    return function(head, lines)
