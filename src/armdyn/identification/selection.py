"""Which friction model a log bears: the one that predicts left-out segments best.

The trial fits are ridge regressions towards the prior: the log-det pull to second order, ½ ‖X - 1‖² in the prior's
own coordinates, which needs no cone and takes a millisecond.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from armdyn.arm import Arm
from armdyn.identification import linear
from armdyn.identification.bodies import reference_bodies
from armdyn.identification.consistent import Problem
from armdyn.identification.model import Model
from armdyn.identification.samples import Motion, Processing, Rows
from armdyn.identification.tilt import lean

Array = NDArray[np.float64]
LEVEL = 0.005  # rad: a base off by less is taken as level
WORTH = 0.99  # a further term must lower the left-out error by 1 %
PULLS = (1.0, 10.0, 100.0, 1000.0)


@dataclass(frozen=True, eq=False)
class Work:
    """A model settled on a log, the log's motions and the model's rows."""

    model: Model
    parts: list[Motion]
    rows: Rows


@dataclass(frozen=True, eq=False)
class Ridge:
    """Identifiable parameters by least squares with a quadratic pull to the prior's links."""

    model: Model
    prior: Arm

    def __post_init__(self) -> None:
        n, extras = 10 * self.model.n, len(self.model.extra_names)
        bodies, _ = reference_bodies(self.model.prior(self.prior)[:n])
        problem = Problem(bodies, self.model.extra_positive)
        ones = np.tile([1.0 if r == c else 0.0 for c in range(4) for r in range(c + 1)], self.model.n)
        size = np.tile([1.0 if r == c else np.sqrt(2) for c in range(4) for r in range(c + 1)], self.model.n)
        T = np.eye(n + extras)
        T[:n, :n] = problem.coordinates
        object.__setattr__(self, "K", self.model.natural @ T)
        object.__setattr__(self, "target", np.concatenate([ones, np.zeros(extras)]))
        object.__setattr__(self, "pulled", np.concatenate([size, np.zeros(extras)]))

    def __call__(self, R: Array, z: Array, pull: float) -> Array:
        """The identifiable parameters."""
        K, target, pulled = (np.asarray(getattr(self, name)) for name in ("K", "target", "pulled"))
        A = R @ K
        norms = np.linalg.norm(A, axis=0)
        pulled = np.where(pulled > 0, pulled, norms / np.linalg.norm(z))  # extras: of the order of the torque itself
        scale = norms + np.sqrt(pull) * pulled
        scale = np.where(scale > 0, scale, 1.0)
        rows = np.vstack([A, np.sqrt(pull) * np.diag(pulled)]) / scale
        step = np.linalg.lstsq(rows, np.concatenate([z - A @ target, 0 * target]), rcond=1e-12)[0]
        return np.asarray(K @ (target + step / scale))


def left_out_error(model: Model, prior: Arm, rows: Rows, weights: Array, folds: int) -> Array:
    """Weighted squares of each left-out segment, at the pull that predicts them best."""
    ridge = Ridge(model, prior)
    segment = rows.segments(folds)
    parts = [segment == k for k in range(folds)]
    triangles = [linear.compress(rows.Y[s], rows.tau[s], weights[s]) for s in parts]
    errors = np.empty((len(PULLS), folds))
    for k, (R, z) in enumerate(triangles):
        others = linear.triangle(np.vstack([np.column_stack(t) for j, t in enumerate(triangles) if j != k]))
        for i, pull in enumerate(PULLS):
            errors[i, k] = float(((R @ ridge(others[:, :-1], others[:, -1], pull) - z) ** 2).sum())
    return np.asarray(errors[np.argmin(errors.sum(axis=1))])


@dataclass(frozen=True)
class Choice:
    """What a model is made of beyond the rigid body: friction, springs, a base off level (rad, two directions)."""

    friction: str = "coulomb"
    spring: bool = False
    lean: tuple[float, float] = (0.0, 0.0)


def select(
    make: Callable[[Choice], Work], start: Choice, prior: Arm, how: Processing, folds: int
) -> tuple[Choice, dict[str, float], Work]:
    """Stribeck's bump and a base off level in turn, each kept if segments left out are predicted better with it."""
    best = start
    work = make(best)
    weights = linear.weighted(work.rows.Y, work.rows.tau).weights
    error = left_out_error(work.model, prior, work.rows, weights, folds)
    tried = {"coulomb": error}
    for name in ("stribeck", "tilt", "stribeck"):  # the bump may show only once gravity is in its place
        if name == "tilt":
            trial = replace(best, lean=lean(work.model, prior, work.parts, how, weights))
        else:
            trial = replace(best, friction="stribeck")
        if trial == best or (name == "tilt" and np.hypot(*trial.lean) < LEVEL):
            continue
        attempt = make(trial)
        tried[name] = left_out_error(attempt.model, prior, attempt.rows, weights, folds)
        if ratio(tried[name], error) < WORTH:
            best, work, error = trial, attempt, tried[name]
    return best, {name: ratio(found, tried["coulomb"]) for name, found in tried.items()}, work


def ratio(errors: Array, others: Array) -> float:
    """By what the errors differ in the geometric mean over segments: each segment counts alike, however hard it is."""
    return float(np.exp(0.5 * np.mean(np.log(errors / others))))
