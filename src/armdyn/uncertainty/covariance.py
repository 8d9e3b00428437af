"""Links, rotors and friction with a covariance: what an identification leaves unknown, as possible bodies.

The covariance Σ is of identifiable parameters, of which there are fewer than natural ones. A sample aims at parameters
π + Σ^½ ξ with ξ standard normal. With J the derivative of the identifiable parameters in the bodies' log-Cholesky
coordinates and in the extras (relative to their values), J⁺ Σ^½ ξ are coordinates that meet them to first order and
leave what the log could not tell where it was; Newton's method with the same J⁺ takes away the rest. Where no possible
body has the parameters, the sample is the nearest one found on the way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armdyn.arm import Arm
from armdyn.errors import InputError
from armdyn.uncertainty import bodies
from armdyn.uncertainty.distributions import exponential

Array = NDArray[np.float64]
ROUNDS = 8  # of Newton's method with a fixed derivative
DRIVES = {"Ia": "rotors", "fv": "viscous", "fc": "coulomb"}  # extras of an estimate that an arm has a place for


@dataclass(frozen=True, eq=False)
class Correlated:
    """Factors (n, 4, 4) of the links' pseudo-inertias and extras (e,), and how identifiable parameters depend on them.

    `K` (p, 10 n + e) gives the parameters, `root` (p, p) is Σ^½, `back` (10 n + e, p) is J⁺; `places` says which extras
    an arm has a place for: kind, joint and number among the extras.
    """

    factors: Array
    extras: Array
    K: Array
    root: Array
    back: Array
    places: tuple[tuple[str, int, int], ...]

    @property
    def size(self) -> int:
        """How many independent standard normal numbers there are."""
        return len(self.root)

    @classmethod
    def of(cls, arm: Arm, given: Any) -> Correlated:
        """From an `Estimate`, or a covariance (p, p) of the arm's minimal parameters."""
        names: tuple[str, ...] = ()
        if hasattr(given, "uncertainty") and hasattr(given, "model"):
            if given.model.arm.chain.joints != arm.chain.joints and given.arm.n != arm.n:
                raise InputError(f"the estimate is of {given.given.name}, not of {arm.name}")
            natural, K, covariance = given.natural, given.model.natural, given.uncertainty.covariance
            names = tuple(given.model.extra_names)
            extras = np.array([float(given.extras[name]) for name in names])
        else:
            natural = np.array([[float(x) for x in link.natural] for link in arm.links])
            K, covariance, extras = np.asarray(arm.minimal_parameters.array), _square(given, arm), np.zeros(0)
        kinds = {f"{symbol}{k + 1}": (kind, k) for symbol, kind in DRIVES.items() for k in range(arm.n)}
        places = tuple((*kinds[name], j) for j, name in enumerate(names) if name in kinds)
        factors = np.array([bodies.factor(P, f"link {k}") for k, P in enumerate(bodies.pseudo_inertia(natural), 1)])
        slopes = [bodies.natural_of(bodies.slopes(L)).T for L in factors]  # (10, 10) each: natural by coordinate
        links = [K[:, 10 * i : 10 * i + 10] @ S for i, S in enumerate(slopes)]
        J = np.hstack([*links, K[:, 10 * len(factors) :] * _scale(extras)])
        values, vectors = np.linalg.eigh(covariance)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        return cls(factors, extras, np.ascontiguousarray(K), root, np.linalg.pinv(J), places)

    def drawn(self, standard: Array) -> tuple[Array, dict[str, Array]]:
        """Natural parameters (k, n, 10) and extras (k, n) by kind, for standard normal numbers (k, size)."""
        target = bodies.product(standard, self.root.T)
        theta = bodies.product(target, self.back.T)
        left = target - self._moved(theta)
        for _ in range(ROUNDS):
            trial = theta + bodies.product(left, self.back.T)
            missing = target - self._moved(trial)
            better = (self._length(missing) < self._length(left))[:, None]
            theta, left = np.where(better, trial, theta), np.where(better, missing, left)
        natural, extras = self._bodies(theta)
        found: dict[str, Array] = {}
        for kind, k, j in self.places:
            rows = found.setdefault(kind, np.zeros((len(standard), len(self.factors))))
            rows[:, k] = np.maximum(extras[:, j], 0.0)
        return natural, found

    def _bodies(self, theta: Array) -> tuple[Array, Array]:
        n = len(self.factors)
        P = [bodies.varied(L, theta[:, 10 * i : 10 * i + 10]) for i, L in enumerate(self.factors)]
        moved = theta[:, 10 * n :]
        kept = np.array(
            [self.extras[j] > 0 and any(j == at for _, _, at in self.places) for j in range(moved.shape[1])]
        )
        grown = self.extras * exponential(moved)  # what cannot be negative stays positive
        linear = self.extras + _scale(self.extras) * moved
        return bodies.natural_of(np.stack(P, axis=1)), np.where(kept, grown, linear) if moved.size else moved

    def _moved(self, theta: Array) -> Array:
        """How far the identifiable parameters are from the estimate's."""
        natural, extras = self._bodies(theta)
        known, _ = self._bodies(np.zeros((1, theta.shape[1])))
        links = (natural - known).reshape(len(theta), -1)
        return bodies.product(np.hstack([links, extras - self.extras]), self.K.T)

    def _length(self, left: Array) -> Array:
        """The size of what is missing, in units of the parameters' deviations."""
        deviations = np.sqrt(np.maximum((self.root**2).sum(axis=1), 1e-300))
        total = np.zeros(len(left))
        for k, d in enumerate(deviations):
            total = total + (left[:, k] / d) * (left[:, k] / d)
        return total


def _scale(extras: Array) -> Array:
    """Extras are measured by their own size."""
    return np.where(extras != 0, np.abs(extras), 1.0)


def _square(given: Any, arm: Arm) -> Array:
    p = len(arm.minimal_parameters)
    try:
        matrix = np.asarray(given, dtype=float)
    except (TypeError, ValueError):
        matrix = np.zeros(0)
    if matrix.shape != (p, p) or not np.isfinite(matrix).all() or not np.allclose(matrix, matrix.T):
        raise InputError(
            f"covariance must be what identify returned, or a symmetric ({p}, {p}) array of the minimal parameters of "
            f"{arm.name}; got {type(given).__name__} of shape {matrix.shape}"
        )
    if np.linalg.eigvalsh(matrix)[0] < -1e-9 * np.abs(matrix).max():
        raise InputError("covariance must be positive semidefinite; its smallest eigenvalue is negative")
    return matrix
