"""The estimators, in one table: each takes the rows of a model and gives its parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from armdyn.arm import Arm
from armdyn.identification import linear
from armdyn.identification.consistent import Problem
from armdyn.identification.model import Model
from armdyn.identification.samples import Motion, Processing, Rows
from armdyn.identification.statistics import choose_pull

Array = NDArray[np.float64]
PULLS = 10.0 ** np.arange(-2.0, 5.0)  # in units of one noise variance; 0.01 hardly pulls, 10 000 hardly yields


@dataclass(frozen=True, eq=False)
class Setting:
    """What an estimator works with."""

    model: Model
    prior: Arm
    folds: int = 5
    pull: float | None = None
    parts: list[Motion] | None = None  # the motions behind the rows, and how those were made
    how: Processing | None = None


@dataclass(frozen=True, eq=False)
class Fit:
    """Identifiable parameters, natural ones that have them, the rows' weights and what the prior adds.

    `information` is the prior's, in natural parameters; `instruments` stand for the rows where there are any.
    """

    values: Array
    natural: Array
    weights: Array
    information: Array | None = None
    pull: float | None = None
    curve: tuple[Array, Array, Array] | None = None  # pulls, left-out error, its standard error
    instruments: Array | None = None


Estimator = Callable[[Rows, Setting], Fit]


def _least_squares(solver: Callable[[Array, Array, linear.Kept], linear.Solution]) -> Estimator:
    def run(rows: Rows, setting: Setting) -> Fit:
        solution = solver(rows.Y, rows.tau, rows.kept)
        return Fit(solution.values, nearest(setting, solution.values), solution.weights)

    return run


def nearest(setting: Setting, values: Array) -> Array:
    """The natural parameters with these identifiable ones that lie nearest the prior, measured by its bodies."""
    model = setting.model
    prior = model.prior(setting.prior)
    T = np.eye(len(prior))
    T[: 10 * model.n, : 10 * model.n] = Problem.of(model, setting.prior).coordinates
    K = model.natural
    return np.asarray(prior + T @ np.linalg.pinv(K @ T) @ (values - K @ prior))


def consistent(rows: Rows, setting: Setting) -> Fit:
    """Every link a possible body, pulled to the prior as strongly as the left-out segments bear."""
    model = setting.model
    weights = linear.weighted(rows.Y, rows.tau, rows.kept).weights
    problem = Problem.of(model, setting.prior)
    K = model.natural

    def parameters(R: Array, z: Array, pull: float) -> Array:
        return np.asarray(K @ problem.solve(R @ K, z, pull))

    pull, curve = setting.pull, None
    if pull is None:
        segment = rows.segments(setting.folds)
        parts = [segment == k for k in range(setting.folds)]
        triangles = [linear.compress(rows.Y[s], rows.tau[s], weights[s]) for s in parts]
        pull, mean, spread = choose_pull(triangles, parameters, PULLS)
        curve = (PULLS, mean, spread)
    R, z = linear.compress(rows.Y, rows.tau, weights)
    natural = problem.solve(R @ K, z, pull)
    information = problem.information(natural, pull)
    return Fit(K @ natural, natural, weights, information, pull, curve)


ESTIMATORS: dict[str, Estimator] = {
    "ordinary": _least_squares(linear.ordinary),
    "weighted": _least_squares(linear.weighted),
    "huber": _least_squares(linear.huber),
    "consistent": consistent,
}
