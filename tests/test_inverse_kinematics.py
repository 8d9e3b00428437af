"""Inverse kinematics: reaches what can be reached, says so when it cannot."""

from __future__ import annotations

import numpy as np
import pytest

import armdyn
from armdyn.errors import InputError
from armdyn.kinematics import rotation_vector
from comparing import SERIAL


def inside(arm, rng):
    low, high = arm.limits.T
    return rng.uniform(np.where(np.isfinite(low), low, -3), np.where(np.isfinite(high), high, 3))


@pytest.mark.parametrize("name", SERIAL)
def test_reachable_poses_are_reached(name, rng):
    arm = armdyn.load(name)
    for _ in range(4):
        wanted = arm.pose(inside(arm, rng))
        found = arm.inverse_kinematics(wanted)
        assert found
        assert found.converged
        assert found.position_error < 1e-12
        assert found.orientation_error < 1e-12
        assert np.abs(arm.pose(found.q) - wanted).max() < 1e-12
        assert (arm.limits[:, 0] <= found.q).all()
        assert (found.q <= arm.limits[:, 1]).all()
        assert found.message.startswith("reached within")


def test_a_start_at_the_answer_stays_there(rng):
    arm = armdyn.load("panda")
    q = inside(arm, rng)
    found = arm.inverse_kinematics(arm.pose(q), q)
    assert np.abs(found.q - q).max() < 1e-12
    assert found.starts == 1


def test_a_near_start_finds_the_near_answer(rng):
    arm = armdyn.load("ur5")
    q = np.array([0.5, -1.2, 1.4, -0.8, 0.9, 0.3])
    found = arm.inverse_kinematics(arm.pose(q), q + 0.05 * rng.normal(size=6))
    assert np.abs(found.q - q).max() < 1e-9


def test_out_of_reach_is_said(rng):
    arm = armdyn.load("puma560")
    wanted = np.eye(4)
    wanted[:3, 3] = [0, 0, 5.0]
    found = arm.inverse_kinematics(wanted)
    assert not found
    assert not found.converged
    assert found.position_error > 3
    assert "not reached: the best of 49 searches within the joint limits misses the pose by" in found.message
    assert np.linalg.norm(arm.pose(found.q)[:3, 3] - wanted[:3, 3]) == pytest.approx(found.position_error, abs=1e-12)


def test_limits_are_kept_unless_told_otherwise():
    arm = armdyn.load("scara")
    q = np.array([0.3, 0.4, -0.2, 0.1])  # the quill cannot go up
    kept = arm.inverse_kinematics(arm.pose(q))
    assert not kept.converged
    assert kept.q[2] == 0.0
    assert kept.position_error == pytest.approx(0.2)
    free = arm.inverse_kinematics(arm.pose(q), limits=False)
    assert free.converged
    assert free.q[2] == pytest.approx(-0.2)
    assert "within the joint limits" not in free.message


def test_position_alone():
    arm = armdyn.load("planar3")
    wanted = np.eye(4)
    wanted[:3, 3] = [0.5, 0.4, 0.0]
    wanted[:3, :3] = [[0, 0, 1], [1, 0, 0], [0, 1, 0]]  # out of the plane
    assert not arm.inverse_kinematics(wanted).converged
    found = arm.inverse_kinematics(wanted, orientation=False)
    assert found.converged
    assert np.abs(arm.pose(found.q)[:3, 3] - wanted[:3, 3]).max() < 1e-12


def test_joints_without_limits_do_not_wind_up():
    arm = armdyn.load("kinova_gen3")
    q0 = np.array([20.0, 0.5, -15.0, 0.6, 9.0, 0.7, 30.0])
    found = arm.inverse_kinematics(arm.pose(q0 + 0.01), q0)
    free = np.isinf(arm.limits[:, 0])
    assert found.converged
    assert (np.abs(found.q - q0)[free] <= np.pi).all()


def test_the_answer_is_the_same_every_time(rng):
    arm = armdyn.load("panda")
    wanted = arm.pose(inside(arm, rng))
    first, second = arm.inverse_kinematics(wanted), arm.inverse_kinematics(wanted)
    assert np.array_equal(first.q, second.q)


@pytest.mark.parametrize(
    ("pose", "q0", "message"),
    [
        (np.eye(3), None, r"pose must have the shape \(4, 4\) or \(..., 4, 4\), got \(3, 3\)"),
        (np.full((4, 4), np.nan), None, "pose must be finite"),
        (np.diag([1, 1, -1, 1]), None, "must be a rotation"),
        (np.diag([1, 1, 2, 1]), None, "must be a rotation"),
        (np.eye(4), [0.0, 0.0], "q0 must be 6 finite numbers"),
        (np.eye(4), [0, 0, 0, 0, 0, np.inf], "q0 must be 6 finite numbers"),
    ],
)
def test_bad_input_is_named(pose, q0, message):
    with pytest.raises(InputError, match=message):
        armdyn.load("puma560").inverse_kinematics(pose, q0)


@pytest.mark.parametrize("angle", [0.0, 1e-300, 1e-12, 1e-5, 0.5, 2.0, np.pi - 1e-9, np.pi])
def test_rotation_vector(angle, rng):
    for _ in range(20):
        axis = rng.normal(size=3)
        axis /= np.linalg.norm(axis)
        K = np.cross(np.eye(3), axis)  # row i is e_i × axis
        R = np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * K @ K
        found = rotation_vector(R)
        sign = np.sign(found @ axis) if angle > 3 else 1.0  # at π both ends of the axis are right
        assert np.abs(found - sign * angle * axis).max() < 1e-8 * (angle > 3) + 1e-15 + 4e-16 * angle
