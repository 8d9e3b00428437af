"""A kernel as a CasADi `Function` of SX symbols, with armdyn's derivative program as its Jacobian.

CasADi stores matrices with two axes in column-major order. A vector (n,) becomes a column (n, 1), a scalar (1, 1), a
matrix itself, and an array with three axes (a, b, c) the matrix (a b, c), so that
``np.reshape(function(...).full(), shape)`` is the array that the NumPy kernel returns.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from armdyn.bridges import ARITHMETIC, ProgramSource
from armdyn.errors import required
from armdyn.graph import Port, Program
from armdyn.graph.derive import jacobian
from armdyn.graph.program import interpret

ca = required("casadi")

OPERATIONS = {
    **ARITHMETIC,
    "sin": ca.sin,
    "cos": ca.cos,
    "sqrt": ca.sqrt,
    "sign": ca.sign,
    "positive": lambda x: ca.if_else(x > 0, 1, np.nan),
}


def function(kernel: ProgramSource) -> Any:
    """The kernel as a `casadi.Function` with named inputs and outputs.

    Within an MX graph, and by `Function.jacobian`, it is differentiated by armdyn's derivative program. CasADi itself
    differentiates kernels of derivatives, and functions that are expanded into an SX graph.
    """
    program = kernel.program
    names = [port.name for port in program.inputs]
    options: dict[str, Any] = {}
    if not kernel.options.derivatives and all(port.nodes for port in program.inputs):
        # Derivative kernels of a floating base are with respect to its six velocities, but CasADi needs derivatives
        # with respect to all seven coordinates of its pose. Several quantities in one have no derivative kernel.
        own = not kernel.chain.floating and "derivatives" in kernel.option_names
        slopes = kernel.variant(derivatives=tuple(names)).program if own else jacobian(program, names)
        options = {"custom_jacobian": _jacobian(kernel.quantity, program, slopes), "jac_penalty": 0}
    symbols, results = _run(program)
    outputs = [_matrix(port, flat) for port, flat in zip(program.outputs, results, strict=True)]
    name = f"{kernel.quantity}_derivatives" if kernel.options.derivatives else kernel.quantity
    return ca.Function(name, symbols, outputs, names, [port.name for port in program.outputs], options)


def _run(program: Program) -> tuple[list[Any], list[list[Any]]]:
    """Symbols for the inputs, and the entries of every output in row-major order."""
    symbols = [ca.SX.sym(port.name, *_size(port)) for port in program.inputs]
    entries = (symbol.T.elements() for symbol in symbols)  # transposed, because elements() goes down the columns
    return symbols, interpret(program, OPERATIONS, lambda value: ca.SX(float(value)), *entries)


def _size(port: Port) -> tuple[int, int]:
    """Rows and columns of the matrix for a port."""
    columns = port.shape[-1] if len(port.shape) > 1 else 1
    return len(port.nodes) // columns if columns else 0, columns


def _matrix(port: Port, flat: list[Any]) -> Any:
    """The entries, given in row-major order, as a matrix."""
    rows, columns = _size(port)
    return ca.reshape(ca.vertcat(*flat), columns, rows).T if flat else ca.SX(rows, columns)


def _by_columns(rows: int, columns: int) -> list[int]:
    """Where the entries of a matrix, in column-major order, stand in row-major order."""
    return [i * columns + j for j in range(columns) for i in range(rows)]


def _jacobian(quantity: str, program: Program, slopes: Program) -> Any:
    """The derivative program in CasADi's form: (inputs, outputs) -> the Jacobian of each output by each input.

    Rows are the entries of the output and columns those of the input, both in column-major order.
    """
    symbols, results = _run(slopes)
    given = [ca.SX.sym(f"out_{port.name}", *_size(port)) for port in program.outputs]
    blocks, names = [], []
    found = iter(results)
    for out in program.outputs:
        rows, columns = _size(out)
        for port in program.inputs:
            flat, width = next(found), len(port.nodes)
            entries = [flat[row * width + k] for k in _by_columns(*_size(port)) for row in _by_columns(rows, columns)]
            blocks.append(ca.reshape(ca.vertcat(*entries), rows * columns, width))
            names.append(f"jac_{out.name}_{port.name}")
    inputs = [port.name for port in program.inputs] + [f"out_{port.name}" for port in program.outputs]
    return ca.Function(f"jac_{quantity}", [*symbols, *given], blocks, inputs, names)
