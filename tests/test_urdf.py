"""URDF in: what is merged, locked, refused; and what a user is told."""

from __future__ import annotations

import pickle
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import armdyn
from armdyn.errors import ArmdynError, FileError, InputError
from armdyn.files import urdf
from armdyn.files.urdf_tree import MOST_LINKS
from armdyn.files.urdf_xml import DEEPEST, LARGEST_FILE
from oracles import Pinocchio, cuts, relative, robots

BAD = Path(__file__).parent / "bad_files"


def robot(name: str) -> Path:
    return next(file for file in robots() if file.stem == name)


# --- files that cannot be read

MESSAGES = {
    "broken_xml": "broken_xml.urdf: not well-formed XML: mismatched tag: line 1",
    "comma_xyz": "line 1: joint 'j': origin xyz expects finite decimal numbers, got '0,1'",
    "cycle": "the joints form a loop: link 'a' is not connected to a root link",
    "cycle_beside": "the joints form a loop: link 'a' is not connected to a root link",
    "doctype": "line 1: a document type (<!DOCTYPE>) is not allowed in a URDF",
    "empty": "empty.urdf: not well-formed XML: no element found",
    "entity_bomb": "a document type (<!DOCTYPE>) is not allowed in a URDF",
    "expression": "joint 'j': origin rpy expects finite decimal numbers, got '${pi/2}'; a xacro expression: expand",
    "external_entity": "a document type (<!DOCTYPE>) is not allowed in a URDF",
    "floating": "floating.urdf: no moving joint below link 'a'",
    "infinite": "joint 'j': origin xyz expects finite decimal numbers, got '1e999'",
    "mimic_circle": "joint 'j' mimics itself: j > k > j",
    "nameless_joint": "line 1: <joint> without name",
    "nameless_link": "line 1: <link> without name",
    "nan": "link 'b': mass value expects finite decimal numbers, got 'nan'",
    "no_child": "joint 'j' has no <child>",
    "no_kind": "joint 'j' has the unknown type None; available: revolute, continuous, prismatic, fixed",
    "no_links": "no_links.urdf: the robot has no links",
    "no_moving_joint": "no moving joint below link 'a'; an arm needs at least one",
    "no_parent": "joint 'j' has no <parent>",
    "no_robot": "line 1: expected <robot>, got <mujoco>",
    "not_xml": "not_xml.urdf: not well-formed XML: syntax error: line 1",
    "short_xyz": "joint 'j': origin xyz expects 3 numbers, got '0 0'",
    "two_joints_one_name": "two joints are named 'j'",
    "two_links_one_name": "two links are named 'a'",
    "two_parents": "link 'c' is the child of two joints, 'j' and 'k'",
    "two_roots": "more than one root link: 'a', 'b'; expected one tree",
    "undefined_entity": "not well-formed XML: undefined entity",
    "unknown_kind": "joint 'j' has the unknown type 'hinge'; available: revolute",
    "unknown_link": "joint 'j' names the unknown link 'b'",
    "xacro": "the robot has no links; its xacro tags were ignored: expand the file with `xacro` first",
    "zero_axis": "joint 'j' has the axis 0 0 0; expected a nonzero vector",
}


def test_every_bad_file_has_its_message():
    assert {file.stem for file in BAD.glob("*.urdf")} == set(MESSAGES)


@pytest.mark.parametrize("name", MESSAGES)
def test_bad_files(name: str):
    with pytest.raises(ArmdynError) as error:
        armdyn.load(BAD / f"{name}.urdf")
    assert MESSAGES[name] in str(error.value)


def test_deep_nesting_is_refused_quickly(tmp_path):
    path = tmp_path / "deep.urdf"
    path.write_text('<robot name="r">' + "<a>" * 9_000_000)
    with pytest.raises(FileError, match=f"nested more than {DEEPEST} deep"):
        armdyn.load(path)


def test_large_files_are_refused_unread(tmp_path):
    path = tmp_path / "large.urdf"
    with path.open("wb") as file:
        file.truncate(100 * 2**20)
    with pytest.raises(FileError, match=f"at most {LARGEST_FILE} bytes are read"):
        armdyn.load(path)
    with pytest.raises(FileError, match=f"at most {LARGEST_FILE} are read"):
        urdf.read("<robot>" + " " * LARGEST_FILE)


def test_endless_trees_are_refused():
    links = "".join(f'<link name="l{i}"/>' for i in range(2 * MOST_LINKS + 1))
    with pytest.raises(FileError, match=f"at most {MOST_LINKS} links"):
        urdf.read(f'<robot name="r">{links}</robot>')


def test_numbers_that_would_fill_the_memory():
    text = single('<origin xyz="1e-999999999 0 0"/>')
    assert urdf.read(text).chain.n == 1
    text = single(f'<origin xyz="0.{"3" * 100_000} 0 0"/>')
    assert urdf.read(text).chain.base.p.x == Fraction("0.3333333333333333")


@settings(max_examples=60)
@given(st.data())
def test_damaged_files_give_errors_of_ours(data):
    text = robot("ur5_robot").read_text()
    cut = data.draw(st.integers(0, len(text)))
    noise = data.draw(st.text(max_size=5))
    try:
        urdf.read(text[:cut] + noise + text[cut + data.draw(st.integers(0, 30)) :])
    except ArmdynError:
        return


def test_missing_file():
    with pytest.raises(FileError, match=r"nowhere\.urdf"):
        armdyn.load("nowhere.urdf")
    with pytest.raises(FileError, match="cannot be read"):
        urdf.read(Path("nowhere.urdf"))
    with pytest.raises(FileError, match="cannot be read"):
        urdf.read("no\0where.urdf")


# --- what is in a file


def single(inside: str = "", link: str = "") -> str:
    return (
        f'<robot name="one"><link name="a"/><link name="b">{link}</link><joint name="j" type="revolute">'
        f'<parent link="a"/><child link="b"/>{inside}</joint></robot>'
    )


BODY = """<inertial><mass value="2"/><origin xyz="0 0 0"/>
<inertia ixx="1" iyy="2" izz="2.5" ixy="0" ixz="0" iyz="0"/></inertial>"""


def test_dynamics_and_limits():
    limit = '<limit lower="-1" upper="2" effort="3" velocity="4"/>'
    text = single(f'<axis xyz="0 0 2"/><dynamics damping="0.5" friction="0.25"/>{limit}')
    joint = urdf.read(text).chain.joints[0]
    assert (joint.viscous, joint.coulomb, joint.rotor_inertia) == (Fraction(1, 2), Fraction(1, 4), 0)
    assert (joint.limit.lower, joint.limit.upper, joint.limit.effort, joint.limit.velocity) == (-1, 2, 3, 4)
    unlimited = urdf.read(single().replace("revolute", "continuous")).chain.joints[0]
    assert (unlimited.kind, unlimited.limit.lower) == ("revolute", None)


def test_meshes_materials_and_extensions_are_passed_by():
    extra = (
        '<material name="red"><color rgba="1 0 0 1"/></material><transmission name="t"><joint name="j"/></transmission>'
    )
    seen = '<visual><origin xyz="nonsense"/><geometry><mesh filename="package://x.stl"/></geometry></visual>'
    text = single(link=seen).replace("</robot>", f"{extra}<gazebo><joint name='j'/></gazebo></robot>")
    assert urdf.read(text).chain == urdf.read(single()).chain


def test_missing_inertial_is_massless():
    found = urdf.read(single())
    assert found.chain.links[0].mass == 0
    arm = armdyn.Arm(found.name, found.chain)
    assert [finding.what for finding in arm.check()] == ["no inertia"]


def test_fixed_joints_are_merged_with_their_inertia():
    """Two bodies of 2 kg, 1 m apart on a fixed joint turned by a quarter."""
    tail = (
        f'<link name="c">{BODY}</link><joint name="f" type="fixed"><parent link="b"/>'
        '<child link="c"/><origin xyz="1 0 0" rpy="0 0 1.5707963267948966"/></joint></robot>'
    )
    text = single('<axis xyz="0 0 1"/>', BODY).replace("</robot>", tail)
    link = urdf.read(text).chain.links[0]
    assert link.natural == (4, 2, 0, 0, 1 + 2, 0, 2 + 1 + 2, 0, 0, 2.5 + 2.5 + 2)
    assert {frame.name: frame.link for frame in urdf.read(text).frames} == {"a": 0, "b": 1, "c": 1}


def test_the_tool_is_the_last_moving_link_if_no_frame_is_named_like_one():
    file = robot("ur5_robot")
    q = np.array([0.3, -1.1, 0.7, 0.2, -0.4, 0.9])
    arm = armdyn.load(file.read_text().replace("tool0", "bolt").replace("ee_link", "bracket"))
    truth = Pinocchio.of(cuts(file)[0].text(), "world", "wrist_3_link").all(q, q, q)["pose"]
    np.testing.assert_allclose(arm.pose(q), truth, atol=1e-11)
    tool = Pinocchio.of(cuts(file)[0].text(), "world", "tool0").all(q, q, q)["pose"]
    np.testing.assert_allclose(armdyn.load(file, tip="tool0").pose(q), tool, atol=1e-11)
    np.testing.assert_allclose(arm.pose(q, frame="bolt"), tool, atol=1e-11)


def test_base_below_the_root():
    file = robot("ur5_robot")
    arm = armdyn.load(file, base="shoulder_link", tip="wrist_3_link")
    assert arm.n == 5
    assert arm.joints[0].name == "shoulder_lift_joint"


def test_cutting_errors_say_what_there_is():
    panda = robot("panda")
    with pytest.raises(InputError) as error:
        armdyn.load(panda, tip="panda_hand_tcp")
    assert "also carries the moving joints panda_finger_joint1, panda_finger_joint2" in str(error.value)
    assert "armdyn.load('panda.urdf', tip='panda_hand_tcp', lock='rest')" in str(error.value)
    assert "(command line: --tip panda_hand_tcp --lock rest)" in str(error.value)
    with pytest.raises(InputError, match="select the chain, as in tip='panda_hand_tcp'"):
        armdyn.load(panda, lock="rest")
    handed = Path(panda).read_text(encoding="utf-8").replace("panda_hand_tcp", "panda_grasp")
    with pytest.raises(InputError, match="select the chain, as in tip='panda_hand'"):
        armdyn.load(handed, lock="rest")
    with pytest.raises(InputError, match=r"unknown joint of panda\.urdf to lock 'finger'; available: panda_joint1"):
        armdyn.load(panda, lock={"finger": 0})
    with pytest.raises(InputError, match=r"unknown link of panda\.urdf for tip 'tool'; available: panda_link0"):
        armdyn.load(panda, tip="tool")
    with pytest.raises(InputError, match="'panda_link0' is not below base 'panda_link3'"):
        armdyn.load(panda, base="panda_link3", tip="panda_link0")
    with pytest.raises(InputError, match="cannot be locked at nan"):
        armdyn.load(panda, lock={"panda_finger_joint1": float("nan")})
    locked = {"panda_finger_joint1": 0.01, "panda_finger_joint2": 0.01}
    assert armdyn.load(panda, lock=locked).n == armdyn.load(panda, tip="panda_hand_tcp", lock=locked).n == 7


def test_what_the_base_carries_needs_no_lock():
    """Baxter's other arm and its head hang on the torso, which stands still."""
    fingers = {f"l_gripper_{side}_finger_joint": 0.0 for side in "lr"}
    assert armdyn.load(robot("baxter"), tip="left_gripper", lock=fingers).n == 7


def test_snapping_is_reported():
    arm = armdyn.load(robot("xarm7"))
    assert len(arm.snapped) == 6
    assert 3e-6 < arm.snapped.largest_angle < 4e-6
    assert str(arm.snapped) == "snapped 6 angles by at most 3.7e-06 rad"
    assert len(armdyn.load(robot("xarm7"), snap=0).snapped) == 0


def test_arms_from_urdf_are_values():
    arm = armdyn.load(robot("ur5_robot"))
    assert arm == armdyn.load(robot("ur5_robot"))
    assert pickle.loads(pickle.dumps(arm)) == arm


@pytest.mark.parametrize("name", ["ur10_robot", "xarm7", "so101"])
def test_compiled_kernels_agree_with_pinocchio_at_the_same_q(name: str):
    file = robot(name)
    cut = cuts(file)[0]
    arm = armdyn.load(file, tip=cut.tip, snap=0)
    rng = np.random.default_rng(5)
    q, qd, qdd = rng.uniform(-2, 2, (3, arm.n))
    truth = Pinocchio.of(cut.text(), cut.base, cut.tip).all(q, qd, qdd)
    assert relative(arm.inertia_matrix(q), truth["inertia_matrix"]) < 1e-10
    assert relative(arm.inverse_dynamics(q, qd, qdd), truth["inverse_dynamics"]) < 1e-10
