"""The choice of a code generator for a program's straight-line code."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from armdyn.codegen import tuning
from armdyn.codegen.avx2.code import Avx2Code
from armdyn.codegen.contract import contract
from armdyn.codegen.llvm.narrow import NarrowCode
from armdyn.codegen.llvm.plain import PlainCode
from armdyn.codegen.llvm.straight_line import StraightLine, trig_layers
from armdyn.codegen.target import Target
from armdyn.graph.program import Program


def straight_line(program: Program, target: Target, uniform: Collection[str] = ()) -> StraightLine:
    """The straight-line code of a program: by our own AVX2 code generator where it applies, otherwise plain LLVM IR.

    `uniform` names the inputs that are usually the same for a whole batch, such as run-time parameters. Programs in
    which an angle depends on another angle's sine or cosine are left to LLVM.
    """
    contracted = contract(program)
    shared = tuple(index for index, port in enumerate(program.inputs) if port.name in uniform)
    write = Avx2Code if target.avx2 and len(trig_layers(contracted)) <= 1 else PlainCode
    return write(contracted, target, shared)


def single_call(code: StraightLine) -> StraightLine | None:
    """The same program one lane wide, if that makes single calls faster than broadcasting to all lanes."""
    long = len(code.contracted.order) > tuning.LONGEST_WIDE_SINGLE
    if not (long and isinstance(code, PlainCode) and code.target.lanes == 8):
        return None
    return NarrowCode(code.contracted, replace(code.target, lanes=1), wide=code.lanes)
