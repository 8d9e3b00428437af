"""Physically consistent variations of many rigid bodies: second moments, shifts, log-Cholesky coordinates.

A body's ten natural parameters are equivalent to its pseudo-inertia P = [[S, h], [hᵀ, m]], S = ∫ x xᵀ dm, which is
positive definite for a body with positive density (Wensing, Kim & Slotine 2018). With P₀ = L₀ L₀ᵀ of the nominal body,
P = (L₀ T)(L₀ T)ᵀ with T lower triangular with positive diagonal gives every such body. The log-Cholesky coordinates
(Rucker & Wensing 2022) of P relative to P₀ are the entries of T below the diagonal and the logarithms of its diagonal.

Matrix products are sums in a fixed order rather than BLAS calls, so that results are bitwise the same for any number of
bodies and on any machine.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from armdyn.errors import InputError
from armdyn.uncertainty.distributions import exponential

Array = NDArray[np.float64]
PAIRS4 = [(r, c) for r in range(4) for c in range(r + 1)]
PAIRS3 = [(r, c) for r in range(3) for c in range(r + 1)]
PIVOT_TOLERANCE = 1e-12  # relative to the trace: smaller pivots count as 0 (a point mass, a rod)


def product(x: Array, matrix: Array) -> Array:
    """`x` (k, a) times `matrix` (a, b), summed in the order of a without the zeros."""
    out = np.zeros((matrix.shape[1], len(x)))  # transposed, so that each sum runs over contiguous rows
    for j, row in enumerate(matrix):
        there = np.flatnonzero(row)
        if len(there) == len(row):
            out += row[:, None] * x[:, j]
        else:
            for i in there.tolist():
                out[i] += row[i] * x[:, j]
    return np.ascontiguousarray(out.T)


def second_moments(inertia: Array) -> Array:
    """S = ½ tr(I) 1 - I, (..., 3, 3), from inertias (..., 6) in the order xx, xy, yy, xz, yz, zz."""
    xx, xy, yy, xz, yz, zz = np.moveaxis(inertia, -1, 0)
    half = (xx + yy + zz) / 2
    rows = [[half - xx, -xy, -xz], [-xy, half - yy, -yz], [-xz, -yz, half - zz]]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def inertia_of(S: Array) -> Array:
    """The inverse of `second_moments`."""
    trace = S[..., 0, 0] + S[..., 1, 1] + S[..., 2, 2]
    parts = [trace - S[..., 0, 0], -S[..., 0, 1], trace - S[..., 1, 1], -S[..., 0, 2], -S[..., 1, 2]]
    return np.stack([*parts, trace - S[..., 2, 2]], axis=-1)


def pseudo_inertia(natural: Array) -> Array:
    """Pseudo-inertias (..., 4, 4) from natural parameters (..., 10)."""
    P = np.zeros((*natural.shape[:-1], 4, 4))
    P[..., :3, :3] = second_moments(natural[..., 4:])
    P[..., :3, 3] = P[..., 3, :3] = natural[..., 1:4]
    P[..., 3, 3] = natural[..., 0]
    return P


def natural_of(P: Array) -> Array:
    """Natural parameters (..., 10) from pseudo-inertias (..., 4, 4)."""
    return np.concatenate([P[..., 3, 3, None], P[..., :3, 3], inertia_of(P[..., :3, :3])], axis=-1)


def factor(A: Array, what: str) -> Array:
    """The Cholesky factor L, L Lᵀ = A, of a positive semidefinite matrix; an error that names `what` if it is not."""
    size, least = len(A), PIVOT_TOLERANCE * float(np.trace(A))
    L = np.zeros((size, size))
    for j in range(size):
        pivot = float(A[j, j]) - sum(float(x) ** 2 for x in L[j, :j])
        if pivot < -least or (
            pivot <= least and any(abs(_below(A, L, i, j)) > 1e3 * least for i in range(j + 1, size))
        ):
            raise InputError(
                f"{what} is not physically consistent (see Arm.check), so it cannot be varied; leave it out"
            )
        if pivot > least:
            L[j, j] = np.sqrt(pivot)
            for i in range(j + 1, size):
                L[i, j] = _below(A, L, i, j) / L[j, j]
    return L


def _below(A: Array, L: Array, i: int, j: int) -> float:
    return float(A[i, j]) - sum(float(a) * float(b) for a, b in zip(L[i, :j], L[j, :j], strict=True))


def varied(L: Array, theta: Array) -> Array:
    """(L T)(L T)ᵀ, (k, s, s), for coordinates (k, s (s + 1) / 2) of the lower triangle in row-major order."""
    size = len(L)
    pairs = PAIRS3 if size == 3 else PAIRS4
    T = np.zeros((len(theta), size, size))
    for k, (r, c) in enumerate(pairs):
        T[:, r, c] = exponential(theta[:, k]) if r == c else theta[:, k]
    A = np.zeros_like(T)
    for r in range(size):
        for c in range(size):
            for j in range(c, r + 1):
                A[:, r, c] += L[r, j] * T[:, j, c]
    out = np.zeros_like(T)
    for r in range(size):
        for c in range(r + 1):
            for j in range(c + 1):
                out[:, r, c] += A[:, r, j] * A[:, c, j]
            out[:, c, r] = out[:, r, c]
    return out


def slopes(L: Array) -> Array:
    """The derivative of `varied` at 0, one matrix per coordinate: (coordinates, s, s)."""
    size = len(L)
    out = []
    for r, c in PAIRS3 if size == 3 else PAIRS4:
        E = np.zeros((size, size))
        E[r, c] = 1.0
        out.append(L @ (E + E.T) @ L.T)
    return np.array(out)


def shifted(natural: Array, shift: Array) -> Array:
    """Bodies (k, 10) translated by (k, 3)."""
    m, h = natural[:, 0], natural[:, 1:4]
    S = second_moments(natural[:, 4:])
    cross = h[:, :, None] * shift[:, None, :]
    S = S + (cross + np.swapaxes(cross, 1, 2)) + m[:, None, None] * (shift[:, :, None] * shift[:, None, :])
    return np.concatenate([natural[:, :1], h + m[:, None] * shift, inertia_of(S)], axis=1)
