"""Standard deviations of what was identified, with the residuals' autocorrelation counted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from armdyn.identification.fitting import Fit
from armdyn.identification.model import Model
from armdyn.identification.samples import Rows
from armdyn.identification.statistics import autocorrelation_factors

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Uncertainty:
    """Covariance of the identifiable parameters, the factor of each joint, the share each owes to the data."""

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
    """Sandwich of the fit's normal equations around the noise of each joint, its correlation in time counted."""
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
    """Inverse in the units of the diagonal, so that tiny parameters do not look singular."""
    d = np.sqrt(np.abs(np.diag(A)))
    d = np.where(d > 0, d, 1.0)
    return np.asarray(np.linalg.pinv(A / np.outer(d, d), rcond=1e-14) / np.outer(d, d))
