"""Simulation: orders, energies, closed forms, MuJoCo, batches, drives, early ends, files, errors."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import integrate, special

import armdyn
import rollout
from armdyn.errors import InputError
from armdyn.options import ADAPTIVE, FIXED
from armdyn.programs.stepping import METHODS, SCHEMES
from armdyn.simulation import (
    ComputedTorque,
    PDGravity,
    Reference,
    Sampled,
    Trajectory,
    fourier,
    quintic,
    simulate,
    straight_line,
    trapezoidal,
)

TOML = """
name = "{name}"
convention = "modified"
gravity = [0.0, -9.81, 0.0]
{joints}
"""
JOINT = """
[[joint]]
name = "j{k}"
kind = "revolute"
b = {b}
beta = 0.0
d = 0.0
theta = 0.0
{extra}
link = {{ mass = {mass}, com = [{com}, 0, 0], inertia = [0, 0, {inertia}, 0, 0, 0] }}
"""
MASSES, LENGTHS, CENTRES, INERTIAS = (1.2, 0.9, 0.5), (0.5, 0.4, 0.3), (0.2, 0.25, 0.1), (0.03, 0.02, 0.01)


@pytest.fixture(scope="module")
def planar(tmp_path_factory):
    """A planar chain of n links that swings in the x-y plane, gravity along -y."""

    def make(n: int, extra: str = "") -> armdyn.Arm:
        path = tmp_path_factory.mktemp("arm") / f"planar{n}.toml"
        numbers = zip((0.0, *LENGTHS), MASSES, CENTRES, INERTIAS, strict=False)
        rows = [JOINT.format(k=k, b=b, mass=m, com=c, inertia=j, extra=extra) for k, (b, m, c, j) in enumerate(numbers)]
        path.write_text(TOML.format(name=f"planar{n}", joints="".join(rows[:n])))
        return armdyn.load(path)

    return make


@pytest.fixture(scope="module")
def puma():
    return armdyn.load("puma560")


Q0 = np.array([0.3, -0.5, 0.8, 0.2, -0.4, 0.1])
V0 = np.array([0.5, 0.2, -0.3, 1.0, -0.7, 0.4])
FREE = {"friction": False, "limits": False}


# --- accuracy ------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", SCHEMES.values(), ids=SCHEMES)
@pytest.mark.parametrize("drive", ["compiled", "python"])
def test_the_claimed_order_is_the_measured_one(puma, scheme, drive):
    if drive == "python" and scheme.implicit:
        pytest.skip("implicit methods take no functions")
    step = 0.005 if scheme.past or scheme.order < 3 else 0.01
    reference = fourier(Q0, np.full((1, 6), 0.3), np.zeros((1, 6)), 0.3, 2)
    torque = PDGravity(reference, 20.0, 2.0) if drive == "compiled" else lambda t, q, qd: 5 * np.sin(3 * t) - 2 * qd

    def end(h, method):
        out = simulate(puma, Q0, V0, torque=torque, times=[0, 0.2], step=h, method=method, **FREE)
        return np.concatenate([out.q[-1], out.qd[-1]])

    truth = end(5e-4, "RK5")
    errors = [np.linalg.norm(end(h, scheme.name) - truth) for h in (step, step / 2)]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(scheme.order, abs=0.3)


@pytest.mark.parametrize("method", ADAPTIVE)
def test_adaptive_methods_agree_with_a_fine_fixed_step(puma, method):
    times = np.linspace(0, 0.5, 6)
    fine = simulate(puma, Q0, V0, times=times, step=5e-4, method="RK5", **FREE)
    out = simulate(puma, Q0, V0, times=times, method=method, rtol=1e-9, atol=1e-11, **FREE)
    assert out.status == "finished"
    assert np.array_equal(out.t, times)
    assert np.abs(out.q - fine.q).max() < 1e-6
    assert np.abs(out.qdd - fine.qdd).max() < 1e-4


def test_energy_is_kept_to_the_order_of_the_method():
    arm = armdyn.load("ur5")
    q0 = np.array([0.1, -0.4, 0.2, -1.8, 0.3, 1.5])

    def drift(h, method):
        out = simulate(arm, q0, times=[0, 0.25, 0.5], step=h, method=method, **FREE)
        return np.abs(out.energy - out.energy[0]).max()

    for method, order in (("RK4", 4), ("RK5", 5)):
        assert drift(5e-3, method) / drift(2.5e-3, method) > 2 ** (order - 0.5)
        assert drift(5e-4, method) < 1e-7
    # First order; not symplectic where H depends on q.
    assert drift(1e-3, "semi_implicit_euler") / drift(5e-4, "semi_implicit_euler") == pytest.approx(2, rel=0.1)


def test_a_pendulum_follows_the_elliptic_functions(planar):
    arm = planar(1)
    m, c, J = MASSES[0], CENTRES[0], INERTIAS[0]
    w = np.sqrt(m * 9.81 * c / (J + m * c * c))
    swing = 2.0  # from the lowest point, at rest
    k = np.sin(swing / 2)
    t = np.linspace(0, 5, 501)
    out = simulate(arm, [swing - np.pi / 2], times=t, step=1e-3)
    sn = special.ellipj(special.ellipk(k**2) - w * t, k**2)[0]
    assert np.abs(out.q[:, 0] - (2 * np.arcsin(k * sn) - np.pi / 2)).max() < 1e-9
    # Once over the top: rotation, by the same functions.
    fast = 1.7 * 2 * w
    out = simulate(arm, [-np.pi / 2], [fast], times=t, step=1e-3, method="RK5")
    kappa = 2 * w / fast
    am = special.ellipj(w * t / kappa, kappa**2)[3]
    assert np.abs(out.q[:, 0] - (2 * am - np.pi / 2)).max() < 1e-8


def planar_acceleration(n, q, qd):
    """The textbook equations of an n-link planar chain in absolute angles, gravity along -y."""
    m, length, c, J = (np.array(x[:n]) for x in (MASSES, LENGTHS, CENTRES, INERTIAS))
    phi, w = np.cumsum(q), np.cumsum(qd)
    lever = np.where(
        np.arange(n)[:, None] > np.arange(n), length, np.where(np.eye(n) > 0, c, 0.0)
    )  # of centre i to angle j
    K = np.einsum("i,ij,ik->jk", m, lever, lever)
    difference = phi[:, None] - phi
    M = K * np.cos(difference) + np.diag(J)
    right = -(K * np.sin(difference)) @ w**2 - 9.81 * np.cos(phi) * (m @ lever)
    return np.diff(np.linalg.solve(M, right), prepend=0.0)


@pytest.mark.parametrize("n", [2, 3])
def test_planar_chains_follow_their_closed_form(planar, n):
    arm = planar(n)
    q0, v0 = np.array([0.4, -0.9, 0.7])[:n], np.array([1.0, -2.0, 0.5])[:n]
    t = np.linspace(0, 1.5, 16)
    exact = integrate.solve_ivp(
        lambda _, y: np.concatenate([y[n:], planar_acceleration(n, y[:n], y[n:])]),
        (0, 1.5), np.concatenate([q0, v0]), method="DOP853", t_eval=t, rtol=1e-13, atol=1e-13,
    ).y.T  # fmt: skip
    out = simulate(arm, q0, v0, times=t, step=5e-4, method="RK5")
    assert np.abs(out.q - exact[:, :n]).max() < 1e-8
    assert np.abs(out.qd - exact[:, n:]).max() < 1e-7
    rates = [planar_acceleration(n, q, qd) for q, qd in zip(out.q, out.qd, strict=True)]
    assert np.abs(out.qdd - rates).max() < 1e-9


@pytest.mark.parametrize(
    ("name", "tolerance"), [("puma560", 1e-10), ("ur5", 1e-8), ("scara", 1e-10), ("stanford", 1e-9)]
)
def test_mujoco_goes_the_same_way_for_seconds(name, tolerance, rng):
    arm = armdyn.load(name)
    q = rng.uniform(-0.5, 0.5, (3, arm.n))
    ours, theirs = rollout.ours(arm, q, 2000, 1e-3)(), rollout.theirs(arm, q, 2000, 1e-3)()
    assert ours.shape == theirs.shape == (3, 2000, 2 * arm.n)
    assert np.abs(ours[:, -1] - np.hstack([q, 0 * q])).max() > 0.1  # it moved
    assert np.abs(ours - theirs).max() < tolerance
    ours_too = simulate(arm, q, duration=2.0, **FREE)
    assert np.array_equal(ours_too.q[:, 1:], ours[..., : arm.n])


def test_reversing_time_returns_to_the_start(puma):
    there = simulate(puma, Q0, V0, duration=0.5, step=1e-3, **FREE)
    back = simulate(puma, there.q[-1], -there.qd[-1], duration=0.5, step=1e-3, **FREE)
    assert np.abs(back.q[-1] - Q0).max() < 1e-9
    assert np.abs(back.qd[-1] + V0).max() < 1e-8


# --- batches -------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", FIXED)
def test_lanes_of_a_batch_are_single_runs_bit_for_bit(puma, method, rng):
    q, qd, tau = rng.uniform(-0.7, 0.7, (3, 11, 6))
    wrench = rng.normal(size=(11, 6))
    batch = simulate(puma, q, qd, torque=tau, tool_wrench=wrench, duration=0.05, method=method)
    assert batch.q.shape == (11, 51, 6)
    for lane in (0, 3, 10):
        one = simulate(
            puma, q[lane], qd[lane], torque=tau[lane], tool_wrench=wrench[lane], duration=0.05, method=method
        )
        for name in ("q", "qd", "qdd", "tau", "energy"):
            assert np.array_equal(getattr(one, name), getattr(batch, name)[lane]), name


def test_batches_broadcast(puma, rng):
    tau = rng.uniform(-5, 5, (2, 3, 6))
    out = simulate(puma, Q0, V0[None], torque=tau, duration=0.01)
    assert out.q.shape == (2, 3, 11, 6)
    assert np.array_equal(out.tau, np.broadcast_to(tau[:, :, None], out.tau.shape))
    one = simulate(puma, Q0, V0, torque=tau[1, 2], duration=0.01)
    assert np.array_equal(out.q[1, 2], one.q)
    samples = Sampled([0, 0.005, 0.01], rng.uniform(-5, 5, (4, 3, 6)), "linear")
    out = simulate(puma, Q0, torque=samples, duration=0.01)
    one = simulate(puma, Q0, torque=Sampled(samples.times, samples.values[2], "linear"), duration=0.01)
    assert np.array_equal(out.q[2], one.q)
    out = simulate(puma, np.tile(Q0, (2, 1)), torque=tau[:, 0], duration=0.01, method="DOP853", friction=False)
    one = simulate(puma, Q0, torque=tau[1, 0], duration=0.01, method="DOP853", friction=False)
    assert np.array_equal(out.q[1], one.q)


def test_a_python_torque_serves_whole_batches(puma, rng):
    q = rng.uniform(-0.5, 0.5, (2, 3, 6))
    out = simulate(puma, q, torque=lambda t, q, qd: -3 * qd, duration=0.01)
    assert out.q.shape == (2, 3, 11, 6)
    assert np.abs(out.tau + 3 * out.qd).max() < 1e-12
    one = simulate(puma, q[1, 2], torque=lambda t, q, qd: -3 * qd, duration=0.01)
    assert np.abs(out.q[1, 2] - one.q).max() < 1e-12


# --- who drives ----------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["RK4", "AB4", "semi_implicit_euler"])
@pytest.mark.parametrize("friction", [True, False])
def test_a_function_may_fill_the_same_array_at_every_call(puma, method, friction):
    own = np.zeros(6)

    def filling(t, q, qd):
        own[:] = 4 * np.sin(40 * t) - qd
        return own

    options = {"duration": 0.05, "method": method, "step": 1e-3, "friction": friction}
    filled = simulate(puma, np.zeros(6), torque=filling, **options)
    made = simulate(puma, np.zeros(6), torque=lambda t, q, qd: 4 * np.sin(40 * t) - qd, **options)
    assert np.ptp(made.tau[:, 0]) > 1
    np.testing.assert_array_equal(filled.tau, made.tau)
    np.testing.assert_array_equal(filled.q, made.q)


@pytest.mark.parametrize("method", ["RK4", "RK5"])
@pytest.mark.parametrize(
    "options", [{}, {"friction": False}, {"limits": 0.4}, {"saturate": True}, {"limits": False}], ids=str
)
def test_one_state_moves_as_in_a_batch(puma, method, options):
    def torque(t, q, qd):
        return np.array([30.0, 60, 20, 2, 2, 2]) * np.sin(25 * t) - 0.1 * qd

    options = {"torque": torque, "duration": 0.4, "step": 1e-3, "method": method, **options}
    alone, among = simulate(puma, Q0, **options), simulate(puma, Q0[None], **options)
    rests = np.diff((alone.qd == 0).astype(int), axis=0)
    assert options.get("friction", True) == bool((rests > 0).any() and (rests < 0).any())  # joints stick and slip
    for name in ("q", "qd", "qdd", "tau"):
        np.testing.assert_array_equal(getattr(alone, name), getattr(among, name)[0])


def test_computed_torque_follows_its_reference(puma):
    reference = quintic(Q0, Q0 + 0.4, 1.0)
    out = simulate(puma, Q0, torque=ComputedTorque(reference), duration=1.0, friction=False)
    q, qd, _ = reference(out.t)
    assert np.abs(out.q - q).max() < 1e-9
    assert np.abs(out.qd - qd).max() < 1e-8
    away = simulate(puma, Q0 + 0.01, torque=ComputedTorque(reference, 400.0, 40.0), duration=1.0, friction=False)
    assert np.abs(away.q[-1] - q[-1]).max() < 1e-8  # critically damped, 20 / s


def test_pd_with_gravity_load_comes_to_its_target(puma):
    out = simulate(puma, Q0, torque=PDGravity(Q0 + 0.1, 200.0, 60.0), times=[0, 3.0], step=2e-3, friction=False)
    assert np.abs(out.q[-1] - Q0 - 0.1).max() < 1e-5
    assert np.abs(out.tau[-1] - puma.gravity_load(out.q[-1])).max() < 0.05


def test_a_function_and_a_compiled_drive_agree(puma):
    tau = np.array([3.0, -20, 5, 1, 0.5, -0.2])
    ways = [tau, Sampled([0.0], [tau]), Sampled([0, 1], [tau, tau], "held"), lambda t, q, qd: tau]
    runs = [simulate(puma, Q0, V0, torque=way, duration=0.1) for way in ways]
    for run in runs[1:]:
        assert np.abs(run.q - runs[0].q).max() < 1e-12
        assert np.array_equal(run.tau, runs[0].tau)


def test_sampled_torques_are_held_or_joined(puma):
    times, values = np.array([0.0, 0.1, 0.2, 0.3]), np.outer([0.0, 4.0, -6.0, 2.0], np.arange(1, 7))
    probe = np.array([0.0, 0.05, 0.1, 0.1 + 0.1, 0.25, 3 * 0.1, 0.4])
    held = Sampled(times, values, "held").at(probe)
    assert np.array_equal(held[:, 0], [0, 0, 4, -6, -6, 2, 2])
    almost = Sampled(times, values, "held").at(np.array([np.nextafter(0.2, 0), 0.2 - 1e-9]))
    assert almost[:, 0].tolist() == [-6, 4]  # a sample's time but for rounding, and truly before it
    assert np.allclose(Sampled(times, values).at(probe)[:, 0], [0, 2, 4, -6, -2, 2, 2])
    for between in ("held", "linear"):
        samples = Sampled(times, values, between)
        fine = simulate(puma, Q0, torque=samples, times=times, step=1e-4, friction=False, method="RK5")
        # Whole steps between samples: the order holds although the torques jump or bend.
        coarse = simulate(puma, Q0, torque=samples, times=times, step=0.0125, friction=False, method="RK5")
        assert np.abs(coarse.q - fine.q).max() < 1e-8
        adaptive = simulate(puma, Q0, torque=samples, times=times, friction=False, method="DOP853")
        assert np.abs(adaptive.q - fine.q).max() < 1e-9
        assert np.allclose(adaptive.tau, values, atol=1e-12)


def test_a_controller_with_a_memory_is_asked_once_a_stage(puma):
    asked = []

    def torque(t, q, qd):
        asked.append(t)
        return np.zeros(6)

    simulate(puma, Q0, torque=torque, duration=0.01, method="RK4")
    assert np.diff(asked).min() > -1e-12
    assert len(asked) == 10 * 4 + 1


@pytest.mark.parametrize("make", ["quintic", "trapezoidal", "fourier", "line"])
def test_references_have_exact_derivatives(make):
    arm = armdyn.load("ur5")
    start = np.array([0.2, -1.2, 1.4, -0.6, 1.2, 0.3])
    pose = arm.pose(start)
    reference = {
        "quintic": lambda: quintic(start, -start, 2.0),
        "trapezoidal": lambda: trapezoidal(start, -start, 2.0, 0.2),
        "fourier": lambda: fourier(start, np.eye(6)[:3], np.eye(6)[3:], 0.2),
        "line": lambda: straight_line(arm, pose[:3, 3], pose[:3, 3] + [0.05, 0.1, -0.1], pose[:3, :3], 0.1, start),
    }[make]()
    assert isinstance(reference, Reference)
    t = np.linspace(0.05, 0.9, 7)[:, None] * reference.duration + np.zeros(2)
    q, qd, qdd = reference(t)
    assert q.shape == qd.shape == qdd.shape == (7, 2, 6)
    h = 1e-5
    (before, v0, _), (after, v1, _) = reference(t - h), reference(t + h)
    assert np.abs((after - before) / (2 * h) - qd).max() < 1e-7
    assert np.abs((v1 - v0) / (2 * h) - qdd).max() < 1e-7
    if make == "line":
        poses = arm.pose(reference(np.linspace(0, reference.duration, 50))[0])
        assert np.abs(poses[..., :3, :3] - pose[:3, :3]).max() < 1e-12
        assert np.abs(np.diff(poses[..., :3, 3], 2, axis=0)).max() < 1e-12
    else:
        ends = reference(np.array([0.0, reference.duration]))
        if make != "fourier":
            assert np.allclose(ends[0], [start, -start])
            assert np.allclose(ends[1], 0)


def test_references_refuse_nonsense():
    arm = armdyn.load("ur5")
    with pytest.raises(InputError, match="one length"):
        quintic([0, 1], [0], 1.0)
    with pytest.raises(InputError, match="duration"):
        quintic([0], [1], -1.0)
    with pytest.raises(InputError, match="ramp"):
        trapezoidal([0], [1], 1.0, 0.7)
    with pytest.raises(InputError, match="harmonics"):
        fourier([0.0], [[1.0, 2.0]], [[1.0]], 1.0)
    with pytest.raises(armdyn.ArmdynError, match="reach"):
        straight_line(arm, [5, 0, 0], [6, 0, 0], np.eye(3), 0.1)


# --- physics beside the rigid links -------------------------------------------------------------


def test_friction_takes_energy_and_viscous_friction_follows_its_exponential(planar):
    arm = planar(1, "viscous = 0.2").with_gravity((0, 0, 0))
    out = simulate(arm, [0.0], [3.0], duration=1.0)
    J = INERTIAS[0] + MASSES[0] * CENTRES[0] ** 2
    assert np.abs(out.qd[:, 0] - 3 * np.exp(-0.2 / J * out.t)).max() < 1e-11
    free = simulate(arm, [0.0], [3.0], duration=1.0, friction=False)
    assert np.abs(free.qd - 3).max() < 1e-12
    puma = armdyn.load("puma560")
    rubbed = simulate(puma, Q0, V0, duration=0.1)
    assert rubbed.energy[-1] < rubbed.energy[0] - 0.1


def test_rotors_and_wrenches_act(puma, planar):
    with_rotor = planar(1, "rotor_inertia = 0.5")
    out = simulate(with_rotor, [0.3], duration=0.01)
    m, c, J = MASSES[0], CENTRES[0], INERTIAS[0] + MASSES[0] * CENTRES[0] ** 2 + 0.5
    assert out.qdd[0, 0] == pytest.approx(-m * 9.81 * c * np.cos(0.3) / J, rel=1e-12)
    wrench = np.array([3.0, -2, 5, 0.1, 0.2, -0.3])
    pushed = simulate(puma, Q0, torque=np.ones(6), duration=0.05, tool_wrench=wrench)
    forces = 1 + np.einsum("tij,i->tj", puma.jacobian(pushed.q), wrench) - puma.friction(pushed.qd)
    held = forces - puma.inverse_dynamics(pushed.q, pushed.qd, pushed.qdd)  # by dry friction, of joints at rest
    assert np.abs(held[pushed.qd != 0]).max() < 1e-10
    assert np.all(np.abs(held) <= 1e-10 + np.array([float(joint.coulomb) for joint in puma.joints]))
    plain = simulate(puma, Q0, torque=lambda t, q, qd: np.ones(6), duration=0.05, tool_wrench=wrench)
    assert np.abs(plain.q - pushed.q).max() < 1e-12


# --- early ends ----------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_a_limit_is_located(planar, method):
    arm = planar(1, "limit = { lower = -1.0, upper = 1.0 }").with_gravity((0, 0, 0))
    out = simulate(arm, [0.0], [3.0], times=[0, 0.2, 5.0], step=0.01, method=method)
    assert out.status == "limit"
    assert "j0 met its limit at t = 0.333333333" in out.message
    assert out.t[-1] == pytest.approx(1 / 3, abs=1e-12)
    assert out.q[-1, 0] == pytest.approx(1.0, abs=1e-11)
    assert out.q[-1, 0] <= 1.0 + 1e-12
    assert len(out) == 3
    assert np.isfinite(out.tau).all()
    assert np.isfinite(out.qdd).all()


@pytest.mark.parametrize("method", ["RK4", "DOP853"])
@pytest.mark.parametrize("torque", [[-2.0], lambda t, q, qd: [-2.0]])
def test_a_limit_passed_between_two_stored_times_is_seen(planar, method, torque):
    arm = planar(1, "limit = { lower = -9.0, upper = 1.0 }").with_gravity((0, 0, 0))
    J = INERTIAS[0] + MASSES[0] * CENTRES[0] ** 2
    a = -2.0 / J
    v = np.sqrt(-2 * a * 1.1)  # up to 1.1, then back
    meets = (-v + np.sqrt(v * v + 2 * a)) / a
    out = simulate(arm, [0.0], [v], times=[0, -2 * v / a], torque=torque, step=1e-3, method=method)
    assert out.status == "limit"
    assert out.t[-1] == pytest.approx(meets, abs=1e-9)


def test_lanes_end_on_their_own(planar):
    arm = planar(1, "limit = { lower = -1.0, upper = 1.0 }").with_gravity((0, 0, 0))
    for method in ("RK4", "RK45"):
        out = simulate(arm, [[0.0]] * 3, [[0.5], [3.0], [-8.0]], times=[0, 0.2, 0.5, 1.0], method=method)
        assert out.statuses.tolist() == ["finished", "limit", "limit"]
        assert np.isfinite(out.q).sum(axis=(1, 2)).tolist() == [4, 2, 1]
        assert "2 limit of 3 lanes" in out.message
        assert "t = 0.333333333" in out.message


@pytest.mark.parametrize("method", [m for m in METHODS if m not in SCHEMES or not SCHEMES[m].implicit])
def test_divergence_keeps_what_was_computed(planar, method):
    arm = planar(2)

    def wild(t, q, qd):
        return np.exp(60 * np.abs(qd)) * np.sign(qd + 0.1)

    out = simulate(arm, [0.0, 0.0], [0.5, 0.5], torque=wild, duration=5.0, step=0.01, method=method)
    assert out.status == "diverged" or (method in ADAPTIVE and out.status == "stalled")
    assert out.message
    assert 1 <= len(out) < 501
    assert np.isfinite(out.q).all()
    assert len(out.t) == len(out.q) == len(out.tau)


def test_divergence_of_a_compiled_loop(puma):
    out = simulate(
        puma,
        Q0,
        torque=PDGravity(Q0 + 1, 1e7, 0.0),
        duration=1.0,
        step=0.02,
        limits=False,
        friction=False,
        saturate=False,
        method="RK4",
    )
    assert out.status == "unstable step"
    assert 1 < len(out) < 50
    assert np.isfinite(out.q).all()


@pytest.mark.parametrize("method", ["RK4", "AB4", "DOP853"])
def test_interrupts_keep_what_was_computed(puma, method):
    def late(t, q, qd):
        if t > 0.05:
            raise KeyboardInterrupt
        return np.zeros(6)

    out = simulate(puma, Q0, torque=late, duration=1.0, step=0.01, method=method, friction=False)
    assert out.status == "interrupted"
    assert (2 if method in FIXED else 1) <= len(out) <= 7
    assert np.isfinite(out.q).all()

    def progress(done, total):
        if done > 0.3 * total:
            raise KeyboardInterrupt

    for batch in ((), (3,)):
        times = [0.0, 0.01, 0.03, 0.04, 0.07, 0.09]
        out = simulate(
            puma, np.broadcast_to(Q0, (*batch, 6)), times=times, method=method, progress=progress, friction=False
        )
        assert out.status == "interrupted"
        assert "interrupted" in out.message
        assert np.isfinite(out.q[..., :2, :]).any()
        assert not np.isfinite(out.q).all() if batch and method == "DOP853" else len(out) < 6


@pytest.mark.parametrize("method", ["RK4", "DOP853"])
def test_one_interrupt_ends_all_lanes(puma, method):
    calls = []

    def progress(done, total):
        calls.append(done)
        if len(calls) == 1:
            raise KeyboardInterrupt

    times = [0.0, 0.01, 0.03, 0.1]
    out = simulate(puma, np.tile(Q0, (3, 1)), times=times, method=method, progress=progress, friction=False)
    assert len(calls) == 1
    assert out.statuses.tolist() == ["interrupted"] * 3
    assert np.array_equal(out.q[:, 0], np.tile(Q0, (3, 1)))


def test_an_adaptive_method_that_crawls_says_so(puma):
    def chatters(t, q, qd):
        return -50 * np.sign(qd)  # dry friction as a plain function: no rest in it

    out = simulate(puma, Q0, torque=chatters, duration=1.0, method="RK45", friction=False)
    assert out.status == "stalled"
    assert "forces chatter" in out.message
    assert np.isfinite(out.q).all()


def test_progress_reaches_its_end(puma):
    seen = []
    simulate(puma, Q0, duration=0.5, progress=lambda done, total: seen.append(done / total))
    assert seen[-1] == 1
    assert seen == sorted(seen)


# --- times and files -----------------------------------------------------------------------------


def test_uneven_times_and_durations_that_do_not_divide(puma):
    times = np.array([0.3, 0.31, 0.45, 0.451, 0.8])
    out = simulate(puma, Q0, times=times, step=0.005, method="RK5", **FREE)
    assert np.array_equal(out.t, times)
    even = simulate(puma, Q0, duration=0.5, step=0.001, method="RK5", **FREE)
    assert np.abs(out.q - even.q[[0, 10, 150, 151, 500]]).max() < 1e-8
    odd = simulate(puma, Q0, duration=0.0105, step=0.002)
    assert np.allclose(odd.t, [0, 0.002, 0.004, 0.006, 0.008, 0.01, 0.0105])
    short = simulate(puma, Q0, duration=0.0005)
    assert short.t.tolist() == [0, 0.0005]
    for method in ("AB4", "RK4"):  # fewer steps than AB4 has of past
        assert len(simulate(puma, Q0, duration=0.002, method=method)) == 3


@pytest.mark.parametrize("method", ["DOP853", "RK45"])
def test_a_function_beside_a_wrench_per_lane(puma, method, rng):
    """Lanes that go on alone in an adaptive method keep their own wrench."""
    wrench, q = rng.normal(size=(3, 6)), rng.uniform(-1, 1, (3, 6))
    options = {"torque": lambda t, q, qd: -q - qd, "duration": 0.05, "method": method, "limits": False}
    batch = simulate(puma, q, tool_wrench=wrench, **options)
    assert batch.status == "finished", batch.message
    for lane in range(3):
        one = simulate(puma, q[lane], tool_wrench=wrench[lane], **options)
        np.testing.assert_allclose(batch.q[lane], one.q, atol=1e-9)


@pytest.mark.parametrize("batch", [(), (2,)])
def test_files_hold_what_was_computed(puma, tmp_path, batch):
    out = simulate(puma, np.broadcast_to(Q0, (*batch, 6)), duration=0.02)
    for suffix in ("csv", "npz", "parquet"):
        out.save(tmp_path / f"run.{suffix}")
    kept = np.load(tmp_path / "run.npz")
    for name in ("t", "q", "qd", "qdd", "tau", "energy"):
        assert np.array_equal(kept[name], getattr(out, name))
    assert str(kept["status"]) == "finished"
    from pyarrow import parquet

    table = parquet.read_table(tmp_path / "run.parquet")
    head = (tmp_path / "run.csv").read_text().splitlines()[0].split(",")
    assert head == table.column_names
    assert head[:3] == (["lane", "t", "q1"] if batch else ["t", "q1", "q2"])
    csv = np.loadtxt(tmp_path / "run.csv", delimiter=",", skiprows=1)
    for k, name in enumerate(head):
        assert np.array_equal(csv[:, k], table[name].to_numpy())
    assert np.array_equal(csv[:, head.index("qd3")].reshape(*batch, 21), out.qd[..., 2])
    with pytest.raises(InputError, match=r"\.csv, \.npz, \.parquet"):
        out.save(tmp_path / "run.xls")


def test_plots_and_prints(puma):
    out = simulate(puma, Q0, duration=0.02)
    assert isinstance(out, Trajectory)
    figure = out.plot(engine="plotly")
    assert len(figure.data) == 3 * 6 + 1
    assert np.array_equal(figure.data[0].y, np.degrees(out.q[:, 0]))
    assert simulate(puma, [Q0, Q0], duration=0.01).plot(engine="plotly").data
    assert repr(out) == "<Trajectory of puma560: 21 times to 0.02 s, finished>"


def test_importing_armdyn_stays_light():
    heavy = ("scipy", "plotly", "pyarrow", "armdyn.simulation")
    code = f"import sys, armdyn; print([m for m in {heavy} if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


# --- errors --------------------------------------------------------------------------------------

BAD = [
    ({"q0": np.zeros(5)}, r"q0 must be \(\.\.\., 6\), got shape \(5,\)"),
    ({"q0": ["a"] * 6}, "q0 must be numbers"),
    ({"q0": np.full(6, np.nan)}, "q0 contains NaN"),
    ({"qd0": np.full(6, np.inf)}, "qd0 contains NaN or infinity"),
    ({"qd0": np.zeros((2, 3))}, "qd0 must be"),
    ({"q0": np.zeros((2, 6)), "qd0": np.zeros((3, 6))}, r"batches do not go together: q0 \(2,\), qd0 \(3,\)"),
    ({"q0": np.zeros((2, 6)), "torque": np.zeros((3, 6))}, "batches do not go together"),
    ({"step": -1e-3}, "step must be above 0 s"),
    ({"step": 0}, "step must be above 0 s"),
    ({"step": np.nan}, "step must be above 0 s, got nan"),
    ({"step": "1"}, "step must be a positive"),
    ({"duration": -1.0}, "duration must be a positive"),
    ({"duration": np.inf}, "duration must be a positive"),
    ({"duration": 1e9}, "give times= to store fewer"),
    ({"times": [0, 1]}, "either duration"),
    ({"duration": None}, "either duration"),
    ({"duration": None, "times": [0, 1, 1]}, "increasing"),
    ({"duration": None, "times": [1, 0]}, "increasing"),
    ({"duration": None, "times": [0]}, "at least two"),
    ({"duration": None, "times": [0, np.nan]}, "finite"),
    ({"method": "RK7"}, f"unknown integration method 'RK7'; available: auto, {', '.join(METHODS)}"),
    ({"method": "DOP853", "rtol": -1}, "rtol must be above 0"),
    ({"method": "DOP853", "atol": 0}, "atol must be above 0"),
    ({"torque": np.zeros(4)}, r"torque must be None, 6 numbers, Sampled.*shape \(4,\)"),
    ({"torque": "much"}, "torque must be None"),
    ({"torque": np.full(6, np.nan)}, "torque contains NaN"),
    ({"torque": lambda t, q, qd: np.zeros(2)}, r"torque function gave shape \(2,\)"),
    ({"torque": lambda t, q, qd: np.zeros(2), "method": "Radau"}, r"torque function gave shape \(2,\)"),
    ({"torque": Sampled([0, 1], np.zeros((3, 6)))}, r"values \(\.\.\., k, 6\)"),
    ({"torque": Sampled([1, 0], np.zeros((2, 6)))}, "increasing"),
    ({"torque": Sampled([0, 1], np.full((2, 6), np.nan))}, "NaN"),
    ({"torque": Sampled([0, 1], np.zeros((2, 6)), "cubic")}, "available: held, linear"),
    ({"torque": PDGravity(np.zeros(3), 1, 1)}, "target must be a Reference or 6 numbers"),
    ({"torque": PDGravity(np.zeros(6), np.nan, 1)}, "kp must be one finite number or 6"),
    ({"torque": PDGravity(np.zeros(6), 1, [1, 2])}, "kd must be one finite number or 6"),
    ({"tool_wrench": np.zeros(3)}, r"tool_wrench \(force, torque\) must be \(\.\.\., 6\)"),
    ({"q0": np.full(6, 5.0)}, "outside the limits of .*shoulder.*limits=False"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "message"), BAD)
def test_bad_requests_are_refused_in_plain_words(puma, change, message):
    given = {"q0": np.zeros(6), "duration": 0.01} | change
    with pytest.raises(InputError, match=message):
        simulate(puma, given.pop("q0"), given.pop("qd0", None), **given)


# --- the benchmark -------------------------------------------------------------------------------


def test_the_benchmark_runs(capsys):
    path = Path(__file__).parent.parent / "benchmarks" / "bench_simulation.py"
    rows = runpy.run_path(str(path))["main"](
        ["planar3", "--states", "1", "--states", "9", "--work", "18", "--repeats", "1"]
    )
    assert [row.states for row in rows] == [1, 9]
    assert all(row.ours > 0 and row.mujoco > 0 for row in rows)
    assert "planar3" in capsys.readouterr().out
