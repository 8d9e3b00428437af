"""Partial derivatives by dual numbers through the same algorithm, without a graph."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from armdyn.algebra import Dual
from armdyn.chain import Chain
from armdyn.errors import choose
from armdyn.formulations.coordinates import tangent_map
from armdyn.formulations.registry import Shapes
from armdyn.graph.program import flatten, nest


def derivative_ports(inputs: Shapes, outputs: Shapes, wrt: Sequence[str]) -> Shapes:
    """Names and shapes of the derivatives: output by output, `d{output}_d{input}`."""
    shapes = dict(inputs)
    for name in wrt:
        choose("input to differentiate in", name, shapes)
    return tuple((f"d{out}_d{name}", shape + shapes[name]) for out, shape in outputs for name in wrt)


def by_duals(function: Callable[..., Any], inputs: Shapes, outputs: Shapes, wrt: Sequence[str]) -> Callable[..., Any]:
    """The function that computes the derivatives by dual numbers, one nested list per port of `derivative_ports`."""
    names = [name for name, _ in inputs]

    def derivatives(*arguments: Any) -> Any:
        flat = [x for name in wrt for x in flatten(arguments[names.index(name)])]
        duals = iter(Dual.variables(flat))
        order = {name: [next(duals) for _ in flatten(arguments[names.index(name)])] for name in wrt}
        moved = [
            nest(order[name], shape) if name in wrt else x for (name, shape), x in zip(inputs, arguments, strict=True)
        ]
        results = function(*moved)
        results = (results,) if len(outputs) == 1 else results
        ports = []
        for result in results:
            slopes = [x.slopes if isinstance(x, Dual) else (0,) * len(flat) for x in flatten(result)]
            start = 0
            for size in (math.prod(dict(inputs)[name]) for name in wrt):
                ports.append([list(row[start : start + size]) for row in slopes])
                start += size
        return ports[0] if len(ports) == 1 else tuple(ports)

    return derivatives


def tangent_shapes(chain: Chain, inputs: Shapes) -> Shapes:
    """The input shapes in tangent space: six displacements of a floating base for the seven numbers of its pose."""
    return tuple((name, (chain.nv,) if name == "q" else shape) for name, shape in inputs)


def tangent_columns(q: Sequence[Any], values: Sequence[Any]) -> list[list[Any]]:
    """Rows of derivatives with respect to q as rows of derivatives in tangent space."""
    pose, n = tangent_map(list(q)), len(q)
    rows = [list(values[k : k + n]) for k in range(0, len(values), n)]
    six = range(6)
    return [[sum((x * p[j] for x, p in zip(row, pose, strict=False)), 0) for j in six] + row[7:] for row in rows]
