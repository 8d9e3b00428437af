"""Detection of motors that drive two joints without this being specified.

In many wrists a motor also drives the neighbouring joint: its inertia and friction then depend on the sum or the
difference of the two joint velocities, which friction models per joint cannot explain. The torque error of the wrist
of a TX40 (joint side) was 384 %, and is 50 % with the three regressor columns of the motor. These columns are tried for
all pairs of neighbouring joints, and kept if they are statistically significant and left-out segments are predicted far
better.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from armdyn.arm import Arm
from armdyn.identification.estimate import linear
from armdyn.identification.estimate.consistent import Problem
from armdyn.identification.estimate.selection import Candidate, Trials
from armdyn.identification.log.processing import Motion, Processing
from armdyn.identification.model.model import Model
from armdyn.identification.model.rows import Rows, filtered, rows

Array = NDArray[np.float64]
MIN_RESIDUAL = 0.01  # of the torque; if the residual of every joint is smaller, no coupling is searched for
MIN_GAIN = 0.15  # reduction of the mean left-out error of the joints: 0.47 for a TX40's wrist, 0.08 if uncoupled


def find_coupling(
    model: Model, prior: Arm, parts: list[Motion], how: Processing, found: Rows, folds: int
) -> tuple[Model, dict[str, float]]:
    """The model with motors that drive two joints, if none was given; and the steps, with their left-out errors."""
    steps: dict[str, float] = {}
    error = 1.0
    while "coulomb" in model.terms and (steps or model.coupling is None):
        fit = linear.weighted(found.Y, found.tau, found.kept)
        weights, left = fit.weights, found.tau - found.Y @ fit.values
        if (np.linalg.norm(left, axis=0) < MIN_RESIDUAL * np.linalg.norm(found.tau, axis=0)).all():
            break
        every = list(_candidates(model, parts, how))
        if not every:
            break
        trials = Trials(model, Problem.of(model, prior, found), found, weights, [c for c, _ in every], folds)
        shown = [c for c, _ in every]
        gains = np.where(trials.evident([], shown), trials.gains([], shown), 0.0)
        if gains.min() > -MIN_GAIN:
            break
        best, coupled = every[int(np.argmin(gains))]
        error *= float(np.exp(gains.min()))
        steps[best.name] = error
        model = coupled
        found = rows(model, parts, how)
    return model, steps


def _candidates(model: Model, parts: list[Motion], how: Processing) -> Iterator[tuple[Candidate, Model]]:
    """Motors that also drive the previous joint, in the same or the opposite direction, as columns and as models.

    A motor that also drives the next joint is the same case, because its row has the entries 1 and ±1 at both joints.
    """
    K = np.eye(model.n) if model.coupling is None else model.coupling
    for k in range(1, model.n):
        for sign in (1.0, -1.0) if np.count_nonzero(K[k]) == 1 else ():
            coupling = K.copy()
            coupling[k, k - 1] = sign
            coupled = replace(model, coupling=coupling)
            new = [i for i, name in enumerate(coupled.extra_names) if name.endswith(f"m{k + 1}")]
            columns = [filtered(coupled.extras(p.q, p.qd, p.qdd, p.log)[:, :, new], p, how) for p in parts]
            yield Candidate(f"a motor that turns joints {k} and {k + 1}", (), -1, np.concatenate(columns)), coupled
