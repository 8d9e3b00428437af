"""Friction and offsets of another day from seconds of its log, the inertias of an estimate being kept.

Links and rotors do not change from day to day, friction does: it falls as drives warm up. So only viscous and Coulomb
friction and offsets are fitted to a new log, as differences to those of the estimate, which are expected to be of the
order of DRIFT. What is kept is not exact: its covariance counts as noise of the new torques, and stays in the
deviations of the result (parameters that are considered, not estimated; Schmidt 1966).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from armdyn.errors import InputError
from armdyn.identification import linear
from armdyn.identification.fit import Fit, Uncertainty, autocorrelation_factors
from armdyn.identification.model import DRIFTING, Model, Parameter, Rows

Array = NDArray[np.float64]
DRIFT = 0.5  # of a friction coefficient: the standard deviation of its change from day to day, at most
SHARES = (0.03, 0.06, 0.12, 0.25, 0.5, 1.0)  # of these changes, of which the likeliest in view of the torques is taken
SHIFT = 0.05  # of the rms torque of a joint: that of an offset, and of friction that was about zero
ROUNDS = 3  # of the variances of the residuals, which follow from the fit


@dataclass(frozen=True, eq=False)
class Adapted:
    """Parameters with the friction of another log: fit, uncertainty, and the differences by name, with deviations."""

    fit: Fit
    uncertainty: Uncertainty
    changes: dict[str, tuple[float, float]]


def last_log(model: Model, natural: Array) -> tuple[Model, Array, Array]:
    """The model and natural parameters of the last of several logs, and the matrix from the parameters to its own."""
    alone = replace(model, logs=1)
    count = len(alone.extra_parameters)
    own = natural[: model.links + count].copy()
    maps = np.zeros((len(alone.names), len(model.names)))
    maps[:, : len(alone.names)] = np.eye(len(alone.names))
    for k, parameter in enumerate(model.standing_alone, model.rigid):
        if parameter.log is not None and parameter.log == model.logs - 1:
            at = model.links + alone.places[replace(parameter, log=None)]
            own[at] += natural[model.links + model.places[parameter]]
            maps[:, k] = alone.natural[:, at]
    return alone, own, maps


def adapted(
    model: Model, natural: Array, covariance: Array, rows: Rows, speeds: Array, noise: tuple[Array, Array]
) -> Adapted:
    """Friction and offsets for these rows of one log; `covariance` is that of the identifiable parameters.

    `speeds` (n,) are the largest of the log; `noise` holds the deviations of the torques that were fitted first and the
    factors by which their autocorrelation increases those of parameters: seconds of a log show too little of either.
    """
    free = [Parameter(term, j) for term in DRIFTING for j in model.terms.get(term, ())]
    if not free:
        raise InputError("the model has neither friction nor offsets: there is nothing to adapt to a log")
    at = np.array([model.links + model.places[parameter] for parameter in free])
    K = model.natural
    M = K[:, at]
    expected = _expected(free, natural[at], rows, speeds)
    before, kept = K @ natural, rows.kept.astype(float)
    sigma, factors = noise
    sigma = np.maximum(sigma, linear.QUIET * np.sqrt(np.mean(rows.tau**2)))
    least = sigma, factors
    for _ in range(ROUNDS):
        weights = kept / (sigma * factors)
        R, z = linear.compress(rows.Y, rows.tau - rows.Y @ before, weights)
        A = R @ M
        unknown = np.eye(len(z)) + R @ covariance @ R.T
        seen = np.linalg.solve(unknown, A).T
        share = max(SHARES, key=lambda s: _likelihood(z, unknown + (s * expected * A) @ (s * expected * A).T))
        inverse = np.linalg.inv(seen @ A + np.diag((share * expected) ** -2))
        gain = inverse @ seen
        change = gain @ z
        residual = np.where(rows.kept, rows.tau - rows.Y @ (before + M @ change), 0.0)
        sigma = np.maximum(linear.deviations(residual, len(free), kept), least[0])
        factors = np.maximum(autocorrelation_factors(residual, rows.piece), least[1])
    after = natural.copy()
    after[at] += change
    off = M @ (gain @ A - np.eye(len(free))) * (share * expected)
    inherited = M @ gain @ R - np.eye(len(K))
    total = off @ off.T + inherited @ covariance @ inherited.T + (M @ gain) @ (M @ gain).T
    spread = np.sqrt(np.diag(inverse))
    changes = {p.name: (float(x), float(s)) for p, x, s in zip(free, change, spread, strict=True)}
    return Adapted(Fit(K @ after, after, weights), Uncertainty(total, factors, np.ones(len(K))), changes)


def _likelihood(z: Array, covariance: Array) -> float:
    """The logarithm of the density of z, but for a constant."""
    return -float(np.linalg.slogdet(covariance)[1] + z @ np.linalg.solve(covariance, z)) / 2


def _expected(free: list[Parameter], values: Array, rows: Rows, speeds: Array) -> Array:
    """The standard deviations of the changes that are expected."""
    size = np.sqrt((rows.tau**2).mean(axis=0))
    size = np.maximum(size, 1e-6 * max(float(size.max()), 1e-300))
    out = []
    for parameter, value in zip(free, values, strict=True):
        j = parameter.joint
        assert j is not None
        fast = max(float(speeds[j]), 1e-3 * max(float(speeds.max()), 1e-300)) if parameter.term == "viscous" else 1.0
        out.append(max(DRIFT * abs(float(value)), SHIFT * float(size[j]) / fast))
    return np.array(out)
