"""MJCF in: the arm that MuJoCo compiles has the dynamics that MuJoCo computes."""

from __future__ import annotations

import numpy as np
import pytest

import armdyn
from armdyn.errors import FileError
from comparing import close

mujoco = pytest.importorskip("mujoco", reason="MJCF is read through the optional mujoco package")

ARM = """
<mujoco model="odd_arm">
  <compiler angle="radian"/>
  <option gravity="0.5 -1 -9.5"/>
  <worldbody>
    <body name="pedestal" pos="0.1 0.2 0.3" euler="0.1 0.2 0.3">
      <geom type="box" size="0.1 0.1 0.1"/>
      <body name="shoulder" pos="0 0 0.2" quat="0.9 0.1 0.2 0.3">
        <joint name="pan" axis="0 0 1" armature="0.2" damping="0.7" frictionloss="0.4" range="-2 2" limited="true"/>
        <joint name="lift" axis="0.3 1 0" pos="0.05 0 0.02" ref="0.4" armature="0.1"/>
        <inertial pos="0.1 0.02 0.03" mass="3" fullinertia="0.05 0.06 0.04 0.001 0.002 0.003"/>
        <body name="boom" pos="0.3 0 0" euler="0 1.2 0">
          <joint name="slide" type="slide" axis="1 0 0.2" ref="0.1"
                 range="0 0.5" limited="true" actuatorfrcrange="-40 40"/>
          <geom type="capsule" size="0.04 0.2" pos="0.1 0 0" density="800"/>
          <body name="cover" pos="0 0.1 0"><geom type="sphere" size="0.05"/></body>
          <body name="hand" pos="0.25 0.01 0">
            <joint name="roll" axis="1 0 0" pos="0 0.02 0"/>
            <geom type="box" size="0.03 0.05 0.08" pos="0.05 0 0"/>
            <site name="grip" pos="0.1 0 0.01" euler="0.2 0 0"/>
          </body>
        </body>
      </body>
    </body>
  </worldbody>
</mujoco>
"""


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "odd.xml"
    file.write_text(ARM)
    return file


def oracle(model, q, qd):
    data = mujoco.MjData(model)
    data.qpos, data.qvel = q, qd
    mujoco.mj_forward(model, data)
    H = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, H)
    return data, H


def test_dynamics_are_those_of_mujoco(path):
    arm = armdyn.load(path, tip="grip", snap=0)
    model = mujoco.MjModel.from_xml_path(str(path))
    assert [joint.name for joint in arm.joints] == ["pan", "lift", "slide", "roll"]
    rng = np.random.default_rng(0)
    for _ in range(5):
        q, qd = rng.uniform(-1, 1, 4), rng.normal(size=4)
        data, H = oracle(model, q, qd)
        close(arm.inertia_matrix(q), H, 1e-10)
        close(arm.bias(q, qd), data.qfrc_bias, 1e-10)
        pose = arm.pose(q)
        close(pose[:3, 3], data.site("grip").xpos, 1e-12)
        close(pose[:3, :3], data.site("grip").xmat.reshape(3, 3), 1e-12)
        close(arm.pose(q, frame="boom")[:3, 3], data.body("boom").xpos, 1e-12)


def test_the_tool_is_the_attachment_site(path):
    named = path.with_name("menagerie.xml")
    named.write_text(path.read_text(encoding="utf-8").replace('"grip"', '"attachment_site"'), encoding="utf-8")
    arm = armdyn.load(named, snap=0)
    q = np.array([0.3, -0.2, 0.1, 0.5])
    data, _ = oracle(mujoco.MjModel.from_xml_path(str(named)), q, q)
    assert arm.tool.name == "attachment_site"
    close(arm.pose(q)[:3, 3], data.site("attachment_site").xpos, 1e-12)
    close(arm.pose(q)[:3, :3], data.site("attachment_site").xmat.reshape(3, 3), 1e-12)
    assert arm.notes[0].startswith("the tool is the frame 'attachment_site', by its name")


def test_joint_data(path):
    arm = armdyn.load(path)
    pan, lift, slide, _ = arm.joints
    assert (float(pan.rotor_inertia), float(pan.viscous), float(pan.coulomb)) == (0.2, 0.7, 0.4)
    assert (pan.limit.lower, pan.limit.upper, lift.limit.lower) == (-2.0, 2.0, None)
    assert slide.limit.effort == 40.0
    assert arm.gravity == (0.5, -1.0, -9.5)
    assert (arm.name, arm.source) == ("odd_arm", "MJCF odd.xml")
    assert "grip" in {frame.name for frame in arm.frames}


def test_a_locked_joint_is_merged(path):
    arm = armdyn.load(path, lock={"slide": 0.3}, snap=0)
    whole = armdyn.load(path, snap=0)
    keep = [0, 1, 3]
    q = np.array([0.3, -0.2, 0.3, 0.5])
    close(arm.inertia_matrix(q[keep]), whole.inertia_matrix(q)[np.ix_(keep, keep)], 1e-12)


def test_saved_arm_is_equal(path, tmp_path):
    arm = armdyn.load(path)
    arm.save(tmp_path / "odd.toml")
    assert armdyn.load(tmp_path / "odd.toml") == arm


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<mujoco><worldbody><body>", "MuJoCo cannot compile the model"),
        (
            "<mujoco><worldbody><body name='a'><freejoint name='f'/><geom size='1'/></body></worldbody></mujoco>",
            "no moving joint below link 'world'",
        ),
        (
            "<mujoco><worldbody><body name='a'><joint/><geom size='1'/></body></worldbody>"
            "<equality><connect name='tie' body1='a' anchor='0 0 0'/></equality></mujoco>",
            "the MJCF equality 'tie' ties 'a' to 'world': it closes a loop.* Lock the joints between them: joint0",
        ),
        (
            "<mujoco><worldbody><body name='a'><joint name='lead'/><geom size='1'/><body><joint name='follow'/>"
            "<geom size='1'/></body></body></worldbody>"
            "<equality><joint joint1='follow' joint2='lead' polycoef='0 2 1 0 0'/></equality></mujoco>",
            "the MJCF equality 'equality0' ties the joints 'follow' and 'lead' by a polynomial",
        ),
    ],
)
def test_what_is_no_arm_is_refused(tmp_path, text, message):
    file = tmp_path / "bad.xml"
    file.write_text(text)
    with pytest.raises((FileError, armdyn.ArmdynError), match=message):
        armdyn.load(file)
