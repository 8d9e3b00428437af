"""Robots without inertias, with negative masses and with inertias that no body can have."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from typer.testing import CliRunner

import armdyn
from armdyn.cli import app
from armdyn.errors import FileError, InputError
from armdyn.formulations import QUANTITIES


def inertial(mass: float = 1.0, ixx: float = 1.0, xyz: str = "0 0 0") -> str:
    return (
        f'<inertial><origin xyz="{xyz}"/><mass value="{mass}"/>'
        f'<inertia ixx="{ixx}" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    )


LIMIT = '<limit lower="-1" upper="1" effort="1" velocity="1"/>'


def two(first: str = inertial(), second: str = inertial(), tip: str = "") -> str:
    return (
        f'<robot name="two"><link name="a"/><link name="b">{first}</link><link name="c">{second}</link>'
        f'<link name="t">{tip}</link><joint name="j" type="revolute"><parent link="a"/><child link="b"/>'
        f'<axis xyz="0 0 1"/>{LIMIT}</joint><joint name="k" type="revolute"><parent link="b"/><child link="c"/>'
        f'<origin xyz="1 0 0"/><axis xyz="0 1 0"/>{LIMIT}</joint>'
        '<joint name="f" type="fixed"><parent link="c"/><child link="t"/><origin xyz="0 0 2"/></joint></robot>'
    )


def test_tips_that_look_like_a_gripper_without_mass_are_found():
    shape = '<visual><geometry><box size="1 1 1"/></geometry></visual>'

    def odd(text):
        return [f for f in armdyn.load(text).check() if f.what != "placeholder"]

    found = odd(two(tip=shape))
    assert [(f.what, f.wrong) for f in found] == [("weightless tip", False)]
    assert "inertia is not in the file?): t" in str(found[0])
    empty = inertial(0, 0).replace('="1"', '="0"')
    assert [f.what for f in odd(two(tip=empty + shape + shape))] == ["weightless tip"]
    for harmless in ("", inertial() + shape):  # a frame; a tool with its mass
        assert odd(two(tip=harmless)) == []
    onto = (
        '<link name="u"><inertial><mass value="1"/></inertial></link><joint name="h" type="fixed">'
        '<parent link="t"/><child link="u"/></joint></robot>'
    )
    assert odd(two(tip=shape).replace("</robot>", onto)) == []  # an adapter: the hand on it has the mass
    assert not any("second <visual>" in note for note in armdyn.load(two(tip=empty + shape + shape)).notes)


def test_a_missing_inertial_of_a_moving_link_is_a_note():
    assert armdyn.load(two()).notes == ()
    assert armdyn.load(two(second="", tip=inertial())).notes == ()  # the body of c and t has an inertia
    notes = armdyn.load(two(second="")).notes
    assert notes == ("without <inertial>, so that mass and inertia of these moving links are 0: c",)
    with pytest.raises(FileError, match="strict=True refuses it: without <inertial>"):
        armdyn.load(two(second=""), strict=True)


def test_without_any_inertia_there_is_kinematics_and_no_dynamics(tmp_path):
    arm = armdyn.load(two("", ""))
    assert arm.notes == ("without <inertial>, so that mass and inertia of these moving links are 0: b, c",)
    q = np.array([0.3, -0.4])
    full = armdyn.load(two())
    for name, quantity in QUANTITIES.items():
        inputs = [np.full(shape, 0.3) for _, shape in quantity.input_shapes(arm.chain)]
        if name == "payload_parameters":
            continue
        if quantity.massless:
            np.testing.assert_array_equal(getattr(arm, name)(*inputs), getattr(full, name)(*inputs))
        else:
            with pytest.raises(InputError, match=f"{name}: no link of this arm has a mass or an inertia"):
                arm.kernel(name)(*inputs)
    for call in (
        lambda: arm.emit_c(tmp_path),
        lambda: armdyn.simulate(arm, q, duration=0.1),
        lambda: arm.kernel("inertia_matrix", backend="numpy")(q),
        lambda: arm.kernel("forward_dynamics", derivatives=("q",))(q, q, q),
        lambda: armdyn.deploy(arm, tmp_path / "out", target="c"),
    ):
        with pytest.raises(InputError, match="no link of this arm has a mass"):
            call()
    assert arm.with_payload(1.0, (0.1, 0, 0)).inertia_matrix(q)[0, 0] > 0
    runtime = arm.kernel("inertia_matrix", parameters="runtime")
    np.testing.assert_allclose(runtime(q, full.minimal_parameters.values), full.inertia_matrix(q), atol=1e-12)
    code = CliRunner().invoke(app, ["deploy", str(saved(tmp_path, two("", ""))), "-o", str(tmp_path / "out")]).exit_code
    assert code != 0


def saved(tmp_path, text: str):
    path = tmp_path / "two.urdf"
    path.write_text(text)
    return path


def test_a_mass_below_zero_is_an_error(tmp_path):
    for cut in ({}, {"tip": "c"}, {"base": "a"}):
        with pytest.raises(FileError, match=r"link 'c' has the mass -2 kg: .* strict=False"):
            armdyn.load(two(second=inertial(-2)), **cut)
    arm = armdyn.load(two(second=inertial(-2)), strict=False)
    assert arm.mass == -1
    assert arm.notes == ("link 'c' has an inertia that no body can have: negative mass -2 kg",)
    arm.save(tmp_path / "negative.toml")
    with pytest.raises(FileError, match=r"negative.toml: link 2 \(k\) has the mass -2 kg"):
        armdyn.load(tmp_path / "negative.toml")
    assert armdyn.load(tmp_path / "negative.toml", strict=False) == arm
    np.testing.assert_allclose(arm.inertia_matrix([0.3, 0]), [[1 + 1 - 2 * 1**2, 0], [0, 1]], atol=1e-15)


def test_an_impossible_inertia_is_a_note():
    arm = armdyn.load(two(second=inertial(2, 3)))
    text = "link 'c' has an inertia that no body can have: principal moments 1, 1, 3 violate the triangle inequality"
    assert [note.split(": 3 >")[0] for note in arm.notes] == [text]
    with pytest.raises(FileError, match="strict=True refuses it: link 'c' has an inertia"):
        armdyn.load(two(second=inertial(2, 3)), strict=True)
    # two links of one body: the body is judged too
    merged = armdyn.load(two(second=inertial(2, 9), tip=inertial(0.1, 1, "0.1 0 0")))
    assert ["link 'c'" in merged.notes[0], "the body that joint 'k' moves" in merged.notes[1]] == [True, True]
    # a second link makes the body possible: only the link is not
    saved_by_the_other = armdyn.load(two(second=inertial(2, 2.1), tip=inertial(1, 1)))
    assert [note.split(" has")[0] for note in saved_by_the_other.notes] == ["link 'c'"]


def test_the_pumas_two_impossible_links_are_notes():
    notes = [note for note in armdyn.load("puma560").notes if "no body" in note]
    assert [note.split(" has an inertia that no body can have")[0] for note in notes] == [
        "link 1 (waist)",
        "link 3 (elbow)",
    ]
    with pytest.raises(FileError, match="puma560: strict=True refuses it: link 1"):
        armdyn.load("puma560", strict=True)
    others = (armdyn.load(name) for name in armdyn.catalogue() if name != "puma560")
    assert not any("no body can have" in note for arm in others for note in arm.notes)


def test_a_mass_without_inertia_is_a_point_mass():
    point = '<inertial><origin xyz="0.1 0 0.2"/><mass value="2"/></inertial>'
    arm = armdyn.load(two(second=point))
    assert arm.notes[0].endswith("link 'c': <inertial> has no <inertia>: taken as a point mass of 2 kg at its origin")
    zeros = point.replace("</inertial>", '<inertia ixx="0" iyy="0" izz="0" ixy="0" ixz="0" iyz="0"/></inertial>')
    model = pin.buildModelFromXML(two(second=zeros))
    q = np.array([0.3, -0.4])
    H = pin.crba(model, model.createData(), q)
    np.testing.assert_allclose(np.triu(arm.inertia_matrix(q)), np.triu(H), atol=1e-14)
    with pytest.raises(FileError, match="<inertial> has no <mass>"):
        armdyn.load(two(second="<inertial><origin xyz='0 0 0'/></inertial>"))
    with pytest.raises(FileError, match="<inertia> has no ixx, but 'Ixx'"):
        armdyn.load(two(second=inertial().replace("ixx", "Ixx")))


def test_strict_takes_three_values():
    with pytest.raises(InputError, match="strict must be True, False or None, got 'yes'"):
        armdyn.load("ur5", strict="yes")
