"""The physically consistent fit: every link a real body, regularized towards a prior arm by log-det.

Source: P. M. Wensing, S. Kim, J.-J. Slotine, IEEE RA-L 3(1), 2018 (pseudo-inertia as LMI); T. Lee, P. M. Wensing,
F. C. Park, IEEE T-RO 36(2), 2020 (log-det, or entropic, Bregman divergence to a prior).

Idea: minimise ½‖A x - z‖² + λ Σ_i [tr X_i - log det X_i] over x = (links, extras), where P_i = L_i X_i L_iᵀ and
L_i L_iᵀ is the prior's pseudo-inertia: in these coordinates the prior is X_i = 1, whatever the units, and λ counts
in units of one noise variance. A and z are the compressed (QR) and whitened data, so the size does not depend on
the log. log det is written with one 8 x 8 semidefinite and four exponential cones per link and handed to Clarabel.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armdyn.arm import Arm
from armdyn.errors import ComputationError, InputError
from armdyn.identification.model.bodies import PAIRS, natural_of, reference_bodies
from armdyn.identification.model.model import Model

Array = NDArray[np.float64]
ROOT2 = np.sqrt(2.0)
MOST_STEPS = 40  # of Newton's
FLOOR = 1e-6  # smallest eigenvalue of X without regularization: room for rounding


@dataclass(frozen=True, eq=False)
class Problem:
    """Links measured by reference bodies (n, 4, 4); `positive` tells which extras cannot be negative."""

    reference: Array
    positive: NDArray[np.bool_]

    @classmethod
    def of(cls, model: Model, prior: Arm) -> Problem:
        """The problem of a model, measured by a prior arm's bodies."""
        bodies, _ = reference_bodies(model.prior(prior)[: 10 * model.n])
        return cls(bodies, model.extra_positive)

    @cached_property
    def coordinates(self) -> Array:
        """Natural parameters from X: (10 n, 10 n), block diagonal; X's entries are the upper triangle by columns."""
        blocks = np.zeros((len(self.reference) * 10,) * 2)
        for i, P in enumerate(self.reference):
            L = np.linalg.cholesky(P)
            for k, (r, c) in enumerate(PAIRS):
                X = np.zeros((4, 4))
                X[r, c] = X[c, r] = 1.0
                blocks[10 * i : 10 * i + 10, 10 * i + k] = natural_of(L @ X @ L.T)
        return blocks

    def solve(self, A: Array, z: Array, regularization: float) -> Array:
        """The natural parameters of the links, then the extras."""
        import_clarabel()
        links, extras = len(self.reference), len(self.positive)
        T = np.eye(10 * links + extras)
        T[: 10 * links, : 10 * links] = self.coordinates
        B = A @ T
        scale = np.linalg.norm(B[:, 10 * links :], axis=0)  # extras in units of what the data say of them
        scale = np.where(scale > 0, 1 / np.where(scale > 0, scale, 1), 1.0)
        B[:, 10 * links :] *= scale
        xi = _clarabel(B, z, links, self.positive, regularization)
        if regularization > 0:
            xi = _polished(B, z, links, self.positive, regularization, xi)
        T[:, 10 * links :] *= scale
        return np.asarray(T @ xi)

    def cost(self, A: Array, z: Array, regularization: float, natural: Array) -> float:
        """½‖A x - z‖² + λ Σ (tr X - log det X)."""
        back = np.linalg.solve(self.coordinates, natural[: 10 * len(self.reference)]).reshape(-1, 10)
        X = np.einsum("nk,kij->nij", back, np.array([_unit(r, c) for r, c in PAIRS]))
        divergence = np.trace(X, axis1=1, axis2=2) - np.linalg.slogdet(X)[1]
        return float(np.sum((A @ natural - z) ** 2) / 2 + regularization * divergence.sum())

    def information(self, natural: Array, regularization: float) -> Array:
        """Second derivative of the regularization at a solution, in natural parameters; 0 for the extras."""
        out = np.zeros((len(natural),) * 2)
        basis = np.array([_unit(r, c) for r, c in PAIRS])
        for i in range(len(self.reference)):
            own = slice(10 * i, 10 * i + 10)
            back = np.linalg.inv(self.coordinates[own, own])
            X = np.einsum("k,kij->ij", back @ natural[own], basis)
            turned = np.linalg.inv(X) @ basis
            out[own, own] = regularization * back.T @ np.einsum("aij,bji->ab", turned, turned) @ back
        return out


def import_clarabel() -> Any:
    """Clarabel, or a clear word on how to get it."""
    try:
        import clarabel
    except ImportError as error:
        raise InputError("the consistent estimator needs Clarabel: pip install 'armdyn[identify]'") from error
    return clarabel


def _unit(r: int, c: int) -> Array:
    E = np.zeros((4, 4))
    E[r, c] = E[c, r] = 1.0
    return E


def _clarabel(B: Array, z: Array, links: int, positive: NDArray[np.bool_], regularization: float) -> Array:
    """Minimise ½‖B ξ - z‖² + λ Σ (tr X - log det X) with X ≻ 0 and the positive extras at least 0.

    The extras' columns have unit norm. With regularization they are also held, weakly, to
    contribute no more than the torque is large: what a log cannot tell stays near 0 instead of growing without bound.
    """
    from scipy import sparse

    clarabel = import_clarabel()
    size, per = B.shape[1], 14 if regularization > 0 else 0  # a lower triangle (10) and four logarithms per link
    total = size + per * links
    P = np.zeros((total, total))
    P[:size, :size] = B.T @ B
    weak = np.arange(10 * links, size)
    P[weak, weak] += regularization / max(float(z @ z), 1e-300)  # an extra's share is of the order of the torque itself
    g = np.zeros(total)
    g[:size] = -B.T @ z
    rows, b, cones = _cones(links, size, positive, regularization > 0, clarabel)
    for i in range(links if regularization > 0 else 0):
        for k, (r, c) in enumerate(PAIRS):
            g[10 * i + k] += regularization * (r == c)
        at = size + per * i
        g[at + 10 : at + 14] = -regularization
    G = _sparse(rows, total)
    for scale, equilibrate in (
        (1.0, True),
        (1.0, False),
        (float(np.abs(g).max()), False),
        (regularization or 1.0, False),
    ):
        settings = clarabel.DefaultSettings()
        settings.verbose, settings.equilibrate_enable = False, equilibrate
        upper = sparse.triu(sparse.csc_matrix(P / scale)).tocsc()
        solution = clarabel.DefaultSolver(upper, g / scale, G, b, cones, settings).solve()
        if str(solution.status) in ("Solved", "AlmostSolved"):
            return np.array(solution.x[:size])
    raise ComputationError(f"the semidefinite fit did not converge (Clarabel says {solution.status})")


def _polished(B: Array, z: Array, links: int, positive: NDArray[np.bool_], regularization: float, xi: Array) -> Array:
    """Newton steps from the solver's answer, which has four digits; shortened where they would leave the cones.

    An extra that may not be negative is 0 as long as the cost would fall below.
    """
    basis = np.array([_unit(r, c) for r, c in PAIRS])
    least = np.r_[np.full(10 * links, -np.inf), np.where(positive, 0.0, -np.inf)]
    xi = np.where(xi < least + 1e-6 * np.abs(z).max(), np.maximum(least, 0.0), xi)
    weak = np.r_[np.zeros(10 * links), np.full(len(positive), regularization / max(float(z @ z), 1e-300))]

    def cost(x: Array) -> float:
        X = np.einsum("nk,kij->nij", x[: 10 * links].reshape(links, 10), basis)
        if np.linalg.eigvalsh(X).min() <= 0:
            return np.inf
        divergence = np.trace(X, axis1=1, axis2=2) - np.linalg.slogdet(X)[1]
        return float(np.sum((B @ x - z) ** 2) / 2 + weak @ x**2 / 2 + regularization * divergence.sum())

    now, rounding = cost(xi), 1e-28 * float(z @ z)
    for _ in range(MOST_STEPS):
        gradient, hessian = B.T @ (B @ xi - z) + weak * xi, B.T @ B + np.diag(weak)
        for i in range(links):
            own = slice(10 * i, 10 * i + 10)
            inverse = np.linalg.inv(np.einsum("k,kij->ij", xi[own], basis))
            turned = inverse @ basis
            gradient[own] += regularization * np.einsum("kij,ji->k", basis, np.eye(4) - inverse)
            hessian[own, own] += regularization * np.einsum("aij,bji->ab", turned, turned)
        free = np.flatnonzero((xi > least) | (gradient < 0))
        step = np.zeros_like(xi)
        step[free] = np.linalg.lstsq(hessian[np.ix_(free, free)], -gradient[free], rcond=1e-14)[0]
        small = 1e-11 * np.linalg.norm(xi)
        while (then := cost(trial := np.maximum(xi + step, least))) > now + rounding and np.linalg.norm(step) > small:
            step /= 2
        if then > now + rounding:
            break
        xi, now = trial, then
        if np.linalg.norm(step) < small:
            break
    return xi


def _cones(
    links: int, size: int, positive: NDArray[np.bool_], logdet: bool, clarabel: Any
) -> tuple[list[dict[int, float]], Array, list[Any]]:
    """Rows G, right-hand side b and cones of b - G x ∈ K, one row a dict of column: entry."""
    rows: list[dict[int, float]] = []
    b: list[float] = []
    cones: list[Any] = []
    signs = np.flatnonzero(positive) + 10 * links
    if len(signs):
        rows += [{int(k): -1.0} for k in signs]
        b += [0.0] * len(signs)
        cones.append(clarabel.NonnegativeConeT(len(signs)))
    entry = {pair: k for k, pair in enumerate(PAIRS)}
    for i in range(links):
        at = size + 14 * i
        for c in range(8 if logdet else 4):
            for r in range(c + 1):
                root = 1.0 if r == c else ROOT2
                if c < 4:  # X
                    rows.append({10 * i + entry[r, c]: -root})
                    b.append(-FLOOR if r == c and not logdet else 0.0)
                    continue
                j = c - 4
                if r < 4:  # Z, lower triangle
                    rows.append({at + entry[j, r]: -root} if r >= j else {})
                else:  # diag Z
                    rows.append({at + entry[j, j]: -1.0} if r == c else {})
                b.append(0.0)
        cones.append(clarabel.PSDTriangleConeT(8 if logdet else 4))
        for k in range(4 if logdet else 0):
            rows += [{at + 10 + k: -1.0}, {}, {at + entry[k, k]: -1.0}]
            b += [0.0, 1.0, 0.0]
            cones.append(clarabel.ExponentialConeT())
    return rows, np.array(b), cones


def _sparse(rows: list[dict[int, float]], columns: int) -> Any:
    from scipy import sparse

    entries = [(r, c, v) for r, row in enumerate(rows) for c, v in row.items()]
    r, c, v = zip(*entries, strict=True)
    return sparse.csc_matrix((v, (r, c)), shape=(len(rows), columns))
