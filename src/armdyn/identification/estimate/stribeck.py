"""Stribeck friction by separable nonlinear least squares: the search is over the Stribeck velocities only.

For given velocities all other parameters are linear and are projected out (Golub & Pereyra 1973). The velocity of one
joint changes one column, so the gain of a trial is (cᵀ r)² / (cᵀ c), with all other columns projected out of c and r.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from armdyn.identification.estimate.linear import weighted
from armdyn.identification.log.processing import Motion, Processing
from armdyn.identification.model.model import Model
from armdyn.identification.model.rows import rows

Array = NDArray[np.float64]
SWEEPS = 2
SLOWEST, FASTEST = 0.02, 1.0  # range of the Stribeck velocity, as fractions of the joint's largest velocity


def with_bumps(model: Model, parts: list[Motion], how: Processing) -> Model:
    """The model with the Stribeck velocity of each joint that fits the log best."""
    from scipy.optimize import minimize_scalar

    top = np.abs(np.concatenate([p.qd for p in parts])).max(axis=0)
    joints = model.terms["stribeck"]
    plain = replace(model, terms={t: own for t, own in model.terms.items() if t != "stribeck"})
    base = rows(plain, parts, how)
    weights = weighted(base.Y, base.tau, base.kept).weights
    A = (base.Y * weights[..., None]).reshape(-1, base.Y.shape[-1])
    Q = np.linalg.qr(A)[0]
    flat = (base.tau * weights).ravel()
    residual = flat - Q @ (Q.T @ flat)
    bump = replace(model, terms={"stribeck": tuple(range(model.n))}, coupling=None)

    def freed(j: int, velocity: float) -> Array:
        """Joint j's column for a velocity, freed of the linear columns."""
        trial = replace(bump, stribeck=np.where(np.arange(model.n) == j, velocity, 1.0))
        column = np.zeros_like(weights)
        column[:, j] = _column(trial, parts, how, j) * weights[:, j]
        return np.asarray(column.ravel() - Q @ (Q.T @ column.ravel()))

    found = np.where(top > 0, np.clip(model.stribeck, SLOWEST * top, FASTEST * top), model.stribeck)
    columns = {j: freed(j, found[j]) for j in joints}
    for j in joints * SWEEPS:
        others = np.linalg.qr(np.reshape([c for k, c in columns.items() if k != j], (-1, len(flat))).T)[0]
        target = residual - others @ (others.T @ residual)

        def left(logarithm: float, j: int = j, others: Array = others, target: Array = target) -> float:
            column = freed(j, float(np.exp(logarithm)))
            free = column - others @ (others.T @ column)
            size = float(free @ free)
            return -(float(free @ target) ** 2) / size if size > 1e-12 else 0.0

        ends = np.log(SLOWEST * top[j]), np.log(FASTEST * top[j])
        found[j] = np.exp(minimize_scalar(left, bounds=ends, method="bounded", options={"xatol": 0.02}).x)
        columns[j] = freed(j, found[j])
    return replace(model, stribeck=found)


def _column(trial: Model, parts: list[Motion], how: Processing, j: int) -> Array:
    """The filtered column of joint j's bump."""
    from armdyn.identification.model.rows import filtered

    pieces = [trial.extras(p.q, p.qd, p.qdd)[:, j, j] for p in parts]
    return np.concatenate([filtered(column, part, how) for column, part in zip(pieces, parts, strict=True)])
