"""Robots that are in memory: models of Pinocchio, MuJoCo and the Robotics Toolbox, MJCF text, screws, `Builder`."""

from __future__ import annotations

import math
import subprocess
import sys
import warnings
from types import SimpleNamespace

import numpy as np
import pytest

import armdyn
from armdyn.algebra import Mat3, Vec3
from armdyn.errors import InputError
from armdyn.files.description import from_rpy, to_rpy
from comparing import close
from random_trees import TreeKind, pinocchio_model, random_tree
from tree_judge import pinocchio_says, random_motion

pin = pytest.importorskip("pinocchio", reason="Pinocchio, whose models are loaded, is not installed")
mujoco = pytest.importorskip("mujoco", reason="MuJoCo, whose models are loaded, is not installed")

KINDS = {
    "tree": TreeKind(rotors=True),
    "floating": TreeKind(floating=True, rotors=True),
    "prismatic": TreeKind(joints=4, prismatic=1.0, fork=0),
    "two": TreeKind(joints=2, fork=0),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_a_pinocchio_model_keeps_its_dynamics(kind, seed):
    chain = random_tree(KINDS[kind], seed)
    arm = armdyn.load(pinocchio_model(chain), snap=0)
    q, qd, qdd = random_motion(chain, np.random.default_rng(seed))
    truth = pinocchio_says(chain, q, qd, qdd)
    assert (arm.n, arm.floating) == (chain.n, chain.floating)
    reference = {"inertia_matrix": (q,), "gravity_load": (q,), "inverse_dynamics": (q, qd, qdd)}
    for name, given in reference.items():
        method = "newton_euler" if name == "inverse_dynamics" else "auto"
        close(arm.kernel(name, method=method, backend="python")(*given), truth[name], 1e-11)


URDF = """<robot name="grip"><link name="world"/><link name="palm"><inertial><mass value="1"/>
<origin xyz="0.1 0 0.02"/><inertia ixx="0.01" iyy="0.02" izz="0.02" ixy="0.001" ixz="0" iyz="0"/></inertial></link>
<link name="left"><inertial><mass value="0.3"/><origin xyz="0 0 0.1"/><inertia ixx="0.001" iyy="0.001" izz="0.001"
ixy="0" ixz="0" iyz="0"/></inertial></link><link name="right"><inertial><mass value="0.2"/><origin xyz="0 0.01 0.1"/>
<inertia ixx="0.001" iyy="0.001" izz="0.001" ixy="0" ixz="0" iyz="0"/></inertial></link><link name="pad"/>
<joint name="turn" type="continuous"><parent link="world"/><child link="palm"/><axis xyz="0 0.6 0.8"/>
<origin xyz="0 0 0.5" rpy="0.3 0 1"/><dynamics damping="0.7" friction="0.4"/><limit effort="20" velocity="3"/></joint>
<joint name="close" type="prismatic"><parent link="palm"/><child link="left"/><axis xyz="1 0 0"/><origin xyz="0.2 0 0"/>
<limit lower="-0.1" upper="0.2" effort="9" velocity="1"/></joint>
<joint name="follow" type="prismatic"><parent link="palm"/><child link="right"/><axis xyz="1 0 0"/>
<limit lower="-1" upper="1" effort="9" velocity="1"/><mimic joint="close" multiplier="-1" offset="0.05"/></joint>
<joint name="padded" type="fixed"><parent link="left"/><child link="pad"/><origin xyz="0 0 0.2"/></joint></robot>"""


def test_names_limits_friction_frames_and_mimic_joints_of_a_pinocchio_model():
    arm = armdyn.load(pin.buildModelFromXML(URDF, mimic=True))
    same = armdyn.load(URDF)
    turn, close_, follow = arm.chain.joints
    assert [j.name for j in arm.chain.joints] == ["turn", "close", "follow"]
    assert (float(turn.viscous), float(turn.coulomb), turn.limit.effort, turn.limit.velocity) == (0.7, 0.4, 20.0, 3.0)
    assert (turn.limit.lower, close_.limit.lower, close_.limit.upper) == (None, -0.1, 0.2)
    assert (follow.mimic.joint, float(follow.mimic.multiplier), float(follow.mimic.offset)) == (1, -1.0, 0.05)
    assert {"world", "palm", "left", "right", "pad"} <= {frame.name for frame in arm.frames}
    q = np.array([0.4, 0.1])
    for name in ("left", "right", "pad"):
        close(arm.pose(q, frame=name), same.pose(q, frame=name), 1e-14)
    close(arm.inertia_matrix(q), same.inertia_matrix(q), 1e-13)


def test_a_composite_joint_is_read_as_several_and_noted():
    model = pin.Model()
    both = pin.JointModelComposite()
    both.addJoint(pin.JointModelRX(), pin.SE3.Identity())
    both.addJoint(pin.JointModelPrismaticUnaligned(np.array([0, 0.6, 0.8])), pin.SE3(np.eye(3), np.array([0.1, 0, 0])))
    j = model.addJoint(0, both, pin.SE3.Identity(), "wrist")
    model.appendBodyToJoint(j, pin.Inertia.Random(), pin.SE3.Identity())
    arm = armdyn.load(model, snap=0, strict=False)
    q, v, a = np.random.default_rng(0).normal(size=(3, 2))
    close(arm.inverse_dynamics(q, v, a), pin.rnea(model, model.createData(), q, v, a), 1e-12)
    assert "joint 'wrist' has 2 degrees of freedom: read as one joint for each" in arm.notes


def test_an_order_that_is_not_depth_first_is_noted():
    model = pin.Model()
    first = model.addJoint(0, pin.JointModelRZ(), pin.SE3.Identity(), "first")
    model.addJoint(0, pin.JointModelRY(), pin.SE3.Identity(), "second")
    model.addJoint(first, pin.JointModelRX(), pin.SE3.Identity(), "third")
    notes = armdyn.load(model).notes
    order = "the joints are in depth-first order, first, third, second; Pinocchio's order is first, second, third"
    assert order in notes


def test_a_ball_joint_of_pinocchio_is_refused_by_name():
    model = pin.Model()
    model.addJoint(0, pin.JointModelSpherical(), pin.SE3.Identity(), "hip")
    with pytest.raises(InputError, match="joint 'hip' is spherical; supported are revolute and prismatic"):
        armdyn.load(model)


MJCF = """<mujoco model="two"><compiler angle="radian"/><option gravity="1 0 -9"/><worldbody>
<body name="upper" pos="0 0 1"><joint name="a" axis="0 1 0" armature="0.3" damping="0.2"/>
<inertial pos="0 0 -0.2" mass="2" fullinertia="0.05 0.06 0.04 0.001 0.002 0.003"/>
<body name="lower" pos="0 0 -0.4"><joint name="b" type="slide" axis="0 0 1" range="-0.1 0.3"/>
<geom type="box" size="0.1 0.2 0.3" mass="1"/><site name="grip" pos="0 0 -0.3"/></body></body></worldbody></mujoco>"""


@pytest.mark.parametrize("given", ["text", "model"])
def test_mjcf_text_and_an_mjmodel_keep_their_dynamics(given):
    model = mujoco.MjModel.from_xml_string(MJCF)
    arm = armdyn.load(MJCF if given == "text" else model, snap=0)
    assert (arm.name, arm.gravity) == ("two", (1.0, 0.0, -9.0))
    assert arm.source == {"text": "MJCF text", "model": "mujoco.MjModel"}[given]
    data, H = mujoco.MjData(model), np.zeros((2, 2))
    data.qpos, data.qvel = [0.3, 0.1], [1.0, -2.0]
    mujoco.mj_forward(model, data)
    mujoco.mj_fullM(model, data, H)
    close(arm.inertia_matrix(data.qpos), H, 1e-13)
    close(arm.bias(data.qpos, data.qvel), data.qfrc_bias, 1e-13)
    close(arm.pose(data.qpos, frame="grip")[:3, 3], data.site("grip").xpos, 1e-13)


def test_an_error_in_mjcf_text_names_the_text_and_no_temporary_file():
    with pytest.raises(armdyn.ArmdynError, match=r"^MJCF text: MuJoCo cannot compile the model") as caught:
        armdyn.load("<mujoco><worldbody><body>")
    assert "/tmp" not in str(caught.value)
    with pytest.raises(armdyn.ArmdynError, match="no moving joint"):
        armdyn.load("<mujoco/>")


@pytest.fixture(scope="module")
def rtb():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("roboticstoolbox", reason="the Robotics Toolbox is not installed")


@pytest.mark.parametrize("convention", ["standard", "modified"])
def test_a_dh_robot_of_the_toolbox(rtb, convention):
    rng = np.random.default_rng(3)

    def link(prismatic, flip=False):
        a, alpha, r = rng.normal(), rng.choice([0.0, np.pi / 2, 0.7]), rng.normal(size=3)
        inertial = {"m": 1 + rng.random(), "r": r, "I": [0.3, 0.4, 0.5, 0.01, 0.02, 0.03]}
        drive = {"Jm": 2e-4, "G": -50.0, "B": 1e-3, "Tc": [0.1, -0.1], "qlim": [-1.0, 2.0]}
        kind = ("Prismatic" if prismatic else "Revolute") + ("DH" if convention == "standard" else "MDH")
        where = {"theta": rng.normal()} if prismatic else {"d": rng.normal()}
        return getattr(rtb, kind)(a=a, alpha=alpha, offset=rng.normal(), flip=flip, **where, **inertial, **drive)

    robot = rtb.DHRobot([link(False), link(True), link(False), link(False)], name="made")
    robot.gravity = [1.0, 2.0, -9.0]
    arm = armdyn.load(robot, snap=0)
    q, qd, qdd = rng.normal(size=(3, 4))
    close(arm.pose(q), robot.fkine(q).A, 1e-13)
    close(arm.gravity_load(q), robot.gravload(q, gravity=robot.gravity), 1e-12)
    full = arm.kernel("inverse_dynamics", friction=True)
    close(full(q, qd, qdd), robot.rne(q, qd, qdd, gravity=robot.gravity), 1e-12)
    assert (arm.joints[0].limit.lower, arm.joints[0].limit.upper) == (-1.0, 2.0)
    flipped = rtb.DHRobot([link(False, flip=True), link(False)])
    close(armdyn.load(flipped, snap=0).pose(q[:2]), flipped.fkine(q[:2]).A, 1e-13)


def test_friction_of_the_toolbox_that_differs_by_direction_is_noted(rtb):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        robot = rtb.models.DH.Puma560()
    arm = armdyn.load(robot, snap=0)
    q, qd, qdd = np.random.default_rng(1).normal(size=(3, 6))
    close(arm.kernel("inverse_dynamics", friction=True)(q, qd, qdd), robot.rne(q, qd, qdd), 1e-13)
    assert any(note.startswith("Coulomb friction differs by direction at link1, link2") for note in arm.notes)


def erobot(rtb, flip):
    ET, ETS = rtb.ET, rtb.ETS
    body = {"I": [0.1, 0.2, 0.2, 0.01, 0, 0]}
    first = rtb.Link(ETS([ET.tz(0.3), ET.Rx(0.4), ET.Rz()]), name="first", m=2, r=[0.1, 0, 0.2], **body)
    second = rtb.Link(ETS([ET.tx(0.5), ET.ty(flip=flip)]), name="second", m=1, r=[0, 0.1, 0], **body, parent=first)
    third = rtb.Link(ETS([ET.Ry(0.2), ET.Rx()]), name="third", m=1, r=[0, 0, 0.3], **body, parent=second)
    hand = rtb.Link(ETS([ET.tz(0.2)]), name="hand", parent=third)
    return rtb.Robot([first, second, third, hand], name="made")


@pytest.mark.parametrize("flip", [False, True])
def test_an_erobot_of_the_toolbox(rtb, flip):
    robot = erobot(rtb, flip)
    arm = armdyn.load(robot, snap=0)
    q, qd, qdd = np.random.default_rng(2).normal(size=(3, 3))
    close(arm.pose(q, frame="hand"), robot.fkine(q, end="hand").A, 1e-13)
    if not flip:  # the Toolbox's rne takes the axis of a flipped joint the other way round than its fkine
        close(arm.inverse_dynamics(q, qd, qdd), robot.rne(q, qd, qdd), 1e-12)


def test_builder_makes_the_arm_that_the_urdf_makes():
    robot = armdyn.Builder("grip", root="world")
    six = (0.01, 0.02, 0.02, 0.001, 0, 0)
    robot.body("palm", axis=(0, 0.6, 0.8), placement=(0, 0, 0.5), rpy=(0.3, 0, 1), mass=1, com=(0.1, 0, 0.02),
               inertia=six, joint_name="turn", viscous=0.7, coulomb=0.4, effort=20, velocity=3)  # fmt: skip
    ball = np.eye(3) * 0.001
    robot.body("left", "palm", joint="prismatic", axis="x", placement=(0.2, 0, 0), mass=0.3, com=(0, 0, 0.1),
               inertia=ball, joint_name="close", lower=-0.1, upper=0.2, effort=9, velocity=1)  # fmt: skip
    robot.body("right", "palm", joint="prismatic", axis="x", mass=0.2, com=(0, 0.01, 0.1), inertia=ball, velocity=1,
               joint_name="follow", lower=-1, upper=1, effort=9, mimic=("close", -1, 0.05))  # fmt: skip
    robot.frame("pad", "left", (0, 0, 0.2))
    arm = robot.build()
    assert arm == armdyn.load(URDF)
    assert arm.source == "armdyn.Builder"
    assert robot.build(tip="pad", lock="rest").n == 2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda b: b.body("a", "nobody"), "unknown parent body 'nobody'; available: base"),
        (lambda b: b.body("a", joint="hinge"), "unknown joint of body 'a' 'hinge'; available: revolute, continuous"),
        (lambda b: b.body("base"), "'base' cannot be added: it is there already"),
        (lambda b: b.body("a", damping=1), "unknown detail of body 'a' 'damping'; available: axis"),
        (lambda b: b.body("a", joint="fixed", effort=1), "body 'a': a fixed joint has no effort"),
        (lambda b: b.body("a", mass=np.nan), "mass of link 'a' must be finite"),
        (lambda b: b.body("a", axis=(0, 0, 0)), "the axis of joint 'a_joint' is 0 0 0"),
        (lambda b: b.body("a", mass=-1).build(), "Builder 'robot': link 'a' has the mass -1 kg"),
        (lambda b: b.body("a", mass=1, mimic="ghost"), "unknown joint for body 'a' to mimic 'ghost'; available: none"),
        (lambda b: b.build(), "no moving joint"),
        (lambda b: b.frame("tip", "nobody"), "unknown body 'nobody'"),
    ],
)
def test_builder_refuses_with_reasons(call, message):
    with pytest.raises(armdyn.ArmdynError, match=message):
        call(armdyn.Builder())


def adjoint(T):
    R, p = T[:3, :3], T[:3, 3]
    cross = np.array([[0, -p[2], p[1]], [p[2], 0, -p[0]], [-p[1], p[0], 0]])
    return np.block([[R, np.zeros((3, 3))], [cross @ R, R]])


def exponential(axis, q):
    """exp([S] q) by SciPy's matrix exponential."""
    from scipy.linalg import expm

    w, v = axis[:3], axis[3:]
    return expm(q * np.array([[0, -w[2], w[1], v[0]], [w[2], 0, -w[0], v[1]], [-w[1], w[0], 0, v[2]], [0, 0, 0, 0]]))


def screws(seed=0):
    """Three random screw axes (revolute, prismatic, revolute), link frames and spatial inertias."""
    rng = np.random.default_rng(seed)
    S, M, G = np.zeros((6, 3)), [], []
    for i, prismatic in enumerate((False, True, False)):
        w, p = rng.normal(size=3), rng.normal(size=3)
        w /= np.linalg.norm(w)
        S[:, i] = [0, 0, 0, *w] if prismatic else [*w, *np.cross(p, w)]
    for _ in range(4):
        M.append(exponential(np.array([*rng.normal(size=3), 0, 0, 0]), 1.0))
        M[-1][:3, 3] = rng.normal(size=3)
    for _ in range(3):
        spatial = np.diag([0.2, 0.3, 0.4, 0, 0, 0]) + np.diag([0, 0, 0, *[1 + rng.random()] * 3])
        G.append(spatial)
    return np.array(M), S, np.array(G)


def test_from_screws_against_the_product_of_exponentials():
    M, S, G = screws()
    arm = armdyn.from_screws(M, S, G, gravity=(0, 0, -9), snap=0)
    q = np.array([0.4, -0.3, 1.2])
    homes, home = [], np.eye(4)
    for step in M:
        homes.append(home := home @ step)
    T, jacobians, H = np.eye(4), np.zeros((6, 3)), np.zeros((3, 3))
    for i in range(3):
        jacobians[:, i] = adjoint(T) @ S[:, i]
        T = T @ exponential(S[:, i], q[i])
        at = T @ homes[i]
        close(arm.pose(q, frame=f"link{i + 1}"), at, 1e-13)
        body = np.linalg.inv(adjoint(at)) @ jacobians * (np.arange(3) <= i)
        H += body.T @ G[i] @ body
        close(arm.link_poses(q)[i], at, 1e-13)
    close(arm.pose(q), T @ homes[3], 1e-13)
    close(arm.inertia_matrix(q), H, 1e-13)
    assert armdyn.from_screws(homes[3], S).pose(q) == pytest.approx(T @ homes[3], abs=1e-12)


def test_from_screws_refuses_with_reasons():
    M, S, G = screws()
    with pytest.raises(InputError, match=r"S must have the shape \(6, n\).*got \(3, 6\); give its transpose"):
        armdyn.from_screws(M, S.T, G)
    with pytest.raises(InputError, match=r"M must have the shape \(4, 4, 4\) or \(4, 4\) for 3 joints, got"):
        armdyn.from_screws(M[:3], S, G)
    with pytest.raises(InputError, match=r"G\[1\] is no spatial inertia"):
        armdyn.from_screws(M, S, np.array([G[0], np.ones((6, 6)), G[2]]))
    with pytest.raises(InputError, match=r"screw axis of 'joint1' has the pitch 0.1"):
        armdyn.from_screws(M[-1], np.array([[0, 0, 1, 0, 0, 0.1]]).T)
    with pytest.raises(InputError, match="ω must be a unit vector or 0"):
        armdyn.from_screws(M[-1], np.array([[0, 0, 2, 0, 0, 0]]).T)
    with pytest.raises(InputError, match="with inertias, M must have the link frames too"):
        armdyn.from_screws(M[-1], S, G)
    with pytest.raises(InputError, match="S must be finite"):
        armdyn.from_screws(M, S * np.nan, G)


@pytest.mark.parametrize("given", [3, None, b"ur5", SimpleNamespace(joints=[])])
def test_another_object_is_refused_with_what_is_taken(given):
    with pytest.raises(InputError, match="an arm must be a catalogue name, a path or the text"):
        armdyn.load(given)


def test_loading_imports_no_library_that_the_caller_has_not_imported():
    code = "import sys, armdyn; armdyn.Builder().body('a', mass=1, com=(1, 0, 0)).build()"
    ask = "print([m for m in ('pinocchio', 'mujoco', 'roboticstoolbox') if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", f"{code}; {ask}"], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


@pytest.mark.parametrize("beside", [0.0, 3e-13, 4.9e-12, 1e-9, 3e-7, 2e-6, 0.1])
def test_rotations_near_a_pitch_of_a_right_angle_are_kept(beside):
    for side in (1, -1):
        R = from_rpy(0.3, side * (math.pi / 2 - beside), -1.2)
        rounded = [[round(float(x), 16) for x in row] for row in R.rows]  # as from a product, or a quaternion
        again = from_rpy(*to_rpy(Mat3(*(Vec3(*row) for row in rounded))))
        difference = np.array(rounded) - np.array([[float(x) for x in row] for row in again.rows])
        assert np.abs(difference).max() < (1e-10 if beside > 1e-6 else 2e-12)
