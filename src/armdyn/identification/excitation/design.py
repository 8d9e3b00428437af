"""Excitation: a trajectory that tells most about an arm's parameters within what the arm may do.

Criterion: the condition number of the regressor with columns scaled to unit norm (as a smooth maximum over minimum
of the eigenvalues, or log det). Limits are penalties on a grid while searching (L-BFGS with exact gradients: one
backward sweep of Σ G·Y through the regressor's graph); the result is then checked on a dense grid and drawn towards its
centre until every limit holds.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armdyn.arm import Arm
from armdyn.codegen.compile import compile_program
from armdyn.errors import ComputationError, InputError, choose
from armdyn.formulations.regressor import regressor
from armdyn.graph.derive import jacobian
from armdyn.graph.program import trace
from armdyn.identification.estimate.linear import condition
from armdyn.identification.estimate.threads import one_thread
from armdyn.identification.excitation.fourier import Basis
from armdyn.identification.excitation.limits import Limits

Array = NDArray[np.float64]
SHARPNESS = 3  # power of the smooth maximum over minimum of the eigenvalues
GRID = 80  # samples per trajectory while searching
DENSE = 2000  # samples per trajectory for the last word on limits
ROUNDS = (1.0, 10.0, 100.0, 1000.0)  # strength of the penalties, round by round
CRITERIA = ("condition", "determinant")


@dataclass(frozen=True, eq=False)
class Excitation:
    """One or several trajectories: t (N,), q, qd, qdd (m, N, n); `condition` of the regressor over all of them."""

    arm: Arm
    t: Array
    q: Array
    qd: Array
    qdd: Array
    condition: float
    joints: tuple[str, ...]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write CSV: t, q1 ... qd1 ... qdd1 ...; several trajectories get a first column `trajectory`."""
        from armdyn.files.text import write_text

        n, many = self.q.shape[2], len(self.q) > 1
        names = ["t", *(f"{s}{k + 1}" for s in ("q", "qd", "qdd") for k in range(n))]
        lines = [",".join(["trajectory", *names] if many else names)]
        for number, states in enumerate(zip(self.q, self.qd, self.qdd, strict=True), 1):
            for row in np.column_stack([self.t, *states]):
                numbers = ",".join(f"{x:.9g}" for x in row)
                lines.append(f"{number},{numbers}" if many else numbers)
        write_text(path, "\n".join(lines) + "\n")


def excite(
    arm: Arm,
    duration: float = 20.0,
    *,
    trajectories: int = 1,
    harmonics: int = 5,
    criterion: str = "condition",
    acceleration: float | Sequence[float] | None = None,
    plane: tuple[Sequence[float], float] | None = None,
    margin: float = 0.95,
    rate: float = 100.0,
    starts: int = 3,
    seed: int = 0,
    progress: Callable[[float, float], None] | None = None,
) -> Excitation:
    """Design a periodic trajectory (or several) to identify an arm with.

    Parameters
    ----------
    arm
        The arm; its limits on position, velocity and effort hold, its inertias give the torque.
    duration
        Seconds of one period.
    trajectories
        How many different ones, judged together.
    harmonics
        Harmonics of 1 / duration.
    criterion
        ``condition`` (smallest condition number, unit columns) or ``determinant`` (largest).
    acceleration
        Largest joint accelerations, one or n.
    plane
        (normal, distance) in the base frame: the tool stays where normal · position >= distance.
    margin
        The part of every limit that may be used.
    rate
        Samples per second of the result.
    starts, seed
        Searches from different random trajectories.
    progress
        Called with (done, total).
    """
    choose("criterion", criterion, CRITERIA)
    if not (duration > 0 and harmonics >= 2 and trajectories >= 1 and starts >= 1 and 0 < margin <= 1 and rate > 0):
        raise InputError("duration, rate, trajectories and starts must be positive, harmonics >= 2, 0 < margin <= 1")
    limits = Limits.of(arm, acceleration, plane, margin)
    design = Design(arm, Basis(duration, harmonics), limits, trajectories, criterion)
    with one_thread():
        found = _best_of(design, starts, np.random.default_rng(seed), progress)
        judged = design.judged(found)
    t = np.linspace(0, duration, round(duration * rate) + 1)
    q, qd, qdd = design.states(found, t)
    return Excitation(arm, t, q, qd, qdd, judged, tuple(j.name for j in arm.joints))


def _best_of(
    design: Design, starts: int, rng: np.random.Generator, progress: Callable[[float, float], None] | None
) -> Array:
    """The best of several searches, each from the best of ten random trajectories."""
    found = []
    for k in range(starts):
        best = min((design.random(rng) for _ in range(10)), key=design.judged)
        for done, better in design.searched(best):
            best = better
            if progress:
                progress(k + done, starts)
        found.append(best)
    return min(found, key=design.judged)


@lru_cache(maxsize=8)
def _sweep(arm: Arm) -> Any:
    """(q, q̇, q̈, G) -> gradients of Σ G·Y in q, q̇, q̈: one backward sweep, compiled."""
    n, p = arm.n, len(arm.minimal_parameters)

    def weighed(q: Any, qd: Any, qdd: Any, G: Any) -> Any:
        Y = regressor(arm.chain, q, qd, qdd)
        return sum((g * y for gs, ys in zip(G, Y, strict=True) for g, y in zip(gs, ys, strict=True)), 0)

    inputs = {"q": (n,), "qd": (n,), "qdd": (n,), "G": (n, p)}
    program = trace("weighed_regressor", weighed, inputs, (("s", ()),))
    return compile_program(jacobian(program, ["q", "qd", "qdd"]))


@dataclass(frozen=True, eq=False)
class Design:
    """The search: unknowns are centre and coefficients of every joint, (trajectories, n, 1 + size), in one row."""

    arm: Arm
    basis: Basis
    limits: Limits
    trajectories: int
    criterion: str

    @property
    def shape(self) -> tuple[int, int, int]:
        """Of the unknowns."""
        return self.trajectories, self.arm.n, 1 + self.basis.size

    def states(self, x: Array, t: Array) -> tuple[Array, Array, Array]:
        """q, q̇, q̈: (trajectories, N, n) each."""
        c = x.reshape(self.shape)
        values, rates, seconds = (b @ np.swapaxes(c[..., 1:], 1, 2) for b in self.basis.at(t))
        return values + c[:, None, :, 0], rates, seconds

    def _grid(self, count: int) -> Array:
        return np.linspace(0, self.basis.period, count, endpoint=False)

    def random(self, rng: np.random.Generator) -> Array:
        """A random trajectory as large as the limits allow."""
        low, high = self.limits.lower, self.limits.upper
        for _ in range(200):
            c = np.empty(self.shape)
            c[..., 1:] = rng.normal(size=(*self.shape[:2], self.basis.size))
            c[..., 0] = 0.0
            q, _, _ = self.states(c.ravel(), self._grid(GRID))
            c[..., 0] = rng.uniform(low, high, self.shape[:2]) - q.mean(axis=1)
            drawn = self.drawn_in(c.ravel())
            if drawn is not None:
                return drawn
        raise ComputationError("no random trajectory keeps to the limits: is the plane or an effort limit too tight?")

    def drawn_in(self, x: Array) -> Array | None:
        """The trajectory, smaller about its middle until every limit holds on a dense grid; None if it never does."""
        c = x.reshape(self.shape).copy()
        q, _, _ = self.states(x, self._grid(GRID))
        middle = (q.max(axis=1) + q.min(axis=1)) / 2
        inside = np.clip(middle, self.limits.lower, self.limits.upper)
        c[..., 0] += inside - middle
        shift = c[..., 0] - inside  # centre of the series seen from the middle of the motion
        still = inside[:, None]
        if not self.limits.hold(still, 0 * still, 0 * still):
            return None  # not even standing there is allowed
        q, qd, qdd = self.states(c.ravel(), self._grid(DENSE))
        size = min(1.0, self.limits.room(q, qd, qdd, inside))
        for _ in range(40):
            trial = c * 1.0
            trial[..., 1:] *= size
            trial[..., 0] = inside + size * shift
            if self.limits.hold(*self.states(trial.ravel(), self._grid(DENSE))):
                return trial.ravel() if size > 1e-3 else None
            size *= 0.9
        return None

    def judged(self, x: Array) -> float:
        """The condition number with unit columns."""
        q, qd, qdd = (s.reshape(-1, self.arm.n) for s in self.states(x, self._grid(2 * GRID)))
        Y = np.asarray(self.arm.regressor(q, qd, qdd))
        return condition(Y.reshape(-1, Y.shape[-1]))

    def cost(self, x: Array, strength: float) -> tuple[float, Array]:
        """Criterion and penalties with their exact gradient."""
        t = self._grid(GRID)
        q, qd, qdd = (s.reshape(-1, self.arm.n) for s in self.states(x, t))
        Y = np.asarray(self.arm.regressor(q, qd, qdd))
        value, G = _criterion(Y, self.criterion)
        over, dq, dqd, dqdd, dY = self.limits.penalty(q, qd, qdd, Y)
        slopes = _sweep(self.arm)(q, qd, qdd, G + strength * dY)
        by_state = [s + strength * d for s, d in zip(slopes, (dq, dqd, dqdd), strict=True)]
        gradient = np.zeros(self.shape)
        by_q, by_qd, by_qdd = (s.reshape(self.trajectories, len(t), -1) for s in by_state)
        for b, s in zip(self.basis.at(t), (by_q, by_qd, by_qdd), strict=True):
            gradient[..., 1:] += np.swapaxes(s, 1, 2) @ b
        gradient[..., 0] = by_q.sum(axis=1)
        return value + strength * over, gradient.ravel()

    def searched(self, x: Array) -> Iterator[tuple[float, Array]]:
        """(part done, best trajectory within the limits so far), round by round of ever harder limits."""
        from scipy.optimize import minimize

        best, least = x, self.judged(x)
        for k, strength in enumerate(ROUNDS, 1):
            x = minimize(self.cost, x, args=(strength,), jac=True, method="L-BFGS-B", options={"maxiter": 150}).x
            allowed = self.drawn_in(x)
            if allowed is not None and self.judged(allowed) < least:
                best, least = allowed, self.judged(allowed)
            yield k / len(ROUNDS), best


def _criterion(Y: Array, criterion: str) -> tuple[float, Array]:
    """(criterion, its gradient in Y) on unit columns."""
    W = Y.reshape(-1, Y.shape[-1])
    norms = np.maximum(np.linalg.norm(W, axis=0), 1e-12)
    U = W / norms
    lam, V = np.linalg.eigh(U.T @ U)
    lam = np.maximum(lam, 1e-12)
    if criterion == "determinant":
        value, slope = -float(np.log(lam).sum()), -1 / lam
    else:
        k = SHARPNESS
        up, down = (lam / lam[-1]) ** k, (lam[0] / lam) ** k
        value = float(np.log(lam[-1] / lam[0]) / 2 + (np.log(up.sum()) + np.log(down.sum())) / (2 * k))
        slope = (up / up.sum() - down / down.sum()) / (2 * lam)
    g = 2 * U @ ((V * slope) @ V.T)
    return value, ((g - U * (U * g).sum(axis=0)) / norms).reshape(Y.shape)
