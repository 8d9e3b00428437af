"""Forward dynamics by composite bodies: H, b, then U D Uᵀ.

Source: Walker & Orin 1982 (method 3) as Lin 1991 and Saha 1999 describe it; the elimination is
Saha's, eqs. (23)-(33).

Idea: H q̈ = τ - b with the cheapest formulations of H and b; the elimination is part of the same program, so common
subexpressions of H and b are computed once.

Cost: H, b, and n(n-1)(n+4)/6 multiplications for the elimination, n² for the solution, n divisions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from armdyn.algebra import Scalar
from armdyn.chain import Chain
from armdyn.formulations.coordinates import Coordinates
from armdyn.formulations.elimination import Matrix, eliminate, inverted, upper
from armdyn.formulations.forward_dynamics.solvers import Solver, gauss_jordan, ldl, udu
from armdyn.formulations.inertia_matrix import meeting_frame
from armdyn.formulations.inverse_dynamics import point_masses
from armdyn.formulations.steps import with_rotors

InertiaMatrix = Callable[[Chain, list[Scalar]], Matrix]
Bias = Callable[[Chain, list[Scalar], list[Scalar]], list[Scalar]]

CHEAP: InertiaMatrix = meeting_frame.inertia_matrix  # the fewest operations in general


def forward_dynamics(
    chain: Chain,
    q: list[Scalar],
    qd: list[Scalar],
    tau: list[Scalar],
    *,
    inertia_matrix: InertiaMatrix = CHEAP,
    bias: Bias = point_masses.bias,
    solver: Solver = udu,
    coordinates: Coordinates | None = None,
) -> list[Scalar]:
    """The joint accelerations under joint forces, rotors included; `coordinates` reduces the system of mimic joints."""
    H, b = with_rotors(chain, inertia_matrix(chain, q)), bias(chain, q, qd)
    right = [t - b_i for t, b_i in zip(tau, b, strict=True)]
    if coordinates is not None:
        return solver(coordinates.robot, coordinates.matrix(H), coordinates.forces(right))
    return solver(chain, H, right)


def by_ldl(chain: Chain, q: list[Scalar], qd: list[Scalar], tau: list[Scalar], **parts: Any) -> list[Scalar]:
    """The same, solved by L D Lᵀ, the first joint first."""
    return forward_dynamics(chain, q, qd, tau, **parts, solver=ldl)


def by_gauss_jordan(chain: Chain, q: list[Scalar], qd: list[Scalar], tau: list[Scalar], **parts: Any) -> list[Scalar]:
    """The same, solved by Gauss-Jordan elimination, which does not use the symmetry of H."""
    return forward_dynamics(chain, q, qd, tau, **parts, solver=gauss_jordan)


def factors(
    chain: Chain, q: list[Scalar], inertia_matrix: InertiaMatrix, coordinates: Coordinates | None
) -> tuple[Matrix, list[Scalar], list[Scalar]]:
    """(α, 1/D, D) of H = U D Uᵀ, rotors included."""
    H = with_rotors(chain, inertia_matrix(chain, q))
    return eliminate(chain, H) if coordinates is None else eliminate(coordinates.robot, coordinates.matrix(H))


def inertia_factors(
    chain: Chain,
    q: list[Scalar],
    *,
    inertia_matrix: InertiaMatrix = CHEAP,
    coordinates: Coordinates | None = None,
) -> tuple[Matrix, list[Scalar]]:
    """(U, D) of H = U D Uᵀ, rotors included."""
    alpha, _, D = factors(chain, q, inertia_matrix, coordinates)
    return upper(alpha), D


def inertia_inverse(
    chain: Chain,
    q: list[Scalar],
    *,
    inertia_matrix: InertiaMatrix = CHEAP,
    coordinates: Coordinates | None = None,
) -> Matrix:
    """H⁻¹, rotors included."""
    alpha, inverse, _ = factors(chain, q, inertia_matrix, coordinates)
    return inverted(alpha, inverse)
