"""Arrays -> vectors -> arrays: the gufunc's inner loop around a `body`.

A block is one vector of configurations. Rows whose numbers lie side by side in memory are read and
written as vectors and transposed with shuffles; rows with other strides go number by number. So does
the last block of a batch that is no multiple of the vector: its spare lanes repeat the last
configuration, and there is no second program for the tail. A block reads all its rows before it
writes any, and no row twice, so a result may take the place of an input.

Where there is a function `whole` (see `x86`), it takes the blocks of arrays that lie in one piece
each, apart from one another, if no angle in them is too large for it; parameters are then the same
for all configurations.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from armdyn.backends.llvm_text import Writer, function
from armdyn.graph.program import Port

LONGEST = 64  # squares a function
LINE = 64  # bytes of a line of the cache
# Bytes of all results, by what was measured: beyond the first the lines they go to are asked for ahead (up to twice as
# fast; below, up to a tenth slower), beyond the second they are written past the cache (a quarter faster; below, up to
# half slower).
ASKED_FOR, PAST_CACHE = 10 * 2**20, 24 * 2**20
PAGE = 4096  # bytes; a vector stored across its end takes as long as twenty others, and what waits for it longer
LARGEST_BLOCK = 2**16  # bytes that are put together on the stack
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
        """Numbers a configuration."""
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


def transposed(w: Writer, rows: list[str]) -> list[str]:
    """The columns of the square of numbers that begins at each of the addresses `rows`.

    Half of the work is in how the square is read: half a vector from one row and half from another
    make one vector. The rest is log2(lanes) - 1 rounds of shuffles.
    """
    lanes, half = w.lanes, w.lanes // 2
    square = [
        _joined(w, w.at(rows[i], 8 * side), w.at(rows[i + half], 8 * side)) for side in (0, half) for i in range(half)
    ]
    while half > 1:
        half //= 2
        for i in (i for i in range(lanes) if not i & half):
            a, b = square[i], square[i + half]
            low = [p if not p & half else lanes + p - half for p in range(lanes)]
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
    """`rows<index>(scratch, first, between)`: contiguous rows into the slots of `scratch`, or back.

    A function of its own, so that LLVM knows nothing of the scratch and does not widen the half
    loads: a load that spans two fresh stores waits for both to reach the cache. A long row is shared
    by several functions, since LLVM's time grows faster than a function's length.
    """
    squares = groups(operand.size, lanes)
    write, steps = (_square, squares) if squares else (_single, list(range(operand.size)))
    arguments = "ptr noalias %scratch, ptr noalias %first, i64 %between"
    parts, calls = [], Writer(lanes)
    calls.label("entry")
    for number, begin in enumerate(range(0, len(steps), LONGEST)):
        w = Writer(lanes)
        w.label("entry")
        rows = ["%first"]
        for _ in range(lanes - 1):
            rows.append(w.at(rows[-1], "%between"))
        for start in steps[begin : begin + LONGEST]:
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
        columns = [w.at("%scratch", 8 * w.lanes * slot) for slot in slots]
        for part, value in zip(row_parts, transposed(w, columns), strict=True):
            w.do(f"store {w.vector} {value}, ptr {part}, align 8")
    else:
        for slot, column in zip(slots, transposed(w, row_parts), strict=True):
            w.store(column, "%scratch", slot)


def _single(w: Writer, operand: Operand, start: int, rows: list[str]) -> None:
    """One number from each row or into each."""
    places = [w.at(row, 8 * start) for row in rows]
    if operand.written:
        value = w.load("%scratch", operand.slots[start])
        for lane, place in enumerate(places):
            w.do(f"store double {w.let(f'extractelement {w.vector} {value}, i32 {lane}')}, ptr {place}, align 8")
        return
    value = "poison"
    for lane, place in enumerate(places):
        x = w.let(f"load double, ptr {place}, align 8")
        value = w.let(f"insertelement {w.vector} {value}, double {x}, i32 {lane}")
    w.store(value, "%scratch", operand.slots[start])


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


def streaming_copy(lanes: int) -> str:
    """`stream(to, from, bytes)`: a copy past the cache, by whole vectors once `to` is aligned to them, else by pairs.

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
    return function("internal void @stream(ptr noalias %to, ptr noalias %from, i64 %bytes) noinline", w.lines)


def slot_tables(arrays: Sequence[Operand]) -> str:
    """Where each number of each array has its slot, for the number-by-number path."""
    lines = []
    for operand in arrays:
        numbers = ", ".join(f"i32 {slot}" for slot in operand.slots)
        lines.append(f"@slots{operand.index} = internal constant [{operand.size} x i32] [{numbers}]")
    return "\n".join(lines) + "\n"


def inner_loop(
    lanes: int,
    arrays: Sequence[Operand],
    in_slots: int,
    out_slots: int,
    quiet: bool,
    shared: Collection[int] | None = None,
) -> str:
    """`loop(args, dimensions, steps, context)`: NumPy's inner loop.

    `quiet` puts the flags of floating-point exceptions back as they were, so that NumPy warns of
    nothing: what is not finite is there to see, in its own row. Only x86 has an instruction for it here.
    `shared` are the inputs that the function `whole` takes to be the same for all configurations; None: there is none.
    """
    w = Writer(lanes)
    w.label("entry")
    w.scratch("in", in_slots)
    w.scratch("out", out_slots)
    if quiet:
        w.do("%flags = alloca i32")
        w.do("call void @llvm.x86.sse.stmxcsr(ptr %flags)")
    w.do("%count = load i64, ptr %dimensions")
    for a in arrays:
        w.do(f"%base{a.index} = load ptr, ptr {w.at('%args', 8 * a.index)}")
        w.do(f"%step{a.index} = load i64, ptr {w.at('%steps', 8 * a.index)}")
        _contiguous(w, a)
    streams = [a for a in arrays if quiet and a.written and 8 * lanes * a.size <= LARGEST_BLOCK]
    numbers = sum(a.size for a in arrays if a.written)
    for a in streams:
        _reach(w, a, numbers)
    if shared is not None:
        _one_piece(w, arrays, shared)
    w.do("br label %start")
    w.label("start")
    w.do(f"br i1 {w.let('icmp sgt i64 %count, 0')}, label %block, label %end")
    w.label("block")
    w.do("%i = phi i64 [0, %start], [%next, %done]")
    w.do("%left = sub i64 %count, %i")
    w.do(f"%full = icmp uge i64 %left, {lanes}")
    w.do("%last = sub i64 %left, 1")
    if shared is not None:
        _whole(w, arrays, streams, shared)
    for a in (a for a in arrays if not a.written):
        _move(w, a)
    for a in streams:
        _ahead(w, a)
    w.do("call void @body(ptr %in, ptr %out, ptr %context)")
    for a in (a for a in arrays if a.written):
        _move(w, a, stream=a in streams)
    w.do("br label %did")
    w.label("did")
    w.do("br label %done")
    w.label("done")
    ways = f"[{lanes}, %did]"
    if shared is not None:
        ways += f", [%by_whole, %{f'sent{streams[-1].index}' if streams else 'made'}]"
    w.do(f"%further = phi i64 {ways}")
    w.do("%next = add i64 %i, %further")
    w.do(f"br i1 {w.let('icmp slt i64 %next, %count')}, label %block, label %end")
    w.label("end")
    if streams:
        w.do("fence seq_cst")  # what went past the cache is there for every thread
    if quiet:
        w.do("call void @llvm.x86.sse.ldmxcsr(ptr %flags)")
    w.do("ret void")
    return function("void @loop(ptr %args, ptr %dimensions, ptr %steps, ptr %context)", w.lines)


def _contiguous(w: Writer, a: Operand) -> None:
    """%whole: whether the array's own axes lie in C order without gaps; an axis of one always does."""
    whole, expected = "true", 8
    for axis in reversed(range(len(a.shape))):
        name = f"%core{a.index}_{axis}"
        w.do(f"{name} = load i64, ptr {w.at('%steps', 8 * (a.first_stride + axis))}")
        if a.shape[axis] > 1:
            whole = w.let(f"and i1 {whole}, {w.let(f'icmp eq i64 {name}, {expected}')}")
        expected *= a.shape[axis]
    w.do(f"%whole{a.index} = and i1 {whole}, true")


def _reach(w: Writer, a: Operand, numbers: int) -> None:
    """%ahead, %past: whether the array lies in one piece, and how far beyond the nearer caches all results reach.

    Past the cache go pairs of numbers.
    """
    w.scratch(f"block{a.index}", a.size, PAGE)
    size = w.let(f"mul i64 %count, {8 * numbers}")
    one_piece = w.let(f"icmp eq i64 %step{a.index}, {8 * a.size}")
    odd = w.let(f"and i64 {w.let(f'ptrtoint ptr %base{a.index} to i64')}, 15")
    on_pairs = w.let(f"and i1 {one_piece}, {w.let(f'icmp eq i64 {odd}, 0')}")
    w.do(f"%past{a.index} = and i1 {on_pairs}, {w.let(f'icmp ugt i64 {size}, {PAST_CACHE}')}")
    between = w.let(f"and i1 {w.let(f'icmp ugt i64 {size}, {ASKED_FOR}')}, {w.let(f'xor i1 %past{a.index}, true')}")
    w.do(f"%ahead{a.index} = and i1 {one_piece}, {between}")


def _one_piece(w: Writer, arrays: Sequence[Operand], shared: Collection[int]) -> None:
    """%pieces: whether every array lies in one piece, or is shared if it should be, and no result lies on an input.

    Then %shared holds each shared number in every lane.
    """
    pieces = w.let(f"icmp uge i64 %count, {w.lanes}")
    for a in arrays:
        pieces = w.let(f"and i1 {pieces}, %whole{a.index}")
        step, rows = (0, "1") if a.index in shared else (8 * a.size, "%count")
        pieces = w.let(f"and i1 {pieces}, {w.let(f'icmp eq i64 %step{a.index}, {step}')}")
        w.do(f"%stop{a.index} = getelementptr i8, ptr %base{a.index}, i64 {w.let(f'mul i64 {rows}, {8 * a.size}')}")
    for a in (a for a in arrays if not a.written):
        for b in (b for b in arrays if b.written):
            before = w.let(f"icmp ule ptr %stop{a.index}, %base{b.index}")
            apart = w.let(f"or i1 {before}, {w.let(f'icmp ule ptr %stop{b.index}, %base{a.index}')}")
            pieces = w.let(f"and i1 {pieces}, {apart}")
    w.do(f"%pieces = and i1 {pieces}, true")
    w.do("br i1 %pieces, label %share, label %start")
    w.label("share")
    for a in (a for a in arrays if a.index in shared):
        w.scratch(f"shared{a.index}", a.size)
        for k in range(a.size):
            x = w.let(f"load double, ptr {w.at(f'%base{a.index}', 8 * k)}, align 8")
            first = w.let(f"insertelement {w.vector} poison, double {x}, i32 0")
            lanes = f"{w.lanes_mask} zeroinitializer"
            every = w.let(f"shufflevector {w.vector} {first}, {w.vector} poison, {lanes}")
            w.store(every, f"%shared{a.index}", k)


def _whole(w: Writer, arrays: Sequence[Operand], streams: Sequence[Operand], shared: Collection[int]) -> None:
    """%by_whole: the configurations done by `whole`; where it can do none, one block goes the other way.

    What goes past the cache is put together aside, a block at a time.
    """
    w.do(f"br i1 {w.let('and i1 %full, %pieces')}, label %whole, label %columns")
    w.label("whole")
    firsts = {a.index: w.at(f"%base{a.index}", w.let(f"mul i64 %i, {8 * a.size}")) for a in arrays}
    places = firsts | {index: f"%shared{index}" for index in shared}
    count = w.let(f"udiv i64 %left, {w.lanes}")
    for a in streams:
        places[a.index] = w.let(f"select i1 %past{a.index}, ptr %block{a.index}, ptr {firsts[a.index]}")
        count = w.let(f"select i1 %past{a.index}, i64 1, i64 {count}")
    pointers = ", ".join(f"ptr {places[a.index]}" for a in arrays)
    ahead = f"%ahead{streams[0].index}" if streams else "false"
    blocks = w.let(f"call i64 @whole({pointers}, i64 {count}, i1 {ahead})")
    w.do(f"%by_whole = mul i64 {blocks}, {w.lanes}")
    w.do(f"br i1 {w.let('icmp eq i64 %by_whole, 0')}, label %columns, label %made")
    w.label("made")
    for a in streams:
        w.do(f"br i1 %past{a.index}, label %send{a.index}, label %sent{a.index}")
        w.label(f"send{a.index}")
        w.do(f"call void @stream(ptr {firsts[a.index]}, ptr %block{a.index}, i64 {8 * w.lanes * a.size})")
        w.do(f"br label %sent{a.index}")
        w.label(f"sent{a.index}")
    w.do("br label %done")
    w.label("columns")


def _ahead(w: Writer, a: Operand) -> None:
    """Ask for the lines of the cache that the block's results will go to, while there is something else to do."""
    first = w.at(f"%base{a.index}", w.let(f"mul i64 %i, %step{a.index}"))
    w.do(f"br i1 %ahead{a.index}, label %ask{a.index}, label %asked{a.index}")
    w.label(f"ask{a.index}")
    ask(w, first, 8 * w.lanes * a.size)
    w.do(f"br label %asked{a.index}")
    w.label(f"asked{a.index}")


def ask(w: Writer, first: str, size: int) -> None:
    """Ask for the lines of the cache that some bytes lie in, to write there."""
    for offset in range(0, size + LINE - 1, LINE):
        w.do(f"call void @llvm.prefetch.p0(ptr {w.at(first, offset)}, i32 1, i32 3, i32 1)")


def _move(w: Writer, a: Operand, stream: bool = False) -> None:
    """One block of one array, by rows where they are contiguous and all there, otherwise number by number."""
    array, name = ("%out", "scatter") if a.written else ("%in", "gather")
    first = w.at(f"%base{a.index}", w.let(f"mul i64 %i, %step{a.index}"))
    by_rows = w.let(f"and i1 %full, %whole{a.index}")
    w.do(f"br i1 {by_rows}, label %rows{a.index}, label %numbers{a.index}")
    w.label(f"rows{a.index}")
    if stream:  # the block is put together aside and goes out in one piece
        block = f"%block{a.index}"
        w.do(f"br i1 %past{a.index}, label %aside{a.index}, label %through{a.index}")
        w.label(f"aside{a.index}")
        w.do(f"call void @rows{a.index}(ptr {array}, ptr {block}, i64 {8 * a.size})")
        w.do(f"call void @stream(ptr {first}, ptr {block}, i64 {8 * w.lanes * a.size})")
        w.do(f"br label %moved{a.index}")
        w.label(f"through{a.index}")
    w.do(f"call void @rows{a.index}(ptr {array}, ptr {first}, i64 %step{a.index})")
    w.do(f"br label %moved{a.index}")
    w.label(f"numbers{a.index}")
    sizes = [*a.shape, *[1] * (CORE_DIMENSIONS - len(a.shape))]
    strides = [*(f"%core{a.index}_{axis}" for axis in range(len(a.shape))), *["0"] * CORE_DIMENSIONS]
    axes = ", ".join(f"i64 {n}, i64 {s}" for n, s in zip(sizes, strides, strict=False))
    for lane in range(w.lanes):
        number = w.let(f"call i64 @llvm.umin.i64(i64 {lane}, i64 %last)")
        row = w.at(first, w.let(f"mul i64 {number}, %step{a.index}"))
        w.do(f"call void @{name}(ptr {row}, ptr {w.at(array, 8 * lane)}, ptr @slots{a.index}, {axes})")
    w.do(f"br label %moved{a.index}")
    w.label(f"moved{a.index}")
