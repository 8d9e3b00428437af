"""The graph: folds keep values, nodes are shared, programs are well formed and the same in every process."""

from __future__ import annotations

import os
import subprocess
import sys
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from armdyn.chain.chain import generic_chain
from armdyn.graph import Graph, Node, Port, Program
from armdyn.graph.derive import jacobian
from armdyn.graph.fold import FOLDS
from armdyn.graph.node import OPERATIONS
from armdyn.graph.program import MalformedProgramError, check, dot, evaluate, interpret, text, trace
from armdyn.programs.program import program
from armdyn.programs.search import traced
from random_programs import EXACT, INPUTS, RECIPES, exact_values, float_functions, follow, program_of

POINT = [Fraction(3, 7), Fraction(-5, 4), Fraction(2, 9), Fraction(11, 6)]


@settings(max_examples=300)
@given(RECIPES)
def test_folding_and_sharing_keep_every_value_exactly(recipe):
    made = check(program_of(recipe))
    assert exact_values(made, POINT) == follow(recipe, POINT)


@settings(max_examples=60)
@given(RECIPES, st.lists(st.floats(-2, 2), min_size=INPUTS, max_size=INPUTS))
def test_the_evaluator_is_right_to_rounding(recipe, x):
    made = program_of(recipe)
    exact = exact_values(made, x, float_functions)
    for got, wanted, size in zip(evaluate(made, x)[0], exact, exact_sizes(made, x), strict=True):
        assert abs(got - wanted) <= 1e-13 * size


def exact_sizes(program: Program, x) -> list[float]:
    """For every output the sum of the sizes of what is added up: the scale of its rounding errors."""
    at: dict[int, float] = {node.serial: abs(v) for node, v in zip(program.inputs[0].nodes, x, strict=True)}
    for node in program.order:
        sizes = [at[a.serial] for a in node.args]
        if node.op == "const":
            at[node.serial] = abs(float(node.value))
        elif node.op in ("add", "sub"):
            at[node.serial] = sum(sizes)
        elif node.op == "mul":
            at[node.serial] = sizes[0] * sizes[1]
        elif node.op == "neg":
            at[node.serial] = sizes[0]
        elif node.op == "div":
            at[node.serial] = sizes[0] / 2  # denominators are 2 + x²
        elif node.op != "input":
            at[node.serial] = 1.0
    return [at[node.serial] + 1e-300 for node in program.outputs[0].nodes]


def test_equal_operations_are_one_node():
    g = Graph()
    x, y = g.input("x"), g.input("y")
    assert x + y is y + x
    assert x * y is y * x
    assert -(x - y) is y - x
    assert (-x) * y is -(x * y)


@pytest.mark.parametrize(
    ("expression", "kept"),
    [
        (lambda x, y: 0 * x + y, lambda x, y: y),
        (lambda x, y: 1 * x, lambda x, y: x),
        (lambda x, y: x - x, lambda x, y: 0),
        (lambda x, y: (x - y) + y, lambda x, y: x),
        (lambda x, y: x - (x - y), lambda x, y: y),
        (lambda x, y: (x + y) - x, lambda x, y: y),
        (lambda x, y: 3 * (2 * x), lambda x, y: 6 * x),
        (lambda x, y: 3 * x - 2 * x, lambda x, y: x),
        (lambda x, y: x - 2 * x, lambda x, y: -x),
        (lambda x, y: (x + 3) - 3, lambda x, y: x),
        (lambda x, y: (x - 3) + 5, lambda x, y: x + 2),
        (lambda x, y: (-x).sin() + x.sin(), lambda x, y: 0),
        (lambda x, y: (-x).cos(), lambda x, y: x.cos()),
        (lambda x, y: x / Fraction(1, 4), lambda x, y: 4 * x),
    ],
)
def test_folds(expression, kept):
    g = Graph()
    x, y = g.input("x"), g.input("y")
    got, wanted = expression(x, y), kept(x, y)
    assert got is wanted or got == wanted


def test_every_operation_has_folds_and_an_exact_meaning():
    assert set(EXACT) | {"sqrt"} == set(FOLDS)
    assert set(FOLDS) <= set(OPERATIONS)


def test_a_constant_leaves_the_graph():
    x = Graph().input("x")
    assert isinstance(x - x, Fraction)
    assert isinstance(0 * x, Fraction)


def malformed(change) -> Program:
    g = Graph()
    x, y = g.input("x"), g.input("y")
    inputs, outputs = [Port("x", (2,), (x, y))], [Port("z", (), (x * y + 2,))]
    change(g, x, y, inputs, outputs)
    return Program("broken", tuple(inputs), tuple(outputs))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda g, x, y, i, o: o.append(Port("w", (), (Node(g, "pow", (x, y), None, 99),))), "unknown operation"),
        (lambda g, x, y, i, o: o.append(Port("w", (), (Node(g, "add", (x,), None, 99),))), "takes 2 arguments, got 1"),
        (lambda g, x, y, i, o: o.append(Port("w", (2,), (x,))), "1 entries for shape"),
        (lambda g, x, y, i, o: o.append(Port("w", (), (g.input("other"),))), "not among the inputs"),
        (lambda g, x, y, i, o: o.append(Port("w", (), (Node(g, "neg", (o[0].nodes[0],), None, 0),))), "comes before"),
        (lambda g, x, y, i, o: o.append(Port("w", (), (Node(g, "const", (), 0.5, 99),))), "not a rational"),
        (lambda g, x, y, i, o: o.append(Port("w", (), (Node(g, "mul", (x, y), None, 99),))), "occurs twice"),
        (lambda g, x, y, i, o: o.append(Port("w", (), (Node(Graph(), "neg", (y,), None, 99),))), "another graph"),
    ],
)
def test_the_checker_finds_what_is_wrong(change, message):
    with pytest.raises(MalformedProgramError, match=message):
        check(malformed(change))


def test_programs_of_arms_are_well_formed():
    chain = generic_chain("RPRR")
    for quantity, method in (("inertia_matrix", "meeting_frame"), ("inverse_dynamics", "second_moments")):
        check(traced(chain, quantity, method))
        check(program(chain, quantity, method))


def test_text_and_dot():
    made = trace("f", lambda x: [2 * x[0] - x[1], -(x[0] * x[1])], {"x": (2,)}, [("y", (2,))])
    assert text(made) == (
        "# f: 2M 1A, 0 sines and cosines\n"
        "input x[2]: x0 x1\n"
        "t0 = x0 * 2\n"
        "t1 = x1 - t0\n"
        "t2 = x0 * x1\n"
        "output y[2]: -t1 -t2\n"
    )
    drawing = dot(made)
    assert drawing.startswith('digraph "f" {')
    assert drawing.endswith("}\n")
    assert drawing.count("->") == sum(len(node.args) for node in made.order) + 2


SCRIPT = """
from armdyn.chain.chain import generic_chain
from armdyn.graph.program import text
from armdyn.programs.program import program
from armdyn.programs.search import auto
chain = generic_chain("RRPRR", 4)
print(auto(chain, "inertia_matrix"))
print(text(program(chain, "inertia_matrix", "meeting_frame")))
print(text(program(chain, "inverse_dynamics", "second_moments")))
"""


def test_output_is_the_same_in_every_process():
    texts = set()
    for seed in ("0", "1", "4711"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "ARMDYN_CACHE": "off"}
        run = subprocess.run(
            [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True
        )
        texts.add(run.stdout)
    assert len(texts) == 1
    assert texts.pop().startswith("meeting_frame\n# inertia_matrix_meeting_frame: ")


def test_the_table_of_operations_agrees_with_the_nodes():
    """Arity, value and derivative of every operation: differences of its own values tell the slopes."""
    at = {"positive": [0.7], "sqrt": [0.7]}
    for name, operation in OPERATIONS.items():
        if operation.partials is None:
            continue
        x = at.get(name, [0.7, -1.3][: operation.arity])
        assert len(x) == operation.arity
        made = trace(name, lambda x, name=name: x[0].graph.make(name, *x), {"x": (operation.arity,)}, [("y", ())])
        assert evaluate(made, x) == [[pytest.approx(operation.evaluate(*x))]]
        slopes = evaluate(jacobian(made, ["x"]), x)[0]
        for k, slope in enumerate(slopes):
            h = 1e-6
            ends = [[y + sign * h if j == k else y for j, y in enumerate(x)] for sign in (1, -1)]
            above, below = (operation.evaluate(*end) for end in ends)
            assert slope == pytest.approx((above - below) / (2 * h), abs=1e-8)


def test_a_program_is_walked_with_other_functions():
    made = trace("f", lambda x: [2 * x[0] - x[1].sin()], {"x": (2,)}, [("y", (1,))])
    words = {name: lambda *a, name=name: f"{name}({', '.join(a)})" for name in OPERATIONS}
    assert interpret(made, words, str, ["a", "b"]) == [["sub(mul(a, 2), sin(b))"]]
