"""NumPy's inner loop: a batch, block by block.

A block reads all its rows before it writes any, and no row is read twice, so an output may be the same array as an
input. The function `rows_to_rows`, if there is one, computes the blocks whose arrays are contiguous and do not overlap,
whose uniform inputs are the same for all configurations, and whose angles are small enough.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from armdyn.codegen import tuning
from armdyn.codegen.llvm.blocks import CORE_DIMENSIONS, Operand, parts
from armdyn.codegen.llvm.ir import CACHE_LINE, Writer, function, prefetch
from armdyn.codegen.llvm.straight_line import RowsToRows

PAGE = 4096  # bytes; a vector store that crosses a page boundary takes as long as twenty others


def inner_loop(
    lanes: int, arrays: Sequence[Operand], in_slots: int, out_slots: int, x86: bool, rows: RowsToRows | None
) -> str:
    """`loop(args, dimensions, steps, context)`: NumPy's inner loop.

    On x86 the floating-point status flags are restored at the end, so that NumPy does not warn: a result that is not
    finite is confined to its own row. This, and non-temporal stores, are implemented for x86 only.
    """
    w = Writer(lanes)
    w.label("entry")
    w.stack_array("in", in_slots)
    w.stack_array("out", out_slots)
    if x86:
        w.do("%flags = alloca i32")
        w.do("call void @llvm.x86.sse.stmxcsr(ptr %flags)")
    read_arguments(w, arrays)
    staged = [a for a in arrays if x86 and a.written and 8 * lanes * a.size <= tuning.LARGEST_STAGED_BLOCK]
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
    origins = f"[{lanes}, %moved{arrays[-1].index}]"  # results come last
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
    return function("void @loop(ptr %args, ptr %dimensions, ptr %steps, ptr %context)", w.lines)


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
    contiguous, expected = "true", 8
    for axis in reversed(range(len(a.shape))):
        name = f"%core{a.index}_{axis}"
        w.do(f"{name} = load i64, ptr {w.at('%steps', 8 * (a.first_stride + axis))}")
        if a.shape[axis] > 1:
            contiguous = w.let(f"and i1 {contiguous}, {w.let(f'icmp eq i64 {name}, {expected}')}")
        expected *= a.shape[axis]
    w.do(f"%contiguous{a.index} = and i1 {contiguous}, true")


def _large_results(w: Writer, a: Operand, numbers: int) -> None:
    """%prefetched, %non_temporal: whether the results have no gaps and are large enough for each.

    Non-temporal stores need aligned pairs of numbers.
    """
    w.stack_array(f"staged{a.index}", a.size, PAGE)
    size = w.let(f"mul i64 %count, {8 * numbers}")
    no_gaps = w.let(f"icmp eq i64 %step{a.index}, {8 * a.size}")
    odd = w.let(f"and i64 {w.let(f'ptrtoint ptr %base{a.index} to i64')}, 15")
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
        step, count = (0, "1") if a.index in uniform else (8 * a.size, "%count")
        rows = w.let(f"and i1 {rows}, {w.let(f'icmp eq i64 %step{a.index}, {step}')}")
        w.do(f"%stop{a.index} = getelementptr i8, ptr %base{a.index}, i64 {w.let(f'mul i64 {count}, {8 * a.size}')}")
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
            x = w.let(f"load double, ptr {w.at(f'%base{a.index}', 8 * k)}, align 8")
            w.store(w.broadcast(x), f"%uniform{a.index}", k)


def _rows_to_rows(w: Writer, arrays: Sequence[Operand], staged: Sequence[Operand], uniform: Collection[int]) -> None:
    """%by_rows: how many configurations `rows_to_rows` has done; if none, one block goes through columns.

    Results of non-temporal stores are staged on the stack, one block at a time.
    """
    w.do(f"br i1 {w.let('and i1 %full, %rows')}, label %by_rows_to_rows, label %by_columns")
    w.label("by_rows_to_rows")
    firsts = {a.index: w.at(f"%base{a.index}", w.let(f"mul i64 %i, {8 * a.size}")) for a in arrays}
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
    w.do(f"call void @non_temporal_copy(ptr {to}, ptr %staged{a.index}, i64 {8 * w.lanes * a.size})")


def _stage_by_parts(w: Writer, a: Operand, array: str, first: str) -> None:
    """Transpose and copy part by part, so that stores drain while the next part is transposed.

    Copies begin and end at cache-line boundaries, except at the two ends of the block: a part of a row ends with its
    last whole line, and a row ends with the line it shares with the next row, whose first numbers are already staged.
    """
    size, ends = 8 * a.size, parts(a, w.lanes)
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
        stops = rows[1:] if last else [line(row, 8 * end, up=False) for row in range(w.lanes)]
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
    size = 8 * w.lanes * a.size
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
