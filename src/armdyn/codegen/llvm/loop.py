"""NumPy's inner loop: a batch, block by block.

A block reads all its rows before it writes any, and no row is read twice, so an output may be the same array as an
input. The function `rows_to_rows`, if there is one, computes the blocks whose arrays are contiguous and do not overlap,
whose uniform inputs are the same for all configurations, and whose angles are small enough.

The numbers of a block are packed from the rows of arrays into columns (one vector per number) and unpacked. A block is
one vector of configurations. Contiguous rows are read and written as vectors and transposed with shuffles, one square
tile of lanes × lanes numbers at a time; rows with other strides are copied number by number. So is the last block of a
batch that is not a multiple of the vector width: its spare lanes repeat the last configuration, so that no second
program is needed for the remainder.

A tile whose results are the same for every configuration (the zeros between a tree's branches: half of a humanoid's
inertia matrix) is not transposed: the constants are stored directly, and only once into a block staged on the stack.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from armdyn.codegen import tuning
from armdyn.codegen.llvm.ir import CACHE_LINE, PAGE, VectorType, Writer, framed, function, literal, prefetch
from armdyn.codegen.llvm.straight_line import RowsToRows
from armdyn.graph.program import Port

PAIR = 16  # bytes of the smallest non-temporal store: a pair of doubles
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
        _load_halves(w, w.at(rows[i], w.size * side), w.at(rows[i + half], w.size * side))
        for side in (0, half)
        for i in range(half)
    ]
    return _shuffle_rounds(w, square, half)


def transpose_registers(w: Writer, square: list[str]) -> list[str]:
    """The rows of a square tile from its columns, all in registers."""
    return _shuffle_rounds(w, list(square), w.lanes)


def narrow_width(size: int) -> int:
    """The width of the tiles of rows that are shorter than a vector: a power of two."""
    return 1 << (size.bit_length() - 1)


def narrow_columns(w: Writer, rows: list[str], width: int) -> list[str]:
    """The columns of a tile of fewer numbers than lanes: each vector is loaded from as many rows as have room in it."""
    part = f"<{width} x {w.number}>"
    tile = []
    for first in range(width):
        pieces = [w.let(f"load {part}, ptr {row}, align {w.size}") for row in rows[first::width]]
        size = width
        while len(pieces) > 1:
            mask = ", ".join(f"i32 {p}" for p in range(2 * size))
            pieces = [
                w.let(
                    f"shufflevector <{size} x {w.number}> {a}, <{size} x {w.number}> {b}, <{2 * size} x i32> <{mask}>"
                )
                for a, b in zip(pieces[::2], pieces[1::2], strict=True)
            ]
            size *= 2
        tile.append(pieces[0])
    return _shuffle_rounds(w, tile, width)


def store_narrow(w: Writer, columns: list[str], places: list[str]) -> None:
    """Store columns, fewer than lanes, to the rows at `places`: each vector then holds parts of several rows."""
    width, tile = len(columns), _shuffle_rounds(w, list(columns), len(columns))
    part = f"<{width} x {w.number}>"
    for row, place in enumerate(places):
        vector, number = tile[row % width], row // width
        mask = ", ".join(f"i32 {width * number + p}" for p in range(width))
        piece = w.let(f"shufflevector {w.vector} {vector}, {w.vector} poison, <{width} x i32> <{mask}>")
        w.do(f"store {part} {piece}, ptr {place}, align {w.size}")


def _shuffle_rounds(w: Writer, square: list[str], half: int) -> list[str]:
    """Rounds of shuffles; each exchanges sub-tiles of half the size of the round before."""
    while half > 1:
        half //= 2
        low = [p if not p & half else w.lanes + p - half for p in range(w.lanes)]
        for i in (i for i in range(len(square)) if not i & half):
            a, b = square[i], square[i + half]
            square[i], square[i + half] = _shuffle(w, a, b, low), _shuffle(w, a, b, [p + half for p in low])
    return square


def _load_halves(w: Writer, first: str, second: str) -> str:
    """Half a vector from one address, half from another."""
    part = f"<{w.lanes // 2} x {w.number}>"
    a, b = (w.let(f"load {part}, ptr {pointer}, align {w.size}") for pointer in (first, second))
    mask = ", ".join(f"i32 {p}" for p in range(w.lanes))
    return w.let(f"shufflevector {part} {a}, {part} {b}, <{w.lanes} x i32> <{mask}>")


def _shuffle(w: Writer, a: str, b: str, picks: list[int]) -> str:
    mask = ", ".join(f"i32 {p}" for p in picks)
    return w.let(f"shufflevector {w.vector} {a}, {w.vector} {b}, <{w.lanes} x i32> <{mask}>")


def groups(size: int, lanes: int) -> list[int]:
    """The first indices of groups of `lanes` numbers; the last group may overlap the one before."""
    return [min(start, size - lanes) for start in range(0, size, lanes)] if size >= lanes else []


def rows_function(kind: VectorType, operand: Operand) -> str:
    """`rows<index>(columns, first, between, constants)`: contiguous rows into the slots of `columns`, or back.

    Constant tiles are stored if `constants` is true.

    It is a separate function so that LLVM cannot see the stores to the columns and widen the half-vector loads: a load
    that spans two recent stores cannot be forwarded and waits for both to reach the cache. A long row is split into
    several functions, since LLVM's compile time grows faster than linearly with a function's length.
    """
    lanes = kind.lanes
    write = _square if operand.size >= lanes else _narrow
    steps = groups(operand.size, lanes if operand.size >= lanes else narrow_width(operand.size))
    arguments = "ptr noalias %columns, ptr noalias %first, i64 %between, i1 %constants"
    parts, calls = [], Writer(kind)
    calls.label("entry")
    for number, begin in enumerate(range(0, len(steps), tuning.SQUARES_PER_FUNCTION)):
        w = Writer(kind)
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
        constants = operand.constants[start : start + w.lanes]
        numbers = ", ".join(f"{w.number} {literal(w.number, c or 0.0)}" for c in constants)
        for row in rows:
            w.do(f"store {w.vector} <{numbers}>, ptr {w.at(row, w.size * start)}, align {w.size}")
    w.do("br label %varying")
    w.label("varying")


def _square(w: Writer, operand: Operand, start: int, rows: list[str]) -> None:
    """One tile: as many numbers as there are lanes, from or to each row."""
    slots = [operand.slots[start + k] for k in range(w.lanes)]
    row_parts = [w.at(row, w.size * start) for row in rows]
    if operand.written:
        columns = [w.at("%columns", w.bytes * slot) for slot in slots]
        for part, value in zip(row_parts, transpose(w, columns), strict=True):
            w.do(f"store {w.vector} {value}, ptr {part}, align {w.size}")
    else:
        for slot, column in zip(slots, transpose(w, row_parts), strict=True):
            w.store(column, "%columns", slot)


def _narrow(w: Writer, operand: Operand, start: int, rows: list[str]) -> None:
    """One tile of fewer numbers than lanes, from or to each row."""
    slots = operand.slots[start : start + narrow_width(operand.size)]
    places = [w.at(row, w.size * start) for row in rows]
    if len(slots) == 1 and operand.written:
        scattered(w, w.load("%columns", slots[0]), places)
    elif operand.written:
        store_narrow(w, [w.load("%columns", slot) for slot in slots], places)
    else:
        columns = [gathered(w, places)] if len(slots) == 1 else narrow_columns(w, places, len(slots))
        for slot, column in zip(slots, columns, strict=True):
            w.store(column, "%columns", slot)


def gathered(w: Writer, places: list[str]) -> str:
    """Gather a vector from the addresses of its lanes."""
    value = "poison"
    for lane, place in enumerate(places):
        x = w.let(f"load {w.number}, ptr {place}, align {w.size}")
        value = w.let(f"insertelement {w.vector} {value}, {w.number} {x}, i32 {lane}")
    return value


def scattered(w: Writer, value: str, places: list[str]) -> None:
    """Scatter a vector to the addresses of its lanes."""
    for lane, place in enumerate(places):
        x = w.let(f"extractelement {w.vector} {value}, i32 {lane}")
        w.do(f"store {w.number} {x}, ptr {place}, align {w.size}")


def strided_copies(kind: VectorType, names: tuple[str, str] = ("gather", "scatter")) -> str:
    """`gather` and `scatter`: copy the rows of a block with any strides, number by number, into or from its lanes.

    Lanes beyond the `last` row repeat it. As separate functions they are compiled once, not once per lane.
    """
    axes = ", ".join(f"i64 %n{d}, i64 %s{d}" for d in range(CORE_DIMENSIONS))
    texts = []
    for name, written in zip(names, (False, True), strict=True):
        w = Writer(kind)
        w.label("entry")
        w.do("br label %lanes")
        w.label("lanes")
        w.do("%l = phi i64 [0, %entry], [%after, %each]")
        number = w.let("call i64 @llvm.umin.i64(i64 %l, i64 %last)")
        row = w.at("%first", w.let(f"mul i64 {number}, %step"))
        lane = w.at("%block", w.let(f"mul i64 %l, {w.size}"))
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
        place = w.let(f"mul i64 {w.let(f'zext i32 {slot} to i64')}, {w.bytes}")
        ends = [w.at(row, offset), w.at(lane, place)]
        source, sink = ends[::-1] if written else ends
        x = w.let(f"load {w.number}, ptr {source}, align {w.size}")
        w.do(f"store {w.number} {x}, ptr {sink}, align {w.size}")
        w.do(f"br label %e{CORE_DIMENSIONS - 1}")
        for d in reversed(range(CORE_DIMENSIONS)):
            w.label(f"e{d}")
            w.do(f"%j{d} = add i64 %i{d}, 1")
            after = "each" if d == 0 else f"e{d - 1}"
            w.do(f"br i1 {w.let(f'icmp slt i64 %j{d}, %n{d}')}, label %d{d}, label %{after}")
        w.label("each")
        w.do("%after = add i64 %l, 1")
        w.do(f"br i1 {w.let(f'icmp ult i64 %after, {w.lanes}')}, label %lanes, label %out")
        w.label("out")
        w.do("ret void")
        rows = "ptr %first, i64 %step, i64 %last"
        head = f"internal void @{name}({rows}, ptr %block, ptr %slots, {axes}) noinline"
        texts.append(function(head, w.lines))
    return "".join(texts)


def lane_copy(kind: VectorType) -> str:
    """`lane(row, lane, slots, count)`: a contiguous row from the slots of one lane; the loop is unrolled by four."""
    w = Writer(kind)
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
    place = w.let(f"mul i64 {w.let(f'zext i32 {slot} to i64')}, {w.bytes}")
    x = w.let(f"load {w.number}, ptr {w.at('%lane', place)}, align {w.size}")
    place = w.let(f"getelementptr {w.number}, ptr %row, i64 {k}")
    w.do(f"store {w.number} {x}, ptr {place}, align {w.size}")


def non_temporal_copy(kind: VectorType) -> str:
    """`non_temporal_copy(to, from, bytes)`: by whole vectors where `to` is aligned to them, by pairs at both ends.

    Addresses must be aligned to a `PAIR`, and the size must be a whole number of them.
    """
    w = Writer(kind)
    vector, pair = w.bytes, f"<{PAIR // w.size} x {w.number}>"
    w.label("entry")
    odd = w.let(f"and i64 {w.let('ptrtoint ptr %to to i64')}, {vector - 1}")
    head = w.let(f"and i64 {w.let(f'sub i64 {vector}, {odd}')}, {vector - 1}")
    w.do(f"%head = call i64 @llvm.umin.i64(i64 {head}, i64 %bytes)")
    rest = w.let("sub i64 %bytes, %head")
    w.do(f"%end = add i64 %head, {w.let(f'and i64 {rest}, -{vector}')}")
    w.do("br label %before")
    for name, after, piece_type, size, start, end in (
        ("before", "vectors", pair, PAIR, "0", "%head"),
        ("vectors", "behind", w.vector, vector, "%head", "%end"),
        ("behind", "out", pair, PAIR, "%end", "%bytes"),
    ):
        origin = {"before": "entry", "vectors": "before", "behind": "vectors"}[name]
        w.label(name)
        w.do(f"%at_{name} = phi i64 [{start}, %{origin}], [%next_{name}, %go_{name}]")
        more = w.let(f"icmp ult i64 %at_{name}, {end}")
        w.do(f"br i1 {more}, label %go_{name}, label %{after}")
        w.label(f"go_{name}")
        piece = w.let(f"load {piece_type}, ptr {w.at('%from', f'%at_{name}')}, align 16")
        w.do(f"store {piece_type} {piece}, ptr {w.at('%to', f'%at_{name}')}, align {size}, !nontemporal !1")
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


def inner_loop(
    kind: VectorType, arrays: Sequence[Operand], in_slots: int, out_slots: int, x86: bool, rows: RowsToRows | None
) -> str:
    """`loop(args, dimensions, steps, context)`: NumPy's inner loop.

    On x86 the floating-point status flags are restored at the end, so that NumPy does not warn: a result that is not
    finite is confined to its own row. This, and non-temporal stores, are implemented for x86 only.
    """
    w = Writer(kind)
    w.label("entry")
    w.stack_array("in", in_slots)
    w.stack_array("out", out_slots)
    if x86:
        w.do("%flags = alloca i32")
        w.do("call void @llvm.x86.sse.stmxcsr(ptr %flags)")
    read_arguments(w, arrays)
    staged = [a for a in arrays if x86 and a.written and w.bytes * a.size <= tuning.LARGEST_STAGED_BLOCK]
    numbers = sum(a.size for a in arrays if a.written)
    for a in staged:
        _large_results(w, a, numbers)
    if rows is not None:
        _contiguous_and_apart(w, arrays, rows.uniform)
    begin_block(w)
    if rows is not None:
        _rows_to_rows(w, arrays, staged, rows.uniform)
    _columns(w, arrays, staged)
    w.do("br label %done")
    w.label("done")
    origins = f"[{w.lanes}, %moved{arrays[-1].index}]"  # results come last
    if rows is not None:
        origins += f", [%by_rows, %{f'copied{staged[-1].index}' if staged else 'computed'}]"
    w.do(f"%further = phi i64 {origins}")
    w.do("%next = add i64 %i, %further")
    w.do(f"br i1 {w.let('icmp slt i64 %next, %count')}, label %block, label %end")
    w.label("end")
    if staged:
        w.do("fence seq_cst")  # orders the non-temporal stores, for every thread
    if x86:
        w.do("call void @llvm.x86.sse.ldmxcsr(ptr %flags)")
    w.do("ret void")
    return framed("void @loop(ptr %args, ptr %dimensions, ptr %steps, ptr %context)", w)


def _columns(w: Writer, arrays: Sequence[Operand], staged: Sequence[Operand]) -> None:
    """Compute one block through columns on the stack."""
    for a in (a for a in arrays if not a.written):
        move(w, a)
    for a in staged:
        _prefetch_results(w, a)
    w.do("call void @body(ptr %in, ptr %out, ptr %context)")
    for a in (a for a in arrays if a.written):
        move(w, a, stage=a in staged)


def begin_block(w: Writer) -> None:
    """Begin the loop over blocks: %i is the first configuration, %left how many remain, %full whether they fill it."""
    w.do("br label %start")
    w.label("start")
    w.do(f"br i1 {w.let('icmp sgt i64 %count, 0')}, label %block, label %end")
    w.label("block")
    w.do("%i = phi i64 [0, %start], [%next, %done]")
    w.do("%left = sub i64 %count, %i")
    w.do(f"%full = icmp uge i64 %left, {w.lanes}")
    w.do("%last = sub i64 %left, 1")


def read_arguments(w: Writer, arrays: Sequence[Operand]) -> None:
    """Define %count, and %base, %step and %contiguous of each array."""
    w.do("%count = load i64, ptr %dimensions")
    for a in arrays:
        w.do(f"%base{a.index} = load ptr, ptr {w.at('%args', 8 * a.index)}")
        w.do(f"%step{a.index} = load i64, ptr {w.at('%steps', 8 * a.index)}")
        _contiguous(w, a)


def _contiguous(w: Writer, a: Operand) -> None:
    """%contiguous: whether the array's core axes are in C order without gaps; an axis of length one always is."""
    contiguous, expected = "true", w.size
    for axis in reversed(range(len(a.shape))):
        name = f"%core{a.index}_{axis}"
        w.do(f"{name} = load i64, ptr {w.at('%steps', 8 * (a.first_stride + axis))}")
        if a.shape[axis] > 1:
            contiguous = w.let(f"and i1 {contiguous}, {w.let(f'icmp eq i64 {name}, {expected}')}")
        expected *= a.shape[axis]
    w.do(f"%contiguous{a.index} = and i1 {contiguous}, true")


def _large_results(w: Writer, a: Operand, numbers: int) -> None:
    """%prefetched, %non_temporal: whether the results have no gaps and are large enough for each.

    Non-temporal stores need addresses that are aligned to a `PAIR`.
    """
    w.stack_array(f"staged{a.index}", a.size, PAGE)
    size = w.let(f"mul i64 %count, {w.size * numbers}")
    no_gaps = w.let(f"icmp eq i64 %step{a.index}, {w.size * a.size}")
    odd = w.let(f"and i64 {w.let(f'ptrtoint ptr %base{a.index} to i64')}, {PAIR - 1}")
    aligned = w.let(f"and i1 {no_gaps}, {w.let(f'icmp eq i64 {odd}, 0')}")
    beyond_cache = w.let(f"icmp ugt i64 {size}, {tuning.NON_TEMPORAL_FROM}")
    w.do(f"%non_temporal{a.index} = and i1 {aligned}, {beyond_cache}")
    large = w.let(f"icmp ugt i64 {size}, {tuning.PREFETCHED_FROM}")
    between = w.let(f"and i1 {large}, {w.let(f'xor i1 %non_temporal{a.index}, true')}")
    w.do(f"%prefetched{a.index} = and i1 {no_gaps}, {between}")


def _contiguous_and_apart(w: Writer, arrays: Sequence[Operand], uniform: Collection[int]) -> None:
    """%rows: whether every array is contiguous (or uniform, if in `uniform`), and no result overlaps an input.

    If so, %uniform holds each uniform number broadcast to all lanes.
    """
    rows = w.let(f"icmp uge i64 %count, {w.lanes}")
    for a in arrays:
        rows = w.let(f"and i1 {rows}, %contiguous{a.index}")
        step, count = (0, "1") if a.index in uniform else (w.size * a.size, "%count")
        rows = w.let(f"and i1 {rows}, {w.let(f'icmp eq i64 %step{a.index}, {step}')}")
        size = w.let(f"mul i64 {count}, {w.size * a.size}")
        w.do(f"%stop{a.index} = getelementptr i8, ptr %base{a.index}, i64 {size}")
    for a in (a for a in arrays if not a.written):
        for b in (b for b in arrays if b.written):
            before = w.let(f"icmp ule ptr %stop{a.index}, %base{b.index}")
            apart = w.let(f"or i1 {before}, {w.let(f'icmp ule ptr %stop{b.index}, %base{a.index}')}")
            rows = w.let(f"and i1 {rows}, {apart}")
    w.do(f"%rows = and i1 {rows}, true")
    w.do("br i1 %rows, label %spread, label %start")
    w.label("spread")
    for a in (a for a in arrays if a.index in uniform):
        w.stack_array(f"uniform{a.index}", a.size)
        for k in range(a.size):
            x = w.let(f"load {w.number}, ptr {w.at(f'%base{a.index}', w.size * k)}, align {w.size}")
            w.store(w.broadcast(x), f"%uniform{a.index}", k)


def _rows_to_rows(w: Writer, arrays: Sequence[Operand], staged: Sequence[Operand], uniform: Collection[int]) -> None:
    """%by_rows: how many configurations `rows_to_rows` has done; if none, one block goes through columns.

    Results of non-temporal stores are staged on the stack, one block at a time.
    """
    w.do(f"br i1 {w.let('and i1 %full, %rows')}, label %by_rows_to_rows, label %by_columns")
    w.label("by_rows_to_rows")
    firsts = {a.index: w.at(f"%base{a.index}", w.let(f"mul i64 %i, {w.size * a.size}")) for a in arrays}
    places = firsts | {index: f"%uniform{index}" for index in uniform}
    count = w.let(f"udiv i64 %left, {w.lanes}")
    for a in staged:
        places[a.index] = w.let(f"select i1 %non_temporal{a.index}, ptr %staged{a.index}, ptr {firsts[a.index]}")
        count = w.let(f"select i1 %non_temporal{a.index}, i64 1, i64 {count}")
    pointers = ", ".join(f"ptr {places[a.index]}" for a in arrays)
    prefetching = f"%prefetched{staged[0].index}" if staged else "false"
    blocks = w.let(f"call i64 @rows_to_rows({pointers}, i64 {count}, i1 {prefetching})")
    w.do(f"%by_rows = mul i64 {blocks}, {w.lanes}")
    w.do(f"br i1 {w.let('icmp eq i64 %by_rows, 0')}, label %by_columns, label %computed")
    w.label("computed")
    for a in staged:
        w.do(f"br i1 %non_temporal{a.index}, label %copy{a.index}, label %copied{a.index}")
        w.label(f"copy{a.index}")
        _non_temporal_copy(w, a, firsts[a.index])
        w.do(f"br label %copied{a.index}")
        w.label(f"copied{a.index}")
    w.do("br label %done")
    w.label("by_columns")


def _non_temporal_copy(w: Writer, a: Operand, to: str) -> None:
    w.do(f"call void @non_temporal_copy(ptr {to}, ptr %staged{a.index}, i64 {w.bytes * a.size})")


def _stage_by_parts(w: Writer, a: Operand, array: str, first: str) -> None:
    """Transpose and copy part by part, so that stores drain while the next part is transposed.

    Copies begin and end at cache-line boundaries, except at the two ends of the block: a part of a row ends with its
    last whole line, and a row ends with the line it shares with the next row, whose first numbers are already staged.
    """
    size, ends = w.size * a.size, parts(a, w.lanes)
    begins = w.let("icmp eq i64 %i, 0")  # constants are staged with the first block

    def line(row: int, offset: int, up: bool) -> str:
        """The address of the cache line at an offset in a row of the block."""
        raised = w.at(first, row * size + offset + (CACHE_LINE - 1 if up else 0))
        return w.let(f"call ptr @llvm.ptrmask.p0.i64(ptr {raised}, i64 -{CACHE_LINE})")

    rows = [first, *(line(row, 0, up=True) for row in range(1, w.lanes)), w.at(first, w.lanes * size)]
    starts = rows[:-1]
    for number, end in enumerate(ends):
        w.do(f"call void @rows{a.index}_{number}(ptr {array}, ptr %staged{a.index}, i64 {size}, i1 {begins})")
        last = number + 1 == len(ends)
        stops = rows[1:] if last else [line(row, w.size * end, up=False) for row in range(w.lanes)]
        for start, stop in zip(starts, stops, strict=True) if len(ends) > 1 else [(first, rows[-1])]:
            at, until, begin = (w.let(f"ptrtoint ptr {pointer} to i64") for pointer in (start, stop, first))
            staged = w.at(f"%staged{a.index}", w.let(f"sub i64 {at}, {begin}"))
            size_ = w.let(f"sub i64 {until}, {at}")
            w.do(f"call void @non_temporal_copy(ptr {start}, ptr {staged}, i64 {size_})")
        starts = stops


def _prefetch_results(w: Writer, a: Operand) -> None:
    """Prefetch the cache lines of the block's results, before the arithmetic."""
    first = w.at(f"%base{a.index}", w.let(f"mul i64 %i, %step{a.index}"))
    w.do(f"br i1 %prefetched{a.index}, label %prefetch{a.index}, label %fetching{a.index}")
    w.label(f"prefetch{a.index}")
    size = w.bytes * a.size
    if size <= tuning.UNROLLED_PREFETCH * CACHE_LINE:
        prefetch(w, first, size)
    else:
        w.do(f"call void @prefetch_lines(ptr {first}, i64 {size})")
    w.do(f"br label %fetching{a.index}")
    w.label(f"fetching{a.index}")


def move(w: Writer, a: Operand, stage: bool = False) -> None:
    """Pack or unpack one block of one array: by rows if it is full and contiguous, otherwise number by number."""
    array, name = ("%out", "scatter") if a.written else ("%in", "gather")
    first = w.at(f"%base{a.index}", w.let(f"mul i64 %i, %step{a.index}"))
    by_rows = w.let(f"and i1 %full, %contiguous{a.index}")
    w.do(f"br i1 {by_rows}, label %rows{a.index}, label %numbers{a.index}")
    w.label(f"rows{a.index}")
    if stage:
        w.do(f"br i1 %non_temporal{a.index}, label %stage{a.index}, label %direct{a.index}")
        w.label(f"stage{a.index}")
        _stage_by_parts(w, a, array, first)
        w.do(f"br label %moved{a.index}")
        w.label(f"direct{a.index}")
    w.do(f"call void @rows{a.index}(ptr {array}, ptr {first}, i64 %step{a.index}, i1 true)")
    w.do(f"br label %moved{a.index}")
    w.label(f"numbers{a.index}")
    rows = f"ptr {first}, i64 %step{a.index}, i64 %last"
    w.do(f"call void @{name}({rows}, ptr {array}, ptr @slots{a.index}, {axes(a)})")
    w.do(f"br label %moved{a.index}")
    w.label(f"moved{a.index}")


def axes(a: Operand) -> str:
    """The lengths and strides of the array's core axes, as arguments of the strided copies."""
    sizes = [*a.shape, *[1] * (CORE_DIMENSIONS - len(a.shape))]
    strides = [*(f"%core{a.index}_{axis}" for axis in range(len(a.shape))), *["0"] * CORE_DIMENSIONS]
    return ", ".join(f"i64 {n}, i64 {s}" for n, s in zip(sizes, strides, strict=False))
