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
class CountPolynomial:
    """Coefficients of 1, n, n², n³."""

    coefficients: tuple[Fraction, Fraction, Fraction, Fraction]

    @classmethod
    def of(cls, text: str) -> CountPolynomial:
        """Parse a polynomial as printed: ``Polynomial.of("11.5n²-27.5n+16")``."""
        found = [Fraction(0)] * 4
        for sign, number, power in _TERM.findall(text.replace(" ", "")):
            if number or power:
                found[_POWER[power]] += Fraction(number or 1) * (-1 if sign == "-" else 1)
        return cls((found[0], found[1], found[2], found[3]))

    @classmethod
    def through(cls, values: Mapping[int, int]) -> CountPolynomial | None:
        """The polynomial of at most third degree through all values, or None if there is none."""
        first = sorted(values)[:4]
        if len(first) < 4:
            return None
        total = [Fraction(0)] * 4
        for k in first:  # Lagrange
            basis = [Fraction(values[k]), *[Fraction(0)] * 3]
            for other in first:
                if other != k:
                    shifted = [Fraction(0), *basis[:3]]
                    basis = [(a - other * b) / (k - other) for a, b in zip(shifted, basis, strict=True)]
            total = [a + b for a, b in zip(total, basis, strict=True)]
        candidate = cls((total[0], total[1], total[2], total[3]))
        return candidate if all(candidate(n) == value for n, value in values.items()) else None

    def __call__(self, n: int) -> int | Fraction:
        """The value at n, as an int if it is whole."""
        value = sum((c * n**k for k, c in enumerate(self.coefficients)), Fraction(0))
        return int(value) if value.denominator == 1 else value

    def __add__(self, other: CountPolynomial) -> CountPolynomial:
        a, b = self.coefficients, other.coefficients
        return CountPolynomial((a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3] + b[3]))

    def __sub__(self, other: CountPolynomial) -> CountPolynomial:
        a, b = self.coefficients, other.coefficients
        return CountPolynomial((a[0] - b[0], a[1] - b[1], a[2] - b[2], a[3] - b[3]))

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
