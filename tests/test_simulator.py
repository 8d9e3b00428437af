"""Simulator: one step at a time, the same numbers as `simulate`, bit for bit."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import armdyn
from armdyn.errors import ComputationError, InputError
from armdyn.programs.stepping import without_past
from armdyn.simulation import Actuators, simulate
from random_trees import TreeKind, random_tree

Q0 = np.array([0.3, -0.2, 0.4])
TAU = np.array([0.5, -0.2, 0.1])


@pytest.fixture(scope="module")
def planar():
    return armdyn.load("planar3")


@pytest.fixture(scope="module")
def puma():
    return armdyn.load("puma560")


@pytest.mark.parametrize("method", ["auto", *without_past()])
def test_steps_are_those_of_simulate(planar, method):
    run = simulate(planar, Q0, torque=TAU, duration=0.05, method=method)
    sim = armdyn.Simulator(planar, method=method)
    sim.reset(Q0)
    for k in range(50):
        sim.step(TAU)
        assert np.array_equal(sim.q, run.q[k + 1])
        assert np.array_equal(sim.qd, run.qd[k + 1])
    assert sim.t == run.t[-1]
    assert sim.method == run.method
    together = armdyn.Simulator(planar, method=method)
    together.reset(Q0)
    together.step(TAU, 50)
    assert np.array_equal(together.q, sim.q)
    assert together.t == sim.t


@pytest.mark.parametrize("limits", [False, "stop", 0.5])
def test_friction_stops_wrenches_and_saturation_are_those_of_simulate(puma, limits):
    """Joints that stick and rebound, in a batch that does not fill its vectors."""
    rng = np.random.default_rng(1)
    q0 = np.array([0, -0.4, 0, 0.3, 0.5, 0]) + rng.uniform(-0.1, 0.1, (7, 6))
    tau, wrench = rng.normal(scale=60, size=(7, 6)), rng.normal(size=(7, 6))
    options = {"limits": limits, "tool_wrench": wrench, "saturate": True}
    run = simulate(puma, q0, torque=tau, duration=0.03, **options)
    sim = armdyn.Simulator(puma, batch=7, **options)
    sim.reset(q0)
    for k in range(30):
        sim.step(tau)
        assert np.array_equal(sim.q, run.q[:, k + 1])
        assert np.array_equal(sim.qd, run.qd[:, k + 1])


def test_a_floating_base_and_a_batch_of_several_axes():
    arm = armdyn.Arm("loose", random_tree(TreeKind(joints=3, fork=0.5, floating=True, special=0.8), 3))
    q0 = np.tile(arm.rest, (2, 3, 1))
    tau = np.random.default_rng(0).normal(size=(2, 3, arm.chain.nv))
    run = simulate(arm, q0, torque=tau, duration=0.01, limits=False)
    sim = armdyn.Simulator(arm, batch=(2, 3), limits=False)
    sim.reset(q0)
    for _ in range(10):
        sim.step(tau)
    assert sim.q.shape == (2, 3, arm.chain.nq)
    assert np.array_equal(sim.q, run.q[..., -1, :])
    sim.step(tau[..., -arm.n :])  # joint torques only
    assert sim.t == pytest.approx(0.011)


def test_motors_and_sensors_are_those_of_simulate(planar):
    motors = Actuators(period=4e-3, delay=2e-3, rate=500.0, encoder=1e-4, torque_noise=0.1, seed=5)
    noisy = Actuators(period=2e-3, position_noise=1e-4, velocity_noise=1e-2, seed=2)
    for actuators in (motors, noisy):

        def law(t, q, qd):
            return 20 * (Q0 - q) - 3 * qd

        run = simulate(planar, Q0 + 0.1, torque=law, duration=0.04, actuators=actuators)
        sim = armdyn.Simulator(planar, actuators=actuators)
        sim.reset(Q0 + 0.1)
        ticks = round(actuators.period / 1e-3)
        for k in range(0, 40, ticks):
            assert np.array_equal(sim.q, run.q[k])
            q, qd = sim.measured
            sim.step(law(sim.t, q, qd))
        assert np.array_equal(sim.q, run.q[-1])


def test_save_and_restore_go_on_with_the_same_bits(planar):
    for actuators in (None, Actuators(period=2e-3, delay=3e-3, velocity_noise=1e-2)):
        sim = armdyn.Simulator(planar, actuators=actuators)
        for _ in range(5):
            sim.step(TAU)
        saved = sim.save()
        ways = []
        for _ in range(2):
            for _ in range(7):
                sim.step(TAU - 2 * sim.measured[1])
            ways.append((sim.t, sim.q, sim.qd))
            sim.restore(saved)
        assert ways[0][0] == ways[1][0]
        assert all(np.array_equal(a, b) for a, b in zip(ways[0][1:], ways[1][1:], strict=True))
        other = armdyn.Simulator(planar, actuators=actuators)
        other.restore(pickle.loads(pickle.dumps(saved)))
        assert other.t == sim.t
        assert np.array_equal(other.q, sim.q)
    with pytest.raises(InputError, match="restore takes what save"):
        sim.restore(armdyn.Simulator(planar, batch=2).save())


def test_a_limit_ends_a_lane_where_simulate_ends_it(puma):
    q0 = np.array([0.0, -0.4, 0.0, 0.3, 0.5, 0.0])
    push = np.array([0, 0, 0, 0, 30.0, 0])
    run = simulate(puma, q0, torque=push, duration=1.0)
    assert run.status == "limit"
    sim = armdyn.Simulator(puma)
    sim.reset(q0)
    while sim.status == "running":
        sim.step(push)
    assert sim.status == "limit"
    assert np.array_equal(sim.q, run.q[-2])  # the last row before the moment of the limit
    assert "joint" in sim.message or "met its limit" in sim.message
    with pytest.raises(ComputationError, match="the simulation has ended"):
        sim.step(push)
    long = armdyn.Simulator(puma)
    long.reset(q0)
    long.step(push, 1000)
    assert long.status == "limit"
    assert np.array_equal(long.q, sim.q)
    sim.reset(q0)
    assert sim.status == "running"
    lanes = armdyn.Simulator(puma, batch=3)
    lanes.reset(q0)
    pushes = np.array([push, 0 * push, push])
    lanes.step(pushes, 1000)
    assert lanes.statuses.tolist() == ["limit", "running", "limit"]
    assert np.array_equal(lanes.q[0], sim.q if sim.status != "running" else run.q[-2])
    there = lanes.q
    lanes.step(pushes)
    assert np.array_equal(lanes.q[[0, 2]], there[[0, 2]])
    lanes.reset(q0, lanes=[0, 2])
    assert lanes.statuses.tolist() == ["running"] * 3
    assert np.array_equal(lanes.q[0], q0)
    assert not np.array_equal(lanes.q[1], q0)


def test_what_is_no_number_is_named(planar):
    sim = armdyn.Simulator(planar)
    sim.step(TAU)
    good = sim.q
    sim.step([np.nan, 0, 0])
    assert sim.status == "diverged"
    assert "because the torques were [nan" in sim.message
    assert np.array_equal(sim.q, good)


def test_bad_arguments_are_refused(planar):
    with pytest.raises(InputError, match="takes an Arm"):
        armdyn.Simulator("planar3x")
    with pytest.raises(InputError, match="AB4"):
        armdyn.Simulator(planar, method="AB4")
    with pytest.raises(InputError, match="step must be a positive"):
        armdyn.Simulator(planar, step=0)
    with pytest.raises(InputError, match="batch must be"):
        armdyn.Simulator(planar, batch="two")
    sim = armdyn.Simulator(planar, batch=2)
    with pytest.raises(InputError, match=r"tau must be \(\.\.\., 3\), got shape \(4,\)"):
        sim.step(np.zeros(4))
    with pytest.raises(InputError, match="does not go with the batch"):
        sim.step(np.zeros((5, 3)))
    with pytest.raises(InputError, match="whole number of steps"):
        sim.step(count=0)
    with pytest.raises(InputError, match="this simulator has the batch"):
        sim.reset(np.zeros((4, 2, 3)))
    with pytest.raises(InputError, match="lanes= resets a part of a batch"):
        armdyn.Simulator(planar).reset(lanes=[0])


def test_an_empty_batch_and_other_kinds_of_arrays(planar):
    empty = armdyn.Simulator(planar, batch=0)
    empty.step(np.zeros((0, 3)))
    empty.step(count=3)
    assert empty.q.shape == (0, 3)
    sim, other = armdyn.Simulator(planar), armdyn.Simulator(planar)
    for tau in (TAU.tolist(), TAU.astype("f4"), TAU.astype(">f8"), np.repeat(TAU, 2)[::2]):
        sim.step(tau)
        other.step(np.asarray(tau, float))
        assert np.array_equal(sim.q, other.q)
