"""Inertia seen from a frame, and forward dynamics with frames held in place.

Source: Khatib 1987 (operational-space inertia); Featherstone 2008, sections 8.1 and 8.2 (constraints on accelerations).

Idea: with H = U D Uᵀ and Y = J U⁻ᵀ, the acceleration of a frame per wrench on it is J H⁻¹ Jᵀ = Y D⁻¹ Yᵀ; its inverse is
the operational-space inertia. Frames that are held have the acceleration J q̈ + J̇ q̇ = 0, which their wrenches λ bring
about: (J H⁻¹ Jᵀ + damping 1) λ = -(J̇ q̇ + J H⁻¹ (τ - b)), and then q̈ = H⁻¹ (τ - b + Jᵀ λ). Rotors are included.

Symbols: Khatib 1987 | here: Λ | `inertia`; Featherstone 2008 | here: A = J H⁻¹ Jᵀ | `mobility`.

A pivot at the level of rounding means that the frame cannot move in that direction, or that rows are redundant: the
results are then NaN, unless there is a damping.
"""

from __future__ import annotations

from fractions import Fraction

from armdyn.algebra import Scalar, on_hand, positive
from armdyn.chain import Chain
from armdyn.errors import ComputationError
from armdyn.formulations.coordinates import Coordinates
from armdyn.formulations.elimination import Matrix, eliminate
from armdyn.formulations.forward_dynamics.composite import CHEAP, Bias, InertiaMatrix
from armdyn.formulations.inverse_dynamics import point_masses
from armdyn.formulations.kinematics import poses
from armdyn.formulations.registry import Formulation
from armdyn.formulations.steps import with_rotors

SINGULAR = Fraction(1, 10**12)  # a pivot below this fraction of its diagonal entry is rounding error


def inertia_inverse(
    chain: Chain,
    q: list[Scalar],
    jacobian: Matrix | None = None,
    *,
    inertia_matrix: InertiaMatrix = CHEAP,
    coordinates: Coordinates | None = None,
) -> Matrix:
    """J H⁻¹ Jᵀ: the acceleration of a frame (the tool) with this Jacobian per wrench on it."""
    jacobian = poses.jacobian(chain, q) if jacobian is None else jacobian
    H = with_rotors(chain, inertia_matrix(chain, q))
    if coordinates is not None:
        chain, H, jacobian = coordinates.robot, coordinates.matrix(H), coordinates.columns(jacobian)
    alpha, inverse, _ = eliminate(chain, H)
    return _mobility([_past_upper(alpha, row) for row in jacobian], inverse)


def inertia(
    chain: Chain,
    q: list[Scalar],
    jacobian: Matrix | None = None,
    *,
    inertia_matrix: InertiaMatrix = CHEAP,
    coordinates: Coordinates | None = None,
) -> Matrix:
    """(J H⁻¹ Jᵀ)⁻¹; NaN where the frame cannot move in every direction."""
    mobility = inertia_inverse(chain, q, jacobian, inertia_matrix=inertia_matrix, coordinates=coordinates)
    lower, inverse = _factors(mobility)
    n = len(inverse)
    columns = [_solved(lower, inverse, [int(i == j) for i in range(n)]) for j in range(n)]
    return [[columns[max(i, j)][min(i, j)] for j in range(n)] for i in range(n)]


def held(
    chain: Chain,
    q: list[Scalar],
    qd: list[Scalar],
    tau: list[Scalar],
    jacobian: Matrix | None = None,
    drift: list[Scalar] | None = None,
    damping: Scalar = 0,
    *,
    inertia_matrix: InertiaMatrix = CHEAP,
    bias: Bias = point_masses.bias,
    coordinates: Coordinates | None = None,
) -> tuple[list[Scalar], list[Scalar]]:
    """(q̈, λ) under joint forces, with rows of Jacobians whose accelerations J q̈ + drift are held at 0."""
    if jacobian is None or drift is None:
        jacobian, drift = poses.jacobian(chain, q), poses.acceleration(chain, q, qd, [0] * len(q))
    H, b = with_rotors(chain, inertia_matrix(chain, q)), bias(chain, q, qd)
    right = [t - b_i for t, b_i in zip(tau, b, strict=True)]
    if coordinates is not None:
        chain, H, jacobian = coordinates.robot, coordinates.matrix(H), coordinates.columns(jacobian)
        right = coordinates.forces(right)
    alpha, inverse, _ = eliminate(chain, H)
    rows, free = [_past_upper(alpha, row) for row in jacobian], _past_upper(alpha, right)
    mobility = _mobility(rows, inverse)
    damped = [[a + damping if i == j else a for j, a in enumerate(row)] for i, row in enumerate(mobility)]
    scaled = [d * y for d, y in zip(inverse, free, strict=True)]
    wanted = [-(d + _dot(row, scaled)) for d, row in zip(drift, rows, strict=True)]
    forces = _solved(*_factors(damped), wanted)
    pushed = [y + _dot(column, forces) for y, column in zip(free, zip(*rows, strict=True), strict=True)]
    qdd: list[Scalar] = []
    for y, d, above in zip(pushed, inverse, alpha, strict=True):
        qdd.append(d * y - _dot(above, qdd))
    return qdd, forces


def _dot(a: list[Scalar] | tuple[Scalar, ...], b: list[Scalar]) -> Scalar:
    return sum((x * y for x, y in zip(a, b, strict=True)), 0)


def _past_upper(alpha: Matrix, right: list[Scalar]) -> list[Scalar]:
    """U⁻¹ x."""
    y = list(right)
    for k in reversed(range(len(y))):
        for i in range(k):
            y[i] = y[i] - alpha[k][i] * y[k]
    return y


def _mobility(rows: Matrix, inverse: list[Scalar]) -> Matrix:
    """Y D⁻¹ Yᵀ."""
    mobility: Matrix = [[0] * len(rows) for _ in rows]
    for a, row in enumerate(rows):
        scaled = [d * y for d, y in zip(inverse, row, strict=True)]
        for b in range(a, len(rows)):
            mobility[a][b] = mobility[b][a] = _dot(scaled, rows[b])
    return mobility


def _factors(A: Matrix) -> tuple[Matrix, list[Scalar]]:
    """(L, 1/D) of a symmetric matrix L D Lᵀ; row i of L has its entries below the diagonal."""
    lower: Matrix = []
    pivots: list[Scalar] = []
    inverse: list[Scalar] = []
    for i, row in enumerate(A):
        scaled: list[Scalar] = []  # L D of this row
        for j in range(i):
            scaled.append(row[j] - _dot(lower[j], scaled[:j]))
        lower.append([x * d for x, d in zip(scaled, inverse, strict=True)])
        pivots.append(row[i] - _dot(lower[i], scaled))
        inverse.append(_reciprocal(pivots[i], row[i]))
    return lower, inverse


def _reciprocal(pivot: Scalar, diagonal: Scalar) -> Scalar:
    """1/pivot; NaN (or an error, if the pivot is a plain number) where it is rounding error."""
    if isinstance(pivot, int | float | Fraction):
        if not pivot > float(SINGULAR) * diagonal:
            raise ComputationError(
                "the frame cannot move in every direction that is asked for, or some of these directions are "
                "redundant; choose fewer rows, or give a damping"
            )
        return 1 / pivot
    return positive(on_hand(lambda: pivot - diagonal * SINGULAR)) / pivot


def _solved(lower: Matrix, inverse: list[Scalar], right: list[Scalar]) -> list[Scalar]:
    """The x with L D Lᵀ x = right."""
    y: list[Scalar] = []
    for below, value in zip(lower, right, strict=True):
        y.append(value - _dot(below, y))
    x = [d * value for d, value in zip(inverse, y, strict=True)]
    for i in reversed(range(len(x))):
        for j in range(i):
            x[j] = x[j] - lower[i][j] * x[i]
    return x


INERTIA = (Formulation("composite", inertia, "", "H, then (J H⁻¹ Jᵀ)⁻¹", made_of=("inertia_matrix",)),)
INVERSE = (Formulation("composite", inertia_inverse, "", "H, then J H⁻¹ Jᵀ", made_of=("inertia_matrix",)),)
HELD = (Formulation("composite", held, "", "H, b, then J H⁻¹ Jᵀ", made_of=("inertia_matrix", "bias")),)
