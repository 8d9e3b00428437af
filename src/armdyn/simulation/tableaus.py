"""Butcher tableaus of the fixed-step integrators, as data that checks its own identities.

Sources: Kutta 1901 (RK4); Dormand and Prince 1980, the fifth-order weights (RK5); Adams and Bashforth
1883 (AB4).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Tableau:
    """An explicit Runge-Kutta method: y_i = y + h Σ a_ij k_j, y⁺ = y + h Σ b_i k_i."""

    name: str
    order: int
    a: tuple[tuple[Fraction, ...], ...]
    b: tuple[Fraction, ...]

    @property
    def c(self) -> tuple[Fraction, ...]:
        """The stages' times as fractions of the step: row sums of a."""
        return tuple(sum(row, Fraction(0)) for row in self.a)

    @property
    def stages(self) -> int:
        """Evaluations a step."""
        return len(self.b)

    def __post_init__(self) -> None:
        if any(len(row) != i for i, row in enumerate(self.a)) or len(self.a) != len(self.b):
            raise ValueError(f"{self.name}: not an explicit tableau")
        # Order conditions of the quadrature part: Σ b c^k = 1/(k+1) for k < order.
        for k in range(self.order):
            if sum((b * c**k for b, c in zip(self.b, self.c, strict=True)), Fraction(0)) != Fraction(1, k + 1):
                raise ValueError(f"{self.name}: the weights are not of order {self.order}")


RK4 = Tableau(
    "RK4",
    4,
    ((), (Fraction(1, 2),), (Fraction(0), Fraction(1, 2)), (Fraction(0), Fraction(0), Fraction(1))),
    (Fraction(1, 6), Fraction(1, 3), Fraction(1, 3), Fraction(1, 6)),
)
RK5 = Tableau(
    "RK5",
    5,
    (
        (),
        (Fraction(1, 5),),
        (Fraction(3, 40), Fraction(9, 40)),
        (Fraction(44, 45), Fraction(-56, 15), Fraction(32, 9)),
        (Fraction(19372, 6561), Fraction(-25360, 2187), Fraction(64448, 6561), Fraction(-212, 729)),
        (Fraction(9017, 3168), Fraction(-355, 33), Fraction(46732, 5247), Fraction(49, 176), Fraction(-5103, 18656)),
    ),
    (Fraction(35, 384), Fraction(0), Fraction(500, 1113), Fraction(125, 192), Fraction(-2187, 6784), Fraction(11, 84)),
)
EULER = Tableau("semi_implicit_euler", 1, ((),), (Fraction(1),))  # the velocity's new value moves the position
AB4 = (Fraction(55, 24), Fraction(-59, 24), Fraction(37, 24), Fraction(-9, 24))  # newest first; order 4, started by RK4

RUNGE_KUTTA = {tableau.name: tableau for tableau in (RK4, RK5)}
FIXED = ("RK4", "RK5", "AB4", "semi_implicit_euler")
ADAPTIVE = ("DOP853", "RK45", "LSODA", "Radau")
METHODS = FIXED + ADAPTIVE
