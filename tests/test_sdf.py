"""SDFormat: the same robot as a URDF written by hand; what the format assumes; files that cannot be read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import armdyn
from armdyn.errors import ArmdynError, FileError

INERTIA = "<inertia><ixx>0.3</ixx><ixy>0.01</ixy><ixz>-0.02</ixz><iyy>0.4</iyy><iyz>0.03</iyz><izz>0.5</izz></inertia>"
SDF = f"""<?xml version="1.0"?>
<sdf version="1.9"><model name="crane">
  <frame name="mount"><pose>0.1 0 0.2 0 0 0.5</pose></frame>
  <link name="base"><pose relative_to="mount">0 0 0.3 0 0 0</pose>
    <inertial><mass>9</mass>{INERTIA}</inertial></link>
  <link name="boom"><pose>0.4 0.1 0.9 0.2 -0.3 0.4</pose>
    <inertial><pose>0.05 0.02 -0.1 0.1 0.2 0.3</pose><mass>2.5</mass>{INERTIA}</inertial></link>
  <link name="hook"><pose relative_to="slide">0 0.05 -0.2 0 0 1</pose>
    <inertial><pose degrees="true">0 0 0.1 0 90 0</pose><mass>1.5</mass>{INERTIA}</inertial></link>
  <joint name="fix" type="fixed"><parent>world</parent><child>base</child></joint>
  <joint name="turn" type="revolute"><pose>0.02 0 -0.1 0 0.1 0</pose><parent>base</parent><child>boom</child>
    <axis><xyz expressed_in="__model__">0 0.6 0.8</xyz>
      <limit><lower>-1.5</lower><upper>2</upper><effort>30</effort><velocity>2.5</velocity></limit>
      <dynamics><damping>0.7</damping><friction>0.2</friction><spring_stiffness>5</spring_stiffness>
        <spring_reference>0.3</spring_reference></dynamics></axis></joint>
  <joint name="slide" type="prismatic"><pose relative_to="boom">0.3 0 0.6 0.3 0 0</pose>
    <parent>boom</parent><child>hook</child><axis><xyz>0 0 -2</xyz>
      <limit><lower>-1e16</lower><upper>inf</upper><effort>-1</effort></limit></axis></joint>
  <frame name="tip" attached_to="hook"><pose>0 0 -0.05 0 0 0</pose></frame>
</model></sdf>"""


def saved(tmp_path: Path, text: str, name: str = "crane.sdf") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


def pose(xyz, rpy):
    from scipy.spatial.transform import Rotation

    T = np.eye(4)
    T[:3, :3], T[:3, 3] = Rotation.from_euler("xyz", rpy).as_matrix(), xyz
    return T


BASE = pose((0.1, 0, 0.2), (0, 0, 0.5)) @ pose((0, 0, 0.3), (0, 0, 0))
BOOM = pose((0.4, 0.1, 0.9), (0.2, -0.3, 0.4))
TURN = BOOM @ pose((0.02, 0, -0.1), (0, 0.1, 0))
SLIDE = BOOM @ pose((0.3, 0, 0.6), (0.3, 0, 0))
HOOK = SLIDE @ pose((0, 0.05, -0.2), (0, 0, 1))


def motions(q):
    """(boom, hook) in the model's frame: a turn about the axis at the joint, then a slide."""
    from scipy.spatial.transform import Rotation

    turn = np.eye(4)
    turn[:3, :3] = Rotation.from_rotvec(q[0] * np.array([0, 0.6, 0.8])).as_matrix()
    about = np.eye(4)
    about[:3, 3] = TURN[:3, 3]
    moved = about @ turn @ np.linalg.inv(about)
    slide = np.eye(4)
    slide[:3, 3] = -q[1] * SLIDE[:3, 2]
    return moved @ BOOM, moved @ slide @ HOOK


def test_poses_masses_and_limits(tmp_path):
    arm = armdyn.load(saved(tmp_path, SDF), snap=0)
    assert (arm.name, arm.kinds, [joint.name for joint in arm.joints]) == ("crane", "RP", ["turn", "slide"])
    assert [note for note in arm.notes if "tool" not in note] == []
    assert arm.limits.tolist() == [[-1.5, 2], [-np.inf, np.inf]]
    assert (arm.velocity_limits[0], arm.effort_limits.tolist()) == (2.5, [30, np.inf])
    q, g = np.array([0.7, -0.4]), np.array([0, 0, -9.81])
    boom, hook = motions(q)
    np.testing.assert_allclose(arm.pose(q, frame="boom"), boom, atol=1e-14)
    np.testing.assert_allclose(arm.pose(q, frame="hook"), hook, atol=1e-14)
    np.testing.assert_allclose(arm.pose(q, frame="tip"), hook @ pose((0, 0, -0.05), (0, 0, 0)), atol=1e-14)
    np.testing.assert_allclose(arm.pose(q, frame="base"), BASE, atol=1e-14)
    boom_com, hook_com = (boom @ [0.05, 0.02, -0.1, 1])[:3], (hook @ [0, 0, 0.1, 1])[:3]
    assert arm.potential_energy(q) == pytest.approx(-(2.5 * boom_com + 1.5 * hook_com) @ g)
    assert arm.mass == 4
    # kinetic energy with the inertias turned by the poses of <inertial>
    J = np.array([[0.3, 0.01, -0.02], [0.01, 0.4, 0.03], [-0.02, 0.03, 0.5]])
    qd, h, energy = np.array([0.9, -0.6]), 1e-6, 0.0
    turns = pose((0, 0, 0), (0.1, 0.2, 0.3)), pose((0, 0, 0), (0, np.pi / 2, 0))
    for k, (mass, com) in enumerate([(2.5, (0.05, 0.02, -0.1)), (1.5, (0, 0, 0.1))]):
        T, ahead, behind = motions(q)[k], motions(q + h * qd)[k], motions(q - h * qd)[k]
        rate = (ahead - behind) / (2 * h)
        omega_matrix = rate[:3, :3] @ T[:3, :3].T
        omega = np.array([omega_matrix[2, 1], omega_matrix[0, 2], omega_matrix[1, 0]])
        v = (rate @ [*com, 1])[:3]
        R = T[:3, :3] @ turns[k][:3, :3]
        energy += mass / 2 * v @ v + omega @ (R @ J @ R.T) @ omega / 2
    assert arm.kinetic_energy(q, qd) == pytest.approx(energy, rel=1e-8)
    still = arm.inverse_dynamics(q, 0 * q, 0 * q, friction=True) - arm.gravity_load(q)
    np.testing.assert_allclose(still, [5 * (q[0] - 0.3), 0], atol=1e-12)
    assert [float(x) for x in (arm.joints[0].viscous, arm.joints[0].coulomb)] == [0.7, 0.2]


def test_what_the_format_assumes_is_noticed(tmp_path):
    bare = SDF.replace('<joint name="fix" type="fixed"><parent>world</parent><child>base</child></joint>', "")
    arm = armdyn.load(saved(tmp_path, bare.replace("<mass>1.5</mass>", "")))
    assert arm.mass == 3.5
    assert [note.removeprefix("crane.sdf: ") for note in arm.notes if "tool" not in note] == [
        "link 'hook' has no <mass>: SDFormat's 1 kg and 1 kg m² about each axis stand for it",
        "the model is fixed to nothing: its root is the ground; floating=True frees it",
    ]
    assert armdyn.load(saved(tmp_path, bare), floating=True).floating


def test_followers_and_balls(tmp_path):
    mimic = '<mimic joint="turn"><multiplier>2</multiplier><offset>0.1</offset><reference>0.3</reference></mimic>'
    arm = armdyn.load(
        saved(tmp_path, SDF.replace("<axis><xyz>0 0 -2</xyz>", f"<axis><xyz>0 0 -2</xyz>{mimic}")), snap=0
    )
    _, hook = motions([0.7, 2 * (0.7 - 0.3) + 0.1])
    np.testing.assert_allclose(arm.pose([0.7], frame="hook"), hook, atol=1e-14)
    ball = armdyn.load(saved(tmp_path, SDF.replace('type="prismatic"', 'type="ball"')))
    assert [joint.name for joint in ball.joints] == ["turn", "slide_x", "slide_y", "slide_z"]


BAD = {
    "<sdf/>": "expected <sdf> with one <model>, got <sdf> with 0",
    SDF.replace("</model>", "</model><model name='b'/>"): "got <sdf> with 2",
    SDF.replace("<parent>base", "<parent>bass"): "joint 'turn' has the parent 'bass', which is no link of the model",
    SDF.replace('"prismatic"', '"screw"'): "joint 'slide' has the type 'screw'; supported are revolute, continuous",
    SDF.replace('relative_to="mount"', 'relative_to="mont"'): "relative to 'mont', which the model does not have",
    SDF.replace(
        "<pose>0.4 0.1 0.9", '<pose relative_to="slide">0.4 0.1 0.9'
    ): "poses are relative to one another in a circle",
    SDF.replace('relative_to="mount">0 0 0.3', 'relative_to="mount">0 0 x'): "base: pose expects 6 finite numbers",
    SDF.replace("0 0.6 0.8", "0 0 0"): "joint 'turn' has the axis 0 0 0",
    SDF.replace('name="hook"', 'name="boom"'): "two links are named 'boom'",
    SDF.replace("<?xml version", "<!DOCTYPE a><?xml version"): "a document type",
    SDF[:300]: "not well-formed XML",
    SDF.replace("<frame name", "<include><uri>model://x</uri></include><frame name", 1): "a <include> inside the model",
    SDF.replace('attached_to="hook"', 'attached_to="tip"'): "frame 'tip' is attached to 'tip'",
    SDF.replace("<mass>2.5", "<mass>-2.5"): "link 'boom' has the mass -2.5 kg",
    SDF.replace("<mass>2.5", "<mass>nan"): "link 'boom': mass expects 1 finite number, got 'nan'",
}


@pytest.mark.parametrize("text", BAD)
def test_files_that_cannot_be_read(text: str, tmp_path):
    with pytest.raises(ArmdynError) as error:
        armdyn.load(saved(tmp_path, text))
    assert isinstance(error.value, FileError)
    assert BAD[text] in str(error.value)


def test_zero_efforts_are_unknown_as_in_a_urdf(tmp_path):
    """As exporters from URDF write them; beside a speed limit, a joint without a motor."""
    inertia = "<inertia><ixx>0.1</ixx><iyy>0.1</iyy><izz>0.1</izz></inertia>"
    links = [f'<link name="{name}"><inertial><mass>2</mass>{inertia}</inertial></link>' for name in "abc"]
    joint = (
        '<joint name="{0}" type="revolute"><parent>{1}</parent><child>{2}</child><axis><xyz>0 1 0</xyz>'
        "<limit><lower>-1</lower><upper>1</upper><effort>0</effort>{3}</limit></axis></joint>"
    )
    fixed = '<joint name="f" type="fixed"><parent>world</parent><child>a</child></joint>'
    moving = joint.format("j", "a", "b", ""), joint.format("k", "b", "c", "<velocity>2</velocity>")
    path = tmp_path / "m.sdf"
    path.write_text(f"<sdf version='1.9'><model name='m'>{''.join([*links, *moving, fixed])}</model></sdf>")
    arm = armdyn.load(path)
    assert arm.effort_limits.tolist() == [np.inf, 0]
    assert arm.notes == (
        'm.sdf: effort="0" without a speed limit counts as unknown: j',
        'm.sdf: effort="0" beside a speed limit: these joints have no torque: k',
    )
