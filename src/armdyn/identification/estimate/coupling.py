"""Motors that turn two joints, where nobody said so.

In many wrists a motor is geared to its joint's neighbour too: its inertia and friction act between the two, with the
sum or the difference of both speeds. No friction joint by joint explains that: the wrist of a TX40 (joints' side) was
predicted to 384 % of its torque, and is to 50 % with the motor's three columns. They are tried at all neighbours,
and kept if the log makes them evident and left-out segments are predicted far better.
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
LITTLE = 0.01  # of every joint's torque: where less is left, there is nothing to look for
WORTH = 0.15  # of the left-out error, in the mean over the joints: 0.47 for a TX40's wrist, 0.08 where there is none


def find_coupling(
    model: Model, prior: Arm, parts: list[Motion], how: Processing, found: Rows, folds: int
) -> tuple[Model, dict[str, float]]:
    """The model with the motors that turn two joints, where none was given; and the steps, with the left-out error."""
    steps: dict[str, float] = {}
    error = 1.0
    while "coulomb" in model.terms and (steps or model.coupling is None):
        fit = linear.weighted(found.Y, found.tau, found.kept)
        weights, left = fit.weights, found.tau - found.Y @ fit.values
        if (np.linalg.norm(left, axis=0) < LITTLE * np.linalg.norm(found.tau, axis=0)).all():
            break
        every = list(_candidates(model, parts, how))
        if not every:
            break
        trials = Trials(model, Problem.of(model, prior, found), found, weights, [c for c, _ in every], folds)
        shown = [c for c, _ in every]
        gains = np.where(trials.evident([], shown), trials.gains([], shown), 0.0)
        if gains.min() > -WORTH:
            break
        best, coupled = every[int(np.argmin(gains))]
        error *= float(np.exp(gains.min()))
        steps[best.name] = error
        model = coupled
        found = rows(model, parts, how)
    return model, steps


def _candidates(model: Model, parts: list[Motion], how: Processing) -> Iterator[tuple[Candidate, Model]]:
    """Motors that turn the joint before theirs too, forwards or backwards, as columns and as models.

    (That the motor before turns the next joint too is the same: its row is 1 and ±1 at both.)
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
