"""Derivatives: the chain rule on graphs against dual numbers, Pinocchio and finite differences of nothing."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

import armdyn
from armdyn.errors import InputError
from armdyn.graph.derive import inline, jacobian
from armdyn.graph.program import evaluate, trace


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


def test_plain_differentiation_stays_below_ten_times_inverse_dynamics():
    arm = armdyn.generic_arm("RRRRRRR")
    plain = arm.kernel("inverse_dynamics").program.operations.total
    assert arm.inverse_dynamics_derivatives.program.operations.total < 10 * plain


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
