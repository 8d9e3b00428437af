"""Derivatives: the recursion and the chain rule on graphs against dual numbers and Pinocchio."""

from __future__ import annotations

import random
from functools import partial

import numpy as np
import pytest

import armdyn
from armdyn.algebra import Dual
from armdyn.errors import InputError
from armdyn.formulations.inverse_dynamics import derivatives, newton_euler
from armdyn.graph.derive import jacobian
from armdyn.graph.program import evaluate, inline, trace
from armdyn.programs.assemble import Options, by_duals
from armdyn.programs.program import program
from random_chains import any_chain, configuration
from random_trees import TreeKind, random_tree
from test_inertia_matrix import mutants

pin = pytest.importorskip("pinocchio", reason="Pinocchio, which this compares with, is not installed")


def _relative(a, b):
    return np.max(np.abs(a - b)) / max(1.0, np.max(np.abs(b)))


@pytest.mark.parametrize("kinds", ["R", "P", "RPR", "RRRR", "PRRP"])
@pytest.mark.parametrize("quantity", ["inverse_dynamics", "forward_dynamics"])
def test_chain_rule_agrees_with_dual_numbers(kinds, quantity, rng):
    arm = armdyn.generic_arm(kinds)
    x = rng.normal(size=(3, 5, arm.n))
    last = "tau" if quantity == "forward_dynamics" else "qdd"
    graph = arm.kernel(quantity, derivatives=("q", "qd", last))(*x)
    duals = arm.kernel(quantity, backend="python", derivatives=("q", "qd", last))(*x)
    for a, b in zip(graph, duals, strict=True):
        assert a.shape == (5, arm.n, arm.n)
        assert _relative(a, b) < 1e-10


@pytest.mark.parametrize("name", ["puma560", "ur5", "panda"])
def test_pinocchio_agrees(name, rng, tmp_path):
    arm = armdyn.load(name)
    arm.to_urdf(tmp_path / "arm.urdf")
    model = pin.buildModelFromUrdf(str(tmp_path / "arm.urdf"))
    model.armature = np.array(arm.rotor_inertias, float)
    model.gravity.linear = np.array(arm.gravity)
    data = model.createData()
    q, qd, qdd = rng.uniform(-1, 1, (3, arm.n))
    pin.computeRNEADerivatives(model, data, q, qd, qdd)
    dq, dqd, dqdd = arm.inverse_dynamics_derivatives(q, qd, qdd)
    M = np.triu(data.M) + np.triu(data.M, 1).T
    for ours, theirs in ((dq, data.dtau_dq), (dqd, data.dtau_dv), (dqdd, M)):
        assert _relative(ours, theirs) < 1e-10
    tau = rng.normal(size=arm.n) * 5
    pin.computeABADerivatives(model, data, q, qd, tau)
    Minv = np.triu(data.Minv) + np.triu(data.Minv, 1).T
    for ours, theirs in zip(
        arm.forward_dynamics_derivatives(q, qd, tau), (data.ddq_dq, data.ddq_dv, Minv), strict=True
    ):
        assert _relative(ours, theirs) < 1e-9


def test_derivative_in_qdd_is_the_inertia_matrix(rng):
    arm = armdyn.load("stanford")
    q, qd, qdd = rng.normal(size=(3, 4, 6))
    assert _relative(arm.inverse_dynamics_derivatives(q, qd, qdd)[2], arm.inertia_matrix(q)) < 1e-13


def test_derivative_in_the_minimal_parameters_is_the_regressor(rng):
    arm = armdyn.load("planar3")
    q, qd, qdd = rng.normal(size=(3, 4, 3))
    values = np.array([float(v) for v in arm.minimal_parameters.values])
    rates = arm.kernel("inverse_dynamics", parameters="runtime", derivatives=("parameters",))(q, qd, qdd, values)
    assert _relative(rates, arm.regressor(q, qd, qdd)) < 1e-12


def test_gravity_load_is_the_derivative_of_the_potential(rng):
    arm = armdyn.load("ur5")
    q = rng.normal(size=(7, 6))
    assert _relative(arm.kernel("potential_energy", derivatives="q")(q), arm.gravity_load(q)) < 1e-13


def _judged(count, most, seed):
    """Random arms and trees at random motions with the derivatives of Newton-Euler by dual numbers."""
    rng = random.Random(seed)
    for k in range(count):
        chain = any_chain(rng, most) if k % 4 else random_tree(TreeKind(joints=most, fork=0.5), k)
        chain = chain.floats
        x = [configuration(rng, chain.n) for _ in range(3)]
        shapes = tuple((name, (chain.n,)) for name in ("q", "qd", "qdd"))
        tau = partial(newton_euler.inverse_dynamics, chain)
        by_name = by_duals(tau, shapes, (("tau", (chain.n,)),), ("q", "qd", "qdd"))
        yield chain, x, [np.array(matrix, float) for matrix in by_name(*x)]


def _far(got, wanted):
    scale = max(np.abs(matrix).max() for matrix in wanted) + 1e-300
    return max(np.abs(np.array(a, float) - b).max() for a, b in zip(got, wanted, strict=True)) / scale


def test_the_recursion_in_every_meeting_frame_agrees_with_dual_numbers():
    for chain, x, wanted in _judged(80, 8, 1):
        for m in (None, *range(1, chain.n + 1)):
            assert _far(derivatives.derivatives(chain, *x, m), wanted) < 1e-12


def test_thirty_joints(rng):
    """Along one direction, so that one slope is enough for dual numbers."""
    arm = armdyn.generic_arm("RRP" * 10, seed=1)
    x, dx = rng.normal(size=(2, 3, 30))
    chain, (e,) = arm.chain.floats, Dual.variables([0.0])
    moving = [[a + b * e for a, b in zip(*two, strict=True)] for two in zip(x, dx, strict=True)]
    along = newton_euler.inverse_dynamics(chain, *moving)
    slopes = np.array([tau.slopes[0] for tau in along])
    ours = sum(matrix @ d for matrix, d in zip(arm.inverse_dynamics_derivatives(*x), dx, strict=True))
    assert np.abs(ours - slopes).max() < 1e-11 * np.abs(slopes).max()


@pytest.mark.parametrize("name", ["inverse_dynamics_derivatives", "forward_dynamics_derivatives"])
def test_empty_batches_and_numbers_that_are_not(name, rng):
    kernel = getattr(armdyn.generic_arm("RPR"), name)
    assert [m.shape for m in kernel(*np.zeros((3, 0, 3)))] == [(0, 3, 3)] * 3
    x = rng.normal(size=(3, 6, 3))
    sound = kernel(*x)
    x[0, 2, 1] = np.nan
    for a, b in zip(kernel(*x), sound, strict=True):
        assert np.isnan(a[2]).any()
        np.testing.assert_array_equal(np.delete(a, 2, 0), np.delete(b, 2, 0))


def test_planted_sign_errors_in_the_recursion_are_caught():
    judged = list(_judged(40, 6, 4))

    def right(mutant):
        try:
            return all(
                _far(mutant.derivatives(chain, *x, 1 + chain.n // 2), wanted) < 1e-9 for chain, x, wanted in judged
            )
        except (IndexError, TypeError):
            return False

    assert not [k for k, mutant in mutants(derivatives) if right(mutant)]


@pytest.mark.parametrize("options", [{"friction": True}, {"tool_wrench": True}, {"parameters": "runtime"}])
@pytest.mark.parametrize("quantity", ["inverse_dynamics", "forward_dynamics"])
def test_derivatives_of_everything_else_that_acts(options, quantity, rng):
    arm = armdyn.load("puma560")
    last = "tau" if quantity == "forward_dynamics" else "qdd"
    x = list(rng.normal(size=(3, 4, arm.n)))
    if "tool_wrench" in options:
        x.append(rng.normal(size=(4, 6)))
    if "parameters" in options:
        x.append(np.array([float(v) for v in arm.minimal_parameters.values]))
    for wrt in (("q",), ("q", "qd", last), (last, "q")):
        ours = arm.kernel(quantity, derivatives=wrt, **options)(*x)
        duals = arm.kernel(quantity, backend="python", derivatives=wrt, **options)(*x)
        for a, b in zip(ours, duals, strict=True):
            assert _relative(a, b) < 1e-9


def test_a_chosen_formulation_is_itself_differentiated(rng):
    arm = armdyn.generic_arm("RRPR")
    x = rng.normal(size=(3, 4, 4))
    kernel = arm.kernel("inverse_dynamics", method="gibbs_appell", derivatives=("q", "qd", "qdd"))
    assert kernel.method == "gibbs_appell"
    for a, b in zip(kernel(*x), arm.inverse_dynamics_derivatives(*x), strict=True):
        assert _relative(a, b) < 1e-11


@pytest.mark.parametrize("name", ["RRRRRRR", "RRPRRR", "puma560", "panda", "ur5", "stanford"])
def test_the_recursion_takes_fewer_operations_than_the_chain_rule(name):
    arm = armdyn.generic_arm(name) if set(name) <= {"R", "P"} else armdyn.load(name)
    plain = program(arm.chain, "inverse_dynamics", arm.inverse_dynamics.method)
    by_recursion = arm.inverse_dynamics_derivatives.program.operations.total
    assert by_recursion < jacobian(plain, ("q", "qd", "qdd")).operations.total
    if name == "RRRRRRR":
        assert by_recursion < 5.5 * plain.operations.total


def test_short_arms_take_the_shorter_way():
    arm = armdyn.generic_arm("RP")
    plain = program(arm.chain, "inverse_dynamics", arm.inverse_dynamics.method, Options())
    ours = arm.inverse_dynamics_derivatives.program.operations.total
    assert ours <= jacobian(plain, ("q", "qd", "qdd")).operations.total


def test_unknown_input_is_named():
    with pytest.raises(InputError, match="unknown input to differentiate in 'speed'; available: q, qd, qdd"):
        armdyn.generic_arm("RR").kernel("inverse_dynamics", derivatives=("speed",))(
            np.zeros(2), np.zeros(2), np.zeros(2)
        )


def _mixed(x, y):
    a, b = x
    return [a * b + a.sin() / (b * b + 2), (a * a + b * b + 1).sqrt() - y[0].cos() * a]


@pytest.mark.parametrize("wrt", [("x",), ("y",), ("x", "y")])
def test_every_operation_has_its_rule(wrt):
    program = trace("mixed", _mixed, {"x": (2,), "y": (1,)}, [("z", (2,))])
    slopes = jacobian(program, wrt)
    point = [[0.3, -0.7], [0.4]]
    exact = evaluate(slopes, *point)
    h = 1e-6
    for port, values in zip(wrt, exact, strict=True):
        k = 0 if port == "x" else 1
        size = len(point[k])
        for j in range(size):
            up, down = [list(p) for p in point], [list(p) for p in point]
            up[k][j] += h
            down[k][j] -= h
            slope = (np.array(evaluate(program, *up)[0]) - np.array(evaluate(program, *down)[0])) / (2 * h)
            assert np.allclose(np.array(values).reshape(2, size)[:, j], slope, rtol=1e-8, atol=1e-9)


def test_a_program_can_be_put_into_another():
    inner = trace("mixed", _mixed, {"x": (2,), "y": (1,)}, [("z", (2,))])
    outer = trace("outer", lambda x, y: inline(inner, x, y)[0], {"x": (2,), "y": (1,)}, [("z", (2,))])
    assert evaluate(outer, [0.3, -0.7], [0.4]) == evaluate(inner, [0.3, -0.7], [0.4])
