"""Error measures and uncertainty of a fit, with autocorrelated residuals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from armdyn.identification.estimate.estimators import Fit
from armdyn.identification.model.model import Model
from armdyn.identification.model.rows import Rows

Array = NDArray[np.float64]


def relative_error(tau: Array, predicted: Array) -> float:
    """‖τ - τ̂‖ / ‖τ‖ over all joints and samples."""
    size = float(np.linalg.norm(tau))
    return float(np.linalg.norm(tau - predicted)) / size if size else float("nan")


def r_squared(tau: Array, predicted: Array) -> Array:
    """The coefficient of determination R² per joint."""
    spread = ((tau - tau.mean(axis=0)) ** 2).sum(axis=0)
    left = ((tau - predicted) ** 2).sum(axis=0)
    return np.where(spread > 0, 1 - left / np.where(spread > 0, spread, 1), np.nan)


def correlation_time(residual: Array) -> float:
    """The integrated autocorrelation time 1 + 2 Σ ρ_k in samples (Geyer's initial monotone sequence)."""
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
    """The factor √(1 + 2 Σ ρ) per joint by which autocorrelated residuals increase the parameters' deviations."""
    out = []
    for j in range(residual.shape[1]):
        parts = [(np.count_nonzero(piece == k), correlation_time(residual[piece == k, j])) for k in np.unique(piece)]
        out.append(np.sqrt(sum(n * c for n, c in parts) / sum(n for n, _ in parts)))
    return np.array(out)


@dataclass(frozen=True, eq=False)
class Uncertainty:
    """The covariance of the identifiable parameters, the autocorrelation factors, the share of the data in each."""

    covariance: Array
    factors: Array
    share: Array

    @property
    def deviations(self) -> Array:
        """Standard deviations."""
        return np.sqrt(np.maximum(np.diag(self.covariance), 0.0))

    @property
    def correlation(self) -> Array:
        """Correlation matrix."""
        d = np.where(self.deviations > 0, self.deviations, 1.0)
        return np.asarray(self.covariance / np.outer(d, d))


def uncertainty(model: Model, rows: Rows, fit: Fit) -> Uncertainty:
    """The sandwich estimate of the covariance, with the noise of each joint and its autocorrelation."""
    residual = np.where(rows.kept, rows.tau - rows.Y @ fit.values, 0.0)
    factors = autocorrelation_factors(residual, rows.piece)
    seen = rows.Y if fit.instruments is None else fit.instruments
    freedom = 1 - rows.Y.shape[-1] / max(int(np.count_nonzero(rows.kept)), 1)
    normal = np.zeros((rows.Y.shape[-1],) * 2)
    noise = np.zeros_like(normal)
    for j in range(model.n):
        w = fit.weights[:, j, None]
        Z, Y = seen[:, j] * w, rows.Y[:, j] * w
        normal += Z.T @ Y
        count = max(int(np.count_nonzero(rows.kept[:, j])), 1)
        variance = float(((residual[:, j] * fit.weights[:, j]) ** 2).sum()) / count / max(freedom, 1e-3)
        noise += factors[j] ** 2 * variance * (Z.T @ Z)
    if fit.information is None:
        inverse = _inverse(normal)
        return Uncertainty(inverse @ noise @ inverse.T, factors, np.ones(len(normal)))
    K = model.natural
    inverse = K @ _inverse(K.T @ normal @ K + fit.information)
    data = inverse @ (K.T @ noise @ K) @ inverse.T
    prior = inverse @ fit.information @ inverse.T
    both = np.diag(inverse @ (K.T @ normal @ K) @ inverse.T)
    total = both + np.diag(prior)
    return Uncertainty(data + prior, factors, both / np.where(total > 0, total, 1.0))


def _inverse(A: Array) -> Array:
    """The pseudo-inverse with the diagonal scaled to 1, so that small parameters do not appear singular."""
    d = np.sqrt(np.abs(np.diag(A)))
    d = np.where(d > 0, d, 1.0)
    return np.asarray(np.linalg.pinv(A / np.outer(d, d), rcond=1e-14) / np.outer(d, d))
