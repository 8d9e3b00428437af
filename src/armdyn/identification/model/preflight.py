"""Pre-flight check: whether the log fits the arm at all.

The arm as it is given predicts the torques of the log, its friction unknown but never negative. Where another reading
of the log (torques with the other sign, in another order or unit, late; joints in another order or direction; degrees)
is predicted far better, that reading is proposed in words, with its remedy. Nothing is changed without being asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from armdyn.arm import Arm
from armdyn.identification.log.log import Log, Piece
from armdyn.identification.log.processing import Motion

Array = NDArray[np.float64]
SAMPLES = 800  # of a log that are looked at
BETTER = 0.6  # error over that as logged, below which another reading is proposed
SLIGHTLY = 0.85  # the same for units and delays, which friction and offsets partly explain away
GOOD = 0.7  # error above which no reading explains the log
ROUNDS = 3  # readings that may be needed together
FITTED, CLEARLY = 300, 0.8  # samples of a fit that tells a delay; what it must leave at most, over that as logged
LATE = 0.01  # seconds between signals worth mentioning
REORDERED = 1.3  # an order must be this much better than a sign: it has more freedom to fit
UNITS = {1e3: "N mm", 100.0: "N cm", 9.80665: "kgf m", 1e-3: "kN m"}


@dataclass(frozen=True, eq=False)
class Reading:
    """Another way to read a log, in words and as what is done to its columns."""

    words: str
    remedy: str
    order: NDArray[np.int64]  # columns of the positions to take
    factor: Array  # of the positions
    torque_order: NDArray[np.int64]
    torque_factor: Array
    late: float = 0.0  # seconds that torques come after the states they belong to
    needed: float = BETTER
    penalty: float = 1.0

    @classmethod
    def of(cls, n: int, words: str, remedy: str, **change: object) -> Reading:
        """A reading of n joints that changes only what is said."""
        same = {"order": np.arange(n), "factor": np.ones(n), "torque_order": np.arange(n), "torque_factor": np.ones(n)}
        return cls(words, remedy, **{**same, **change})  # type: ignore[arg-type]

    def states(self, x: Array) -> Array:
        """Positions, velocities or accelerations, (N, n)."""
        return np.asarray(x[:, self.order] * self.factor)

    def torques(self, tau: Array) -> Array:
        """Torques, (N, n)."""
        return np.asarray(tau[:, self.torque_order] * self.torque_factor)

    def apply(self, log: Log) -> Log:
        """The log read so; what was done stands in its notes."""
        shift = round(self.late / log.period)
        pieces = tuple(self._piece(p, shift) for p in log.pieces if len(p) > 2 * abs(shift))
        return replace(log, pieces=pieces, doubts=(), notes=(*log.notes, f"changed: {self.words}"))

    def _piece(self, p: Piece, shift: int) -> Piece:
        qd, qdd = (None if x is None else self.states(x) for x in (p.qd, p.qdd))
        own, other = aligned(len(p), shift)
        return replace(Piece(p.t, self.states(p.q), p.tau, qd, qdd, p.log)[own], tau=self.torques(p.tau)[other])


@dataclass(frozen=True, eq=False)
class Finding:
    """A reading that the arm predicts far better, with the errors as logged and as read so."""

    reading: Reading
    before: float
    after: float
    fitted: bool = False  # errors of a fit to the log, whatever the arm's inertias

    def __str__(self) -> str:
        if self.fitted:
            return (
                f"{self.reading.words}: a fit then leaves {100 * self.after:.1f} % of the torques, as logged "
                f"{100 * self.before:.1f} %. {self.reading.remedy}, or let fix=True (--fix) do it"
            )
        return (
            f"{self.reading.words}: the arm as given then predicts the torques to {100 * self.after:.0f} %, as logged"
            f" to {100 * self.before:.0f} %. {self.reading.remedy}, or let fix=True (--fix) do it"
        )


def aligned(rows: int, shift: int) -> tuple[slice, slice]:
    """The rows of states and those of torques that come `shift` samples later."""
    kept = rows - abs(shift)
    return (slice(0, kept), slice(shift, None)) if shift >= 0 else (slice(-shift, None), slice(0, kept))


class View:
    """A few samples of a log: states, measured torques and those the arm predicts."""

    def __init__(self, arm: Arm, q: Array, qd: Array, qdd: Array, tau: Array, period: float) -> None:
        self.arm, self.q, self.qd, self.qdd, self.tau, self.period = arm, q, qd, qdd, tau, period
        self.own = np.asarray(arm.inverse_dynamics(q, qd, qdd))

    @classmethod
    def of(cls, arm: Arm, parts: list[Motion]) -> View:
        """The longest piece of a log, decimated."""
        part = max(parts, key=lambda p: len(p.t))
        step = max(1, len(part.t) // SAMPLES)
        q, qd, qdd, tau = (np.ascontiguousarray(x[::step]) for x in (part.q, part.qd, part.qdd, part.tau))
        return cls(arm, q, qd, qdd, tau, part.period * step)

    def read(self, how: Reading) -> View:
        """The same samples, read in another way."""
        own, other = aligned(len(self.q), round(how.late / self.period))
        q, qd, qdd = (how.states(x)[own] for x in (self.q, self.qd, self.qdd))
        return View(self.arm, q, qd, qdd, how.torques(self.tau)[other], self.period)

    def error(self, measured: int, joint: int, sign: float = 1.0) -> float:
        """Relative error of a measured torque by a joint's prediction, with offset and friction of that joint."""
        tau = sign * self.tau[:, measured]
        size = float(np.linalg.norm(tau))
        return _left(tau - self.own[:, joint], self.qd[:, joint]) / size if size else 0.0

    @property
    def total(self) -> float:
        """The error over all joints, each counted alike."""
        return float(np.sqrt(np.mean([self.error(j, j) ** 2 for j in range(self.tau.shape[1])])))


def _left(tau: Array, qd: Array) -> float:
    """What an offset, viscous and Coulomb friction, neither of them negative, leave of a torque."""
    columns = np.column_stack([np.ones_like(qd), qd, np.sign(qd)])
    normal, moment = columns.T @ columns, columns.T @ tau
    least = float(tau @ tau - moment[0] ** 2 / normal[0, 0])
    for chosen in ([0, 1, 2], [0, 1], [0, 2]):
        values = np.linalg.lstsq(normal[np.ix_(chosen, chosen)], moment[chosen], rcond=1e-10)[0]
        if (values[1:] >= 0).all():
            least = min(least, float(tau @ tau - moment[chosen] @ values))
    return float(np.sqrt(max(least, 0.0)))


def preflight(arm: Arm, parts: list[Motion]) -> list[Finding]:
    """The readings, one after the other, that fit the arm far better than the log as it is."""
    found: list[Finding] = []
    view = View.of(arm, parts)
    now = view.total
    for _ in range(ROUNDS):
        tried = [(view.read(reading).total, reading) for reading in readings(view)]
        tried = [(after, r) for after, r in tried if after <= GOOD and after * r.penalty <= r.needed * now]
        if not tried:
            break
        after, reading = min(tried, key=lambda trial: trial[0] * trial[1].penalty)
        found.append(Finding(reading, now, after))
        view, now = view.read(reading), after
    if not any(finding.reading.late for finding in found):
        found += _delayed(view)
    return found


def _delayed(view: View) -> list[Finding]:
    """A delay that a fit of the whole model tells, where the arm as given is too far off to tell it."""
    delays = list(_delays(view, view.tau.shape[1]))
    if not delays:
        return []
    errors = [_fitted_error(view.read(reading)) for reading in delays]
    before, best = _fitted_error(view), int(np.argmin(errors))
    if errors[best] <= CLEARLY * before:
        return [Finding(delays[best], before, errors[best], fitted=True)]
    return []


def _fitted_error(view: View) -> float:
    """What least squares of rigid body, rotors, friction and offsets leave of the torques, each joint counted alike."""
    step = max(1, len(view.q) // FITTED)
    q, qd, qdd, tau = (x[::step] for x in (view.q, view.qd, view.qdd, view.tau))
    size = np.linalg.norm(tau, axis=0)
    size = np.maximum(size, max(1e-6 * float(size.max()), 1e-300))  # a dead channel stays as small as it is
    rows, n = tau.shape
    own = np.zeros((rows, n, 4 * n))
    for j in range(n):
        own[:, j, 4 * j : 4 * j + 4] = np.column_stack([qdd[:, j], qd[:, j], np.sign(qd[:, j]), np.ones(rows)])
    A = np.concatenate([np.asarray(view.arm.regressor(q, qd, qdd)), own], axis=2) / size[:, None]
    A, z = A.reshape(rows * n, -1), (tau / size).ravel()
    scale = np.maximum(np.linalg.norm(A, axis=0), 1e-300)
    normal, moment = (A / scale).T @ (A / scale), (A / scale).T @ z
    fit = np.linalg.solve(normal + 1e-9 * np.eye(len(normal)), moment)
    return float(np.linalg.norm(z - (A / scale) @ fit) / np.sqrt(n))


def changed(log: Log, readings: Sequence[Reading]) -> Log:
    """A log read in these ways, one after the other."""
    for reading in readings:
        log = reading.apply(log)
    return log


def readings(view: View) -> Iterator[Reading]:
    """Other ways to read a log."""
    n = view.tau.shape[1]
    yield from _columns(view, n)
    yield from _units(view, n)
    yield from _delays(view, n)
    if float(np.ptp(view.q, axis=0).max()) > np.pi:
        degrees = np.full(n, np.pi / 180)
        yield Reading.of(n, "positions are in degrees", "Read the log with degrees=True", factor=degrees)
    for a, b in [*combinations(range(n), 2), (-1, -1)]:
        order, words = np.arange(n)[::-1], "the joints are in reverse order"
        if a >= 0:
            order, words = np.arange(n), f"joints {a + 1} and {b + 1} are exchanged"
            order[[a, b]] = b, a
        change = {"order": order, "torque_order": order}
        yield Reading.of(n, words, "Reorder the columns of q and tau", penalty=REORDERED, **change)
    for j in range(n):
        signs = np.where(np.arange(n) == j, -1.0, 1.0)
        words = f"joint {j + 1} turns the other way"
        yield Reading.of(n, words, f"Negate q{j + 1} and tau{j + 1}", factor=signs, torque_factor=signs)
        yield Reading.of(n, f"the position of joint {j + 1} has the other sign", f"Negate q{j + 1}", factor=signs)


def _columns(view: View, n: int) -> Iterator[Reading]:
    """The measured torques with the signs and in the order that fit best."""
    from scipy.optimize import linear_sum_assignment

    errors = np.array([[[view.error(i, j, s) for s in (1.0, -1.0)] for j in range(n)] for i in range(n)])
    yield Reading.of(n, "every torque has the other sign", "Negate the torques", torque_factor=-np.ones(n))
    flipped = [j for j in range(n) if errors[j, j, 1] < BETTER * errors[j, j, 0]]
    if flipped:
        signs = np.where(np.isin(np.arange(n), flipped), -1.0, 1.0)
        words = f"the torque of {', '.join(f'joint {j + 1}' for j in flipped)} has the other sign"
        yield Reading.of(n, words, "Negate it", torque_factor=signs)
    cost = errors.min(axis=2).T ** 2 * np.where(np.eye(n) > 0, 1.0, REORDERED**2)
    joints, columns = linear_sum_assignment(cost)
    if (joints != columns).any():
        signs = np.where(errors[columns, joints].argmin(axis=1) == 1, -1.0, 1.0)
        said = ", ".join(f"{'-' if s < 0 else ''}tau{k + 1}" for k, s in zip(columns, signs, strict=True))
        change = {"torque_order": columns, "torque_factor": signs, "penalty": REORDERED}
        yield Reading.of(n, f"the torques are in another order ({said})", "Reorder the torques", **change)


def _units(view: View, n: int) -> Iterator[Reading]:
    """One factor between measured and predicted torques."""
    size = float((view.own * view.own).sum())
    factor = float((view.own * view.tau).sum()) / size if size else 1.0
    if factor <= 0 or 0.3 < factor < 3:
        return
    named = next(((value, f" (in {unit}?)") for value, unit in UNITS.items() if 0.6 < factor / value < 1.6), None)
    exact, unit = named or (factor, "")
    words = f"the torques are {factor:.3g} times too large{unit}"
    remedy = f"Divide them by {exact:.4g} (gains={1 / exact:.4g})"
    yield Reading.of(n, words, remedy, torque_factor=np.full(n, 1 / exact), needed=SLIGHTLY)


def _delays(view: View, n: int) -> Iterator[Reading]:
    """Torques that come late or early."""
    most = max(1, round(0.2 / view.period))
    for step in sorted({s * round(k) for k in np.geomspace(1, most, 12) for s in (-1, 1)}):
        seconds = step * view.period
        if abs(seconds) >= LATE and len(view.q) > 8 * abs(step):
            late = f"{1e3 * abs(seconds):.0f} ms {'late' if step > 0 else 'early'}"
            yield Reading.of(n, f"the torques are about {late}", "Shift them before", late=seconds, needed=SLIGHTLY)
