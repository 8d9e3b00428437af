"""Square-root information filter and small linear systems on scalars, without branches and with fixed loop counts.

Source: Bierman 1977. R is upper triangular, RᵀR is the information matrix, and the estimate x solves R x = z. Divisions
are written as products with a reciprocal, so that the graph can share the reciprocal.
"""

from __future__ import annotations

from collections.abc import Sequence

from armdyn.algebra import Scalar, sqrt

Matrix = list[list[Scalar]]
Vector = Sequence[Scalar]


def packed(R: Matrix) -> list[Scalar]:
    """The upper triangle, row by row."""
    return [entry for i, row in enumerate(R) for entry in row[i:]]


def unpacked(entries: Vector, size: int) -> Matrix:
    """The upper triangular matrix from its packed entries."""
    left = iter(entries)
    return [[next(left) if j >= i else 0 for j in range(size)] for i in range(size)]


def triangle_size(size: int) -> int:
    """The number of entries of a triangular matrix."""
    return size * (size + 1) // 2


def absorbed(R: Matrix, z: Vector, row: Vector, value: Scalar) -> tuple[Matrix, list[Scalar]]:
    """R and z updated with the measurement `row · x = value` of unit variance, by one Givens rotation per entry.

    The diagonal of R must be positive, as that of a prior is. Leading literal zeros of the row cost nothing.
    """
    R, z, row = [list(r) for r in R], list(z), list(row)
    for k in range(len(row)):
        if isinstance(row[k], int) and row[k] == 0:
            continue
        length = sqrt(R[k][k] * R[k][k] + row[k] * row[k])
        inverse = 1 / length
        c, s = R[k][k] * inverse, row[k] * inverse
        R[k][k] = length
        for j in range(k + 1, len(row)):
            R[k][j], row[j] = c * R[k][j] + s * row[j], c * row[j] - s * R[k][j]
        z[k], value = c * z[k] + s * value, c * value - s * z[k]
    return R, z


def solved(R: Matrix, z: Vector) -> list[Scalar]:
    """The solution x of R x = z by back substitution."""
    n = len(R)
    x: list[Scalar] = [0] * n
    for i in reversed(range(n)):
        x[i] = (z[i] - sum((R[i][j] * x[j] for j in range(i + 1, n)), 0)) * (1 / R[i][i])
    return x


def solved_transposed(R: Matrix, right: Vector) -> list[Scalar]:
    """The solution y of Rᵀ y = right by forward substitution."""
    y: list[Scalar] = []
    for i in range(len(R)):
        y.append((right[i] - sum((R[j][i] * y[j] for j in range(i)), 0)) * (1 / R[i][i]))
    return y


def variances(R: Matrix) -> list[Scalar]:
    """The diagonal of (RᵀR)⁻¹: the squared lengths of the rows of R⁻¹."""
    n = len(R)
    columns = [solved_transposed(R, [int(i == k) for i in range(n)]) for k in range(n)]
    return [sum((y * y for y in column[k:]), 0) for k, column in enumerate(columns)]


def solve_symmetric(A: Matrix, right: Vector) -> list[Scalar]:
    """The solution x of A x = right, A symmetric positive definite, by Gaussian elimination of the upper triangle."""
    n = len(A)
    A, y = [list(row) for row in A], list(right)
    for k in range(n):
        inverse = 1 / A[k][k]
        for i in range(k + 1, n):
            factor = A[k][i] * inverse
            for j in range(i, n):
                A[i][j] = A[i][j] - factor * A[k][j]
            y[i] = y[i] - factor * y[k]
    return solved(A, y)
