"""Pre-flight check: whether the log is compatible with the arm.

The given arm, with unknown but non-negative friction, predicts the torques of the log. If they are predicted far better
under another interpretation of the log (torques of opposite sign, in another order or unit, or delayed; joints in
another order or direction; degrees; another gravity vector), that interpretation is proposed together with its remedy.
The log is changed only on request.

Interpretations of a log, and how well the given arm predicts the torques under each of them.

Interpretations of a log that are tried: signs, order, units, joint zeros, gravity and delays.

The delay of all torques together, and long ones of a joint, are found here; what only shows beside a fit of rigid body,
rotors and friction is found in `joint_faults.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from armdyn.arm import Arm
from armdyn.errors import required
from armdyn.identification.log import Log, Piece
from armdyn.identification.processing import Motion
from armdyn.values import cached_property

Array = NDArray[np.float64]
MAX_ERROR = 0.7  # relative error above which an interpretation does not explain the log
ROUNDS = 3  # largest number of interpretations combined
FIT_SAMPLES = 300  # samples of the fits that detect a delay
DELAY_GAIN = 0.8  # largest ratio of the residuals with and without a delay for it to be proposed
JOINT_DELAY_GAIN = 0.6  # the same for one joint, whose torque may appear delayed for other reasons


@dataclass(frozen=True, eq=False)
class Finding:
    """An interpretation under which the log is predicted far better, with the errors before and after."""

    reading: Reading
    before: float
    after: float
    fitted: bool = False  # whether the errors are those of a fit, independent of the arm's inertial parameters

    def __str__(self) -> str:
        if self.fitted:
            return (
                f"{self.reading.words}: corrected for this, a fit has a torque error of {100 * self.after:.1f} %,"
                f" as logged {100 * self.before:.1f} %. {self.reading.remedy}, or use fix=True (--fix)"
            )
        return (
            f"{self.reading.words}: corrected for this, the given arm predicts the torques with an error of"
            f" {100 * self.after:.0f} %, as logged {100 * self.before:.0f} %. {self.reading.remedy}, or use fix=True"
            " (--fix)"
        )


def preflight(arm: Arm, parts: list[Motion]) -> list[Finding]:
    """Successive interpretations under which the log fits the arm far better than as it is."""
    found: list[Finding] = []
    view = LogView.of(arm, parts)
    now = view.total
    for _ in range(ROUNDS):
        tried = [(tried_view.total, r) for r in readings(view) if _better(view, tried_view := view.read(r), r)]
        least = _fitted_error(view) if any(reading.late for _, reading in tried) else 0.0
        tried = [(e, r) for e, r in tried if not r.late or _fitted_error(view.read(r)) < least]  # rotors look early
        if not tried:
            break
        after, reading = min(tried, key=lambda trial: trial[0] * trial[1].penalty)
        found.append(Finding(reading, now, after))
        view, now = view.read(reading), after
    if not any(finding.reading.late for finding in found):
        found += _delayed(view)
    return found


def _better(view: LogView, after: LogView, reading: Reading) -> bool:
    """Whether an interpretation is better by enough to be proposed, over all joints or those it concerns."""
    own = list(reading.joints) or list(range(len(view.errors)))
    before, now = (float(np.sqrt(np.mean(v.errors[own] ** 2))) for v in (view, after))
    return now <= MAX_ERROR and now * reading.penalty <= reading.needed * before and after.total < view.total


def _delayed(view: LogView) -> list[Finding]:
    """A delay detected by a fit of the whole model, where the given arm is too inaccurate to detect it."""
    n = view.tau.shape[1]
    every = list(delays(view, n))
    if not every:
        return []
    errors = [_fitted_error(view.read(reading)) for reading in every]
    before, best = _fitted_error(view), int(np.argmin(errors))
    if errors[best] <= DELAY_GAIN * before:
        return [Finding(every[best], before, errors[best], fitted=True)]
    return _one_delayed(view, sorted({round(reading.late / view.period) for reading in every}))


def _one_delayed(view: LogView, steps: list[int]) -> list[Finding]:
    """The single joint whose torque is delayed: the regressor stays the same, only that torque is shifted."""
    most, (rows, n) = max(abs(step) for step in steps), view.tau.shape
    inner = np.arange(most, rows - most, max(1, (rows - 2 * most) // FIT_SAMPLES))
    A, size = _fit_columns(view, inner)
    Q = np.linalg.qr(A / np.maximum(np.linalg.norm(A, axis=0), 1e-300))[0]

    def left(joint: int, step: int) -> tuple[float, float]:
        """Residual norm of the torque of this joint, and of all joints."""
        tau = view.tau[inner].copy()
        tau[:, joint] = view.tau[inner + step, joint]
        z = (tau / size).ravel()
        rest = (z - Q @ (Q.T @ z)).reshape(-1, n)
        return float(np.linalg.norm(rest[:, joint])), float(np.linalg.norm(rest) / np.sqrt(n * len(inner) / rows))

    found = []
    for joint in range(n):
        (own, all_), best = left(joint, 0), min(steps, key=lambda step: left(joint, step)[0])
        after = left(joint, best)
        if after[0] < JOINT_DELAY_GAIN * own and after[1] < all_:
            found.append((after[0] / own, Finding(late_joint(view, n, joint, best), all_, after[1], fitted=True)))
    return [min(found, key=lambda pair: pair[0])[1]] if found else []


def _fit_columns(view: LogView, chosen: Array | slice) -> tuple[Array, Array]:
    """Regressor of rigid body, rotors, friction and offsets (rows n, p), scaled by the torque norms (n,)."""
    q, qd, qdd, tau = (x[chosen] for x in (view.q, view.qd, view.qdd, view.tau))
    size = np.linalg.norm(tau, axis=0)
    size = np.maximum(size, max(1e-6 * float(size.max()), 1e-300))  # so that a channel without signal is not amplified
    rows, n = tau.shape
    own = np.zeros((rows, n, 4 * n))
    for j in range(n):
        own[:, j, 4 * j : 4 * j + 4] = np.column_stack([qdd[:, j], qd[:, j], np.sign(qd[:, j]), np.ones(rows)])
    A = np.concatenate([np.asarray(view.arm.regressor(q, qd, qdd)), own], axis=2) / size[:, None]
    return A.reshape(rows * n, -1), size


def _fitted_error(view: LogView) -> float:
    """Relative residual of a least-squares fit of rigid body, rotors, friction and offsets, joints weighted equally."""
    chosen = slice(None, None, max(1, len(view.q) // FIT_SAMPLES))
    A, size = _fit_columns(view, chosen)
    z = (view.tau[chosen] / size).ravel()
    scale = np.maximum(np.linalg.norm(A, axis=0), 1e-300)
    normal, moment = (A / scale).T @ (A / scale), (A / scale).T @ z
    fit = np.linalg.solve(normal + 1e-9 * np.eye(len(normal)), moment)
    return float(np.linalg.norm(z - (A / scale) @ fit) / np.sqrt(len(size)))


SAMPLES = 800  # number of samples of a log that are evaluated
BETTER = 0.6  # ratio to the error as logged, below which another interpretation is proposed
MIN_EXPLAINED = 0.3  # fraction of a torque that the prediction must explain, apart from friction, to estimate a scale
STEP = 1e-6  # rad or m, of the finite differences of the centres of mass


@dataclass(frozen=True, eq=False)
class Reading:
    """An interpretation of a log: its description, its remedy, and the operations on its columns."""

    words: str
    remedy: str
    order: NDArray[np.int64]  # of the position columns
    factor: Array  # of the positions
    torque_order: NDArray[np.int64]
    torque_factor: Array
    late: float = 0.0  # delay of the torques with respect to the states, in seconds
    late_joint: int | None = None  # the only joint (from 0) whose torque is delayed; None: all joints
    zero: Array | None = None  # offsets to add to the positions
    gravity: tuple[float, ...] | None = None  # gravity vector that replaces the one of the arm
    needed: float = BETTER
    penalty: float = 1.0
    joints: tuple[int, ...] = ()  # joints over which the errors are compared; empty: all

    @classmethod
    def of(cls, n: int, words: str, remedy: str, **change: object) -> Reading:
        """An interpretation of a log of n joints that changes only the given items."""
        same = {"order": np.arange(n), "factor": np.ones(n), "torque_order": np.arange(n), "torque_factor": np.ones(n)}
        return cls(words, remedy, **{**same, **change})  # type: ignore[arg-type]

    def states(self, x: Array) -> Array:
        """Velocities or accelerations, (N, n)."""
        return np.asarray(x[:, self.order] * self.factor)

    def positions(self, q: Array) -> Array:
        """Positions, (N, n)."""
        return self.states(q) if self.zero is None else self.states(q) + self.zero

    def torques(self, tau: Array, shift: int) -> Array:
        """Torques of the states that are kept, for a delay of `shift` samples, (rows, n)."""
        own, other = aligned(len(tau), shift)
        out = tau[other] if self.late_joint is None else tau[own].copy()
        if self.late_joint is not None:
            out[:, self.late_joint] = tau[other, self.late_joint]
        return np.asarray(out[:, self.torque_order] * self.torque_factor)

    def apply(self, log: Log) -> Log:
        """The log under this interpretation; its notes say what was changed."""
        shift = round(self.late / log.period)
        pieces = tuple(self._piece(p, shift) for p in log.pieces if len(p) > 2 * abs(shift))
        return replace(log, pieces=pieces, doubts=(), notes=(*log.notes, f"changed: {self.words}"))

    def _piece(self, p: Piece, shift: int) -> Piece:
        qd, qdd = (None if x is None else self.states(x) for x in (p.qd, p.qdd))
        command = None if p.command is None else self.positions(p.command)
        own, _ = aligned(len(p), shift)
        states = Piece(p.t, self.positions(p.q), None, qd, qdd, p.log, command)[own]
        return replace(states, tau=self.torques(p.efforts, shift))


def aligned(rows: int, shift: int) -> tuple[slice, slice]:
    """The rows of the states, and those of the torques delayed by `shift` samples."""
    kept = rows - abs(shift)
    return (slice(0, kept), slice(shift, None)) if shift >= 0 else (slice(-shift, None), slice(0, kept))


class LogView:
    """A subset of the samples of a log: states, measured torques, and torques predicted by the arm."""

    def __init__(
        self, arm: Arm, q: Array, qd: Array, qdd: Array, tau: Array, period: float, gravity: Array | None = None
    ) -> None:
        self.arm, self.q, self.qd, self.qdd, self.tau, self.period = arm, q, qd, qdd, tau, period
        self.gravity = np.array(arm.gravity, dtype=float) if gravity is None else gravity
        self.own = np.asarray(arm.inverse_dynamics(q, qd, qdd))
        if gravity is not None:
            self.own = self.own + self.weight @ (gravity - np.array(arm.gravity, dtype=float))

    @classmethod
    def of(cls, arm: Arm, parts: list[Motion]) -> LogView:
        """The longest piece of a log, decimated."""
        part = max(parts, key=lambda p: len(p.t))
        step = max(1, len(part.t) // SAMPLES)
        q, qd, qdd, tau = (np.ascontiguousarray(x[::step]) for x in (part.q, part.qd, part.qdd, part.tau))
        return cls(arm, q, qd, qdd, tau, part.period * step)

    def read(self, how: Reading) -> LogView:
        """The same samples under another interpretation."""
        shift = round(how.late / self.period)
        own, _ = aligned(len(self.q), shift)
        q, qd, qdd = how.positions(self.q)[own], how.states(self.qd)[own], how.states(self.qdd)[own]
        gravity = self.gravity if how.gravity is None else np.array(how.gravity)
        same = np.array_equal(gravity, np.array(self.arm.gravity, dtype=float))
        return LogView(self.arm, q, qd, qdd, how.torques(self.tau, shift), self.period, None if same else gravity)

    @cached_property
    def weight(self) -> Array:
        """Torques per unit of gravity, (N, n, 3), by finite differences, which need no compiled kernel."""
        masses = np.array([float(link.mass) for link in self.arm.links])
        centres = np.array([[float(x) for x in link.com] for link in self.arm.links])

        def moments(q: Array) -> Array:
            T = np.asarray(self.arm.dh_poses(q))
            return np.asarray(masses @ (np.einsum("...ijk,ik->...ij", T[..., :3, :3], centres) + T[..., :3, 3]))

        steps = STEP * np.eye(self.q.shape[1])
        slopes = [(moments(self.q + d) - moments(self.q - d)) / (2 * STEP) for d in steps]
        return -np.stack(slopes, axis=1)

    def error(self, measured: int, joint: int, sign: float = 1.0) -> float:
        """Relative error of the prediction of a measured torque by a joint, with fitted offset and friction."""
        tau = sign * self.tau[:, measured]
        size = float(np.linalg.norm(tau))
        return _left(tau - self.own[:, joint], self.qd[:, joint]) / size if size else 0.0

    def scale(self, joint: int) -> float:
        """Ratio of measured to predicted torque of a joint, apart from offset and friction; 0 if unidentifiable."""
        qd, tau, own = self.qd[:, joint], self.tau[:, joint], self.own[:, joint]
        columns = np.column_stack([np.ones_like(qd), qd, np.sign(qd)])
        moved = own - columns @ np.linalg.lstsq(columns, own, rcond=1e-9)[0]  # orthogonal to offset and friction
        size = float(np.linalg.norm(tau - tau.mean()))
        if not size or np.linalg.norm(moved) <= 1e-9 * np.linalg.norm(own):
            return 0.0
        factor = float(moved @ tau) / float(moved @ moved)
        told = abs(factor) * float(np.linalg.norm(moved)) / size
        return factor if told > MIN_EXPLAINED else 0.0

    @cached_property
    def errors(self) -> Array:
        """The relative error of each joint."""
        return np.array([self.error(j, j) for j in range(self.tau.shape[1])])

    @property
    def total(self) -> float:
        """The rms of the relative errors of all joints."""
        return float(np.sqrt(np.mean(self.errors**2)))


def _left(tau: Array, qd: Array) -> float:
    """Residual norm of a torque after fitting an offset and non-negative viscous and Coulomb friction."""
    columns = np.column_stack([np.ones_like(qd), qd, np.sign(qd)])
    normal, moment = columns.T @ columns, columns.T @ tau
    least = float(tau @ tau - moment[0] ** 2 / normal[0, 0])
    for chosen in ([0, 1, 2], [0, 1], [0, 2]):
        values = np.linalg.lstsq(normal[np.ix_(chosen, chosen)], moment[chosen], rcond=1e-10)[0]
        if (values[1:] >= 0).all():
            least = min(least, float(tau @ tau - moment[chosen] @ values))
    return float(np.sqrt(max(least, 0.0)))


def changed(log: Log, readings: Sequence[Reading]) -> Log:
    """A log with several interpretations applied in sequence."""
    for reading in readings:
        log = reading.apply(log)
    return log


SLIGHTLY = 0.85  # ratio of errors required for units and delays, which friction and offsets partly compensate
MIN_DELAY = 0.01  # shortest delay considered, in seconds
REORDERED = 1.3  # penalty on orders and zeros with respect to signs, because they have more degrees of freedom
SPREAD = 2.5  # ratio of the largest to the smallest scale above which the joints do not share one
UNIT_SCALE = 200.0  # scale (or its inverse) of a single joint that only a wrong unit explains
MIN_TORQUE = 0.02  # of the largest torque; a smaller one is not sufficient to estimate the scale of a joint
DOUBTFUL = 0.25  # error of the given arm above which another gravity vector is tried
SNAP = 0.25  # rad; directions of gravity within this angle of a base axis, or of the given gravity, are taken as equal
GEARS = (20.0, 500.0)  # ratios of the gears of arms
UNITS = {1e3: "N mm", 100.0: "N cm", 9.80665: "kgf m", 1e-3: "kN m"}


def readings(view: LogView) -> Iterator[Reading]:
    """All interpretations of a log to be tried."""
    n = view.tau.shape[1]
    yield from _columns(view, n)
    yield from _units(view, n)
    yield from _scales(view, n)
    yield from delays(view, n)
    yield from _gravities(view, n)
    yield from _zeros(n)
    reach = float(np.ptp(view.q, axis=0).max())
    if reach > np.pi:
        degrees = np.full(n, np.pi / 180)
        yield Reading.of(n, "positions are in degrees", "Read the log with degrees=True", factor=degrees)
    if reach < 2:
        yield Reading.of(n, "positions are in turns", "Multiply them by 2 π", factor=np.full(n, 2 * np.pi))
    for a, b in [*combinations(range(n), 2), (-1, -1)]:
        order, words = np.arange(n)[::-1], "the joints are in reverse order"
        if a >= 0:
            order, words = np.arange(n), f"joints {a + 1} and {b + 1} are exchanged"
            order[[a, b]] = b, a
        change = {"order": order, "torque_order": order}
        yield Reading.of(n, words, "Reorder the columns of q and tau", penalty=REORDERED, **change)
        if a >= 0:
            words = f"the positions of joints {a + 1} and {b + 1} are exchanged"
            yield Reading.of(n, words, "Reorder the columns of q", penalty=REORDERED, order=order, joints=(a, b))
    for j in range(n):
        signs = np.where(np.arange(n) == j, -1.0, 1.0)
        words = f"joint {j + 1} has the opposite direction"
        yield Reading.of(n, words, f"Negate q{j + 1} and tau{j + 1}", factor=signs, torque_factor=signs)
        yield Reading.of(n, f"the position of joint {j + 1} has the opposite sign", f"Negate q{j + 1}", factor=signs)


def _columns(view: LogView, n: int) -> Iterator[Reading]:
    """The measured torques with the signs and the order that fit best."""
    required("scipy")
    from scipy.optimize import linear_sum_assignment

    errors = np.array([[[view.error(i, j, s) for s in (1.0, -1.0)] for j in range(n)] for i in range(n)])
    yield Reading.of(n, "all torques have the opposite sign", "Negate the torques", torque_factor=-np.ones(n))
    flipped = [j for j in range(n) if errors[j, j, 1] < BETTER * errors[j, j, 0]]
    if flipped:
        signs = np.where(np.isin(np.arange(n), flipped), -1.0, 1.0)
        words = f"the torque of {', '.join(f'joint {j + 1}' for j in flipped)} has the opposite sign"
        yield Reading.of(n, words, "Negate it", torque_factor=signs)
    cost = errors.min(axis=2).T ** 2 * np.where(np.eye(n) > 0, 1.0, REORDERED**2)
    joints, columns = linear_sum_assignment(cost)
    if (joints != columns).any():
        signs = np.where(errors[columns, joints].argmin(axis=1) == 1, -1.0, 1.0)
        said = ", ".join(f"{'-' if s < 0 else ''}tau{k + 1}" for k, s in zip(columns, signs, strict=True))
        moved = tuple(int(j) for j in np.flatnonzero((columns != joints) | (signs < 0)))
        change = {"torque_order": columns, "torque_factor": signs, "penalty": REORDERED, "joints": moved}
        yield Reading.of(n, f"the torques are in another order ({said})", "Reorder the torques", **change)


def _units(view: LogView, n: int) -> Iterator[Reading]:
    """A common factor between measured and predicted torques."""
    size = float((view.own * view.own).sum())
    factor = float((view.own * view.tau).sum()) / size if size else 1.0
    if factor <= 0 or 0.3 < factor < 3:
        return
    named = next(((value, f" (in {unit}?)") for value, unit in UNITS.items() if 0.6 < factor / value < 1.6), None)
    exact, unit = named or (factor, "")
    remedy = f"{_undone(exact)} (gains={1 / exact:.4g})"
    if named is None and GEARS[0] < 1 / factor < GEARS[1]:
        unit = f" (motor torques, before gears of about 1 : {1 / factor:.3g}?)"
        remedy = f"{remedy}, or better each joint's by its own gear ratio"
    words = f"the torques are {_times(factor)}{unit}"
    yield Reading.of(n, words, remedy, torque_factor=np.full(n, 1 / exact), needed=SLIGHTLY)


def _times(factor: float) -> str:
    return f"{factor:.3g} times too large" if factor > 1 else f"{1 / factor:.3g} times too small"


def _undone(factor: float) -> str:
    return f"Divide them by {factor:.4g}" if factor > 1 else f"Multiply them by {1 / factor:.4g}"


def _scales(view: LogView, n: int) -> Iterator[Reading]:
    """An individual scale per joint: one column in another unit, or motor torques."""
    factors = np.array([view.scale(j) for j in range(n)])
    off = np.flatnonzero((factors > 0) & ~((factors > 0.2) & (factors < 5)))
    if not len(off):
        return
    if len(off) < max(2, n // 2):
        size = np.linalg.norm(view.own, axis=0)
        for j in off[(np.abs(np.log(factors[off])) > np.log(UNIT_SCALE)) & (size[off] > MIN_TORQUE * size.max())]:
            named = next(
                ((value, f" (in {unit}?)") for value, unit in UNITS.items() if 0.5 < factors[j] / value < 2), None
            )
            exact, unit = named or (float(factors[j]), "")
            change = np.where(np.arange(n) == j, 1 / exact, 1.0)
            words = f"the torque of joint {j + 1} is {_times(float(factors[j]))}{unit}"
            remedy = _undone(exact).replace("them", "it")
            yield Reading.of(n, words, remedy, torque_factor=change, needed=SLIGHTLY, joints=(int(j),))
        return
    usual = float(np.median(factors[factors > 0]))
    if factors.max() < SPREAD * factors[factors > 0].min():
        return  # a common factor
    factors = np.where(factors > 0, factors, usual)
    said = ", ".join(f"{x:.2g}" for x in factors)
    words = f"the torques have different scales per joint, {said} times the prediction (motor torques, or per cent?)"
    remedy = "Give the gear ratios or rated torques as gains=[...], or find them with identify_gains"
    yield Reading.of(n, words, remedy, torque_factor=1 / factors, needed=SLIGHTLY, penalty=REORDERED)


def _gravities(view: LogView, n: int) -> Iterator[Reading]:
    """Torques without the gravity load, and arms mounted in another orientation."""
    size = float(np.linalg.norm(view.gravity))
    if size == 0 or view.total < DOUBTFUL:
        return
    words = "the torques do not include the gravity load (does the controller compensate it?)"
    yield Reading.of(n, words, "Identify with arm.with_gravity((0, 0, 0))", gravity=(0.0, 0.0, 0.0))
    rest = view.tau - (view.own - view.weight @ view.gravity)
    scale = np.maximum(np.linalg.norm(view.tau, axis=0), 1e-300)  # joints weighted equally
    columns = view.weight / scale[:, None]
    found = np.linalg.lstsq(columns.reshape(-1, 3), (rest / scale).ravel(), rcond=1e-6)[0]
    if np.linalg.norm(found) < size / 3:
        return
    down = found / np.linalg.norm(found)
    axis = np.where(np.arange(3) == np.argmax(np.abs(down)), np.sign(down), 0.0)
    down = axis if down @ axis > np.cos(SNAP) else down
    if down @ view.gravity < np.cos(SNAP) * size:
        gravity = tuple(float(x) for x in np.round(size * down, 3) + 0.0)
        words = (
            f"gravity acts along ({', '.join(f'{x:.3g}' for x in gravity)}): the arm is mounted in another orientation"
        )
        yield Reading.of(n, words, f"Identify with arm.with_gravity({gravity})", gravity=gravity)


def _zeros(n: int) -> Iterator[Reading]:
    """Joint zeros that are off by a right angle or half a turn."""
    for j in range(n):
        for angle in (90, -90, 180):
            zero = np.where(np.arange(n) == j, np.deg2rad(angle), 0.0)
            words = f"the zero of joint {j + 1} is off by {-angle if angle < 180 else angle} degrees"
            yield Reading.of(n, words, f"Add {angle} degrees to q{j + 1} (zero=...)", zero=zero, penalty=REORDERED)


def delays(view: LogView, n: int) -> Iterator[Reading]:
    """Torques that are delayed or early with respect to the states."""
    most = max(1, round(0.2 / view.period))
    for step in sorted({s * round(k) for k in np.geomspace(1, most, 12) for s in (-1, 1)}):
        seconds = step * view.period
        if abs(seconds) >= MIN_DELAY and len(view.q) > 8 * abs(step):
            late = f"{1e3 * abs(seconds):.0f} ms {'late' if step > 0 else 'early'}"
            yield Reading.of(
                n, f"the torques are about {late}", "Shift them in time first", late=seconds, needed=SLIGHTLY
            )


def late_joint(view: LogView, n: int, joint: int, step: int) -> Reading:
    """The torque of one joint, late by `step` samples (early if negative)."""
    seconds = step * view.period
    late = f"{1e3 * abs(seconds):.0f} ms {'late' if step > 0 else 'early'}"
    words = f"the torque of joint {joint + 1} is about {late} with respect to the positions"
    return Reading.of(n, words, "Shift it in time first", late=seconds, late_joint=joint)
