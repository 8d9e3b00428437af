"""Rounded: an enclosure of an exact value, and a bound of the rounding error of its computed value.

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
from armdyn.algebra.interval import ALL, Interval, size


@dataclass(frozen=True)
class Precision:
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
    "float": Precision("float", "f", Fraction(1, 2**24), Fraction(1, 2**149), Fraction(2)),
    "double": Precision("double", "d", Fraction(1, 2**53), Fraction(1, 2**1022), Fraction(2)),
}


class Rounded:
    """A number within `value` (an Interval, or a constant), computed within `error`."""

    __slots__ = ("error", "precision", "value")

    def __init__(self, value: Any, error: Any, precision: Precision) -> None:
        self.value = value
        self.error = error
        self.precision = precision

    @classmethod
    def constant(cls, x: Fraction, precision: Precision) -> Rounded:
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
