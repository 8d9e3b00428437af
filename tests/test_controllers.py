"""Control laws: their identities, every backend alike, and what they do in the loop with noise, delay and limits."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from typer.testing import CliRunner

import armdyn
from armdyn.algebra import exact
from armdyn.chain.chain import generic_chain
from armdyn.chain.joint import NO_FORCES
from armdyn.cli import app
from armdyn.codegen.text.numpy import compile_numpy
from armdyn.control import CONTROLLERS
from armdyn.control.dynamics import Dynamics
from armdyn.control.emission import functions
from armdyn.control.feedback import times, transposed
from armdyn.control.law import NEXT
from armdyn.control.square_root import absorbed, packed, solve_symmetric, solved, unpacked, variances
from armdyn.errors import InputError
from armdyn.graph.program import flatten, nest, trace
from armdyn.simulation import Actuators, Digital, PDGravity, fourier, simulate
from comparing import close
from oracles import robots
from random_trees import TreeKind, random_tree

POSTURE = np.array([0.0, -1.6, 1.2, -1.0, -1.5, 0.0])
REAL = Actuators(period=2e-3, delay=2e-3, position_noise=1e-5, velocity_noise=1e-3, torque_noise=0.1)
EFFORT = np.array([150.0, 150.0, 150.0, 28.0, 28.0, 28.0])
WRENCH = np.array([10.0, -5.0, 8.0, 0.5, 0.2, 0.1])


@pytest.fixture(scope="module")
def ur5():
    return armdyn.load("ur5")


@pytest.fixture(scope="module")
def motion():
    size = np.array([0.2, 0.2, 0.2, 0.4, 0.4, 0.4])
    return fourier(POSTURE, size * np.random.default_rng(1).normal(size=(2, 6)), np.zeros((2, 6)), 0.3)


def run(arm, torque, motion, seconds, away=0.0, actuators=REAL, **options):
    """A run from the motion's start, `away` from it, without friction."""
    q, qd, _ = motion(0.0)
    found = simulate(
        arm, q + away, qd, torque=torque, duration=seconds, step=2e-3, actuators=actuators, friction=False, **options
    )
    assert found.status == "finished", found.message
    assert (np.abs(found.tau) <= EFFORT + 1e-9).all()
    return found


def errors(found, motion):
    return np.abs(found.q - motion(found.t)[0])


# One step, many ways.


@pytest.mark.parametrize("name", CONTROLLERS)
@pytest.mark.parametrize("arm", [armdyn.load("planar3"), armdyn.generic_arm("RPR", 3)], ids=lambda arm: arm.name)
def test_a_step_is_the_same_on_numbers_in_numpy_and_compiled(arm, name):
    control = armdyn.controller(arm, name, friction=True)
    made = functions(control)[name]
    law, row = control.law, 3
    given = {port.name: value[row] for port, value in zip(made.program.inputs, made.inputs, strict=True)}
    shapes = {port.name: port.shape for port in made.program.inputs}
    scalars = {key: nest([float(x) for x in np.ravel(value)], shapes[key]) for key, value in given.items()}
    plain = law.step(Dynamics(arm.chain, True), SimpleNamespace(**scalars))
    outputs, memory = control.step({e.name: given[e.name] for e in law.memory},
                                   **{e.name: given[e.name] for e in law.reads})  # fmt: skip
    written = compile_numpy(made.program)(*(given[port.name] for port in made.program.inputs))
    written = written if isinstance(written, tuple) else (written,)
    for port, text in zip(made.program.outputs, written, strict=True):
        key = port.name.removesuffix(NEXT)
        found = (memory if port.name.endswith(NEXT) else outputs)[key]
        expected = np.array(flatten(plain[key]), float).reshape(port.shape)
        scale = 1e-9 * (1 + np.abs(expected).max())
        np.testing.assert_allclose(found, expected, atol=scale, err_msg=port.name)
        np.testing.assert_allclose(text, expected, atol=scale, err_msg=port.name)


@pytest.mark.parametrize("name", ["adaptive", "momentum_observer"])
def test_trees_and_mimic_joints(name):
    chain = random_tree(TreeKind(joints=5, fork=0.5, mimic=0.3), 3)
    arm = armdyn.Arm("tree", chain, snap=0.0)
    control = armdyn.controller(arm, name)
    rng = np.random.default_rng(0)
    given = {e.name: rng.normal(size=arm.n) for e in (*control.law.measured, *control.law.reference)}
    start = control.start(**{e.name: given[e.name] for e in control.law.measured})
    outputs, _ = control.step(start, dt=1e-3, **given)
    if name == "adaptive":
        v = given["qd_ref"] + 8 * (given["q_ref"] - given["q"])
        a = given["qdd_ref"] + 8 * (given["qd_ref"] - given["qd"])
        rigid = arm.reference_dynamics(given["q"], given["qd"], v, a)
        np.testing.assert_allclose(outputs["tau"], rigid + 8 * (v - given["qd"]), atol=1e-9)
    else:
        gain = 50 * 1e-3
        rate = given["tau"] + arm.momentum_bias(given["q"], given["qd"])  # no momentum has come yet: all of it is new
        np.testing.assert_allclose(outputs["residual"], -gain / (1 + gain) * rate, atol=1e-9)


def test_a_batch_of_memories():
    arm = armdyn.load("planar3")
    control = armdyn.controller(arm, "momentum_observer")
    q, qd, tau = np.random.default_rng(0).normal(size=(3, 4, 5, 3))
    outputs, memory = control.step(control.start(q=q, qd=qd, tau=tau), dt=1e-3, q=q, qd=qd, tau=tau)
    assert outputs["residual"].shape == memory["filtered"].shape == (4, 5, 3)
    one, _ = control.step(control.start(q=q[1, 2], qd=qd[1, 2], tau=tau[1, 2]), dt=1e-3, q=q[1, 2], qd=qd[1, 2],
                          tau=tau[1, 2])  # fmt: skip
    np.testing.assert_array_equal(one["residual"], outputs["residual"][1, 2])


# What a step is made of.


def test_the_gradient_is_that_of_the_regressor(ur5, rng):
    q, qd, v, a, s = rng.normal(size=(5, 6))
    model = Dynamics(ur5.chain)
    found = model.by_parameters("reference_dynamics", *(x.tolist() for x in (q, qd, v, a)), along=s.tolist())
    kernel, p = ur5.kernel("reference_dynamics", parameters="runtime"), len(model.parameters)
    still = kernel(q, qd, v, a, np.zeros(p))
    Y = np.stack([kernel(q, qd, v, a, row) - still for row in np.eye(p)], axis=1)
    np.testing.assert_allclose(found, Y.T @ s, atol=1e-10)
    own = model.by_parameters("reference_dynamics", *(x.tolist() for x in (q, qd, qd, a)), along=s.tolist())
    np.testing.assert_allclose(own, ur5.regressor(q, qd, a).T @ s, atol=1e-10)


@pytest.mark.parametrize("name", ["ur5", "puma560"])
def test_a_payload_is_what_an_arm_with_it_has_more(name, rng):
    arm = armdyn.load(name)
    held = (1.7, (0.05, -0.03, 0.11), (0.02, 0.03, 0.02, 0.002, -0.001, 0.003))
    loaded = arm.with_payload(*held)
    same = dict(zip(("payload_mass", "payload_com", "payload_inertia"), held, strict=True))
    q, qd, ref, rate, acceleration = rng.normal(size=(5, arm.n))
    given = {"q": q, "qd": qd, "q_ref": ref, "qd_ref": rate, "qdd_ref": acceleration}
    knows = armdyn.controller(arm, "computed_torque", **same)
    has = armdyn.controller(loaded, "computed_torque")
    a, b = (one.step(one.start(q=q, qd=qd), dt=1e-3, **given)[0]["tau"] for one in (knows, has))
    np.testing.assert_allclose(a, b, atol=1e-9)
    floats = armdyn.controller(arm, "gravity_compensation", payload_mass=1.7, payload_com=held[1])
    np.testing.assert_allclose(floats.step(q=q, qd=qd, dt=1e-3)[0]["tau"], loaded.gravity_load(q), atol=1e-10)


def test_every_force_at_the_joints_is_known_with_friction(rng):
    arm = armdyn.load("planar3")
    forces = replace(NO_FORCES, offset=exact(0.7), stiffness=exact(1.5), load_friction=exact(0.1))
    joints = tuple(replace(j, viscous=exact(0.4), coulomb=exact(0.3), forces=forces) for j in arm.given.joints)
    arm = replace(arm, given=replace(arm.given, joints=joints))
    q, qd, qdd = rng.normal(size=(3, 3))
    still = np.zeros(3)
    holds = armdyn.controller(arm, "gravity_compensation", friction=True)
    expected = arm.inverse_dynamics(q, still, still, friction=True)
    assert np.abs(expected - arm.gravity_load(q)).min() > 0.1
    np.testing.assert_allclose(holds.step(q=q, qd=still, dt=1e-3)[0]["tau"], expected, atol=1e-12)
    follows = armdyn.controller(arm, "computed_torque", friction=True)
    out, _ = follows.step(follows.start(q=q, qd=qd), dt=1e-3, q=q, qd=qd, q_ref=q, qd_ref=qd, qdd_ref=qdd)
    np.testing.assert_allclose(out["tau"], arm.inverse_dynamics(q, qd, qdd, friction=True), atol=1e-12)


def test_square_root_filter_is_least_squares(rng):
    A, b = rng.normal(size=(30, 5)), rng.normal(size=30)
    R, z = [[1e-9 if i == j else 0.0 for j in range(5)] for i in range(5)], [0.0] * 5
    for row, value in zip(A, b, strict=True):
        R, z = absorbed(R, z, row.tolist(), float(value))
    np.testing.assert_allclose(solved(R, z), np.linalg.lstsq(A, b, rcond=None)[0], atol=1e-12)
    np.testing.assert_allclose(variances(R), np.diag(np.linalg.inv(A.T @ A)), rtol=1e-10)
    np.testing.assert_allclose(np.array(R).T @ np.array(R), A.T @ A, atol=1e-12)
    assert unpacked(packed(R), 5) == [[R[i][j] if j >= i else 0 for j in range(5)] for i in range(5)]
    np.testing.assert_allclose(solve_symmetric((A.T @ A).tolist(), b[:5].tolist()), np.linalg.solve(A.T @ A, b[:5]))


# In the loop.


def test_gravity_compensation_holds_what_it_knows_of(ur5, motion):
    loaded = ur5.with_payload(2.0, (0.03, 0.0, 0.06))
    held = fourier(POSTURE, np.zeros((1, 6)), np.zeros((1, 6)), 1.0)
    drifts = []
    for held_mass in (2.0, 0.0):
        payload = {"payload_mass": held_mass, "payload_com": (0.03, 0.0, 0.06)}
        control = armdyn.controller(ur5, "gravity_compensation", **payload, damping=[20, 20, 20, 2, 2, 2])
        drifts.append(np.abs(run(loaded, Digital(control), held, 1.0).q - POSTURE).max())
    assert drifts[0] < 1e-3
    assert drifts[1] > 100 * drifts[0]


def test_computed_torque_tracks_and_its_integral_takes_what_it_does_not_know(ur5, motion):
    control = armdyn.controller(ur5, "computed_torque")
    found = errors(run(ur5, Digital(control, motion), motion, 1.5, away=0.05), motion)
    assert found[0].min() >= 0.05
    assert found[-250:].max() < 1e-3
    loaded, last = ur5.with_payload(0.5, (0, 0, 0.05)), {}
    held = fourier(POSTURE, np.zeros((1, 6)), np.zeros((1, 6)), 1.0)
    for ki in (0.0, 300.0):
        control = armdyn.controller(ur5, "computed_torque", ki=ki)
        last[ki] = errors(run(loaded, Digital(control, POSTURE), held, 2.5), held)[-100:].max()
    assert last[0.0] > 0.01
    assert last[300.0] < 0.05 * last[0.0]


def test_impedance_gives_way_by_force_over_stiffness(ur5, motion):
    control = armdyn.controller(ur5, "impedance")
    found = run(ur5, Digital(control, motion), motion, 1.5, away=0.03)
    apart = np.abs(ur5.pose(found.q) - ur5.pose(motion(found.t)[0])).max(axis=(1, 2))
    assert apart[0] > 0.01
    assert apart[-250:].max() < 1.5e-3
    held = fourier(POSTURE, np.zeros((1, 6)), np.zeros((1, 6)), 1.0)
    found = run(ur5, Digital(control, POSTURE), held, 2.0, tool_wrench=WRENCH)
    before, after = ur5.pose(POSTURE), ur5.pose(found.q[-1])
    np.testing.assert_allclose((after - before)[:3, 3], WRENCH[:3] / 500.0, atol=4e-4)
    turn = after[:3, :3] @ before[:3, :3].T
    axis = np.array([turn[2, 1] - turn[1, 2], turn[0, 2] - turn[2, 0], turn[1, 0] - turn[0, 1]]) / 2
    np.testing.assert_allclose(axis, WRENCH[3:] / 50.0, atol=4e-4)


def test_a_redundant_arm_keeps_its_tool_and_moves_in_its_null_space():
    panda = armdyn.load("panda")
    start = np.array([0.2, -0.3, 0.3, -2.0, 0.2, 2.0, 0.8])
    posture = start + np.array([0.0, 0.0, 0.4, 0.0, 0.0, 0.0, 0.0])
    pose = panda.pose(start)
    references = {"pose_ref": pose, "twist_ref": np.zeros(6), "acceleration_ref": np.zeros(6), "q_ref": posture}
    control = armdyn.controller(panda, "impedance")
    found = simulate(panda, start, torque=Digital(control, lambda t: references), duration=0.8, step=2e-3,
                     friction=False)  # fmt: skip
    assert np.abs(found.q[-1] - start).max() > 0.2
    assert np.abs(panda.pose(found.q) - pose).max() < 1e-3


def test_adaptive_control_learns_from_parameters_that_are_twice_too_large(ur5, motion):
    wrong = 2 * np.array(ur5.minimal_parameters.values, float)
    damping, last = [30, 30, 30, 3, 3, 3], {}
    for share in (1.0, 0.0):
        usual = armdyn.controller(ur5, "adaptive")
        control = armdyn.controller(ur5, "adaptive", damping=damping, adaptation=share * usual.gains["adaptation"])
        found = run(ur5, Digital(control, motion, memory={"parameters": wrong}), motion, 5.0)
        last[share] = np.sqrt((errors(found, motion)[-500:] ** 2).mean())
        estimates = found.signals["adaptive"]["parameters"]
        assert (np.ptp(estimates, axis=0) > 0).any() == (share > 0)
    assert last[1.0] < 0.1 * last[0.0]
    assert last[1.0] < 5e-3


@pytest.mark.parametrize("known", [True, False])
def test_adaptive_control_starts_with_the_friction_of_the_arm_if_it_is_known(known):
    arm = armdyn.load("puma560")
    memory = armdyn.controller(arm, "adaptive", friction=known).start(q=arm.rest, qd=np.zeros(6))
    for name in ("viscous", "coulomb"):
        own = [float(getattr(joint, name)) for joint in arm.joints]
        assert max(own) > 0
        assert memory[name].tolist() == (own if known else [0.0] * 6), name


def test_parameters_adapt_at_the_same_relative_rate_whatever_their_sign(ur5):
    """The gain of a large parameter is its square; that of a small one is the same for all."""
    gains = armdyn.controller(ur5, "adaptive").gains["adaptation"]
    values = np.array(ur5.minimal_parameters.values, float)
    large = np.abs(values) > 0.1 * values.max()
    assert (values[large] < 0).any()
    assert (values[large] > 0).any()
    relative = gains[large] / values[large] ** 2
    np.testing.assert_allclose(relative, relative[0], rtol=1e-12)
    assert np.ptp(gains[~large]) == 0
    assert gains[~large][0] < gains[large].min()


def test_adaptive_control_learns_friction():
    arm = armdyn.load("puma560")
    center = arm.rest + np.array([0, -0.5, 0.5, 0.1, 0.3, 0.0])
    motion = fourier(center, 0.3 * np.ones((1, 6)), np.zeros((1, 6)), 0.5)
    last = {}
    for gain in (0.0, 50.0):
        control = armdyn.controller(arm, "adaptive", damping=[50, 50, 30, 5, 5, 5], friction_adaptation=gain)
        q, qd, _ = motion(0.0)
        found = simulate(arm, q, qd, torque=Digital(control, motion), duration=4.0, step=2e-3, actuators=REAL)
        last[gain] = errors(found, motion)[-1000:].max()
    assert last[50.0] < 0.4 * last[0.0]


def test_the_momentum_observer_sees_a_push_at_its_bandwidth_and_nothing_else(ur5, motion):
    quiet = armdyn.controller(ur5, "momentum_observer", threshold=[2, 3, 2, 1, 0.5, 0.5])
    control = armdyn.controller(ur5, "computed_torque")
    free = run(ur5, Digital(control, motion, [quiet]), motion, 2.0).signals["momentum_observer"]
    assert free["contact"].max() == 0
    assert np.abs(free["residual"]).max(axis=0)[1] > 0.1  # there is noise to be told from a push
    pushed = run(ur5, Digital(control, motion, [quiet]), motion, 0.5, tool_wrench=WRENCH)
    seen = pushed.signals["momentum_observer"]
    at = np.searchsorted(pushed.t, seen["t"])
    truth = np.einsum("tij,i->tj", ur5.jacobian(pushed.q), WRENCH)[at]
    expected = np.zeros_like(truth)
    for k in range(1, len(truth)):  # a first-order filter of bandwidth 50/s
        expected[k] = expected[k - 1] + 2e-3 * 50 / (1 + 2e-3 * 50) * (truth[k] - expected[k - 1])
    noise = 5 * free["residual"].std(axis=0)
    assert (np.abs(seen["residual"] - expected) < noise + 0.02 * np.abs(truth).max()).mean() > 0.99
    strong = int(np.argmax(np.abs(truth[0])))
    assert seen["contact"][:, strong].argmax() * 2e-3 < 0.05
    assert seen["contact"][-1, strong] == 1


@pytest.mark.parametrize(("name", "inertia"), [("payload_estimator", 1e-4), ("payload_inertia_estimator", 0.01)])
def test_a_payload_is_known_within_seconds(ur5, motion, name, inertia):
    com = np.array([0.02, 0.01, 0.06])
    loaded = ur5.with_payload(2.0, com, [inertia] * 3 + [0.0] * 3)
    watch = armdyn.controller(ur5, name, deviation=[1, 1, 1, 0.3, 0.3, 0.3])
    control = armdyn.controller(ur5, "computed_torque")
    found = run(loaded, Digital(control, motion, [watch]), motion, 3.0).signals[name]
    assert found["changed"].max() == 0
    assert abs(found["payload_mass"][-1] - 2.0) < 0.02 * 2.0
    assert np.abs(found["payload_com"][-1] - com).max() < 5e-3
    about = found["payload_inertia"][-1]
    if name == "payload_estimator":
        assert not about.any()
    else:  # the estimate about the tool's origin, moved to the centre of mass
        mass, h = found["estimate"][-1, 0], found["estimate"][-1, 1:4]
        xx, xy, yy, xz, yz, zz = found["estimate"][-1, 4:]
        c = h / mass
        moved = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) - mass * (c @ c * np.eye(3) - np.outer(c, c))
        np.testing.assert_allclose(about, moved[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]], atol=1e-6)
        told = {key: found[key][-1] for key in ("payload_mass", "payload_com", "payload_inertia")}
        assert armdyn.controller(ur5, "gravity_compensation", **told).gains["payload_mass"] == told["payload_mass"]
    truth = np.array([2.0, *(2.0 * com)])
    assert (np.abs(found["estimate"][-1, :4] - truth) < 4 * found["deviations"][-1, :4] + 1e-3).all()
    if name == "payload_estimator":
        early = np.searchsorted(found["t"], 1.0)
        assert abs(found["payload_mass"][early] - 2.0) < 0.05 * 2.0


def with_friction(arm, viscous, coulomb):
    joints = tuple(replace(joint, viscous=viscous, coulomb=coulomb) for joint in arm.given.joints)
    return replace(arm, given=replace(arm.given, joints=joints))


def test_friction_is_known_within_seconds_and_followed(ur5, motion):
    watch = armdyn.controller(ur5, "friction_estimator", deviation=0.5, forgetting=0.5)
    dt, rng = 2e-3, np.random.default_rng(3)
    t = dt * np.arange(6000)
    q, qd, qdd = motion(t)
    truth = np.where(t[:, None, None] < 6.0, [[2.0], [5.0], [0.5]], [[1.0], [3.0], [0.5]])
    slip = np.stack([qd, np.sign(qd), np.ones_like(qd)], axis=1)
    tau = np.asarray(ur5.inverse_dynamics(q, qd, qdd)) + (truth * slip).sum(axis=1)
    tau = tau + 0.3 * rng.normal(size=tau.shape)
    pushed = (t > 4.0) & (t < 4.5)  # a contact is not taken for friction
    tau[pushed, 1] += 30.0
    memory, found, known = watch.start(q=q[0], qd=qd[0], tau=tau[0]), [], []
    for row in zip(q[1:], qd[1:], tau[1:], strict=True):
        outputs, memory = watch.step(memory, dt=dt, **dict(zip(("q", "qd", "tau"), row, strict=True)))
        found.append([outputs[name] for name in ("viscous", "coulomb", "offset")])
        known.append(np.asarray(outputs["deviations"]).T)
    found, known = np.array(found), np.array(known)
    early, end = np.searchsorted(t, 3.9), np.searchsorted(t, 5.9)
    for at, true in ((early, truth[0]), (end, truth[0]), (-1, truth[-1])):
        assert (np.abs(found[at] - true) < 4 * known[at] + 0.25).all(), t[at]
    assert np.abs(found[end, 1] - 5.0).max() < 0.4
    assert np.abs(found[-1, 1] - 3.0).max() < 0.4
    of_the_arm = armdyn.controller(with_friction(ur5, 2, 5), "friction_estimator", friction=True)
    still = {"q": q[0], "qd": 0 * q[0], "tau": ur5.gravity_load(q[0])}
    outputs, _ = of_the_arm.step(of_the_arm.start(**still), dt=dt, **still)
    np.testing.assert_allclose(outputs["coulomb"], 5.0, atol=1e-9)  # what is not seen is the model's


def test_a_change_of_the_payload_starts_the_estimate_anew(ur5, motion):
    watch = armdyn.controller(ur5, "payload_estimator", deviation=[1, 1, 1, 0.3, 0.3, 0.3])
    dt, rng = 2e-3, np.random.default_rng(0)
    t = dt * np.arange(2500)
    q, qd, qdd = motion(t)
    before, after = ur5.with_payload(3.0, (0.02, 0, 0.05)), ur5.with_payload(1.0, (0, 0.03, 0.04))
    tau = np.where(t[:, None] < 2.0, before.inverse_dynamics(q, qd, qdd), after.inverse_dynamics(q, qd, qdd))
    tau = tau + 0.1 * rng.normal(size=tau.shape)
    memory, changed, masses = watch.start(q=q[0], qd=qd[0], tau=tau[0]), [], []
    for row in zip(q[1:], qd[1:], tau[1:], strict=True):
        outputs, memory = watch.step(memory, dt=dt, **dict(zip(("q", "qd", "tau"), row, strict=True)))
        changed.append(float(outputs["changed"]))
        masses.append(float(outputs["payload_mass"]))
    when = t[1:][np.array(changed) > 0]
    assert len(when) > 0
    assert 2.0 <= when[0] < 2.2
    assert when[-1] < 2.5
    assert abs(masses[999] - 3.0) < 0.06
    assert abs(masses[-1] - 1.0) < 0.03
    np.testing.assert_allclose(outputs["payload_com"], [0, 0.03, 0.04], atol=5e-3)


def test_what_is_forgotten_is_replaced_by_the_prior(ur5):
    watch = armdyn.controller(ur5, "payload_estimator", forgetting=10.0)
    still = {"q": POSTURE, "qd": np.zeros(6), "tau": ur5.gravity_load(POSTURE)}
    memory = watch.start(**still)
    for _ in range(3000):  # 30 s, in which e^-300 is left of what was known
        outputs, memory = watch.step(memory, dt=1e-2, **still)
    assert np.isfinite(outputs["deviations"]).all()
    assert (outputs["deviations"] <= watch.gains["prior"] + 1e-9).all()
    assert abs(outputs["estimate"]).max() < 1e-9


# The simulator's side.


def test_a_digital_controller_in_a_batch_and_beside_other_torques():
    arm = armdyn.load("planar3")
    watch = armdyn.controller(arm, "momentum_observer")
    q0 = np.random.default_rng(0).uniform(-0.5, 0.5, (3, 2, 3))
    found = simulate(arm, q0, torque=Digital(PDGravity(np.zeros(3), 10.0, 2.0), observers=[watch]), duration=0.05)
    assert found.signals["momentum_observer"]["residual"].shape == (3, 2, 49, 3)
    assert np.abs(found.signals["momentum_observer"]["residual"]).max() < 0.05
    alone = simulate(arm, q0[1, 1], torque=Digital(PDGravity(np.zeros(3), 10.0, 2.0)), duration=0.05)
    np.testing.assert_array_equal(alone.q, found.q[1, 1])
    assert alone.signals == {}


def test_noise_is_repeatable_and_of_its_size():
    arm, seen = armdyn.load("planar3"), []

    def torque(t, q, qd):
        seen.append((q.copy(), qd.copy()))
        return arm.gravity_load(np.zeros(3))

    noisy = Actuators(position_noise=[1e-3, 2e-3, 3e-3], velocity_noise=1e-2)
    free = simulate(arm, np.zeros(3), torque=torque, duration=1.0, actuators=noisy)
    q, qd = (np.array(x) for x in zip(*seen, strict=True))
    np.testing.assert_allclose((q - free.q[:-1]).std(axis=0), [1e-3, 2e-3, 3e-3], rtol=0.1)
    np.testing.assert_allclose((qd - free.qd[:-1]).std(axis=0), 1e-2, rtol=0.1)
    first, seen = list(seen), []
    simulate(arm, np.zeros(3), torque=torque, duration=1.0, actuators=noisy)
    np.testing.assert_array_equal(seen[5][0], first[5][0])
    with pytest.raises(InputError, match="position_noise must be one positive number or 3"):
        simulate(arm, np.zeros(3), torque=torque, duration=0.1, actuators=Actuators(position_noise=[1, 2]))


# What cannot be.


def test_errors_say_what_is_available(ur5):
    with pytest.raises(InputError, match=r"unknown controller 'pid'; available: gravity_compensation, computed_torque"):
        armdyn.controller(ur5, "pid")
    with pytest.raises(InputError, match=r"unknown gain of computed_torque 'kq'; available: kp, kd, ki"):
        armdyn.controller(ur5, "computed_torque", kq=1.0)
    with pytest.raises(
        InputError, match=r"expects kp \(proportional gain, 1/s²\) as 6 finite numbers or one for all, got \[1, 2\]"
    ):
        armdyn.controller(ur5, "computed_torque", kp=[1, 2])
    with pytest.raises(InputError, match="takes an Arm, a catalogue name or the path of a robot's file, got 3"):
        armdyn.controller(3, "adaptive")
    with pytest.raises(InputError, match="the controller impedance needs a frame: this robot has several tips"):
        armdyn.controller(armdyn.Arm("tree", random_tree(TreeKind(joints=5, fork=0.9), 1), snap=0.0), "impedance")
    control = armdyn.controller(ur5, "computed_torque")
    with pytest.raises(InputError, match="needs q_ref, qd_ref, qdd_ref; got"):
        control.step(control.start(q=POSTURE, qd=POSTURE), dt=1e-3, q=POSTURE, qd=POSTURE)
    with pytest.raises(InputError, match=r"expects q of shape \(\.\.\., 6\), got \(3,\)"):
        control.start(q=[0, 0, 0], qd=POSTURE)
    with pytest.raises(InputError, match=r"unknown input of computed_torque 'tau'"):
        control.step({}, dt=1e-3, tau=POSTURE)
    with pytest.raises(InputError, match="is for 6 joints, planar3 has 3"):
        simulate(armdyn.load("planar3"), torque=Digital(control), duration=0.1)
    with pytest.raises(InputError, match="the reference lacks q_ref, qd_ref, qdd_ref"):
        simulate(ur5, POSTURE, torque=Digital(control, lambda t: {}), duration=0.1)
    floating = random_tree(TreeKind(joints=3, floating=True), 1)
    for name in CONTROLLERS:
        with pytest.raises(InputError, match=r"needs a fixed base: .*; load it with floating=False .* contact forces"):
            armdyn.controller(armdyn.Arm("floats", floating, snap=0.0), name)


@pytest.mark.parametrize("name", ["computed_torque", "gravity_compensation"])
def test_a_payload_without_a_possible_mass_is_refused(ur5, name):
    with pytest.raises(InputError, match=f"{name}: this payload is not possible: negative mass -1 kg"):
        armdyn.controller(ur5, name, payload_mass=-1.0)
    with pytest.raises(InputError, match="an inertia without mass"):
        armdyn.controller(ur5, name, payload_inertia=np.diag([0.1, 0.1, 0.2]))
    with pytest.raises(InputError, match=r"expects payload_mass .* finite"):
        armdyn.controller(ur5, name, payload_mass=np.nan)
    with pytest.raises(InputError, match=r"expects payload_com .* as 3 finite numbers, got 0\.1"):
        armdyn.controller(ur5, name, payload_mass=1.0, payload_com=0.1)
    with pytest.raises(InputError, match=r"unknown gain of .* 'payload'; available: .*payload_mass"):
        armdyn.controller(ur5, name, payload=[1.0, 0, 0, 0])


def test_two_sweeps_cost_less_than_the_regressor_and_two_products():
    chain = generic_chain("RRRRRR")
    model, p = Dynamics(chain), len(Dynamics(chain).parameters)

    def swept(q, qd, v, a, parameters, s):
        motion = (q, qd, v, a)
        torques = model("reference_dynamics", *motion, parameters=parameters)
        return torques, model.by_parameters("reference_dynamics", *motion, along=s)

    def formed(q, qd, v, a, parameters, s):
        Y = model("regressor", q, qd, a)  # of one motion; that of two would cost more
        return times(Y, parameters), times(transposed(Y), s)

    inputs = {"q": (6,), "qd": (6,), "v": (6,), "a": (6,), "parameters": (p,), "s": (6,)}
    outputs = [("tau", (6,)), ("gradient", (p,))]
    few, many = (trace("both", way, inputs, outputs).operations.total for way in (swept, formed))
    assert few < 0.75 * many


# From the shell.


def call(*words):
    done = CliRunner().invoke(app, list(words))
    return done.output if done.exit_code == 0 else f"exit {done.exit_code}: {done.exception or done.output}"


def test_simulate_with_control_laws():
    shown = json.loads(
        call("simulate", "planar3", "--q", "0,0.1,0.2", "--to", "0.3,0.4,0.1", "--controller", "computed_torque",
             "--controller", "momentum_observer", "--duration", "1", "--noise", "0,1e-3,0.01", "--json")
    )  # fmt: skip
    np.testing.assert_allclose(shown["q"][-1], [0.3, 0.4, 0.1], atol=2e-3)
    assert np.shape(shown["signals"]["momentum_observer"]["residual"]) == (999, 3)
    said = call("simulate", "planar3", "--hold", "--controller", "momentum_observer", "--duration", "0.05")
    assert "momentum_observer: estimated external torques" in said
    assert {"joint", "residual", "contact"} <= set(said.split())
    for words, said in (
        (("--controller", "pid"), "unknown controller 'pid'; available: gravity_compensation"),
        (("--to", "0,0,0"), "--to needs a --controller"),
        (
            ("--controller", "adaptive", "--controller", "impedance"),
            "only one of these can drive the joints: adaptive, impedance",
        ),
        (("--controller", "adaptive", "--hold"), "only one of these can drive the joints: adaptive, --hold or --tau"),
        (("--controller", "adaptive", "--noise", "1,2"), "--noise takes three numbers"),
    ):
        assert said in call("simulate", "planar3", "--duration", "0.1", *words)


def test_costs_of_control_laws():
    rows = json.loads(call("cost", "planar3", "--controller", "all", "--json"))["costs"]
    assert [row["quantity"] for row in rows] == list(CONTROLLERS)
    planar = armdyn.load("planar3")
    assert rows[3]["compiled"]["total"] == armdyn.controller(planar, "adaptive").operations.total


@pytest.fixture(scope="module")
def hand():
    """A robot with two tips, a mimic joint and no tool: the Panda with its hand, its tool frame renamed."""
    file = next(path for path in robots() if path.stem == "panda")
    return armdyn.load(file.read_text().replace("panda_hand_tcp", "grasp"))


BODY = (1.2, (0.01, -0.02, 0.05), (0.01, 0.012, 0.008, 0.001, -0.002, 0.0005))


def test_laws_take_a_frame(hand):
    """Gravity compensation and computed torque with a payload at a frame are those of the arm that carries it."""
    with pytest.raises(InputError, match=r"controller impedance needs a frame: .*give frame=, or load it with tool="):
        armdyn.controller(hand, "impedance")
    with pytest.raises(InputError, match=r"unknown frame that moves 'hand'; available: .*grasp"):
        armdyn.controller(hand, "impedance", frame="hand")
    rng = np.random.default_rng(0)
    q = hand.rest + rng.uniform(-0.3, 0.3, hand.n)
    qd, qdd = rng.uniform(-1, 1, (2, hand.n))
    loaded = hand.with_payload(*BODY, frame="grasp")
    same = dict(zip(("payload_mass", "payload_com", "payload_inertia"), BODY, strict=True))
    still = armdyn.controller(hand, "gravity_compensation", frame="grasp", **same)
    close(still.step(dt=1e-3, q=q, qd=qd)[0]["tau"], loaded.gravity_load(q), 1e-9)
    follows = armdyn.controller(hand, "computed_torque", frame="grasp", **same)
    given = {"q": q, "qd": qd, "q_ref": q, "qd_ref": qd, "qdd_ref": qdd}
    tau = follows.step(follows.start(q=q, qd=qd), dt=1e-3, **given)[0]["tau"]
    close(tau, loaded.inverse_dynamics(q, qd, qdd), 1e-9)
    named = armdyn.load(next(p for p in robots() if p.stem == "panda"))
    mine, theirs = (armdyn.controller(a, "impedance", **at) for a, at in ((named, {}), (hand, {"frame": "grasp"})))
    pose = {"pose_ref": named.pose(q), "twist_ref": np.zeros(6), "acceleration_ref": np.zeros(6), "q_ref": q}
    assert np.array_equal(*(law.step(dt=1e-3, q=q, qd=qd, **pose)[0]["tau"] for law in (mine, theirs)))


@pytest.mark.parametrize("name", ["gravity_compensation", "computed_torque", "adaptive", "momentum_observer"])
def test_laws_without_a_payload_need_no_tool(hand, name):
    control = armdyn.controller(hand, name)
    q, qd = hand.rest, np.linspace(-0.3, 0.4, hand.n)
    values = {"q": q, "q_ref": q, "qd": qd, "qd_ref": qd, "qdd_ref": qd, "tau": qd}
    law = control.law
    memory = control.start(**{entry.name: values[entry.name] for entry in law.measured}) if law.memory else {}
    given = {entry.name: values[entry.name] for entry in (*law.measured, *law.reference)}
    out, _ = control.step(memory, dt=1e-3, **given)
    assert all(np.isfinite(x).all() for x in out.values())
    if name == "gravity_compensation":
        close(out["tau"], hand.gravity_load(q), 1e-12)
    if any(entry.of_payload for entry in CONTROLLERS[name].gains):
        assert "payload_mass" not in control.gains
        with pytest.raises(InputError, match=f"the controller {name} with a payload needs a frame"):
            armdyn.controller(hand, name, payload_mass=0.0)


def test_a_hand_is_held_and_deployed_with_a_frame(hand, tmp_path):
    drive = Digital(armdyn.controller(hand, "computed_torque"))
    result = simulate(hand, hand.rest, torque=drive, duration=0.2, actuators=Actuators(1e-3), friction=False)
    assert result.status == "finished"
    close(result.q[-1], hand.rest, 1e-3)
    files = armdyn.deploy(
        hand, tmp_path / "c", controllers=["gravity_compensation", "impedance"], frame="grasp", measure_stack=False
    )
    text = "".join(path.read_text() for path in files if path.suffix in (".c", ".h"))
    assert "gravity_compensation" in text
    assert "pose_ref" in text


def test_the_command_line_takes_the_frame_of_a_law(hand, tmp_path):
    file = tmp_path / "hand.urdf"
    file.write_text(next(p for p in robots() if p.stem == "panda").read_text().replace("panda_hand_tcp", "grasp"))
    words = ["simulate", str(file), "--controller", "gravity_compensation", "--duration", "0.02", "--control-period"]
    for more in ([], ["--frame", "grasp"], ["--tool", "grasp"]):
        done = CliRunner().invoke(app, [*words, "0.001", *more])
        assert done.exit_code == 0, done.output
    refused = CliRunner().invoke(app, ["simulate", str(file), "--controller", "impedance", "--control-period", "0.001"])
    assert refused.exit_code == 1
    assert "--tool" in str(refused.output) + str(refused.exception)
