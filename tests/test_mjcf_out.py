"""MJCF out: MuJoCo compiles what is written and computes the same dynamics; what it cannot hold is said."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import armdyn
from armdyn.arm import Arm
from armdyn.chain.joint import JointForces
from armdyn.cli import app
from armdyn.errors import FileError
from armdyn.files import mjcf_out
from comparing import close
from random_trees import TreeKind, random_tree

mujoco = pytest.importorskip("mujoco", reason="MuJoCo, which compiles the models, is not installed")

KINDS = {
    "tree": TreeKind(rotors=True),
    "mimic": TreeKind(mimic=0.4),
    "floating": TreeKind(floating=True, mimic=0.3, rotors=True),
    "prismatic": TreeKind(joints=4, prismatic=1.0),
    "one": TreeKind(joints=1, fork=0),
}
ROBOTS = ("panda_description", "ur_description", "kinova_description", "talos_data", "so_arm_description")


def compiled(arm):
    text, notes = mjcf_out.text(replace(arm.description, chain=arm.chain))
    return mujoco.MjModel.from_xml_string(text), text, notes


@pytest.mark.parametrize("name", armdyn.catalogue())
def test_the_catalogue(name):
    arm = armdyn.load(name)
    model, _, _ = compiled(arm)
    found = armdyn.compare(arm, model, samples=3, tolerance=1e-10)
    assert found.difference("inertia matrix").relative < 1e-10, found
    assert found.difference("torques").relative < 1e-10, found
    assert found.difference("poses").relative < 1e-10, found
    assert {frame.name for frame in arm.frames} <= set(found.frames)
    assert not [p for p in found.properties if p[1] != "velocity" and p[1] != "effort"]


@pytest.mark.parametrize("name", ["scara", "stanford"])
def test_inverse_dynamics_within_prismatic_limits(name):
    """Beyond a limit MuJoCo's inverse dynamics has the force of that constraint, too."""
    arm = armdyn.load(name)
    data = mujoco.MjData(model := compiled(arm)[0])
    low, high = np.array([(joint.limit.lower, joint.limit.upper) for joint in arm.joints]).T
    rng, third = np.random.default_rng(0), 2
    assert arm.joints[third].prismatic
    for _ in range(10):
        q, (qd, qdd) = rng.uniform(low, high), rng.uniform(-1, 1, (2, arm.n))
        data.qpos, data.qvel, data.qacc = q, qd, qdd
        mujoco.mj_inverse(model, data)
        torque = arm.inverse_dynamics(q, qd, qdd, friction=True)
        close(data.qfrc_inverse, torque, 1e-10)
        data.qpos[third] = high[third] + 0.1
        mujoco.mj_inverse(model, data)
        torque = arm.inverse_dynamics(np.array(data.qpos), qd, qdd, friction=True)
        close(data.qfrc_inverse + data.qfrc_constraint, torque, 1e-9)
        assert abs(data.qfrc_constraint[third]) > 1e3


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_random_trees(kind, seed):
    arm = Arm("tree", random_tree(KINDS[kind], seed), snap=0.0)
    model, _, _ = compiled(arm)
    found = armdyn.compare(arm, model, samples=3)
    assert found.difference("inertia matrix").relative < 1e-10, found
    assert found.difference("torques").relative < 1e-10, found


def test_forward_dynamics_by_mujoco():
    arm = armdyn.load("panda")
    model, _, _ = compiled(arm)
    model.dof_damping[:] = model.dof_frictionloss[:] = 0
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    model.jnt_actfrclimited[:] = 0
    data = mujoco.MjData(model)
    q, qd, tau = np.random.default_rng(0).uniform(-1, 1, (3, 7))
    data.qpos, data.qvel, data.qfrc_applied = q, qd, tau
    mujoco.mj_forward(model, data)
    H = arm.kernel("inertia_matrix", method="denoc", backend="python")(q)
    bias = arm.kernel("bias", method="newton_euler", backend="python")(q, qd)
    close(data.qacc, np.linalg.solve(H, tau - bias), 1e-10)


def test_floating_trees_fall_as_in_mujoco():
    arm = Arm("tree", random_tree(TreeKind(floating=True, rotors=True), 0), snap=0.0)
    model, _, _ = compiled(arm)
    model.opt.timestep, model.opt.integrator = 1e-3, mujoco.mjtIntegrator.mjINT_RK4
    data = mujoco.MjData(model)
    q = np.concatenate([[0.1, 0.2, 0.3], [0, 0, 0, 1], np.full(model.nq - 7, 0.2)])
    qd = np.random.default_rng(1).uniform(-1, 1, model.nv)
    run = armdyn.simulate(arm, q, qd, times=[0, 0.2], limits=False)
    turned = [0, 1, 2, 4, 5, 6, 3, *range(7, model.nq)]  # MuJoCo's quaternions begin with w
    data.qpos[turned], data.qvel[:] = q, qd  # twists in the world and in the body are the same at this orientation
    for _ in range(200):
        mujoco.mj_step(model, data)
    close(run.q[-1], data.qpos[turned], 1e-6)
    assert np.abs(run.q[-1] - q).max() > 0.1


def urdfs():
    """Some robots of example-robot-data, where it is installed."""
    spec = find_spec("example_robot_data") or find_spec("pinocchio")
    roots = [Path(p) for p in spec.submodule_search_locations] if spec else []
    share = [p for root in roots for up in root.parents for p in up.glob("share/example-robot-data/robots")]
    return [file for robot in ROBOTS for file in sorted(share[0].glob(f"{robot}/**/*.urdf"))[:1]] if share else []


@pytest.mark.parametrize("file", urdfs(), ids=lambda file: file.stem)
def test_robots_of_others(file):
    arm = armdyn.load(file, snap=0)
    model, _, notes = compiled(arm)
    found = armdyn.compare(arm, model, samples=2)
    assert found.difference("inertia matrix").relative < 1e-10, (found, notes)
    assert found.difference("torques").relative < 1e-10, (found, notes)


def test_it_loads_back_with_its_joints_and_frames(tmp_path):
    arm = armdyn.load("panda_hand")
    notes = arm.to_mjcf(tmp_path / "hand.xml")
    back = armdyn.load(tmp_path / "hand.xml", snap=0)
    found = armdyn.compare(arm, back, samples=3)
    assert found.agrees, found
    assert back.joint_names == arm.joint_names
    assert any(note.startswith("MJCF does not hold speed limits") for note in notes)
    text = (tmp_path / "hand.xml").read_text()
    assert all(note.replace("--", "- -") in text for note in notes)


def test_drive_limits_springs_and_motors():
    forces = JointForces(offset=Fraction(-3, 5), stiffness=Fraction(2))
    arm = armdyn.load("ur5")
    first, *rest = arm.given.joints
    first = replace(first, viscous=Fraction(1, 2), coulomb=Fraction(3, 10), rotor_inertia=Fraction(1, 5), forces=forces)
    model, _, _ = compiled(replace(arm, given=replace(arm.given, joints=(first, *rest))))
    assert (float(np.ravel(model.dof_damping)[0]), model.dof_frictionloss[0], model.dof_armature[0]) == (0.5, 0.3, 0.2)
    assert (float(np.ravel(model.jnt_stiffness)[0]), model.qpos_spring[0]) == (2.0, 0.3)
    assert model.nu == 6
    assert model.actuator_ctrlrange[0].tolist() == [-150.0, 150.0]
    assert model.jnt_actfrcrange[0].tolist() == [-150.0, 150.0]
    assert model.jnt_range[0].tolist() == [arm.joints[0].limit.lower, arm.joints[0].limit.upper]


def test_what_mjcf_cannot_hold_is_a_note_and_a_comment():
    arm = armdyn.load("planar3")
    first, second, third = arm.given.joints
    forces = JointForces(offset=Fraction(1, 4), load_friction=Fraction(1, 10))
    first = replace(first, name="a--b", coulomb=Fraction(1), static=Fraction(2), stribeck=Fraction(1, 10))
    limit = replace(third.limit, lower=1.0, upper=1.0, effort=0.0)
    joints = (first, replace(second, forces=forces), replace(third, limit=limit))
    model, text, notes = compiled(replace(arm, given=replace(arm.given, joints=joints)))
    said = "\n".join(notes)
    assert "MJCF does not hold static friction above Coulomb friction (N m or N): a--b (2)" in said
    assert re.search(r"MJCF does not hold a constant force \(N m or N\): \S+ \(0.25\)", said)
    assert "load-dependent friction" in said
    assert "has no range in MJCF: its limits 1 and 1 leave none" in said
    assert "a motor of no torque" in said
    assert model.nu == 2
    assert "a- -b (2)" in text


def test_a_massless_leaf_without_rotor_inertia_is_refused_and_nothing_is_written(tmp_path):
    robot = armdyn.Builder().body("arm", mass=1, com=(1, 0, 0), inertia=np.eye(3) * 0.1).body("tip", "arm")
    with pytest.raises(FileError, match="'tip', which nothing follows, has neither, and joint 'tip_joint' no rotor"):
        robot.build().to_mjcf(tmp_path / "arm.xml")
    assert list(tmp_path.iterdir()) == []


def test_a_point_mass_and_a_massless_body_get_the_least_that_mujoco_takes():
    robot = armdyn.Builder().body("cross").body("bob", "cross", axis="y", mass=1, com=(0, 0, -0.5))
    arm = robot.build()
    model, _, notes = compiled(arm)
    assert armdyn.compare(arm, model).agrees
    assert sum("has no mass or a moment of inertia of 0" in note for note in notes) == 2


def test_impossible_inertias_are_replaced_where_no_motion_shows_it_and_refused_otherwise():
    _, _, notes = compiled(armdyn.load("puma560"))
    assert any("no body can have the inertia of 'link1', 'link3'" in note for note in notes)
    robot = armdyn.Builder().body("a", mass=1, inertia=(0.1, 0.1, 0.1, 0, 0, 0))
    for name, parent, axis in (("b", "a", "x"), ("c", "b", "y")):
        robot.body(name, parent, axis=axis, placement=(0.3, 0.2, 0.1), mass=1, inertia=(1, 2, 9, 0, 0, 0))
    with pytest.raises(FileError, match=r"MJCF cannot hold the inertia of the body '.', because no body can have it"):
        compiled(robot.build())


def test_names():
    robot = armdyn.Builder('a "b" <c>', root="world")
    robot.body("é & <x>", mass=1, com=(1, 0, 0), inertia=np.eye(3), joint_name='j "1"')
    model, _, _ = compiled(robot.build())
    assert mujoco.mj_id2name(model, mujoco.mjtObj.mjOBJ_BODY, 1) == "é & <x>"
    assert mujoco.mj_id2name(model, mujoco.mjtObj.mjOBJ_JOINT, 0) == 'j "1"'
    odd = armdyn.Builder(root="ground").body("world", mass=1, com=(1, 0, 0), inertia=np.eye(3)).build()
    model, _, notes = compiled(odd)
    assert "the frame 'world' is the site 'world_2': its name is taken" in notes
    bad = armdyn.Builder().body("a\x01", mass=1, com=(1, 0, 0), inertia=np.eye(3)).build()
    with pytest.raises(FileError, match="cannot be written as XML"):
        compiled(bad)


def test_the_command(tmp_path):
    run = CliRunner().invoke(app, ["convert", "panda_hand", str(tmp_path / "hand.xml")])
    assert run.exit_code == 0, run.output
    assert "8 joints" in run.output
    assert "note: MJCF does not hold speed limits" in run.output
    assert mujoco.MjModel.from_xml_path(str(tmp_path / "hand.xml")).nu == 8
