"""A load at the tool from a log with it: mass, centre and inertia, the arm being known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armdyn.arm import Arm
from armdyn.chain import Link
from armdyn.identification.estimate import linear
from armdyn.identification.estimate.consistent import Problem
from armdyn.identification.estimate.gains import Gains
from armdyn.identification.estimate.result import Estimate
from armdyn.identification.estimate.run import checked
from armdyn.identification.estimate.statistics import autocorrelation_factors, relative_error
from armdyn.identification.estimate.threads import one_thread
from armdyn.identification.log.log import Log
from armdyn.identification.log.processing import choose_processing, joint_side, motions
from armdyn.identification.model.reading import changed
from armdyn.identification.model.rows import filtered

Array = NDArray[np.float64]
REGULARIZATION = 0.01  # so weak that it only keeps the body consistent


@dataclass(frozen=True, eq=False)
class Payload:
    """A body at the tool: mass, centre and inertia about it in the tool's frame; the ten parameters with deviations.

    `natural` is (m, mcx, mcy, mcz, Ixx, Ixy, Iyy, Ixz, Iyz, Izz) about the tool's origin; `error` is what is left of
    the torque that the arm alone does not explain.
    """

    mass: float
    com: Array
    inertia: Array
    natural: Array
    deviations: Array
    error: float
    warnings: tuple[str, ...]

    @property
    def mass_deviation(self) -> float:
        """Standard deviation of the mass."""
        return float(self.deviations[0])

    def held_by(self, arm: Arm) -> Arm:
        """The arm with this load."""
        return arm.with_payload(self.mass, self.com, self.inertia)


@one_thread()
def identify_payload(
    known: Arm | Estimate,
    log: Log,
    *,
    transmission: Any = None,
    zero: Any = None,
    gains: Any = None,
    cutoff: float | None = None,
    parallel: float | bool | None = None,
) -> Payload:
    """Identify what an arm carries: `known` is the arm without it, or better the estimate from a log without it.

    `gains` (of `identify_gains`, with their deviations, or numbers) are for a log of currents; of an estimate, those it
    was identified with count unless others are given. What is not known of the gains is part of the load's deviations.
    """
    unsure = _unsure(gains if gains is not None else known.gains if isinstance(known, Estimate) else None)
    arm = known.model.arm if isinstance(known, Estimate) else known
    if isinstance(known, Estimate):
        side = changed(joint_side(log, known.transmission, known.zero, known.gains), known.changes)
        how = known.processing
    else:
        side = checked(arm, log, transmission, zero, gains, 2)
        how = choose_processing(side, 10 * arm.n, cutoff, parallel)
    Y, tau, logged, pieces = [], [], [], []
    for number, p in enumerate(motions(side, how)):
        if isinstance(known, Estimate):
            without = known.predict(p.q, p.qd, p.qdd)
        else:
            without = np.asarray(arm.inverse_dynamics(p.q, p.qd, p.qdd, friction=True))
        last = np.asarray(arm.natural_regressor(p.q, p.qd, p.qdd))[..., -10:] @ tool_to_last(arm)
        Y.append(filtered(last, p, how))
        tau.append(filtered(p.tau - without, p, how))
        logged.append(filtered(p.tau, p, how))
        pieces.append(np.full(len(tau[-1]), number))
    # A gain that is off by a share scales the torque of its joint, the arm's own with it: an estimate that was found
    # with the same gains is off by the same share, so that only the load's part is left.
    moved = np.concatenate(tau if isinstance(known, Estimate) else logged)
    return _fitted(np.concatenate(Y), np.concatenate(tau), np.concatenate(pieces), moved * unsure)


def _unsure(gains: Any) -> Any:
    """The relative standard deviations of gains, 0 where none are told."""
    return np.abs(gains.deviations / gains.values) if isinstance(gains, Gains) else 0.0


def tool_to_last(arm: Arm) -> Array:
    """Ten parameters in the tool's frame -> ten in the last link's."""
    tool = arm.chain.floats.tool
    columns = [Link.from_natural(tuple(row)).moved(tool.R, tool.p).natural for row in np.eye(10)]
    return np.array([[float(x) for x in column] for column in columns]).T


def _fitted(Y: Array, tau: Array, pieces: NDArray[np.int64], by_gain: Array) -> Payload:
    """The load; `by_gain` (N, n) is what the torques move by one standard deviation of each joint's gain."""
    solution = linear.weighted(Y, tau)
    R, z = linear.compress(Y, tau, solution.weights)
    natural = _possible(R, z, solution.values)
    residual = tau - Y @ natural
    factors = autocorrelation_factors(residual, pieces)
    normal, noise = np.zeros((10, 10)), np.zeros((10, 10))
    for j in range(tau.shape[1]):
        rows = Y[:, j] * solution.weights[:, j, None]
        normal += rows.T @ rows
        noise += factors[j] ** 2 * float(np.mean((residual[:, j] * solution.weights[:, j]) ** 2)) * rows.T @ rows
    inverse = np.linalg.pinv(normal, rcond=1e-12)
    covariance = inverse @ noise @ inverse
    for j in range(tau.shape[1]):  # a gain's error is one error for the whole log: more samples do not make it smaller
        pull = inverse @ ((Y[:, j] * solution.weights[:, j, None] ** 2).T @ by_gain[:, j])
        covariance += np.outer(pull, pull)
    deviations = np.sqrt(np.maximum(np.diag(covariance), 0))
    return _described(natural, deviations, relative_error(tau, Y @ natural))


def fitted_body(R: Array, z: Array, deviations: Array) -> Payload:
    """The body with ‖R x - z‖ least, from whitened and compressed rows; `error` is what they leave of z."""
    natural = _possible(R, z, linear.solve(R, z))
    return _described(natural, deviations, relative_error(z, R @ natural))


def _possible(R: Array, z: Array, guess: Array) -> Array:
    """Ten parameters of a body that is possible."""
    mass = max(float(guess[0]), 1e-3 * float(np.abs(guess).max()), 1e-6)
    reference = np.diag([mass * 0.01] * 3 + [mass])[None]  # a ball of 10 cm, only to measure by
    return Problem(reference, np.zeros(0, dtype=bool)).solve(R, z, REGULARIZATION)


def _described(natural: Array, deviations: Array, error: float) -> Payload:
    body = Link.from_natural(tuple(natural))
    xx, xy, yy, xz, yz, zz = (float(x) for x in body.inertia_about_com.entries)
    inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    weak = [n for n, v, d in zip(("mass", "centre x", "centre y", "centre z"), natural, deviations, strict=False)
            if d > 0.3 * max(abs(v), 0.01 * natural[0])]  # fmt: skip
    said = (f"{', '.join(weak)} of the load: known to no better than 30 %",) if weak else ()
    com = np.array([float(x) for x in body.com])
    return Payload(float(natural[0]), com, inertia, natural, deviations, error, said)
