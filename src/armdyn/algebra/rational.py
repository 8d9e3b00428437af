"""Rational: a `Fraction` with fast arithmetic.

Building a program takes hundreds of thousands of operations on exact constants, most of which are 0, ±1 or short.
`Fraction` spends most of its time on checking operand types. This class handles its own type, fractions and integers
directly and leaves everything else to `Fraction`; a result is a `Rational` whenever one of the exact operands is.
"""

from __future__ import annotations

from fractions import Fraction
from math import gcd
from typing import Any

_NUMBERS = (int, float, complex)  # testing for these is faster than testing for a `Fraction`
_new = object.__new__


class Rational(Fraction):
    """An exact constant: equal to the `Fraction` of the same value, with the same hash, but with faster arithmetic."""

    __slots__ = ()
    _numerator: int  # the fields of a `Fraction`
    _denominator: int

    def __add__(self, other: Any) -> Any:
        kind = other.__class__
        if kind is Rational or kind is Fraction:
            return _sum(self, other._numerator, other._denominator)
        if kind is int:
            return _sum(self, other, 1)
        return Fraction.__add__(self, other) if isinstance(other, _NUMBERS) else NotImplemented

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        kind = other.__class__
        if kind is Rational or kind is Fraction:
            return _sum(self, -other._numerator, other._denominator)
        if kind is int:
            return _sum(self, -other, 1)
        return Fraction.__sub__(self, other) if isinstance(other, _NUMBERS) else NotImplemented

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __mul__(self, other: Any) -> Any:
        kind = other.__class__
        if kind is Rational or kind is Fraction:
            return _product(self, other._numerator, other._denominator)
        if kind is int:
            return _product(self, other, 1)
        return Fraction.__mul__(self, other) if isinstance(other, _NUMBERS) else NotImplemented

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        if isinstance(other, int | Fraction) and other:
            n, d = other.numerator, other.denominator
            return _product(self, d, n) if n > 0 else _product(self, -d, -n)
        return Fraction.__truediv__(self, other)  # by zero, or something else

    def __rtruediv__(self, other: Any) -> Any:
        return Rational(other) / self if isinstance(other, int | Fraction) else Fraction.__rtruediv__(self, other)

    def __neg__(self) -> Any:
        return _made(-self._numerator, self._denominator)

    def __abs__(self) -> Any:
        return self if self._numerator >= 0 else _made(-self._numerator, self._denominator)

    def __eq__(self, other: object) -> bool:
        if other.__class__ is Rational:
            return self._numerator == other._numerator and self._denominator == other._denominator
        if other.__class__ is int:
            return self._numerator == other and self._denominator == 1
        return Fraction.__eq__(self, other)

    __hash__ = Fraction.__hash__

    def as_integer_ratio(self) -> tuple[int, int]:
        """Numerator and denominator."""
        return self._numerator, self._denominator


def _made(numerator: int, denominator: int) -> Rational:
    """The quotient of two numbers without a common divisor."""
    made = _new(Rational)
    made._numerator = numerator
    made._denominator = denominator
    return made


def _product(a: Any, n: int, d: int) -> Any:
    """The product a·(n/d)."""
    numerator, denominator = a._numerator, a._denominator
    if d == 1:
        if n == 1:
            return a
        if denominator == 1:
            return _made(numerator * n, 1)
    if denominator != 1:
        common = gcd(n, denominator)
        if common > 1:
            n, denominator = n // common, denominator // common
    if d != 1:
        common = gcd(numerator, d)
        if common > 1:
            numerator, d = numerator // common, d // common
    return _made(numerator * n, denominator * d)


def _sum(a: Any, n: int, d: int) -> Any:
    """The sum a + n/d (Knuth, The Art of Computer Programming, volume 2, section 4.5.1)."""
    numerator, denominator = a._numerator, a._denominator
    if not n:
        return a
    if denominator == d == 1:
        return _made(numerator + n, 1)
    common = gcd(denominator, d)
    if common == 1:
        return _made(numerator * d + denominator * n, denominator * d)
    rest = denominator // common
    total = numerator * (d // common) + n * rest
    common = gcd(total, common)
    return _made(total // common, rest * (d // common))
