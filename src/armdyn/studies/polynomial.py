"""Polynomials in the number of joints, parsed and printed in the papers' notation."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

_TERM = re.compile(r"([+-]?)(\d+(?:\.\d+|/\d+)?)?(n[²³]?)?")
_POWER = {"": 0, "n": 1, "n²": 2, "n³": 3}
_NAME = {power: name for name, power in _POWER.items()}


@dataclass(frozen=True, slots=True)
class Polynomial:
    """Coefficients of 1, n, n², n³."""

    coefficients: tuple[Fraction, Fraction, Fraction, Fraction]

    @classmethod
    def of(cls, text: str) -> Polynomial:
        """Parse a polynomial as printed: ``Polynomial.of("11.5n²-27.5n+16")``."""
        found = [Fraction(0)] * 4
        for sign, number, power in _TERM.findall(text.replace(" ", "")):
            if number or power:
                found[_POWER[power]] += Fraction(number or 1) * (-1 if sign == "-" else 1)
        return cls((found[0], found[1], found[2], found[3]))

    @classmethod
    def through(cls, values: Mapping[int, int]) -> Polynomial | None:
        """The polynomial of at most second degree through all values, or None if there is none."""
        first = sorted(values)[:3]
        if len(first) < 3:
            return None
        total = cls.of("0")
        for k in first:  # Lagrange
            a, b = (m for m in first if m != k)
            scale = Fraction(values[k], (k - a) * (k - b))
            total = total + cls((scale * a * b, -scale * (a + b), scale, Fraction(0)))
        return total if all(total(n) == value for n, value in values.items()) else None

    def __call__(self, n: int) -> int | Fraction:
        """The value at n, as an int if it is whole."""
        value = sum((c * n**k for k, c in enumerate(self.coefficients)), Fraction(0))
        return int(value) if value.denominator == 1 else value

    def __add__(self, other: Polynomial) -> Polynomial:
        a, b = self.coefficients, other.coefficients
        return Polynomial((a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3] + b[3]))

    def __sub__(self, other: Polynomial) -> Polynomial:
        a, b = self.coefficients, other.coefficients
        return Polynomial((a[0] - b[0], a[1] - b[1], a[2] - b[2], a[3] - b[3]))

    def __str__(self) -> str:
        text = ""
        for power in (3, 2, 1, 0):
            c = self.coefficients[power]
            if c:
                size = "" if abs(c) == 1 and power else _number(abs(c))
                text += f" {'-' if c < 0 else '+'} {size}{_NAME[power]}"
        return (text[3:] if text.startswith(" + ") else "-" + text[3:]) if text else "0"


def _number(c: Fraction) -> str:
    return f"{float(c):g}" if c.denominator in (1, 2, 5, 10) else f"({c})"
