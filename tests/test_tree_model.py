"""The model of a tree: parents, mimic joints, floating bases, the constants of a fork, and errors for what is none."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import cos, sin

import numpy as np
import pytest

from armdyn.algebra import Angle
from armdyn.chain import Chain, Joint, Mimic
from armdyn.chain.joint import MASSLESS
from armdyn.errors import InputError

ZERO = Angle.of(0.0)
JOINT = Joint("revolute", 0, ZERO, 0, ZERO)
FREE = replace(JOINT, kind="free", name="base")


def tree(parents: tuple[int, ...] = (), joints: tuple[Joint, ...] = (JOINT,) * 4) -> Chain:
    return Chain(joints, (MASSLESS,) * len(joints), parents=parents)


def test_a_chain_is_a_tree() -> None:
    chain = tree()
    assert chain.parents == (-1, 0, 1, 2)
    assert chain.serial
    assert chain.plain
    assert not chain.floating
    assert (chain.n, chain.nq, chain.nv, chain.bodies) == (4, 4, 4, 4)
    assert chain == tree((-1, 0, 1, 2))


def test_branches() -> None:
    chain = tree((-1, 0, 0, 2))
    assert not chain.serial
    assert chain.children == ((1, 2), (), (3,), ())
    assert chain.tips == (1, 3)
    assert chain.path(3) == (0, 2, 3)
    assert chain.path(-1) == ()


def test_sizes_of_a_floating_base_with_mimic_joints() -> None:
    finger = replace(JOINT, mimic=Mimic(1, 2, Fraction(1, 10)))
    chain = tree((-1, 0, 0, 1), (FREE, JOINT, finger, JOINT))
    assert chain.floating
    assert not chain.plain
    assert chain.independent == (1, 3)
    assert (chain.n, chain.nq, chain.nv, chain.bodies) == (2, 9, 8, 4)


def turned(angle: float, axis: int) -> np.ndarray:
    c, s = cos(angle), sin(angle)
    T = np.eye(4)
    a, b = [(1, 2), (2, 0), (0, 1)][axis]
    T[a, a], T[a, b], T[b, a], T[b, b] = c, -s, s, c
    return T


def moved(by: float, axis: int) -> np.ndarray:
    T = np.eye(4)
    T[axis, 3] = by
    return T


@pytest.mark.parametrize("kind", ["revolute", "prismatic"])
def test_the_placement_is_the_product_of_its_seven_steps(kind: str) -> None:
    numbers = {"shift": 0.3, "turn": 0.4, "b": 0.5, "beta": 0.6, "gamma": 0.1, "d": 0.7, "theta": 0.8}
    angles = {name: Angle.of(numbers[name]) for name in ("turn", "beta", "gamma", "theta")}
    joint = Joint(kind=kind, b=0.5, d=0.7, shift=0.3, **angles)  # type: ignore[arg-type]
    q = 0.37
    theta, d = (0.8 + q, 0.7) if kind == "revolute" else (0.8, 0.7 + q)
    expected = moved(0.3, 2) @ turned(0.4, 2) @ moved(0.5, 0) @ turned(0.6, 0) @ turned(0.1, 1) @ moved(d, 2)
    expected = expected @ turned(theta, 2)
    R, p = joint.placement(q)
    found = np.eye(4)
    found[:3, :3] = [[float(x) for x in row] for row in R.matrix().rows]
    found[:3, 3] = [float(x) for x in p]
    np.testing.assert_allclose(found, expected, atol=1e-15)
    offset = [float(x) for x in joint.offset(q, R)]
    np.testing.assert_allclose(offset, expected[:3, :3].T @ expected[:3, 3], atol=1e-15)


@pytest.mark.parametrize(
    ("parents", "joints", "said"),
    [
        ((-1, 0), (JOINT,) * 3, "one parent per joint; got 2 for 3"),
        ((-1, 2, 1), (JOINT,) * 3, "must come before it"),
        ((), (JOINT, FREE), "only the first joint of a robot can be"),
        ((-1, -1), (FREE, JOINT), "the base floats"),
        ((), (replace(FREE, b=Fraction(1)), JOINT), "a free joint has no constants"),
        ((), (replace(FREE, viscous=Fraction(1)), JOINT), "neither rotor inertia nor friction"),
        ((), (JOINT, replace(JOINT, mimic=Mimic(2))), "expected one of the 2 joints"),
        ((), (FREE, replace(JOINT, mimic=Mimic(0))), "that is not free"),
        ((), (replace(JOINT, mimic=Mimic(1)), replace(JOINT, mimic=Mimic(0))), "in a circle: 0 -> 1 -> 0"),
        ((), (JOINT, replace(JOINT, mimic=Mimic(0, float("nan")))), "must be finite"),
        ((), (replace(JOINT, shift=float("inf")), JOINT), "must be finite"),
    ],
)
def test_what_is_no_tree_is_refused(parents: tuple[int, ...], joints: tuple[Joint, ...], said: str) -> None:
    with pytest.raises(InputError, match=said):
        tree(parents, joints)
