"""Two neighbouring axes: the frame on the first one and the transform to the second, by their common normal.

Nearly parallel axes are ill-conditioned: at an angle ε the common normal is 1/ε away. Such pairs keep the
origin and have a second small angle, γ about y (see `Joint`).
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

from armdyn.algebra import Angle, Mat3, Scalar, Vec3
from armdyn.algebra.angle import ZERO_ANGLE
from armdyn.chain.exactly import NOISE, dot, length, root, short, unit
from armdyn.chain.placement import Placement

PARALLEL = 2e-12  # radians: axes closer than this are parallel; a larger bound would show in the tenth digit
NEARLY = 1e-2  # radians: axes closer than this keep the fifth parameter
_HALF_TURN = Angle.of(math.pi)


class Seat(NamedTuple):
    """A frame on an axis, by its origin and two of its directions."""

    p: Vec3
    x: Vec3
    z: Vec3

    @property
    def placement(self) -> Placement:
        """The same frame as a placement."""
        return Placement(Mat3(self.x, self.z.cross(self.x), self.z).T, self.p)


class Step(NamedTuple):
    """Frame i, and the known part of the transform to frame i+1: b, β, γ and the seat from which d and θ start."""

    seat: Seat
    b: Scalar
    beta: Angle
    gamma: Angle
    onward: Seat


def normal(seat: Seat, u: Vec3, Q: Vec3, parallel: float) -> Step:
    """Frame i, from where d and θ of joint i start and from the next axis: its direction u and a point Q of it."""
    c = seat.z.cross(u)
    apart = math.sqrt(float(c.dot(c)))  # the sine of the angle between the axes
    if apart <= parallel:
        return _parallel(seat, u, Q)
    if apart < NEARLY:
        return _nearly_parallel(seat, u, Q)
    return _skew(seat, u, Q, c)


def _skew(seat: Seat, u: Vec3, Q: Vec3, c: Vec3) -> Step:
    """Axes with one common normal: skew or intersecting."""
    z, w, cc = seat.z, Q - seat.p, reciprocal(c.dot(c))
    foot = short(seat.p + (w.cross(u).dot(c) * cc) * z)
    other = short(Q + (w.cross(z).dot(c) * cc) * u)
    n = unit(c)
    x, b = _signed(n, length(w.dot(n)), seat.x)
    return Step(Seat(foot, x, z), b, angle(z, u, x), ZERO_ANGLE, Seat(other, x, u))


def _parallel(seat: Seat, u: Vec3, Q: Vec3) -> Step:
    """Parallel or antiparallel axes: the normal goes out where joint i's d is 0; coincident ones keep x."""
    z, w = seat.z, Q - seat.p
    w = w - w.dot(z) * z
    b = length(root(w.dot(w)))
    x, b = _signed(across_from(w, z), b, seat.x) if b != 0 else (seat.x, b)
    beta = ZERO_ANGLE if z.dot(u) > 0 else _HALF_TURN
    return Step(Seat(seat.p, x, z), b, beta, ZERO_ANGLE, Seat(seat.p + w, x, u))


def _nearly_parallel(seat: Seat, u: Vec3, Q: Vec3) -> Step:
    """Axes whose common normal is far away: b leads to where the next axis meets the plane normal to this one."""
    z = seat.z
    T = Q + ((seat.p - Q).dot(z) * reciprocal(u.dot(z))) * u
    w = T - seat.p
    w = w - w.dot(z) * z
    b = length(root(w.dot(w)))
    x, b = _signed(across_from(w, z), b, seat.x) if b != 0 else (seat.x, b)
    sine, up, y = float(x.dot(u)), float(z.dot(u)), float(z.cross(x).dot(u))
    # Rx(β) Ry(γ) z = (Sγ, -Sβ Cγ, Cβ Cγ) is the next axis.
    beta, gamma = Angle.of(math.atan2(-y, up), NOISE), Angle.of(math.asin(sine), NOISE)
    return Step(Seat(seat.p, x, z), b, beta, gamma, Seat(T, unit(x - x.dot(u) * u), u))


def _signed(x: Vec3, b: Scalar, before: Vec3) -> tuple[Vec3, Scalar]:
    """The sign of x: the one with θ = 0 if there is one, else the one with b > 0, else the one along its own axes."""
    turn = float(before.dot(x))
    if abs(turn) > 1 - 1e-12:
        return (x, b) if turn > 0 else (-x, -b)
    if b == 0:
        return (x, b) if max(x, key=abs) > 0 else (-x, b)
    return (x, b) if b > 0 else (-x, -b)


def reciprocal(x: Scalar) -> Scalar:
    """1 / x, exact where x is."""
    return 1 / x if isinstance(x, float) else Fraction(1) / x


def angle(a: Vec3, b: Vec3, axis: Vec3) -> Angle:
    """The angle from a to b about the axis, all of length 1."""
    c, s = dot(a, b), dot(a.cross(b), axis)
    return Angle.of(math.atan2(float(s), float(c)), NOISE)


def across_from(v: Vec3, z: Vec3) -> Vec3:
    """The direction of v orthogonalised to z, for v nearly orthogonal to it."""
    x = unit(v)
    along = x.dot(z)
    return x if along == 0 else unit(x - along * z)


def across(z: Vec3) -> Vec3:
    """A direction orthogonal to z: x if possible, else y, orthogonalised to z."""
    zero = z.x * 0
    x = Vec3(1 + zero, zero, zero) if abs(z.x) < 0.9 else Vec3(zero, 1 + zero, zero)
    return across_from(x - x.dot(z) * z, z)
