"""A step is written once: the conditions of its order, its programs, and what else runs it."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy import integrate
from typer.testing import CliRunner

import armdyn
from armdyn.cli import app
from armdyn.codegen.compile import load_or_compile
from armdyn.codegen.text.numpy import compile_numpy
from armdyn.errors import InputError
from armdyn.graph.program import evaluate, flatten, trace
from armdyn.options import ADAPTIVE, FIXED
from armdyn.programs.stepping import (  # fmt: skip
    ARK4,
    METHODS,
    RK4,
    RK5,
    SCHEMES,
    one_step_methods,
    rates,
    rooted_trees,
    stage_programs,
    step_program,
    without_past,
)
from random_trees import TreeKind, random_tree


def linear_order(scheme):
    """The order for y' = λ y by the series of R(z), which knows nothing of trees."""
    powers, slopes = scheme.order + 2, []
    for row in scheme.a:
        own = [Fraction(1), *[Fraction(0)] * powers]
        for a, slope in zip(row, slopes, strict=True):
            own = [x + a * y for x, y in zip(own, [Fraction(0), *slope], strict=False)]
        slopes.append(own)
    series = [Fraction(1), *(sum(b * k[p] for b, k in zip(scheme.b, slopes, strict=True)) for p in range(powers))]
    exact, order = Fraction(1), -1
    for p, x in enumerate(series):
        exact = exact / p if p else exact
        if abs(x - exact) > Fraction(1, 10**20):
            break
        order = p
    return order


@pytest.mark.parametrize("scheme", SCHEMES.values(), ids=SCHEMES)
def test_every_method_meets_the_conditions_of_its_order_in_fractions(scheme):
    residuals = dict(scheme.residuals())
    assert max(map(abs, residuals.values())) < Fraction(1, 10**20)  # ARK4 is published with 25 digits
    if not scheme.past:
        assert linear_order(scheme) == scheme.order


def test_the_trees_are_those_that_are_published():
    """OEIS A000081; every order-5 method meets 17 conditions (Hairer, Nørsett and Wanner, table II.2.3)."""
    assert [len(rooted_trees(size)) for size in range(1, 8)] == [1, 1, 2, 4, 9, 20, 48]
    assert sum(1 for name, _ in RK5.residuals() if "tree" in name) == 17


@pytest.mark.parametrize("scheme", [RK4, RK5, ARK4], ids=lambda scheme: scheme.name)
def test_a_wrong_coefficient_or_order_is_refused(scheme):
    with pytest.raises(ValueError, match="is not of order"):
        replace(scheme, order=scheme.order + 1)
    for i, row in enumerate(scheme.a):
        for j, a in enumerate(row):
            other = tuple(a + Fraction(1, 1000) if j == k else x for k, x in enumerate(row))
            with pytest.raises(ValueError, match="is not of order"):
                replace(scheme, a=(*scheme.a[:i], other, *scheme.a[i + 1 :]))
    with pytest.raises(ValueError, match="not an explicit tableau"):
        replace(scheme, a=scheme.a[1:])


@pytest.mark.parametrize("method", one_step_methods())
@pytest.mark.parametrize("name", ["planar3", "flying"])
def test_a_step_program_takes_the_steps_of_simulate(name, method):
    """Torques, run-time parameters and the step's length are inputs; LLVM and NumPy run it alike."""
    if name == "flying":
        arm = armdyn.Arm("flying", random_tree(TreeKind(joints=2, fork=0.5, floating=True, special=0.8), 3))
    else:
        arm = armdyn.load(name)
    made = step_program(arm.forward_dynamics.variant(parameters="runtime").program, method)
    assert [port.name for port in made.inputs] == ["q", "qd", "tau", "parameters", "h"]
    rng = np.random.default_rng(0)
    q, qd = arm.rest + 0.0, 0.3 * rng.normal(size=(1, arm.chain.nv))
    tau, parameters = rng.normal(size=(1, arm.chain.nv)), np.array([arm.minimal_parameters.values], float)
    inputs, steps = [q[None], qd, tau, parameters, np.array([2e-3])], 3
    run = armdyn.simulate(
        arm, q, qd[0], torque=tau[0], duration=steps * 2e-3, step=2e-3, method=method, friction=False, limits=False
    )
    compiled = load_or_compile(("step", arm.chain, method), lambda: made)
    for function in (compile_numpy(made), compiled):
        state = inputs[:2]
        for k in range(steps):
            state = list(function(*state, *inputs[2:]))
            np.testing.assert_allclose(state[0][0], run.q[k + 1], rtol=0, atol=1e-14)
            np.testing.assert_allclose(state[1][0], run.qd[k + 1], rtol=0, atol=1e-13)


@pytest.mark.parametrize("method", one_step_methods())
@pytest.mark.parametrize(("nq", "nv"), [(2, 2), (8, 7)])
def test_stages_called_one_by_one_are_the_step(method, nq, nv):
    """C and WebAssembly call the program of each stage: the same operations as in one program, bit for bit."""

    def function(q, qd, tau):
        return [t - q[k] * v * 3 for k, (t, v) in enumerate(zip(tau, qd, strict=True))]

    dynamics = trace("dynamics", function, {"q": (nq,), "qd": (nv,), "tau": (nv,)}, [("qdd", (nv,))])
    rng = np.random.default_rng(1)
    q, qd, tau = (rng.normal(size=size).tolist() for size in (nq, nv, nv))
    h = 0.01
    if nq != nv:
        q[3:7] = (np.array(q[3:7]) / np.linalg.norm(q[3:7])).tolist()
    whole = evaluate(step_program(dynamics, method), q, qd, tau, [h])
    programs = stage_programs(method, nq, nv)
    at, slopes = (q, qd), []
    for program in programs:
        slopes += [rates(*at), evaluate(dynamics, *at, tau)[0]]
        at = evaluate(program, q, qd, *slopes, [h])
    assert [flatten(x) for x in at] == whole


def listed(method: str, help_text: str) -> bool:
    return re.search(rf"\b{method}\b", help_text) is not None


def test_every_list_of_methods_is_that_of_the_registry():
    """Help of the command line, docstrings, the tutorial's table, the message for a wrong name."""
    shown = CliRunner().invoke(app, ["simulate", "--help-all"]).output
    documented = armdyn.simulate.__doc__
    for name in METHODS:
        assert listed(name, shown), name
        assert listed(name, documented), name
        assert listed(name, armdyn.Simulator.__doc__) == (name in without_past()), name
    assert "{" not in documented + armdyn.Simulator.__doc__
    with pytest.raises(InputError, match=f"available: auto, {', '.join(METHODS)}"):
        armdyn.simulate(armdyn.load("planar3"), duration=0.1, method="none")
    tutorial = (Path(__file__).parents[1] / "docs" / "tutorials" / "simulation.md").read_text(encoding="utf-8")
    rows = [f"| `{name}` | {SCHEMES[name].order} | fixed | {summary} |" for name, summary in FIXED.items()]
    for row in [*rows, *(f"| `{name}` | | adaptive | {summary} |" for name, summary in ADAPTIVE.items())]:
        assert row in tutorial.splitlines(), row


def test_adaptive_methods_are_those_of_scipy():
    for name in ADAPTIVE:
        assert issubclass(getattr(integrate, name), integrate.OdeSolver)


def test_a_step_needs_accelerations_and_a_one_step_method():
    arm = armdyn.load("planar3")
    with pytest.raises(ValueError, match="inputs q, qd"):
        step_program(arm.gravity_load.program, "RK4")
    with pytest.raises(InputError, match="semi_implicit_euler"):
        step_program(arm.forward_dynamics.program, "AB4")
