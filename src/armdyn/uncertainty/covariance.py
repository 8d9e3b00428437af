"""Links, rotors and friction with a covariance: what an identification leaves unknown, as possible bodies.

The covariance Σ is of identifiable parameters, of which there are fewer than natural ones. With J the derivative of
the identifiable parameters in the bodies' log-Cholesky coordinates and in the extras (relative to their values), the
coordinates J⁺ Σ^½ ξ of a standard normal ξ give parameters with covariance Σ to first order; what the log could not
tell is left where it was.
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
DRIVES = {"Ia": "rotors", "fv": "viscous", "fc": "coulomb"}  # extras of an estimate that an arm has a place for


@dataclass(frozen=True, eq=False)
class Correlated:
    """Factors (n, 4, 4) of the links' pseudo-inertias, extras by kind (n,), and what a standard normal does to them."""

    factors: Array
    extras: dict[str, Array]
    gain: Array  # (size, 10 n + extras)

    @property
    def size(self) -> int:
        """How many independent standard normal numbers there are."""
        return len(self.gain)

    @classmethod
    def of(cls, arm: Arm, given: Any) -> Correlated:
        """From an `Estimate`, or a covariance (p, p) of the arm's minimal parameters."""
        if hasattr(given, "uncertainty") and hasattr(given, "model"):
            if given.model.arm.chain.joints != arm.chain.joints and given.arm.n != arm.n:
                raise InputError(f"the estimate is of {given.given.name}, not of {arm.name}")
            natural, K, covariance = given.natural, given.model.natural, given.uncertainty.covariance
            names, numbers = given.model.extra_names, np.array([given.extras[k] for k in given.model.extra_names])
        else:
            natural = np.array([[float(x) for x in link.natural] for link in arm.links])
            K, covariance = np.asarray(arm.minimal_parameters.array), _square(given, arm)
            names, numbers = (), np.zeros(0)
        factors = np.array([bodies.factor(P, f"link {k}") for k, P in enumerate(bodies.pseudo_inertia(natural), 1)])
        slopes = [bodies.natural_of(bodies.slopes(L)).T for L in factors]  # (10, 10) each: natural by coordinate
        size = 10 * len(factors)
        scale = np.where(numbers != 0, np.abs(numbers), 1.0)
        J = np.hstack([*(K[:, 10 * i : 10 * i + 10] @ S for i, S in enumerate(slopes)), K[:, size:] * scale])
        values, vectors = np.linalg.eigh(covariance)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        gain = (np.linalg.pinv(J) @ root).T
        kinds = {f"{symbol}{k + 1}": (kind, k) for symbol, kind in DRIVES.items() for k in range(arm.n)}
        keep: list[tuple[str, int, int]] = []
        extras: dict[str, Array] = {}
        for j, name in enumerate(names):
            if name in kinds:
                kind, k = kinds[name]
                extras.setdefault(kind, np.zeros(arm.n))[k] = max(numbers[j], 0.0)
                keep.append((kind, k, j))
        ordered = [size + j for kind in extras for _, j in sorted((k, j) for own, k, j in keep if own == kind)]
        if len(ordered) != arm.n * len(extras):
            raise InputError("the estimate has rotors or friction of some joints only; identify with those of all")
        return cls(factors, extras, np.ascontiguousarray(gain[:, [*range(size), *ordered]]))

    def drawn(self, standard: Array) -> tuple[Array, dict[str, Array]]:
        """Natural parameters (k, n, 10) and extras (k, n) by kind, for standard normal numbers (k, size)."""
        n, moved = len(self.factors), bodies.product(standard, self.gain)
        P = [bodies.varied(L, moved[:, 10 * i : 10 * i + 10]) for i, L in enumerate(self.factors)]
        natural = bodies.natural_of(np.stack(P, axis=1))
        parts = moved[:, 10 * n :].reshape(len(standard), len(self.extras), n)
        return natural, {
            kind: np.where(value > 0, value * exponential(parts[:, e]), np.maximum(parts[:, e], 0.0))
            for e, (kind, value) in enumerate(self.extras.items())
        }


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
