"""Rollouts on the CPU: the same call as on a graphics processor (tests/bridges/test_gpu.py)."""

from __future__ import annotations

import numpy as np
import pytest

import armdyn
from armdyn.errors import InputError
from armdyn.gpu import rollout
from armdyn.simulation import PDGravity, Sampled, simulate
from random_trees import TreeKind, random_tree

ARM = armdyn.load("planar3")
RNG = np.random.default_rng(0)
Q0, QD0 = RNG.uniform(-1, 1, (2, 4, 3))
TAU = RNG.uniform(-5, 5, (4, 20, 3))
FREE = {"friction": False, "saturate": False}


@pytest.mark.parametrize("method", ["semi_implicit_euler", "RK4"])
def test_steps_are_those_of_simulate(method):
    q, qd = rollout(ARM, Q0, QD0, TAU, method=method, every=5, device="cpu", **FREE)
    assert q.shape == qd.shape == (4, 4, 3)
    torque = Sampled(1e-3 * np.arange(20), TAU, between="held")
    run = simulate(ARM, Q0, QD0, torque=torque, duration=0.02, step=1e-3, method=method, friction=False, limits=False)
    np.testing.assert_allclose(q, run.q[:, 5::5], rtol=0, atol=1e-12)
    np.testing.assert_allclose(qd, run.qd[:, 5::5], rtol=0, atol=1e-10)
    last = rollout(ARM, Q0, QD0, TAU, method=method, device="cpu", **FREE)
    np.testing.assert_array_equal(last[0], q[:, -1])
    np.testing.assert_array_equal(last[1], qd[:, -1])


def test_energy_is_kept_and_a_floating_base_moves():
    tree = armdyn.Arm("tree", random_tree(TreeKind(joints=3, fork=0.5, floating=True), 2))
    q0 = tree.rest
    qd0 = np.random.default_rng(1).uniform(-1, 1, tree.chain.nv)
    q, qd = rollout(tree, q0, qd0, np.zeros((1, tree.n)), steps=200, method="RK4", device="cpu", **FREE)
    energy = [tree.kinetic_energy(*x) + tree.potential_energy(x[0]) for x in ((q0, qd0), (q, qd))]
    assert energy[1] == pytest.approx(energy[0], rel=1e-9)
    assert np.linalg.norm(q[3:7]) == pytest.approx(1, abs=1e-14)
    assert np.abs(q[:3] - q0[:3]).max() > 1e-2


def test_a_control_law_holds_the_arm():
    law = PDGravity([0.2, -0.4, 0.3], 20.0, 4.0)
    q, _ = rollout(ARM, Q0, QD0, law, steps=5000, method="RK4", device="cpu", **FREE)
    np.testing.assert_allclose(q, np.broadcast_to([0.2, -0.4, 0.3], (4, 3)), atol=1e-3)


def test_motors_saturate_joints_stop_and_friction_brakes():
    arm = armdyn.load("ur5")
    q0, most = arm.rest, arm.effort_limits
    strong, limit = (
        rollout(arm, q0, np.zeros(6), tau[None], steps=5, device="cpu", friction=False) for tau in (9 * most, most)
    )
    np.testing.assert_allclose(strong[1], limit[1], rtol=1e-12)
    ends = arm.limits[:, 1]
    q, qd = rollout(arm, ends - 0.01, np.ones(6), np.zeros((1, 6)), steps=100, limits="stop", device="cpu", every=1)
    assert (q <= ends).all()
    assert (q.max(axis=0) == ends).any()
    stopped = (q == ends) & (np.roll(q, 1, axis=0) != ends)
    assert stopped.any()
    assert not qd[stopped].any()
    puma = armdyn.load("puma560").with_gravity((0, 0, 0))
    start = (puma.rest, [1.0, 0, 0, 0, 0, 0], np.zeros((1, 6)))
    rough, smooth = (rollout(puma, *start, steps=500, device="cpu", friction=on)[1] for on in (True, False))
    assert abs(rough[0]) < 0.01 < 0.5 < abs(smooth[0])


def test_precision_and_batches():
    single = [x.astype(np.float32) for x in (Q0, QD0, TAU)]
    q, qd = rollout(ARM, *single, device="cpu", **FREE)
    exact = rollout(ARM, *(x.astype(float) for x in single), device="cpu", **FREE)
    assert q.dtype == np.float32
    np.testing.assert_allclose(q, exact[0], atol=1e-5)
    np.testing.assert_allclose(qd, exact[1], atol=1e-4)
    rows = np.random.default_rng(2).uniform(-1, 1, (2100, 3))
    many, _ = rollout(ARM, rows, np.zeros(3), TAU[0], device="cpu", **FREE)  # more than a block of rows
    for k in (0, 1023, 1024, 2099):
        one, _ = rollout(ARM, rows[k], np.zeros(3), TAU[0], device="cpu", **FREE)
        np.testing.assert_array_equal(one, many[k])
    assert rollout(ARM, np.zeros((0, 3)), np.zeros(3), TAU[0], device="cpu")[0].shape == (0, 3)
    rows[5, 0] = np.nan
    found, _ = rollout(ARM, rows, np.zeros(3), TAU[0], device="cpu", **FREE)
    assert np.isnan(found[5]).any()
    np.testing.assert_array_equal(np.delete(found, 5, 0), np.delete(many, 5, 0))


@pytest.mark.parametrize(
    ("given", "options", "message"),
    [
        ((Q0, QD0, TAU), {"method": "RK5"}, "unknown method of a rollout 'RK5'; available: semi_implicit_euler, RK4"),
        ((Q0, QD0, TAU), {"step": 0.0}, "step must be above 0 s, got 0.0"),
        ((Q0, QD0, TAU), {"step": float("inf")}, "step must be a positive number of seconds, got inf"),
        ((Q0, QD0, TAU), {"every": 21}, "every must be from 1 to the number of steps, 20; got 21"),
        ((Q0, QD0, TAU), {"steps": 7}, "the torques are for 20 steps, steps=7"),
        ((Q0, QD0, TAU), {"steps": 0}, "steps must be a positive whole number, got 0"),
        ((Q0[:, :2], QD0, TAU), {}, r"q0 must have the shape \(..., 3\), got \(4, 2\)"),
        ((Q0[:3], QD0, TAU), {}, "do not broadcast together"),
        ((Q0, QD0, TAU[..., :2]), {}, r"torque must have the shape \(..., steps, 3\)"),
        ((Q0, QD0, PDGravity(Q0[0], 1.0, 1.0)), {}, "give steps="),
        ((Q0, QD0, TAU), {"limits": "end"}, "limits"),
    ],
)
def test_errors(given, options, message):
    with pytest.raises(InputError, match=message):
        rollout(ARM, *given, device="cpu", **options)
