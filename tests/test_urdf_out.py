"""URDF out: what others read from it is the same arm; in-place updates touch the inertias alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import armdyn
from armdyn.algebra import Angle
from armdyn.chain import Limit
from armdyn.errors import InputError
from armdyn.files import arrays, urdf, urdf_out
from armdyn.files.description import Frame
from comparing import close, pinocchio_of

MODEST = settings(max_examples=15)


@st.composite
def arms(draw):
    """Random links on random or special geometry."""
    kinds = draw(st.text("RP", min_size=1, max_size=5))
    arm = armdyn.generic_arm(kinds, draw(st.integers(0, 20)))
    angle = st.sampled_from([0.0, np.pi / 2, -np.pi / 2, np.pi, 0.3, -1.2])
    length = st.sampled_from([0.0, 0.25, -0.1])
    joints = tuple(
        replace(
            joint,
            b=arrays.number(draw(length), "b"),
            d=arrays.number(draw(length), "d"),
            beta=Angle.of(draw(angle)),
            theta=Angle.of(draw(angle)),
            gamma=Angle.of(draw(st.sampled_from([0.0, 0.0, 1e-3]))),
            limit=draw(st.sampled_from([Limit(), Limit(-1.0, 2.0, 3.0, 4.0)])),
            viscous=arrays.number(0.5, "viscous"),
        )
        for joint in arm.given.joints
    )
    arm = replace(arm, given=replace(arm.given, joints=joints))
    return arm.with_base([0.1, 0, 0.3], [draw(angle), 0.2, draw(angle)]).with_tool([0, 0.1, 0.2], [0, draw(angle), 0])


def plain(arm, quantity, *values):
    return arm.kernel(quantity, backend="python")(*values)


def forces_close(arm, got, expected):
    """To 1e-10 of the largest force, or of the arm's weight where forces cancel to nothing."""
    close(got, expected, 1e-10, scale=max(np.abs(expected).max(), 9.81 * arm.mass))


@given(arms())
@MODEST
def test_out_and_in_again_is_the_same_arm(arm):
    """URDF -> Arm -> URDF -> Arm: the frames are placed anew, the motion and the forces are the same."""
    first = urdf.read(urdf_out.text(arm.description), tip="tool", snap=0)
    again = urdf.read(urdf_out.text(first), tip="tool", snap=0)
    q, qd = np.linspace(-1, 1, arm.n) + 0.2, np.linspace(1, -1, arm.n) + 0.1
    for description in (first, again):
        other = armdyn.Arm("other", description.chain, 0.0)
        assert [j.name for j in other.joints] == [j.name for j in arm.joints]
        assert [j.viscous for j in other.joints] == [j.viscous for j in arm.joints]
        close(plain(other, "pose", q), plain(arm, "pose", q), 1e-11)
        close(plain(other, "inertia_matrix", q), plain(arm, "inertia_matrix", q), 1e-10)
        forces_close(arm, plain(other, "bias", q, qd), plain(arm, "bias", q, qd))


@given(arms())
@MODEST
def test_pinocchio_reads_the_same_arm(arm):
    oracle = pinocchio_of(arm, urdf_out.text(arm.description))
    q, qd = np.linspace(-1, 1, arm.n) + 0.2, np.linspace(1, -1, arm.n) + 0.1
    close(plain(arm, "inertia_matrix", q), oracle.inertia_matrix(q), 1e-10)
    forces_close(arm, plain(arm, "bias", q, qd), oracle.bias(q, qd))
    close(plain(arm, "pose", q), oracle.pose(q, "tool"), 1e-11)


def test_names_never_clash(tmp_path):
    arm = armdyn.load("planar3")
    frames = tuple(Frame(name, k, arm.given.tool) for k, name in enumerate(["base", "tool", "link2", 'a "b" <c>']))
    joints = tuple(replace(joint, name="same") for joint in arm.given.joints)
    arm = replace(arm, frames=frames, given=replace(arm.given, joints=joints))
    arm.to_urdf(tmp_path / "arm.urdf")
    again = armdyn.load(tmp_path / "arm.urdf", tip="tool_2")
    assert [joint.name for joint in again.joints] == ["same", "same_2", "same_3"]
    assert {"base", "base_2", "tool", "tool_2", "link2", 'a "b" <c>'} <= {frame.name for frame in again.frames}


ORIGINAL = """<?xml version="1.0"?>\r
<robot name="two">   <!-- a comment with <link name="upper"> in it -->\r
\t<link name="ground"/>\r
\t<link name='upper' note="a > b">\r
\t\t<visual><geometry><box size="1 1 1"/></geometry></visual>\r
\t\t<inertial>\r
\t\t\t<mass value="2.0"/> <origin xyz="0.1 0 0" rpy="0 0 0.5"/>\r
\t\t\t<inertia ixx="0.1" ixy="0" ixz="0" iyy="0.2" iyz="0" izz="0.2"/>\r
\t\t</inertial>\r
\t</link>\r
\t<link name="bare"/>\r
\t<link name="tip"><inertial><mass value="0.5"/><inertia ixx="0.01" iyy="0.01" izz="0.01"\r
ixy="0" ixz="0" iyz="0"/></inertial></link>\r
\t<joint name="j1" type="revolute"><parent link="ground"/><child link="upper"/><origin xyz="0 0 1" rpy="0.3 0 0"/>\r
\t\t<axis xyz="0 1 0"/><limit lower="-1" upper="1" effort="1" velocity="1"/></joint>\r
\t<joint name="j2" type="continuous"><parent link="upper"/><child link="bare"/><origin xyz="0.4 0 0"/>\r
\t\t<axis xyz="0 0 1"/></joint>\r
\t<joint name="f" type="fixed"><parent link="bare"/><child link="tip"/><origin xyz="0.2 0 0"/></joint>\r
</robot>\r
"""


@pytest.fixture
def original(tmp_path):
    path = tmp_path / "two.urdf"
    path.write_bytes(ORIGINAL.encode())
    return path


def test_update_without_changes_is_the_same_file(original, tmp_path):
    assert armdyn.load(original).update_urdf(original, tmp_path / "out.urdf") == []
    assert (tmp_path / "out.urdf").read_bytes() == original.read_bytes()


@pytest.mark.parametrize("changed", [(0,), (1,), (0, 1)])
def test_update_changes_the_inertias_alone(original, tmp_path, changed):
    arm = armdyn.load(original)
    extra = armdyn.generic_arm("RR", 3).links
    new = arm.with_links(tuple(link + extra[k] if k in changed else link for k, link in enumerate(arm.given.links)))
    names = new.update_urdf(original, tmp_path / "out.urdf")
    assert names == sorted({0: "upper", 1: "bare"}[k] for k in changed)
    again = armdyn.load(tmp_path / "out.urdf")
    q, qd = np.array([0.3, -0.7]), np.array([1.0, 2.0])
    close(plain(again, "inertia_matrix", q), plain(new, "inertia_matrix", q), 1e-12)
    close(plain(again, "bias", q, qd), plain(new, "bias", q, qd), 1e-12)
    kept = [line for line in ORIGINAL.splitlines() if "mass" not in line and "inertia " not in line]
    written = (tmp_path / "out.urdf").read_bytes().decode()
    bare = '\t<link name="bare"/>'
    assert [line for line in kept if line not in written.splitlines() and (line != bare or 1 not in changed)] == []
    assert written.count("\n") == written.count("\r\n")


def test_update_of_another_arm_is_refused(original, tmp_path):
    with pytest.raises(InputError, match="it has the joints j1, j2, this arm joint1, joint2, joint3"):
        armdyn.load("planar3").update_urdf(original, tmp_path / "out.urdf")
    assert not (tmp_path / "out.urdf").exists()
