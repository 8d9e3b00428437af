"""What programs need around the model, as kernels: pose error, integration, frame motion and joint wrenches."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

import armdyn
from armdyn.errors import InputError
from comparing import close
from oracles import robots

FILE = next(path for path in robots() if path.stem == "ur5_robot")


@pytest.fixture(scope="module", params=[False, True], ids=["fixed", "floating"])
def case(request):
    """An arm, Pinocchio's model and data, two configurations, a velocity and an acceleration."""
    floating = request.param
    arm = armdyn.load(FILE, snap=0, floating=floating)
    model = pin.buildModelFromUrdf(str(FILE), *([pin.JointModelFreeFlyer()] if floating else []))
    data, rng = model.createData(), np.random.default_rng(0)
    q, q1 = arm.postures(rng, 2)
    v, a = rng.uniform(-1, 1, (2, arm.chain.nv))
    if floating:
        q[:3] = [1, 2, 3]
    pin.forwardKinematics(model, data, q, v, a)
    pin.updateFramePlacements(model, data)
    return arm, model, data, (q, q1, v, a)


@pytest.mark.parametrize("size", [1.0, 0.1, 1e-4, 1e-8, 0.0])
def test_the_pose_error_is_the_logarithm_and_its_derivative_the_jacobian(case, size):
    arm, model, data, (q, _, _, _) = case
    T = data.oMf[model.getFrameId("tool0")].homogeneous
    step = pin.exp6(size * np.random.default_rng(1).uniform(-1.7, 1.7, 6)).homogeneous
    expected = pin.log6(pin.SE3(np.linalg.inv(T) @ T @ step)).vector
    np.testing.assert_allclose(arm.pose_error(q, T @ step), expected, atol=1e-14)
    slope = arm.pose_error(q, T @ step, derivatives="q")
    h = 1e-6

    def moved(d):
        return arm.pose_error(arm.integrate(q, d), T @ step)

    numeric = np.array([(moved(h * d) - moved(-h * d)) / (2 * h) for d in np.eye(arm.chain.nv)]).T
    np.testing.assert_allclose(slope, numeric, atol=1e-8)
    if size == 0.0:  # at the goal the Jacobian is minus the tool's own
        np.testing.assert_allclose(slope, -arm.jacobian(q, axes="local"), atol=1e-14)


def test_the_pose_error_is_exact_up_to_half_a_turn(case):
    arm, _, _, (q, *_) = case
    T = arm.pose(q)
    for away in (1e-3, 1e-6, 1e-9, 0.0):
        for axis in np.vstack([np.eye(3), np.random.default_rng(2).normal(size=(6, 3)), [[1, 1, 0], [1, -1, 0]]]):
            turn = (np.pi - away) * axis / np.linalg.norm(axis)
            step = pin.SE3(pin.exp3(turn), np.array([0.3, -0.2, 0.1])).homogeneous
            e = arm.pose_error(q, T @ step)
            assert abs(np.linalg.norm(e[3:]) - (np.pi - away)) < 1e-12
            np.testing.assert_allclose(pin.exp6(e).homogeneous, step, atol=1e-12)


def test_the_pose_error_of_a_frame_and_a_batch(case):
    arm, _, _, (q, q1, *_) = case
    goals = arm.pose(np.stack([q, q1]), frame="forearm_link")
    errors = arm.pose_error(q, goals, frame="forearm_link")
    assert errors.shape == (2, 6)
    np.testing.assert_allclose(errors[0], 0, atol=1e-14)
    still = arm.pose_error(q, np.eye(4), frame="world") if not arm.floating else np.zeros(6)
    np.testing.assert_array_equal(still, 0)


def test_a_task_space_loop_reaches_its_goal():
    arm = armdyn.load("ur5")
    q, goal = np.array([0.1, -1.2, 1.0, -0.5, 0.4, 0.3]), arm.pose([0.4, -1.0, 1.4, -0.9, -0.5, 0.8])
    for _ in range(20):
        q = arm.integrate(q, -np.linalg.solve(arm.pose_error(q, goal, derivatives="q"), arm.pose_error(q, goal)))
    np.testing.assert_allclose(arm.pose(q), goal, atol=1e-12)


def test_configurations_are_integrated_and_subtracted_as_in_pinocchio(case):
    arm, model, _, (q, q1, v, _) = case
    close(arm.integrate(q, v), pin.integrate(model, q, v), 1e-14)
    close(arm.difference(q, q1), pin.difference(model, q, q1), 1e-14)
    back = arm.integrate(q, arm.difference(q, q1))
    np.testing.assert_allclose(arm.poses(back), arm.poses(q1), atol=1e-13)
    np.testing.assert_allclose(arm.integrate(q, 0 * v), q, atol=1e-15)
    np.testing.assert_array_equal(arm.difference(q, q), 0)
    many = arm.integrate(q, np.linspace(0, 1, 5)[:, None] * v)
    np.testing.assert_array_equal(many[-1], arm.integrate(q, v))


def test_motions_of_frames_are_pinocchios(case):
    arm, model, data, (q, _, v, a) = case
    for name in ("tool0", "forearm_link"):
        i = model.getFrameId(name)
        for axes, reference in (("base", pin.LOCAL_WORLD_ALIGNED), ("local", pin.LOCAL)):
            velocity = pin.getFrameVelocity(model, data, i, reference).vector
            acceleration = pin.getFrameClassicalAcceleration(model, data, i, reference).vector
            at = {"frame": name, "axes": axes}
            np.testing.assert_allclose(arm.frame_velocity(q, v, **at), velocity, atol=1e-13)
            np.testing.assert_allclose(arm.frame_acceleration(q, v, a, **at), acceleration, atol=1e-13)
    if not arm.floating:
        np.testing.assert_array_equal(arm.frame_velocity(q, v, frame="world"), 0)


def test_joint_wrenches_are_pinocchios(case):
    arm, model, data, (q, _, v, a) = case
    pin.rnea(model, data, q, v, a)
    expected = [f.vector for f in list(data.f)[1:]]
    found = arm.joint_wrenches(q, v, a)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    one = arm.joint_wrenches(q, v, a, frames="forearm_link")
    np.testing.assert_allclose(one[0], found[[link.name for link in arm.links].index("forearm_link")], atol=1e-13)
    if not arm.floating:
        with pytest.raises(InputError, match="the base has no joint"):
            arm.joint_wrenches(q, v, a, frames=["world"])


def test_they_are_kernels_like_the_others():
    """In NumPy and Python too, with mimic joints, one joint, and a wrong goal named."""
    hand = armdyn.load("panda_hand")
    rng = np.random.default_rng(3)
    q, (v, a) = hand.rest, rng.uniform(-1, 1, (2, hand.n))
    goal = hand.pose(q + 0.1 * v)
    for name, inputs in (("pose_error", (q, goal)), ("joint_wrenches", (q, v, a)), ("difference", (q, v)),
                         ("frame_acceleration", (q, v, a)), ("link_jacobians", (q,))):  # fmt: skip
        found = getattr(hand, name)(*inputs)
        for backend in ("numpy", "python"):
            np.testing.assert_allclose(hand.kernel(name, backend=backend)(*inputs), found, atol=1e-12)
    lone = armdyn.from_dh([(0, 0.3, 0.2, 0.1)])
    np.testing.assert_allclose(lone.pose_error([0.2], lone.pose([0.5]))[3:], [0, 0.3 * np.sin(0.1), 0.3 * np.cos(0.1)],
                               atol=1e-14)  # fmt: skip
    with pytest.raises(InputError, match=r"expects goal of shape \(\.\.\., 4, 4\), got \(3, 3\)"):
        hand.pose_error(q, np.eye(3))


def held_by_kkt(arm, state, held, damping):
    """(qdd, forces) with rows of frames held, from the dense system of equations, and Jacobians of each row."""
    q, v, tau = state
    J = np.vstack([arm.jacobian(q, frame=name)[list(rows)] for name, rows in held])
    drift = [arm.frame_acceleration(q, v, 0 * v, frame=name)[list(rows)] for name, rows in held]
    K = np.block([[arm.inertia_matrix(q), -J.T], [J, damping * np.eye(len(J))]])
    x = np.linalg.solve(K, np.concatenate([tau - arm.bias(q, v), *(-d for d in drift)]))
    return x[: arm.chain.nv], x[arm.chain.nv :]


ALL = tuple(range(6))


@pytest.mark.parametrize(
    ("robot", "floating", "held", "damping"),
    [
        ("ur5", False, [("tool0", (0, 1, 2))], 0.0),
        ("ur5", False, [("forearm_link", (2,)), ("tool0", (5, 0, 4))], 0.0),
        ("ur5", False, [("tool0", ALL), ("forearm_link", (0, 1, 2))], 1e-3),  # redundant
        ("solo12", True, [("FL_FOOT", (0, 1, 2)), ("HR_FOOT", (0, 1, 2))], 0.0),
        ("solo12", True, [(f"{foot}_FOOT", (0, 1, 2)) for foot in ("FL", "FR", "HL", "HR")], 1e-6),
        ("panda", False, [("panda_leftfinger", (1,)), ("panda_rightfinger", (0, 2))], 0.0),  # with fingers
    ],
)
def test_frames_that_are_held_against_the_dense_system(robot, floating, held, damping):
    arm = armdyn.load(next(path for path in robots() if path.stem in (robot, f"{robot}_robot")), floating=floating)
    rng = np.random.default_rng(4)
    q = arm.postures(rng, 1)[0]
    state = (q, *rng.uniform(-1, 1, (2, arm.chain.nv)))
    given = {"frames": [name for name, _ in held], "rows": [rows for _, rows in held], "damping": damping}
    qdd, wrenches = arm.held_dynamics(*state, **given)
    expected, forces = held_by_kkt(arm, state, held, damping)
    close(qdd, expected, 1e-7 if damping else 1e-9)
    close(np.concatenate([w[list(rows)] for w, (_, rows) in zip(wrenches, held, strict=True)]), forces, 1e-7)
    assert np.count_nonzero(wrenches) == len(forces)
    if not damping:  # what is held does not accelerate, and its wrenches are what forward dynamics needs for that
        for name, rows in held:
            moving = arm.frame_acceleration(q, state[1], qdd, frame=name)[list(rows)]
            np.testing.assert_allclose(moving, 0, atol=1e-8)
        pushed = {name: w for (name, _), w in zip(held, wrenches, strict=True)}
        close(arm.forward_dynamics(*state, tool_wrench=pushed), qdd, 1e-8)


def test_held_frames_with_friction_in_batches_and_what_is_refused():
    arm = armdyn.load("panda")
    rng = np.random.default_rng(5)
    q, v, tau = rng.uniform(-1, 1, (3, 4, 7)) + 0.5
    qdd, wrench = arm.held_dynamics(q, v, tau, friction=True)  # the tool, in all directions
    plain, _ = arm.held_dynamics(q, v, tau - arm.joint_forces(q, v, tau))
    assert wrench.shape == (4, 1, 6)
    close(qdd, plain, 1e-9)
    np.testing.assert_allclose(arm.frame_acceleration(q, v, qdd), 0, atol=1e-9)
    close(np.stack([arm.held_dynamics(*row, friction=True)[0] for row in zip(q, v, tau, strict=True)]), qdd, 1e-12)
    twice, _ = arm.held_dynamics(q[0], v[0], tau[0], frames=["panda_link8", "panda_link8"])
    assert np.isnan(twice).all()  # redundant, and no damping
    for options, message in (
        ({"rows": (6,)}, r"different numbers 0 to 5, linear ones first; got \[6\]"),
        ({"rows": (1, 1)}, "different numbers 0 to 5"),
        ({"rows": ((0,), (1,))}, "rows has 2 entries for 1 frames"),
        ({"rows": "xyz"}, "or a sequence of them per frame; got 'xyz'"),
        ({"damping": -1.0}, "damping must be a number from 0, got -1.0"),
    ):
        with pytest.raises(InputError, match=message):
            arm.held_dynamics(q, v, tau, **options)
    with pytest.raises(InputError, match="a frame of the base does not move"):
        armdyn.load(FILE).held_dynamics(*np.ones((3, 6)), frames=["world"])
    with pytest.raises(InputError, match="unknown option of bias 'rows'"):
        arm.bias(q, v, rows=(0,))
    with pytest.raises(armdyn.ArmdynError, match="choose fewer rows, or give a damping"):
        armdyn.load("planar3").held_dynamics(*np.ones((3, 3)))
