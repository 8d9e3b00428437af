"""The table of operations: everything that backends and derivatives need to know about each of them.

A program is a list of nodes, arguments before their users (`Program.order`). A node is an input (`node.op` is "input",
`node.value` its name), a constant ("const", an exact `Fraction`) or one of these operations on `node.args`. To run a
program in another library, provide its function for every name here and walk the nodes, as `interpret` does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

LEAVES = ("const", "input")


@dataclass(frozen=True)
class Operation:
    """One operation: `text` is written between two arguments or in front of one, or is a function's name."""

    name: str
    arity: int
    text: str
    evaluate: Callable[..., Any]  # on floats
    # The derivative with respect to each argument, as nodes or numbers, given the node; None if not differentiable.
    partials: Callable[[Any], tuple[Any, ...]] | None
    commutative: bool = False

    @property
    def infix(self) -> bool:
        """Whether the text is written between the arguments."""
        return self.arity == 2


OPERATIONS: dict[str, Operation] = {
    operation.name: operation
    for operation in (
        Operation("add", 2, "+", lambda a, b: a + b, lambda node: (1, 1), commutative=True),
        Operation("sub", 2, "-", lambda a, b: a - b, lambda node: (1, -1)),
        Operation("mul", 2, "*", lambda a, b: a * b, lambda node: node.args[::-1], commutative=True),
        Operation("div", 2, "/", lambda a, b: a / b, lambda node: (1 / node.args[1], -(node / node.args[1]))),
        Operation("neg", 1, "-", lambda a: -a, lambda node: (-1,)),
        Operation("sin", 1, "sin", math.sin, lambda node: (node.args[0].cos(),)),
        Operation("cos", 1, "cos", math.cos, lambda node: (-node.args[0].sin(),)),
        Operation("sqrt", 1, "sqrt", math.sqrt, lambda node: (1 / (2 * node),)),
        # -1, 0 or 1; its derivative is 0 except at 0, where it does not exist.
        Operation("sign", 1, "sign", lambda a: math.copysign(1.0, a) if a else a, lambda node: (0,)),
        # 1 where the argument is positive, NaN elsewhere.
        Operation("positive", 1, "positive", lambda a: 1.0 if a > 0 else math.nan, lambda node: (0,)),
        # a·b + c, rounded once: introduced by code generation, after differentiation.
        Operation("fma", 3, "fma", lambda a, b, c: a * b + c, None),
    )
}


def partial_derivatives(node: Any) -> Iterable[Any]:
    """The derivatives of a node with respect to each of its arguments."""
    rule = OPERATIONS[node.op].partials
    if rule is None:
        raise ValueError(f"{node.op} has no derivative: differentiate before code generation introduces it")
    return rule(node)
