"""Interval: a centre and a radius that enclose a number, over any scalar; rounded outwards.

Source: midpoint-radius arithmetic, Rump 1999.

Idea: the true value lies within `radius` of `centre`. The centre is computed in ordinary arithmetic; the radius covers
the radii of the operands and the rounding error of the operation. Over graph nodes the same arithmetic becomes a
program, so that an enclosure is compiled like any kernel.

A radius consists of sums and products of non-negative numbers. Its own rounding is therefore a relative error of one
unit per operation, and is covered by one factor at the end (`ends`), which covers underflow as well.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from armdyn.algebra import scalar
from armdyn.algebra.mat3 import Mat3
from armdyn.algebra.vec3 import Vec3

UNIT = Fraction(1, 2**52)  # twice the unit roundoff
TRIG = Fraction(1, 2**50)  # four units in the last place of 1: sine and cosine are within two of their value
ALL = Fraction(1) + Fraction(1, 10**9)  # for the rounding of radii: up to a million operations
LEAST = Fraction(1, 10**290)  # for results that underflow
NUMBERS = (int, float, Fraction)


def size(x: Any) -> Any:
    """|x| for a scalar of any type, exactly."""
    return abs(x) if isinstance(x, NUMBERS) else x * scalar.sign(x)


class Interval:
    """Every number within `radius` of `centre`."""

    __slots__ = ("centre", "radius")
    __array_ufunc__ = None

    def __init__(self, centre: Any, radius: Any = 0) -> None:
        self.centre = centre
        self.radius = radius

    def __repr__(self) -> str:
        return f"Interval({self.centre!r} ± {self.radius!r})"

    @property
    def ends(self) -> tuple[Any, Any]:
        """Lower and upper end: no number in the interval lies outside of them."""
        reach = self.radius * ALL + size(self.centre) * UNIT + LEAST
        return self.centre - reach, self.centre + reach

    def __add__(self, other: Any) -> Interval:
        if isinstance(other, Interval):
            return rounded(self.centre + other.centre, self.radius + other.radius)
        return rounded(self.centre + other, self.radius + inexact(other))

    __radd__ = __add__

    def __neg__(self) -> Interval:
        return Interval(-self.centre, self.radius)

    def __sub__(self, other: Any) -> Any:
        return self + (-other)

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, Vec3 | Mat3):
            return NotImplemented  # a vector multiplies its components itself
        if not isinstance(other, Interval):
            return rounded(self.centre * other, self.radius * size(other), 2)  # the constant is rounded too
        a, b, r, s = self.centre, other.centre, self.radius, other.radius
        if other is self:  # δ² lies between 0 and r²
            half = r * r / 2
            return rounded(a * a + half, 2 * size(a) * r + half, 2)
        return rounded(a * b, size(a) * s + r * (size(b) + s))

    __rmul__ = __mul__

    def cos(self) -> Interval:
        """Cosine: cos(x + δ) = cos x cos δ - sin x sin δ with |δ| <= radius, which must not exceed π/2."""
        return self._turned(scalar.cos(self.centre), scalar.sin(self.centre))

    def sin(self) -> Interval:
        """Sine: sin(x + δ) = sin x cos δ + cos x sin δ with |δ| <= radius, which must not exceed π/2."""
        return self._turned(scalar.sin(self.centre), scalar.cos(self.centre))

    def _turned(self, value: Any, slope: Any) -> Interval:
        half = self.radius * Fraction(1, 2)
        s, c = scalar.sin(half), scalar.cos(half)
        h = s * s  # cos δ lies within h of 1 - h; both without cancellation
        return Interval(value - h * value, size(value) * h + 2 * size(slope) * (s * c) + TRIG)


def rounded(centre: Any, radius: Any, operations: int = 1) -> Interval:
    """The interval, enlarged by the rounding errors of this many operations on the centre."""
    return Interval(centre, radius + size(centre) * (operations * UNIT))


def inexact(x: Any) -> Any:
    """The rounding error of a constant written as a float; 0 if it is exact."""
    return abs(x) * UNIT if isinstance(x, Fraction) and Fraction(float(x)) != x else 0
