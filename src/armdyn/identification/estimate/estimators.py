"""The table of estimators: each takes the rows of a model and returns its parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from armdyn.arm import Arm
from armdyn.identification.estimate import linear
from armdyn.identification.estimate.consistent import Problem
from armdyn.identification.log.processing import Motion, Processing
from armdyn.identification.model.model import Model
from armdyn.identification.model.rows import Rows

Array = NDArray[np.float64]
REGULARIZATIONS = 10.0 ** np.arange(-2.0, 5.0)  # in noise variances: from almost none to almost fixed at the prior


@dataclass(frozen=True, eq=False)
class Setting:
    """The inputs of an estimator besides the rows."""

    model: Model
    prior: Arm
    folds: int = 5
    regularization: float | None = None
    parts: list[Motion] | None = None  # the motions from which the rows were computed
    how: Processing | None = None  # the processing with which they were computed
    instruments: Array | None = None  # the instruments of these rows, if already computed
    free_signs: bool = False  # whether rotor inertias and friction may be negative


@dataclass(frozen=True, eq=False)
class Fit:
    """The identifiable parameters, natural parameters that agree with them, and the weights of the rows.

    `information` is that of the prior, in natural parameters; `instruments` replace the rows on one side of the normal
    equations if instrumental variables are used.
    """

    values: Array
    natural: Array
    weights: Array
    information: Array | None = None
    regularization: float | None = None
    curve: tuple[Array, Array, Array] | None = None  # regularizations, left-out error, its standard error
    instruments: Array | None = None


Estimator = Callable[[Rows, Setting], Fit]


def _least_squares(solver: Callable[[Array, Array, linear.Kept], linear.Solution]) -> Estimator:
    def run(rows: Rows, setting: Setting) -> Fit:
        solution = solver(rows.Y, rows.tau, rows.kept)
        return Fit(solution.values, nearest(setting, solution.values), solution.weights)

    return run


def nearest(setting: Setting, values: Array) -> Array:
    """The natural parameters that agree with the identifiable ones and are closest to the prior, in its metric."""
    model = setting.model
    prior = model.prior(setting.prior)
    T = np.eye(len(prior))
    T[: model.links, : model.links] = Problem.of(model, setting.prior).coordinates
    K = model.natural
    return np.asarray(prior + T @ np.linalg.pinv(K @ T) @ (values - K @ prior))


def consistent(rows: Rows, setting: Setting) -> Fit:
    """The physically consistent fit, with the regularization towards the prior chosen by cross-validation."""
    model = setting.model
    weights = linear.weighted(rows.Y, rows.tau, rows.kept).weights
    problem = Problem.of(model, setting.prior, rows)
    if setting.free_signs:
        problem = replace(problem, positive=np.zeros_like(problem.positive))
    K = model.natural
    regularization, curve = setting.regularization, None
    if regularization is None:
        segment = rows.segments(setting.folds)
        parts = [segment == k for k in range(setting.folds)]
        triangles = [linear.compress(rows.Y[s], rows.tau[s], weights[s]) for s in parts]
        regularization, mean, spread = choose_regularization(triangles, problem, K)
        curve = (REGULARIZATIONS, mean, spread)
    R, z = linear.compress(rows.Y, rows.tau, weights)
    natural = problem.solve(R @ K, z, regularization)
    information = problem.information(natural, regularization)
    return Fit(K @ natural, natural, weights, information, regularization, curve)


def choose_regularization(
    triangles: list[tuple[Array, Array]], problem: Problem, K: Array
) -> tuple[float, Array, Array]:
    """The regularization weight by leave-one-segment-out cross-validation: a mean of those that predict about as well.

    `triangles` are the compressed segments. The logarithms of the errors are compared per segment, so that a segment
    that is hard to predict does not dominate. Returns the weight, and for each of REGULARIZATIONS the left-out error
    relative to the best one's (geometric mean) and its standard error.
    """
    errors = np.empty((len(REGULARIZATIONS), len(triangles)))
    for s, (R, z) in enumerate(triangles):
        others = [pair for k, pair in enumerate(triangles) if k != s]
        stacked = linear.triangle(np.vstack([np.column_stack([Ro, zo]) for Ro, zo in others]))
        found = problem.path(stacked[:, :-1] @ K, stacked[:, -1], list(REGULARIZATIONS))
        errors[:, s] = [float(((R @ (K @ natural) - z) ** 2).sum()) for natural in found]
    score = np.log(np.maximum(errors, 1e-300)) / 2
    best = int(np.argmin(score.mean(axis=1)))
    apart = score - score[best]
    mean, spread = apart.mean(axis=1), apart.std(axis=1, ddof=1) / np.sqrt(len(triangles))
    # Only the best weight and stronger ones are considered: below it the curve is flat, where the log alone decides.
    # A stronger one is weighted by how likely it is to be the best, from its distance in half standard errors. The
    # result is at least the strongest weight within one standard error, the simplest model that predicts as well.
    apart = np.maximum(mean, 0.0) / np.maximum(spread, 1e-300)
    likely = np.where(np.arange(len(mean)) >= best, np.exp(-2 * apart**2), 0.0)
    likely[best] = 1.0
    averaged = 10 ** (likely @ np.log10(REGULARIZATIONS) / likely.sum())
    strongest = REGULARIZATIONS[max(int(np.flatnonzero(mean <= spread).max()), best)]
    return float(max(averaged, strongest)), np.exp(mean), spread


ESTIMATORS: dict[str, Estimator] = {
    "ordinary": _least_squares(linear.ordinary),
    "weighted": _least_squares(linear.weighted),
    "huber": _least_squares(linear.huber),
    "consistent": consistent,
}
