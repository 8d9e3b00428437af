"""Every serial arm that can be cut out of example-robot-data, judged by Pinocchio and MuJoCo at 1e-10."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np
import pytest

import armdyn
from armdyn.algebra import Mat3, Vec3
from armdyn.chain import Link
from comparing import SERIAL
from oracles import Cut, Mujoco, Pinocchio, cuts, disagreement, plain, robots, slowly

pin = pytest.importorskip("pinocchio", reason="Pinocchio, which this compares with, is not installed")

WITHOUT_ARMS = {"ur3.urdf", "quadrotor_base.urdf", "iris_simple.urdf"}  # an empty file, and two without moving joints
CUTS = [cut for file in robots() if file.name not in WITHOUT_ARMS for cut in cuts(file)]


def state(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.uniform(-1.5, 1.5, n), rng.uniform(-1, 1, n), rng.uniform(-1, 1, n)


def test_there_are_many_arms():
    assert len(robots()) > 50
    assert len(CUTS) > 90
    assert {file.name for file in robots()} - {cut.file.name for cut in CUTS} == WITHOUT_ARMS


@pytest.mark.parametrize("cut", CUTS, ids=lambda cut: cut.id)
def test_pinocchio(cut: Cut):
    arm = cut.arm()
    assert [joint.name for joint in arm.joints] == list(cut.joints)
    q, qd, qdd = state(arm.n)
    truth = Pinocchio.of(cut.text(), cut.base, cut.tip).all(q, qd, qdd)
    errors = disagreement(arm, truth, q, qd, qdd)
    assert max(errors.values()) < 1e-10, errors
    assert np.max(np.abs(slowly(arm, "pose")(q) - truth["pose"])) < 1e-12


@pytest.mark.parametrize("cut", CUTS, ids=lambda cut: cut.id)
def test_mujoco(cut: Cut):
    try:
        judge = Mujoco(cut.text(), cut.base, cut.tip)
    except ValueError as error:
        if "inertia" not in str(error):
            raise
        pytest.skip(f"MuJoCo refuses links that no body can have: {error}")
    arm = cut.arm()
    q, qd, qdd = state(arm.n, seed=1)
    errors = disagreement(arm, judge.all(q, qd, qdd), q, qd, qdd)
    assert max(errors.values()) < 1e-10, errors


LOCKED = [cut for cut in CUTS if 0 < len(cut.lock) < 30 and len(cut.joints) > 3][::6]


@pytest.mark.parametrize("cut", LOCKED, ids=lambda cut: cut.id)
def test_locked_joints_as_in_a_reduced_model(cut: Cut):
    value = 0.37
    arm = cut.arm(value)
    robot = ET.parse(cut.file).getroot()
    for joint in robot.findall("joint"):
        joint.set("name", "joint " + joint.get("name"))  # Pinocchio cannot reduce where a joint is called like a link
    model = pin.buildModelFromXML(plain(robot))
    still = pin.neutral(model)
    for name in cut.lock:
        i = model.getJointId("joint " + name)
        at = model.idx_qs[i]
        still[at : at + model.nqs[i]] = (np.cos(value), np.sin(value)) if model.nqs[i] == 2 else value
    own = ["joint " + name for name in cut.joints]
    lock = [i for i in range(1, model.njoints) if model.names[i] not in own]
    judge = Pinocchio(pin.buildReducedModel(model, lock, still), cut.base, cut.tip)
    q, qd, qdd = state(arm.n, seed=2)
    errors = disagreement(arm, judge.all(q, qd, qdd), q, qd, qdd)
    assert max(errors.values()) < 1e-10, errors


def test_enough_arms_have_locked_joints():
    assert len(LOCKED) >= 5


@pytest.mark.parametrize("name", ["ur5_robot", "xarm7", "talos_left_arm"])
def test_payload_as_in_pinocchio(name: str):
    cut = next(c for c in CUTS if c.file.stem == name)
    mass, com, inertia = 2.5, np.array([0.02, -0.05, 0.11]), np.diag([0.012, 0.015, 0.009])
    arm = cut.arm().with_payload(mass, com, inertia)
    model = pin.buildModelFromXML(cut.text())
    frame = model.frames[model.getFrameId(cut.tip, pin.BODY)]
    model.appendBodyToJoint(frame.parentJoint, pin.Inertia(mass, com, inertia), frame.placement)
    q, qd, qdd = state(arm.n, seed=3)
    errors = disagreement(arm, Pinocchio(model, cut.base, cut.tip).all(q, qd, qdd), q, qd, qdd)
    assert max(errors.values()) < 1e-10, errors


@pytest.mark.parametrize("name", ["ur10_robot", "panda", "baxter", "so101"])
def test_every_frame_of_the_file_is_where_pinocchio_has_it(name: str):
    cut = next(c for c in CUTS if c.file.stem == name)
    arm = cut.arm()
    judge = Pinocchio.of(cut.text(), cut.base, cut.tip)
    q, _, _ = state(arm.n, seed=4)
    pin.framesForwardKinematics(judge.model, judge.data, judge.configuration(q))
    poses = slowly(arm, "link_poses")(q)
    for frame in arm.frames:
        fixed = np.eye(4)
        fixed[:3, :3] = [[float(x) for x in row] for row in frame.placement.R.rows]
        fixed[:3, 3] = [float(x) for x in frame.placement.p]
        got = poses[frame.link - 1] @ fixed if frame.link else fixed
        there = judge.at.inverse() * judge.data.oMf[judge.model.getFrameId(frame.name, pin.BODY)]
        assert np.max(np.abs(got - there.homogeneous)) < 1e-12, frame.name
    assert len(arm.frames) > arm.n


def pinocchio_model(arm: armdyn.Arm) -> pin.Model:
    """The chain joint by joint, without a file between: for arms that are given by their parameters."""
    chain, model = arm.chain.floats, pin.Model()
    parent, at = 0, placed(chain.base.R, chain.base.p)
    for joint, link in zip(chain.joints, chain.links, strict=True):
        turn = pin.SE3(pin.rpy.rpyToMatrix(joint.beta.radians, 0, 0), np.array([joint.b, 0, 0]))
        tilt = pin.SE3(pin.rpy.rpyToMatrix(0, joint.gamma.radians, 0), np.zeros(3))
        screw = pin.SE3(pin.rpy.rpyToMatrix(0, 0, joint.theta.radians), np.array([0, 0, joint.d]))
        kind = pin.JointModelRZ() if joint.revolute else pin.JointModelPZ()
        parent = model.addJoint(parent, kind, at * turn * tilt * screw, joint.name)
        model.appendBodyToJoint(parent, pin.Inertia.FromDynamicParameters(dynamic(link)), pin.SE3.Identity())
        at = pin.SE3.Identity()
    model.armature = np.array([float(joint.rotor_inertia) for joint in chain.joints])
    model.addFrame(pin.Frame("base", 0, 0, pin.SE3.Identity(), pin.BODY))
    model.addFrame(pin.Frame("tool", parent, 0, placed(chain.tool.R, chain.tool.p), pin.BODY))
    return model


def placed(R: Mat3, p: Vec3) -> pin.SE3:
    return pin.SE3(np.array([list(row) for row in R.rows], float), np.array(list(p), float))


def dynamic(link: Link) -> np.ndarray:
    """The ten numbers in Pinocchio's order, which are ours; it divides by the mass, so a massless link gets a grain."""
    numbers = np.array([float(x) for x in link.natural])
    numbers[0] = numbers[0] or 1e-200
    return numbers


@pytest.mark.parametrize("name", SERIAL)
def test_catalogue(name: str):
    arm = armdyn.load(name)
    q, qd, qdd = state(arm.n, seed=6)
    judge = Pinocchio(pinocchio_model(arm), "base", "tool", arm.gravity)
    errors = disagreement(arm, judge.all(q, qd, qdd), q, qd, qdd)
    assert max(errors.values()) < 1e-10, errors
