"""The physically consistent fit: every link is a possible body, with log-det regularization towards a prior arm.

Source: P. M. Wensing, S. Kim, J.-J. Slotine, IEEE RA-L 3(1), 2018 (pseudo-inertia as LMI); T. Lee, P. M. Wensing,
F. C. Park, IEEE T-RO 36(2), 2020 (log-det, or entropic, Bregman divergence to a prior).

Idea: minimise ½‖A x - z‖² + λ Σ_i [tr X_i - log det X_i] over x = (links, extras), where P_i = L_i X_i L_iᵀ and
L_i L_iᵀ is the prior's pseudo-inertia: in these coordinates the prior is X_i = 1 for any units, and λ is in units of
one noise variance. A and z are the compressed (QR) and whitened data, so the size does not depend on the length of the
log. log det is its own barrier: Newton's method started at the prior stays inside the cone for every λ > 0, and each λ
starts from the solution of the next larger one (path following, Nesterov & Nemirovskii 1994).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from armdyn.arm import Arm
from armdyn.errors import ComputationError
from armdyn.identification.model import PAIRS, Model, Rows, natural_of, pseudo_inertia, reference_bodies
from armdyn.values import cached_property

Array = NDArray[np.float64]
UNSURE = 0.1  # of a joint's torque: by what the prior's friction may well be off, however small it is
LEAST = 1e-6  # regularization that stands for none: the body stays inside the cone
FIRST, FACTOR = 1e4, 10.0  # the path begins at this weight, from the prior, and falls by this factor
MOST_STEPS = 100  # of Newton's for one weight
ROUNDING = 1e-12  # share of the mean that a body on the edge of the cone is moved by at first
EDGE = 1e-10  # smallest eigenvalue over the trace, of a body in the prior's coordinates
SINGULAR = 1e-6  # pivot of a matrix with a unit diagonal, below which it is singular to rounding
ENOUGH = 1e-11  # relative size of a step at which Newton's method has settled


def _units() -> Array:
    """Symmetric 4 x 4 matrices with a one at each of PAIRS, (10, 4, 4)."""
    out = np.zeros((10, 4, 4))
    for k, (r, c) in enumerate(PAIRS):
        out[k, r, c] = out[k, c, r] = 1.0
    return out


UNITS = _units()


@dataclass(frozen=True, eq=False)
class Problem:
    """The fit of the links relative to reference bodies (n, 4, 4); `positive` marks the extras that cannot be negative.

    `extras` are the prior's rotor inertias and friction, 0 where it has none, and `deviations` their prior standard
    deviations, inf for those without a prior.
    """

    reference: Array
    positive: NDArray[np.bool_]
    extras: Array | None = None
    deviations: Array | None = None

    @classmethod
    def of(cls, model: Model, prior: Arm, rows: Rows | None = None) -> Problem:
        """The problem of a model, measured by a prior arm's bodies; its friction is weakly held where rows are given.

        A rotor or friction of the prior may well be off by as much as it is, and by what makes a tenth of the joint's
        torque: files often have a small number there because some number had to be.
        """
        natural = model.prior(prior)
        bodies, _ = reference_bodies(natural[: model.links])
        extras = natural[model.links :]
        if rows is None or not extras.any():
            return cls(bodies, model.extra_positive, extras)
        energy = ((rows.Y @ model.natural[:, model.links :]) ** 2).sum(axis=0)
        torque = np.linalg.norm(rows.tau, axis=0)[energy.argmax(axis=0)]
        size = np.sqrt(energy.max(axis=0))
        little = np.where(size > 0, UNSURE * torque / np.where(size > 0, size, 1.0), 0.0)
        deviations = np.where(extras != 0, np.maximum(np.abs(extras), little), np.inf)
        return cls(bodies, model.extra_positive, extras, deviations)

    @property
    def precision(self) -> Array:
        """One over the square of the extras' deviations."""
        return np.zeros(len(self.positive)) if self.deviations is None else 1 / self.deviations**2

    @property
    def held(self) -> Array:
        """The prior's extras, 0 where none are given."""
        return np.zeros(len(self.positive)) if self.extras is None else self.extras

    @cached_property
    def coordinates(self) -> Array:
        """Natural parameters from X: (10 n, 10 n), block diagonal; X's entries are the upper triangle by columns."""
        blocks = np.zeros((len(self.reference) * 10,) * 2)
        for i, P in enumerate(self.reference):
            L = np.linalg.cholesky(P)
            blocks[10 * i : 10 * i + 10, 10 * i : 10 * i + 10] = natural_of(L @ UNITS @ L.T).T
        return blocks

    def solve(self, A: Array, z: Array, regularization: float, start: Array | None = None) -> Array:
        """The natural parameters of the links, then the extras; `start` are those of a similar problem."""
        return self.path(A, z, [regularization], start)[0]

    def path(self, A: Array, z: Array, regularizations: Sequence[float], start: Array | None = None) -> list[Array]:
        """The solutions for several weights, each from the next larger one's, or the first from `start`."""
        links, extras = 10 * len(self.reference), len(self.positive)
        T = np.eye(links + extras)
        T[:links, :links] = self.coordinates
        B = A @ T
        scale = np.linalg.norm(B[:, links:], axis=0)  # extras in units of what the data say of them
        scale = np.where(scale > 0, 1 / np.where(scale > 0, scale, 1), 1.0)
        B[:, links:] *= scale
        T[:, links:] *= scale
        newton = _Newton(B, z, self.positive, self.held / scale, self.precision * scale**2)
        wanted = {max(float(w), LEAST) for w in regularizations}
        between = FIRST / FACTOR ** np.arange(np.ceil(np.log10(FIRST / min(wanted))))
        xi = np.concatenate([np.tile([float(r == c) for r, c in PAIRS], len(self.reference)), self.held / scale])
        if start is not None:
            xi, between = np.linalg.solve(T, start), between[:0]
        found = {}
        for weight in sorted({*wanted, *(float(w) for w in between)}, reverse=True):
            xi = newton.settled(xi, weight, ENOUGH if weight in wanted else 1e-3)
            found[weight] = self.inside(T @ xi)
        return [found[max(float(w), LEAST)] for w in regularizations]

    def inside(self, natural: Array) -> Array:
        """The same bodies, moved towards their own mean by as little as makes them consistent after rounding, too."""
        links = 10 * len(self.reference)
        P = pseudo_inertia(natural[:links].reshape(-1, 10))
        out = natural.copy()
        for i in range(len(P)):
            share, middle = ROUNDING, np.trace(np.linalg.solve(self.reference[i], P[i])) / 4 * self.reference[i]
            while not np.linalg.eigvalsh(pseudo_inertia(out[10 * i : 10 * i + 10]))[0] > 1e-15 * np.trace(P[i]):
                if not (share < 1 and middle[3, 3] > 0):
                    raise ComputationError(f"no physically consistent link {i + 1} was found: is the log sound?")
                out[10 * i : 10 * i + 10] = natural_of((1 - share) * P[i] + share * middle)
                share *= 10
        return out

    def bodies(self, natural: Array) -> Array:
        """X of natural parameters, (n, 4, 4)."""
        own = natural[: 10 * len(self.reference)]
        return np.asarray(np.einsum("nk,kij->nij", np.linalg.solve(self.coordinates, own).reshape(-1, 10), UNITS))

    def cost(self, A: Array, z: Array, regularization: float, natural: Array) -> float:
        """½‖A x - z‖² + λ Σ (tr X - log det X), and half the square of what extras are off the prior's."""
        X = self.bodies(natural)
        divergence = np.trace(X, axis1=1, axis2=2) - np.linalg.slogdet(X)[1]
        off = natural[10 * len(self.reference) :] - self.held
        friction = np.sum(off**2 * self.precision) / 2
        return float(np.sum((A @ natural - z) ** 2) / 2 + regularization * divergence.sum() + friction)

    def information(self, natural: Array, regularization: float) -> Array:
        """Second derivative of the regularization at a solution, in natural parameters."""
        links = 10 * len(self.reference)
        out = np.diag(np.concatenate([np.zeros(links), self.precision]))
        turned = np.linalg.inv(self.bodies(natural))[:, None] @ UNITS
        for i, own in enumerate(np.einsum("naij,nbji->nab", turned, turned)):
            block = slice(10 * i, 10 * i + 10)
            back = np.linalg.inv(self.coordinates[block, block])
            out[block, block] = regularization * back.T @ own @ back
        return out


def _solved(system: Array, right: Array) -> Array:
    """The solution of a system with a positive definite matrix; of least norm if it is singular to rounding."""
    try:
        L = np.linalg.cholesky(system)
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.lstsq(system, right, rcond=1e-14)[0])
    if float(np.min(np.diag(L))) < SINGULAR:
        return np.asarray(np.linalg.lstsq(system, right, rcond=1e-14)[0])
    return np.asarray(np.linalg.solve(system, right))


class _Newton:
    """Newton's method for ½‖B ξ - z‖² + λ Σ (tr X - log det X) with the positive extras at least 0.

    The extras' columns have unit norm; they are also held, weakly, to contribute no more than the torque is large:
    what a log cannot tell stays near the prior's (0 where it has none) instead of growing without bound.
    """

    def __init__(self, B: Array, z: Array, positive: NDArray[np.bool_], extras: Array, precision: Array) -> None:
        self.B, self.z = B, z
        self.normal, self.moment = B.T @ B, B.T @ z
        self.links = B.shape[1] - len(positive)
        self.least = np.concatenate([np.full(self.links, -np.inf), np.where(positive, 0.0, -np.inf)])
        self.weak = np.concatenate([np.zeros(self.links), np.full(len(positive), 1 / max(float(z @ z), 1e-300))])
        self.prior = np.concatenate([np.zeros(self.links), extras])
        self.held = np.concatenate([np.zeros(self.links), precision])

    def bodies(self, xi: Array) -> Array:
        """X of every link."""
        return np.asarray(np.einsum("nk,kij->nij", xi[: self.links].reshape(-1, 10), UNITS))

    def cost(self, xi: Array, weight: float) -> float:
        """What is minimised; inf outside the cone and so near its edge that rounding would decide."""
        X = self.bodies(xi)
        edge = EDGE * np.trace(X, axis1=1, axis2=2)
        if not (np.linalg.eigvalsh(X)[:, 0] > np.maximum(edge, 0.0)).all():
            return float("inf")
        divergence = np.trace(X, axis1=1, axis2=2).sum() - np.linalg.slogdet(X)[1].sum()
        extras = (weight * self.weak + self.held) @ (xi - self.prior) ** 2 / 2
        return float(np.sum((self.B @ xi - self.z) ** 2) / 2 + extras + weight * divergence)

    def step(self, xi: Array, weight: float) -> Array:
        """Newton's step over the extras that are free; one at its bound is, where the cost falls inwards."""
        inverse = np.linalg.inv(self.bodies(xi))
        turned = inverse[:, None] @ UNITS
        held = weight * self.weak + self.held
        gradient = self.B.T @ (self.B @ xi - self.z) + held * (xi - self.prior)
        gradient[: self.links] += weight * np.einsum("kij,nji->nk", UNITS, np.eye(4) - inverse).ravel()
        hessian = self.normal + np.diag(held)
        for i, own in enumerate(np.einsum("naij,nbji->nab", turned, turned)):
            hessian[10 * i : 10 * i + 10, 10 * i : 10 * i + 10] += weight * own
        free = np.flatnonzero((xi > self.least) | (gradient < 0))
        scale = 1 / np.sqrt(np.maximum(np.diag(hessian)[free], 1e-300))
        out = np.zeros_like(xi)
        system = hessian[np.ix_(free, free)] * np.outer(scale, scale)
        out[free] = -scale * _solved(system, scale * gradient[free])
        return out

    def room(self, xi: Array, step: Array) -> float:
        """The part of a step that goes at most 99 % of the way to the edge of the cone."""
        L = np.linalg.cholesky(self.bodies(xi))
        across = np.linalg.solve(L, np.swapaxes(np.linalg.solve(L, self.bodies(step)), 1, 2))
        least = float(np.linalg.eigvalsh(across)[:, 0].min())
        return min(1.0, 0.99 / -least) if least < 0 else 1.0

    def settled(self, xi: Array, weight: float, enough: float) -> Array:
        """The minimum, from a point inside the cone; steps are halved until the cost falls."""
        now, rounding = self.cost(xi, weight), 1e-28 * float(self.z @ self.z)
        if not np.isfinite(now):
            raise ComputationError("the physically consistent fit got numbers that are not finite")
        for _ in range(MOST_STEPS):
            step = self.step(xi, weight)
            step = step * self.room(xi, step)
            small = enough * float(np.linalg.norm(xi))
            while (then := self.cost(trial := np.maximum(xi + step, self.least), weight)) > now + rounding:
                step = step / 2
                if np.linalg.norm(step) <= small:
                    return xi
            xi, now = trial, then
            if np.linalg.norm(step) <= small:
                break
        return xi
