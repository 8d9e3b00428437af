"""Torques at the end of their range still tell something: the true torque lies there or beyond.

Left out altogether they take what is told at speed with them, for it is the torque that chooses what is left out: a
joint that mostly rubs keeps the rows near standstill alone. So a row with such torques in it counts where the model
predicts less than was logged, and only there: one-sided least squares, whose rows are settled in rounds (a censored
likelihood with noise that is small beside the range).
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
ROUNDS = 15
REGULARIZATION = 10.0  # of the fits that settle the rows
ONE_END = 0.9  # of what clipped torques have part in a row: all but this at one end, or the row tells nothing


def one_sided(model: Model, prior: Arm, parts: list[Motion], how: Processing, found: Rows) -> list[Motion]:
    """The motions with the rows that count; as they are where no torque is clipped, or all of a joint's."""
    parts = [replace(part, counted=None) for part in parts]
    outside = np.concatenate([kept_rows(part, how) for part in parts])
    if all(part.clipped is None for part in parts) or not outside.any(axis=0).all():
        return parts
    end = np.concatenate([_end(part, how, _middle(parts)) for part in parts])
    problem, K, kept = Problem.of(model, prior, found), model.natural, outside
    for _ in range(ROUNDS):
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
    """Of every row (N, n): 1 where torques in it stand at the upper end, -1 at the lower one, 0 at none or both."""
    if part.clipped is None:
        return 0 * filtered(part.tau, part, how)
    size = filtered(part.clipped.astype(float), part, how)
    sign = filtered(np.where(part.tau > middle, 1.0, -1.0) * part.clipped, part, how)
    return np.where(np.abs(sign) >= ONE_END * np.abs(size), np.sign(sign), 0.0)
