"""Programs of exact partial derivatives of any quantity in any of its inputs.

They come from a formulation's own recursion where it has one, or from the chain rule on the graph. What solves another
quantity for its last input (forward dynamics) takes the short way: with τ = ID(q, q̇, q̈) differentiated,
∂q̈/∂x = -H⁻¹ ∂τ/∂x for everything but the torque itself, and ∂q̈/∂τ = H⁻¹.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from armdyn.chain import Chain
from armdyn.formulations import QUANTITIES, substitution
from armdyn.formulations.elimination import eliminate, inverted, solve
from armdyn.formulations.physics import gears_lose
from armdyn.formulations.registry import Options, Run
from armdyn.graph.derive import inline, jacobian
from armdyn.graph.program import Program, flatten, nest, trace
from armdyn.graph.simplify import simplify
from armdyn.programs.assemble import assemble, at_run_time
from armdyn.programs.budget import BUDGET
from armdyn.programs.duals import derivative_ports, tangent_columns, tangent_shapes
from armdyn.programs.search import auto, shortest


def derivatives(chain: Chain, quantity: str, method: str, options: Options) -> Program:
    """The program of the partial derivatives in the inputs that the options name."""
    plain, wrt = replace(options, derivatives=()), options.derivatives
    derivative_ports(assemble(chain, quantity, method, plain).inputs, (), wrt)  # an error for inputs it has not
    solved = QUANTITIES[quantity].inverse_of
    if not solved or gears_lose(chain, plain):  # the way through H and its inverse needs τ linear in q̈
        return _partials(chain, quantity, method, plain, wrt)
    others = tuple(name for name in wrt if name != "tau")
    key = auto(chain, solved, replace(plain, derivatives=(*others, "qdd")))
    rates = _partials(chain, solved, key, plain, (*others, "qdd"))
    inverse = shortest(chain, solved, auto(chain, solved, plain), plain)
    return _forward_dynamics(chain, inverse, rates, wrt)


def _partials(chain: Chain, quantity: str, method: str, options: Options, wrt: tuple[str, ...]) -> Program:
    """The derivatives by the formulation's own recursion, if it has one for these inputs, or by the chain rule."""
    entry, found = QUANTITIES[quantity], []
    own = entry.formulation(method).derivatives
    if own is not None and not gears_lose(chain, options) and set(wrt) <= {name for name, _ in entry.inputs}:
        found.append(_by_recursion(chain, quantity, method, options, wrt, own))
    if not found or chain.n <= BUDGET.few_joints:
        found.append(_in_tangent_space(chain, jacobian(shortest(chain, quantity, method, options), wrt)))
    shorter = (simplify(one) if one.operations.total <= BUDGET.quick else one for one in found)
    return min(shorter, key=lambda one: one.operations.total)


def _by_recursion(
    chain: Chain, quantity: str, method: str, options: Options, wrt: tuple[str, ...], own: Run
) -> Program:
    """A formulation's own derivatives, and beside them those of rotors, friction and a wrench by the chain rule."""

    def only_added(run: Run, arm: Chain, *rest: Any) -> Any:
        return QUANTITIES[quantity].physics(lambda arm, *_: [0] * arm.n, arm, *rest)

    whole = assemble(chain, quantity, method, options, physics=only_added)
    shapes = dict(whole.inputs)
    others = _in_tangent_space(chain, jacobian(trace(quantity, whole.function, shapes, whole.outputs), wrt))
    bare = assemble(
        chain, quantity, method, options, whole=lambda run, arm, inputs, *_: substitution.derivatives(own, arm, inputs)
    )

    def function(*arguments: Any) -> Any:
        partials = dict(zip(shapes, bare.function(*arguments), strict=False))
        more = inline(others, *arguments)
        total = tuple(
            [a + b for a, b in zip(flatten(partials[name]), flat, strict=True)]
            for name, flat in zip(wrt, more, strict=True)
        )
        return total[0] if len(wrt) == 1 else total

    outputs = [(port.name, port.shape) for port in others.outputs]
    return trace(f"{quantity}_derivatives", function, shapes, outputs)


def _in_tangent_space(chain: Chain, partials: Program) -> Program:
    """Derivatives with six columns for a floating base's pose: displacements in its own axes, as Pinocchio's are."""
    names = [port.name for port in partials.inputs]
    if not chain.floating or "q" not in names:
        return partials

    def function(*arguments: Any) -> Any:
        q = arguments[names.index("q")]
        found = tuple(
            tangent_columns(q, values) if port.name.endswith("_dq") else values
            for port, values in zip(partials.outputs, inline(partials, *arguments), strict=True)
        )
        return found[0] if len(found) == 1 else found

    outputs = [
        (port.name, (*port.shape[:-1], chain.nv) if port.name.endswith("_dq") else port.shape)
        for port in partials.outputs
    ]
    return trace(partials.name, function, {port.name: port.shape for port in partials.inputs}, outputs)


def _forward_dynamics(chain: Chain, inverse: Program, rates: Program, wrt: Sequence[str]) -> Program:
    """Derivatives of forward dynamics from inverse dynamics and its derivatives, H last among them."""
    inputs = {"tau" if port.name == "qdd" else port.name: port.shape for port in inverse.inputs}
    n = chain.nv

    def function(*arguments: Any) -> Any:
        given = dict(zip(inputs, arguments, strict=True))

        def put_in(program: Program, qdd: list[Any]) -> list[list[Any]]:
            known = {**given, "qdd": qdd}
            return inline(program, *(known[port.name] for port in program.inputs))

        (bias,), H = put_in(inverse, [0] * n), nest(put_in(rates, [0] * n)[-1], (n, n))
        last = next((name for name in ("parameters", "geometry") if name in given), "")
        arm = at_run_time(chain, last, given[last]) if last else chain
        alpha, reciprocals, _ = eliminate(arm, H)
        qdd = solve(alpha, reciprocals, [t - b for t, b in zip(given["tau"], bias, strict=True)])
        W = inverted(alpha, reciprocals)

        def solved(columns: list[Any]) -> list[list[Any]]:
            """-H⁻¹ times these columns: by elimination where a tree's zeros shorten that, otherwise with H⁻¹."""
            if not (chain.serial and chain.plain):
                found = (solve(alpha, reciprocals, [-x for x in column]) for column in columns)
                return [list(row) for row in zip(*found, strict=True)]
            return [[-sum((w * x for w, x in zip(row, one, strict=True)), 0) for one in columns] for row in W]

        partials: dict[str, Any] = {"tau": W}
        for port, values in zip(rates.outputs, put_in(rates, qdd)[:-1], strict=False):
            columns = list(zip(*nest(values, port.shape), strict=True))
            partials[port.name.removeprefix("dtau_d")] = solved(columns)
        result = tuple(partials[name] for name in wrt)
        return result[0] if len(wrt) == 1 else result

    shapes = dict(tangent_shapes(chain, tuple(inputs.items())))
    outputs = [(f"dqdd_d{name}", (n, *shapes[name])) for name in wrt]
    return trace("forward_dynamics_derivatives", function, inputs, outputs)
