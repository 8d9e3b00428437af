"""Modules of LLVM IR: a kernel's, and the frame of any other."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from armdyn.codegen.llvm.blocks import (
    CORE_DIMENSIONS,
    lane_copy,
    non_temporal_copy,
    operands,
    rows_function,
    slot_tables,
    strided_copies,
)
from armdyn.codegen.llvm.ir import prefetch_lines
from armdyn.codegen.llvm.loop import inner_loop
from armdyn.codegen.llvm.vectorcall import entry, shape_tables
from armdyn.codegen.straight_line import single_call, straight_line
from armdyn.codegen.target import Target
from armdyn.errors import InputError
from armdyn.graph.program import Program


def kernel_module(program: Program, target: Target, uniform: Collection[str] = ()) -> str:
    """A program as a module with the functions `loop` (NumPy's inner loop) and `entry` (CPython's vectorcall)."""
    for port in (*program.inputs, *program.outputs):
        if len(port.shape) > CORE_DIMENSIONS:
            raise InputError(f"{program.name}: {port.name} has shape {port.shape}, at most {CORE_DIMENSIONS} axes work")
    code = straight_line(program, target, uniform)
    arrays = operands(program.inputs, code.contracted.outputs, code.slots)
    numbers = sum(len(port.nodes) for port in program.inputs)
    rows, single = code.rows_to_rows(), single_call(code)
    called = single or code
    return module(
        target,
        [
            slot_tables(arrays),
            code.text(),
            single.text() if single else "",
            rows.text if rows else "",
            strided_copies(target.lanes),
            *(rows_function(target.lanes, array) for array in arrays),
            lane_copy(called.lanes),
            non_temporal_copy(target.lanes),
            prefetch_lines(target.lanes),
            inner_loop(target.lanes, arrays, numbers, len(code.slots), target.x86, rows),
            shape_tables(arrays),
            entry(called.lanes, called.name, arrays, numbers, len(code.slots)),
        ],
    )


def module(target: Target, parts: Iterable[str]) -> str:
    """A module of functions and tables, with the intrinsics and metadata that they may use."""
    lanes, bits = target.lanes, f"<{2 * target.lanes} x i32>"
    flags = [f"declare void @llvm.x86.sse.{name}(ptr)" for name in ("stmxcsr", "ldmxcsr") if target.x86]
    return "\n".join(
        [
            f'target triple = "{target.triple}"\n',
            *parts,
            *(_arithmetic(width) for width in dict.fromkeys((1, lanes))),
            "declare i64 @llvm.umin.i64(i64, i64)",
            "declare ptr @llvm.ptrmask.p0.i64(ptr, i64)",
            f"declare {bits} @llvm.umax.v{2 * lanes}i32({bits}, {bits})",
            "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)",
            *flags,
            '!0 = !{!"branch_weights", i32 1, i32 1000000}',
            "!1 = !{i32 1}",
            '!2 = !{!"branch_weights", i32 1000000, i32 1}',
            "",
        ]
    )


def _arithmetic(lanes: int) -> str:
    """The intrinsics of arithmetic with so many lanes."""
    v = f"<{lanes} x double>"
    return f"declare {v} @llvm.fma.v{lanes}f64({v}, {v}, {v})\ndeclare {v} @llvm.sqrt.v{lanes}f64({v})"
