"""Random programs, and their exact values in rational arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction

from hypothesis import strategies as st

from armdyn.graph import Node, Program
from armdyn.graph.program import trace

INPUTS = 4
CONSTANTS = (0, 1, -1, 2, Fraction(1, 2), Fraction(-3, 7), Fraction(5, 3))
EXACT = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "neg": lambda a: -a,
    # Rational stand-ins with the signs of the sine and the cosine: what is folded of them is kept exactly.
    "sin": lambda a: a / (1 + a * a),
    "cos": lambda a: 1 / (1 + a * a),
    "sign": lambda a: Fraction((a > 0) - (a < 0)),
    "positive": lambda a: Fraction(1) if a > 0 else Fraction("nan"),
}
STEP = st.tuples(st.sampled_from("+-*+-*+-*ncsk/"), st.integers(0, 10**6), st.integers(0, 10**6))
RECIPES = st.tuples(st.lists(STEP, min_size=1, max_size=40), st.lists(st.integers(0, 10**6), min_size=1, max_size=5))


def follow(recipe, x):
    """The outputs of a recipe on scalars of any type; functions are taken of inputs only, quotients of 2 + x² only."""
    steps, wanted = recipe
    values = [*x, *CONSTANTS]
    for op, i, j in steps:
        a, b = values[i % len(values)], values[j % len(values)]
        one, other = x[i % INPUTS], x[j % INPUTS]
        made = {
            "+": lambda a=a, b=b: a + b,
            "-": lambda a=a, b=b: a - b,
            "*": lambda a=a, b=b: a * b,
            "n": lambda a=a: -a,
            "s": lambda one=one: _function("sin", one),
            "c": lambda one=one: _function("cos", -one),
            "k": lambda a=a, j=j: CONSTANTS[j % len(CONSTANTS)] * a,
            "/": lambda a=a, other=other: a / (2 + other * other),
        }[op]()
        values.append(made)
    return [values[-1 - k % len(values)] for k in wanted]


def _function(name, x):
    return getattr(x, name)() if isinstance(x, Node) else EXACT[name](x)


def program_of(recipe) -> Program:
    return trace("random", lambda x: follow(recipe, x), {"x": (INPUTS,)}, [("y", (len(recipe[1]),))])


def exact_values(program: Program, x, functions=None) -> list[Fraction]:
    """The outputs in rational arithmetic; `functions` may give sines and cosines of inputs by name."""
    at: dict[int, Fraction] = {}
    flat = [node for port in program.inputs for node in port.nodes]
    at.update((node.serial, Fraction(v)) for node, v in zip(flat, x, strict=True))
    for node in program.order:
        if node.op == "const":
            at[node.serial] = node.value
        elif node.op in ("sin", "cos") and functions:
            at[node.serial] = functions(node.op, at[node.args[0].serial])
        elif node.op != "input":
            at[node.serial] = EXACT[node.op](*(at[a.serial] for a in node.args))
    return [at[node.serial] for port in program.outputs for node in port.nodes]


def float_functions(name, angle: Fraction) -> Fraction:
    """The rational value of the float sine or cosine, as `evaluate` has it."""
    return Fraction(getattr(math, name)(float(angle)))
