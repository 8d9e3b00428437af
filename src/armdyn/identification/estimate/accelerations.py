"""Choice between logged and differentiated accelerations by cross-validation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from armdyn.identification.estimate import linear
from armdyn.identification.estimate.statistics import relative_error
from armdyn.identification.log.log import Log
from armdyn.identification.log.processing import Processing, motions
from armdyn.identification.model.model import Model
from armdyn.identification.model.rows import Rows, rows

CLEARLY = 0.95  # ratio of the errors, differentiated / logged, below which the logged accelerations are not used


def judged(
    how: Processing, model: Model, side: Log, folds: int, width: float | Sequence[float] | None
) -> tuple[Processing, tuple[str, ...]]:
    """The processing, with or without the logged accelerations, that predicts left-out segments better, and a note."""
    if not how.logged_acceleration:
        return how, ()
    other = replace(how, logged_acceleration=False)
    logged, own = (_left_out(model, side, way, folds, width) for way in (how, other))
    taken = logged * CLEARLY <= own
    said = (
        f"the logged accelerations are {'' if taken else 'not '}taken: with them left-out segments are predicted to"
        f" {100 * logged:.2f} %, with differentiated ones to {100 * own:.2f} %"
    )
    return (how if taken else other), (said,)


def _left_out(model: Model, side: Log, how: Processing, folds: int, width: float | Sequence[float] | None) -> float:
    """The relative prediction error of segments that are left out of weighted least squares in turn."""
    parts = motions(side, how)
    tuned = model.tuned(np.concatenate([p.qd for p in parts]), width)
    found = rows(tuned, parts, how)
    if len(found) < 2 * folds or not found.kept.any():
        return float("inf")
    weights = linear.weighted(found.Y, found.tau, found.kept).weights
    segment = found.segments(folds)
    predicted = np.empty_like(found.tau)
    for k in range(folds):
        out = segment == k
        predicted[out] = found.Y[out] @ _solved(found.where(~out), weights[~out])
    return relative_error(found.tau * found.kept, predicted * found.kept)


def _solved(found: Rows, weights: linear.Array) -> linear.Array:
    return linear.solve(*linear.compress(found.Y, found.tau, weights))
