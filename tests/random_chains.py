"""Chains to test formulations with: general and special geometry, prismatic joints where they hurt."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from fractions import Fraction

from armdyn.algebra import ZERO, Angle, Sym3, Vec3
from armdyn.chain import Chain, Joint, Link
from armdyn.chain.chain import generic_chain
from armdyn.formulations.composite_bodies.minimal import first_axes

RIGHT = math.pi / 2
MASSLESS = Link(0, ZERO, Sym3(0, 0, 0, 0, 0, 0))
POOL = {"R": generic_chain("R" * 40), "P": generic_chain("P")}


def special_joint(rng: random.Random, joint: Joint, parallel: float = 0.5) -> Joint:
    """A joint with axes that are often parallel, at right angles or intersecting, and sometimes a γ."""
    tilt = 0.0 if rng.random() < parallel else rng.choice([RIGHT, -RIGHT, math.pi, 0.4, -1.1])
    gamma = 0.0 if tilt == 0.0 or rng.random() < 0.8 else rng.choice([0.2, 1e-6])
    return replace(
        joint,
        b=rng.choice([Fraction(0), Fraction(1, 3), Fraction(-1, 5)]),
        d=rng.choice([Fraction(0), Fraction(1, 4), Fraction(-2, 7)]),
        beta=Angle.of(tilt),
        theta=Angle.of(rng.choice([0.0, RIGHT, 0.3, math.pi])),
        gamma=Angle.of(gamma),
    )


def special_chain(rng: random.Random, kinds: str, parallel: float = 0.5) -> Chain:
    """Special geometry, tilted or no gravity, some links without mass."""
    joints = tuple(special_joint(rng, POOL[kind].joints[0], parallel) for kind in kinds)
    links = [MASSLESS if rng.random() < 0.1 else rng.choice(POOL["R"].links) for _ in kinds]
    links[-1] = rng.choice(POOL["R"].links)
    gravity = rng.choice([ZERO, Vec3(Fraction(3), Fraction(-2), Fraction(5)), POOL["R"].gravity])
    return Chain(joints, tuple(links), gravity)


def any_chain(rng: random.Random, most: int) -> Chain:
    """Revolute and prismatic joints in any order, general or special."""
    kinds = "".join(rng.choice("RRP") for _ in range(rng.randint(1, most)))
    return generic_chain(kinds, rng.randrange(10**6)) if rng.random() < 0.3 else special_chain(rng, kinds)


def slides_below_s(chain: Chain) -> bool:
    """Whether a prismatic joint lies between joint r and joint s of Lin & Fang."""
    r, s, _ = first_axes(chain)
    return s < chain.n and any(joint.prismatic for joint in chain.joints[r:s])


def configuration(rng: random.Random, n: int) -> list[float]:
    return [rng.uniform(-3.0, 3.0) for _ in range(n)]
