"""Packing and unpacking: the numbers of a block from the rows of arrays into columns (one vector per number) and back.

A block is one vector of configurations. Contiguous rows are read and written as vectors and transposed with shuffles,
one square tile of lanes × lanes numbers at a time; rows with other strides are copied number by number. So is the last
block of a batch that is not a multiple of the vector width: its spare lanes repeat the last configuration, so that no
second program is needed for the remainder.

A tile whose results are the same for every configuration (the zeros between a tree's branches: half of a humanoid's
inertia matrix) is not transposed: the constants are stored directly, and only once into a block staged on the stack.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from armdyn.codegen import tuning
from armdyn.codegen.llvm.ir import Writer, double, function
from armdyn.graph.program import Port

CORE_DIMENSIONS = 3  # the most core dimensions (axes other than the batch's) of a quantity


@dataclass(frozen=True)
class Operand:
    """An array of the gufunc: its index among the arguments and strides, and the slots of its numbers."""

    index: int
    shape: tuple[int, ...]
    slots: tuple[int, ...]
    first_stride: int
    written: bool
    constants: tuple[float | None, ...] = ()  # of results: the constant value of each number, None if it varies

    @property
    def size(self) -> int:
        """Numbers per configuration."""
        return math.prod(self.shape)


def operands(inputs: Sequence[Port], outputs: Sequence[Port], slots: dict[int, int] | None) -> list[Operand]:
    """The gufunc's arrays in order; without `slots`, the results are in C order."""
    result: list[Operand] = []
    stride, slot = len(inputs) + len(outputs), 0
    for index, port in enumerate((*inputs, *outputs)):
        written = index >= len(inputs)
        size = len(port.nodes)
        first = 0 if written else slot
        places: tuple[int, ...] = tuple(range(first, first + size))
        constants: tuple[float | None, ...] = ()
        if written and slots is not None:
            places, constants = gathered_slots(port, slots)
        result.append(Operand(index, port.shape, places, stride, written, constants))
        slot += size
        stride += len(port.shape)
    return result


def gathered_slots(port: Port, slots: dict[int, int]) -> tuple[tuple[int, ...], tuple[float | None, ...]]:
    """The slots of a port's numbers, and their constant values (None where they vary)."""
    constants = tuple(float(node.value) if node.op == "const" else None for node in port.nodes)
    return tuple(slots[node.serial] for node in port.nodes), constants


def transpose(w: Writer, rows: list[str]) -> list[str]:
    """The columns of the square tile whose rows begin at the addresses `rows`.

    The loads do the first round of the transposition: each vector is loaded as two halves from two rows. The rest is
    log2(lanes) - 1 rounds of shuffles.
    """
    half = w.lanes // 2
    square = [
        _load_halves(w, w.at(rows[i], 8 * side), w.at(rows[i + half], 8 * side))
        for side in (0, half)
        for i in range(half)
    ]
    return _shuffle_rounds(w, square, half)


def transpose_registers(w: Writer, square: list[str]) -> list[str]:
    """The rows of a square tile from its columns, all in registers."""
    return _shuffle_rounds(w, list(square), w.lanes)


def _shuffle_rounds(w: Writer, square: list[str], half: int) -> list[str]:
    """Rounds of shuffles; each exchanges sub-tiles of half the size of the round before."""
    while half > 1:
        half //= 2
        low = [p if not p & half else w.lanes + p - half for p in range(w.lanes)]
        for i in (i for i in range(w.lanes) if not i & half):
            a, b = square[i], square[i + half]
            square[i], square[i + half] = _shuffle(w, a, b, low), _shuffle(w, a, b, [p + half for p in low])
    return square


def _load_halves(w: Writer, first: str, second: str) -> str:
    """Half a vector from one address, half from another."""
    part = f"<{w.lanes // 2} x double>"
    a, b = (w.let(f"load {part}, ptr {pointer}, align 8") for pointer in (first, second))
    mask = ", ".join(f"i32 {p}" for p in range(w.lanes))
    return w.let(f"shufflevector {part} {a}, {part} {b}, <{w.lanes} x i32> <{mask}>")


def _shuffle(w: Writer, a: str, b: str, picks: list[int]) -> str:
    mask = ", ".join(f"i32 {p}" for p in picks)
    return w.let(f"shufflevector {w.vector} {a}, {w.vector} {b}, <{w.lanes} x i32> <{mask}>")


def groups(size: int, lanes: int) -> list[int]:
    """The first indices of groups of `lanes` numbers; the last group may overlap the one before."""
    return [min(start, size - lanes) for start in range(0, size, lanes)] if size >= lanes else []


def rows_function(lanes: int, operand: Operand) -> str:
    """`rows<index>(columns, first, between, constants)`: contiguous rows into the slots of `columns`, or back.

    Constant tiles are stored if `constants` is true.

    It is a separate function so that LLVM cannot see the stores to the columns and widen the half-vector loads: a load
    that spans two recent stores cannot be forwarded and waits for both to reach the cache. A long row is split into
    several functions, since LLVM's compile time grows faster than linearly with a function's length.
    """
    write = _square if operand.size >= lanes else _single
    steps = groups(operand.size, lanes) if write is _square else list(range(operand.size))
    arguments = "ptr noalias %columns, ptr noalias %first, i64 %between, i1 %constants"
    parts, calls = [], Writer(lanes)
    calls.label("entry")
    for number, begin in enumerate(range(0, len(steps), tuning.SQUARES_PER_FUNCTION)):
        w = Writer(lanes)
        w.label("entry")
        rows = ["%first"]
        for _ in range(lanes - 1):
            rows.append(w.at(rows[-1], "%between"))
        _constants(w, operand, steps[begin : begin + tuning.SQUARES_PER_FUNCTION], rows)
        for start in steps[begin : begin + tuning.SQUARES_PER_FUNCTION]:
            if not _is_constant(operand, start, lanes):
                write(w, operand, start, rows)
        w.do("ret void")
        name = f"@rows{operand.index}_{number}"
        parts.append(function(f"internal void {name}({arguments}) noinline", w.lines))
        calls.do(f"call void {name}({arguments})")
    calls.do("ret void")
    return "".join(parts) + function(f"internal void @rows{operand.index}({arguments}) noinline", calls.lines)


def parts(operand: Operand, lanes: int) -> list[int]:
    """The end of the part of a row that is complete after each of the functions that write it."""
    steps = groups(operand.size, lanes)
    ends = [steps[k] for k in range(tuning.SQUARES_PER_FUNCTION, len(steps), tuning.SQUARES_PER_FUNCTION)]
    return [*ends, operand.size]


def _is_constant(operand: Operand, start: int, lanes: int) -> bool:
    """Whether all numbers of a tile are the same for every configuration."""
    numbers = operand.constants[start : start + lanes]
    return operand.written and len(numbers) == lanes and None not in numbers


def _constants(w: Writer, operand: Operand, starts: list[int], rows: list[str]) -> None:
    """Store the constant tiles if `%constants` is true."""
    constant = [start for start in starts if _is_constant(operand, start, w.lanes)]
    if not constant:
        return
    w.do("br i1 %constants, label %fixed, label %varying")
    w.label("fixed")
    for start in constant:
        numbers = ", ".join(f"double {double(c or 0.0)}" for c in operand.constants[start : start + w.lanes])
        for row in rows:
            w.do(f"store {w.vector} <{numbers}>, ptr {w.at(row, 8 * start)}, align 8")
    w.do("br label %varying")
    w.label("varying")


def _square(w: Writer, operand: Operand, start: int, rows: list[str]) -> None:
    """One tile: as many numbers as there are lanes, from or to each row."""
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
    """One number from or to each row."""
    places = [w.at(row, 8 * start) for row in rows]
    if operand.written:
        scattered(w, w.load("%columns", operand.slots[start]), places)
    else:
        w.store(gathered(w, places), "%columns", operand.slots[start])


def gathered(w: Writer, places: list[str]) -> str:
    """Gather a vector from the addresses of its lanes."""
    value = "poison"
    for lane, place in enumerate(places):
        x = w.let(f"load double, ptr {place}, align 8")
        value = w.let(f"insertelement {w.vector} {value}, double {x}, i32 {lane}")
    return value


def scattered(w: Writer, value: str, places: list[str]) -> None:
    """Scatter a vector to the addresses of its lanes."""
    for lane, place in enumerate(places):
        w.do(f"store double {w.let(f'extractelement {w.vector} {value}, i32 {lane}')}, ptr {place}, align 8")


def strided_copies(lanes: int, names: tuple[str, str] = ("gather", "scatter")) -> str:
    """`gather` and `scatter`: copy the rows of a block with any strides, number by number, into or from its lanes.

    Lanes beyond the `last` row repeat it. As separate functions they are compiled once, not once per lane.
    """
    axes = ", ".join(f"i64 %n{d}, i64 %s{d}" for d in range(CORE_DIMENSIONS))
    texts = []
    for name, written in zip(names, (False, True), strict=True):
        w = Writer(lanes)
        w.label("entry")
        w.do("br label %lanes")
        w.label("lanes")
        w.do("%l = phi i64 [0, %entry], [%after, %each]")
        number = w.let("call i64 @llvm.umin.i64(i64 %l, i64 %last)")
        row = w.at("%first", w.let(f"mul i64 {number}, %step"))
        lane = w.at("%block", w.let("mul i64 %l, 8"))
        w.do("br label %d0")
        for d in range(CORE_DIMENSIONS):
            before = "lanes" if d == 0 else f"d{d - 1}"
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
        ends = [w.at(row, offset), w.at(lane, place)]
        source, sink = ends[::-1] if written else ends
        w.do(f"store double {w.let(f'load double, ptr {source}, align 8')}, ptr {sink}, align 8")
        w.do(f"br label %e{CORE_DIMENSIONS - 1}")
        for d in reversed(range(CORE_DIMENSIONS)):
            w.label(f"e{d}")
            w.do(f"%j{d} = add i64 %i{d}, 1")
            after = "each" if d == 0 else f"e{d - 1}"
            w.do(f"br i1 {w.let(f'icmp slt i64 %j{d}, %n{d}')}, label %d{d}, label %{after}")
        w.label("each")
        w.do("%after = add i64 %l, 1")
        w.do(f"br i1 {w.let(f'icmp ult i64 %after, {lanes}')}, label %lanes, label %out")
        w.label("out")
        w.do("ret void")
        rows = "ptr %first, i64 %step, i64 %last"
        head = f"internal void @{name}({rows}, ptr %block, ptr %slots, {axes}) noinline"
        texts.append(function(head, w.lines))
    return "".join(texts)


def lane_copy(lanes: int) -> str:
    """`lane(row, lane, slots, count)`: a contiguous row from the slots of one lane; the loop is unrolled by four."""
    w = Writer(lanes)
    w.label("entry")
    w.do("br label %test")
    w.label("test")
    w.do("%i = phi i64 [0, %entry], [%next, %four]")
    w.do("%next = add i64 %i, 4")
    w.do(f"br i1 {w.let('icmp ule i64 %next, %count')}, label %four, label %rest")
    w.label("four")
    for k in range(4):
        _copy_number(w, w.let(f"add i64 %i, {k}") if k else "%i")
    w.do("br label %test")
    w.label("rest")
    w.do("%j = phi i64 [%i, %test], [%after, %one]")
    w.do(f"br i1 {w.let('icmp ult i64 %j, %count')}, label %one, label %out")
    w.label("one")
    _copy_number(w, "%j")
    w.do("%after = add i64 %j, 1")
    w.do("br label %rest")
    w.label("out")
    w.do("ret void")
    head = "internal void @lane(ptr noalias %row, ptr noalias %lane, ptr noalias %slots, i64 %count) noinline"
    return function(head, w.lines)


def _copy_number(w: Writer, k: str) -> None:
    slot = w.let(f"load i32, ptr {w.let(f'getelementptr i32, ptr %slots, i64 {k}')}")
    place = w.let(f"mul i64 {w.let(f'zext i32 {slot} to i64')}, {8 * w.lanes}")
    x = w.let(f"load double, ptr {w.at('%lane', place)}, align 8")
    w.do(f"store double {x}, ptr {w.let(f'getelementptr double, ptr %row, i64 {k}')}, align 8")


def non_temporal_copy(lanes: int) -> str:
    """`non_temporal_copy(to, from, bytes)`: by whole vectors where `to` is aligned to them, by pairs at both ends.

    Addresses must be aligned to pairs of numbers, and the size must be a whole number of pairs.
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
    """Tables of the slot of each number of each array, for strided copies."""
    lines = []
    for operand in arrays:
        numbers = ", ".join(f"i32 {slot}" for slot in operand.slots)
        lines.append(f"@slots{operand.index} = internal constant [{operand.size} x i32] [{numbers}]")
    return "\n".join(lines) + "\n"
