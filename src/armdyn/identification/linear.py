"""Least squares on the rows of the model: ordinary, weighted per joint, robust (Huber).

Rows are compressed by a QR factorization first: a log of any length becomes a triangular matrix of p + 1 columns.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from armdyn.errors import ComputationError

Array = NDArray[np.float64]
Kept = NDArray[np.bool_] | None  # which rows are used, (N, n); None: all
QUIET = 1e-4  # of the rms torque: the smallest standard deviation of a joint, which keeps the weights well scaled
HUBER = 1.345  # larger residuals, in standard deviations, count linearly: 95 % efficiency on Gaussian noise


@dataclass(frozen=True, eq=False)
class Solution:
    """The parameters and the weight of each row, (N, n)."""

    values: Array
    weights: Array


def triangle(rows: Array) -> Array:
    """R of rows = Q R, with as many rows as columns."""
    R: Array = np.asarray(np.linalg.qr(rows, mode="r"), dtype=float)
    return np.vstack([R, np.zeros((R.shape[1] - len(R), R.shape[1]))]) if len(R) < R.shape[1] else R


def compress(Y: Array, tau: Array, weights: Array) -> tuple[Array, Array]:
    """(R, z) with ‖W (Y π - τ)‖² = ‖R π - z‖² + constant; the constant is the last row."""
    p = Y.shape[-1]
    stacked = np.concatenate([(Y * weights[..., None]).reshape(-1, p), (tau * weights).reshape(-1, 1)], axis=1)
    R = triangle(stacked)
    return R[:, :p], R[:, p]


def condition(R: Array) -> float:
    """Condition number with columns scaled to unit norm; inf where a column is zero."""
    norms = np.linalg.norm(R, axis=0)
    if (norms == 0).any():
        return float("inf")
    s = np.linalg.svd(R / norms, compute_uv=False)
    return float(s[0] / s[-1]) if s[-1] > 0 else float("inf")


def solve(R: Array, z: Array) -> Array:
    """Minimum-norm least squares in unit-norm columns."""
    norms = np.linalg.norm(R, axis=0)
    scale = np.where(norms > 0, norms, 1.0)
    U, s, Vt = np.linalg.svd(R / scale, full_matrices=False)
    if not s[0] > 0:
        raise ComputationError("nothing moves in this log: every column of the regressor is zero")
    good = s > 1e-10 * s[0]
    inverse = np.where(good, 1 / np.where(good, s, 1.0), 0.0)
    return np.asarray((Vt.T * inverse) @ (U.T @ z) / scale)


def ordinary(Y: Array, tau: Array, kept: Kept = None) -> Solution:
    """Ordinary least squares: all rows have the same weight."""
    weights = _counted(tau, kept)
    return Solution(solve(*compress(Y, tau, weights)), weights)


def _counted(tau: Array, kept: Kept) -> Array:
    """1 for a row that is used, 0 for one that is not."""
    return np.ones_like(tau) if kept is None else kept.astype(float)


def deviations(residual: Array, parameters: int, counted: Array) -> Array:
    """Standard deviation of each joint's residual over the rows that are used, (n,); never 0."""
    freedom = np.maximum(counted.sum(axis=0) - parameters / residual.shape[1], 1.0)
    sigma = np.sqrt((counted * residual**2).sum(axis=0) / freedom)
    return np.asarray(np.maximum(sigma, 1e-12 * max(float(sigma.max()), 1e-300)))


def _quick(Y: Array, tau: Array, weights: Array) -> Array:
    """Least squares by the normal equations in unit-norm columns, for iterations on the weights only."""
    p = Y.shape[-1]
    A, b = (Y * weights[..., None]).reshape(-1, p), (tau * weights).ravel()
    norms = np.linalg.norm(A, axis=0)
    A = A / np.where(norms > 0, norms, 1.0)
    return np.asarray(np.linalg.solve(A.T @ A + 1e-12 * np.eye(p), A.T @ b) / np.where(norms > 0, norms, 1.0))


def weighted(Y: Array, tau: Array, kept: Kept = None) -> Solution:
    """Weighted least squares, by the residuals' standard deviation per joint; three iterations from ordinary ones."""
    counted = _counted(tau, kept)
    values = _quick(Y, tau, counted)
    quiet = QUIET * np.sqrt(np.mean(tau**2))
    for _ in range(3):
        weights = counted / np.maximum(deviations(tau - Y @ values, Y.shape[-1], counted), quiet)
        values = _quick(Y, tau, weights)
    return Solution(solve(*compress(Y, tau, weights)), weights)


def huber(Y: Array, tau: Array, kept: Kept = None, rounds: int = 30) -> Solution:
    """Huber's estimator by iteratively reweighted least squares: outliers of a joint have less weight."""
    counted = _counted(tau, kept)
    weights = counted / deviations(tau, 0, counted)
    values = _quick(Y, tau, weights)
    for _ in range(rounds):
        residual = tau - Y @ values
        middle = [np.median(np.abs(r[c > 0])) if c.any() else 1.0 for r, c in zip(residual.T, counted.T, strict=True)]
        usual = np.maximum(1.4826 * np.array(middle), 1e-12 * np.abs(tau).max() + 1e-300)
        off = np.abs(residual) / usual
        weights = counted * np.sqrt(np.minimum(1.0, HUBER / np.maximum(off, 1e-300))) / usual
        before, values = values, _quick(Y, tau, weights)
        if np.linalg.norm(Y @ (values - before)) <= 1e-4 * np.linalg.norm(residual):
            break
    return Solution(solve(*compress(Y, tau, weights)), weights)
