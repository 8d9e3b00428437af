"""Rewrite products of cosines and sines of joints with parallel axes as cosines and sines of sums of angles."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from itertools import product

from armdyn.chain import Chain

Turning = tuple[int, bool]  # index of a joint in q; True for its cosine, False for its sine
Multiples = tuple[tuple[int, int], ...]  # pairs (joint, k) of the angle Σ k q
Wave = tuple[Multiples, bool]  # the cosine (True) or sine of an angle


def parallel_joints(chain: Chain) -> tuple[tuple[int, ...], ...]:
    """Groups of joints, as indices into q, whose axes are parallel in every configuration."""
    group: dict[int, int] = {-1: -1}
    members: dict[int, list[int]] = {}
    place = {joint: k for k, joint in enumerate(chain.independent)}
    for i, (joint, parent) in enumerate(zip(chain.joints, chain.parents, strict=True)):
        parallel = parent >= 0 and joint.beta.sin == 0 and joint.gamma.sin == 0
        group[i] = group[parent] if parallel else i
        if joint.revolute and i in place:
            members.setdefault(group[i], []).append(place[i])
    offset = 7 if chain.floating else 0
    return tuple(tuple(offset + k for k in found) for found in members.values() if len(found) > 1)


class Angles:
    """Rewrites products of cosines and sines; `groups` are the joints with parallel axes, whose angles add."""

    def __init__(self, groups: Sequence[Sequence[int]]) -> None:
        self.group = {joint: k for k, joints in enumerate(groups) for joint in joints}

    def sums(self, turning: Sequence[Turning]) -> list[tuple[tuple[Wave, ...], Fraction]]:
        """The product as a sum of products with at most one factor per group: (factors, coefficient)."""
        alone = tuple((((joint, 1),), cosine) for joint, cosine in turning if joint not in self.group)
        together: dict[int, list[Turning]] = {}
        for joint, cosine in turning:
            if joint in self.group:
                together.setdefault(self.group[joint], []).append((joint, cosine))
        parts = [fourier(tuple(sorted(found))) for _, found in sorted(together.items())]
        found = []
        for choice in product(*parts):
            coefficient = Fraction(1)
            waves: list[Wave] = []
            for wave, part in choice:
                coefficient *= part
                if wave is not None:
                    waves.append(wave)
            found.append(((*sorted(waves), *alone), coefficient))
        return found


@cache
def fourier(turning: tuple[Turning, ...]) -> list[tuple[Wave | None, Fraction]]:
    """The Fourier expansion of a product of cosines and sines, by e^(iq) = cos q + i sin q; None is the constant 1."""
    waves: dict[Multiples, tuple[Fraction, Fraction]] = {(): (Fraction(1), Fraction(0))}
    for joint, cosine in turning:
        following: dict[Multiples, tuple[Fraction, Fraction]] = {}
        for multiples, (re, im) in waves.items():
            for sign in (1, -1):
                # cos q = (e^(iq) + e^(-iq)) / 2,  sin q = -i (e^(iq) - e^(-iq)) / 2
                part = (re / 2, im / 2) if cosine else (sign * im / 2, -sign * re / 2)
                key = _plus(multiples, joint, sign)
                old = following.get(key, (Fraction(0), Fraction(0)))
                following[key] = old[0] + part[0], old[1] + part[1]
        waves = following
    found: list[tuple[Wave | None, Fraction]] = []
    for multiples, (re, im) in sorted(waves.items()):
        if not multiples:
            found.append((None, re))
        elif multiples[0][1] > 0:  # the other half is its complex conjugate
            found += [((multiples, True), 2 * re), ((multiples, False), -2 * im)]
    return [(wave, coefficient) for wave, coefficient in found if coefficient != 0]


def _plus(multiples: Multiples, joint: int, sign: int) -> Multiples:
    changed = dict(multiples)
    changed[joint] = changed.get(joint, 0) + sign
    return tuple(sorted((j, k) for j, k in changed.items() if k != 0))
