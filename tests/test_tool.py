"""One rule for what the tool is: for catalogue names, URDF, arm files, tables and MJCF alike."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

import armdyn
from armdyn.chain.chain import named_like_a_tool
from armdyn.cli import app
from armdyn.errors import FileError, InputError
from oracles import Pinocchio, robots

FILES = {path.stem: path for path in robots()}
TWO_HANDS = """
<robot name="two_hands"><link name="base"/>
{links}
</robot>"""
HAND = """
<link name="{side}_arm"><inertial><mass value="1"/><origin xyz="0.1 0 0"/>
<inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="{side}" type="continuous"><parent link="base"/><child link="{side}_arm"/><axis xyz="0 1 0"/></joint>
<link name="{side}_{end}"/><joint name="{side}_end" type="fixed"><parent link="{side}_arm"/><child link="{side}_{end}"/>
<origin xyz="0 {y} 0.3" rpy="0 0 0.4"/></joint>
"""


def two_hands(left: str, right: str) -> str:
    hands = [HAND.format(side=side, end=end, y=y) for side, end, y in (("l", left, 0.1), ("r", right, -0.2))]
    return TWO_HANDS.format(links="".join(hands))


@pytest.mark.parametrize(
    ("names", "like"),
    [
        (["flange", "gripper_tcp", "tool0", "ee_link"], ["tool0"]),
        (["flange", "gripper_tcp", "ee_link"], ["gripper_tcp"]),
        (["left_tcp", "right_tcp", "ee_link"], ["left_tcp", "right_tcp"]),
        (["flange", "link_eef"], ["link_eef"]),
        (["EndEffector_Link"], ["EndEffector_Link"]),
        (["iiwa_link_ee_kuka"], ["iiwa_link_ee_kuka"]),
        (["attachment_site", "arm_flange"], ["arm_flange"]),
        (["attachment", "ur5e/attachment_site"], ["ur5e/attachment_site"]),
        (["wheel", "left_knee", "steering", "reel_flange"], ["reel_flange"]),
        (["tool01", "tcp2x", "link6"], []),
    ],
)
def test_the_conventions_and_their_order(names, like):
    assert list(named_like_a_tool(names)) == like


@pytest.mark.parametrize(
    ("name", "file"), [("ur5", "ur5_robot"), ("ur10", "ur10_robot"), ("xarm7", "xarm7"), ("panda_hand", "panda")]
)
def test_a_catalogue_name_and_its_file_have_the_same_tool(name, file):
    mine, theirs = armdyn.load(name), armdyn.load(FILES[file])
    q, qd = np.random.default_rng(0).uniform(-1, 1, (2, 20, mine.n))
    assert mine.tool.name == theirs.tool.name
    assert mine.tool.link == theirs.tool.link
    np.testing.assert_allclose(mine.pose(q), theirs.pose(q), atol=1e-12)
    np.testing.assert_allclose(mine.pose(q), theirs.pose(q, frame=mine.tool.name), atol=1e-12)
    np.testing.assert_allclose(mine.jacobian_rate(q, qd), theirs.jacobian_rate(q, qd), atol=1e-12)
    held = [arm.with_payload(2.0, (0, 0, 0.1)).gravity_load(q) for arm in (mine, theirs)]
    np.testing.assert_allclose(*held, atol=1e-10)
    assert any(theirs.tool.name in note for note in theirs.notes)


def test_the_tool_agrees_with_pinocchio():
    file = FILES["ur5_robot"]
    q = np.array([0.3, -1.1, 0.7, 0.2, -0.4, 0.9])
    for tool in (None, "ee_link", "forearm_link"):
        truth = Pinocchio.of(file.read_text(), "world", tool or "tool0").all(q, q, q)
        arm = armdyn.load(file, tool=tool)
        assert arm.tool.name == (tool or "tool0")
        np.testing.assert_allclose(arm.pose(q), truth["pose"], atol=1e-11)
        np.testing.assert_allclose(arm.jacobian(q), truth["jacobian"], atol=1e-11)


@pytest.mark.parametrize("floating", [False, True])
def test_a_tool_on_a_branch_is_used_like_a_frame(floating):
    """Pose, Jacobians, wrench, payload, operational space and run-time payload refer to the tool that was named."""
    bare = armdyn.load(FILES["panda"].read_text().replace("panda_hand_tcp", "grasp"), floating=floating)
    arm = armdyn.load(FILES["panda"], tool="panda_hand_tcp", floating=floating)
    assert bare.tool is None
    rng = np.random.default_rng(1)
    q, (qd, qdd) = bare.rest, rng.uniform(-1, 1, (2, bare.chain.nv))
    q = q + (0 if floating else rng.uniform(-0.5, 0.5, bare.n))
    at = {"frame": "grasp"}
    np.testing.assert_allclose(arm.pose(q), bare.pose(q, **at), atol=1e-14)
    np.testing.assert_allclose(arm.jacobian(q), bare.jacobian(q, **at), atol=1e-14)
    np.testing.assert_allclose(arm.jacobian_rate(q, qd), bare.jacobian_rate(q, qd, **at), atol=1e-13)
    W = arm.operational_space_inertia_inverse(q)
    np.testing.assert_allclose(W, bare.operational_space_inertia_inverse(q, **at), rtol=1e-9, atol=1e-9)
    w = rng.uniform(-1, 1, 6)
    mine, theirs = arm.inverse_dynamics(q, qd, qdd, tool_wrench=w), bare.inverse_dynamics(
        q, qd, qdd, tool_wrench=w, frame="grasp"
    )  # fmt: skip
    np.testing.assert_allclose(mine, theirs, atol=1e-11)
    body = (1.5, (0.01, 0.02, 0.1), (0.01, 0.02, 0.02, 0, 0, 0))
    held = bare.with_payload(*body, frame="grasp").gravity_load(q)
    np.testing.assert_allclose(arm.with_payload(*body).gravity_load(q), held, atol=1e-11)
    parameters = arm.payload_parameters(*body)
    np.testing.assert_allclose(arm.gravity_load(q, parameters, parameters="runtime"), held, atol=1e-9)
    if not floating:
        reached = arm.inverse_kinematics(arm.pose(q), q + 0.05)
        assert reached, reached.message


def test_without_a_tool_the_robot_loads_and_says_what_can_be_named():
    arm = armdyn.load(two_hands("tcp", "tcp"))
    assert arm.tool is None
    assert "several frames are named like a tool (l_tcp, r_tcp): the robot has no default tool" in arm.notes[0]
    assert np.isfinite(arm.gravity_load(arm.rest)).all()
    for call in (lambda: arm.pose(arm.rest), lambda: arm.with_payload(1.0), lambda: arm.with_tool([0, 0, 0.1])):
        with pytest.raises(InputError, match=r"tool= \(command line: --tool\), one of l_tcp, r_tcp"):
            call()
    named = armdyn.load(two_hands("tcp", "tcp"), tool="r_tcp")
    assert (named.tool.name, named.tool.link) == ("r_tcp", 2)
    np.testing.assert_array_equal(named.pose([0.3, 0.4]), arm.pose([0.3, 0.4], frame="r_tcp"))
    with pytest.raises(InputError, match=r"unknown frame that moves, for tool, 'tcp'; available: .*l_tcp"):
        armdyn.load(two_hands("tcp", "tcp"), tool="tcp")
    with pytest.raises(InputError, match="tool must be the name of a frame"):
        armdyn.load("ur5", tool=[0, 0, 0.1])
    moved = arm.with_tool([0, 0, 0.1], frame="l_tcp")
    assert (moved.tool.name, moved.tool.link) == ("tool", 1)


@pytest.mark.parametrize("make", ["branch", "inner", "shifted", "end", "none", "renamed"])
def test_files_keep_the_tool(make, tmp_path):
    arm = {
        "branch": lambda: armdyn.load(two_hands("tool0", "tip")),
        "inner": lambda: armdyn.load(FILES["ur5_robot"], tool="forearm_link"),
        "shifted": lambda: armdyn.load("ur5").with_tool([0.1, 0.2, 0.3], [0, 0, 0.5]),
        "end": lambda: armdyn.load(FILES["ur5_robot"], tool="wrist_3_link"),
        "none": lambda: armdyn.load(two_hands("tip", "tip")),
        "renamed": lambda: armdyn.load("ur5", tool="tool0"),
    }[make]()
    arm.save(tmp_path / "arm.toml")
    again = armdyn.load(tmp_path / "arm.toml")
    assert again == arm
    assert again.tool == arm.tool
    assert again.fingerprint == arm.fingerprint
    arm.to_urdf(tmp_path / "arm.urdf")
    other = armdyn.load(tmp_path / "arm.urdf")
    if arm.tool is None:
        assert other.tool is None
        return
    assert other.tool.name == arm.tool.name
    q = np.random.default_rng(2).uniform(-1, 1, arm.n)
    np.testing.assert_allclose(other.pose(q), arm.pose(q), atol=1e-9)


def test_a_part_of_an_arm_file_keeps_the_tool(tmp_path):
    whole = armdyn.load("planar3")
    part = armdyn.load("planar3", base="link1")
    assert (part.tool.name, whole.tool.name) == ("tool", "tool")
    assert part.tool.placement == whole.tool.placement
    assert armdyn.load("ur5", lock={"elbow_joint": 0.3}).tool.name == "tool0"
    assert armdyn.load("ur5", tip="link3", lock="rest").tool.name == "link3"


def test_an_arm_file_says_which_link_carries_the_tool(tmp_path):
    arm = armdyn.load(two_hands("tool0", "tip"))
    arm.save(tmp_path / "arm.toml")
    text = (tmp_path / "arm.toml").read_text()
    assert "tool = { link = 1," in text
    (tmp_path / "bad.toml").write_text(text.replace("tool = { link = 1,", "tool = { link = 7,"))
    with pytest.raises(FileError, match="link must be a number from 1 to 2, got 7"):
        armdyn.load(tmp_path / "bad.toml")
    (tmp_path / "bad.toml").write_text(text.replace("tool = { link = 1,", "tool = { "))
    with pytest.raises(FileError, match="a robot with 2 tips needs the link that carries its tool"):
        armdyn.load(tmp_path / "bad.toml")


def test_a_table_has_its_tool_at_the_end():
    arm = armdyn.from_dh([(0, 0.3, 0.1, 0), (0, 0, 0.2, 0)])
    assert (arm.tool.name, arm.tool.link) == ("tool", 2)


def test_mjcf_follows_the_same_rule(tmp_path):
    model = """<mujoco model="m"><compiler angle="radian"/><worldbody><body name="upper"><joint name="a" axis="0 1 0"/>
    <geom type="capsule" size="0.05" fromto="0 0 0 0 0 0.3"/><body name="fore" pos="0 0 0.3">
    <joint name="b" axis="0 1 0"/>
    <geom type="capsule" size="0.05" fromto="0 0 0 0 0 0.2"/>{site}</body></body></worldbody></mujoco>"""
    (tmp_path / "m.xml").write_text(model.format(site='<site name="arm_tcp" pos="0 0 0.25"/><site name="camera"/>'))
    arm = armdyn.load(tmp_path / "m.xml")
    assert arm.tool.name == "arm_tcp"
    np.testing.assert_allclose(arm.pose([0, 0])[:3, 3], [0, 0, 0.55], atol=1e-12)
    (tmp_path / "m.xml").write_text(model.format(site='<site name="camera" pos="0 0 0.25"/>'))
    assert armdyn.load(tmp_path / "m.xml").tool.name == "fore"


def test_the_command_line_shows_and_takes_the_tool(tmp_path):
    run = CliRunner()
    shown = run.invoke(app, ["show", str(FILES["ur5_robot"])])
    assert "tool: tool0 on link 6, at xyz 0, 0, 0.0823 m" in shown.stdout
    other = run.invoke(app, ["show", "ur5", "--tool", "ee_link"])
    assert "tool: ee_link on link 6" in other.stdout
    (tmp_path / "two.urdf").write_text(two_hands("tcp", "tcp"))
    none = run.invoke(app, ["show", str(tmp_path / "two.urdf")])
    assert "tool: none, because there are several tips; name one with --tool" in none.stdout
    assert run.invoke(app, ["eval", str(tmp_path / "two.urdf"), "pose", "--q", "0,0", "--tool", "l_tcp"]).exit_code == 0


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["check", "ROBOT"], False),
        (["show", "ROBOT"], False),
        (["eval", "ROBOT", "gravity_load"], False),
        (["eval", "ROBOT", "pose"], True),
        (["eval", "ROBOT", "pose", "--frame", "r_tip"], False),
    ],
)
def test_a_tool_found_by_its_name_is_said_where_it_matters(command, said, tmp_path):
    file = tmp_path / "two.urdf"
    file.write_text(two_hands("tool0", "tip"))
    done = CliRunner().invoke(app, [str(file) if word == "ROBOT" else word for word in command])
    assert done.exit_code == 0, done.output
    assert ("the tool is the frame 'l_tool0', by its name" in done.stderr) == said
    assert any("by its name" in note for note in armdyn.load(file).notes)


def test_deployed_code_and_the_page_use_the_tool():
    from armdyn.deployment.request import Request
    from armdyn.pages.programs import tool_link

    arm = armdyn.load(two_hands("tip", "tool0"))
    assert tool_link(arm.chain) == 1
    assert {"pose", "jacobian", "payload_parameters"} <= set(Request(arm).wanted)
    bare = armdyn.load(two_hands("tip", "tip"))
    assert not {"pose", "jacobian", "payload_parameters"} & set(Request(bare).wanted)


def test_the_fingerprint_depends_on_the_tool_and_not_on_its_name():
    arm = armdyn.load(two_hands("tool0", "tip"))
    assert arm.fingerprint != armdyn.load(two_hands("tool0", "tip"), tool="r_tip").fingerprint
    assert arm.fingerprint == replace(arm, tool_name="hand").fingerprint


def test_a_calibration_measures_the_tool_of_a_branch():
    arm = armdyn.load(two_hands("tip", "tool0"))
    q = np.random.default_rng(3).uniform(-1, 1, (12, 2))
    true = arm.with_tool([0.002, -0.001, 0.003])
    done = armdyn.calibrate(arm, armdyn.Poses.of(q, true.pose(q)) if hasattr(armdyn, "Poses") else (q, true.pose(q)))
    np.testing.assert_allclose(done.arm.pose(q), true.pose(q), atol=1e-8)
    assert done.arm.tool.link == arm.tool.link
