"""Functions of a scalar, whatever its type: float, Fraction, Tally, Dual or a graph's Node.

An algorithm uses ``+ - * /`` and the functions of this module on its scalars and nothing else.
A scalar type of our own brings its methods ``sin`` and ``cos``; plain numbers go to `math`.

`Operations` counts them: multiplications, additions, divisions, sines and cosines. `Rational` is a `Fraction` with fast
arithmetic, `Angle` a constant angle with exact cosine and sine. Building a program takes hundreds of thousands of
operations on exact constants, most of which are 0, ±1 or short. `Fraction` spends most of its time on checking operand
types. This class handles its own type, fractions and integers directly and leaves everything else to `Fraction`; a
result is a `Rational` whenever one of the exact operands is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import gcd
from typing import Any

# float, Fraction, Tally, Dual or Node: its type is the switch between value, count and program.
Scalar = Any


def exact(x: Any) -> Fraction:
    """The exact rational value of a decimal: ``exact(0.1) == Fraction(1, 10)``."""
    if isinstance(x, Fraction):
        return x
    if isinstance(x, int | Decimal | str):
        return Fraction(x)
    return Fraction(repr(float(x)))


def is_number(x: Scalar) -> bool:
    """Whether `x` is a constant: neither an input of a program nor a run-time number."""
    return isinstance(x, int | float | Fraction)


def cos(x: Scalar) -> Scalar:
    """Cosine of a scalar of any type; exact at the literal 0."""
    if type(x) is int and x == 0:
        return 1
    return x.cos() if hasattr(x, "cos") else math.cos(x)


def sin(x: Scalar) -> Scalar:
    """Sine of a scalar of any type; exact at the literal 0."""
    if type(x) is int and x == 0:
        return 0
    return x.sin() if hasattr(x, "sin") else math.sin(x)


def sign(x: Scalar) -> Scalar:
    """-1, 0 or 1."""
    return x.sign() if hasattr(x, "sign") else (x > 0) - (x < 0)


def positive(x: Scalar) -> Scalar:
    """1 where `x` is positive, NaN elsewhere: guards quotients that are undefined otherwise."""
    if hasattr(x, "positive"):
        return x.positive()
    return 1 if x > 0 else math.nan


def sqrt(x: Scalar) -> Scalar:
    """Square root."""
    return x.sqrt() if hasattr(x, "sqrt") else math.sqrt(x)


def clamp(x: Scalar, most: Scalar) -> Scalar:
    """`x` clamped to ±most, exactly: the weight of `x` is 1 inside and 0 outside."""
    side = sign(x)
    beyond = (1 + sign(x * side - most)) / 2
    return (1 - beyond) * x + beyond * (side * most)


@dataclass(frozen=True, slots=True)
class Operations:
    """How many operations a computation takes; signs are free, a subtraction is an addition."""

    mul: int = 0
    add: int = 0
    div: int = 0
    trig: int = 0

    def __add__(self, other: Operations) -> Operations:
        return Operations(self.mul + other.mul, self.add + other.add, self.div + other.div, self.trig + other.trig)

    def __sub__(self, other: Operations) -> Operations:
        return Operations(self.mul - other.mul, self.add - other.add, self.div - other.div, self.trig - other.trig)

    @property
    def total(self) -> int:
        """Multiplications, additions and divisions together (sines and cosines are counted apart)."""
        return self.mul + self.add + self.div

    def __str__(self) -> str:
        text = f"{self.mul}M {self.add}A"
        return text + (f" {self.div}D" if self.div else "")


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


_QUARTERS = ((1, 0), (0, 1), (-1, 0), (0, -1))


@dataclass(frozen=True, slots=True)
class Angle:
    """An angle in radians with its cosine and sine: exactly 0 or ±1 at right angles.

    At any other angle cosine and sine are the rational values of their floats.
    """

    radians: float
    cos: Scalar
    sin: Scalar

    @classmethod
    def of(cls, radians: float, snap: float = 0.0) -> Angle:
        """The angle, taken as the nearest multiple of π/2 when it is within `snap` of one.

        The float nearest to a multiple of π/2 is that multiple, also with ``snap=0``.
        """
        radians = float(radians)
        quarters = round(radians / (math.pi / 2))
        nearest = quarters * (math.pi / 2)
        if abs(radians - nearest) <= max(snap, 2**-52 * abs(nearest)):
            c, s = _QUARTERS[quarters % 4]
            return cls(nearest, Fraction(c), Fraction(s))
        return cls(radians, Fraction(math.cos(radians)), Fraction(math.sin(radians)))

    @property
    def is_right(self) -> bool:
        """Whether the angle is a multiple of π/2."""
        return bool(self.cos == 0 or self.sin == 0)

    @property
    def opposite(self) -> Angle:
        """The angle the other way round."""
        return Angle(-self.radians, self.cos, -self.sin)

    def plus(self, q: Scalar) -> tuple[Scalar, Scalar]:
        """Cosine and sine of this angle plus the run-time angle `q`."""
        if self.is_right:
            c, s = cos(q), sin(q)
            return self.cos * c - self.sin * s, self.sin * c + self.cos * s
        return cos(q + self.radians), sin(q + self.radians)

    def __float__(self) -> float:
        return self.radians


ZERO_ANGLE = Angle(0.0, Fraction(1), Fraction(0))
