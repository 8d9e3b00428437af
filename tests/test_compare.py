"""Comparing robots: what agrees, what differs and where, against other libraries' own numbers."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from typer.testing import CliRunner

import armdyn
from armdyn.arm import Arm
from armdyn.cli import app
from armdyn.errors import InputError
from random_trees import TreeKind, pinocchio_model, random_tree

pin = pytest.importorskip("pinocchio", reason="Pinocchio, whose models are compared, is not installed")
mujoco = pytest.importorskip("mujoco", reason="MuJoCo, whose models are compared, is not installed")

KINDS = {
    "rotors": TreeKind(rotors=True),
    "mimic": TreeKind(mimic=0.4),
    "floating": TreeKind(floating=True, mimic=0.3, rotors=True),
}


def of(kind, seed=0):
    chain = random_tree(KINDS[kind], seed)
    return Arm("tree", chain, snap=0.0), pinocchio_model(chain)


@pytest.mark.parametrize("kind", KINDS)
def test_an_arm_and_pinocchios_model_of_it_agree(kind):
    arm, model = of(kind)
    found = armdyn.compare(arm, model, samples=3)
    assert found.agrees, found
    assert found.same_order
    assert found.difference("inertia matrix").relative < 1e-13


@pytest.mark.parametrize("what", ["mass", "com", "rotor", "gravity", "length"])
def test_a_planted_difference_is_found_and_named(what):
    arm, model = of("rotors")
    if what == "mass":
        model.inertias[3].mass *= 1.001
    elif what == "com":
        model.inertias[3].lever = model.inertias[3].lever + np.array([0.001, 0, 0])
    elif what == "rotor":
        model.armature[2] += 0.01
    elif what == "gravity":
        model.gravity.linear = model.gravity.linear * 1.001
    else:
        model.jointPlacements[3].translation = model.jointPlacements[3].translation + np.array([0, 0.001, 0])
    found = armdyn.compare(arm, model, samples=3)
    assert not found.agrees
    if what == "rotor":
        assert found.difference("inertia matrix").where == "joint2"
        assert found.difference("inertia matrix").largest == pytest.approx(0.01)
        assert ("joint2", "rotor inertia") in {(joint, name) for joint, name, *_ in found.properties}
    if what == "gravity":
        assert found.difference("inertia matrix").relative < 1e-13
        assert found.difference("gravity").relative == pytest.approx(0.001, rel=0.01)


def test_another_order_of_joints_is_said_and_no_difference():
    model = pin.Model()
    names = {}
    for name, parent in (("first", 0), ("second", 0), ("third", "first")):
        joint = pin.JointModelRX() if name == "third" else pin.JointModelRZ()
        at = pin.SE3(np.eye(3), np.array([0.3, 0.1, 0]))
        names[name] = model.addJoint(names.get(parent, 0), joint, at, name)
        model.appendBodyToJoint(names[name], pin.Inertia(1, np.array([0.1, 0.2, 0.3]), np.eye(3)), pin.SE3.Identity())
    found = armdyn.compare(armdyn.load(model), model)
    assert (found.agrees, found.same_order) == (True, False)
    assert found.joints == (("first", 0, 0), ("third", 1, 2), ("second", 2, 1))
    assert "in another order" in found.summary()


def test_a_joint_that_only_one_has_is_no_agreement():
    whole, arm = armdyn.load("panda_hand"), armdyn.load("panda_hand", lock={"panda_finger_joint1": 0.0})
    found = armdyn.compare(whole, arm)
    assert not found.agrees
    assert found.difference("torques").relative < 1e-12  # the finger stays at zero in both
    assert any("has no partner and stays at zero" in note and "panda_finger_joint1" in note for note in found.notes)


def test_without_common_names_the_order_counts():
    arm = armdyn.load("ur5")
    joints = tuple(replace(joint, name=f"a{k}") for k, joint in enumerate(arm.given.joints))
    other = replace(arm, given=replace(arm.given, joints=joints))
    found = armdyn.compare(other, arm)
    assert found.agrees
    assert found.notes == ("no joint name is common: the joints are matched by their order",)


def test_physics_that_is_not_compared_is_listed():
    text = """<mujoco model="m"><worldbody><body name="b"><joint name="j" axis="0 1 0" damping="2" stiffness="3"/>
    <geom size="0.1" mass="1" pos="0.3 0 0"/></body></worldbody></mujoco>"""
    model = mujoco.MjModel.from_xml_string(text)
    found = armdyn.compare(text, model)
    assert found.agrees
    assert "in the mujoco.MjModel: damping, joint springs" in found.ignored
    assert any(line.startswith("friction and joint forces of m: j") for line in found.ignored)


def test_the_result_as_text_and_html():
    found = armdyn.compare("ur5", "ur10", samples=2)
    assert "ur5 (armdyn) and ur10 (armdyn) differ (2 random configurations)" in found.summary()
    assert "shoulder_pan_joint effort: 150 against 330" in found.summary()
    assert "<table>" in found._repr_html_()
    assert repr(found).startswith("<Comparison ur5")
    alike = armdyn.compare("ur5", armdyn.load("ur5").with_payload(1.0), samples=1)
    assert "ur5 (armdyn), the first and ur5 (armdyn), the second differ" in alike.summary()
    with pytest.raises(InputError, match="unknown quantity 'mas'; available: inertia matrix, torques, poses, mass"):
        found.difference("mas")


def test_what_cannot_be_compared_is_refused():
    model = pin.Model()
    model.addJoint(0, pin.JointModelSpherical(), pin.SE3.Identity(), "hip")
    with pytest.raises(InputError, match=r"joint 'hip' of the pinocchio.Model is a JointModelSpherical"):
        armdyn.compare("ur5", model)
    with pytest.raises(InputError, match="samples must be a whole number of at least 1, got 0"):
        armdyn.compare("ur5", "ur5", samples=0)
    with pytest.raises(InputError, match="an arm must be a catalogue name"):
        armdyn.compare("ur5", 3)


def test_the_command(tmp_path):
    arm = armdyn.load("ur5")
    arm.to_urdf(tmp_path / "ur5.urdf")
    run = CliRunner().invoke(app, ["compare", "ur5", str(tmp_path / "ur5.urdf")], env={"COLUMNS": "80"})
    assert run.exit_code == 0, run.output
    assert "ur5 and ur5.urdf agree" in run.output
    assert all(len(line) <= 80 for line in run.output.splitlines()[:12])
    links = list(arm.given.links)
    links[2] = replace(links[2], mass=links[2].mass + Fraction(1, 10))
    arm.with_links(tuple(links)).save(tmp_path / "other.toml")
    run = CliRunner().invoke(app, ["compare", "ur5", str(tmp_path / "other.toml"), "--json"])
    assert run.exit_code == 1
    said = json.loads(run.stdout)
    assert said["agrees"] is False
    assert said["differences"]["mass"]["largest"] == pytest.approx(0.1)
