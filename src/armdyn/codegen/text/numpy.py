"""Programs as readable, vectorised NumPy source: no compiler, one array operation per node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from armdyn.codegen.text.expressions import Language, write
from armdyn.graph import Program

LANGUAGE = Language(
    constant=repr,
    entry=lambda port, k: f"{port}_{k}",
    functions={
        "sin": "np.sin({})",
        "cos": "np.cos({})",
        "sqrt": "np.sqrt({})",
        "sign": "np.sign({})",
        "positive": "np.where({} > 0, 1.0, np.nan)",
    },
)


def source(program: Program) -> str:
    """The source of a Python function of batches: arrays (..., *shape) in, arrays (..., *shape) out."""
    text = write(program, LANGUAGE)
    names = [port.name for port in program.inputs]
    lines = [
        f"def {program.name}({', '.join(names)}):",
        f'    """{program.operations}, {program.operations.trig} sines and cosines per configuration."""',
    ]
    batches = []
    for port in program.inputs:
        rank = len(port.shape)
        batches.append(f"{port.name}.shape[:{port.name}.ndim - {rank}]")
        for k, index in enumerate(np.ndindex(port.shape)):
            lines.append(f"    {port.name}_{k} = {port.name}[..., {', '.join(map(str, index))}]")
    lines.append(f"    batch = np.broadcast_shapes({', '.join(batches)})")
    lines += [f"    {name} = {expression}" for name, expression in text.assignments]
    for port, entries in zip(program.outputs, text.outputs, strict=True):
        shape = ", ".join(map(str, port.shape))
        lines.append(f"    out_{port.name} = np.empty((*batch, {shape}))")
        for index, entry in zip(np.ndindex(port.shape), entries, strict=True):
            lines.append(f"    out_{port.name}[{', '.join(['...', *map(str, index)])}] = {entry}")
    lines.append(f"    return {', '.join(f'out_{port.name}' for port in program.outputs)}")
    return "\n".join(lines) + "\n"


def compile_numpy(program: Program) -> Callable[..., Any]:
    """The program as a Python function of NumPy arrays, whose shapes it does not check."""
    scope: dict[str, Any] = {"np": np}
    exec(compile(source(program), f"<armdyn {program.name}>", "exec"), scope)
    function: Callable[..., Any] = scope[program.name]
    return function
