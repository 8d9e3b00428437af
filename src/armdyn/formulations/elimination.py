"""Reverse Gaussian elimination H = U D Uᵀ of an inertia matrix, its solution and its inverse.

Source: Saha 1999, eqs. (23)-(33) and (36)-(40).

Idea: annihilate from the last column to the first, so that the pivots D are the articulated-body inertias. A pivot at
the level of rounding (a massless last link, a point mass in line with its joint) means that the inertia matrix is
singular and there is no solution. On plain numbers that is an error, in a batch the entries are NaN
(docs/adr/0003-extra-physics.md).

Errata (Saha 1999): the signs of α′ in eqs. (39)-(41) are inconsistent; here U⁻¹ has the entries -α′ of eq. (38) with
α′ᵢⱼ = αᵢⱼ - Σ αᵢₖ α′ₖⱼ, the only choice with U U⁻¹ = 1.
"""

from __future__ import annotations

from fractions import Fraction

from armdyn.algebra import Scalar, on_hand, positive
from armdyn.algebra.scalar import is_number
from armdyn.algebra.tally import index, named, named_entries, named_if_long, named_matrix
from armdyn.chain import Chain
from armdyn.errors import ComputationError
from armdyn.formulations.coordinates import Coordinates

Matrix = list[list[Scalar]]

SINGULAR = Fraction(1, 10**13)  # a pivot below this fraction of the stretched arm's inertia is rounding error


def least_pivots(chain: Chain) -> list[Scalar]:
    """The smallest pivot of every joint that is not rounding error: a fraction of the stretched arm's inertia.

    These are constants of the arm, so a check costs one addition per joint. If the links' parameters or the geometry
    are run-time inputs, pivots are only required to be positive.
    """
    if not (chain.known_geometry and all(is_number(x) for link in chain.links for x in link.natural)):
        return [0] * chain.nv
    if not chain.plain:
        coordinates = Coordinates.of(chain)
        pivots: list[Scalar] = [0] * chain.nv
        for (c, multiplier, _), pivot in zip(coordinates.follows, least_pivots(coordinates.tree), strict=True):
            pivots[c] = pivots[c] + multiplier * multiplier * pivot
        return pivots
    least: list[Scalar] = []
    for i, joint in enumerate(chain.joints):
        inertia = mass = Fraction(0) * chain.links[i].mass
        reaches = {i: inertia}
        for k, link in enumerate(chain.links[i:], start=i):
            if k > i and chain.parents[k] not in reaches:
                continue  # on another branch
            if k > i:
                outer = chain.joints[k]
                length = abs(outer.b) + abs(outer.d) + abs(outer.shift) + (1 if outer.prismatic else 0)
                reaches[k] = reaches[chain.parents[k]] + length
            reach = reaches[k]
            first = sum(abs(x) for x in link.moment)
            inertia = inertia + link.mass * reach * reach + 2 * reach * first + link.inertia.trace
            mass = mass + link.mass
        scale = (inertia if joint.revolute else mass) + joint.rotor_inertia
        least.append(type(scale)(SINGULAR) * scale)
    return least


def reciprocal(pivot: Scalar, least: Scalar, joint: int) -> Scalar:
    """1/pivot; NaN (or an error, if the pivot is a plain number) unless it is above `least`.

    A negative `joint` is one of the six joints of a floating base.
    """
    if isinstance(pivot, int | float | Fraction):
        if not pivot > least:
            moved = f"joint {joint + 1}" if joint >= 0 else "the floating base"
            remedy = f"give link {joint + 1} an inertia or the joint a rotor_inertia"
            raise ComputationError(
                f"the inertia matrix is singular: nothing resists {moved} (pivot {float(pivot):.3g}, expected above "
                f"{float(least):.3g}); {remedy if joint >= 0 else 'give its link a mass and an inertia'}"
            )
        return 1 / pivot
    return positive(on_hand(lambda: pivot - least)) / pivot


def eliminate(chain: Chain, H: Matrix) -> tuple[Matrix, list[Scalar], list[Scalar]]:
    """(α, 1/D, D) of H = U D Uᵀ; α[k][i] = U_ik for i < k."""
    n, least = len(H), least_pivots(chain)
    named_entries("H", H)
    H = [list(row) for row in H]
    alpha: Matrix = [[] for _ in range(n)]
    inverse: list[Scalar] = [0] * n
    for k in reversed(range(n)):
        inverse[k] = reciprocal(named(f"mhat_{index(k)}", H[k][k]), least[k], k - (chain.nv - chain.n))
        alpha[k] = [named(f"alpha_{index(i, k)}", H[i][k] * inverse[k]) for i in range(k)]  # eq. (24)
        for i in range(k):
            for j in range(i, k):
                less = H[i][j] - alpha[k][i] * H[j][k]  # eq. (50)
                H[i][j] = named_if_long(f"H_{index(i, j)}__{k + 1}", less)
    factors_shown(alpha, [H[k][k] for k in range(n)])
    return alpha, inverse, [H[k][k] for k in range(n)]


def factors_shown(alpha: Matrix, D: list[Scalar]) -> None:
    """Note D and U for derivations, eqs. (33), (45)."""
    named_matrix("D", lambda: [[d if i == j else 0 for j in range(len(D))] for i, d in enumerate(D)])
    named_matrix("U", lambda: upper(alpha))


def solve(alpha: Matrix, inverse: list[Scalar], right: list[Scalar]) -> list[Scalar]:
    """The x with U D Uᵀ x = right."""
    n = len(right)
    y = list(right)
    for k in reversed(range(n)):
        for i in range(k):
            y[i] = y[i] - alpha[k][i] * named(f"phihat_{index(k)}", y[k])
    x: list[Scalar] = []
    for k in range(n):
        value = y[k] * inverse[k]
        for a, x_i in zip(alpha[k], x, strict=True):
            value = value - a * x_i
        x.append(named(f"qddot_{index(k)}", value))
    return x


def upper(alpha: Matrix) -> Matrix:
    """U with its ones and zeros, eq. (33)."""
    n = len(alpha)
    return [[alpha[j][i] if i < j else 1 if i == j else 0 for j in range(n)] for i in range(n)]


def inverted(alpha: Matrix, inverse: list[Scalar]) -> Matrix:
    """H⁻¹ = U⁻ᵀ D⁻¹ U⁻¹, eqs. (36)-(40)."""
    n = len(alpha)
    prime: Matrix = [[] for _ in range(n)]  # α′[k][i] = -(U⁻¹)_ik for i < k
    for k in range(n):
        for i in range(k):
            value = alpha[k][i]
            for m in range(i + 1, k):
                value = value - prime[m][i] * alpha[k][m]  # eq. (39)
            prime[k].append(named(f"alphaprime_{index(i, k)}", value))
    named_matrix("U^-1", lambda: upper([[-x for x in column] for column in prime]))
    result: Matrix = [[0] * n for _ in range(n)]
    for i in range(n):
        scaled = [inverse[m] * prime[i][m] for m in range(i)]  # row i of U⁻ᵀ D⁻¹ up to sign
        for j in range(i, n):
            value = inverse[i] if i == j else -(inverse[i] * prime[j][i])
            for m in range(i):
                value = value + scaled[m] * prime[j][m]
            result[i][j] = result[j][i] = value
    return result


def solve_with_locks(
    H: Matrix, right: list[Scalar], free: list[Scalar], least: list[Scalar], base: int = 0
) -> tuple[list[Scalar], list[Scalar]]:
    """(x, left) with H x = right where joints are free (1) and x = 0 where they are locked (0).

    `left` is D x of a free joint, and of a locked one the force that holds it: the reciprocal of a locked joint's pivot
    is 0. `least` are the smallest pivots, and the first `base` rows those of a floating base.
    """
    n = len(right)
    H = [list(row) for row in H]
    y, inverse = list(right), list[Scalar]([0] * n)
    for k in reversed(range(n)):
        inverse[k] = free[k] * reciprocal(H[k][k], least[k], k - base)
        column = [H[i][k] * inverse[k] for i in range(k)]
        for i in range(k):
            y[i] = y[i] - column[i] * y[k]
            for j in range(i, k):
                H[i][j] = H[i][j] - column[i] * H[j][k]
    x: list[Scalar] = []
    left: list[Scalar] = []
    for k in range(n):
        rest = y[k]
        for i in range(k):
            rest = rest - H[i][k] * x[i]
        left.append(rest)
        x.append(rest * inverse[k])
    return x, left
