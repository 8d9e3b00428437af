"""Rewriting programs: the same values, never more operations, and the savings it is there for."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest
from hypothesis import given, settings

import armdyn
from armdyn.chain.chain import generic_chain
from armdyn.graph.program import check, evaluate, trace
from armdyn.graph.simplify import REWRITING, simplify
from armdyn.programs.search import traced
from random_programs import RECIPES, exact_values, float_functions, program_of

POINT = [Fraction(3, 7), Fraction(-5, 4), Fraction(2, 9), Fraction(11, 6)]


def operations(function, inputs: int):
    """Operations before and after rewriting, once the values have been compared."""
    made = trace("f", function, {"x": (inputs,)}, [("y", (len(function(list(range(1, inputs + 1)))),))])
    shorter = check(simplify(made))
    x = [Fraction(k, 3) for k in range(1, inputs + 1)]
    assert exact_values(made, x) == exact_values(shorter, x)
    return made.operations, shorter.operations


@settings(max_examples=400)
@given(RECIPES)
def test_rewriting_keeps_every_value_exactly_and_never_costs(recipe):
    made = program_of(recipe)
    shorter = check(simplify(made))
    assert exact_values(shorter, POINT) == exact_values(made, POINT)
    assert shorter.operations.total <= made.operations.total
    assert shorter.operations.trig <= made.operations.trig
    assert [(p.name, p.shape) for p in shorter.inputs] == [(p.name, p.shape) for p in made.inputs]
    assert [(p.name, p.shape) for p in shorter.outputs] == [(p.name, p.shape) for p in made.outputs]


@pytest.mark.parametrize(
    ("function", "total"),
    [
        (lambda x: [x[0] * x[1] + x[0] * x[2]], 2),  # a common factor
        (lambda x: [3 * x[0] + 3 * x[1] - 3 * x[2]], 3),  # a common constant
        (lambda x: [(2 * x[0]) * x[1], x[0] * x[1]], 2),  # a constant in the way of a common product
        (lambda x: [x[0] + x[1] + x[2], x[0] + x[3] + x[2]], 3),  # a common sum, whatever the order
        (lambda x: [x[0] + 2 * x[1], 3 * x[0] + 6 * x[1] + x[2]], 4),  # a multiple of a common sum
        (lambda x: [(x[0] + x[1]) - (x[1] - x[2]) - x[2]], 0),  # terms that cancel
        (lambda x: [2 * (3 * x[0] + 5 * x[1]) + x[2]], 4),  # a constant that goes into a bracket
        (lambda x: [x[0] * x[1] * x[2], x[2] * x[0] * x[3]], 3),  # a common product, whatever the order
        (lambda x: [x[3] * (2 * x[0] + 3 * x[1]) * 5 + x[2]], 5),  # a scale that goes to a coefficient further on
        (lambda x: [x[0] * (2 * x[1] + 3 * x[2]), x[0] * (2 * x[2] + 3 * x[3]), x[0] * (2 * x[3] - 5 * x[1])], 10),
    ],
)
def test_savings(function, total):
    before, after = operations(function, 4)
    assert after.total == total
    assert after.total <= before.total


def arms():
    yield from ((name, armdyn.load(name).chain) for name in ("puma560", "ur5", "panda"))
    yield "6R", generic_chain("R" * 6)
    yield "RRPRR", generic_chain("RRPRR", 5)


@pytest.mark.parametrize("quantity", ["inertia_matrix", "inverse_dynamics", "forward_dynamics"])
@pytest.mark.parametrize(("name", "chain"), list(arms()), ids=lambda x: x if isinstance(x, str) else "")
def test_programs_of_arms_get_shorter_and_stay_as_accurate(name, chain, quantity):
    method = {"inertia_matrix": "meeting_frame", "inverse_dynamics": "second_moments"}.get(quantity, "articulated_body")
    made = traced(chain, quantity, method)
    shorter = simplify(made)
    assert shorter.operations.total < made.operations.total
    rng = random.Random(7)
    errors = {"before": 0.0, "after": 0.0}
    for _ in range(3):
        x = [[rng.uniform(-2, 2) for _ in port.nodes] for port in made.inputs]
        judge = exact_values(made, [v for port in x for v in port], float_functions)
        for label, one in (("before", made), ("after", shorter)):
            flat = [v for port in evaluate(one, *x) for v in port]
            size = max(abs(float(v)) for v in judge)
            worst = max(abs(got - wanted) for got, wanted in zip(flat, judge, strict=True)) / size
            errors[label] = max(errors[label], float(worst))
    assert errors["after"] <= 3 * errors["before"] + 1e-15


def test_a_large_program_is_left_alone():
    def long(x):
        total = x[0]
        for k in range(REWRITING.largest + 1):
            total = total * x[k % 2] + x[1 - k % 2]
        return [total]

    made = trace("long", long, {"x": (2,)}, [("y", (1,))])
    assert simplify(made) is made


def test_scales_stay_moderate():
    """A hundred coefficients of a millionth, one inside the other, must not underflow."""

    def nested(x):
        total = x[0]
        for k in range(100):
            total = x[k % 2] * (Fraction(1, 10**6) * total + Fraction(1, 3 * 10**6) * x[2])
        return [total]

    made = trace("nested", nested, {"x": (3,)}, [("y", (1,))])
    shorter = simplify(made)
    x = [1e6, 2e6, 0.5]
    for got, wanted in zip(evaluate(shorter, x)[0], exact_values(made, x), strict=True):
        assert got == pytest.approx(float(wanted), rel=1e-12)


def test_the_result_does_not_change_when_simplified_again():
    made = traced(armdyn.load("puma560").chain, "inertia_matrix", "meeting_frame")
    once = simplify(made)
    assert simplify(once).operations.total == once.operations.total
