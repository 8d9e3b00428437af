"""Butcher tableaus of the fixed-step integrators, as data that checks its own identities.

Sources: Kutta 1901 (RK4); Dormand and Prince 1980, the fifth-order weights (RK5); Adams and Bashforth
1883 (AB4).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction as F


@dataclass(frozen=True)
class Tableau:
    """An explicit Runge-Kutta method: y_i = y + h Σ a_ij k_j, y⁺ = y + h Σ b_i k_i."""

    name: str
    order: int
    a: tuple[tuple[F, ...], ...]
    b: tuple[F, ...]

    @property
    def c(self) -> tuple[F, ...]:
        """The stages' times as fractions of the step: row sums of a."""
        return tuple(sum(row, F(0)) for row in self.a)

    @property
    def stages(self) -> int:
        """Evaluations a step."""
        return len(self.b)

    def __post_init__(self) -> None:
        if any(len(row) != i for i, row in enumerate(self.a)) or len(self.a) != len(self.b):
            raise ValueError(f"{self.name}: not an explicit tableau")
        # Order conditions of the quadrature part: Σ b c^k = 1/(k+1) for k < order.
        for k in range(self.order):
            if sum((b * c**k for b, c in zip(self.b, self.c, strict=True)), F(0)) != F(1, k + 1):
                raise ValueError(f"{self.name}: the weights are not of order {self.order}")


RK4 = Tableau(
    "RK4",
    4,
    ((), (F(1, 2),), (F(0), F(1, 2)), (F(0), F(0), F(1))),
    (F(1, 6), F(1, 3), F(1, 3), F(1, 6)),
)
RK5 = Tableau(
    "RK5",
    5,
    (
        (),
        (F(1, 5),),
        (F(3, 40), F(9, 40)),
        (F(44, 45), F(-56, 15), F(32, 9)),
        (F(19372, 6561), F(-25360, 2187), F(64448, 6561), F(-212, 729)),
        (F(9017, 3168), F(-355, 33), F(46732, 5247), F(49, 176), F(-5103, 18656)),
    ),
    (F(35, 384), F(0), F(500, 1113), F(125, 192), F(-2187, 6784), F(11, 84)),
)
EULER = Tableau("semi_implicit_euler", 1, ((),), (F(1),))  # the velocity's new value moves the position
AB4 = (F(55, 24), F(-59, 24), F(37, 24), F(-9, 24))  # newest first; order 4, started by RK4

RUNGE_KUTTA = {tableau.name: tableau for tableau in (RK4, RK5)}
FIXED = ("RK4", "RK5", "AB4", "semi_implicit_euler")
ADAPTIVE = ("DOP853", "RK45", "LSODA", "Radau")
METHODS = FIXED + ADAPTIVE
