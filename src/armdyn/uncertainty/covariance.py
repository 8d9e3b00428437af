"""Physically consistent samples of links, rotor inertias and friction from the covariance of an identification.

The covariance Σ is of the identifiable parameters, which are fewer than the natural ones. A sample has the target
parameters π + Σ^½ ξ with ξ standard normal. J is the derivative of the identifiable parameters with respect to the
bodies' log-Cholesky coordinates and to the extras, relative to their values. The coordinates J⁺ Σ^½ ξ meet the target
to first order and do not move along unidentifiable directions; Newton's method with fixed J⁺ removes the remaining
error. If no physically consistent body has the target parameters, the sample is the closest iterate.
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
NEWTON_STEPS = 8  # with a fixed derivative
DRIVES = {"Ia": "rotors", "fv": "viscous", "fc": "coulomb"}  # extras of an estimate that an arm can represent


@dataclass(frozen=True, eq=False)
class Correlated:
    """Cholesky factors (n, 4, 4) of the links' pseudo-inertias, extras (e,), and the map to identifiable parameters.

    `K` (p, 10 n + e) gives the parameters, `root` (p, p) is Σ^½, `back` (10 n + e, p) is J⁺. `places` lists the extras
    that an arm can represent: kind, joint and index among the extras.
    """

    factors: Array
    extras: Array
    K: Array
    root: Array
    back: Array
    places: tuple[tuple[str, int, int], ...]

    @property
    def size(self) -> int:
        """The number of independent standard normal variables."""
        return len(self.root)

    @classmethod
    def of(cls, arm: Arm, given: Any) -> Correlated:
        """From an `Estimate`, or a covariance (p, p) of the arm's minimal parameters."""
        names: tuple[str, ...] = ()
        if hasattr(given, "uncertainty") and hasattr(given, "model"):
            if not _same_joints(given.model.arm, arm):
                raise InputError(f"the estimate is of {given.given.name}, whose joints are not those of {arm.name}")
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
        """Natural parameters (k, n, 10) and extras (k, n) by kind, for standard normal variables (k, size)."""
        target = bodies.product(standard, self.root.T)
        theta = bodies.product(target, self.back.T)
        left = target - self._moved(theta)
        for _ in range(NEWTON_STEPS):
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
        grown = self.extras * exponential(moved)  # keeps positive what cannot be negative
        linear = self.extras + _scale(self.extras) * moved
        return bodies.natural_of(np.stack(P, axis=1)), np.where(kept, grown, linear) if moved.size else moved

    def _moved(self, theta: Array) -> Array:
        """The deviation of the identifiable parameters from the estimate."""
        natural, extras = self._bodies(theta)
        known, _ = self._bodies(np.zeros((1, theta.shape[1])))
        links = (natural - known).reshape(len(theta), -1)
        return bodies.product(np.hstack([links, extras - self.extras]), self.K.T)

    def _length(self, left: Array) -> Array:
        """The squared norm of a parameter error, in units of the standard deviations."""
        deviations = np.sqrt(np.maximum((self.root**2).sum(axis=1), 1e-300))
        total = np.zeros(len(left))
        for k, d in enumerate(deviations):
            total = total + (left[:, k] / d) * (left[:, k] / d)
        return total


def _scale(extras: Array) -> Array:
    """The scale of each extra: its magnitude, or 1 if it is zero."""
    return np.where(extras != 0, np.abs(extras), 1.0)


def _square(given: Any, arm: Arm) -> Array:
    p = len(arm.minimal_parameters)
    try:
        matrix = np.asarray(given, dtype=float)
    except (TypeError, ValueError):
        matrix = np.zeros(0)
    if matrix.shape != (p, p) or not np.isfinite(matrix).all() or not np.allclose(matrix, matrix.T):
        raise InputError(
            f"covariance must be an Estimate (as identify returns), or a symmetric ({p}, {p}) array for the minimal "
            f"parameters of {arm.name}; got {type(given).__name__} of shape {matrix.shape}"
        )
    if np.linalg.eigvalsh(matrix)[0] < -1e-9 * np.abs(matrix).max():
        raise InputError("covariance must be positive semidefinite; its smallest eigenvalue is negative")
    return matrix


def _same_joints(a: Arm, b: Arm) -> bool:
    """Whether two arms have the same kinds of joints in the same places; base and tool may differ."""
    if a.kinds != b.kinds or a.geometry_names != b.geometry_names:
        return False
    joints = [not name.startswith(("base_", "tool_")) for name in a.geometry_names]
    return np.allclose(a.geometry[joints], b.geometry[joints], rtol=0, atol=1e-6)
