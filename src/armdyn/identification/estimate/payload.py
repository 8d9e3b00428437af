"""Payload identification: mass, centre of mass and inertia of a body at the tool, for a known arm."""

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
from armdyn.identification.log.log import Log, PathName, as_log
from armdyn.identification.log.processing import choose_processing, joint_side, motions
from armdyn.identification.model.reading import changed
from armdyn.identification.model.rows import filtered
from armdyn.loading import as_arm

Array = NDArray[np.float64]
REGULARIZATION = 0.01  # weak: it only keeps the body physically consistent


@dataclass(frozen=True, eq=False)
class Payload:
    """A body at the tool: mass, centre of mass and the inertia about it, in the tool's frame.

    `natural` is (m, mcx, mcy, mcz, Ixx, Ixy, Iyy, Ixz, Iyz, Izz) about the tool's origin, and `deviations` are its
    standard deviations. `error` is the relative error of the torque that is due to the payload.
    """

    mass: float
    com: Array
    inertia: Array
    natural: Array
    deviations: Array
    error: float
    warnings: tuple[str, ...]

    def __repr__(self) -> str:
        com = ", ".join(f"{x:.4g}" for x in self.com)
        return f"<Payload: {self.mass:.4g} ± {self.mass_deviation:.2g} kg at ({com}) m, error {100 * self.error:.3g} %>"

    @property
    def mass_deviation(self) -> float:
        """The standard deviation of the mass."""
        return float(self.deviations[0])

    def held_by(self, arm: Arm) -> Arm:
        """The arm with this payload."""
        return arm.with_payload(self.mass, self.com, self.inertia)


@one_thread()
def identify_payload(
    known: Arm | Estimate | PathName,
    log: Log | PathName,
    *,
    transmission: Any = None,
    zero: Any = None,
    gains: Any = None,
    cutoff: float | None = None,
    parallel: float | bool | None = None,
) -> Payload:
    """Identify the payload of an arm; `known` is the arm without it or, better, an estimate from a log without it.

    An arm may be given by its catalogue name or path, a log by its path.
    `gains` (from `identify_gains`, with deviations, or numbers) are for a log of currents; by default those with which
    the estimate was identified. The uncertainty of the gains is included in the deviations of the payload.
    """
    unsure = _unsure(gains if gains is not None else known.gains if isinstance(known, Estimate) else None)
    arm = known.model.arm if isinstance(known, Estimate) else as_arm(known, "identify_payload")
    log = as_log(log, arm)
    arm.require_tool("the identification of a payload")
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
        Y.append(filtered(payload_regressor(arm, p.q, p.qd, p.qdd), p, how))
        tau.append(filtered(p.tau - without, p, how))
        logged.append(filtered(p.tau, p, how))
        pieces.append(np.full(len(tau[-1]), number))
    # A relative error of a gain scales the whole torque of its joint. An estimate identified with the same gains has
    # the same relative error, so only the part of the payload remains.
    moved = np.concatenate(tau if isinstance(known, Estimate) else logged)
    return _fitted(np.concatenate(Y), np.concatenate(tau), np.concatenate(pieces), moved * unsure)


def _unsure(gains: Any) -> Any:
    """The relative standard deviations of gains; 0 if they are not known."""
    return np.abs(gains.deviations / gains.values) if isinstance(gains, Gains) else 0.0


def payload_regressor(arm: Arm, q: Array, qd: Array, qdd: Array) -> Array:
    """The regressor (..., n, 10) of a body at the tool, with its inertial parameters in the tool's frame."""
    tool, end = arm.chain.floats.tool, 10 * arm.chain.tool_carrier
    columns = [Link.from_natural(tuple(row)).moved(tool.R, tool.p).natural for row in np.eye(10)]
    to_link = np.array([[float(x) for x in column] for column in columns]).T
    return np.asarray(np.asarray(arm.natural_regressor(q, qd, qdd))[..., end - 10 : end] @ to_link)


def _fitted(Y: Array, tau: Array, pieces: NDArray[np.int64], by_gain: Array) -> Payload:
    """The payload; `by_gain` (N, n) is the change of the torques for one standard deviation of each joint's gain."""
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
    for j in range(tau.shape[1]):  # the error of a gain is the same in the whole log: it does not average out
        pull = inverse @ ((Y[:, j] * solution.weights[:, j, None] ** 2).T @ by_gain[:, j])
        covariance += np.outer(pull, pull)
    deviations = np.sqrt(np.maximum(np.diag(covariance), 0))
    return _described(natural, deviations, relative_error(tau, Y @ natural))


def fitted_body(R: Array, z: Array, deviations: Array) -> Payload:
    """The body that minimises ‖R x - z‖, from whitened and compressed rows; `error` is ‖R x - z‖ / ‖z‖."""
    natural = _possible(R, z, linear.solve(R, z))
    return _described(natural, deviations, relative_error(z, R @ natural))


def _possible(R: Array, z: Array, guess: Array) -> Array:
    """The inertial parameters of a physically possible body."""
    mass = max(float(guess[0]), 1e-3 * float(np.abs(guess).max()), 1e-6)
    reference = np.diag([mass * 0.01] * 3 + [mass])[None]  # a body of about 10 cm, for scaling only
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
