"""Frames of trees: every link stands where the file's placements put it, at any q; snapping; constants of forks."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from armdyn.algebra import Angle, Vec3, X, Y, Z
from armdyn.chain import Placement
from armdyn.chain.exactly import from_rpy
from armdyn.chain.frames import GivenBody, build


def matrix(placement: Placement) -> np.ndarray:
    T = np.eye(4)
    T[:3, :3] = [[float(x) for x in row] for row in placement.R.rows]
    T[:3, 3] = [float(x) for x in placement.p]
    return T


def moved_by(body: GivenBody, q: float) -> np.ndarray:
    """The joint's own motion in the body's frame, by Rodrigues' formula."""
    a, p, T = np.array([float(x) for x in body.axis]), np.array([float(x) for x in body.point]), np.eye(4)
    if body.kind == "prismatic":
        T[:3, 3] = q * a
        return T
    K = np.cross(np.eye(3), a)
    R = np.eye(3) + np.sin(q) * K + (1 - np.cos(q)) * K @ K
    T[:3, :3], T[:3, 3] = R, p - R @ p
    return T


def random_bodies(rng: np.random.Generator, count: int, roots: int = 1) -> list[GivenBody]:
    """Bodies on random parents; half of the angles right, half of the lengths zero."""
    bodies = []
    for i in range(count):
        angles = [
            Angle.of(rng.choice([0, np.pi / 2, np.pi, rng.uniform(-3, 3)], p=[0.4, 0.2, 0.1, 0.3])) for _ in "rpy"
        ]
        xyz = [Fraction(int(rng.integers(-500, 500)) * int(rng.integers(0, 2)), 1000) for _ in "xyz"]
        axis = [X, Y, Z][rng.integers(3)]
        kind = "revolute" if rng.random() < 0.7 else "prismatic"
        parent = -1 if i < roots else int(rng.integers(max(0, i - 4), i))
        bodies.append(GivenBody(kind, Placement(from_rpy(*angles), Vec3(*xyz)), axis, name=f"j{i}", parent=parent))
    return bodies


@pytest.mark.parametrize("seed", range(40))
def test_links_stand_where_the_file_puts_them(seed: int):
    rng = np.random.default_rng(seed)
    bodies = random_bodies(rng, int(rng.integers(2, 14)), roots=1 + seed % 3 % 2)
    chain, own = build(bodies)
    q = rng.uniform(-2, 2, len(bodies))
    ours: list[np.ndarray] = []
    theirs: list[np.ndarray] = []
    for i, (joint, body) in enumerate(zip(chain.joints, bodies, strict=True)):
        parent = chain.parents[i]
        assert parent == body.parent
        R, p = joint.placement(float(q[i]))
        ours.append((ours[parent] if parent >= 0 else matrix(chain.base)) @ matrix(Placement(R.matrix(), p)))
        outer = theirs[parent] if parent >= 0 else np.eye(4)
        theirs.append(outer @ matrix(body.placement) @ moved_by(body, q[i]))
        np.testing.assert_allclose(ours[i] @ matrix(own[i]), theirs[i], atol=1e-12)


def test_one_child_of_every_fork_has_no_turn_and_shift():
    for seed in range(20):
        chain, _ = build(random_bodies(np.random.default_rng(seed), 12))
        for outer in chain.children:
            assert sum(not chain.joints[k].forked for k in outer) >= min(1, len(outer))


def test_the_normal_that_leaves_fewest_constants_is_followed():
    """The parallel axes need neither turn nor shift if x follows the normal to the skew one."""
    straight = Placement()
    bodies = [
        GivenBody("revolute", straight, Z, parent=-1),
        GivenBody(
            "revolute", Placement(straight.R, Vec3(Fraction(1, 10), Fraction(1, 7), Fraction(1, 5))), Y, parent=0
        ),
        GivenBody("revolute", Placement(straight.R, Vec3(Fraction(1, 10), 0, 0)), Z, parent=0),
        GivenBody("revolute", Placement(straight.R, Vec3(Fraction(-1, 10), 0, 0)), Z, parent=0),
    ]
    chain, _ = build(bodies)
    assert all(joint.shift == 0 and joint.turn.is_right for joint in chain.joints)


def test_a_floating_base_keeps_its_own_frame():
    rng = np.random.default_rng(3)
    inner = random_bodies(rng, 6)
    here = Placement(from_rpy(Angle.of(0.3), Angle.of(0.1), Angle.of(0.2)), Vec3(Fraction(1), Fraction(2), Fraction(3)))
    root = GivenBody("free", here, Z, parent=-1, name="base")
    bodies = [root, *(GivenBody(b.kind, b.placement, b.axis, name=b.name, parent=0) for b in inner)]
    chain, own = build(bodies)
    assert chain.floating
    assert own[0] == Placement()
    np.testing.assert_allclose(matrix(chain.base), matrix(here))
