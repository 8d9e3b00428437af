"""Normal equations without the matrix of all regressors."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import armdyn
from armdyn.errors import InputError
from armdyn.identification import normal_equations as module


def motion(arm, rows, seed=0):
    rng = np.random.default_rng(seed)
    q, qd, qdd = rng.uniform(-2, 2, (3, rows, arm.n))
    return q, qd, qdd, arm.inverse_dynamics(q, qd, qdd)


@pytest.mark.parametrize("name", ["ur5", "scara"])
@pytest.mark.parametrize("kind", ["none", "per joint", "per row"])
def test_they_are_those_of_the_whole_matrix(name, kind, monkeypatch):
    monkeypatch.setattr(module, "BLOCK", 2**15)  # several blocks, the last one incomplete
    arm = armdyn.load(name)
    q, qd, qdd, tau = motion(arm, 137)
    tau = tau + np.random.default_rng(1).normal(size=tau.shape)
    shape = {"none": None, "per joint": (arm.n,), "per row": tau.shape}[kind]
    weights = None if shape is None else np.random.default_rng(2).uniform(0, 3, shape)
    normal, moment = armdyn.normal_equations(arm, q, qd, qdd, tau, weights)
    Y = arm.regressor(q, qd, qdd).reshape(tau.size, -1)
    W = np.broadcast_to(1.0 if weights is None else weights, tau.shape).ravel()
    np.testing.assert_allclose(normal, Y.T @ (W[:, None] * Y), rtol=0, atol=1e-12 * np.abs(normal).max())
    np.testing.assert_allclose(moment, Y.T @ (W * tau.ravel()), rtol=0, atol=1e-12 * np.abs(moment).max())


def test_their_solution_are_the_minimal_parameters():
    arm = armdyn.load("ur5")
    found = np.linalg.solve(*armdyn.normal_equations("ur5", *motion(arm, 500)))
    np.testing.assert_allclose(found, arm.minimal_parameters.values, atol=1e-9)


def test_memory_does_not_grow_with_the_rows():
    arm = armdyn.load("scara")
    given = motion(arm, 20_000)
    armdyn.normal_equations(arm, *given)
    tracemalloc.start()
    armdyn.normal_equations(arm, *given)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * module.BLOCK < 8 * 20_000 * arm.n * len(arm.minimal_parameters) / 4


def test_no_rows_and_what_is_refused():
    arm = armdyn.load("scara")
    normal, moment = armdyn.normal_equations(arm, *np.zeros((4, 0, 4)))
    assert not normal.any()
    assert not moment.any()
    q = np.zeros((5, 4))
    with pytest.raises(InputError, match=r"expects qdd of shape \(5, 4\), got \(5, 3\)"):
        armdyn.normal_equations(arm, q, q, q[:, :3], q)
    with pytest.raises(InputError, match=r"expects q of shape \(4, 4\), got \(4,\)"):
        armdyn.normal_equations(arm, q[0], q[0], q[0], q[0])
    for wrong in ([1, 2, 3], [1, 2, 3, -1], np.full((5, 4), -1.0)):
        with pytest.raises(InputError, match="weights must be numbers from 0"):
            armdyn.normal_equations(arm, q, q, q, q, wrong)
