"""Periodic trajectories: finite Fourier series that start and end at rest (Swevers et al. 1997)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from armdyn.algebra.cached import cached_property

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Basis:
    """Harmonics of a period: q = centre + coefficients · basis, with q̇ = q̈ = 0 at both ends for any coefficients.

    Sines and cosines of the harmonics are restricted to the combinations with Σ k a_k = 0 (velocity) and
    Σ k² b_k = 0 (acceleration), by an orthonormal basis of these; 2 h - 2 coefficients per joint remain.
    """

    period: float
    harmonics: int

    @property
    def size(self) -> int:
        """The number of coefficients per joint, without the centre."""
        return 2 * self.harmonics - 2

    @cached_property
    def _free(self) -> Array:
        k = np.arange(1, self.harmonics + 1)
        zero = np.zeros(self.harmonics)
        at_rest = np.array([np.r_[k, zero], np.r_[zero, k**2]])
        _, _, Vt = np.linalg.svd(at_rest)
        return Vt[2:].T

    def lower(self, harmonics: int) -> Array:
        """The matrix (size, 2 harmonics - 2) that maps coefficients of a basis with fewer harmonics to this basis."""
        own = Basis(self.period, harmonics)._free
        padded = np.zeros((2 * self.harmonics, own.shape[1]))
        padded[:harmonics], padded[self.harmonics : self.harmonics + harmonics] = own[:harmonics], own[harmonics:]
        return np.asarray(self._free.T @ padded)

    def at(self, t: Array) -> tuple[Array, Array, Array]:
        """Basis functions and their two derivatives, (N, size) each; they vanish at t = 0."""
        w = 2 * np.pi / self.period * np.arange(1, self.harmonics + 1)
        s, c = np.sin(np.outer(t, w)), np.cos(np.outer(t, w))
        values = np.hstack([s, c - 1]) @ self._free
        rates = np.hstack([c * w, -s * w]) @ self._free
        return values, rates, np.hstack([-s * w**2, -c * w**2]) @ self._free

    def on_grid(self, count: int) -> tuple[Array, Array, Array]:
        """The same at `count` equidistant times of one period without its end; cached."""
        return _on_grid(self, count)


@lru_cache(maxsize=16)
def _on_grid(basis: Basis, count: int) -> tuple[Array, Array, Array]:
    return basis.at(np.linspace(0, basis.period, count, endpoint=False))
