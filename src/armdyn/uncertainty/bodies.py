"""Physically consistent variations of many rigid bodies: second moments, shifts, log-Cholesky coordinates.

A body's ten natural parameters are equivalent to its pseudo-inertia P = [[S, h], [hᵀ, m]], S = ∫ x xᵀ dm, which is
positive definite for a body with positive density (Wensing, Kim & Slotine 2018). With P₀ = L₀ L₀ᵀ of the nominal body,
P = (L₀ T)(L₀ T)ᵀ with T lower triangular with positive diagonal gives every such body. The log-Cholesky coordinates
(Rucker & Wensing 2022) of P relative to P₀ are the entries of T below the diagonal and the logarithms of its diagonal.

Matrix products are sums in a fixed order rather than BLAS calls, so that results are bitwise the same for any number of
bodies and on any machine.

Samples of links, rotor inertias and friction from the covariance of an identification: the covariance Σ is of the
identifiable parameters, which are fewer than the natural ones. A sample has the target parameters π + Σ^½ ξ with ξ
standard normal. J is the derivative of the identifiable parameters with respect to the bodies' log-Cholesky coordinates
and to the extras, relative to their values. The coordinates J⁺ Σ^½ ξ meet the target to first order and do not move
along unidentifiable directions; Newton's method with fixed J⁺ removes the remaining error. If no physically consistent
body has the target parameters, the sample is the closest iterate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armdyn.arm import Arm
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
    entries = [trace - S[..., 0, 0], -S[..., 0, 1], trace - S[..., 1, 1], -S[..., 0, 2], -S[..., 1, 2]]
    return np.stack([*entries, trace - S[..., 2, 2]], axis=-1)


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


NEWTON_STEPS = 8  # with a fixed derivative
DRIVES = {"rotor": "rotors", "viscous": "viscous", "coulomb": "coulomb"}  # terms whose values are drawn for an arm


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
        parameters: tuple[Any, ...] = ()
        if hasattr(given, "uncertainty") and hasattr(given, "model"):
            if not _same_joints(given.model.arm, arm):
                raise InputError(f"the estimate is of {given.given.name}, whose joints are not those of {arm.name}")
            natural, K, covariance = given.natural, given.model.natural, given.uncertainty.covariance
            parameters = given.model.extra_parameters
            extras = np.array(list(given.extras.values()), dtype=float)
        else:
            natural = np.array([[float(x) for x in link.natural] for link in arm.links])
            K, covariance, extras = np.asarray(arm.minimal_parameters.array), _square(given, arm), np.zeros(0)
        places = tuple((DRIVES[p.term], p.joint, j) for j, p in enumerate(parameters) if p.own and p.term in DRIVES)
        factors = np.array([factor(P, f"link {k}") for k, P in enumerate(pseudo_inertia(natural), 1)])
        by_coordinate = [natural_of(slopes(L)).T for L in factors]  # (10, 10) each: natural by coordinate
        links = [K[:, 10 * i : 10 * i + 10] @ S for i, S in enumerate(by_coordinate)]
        J = np.hstack([*links, K[:, 10 * len(factors) :] * _scale(extras)])
        values, vectors = np.linalg.eigh(covariance)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        return cls(factors, extras, np.ascontiguousarray(K), root, np.linalg.pinv(J), places)

    def drawn(self, standard: Array) -> tuple[Array, dict[str, Array]]:
        """Natural parameters (k, n, 10) and extras (k, n) by kind, for standard normal variables (k, size)."""
        target = product(standard, self.root.T)
        theta = product(target, self.back.T)
        left = target - self._moved(theta)
        for _ in range(NEWTON_STEPS):
            trial = theta + product(left, self.back.T)
            missing = target - self._moved(trial)
            better = (self._length(missing) < self._length(left))[:, None]
            theta, left = np.where(better, trial, theta), np.where(better, missing, left)
        natural, extras = self._bodies(theta)
        draws: dict[str, Array] = {}
        for kind, k, j in self.places:
            rows = draws.setdefault(kind, np.zeros((len(standard), len(self.factors))))
            rows[:, k] = np.maximum(extras[:, j], 0.0)
        return natural, draws

    def _bodies(self, theta: Array) -> tuple[Array, Array]:
        n = len(self.factors)
        P = [varied(L, theta[:, 10 * i : 10 * i + 10]) for i, L in enumerate(self.factors)]
        moved = theta[:, 10 * n :]
        kept = np.array(
            [self.extras[j] > 0 and any(j == at for _, _, at in self.places) for j in range(moved.shape[1])]
        )
        grown = self.extras * exponential(moved)  # keeps positive what cannot be negative
        linear = self.extras + _scale(self.extras) * moved
        return natural_of(np.stack(P, axis=1)), np.where(kept, grown, linear) if moved.size else moved

    def _moved(self, theta: Array) -> Array:
        """The deviation of the identifiable parameters from the estimate."""
        natural, extras = self._bodies(theta)
        known, _ = self._bodies(np.zeros((1, theta.shape[1])))
        links = (natural - known).reshape(len(theta), -1)
        return product(np.hstack([links, extras - self.extras]), self.K.T)

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
