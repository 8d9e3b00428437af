"""LLVM IR modules: `kernel_module` for a kernel, `module` for any set of functions.

`straight_line` chooses the code generator of a program's arithmetic.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from armdyn.codegen import tuning
from armdyn.codegen.avx2 import Avx2Code
from armdyn.codegen.fastcall import entry, shape_tables
from armdyn.codegen.llvm.columns import ColumnCode, columns_loop, stream
from armdyn.codegen.llvm.ir import VectorType, prefetch_lines
from armdyn.codegen.llvm.loop import (
    CORE_DIMENSIONS,
    Operand,
    gathered_slots,
    inner_loop,
    lane_copy,
    non_temporal_copy,
    operands,
    rows_function,
    slot_tables,
    strided_copies,
)
from armdyn.codegen.llvm.plain import NarrowCode, PlainCode
from armdyn.codegen.llvm.straight_line import StraightLine, check_slots, contract, trig_layers
from armdyn.codegen.target import Target
from armdyn.errors import InputError
from armdyn.graph import passes
from armdyn.graph.passes import compiler_pass
from armdyn.graph.program import ColumnProgram, Program


def straight_line(program: Program, target: Target, uniform: Collection[str] = ()) -> StraightLine:
    """The straight-line code of a program: by our own AVX2 code generator where it applies, otherwise plain LLVM IR.

    `uniform` names the inputs that are usually the same for a whole batch, such as run-time parameters. Programs in
    which an angle depends on another angle's sine or cosine are left to LLVM.
    """
    contracted = contract(program)
    shared = tuple(index for index, port in enumerate(program.inputs) if port.name in uniform)
    write = Avx2Code if target.avx2 and len(trig_layers(contracted)) <= 1 else PlainCode
    code = write(contracted, target, shared)
    if passes.DEBUG:
        check_slots(code)
    return code


def single_call(code: StraightLine) -> StraightLine | None:
    """The same program one lane wide, if that makes single calls faster than broadcasting to all lanes."""
    long = len(code.contracted.order) > tuning.LONGEST_WIDE_SINGLE
    if not (long and isinstance(code, PlainCode) and code.target.widest):
        return None
    return NarrowCode(code.contracted, replace(code.target, lanes=1), wide=code.lanes)


def kernel_module(program: Program | ColumnProgram, target: Target, uniform: Collection[str] = ()) -> str:
    """The module of a program, with the functions `loop` (NumPy's inner loop) and `entry` (CPython's vectorcall)."""
    for port in (*program.inputs, *program.outputs):
        if len(port.shape) > CORE_DIMENSIONS:
            raise InputError(
                f"{program.name}: {port.name} has shape {port.shape}, at most {CORE_DIMENSIONS} axes are supported"
            )
    if isinstance(program, ColumnProgram):
        texts = _column_parts(program, target, uniform)
    else:
        texts = _straight_line_parts(program, target, uniform)
    return module(target, [strided_copies(target.vector), *texts])


def single_call_module(program: Program, target: Target) -> str:
    """The module of a program with the function `entry` alone, for single configurations: a third of the whole."""
    code = straight_line(program, target)
    narrow = single_call(code)
    called = narrow or code
    arrays = operands(program.inputs, code.contracted.outputs, code.slots)
    numbers = sum(len(port.nodes) for port in program.inputs)
    long_rows = any(array.written and array.size > tuning.UNROLLED_COPY for array in arrays)
    texts = [
        slot_tables(arrays),
        called.text(),
        code.sine_functions() if narrow and isinstance(code, PlainCode) else "",
        lane_copy(called.target.vector) if long_rows else "",
        shape_tables(arrays),
        entry(called.target.vector, called.name, arrays, numbers, len(code.slots), None),
    ]
    return module(target, texts)


def _straight_line_parts(program: Program, target: Target, uniform: Collection[str]) -> list[str]:
    """The parts of the module of a straight-line program."""
    code = straight_line(program, target, uniform)
    arrays = operands(program.inputs, code.contracted.outputs, code.slots)
    numbers = sum(len(port.nodes) for port in program.inputs)
    rows, single = code.rows_to_rows(), single_call(code)
    called = single or code
    return [
        slot_tables(arrays),
        code.text(),
        single.text() if single else "",
        rows.text if rows else "",
        *(rows_function(target.vector, array) for array in arrays),
        lane_copy(called.target.vector),
        non_temporal_copy(target.vector),
        prefetch_lines(target.vector),
        inner_loop(target.vector, arrays, numbers, len(code.slots), target.x86, rows),
        shape_tables(arrays),
        entry(called.target.vector, called.name, arrays, numbers, len(code.slots), len(program.order)),
    ]


def _column_parts(program: ColumnProgram, target: Target, uniform: Collection[str]) -> list[str]:
    """The parts of the module of a column program."""
    columns = ColumnCode(program, target)
    code = straight_line(columns.head, target, uniform)
    arrays = operands(program.inputs, program.outputs, None)
    port = code.contracted.outputs[0]
    slots, constants = gathered_slots(port, code.slots)
    work = Operand(len(arrays), port.shape, slots, 0, True, constants)
    numbers = sum(len(port.nodes) for port in program.inputs)
    single = single_call(code)
    called = single or code
    return [
        slot_tables([*arrays, work]),
        code.text(),
        single.text() if single else "",
        columns.text(),
        *(rows_function(target.vector, array) for array in (*arrays, work) if array is work or not array.written),
        strided_copies(target.vector._replace(lanes=1), ("collect", "spread")),
        lane_copy(called.target.vector),
        stream(target.vector),
        columns_loop(target.vector, arrays, work, numbers, len(code.slots), target.x86),
        shape_tables(arrays),
        entry(called.target.vector, called.name, arrays, numbers, len(code.slots), len(columns.head.order), work),
    ]


def _lines(text: str) -> str:
    functions = text.count("\ndefine ") + text.startswith("define ")
    return f"{functions} functions, {text.count(chr(10))} lines"


@compiler_pass("emit", counts=_lines)
def module(target: Target, texts: Iterable[str]) -> str:
    """A module of functions and tables, with the declarations and metadata that they may use."""
    lanes, words = target.lanes, target.lanes * target.vector.size // 4
    bits = f"<{words} x i32>"
    flags = [f"declare void @llvm.x86.sse.{name}(ptr)" for name in ("stmxcsr", "ldmxcsr") if target.x86]
    return "\n".join(
        [
            f'target triple = "{target.triple}"\n',
            *texts,
            *(_arithmetic(target.vector._replace(lanes=width)) for width in dict.fromkeys((1, lanes))),
            "declare i64 @llvm.umin.i64(i64, i64)",
            "declare ptr @llvm.ptrmask.p0.i64(ptr, i64)",
            f"declare {bits} @llvm.umax.v{words}i32({bits}, {bits})",
            "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)",
            *flags,
            '!0 = !{!"branch_weights", i32 1, i32 1000000}',
            "!1 = !{i32 1}",
            '!2 = !{!"branch_weights", i32 1000000, i32 1}',
            "",
        ]
    )


def _arithmetic(kind: VectorType) -> str:
    """Declarations of the arithmetic intrinsics for vectors."""
    v, suffix = f"<{kind.lanes} x {kind.number}>", f"v{kind.lanes}f{8 * kind.size}"
    return f"declare {v} @llvm.fma.{suffix}({v}, {v}, {v})\ndeclare {v} @llvm.sqrt.{suffix}({v})"
