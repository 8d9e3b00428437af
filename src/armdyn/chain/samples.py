"""Random arms to count and test with."""

from __future__ import annotations

import random
from fractions import Fraction

from armdyn.algebra import Angle, Scalar, Sym3, Vec3
from armdyn.chain.chain import Chain
from armdyn.chain.joint import Joint, Kind
from armdyn.chain.link import Link
from armdyn.errors import InputError

_KINDS: dict[str, Kind] = {"R": "revolute", "P": "prismatic"}


def generic_chain(kinds: str, seed: int = 0) -> Chain:
    """A chain with random, generic geometry, except that E₀ is E₁ at q₁ = 0, as in the papers' counts."""
    if not kinds or set(kinds) - set(_KINDS):
        raise InputError(f"kinds must be letters R (revolute) and P (prismatic), at least one; got {kinds!r}")
    rng = random.Random(f"armdyn {seed}")

    def number(low: float, high: float) -> Fraction:
        while (x := Fraction(round(rng.uniform(low, high), 3)).limit_denominator(1000)).denominator <= 2:
            pass  # twice a half is one, which costs nothing: something special
        return x

    joints, links = [], []
    for i, letter in enumerate(kinds):
        b, beta, d, theta = number(0.1, 0.5), rng.uniform(0.3, 1.2), number(0.1, 0.5), rng.uniform(0.3, 1.2)
        first = i == 0
        joints.append(
            Joint(
                kind=_KINDS[letter],
                b=Fraction(0) if first else b,
                beta=Angle.of(0.0 if first else round(beta, 3)),
                d=Fraction(0) if first or letter == "P" else d,
                theta=Angle.of(0.0 if first or letter == "R" else round(theta, 3)),
                name=f"joint{i + 1}",
            )
        )
        links.append(_random_link(number))
    return Chain(tuple(joints), tuple(links))


def _random_link(number: object) -> Link:
    """A physically possible link: four point masses at random places."""
    draw: Scalar = number
    link = None
    for _ in range(4):
        m = draw(0.5, 2.0)
        point = Link.from_com(m, Vec3(draw(-0.3, 0.3), draw(-0.3, 0.3), draw(-0.3, 0.3)), Sym3(0, 0, 0, 0, 0, 0))
        link = point if link is None else link + point
    assert link is not None
    return link
