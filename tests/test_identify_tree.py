"""Identification of a robot that branches and has a gripper whose second finger mimics the first."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import armdyn
from armdyn import Log
from armdyn.algebra import exact
from armdyn.chain import Link

LINKS = {  # mass, centre, moments about it
    "torso": (8.0, "0 0.02 0.2", (0.2, 0.2, 0.1)),
    "left": (2.0, "0.15 0.01 0", (0.01, 0.02, 0.02)),
    "right": (2.5, "0.15 -0.01 0.02", (0.01, 0.03, 0.02)),
    "thumb": (0.6, "0.02 0 0.05", (0.0015, 0.0016, 0.0017)),
    "finger": (0.5, "0.02 0 0.05", (0.0015, 0.0016, 0.0017)),
}
JOINTS = (  # name, parent, child, origin, axis, damping, friction, mimic
    ("waist", "base", "torso", "0 0 0", "0 0 1", 0.5, 0.8, ""),
    ("left_shoulder", "torso", "left", "0 0.2 0.4", "0 1 0", 0.3, 0.4, ""),
    ("right_shoulder", "torso", "right", "0 -0.2 0.4", "0 1 0", 0.3, 0.4, ""),
    ("grip", "right", "thumb", "0.3 0.03 0", "1 0 0", 0.05, 0.1, ""),
    ("follow", "right", "finger", "0.3 -0.03 0", "1 0 0", 0.02, 0.05, '<mimic joint="grip" multiplier="-1"/>'),
)


def urdf():
    lines = ['<robot name="two_arms"><link name="base"/>']
    for name, (mass, com, (xx, yy, zz)) in LINKS.items():
        inertia = f'<inertia ixx="{xx}" iyy="{yy}" izz="{zz}" ixy="0" ixz="0" iyz="0"/>'
        inertial = f'<inertial><origin xyz="{com}"/><mass value="{mass}"/>{inertia}</inertial>'
        lines.append(f'<link name="{name}">{inertial}</link>')
    for name, parent, child, origin, axis, damping, friction, mimic in JOINTS:
        lines.append(
            f'<joint name="{name}" type="revolute"><parent link="{parent}"/><child link="{child}"/>'
            f'<origin xyz="{origin}"/><axis xyz="{axis}"/><limit lower="-3" upper="3" effort="90" velocity="3"/>'
            f'<dynamics damping="{damping}" friction="{friction}"/>{mimic}</joint>'
        )
    return "".join([*lines, "</robot>"])


def motion(n, seed):
    rng, t = np.random.default_rng(seed), np.arange(0, 20, 0.01)
    w = 2 * np.pi * np.array([0.11, 0.23, 0.37])
    a, b = 0.4 * rng.normal(size=(2, 3, n))
    s, c = np.sin(np.outer(t, w)), np.cos(np.outer(t, w))
    return t, s @ a + c @ b, (c * w) @ a - (s * w) @ b, -(s * w**2) @ a - (c * w**2) @ b


@pytest.fixture(scope="module")
def found():
    robot = armdyn.load(urdf())
    heavier = tuple(Link.from_natural(tuple(x * exact(1.2) for x in link.natural)) for link in robot.given.links)
    prior = replace(robot, given=replace(robot.given, links=heavier))
    logs = []
    for seed, noise in ((0, 0.01), (1, 0.0)):
        t, q, qd, qdd = motion(robot.n, seed)
        tau = np.asarray(robot.inverse_dynamics(q, qd, qdd, friction=True))
        logs.append(Log.of(t, q, tau + noise * np.random.default_rng(seed).normal(size=tau.shape), qd, qdd))
    return robot, armdyn.identify(prior, logs[0], validate=logs[1])


def test_another_motion_is_predicted(found):
    robot, estimate = found
    assert (robot.n, len(robot.links)) == (4, 5)
    assert estimate.validation.error < 0.01
    assert (estimate.validation.r_squared > 0.99).all()
    assert (estimate.smallest_eigenvalues > 0).all()
    assert estimate.natural.shape == (5, 10)
    assert list(estimate.steps) == ["rigid body, viscous and Coulomb friction"]


def test_the_parameters_are_within_their_deviations(found):
    robot, estimate = found
    model = estimate.model
    truth = dict.fromkeys(model.extra_names, 0.0)
    for k in range(robot.n):
        along = [j for j in JOINTS if j[0] == robot.joints[k].name or (j[7] and robot.joints[k].name == "grip")]
        truth[f"fv{k + 1}"], truth[f"fc{k + 1}"] = sum(j[5] for j in along), sum(j[6] for j in along)
    links = np.array([[float(x) for x in link.natural] for link in robot.links]).ravel()
    expected = model.natural @ np.concatenate([links, list(truth.values())])
    inside = np.abs(estimate.values - expected) <= 3 * estimate.deviations
    assert inside.mean() > 0.9


def test_the_arm_is_the_estimate(found, tmp_path):
    robot, estimate = found
    _, q, qd, qdd = motion(robot.n, 5)
    sure = (np.abs(qd) > 5 * estimate.model.width).all(axis=1)  # beyond the smooth sign of the fit
    predicted = estimate.predict(q, qd, qdd)[sure]
    for arm in (estimate.arm, _saved(estimate, tmp_path)):
        own = np.asarray(arm.inverse_dynamics(q, qd, qdd, friction=True))[sure]
        np.testing.assert_allclose(own, predicted, atol=2e-4 * np.abs(predicted).max())


def _saved(estimate, folder):
    estimate.save(folder / "robot.toml")
    return armdyn.load(folder / "robot.toml")


def test_it_is_excited_within_its_limits_and_above_the_floor():
    robot = armdyn.load(urdf())
    found = armdyn.excite(robot, 6.0, starts=1, harmonics=2, rate=50, plane=((0, 0, 1), 0.25))
    q, qd, qdd = (x[0] for x in (found.q, found.qd, found.qdd))
    assert (np.abs(q) <= 3).all()
    assert (np.abs(qd) <= 3).all()
    assert (np.abs(np.asarray(robot.inverse_dynamics(q, qd, qdd, friction=True))) <= 90).all()
    for tip in robot.tips[1:]:
        assert (np.asarray(robot.pose(q, frame=tip))[:, 2, 3] >= 0.25 - 1e-6).all()
    assert (np.ptp(q, axis=0) > 0.1).all()


def test_a_floating_base_is_refused_with_the_remedy():
    floating, (t, q, qd, qdd) = armdyn.load(urdf(), floating=True), motion(4, 0)
    for ask in (armdyn.excite, lambda arm: armdyn.identify(arm, Log.of(t, q, q, qd, qdd))):
        with pytest.raises(armdyn.ArmdynError, match="floating=False"):
            ask(floating)
