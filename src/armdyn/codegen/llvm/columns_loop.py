"""NumPy's inner loop of a column program: the head for a whole block, then the columns, one configuration at a time."""

from __future__ import annotations

from collections.abc import Sequence

from armdyn.codegen import tuning
from armdyn.codegen.llvm.blocks import Operand
from armdyn.codegen.llvm.ir import CACHE_LINE, Writer, function
from armdyn.codegen.llvm.loop import axes, begin_block, move, read_arguments


def columns_loop(lanes: int, arrays: Sequence[Operand], work: Operand, in_slots: int, out_slots: int, x86: bool) -> str:
    """`loop(args, dimensions, steps, context)`: see `loop.inner_loop`.

    A block reads all its rows before it writes any. Results in C order are written in place, or by non-temporal stores
    if they are large and have no gaps between them; results with other strides go through a buffer on the stack.
    """
    results = [a for a in arrays if a.written]
    w = Writer(lanes)
    w.label("entry")
    w.stack_array("in", in_slots)
    w.stack_array("out", out_slots)
    w.stack_array("work", work.size)
    for a in results:
        w.stack_array(f"staged{a.index}", -(-(a.size + CACHE_LINE // 4) // lanes), CACHE_LINE)  # + a line at either end
    if x86:
        w.do("%flags = alloca i32")
        w.do("call void @llvm.x86.sse.stmxcsr(ptr %flags)")
    read_arguments(w, arrays)
    for a in results:
        _destination(w, a, sum(b.size for b in results), x86)
    begin_block(w)
    for a in (a for a in arrays if not a.written):
        move(w, a)
    w.do("call void @body(ptr %in, ptr %out, ptr %context)")
    begins = w.let("icmp eq i64 %i, 0")  # constants stay in the work array
    w.do(f"call void @rows{work.index}(ptr %out, ptr %work, i64 {8 * work.size}, i1 {begins})")
    w.do(f"%configurations = call i64 @llvm.umin.i64(i64 %left, i64 {lanes})")
    w.do(f"br label %head{arrays[-1].index}")
    w.label(f"head{arrays[-1].index}")
    w.do("br label %configuration")
    _configuration(w, results, work)
    w.do(f"br i1 {w.let('icmp ult i64 %following, %configurations')}, label %configuration, label %done")
    w.label("done")
    w.do(f"%next = add i64 %i, {lanes}")
    w.do(f"br i1 {w.let('icmp slt i64 %next, %count')}, label %block, label %end")
    w.label("end")
    if x86:
        w.do("fence seq_cst")  # orders the non-temporal stores, for every thread
        w.do("call void @llvm.x86.sse.ldmxcsr(ptr %flags)")
    w.do("ret void")
    return function("void @loop(ptr %args, ptr %dimensions, ptr %steps, ptr %context)", w.lines)


def _destination(w: Writer, a: Operand, numbers: int, x86: bool) -> None:
    """%streamed: whether the results are written with non-temporal stores.

    They are if they have no gaps, are larger than the caches, and span at least two cache lines per configuration, so
    that each contains a whole line.
    """
    size = w.let(f"mul i64 %count, {8 * numbers}")
    no_gaps = w.let(f"and i1 %contiguous{a.index}, {w.let(f'icmp eq i64 %step{a.index}, {8 * a.size}')}")
    beyond_cache = w.let(f"icmp ugt i64 {size}, {tuning.NON_TEMPORAL_FROM}")
    possible = "true" if x86 and 8 * a.size >= 2 * CACHE_LINE else "false"
    w.do(f"%streamed{a.index} = and i1 {possible}, {w.let(f'and i1 {no_gaps}, {beyond_cache}')}")


def _configuration(w: Writer, results: Sequence[Operand], work: Operand) -> None:
    """The results of one configuration of a block."""
    last = results[-1].index
    w.label("configuration")
    w.do(f"%lane = phi i64 [0, %head{last}], [%following, %written{last}]")
    number = w.let("add i64 %i, %lane")
    w.do(f"%first = icmp eq i64 {number}, 0")
    w.do(f"%final = icmp eq i64 {w.let(f'add i64 {number}, 1')}, %count")
    places = {a.index: w.at(f"%base{a.index}", w.let(f"mul i64 {number}, %step{a.index}")) for a in results}
    to = []
    for a in results:
        phase = w.let(f"and i64 {w.let(f'ptrtoint ptr {places[a.index]} to i64')}, {CACHE_LINE - 1}")
        staged = w.at(f"%staged{a.index}", w.let(f"select i1 %streamed{a.index}, i64 {phase}, i64 0"))
        direct = w.let(f"xor i1 %streamed{a.index}, %contiguous{a.index}")  # streamed implies contiguous
        to.append(w.let(f"select i1 {direct}, ptr {places[a.index]}, ptr {staged}"))
    row = w.at("%work", w.let(f"mul i64 %lane, {8 * work.size}"))
    w.do(f"call void @finish(ptr {row}, {', '.join(f'ptr {place}' for place in to)})")
    for a in results:
        w.do(f"br i1 %contiguous{a.index}, label %in_order{a.index}, label %copy{a.index}")
        w.label(f"copy{a.index}")
        row = f"ptr {places[a.index]}, i64 0, i64 0"
        w.do(f"call void @spread({row}, ptr %staged{a.index}, ptr @slots{a.index}, {axes(a)})")
        w.do(f"br label %written{a.index}")
        w.label(f"in_order{a.index}")
        w.do(f"br i1 %streamed{a.index}, label %stream{a.index}, label %written{a.index}")
        w.label(f"stream{a.index}")
        ends = f"i64 {8 * a.size}, i1 %first, i1 %final"
        w.do(f"call void @stream(ptr {places[a.index]}, ptr %staged{a.index}, {ends})")
        w.do(f"br label %written{a.index}")
        w.label(f"written{a.index}")
    w.do("%following = add i64 %lane, 1")


def stream(lanes: int) -> str:
    """`stream(to, staged, bytes, first, last)`: one configuration's result by non-temporal stores of whole cache lines.

    The result has the same offset from a line boundary in `staged` as at its destination. Its last, incomplete line is
    moved to the start of `staged` and written with the next configuration's result; only the two ends of a batch are
    written by ordinary stores.
    """
    w = Writer(lanes)
    w.label("entry")
    w.do(f"%phase = and i64 {w.let('ptrtoint ptr %to to i64')}, {CACHE_LINE - 1}")
    w.do(f"%line = getelementptr i8, ptr %to, i64 {w.let('sub i64 0, %phase')}")
    w.do("%end = add i64 %phase, %bytes")
    w.do(f"%whole = and i64 %end, -{CACHE_LINE}")
    split = w.let("icmp ne i64 %phase, 0")
    w.do(f"%start = select i1 {w.let(f'and i1 %first, {split}')}, i64 {CACHE_LINE}, i64 0")
    w.do("br label %before")
    _numbers(w, "before", "entry", "%phase", "%start", "lines")
    _lines(w)
    w.label("rest")
    w.do("br i1 %last, label %behind, label %keep")
    _numbers(w, "behind", "rest", "%whole", "%end", "out")
    w.label("keep")
    for k in range(CACHE_LINE // (8 * lanes)):
        kept = w.at("%staged", w.let(f"add i64 %whole, {8 * lanes * k}"))
        piece = w.let(f"load {w.vector}, ptr {kept}, align {8 * lanes}")
        w.do(f"store {w.vector} {piece}, ptr {w.at('%staged', 8 * lanes * k)}, align {8 * lanes}")
    w.do("br label %out")
    w.label("out")
    w.do("ret void")
    head = "internal void @stream(ptr %to, ptr %staged, i64 %bytes, i1 %first, i1 %last) noinline"
    return function(head, w.lines)


def _lines(w: Writer) -> None:
    """Copy the whole lines."""
    w.label("lines")
    w.do("%at = phi i64 [%start, %before], [%next, %copy]")
    w.do(f"br i1 {w.let('icmp slt i64 %at, %whole')}, label %copy, label %rest")
    w.label("copy")
    for k in range(CACHE_LINE // (8 * w.lanes)):
        offset = w.let(f"add i64 %at, {8 * w.lanes * k}") if k else "%at"
        piece = w.let(f"load {w.vector}, ptr {w.at('%staged', offset)}, align {8 * w.lanes}")
        w.do(f"store {w.vector} {piece}, ptr {w.at('%line', offset)}, align {8 * w.lanes}, !nontemporal !1")
    w.do(f"%next = add i64 %at, {CACHE_LINE}")
    w.do("br label %lines")


def _numbers(w: Writer, name: str, origin: str, start: str, end: str, after: str) -> None:
    """Copy the numbers between two offsets one by one."""
    w.label(name)
    w.do(f"%at_{name} = phi i64 [{start}, %{origin}], [%next_{name}, %one_{name}]")
    w.do(f"br i1 {w.let(f'icmp slt i64 %at_{name}, {end}')}, label %one_{name}, label %{after}")
    w.label(f"one_{name}")
    number = w.let(f"load double, ptr {w.at('%staged', f'%at_{name}')}, align 8")
    w.do(f"store double {number}, ptr {w.at('%line', f'%at_{name}')}, align 8")
    w.do(f"%next_{name} = add i64 %at_{name}, 8")
    w.do(f"br label %{name}")
