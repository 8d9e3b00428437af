"""The arm file: exact both ways, and clear about what is wrong with a bad one."""

from __future__ import annotations

import os
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import armdyn
import oracles
from armdyn.algebra import Angle, Sym3, Vec3
from armdyn.chain import Chain, Joint, Limit, Link, Placement
from armdyn.errors import ComputationError, FileError
from armdyn.files import dh, toml
from armdyn.files.description import Description, Frame, decimal_text, from_rpy, number_text, rational, rpy_of
from comparing import close

BAD = sorted((Path(__file__).parent / "bad_files").glob("*.toml"))
CUTS = [cut for file in oracles.robots() for cut in oracles.cuts(file)]
MODEST = settings(max_examples=60)

angles = st.one_of(
    st.sampled_from([0.0, np.pi / 2, -np.pi / 2, np.pi, 1.5708]), st.floats(-7, 7, allow_subnormal=False)
)
decimals = st.one_of(
    st.just(Fraction(0)),
    st.decimals(-9, 9, places=4).map(Fraction),
    st.floats(-5, 5).map(Fraction),  # binary fractions with up to a thousand digits
    st.fractions(-3, 3, max_denominator=50),  # thirds and sevenths, that no decimal writes
)
vectors = st.builds(Vec3, decimals, decimals, decimals)
links = st.builds(Link, st.one_of(st.just(Fraction(0)), decimals), vectors, st.builds(Sym3, *[decimals] * 6))
placements = st.builds(Placement, st.builds(from_rpy, angles, angles, angles), vectors)
limits = st.builds(Limit, *[st.one_of(st.none(), st.floats(-9, 9))] * 4)
names = st.text(max_size=8).filter(
    lambda s: ("\ud800" not in s and s.isprintable()) or s in ('"', "\\", "a\nb", "\x7f")
)
joints = st.builds(
    Joint,
    kind=st.sampled_from(["revolute", "prismatic"]),
    b=decimals,
    beta=angles.map(Angle.of),
    d=decimals,
    theta=angles.map(Angle.of),
    gamma=st.sampled_from([0.0, 1e-3, -2e-5]).map(Angle.of),
    name=names,
    limit=limits,
    rotor_inertia=decimals,
    viscous=decimals,
    coulomb=decimals,
)


@st.composite
def descriptions(draw):
    n = draw(st.integers(1, 3))
    chain = Chain(
        tuple(draw(joints) for _ in range(n)),
        tuple(draw(links) for _ in range(n)),
        draw(vectors),
        draw(placements),
        draw(placements),
    )
    frames = draw(
        st.lists(st.builds(Frame, names, st.integers(0, n), placements), max_size=2, unique_by=lambda f: f.name)
    )
    return Description(draw(names), chain, draw(names), tuple(frames))


@settings(max_examples=30)
@given(descriptions())
def test_round_trip_is_exact(arm):
    again = toml.parse(toml.text(arm).encode(), "text")
    assert again == arm
    assert toml.text(again) == toml.text(arm)


@pytest.mark.parametrize("name", armdyn.catalogue())
def test_saved_catalogue_arm_is_equal(name, tmp_path):
    arm = armdyn.load(name)
    arm.save(tmp_path / "arm.toml")
    again = armdyn.load(tmp_path / "arm.toml")
    assert again == arm
    assert hash(again) == hash(arm)
    assert again.source == arm.source


def test_given_numbers_are_written_back_and_snapped_ones_computed_with(tmp_path):
    text = toml.text(armdyn.load("puma560").description).replace("beta = 1.5707963267948966", "beta = 1.5708")
    (tmp_path / "arm.toml").write_text(text)
    arm = armdyn.load(tmp_path / "arm.toml")
    assert arm.chain == armdyn.load("puma560").chain
    assert 3e-6 < arm.snapped.largest_angle < 4e-6
    arm.save(tmp_path / "again.toml")
    assert (tmp_path / "again.toml").read_text() == text
    assert armdyn.load(tmp_path / "arm.toml", snap=0).chain != arm.chain


@pytest.mark.parametrize("file", BAD, ids=[file.stem for file in BAD])
def test_bad_file_gets_a_clear_message(file):
    expected = file.read_text().splitlines()[0].removeprefix("# ")
    with pytest.raises(FileError) as caught:
        armdyn.load(file)
    assert expected in str(caught.value)
    assert file.name in str(caught.value)


def test_files_that_are_none(tmp_path):
    with pytest.raises(FileError, match=r"no arm 'pumma': no such file, and the catalogue has .*puma560"):
        armdyn.load("pumma")
    (tmp_path / "arm.csv").write_text("")
    with pytest.raises(FileError, match=r"unknown kind of file '.csv'; expected one of .toml, .urdf"):
        armdyn.load(tmp_path / "arm.csv")
    (tmp_path / "latin.toml").write_bytes(b'name = "\xe9"\n')
    with pytest.raises(FileError, match="not valid TOML: 'utf-8'"):
        armdyn.load(tmp_path / "latin.toml")
    with pytest.raises(armdyn.ArmdynError, match=r"unknown link of puma560 for tip .hand.; available: base, link1"):
        armdyn.load("puma560", tip="hand")
    with pytest.raises(armdyn.ArmdynError, match="snap must be"):
        armdyn.load("puma560", snap=1.0)


def test_writing_is_whole_or_nothing(tmp_path, monkeypatch):
    arm = armdyn.load("planar3")
    target = tmp_path / "arm.toml"
    arm.save(target)
    before = target.read_text()

    def broken(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", broken)
    with pytest.raises(FileError, match="cannot be written"):
        arm.with_gravity([0, 0, -1]).save(target)
    assert target.read_text() == before
    assert list(tmp_path.iterdir()) == [target]
    with pytest.raises(FileError, match="cannot be written"):
        arm.save(tmp_path / "nowhere" / "arm.toml")


@given(st.fractions(max_denominator=10**9))
@MODEST
def test_a_number_text_is_the_number(x):
    text = number_text(x)
    assert rational(text.strip('"') if "/" in text else Decimal(text)) == x
    assert (decimal_text(x) is None) == ("/" in text)


@given(st.tuples(angles, angles, angles))
@MODEST
def test_rpy_of_a_rotation(rpy):
    R = from_rpy(*rpy)
    found = rpy_of(R)
    assert found is None or from_rpy(*found) == R


def standard_transform(a, alpha, d, theta):
    ca, sa, ct, st_ = np.cos(alpha), np.sin(alpha), np.cos(theta), np.sin(theta)
    return np.array(
        [[ct, -st_ * ca, st_ * sa, a * ct], [st_, ct * ca, -ct * sa, a * st_], [0, sa, ca, d], [0, 0, 0, 1]]
    )


STANDARD = """
convention = "standard"
gravity = [0.3, 0.2, -9.81]
base = {{ xyz = [0.1, 0, 0.2], rpy = [0, 0.3, 0] }}
tool = {{ xyz = [0, 0.05, 0.1], rpy = [0.2, 0, 0] }}
{joints}
"""


@st.composite
def standard_tables(draw):
    small = st.sampled_from([0.0, 0.1, -0.25, 0.4])
    turn = st.sampled_from([0.0, np.pi / 2, -np.pi / 2, np.pi, 0.7, -1.1])
    return [
        (draw(st.sampled_from(["revolute", "prismatic"])), draw(small), draw(turn), draw(small), draw(turn))
        for _ in range(draw(st.integers(1, 5)))
    ]


@given(standard_tables())
@MODEST
def test_standard_tables_are_converted(rows):
    link = "{ mass = 2.0, com = [0.1, -0.2, 0.05], inertia = [0.03, 0.04, 0.05, 0.001, 0.002, 0.003] }"
    text = "".join(
        f'[[joint]]\nkind = "{kind}"\na = {a}\nalpha = {alpha}\nd = {d}\ntheta = {theta}\nlink = {link}\n'
        for kind, a, alpha, d, theta in rows
    )
    found = toml.parse(STANDARD.format(joints=text).encode(), "text")
    arm = armdyn.Arm("standard", found.chain, 0.0)
    q = np.linspace(-1, 1, len(rows)) + 0.1
    T, centres = np.array(to_floats(found.chain.base)), []
    for (kind, a, alpha, d, theta), x in zip(rows, q, strict=True):
        turning = kind == "revolute"
        T = T @ standard_transform(a, alpha, d + (0 if turning else x), theta + (x if turning else 0))
        centres.append((T @ [0.1, -0.2, 0.05, 1])[:3])
    tool = np.eye(4)
    tool[:3, :3] = [[1, 0, 0], [0, np.cos(0.2), -np.sin(0.2)], [0, np.sin(0.2), np.cos(0.2)]]
    tool[:3, 3] = [0, 0.05, 0.1]
    python = {name: arm.kernel(name, backend="python") for name in ("pose", "potential_energy", "link_poses")}
    close(python["pose"](q), T @ tool, 1e-13)
    close(python["potential_energy"](q), -2.0 * sum(centres) @ [0.3, 0.2, -9.81], 1e-12)
    # and back: the last row's a and α stand in the tool
    table = dh.to_standard(found.chain)
    assert [row.a for row in table.rows[:-1]] == [Fraction(str(row[1])) for row in rows[:-1]]
    assert [row.alpha for row in table.rows[:-1]] == [Angle.of(row[2]) for row in rows[:-1]]
    assert table.tool == found.chain.tool
    assert table.rows[-1].link == found.chain.links[-1]
    com = Vec3(Fraction("0.1"), Fraction("-0.2"), Fraction("0.05"))
    if all(angle.is_right for angle in (Angle.of(row[2]) for row in rows)):
        assert all(row.link.com == com for row in table.rows[:-1])


def to_floats(placement):
    rows = [[float(x) for x in (*row, p)] for row, p in zip(placement.R.rows, placement.p, strict=True)]
    return [*rows, [0, 0, 0, 1]]


def test_nearly_parallel_axes_have_no_standard_table():
    arm = armdyn.load("planar3")
    first, second, third = arm.given.joints
    tilted = replace(arm, given=replace(arm.given, joints=(first, replace(second, gamma=Angle.of(1e-4)), third)))
    assert "joint2" in str(arm.to_standard_dh())
    with pytest.raises(ComputationError, match=r"'joint2' has gamma = 0\.0001 rad"):
        tilted.to_standard_dh()


def test_base_and_tool_are_snapped_too():
    text = toml.text(armdyn.load("planar3").description)
    text = text.replace("gravity", "base = { xyz = [0, 1e-9, 0.5], rpy = [1.5708, 0, 0] }\ngravity", 1)
    found = toml.parse(text.encode(), "text")
    arm = armdyn.Arm("tilted", found.chain)
    assert arm.chain.gravity_in_frame_0 == Vec3(0, 0, Fraction("9.81"))
    assert 3e-6 < arm.snapped.largest_angle < 4e-6
    assert arm.snapped.largest_length == 1e-9
    assert not armdyn.Arm("tilted", found.chain, snap=0.0).snapped.changes


@pytest.mark.parametrize(
    "cut", [cut for file in oracles.robots() for cut in oracles.cuts(file)][::9], ids=lambda c: c.id
)
def test_saved_urdf_arm_is_equal(cut, tmp_path):
    """Frames placed on any axes, with rotations that no roll, pitch and yaw of floats give exactly."""
    arm = cut.arm()
    arm.save(tmp_path / "arm.toml")
    again = armdyn.load(tmp_path / "arm.toml", snap=arm.snap)
    assert again == arm
    assert again.fingerprint == arm.fingerprint
