"""An accelerated base: the arm feels gravity less its acceleration, in every quantity and in simulations."""

from __future__ import annotations

import numpy as np
import pytest

import armdyn
from armdyn.errors import InputError
from armdyn.options import Conditions
from armdyn.simulation import PD, Actuators

DURATION = 0.3


def on_lift(t):
    return [0.5 * np.cos(8 * t), 0.0, 2.0 * np.sin(5 * t)]


@pytest.mark.parametrize("name", ["puma560", "scara", "panda_hand"])  # prismatic joints, mimic joints
def test_one_acceleration_per_sample_acts_like_gravity(name):
    rng = np.random.default_rng(1)
    arm = armdyn.load(name)
    q, qd, qdd = rng.normal(size=(3, 4, arm.n))
    a = 3 * rng.normal(size=(4, 3))

    def quantity(name, *arrays):
        return arm.kernel(name, backend="python", base_acceleration=True)(*arrays, a)

    tau = quantity("inverse_dynamics", q, qd, qdd)
    for k in range(4):
        felt = arm.with_gravity(np.array(arm.gravity) - a[k]).kernel("inverse_dynamics", backend="python")
        assert np.allclose(tau[k], felt(q[k], qd[k], qdd[k]), rtol=0, atol=1e-9)
    b = quantity("bias", q, qd)
    assert np.allclose(b, quantity("inverse_dynamics", q, qd, 0 * q), atol=1e-9)
    assert np.allclose(quantity("equations_of_motion", q, qd)[1], b, atol=1e-9)
    assert np.allclose(quantity("forward_dynamics", q, qd, tau), qdd, atol=1e-6)


def test_it_goes_with_a_wrench_derivatives_and_generated_code():
    rng = np.random.default_rng(2)
    arm = armdyn.load("planar3")
    q, qd, tau = rng.normal(size=(3, 3))
    a, w = rng.normal(size=3), rng.normal(size=6)
    both = arm.forward_dynamics(q, qd, tau, tool_wrench=w, base_acceleration=a)
    felt = arm.with_gravity(np.array(arm.gravity) - a)
    assert np.allclose(both, felt.forward_dynamics(q, qd, tau, tool_wrench=w))
    by_base = arm.kernel("forward_dynamics", derivatives="base_acceleration")(q, qd, tau, a)
    h, step = 1e-6, np.eye(3)
    assert by_base.shape == (3, 3)
    for k in range(3):
        up, down = (arm.forward_dynamics(q, qd, tau, base_acceleration=a + s * h * step[k]) for s in (1, -1))
        assert np.allclose(by_base[:, k], (up - down) / (2 * h), rtol=1e-6, atol=1e-6)
    python = arm.kernel("bias", backend="python", base_acceleration=True)
    assert np.allclose(python(q, qd, a), arm.bias(q, qd, base_acceleration=a))


def test_a_free_fall_is_weightless():
    arm = armdyn.load("puma560")
    q, still = arm.rest, np.zeros(6)
    assert np.abs(arm.bias(q, still, base_acceleration=arm.gravity)).max() < 1e-12


@pytest.mark.parametrize("method", ["RK4", "ARK4", "DOP853"])
def test_simulation_on_a_constantly_accelerated_base_is_that_under_other_gravity(method):
    arm = armdyn.load("planar3")
    a = np.array([1.0, -2.0, 0.5])
    felt = arm.with_gravity(np.array(arm.gravity) - a)
    given = {"q0": [0.1, 0.2, 0.3], "torque": PD([0.2, 0.1, 0.3], 20.0, 2.0), "duration": DURATION, "method": method}
    got, wanted = armdyn.simulate(arm, base_acceleration=a, **given), armdyn.simulate(felt, **given)
    assert np.allclose(got.q, wanted.q, atol=1e-9)
    assert not np.allclose(got.q[-1], armdyn.simulate(arm, **given).q[-1], atol=1e-3), "it must matter"


def test_a_function_of_time_is_followed_by_every_kind_of_drive():
    arm = armdyn.load("planar3")
    given = {"q0": [0.1, 0.2, 0.3], "duration": DURATION}
    pd = PD([0.2, 0.1, 0.3], 20.0, 2.0)

    def plainly(t, q, qd):
        return 20.0 * (np.array([0.2, 0.1, 0.3]) - q) - 2.0 * qd

    exact = armdyn.simulate(arm, torque=pd, method="DOP853", base_acceleration=on_lift, **given)
    for torque in (pd, plainly):
        got = armdyn.simulate(arm, torque=torque, method="RK4", step=1e-3, base_acceleration=on_lift, **given)
        assert np.allclose(got.q[-1], exact.q[-1], atol=1e-9)
    # the accelerations reported are those under the forces of that moment
    k = len(got.t) // 2
    again = arm.forward_dynamics(got.q[k], got.qd[k], got.tau[k], base_acceleration=on_lift(got.t[k]))
    assert np.allclose(again, got.qdd[k], atol=1e-9)
    held = armdyn.simulate(
        arm, torque=pd, actuators=Actuators(period=1e-4), step=1e-4, base_acceleration=on_lift, **given
    )
    assert np.allclose(held.q[-1], exact.q[-1], atol=2e-4)


def test_batches_frictional_joints_and_the_stepwise_simulator():
    arm = armdyn.load("puma560")  # with dry friction: the loop that locks joints
    a = np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 3.0]])
    rest = arm.rest
    both = armdyn.simulate(arm, rest, torque=np.zeros(6), duration=0.05, base_acceleration=a)
    one = armdyn.simulate(arm, rest, torque=np.zeros(6), duration=0.05, base_acceleration=a[1])
    assert np.array_equal(both.q[1], one.q)
    assert np.abs(both.q[0, -1] - both.q[1, -1]).max() > 1e-4
    sim = armdyn.Simulator(arm, step=1e-3, base_acceleration=a[1])
    sim.reset(rest)
    for _ in range(50):
        sim.step(np.zeros(6))
    assert np.array_equal(sim.q, one.q[-1])


def test_what_cannot_be_is_refused():
    arm = armdyn.load("planar3")
    q = np.zeros(3)
    with pytest.raises(InputError, match=r"expects base_acceleration of shape \(..., 3\), got \(2,\)"):
        arm.bias(q, q, base_acceleration=[1.0, 2.0])
    with pytest.raises(InputError, match="takes no base_acceleration; available for bias"):
        arm.gravity_load(q, base_acceleration=[1.0, 2.0, 3.0])
    with pytest.raises(InputError, match="minimal parameters are those that matter"):
        arm.kernel("bias", parameters="runtime", base_acceleration=True)(q, q, np.zeros(3), np.zeros(9))
    with pytest.raises(InputError, match="floating base has its own accelerations"):
        armdyn.load("planar3", floating=True).kernel("bias", base_acceleration=True).program  # noqa: B018
    with pytest.raises(InputError, match=r"base_acceleration contains NaN"):
        armdyn.simulate(arm, duration=0.1, base_acceleration=[np.nan, 0, 0])
    with pytest.raises(InputError, match=r"returns three finite numbers; at t = 0 s it returned"):
        armdyn.simulate(arm, duration=0.1, base_acceleration=lambda t: [t])
    with pytest.raises(InputError, match="Simulator takes a constant base_acceleration"):
        armdyn.Simulator(arm, base_acceleration=on_lift)
    assert Conditions(base_acceleration=(0, 0, 1)).base_acceleration == (0, 0, 1)
