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

    def __add__(self, other: Any) -> Residue:
        return Residue((self.value + _residue(other, self.prime)) % self.prime, self.prime)

    __radd__ = __add__

    def __neg__(self) -> Residue:
        return Residue(-self.value % self.prime, self.prime)

    def __sub__(self, other: Any) -> Residue:
        return Residue((self.value - _residue(other, self.prime)) % self.prime, self.prime)

    def __rsub__(self, other: Any) -> Residue:
        return Residue((_residue(other, self.prime) - self.value) % self.prime, self.prime)

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, Vec3 | Mat3):
            return NotImplemented
        return Residue(self.value * _residue(other, self.prime) % self.prime, self.prime)

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
        self._drawn: dict[tuple[int, int], Sample] = {}

    def at(self, k: int, prime: int) -> Sample:
        """The k-th sample."""
        if (k, prime) not in self._drawn:
            self._drawn[k, prime] = self._draw(k, prime)
        return self._drawn[k, prime]

    def _draw(self, k: int, prime: int) -> Sample:
        rng = random.Random(f"armdyn {k}")
        if prime not in self._modular:
            self._modular[prime] = _modular(self.chain, prime)
        chain = self._modular[prime]
        q, qd, other = ([Residue(rng.randrange(prime), prime) for _ in chain.joints] for _ in range(3))
        here, there = _configuration(chain, q), _configuration(chain, other)
        return Sample(
            kinetic=_numbers(kinetic_row(chain, here, qd), prime),
            potential=_numbers(_less(potential_row(chain, here), potential_row(chain, there)), prime),
            speeds=_numbers([v * v for v in qd], prime),
            moves=_numbers(_less(q, other), prime),
        )


@dataclass(frozen=True)
class Sample:
    """Rows at a random q and q̇: 2 T, V less its value at another q, q̇², q less the other q."""

    kinetic: list[int]
    potential: list[int]
    speeds: list[int]
    moves: list[int]


class Columns:
    """Parameters as combinations of natural ones: a row of these from a row of those."""

    def __init__(self, realisation: tuple[tuple[Fraction, ...], ...]) -> None:
        """Take the 10 n × p matrix that gives the natural parameters."""
        self._columns = [[(k, f) for k, f in enumerate(column) if f] for column in zip(*realisation, strict=True)]
        self._modular: dict[int, list[list[tuple[int, int]]]] = {}

    def of(self, row: list[int], prime: int) -> list[int]:
        """The row in these parameters, modulo a prime."""
        columns = self._modular.get(prime)
        if columns is None:
            columns = [[(k, _residue(f, prime)) for k, f in column] for column in self._columns]
            self._modular[prime] = columns
        return [sum(row[k] * f for k, f in column) % prime for column in columns]


def _less(a: list[Any], b: list[Any]) -> list[Any]:
    return [x - y for x, y in zip(a, b, strict=True)]


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


def _residue(x: Any, prime: int) -> int:
    if isinstance(x, Residue):
        return x.value
    return int(x) % prime if x.denominator == 1 else int(x.numerator * pow(x.denominator, -1, prime) % prime)


def _numbers(row: list[Any], prime: int) -> list[int]:
    return [_residue(x, prime) for x in row]


def _modular(chain: Chain, prime: int) -> Chain:
    """The same chain with residues for what is neither 0 nor ±1."""

    def number(x: Any) -> Any:
        return x if x in (0, 1, -1) else Residue(_residue(x, prime), prime)

    def angle(a: Angle) -> Angle:
        return Angle(a.radians, number(a.cos), number(a.sin))

    joints = tuple(
        replace(j, b=number(j.b), d=number(j.d), beta=angle(j.beta), gamma=angle(j.gamma), theta=angle(j.theta))
        for j in chain.joints
    )
    return Chain(joints, chain.links, Vec3(*(number(x) for x in chain.gravity_in_frame_0)))
