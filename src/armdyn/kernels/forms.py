"""Forms: polynomials in some inputs of a program, whose coefficients are intervals; NumPy arrays, one entry per box.

The dynamics are polynomials of low degree in velocities and accelerations. Keeping them as such preserves correlations:
a vector that is rotated from frame to frame does not grow, as it would if each of its entries were an interval. The
intervals cover the remaining inputs, the positions, within a box.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

UNIT = 2.0**-50  # bound of the relative rounding error of the arithmetic in this module
TRIG = 2.0**-49

Monomial = tuple[int, ...]
Coefficient = tuple[Any, Any]  # centre, radius


class Form:
    """Σ coefficient × product of inputs; a product is the sorted tuple of the inputs' numbers."""

    __slots__ = ("terms",)

    def __init__(self, terms: Mapping[Monomial, Coefficient]) -> None:
        self.terms = terms

    @classmethod
    def number(cls, centre: Any, radius: Any = 0.0) -> Form:
        """A form without inputs: an interval."""
        return cls({(): (centre, radius)})

    def largest(self, inputs: Any) -> Any:
        """A bound of its magnitude, if that of input k is at most inputs[k]."""
        total: Any = 0.0
        for key, (c, r) in self.terms.items():
            total = total + (np.abs(c) + r) * float(np.prod([inputs[k] for k in key]))
        return total * (1 + UNIT)

    def __neg__(self) -> Form:
        return Form({key: (-c, r) for key, (c, r) in self.terms.items()})

    def __add__(self, other: Form) -> Form:
        terms = dict(self.terms)
        for key, (c, r) in other.terms.items():
            if key in terms:
                a, s = terms[key]
                c, r = a + c, r + s + (np.abs(a) + np.abs(c)) * UNIT
            terms[key] = c, r
        return Form(terms)

    def __sub__(self, other: Form) -> Form:
        return self + -other

    def __mul__(self, other: Form) -> Form:
        terms: dict[Monomial, Coefficient] = {}
        for one, (a, r) in self.terms.items():
            for two, (b, s) in other.terms.items():
                key = tuple(sorted(one + two))
                size_a, size_b = np.abs(a), np.abs(b)
                c, radius = a * b, size_a * s + r * (size_b + s) + size_a * size_b * UNIT
                if key in terms:
                    c, radius = terms[key][0] + c, terms[key][1] + radius + np.abs(terms[key][0]) * UNIT
                terms[key] = c, radius
        return Form(terms)

    def sin(self) -> Form:
        """Sine of a number."""
        centre, radius = self.terms[()]
        return _turned(np.sin(centre), np.cos(centre), radius)

    def cos(self) -> Form:
        """Cosine of a number."""
        centre, radius = self.terms[()]
        return _turned(np.cos(centre), np.sin(centre), radius)

    def widened(self, relative: float, absolute: float) -> Form:
        """The form enlarged by a relative error and an absolute error."""
        terms = {key: (c, r + (np.abs(c) + r) * relative) for key, (c, r) in self.terms.items()}
        c, r = terms.get((), (0.0, 0.0))
        return Form({**terms, (): (c, r + absolute)})


def _turned(value: Any, slope: Any, radius: Any) -> Form:
    """As in `algebra.interval`: within h of (1 - h) value, plus slope sin δ."""
    s, c = np.sin(radius / 2), np.cos(radius / 2)
    h = s * s
    return Form.number(value - h * value, np.abs(value) * h + 2 * np.abs(slope) * (s * c) + TRIG)
