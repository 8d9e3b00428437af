"""Dry friction that sticks: closed forms, coupled joints, equilibrium bit for bit, orders across events, MuJoCo."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import optimize

import armdyn
from armdyn.programs.stepping import FIXED, METHODS, SCHEMES
from armdyn.simulation import PDGravity, Sampled, simulate
from random_trees import TreeKind, random_tree

BLOCK = """
name = "block"
convention = "modified"
gravity = [0.0, 0.0, 0.0]
[[joint]]
name = "slide"
kind = "prismatic"
b = 0.0
beta = 0.0
d = 0.0
theta = 0.0
coulomb = {coulomb}
static = {static}
link = {{ mass = 1.5, com = [0, 0, 0], inertia = [0, 0, 0, 0, 0, 0] }}
"""
M, F, K = 1.5, 2.0, 60.0  # mass, Coulomb friction, spring


@pytest.fixture(scope="module")
def block(tmp_path_factory):
    """One mass of 1.5 kg that slides along z."""

    def make(static=0.0, coulomb=F, gravity=(0.0, 0.0, 0.0)) -> armdyn.Arm:
        path = tmp_path_factory.mktemp("arm") / "block.toml"
        path.write_text(BLOCK.format(coulomb=coulomb, static=static))
        return armdyn.load(path).with_gravity(gravity)

    return make


@pytest.fixture(scope="module")
def puma():
    return armdyn.load("puma560")


Q0 = np.array([0.3, -0.5, 0.8, 0.2, -0.4, 0.1])
V0 = np.array([0.5, 0.2, -0.3, 1.0, -0.7, 0.4])


def oscillation(x0, times):
    """A mass on a spring with Coulomb friction: half cosines about ±F/K, until the spring cannot break it away."""
    w, rows = np.sqrt(K / M), []
    for t in times:
        x = x0
        while K * abs(x) > F:
            centre = np.sign(x) * F / K
            if t <= np.pi / w:
                rows.append((centre + (x - centre) * np.cos(w * t), -(x - centre) * w * np.sin(w * t)))
                break
            x, t = 2 * centre - x, t - np.pi / w
        else:
            rows.append((x, 0.0))
    return np.array(rows)


# --- closed forms --------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_the_amplitude_falls_linearly_and_the_mass_rests_where_it_must(block, method):
    times = np.linspace(0, 4, 81)
    exact = oscillation(0.4, times)
    assert exact[-1, 1] == 0
    torque = PDGravity([0.0], K, 0.0)
    out = simulate(block(), [0.4], torque=torque, times=times, step=5e-5 if "euler" in method else 2e-3, method=method)
    assert out.status == "finished"
    tolerance = 0.01 if "euler" in method else 1e-6
    assert np.abs(out.q[:, 0] - exact[:, 0]).max() < tolerance
    assert out.q[-1, 0] == pytest.approx(exact[-1, 0], abs=tolerance)
    resting = exact[:, 1] == 0
    assert np.all(out.qd[resting][5:] == 0)
    assert len(np.unique(out.q[resting][5:])) == 1  # bit for bit
    assert np.all(out.qdd[resting][5:] == 0)


@pytest.mark.parametrize("scheme", [one for one in SCHEMES.values() if not one.past and one.order > 1])
def test_orders_hold_across_events(block, scheme):
    times = np.linspace(0, 3, 31)
    exact = oscillation(1.0, times)[:, 0]

    def error(step):
        out = simulate(block(), [1.0], torque=PDGravity([0.0], K, 0.0), times=times, step=step, method=scheme.name)
        return np.abs(out.q[:, 0] - exact).max()

    assert np.log2(error(0.02) / error(0.01)) == pytest.approx(scheme.order, abs=0.25)


def test_a_breakaway_inside_a_step_is_met_to_second_order_by_fixed_steps(block):
    """A sticking joint is looked at when a step begins; adaptive methods locate the moment itself."""
    ramp = Sampled([0.0, 1.0], [[0.0], [10.0]])  # breaks away at 0.2 s
    exact = M**-1 * (10 * 0.8**3 / 6)

    def error(step, method="RK4"):
        return abs(simulate(block(), [0.0], torque=ramp, times=[0, 1], step=step, method=method).q[-1, 0] - exact)

    steps = 1 / np.array([33, 66, 132, 264])  # none of them meets 0.2 s
    errors = np.array([error(step) for step in steps])
    assert np.all(errors < 2 * steps**2)
    assert error(1e-3, "DOP853") < 1e-9
    assert error(1e-3, "LSODA") < 1e-6


@pytest.mark.parametrize("method", METHODS)
def test_a_block_on_a_slope_holds_until_the_slope_is_too_steep(block, method):
    g, mu = 9.81, 0.4
    for angle in (np.arctan(mu) - 1e-6, np.arctan(mu) + 1e-6, 0.5):
        normal = M * g * np.cos(angle)
        arm = block(coulomb=mu * normal, gravity=(0.0, 0.0, -g * np.sin(angle)))
        out = simulate(arm, [0.0], duration=0.5, method=method, step=1e-2)
        acceleration = -g * (np.sin(angle) - mu * np.cos(angle))
        if acceleration > 0:
            assert np.all(out.q == 0)
            assert np.all(out.qd == 0)
        else:
            rough = 0.05 if "euler" in method else 1e-9
            assert out.q[-1, 0] == pytest.approx(acceleration * 0.5**2 / 2, rel=rough)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("sign", [1, -1])
def test_breakaway_is_exactly_at_static_friction(block, method, sign):
    arm = block(static=3.0)
    held = simulate(arm, [0.5], torque=[sign * 3.0], duration=0.05, method=method)
    assert np.all(held.q == 0.5)
    assert np.all(held.qdd == 0)
    torn = simulate(arm, [0.5], torque=[sign * np.nextafter(3.0, 4)], duration=0.05, method=method)
    assert torn.qdd[-1, 0] * sign == pytest.approx((3.0 - F) / M)  # at once Coulomb friction: no Stribeck speed
    assert abs(torn.q[-1, 0] - 0.5) > 1e-5


def test_a_pendulum_rests_within_its_friction_cone(tmp_path):
    text = (
        BLOCK.format(coulomb=0.3, static=0.0)
        .replace("prismatic", "revolute")
        .replace("com = [0, 0, 0], inertia = [0, 0, 0, 0, 0, 0]", "com = [0.2, 0, 0], inertia = [0, 0, 0.01, 0, 0, 0]")
    )
    (tmp_path / "p.toml").write_text(text)
    arm = armdyn.load(tmp_path / "p.toml").with_gravity((9.81, 0.0, 0.0))
    out = simulate(arm, [1.2], duration=8.0, method="RK5")
    lift = M * 9.81 * 0.2
    peaks = [1.2]
    while lift * abs(np.sin(peaks[-1])) > 0.3:  # energy between two turning points: lift Δcos = 0.3 Δq
        a, s = peaks[-1], np.sign(peaks[-1])
        peaks.append(
            optimize.brentq(
                lambda b, a=a, s=s: lift * (np.cos(b) - np.cos(a)) - 0.3 * s * (a - b), -abs(a), abs(a) - 1e-9
            )
            if s > 0
            else optimize.brentq(lambda b, a=a: lift * (np.cos(b) - np.cos(a)) + 0.3 * (a - b), -abs(a) + 1e-9, abs(a))
        )
    assert out.q[-1, 0] == pytest.approx(peaks[-1], abs=1e-8)
    assert np.all(out.qd[-100:] == 0)


# --- coupled joints ------------------------------------------------------------------------------


def brute_force(arm, q, qd, tau):
    """The accelerations of the complementarity problem, by trying every combination of modes."""
    H, b = arm.inertia_matrix(q), arm.bias(q, qd)
    n = arm.n
    most = np.array([float(joint.breakaway) for joint in arm.joints])
    rest = [i for i in range(n) if qd[i] == 0]
    moving = arm.friction(qd)
    for combination in np.ndindex(*[3] * len(rest)):
        side = dict(zip(rest, np.array(combination) - 1, strict=True))
        free = [i for i in range(n) if side.get(i, 1) != 0]
        f = np.array([side[i] * most[i] if i in side else moving[i] for i in range(n)])
        a = np.zeros(n)
        a[free] = np.linalg.solve(H[np.ix_(free, free)], (tau - b - f)[free])
        left = tau - b - H @ a
        slides = all(a[i] * side[i] >= 0 for i in rest if side[i])
        if slides and all(abs(left[i]) <= most[i] for i in rest if not side[i]):
            return a
    raise AssertionError("no solution")


def test_coupled_joints_are_solved_together(puma, rng):
    for _ in range(40):
        q, qd = rng.normal(size=(2, 6))
        qd[rng.random(6) < 0.6] = 0
        tau = puma.gravity_load(q) + rng.normal(size=6) * 2 * np.array([float(joint.coulomb) for joint in puma.joints])
        expected = brute_force(puma, q, qd, tau)
        out = simulate(puma, q, qd, torque=tau, times=[0, 1e-6], limits=False)
        assert np.allclose(out.qdd[0], expected, rtol=1e-9, atol=1e-9)
        python = simulate(puma, q, qd, torque=lambda t, q, qd, tau=tau: tau, times=[0, 1e-6], limits=False)
        assert np.array_equal(python.qdd[0], out.qdd[0])


def test_one_of_two_joints_sticks_while_the_other_swings():
    puma = armdyn.load("planar3")
    joints = [replace(puma.chain.joints[0], coulomb=Fraction(1000)), *puma.chain.joints[1:]]
    held = armdyn.Arm("held", replace(puma.chain, joints=tuple(joints)))
    start = np.array([0.3, 0.5, -0.4])
    out = simulate(held, start, duration=0.5, limits=False)
    assert np.all(out.q[:, 0] == 0.3)
    assert np.abs(out.q[-1, 1:] - start[1:]).min() > 0.01
    stiff = replace(held.chain, joints=(replace(joints[0], coulomb=0, rotor_inertia=10**12), *joints[1:]))
    same = simulate(armdyn.Arm("stiff", stiff), start, duration=0.5, limits=False)  # an immovable first joint
    assert np.abs(out.q - same.q).max() < 1e-9


@pytest.mark.parametrize("method", METHODS)
def test_every_method_goes_the_same_way_through_many_events(puma, method):
    inertia = np.diag(puma.inertia_matrix(Q0))
    torque = PDGravity(Q0 + 0.2, 400 * inertia, 10 * inertia)
    times = np.linspace(0, 1, 11)
    fine = simulate(puma, Q0, V0, torque=torque, times=times, method="RK5", step=2e-4, limits=False)
    step = 1e-4 if "euler" in method else 1e-3
    out = simulate(puma, Q0, V0, torque=torque, times=times, method=method, step=step, limits=False)
    assert out.status == "finished"
    assert np.abs(out.q - fine.q).max() < (5e-3 if "euler" in method else 1e-5)


def test_the_equation_of_motion_holds_at_every_row(puma):
    inertia = np.diag(puma.inertia_matrix(Q0))
    for method in ("RK4", "ARK4", "DOP853"):
        out = simulate(puma, Q0, V0, torque=PDGravity(Q0, 300 * inertia, 5 * inertia), duration=0.5, method=method)
        friction = out.tau - puma.inverse_dynamics(out.q, out.qd, out.qdd)
        moving = out.qd != 0
        assert np.abs(friction - puma.friction(out.qd))[moving].max() < 1e-9
        assert np.all(
            np.abs(friction) <= [float(j.breakaway) for j in puma.joints] + np.abs(puma.friction(out.qd)) + 1e-9
        )
        assert (~moving).any()
        assert np.all(out.qdd[~moving & (np.abs(friction) < [float(j.breakaway) for j in puma.joints])] == 0)
        # qd is the derivative of q: the trapezium rule between rows, but at the kinks
        slope, mean = np.diff(out.q, axis=0) / np.diff(out.t)[:, None], (out.qd[1:] + out.qd[:-1]) / 2
        assert np.quantile(np.abs(slope - mean), 0.99) < 1e-4


def test_energy_is_what_the_motors_give_less_what_friction_takes(puma):
    """∫ (τ - f)·q̇ dt = ΔE: what is left falls by the quadrature's order when rows come twice as dense."""
    inertia = np.diag(puma.inertia_matrix(Q0))

    def imbalance(step):
        out = simulate(
            puma, Q0, V0, torque=PDGravity(Q0 + 0.3, 100 * inertia, 0.0), duration=0.5, step=step, method="RK5"
        )
        power = np.sum((out.tau - puma.friction(out.qd)) * out.qd, axis=1)
        work = np.sum((power[1:] + power[:-1]) / 2 * np.diff(out.t))
        return abs(work - (out.energy[-1] - out.energy[0]))

    assert imbalance(2.5e-4) < imbalance(1e-3) / 8  # 16 but for the kinks
    assert imbalance(2.5e-4) < 1e-4


# --- rest ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("drive", ["nothing", "hold", "function"])
def test_an_arm_in_equilibrium_stays(puma, method, drive):
    start = np.array([0, 0.5, 0, 0, 0, 0])
    inertia = np.diag(puma.inertia_matrix(start))
    torque = {
        "nothing": puma.gravity_load(start),
        "hold": PDGravity(start, 400 * inertia, 40 * inertia),
        "function": lambda t, q, qd: puma.gravity_load(q) + 5 * (start - q) - 2 * qd,
    }[drive]
    if drive == "function" and method in SCHEMES and SCHEMES[method].implicit:
        pytest.skip("implicit methods take no functions")
    out = simulate(puma, start, torque=torque, duration=0.2, method=method)
    assert out.status == "finished"
    assert np.all(out.q == start)
    assert np.all(out.qd == 0)
    assert np.all(out.qdd == 0)


def test_equilibrium_bit_for_bit_for_a_million_steps(puma):
    start = np.array([0.2, 0.5, -0.3, 0.1, 0.4, 0])
    tau = puma.gravity_load(start) + 0.5 * np.array([float(joint.coulomb) for joint in puma.joints])
    out = simulate(puma, start, torque=tau, times=[0, 500, 1000], step=1e-3, method="semi_implicit_euler")
    assert np.all(out.q == start)
    assert np.all(out.qd == 0)


def test_below_breakaway_nothing_moves_whatever_the_step(puma):
    start = np.array([0, 0.5, 0, 0, 0, 0])
    tau = puma.gravity_load(start)
    tau[0] += 25.9  # of 25.98 N m
    for method in FIXED:
        for step in (1e-3, 0.1, 10.0):
            out = simulate(puma, start, torque=tau, times=[0, 100.0], step=step, method=method)
            assert np.all(out.q == start)


def test_lanes_stick_on_their_own(puma, rng):
    start, speed = rng.uniform(-0.5, 0.5, (2, 13, 6))
    start[3], speed[3] = np.array([0, 0.5, 0, 0, 0, 0]), 0.0
    tau = np.tile(puma.gravity_load(start[3]), (13, 1))
    for method in FIXED:
        batch = simulate(puma, start, speed, torque=tau, duration=0.2, method=method, limits=False)
        assert np.all(batch.q[3] == start[3])
        for lane in (0, 3, 7, 12):
            one = simulate(puma, start[lane], speed[lane], torque=tau[lane], duration=0.2, method=method, limits=False)
            for name in ("q", "qd", "qdd", "tau"):
                assert np.array_equal(getattr(one, name), getattr(batch, name)[lane]), (method, lane, name)


def test_time_dependent_torques_are_met_inside_a_cut_step(block):
    """A step that is cut at an event reads its inputs between the stages."""
    samples = Sampled(np.linspace(0, 1, 11), np.sin(7 * np.linspace(0, 1, 11))[:, None] * 6)
    fine = simulate(block(), [0.0], [1.0], torque=samples, times=[0, 0.5, 1.0], method="DOP853")
    for method in ("RK4", "RK5"):
        out = simulate(block(), [0.0], [1.0], torque=samples, times=[0, 0.5, 1.0], step=1e-3, method=method)
        assert np.abs(out.q - fine.q).max() < 2e-6


@pytest.mark.parametrize("method", ["RK4", "DOP853", "LSODA"])
def test_a_held_torque_breaks_a_joint_away_when_it_jumps(block, method):
    """At the jump itself the adaptive methods asked for the new torque in the old interval, and stalled."""
    times = np.linspace(0, 0.5, 6)
    torque = Sampled(times, np.where(times < 0.25, 0.5, 3.0)[:, None], between="held")
    out = simulate(block(), [0.0], torque=torque, times=times, method=method)
    assert out.status == "finished"
    expected = (3.0 - F) / M / 2 * np.maximum(times - 0.3, 0) ** 2
    assert np.abs(out.q[:, 0] - expected).max() < 1e-9


def test_stribeck_friction_slips_and_sticks(tmp_path):
    """A mass pulled through a spring jerks: it sticks until the spring has the static friction, then slips."""
    text = BLOCK.format(coulomb=F, static=4.0).replace("coulomb", "stribeck = 0.05\ncoulomb")
    (tmp_path / "s.toml").write_text(text)
    arm = armdyn.load(tmp_path / "s.toml")
    pulled = armdyn.simulation.Reference(
        "pull", 10.0, lambda t: (0.1 * t[..., None], 0 * t[..., None] + 0.1, 0 * t[..., None])
    )
    out = simulate(arm, [0.0], torque=PDGravity(pulled, K, 0.0), duration=5.0, method="RK5")
    sticking = out.qd[:, 0] == 0
    starts = np.flatnonzero(sticking[:-1] & ~sticking[1:])
    assert len(starts) == 3
    first = out.t[starts[0]]
    assert first == pytest.approx(4.0 / (K * 0.1), abs=2e-3)  # K · 0.1 t = static friction
    adaptive = simulate(arm, [0.0], torque=PDGravity(pulled, K, 0.0), times=[0, 1.0, 2.0], method="DOP853")
    assert np.abs(adaptive.q[:, 0] - out.q[[0, 1000, 2000], 0]).max() < 1e-4


# --- trees ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [TreeKind(joints=6, fork=0.5), TreeKind(joints=6, fork=0.4, mimic=0.4, rotors=True)])
def test_trees_and_mimic_joints_stick_too(kind):
    tree = random_tree(kind, 3)
    rubs = [replace(joint, coulomb=Fraction(1, 2), viscous=Fraction(1, 10)) for joint in tree.joints]
    robot = armdyn.Arm("tree", replace(tree, joints=tuple(rubs)))
    out = simulate(robot, np.zeros(robot.n), duration=0.1, limits=False)
    friction = out.tau - robot.inverse_dynamics(out.q, out.qd, out.qdd)
    moving = out.qd != 0
    assert moving.any()
    assert np.abs(friction - robot.friction(out.qd))[moving].max() < 1e-12
    most = np.abs(robot.friction(np.full(robot.n, 1e-300)))  # of mimic joints too, by their multipliers
    assert np.all(np.abs(friction) <= most + np.abs(robot.friction(out.qd)) * moving + 1e-12)
    exact = simulate(robot, np.zeros(robot.n), times=[0, 0.1], limits=False, method="DOP853")
    assert np.abs(exact.q[-1] - out.q[-1]).max() < 1e-9
    assert len(out.plot(engine="plotly").data) == 3 * robot.n + 1


# --- MuJoCo --------------------------------------------------------------------------------------


def test_mujoco_brakes_alike_and_creeps_where_armdyn_rests():
    """MuJoCo's frictionloss is a soft constraint: sliding agrees, but at rest its joint creeps under a load."""
    mujoco = pytest.importorskip("mujoco")
    xml = """<mujoco><option gravity="0 0 0" timestep="1e-4"/><worldbody><body><joint type="slide" axis="0 0 1"
    frictionloss="2"/><inertial pos="0 0 0" mass="1.5" diaginertia="1 1 1"/></body></worldbody></mujoco>"""
    model = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    data.qvel[:] = 1.0
    while data.time < 1.0:
        mujoco.mj_step(model, data)
    assert data.qpos[0] == pytest.approx(M / (2 * F), rel=0.02)  # v² m / 2 f
    data = mujoco.MjData(model)
    data.qfrc_applied[:] = 1.9
    while data.time < 1.0:
        mujoco.mj_step(model, data)
    assert data.qpos[0] > 1e-6  # creeps below breakaway
