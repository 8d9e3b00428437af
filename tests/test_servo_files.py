"""Servos of joints in files: arm file, URDF and MJCF; the quantities of an arm do not depend on them."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import armdyn
from armdyn.chain import Servo
from armdyn.errors import FileError, InputError

FULL = Servo(
    *(Fraction(x) for x in ("41/2", "7/10")), delay=Fraction(1, 80), dead_band=Fraction(1, 500), lag=Fraction(1, 250)
)


def arm_with(*servos):
    arm = armdyn.load("planar3")
    joints = tuple(replace(j, servo=s) for j, s in zip(arm.given.joints, servos, strict=True))
    return replace(arm, given=replace(arm.given, joints=joints))


def test_arm_file_and_urdf_keep_them(tmp_path):
    arm = arm_with(FULL, None, Servo(Fraction(3)))
    arm.save(tmp_path / "a.toml")
    assert armdyn.load(tmp_path / "a.toml") == arm
    arm.to_urdf(tmp_path / "a.urdf")
    back = armdyn.load(tmp_path / "a.urdf")
    assert [joint.servo for joint in back.joints] == [FULL, None, Servo(Fraction(3))]
    assert armdyn.load(tmp_path / "a.urdf", lock={"joint1": 0.3}).joints[0].servo is None


def test_quantities_do_not_depend_on_them():
    arm, plain = arm_with(FULL, FULL, FULL), armdyn.load("planar3")
    assert arm.fingerprint != plain.fingerprint
    q, qd, qdd = np.random.default_rng(0).uniform(-1, 1, (3, 5, 3))
    np.testing.assert_array_equal(
        arm.inverse_dynamics(q, qd, qdd, friction=True), plain.inverse_dynamics(q, qd, qdd, friction=True)
    )


def test_mjcf_gets_position_servos(tmp_path):
    mujoco = pytest.importorskip("mujoco", reason="MuJoCo, which compiles the models, is not installed")
    arm = arm_with(FULL, None, Servo(Fraction(3)))
    first, *others = arm.given.joints
    limit = replace(first.limit, lower=-1.0, upper=2.0, effort=5.0)
    arm = replace(arm, given=replace(arm.given, joints=(replace(first, limit=limit), *others)))
    notes = arm.to_mjcf(tmp_path / "a.xml")
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "a.xml"))
    assert model.actuator_gainprm[:, 0].tolist() == [20.5, 1.0, 3.0]
    assert model.actuator_biasprm[0, :3].tolist() == [0.0, -20.5, -0.7]
    assert model.actuator_biasprm[2, :3].tolist() == [0.0, -3.0, 0.0]
    assert model.actuator_forcerange[0].tolist() == [-5.0, 5.0]
    assert model.actuator_ctrlrange[0].tolist() == [-1.0, 2.0]
    said = "does not hold of the servo of joint 'joint1': delay 0.0125 s, dead_band 0.002 rad or m, lag 0.004 s"
    assert any(said in note for note in notes)
    assert said in (tmp_path / "a.xml").read_text()
    data = mujoco.MjData(model)
    data.qpos, data.qvel, data.ctrl = [0.1, 0.2, 0.3], [0.5, 0.1, -0.2], [0.2, 0.0, 0.4]
    mujoco.mj_forward(model, data)
    expected = [20.5 * (0.2 - 0.1) - 0.7 * 0.5, 0.0, 3 * (0.4 - 0.3)]
    np.testing.assert_allclose(data.qfrc_actuator, expected, atol=1e-12)


def test_mjcf_gives_them_back(tmp_path):
    pytest.importorskip("mujoco", reason="MuJoCo, which compiles the models, is not installed")
    arm = arm_with(FULL, None, Servo(Fraction(3)))
    first, *others = arm.given.joints
    limit = replace(first.limit, lower=-1.0, upper=2.0, effort=5.0)
    arm = replace(arm, given=replace(arm.given, joints=(replace(first, limit=limit), *others)))
    arm.to_mjcf(tmp_path / "a.xml")
    back = armdyn.load(tmp_path / "a.xml")
    assert [joint.servo for joint in back.joints] == [Servo(FULL.kp, FULL.kd), None, Servo(Fraction(3))]
    assert [joint.limit.effort for joint in back.joints] == [5.0, arm.joints[1].limit.effort, None]
    assert not [note for note in back.notes if "servo" in note or "actuator" in note]
    back.to_mjcf(tmp_path / "b.xml")
    again = armdyn.load(tmp_path / "b.xml")
    assert [joint.servo for joint in again.joints] == [joint.servo for joint in back.joints]
    assert armdyn.load(tmp_path / "a.xml", lock={"joint1": 0.3}).joints[0].servo is None


MODEL = (
    '<mujoco><compiler angle="radian"/><worldbody><body><joint name="j" axis="0 1 0" range="-1 1"{0}/>'
    '<geom size="0.1" pos="0.2 0 0"/><body pos="0.5 0 0"><joint name="k" axis="0 1 0"/><geom size="0.1"/></body></body>'
    "</worldbody>{2}<actuator>{1}</actuator></mujoco>"
)
TWO = '<position name="a" joint="j" kp="9"/><velocity name="b" joint="j" kv="2"/>'
TIED = '<equality><joint joint1="j" joint2="k"/></equality>'


@pytest.mark.parametrize(
    ("actuators", "kp", "kd", "effort"),
    [
        ('<position joint="j" kp="40" kv="3" forcerange="-7 7"/>', 40, 3, 7),
        ('<position joint="j" kp="40" forcerange="-9 9" inheritrange="1"/>', 40, 0, 8),  # the joint's own is 8
        ('<general joint="j" gainprm="12" biastype="affine" biasprm="0 -12 -0.5"/><motor joint="k"/>', 12, 0.5, 8),
    ],
)
def test_position_servos_of_mujoco(actuators, kp, kd, effort, tmp_path):
    mujoco = pytest.importorskip("mujoco", reason="MuJoCo, which compiles the models, is not installed")
    text = MODEL.format(' actuatorfrcrange="-8 8"', actuators, "")
    (tmp_path / "a.xml").write_text(text)
    arm = armdyn.load(tmp_path / "a.xml")
    assert arm.notes == ()
    assert arm.joints[0].servo == Servo(Fraction(kp), Fraction(kd))
    assert arm.joints[1].servo is None
    assert arm.joints[0].limit.effort == effort
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    rng = np.random.default_rng(1)
    for _ in range(20):  # also where the force is at its limit
        data.qpos[0], data.qvel[0], data.ctrl[0] = rng.uniform(-1, 1, 3)
        mujoco.mj_forward(model, data)
        force = float(arm.joints[0].servo.force(data.ctrl[0], data.qpos[0], data.qvel[0]))
        assert data.qfrc_actuator[0] == pytest.approx(np.clip(force, -effort, effort), abs=1e-12)


@pytest.mark.parametrize(
    ("actuators", "said", "tied"),
    [
        ('<position name="a" joint="j" kp="9" gear="2"/>', "a (bias 0 -9 q +0 qd)", ""),
        ('<position name="a" joint="j" kp="9" forcerange="-1 2"/>', "a (bias 0 -9 q +0 qd)", ""),
        ('<position name="a" joint="j" kp="9" timeconst="0.1"/>', "a (bias 0 -9 q +0 qd)", ""),
        ('<velocity name="a" joint="j" kv="2"/>', "a (bias 0 +0 q -2 qd)", ""),
        ('<general name="a" joint="j" gainprm="9" biastype="affine" biasprm="1 -9 0"/>', "a (bias 1 -9 q +0 qd)", ""),
        (TWO, "a (bias 0 -9 q +0 qd), b (bias 0 +0 q -2 qd)", ""),
        ('<position name="a" joint="j" kp="9"/>', "a (bias 0 -9 q +0 qd)", TIED),
    ],
)
def test_other_actuators_with_a_bias_are_a_note(actuators, said, tied, tmp_path):
    pytest.importorskip("mujoco", reason="MuJoCo, which compiles the models, is not installed")
    (tmp_path / "a.xml").write_text(MODEL.format("", actuators, tied))
    arm = armdyn.load(tmp_path / "a.xml")
    why = "actuators with a bias that are no plain position servo of a joint are not carried over"
    assert arm.notes == (f"a.xml: {why}: {said}",)
    assert not any(joint.servo for joint in arm.joints)


def test_the_law():
    assert Servo(10.0, 2.0).force(0.5, 0.2, 0.1) == pytest.approx(10 * 0.3 - 0.2)
    banded = Servo(10.0, dead_band=0.1)
    assert [banded.force(c, 0.0, 0.0) for c in (0.05, -0.1)] == [0.0, 0.0]
    assert banded.force(-0.3, 0.0, 0.0) == pytest.approx(-2.0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{ kp = 0 }", "kp of a servo must be above 0, got 0"),
        ("{ kp = 1, delay = -0.1 }", "delay of a servo must not be negative, got -0.1"),
        ("{ kd = 1 }", "missing key 'kp'"),
        ("{ kp = 1, ki = 2 }", "unknown key 'ki'"),
        ("3", "servo must be a table"),
    ],
)
def test_bad_servos(text, message, tmp_path):
    arm_with(None, None, FULL).save(tmp_path / "a.toml")
    lines = (tmp_path / "a.toml").read_text().splitlines()
    lines = [f"servo = {text}" if line.startswith("servo") else line for line in lines]
    (tmp_path / "a.toml").write_text("\n".join(lines))
    with pytest.raises(FileError, match=message):
        armdyn.load(tmp_path / "a.toml")


def test_bad_servos_of_a_urdf(tmp_path):
    arm_with(None, None, FULL).to_urdf(tmp_path / "a.urdf")
    text = (tmp_path / "a.urdf").read_text()
    (tmp_path / "b.urdf").write_text(text.replace('servo_kp="20.5" ', ""))
    with pytest.raises(FileError, match="has no servo_kp"):
        armdyn.load(tmp_path / "b.urdf")
    (tmp_path / "b.urdf").write_text(text.replace('servo_kp="20.5"', 'servo_kp="-1"'))
    with pytest.raises(FileError, match="kp of a servo must be above 0"):
        armdyn.load(tmp_path / "b.urdf")
    with pytest.raises(InputError, match="kp of a servo"):
        Servo(-1)
