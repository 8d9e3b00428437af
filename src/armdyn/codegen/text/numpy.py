"""The backends without a compiler: vectorised NumPy source, and functions of scalars run on arrays.

The source is readable, with one array operation per node. Both behave as a NumPy gufunc of the same signature:
`over_columns` runs a function of scalars on arrays: every scalar becomes a column of the whole batch. This is the
`python` backend; the `numpy` backend supplies a function of arrays.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from armdyn.codegen.text.expressions import Language, write
from armdyn.graph import Program
from armdyn.graph.program import flatten, nest

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


MOST_AXES = 32  # the limit of np.broadcast_shapes
Shapes = tuple[tuple[str, tuple[int, ...]], ...]


class Column(np.ndarray):
    """A whole batch as one scalar; like any run-time number, it does not compare equal to a constant."""

    def __eq__(self, other: object) -> bool:
        return self is other

    def __ne__(self, other: object) -> bool:
        return self is not other

    def __hash__(self) -> int:  # type: ignore[override]
        return id(self)

    def cos(self) -> Any:
        """Cosine of every entry."""
        return np.cos(self)

    def sin(self) -> Any:
        """Sine of every entry."""
        return np.sin(self)

    def sqrt(self) -> Any:
        """Square root of every entry."""
        return np.sqrt(self)

    def sign(self) -> Any:
        """-1, 0 or 1."""
        return np.sign(self)

    def positive(self) -> Any:
        """1 where positive, NaN elsewhere."""
        return np.where(self > 0, 1.0, np.nan).view(Column)


class ArrayFunction:
    """A function of arrays (..., *shape) of one precision, with checks, casts and `out=` as of a gufunc."""

    quiet = False  # NumPy warns of results that are not finite

    def __init__(self, function: Callable[..., Any], inputs: Shapes, outputs: Shapes, dtype: str = "float64") -> None:
        self.function = function
        self.dtype = np.dtype(dtype)
        self.inputs = inputs
        self.outputs = outputs

    def __call__(self, *arrays: Any, out: Any = None) -> Any:
        """The function's value, broadcast over the batch."""
        values = []
        for array, (_, shape) in zip(arrays, self.inputs, strict=True):
            value = np.asarray(array)
            if not np.can_cast(value.dtype, float, "same_kind"):
                raise TypeError(f"cannot cast {value.dtype} to {self.dtype}")
            _batch(value, shape)
            values.append(value.astype(self.dtype, copy=False))
        results = self.function(*values)
        results = results if isinstance(results, tuple) else (results,)
        given = (None,) * len(results) if out is None else out if isinstance(out, tuple) else (out,)
        filled = tuple(
            _deliver(result.astype(self.dtype, copy=False), to) for result, to in zip(results, given, strict=True)
        )
        return filled[0] if len(filled) == 1 else filled


def over_columns(
    function: Callable[..., Any], inputs: Shapes, outputs: Shapes, dtype: str = "float64"
) -> ArrayFunction:
    """`function(*nested lists of scalars) -> nested lists` as a function of arrays."""

    def over_arrays(*values: Any) -> Any:
        batch = np.broadcast_shapes(*(_batch(v, shape) for v, (_, shape) in zip(values, inputs, strict=True)))
        results = function(*(_columns(v, shape, batch) for v, (_, shape) in zip(values, inputs, strict=True)))
        results = (results,) if len(outputs) == 1 else results
        return tuple(_rows(result, shape, batch) for result, (_, shape) in zip(results, outputs, strict=True))

    return ArrayFunction(over_arrays, inputs, outputs, dtype)


def _batch(value: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    axes = value.ndim - len(shape)
    if axes > MOST_AXES:
        raise ValueError(f"at most {MOST_AXES} batch axes, got {axes}")
    if axes < 0 or value.shape[axes:] != shape:
        raise ValueError(f"expected shape (..., {', '.join(map(str, shape))}), got {value.shape}")
    return tuple(value.shape[:axes])


def _columns(value: Any, shape: tuple[int, ...], batch: tuple[int, ...]) -> Any:
    flat = value.reshape((*value.shape[: value.ndim - len(shape)], math.prod(shape)))
    columns = [np.broadcast_to(flat[..., k], batch).view(Column) for k in range(math.prod(shape))]
    return nest(columns, shape)


def _rows(result: Any, shape: tuple[int, ...], batch: tuple[int, ...]) -> Any:
    flat = np.empty((*batch, math.prod(shape)))
    for k, entry in enumerate(flatten(result)):
        flat[..., k] = entry
    return flat.reshape((*batch, *shape))


def _deliver(result: Any, out: Any) -> Any:
    if out is None:
        return result[()]
    if not isinstance(out, np.ndarray):
        raise TypeError(f"out must be an array, got {type(out).__name__}")
    if out.shape != result.shape:
        raise ValueError(f"out has shape {out.shape}, expected {result.shape}")
    np.copyto(out, result, casting="same_kind")
    return out
