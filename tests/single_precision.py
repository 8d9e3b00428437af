"""What single precision may differ by: 100 units in the last place of the largest number that a program meets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from armdyn.graph.node import OPERATIONS
from armdyn.graph.program import Program

ULPS = 100
FUNCTIONS: dict[str, Any] = {name: operation.evaluate for name, operation in OPERATIONS.items()}
FUNCTIONS |= {"sin": np.sin, "cos": np.cos, "sqrt": np.sqrt, "sign": np.sign}
FUNCTIONS |= {"positive": lambda a: np.where(a > 0, 1.0, np.nan)}


def reference(program: Program, values: Sequence[np.ndarray]) -> tuple[list[np.ndarray], np.ndarray]:
    """The results (batch, *shape) in double precision, one node at a time, and the bound for every configuration."""
    batch = np.broadcast_shapes(*(v.shape[:1] for v in values))
    at: dict[int, Any] = {}
    for port, value in zip(program.inputs, values, strict=True):
        flat = value.reshape(len(value), -1)
        at.update((node.serial, flat[:, k].astype(float)) for k, node in enumerate(port.nodes))
    largest = np.zeros(batch)
    for node in program.order:
        if node.op == "const":
            at[node.serial] = np.float64(float(node.value))
        elif node.op != "input":
            at[node.serial] = FUNCTIONS[node.op](*(at[a.serial] for a in node.args))
        largest = np.fmax(largest, np.abs(at[node.serial]))
    results = [
        np.stack([np.broadcast_to(at[node.serial], batch) for node in port.nodes], -1).reshape(*batch, *port.shape)
        for port in program.outputs
    ]
    return results, ULPS * 2.0**-23 * largest


def agree(program: Program, values: Sequence[np.ndarray], got: Any) -> None:
    """Results in single precision are within the bound of those in double precision."""
    expected, bound = reference(program, values)
    for one, other in zip(got if isinstance(got, tuple) else (got,), expected, strict=True):
        assert one.dtype == np.float32
        assert one.shape == other.shape
        error = np.abs(one - other).reshape(len(other), -1).max(axis=1, initial=0.0)
        assert (error <= bound).all(), (error / bound).max()
