"""Program -> machine code in this process, by LLVM.

`compiled` is the whole way: LLVM assembly (`llvm_emit`, `llvm_block`), object code, an engine that
holds it, a NumPy gufunc over it. Machine code stays for the life of the process, so a gufunc, a
thread or a copy of either may outlive whoever asked for it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from armdyn.backends.gufunc import gufunc
from armdyn.backends.llvm_block import CORE_DIMENSIONS, inner_loop, operands, rows_function, slot_tables, strided_copies
from armdyn.backends.llvm_emit import Body
from armdyn.backends.llvm_entry import entry, shape_tables
from armdyn.backends.target import Target, binding, host
from armdyn.errors import InputError
from armdyn.graph.program import Program

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

    def __call__(self, *arrays: Any, out: Any = None) -> Any:
        """The gufunc's value."""
        return self.ufunc(*arrays) if out is None else self.ufunc(*arrays, out=out)


def assembly(program: Program, target: Target) -> str:
    """The program as LLVM assembly."""
    for port in (*program.inputs, *program.outputs):
        if len(port.shape) > CORE_DIMENSIONS:
            raise InputError(f"{program.name}: {port.name} has shape {port.shape}, at most {CORE_DIMENSIONS} axes work")
    body = Body(program, target.lanes, target.fma)
    arrays = operands(program.inputs, body.contracted.outputs, body.slots)
    numbers = sum(len(port.nodes) for port in program.inputs)
    return "\n".join(
        [
            f'target triple = "{target.triple}"\n',
            slot_tables(arrays),
            body.text(),
            strided_copies(target.lanes),
            *(rows_function(target.lanes, array) for array in arrays),
            inner_loop(target.lanes, arrays, numbers, len(body.slots)),
            shape_tables(arrays),
            entry(target.lanes, arrays, numbers, len(body.slots)),
            _declarations(target.lanes),
        ]
    )


def _declarations(lanes: int) -> str:
    v = f"<{lanes} x double>"
    return "\n".join(
        [
            f"declare {v} @llvm.fma.v{lanes}f64({v}, {v}, {v})",
            f"declare {v} @llvm.sqrt.v{lanes}f64({v})",
            "declare i64 @llvm.umin.i64(i64, i64)",
            '!0 = !{!"branch_weights", i32 1, i32 1000000}',
            "",
        ]
    )


def object_code(program: Program, target: Target) -> bytes:
    """The program as relocatable object code."""
    llvm = binding()
    with llvm.parse_assembly(assembly(program, target)) as module:
        return bytes(target.machine(level(program)).emit_object(module))


def level(program: Program) -> int:
    """The optimisation level of the code generator."""
    return 2


def load(name: str, inputs: Shapes, outputs: Shapes, code: bytes, target: Target) -> Compiled:
    """Object code brought into this process."""
    llvm = binding()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target.machine())
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    addresses = {symbol: engine.get_function_address(symbol) for symbol in ("loop", "entry")}
    _ENGINES.append(engine)
    ufunc = gufunc(name, inputs, outputs, addresses["loop"])
    return Compiled(name, inputs, outputs, ufunc, addresses)


def compiled(program: Program, target: Target | None = None) -> Compiled:
    """The program as machine code for `target`, which is this machine unless a test says otherwise."""
    target = target or host()
    inputs = tuple((port.name, port.shape) for port in program.inputs)
    outputs = tuple((port.name, port.shape) for port in program.outputs)
    return load(program.name, inputs, outputs, object_code(program, target), target)
