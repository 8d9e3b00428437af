"""XLA's typed foreign-function interface: a handler in LLVM assembly that runs a kernel's inner loop on XLA's buffers.

The handler reads `XLA_FFI_CallFrame` and `XLA_FFI_Buffer` of xla/ffi/api/c_api.h, major version 0, within which the
field offsets are stable. Every operand has the same batch axes as the result, each of the result's length or 1, so
broadcasting copies nothing. Code in double precision converts float32 block by block.
"""

from __future__ import annotations

import ctypes
import math
from typing import Any

import numpy as np

from armdyn.codegen import jit
from armdyn.codegen.compile import Compiled
from armdyn.codegen.fastcall import context
from armdyn.codegen.llvm.ir import VectorType, Writer, function
from armdyn.codegen.target import host

FRAME = {"extension": 8, "api": 16, "arguments": 72, "results": 112}  # byte offsets in XLA_FFI_CallFrame
BUFFER = {"data": 24, "rank": 32, "dims": 40}  # in XLA_FFI_Buffer
API_MINOR = 36  # in XLA_FFI_Api
METADATA, METADATA_POINTER, MAJOR, MINOR = 1, 24, 24, 28  # the extension's type; offsets in it and in XLA_FFI_Metadata
STACK = 2**16  # bytes on the stack for one converted block
WIDE = 8  # vector width of the conversion
_KEPT: list[Any] = []  # keeps handlers alive: XLA cannot unregister them


def handler(compiled: Compiled, single: bool) -> int:
    """Compile a handler for float64 buffers, or for float32 ones (`single`), and return its address."""
    target = host()
    shapes = [shape for _, shape in (*compiled.inputs, *compiled.outputs)]
    inputs, loop = len(compiled.inputs), compiled.addresses["loop"]
    parts = [_PRODUCT, _OFFSET, _handler(shapes, inputs, 4 if single else 8)]
    if single and compiled.dtype == np.float32:
        parts.append(_run("batch", shapes, loop, 4))
    elif single:
        parts += [_run("run", shapes, loop), _blocks("batch", shapes, inputs)]
        parts += [_convert("widen", "fpext", "float", "double"), _convert("narrow", "fptrunc", "double", "float")]
    else:
        parts.append(_run("batch", shapes, loop))
    text = "\n".join([f'target triple = "{target.triple}"\n', *parts])
    code = jit.load(jit.object_code(text, target), ("handler",), target)
    _KEPT.append((code, compiled))
    return code.address("handler")


def _handler(shapes: list[tuple[int, ...]], inputs: int, width: int) -> str:
    """`handler(frame)`: answers a metadata query, or runs the batch as one loop or as one loop per outer index."""
    w = Writer(VectorType(1))
    w.label("entry")
    count = len(shapes)
    w.do(f"%bases = alloca [{count} x ptr]")
    w.do(f"%steps = alloca [{count} x i64]")
    w.do(f"%moved = alloca [{count} x ptr]")
    _metadata(w)
    w.label("call")
    _load_buffers(w, inputs, count)
    w.do(f"%axes = sub i64 %rank{inputs}, {len(shapes[inputs])}")
    for k in range(count):
        w.do(f"%all{k} = call i64 @product(ptr %dims{k}, i64 %axes)")
    total, flat = f"%all{inputs}", "true"
    w.do(f"br i1 {w.let(f'icmp eq i64 {total}, 0')}, label %end, label %some")
    w.label("some")
    for k, shape in enumerate(shapes):
        one = w.let(f"icmp eq i64 %all{k}, 1")
        fits = w.let(f"or i1 {one}, {w.let(f'icmp eq i64 %all{k}, {total}')}")
        flat = w.let(f"and i1 {flat}, {fits}")
        step = w.let(f"select i1 {one}, i64 0, i64 {width * math.prod(shape)}")
        w.do(f"store i64 {step}, ptr {w.at('%steps', 8 * k)}")
    w.do(f"br i1 {flat}, label %flat, label %nested")
    w.label("flat")
    w.do(f"call void @batch(ptr %bases, ptr %steps, i64 {total})")
    w.do("br label %end")
    _nested(w, shapes, inputs, width)
    w.label("end")
    w.do("ret ptr null")
    return function("ptr @handler(ptr %frame)", w.lines)


def _metadata(w: Writer) -> None:
    """Answer XLA's query for the interface version: major version 0, and XLA's own minor version."""
    w.do(f"%extension = load ptr, ptr {w.at('%frame', FRAME['extension'])}")
    w.do(f"br i1 {w.let('icmp eq ptr %extension, null')}, label %call, label %asked")
    w.label("asked")
    kind = w.let(f"load i32, ptr {w.at('%extension', 8)}")
    w.do(f"br i1 {w.let(f'icmp eq i32 {kind}, {METADATA}')}, label %tell, label %call")
    w.label("tell")
    metadata = w.let(f"load ptr, ptr {w.at('%extension', METADATA_POINTER)}")
    api = w.let(f"load ptr, ptr {w.at('%frame', FRAME['api'])}")
    minor = w.let(f"load i32, ptr {w.at(api, API_MINOR)}")
    w.do(f"store i32 0, ptr {w.at(metadata, MAJOR)}")
    w.do(f"store i32 {minor}, ptr {w.at(metadata, MINOR)}")
    w.do("ret ptr null")


def _load_buffers(w: Writer, inputs: int, count: int) -> None:
    """Load %base, %rank and %dims of every buffer; store the base pointers in %bases."""
    for k in range(count):
        side, place = ("arguments", k) if k < inputs else ("results", k - inputs)
        table = w.let(f"load ptr, ptr {w.at('%frame', FRAME[side])}")
        buffer = w.let(f"load ptr, ptr {w.at(table, 8 * place)}")
        data = w.let(f"load ptr, ptr {w.at(buffer, BUFFER['data'])}")
        w.do(f"store ptr {data}, ptr {w.at('%bases', 8 * k)}")
        w.do(f"%base{k} = getelementptr i8, ptr {data}, i64 0")
        w.do(f"%rank{k} = load i64, ptr {w.at(buffer, BUFFER['rank'])}")
        w.do(f"%dims{k} = load ptr, ptr {w.at(buffer, BUFFER['dims'])}")


def _nested(w: Writer, shapes: list[tuple[int, ...]], inputs: int, width: int) -> None:
    """For operands broadcast along some axes only: one call of the inner loop, over the last axis, per outer index."""
    out = f"%dims{inputs}"
    w.label("nested")
    w.do("%outer = sub i64 %axes, 1")
    inner = w.let(f"load i64, ptr {w.let(f'getelementptr i64, ptr {out}, i64 %outer')}")
    times = w.let(f"udiv i64 %all{inputs}, {inner}")
    for k, shape in enumerate(shapes):
        own = w.let(f"load i64, ptr {w.let(f'getelementptr i64, ptr %dims{k}, i64 %outer')}")
        alone = w.let(f"icmp eq i64 {own}, 1")
        step = w.let(f"select i1 {alone}, i64 0, i64 {width * math.prod(shape)}")
        w.do(f"store i64 {step}, ptr {w.at('%steps', 8 * k)}")
    w.do("br label %again")
    w.label("again")
    w.do("%i = phi i64 [0, %nested], [%next, %again]")
    for k, shape in enumerate(shapes):
        place = w.let(f"call i64 @offset(ptr %dims{k}, ptr {out}, i64 %axes, i64 %i)")
        moved = w.let(
            f"getelementptr i8, ptr %base{k}, i64 {w.let(f'mul i64 {place}, {max(width * math.prod(shape), 1)}')}"
        )
        w.do(f"store ptr {moved}, ptr {w.at('%moved', 8 * k)}")
    w.do(f"call void @batch(ptr %moved, ptr %steps, i64 {inner})")
    w.do("%next = add i64 %i, 1")
    w.do(f"br i1 {w.let(f'icmp ult i64 %next, {times}')}, label %again, label %end")


def _run(name: str, shapes: list[tuple[int, ...]], loop: int, width: int = 8) -> str:
    """`run(bases, steps, count)`: NumPy's inner loop, with the core axes in row-major order."""
    w = Writer(VectorType(1))
    w.label("entry")
    strides = [width * math.prod(shape[axis + 1 :]) for shape in shapes for axis in range(len(shape))]
    w.do(f"%all = alloca [{len(shapes) + len(strides)} x i64]")
    w.do("%dimensions = alloca i64")
    for k in range(len(shapes)):
        step = w.let(f"load i64, ptr {w.at('%steps', 8 * k)}")
        w.do(f"store i64 {step}, ptr {w.at('%all', 8 * k)}")
    for k, stride in enumerate(strides, start=len(shapes)):
        w.do(f"store i64 {stride}, ptr {w.at('%all', 8 * k)}")
    w.do("store i64 %count, ptr %dimensions")
    function_pointer, outside = (w.let(f"inttoptr i64 {x} to ptr") for x in (loop, ctypes.addressof(context())))
    w.do(f"call void {function_pointer}(ptr %bases, ptr %dimensions, ptr %all, ptr {outside})")
    w.do("ret void")
    return function(f"void @{name}(ptr %bases, ptr %steps, i64 %count)", w.lines)


def _blocks(name: str, shapes: list[tuple[int, ...]], inputs: int) -> str:
    """The same for float32: each block of rows is converted to float64 on the stack, computed, and converted back."""
    w = Writer(VectorType(1))
    sizes = [math.prod(shape) for shape in shapes]
    rows = max(1, min(64, STACK // (8 * sum(sizes))))
    w.label("entry")
    w.do(f"%there = alloca [{len(shapes)} x ptr]")
    w.do(f"%wide = alloca [{len(shapes)} x i64]")
    for k, size in enumerate(sizes):
        w.do(f"%block{k} = alloca [{rows * size} x double], align 64")
        w.do(f"store ptr %block{k}, ptr {w.at('%there', 8 * k)}")
        w.do(f"%base{k} = load ptr, ptr {w.at('%bases', 8 * k)}")
        w.do(f"%step{k} = load i64, ptr {w.at('%steps', 8 * k)}")
        w.do(f"store i64 {w.let(f'mul i64 %step{k}, 2')}, ptr {w.at('%wide', 8 * k)}")
        w.do(f"%alone{k} = icmp eq i64 %step{k}, 0")
    w.do("br label %block")
    w.label("block")
    w.do("%i = phi i64 [0, %entry], [%next, %block]")
    left = w.let("sub i64 %count, %i")
    few = w.let(f"icmp ult i64 {left}, {rows}")
    w.do(f"%rows = select i1 {few}, i64 {left}, i64 {rows}")
    for k, size in enumerate(sizes):
        w.do(f"%here{k} = getelementptr i8, ptr %base{k}, i64 {w.let(f'mul i64 %i, %step{k}')}")
        w.do(f"%many{k} = mul i64 {w.let(f'select i1 %alone{k}, i64 1, i64 %rows')}, {size}")
        if k < inputs:
            w.do(f"call void @widen(ptr %block{k}, ptr %here{k}, i64 %many{k})")
    w.do("call void @run(ptr %there, ptr %wide, i64 %rows)")
    for k in range(inputs, len(sizes)):
        w.do(f"call void @narrow(ptr %here{k}, ptr %block{k}, i64 %many{k})")
    w.do(f"%next = add i64 %i, {rows}")
    w.do(f"br i1 {w.let('icmp ult i64 %next, %count')}, label %block, label %end")
    w.label("end")
    w.do("ret void")
    return function(f"void @{name}(ptr %bases, ptr %steps, i64 %count)", w.lines)


def _convert(name: str, instruction: str, source: str, target: str) -> str:
    """`widen` or `narrow`: convert `count` numbers, in vectors of WIDE and then the remainder one by one."""
    lines = []
    for label, step, here, there, after in (
        ("many", WIDE, f"<{WIDE} x {source}>", f"<{WIDE} x {target}>", "one"),
        ("one", 1, source, target, "end"),
    ):
        align = {"float": 4, "double": 8}
        start = "[0, %entry]" if label == "many" else "[%i_many, %many]"
        lines += [
            f"{label}:",
            f"  %i_{label} = phi i64 {start}, [%next_{label}, %do_{label}]",
            f"  %next_{label} = add i64 %i_{label}, {step}",
            f"  %more_{label} = icmp ule i64 %next_{label}, %count",
            f"  br i1 %more_{label}, label %do_{label}, label %{after}",
            f"do_{label}:",
            f"  %from_{label} = getelementptr {source}, ptr %source, i64 %i_{label}",
            f"  %x_{label} = load {here}, ptr %from_{label}, align {align[source]}",
            f"  %y_{label} = {instruction} {here} %x_{label} to {there}",
            f"  %to_{label} = getelementptr {target}, ptr %target, i64 %i_{label}",
            f"  store {there} %y_{label}, ptr %to_{label}, align {align[target]}",
            f"  br label %{label}",
        ]
    body = ["entry:", "  br label %many", *lines, "end:", "  ret void"]
    return function(f"void @{name}(ptr %target, ptr %source, i64 %count)", body)


# The batch size of an operand: the product of its leading axes.
_PRODUCT = """define i64 @product(ptr %dims, i64 %axes) {
entry:
  br label %test
test:
  %k = phi i64 [0, %entry], [%next, %do]
  %all = phi i64 [1, %entry], [%more, %do]
  %go = icmp ult i64 %k, %axes
  br i1 %go, label %do, label %end
do:
  %at = getelementptr i64, ptr %dims, i64 %k
  %dim = load i64, ptr %at
  %more = mul i64 %all, %dim
  %next = add i64 %k, 1
  br label %test
end:
  ret i64 %all
}
"""
# The row offset of an operand at index i over the result's batch axes except the last; axes of length 1 broadcast.
_OFFSET = """define i64 @offset(ptr %dims, ptr %out, i64 %axes, i64 %i) {
entry:
  %last = sub i64 %axes, 1
  %last_at = getelementptr i64, ptr %dims, i64 %last
  %first_stride = load i64, ptr %last_at
  br label %test
test:
  %k = phi i64 [%last, %entry], [%axis, %do]
  %rest = phi i64 [%i, %entry], [%rest_next, %do]
  %stride = phi i64 [%first_stride, %entry], [%stride_next, %do]
  %sum = phi i64 [0, %entry], [%sum_next, %do]
  %go = icmp sgt i64 %k, 0
  br i1 %go, label %do, label %end
do:
  %axis = sub i64 %k, 1
  %out_at = getelementptr i64, ptr %out, i64 %axis
  %length = load i64, ptr %out_at
  %index = urem i64 %rest, %length
  %rest_next = udiv i64 %rest, %length
  %own_at = getelementptr i64, ptr %dims, i64 %axis
  %own = load i64, ptr %own_at
  %alone = icmp eq i64 %own, 1
  %place = select i1 %alone, i64 0, i64 %index
  %part = mul i64 %place, %stride
  %sum_next = add i64 %sum, %part
  %stride_next = mul i64 %stride, %own
  br label %test
end:
  ret i64 %sum
}
"""
