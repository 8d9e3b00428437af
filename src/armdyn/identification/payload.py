"""Payload identification: mass, centre of mass and inertia of a body at the tool, for a known arm.

Drive gains from logs of currents, with noise on the currents and one variance per joint.

The scale comes from a payload of known mass in a second log (Gautier & Briot 2014) or, without one, from the arm's own
inertias, which are then taken as true.

Gains: the ratio of torque to logged effort per joint, as identified by `identify_gains`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armdyn.arm import Arm, as_arm
from armdyn.chain import Link
from armdyn.errors import InputError, required
from armdyn.identification import linear
from armdyn.identification.consistent import Problem
from armdyn.identification.fit import autocorrelation_factors, relative_error
from armdyn.identification.identify import checked
from armdyn.identification.log import Log, PathName, as_log
from armdyn.identification.model import Model, filtered, rows
from armdyn.identification.preflight import changed
from armdyn.identification.processing import Processing, choose_processing, joint_side, motions
from armdyn.identification.result import Estimate
from armdyn.identification.threads import one_thread
from armdyn.results import Result, ResultTable

Array = NDArray[np.float64]
REGULARIZATION = 0.01  # weak: it only keeps the body physically consistent


@dataclass(frozen=True, eq=False)
class Payload(Result):
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

    def table(self) -> ResultTable:
        """The ten parameters about the tool's origin, with their standard deviations."""
        names = ("m", "mcx", "mcy", "mcz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")
        units = ("kg", *["kg m"] * 3, *["kg m²"] * 6)
        known = zip(names, map(float, self.natural), map(float, self.deviations), units, strict=True)
        return ResultTable.of(repr(self)[1:-1], ["parameter", "value", "standard deviation", "unit"], list(known))

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


CLEAR = 5.0  # standard deviations by which a slope must differ from zero to determine a gain
HELD = 0.7  # logarithm of a factor of two: prior standard deviation of a gain from the arm's own inertias
LOOSE = 1.6  # of a factor of five: the same of a gain that the arm's own inertias do not tell
WEAK = 0.2  # relative standard deviation above which a gain is unreliable


@one_thread()
def identify_gains(
    arm: Arm | PathName,
    log: Log | PathName,
    *,
    loaded: Log | PathName | None = None,
    payload: float | tuple[float, Any, Any] | None = None,
    transmission: Any = None,
    zero: Any = None,
    cutoff: float | None = None,
    parallel: float | bool | None = None,
) -> Gains:
    """Identify the gain of every drive, torque / logged effort.

    Parameters
    ----------
    arm
        The arm, or its catalogue name or path. Its inertias are used if there is no payload, and as a prior: a gain
        that the payload does not determine stays within about a factor of two of the one from the inertias.
    log
        A log of currents of the arm without a payload.
    loaded, payload
        A second log with a payload, and its mass, or (mass, com, inertia) in the tool's frame; com and inertia are
        estimated if they are None.
    transmission, zero, cutoff, parallel
        As for `identify`.
    """
    if (loaded is None) != (payload is None):
        raise InputError("a loaded log and its payload (mass, or mass, com, inertia) go together: give both or neither")
    arm = as_arm(arm, "identify_gains")
    model = Model.of(arm, "coulomb", transmission=transmission)
    first = joint_side(as_log(log, arm), transmission, zero)
    how = choose_processing(first, len(model.names), cutoff, parallel)
    model = model.tuned(np.concatenate([p.qd for p in motions(first, how)]), None)
    Y, effort = _stacked(model, first, how)
    rigid = model.natural[: model.rigid, : model.links] @ model.prior(arm)[: model.links]
    own = Y[..., : model.rigid] @ rigid
    if loaded is None or payload is None:
        said = ("the scale rests on the arm's own inertias: weigh a payload for gains you can trust",)
        return _gains(Y[..., model.rigid :], own, effort, _start(own, Y[..., model.rigid :], effort), said)
    mass, com, inertia = payload if isinstance(payload, tuple) else (payload, None, None)
    second = joint_side(as_log(loaded, arm), transmission, zero)
    carrying, effort_b = _stacked(model, second, how)
    ten = _load_columns(arm, second, how)
    known, unknown = _split(ten, float(mass), com, inertia)
    columns = np.concatenate([
        np.concatenate([Y, np.zeros((*Y.shape[:2], unknown.shape[-1]))], axis=2),
        np.concatenate([carrying, unknown], axis=2),
    ])  # fmt: skip
    given = np.concatenate([np.zeros(Y.shape[:2]), known])
    return _gains(columns, given, np.concatenate([effort, effort_b]), _start(own, Y[..., model.rigid :], effort), ())


def _stacked(model: Model, side: Log, how: Processing) -> tuple[Array, Array]:
    """Regressor (N, n, p) and efforts (N, n)."""
    found = rows(model, motions(side, how), how)
    return found.Y, found.tau


def _load_columns(arm: Arm, side: Log, how: Processing) -> Array:
    """The regressor (N, n, 10) of a body at the tool, with its inertial parameters in the tool's frame."""
    parts = motions(side, how)
    return np.concatenate([filtered(payload_regressor(arm, p.q, p.qd, p.qdd), p, how) for p in parts])


def _split(ten: Array, mass: float, com: Any, inertia: Any) -> tuple[Array, Array]:
    """The known part of the payload's torque, and the columns of its unknown parameters."""
    if not mass > 0:
        raise InputError(f"the payload's mass must be positive, got {mass}")
    if com is None:
        return mass * ten[..., 0], ten[..., 1:]
    c = np.asarray(com, dtype=float)
    steiner = mass * (c @ c * np.eye(3) - np.outer(c, c))
    about = steiner if inertia is None else np.asarray(inertia, dtype=float) + steiner
    natural = np.array([mass, *(mass * c), *about[[0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2]]])
    return ten @ natural, ten[..., 4:] if inertia is None else ten[..., :0]


def _start(own: Array, extras: Array, effort: Array) -> tuple[Array, Array]:
    """Gains by the arm's own inertias beside friction, whatever its size: signs, sizes, and the latter's deviations.

    A joint whose own inertial torque is lost in its friction begins with the median size of the others, which is not
    known to better than a factor of five: its own would be nearly 0, where the prior would hold it. The sign is that of
    what is larger, the rigid body's part or friction's: both oppose the drive where it is positive.
    """
    out = np.empty(effort.shape[1])
    weak = np.zeros(len(out), dtype=bool)
    for j, i in enumerate(effort.T):
        A = np.column_stack([own[:, j], extras[:, j][:, np.linalg.norm(extras[:, j], axis=0) > 0]])
        R = linear.triangle(np.column_stack([A, i]))
        values = linear.solve(R[:, :-1], R[:, -1]) if np.linalg.norm(A) > 0 else np.zeros(A.shape[1])
        left = float(np.linalg.norm(i - A @ values)) / np.sqrt(max(len(i) - len(values), 1))
        spread = left * float(np.sqrt(max(np.linalg.pinv(A.T @ A)[0, 0], 0.0)))
        rubbing = np.linalg.norm(i - own[:, j] * values[0]) > np.linalg.norm(own[:, j] * values[0])
        power = _dissipated(A[:, 1:] @ values[1:], extras[:, j])
        sign = np.sign(power) if rubbing and power else np.sign(values[0]) or 1.0
        usual = np.linalg.norm(own[:, j]) / max(float(np.linalg.norm(i)), 1e-300)
        clear = abs(values[0]) > CLEAR * spread and values[0] * sign > 0
        out[j] = sign * (1 / abs(values[0]) if clear else max(float(usual), 1e-6))
        weak[j] = not clear
    if weak.all():
        return out, np.full(len(out), HELD)
    median = float(np.median(np.abs(out[~weak])))
    lost = weak & (np.abs(out) < median * np.exp(-LOOSE))
    return np.where(lost, np.sign(out) * median, out), np.where(lost, LOOSE, HELD)


def _dissipated(friction: Array, extras: Array) -> float:
    """Friction along the velocity, which is a column of its own: positive where the gain is."""
    along = friction @ extras
    return float(along[int(np.argmax(np.abs(along) / np.maximum(np.linalg.norm(extras, axis=0), 1e-300)))])


def _gains(columns: Array, known: Array, effort: Array, start: tuple[Array, Array], said: tuple[str, ...]) -> Gains:
    """Gains g with the least Σ_j ‖i_j - (known_j + columns_j x) / g_j‖² / σ_j² over g and x.

    The noise is on the efforts i. For given gains x is linear and is projected out (Golub & Pereyra 1973), from one
    triangle per joint; the variances are those of the residuals, settled in three rounds.
    """
    required("scipy")
    from scipy.optimize import least_squares

    n, p = effort.shape[1], columns.shape[-1]
    if not np.linalg.norm(known) > 0:
        raise InputError("the known load acts on no joint that moves: the scale of the drives cannot be told")
    scale = np.maximum(np.linalg.norm(columns.reshape(-1, p), axis=0), 1e-300)
    stacked = np.concatenate([columns / scale, known[..., None], effort[..., None]], axis=2)
    triangles = [linear.triangle(stacked[:, j]) for j in range(n)]
    sizes, held = start
    sigma, logs, signs = np.ones(n), np.log(np.abs(sizes)), np.sign(sizes)

    def system(gains: Array) -> tuple[Array, Array]:
        A = np.concatenate([R[:, :p] / g / s for R, g, s in zip(triangles, gains, sigma, strict=True)])
        z = np.concatenate([(R[:, p + 1] - R[:, p] / g) / s for R, g, s in zip(triangles, gains, sigma, strict=True)])
        return A, z

    first = logs

    def residual(logarithms: Array) -> Array:
        A, z = system(signs * np.exp(logarithms))
        off = (logarithms - first) / held
        return np.concatenate([z - A @ np.linalg.lstsq(A, z, rcond=1e-10)[0], off])

    for _ in range(3):
        logs = least_squares(residual, logs, x_scale="jac").x
        left = residual(logs)[:-n].reshape(n, -1) * sigma[:, None]
        sigma = np.maximum(np.sqrt((left**2).sum(axis=1) / len(effort)), 1e-6 * np.abs(effort).max(axis=0))
    gains = signs * np.exp(logs)
    A, z = system(gains)
    x = np.linalg.lstsq(A, z, rcond=1e-10)[0]
    predicted = (known + (columns / scale) @ x) / gains
    factors = autocorrelation_factors(effort - predicted, np.zeros(len(effort), dtype=np.int64))
    J = np.hstack([
        np.concatenate([np.outer(R[:, : p + 1] @ np.r_[x, 1.0], np.eye(n)[j]) / g / s
                        for j, (R, g, s) in enumerate(zip(triangles, gains, sigma, strict=True))]),
        A,
    ])  # fmt: skip
    normal = J.T @ J / factors.max() ** 2
    normal[:n, :n] += np.diag(1 / held**2)
    relative = np.sqrt(np.maximum(np.diag(np.linalg.pinv(normal, rcond=1e-13))[:n], 0))
    weak = [str(j + 1) for j in range(n) if relative[j] > WEAK]
    if weak:
        said = (*said, f"the gains of joints {', '.join(weak)} are known to no better than {100 * WEAK:.0f} %")
    return Gains(gains, np.abs(gains) * relative, said)


@dataclass(frozen=True, eq=False)
class Gains(Result):
    """The ratio of torque to logged effort per joint, with standard deviations."""

    values: Array
    deviations: Array
    warnings: tuple[str, ...] = ()

    def table(self) -> ResultTable:
        """The gain of every joint."""
        known = zip(range(1, len(self.values) + 1), map(float, self.values), map(float, self.deviations), strict=True)
        columns = ["joint", "torque per unit of effort", "standard deviation"]
        return ResultTable.of("Gains of the motors", columns, list(known))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self.values, dtype=dtype)
