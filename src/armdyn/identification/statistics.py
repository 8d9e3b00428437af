"""How far to trust numbers: autocorrelated residuals, errors by segment, cross-validation of the pull."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from armdyn.identification.linear import triangle

Array = NDArray[np.float64]


def relative_error(tau: Array, predicted: Array) -> float:
    """‖τ - τ̂‖ / ‖τ‖ over all joints and samples."""
    size = float(np.linalg.norm(tau))
    return float(np.linalg.norm(tau - predicted)) / size if size else float("nan")


def r_squared(tau: Array, predicted: Array) -> Array:
    """1 - residual over variance, each joint."""
    spread = ((tau - tau.mean(axis=0)) ** 2).sum(axis=0)
    left = ((tau - predicted) ** 2).sum(axis=0)
    return np.where(spread > 0, 1 - left / np.where(spread > 0, spread, 1), np.nan)


def correlation_time(residual: Array) -> float:
    """1 + 2 Σ ρ_k, in samples: how many neighbours tell the same thing (Geyer's initial positive sequence)."""
    x = residual - residual.mean()
    n = len(x)
    power = float(x @ x)
    if n < 4 or power == 0:
        return 1.0
    spectrum = np.abs(np.fft.rfft(x, 2 * n)) ** 2
    rho = np.fft.irfft(spectrum)[:n] / power
    pairs = rho[: n - n % 2].reshape(-1, 2).sum(axis=1)
    negative = np.flatnonzero(pairs <= 0)
    end = negative[0] if len(negative) else len(pairs)
    falling = np.minimum.accumulate(pairs[:end])
    return max(1.0, float(2 * falling.sum() - 1))


def autocorrelation_factors(residual: Array, piece: NDArray[np.int64]) -> Array:
    """By how much the deviations of parameters grow because neighbouring residuals agree, each joint: √(1 + 2 Σ ρ)."""
    out = []
    for j in range(residual.shape[1]):
        parts = [(np.count_nonzero(piece == k), correlation_time(residual[piece == k, j])) for k in np.unique(piece)]
        out.append(np.sqrt(sum(n * c for n, c in parts) / sum(n for n, _ in parts)))
    return np.array(out)


def choose_pull(
    triangles: list[tuple[Array, Array]],
    fit: Callable[[Array, Array, float], Array],
    pulls: Array,
) -> tuple[float, Array, Array]:
    """The pull by leaving one segment out: the strongest within one standard error of the best.

    `triangles` are the compressed segments, `fit(R, z, pull)` gives the identifiable parameters. Errors are compared
    segment by segment and by their logarithms: a segment that is hard to predict does not decide alone.
    Returns the pull, and for each the left-out error over the best one's (geometric mean) and the standard error.
    """
    errors = np.empty((len(pulls), len(triangles)))
    for s, (R, z) in enumerate(triangles):
        others = [pair for k, pair in enumerate(triangles) if k != s]
        stacked = triangle(np.vstack([np.column_stack([Ro, zo]) for Ro, zo in others]))
        for k, pull in enumerate(pulls):
            values = fit(stacked[:, :-1], stacked[:, -1], float(pull))
            errors[k, s] = float(((R @ values - z) ** 2).sum())
    score = np.log(np.maximum(errors, 1e-300)) / 2
    best = int(np.argmin(score.mean(axis=1)))
    apart = score - score[best]
    mean, spread = apart.mean(axis=1), apart.std(axis=1, ddof=1) / np.sqrt(len(triangles))
    good = np.flatnonzero(mean <= spread)
    return float(pulls[max(good.max(), best)]), np.exp(mean), spread
