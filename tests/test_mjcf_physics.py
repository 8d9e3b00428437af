"""The passive physics of MJCF models against MuJoCo; what is not carried over is a note; programs without Python."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import armdyn
from armdyn.errors import FileError, InputError

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
    "range of commands": (
        model(beside='<actuator><position name="s" joint="j" kp="40" kv="3" ctrlrange="-1 2"/></actuator>'),
        "ranges of servos' commands are not carried over: -1 to 2 of s",
    ),
    "fluid": (
        model().replace('gravity="1 2 -9.81"', 'density="1.2" viscosity="2e-5" wind="1 0 0"'),
        "fluid forces are not carried over: density 1.2, viscosity 2e-05, wind [1.0, 0.0, 0.0]",
    ),
    "dry friction along a coupling tendon": (
        model(
            beside='<tendon><fixed name="t" stiffness="20" frictionloss="0.5"><joint joint="j" coef="1"/>'
            '<joint joint="k" coef="2"/></fixed></tendon>'
        ),
        "tendon 't' couples joints: its dry friction of 0.5 is not carried over, what else it has is",
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


COUPLED = """<mujoco model="m"><compiler angle="radian"/><option gravity="1 2 -9.81">{flag}</option><worldbody>{base}
<body name="a" gravcomp="0.4"><joint name="j" axis="0 1 0" ref="0.2"/>
 <geom type="box" size="0.1 0.2 0.3" pos="0.1 0 0.2"/>
 <body name="b" pos="0.5 0 0.1" gravcomp="1.3"><joint name="k" type="slide" axis="1 0 1" stiffness="3" springref="0.1"/>
  <geom type="box" size="0.1 0.05 0.1" pos="0 0.1 0"/>
  <body name="fixed" pos="0.1 0.2 0" gravcomp="0.7"><geom type="box" size="0.1 0.05 0.1" pos="0 0.1 0.05"/></body>
  <body name="c" pos="0.2 0 0.1"><joint name="l" axis="0 0 1"/>
   <geom type="box" size="0.1 0.05 0.1" pos="0 0.1 0"/></body>
 </body>
 <body name="e" pos="-0.5 0 0.1"><joint name="m" axis="1 0 0"/>
  <geom type="box" size="0.1 0.05 0.1" pos="0 0.1 0"/></body>
</body>{end}</worldbody><tendon>
<fixed name="t" stiffness="20" damping="1.5" springlength="0.3" armature="0.8">
 <joint joint="j" coef="-2"/><joint joint="k" coef="1.5"/></fixed>
<fixed name="u" stiffness="7" damping="0.2"><joint joint="l" coef="0.5"/><joint joint="m" coef="-1"/></fixed>
<fixed name="v" stiffness="7" armature="0.6"><joint joint="k" coef="0.5"/></fixed></tendon>{more}</mujoco>"""


def coupled(flag: str = "", base: str = "", more: str = "") -> str:
    return COUPLED.format(flag=flag, base=base, end="</body>" * bool(base), more=more)


@pytest.mark.parametrize("flag", ["", 'spring="disable" damper="disable"', 'spring="disable"', 'gravity="disable"'])
def test_tendons_of_several_joints_and_gravity_compensation_are_those_of_mujoco(flag: str, tmp_path):
    arm, m = loaded(tmp_path, coupled(f"<flag {flag}/>" if flag else ""))
    assert len(arm.notes) == bool(flag)
    assert [tendon.name for tendon in arm.chain.tendons] == ["t", "u"]
    rng = np.random.default_rng(4)
    for _ in range(3):
        q, qd, tau = rng.uniform(-1, 1, (3, 4))
        for got, expected in zip(*judged(arm, m, q, qd, tau), strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(arm.bias(q, 0 * q), arm.gravity_load(q), atol=1e-12)
        H = arm.inertia_matrix(q)
        np.testing.assert_allclose(arm.inertia_inverse(q) @ H, np.eye(4), atol=1e-12)
        np.testing.assert_allclose(arm.momentum(q, qd), H @ qd, atol=1e-12)
        assert arm.kinetic_energy(q, qd) == pytest.approx(qd @ H @ qd / 2)


def test_a_floating_robot_has_them_too(tmp_path):
    base = '<body name="base" gravcomp="0.5"><freejoint/><geom type="box" size="0.1 0.2 0.3"/>'
    arm, m = loaded(tmp_path, coupled(base=base))
    rng = np.random.default_rng(5)
    turn = rng.normal(size=4)
    turn /= np.linalg.norm(turn)
    q = np.concatenate([rng.uniform(-1, 1, 3), turn, rng.uniform(-1, 1, 4)])
    v, tau = rng.uniform(-1, 1, (2, 10))
    d = mujoco.MjData(m)
    d.qpos[:] = q
    d.qpos[3:7] = np.roll(turn, 1)
    R, T, rate = np.zeros(9), np.eye(10), np.zeros(10)
    mujoco.mju_quat2Mat(R, d.qpos[3:7])
    T[:3, :3] = R = R.reshape(3, 3)  # MuJoCo's linear velocity is in the world's axes
    rate[:3] = R @ np.cross(v[3:6], v[:3])
    d.qvel[:], d.qfrc_applied[:] = T @ v, T @ tau
    mujoco.mj_forward(m, d)
    np.testing.assert_allclose(T @ arm.forward_dynamics(q, v, tau, friction=True) + rate, d.qacc, rtol=1e-9, atol=1e-9)


def test_they_act_on_joints_that_follow_others(tmp_path):
    """A mimic joint: against the robot without the relation, projected on its coordinates."""
    free, _ = loaded(tmp_path, coupled())
    led, _ = loaded(
        tmp_path,
        coupled(more='<equality><joint joint1="l" joint2="m" polycoef="0.1 -0.7 0 0 0"/></equality>'),
    )
    G = np.array([[1, 0, 0], [0, 1, 0], [0, 0, -0.7], [0, 0, 1]])
    q, qd, qdd = np.random.default_rng(6).uniform(-1, 1, (3, 3))
    whole = G @ q + np.array([0, 0, 0.1, 0])
    expected = G.T @ free.inverse_dynamics(whole, G @ qd, G @ qdd, friction=True)
    np.testing.assert_allclose(led.inverse_dynamics(q, qd, qdd, friction=True), expected, atol=1e-11)
    np.testing.assert_allclose(led.forward_dynamics(q, qd, expected, friction=True), qdd, atol=1e-10)


@pytest.mark.parametrize("dry", [False, True])
def test_simulations_have_them(dry: bool, tmp_path):
    """Against MuJoCo's own steps; with dry friction, which has stages of its own, against the same arm's dynamics."""
    text = coupled().replace('name="m" axis', 'name="m" frictionloss="0.5" axis') if dry else coupled()
    arm, m = loaded(tmp_path, text.replace('name="m" axis', 'name="m" damping="2" axis'))
    q = np.array([0.1, 0.2, 0.3, 0.4])
    run = armdyn.simulate(arm, q0=q, duration=0.3, step=1e-3)
    if not dry:
        m.opt.integrator, m.opt.timestep = mujoco.mjtIntegrator.mjINT_RK4, 1e-3
        m.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
        d = mujoco.MjData(m)
        d.qpos[:] = q
        for _ in range(300):
            mujoco.mj_step(m, d)
        np.testing.assert_allclose(run.q[-1], d.qpos, atol=1e-8)
    else:
        k = 150
        qdd = (run.qd[k + 1] - run.qd[k - 1]) / 2e-3
        assert abs(run.qd[k, 3]) > 1e-3
        expected = arm.forward_dynamics(run.q[k], run.qd[k], np.zeros(4), friction=True)
        np.testing.assert_allclose(qdd, expected, rtol=2e-3, atol=1e-3)


def test_an_fmu_has_them(tmp_path):
    from armdyn.codegen.text.numpy import compile_numpy
    from armdyn.deployment.fmu import _joint_forces
    from armdyn.deployment.fmu_model import FmuModel

    arm, _ = loaded(tmp_path, coupled())
    q, qd = np.random.default_rng(8).uniform(-1, 1, (2, 4))
    for friction in (True, False):
        model = FmuModel(arm, False, friction)
        assert model.pushed == friction
    made = _joint_forces(FmuModel(arm, False, True)).program
    expected = arm.joint_forces(q, qd, 0 * q)  # the joints have no friction of their own
    np.testing.assert_allclose(compile_numpy(made)(q[None], qd[None])[0], expected, rtol=1e-12)
    assert np.abs(expected - arm.uncoupled.joint_forces(q, qd, 0 * q)).max() > 1


def test_files_keep_them(tmp_path):
    arm, _ = loaded(tmp_path, coupled())
    q, qd, tau = np.random.default_rng(7).uniform(-1, 1, (3, 4))
    expected = arm.forward_dynamics(q, qd, tau, friction=True)
    arm.save(tmp_path / "a.toml")
    assert armdyn.load(tmp_path / "a.toml") == arm
    arm.to_urdf(tmp_path / "a.urdf")
    read = armdyn.load(tmp_path / "a.urdf").with_gravity(arm.gravity)
    assert read.notes == ()
    np.testing.assert_allclose(read.forward_dynamics(q, qd, tau, friction=True), expected, rtol=1e-9)
    for name in ("m.xml", "a.toml", "a.urdf"):  # a locked joint changes the rest of a tendon, or ends its coupling
        part = armdyn.load(tmp_path / name, lock={"k": 0.3, "m": -0.2}).with_gravity(arm.gravity)
        assert part.chain.tendons == ()
        still = np.array([q[0], 0.3, q[2], -0.2])
        moving = np.array([qd[0], 0, qd[2], 0])
        forces = arm.inverse_dynamics(still, moving, 0 * q, friction=True)[[0, 2]]
        np.testing.assert_allclose(
            part.inverse_dynamics(q[[0, 2]], qd[[0, 2]], np.zeros(2), friction=True), forces, rtol=1e-9
        )
    assert arm.to_mjcf(tmp_path / "b.xml") == (
        "the compensated weight of 8 kg of 'b' is not at its centre of mass: left out",
    )
    whole, _ = loaded(
        tmp_path, coupled().replace('name="fixed" pos="0.1 0.2 0" gravcomp="0.7"', 'name="f" gravcomp="1.3"')
    )
    assert whole.to_mjcf(tmp_path / "b.xml") == ()
    (tmp_path / "c.toml").write_text((tmp_path / "a.toml").read_text().replace("rest = 0.3", "rest = -1.0"))
    armdyn.load(tmp_path / "c.toml").to_mjcf(tmp_path / "c.xml")
    written = armdyn.load(tmp_path / "c.xml").chain.tendons[0]
    assert float(written.rest) == pytest.approx(-1)  # which MuJoCo takes for "at the spring's reference" if exact
    again = armdyn.load(tmp_path / "b.xml")
    np.testing.assert_allclose(
        again.forward_dynamics(q, qd, tau, friction=True), whole.forward_dynamics(q, qd, tau, friction=True), rtol=1e-9
    )


def test_show_lists_them(tmp_path):
    from typer.testing import CliRunner

    from armdyn.cli import app

    loaded(tmp_path, coupled())
    said = CliRunner().invoke(app, ["show", str(tmp_path / "m.xml")]).output
    assert "tendon t: L = -2 j +1.5 k, stiffness 20, rest 0.3, damping 1.5, armature 0.8" in said
    assert "gravity compensation: the weight of 19.2 kg of link 1, 8 kg of link 2" in said


def test_an_inertia_along_a_tendon_between_branches_is_a_note(tmp_path):
    text = coupled().replace('stiffness="7" damping="0.2"', 'armature="0.3"')
    arm, m = loaded(tmp_path, text)
    assert arm.notes == (
        "m.xml: tendon 'u' has an armature and joins branches: its inertia couples the joints l, m here; MuJoCo leaves "
        "that part of its inertia matrix out",
    )
    q = np.array([0.3, -0.2, 0.5, 0.1])
    (ours, *_), (theirs, *_) = judged(arm, m, q, 0 * q, 0 * q)
    expected = theirs.copy()
    expected[2, 3] = expected[3, 2] = -0.3 * 0.5
    np.testing.assert_allclose(ours, expected, atol=1e-9)


def test_methods_and_tasks_without_couplings_say_so(tmp_path):
    arm, _ = loaded(tmp_path, coupled())
    by_denoc = arm.kernel("forward_dynamics", method="denoc")
    with pytest.raises(InputError, match=r"denoc needs an inertia matrix of links and rotors alone.*: composite"):
        by_denoc(*np.zeros((3, 4)))
    t = np.linspace(0, 1, 101)
    log = armdyn.Log.of(t, np.sin(np.outer(t, range(1, 5))), np.cos(np.outer(t, range(2, 6))))
    with pytest.raises(InputError, match=r"has tendons or gravity compensation; arm.uncoupled leaves them out"):
        armdyn.identify(arm, log, friction="none", offset=False, rotor=False)
    assert not arm.uncoupled.chain.coupled
    bare = arm.uncoupled.inverse_dynamics(np.zeros(4), np.zeros(4), np.ones(4))
    assert not np.allclose(bare, arm.inverse_dynamics(np.zeros(4), np.zeros(4), np.ones(4)))


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
