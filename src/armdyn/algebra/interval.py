"""Interval: a centre and a radius that enclose a number, over any scalar; rounded outwards.

Source: midpoint-radius arithmetic, Rump 1999.

Idea: the true value lies within `radius` of `centre`. The centre is computed in ordinary arithmetic; the radius covers
the radii of the operands and the rounding error of the operation. Over graph nodes the same arithmetic becomes a
program, so that an enclosure is compiled like any kernel.

A radius consists of sums and products of non-negative numbers. Its own rounding is therefore a relative error of one
unit per operation, and is covered by one factor at the end (`ends`), which covers underflow as well.

Rounded: an enclosure of an exact value, and a bound of the rounding error of its computed value.

Source: running error analysis, Wilkinson 1986; Higham 2002, section 3.3, with enclosures in place of computed values.

Idea: a pair (interval, error). The interval contains the exact value, the error bounds |computed - exact|. Every
operation is exact up to a relative error of one unit roundoff (IEEE 754, to nearest) and a small absolute error where
results underflow; the accuracy of sine and cosine is an assumption. Over graph nodes the pair becomes a program,
compiled like any kernel.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from armdyn.algebra import scalar
from armdyn.algebra.spatial import Mat3, Vec3

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


@dataclass(frozen=True)
class FloatFormat:
    """A floating-point format and its library: unit roundoff, underflow, units in the last place of sine and cosine."""

    name: str
    code: str  # of `struct`
    unit: Fraction
    least: Fraction  # no operation loses more to underflow
    trig_ulps: Fraction

    def written(self, x: Fraction) -> Fraction:
        """A constant as the program has it: rounded to a double, then to the format."""
        return Fraction(*struct.unpack(self.code, struct.pack(self.code, float(x)))[0].as_integer_ratio())


FORMATS = {
    "float": FloatFormat("float", "f", Fraction(1, 2**24), Fraction(1, 2**149), Fraction(2)),
    "double": FloatFormat("double", "d", Fraction(1, 2**53), Fraction(1, 2**1022), Fraction(2)),
}


class Rounded:
    """A number within `value` (an Interval, or a constant), computed within `error`."""

    __slots__ = ("error", "precision", "value")

    def __init__(self, value: Any, error: Any, precision: FloatFormat) -> None:
        self.value = value
        self.error = error
        self.precision = precision

    @classmethod
    def constant(cls, x: Fraction, precision: FloatFormat) -> Rounded:
        """A constant, off by what writing it as a number of the format costs."""
        return cls(x, abs(precision.written(x) - x), precision)

    @property
    def bound(self) -> Any:
        """The error, its own rounding included."""
        return self.error * ALL

    @property
    def largest(self) -> Any:
        """A bound of the magnitude of the exact value."""
        if not isinstance(self.value, Interval):
            return abs(self.value)
        return size(self.value.centre) + self.value.radius

    def __add__(self, other: Rounded) -> Rounded:
        return self._rounded(self.value + other.value, self.error + other.error)

    def __sub__(self, other: Rounded) -> Rounded:
        return self._rounded(self.value - other.value, self.error + other.error)

    def __neg__(self) -> Rounded:
        return Rounded(-self.value, self.error, self.precision)

    def __mul__(self, other: Rounded) -> Rounded:
        a, b = self.error, other.error
        if other is self:
            return self._rounded(self.value * self.value, a * (2 * self.largest + a))
        value, error = self.value * other.value, a * other.largest + b * (self.largest + a)
        if any(one.exact_factor for one in (self, other)):
            return Rounded(value, error + self.precision.least, self.precision)
        return self._rounded(value, error)

    @property
    def exact_factor(self) -> bool:
        """Whether a product with this is not rounded: a constant ± a power of two."""
        if isinstance(self.value, Interval) or self.value == 0:
            return False
        x = abs(self.value)
        return bool(min(x.numerator, x.denominator) == 1 and max(x.numerator, x.denominator).bit_count() == 1)

    def sin(self) -> Rounded:
        """Sine: a Lipschitz function of its argument, then the library's own error."""
        return self._of_library(scalar.sin(self.value))

    def cos(self) -> Rounded:
        """Cosine, likewise."""
        return self._of_library(scalar.cos(self.value))

    def _of_library(self, value: Any) -> Rounded:
        result = Rounded(value, 0, self.precision)
        relative = 2 * self.precision.unit * self.precision.trig_ulps  # a unit in the last place is at most two units
        return Rounded(value, self.error + (result.largest + self.error) * relative, self.precision)

    def _rounded(self, value: Any, error: Any) -> Rounded:
        """The result of an operation, whose operands' errors alone would make this error."""
        unit = self.precision.unit
        size_of = Rounded(value, 0, self.precision).largest
        return Rounded(value, error * (1 + unit) + size_of * unit + self.precision.least, self.precision)
