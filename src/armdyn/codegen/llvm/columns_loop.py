"""NumPy's inner loop of a program by columns: a block's head, then the columns of one configuration after another."""

from __future__ import annotations

from collections.abc import Sequence

from armdyn.codegen.llvm.blocks import Operand
from armdyn.codegen.llvm.ir import Writer, function
from armdyn.codegen.llvm.loop import axes, move, read_arguments


def columns_loop(lanes: int, arrays: Sequence[Operand], work: Operand, in_slots: int, out_slots: int, x86: bool) -> str:
    """`loop(args, dimensions, steps, context)`: see `loop.inner_loop`.

    A block reads all its rows before it writes any. Results that lie in C order are written where they belong, others
    by way of the stack.
    """
    results = [a for a in arrays if a.written]
    w = Writer(lanes)
    w.label("entry")
    w.stack_array("in", in_slots)
    w.stack_array("out", out_slots)
    w.stack_array("work", work.size)
    for a in results:
        w.stack_array(f"staged{a.index}", -(-a.size // lanes))
    if x86:
        w.do("%flags = alloca i32")
        w.do("call void @llvm.x86.sse.stmxcsr(ptr %flags)")
    read_arguments(w, arrays)
    w.do("br label %start")
    w.label("start")
    w.do(f"br i1 {w.let('icmp sgt i64 %count, 0')}, label %block, label %end")
    w.label("block")
    w.do("%i = phi i64 [0, %start], [%next, %done]")
    w.do("%left = sub i64 %count, %i")
    w.do(f"%full = icmp uge i64 %left, {lanes}")
    w.do("%last = sub i64 %left, 1")
    for a in (a for a in arrays if not a.written):
        move(w, a)
    w.do("call void @body(ptr %in, ptr %out, ptr %context)")
    begins = w.let("icmp eq i64 %i, 0")  # constants stay in the work
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
        w.do("call void @llvm.x86.sse.ldmxcsr(ptr %flags)")
    w.do("ret void")
    return function("void @loop(ptr %args, ptr %dimensions, ptr %steps, ptr %context)", w.lines)


def _configuration(w: Writer, results: Sequence[Operand], work: Operand) -> None:
    """The results of one configuration of a block."""
    last = results[-1].index
    w.label("configuration")
    w.do(f"%lane = phi i64 [0, %head{last}], [%following, %written{last}]")
    number = w.let("add i64 %i, %lane")
    places = {a.index: w.at(f"%base{a.index}", w.let(f"mul i64 {number}, %step{a.index}")) for a in results}
    to = [w.let(f"select i1 %contiguous{a.index}, ptr {places[a.index]}, ptr %staged{a.index}") for a in results]
    row = w.at("%work", w.let(f"mul i64 %lane, {8 * work.size}"))
    w.do(f"call void @finish(ptr {row}, {', '.join(f'ptr {place}' for place in to)})")
    for a in results:
        w.do(f"br i1 %contiguous{a.index}, label %written{a.index}, label %copy{a.index}")
        w.label(f"copy{a.index}")
        w.do(f"call void @spread(ptr {places[a.index]}, ptr %staged{a.index}, ptr @slots{a.index}, {axes(a)})")
        w.do(f"br label %written{a.index}")
        w.label(f"written{a.index}")
    w.do("%following = add i64 %lane, 1")
