"""A constant angle with exact cosine and sine."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from armdyn.algebra.scalar import Scalar, cos, sin

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
