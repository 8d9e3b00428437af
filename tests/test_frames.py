"""Normal driving-axis frames for axes standing anywhere."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import armdyn
from armdyn.algebra import Vec3
from armdyn.chain import Placement
from armdyn.chain.frames import NEARLY, PARALLEL, GivenBody, build
from armdyn.errors import InputError
from oracles import Pinocchio, arm_of, disagreement, relative, robots, slowly

INERTIAL = """<inertial><mass value="{mass}"/><origin xyz="0.03 -0.02 0.05" rpy="0.1 0.2 0.3"/>
<inertia ixx="0.02" iyy="0.025" izz="0.015" ixy="0.001" ixz="-0.002" iyz="0.0015"/></inertial>"""


def urdf_text(joints: list[tuple[str, str, str, str]]) -> str:
    """A chain of (kind, xyz, rpy, axis)."""
    parts = ['<link name="l0"/>']
    for i, (kind, xyz, rpy, axis) in enumerate(joints, 1):
        limit = '<limit lower="-3" upper="3" effort="1" velocity="1"/>'
        parts.append(f'<link name="l{i}">{INERTIAL.format(mass=0.5 + 0.25 * i)}</link>')
        parts.append(
            f'<joint name="j{i}" type="{kind}"><parent link="l{i - 1}"/><child link="l{i}"/>'
            f'<origin xyz="{xyz}" rpy="{rpy}"/><axis xyz="{axis}"/>{limit}</joint>'
        )
    return f'<robot name="made">{"".join(parts)}</robot>'


def state(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.uniform(-2, 2, n), rng.uniform(-1, 1, n), rng.uniform(-1, 1, n)


def judged(text: str, seed: int = 0) -> tuple[armdyn.Arm, dict[str, float]]:
    arm = arm_of(text)
    q, qd, qdd = state(arm.n, seed)
    truth = Pinocchio.of(text, "l0", f"l{arm.n}").all(q, qd, qdd)
    return arm, disagreement(arm, truth, q, qd, qdd)


# --- axes a little off parallel

EPSILONS = [10.0**-k for k in range(1, 13)]


@pytest.mark.parametrize("about", ["x", "y", "both"])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_nearly_parallel_axes_lose_no_digits(epsilon: float, about: str):
    rpy = {"x": f"{epsilon!r} 0 0", "y": f"0 {epsilon!r} 0", "both": f"{epsilon!r} {-epsilon!r} 0.3"}[about]
    text = urdf_text(
        [
            ("revolute", "0 0 0.3", "0 0 0", "0 0 1"),
            ("revolute", "0 0.1 0.2", "-1.5707963267948966 0 0", "0 0 1"),
            ("revolute", "0.6 0.1 -0.05", rpy, "0 0 1"),
            ("revolute", "0.5 0.2 0.1", rpy, "0 0 -1"),
            ("revolute", "0.05 0.02 0.1", "1.5707963267948966 0 0", "0 0 1"),
        ]
    )
    arm, errors = judged(text)
    assert max(errors.values()) < 1e-10, errors
    assert max(abs(float(x)) for joint in arm.joints for x in (joint.b, joint.d)) < 0.1 * 500
    q, qd, qdd = state(5)
    truth = Pinocchio.of(text, "l0", "l5").all(q, qd, qdd)
    truth["forward_dynamics"] = qdd
    asked = {"inertia_matrix": (q,), "bias": (q, qd), "inverse_dynamics": (q, qd, qdd), "gravity_load": (q,)}
    asked["forward_dynamics"] = (q, qd, truth["inverse_dynamics"])
    for quantity, inputs in asked.items():
        for method in armdyn.methods(quantity):
            got = arm.kernel(quantity, method=method, backend="python")(*inputs)
            assert relative(got, truth[quantity]) < 1e-10, (quantity, method)


def test_the_fifth_parameter_is_used_only_between_its_bounds():
    for k in range(1, 14):
        epsilon = 5 * 10.0**-k
        # The axes pass 0.1 m apart along x and tilt towards each other, which only γ can say.
        text = urdf_text([("revolute", "0 0 0", "0 0 0", "0 0 1"), ("revolute", "0.1 0 0", f"0 {epsilon} 0", "0 0 1")])
        arm = arm_of(text)
        assert (arm.joints[1].gamma.radians != 0) == (PARALLEL < epsilon < NEARLY)
        assert ("nearly parallel" in {f.what for f in arm.check()}) == (PARALLEL < epsilon < NEARLY)


def test_snap_takes_nearly_parallel_axes_as_parallel(tmp_path):
    path = tmp_path / "arm.urdf"
    path.write_text(
        urdf_text([("revolute", "0 0 0", "0 0 0", "0 0 1"), ("revolute", "0.1 0 0", "0 0.000004 0", "0 0 1")])
    )
    joint = armdyn.load(path).joints[1]
    assert joint.beta.radians == joint.gamma.radians == 0
    assert armdyn.load(path, snap=0).joints[1].gamma.radians == pytest.approx(4e-6)


# --- any geometry

RIGHT = ["0", "1.5707963267948966", "-1.5707963267948966", "3.141592653589793"]
lengths = st.one_of(st.just("0"), st.sampled_from(["0.1", "-0.25", "0.3"]))
triples = st.tuples(lengths, lengths, lengths).map(" ".join)
right_turns = st.tuples(*(st.sampled_from(RIGHT),) * 3).map(" ".join)
any_turns = st.tuples(*(st.floats(-3, 3).map(lambda x: repr(round(x, 3))),) * 3).map(" ".join)
axes = st.sampled_from(["1 0 0", "0 1 0", "0 0 1", "-1 0 0", "0 -1 0", "0 0 -1"])
odd_axes = st.sampled_from(["1 1 0", "0.3 -0.2 0.9", "0 0.6 0.8", "-1 2 -2"])
kinds = st.sampled_from(["revolute", "revolute", "prismatic", "continuous"])
special = st.tuples(kinds, triples, right_turns, axes)
general = st.tuples(kinds, triples, st.one_of(right_turns, any_turns), st.one_of(axes, odd_axes))


@settings(max_examples=60)
@given(joints=st.lists(special, min_size=1, max_size=6), seed=st.integers(0, 9))
def test_right_angled_chains(joints, seed):
    arm, errors = judged(urdf_text(joints), seed)
    assert max(errors.values()) < 1e-10, errors
    assert errors["pose"] < 1e-12
    for joint in arm.joints:
        assert joint.beta.is_right
        assert joint.gamma.radians == 0


@settings(max_examples=60)
@given(joints=st.lists(st.one_of(special, general), min_size=1, max_size=6), seed=st.integers(0, 9))
def test_any_chain(joints, seed):
    _, errors = judged(urdf_text(joints), seed)
    assert max(errors.values()) < 1e-10, errors
    assert errors["pose"] < 1e-12


@settings(max_examples=40)
@given(joints=st.lists(special, min_size=2, max_size=6))
def test_freedom_is_used(joints):
    """Frame 0 on frame 1; nothing after the last axis; d = 0 on the first of two parallel turning axes."""
    arm = arm_of(urdf_text(joints))
    first, last = arm.joints[0], arm.joints[-1]
    assert (first.b, first.d, first.beta.radians, first.theta.radians) == (0, 0, 0, 0)
    assert (last.d, last.theta.radians) == (0, 0) or last.kind == "prismatic"
    for joint, after in zip(arm.joints, arm.joints[1:], strict=False):
        if after.beta.sin == 0 and joint.kind == after.kind == "revolute":
            assert joint.d == 0


# --- what is free becomes zero

HALF = "1.5707963267948966"


def parameters(joints: list[tuple[str, str, str, str]]) -> list[tuple[float, float, float, float]]:
    arm = arm_of(urdf_text(joints))
    return [(float(j.b), j.beta.radians, float(j.d), j.theta.radians) for j in arm.joints]


def test_parallel_axes_from_the_start_have_no_d():
    found = parameters(
        [
            ("revolute", "0 0 0.4", "0 0 0", "0 0 1"),
            ("revolute", "0.3 0 0.1", "0 0 0", "0 0 1"),
            ("revolute", "0.2 0 -0.3", "0 0 0", "0 0 1"),
            ("revolute", "0.1 0 0.25", f"{HALF} 0 0", "0 0 1"),
        ]
    )
    assert [d for _, _, d, _ in found] == [0, 0, 0, 0]
    assert [b for b, _, _, _ in found] == [0, 0.3, 0.2, 0.1]


def test_parallel_axes_within_an_arm_leave_their_d_to_the_last():
    found = parameters(
        [
            ("revolute", "0 0 0.4", "0 0 0", "0 0 1"),
            ("revolute", "0 0 0", f"{HALF} 0 0", "0 0 1"),
            ("revolute", "0.3 0 0.1", "0 0 0", "0 0 1"),
            ("revolute", "0.2 0 0.05", "0 0 0", "0 0 1"),
            ("revolute", "0 0 0.01", f"{HALF} 0 0", "0 0 1"),
        ]
    )
    assert [d for _, _, d, _ in found] == [0, 0, 0, pytest.approx(0.16), 0]


def test_coincident_axes_have_no_offset_and_no_turn():
    found = parameters(
        [
            ("revolute", "0 0 0.4", "0 0 0", "0 0 1"),
            ("revolute", "0 0 0.1", "0 0 0.7", "0 0 1"),
            ("revolute", "0 0 0.2", "3.141592653589793 0 0.2", "0 0 1"),
            ("revolute", "0.5 0 0.3", "1 0 0", "0 0 1"),
        ]
    )
    assert [(d, theta) for _, _, d, theta in found] == [(0, 0)] * 4
    assert [beta for _, beta, _, _ in found[:3]] == [0, 0, math.pi]
    assert [b for b, _, _, _ in found[:3]] == [0, 0, 0]


def test_a_sliding_axis_goes_where_the_others_are():
    """A wrist far from the slide, as drawings have it: the slide is taken through the wrist."""
    found = parameters(
        [
            ("revolute", "0 0 0.4", "0 0 0", "0 0 1"),
            ("revolute", "0 0 0", f"{HALF} 0 0", "0 0 1"),
            ("prismatic", "0.07 0.03 0.11", f"{HALF} 0 0", "0 0 1"),
            ("revolute", "-0.07 0.02 0.3", "0 0 0", "0 0 1"),
            ("revolute", "0 0 0", f"{HALF} 0 0", "0 0 1"),
        ]
    )
    nonzero = [x for b, _, d, _ in found for x in (b, d) if x != 0]
    assert len(nonzero) <= 2, found


def test_a_gantry_has_no_lengths_at_all():
    found = parameters(
        [
            ("prismatic", "0.1 0.2 0.3", "0 0 0", "1 0 0"),
            ("prismatic", "0.3 0.2 0.1", "0 0 0", "0 1 0"),
            ("prismatic", "0.2 0.2 0.2", "0 0 0", "0 0 1"),
            ("revolute", "0.1 0 0.3", "0 0 0", "0 0 1"),
        ]
    )
    assert [x for b, _, d, _ in found for x in (b, d)] == [0] * 8


# --- exact constants

RIGHT_ANGLED = ["ur10_robot", "ur5_robot", "xarm7", "kinova", "talos_left_arm"]


@pytest.mark.parametrize("name", RIGHT_ANGLED)
def test_right_angled_arms_have_exact_decimals(name: str):
    """Nothing but the file's decimals, added and multiplied: no denominators but powers of two and five."""
    arm = armdyn.load(next(file for file in robots() if file.stem == name))
    for joint in arm.joints:
        assert joint.beta.is_right
        assert joint.theta.is_right
    numbers = [x for joint in arm.joints for x in (joint.b, joint.d)]
    numbers += [x for link in arm.links for x in link.natural]
    for x in numbers:
        assert isinstance(x, Fraction)
        assert 10**60 % x.denominator == 0


def test_the_ur10_reads_as_its_maker_writes_it():
    arm = armdyn.load(next(file for file in robots() if file.stem == "ur10_robot"))
    F = Fraction
    assert [j.b for j in arm.joints] == [0, 0, F("0.612"), F("0.5723"), 0, 0]
    assert [j.d for j in arm.joints] == [0, 0, 0, F("0.163941"), F("0.1157"), 0]
    assert arm.links[0].mass == F("7.778")
    assert arm.links[1].moment == Vec3(F("12.93") * F("0.306"), 0, F("12.93") * F("0.220941"))
    assert arm.snapped.largest_angle < 1e-11


def test_odd_angles_that_undo_each_other_leave_right_ones():
    """A bracket bent by 0.3 rad and another bent back: gravity is along z again, not 1e-17 off it."""
    fixed = """<link name="bracket{i}"/><joint name="f{i}" type="fixed"><parent link="{a}"/><child link="bracket{i}"/>
    <origin xyz="0.1 0.2 0.3" rpy="{rpy}"/></joint>"""
    bent = fixed.format(i=1, a="l0", rpy="0.3 0.7 0") + fixed.format(i=2, a="bracket1", rpy="-0.3 0 0")
    bent += fixed.format(i=3, a="bracket2", rpy="0 -0.7 0")
    text = urdf_text([("revolute", "0 0 0.3", "0 0 0", "0 0 1"), ("revolute", "0.3 0 0", "0 0 0", "0 0 1")])
    text = text.replace('<parent link="l0"/>', '<parent link="bracket3"/>').replace("</robot>", f"{bent}</robot>")
    arm, errors = judged(text)
    assert arm.chain.gravity_in_frame_0 == Vec3(0, 0, Fraction("-9.81"))
    assert max(errors.values()) < 1e-10


# --- axes given in base coordinates


def test_axes_in_base_coordinates():
    """Every body's frame is the base's at q = 0; the axes stand where they are said to."""
    bodies = [
        GivenBody("revolute", Placement(), Vec3(0, 0, 1), Vec3(0, 0, 0)),
        GivenBody("revolute", Placement(), Vec3(0, 1, 0), Vec3(Fraction(1, 10), 0, Fraction(1, 2))),
        GivenBody("prismatic", Placement(), Vec3(1, 0, 0), Vec3(0, 0, Fraction(7, 10))),
    ]
    chain, own = build(bodies)
    arm = armdyn.Arm("made", chain, 0.0)
    assert len(own) == 3
    q = np.zeros(3)
    np.testing.assert_allclose(slowly(arm, "pose")(q), np.eye(4), atol=1e-15)
    J = slowly(arm, "jacobian")(q)
    np.testing.assert_allclose(J[3:, :2].T, [[0, 0, 1], [0, 1, 0]], atol=1e-15)
    # the velocity of the base's origin under joint 2: axis × (0 - point)
    np.testing.assert_allclose(J[:3, 1], np.cross([0, 1, 0], [-0.1, 0, -0.5]), atol=1e-15)
    np.testing.assert_allclose(J[:3, 2], [1, 0, 0], atol=1e-15)


def test_no_bodies_no_chain():
    with pytest.raises(InputError, match="at least one moving joint"):
        build([])
