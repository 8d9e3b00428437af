"""Square-root information filter on arrays: R is upper triangular, RᵀR the information matrix, and R x = z."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from armdyn.errors import ComputationError
from armdyn.identification.estimate import linear

Array = NDArray[np.float64]
RANK = 1e-10  # smallest singular value over the largest, in columns of unit length, of information that is complete


@dataclass(frozen=True, eq=False)
class Information:
    """The information on parameters x: ‖R x - z‖² is their negative log-likelihood times two, up to a constant.

    Source: Bierman 1977. Rows are whitened, that is, scaled to unit noise.
    """

    R: Array
    z: Array

    @classmethod
    def none(cls, size: int) -> Information:
        """No information on any parameter."""
        return cls(np.zeros((size, size)), np.zeros(size))

    @classmethod
    def of(cls, values: Array, covariance: Array) -> Information:
        """Known values with a covariance; there is no information on directions in its null space."""
        scale = np.sqrt(np.maximum(np.diag(covariance), 0.0))
        scale = np.where(scale > 0, scale, 1.0)
        inverse = np.linalg.pinv(covariance / np.outer(scale, scale), rcond=1e-14, hermitian=True)
        size, turned = np.linalg.eigh(inverse)
        root = np.sqrt(np.maximum(size, 0.0))[:, None] * turned.T / scale
        R = linear.triangle(root)
        return cls(R, R @ values)

    def absorbed(self, rows: Array, right: Array) -> tuple[Information, float]:
        """The information updated with whitened rows, (k, p) and (k,), and the squared norm of their innovations.

        The norm is eᵀS⁻¹e, with e the innovations and S their covariance due to noise and the uncertainty of the
        parameters: it is distributed as χ² with k degrees of freedom if nothing has changed.
        """
        stacked = np.vstack([np.column_stack([self.R, self.z]), np.column_stack([rows, right])])
        T = linear.triangle(stacked)
        p = len(self.z)
        return Information(T[:p, :p], T[:p, p]), float(T[p, p] ** 2)

    def faded(self, factor: float) -> Information:
        """The information multiplied by a factor from 0 to 1."""
        root = float(np.sqrt(factor))
        return Information(root * self.R, root * self.z)

    @property
    def complete(self) -> bool:
        """Whether the information matrix has full rank."""
        return linear.condition(self.R) < 1 / RANK

    @property
    def values(self) -> Array:
        """The most likely parameters; those of minimum norm if they are not unique."""
        if not self.R.any():
            raise ComputationError("there is no estimate yet: the filter has processed no samples")
        return linear.solve(self.R, self.z)

    @property
    def covariance(self) -> Array:
        """(RᵀR)⁻¹; inf on the diagonal for parameters that are not determined."""
        norms = np.linalg.norm(self.R, axis=0)
        scale = np.where(norms > 0, norms, 1.0)
        _, s, Vt = np.linalg.svd(self.R / scale)
        good = s > RANK * max(float(s[0]), 1e-300)
        half = Vt[good].T / s[good]
        found = half @ half.T / np.outer(scale, scale)
        unknown = (Vt[~good] ** 2).sum(axis=0) > RANK
        found[unknown, unknown] = np.inf
        return np.asarray(found)

    def of_last(self, count: int) -> Information:
        """The marginal information on the last parameters."""
        return Information(self.R[-count:, -count:], self.z[-count:])

    def of_first(self, count: int) -> Information:
        """The marginal information on the first parameters."""
        turned = np.column_stack([self.R[:, count:], self.R[:, :count], self.z])
        T = linear.triangle(turned)
        rest = len(self.z) - count
        return Information(T[rest:-1, rest:-1], T[rest:-1, -1])

    def behind(self, deviations: Array) -> Information:
        """The information with further parameters in front, which have a prior of zero with these deviations."""
        k, p = len(deviations), len(self.z)
        R = np.zeros((k + p, k + p))
        R[:k, :k], R[k:, k:] = np.diag(1 / deviations), self.R
        return Information(R, np.concatenate([np.zeros(k), self.z]))
