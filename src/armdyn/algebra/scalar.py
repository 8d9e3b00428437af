"""Functions of a scalar, whatever its type: float, Fraction, Tally, Dual or a graph's Node.

An algorithm uses ``+ - * /`` and the functions of this module on its scalars and nothing else.
A scalar type of our own brings its methods ``sin`` and ``cos``; plain numbers go to `math`.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
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
