"""From formulations to graphs: every way a formulation leaves open, rewritten; the shortest is the program.

Derivatives are graphs too, by a formulation's own recursion or by the chain rule.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from armdyn.chain import Chain
from armdyn.formulations import QUANTITIES, substitution
from armdyn.formulations.registry import Options, Run
from armdyn.graph.derive import inline, jacobian
from armdyn.graph.program import Program, flatten, trace
from armdyn.graph.simplify import once, simplify
from armdyn.programs.assemble import assemble, reframed
from armdyn.programs.derivatives import derivative_ports, forward_dynamics, in_tangent_space

FEW_JOINTS = 4  # up to here derivatives are sought both ways
FEW_SLOPES = 1500  # operations of derivatives up to which rewriting them is quick and gains
FEW, NEAR = 400, 1.15  # operations of programs, and their ratio, up to which all of them are rewritten to find the best
# Which ends of a formulation may become the shortest when they are rewritten: all of up to FEW operations, before or
# after a first round, and of the others those that lag behind by no more than rewriting has been seen to make good.
LATER = 35  # operations behind the best after a first round
MANY, LAG, FAR = 1000, 1.25, 1.5  # for programs of so many operations: ratios to the best, as traced and as tallied


@lru_cache(maxsize=256)
def program(chain: Chain, quantity: str, method: str, options: Options = Options()) -> Program:
    """The graph of this arm's quantity, by this formulation."""
    if options.derivatives:
        return _derivatives(chain, quantity, method, options)
    first, *others = _ways(chain, quantity, method, options)
    near = [one for one in others if _total(one) <= min(FEW, NEAR * _total(first))]
    best = min((simplify(one) for one in (first, *near)), key=_total)
    for end in QUANTITIES[quantity].formulation(method).ends:
        if QUANTITIES[quantity].formulation(end).serves(chain) and _may_be_shorter(chain, quantity, end, options, best):
            best = min(best, replace(program(chain, quantity, end, options), name=best.name), key=_total)
    return best


def _total(program: Program) -> int:
    return program.operations.total


def _may_be_shorter(chain: Chain, quantity: str, method: str, options: Options, best: Program) -> bool:
    """Whether another formulation's program may have fewer operations than the best, once it is rewritten."""
    from armdyn.programs.cost import published  # which counts programs, and so stands above this module

    least = _total(best)
    if least > MANY and published(chain, quantity, method).total > FAR * least:
        return False
    plain = traced(chain, quantity, method, options)
    if _total(plain) <= max(FEW, least):
        return True
    if _total(plain) > max(MANY, LAG * least):
        return False
    return _total(once(plain)) <= max(FEW, least + LATER)


def _derivatives(chain: Chain, quantity: str, method: str, options: Options) -> Program:
    """The graph of the partial derivatives."""
    from armdyn.programs.choose import auto  # which counts programs, and so stands above this module

    plain, wrt = replace(options, derivatives=()), options.derivatives
    derivative_ports(assemble(chain, quantity, method, plain).inputs, (), wrt)
    solved = QUANTITIES[quantity].inverse_of
    if not solved:
        return _slopes(chain, quantity, method, plain, wrt)
    others = tuple(name for name in wrt if name != "tau")
    key = auto(chain, solved, replace(plain, derivatives=(*others, "qdd")))
    rates = _slopes(chain, solved, key, plain, (*others, "qdd"))
    inverse = program(chain, solved, auto(chain, solved, plain), plain)
    return forward_dynamics(chain, inverse, rates, wrt)


def _slopes(chain: Chain, quantity: str, method: str, options: Options, wrt: tuple[str, ...]) -> Program:
    """The derivatives by the formulation's own way, if it has one for these inputs, or by the chain rule."""
    found = []
    own = QUANTITIES[quantity].formulation(method).derivatives
    if own is not None and set(wrt) <= {name for name, _ in QUANTITIES[quantity].inputs}:
        found.append(_own_slopes(chain, quantity, method, options, wrt, own))
    if not found or chain.n <= FEW_JOINTS:
        found.append(in_tangent_space(chain, jacobian(program(chain, quantity, method, options), wrt)))
    shorter = (simplify(one) if _total(one) <= FEW_SLOPES else one for one in found)
    return min(shorter, key=_total)


def _own_slopes(chain: Chain, quantity: str, method: str, options: Options, wrt: tuple[str, ...], own: Run) -> Program:
    """A formulation's own derivatives, and beside them those of rotors, friction and a wrench by the chain rule."""

    def only_added(run: Run, arm: Chain, *rest: Any) -> Any:
        return QUANTITIES[quantity].physics(lambda arm, *_: [0] * arm.n, arm, *rest)

    whole = assemble(chain, quantity, method, options, physics=only_added)
    shapes = dict(whole.inputs)
    others = in_tangent_space(chain, jacobian(trace(quantity, whole.function, shapes, whole.outputs), wrt))
    bare = assemble(
        chain, quantity, method, options, whole=lambda run, arm, inputs, *_: substitution.derivatives(own, arm, inputs)
    )

    def function(*arguments: Any) -> Any:
        slopes = dict(zip(shapes, bare.function(*arguments), strict=False))
        more = inline(others, *arguments)
        total = tuple(
            [a + b for a, b in zip(flatten(slopes[name]), flat, strict=True)]
            for name, flat in zip(wrt, more, strict=True)
        )
        return total[0] if len(wrt) == 1 else total

    outputs = [(port.name, port.shape) for port in others.outputs]
    return trace(f"{quantity}_derivatives", function, shapes, outputs)


def traced(chain: Chain, quantity: str, method: str, options: Options = Options()) -> Program:
    """The same graph as the formulation writes it, folded and shared but not rewritten."""
    return _ways(chain, quantity, method, options)[0]


@lru_cache(maxsize=16)
def _ways(chain: Chain, quantity: str, method: str, options: Options) -> tuple[Program, ...]:
    """The graphs of every way the formulation leaves open, the shortest first."""
    parts = _parts(chain, quantity, method, options)
    programs = []
    for way in QUANTITIES[quantity].formulation(method).ways(reframed(chain, quantity, options)):
        assembly = assemble(chain, quantity, method, options, {**parts, **way})
        programs.append(trace(f"{quantity}_{method}", assembly.function, dict(assembly.inputs), assembly.outputs))
    return tuple(sorted(programs, key=lambda one: one.operations.total))


def _parts(chain: Chain, quantity: str, method: str, options: Options) -> Mapping[str, Run]:
    """The inertia matrix and the bias of fewest operations for what is made of them."""
    from armdyn.programs.choose import auto  # which counts programs, and so stands above this module

    found = {}
    for part in QUANTITIES[quantity].formulation(method).made_of:
        key = auto(chain, part, Options(parameters=options.parameters))
        found[part] = QUANTITIES[part].formulation(key).run
    return found
