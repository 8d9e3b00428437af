"""The passive physics of MJCF models against MuJoCo; what is not carried over is a note; programs without Python."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import armdyn
from armdyn.errors import FileError

mujoco = pytest.importorskip("mujoco")


def model(joints: str = "", second: str = "", beside: str = "", body: str = "", option: str = "") -> str:
    return (
        f'<mujoco model="m"><compiler angle="radian"/><option gravity="1 2 -9.81">{option}</option><worldbody>'
        f'<body name="a"><joint name="j" axis="0 1 0" {joints}/><geom type="box" size="0.1 0.2 0.3" pos="0.1 0 0.2"/>'
        f'<body name="b" pos="0.5 0 0.1" {body}><joint name="k" type="slide" axis="1 0 1" {second}/>'
        '<geom type="box" size="0.1 0.05 0.1" pos="0 0.1 0"/></body></body></worldbody>'
        f"{beside}</mujoco>"
    )


def loaded(tmp_path: Path, text: str, **options):
    path = tmp_path / "m.xml"
    path.write_text(text)
    return armdyn.load(path, **options), mujoco.MjModel.from_xml_path(str(path))


def judged(arm, m, q, qd, tau):
    """(armdyn's, MuJoCo's) inertia matrix, passive forces and accelerations, without contacts and constraints."""
    d = mujoco.MjData(m)
    d.qpos[:], d.qvel[:], d.qfrc_applied[:] = q, qd, tau
    mujoco.mj_forward(m, d)
    H = np.zeros((m.nv, m.nv))
    mujoco.mj_fullM(m, H, d.qM) if mujoco.__version__ < "3.4" else mujoco.mj_fullM(m, d, H)
    ours = arm.inertia_matrix(q), arm.inverse_dynamics(q, qd, 0 * q, friction=True) - arm.inverse_dynamics(q, qd, 0 * q)
    return (ours[0], -ours[1], arm.forward_dynamics(q, qd, tau, friction=True)), (H, d.qfrc_passive, d.qacc)


SPRINGS = {
    "spring and reference": model('stiffness="30" springref="0.4" damping="2"', 'stiffness="50" armature="0.7"'),
    "zero positions": model('ref="0.3" stiffness="30" springref="-0.1"', 'ref="-0.2" stiffness="4"'),
    "tendon of one joint": model(
        'stiffness="3"',
        "",
        '<tendon><fixed name="t" stiffness="20" damping="1.5" springlength="0.3"><joint joint="j" coef="-2"/></fixed>'
        '<fixed name="u" stiffness="7" armature="0.6"><joint joint="k" coef="0.5"/></fixed></tendon>',
    ),
    "disabled": model('stiffness="30"', "", option='<flag spring="disable" gravity="disable"/>'),
}


@pytest.mark.parametrize("name", SPRINGS)
def test_springs_dampers_and_armatures_are_those_of_mujoco(name: str, tmp_path):
    arm, m = loaded(tmp_path, SPRINGS[name])
    assert len(arm.notes) == (name == "disabled")
    rng = np.random.default_rng(3)
    for _ in range(3):
        q, qd, tau = rng.uniform(-1, 1, (3, 2))
        for got, expected in zip(*judged(arm, m, q, qd, tau), strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-9)
        bare = arm.bias(q, 0 * q)
        np.testing.assert_allclose(bare, arm.gravity_load(q), atol=1e-12)  # springs are in neither


LOST = {
    "gravcomp": (model(body='gravcomp="0.5"'), "gravity compensation is not carried over: gravcomp 0.5 of b"),
    "servo": (
        model(beside='<actuator><position name="s" joint="j" kp="40" kv="3"/></actuator>'),
        "actuators with a bias, as position servos, are not carried over: s (bias 0 -40 q -3 qd)",
    ),
    "fluid": (
        model().replace('gravity="1 2 -9.81"', 'density="1.2" viscosity="2e-5" wind="1 0 0"'),
        "fluid forces are not carried over: density 1.2, viscosity 2e-05, wind [1.0, 0.0, 0.0]",
    ),
    "coupling tendon": (
        model(
            beside='<tendon><fixed name="t" stiffness="20" damping="1"><joint joint="j" coef="1"/>'
            '<joint joint="k" coef="2"/></fixed></tendon>'
        ),
        "tendon 't' couples joints and is not carried over: stiffness 20, damping 1",
    ),
    "slack tendon": (
        model(
            beside='<tendon><fixed name="t" stiffness="20" springlength="0 0.2"><joint joint="j" coef="1"/></fixed>'
            "</tendon>"
        ),
        "tendon 't' is slack over a range of lengths and is not carried over: stiffness 20",
    ),
    "tendon equality": (
        model(
            beside='<tendon><fixed name="t"><joint joint="j" coef="1"/></fixed><fixed name="u">'
            '<joint joint="k" coef="1"/></fixed></tendon>'
            '<equality><tendon name="e" tendon1="t" tendon2="u"/></equality>'
        ),
        "equalities between tendons are not carried over: e",
    ),
    "tendon limit": (
        model(beside='<tendon><fixed name="t" range="-1 1"><joint joint="j" coef="1"/></fixed></tendon>'),
        "limits of tendons are not carried over: t",
    ),
    "gravity flag": (
        model(option='<flag gravity="disable"/>'),
        "the model's option flags disable gravity, so they are 0 here",
    ),
}


@pytest.mark.parametrize("name", LOST)
def test_what_is_not_carried_over_is_a_note(name: str, tmp_path):
    text, note = LOST[name]
    arm, _ = loaded(tmp_path, text)
    assert arm.notes == (f"m.xml: {note}",)


def test_plain_models_have_no_notes(tmp_path):
    motors = '<actuator><motor name="s" joint="j" gear="3"/></actuator>'
    assert loaded(tmp_path, model('damping="1" frictionloss="2"', "", motors))[0].notes == ()


def test_ball_joints_are_chains(tmp_path):
    text = (
        '<mujoco model="m"><worldbody><body name="a" pos="0.1 0.2 0.3" euler="10 20 30">'
        '<joint name="s" type="ball" pos="0.05 0 0" damping="2"/><geom type="box" size="0.1 0.2 0.3" pos="0.1 0 0.2"/>'
        "</body></worldbody></mujoco>"
    )
    arm, m = loaded(tmp_path, text, snap=0)
    assert [joint.name for joint in arm.joints] == ["s_x", "s_y", "s_z"]
    assert len(arm.notes) == 2
    assert "the ball joint 's' loses damping 2" in arm.notes[0]
    assert "joint 's' is ball: read as s_x, s_y, s_z, turns about x, y and z in this order" in arm.notes[1]
    q = np.array([0.3, -0.5, 0.7])
    from scipy.spatial.transform import Rotation

    turn = Rotation.from_euler("XYZ", q)
    d = mujoco.MjData(m)
    d.qpos[:] = np.roll(turn.as_quat(), 1)
    mujoco.mj_forward(m, d)
    np.testing.assert_allclose(arm.pose(q, frame="a")[:3, 3], d.body("a").xpos, atol=1e-12)
    np.testing.assert_allclose(arm.pose(q, frame="a")[:3, :3], d.body("a").xmat.reshape(3, 3), atol=1e-12)
    potential = -(arm.mass * np.array([0, 0, -9.81])) @ d.subtree_com[1]
    assert arm.potential_energy(q) == pytest.approx(potential, abs=1e-9)
    H = np.zeros((3, 3))
    mujoco.mj_fullM(m, H, d.qM) if mujoco.__version__ < "3.4" else mujoco.mj_fullM(m, d, H)
    # MuJoCo's velocities are in the body's axes; the Jacobian's columns in the base's, which the body's pose turns
    E = np.column_stack([d.body("a").xmat.reshape(3, 3).T @ column for column in arm.jacobian(q, frame="a")[3:].T])
    np.testing.assert_allclose(arm.inertia_matrix(q), E.T @ H @ E, atol=1e-10)


# --- programs that are no Python interpreter


def test_a_frozen_program_compiles_in_its_own_process(tmp_path, monkeypatch):
    expected, _ = loaded(tmp_path, model())
    started = []
    monkeypatch.setattr("subprocess.run", lambda *words, **_: started.append(words))
    for attribute, value in (("frozen", True), ("executable", ""), ("executable", "/opt/studio/studio")):
        with monkeypatch.context() as patch:
            patch.setattr(sys, attribute, value, raising=False)
            arm = armdyn.load(tmp_path / "m.xml")
        assert arm == expected
        assert arm.notes == (
            "m.xml: compiled in this process, without limits on time and memory: there is no interpreter to start "
            "another with",
        )
    assert started == []


def test_the_other_process_searches_where_this_one_does(tmp_path, monkeypatch):
    """A mujoco package that only this process's path has, as with PYTHONPATH."""
    path = tmp_path / "m.xml"
    path.write_text(model())
    (tmp_path / "mujoco.py").write_text("class MjModel:\n    def from_xml_path(p): raise ValueError('found here')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(FileError, match="found here"):
        armdyn.load(path)


def test_a_program_that_is_no_python_is_an_error(tmp_path, monkeypatch):
    path = tmp_path / "m.xml"
    path.write_text(model())
    fake = tmp_path / "python"
    fake.write_text("#!/bin/sh\necho hello\n")
    fake.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(fake))
    with pytest.raises(
        FileError, match=r"was started to compile the model and gave no data, but 'hello': is it Python"
    ):
        armdyn.load(path)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python_that_is_not_there"))
    with pytest.raises(FileError, match="cannot be started to compile the model"):
        armdyn.load(path)
