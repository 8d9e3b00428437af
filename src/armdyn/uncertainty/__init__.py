"""Uncertainty: guaranteed bounds over ranges, bounds of rounding errors, and arms with uncertain parameters.

The theory of the proven bounds, and why they hold:

**Branch and bound.** The region is covered by pieces, each with an upper bound of the quantity and a value that
occurs in it. A piece whose bound does not exceed the best value found is done; of the others, those with the largest
bounds are split. Whenever the search stops, the largest remaining bound holds for the whole region (`search`).

**Enclosures.** Any quantity without division is bounded on a box in all of its variables by interval arithmetic with
outward rounding: the smaller of the enclosure of the value itself, and of the mean-value form, centred at the point
that makes it sharpest (Baumann 1988). A variable in which the gradient has constant sign is fixed at its better end.

**Taylor expansions with a proven remainder.** An entry of the dynamics is a trigonometric polynomial of degree at
most 2 in every revolute joint: positions are of degree 1, and the dynamics are quadratic in them. Its values at five
angles per joint determine it exactly, f(q) = Σ f̂(a) exp(i a·q), |a_k| <= 2. The remainder of the Taylor expansion of
exp(i a·δ) up to order p - 1 is at most |a·δ|^p / p!, so that of f, on a box with radii r about any point, is at most
Σ |f̂(a)| (Σ |a_k| r_k)^p / p!. This is a polynomial in the radii whose coefficients are computed once for all boxes
(`expansions`).

**Motions.** For a fixed configuration, joint forces are linear in accelerations and quadratic in velocities: f(q, q̇,
q̈) = Σ_j H_j(q) q̈_j + Σ_jk B_jk(q) q̇_j q̇_k + g(q). So only the positions are split. Each acceleration is at the
end of its range given by the sign of H. Convex squares of velocities are largest at the ends of their ranges, and a
concave one, -b x² on a range of half-width h, lies at most b h² above its chord. The force over all motions is at
most the largest over the corners of the velocity box, plus Σ h_j² max(0, -B_jj). A piece is then a box of angles with
one velocity corner, where the force is expanded to third order about the centre of the box.

**Rounding errors** of a quantity's C code are propagated operation by operation, over the same boxes (`bounds`).
"""

from armdyn.uncertainty.bounds import Bound, RoundingError, bound, rounding_error
from armdyn.uncertainty.distributions import Normal, Uniform
from armdyn.uncertainty.statistics import Outcome, Probability, SobolIndices, Worst, probability
from armdyn.uncertainty.uncertain import Samples, Uncertain, Variable

__all__ = [
    "Bound",
    "Normal",
    "Outcome",
    "Probability",
    "RoundingError",
    "Samples",
    "SobolIndices",
    "Uncertain",
    "Uniform",
    "Variable",
    "Worst",
    "bound",
    "probability",
    "rounding_error",
]
