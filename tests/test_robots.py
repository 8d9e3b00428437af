"""Whole robots: branches, mimic joints, floating bases; cutting, locking, resting; files that hold trees."""

from __future__ import annotations

import inspect
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import armdyn
from armdyn.chain.joint import Limit
from armdyn.cli import COMMANDS, app, command
from armdyn.cli.common import ROBOT
from armdyn.errors import ComputationError, FileError, InputError
from oracles import plain, relative, robots

pin = pytest.importorskip("pinocchio", reason="Pinocchio, which this compares with, is not installed")
from robot_judge import judge  # noqa: E402


def robot(name: str) -> Path:
    return next(file for file in robots() if file.stem == name)


@pytest.mark.parametrize("floating", [None, True], ids=["fixed", "floating"])
@pytest.mark.parametrize("name", ["panda", "baxter", "talos_reduced", "a1", "romeo", "finger_edu", "g1_29dof_rev_1_0"])
def test_whole_robots_are_those_of_pinocchio(name: str, floating: bool | None):
    found = judge(robot(name), floating).disagreement()
    assert max(found.values()) < 1e-9, found


@pytest.mark.parametrize("name", ["panda", "a1", "talos_reduced", "baxter"])
def test_whole_robots_are_those_of_mujoco(name: str):
    """The second judge; mimic joints as joints of their own."""
    mujoco = pytest.importorskip("mujoco", reason="MuJoCo, which this compares with, is not installed")
    text = plain(ET.parse(robot(name)).getroot())
    keep = '<mujoco><compiler fusestatic="false" discardvisual="true"/></mujoco></robot>'
    model = mujoco.MjModel.from_xml_string(text.replace("</robot>", keep))
    model.dof_damping[:] = model.dof_frictionloss[:] = model.dof_armature[:] = 0
    arm, data = armdyn.load(text, snap=0), mujoco.MjData(model)
    order = [mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_JOINT, joint.name) for joint in arm.joints]
    q, qd = np.random.default_rng(0).uniform(-1, 1, (2, arm.n))
    data.qpos[order], data.qvel[order] = q, qd
    mujoco.mj_forward(model, data)
    H = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, H)
    assert relative(arm.kernel("inertia_matrix", "denoc", "python")(q), H[np.ix_(order, order)]) < 1e-12
    assert relative(arm.kernel("bias", "newton_euler", "python")(q, qd), data.qfrc_bias[order]) < 1e-12


def test_compiled_kernels_of_a_tree_with_mimic_joints():
    found = judge(robot("panda")).disagreement(backend="llvm")
    assert max(found.values()) < 1e-9, found


def test_the_order_is_depth_first_in_the_order_of_the_file():
    arm = armdyn.load(robot("panda"))
    names = [f"panda_joint{i}" for i in range(1, 8)] + ["panda_finger_joint1"]
    assert [joint.name for joint in arm.joints] == names
    assert arm.parents == (-1, 0, 1, 2, 3, 4, 5, 6, 6)
    assert (arm.n, len(arm.links), arm.link_poses(arm.rest).shape) == (8, 9, (9, 4, 4))
    assert arm.tips == ("panda_leftfinger", "panda_rightfinger")
    mimic = arm.chain.joints[8].mimic
    assert mimic is not None
    assert (mimic.joint, mimic.multiplier, mimic.offset) == (7, 1, 0)


def test_every_link_of_the_file_is_a_frame():
    arm = armdyn.load(robot("panda"), snap=0)
    q = np.linspace(0.1, 0.8, 8)
    oracle = judge(robot("panda"))
    model, data = oracle.model, oracle.model.createData()
    pin.framesForwardKinematics(model, data, oracle.configuration(q))
    for frame in arm.frames:
        truth = data.oMf[model.getFrameId(frame.name, pin.BODY)].homogeneous
        np.testing.assert_allclose(arm.kernel("pose", backend="python", frame=frame.name)(q), truth, atol=1e-12)


@pytest.mark.parametrize("floating", [False, True])
def test_a_tree_is_drawn_branch_by_branch(floating: bool):
    arm = armdyn.load(two(), floating=floating)
    line = arm.plot(engine="plotly").data[0]
    points = np.array([line.x, line.y, line.z], dtype=float).T
    assert np.isnan(points).all(axis=1).sum() == 1  # the pen is lifted once, before the head
    for origin in arm.dh_poses(arm.rest)[:, :3, 3]:
        assert np.isclose(points, origin).all(axis=1).any()


def test_without_a_frame_the_error_lists_the_tips():
    arm = armdyn.load(robot("panda").read_text().replace("panda_hand_tcp", "grasp"))
    for quantity in (arm.pose, arm.jacobian):
        with pytest.raises(
            InputError, match=r"give frame=, or load it with tool= .*one of panda_leftfinger, panda_rig"
        ):
            quantity(arm.rest)
    with pytest.raises(InputError, match=r"tool= .*one of panda_leftfinger, panda_rightfinger"):
        arm.with_payload(1.0)
    with pytest.raises(InputError, match="unknown frame 'hand'; available: grasp, panda_hand,"):
        arm.pose(arm.rest, frame="hand")
    held = arm.with_payload(1.0, (0, 0, 0.1), frame="panda_hand")
    assert held.mass == pytest.approx(arm.mass + 1)
    assert held.without_payload(1.0, (0, 0, 0.1), frame="panda_hand") == arm


@pytest.mark.parametrize("floating", [False, True])
def test_wrenches_at_several_frames_at_once(floating: bool):
    arm = armdyn.load(robot("panda"), floating=floating)
    rng = np.random.default_rng(4)
    q, qd, qdd = arm.rest + 0, *rng.normal(size=(2, arm.chain.nv))
    q[-arm.n :] = rng.uniform(-1, 1, arm.n)
    wrenches = {name: rng.normal(size=6) for name in ("panda_leftfinger", "panda_link3", "panda_link0")}
    force = arm.kernel("inverse_dynamics", "newton_euler", "python")
    pushed = sum(arm.kernel("jacobian", backend="python", frame=name)(q).T @ w for name, w in wrenches.items())
    np.testing.assert_allclose(force(q, qd, qdd, tool_wrench=wrenches), force(q, qd, qdd) - pushed, atol=1e-12)
    with pytest.raises(InputError, match=r"the wrench at 'panda_hand' must be .*; got \(3,\)"):
        force(q, qd, qdd, tool_wrench={"panda_hand": np.zeros(3)})


def test_wrenches_at_several_frames_are_compiled():
    arm = armdyn.load(two())
    q, wrenches = np.linspace(-1, 1, 5), {"finger": np.arange(6.0), "head": np.ones((3, 6))}
    pushed = arm.jacobian(q, frame="finger").T @ wrenches["finger"] + arm.jacobian(q, frame="head").T @ np.ones(6)
    got = arm.inverse_dynamics(q, q, q, tool_wrench=wrenches)
    np.testing.assert_allclose(got, np.tile(arm.inverse_dynamics(q, q, q) - pushed, (3, 1)), atol=1e-12)
    again = arm.forward_dynamics(q, q, got, tool_wrench=wrenches)
    np.testing.assert_allclose(again, np.tile(q, (3, 1)), atol=1e-11)


# --- one chain of a tree


def two(extra: str = "", limit: str = "", mimic: str = "") -> str:
    """A chest that leans, a shoulder with an arm on it, and a finger beside the hand."""
    body = '<inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>'
    links = "".join(f'<link name="{name}">{body}</link>' for name in ("root", "chest", "arm", "hand", "finger", "head"))

    def joint(name: str, parent: str, child: str, inside: str = "", axis: str = "0 1 0") -> str:
        ends = f'<parent link="{parent}"/><child link="{child}"/><origin xyz="0 0 0.5"/><axis xyz="{axis}"/>'
        return f'<joint name="{name}" type="revolute">{ends}{inside}</joint>'

    return (
        f'<robot name="two">{links}{joint("lean", "root", "chest")}{joint("shoulder", "chest", "arm", axis="0 0 1")}'
        f"{joint('wrist', 'arm', 'hand')}{joint('grip', 'hand', 'finger', limit + mimic)}"
        f"{joint('nod', 'chest', 'head')}{extra}</robot>"
    )


def test_a_base_below_the_root_keeps_gravity():
    arm = armdyn.load(two(), base="chest", tip="hand", lock={"lean": 0.3, "grip": 0.0})
    np.testing.assert_allclose(arm.gravity, [9.81 * np.sin(0.3), 0, -9.81 * np.cos(0.3)], atol=1e-12)
    whole = armdyn.load(two(), lock={"grip": 0.0})
    q = np.array([0.3, 0.4, -0.7, 0.0])
    np.testing.assert_allclose(arm.gravity_load(q[1:3]), whole.gravity_load(q)[1:3], atol=1e-12)
    resting = armdyn.load(two(), base="chest", tip="hand", lock="rest")
    np.testing.assert_allclose(resting.gravity, [0, 0, -9.81], atol=1e-12)
    assert "locked outside the robot: lean at 0" in " ".join(resting.notes)
    other = armdyn.load(two(), base="chest", tip="hand", lock="rest", gravity=(0, 0, -1.62))
    assert other.gravity == (0.0, 0.0, -1.62)


def test_the_rest_posture_is_zero_or_the_middle_of_the_range():
    limit = '<limit lower="0.2" upper="0.6" effort="1" velocity="1"/>'
    arm = armdyn.load(two(limit=limit))
    np.testing.assert_allclose(arm.rest, [0, 0, 0, 0.4, 0])
    chain = armdyn.load(two(limit=limit), tip="hand", lock="rest")
    assert chain.n == 3
    assert chain.notes == ("locked beside the chain: grip at 0.4 (mid-range, zero is outside its limits), nod at 0",)
    by_hand = armdyn.load(two(limit=limit), tip="hand", lock={"grip": 0.4, "*": "rest"})
    assert by_hand.chain == chain.chain
    floating = armdyn.load(two(), floating=True)
    np.testing.assert_allclose(floating.rest, [0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0])


def limited(kind: str, lower: float | None, upper: float | None):
    """The chosen range of a joint without a file: (lower, upper)."""
    puma = armdyn.load("puma560")
    joint = replace(puma.given.joints[0], kind=kind, limit=Limit(lower, upper))
    arm = replace(puma, given=replace(puma.given, joints=(joint, *puma.given.joints[1:])))
    return tuple(arm.working_range[0])


@pytest.mark.parametrize(
    ("kind", "limit", "expected"),
    [
        ("revolute", (None, None), (-np.pi, np.pi)),
        ("revolute", (-6.3, 6.3), (-np.pi, np.pi)),
        ("revolute", (-1.0, 2.0), (-1.0, 2.0)),
        ("revolute", (0.5, None), (0.5, np.pi)),
        ("revolute", (4.0, 5.0), (4.0, 5.0)),
        ("revolute", (-20.0, -4.0), (-4.0 - 2 * np.pi, -4.0)),
        ("revolute", (1.0, 1.0), (1.0, 1.0)),
        ("revolute", (2.0, -1.0), (-np.pi, np.pi)),
        ("prismatic", (None, None), (-0.5, 0.5)),
        ("prismatic", (0.0, 0.8), (0.0, 0.8)),
        ("prismatic", (1.0, None), (1.0, 1.5)),
        ("prismatic", (None, -2.0), (-2.5, -2.0)),
    ],
)
def test_every_joint_has_a_finite_range_to_work_in(kind, limit, expected):
    assert limited(kind, *limit) == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize("floating", [None, True])
def test_postures_are_configurations_within_the_limits(floating: bool | None):
    arm = armdyn.load(robot("panda"), floating=floating)
    q = arm.postures(np.random.default_rng(1), 500)
    assert q.shape == (500, arm.chain.nq)
    assert arm.postures(np.random.default_rng(1), 0).shape == (0, arm.chain.nq)
    joints, (low, high) = q[:, -arm.n :], arm.working_range.T
    assert (low <= joints.min(axis=0)).all()
    assert (joints.max(axis=0) <= high).all()
    assert (joints.max(axis=0) - joints.min(axis=0) > 0.97 * (high - low)).all()
    if floating:
        assert not q[:, :3].any()
        np.testing.assert_allclose(np.linalg.norm(q[:, 3:7], axis=1), 1, rtol=1e-15)


def test_joints_without_names_are_counted():
    arm = armdyn.load(robot("panda"))
    assert arm.joint_names == tuple(joint.name for joint in arm.joints)
    assert arm.chain.joint_names[-2:] == ("panda_finger_joint1", "panda_finger_joint2")
    assert len(arm.joint_names) == 8
    bare = armdyn.from_dh([(0, 0, 0.3, 0), (0.2, 1.5, 0, 0)])
    assert bare.joint_names == bare.chain.joint_names
    nameless = replace(bare, given=replace(bare.given, joints=tuple(replace(j, name="") for j in bare.given.joints)))
    assert nameless.joint_names == ("joint 1", "joint 2")


def test_errors_name_the_exact_remedy():
    with pytest.raises(InputError) as error:
        armdyn.load(two(), base="chest", tip="hand")
    assert "the chain to 'hand' also carries the moving joints grip" in str(error.value)
    remedy = (
        "armdyn.load(text, base='chest', tip='hand', lock='rest') (command line: --base chest --tip hand --lock rest)"
    )
    assert remedy in str(error.value)
    with pytest.raises(InputError, match="expected a finite number or 'rest'"):
        armdyn.load(two(), lock={"grip": "open"})


def test_mimics_of_mimics_and_of_joints_that_stand_still():
    extra = (
        '<link name="tip"/><joint name="last" type="prismatic"><parent link="finger"/><child link="tip"/>'
        '<mimic joint="grip" multiplier="3" offset="1"/></joint>'
    )
    mimic = '<mimic joint="wrist" multiplier="-2" offset="0.5"/>'
    arm = armdyn.load(two(extra, mimic=mimic))
    found = {joint.name: joint.mimic for joint in arm.chain.joints if joint.mimic}
    assert {name: (m.joint, float(m.multiplier), float(m.offset)) for name, m in found.items()} == {
        "grip": (2, -2.0, 0.5),
        "last": (2, -6.0, 2.5),
    }
    held = armdyn.load(two(extra, mimic=mimic), lock={"wrist": 0.1})
    assert [joint.name for joint in held.joints] == ["lean", "shoulder", "nod"]
    assert held.chain.bodies == 3
    free = armdyn.load(two(mimic='<mimic joint="nobody"/>'))
    assert free.n == 5
    assert "mimic a joint which is not in the file" in free.notes[0]


@pytest.mark.parametrize(
    ("own", "mimic", "other", "expected"),
    [
        (("0", "1"), "2 0", ("-1", "1"), (0.0, 0.5)),
        (("-1", "1"), "-2 0.5", ("-0.5", "1"), (-0.25, 0.5)),  # -2 q + 0.5 within (-0.5, 1)
        (("-1", "1"), "0 0.3", ("0.1", "0.2"), (-1.0, 1.0)),  # a follower that does not move narrows nothing
        (("0", "0.04"), "-1 0", ("0", "0.04"), (0.0, 0.04)),  # nothing would be left: a slip, and said so
    ],
)
def test_limits_of_a_follower_narrow_its_leaders(own, mimic, other, expected):
    def limit(ends: tuple[str, str], speed: float) -> str:
        return f'<limit lower="{ends[0]}" upper="{ends[1]}" velocity="{speed}" effort="1"/>'

    multiplier, offset = mimic.split()
    follows = f'<mimic joint="wrist" multiplier="{multiplier}" offset="{offset}"/>'
    text = two(limit=limit(other, 1.0), mimic=follows)
    at = text.index('<child link="hand"/>')
    arm = armdyn.load(text[:at] + limit(own, 3.0) + text[at:])
    k = [joint.name for joint in arm.joints].index("wrist")
    np.testing.assert_allclose(arm.limits[k], expected, atol=1e-15)
    assert arm.velocity_limits[k] == (1.0 / abs(float(multiplier)) if float(multiplier) else 3.0)
    low, high = arm.limits[k]
    assert low <= arm.rest[k] <= high
    odd = [str(finding) for finding in arm.check() if "mimics" in str(finding)]
    assert bool(odd) == (expected == (0.0, 0.04))


def test_floating_joints_of_a_file():
    floating = (
        '<link name="world"/><joint name="fly" type="floating"><parent link="world"/><child link="root"/>'
        '<origin xyz="1 2 3"/></joint>'
    )
    arm = armdyn.load(two(floating))
    assert (arm.floating, arm.n, arm.chain.joints[0].name) == (True, 5, "fly")
    assert [float(x) for x in arm.chain.base.p] == [1, 2, 3]
    held = armdyn.load(two(floating), floating=False)
    assert (held.floating, held.n) == (False, 5)
    assert "the floating joint 'fly' is locked at its origin" in held.notes[0]
    ball = '<link name="ball"/><joint name="roll" type="floating"><parent link="hand"/><child link="ball"/></joint>'
    with pytest.raises(InputError, match=r"joint 'roll' is floating.* Lock it with .*lock=\{'roll': 'rest'\}"):
        armdyn.load(two(ball))
    assert armdyn.load(two(ball), lock={"roll": "rest"}).n == 5


# --- files


@pytest.mark.parametrize("floating", [False, True])
@pytest.mark.parametrize("name", ["panda", "baxter", "a1"])
def test_saved_robots_are_equal(name: str, floating: bool, tmp_path):
    arm = armdyn.load(robot(name), floating=floating)
    arm.save(tmp_path / "robot.toml")
    assert armdyn.load(tmp_path / "robot.toml") == arm


@pytest.mark.parametrize("floating", [False, True])
def test_a_urdf_that_is_written_is_the_same_robot(floating: bool, tmp_path):
    arm = armdyn.load(robot("panda"), floating=floating, snap=0)
    arm.to_urdf(tmp_path / "out.urdf")
    again = armdyn.load(tmp_path / "out.urdf", snap=0)
    assert (again.floating, again.parents) == (floating, arm.parents)
    rng = np.random.default_rng(2)
    q, qd, qdd = rng.uniform(-1, 1, arm.chain.nq), *rng.uniform(-1, 1, (2, arm.chain.nv))
    if floating:
        q[3:7] /= np.linalg.norm(q[3:7])
    force = [a.kernel("inverse_dynamics", "newton_euler", "python")(q, qd, qdd) for a in (arm, again)]
    assert relative(force[1], force[0]) < 1e-12


def test_update_urdf_of_a_tree(tmp_path):
    arm = armdyn.load(two())
    heavier = arm.with_payload(1.0, (0.1, 0, 0), frame="head")
    source = tmp_path / "two.urdf"
    source.write_text(two())
    assert heavier.update_urdf(source, tmp_path / "new.urdf") == ["head"]
    assert armdyn.load(tmp_path / "new.urdf").mass == pytest.approx(arm.mass + 1)
    loose = armdyn.load(two(), floating=True)
    changed = loose.with_payload(1.0, frame="root")
    assert changed.update_urdf(source, tmp_path / "base.urdf", floating=True) == ["root"]


# --- MJCF


def mjcf(equality: str = "", extra: str = "") -> str:
    return (
        "<mujoco><compiler angle='radian'/><worldbody><body name='a'><joint name='lead' axis='0 1 0' ref='0.1'/>"
        "<geom size='0.1' pos='0.2 0 0'/>"
        "<body name='b' pos='0.3 0 0'><joint name='left' axis='1 0 0'/><geom size='0.1' pos='0 0.1 0'/></body>"
        "<body name='c' pos='0.3 0.1 0'><joint name='right' axis='0 0 1' ref='0.2' range='-1 1'/>"
        f"<geom size='0.1' pos='0 0 0.2'/></body></body>{extra}</worldbody>"
        f"<equality>{equality}</equality></mujoco>"
    )


@pytest.fixture
def model(tmp_path):
    pytest.importorskip("mujoco", reason="MJCF is read through the optional mujoco package")

    def write(*parts: str) -> Path:
        path = tmp_path / "model.xml"
        path.write_text(mjcf(*parts))
        return path

    return write


def test_a_branched_mjcf_is_what_mujoco_computes(model):
    import mujoco

    path = model()
    arm, theirs = armdyn.load(path, snap=0), mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(theirs)
    data.qpos, data.qvel = [0.3, -0.2, 0.5], [0.1, 0.7, -0.4]
    mujoco.mj_forward(theirs, data)
    H = np.zeros((3, 3))
    mujoco.mj_fullM(theirs, data, H)
    assert relative(arm.inertia_matrix(data.qpos), H) < 1e-12
    assert relative(arm.bias(data.qpos, data.qvel), data.qfrc_bias) < 1e-12


def test_joint_equalities_of_mjcf_are_mimic_joints(model):
    arm = armdyn.load(model("<joint joint1='right' joint2='lead' polycoef='0.05 2 0 0 0'/>"))
    assert [joint.name for joint in arm.joints] == ["lead", "left"]
    mimic = arm.chain.joints[2].mimic
    assert mimic is not None
    # q - 0.2 = 0.05 + 2 (q' - 0.1)
    assert (mimic.joint, float(mimic.multiplier), float(mimic.offset)) == (0, 2.0, pytest.approx(0.05))


def test_equalities_between_locked_joints_do_not_matter(model):
    loop = "<connect name='tie' body1='b' body2='c' anchor='0 0 0'/>"
    with pytest.raises(FileError, match=r"MJCF equality 'tie' ties 'b' to 'c'.*Lock the joints.*: left, right"):
        armdyn.load(model(loop))
    assert armdyn.load(model(loop), lock={"left": 0.0, "right": 0.0}).n == 1
    bent = "<joint joint1='right' joint2='lead' polycoef='0 1 1 0 0'/>"
    with pytest.raises(FileError, match="by a polynomial"):
        armdyn.load(model(bent))
    assert armdyn.load(model(bent), lock={"right": 0.0}).n == 2


def test_free_and_ball_joints_of_mjcf(model):
    ball = "<body name='d'><joint name='roll' type='ball'/><geom size='0.1'/></body>"
    whole = armdyn.load(model("", ball))
    assert [joint.name for joint in whole.joints][-3:] == ["roll_x", "roll_y", "roll_z"]
    assert "joint 'roll' is ball: read as roll_x, roll_y, roll_z" in whole.notes[-1]
    assert armdyn.load(model("", ball), tip="b", lock="rest").n == 2
    path = model()
    path.write_text(
        mjcf().replace("<joint name='lead'", "<freejoint name='fly'/><joint name='lead'").replace(" ref='0.1'", "")
    )
    with pytest.raises(FileError, match="MuJoCo cannot compile the model"):  # a free joint stands alone in its body
        armdyn.load(path)
    path.write_text(mjcf().replace("<joint name='lead' axis='0 1 0' ref='0.1'/>", "<freejoint name='fly'/>"))
    arm = armdyn.load(path)
    assert (arm.floating, arm.n) == (True, 2)


def test_mjcf_is_compiled_apart_and_stays_in_its_folder(model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = model()
    path.write_text(path.read_text().replace("<worldbody>", "<asset><mesh file='/etc/hostname'/></asset><worldbody>"))
    with pytest.raises(FileError, match=r"outside its own folder.*allow_outside=True.*--allow-outside"):
        armdyn.load(path)
    (tmp_path / "inner").mkdir()
    inner = tmp_path / "inner" / "model.xml"
    inner.write_text("<mujoco><include file='../model.xml'/></mujoco>")
    with pytest.raises(FileError, match="outside its own folder"):
        armdyn.load(inner)
    path.write_text(mjcf())
    assert armdyn.load(inner, allow_outside=True).n == 3
    path.write_text(mjcf().replace("<geom", "<geon"))
    with pytest.raises(FileError, match="MuJoCo cannot compile the model"):
        armdyn.load(path)
    assert not list(tmp_path.rglob("MUJOCO_LOG.TXT"))


def test_an_include_beside_the_model_loads_and_one_above_it_does_not(model, tmp_path):
    """Nothing but the place of the included file differs."""
    whole = model().read_text()
    (tmp_path / "inner").mkdir()
    for place, where in (("inner/part.xml", "part.xml"), ("part.xml", "../part.xml")):
        (tmp_path / place).write_text(whole)
        outer = tmp_path / "inner" / "outer.xml"
        outer.write_text(f"<mujoco><include file='{where}'/></mujoco>")
        if place == "inner/part.xml":
            assert armdyn.load(outer).n == 3
            continue
        with pytest.raises(FileError, match=r"'\.\./part\.xml' from outside its own folder"):
            armdyn.load(outer)


def test_a_crash_of_the_compiler_is_an_error_of_ours(model, monkeypatch):
    from armdyn.files import mjcf_compile

    bad = Path(mjcf_compile.__file__).with_name("mjcf_compile.py")
    crash = model().with_name("crash.py")
    crash.write_text("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n")
    monkeypatch.setattr(mjcf_compile, "__file__", str(crash))
    with pytest.raises(FileError, match="MuJoCo's compiler ended with code -11"):
        armdyn.load(model())
    assert bad.exists()


# --- tables


def test_from_dh_in_both_conventions():
    rows = [(0.0, 0.1, 0.2, np.pi / 2), (0.3, 0.0, 0.4, 0.0), {"kind": "prismatic", "d": 0.1, "name": "slide"}]
    arm = armdyn.from_dh(rows, "standard")
    q = np.array([0.3, -0.5, 0.2])
    T = np.eye(4)
    for (theta, d, a, alpha), move in zip([rows[0], rows[1], (0.0, 0.1, 0.0, 0.0)], q, strict=True):
        turn, slide = (theta, d + move) if move == q[2] else (theta + move, d)
        c, s, ca, sa = np.cos(turn), np.sin(turn), np.cos(alpha), np.sin(alpha)
        T = T @ [[c, -s * ca, s * sa, a * c], [s, c * ca, -c * sa, a * s], [0, sa, ca, slide], [0, 0, 0, 1]]
    np.testing.assert_allclose(arm.pose(q), T, atol=1e-12)
    again = armdyn.from_dh(
        [{"theta": 0.2, "d": 0.1, "a": 0.3, "alpha": -np.pi / 2, "mass": 1, "com": (0.1, 0, 0)}], "modified"
    )
    joint = again.joints[0]
    assert (float(joint.b), joint.beta.radians, float(joint.d), again.mass) == (0.3, -np.pi / 2, 0.1, 1.0)
    with pytest.raises(InputError, match="unknown convention 'craig'; available: standard, modified"):
        armdyn.from_dh(rows, "craig")
    with pytest.raises(InputError, match=r"row 1 must be \(theta, d, a, alpha\)"):
        armdyn.from_dh([(0, 0, 0)])
    with pytest.raises(InputError, match="unknown key of row 1 'aplha'"):
        armdyn.from_dh([{"aplha": 0}])
    with pytest.raises(InputError, match=r"tool must be a pose: .* got R with determinant -1"):
        armdyn.from_dh(rows, tool=np.diag([1, 1, -1, 1]))


def test_a_standard_table_shows_everything_that_is_in_it():
    arm = armdyn.load("puma560").with_tool([0, 0, 0.1], [0, 0.5, 0])
    table = arm.to_standard_dh()
    text = str(table)
    assert "tool: xyz 0 0 0.1, rpy 0 0.5 0" in text
    assert text.splitlines()[0].split() == [
        *("joint", "kind", "theta", "[rad]", "d", "[m]", "a", "[m]", "alpha", "[rad]", "mass", "[kg]"),
        *("centre", "of", "mass", "[m]"),
    ]
    html = table._repr_html_()
    assert html.count("<tr>") == 7
    assert "tool: xyz" in html
    with pytest.raises(ComputationError, match="one chain"):
        armdyn.load(two()).to_standard_dh()


# --- inverse kinematics


def test_inverse_kinematics_in_batches_with_limits_and_frames():
    arm = armdyn.load(robot("panda"))
    rng = np.random.default_rng(0)
    low, high = arm.limits.T
    q = rng.uniform(low, high, (20, arm.n))
    poses = arm.pose(q, frame="panda_leftfinger")
    found = arm.inverse_kinematics(poses, q0=q + rng.uniform(-0.05, 0.05, q.shape), frame="panda_leftfinger")
    assert found.q.shape == (20, 8)
    assert found.converged.sum() >= 18
    reached = arm.pose(found.q[found.converged], frame="panda_leftfinger")
    np.testing.assert_allclose(reached, poses[found.converged], atol=1e-8)
    assert ((found.q >= low - 1e-12) & (found.q <= high + 1e-12)).all()
    assert found.message == f"{found.converged.sum()} of 20 poses reached"
    with pytest.raises(InputError, match="inverse kinematics needs a fixed base"):
        armdyn.load(robot("panda"), floating=True).inverse_kinematics(np.eye(4), frame="panda_hand")


# --- the command line


def test_the_command_line_cuts_a_chain(tmp_path):
    path = tmp_path / "two.urdf"
    path.write_text(two())
    run = CliRunner()
    shown = run.invoke(app, ["show", str(path), "--tip", "hand", "--lock", "rest", "--json"])
    assert shown.exit_code == 0, shown.output
    assert '"n": 3' in shown.output
    held = run.invoke(app, ["eval", str(path), "gravity_load", "--lock", "grip=0.1", "--lock", "nod", "--json"])
    assert held.exit_code == 0, held.output
    out = run.invoke(app, ["convert", str(path), str(tmp_path / "out.toml"), "--floating"])
    assert out.exit_code == 0, out.output
    assert armdyn.load(tmp_path / "out.toml").floating


def test_every_command_that_takes_an_arm_takes_the_cut():
    taking = 0
    for name in set(COMMANDS) - {"cache"}:
        own = inspect.signature(import_module(f"armdyn.cli.{name}_").command, eval_str=True).parameters.values()
        marked = any(ROBOT in getattr(p.annotation, "__metadata__", ()) for p in own)
        options = command(name).params
        assert marked == ({"base", "tip", "lock", "floating", "allow_outside"} <= {p.name for p in options}), name
        named = [p.name for p in options if "catalogue name" in (p.help or "")]
        assert marked or not named, f"{name}: {named} is a robot, and not marked as one"
        loads = re.search(r"\bload\(\w", Path(import_module(f"armdyn.cli.{name}_").__file__).read_text())
        assert marked or not loads or name == "list", f"{name} loads a robot that is not marked as one"
        taking += marked
    assert taking >= 12
