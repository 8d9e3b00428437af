"""NumPy's inner loop: a batch, block by block.

A block reads all its rows before it writes any, and no row twice, so a result may take the place of
an input. Where there is a function `whole` (see `x86`), it takes the blocks of arrays that lie in one
piece each, apart from one another, if no angle in them is too large for it; parameters are then the
same for all configurations.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from armdyn.codegen.llvm_block import CORE_DIMENSIONS, Operand, ask
from armdyn.codegen.llvm_text import Writer, function

# Bytes of all results, by what was measured: beyond the first the lines they go to are asked for ahead (up to twice as
# fast; below, up to a tenth slower), beyond the second they are written past the cache (a quarter faster; below, up to
# half slower).
ASKED_FOR, PAST_CACHE = 10 * 2**20, 24 * 2**20
PAGE = 4096  # bytes; a vector stored across its end takes as long as twenty others, and what waits for it longer
LARGEST_BLOCK = 2**16  # bytes that are put together on the stack


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
    _arguments(w, arrays)
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
    w.do("br label %done")
    w.label("done")
    ways = f"[{lanes}, %moved{arrays[-1].index}]"  # results come last
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


def _arguments(w: Writer, arrays: Sequence[Operand]) -> None:
    """%count, and of each array %base, %step and %whole."""
    w.do("%count = load i64, ptr %dimensions")
    for a in arrays:
        w.do(f"%base{a.index} = load ptr, ptr {w.at('%args', 8 * a.index)}")
        w.do(f"%step{a.index} = load i64, ptr {w.at('%steps', 8 * a.index)}")
        _contiguous(w, a)


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
            w.store(w.every(x), f"%shared{a.index}", k)


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
