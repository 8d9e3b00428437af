"""Arrays -> vectors -> arrays: how the numbers of a block get into its columns and back.

A block is one vector of configurations. Rows whose numbers lie side by side in memory are read and
written as vectors and transposed with shuffles; rows with other strides are copied number by number. So is
the last block of a batch that is no multiple of the vector: its spare lanes repeat the last
configuration, and there is no second program for the tail.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from armdyn.codegen import tuning
from armdyn.codegen.llvm.ir import Writer, function
from armdyn.graph.program import Port

CORE_DIMENSIONS = 3  # the most axes a quantity has beside the batch's


@dataclass(frozen=True)
class Operand:
    """An array of the gufunc: its place among the arguments and strides, and the slots of its numbers."""

    index: int
    shape: tuple[int, ...]
    slots: tuple[int, ...]
    first_stride: int
    written: bool

    @property
    def size(self) -> int:
        """Numbers per configuration."""
        return math.prod(self.shape)


def operands(inputs: Sequence[Port], outputs: Sequence[Port], slots: dict[int, int]) -> list[Operand]:
    """The gufunc's arrays in order."""
    result: list[Operand] = []
    stride, slot = len(inputs) + len(outputs), 0
    for index, port in enumerate((*inputs, *outputs)):
        written = index >= len(inputs)
        size = len(port.nodes)
        places = tuple(slots[node.serial] for node in port.nodes) if written else tuple(range(slot, slot + size))
        result.append(Operand(index, port.shape, places, stride, written))
        slot += size
        stride += len(port.shape)
    return result


def transpose(w: Writer, rows: list[str]) -> list[str]:
    """The columns of the square of numbers that begins at each of the addresses `rows`.

    Half of the work is in how the square is read: half a vector from one row and half from another
    make one vector. The rest is log2(lanes) - 1 rounds of shuffles.
    """
    half = w.lanes // 2
    square = [
        _joined(w, w.at(rows[i], 8 * side), w.at(rows[i + half], 8 * side)) for side in (0, half) for i in range(half)
    ]
    return _exchanged(w, square, half)


def transpose_registers(w: Writer, square: list[str]) -> list[str]:
    """The rows of a square of numbers from its columns, all in registers."""
    return _exchanged(w, list(square), w.lanes)


def _exchanged(w: Writer, square: list[str], half: int) -> list[str]:
    """Rounds of shuffles that exchange parts of half the size each time."""
    while half > 1:
        half //= 2
        low = [p if not p & half else w.lanes + p - half for p in range(w.lanes)]
        for i in (i for i in range(w.lanes) if not i & half):
            a, b = square[i], square[i + half]
            square[i], square[i + half] = _shuffle(w, a, b, low), _shuffle(w, a, b, [p + half for p in low])
    return square


def _joined(w: Writer, first: str, second: str) -> str:
    """Half a vector from one address, half from another."""
    part = f"<{w.lanes // 2} x double>"
    a, b = (w.let(f"load {part}, ptr {pointer}, align 8") for pointer in (first, second))
    mask = ", ".join(f"i32 {p}" for p in range(w.lanes))
    return w.let(f"shufflevector {part} {a}, {part} {b}, <{w.lanes} x i32> <{mask}>")


def _shuffle(w: Writer, a: str, b: str, picks: list[int]) -> str:
    mask = ", ".join(f"i32 {p}" for p in picks)
    return w.let(f"shufflevector {w.vector} {a}, {w.vector} {b}, <{w.lanes} x i32> <{mask}>")


def groups(size: int, lanes: int) -> list[int]:
    """Where groups of `lanes` numbers begin; the last one overlaps the one before if it must."""
    return [min(start, size - lanes) for start in range(0, size, lanes)] if size >= lanes else []


def rows_function(lanes: int, operand: Operand) -> str:
    """`rows<index>(columns, first, between)`: contiguous rows into the slots of `columns`, or back.

    A separate function, so that LLVM knows nothing of the columns and does not widen the half
    loads: a load that spans two recent stores waits for both to reach the cache. A long row is split
    into several functions, since LLVM's time grows faster than a function's length.
    """
    squares = groups(operand.size, lanes)
    write, steps = (_square, squares) if squares else (_single, list(range(operand.size)))
    arguments = "ptr noalias %columns, ptr noalias %first, i64 %between"
    parts, calls = [], Writer(lanes)
    calls.label("entry")
    for number, begin in enumerate(range(0, len(steps), tuning.SQUARES_PER_FUNCTION)):
        w = Writer(lanes)
        w.label("entry")
        rows = ["%first"]
        for _ in range(lanes - 1):
            rows.append(w.at(rows[-1], "%between"))
        for start in steps[begin : begin + tuning.SQUARES_PER_FUNCTION]:
            write(w, operand, start, rows)
        w.do("ret void")
        name = f"@rows{operand.index}_{number}"
        parts.append(function(f"internal void {name}({arguments}) noinline", w.lines))
        calls.do(f"call void {name}({arguments})")
    calls.do("ret void")
    return "".join(parts) + function(f"internal void @rows{operand.index}({arguments}) noinline", calls.lines)


def _square(w: Writer, operand: Operand, start: int, rows: list[str]) -> None:
    """As many numbers as there are lanes, from each row or into each."""
    slots = [operand.slots[start + k] for k in range(w.lanes)]
    row_parts = [w.at(row, 8 * start) for row in rows]
    if operand.written:
        columns = [w.at("%columns", 8 * w.lanes * slot) for slot in slots]
        for part, value in zip(row_parts, transpose(w, columns), strict=True):
            w.do(f"store {w.vector} {value}, ptr {part}, align 8")
    else:
        for slot, column in zip(slots, transpose(w, row_parts), strict=True):
            w.store(column, "%columns", slot)


def _single(w: Writer, operand: Operand, start: int, rows: list[str]) -> None:
    """One number from each row or into each."""
    places = [w.at(row, 8 * start) for row in rows]
    if operand.written:
        scattered(w, w.load("%columns", operand.slots[start]), places)
    else:
        w.store(gathered(w, places), "%columns", operand.slots[start])


def gathered(w: Writer, places: list[str]) -> str:
    """A vector of the numbers at each lane's address."""
    value = "poison"
    for lane, place in enumerate(places):
        x = w.let(f"load double, ptr {place}, align 8")
        value = w.let(f"insertelement {w.vector} {value}, double {x}, i32 {lane}")
    return value


def scattered(w: Writer, value: str, places: list[str]) -> None:
    """The numbers of a vector to each lane's address."""
    for lane, place in enumerate(places):
        w.do(f"store double {w.let(f'extractelement {w.vector} {value}, i32 {lane}')}, ptr {place}, align 8")


def strided_copies(lanes: int) -> str:
    """`gather` and `scatter`: one configuration of any strides, number by number, from or into one lane."""
    names = ", ".join(f"i64 %n{d}, i64 %s{d}" for d in range(CORE_DIMENSIONS))
    texts = []
    for name, written in (("gather", False), ("scatter", True)):
        w = Writer(lanes)
        w.label("entry")
        w.do("br label %d0")
        for d in range(CORE_DIMENSIONS):
            before = "entry" if d == 0 else f"d{d - 1}"
            w.label(f"d{d}")
            w.do(f"%i{d} = phi i64 [0, %{before}], [%j{d}, %e{d}]")
            if d + 1 < CORE_DIMENSIONS:
                w.do(f"br label %d{d + 1}")
        flat, offset = "%i0", w.let("mul i64 %i0, %s0")
        for d in range(1, CORE_DIMENSIONS):
            flat = w.let(f"add i64 {w.let(f'mul i64 {flat}, %n{d}')}, %i{d}")
            offset = w.let(f"add i64 {offset}, {w.let(f'mul i64 %i{d}, %s{d}')}")
        slot = w.let(f"load i32, ptr {w.let(f'getelementptr i32, ptr %slots, i64 {flat}')}")
        place = w.let(f"mul i64 {w.let(f'zext i32 {slot} to i64')}, {8 * lanes}")
        ends = [w.at("%row", offset), w.at("%lane", place)]
        source, sink = ends[::-1] if written else ends
        w.do(f"store double {w.let(f'load double, ptr {source}, align 8')}, ptr {sink}, align 8")
        w.do(f"br label %e{CORE_DIMENSIONS - 1}")
        for d in reversed(range(CORE_DIMENSIONS)):
            w.label(f"e{d}")
            w.do(f"%j{d} = add i64 %i{d}, 1")
            after = "out" if d == 0 else f"e{d - 1}"
            w.do(f"br i1 {w.let(f'icmp slt i64 %j{d}, %n{d}')}, label %d{d}, label %{after}")
        w.label("out")
        w.do("ret void")
        head = f"internal void @{name}(ptr %row, ptr %lane, ptr %slots, {names}) noinline"
        texts.append(function(head, w.lines))
    return "".join(texts)


def non_temporal_copy(lanes: int) -> str:
    """`non_temporal_copy(to, from, bytes)`: by whole vectors once `to` is aligned to them, before and after by pairs.

    Arrays are aligned to pairs of numbers; what is copied are whole pairs.
    """
    vector = 8 * lanes
    w = Writer(lanes)
    w.label("entry")
    odd = w.let(f"and i64 {w.let('ptrtoint ptr %to to i64')}, {vector - 1}")
    head = w.let(f"and i64 {w.let(f'sub i64 {vector}, {odd}')}, {vector - 1}")
    w.do(f"%head = call i64 @llvm.umin.i64(i64 {head}, i64 %bytes)")
    rest = w.let("sub i64 %bytes, %head")
    w.do(f"%end = add i64 %head, {w.let(f'and i64 {rest}, -{vector}')}")
    w.do("br label %before")
    for name, after, kind, size, start, end in (
        ("before", "vectors", "<2 x double>", 16, "0", "%head"),
        ("vectors", "behind", w.vector, vector, "%head", "%end"),
        ("behind", "out", "<2 x double>", 16, "%end", "%bytes"),
    ):
        origin = {"before": "entry", "vectors": "before", "behind": "vectors"}[name]
        w.label(name)
        w.do(f"%at_{name} = phi i64 [{start}, %{origin}], [%next_{name}, %go_{name}]")
        more = w.let(f"icmp ult i64 %at_{name}, {end}")
        w.do(f"br i1 {more}, label %go_{name}, label %{after}")
        w.label(f"go_{name}")
        piece = w.let(f"load {kind}, ptr {w.at('%from', f'%at_{name}')}, align 16")
        w.do(f"store {kind} {piece}, ptr {w.at('%to', f'%at_{name}')}, align {size}, !nontemporal !1")
        w.do(f"%next_{name} = add i64 %at_{name}, {size}")
        w.do(f"br label %{name}")
    w.label("out")
    w.do("ret void")
    return function(
        "internal void @non_temporal_copy(ptr noalias %to, ptr noalias %from, i64 %bytes) noinline", w.lines
    )


def slot_tables(arrays: Sequence[Operand]) -> str:
    """The slot of each number of each array, for copies number by number."""
    lines = []
    for operand in arrays:
        numbers = ", ".join(f"i32 {slot}" for slot in operand.slots)
        lines.append(f"@slots{operand.index} = internal constant [{operand.size} x i32] [{numbers}]")
    return "\n".join(lines) + "\n"
