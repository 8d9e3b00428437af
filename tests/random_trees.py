"""Random trees, and Pinocchio's model of each, built joint by joint."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from armdyn.algebra import Angle, Sym3, Vec3, exact
from armdyn.algebra.scalar import ZERO_ANGLE
from armdyn.chain import Chain, Joint, Link, Mimic, Placement

RIGHT = (0.0, math.pi / 2, -math.pi / 2, math.pi)


@dataclass(frozen=True)
class TreeKind:
    """What a random tree may look like."""

    joints: int = 8
    fork: float = 0.3  # the share of joints that do not stand on the link before
    prismatic: float = 0.25
    mimic: float = 0.0
    special: float = 0.5  # the share of right angles and zero lengths
    floating: bool = False
    rotors: bool = False


def random_tree(kind: TreeKind, seed: int) -> Chain:
    """A tree with its joints depth first, as Pinocchio's algorithms need them."""
    rng = random.Random(f"tree {seed} {kind}")

    def length() -> Fraction:
        return Fraction(0) if rng.random() < kind.special else exact(round(rng.uniform(-0.5, 0.5), 3))

    def angle() -> Angle:
        radians = rng.choice(RIGHT) if rng.random() < kind.special else round(rng.uniform(-3, 3), 3)
        return Angle.of(radians)

    parents = _parents(rng, kind)
    joints: list[Joint] = []
    for i, parent in enumerate(parents):
        forked = any(p == parent for p in parents[:i])
        gamma = Angle.of(round(rng.uniform(-1, 1), 3)) if rng.random() < 0.15 else ZERO_ANGLE
        joints.append(
            Joint(
                "prismatic" if rng.random() < kind.prismatic else "revolute",
                length(),
                angle(),
                length(),
                angle(),
                gamma,
                name=f"joint{i}",
                turn=angle() if forked else ZERO_ANGLE,
                shift=length() if forked else Fraction(0),
                rotor_inertia=exact(round(rng.uniform(0.1, 0.5), 3)) if kind.rotors else Fraction(0),
            )
        )
    if kind.floating:
        joints[0] = Joint("free", Fraction(0), ZERO_ANGLE, Fraction(0), ZERO_ANGLE, name="base")
    joints = _with_mimics(rng, kind, joints)
    gravity = Vec3(*(exact(round(rng.uniform(-9, 9), 2)) for _ in range(3)))
    base = Placement() if rng.random() < 0.5 else _placement(angle(), angle(), length(), length())
    links = tuple(_link(rng) for _ in joints)
    return Chain(tuple(joints), links, gravity, base, parents=tuple(parents))


def _parents(rng: random.Random, kind: TreeKind) -> list[int]:
    """Depth first: a joint stands on the link before, or on one on the way from that to the base."""
    parents = [-1]
    while len(parents) < kind.joints:
        parent = len(parents) - 1
        while parent >= (1 if kind.floating else 0) and rng.random() < kind.fork:
            parent = parents[parent]
        parents.append(parent)
    return parents


def _with_mimics(rng: random.Random, kind: TreeKind, joints: list[Joint]) -> list[Joint]:
    """Some joints follow others, those that follow follow one another too, never in a circle."""
    order = [i for i, joint in enumerate(joints) if not joint.free]
    rng.shuffle(order)
    for place, i in enumerate(order[1:], 1):
        if rng.random() < kind.mimic:
            numbers = exact(round(rng.uniform(-2, 2), 3)), exact(round(rng.uniform(-1, 1), 3))
            joints[i] = replace(joints[i], mimic=Mimic(rng.choice(order[:place]), *numbers))
    return joints


def _placement(a: Angle, b: Angle, x: Fraction, y: Fraction) -> Placement:
    from armdyn.chain.exactly import from_rpy

    return Placement(from_rpy(a, b, ZERO_ANGLE), Vec3(x, y, Fraction(1, 5)))


def _link(rng: random.Random) -> Link:
    """Four point masses; one link in eight has no mass."""
    link = Link(Fraction(0), Vec3(0, 0, 0), Sym3(0, 0, 0, 0, 0, 0))
    for _ in range(4):
        at = Vec3(*(exact(round(rng.uniform(-0.4, 0.4), 3)) for _ in range(3)))
        link = link + Link.from_com(exact(round(rng.uniform(0.2, 2), 3)), at, Sym3(0, 0, 0, 0, 0, 0))
    return link


def matrix(joint: Joint) -> Any:
    """The 4 × 4 placement at q = 0 as plain numbers, from the seven steps of its definition."""

    def turned(angle: float, axis: int) -> Any:
        T = np.eye(4)
        a, b = [(1, 2), (2, 0), (0, 1)][axis]
        T[a, a] = T[b, b] = math.cos(angle)
        T[a, b], T[b, a] = -math.sin(angle), math.sin(angle)
        return T

    def moved(by: Any, axis: int) -> Any:
        T = np.eye(4)
        T[axis, 3] = float(by)
        return T

    fork = moved(joint.shift, 2) @ turned(joint.turn.radians, 2)
    normal = moved(joint.b, 0) @ turned(joint.beta.radians, 0) @ turned(joint.gamma.radians, 1)
    return fork @ normal @ moved(joint.d, 2) @ turned(joint.theta.radians, 2)


def pinocchio_model(chain: Chain) -> Any:
    """The same tree in Pinocchio, mimic joints as joints of their own."""
    import pinocchio as pin

    model = pin.Model()
    base = np.eye(4)
    base[:3, :3] = [[float(x) for x in row] for row in chain.base.R.rows]
    base[:3, 3] = [float(x) for x in chain.base.p]
    ids = {-1: 0}
    for i, (joint, link, parent) in enumerate(zip(chain.joints, chain.links, chain.parents, strict=True)):
        kinds = {"revolute": pin.JointModelRZ, "prismatic": pin.JointModelPZ, "free": pin.JointModelFreeFlyer}
        placement = matrix(joint) if parent >= 0 else base @ matrix(joint)
        ids[i] = model.addJoint(ids[parent], kinds[joint.kind](), pin.SE3(placement), joint.name or f"joint{i}")
        com = np.array([float(x) for x in link.com])
        inertia = np.array([[float(x) for x in row] for row in link.inertia_about_com.full.rows])
        model.appendBodyToJoint(ids[i], pin.Inertia(float(link.mass), com, inertia), pin.SE3.Identity())
        if not joint.free:
            model.armature[model.joints[ids[i]].idx_v] = float(joint.rotor_inertia)
    model.gravity.linear = np.array([float(x) for x in chain.gravity])
    return model
