"""Energies of a chain or tree as linear functions of its natural parameters, generic over the scalar type.

Two sets of parameters give the same actuator forces if and only if they give the same kinetic energy and, up to a
constant, the same potential energy. Exact elimination samples the rows computed here.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from armdyn.algebra import ZERO, Angle, Mat3, Scalar, Vec3, Z
from armdyn.algebra.scalar import ZERO_ANGLE
from armdyn.chain import Chain, Joint
from armdyn.chain.exactly import NOISE


def kinetic_row(chain: Chain, q: list[Any], qd: list[Any]) -> list[Scalar]:
    """2 T = row · (the natural parameters, ten per body); q and q̇ per body, a free joint's q̇ is its twist (v, w)."""
    row: list[Scalar] = []
    moving: list[tuple[Vec3, Vec3]] = []  # (w, v) of every body, in its frame
    for joint, parent, q_i, qd_i in zip(chain.joints, chain.parents, q, qd, strict=True):
        if joint.free:
            v, w = Vec3(*qd_i[:3]), Vec3(*qd_i[3:])
        else:
            w, v = moving[parent] if parent >= 0 else (ZERO, ZERO)
            R, p = joint.placement(q_i)
            v, w = R.T @ (v + w.cross(p)), R.T @ w
            w, v = (w + Z * qd_i, v) if joint.revolute else (w, v + Z * qd_i)
        moving.append((w, v))
        row += [v.dot(v), *(v.cross(w) * 2)]
        row += [w.x * w.x, 2 * (w.x * w.y), w.y * w.y, 2 * (w.x * w.z), 2 * (w.y * w.z), w.z * w.z]
    return row


def potential_row(chain: Chain, q: list[Any]) -> list[Scalar]:
    """V = row · (the natural parameters, ten per body), up to a constant.

    With a floating base it is 0: the kinetic energy already determines all parameters that gravity depends on.
    """
    row: list[Scalar] = []
    placed: list[tuple[Vec3, Scalar]] = []  # gravity in the frame of every body, g · (origin of the frame)
    for joint, parent, q_i in zip(chain.joints, chain.parents, q, strict=True):
        if joint.free:
            placed.append((ZERO, 0))
        else:
            g, height = placed[parent] if parent >= 0 else (chain.gravity_in_frame_0, 0)
            R, p = joint.placement(q_i)
            placed.append((R.T @ g, height + g.dot(p)))
        g, height = placed[-1]
        row += [-height, -g.x, -g.y, -g.z, 0, 0, 0, 0, 0, 0]
    return row


@dataclass(frozen=True, slots=True)
class Residue:
    """A number modulo a prime: exact, and of bounded length."""

    value: int
    prime: int
    __array_ufunc__ = None

    def __add__(self, other: Any) -> Residue:
        return Residue((self.value + residue(other, self.prime)) % self.prime, self.prime)

    __radd__ = __add__

    def __neg__(self) -> Residue:
        return Residue(-self.value % self.prime, self.prime)

    def __sub__(self, other: Any) -> Residue:
        return Residue((self.value - residue(other, self.prime)) % self.prime, self.prime)

    def __rsub__(self, other: Any) -> Residue:
        return Residue((residue(other, self.prime) - self.value) % self.prime, self.prime)

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, Vec3 | Mat3):
            return NotImplemented
        return Residue(self.value * residue(other, self.prime) % self.prime, self.prime)

    __rmul__ = __mul__


@dataclass(frozen=True, slots=True)
class Turn:
    """An angle given by its cosine and sine, on the unit circle modulo a prime."""

    c: Residue
    s: Residue

    def cos(self) -> Residue:
        """Cosine."""
        return self.c

    def sin(self) -> Residue:
        """Sine."""
        return self.s

    def plus(self, other: Turn) -> Turn:
        """The sum of two angles."""
        return Turn(self.c * other.c - self.s * other.s, self.s * other.c + self.c * other.s)


def orthogonal(chain: Chain) -> Chain:
    """The chain with exactly orthogonal rational rotations, and revolute joints measured from θ = 0.

    A constant angle becomes a number of quarter turns and a remainder with a rational tan(remainder/2), an odd function
    of the remainder: angles that add up to a multiple of π/2 still do. A revolute mimic joint keeps its angle at θ = 0
    of the joint it follows.
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

    def zero(joint: Joint) -> Angle:
        if not joint.revolute:
            return rational(joint.theta)
        if joint.mimic is None:
            return ZERO_ANGLE
        leader, multiplier, offset = chain.leader(joint)
        follows = float(multiplier) * chain.joints[leader].theta.radians if chain.joints[leader].revolute else 0.0
        return rational(Angle.of(joint.theta.radians + float(offset) - follows, NOISE))

    joints = tuple(
        replace(
            joint,
            beta=rational(joint.beta),
            gamma=rational(joint.gamma),
            theta=zero(joint),
            turn=rational(joint.turn),
        )
        for joint in chain.joints
    )
    return replace(chain, joints=joints)


class EnergySamples:
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
            self._modular[prime] = modular(self.chain, prime)
        chain = self._modular[prime]
        q, qd, other = ([Residue(rng.randrange(prime), prime) for _ in chain.joints] for _ in range(3))
        twist = [Residue(rng.randrange(prime), prime) for _ in range(6)] if chain.floating else []
        phases = [phase(joint, prime) for joint in self.chain.joints]
        here, there = configuration(chain, q, phases), configuration(chain, other, phases)
        rates = [twist if joint.free else _following(chain, joint, qd, i) for i, joint in enumerate(chain.joints)]
        own = chain.independent
        return Sample(
            kinetic=_numbers(kinetic_row(chain, here, rates), prime),
            potential=_numbers(_difference(potential_row(chain, here), potential_row(chain, there)), prime),
            speeds=_numbers([qd[i] * qd[i] for i in own], prime),
            moves=_numbers([q[i] - other[i] for i in own], prime),
        )


@dataclass(frozen=True)
class Sample:
    """Rows at a random q and q̇: 2 T, V minus its value at another q, q̇², q minus the other q."""

    kinetic: list[int]
    potential: list[int]
    speeds: list[int]
    moves: list[int]


class ParameterColumns:
    """Parameters as combinations of natural ones: maps a row in natural parameters to a row in these."""

    def __init__(self, realisation: tuple[tuple[Fraction, ...], ...]) -> None:
        """Take the 10 n × p matrix that maps these parameters to natural ones."""
        self._columns = [[(k, f) for k, f in enumerate(column) if f] for column in zip(*realisation, strict=True)]
        self._modular: dict[int, list[list[tuple[int, int]]]] = {}

    def of(self, row: list[int], prime: int) -> list[int]:
        """The row in these parameters, modulo a prime."""
        columns = self._modular.get(prime)
        if columns is None:
            columns = [[(k, residue(f, prime)) for k, f in column] for column in self._columns]
            self._modular[prime] = columns
        return [sum(row[k] * f for k, f in column) % prime for column in columns]


def _difference(a: list[Any], b: list[Any]) -> list[Any]:
    return [x - y for x, y in zip(a, b, strict=True)]


def phase(joint: Joint, prime: int) -> Turn:
    """The angle of a revolute mimic joint at θ = 0 of the joint it follows; 0 for any other joint."""
    c, s = (joint.theta.cos, joint.theta.sin) if joint.mimic is not None and joint.revolute else (1, 0)
    return Turn(Residue(residue(c, prime), prime), Residue(residue(s, prime), prime))


def configuration(chain: Chain, q: list[Residue], phases: list[Turn]) -> list[Any]:
    """Joint positions from one random residue t per joint.

    A prismatic joint is at t. A revolute one is at m times the angle with tan(angle/2) = t, where m makes the
    multipliers of the joints that follow it integers. An angle is algebraically independent of its own sine and cosine,
    so a prismatic joint that follows a revolute one may be at a multiple of t.
    """
    whole = _denominators(chain)
    angles: list[Any] = []
    for i, joint in enumerate(chain.joints):
        leader, multiplier, offset = (i, 1, 0) if joint.mimic is None else chain.leader(joint)
        if joint.free:
            angles.append(None)
        elif joint.prismatic:
            angles.append(q[i] if joint.mimic is None else q[leader] * multiplier + offset)
        elif chain.joints[leader].revolute:
            angles.append(_turn(q[leader], int(multiplier * whole[leader])).plus(phases[i]))
        else:  # a revolute joint that follows a prismatic one: no algebraic relation between them
            angles.append(_turn(q[i], 1))
    return angles


def _following(chain: Chain, joint: Joint, rates: list[Residue], i: int) -> Any:
    """The rate of a joint: its own, or a multiple of that of the joint it follows."""
    if joint.mimic is None:
        return rates[i]
    leader, multiplier, _ = chain.leader(joint)
    return rates[leader] * multiplier


def _denominators(chain: Chain) -> list[int]:
    """The least common multiple of the denominators of the multipliers with which others follow it, per joint."""
    denominators = [1] * chain.bodies
    for joint in chain.joints:
        if joint.mimic is not None:
            leader, multiplier, _ = chain.leader(joint)
            denominators[leader] = math.lcm(denominators[leader], Fraction(multiplier).denominator)
    return denominators


def _turn(t: Residue, times: int) -> Turn:
    """`times` the angle with tan(angle/2) = t, by repeated doubling."""
    scale = pow((1 + t * t).value, -1, t.prime)
    base = Turn((1 - t * t) * scale, t * (2 * scale))
    base = base if times > 0 else Turn(base.c, -base.s)
    turn, times = Turn(Residue(1, t.prime), Residue(0, t.prime)), abs(times)
    while times:
        turn = turn.plus(base) if times & 1 else turn
        base, times = base.plus(base), times >> 1
    return turn


def residue(x: Any, prime: int) -> int:
    """The number modulo a prime."""
    if isinstance(x, Residue):
        return x.value
    return int(x) % prime if x.denominator == 1 else int(x.numerator * pow(x.denominator, -1, prime) % prime)


def _numbers(row: list[Any], prime: int) -> list[int]:
    return [residue(x, prime) for x in row]


def modular(chain: Chain, prime: int) -> Chain:
    """The same chain with residues for all numbers other than 0 and ±1."""

    def number(x: Any) -> Any:
        return x if x in (0, 1, -1) else Residue(residue(x, prime), prime)

    def angle(a: Angle) -> Angle:
        return Angle(a.radians, number(a.cos), number(a.sin))

    def joint(j: Joint) -> Joint:
        beta, gamma, turn = map(angle, (j.beta, j.gamma, j.turn))
        theta = ZERO_ANGLE if j.revolute else angle(j.theta)  # a mimic joint's is part of its configuration
        b, d, shift = map(number, (j.b, j.d, j.shift))
        return replace(j, b=b, beta=beta, gamma=gamma, d=d, theta=theta, turn=turn, shift=shift)

    gravity = Vec3(*(number(x) for x in chain.gravity_in_frame_0))
    return Chain(tuple(map(joint, chain.joints)), chain.links, gravity, parents=chain.parents)
