"""Exact partial derivatives of any quantity in any of its inputs.

On the plain path they come from dual numbers run through the very same algorithm; as programs from the
chain rule on the graph. Forward dynamics takes the short way: with τ = ID(q, q̇, q̈) differentiated,
∂q̈/∂x = -H⁻¹ ∂τ/∂x for everything but the torque itself, and ∂q̈/∂τ = H⁻¹.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from armdyn.algebra import Dual
from armdyn.errors import choose
from armdyn.graph.derive import inline, jacobian
from armdyn.graph.program import Program, flatten, nest, trace

Shapes = tuple[tuple[str, tuple[int, ...]], ...]


def derivative_ports(inputs: Shapes, outputs: Shapes, wrt: Sequence[str]) -> Shapes:
    """Names and shapes of the derivatives: output by output, `d{output}_d{input}`."""
    shapes = dict(inputs)
    for name in wrt:
        choose("input to differentiate in", name, shapes)
    return tuple((f"d{out}_d{name}", shape + shapes[name]) for out, shape in outputs for name in wrt)


def by_duals(function: Callable[..., Any], inputs: Shapes, outputs: Shapes, wrt: Sequence[str]) -> Callable[..., Any]:
    """The function that gives the derivatives by dual numbers, one nested list a port of `derivative_ports`."""
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


def forward_dynamics(forward: Program, inverse: Program, inverted: Program, wrt: Sequence[str]) -> Program:
    """Derivatives of forward dynamics from the programs of forward and inverse dynamics and H⁻¹."""
    others = [name for name in wrt if name != "tau"]
    rates = jacobian(inverse, others) if others else None
    inputs = {port.name: port.shape for port in forward.inputs}
    n = forward.outputs[0].shape[0]

    def function(*arguments: Any) -> Any:
        given = dict(zip(inputs, arguments, strict=True))
        (qdd,) = inline(forward, *arguments)
        known = {**given, "qdd": qdd}
        (flat,) = inline(inverted, *(known[port.name] for port in inverted.inputs))
        H = nest(flat, (n, n))
        slopes: dict[str, Any] = {"tau": H}
        found = inline(rates, *(known[port.name] for port in rates.inputs)) if rates else []
        for name, values in zip(others, found, strict=True):
            rows = nest(values, (n, len(values) // n))
            columns = range(len(values) // n)
            slopes[name] = [[-sum((H[i][k] * rows[k][j] for k in range(n)), 0) for j in columns] for i in range(n)]
        result = tuple(slopes[name] for name in wrt)
        return result[0] if len(wrt) == 1 else result

    outputs = [(f"dqdd_d{name}", (n, *inputs[name])) for name in wrt]
    return trace(f"{forward.name}_derivatives", function, inputs, outputs)
