"""Censored regression for saturated torques: the true torque lies at the limit or beyond it.

Leaving these rows out would bias the fit, because the torque itself then decides which rows are kept: for a joint
dominated by friction, only the rows near standstill would remain. A row with saturated torques is therefore fitted only
if the model predicts a smaller magnitude than was logged. This one-sided least-squares problem is solved iteratively;
it is the limit of a censored likelihood for noise that is small compared with the torque range.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from armdyn.arm import Arm
from armdyn.identification.estimate import linear
from armdyn.identification.estimate.consistent import Problem
from armdyn.identification.log.processing import Motion, Processing
from armdyn.identification.model.model import Model
from armdyn.identification.model.rows import Rows, filtered, kept_rows

Array = NDArray[np.float64]
MAX_ITERATIONS = 15
REGULARIZATION = 10.0  # of the fits that select the rows
ONE_LIMIT = 0.9  # minimum dominance of one limit in the saturated torques of a filtered row for it to be used


def one_sided(model: Model, prior: Arm, parts: list[Motion], how: Processing, found: Rows) -> list[Motion]:
    """The motions with the rows to fit; unchanged if no torque is saturated, or if all torques of a joint are."""
    parts = [replace(part, counted=None) for part in parts]
    outside = np.concatenate([kept_rows(part, how) for part in parts])
    if all(part.clipped is None for part in parts) or not outside.any(axis=0).all():
        return parts
    end = np.concatenate([_end(part, how, _middle(parts)) for part in parts])
    problem, K, kept = Problem.of(model, prior, found), model.natural, outside
    for _ in range(MAX_ITERATIONS):
        weights = linear.weighted(found.Y, found.tau, kept).weights
        R, z = linear.compress(found.Y, found.tau, weights)
        short = (found.tau - found.Y @ (K @ problem.solve(R @ K, z, REGULARIZATION))) * end > 0
        before, kept = kept, outside | (short & (end != 0))
        if np.array_equal(before, kept):
            break
    return [replace(part, counted=kept[found.piece == k]) for k, part in enumerate(parts)]


def _middle(parts: list[Motion]) -> Array:
    tau = np.concatenate([part.tau for part in parts])
    return np.asarray((tau.max(axis=0) + tau.min(axis=0)) / 2)


def _end(part: Motion, how: Processing, middle: Array) -> Array:
    """The limit that saturates each row, (N, n): 1 the upper, -1 the lower, 0 none or both."""
    if part.clipped is None:
        return 0 * filtered(part.tau, part, how)
    size = filtered(part.clipped.astype(float), part, how)
    sign = filtered(np.where(part.tau > middle, 1.0, -1.0) * part.clipped, part, how)
    return np.where(np.abs(sign) >= ONE_LIMIT * np.abs(size), np.sign(sign), 0.0)
