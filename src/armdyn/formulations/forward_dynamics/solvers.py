"""Solvers of H x = r for the accelerations: U D Uᵀ, L D Lᵀ, Gauss-Jordan.

Source: Saha 1999, eqs. (23)-(33) for U D Uᵀ (reverse Gaussian elimination); Lin 1991 recommends L D Lᵀ;
Provenzano et al., section 4, use Gauss-Jordan elimination.

Idea: H is symmetric and positive definite, so no pivoting is needed and every solver is straight-line code. U D Uᵀ
begins at the last joint, L D Lᵀ at the first. Their cost is the same, but from the tip inwards the pivots are the
articulated-body inertias, and there is less fill-in: zeros of H in the wrist's columns come first and stay zeros.
Gauss-Jordan does not use the symmetry and eliminates above and below each pivot.

Cost of an n × n system: n(n-1)(n+4)/6 + n² multiplications and n divisions for the first two;
n²(n-1)/2 + n² and n for the third.
"""

from __future__ import annotations

from collections.abc import Callable

from armdyn.algebra import Scalar
from armdyn.algebra.scalar import is_number
from armdyn.chain import Chain
from armdyn.formulations.elimination import Matrix, eliminate, least_pivots, reciprocal, solve

Solver = Callable[[Chain, Matrix, list[Scalar]], list[Scalar]]


def udu(chain: Chain, H: Matrix, right: list[Scalar]) -> list[Scalar]:
    """By H = U D Uᵀ, last joint first."""
    alpha, inverse, _ = eliminate(chain, H)
    return solve(alpha, inverse, right)


def ldl(chain: Chain, H: Matrix, right: list[Scalar]) -> list[Scalar]:
    """By H = L D Lᵀ, first joint first; only the upper triangle of H is read."""
    n, least = len(H), least_pivots(chain)
    _must_resist(chain, H, least)
    H = [list(row) for row in H]
    L: Matrix = [[] for _ in range(n)]  # L[k][i] = L_ik for i > k, counted from k + 1
    inverse: list[Scalar] = []
    for k in range(n):
        inverse.append(reciprocal(H[k][k], least[k], k - (chain.nv - chain.n)))
        L[k] = [H[k][i] * inverse[k] for i in range(k + 1, n)]
        for i in range(k + 1, n):
            for j in range(i, n):
                H[i][j] = H[i][j] - L[k][i - k - 1] * H[k][j]
    y = list(right)
    for k in range(n):
        for i in range(k + 1, n):
            y[i] = y[i] - L[k][i - k - 1] * y[k]
    x: list[Scalar] = [y_k * d for y_k, d in zip(y, inverse, strict=True)]
    for k in reversed(range(n)):
        for i in range(k + 1, n):
            x[k] = x[k] - L[k][i - k - 1] * x[i]
    return x


def gauss_jordan(chain: Chain, H: Matrix, right: list[Scalar]) -> list[Scalar]:
    """By eliminating every column above and below its pivot; all of H is read."""
    n, least = len(H), least_pivots(chain)
    _must_resist(chain, H, least)
    H, x = [list(row) for row in H], list(right)
    for k in range(n):
        inverse = reciprocal(H[k][k], least[k], k - (chain.nv - chain.n))
        H[k][k + 1 :] = pivot_row = [h * inverse for h in H[k][k + 1 :]]
        x[k] = x[k] * inverse
        for i in range(n):
            if i != k:
                H[i][k + 1 :] = [h - H[i][k] * p for h, p in zip(H[i][k + 1 :], pivot_row, strict=True)]
                x[i] = x[i] - H[i][k] * x[k]
    return x


def _must_resist(chain: Chain, H: Matrix, least: list[Scalar]) -> None:
    """Raise an error for a constant 0 on the diagonal, which elimination from the first joint on would hide."""
    for k, row in enumerate(H):
        if is_number(row[k]):
            reciprocal(row[k], least[k], k - (chain.nv - chain.n))


SOLVERS: dict[str, Solver] = {"udu": udu, "ldl": ldl, "gauss_jordan": gauss_jordan}
