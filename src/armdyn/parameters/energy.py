"""Energies of a chain as sums over its natural parameters, over any scalar.

Two sets of parameters give the same actuator forces exactly when they give the same kinetic energy
and, up to a constant, the same potential energy. The rows here are what exact elimination samples.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from armdyn.algebra import ZERO, Angle, Mat3, Scalar, Vec3, Z
from armdyn.algebra.angle import ZERO_ANGLE
from armdyn.chain import Chain


def kinetic_row(chain: Chain, q: list[Scalar], qd: list[Scalar]) -> list[Scalar]:
    """2 T = row · (the 10 n natural parameters)."""
    row: list[Scalar] = []
    w, v = ZERO, ZERO
    for joint, q_i, qd_i in zip(chain.joints, q, qd, strict=True):
        R, p = joint.placement(q_i)
        v, w = R.T @ (v + w.cross(p)), R.T @ w
        w, v = (w + Z * qd_i, v) if joint.revolute else (w, v + Z * qd_i)
        row += [v.dot(v), *(v.cross(w) * 2)]
        row += [w.x * w.x, 2 * (w.x * w.y), w.y * w.y, 2 * (w.x * w.z), 2 * (w.y * w.z), w.z * w.z]
    return row


def potential_row(chain: Chain, q: list[Scalar]) -> list[Scalar]:
    """V = row · (the 10 n natural parameters), up to a constant."""
    row: list[Scalar] = []
    g, height = chain.gravity_in_frame_0, 0  # gravity in the present frame, g · (origin of the frame)
    for joint, q_i in zip(chain.joints, q, strict=True):
        R, p = joint.placement(q_i)
        height = height + g.dot(p)
        g = R.T @ g
        row += [-height, -g.x, -g.y, -g.z, 0, 0, 0, 0, 0, 0]
    return row


@dataclass(frozen=True, slots=True)
class Residue:
    """A number modulo a prime: exact, and never longer than the prime."""

    value: int
    prime: int
    __array_ufunc__ = None

    def _of(self, x: Any) -> int:
        if isinstance(x, Residue):
            return x.value
        if x.denominator == 1:
            return int(x)
        return int(x.numerator * pow(x.denominator, -1, self.prime))

    def __add__(self, other: Any) -> Residue:
        return Residue((self.value + self._of(other)) % self.prime, self.prime)

    __radd__ = __add__

    def __neg__(self) -> Residue:
        return Residue(-self.value % self.prime, self.prime)

    def __sub__(self, other: Any) -> Residue:
        return Residue((self.value - self._of(other)) % self.prime, self.prime)

    def __rsub__(self, other: Any) -> Residue:
        return Residue((self._of(other) - self.value) % self.prime, self.prime)

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, Vec3 | Mat3):
            return NotImplemented
        return Residue(self.value * self._of(other) % self.prime, self.prime)

    __rmul__ = __mul__


@dataclass(frozen=True, slots=True)
class Turn:
    """An angle known by a cosine and a sine on the unit circle modulo a prime."""

    c: Residue
    s: Residue

    def cos(self) -> Residue:
        """Cosine."""
        return self.c

    def sin(self) -> Residue:
        """Sine."""
        return self.s


def orthogonal(chain: Chain) -> Chain:
    """The chain with exactly orthogonal rational rotations, and revolute joints counted from θ = 0.

    A constant angle is a number of quarter turns and a rest with a rational tan(rest/2), odd in the
    rest: angles that add up to a multiple of π/2 still do.
    """

    def rational(angle: Angle) -> Angle:
        if angle.is_right:
            return angle
        quarters = round(angle.radians / (math.pi / 2))
        t = Fraction(math.tan((angle.radians - quarters * (math.pi / 2)) / 2))
        c, s = (1 - t * t) / (1 + t * t), 2 * t / (1 + t * t)
        for _ in range(quarters % 4):
            c, s = -s, c
        return Angle(angle.radians, c, s)

    joints = tuple(
        replace(
            joint,
            beta=rational(joint.beta),
            gamma=rational(joint.gamma),
            theta=ZERO_ANGLE if joint.revolute else rational(joint.theta),
        )
        for joint in chain.joints
    )
    return replace(chain, joints=joints)


class Samples:
    """Random energies of a chain modulo a prime; the k-th sample is the same in every run."""

    def __init__(self, chain: Chain) -> None:
        self.chain = orthogonal(chain)
        self._modular: dict[int, Chain] = {}

    def at(self, k: int, prime: int) -> tuple[list[int], list[int], list[int], list[int]]:
        """(kinetic row, potential row less its value at another q, q̇², q less the other q)."""
        rng = random.Random(f"armdyn {k}")
        chain = self._modular.setdefault(prime, _modular(self.chain, prime))
        q, qd, other = ([Residue(rng.randrange(prime), prime) for _ in chain.joints] for _ in range(3))
        here, there = _configuration(chain, q), _configuration(chain, other)
        kinetic = kinetic_row(chain, here, qd)
        potential = [a - b for a, b in zip(potential_row(chain, here), potential_row(chain, there), strict=True)]
        return (
            _numbers(kinetic, prime),
            _numbers(potential, prime),
            _numbers([v * v for v in qd], prime),
            _numbers([a - b for a, b in zip(q, other, strict=True)], prime),
        )


def _configuration(chain: Chain, q: list[Residue]) -> list[Any]:
    """Prismatic joints at q; revolute ones at the angle with tan(angle/2) = q."""
    found: list[Any] = []
    for joint, t in zip(chain.joints, q, strict=True):
        if joint.prismatic:
            found.append(t)
        else:
            scale = pow((1 + t * t).value, -1, t.prime)
            found.append(Turn((1 - t * t) * scale, t * (2 * scale)))
    return found


def _numbers(row: list[Any], prime: int) -> list[int]:
    return [x.value if isinstance(x, Residue) else Residue(0, prime)._of(x) % prime for x in row]


def _modular(chain: Chain, prime: int) -> Chain:
    """The same chain with residues for what is neither 0 nor ±1."""

    def number(x: Any) -> Any:
        return x if x in (0, 1, -1) else Residue(Residue(0, prime)._of(x) % prime, prime)

    def angle(a: Angle) -> Angle:
        return Angle(a.radians, number(a.cos), number(a.sin))

    joints = tuple(
        replace(j, b=number(j.b), d=number(j.d), beta=angle(j.beta), gamma=angle(j.gamma), theta=angle(j.theta))
        for j in chain.joints
    )
    g = chain.gravity_in_frame_0
    return replace(chain, joints=joints, gravity=Vec3(*map(number, g)), base=type(chain.base)())
