"""What `arm.check()` finds, and what is no arm at all."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import armdyn
from armdyn.algebra import Angle, Sym3, Vec3
from armdyn.chain import Chain, Joint, Limit, Link
from armdyn.chain.joint import principal_moments
from armdyn.errors import InputError
from armdyn.files import urdf
from oracles import slowly

GOOD = armdyn.generic_arm("RRP")


def with_link(link: Link) -> armdyn.Arm:
    return GOOD.with_links((GOOD.links[0], link, GOOD.links[2]))


def with_joint(**changes: object) -> armdyn.Arm:
    first, second, third = GOOD.joints
    chain = replace(GOOD.given, joints=(first, replace(second, **changes), third))
    return armdyn.Arm("changed", chain, 0.0)


def found(arm: armdyn.Arm) -> list[tuple[str, str]]:
    return [(finding.where, finding.what) for finding in arm.check()]


def test_nothing_odd():
    assert GOOD.check() == []


def body(mass: float, com: tuple[float, float, float], *moments: float) -> Link:
    xx, yy, zz = (Fraction(str(m)) for m in moments)
    return Link.from_com(Fraction(str(mass)), Vec3(*(Fraction(str(c)) for c in com)), Sym3(xx, 0, yy, 0, 0, zz))


@pytest.mark.parametrize(
    ("link", "what", "words"),
    [
        (body(-1, (0, 0, 0), 1, 1, 1), "negative mass", "negative mass -1 kg"),
        (body(0, (0, 0, 0), 1, 1, 1), "mass", "zero mass"),
        (body(0, (0, 0, 0), 0, 0, 0), "no inertia", "missing <inertial>?"),
        (body(1, (0.1, 0, 0), 1, -0.5, 1), "definiteness", "principal moments -0.5, 1, 1"),
        (body(1, (0.1, 0, 0), 1, 1, 2.5), "triangle inequality", "2.5 > 2"),
        (body(1, (6.447, 0, 0), 1, 1, 1), "centre of mass", "6.45 m from its frame"),
    ],
)
def test_odd_links(link: Link, what: str, words: str):
    arm = with_link(link)
    assert found(arm) == [("link 2 (joint2)", what)]
    assert words in str(arm.check()[0])


def test_a_moment_without_mass():
    link = replace(body(0, (0, 0, 0), 1, 1, 1), moment=Vec3(1, 0, 0))
    assert ("link 2 (joint2)", "pseudo-inertia") in found(with_link(link))


def test_placeholders():
    cubes = tuple(body(m, (0.1, 0.2, 0), 0.1, 0.1, 0.1) for m in (1, 2, 3))
    assert found(GOOD.with_links(cubes)) == [("arm", "placeholder")]


@pytest.mark.parametrize(
    ("changes", "what", "words"),
    [
        ({"limit": Limit(2.0, -2.0)}, "limits", "swapped"),
        ({"limit": Limit(0.0, 0.0)}, "limits", "no room"),
        ({"limit": Limit(velocity=-1.0)}, "limits", "negative velocity"),
        ({"viscous": Fraction(-1)}, "viscous", "negative viscous -1"),
        ({"rotor_inertia": Fraction(-1)}, "rotor_inertia", "negative rotor inertia"),
        ({"beta": Angle.of(1e-4)}, "nearly parallel", "0.0001 rad off parallel to that of joint1"),
        ({"beta": Angle.of(math.pi - 1e-4)}, "nearly parallel", "0.0001 rad off parallel"),
        ({"beta": Angle.of(1.571)}, "few digits", "beta 1.571 looks like 1·π/2 written with few digits"),
        ({"theta": Angle.of(-3.14)}, "few digits", "theta -3.14 looks like -2·π/2"),
        ({"theta": Angle.of(1.57)}, "few digits", "a snap of 0.0009"),
    ],
)
def test_odd_joints(changes: dict[str, object], what: str, words: str):
    arm = with_joint(**changes)
    assert found(arm) == [("joint joint2", what)]
    assert words in str(arm.check()[0])


def test_snapped_angles_are_not_doubtful():
    arm = replace(with_joint(beta=Angle.of(1.5708)), snap=1e-5)
    assert found(arm) == []
    assert len(arm.snapped) == 1
    assert found(replace(arm, snap=0.0)) == [("joint joint2", "few digits")]


def test_few_digits_in_a_urdf_are_found_where_they_are_written():
    ends = '<parent link="l{a}"/><child link="l{i}"/><origin xyz="1 0 0" rpy="{rpy}"/>'
    mass = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1.5" ixy="0" ixz="0" iyz="0"/></inertial>'
    links, joints = '<link name="l0"/>', ""
    for i, rpy in ((1, "0 0 0"), (2, "0.2 1.571 0.4"), (3, "3.14159265 0 0")):
        links += f'<link name="l{i}">{mass}</link>'
        joints += f'<joint name="j{i}" type="revolute">{ends.format(a=i - 1, i=i, rpy=rpy)}</joint>'
    reading = urdf.read(f'<robot name="r">{links}{joints}</robot>')
    arm = armdyn.Arm("r", reading.chain, snapped_before=reading.snapped)
    assert [str(f) for f in arm.check() if f.what == "few digits"] == [
        "joint j2: pitch 1.571 looks like 1·π/2 written with few digits; a snap of 0.0002 would take it so"
    ]


def test_the_published_puma_is_odd_and_works():
    arm = armdyn.load("puma560")
    odd = found(arm)
    assert ("link 1 (waist)", "mass") in odd
    assert ("link 3 (elbow)", "triangle inequality") in odd
    assert np.all(np.isfinite(slowly(arm, "inertia_matrix")(np.zeros(6))))


@settings(max_examples=100)
@given(st.lists(st.floats(-5, 5), min_size=6, max_size=6))
def test_principal_moments(entries):
    J = Sym3(*entries)
    full = np.array([list(row) for row in J.full.rows])
    np.testing.assert_allclose(principal_moments(J), np.linalg.eigvalsh(full), atol=1e-12)


# --- what cannot be computed with

JOINT, LINK = GOOD.joints[1], GOOD.links[1]


def test_no_joints():
    with pytest.raises(InputError, match="at least one joint"):
        Chain((), ())


def test_wrong_number_of_links():
    with pytest.raises(InputError, match="got 1 links, 2 joints"):
        Chain((JOINT, JOINT), (LINK,))


def test_unknown_kind():
    with pytest.raises(InputError, match="unknown kind of joint joint2 'helical'; available: revolute, prismatic"):
        Chain((replace(JOINT, kind="helical"),), (LINK,))


@pytest.mark.parametrize("nonsense", [math.nan, math.inf])
def test_numbers_that_are_none(nonsense: float):
    with pytest.raises(InputError, match="joint joint2: every number must be finite"):
        Chain((replace(JOINT, b=nonsense),), (LINK,))
    with pytest.raises(InputError, match="link 1: every number must be finite"):
        Chain((JOINT,), (replace(LINK, mass=nonsense),))
    with pytest.raises(InputError, match="gravity: every number must be finite"):
        Chain((JOINT,), (LINK,), gravity=Vec3(0, nonsense, 0))


def test_joints_are_frozen():
    with pytest.raises(AttributeError):
        JOINT.b = 1  # type: ignore[misc]
    assert isinstance(JOINT, Joint)


def test_what_makes_results_wrong():
    wrong = with_link(body(-1, (0, 0, 0), 1, 1, 1)).check()
    assert [finding.wrong for finding in wrong] == [True]
    assert [finding.wrong for finding in with_link(body(0, (0, 0, 0), 0, 0, 0)).check()] == [True]
    assert not any(finding.wrong for name in armdyn.catalogue() for finding in armdyn.load(name).check())
