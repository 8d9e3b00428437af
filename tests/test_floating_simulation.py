"""Simulation of floating bases: orders on the manifold, momenta, rigid bodies, MuJoCo, drives, friction, files."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import integrate

import armdyn
from armdyn.chain import Chain, Joint, Link
from armdyn.chain.joint import Limit
from armdyn.errors import InputError
from armdyn.programs.stepping import FIXED, SCHEMES
from armdyn.simulation import PD, Actuators, ComputedTorque, PDGravity, Reference, Sampled, quintic, simulate
from armdyn.simulation.judge import linearised
from armdyn.simulation.request import Layout
from random_trees import TreeKind, random_tree

FREE = {"friction": False, "limits": False}


def robot(joints: int = 3, seed: int = 3, **kind: object) -> armdyn.Arm:
    return armdyn.Arm("loose", random_tree(TreeKind(joints=joints, fork=0.5, floating=True, special=0.8, **kind), seed))  # type: ignore[arg-type]


def states(arm: armdyn.Arm, seed: int = 0, *batch: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    q, v = rng.normal(size=(*batch, arm.chain.nq)), rng.normal(size=(*batch, arm.chain.nv))
    return Layout.of(arm.chain).normalised(q), v


@pytest.fixture(scope="module")
def loose() -> armdyn.Arm:
    return robot()


def world_momentum(arm: armdyn.Arm, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
    """Linear and angular momentum about the centre of mass, in the axes of the ground."""
    return np.asarray(arm.centroidal_momentum(q, qd))


# --- accuracy ------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", SCHEMES.values(), ids=SCHEMES)
def test_methods_keep_their_order_on_the_manifold(loose, scheme):
    """The distance of poses: of positions, of velocities, and of quaternions up to their sign."""
    q0, v0 = states(loose)
    times = np.array([0.0, 0.4])
    exact = simulate(loose, q0, v0, times=times, method="DOP853", rtol=1e-13, atol=1e-13, **FREE)
    step = 0.005 if scheme.past or scheme.order < 3 else 0.01 if scheme.order > 4 else 0.02
    errors = []
    for h in (step, step / 2):
        out = simulate(loose, q0, v0, times=times, method=scheme.name, step=h, **FREE)
        assert np.abs(np.linalg.norm(out.q[:, 3:7], axis=-1) - 1).max() < 1e-15
        errors.append(max(np.abs(out.q[-1] - exact.q[-1]).max(), np.abs(out.qd[-1] - exact.qd[-1]).max()))
    assert np.log2(errors[0] / errors[1]) == pytest.approx(scheme.order, abs=0.35)


@pytest.mark.parametrize("method", ["RK5", "DOP853"])
def test_in_free_flight_the_centre_of_mass_falls_and_the_rest_is_conserved(loose, method):
    q0, v0 = states(loose)
    tolerances = {"rtol": 1e-12, "atol": 1e-13} if method == "DOP853" else {}
    out = simulate(loose, q0, v0, duration=0.5, method=method, **tolerances, **FREE)
    momentum, centre = world_momentum(loose, out.q, out.qd), loose.centre_of_mass(out.q)
    gravity = np.array(loose.gravity)
    fall = centre[0] + out.t[:, None] * momentum[0, :3] / loose.mass + out.t[:, None] ** 2 * gravity / 2
    assert np.abs(centre - fall).max() < 1e-9
    assert np.abs(momentum[:, 3:] - momentum[0, 3:]).max() < 1e-9
    assert np.abs(out.energy - out.energy[0]).max() < 1e-8 * np.abs(out.energy).max()
    turned = out.q.copy()
    turned[:, 3:7] *= -1  # the same rotation
    np.testing.assert_allclose(loose.potential_energy(turned), loose.potential_energy(out.q), rtol=1e-13)
    np.testing.assert_allclose(out.base_pose[:, 3], np.tile([0.0, 0, 0, 1], (len(out), 1)))
    np.testing.assert_allclose(out.base_pose, np.asarray(loose.link_poses(out.q))[:, 0], atol=1e-14)


def brick() -> armdyn.Arm:
    """A single rigid body with three different moments of inertia, without gravity."""
    link = Link.from_natural(tuple(map(Fraction, ("2", "0", "0", "0", "0.3", "0", "0.2", "0", "0", "0.1"))))
    free = random_tree(TreeKind(joints=1, floating=True), 0).joints[0]
    return armdyn.Arm("brick", Chain((free,), (link,), gravity=type(link.moment)(0, 0, 0)))


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_a_body_without_torque_turns_as_euler_says(axis):
    """Against Euler's equations and the rotation matrix integrated on their own; about its middle axis it tumbles."""
    arm, inertia = brick(), np.array([0.3, 0.2, 0.1])
    w0 = np.full(3, 0.01)
    w0[axis] = 5.0
    out = simulate(arm, None, np.concatenate([[0.3, -0.1, 0.2], w0]), duration=4.0, step=2e-3, method="RK4")

    def right(_: float, y: np.ndarray) -> np.ndarray:
        w, R = y[:3], y[3:].reshape(3, 3)
        skew = np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])
        return np.concatenate([-np.cross(w, inertia * w) / inertia, (R @ skew).ravel()])

    start = np.concatenate([w0, np.eye(3).ravel()])
    truth = integrate.solve_ivp(right, (0, 4.0), start, "DOP853", rtol=1e-12, atol=1e-12).y[:, -1]
    assert np.abs(out.qd[-1, 3:] - truth[:3]).max() < 1e-7
    assert np.abs(out.base_pose[-1, :3, :3] - truth[3:].reshape(3, 3)).max() < 1e-7
    tumbles = out.qd[:, 3 + axis].min() < 0
    assert tumbles == (axis == 1)
    np.testing.assert_allclose(out.q[-1, :3], 4.0 * np.array([0.3, -0.1, 0.2]), atol=1e-8)


def test_mujoco_flies_the_same(tmp_path):
    """A free joint: MuJoCo has linear velocities in the ground's axes, angular ones in the base's, and w first."""
    mujoco = pytest.importorskip("mujoco", reason="MuJoCo, which this compares with, is not installed")
    text = """<mujoco><option timestep="0.0005" integrator="RK4" gravity="0.5 0 -9.81"/><worldbody><body name="a">
    <freejoint/><geom type="box" size="0.1 0.2 0.05" pos="0.02 0 0.01" mass="3"/>
    <body name="b" pos="0.1 0.1 0"><joint name="j" axis="0 1 0"/>
    <geom type="box" size="0.1 0.02 0.03" pos="0.1 0 0" mass="1"/></body>
    <body name="c" pos="-0.1 0 0"><joint name="k" axis="1 0 0.5"/>
    <geom type="capsule" size="0.03" fromto="0 0 0 0 0.2 0.1" mass="0.7"/>
    </body></body></worldbody></mujoco>"""
    path = tmp_path / "flyer.xml"
    path.write_text(text.replace("<geom", '<geom contype="0" conaffinity="0"'))
    arm, model = armdyn.load(path, snap=0), mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    q0, v0 = states(arm, 5)
    out = simulate(arm, q0, v0, duration=0.5, step=5e-4, torque=[0.3, -0.2], **FREE)
    turn = out.base_pose[:, :3, :3]
    data.qpos[:] = [*q0[:3], q0[6], *q0[3:6], *q0[7:]]
    data.qvel[:] = [*(turn[0] @ v0[:3]), *v0[3:]]
    data.qfrc_applied[6:] = [0.3, -0.2]
    for _ in range(1000):
        mujoco.mj_step(model, data)
    assert np.abs(out.q[-1] - [*data.qpos[:3], *data.qpos[4:7], data.qpos[3], *data.qpos[7:]]).max() < 1e-8
    assert np.abs(np.concatenate([turn[-1] @ out.qd[-1, :3], out.qd[-1, 3:]]) - data.qvel).max() < 1e-7


def test_a_step_of_pinocchio_on_the_manifold(loose):
    """Semi-implicit Euler's pose step is Pinocchio's `integrate` but for what projection differs from it: h³."""
    pin = pytest.importorskip("pinocchio", reason="Pinocchio, which this compares with, is not installed")
    q0, v0 = states(loose)
    model = pin.Model()
    model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "base")
    errors = []
    for h in (0.02, 0.01):
        out = simulate(loose, q0, v0, times=[0, h], step=h, method="semi_implicit_euler", **FREE)
        theirs = pin.integrate(model, q0[:7], h * out.qd[-1, :6])
        errors.append(np.abs(out.q[-1, 3:7] - theirs[3:7]).max())
    assert errors[0] / errors[1] == pytest.approx(8, rel=0.1)


# --- batches, drives, events ---------------------------------------------------------------------


@pytest.mark.parametrize("method", FIXED)
def test_a_lane_is_what_it_is_alone(loose, method):
    q0, v0 = states(loose, 1, 2, 5)
    every = simulate(loose, q0, v0, duration=0.02, method=method, torque=0.3 * np.ones(loose.n), limits=False)
    assert every.q.shape == (2, 5, 21, loose.chain.nq)
    assert every.tau.shape == every.qd.shape == (2, 5, 21, loose.chain.nv)
    alone = simulate(
        loose, q0[1, 3], v0[1, 3], duration=0.02, method=method, torque=0.3 * np.ones(loose.n), limits=False
    )
    np.testing.assert_array_equal(every.q[1, 3], alone.q)
    np.testing.assert_array_equal(alone.tau[0], [*[0] * 6, *[0.3] * loose.n])


@pytest.mark.parametrize("method", ["RK4", "semi_implicit_euler"])
def test_a_python_function_does_what_constants_do(loose, method):
    q0, v0 = states(loose, 2)
    tau = np.linspace(-1, 1, loose.chain.nv)
    options = {"duration": 0.05, "method": method, "limits": False}
    compiled = simulate(loose, q0, v0, torque=tau, **options)
    asked = simulate(loose, q0, v0, torque=lambda t, q, qd: tau, **options)
    held = simulate(loose, q0, v0, torque=Sampled([0.0, 1.0], [tau, tau], "held"), **options)
    np.testing.assert_allclose(asked.q, compiled.q, atol=1e-13)
    np.testing.assert_allclose(held.q, compiled.q, atol=1e-13)
    np.testing.assert_allclose(
        compiled.qdd, loose.forward_dynamics(compiled.q, compiled.qd, tau), rtol=1e-11, atol=1e-11
    )
    sampled = simulate(loose, q0, v0, torque=tau, actuators=Actuators(period=0.01, encoder=1e-3), **options)
    np.testing.assert_allclose(sampled.q[-1], compiled.q[-1], atol=1e-13)


def test_computed_torque_tracks_joints_while_the_base_moves_freely():
    arm = robot()
    q0, _ = states(arm)
    wanted = quintic(q0[7:], q0[7:] + 0.5, 0.4)
    out = simulate(arm, q0, None, torque=ComputedTorque(wanted, 100.0, 20.0), duration=0.4, **FREE)
    np.testing.assert_allclose(out.q[:, 7:], wanted(out.t)[0], atol=1e-7)
    assert np.all(out.tau[:, :6] == 0)  # nothing holds the base
    assert np.abs(out.q[-1, 3:7] - q0[3:7]).max() > 1e-3
    momentum = world_momentum(arm, out.q, out.qd)[:, 3:]
    assert np.abs(momentum - momentum[0]).max() < 1e-9  # what the motors do is inside the robot


def test_stiff_gains_are_taken_implicitly():
    arm = robot()
    q0, v0 = states(arm)
    times, hold = [0, 0.1], PD(q0[7:], 1e5, 3e3)
    truth = simulate(arm, q0, v0, torque=hold, times=times, method="Radau", rtol=1e-10, atol=1e-12, **FREE)
    errors = []
    for step in (5e-4, 2.5e-4):
        stiff = simulate(arm, q0, v0, torque=hold, times=times, step=step, **FREE)
        assert stiff.method == "ARK4"
        errors.append(np.abs(stiff.q[-1] - truth.q[-1]).max())
    assert errors[1] < 1e-5
    assert errors[0] / errors[1] > 8  # the gains' own transient is not resolved well enough yet for 16
    soft = simulate(arm, q0, v0, torque=PDGravity(q0[7:], 1.0, 0.1), duration=0.01, **FREE)
    load = np.asarray(arm.gravity_load(soft.q))[:, 6:]
    np.testing.assert_allclose(soft.tau[:, 6:], load + (q0[7:] - soft.q[:, 7:]) - 0.1 * soft.qd[:, 6:], atol=1e-12)


def with_joints(arm: armdyn.Arm, **changes: object) -> armdyn.Arm:
    def changed(joint: Joint) -> Joint:
        return joint if joint.free else replace(joint, **changes)  # type: ignore[arg-type]

    return armdyn.Arm(arm.name, replace(arm.given, joints=tuple(map(changed, arm.given.joints))))


def test_joints_stick_on_a_floating_base():
    arm = with_joints(robot(), coulomb=Fraction(40), viscous=Fraction(1, 10))
    q0, _ = states(arm)
    v0 = np.concatenate([np.zeros(6), np.full(arm.n, 0.5)])
    out = simulate(arm, q0, v0, duration=0.3, limits=False)
    assert np.all(out.qd[-1, 6:] == 0)  # the joints have come to rest, the robot falls as one body
    exact = simulate(arm, q0, v0, times=[0, 0.3], limits=False, method="DOP853")
    np.testing.assert_allclose(out.q[-1], exact.q[-1], atol=1e-7)
    momentum = world_momentum(arm, out.q, out.qd)[:, 3:]
    assert np.abs(momentum - momentum[0]).max() < 1e-9
    lazy = simulate(arm, q0, v0, duration=0.3, limits=False, torque=lambda t, q, qd: np.zeros(arm.n))
    np.testing.assert_allclose(lazy.q[-1], out.q[-1], atol=1e-6)


def test_limits_of_joints_end_or_stop():
    arm = with_joints(robot(), limit=Limit(-0.2, 0.2, None, 5.0))
    q0 = arm.rest
    v0 = np.concatenate([np.zeros(6), np.full(arm.n, 2.0)])
    out = simulate(arm, q0, v0, duration=1.0)
    assert out.status == "limit"
    assert np.abs(out.q[-1, 7:]).max() == pytest.approx(0.2, abs=1e-12)
    many = simulate(arm, np.tile(q0, (40, 1)), v0, duration=1.0)
    np.testing.assert_allclose(many.ends, out.t[-1], atol=1e-6)
    stopped = simulate(arm, q0, v0, duration=0.5, limits=0.5)
    assert np.abs(stopped.q[:, 7:]).max() <= 0.2
    momentum = world_momentum(arm, stopped.q, stopped.qd)[:, 3:]
    assert np.abs(momentum - momentum[0]).max() < 1e-7  # an impact is inside the robot
    adaptive = simulate(arm, q0, v0, times=[0, 1.0], method="DOP853")
    assert adaptive.t[-1] == pytest.approx(out.t[-1], abs=1e-8)
    pushed = simulate(arm, q0, None, torque=PD(q0[7:] + 0.1, 1e3, 10.0), duration=0.01, **FREE)
    assert np.abs(pushed.tau).max() == 5.0  # a controller keeps to the motors' limits


def test_the_linearised_motion_is_that_of_small_deviations(loose):
    """J of the stability check against differences of a simulation, in the tangent space."""
    from armdyn.programs.assemble import Options
    from armdyn.simulation.drives import drive
    from armdyn.simulation.stepper import LawTorques, Stepper

    layout, (q0, v0), h, small = Layout.of(loose.chain), states(loose), 1e-4, 1e-5
    stepper = Stepper(loose.chain, LawTorques(drive(loose.chain, None)), Options(), None, "RK4")
    y0 = np.concatenate([q0, v0])
    found = linearised(stepper, 0.0, y0)
    assert found is not None
    rng = np.random.default_rng(1)
    by = small * rng.normal(size=2 * layout.nv)
    near = layout.moved(y0, np.stack([by, -by]))
    q, v = near[:, : layout.nq], near[:, layout.nq :]
    ends = simulate(loose, q, v, times=[0, h], step=h / 4, **FREE)
    middle = simulate(loose, q0, v0, times=[0, h], step=h / 4, **FREE)
    difference = (ends.q[0, -1] - ends.q[1, -1]) / 2
    J = np.array([layout.rate(middle.q[-1], e) for e in np.eye(layout.nv)]).T
    deviation = np.concatenate([np.linalg.lstsq(J, difference, rcond=None)[0], (ends.qd[0, -1] - ends.qd[1, -1]) / 2])
    truth = by + h * found.J @ by + h**2 / 2 * found.J @ (found.J @ by)
    assert np.abs(deviation - truth).max() < 1e-3 * np.abs(h * found.J @ by).max()


# --- what comes out, what goes wrong ---------------------------------------------------------------


def test_files_plots_and_pages_have_the_base(loose, tmp_path):
    q0, v0 = states(loose)
    out = simulate(loose, q0, v0, duration=0.01, **FREE)
    out.save(tmp_path / "out.csv")
    head, *rows = (tmp_path / "out.csv").read_text().splitlines()
    names = head.split(",")
    assert names[1:9] == ["base_x", "base_y", "base_z", "base_qx", "base_qy", "base_qz", "base_qw", "q1"]
    assert "base_qd_rz" in names
    table = np.array([row.split(",") for row in rows], float)
    np.testing.assert_array_equal(table[:, 1 : 1 + loose.chain.nq], out.q)
    assert len(names) == table.shape[1] == 2 + loose.chain.nq + 3 * loose.chain.nv
    figure = out.plot(engine="plotly")
    assert len(figure.data) == loose.chain.nq + 2 * loose.chain.nv + 1
    assert sum(line.showlegend is not False for line in figure.data[:-1]) == 7 + 3 + loose.n
    assert "base quaternion w" in out.animate().html


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"q0": np.zeros(3)},
            r"q0 of a floating base \(x, y, z, quaternion x, y, z, w, joints\) must be \(\.\.\., 9\)",
        ),
        ({"q0": np.zeros(9)}, "a quaternion of length 1; got one of length 0"),
        ({"qd0": np.zeros(9)}, r"qd0 must be \(\.\.\., 8\)"),
        ({"torque": np.zeros(3)}, r"2 \(the joints'\) or 8 \(force and moment on the base first\) numbers"),
        ({"torque": lambda t, q, qd: np.zeros(5)}, r"gave shape \(5,\), expected \(\.\.\., 2 \(the joints'\) or 8"),
        ({"torque": PD(np.zeros(8), 1.0, 1.0)}, "target must be a Reference or 2 numbers"),
    ],
)
def test_bad_input_is_explained(arguments, message):
    with pytest.raises(InputError, match=message):
        simulate(robot(), duration=0.1, **arguments)


def test_feedforward_of_a_motion_of_the_base():
    """A reference of the base and the joints: the forces that make it, force and moment on the base among them."""
    from armdyn.simulation import Feedforward

    arm = robot()
    start, size = arm.rest, 0.2

    def motion(t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        s, c = np.sin(t)[..., None], np.cos(t)[..., None]
        along = np.array([1.0, 0, 0, 0, 0, 0, *[1.0] * arm.n]) * size
        position = start + s * np.concatenate([along[:3], np.zeros(4), along[6:]])
        return position, c * along, -s * along

    reference = Reference("sway", 1.0, motion, periodic=True)
    out = simulate(arm, start, reference(0.0)[1], torque=Feedforward(reference), duration=0.5, **FREE)
    np.testing.assert_allclose(out.q, reference(out.t)[0], atol=1e-9)


def test_a_body_without_joints_flies():
    body = armdyn.Arm("body", random_tree(TreeKind(joints=1, floating=True), 5))
    assert body.n == 0
    run = armdyn.simulate(body, duration=0.1, step=1e-2)
    assert run.status == "finished"
    fallen = np.linalg.norm(run.q[-1, :3] - run.q[0, :3])
    assert fallen == pytest.approx(0.005 * np.linalg.norm(body.gravity), rel=1e-9)
