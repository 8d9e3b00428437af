"""Exact partial derivatives of any quantity in any of its inputs.

On the plain path they come from dual numbers run through the very same algorithm; as programs from a
formulation's own recursion or the chain rule on the graph. Forward dynamics takes the short way: with
τ = ID(q, q̇, q̈) differentiated, ∂q̈/∂x = -H⁻¹ ∂τ/∂x for everything but the torque itself, and ∂q̈/∂τ = H⁻¹.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from armdyn.algebra import Dual
from armdyn.chain import Chain
from armdyn.errors import choose
from armdyn.formulations.coordinates import tangent_map
from armdyn.formulations.elimination import eliminate, inverted, solve
from armdyn.formulations.registry import Shapes
from armdyn.graph.derive import inline
from armdyn.graph.program import Program, flatten, nest, trace
from armdyn.parameters import realise


def derivative_ports(inputs: Shapes, outputs: Shapes, wrt: Sequence[str]) -> Shapes:
    """Names and shapes of the derivatives: output by output, `d{output}_d{input}`."""
    shapes = dict(inputs)
    for name in wrt:
        choose("input to differentiate in", name, shapes)
    return tuple((f"d{out}_d{name}", shape + shapes[name]) for out, shape in outputs for name in wrt)


def tangent_shapes(chain: Chain, inputs: Shapes) -> Shapes:
    """The inputs as derivatives count them: six displacements of a floating base stand for the seven of its pose."""
    return tuple((name, (chain.nv,) if name == "q" else shape) for name, shape in inputs)


def in_tangent_space(chain: Chain, slopes: Program) -> Program:
    """Derivatives with six columns for a floating base's pose: displacements in its own axes, as Pinocchio's are."""
    names = [port.name for port in slopes.inputs]
    if not chain.floating or "q" not in names:
        return slopes

    def function(*arguments: Any) -> Any:
        q = arguments[names.index("q")]
        found = tuple(
            tangent_columns(q, values) if port.name.endswith("_dq") else values
            for port, values in zip(slopes.outputs, inline(slopes, *arguments), strict=True)
        )
        return found[0] if len(found) == 1 else found

    outputs = [
        (port.name, (*port.shape[:-1], chain.nv) if port.name.endswith("_dq") else port.shape)
        for port in slopes.outputs
    ]
    return trace(slopes.name, function, {port.name: port.shape for port in slopes.inputs}, outputs)


def tangent_columns(q: Sequence[Any], values: Sequence[Any]) -> list[list[Any]]:
    """Rows of derivatives in q as rows of derivatives in the tangent space."""
    pose, n = tangent_map(list(q)), len(q)
    rows = [list(values[k : k + n]) for k in range(0, len(values), n)]
    six = range(6)
    return [[sum((x * p[j] for x, p in zip(row, pose, strict=False)), 0) for j in six] + row[7:] for row in rows]


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


def forward_dynamics(chain: Chain, inverse: Program, rates: Program, wrt: Sequence[str]) -> Program:
    """Derivatives of forward dynamics from inverse dynamics and its derivatives, H last among them."""
    inputs = {"tau" if port.name == "qdd" else port.name: port.shape for port in inverse.inputs}
    n = chain.nv

    def function(*arguments: Any) -> Any:
        given = dict(zip(inputs, arguments, strict=True))

        def put_in(program: Program, qdd: list[Any]) -> list[list[Any]]:
            known = {**given, "qdd": qdd}
            return inline(program, *(known[port.name] for port in program.inputs))

        (bias,), H = put_in(inverse, [0] * n), nest(put_in(rates, [0] * n)[-1], (n, n))
        arm = realise(chain, given["parameters"]) if "parameters" in given else chain
        alpha, reciprocals, _ = eliminate(arm, H)
        qdd = solve(alpha, reciprocals, [t - b for t, b in zip(given["tau"], bias, strict=True)])
        W = inverted(alpha, reciprocals)

        def solved(columns: list[Any]) -> list[list[Any]]:
            """-H⁻¹ times these columns: by elimination where a tree's zeros shorten that, otherwise with H⁻¹."""
            if not (chain.serial and chain.plain):
                found = (solve(alpha, reciprocals, [-x for x in column]) for column in columns)
                return [list(row) for row in zip(*found, strict=True)]
            return [[-sum((w * x for w, x in zip(row, one, strict=True)), 0) for one in columns] for row in W]

        slopes: dict[str, Any] = {"tau": W}
        for port, values in zip(rates.outputs, put_in(rates, qdd)[:-1], strict=False):
            columns = list(zip(*nest(values, port.shape), strict=True))
            slopes[port.name.removeprefix("dtau_d")] = solved(columns)
        result = tuple(slopes[name] for name in wrt)
        return result[0] if len(wrt) == 1 else result

    shapes = dict(tangent_shapes(chain, tuple(inputs.items())))
    outputs = [(f"dqdd_d{name}", (n, *shapes[name])) for name in wrt]
    return trace("forward_dynamics_derivatives", function, inputs, outputs)
