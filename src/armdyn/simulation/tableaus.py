"""Butcher tableaus of the fixed-step integrators, as data that checks its own identities.

Sources: Kutta 1901 (RK4); Dormand and Prince 1980, the fifth-order weights (RK5); Adams and Bashforth
1883 (AB4); Kennedy and Carpenter 2003, ARK4(3)6L[2]SA (ARK4).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

ROUNDED = Fraction(1, 10**20)  # ARK4's coefficients are published as rationals of 25 digits


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
        """Evaluations per step."""
        return len(self.b)

    def __post_init__(self) -> None:
        if any(len(row) != i for i, row in enumerate(self.a)) or len(self.a) != len(self.b):
            raise ValueError(f"{self.name}: not an explicit tableau")
        # Order conditions of the quadrature part: Σ b c^k = 1/(k+1) for k < order.
        for k in range(self.order):
            total = sum((b * c**k for b, c in zip(self.b, self.c, strict=True)), Fraction(0))
            if abs(total - Fraction(1, k + 1)) > ROUNDED:
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
ARK4 = Tableau(
    "ARK4",
    4,
    (
        (),
        (Fraction(1, 2),),
        (Fraction(13861, 62500), Fraction(6889, 62500)),
        (
            Fraction(-116923316275, 2393684061468),
            Fraction(-2731218467317, 15368042101831),
            Fraction(9408046702089, 11113171139209),
        ),
        (
            Fraction(-451086348788, 2902428689909),
            Fraction(-2682348792572, 7519795681897),
            Fraction(12662868775082, 11960479115383),
            Fraction(3355817975965, 11060851509271),
        ),
        (
            Fraction(647845179188, 3216320057751),
            Fraction(73281519250, 8382639484533),
            Fraction(552539513391, 3454668386233),
            Fraction(3354512671639, 8306763924573),
            Fraction(4040, 17871),
        ),
    ),
    (
        Fraction(82889, 524892),
        Fraction(0),
        Fraction(15625, 83664),
        Fraction(69875, 102672),
        Fraction(-2260, 8211),
        Fraction(1, 4),
    ),
)
# The implicit half of the pair: row i has the coefficients of the stages before and its own, 1/4.
ARK4_IMPLICIT = (
    (),
    (Fraction(1, 4), Fraction(1, 4)),
    (Fraction(8611, 62500), Fraction(-1743, 31250), Fraction(1, 4)),
    (Fraction(5012029, 34652500), Fraction(-654441, 2922500), Fraction(174375, 388108), Fraction(1, 4)),
    (
        Fraction(15267082809, 155376265600),
        Fraction(-71443401, 120774400),
        Fraction(730878875, 902184768),
        Fraction(2285395, 8070912),
        Fraction(1, 4),
    ),
    ARK4.b,
)
EULER = Tableau("semi_implicit_euler", 1, ((),), (Fraction(1),))  # the velocity's new value moves the position
AB4 = (Fraction(55, 24), Fraction(-59, 24), Fraction(37, 24), Fraction(-9, 24))  # newest first; order 4, started by RK4

RUNGE_KUTTA = {tableau.name: tableau for tableau in (RK4, RK5)}
FIXED = ("RK4", "RK5", "AB4", "ARK4", "semi_implicit_euler")
ADAPTIVE = ("DOP853", "RK45", "LSODA", "Radau")
METHODS = FIXED + ADAPTIVE
