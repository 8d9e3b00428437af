"""Program -> machine code in this process, by LLVM.

`compiled` is the whole way: LLVM assembly (`llvm_emit`, `llvm_loop`, `llvm_entry`), object code, an
engine that holds it, a NumPy gufunc over it. `recalled` looks on the disk first. Machine code stays
for the life of the process, so a gufunc, a thread or a copy of either may outlive whoever asked for
it; the same thing asked twice is compiled once.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from armdyn.codegen import cache
from armdyn.codegen.gufunc import gufunc
from armdyn.codegen.llvm_block import (
    CORE_DIMENSIONS,
    operands,
    rows_function,
    slot_tables,
    streaming_copy,
    strided_copies,
)
from armdyn.codegen.llvm_emit import Body
from armdyn.codegen.llvm_entry import entry, shape_tables
from armdyn.codegen.llvm_loop import inner_loop
from armdyn.codegen.target import Target, binding, host
from armdyn.errors import InputError
from armdyn.graph.program import Program

LARGEST_OPTIMISED = 100_000  # nodes; 40 000 take 7 s, and 1 s without optimisation
Shapes = tuple[tuple[str, tuple[int, ...]], ...]
_ENGINES: list[Any] = []  # machine code lives as long as the process


@dataclass(frozen=True)
class Compiled:
    """A program as machine code: a NumPy gufunc, and the addresses of its functions."""

    name: str
    inputs: Shapes
    outputs: Shapes
    ufunc: Any
    addresses: dict[str, int] = field(repr=False)
    quiet: bool  # leaves no floating-point flags for NumPy to warn of

    def __call__(self, *arrays: Any, out: Any = None) -> Any:
        """The gufunc's value; a further array would be taken for `out`."""
        if len(arrays) != len(self.inputs):
            raise TypeError(f"{self.name} takes {len(self.inputs)} arrays, got {len(arrays)}")
        return self.ufunc(*arrays) if out is None else self.ufunc(*arrays, out=out)


def assembly(program: Program, target: Target) -> str:
    """The program as LLVM assembly."""
    for port in (*program.inputs, *program.outputs):
        if len(port.shape) > CORE_DIMENSIONS:
            raise InputError(f"{program.name}: {port.name} has shape {port.shape}, at most {CORE_DIMENSIONS} axes work")
    body = Body(program, target)
    arrays = operands(program.inputs, body.contracted.outputs, body.slots)
    numbers = sum(len(port.nodes) for port in program.inputs)
    shared = None if body.near is None else body.shared
    return "\n".join(
        [
            f'target triple = "{target.triple}"\n',
            slot_tables(arrays),
            body.text(),
            body.whole(),
            strided_copies(target.lanes),
            *(rows_function(target.lanes, array) for array in arrays),
            streaming_copy(target.lanes),
            inner_loop(target.lanes, arrays, numbers, len(body.slots), target.x86, shared),
            shape_tables(arrays),
            entry(target.lanes, arrays, numbers, len(body.slots)),
            _declarations(target),
        ]
    )


def _declarations(target: Target) -> str:
    lanes, v, bits = target.lanes, f"<{target.lanes} x double>", f"<{2 * target.lanes} x i32>"
    flags = [f"declare void @llvm.x86.sse.{name}(ptr)" for name in ("stmxcsr", "ldmxcsr") if target.x86]
    return "\n".join(
        [
            f"declare {v} @llvm.fma.v{lanes}f64({v}, {v}, {v})",
            f"declare {v} @llvm.sqrt.v{lanes}f64({v})",
            "declare i64 @llvm.umin.i64(i64, i64)",
            f"declare {bits} @llvm.umax.v{2 * lanes}i32({bits}, {bits})",
            "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)",
            *flags,
            '!0 = !{!"branch_weights", i32 1, i32 1000000}',
            "!1 = !{i32 1}",
            '!2 = !{!"branch_weights", i32 1000000, i32 1}',
            "",
        ]
    )


def object_code(program: Program, target: Target) -> bytes:
    """The program as relocatable object code."""
    llvm = binding()
    with llvm.parse_assembly(assembly(program, target)) as module:
        return bytes(target.machine(level(program)).emit_object(module))


def level(program: Program) -> int:
    """The optimisation level of the code generator: none where optimising would take tens of seconds."""
    return 2 if len(program.order) <= LARGEST_OPTIMISED else 0


def load(name: str, inputs: Shapes, outputs: Shapes, code: bytes, target: Target) -> Compiled:
    """Object code brought into this process."""
    llvm = binding()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target.machine())
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    addresses = {symbol: engine.get_function_address(symbol) for symbol in ("loop", "entry")}
    _ENGINES.append(engine)
    ufunc = gufunc(name, inputs, outputs, addresses["loop"])
    return Compiled(name, inputs, outputs, ufunc, addresses, target.x86)


def compiled(program: Program, target: Target | None = None) -> Compiled:
    """The program as machine code for `target`, which is this machine unless a test says otherwise."""
    target = target or host()
    return load(program.name, *shapes(program), object_code(program, target), target)


def shapes(program: Program) -> tuple[Shapes, Shapes]:
    """Names and shapes of a program's inputs and outputs."""
    inputs = tuple((port.name, port.shape) for port in program.inputs)
    return inputs, tuple((port.name, port.shape) for port in program.outputs)


def recalled(asked: object, make: Callable[[], Program]) -> Compiled | None:
    """Machine code for what is `asked`: from this process, from the disk, or compiled from `make()`.

    `asked` must print everything that shapes the program beyond armdyn's own source. A program with an
    array of no numbers has no machine code (a gufunc has no axes of length 0): None.
    """
    target = host()
    name = cache.key(asked, target, binding().llvm_version_info, _llvmlite_version())
    with _LOCK:
        if name is None or name not in _RECALLED:
            stored = cache.get(name)
            if stored is None:
                stored = _packed(make(), target)
                cache.put(name, stored)
            _RECALLED[name] = _unpacked(stored, target)
        return _RECALLED[name]


def _packed(program: Program, target: Target) -> bytes:
    """A line of names and shapes, then the object code."""
    ins, outs = shapes(program)
    empty = any(0 in shape for _, shape in (*ins, *outs))
    head = json.dumps([program.name, ins, outs]).encode()
    return head + b"\n" + (b"" if empty else object_code(program, target))


def _unpacked(stored: bytes, target: Target) -> Compiled | None:
    head, _, code = stored.partition(b"\n")
    name, *sides = json.loads(head)
    inputs, outputs = (tuple((port, tuple(shape)) for port, shape in side) for side in sides)
    return load(name, inputs, outputs, code, target) if code else None


def _llvmlite_version() -> str:
    import llvmlite

    return str(llvmlite.__version__)


_RECALLED: dict[str | None, Compiled | None] = {}
_LOCK = threading.RLock()


def _after_fork() -> None:
    """A thread of the parent that compiled during a fork is not there to give the lock back."""
    global _LOCK
    _LOCK = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
