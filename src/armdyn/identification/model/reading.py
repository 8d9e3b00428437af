"""Another way to read a log, and what an arm as it is given makes of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from armdyn.algebra.cached import cached_property
from armdyn.arm import Arm
from armdyn.identification.log.log import Log, Piece
from armdyn.identification.log.processing import Motion

Array = NDArray[np.float64]
SAMPLES = 800  # of a log that are looked at
BETTER = 0.6  # error over that as logged, below which another reading is proposed
TOLD = 0.3  # of a torque, that must go with the prediction beside friction before it tells a scale
STEP = 1e-6  # rad or m, of the differences that tell how centres of mass move


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
    late_joint: int | None = None  # the joint (from 0) whose torque alone is late; None: all
    zero: Array | None = None  # to be added to the positions
    gravity: tuple[float, ...] | None = None  # of the arm, in place of its own
    needed: float = BETTER
    penalty: float = 1.0
    joints: tuple[int, ...] = ()  # whose errors decide, where the others' stay as they are; none: all

    @classmethod
    def of(cls, n: int, words: str, remedy: str, **change: object) -> Reading:
        """A reading of n joints that changes only what is said."""
        same = {"order": np.arange(n), "factor": np.ones(n), "torque_order": np.arange(n), "torque_factor": np.ones(n)}
        return cls(words, remedy, **{**same, **change})  # type: ignore[arg-type]

    def states(self, x: Array) -> Array:
        """Velocities or accelerations, (N, n)."""
        return np.asarray(x[:, self.order] * self.factor)

    def positions(self, q: Array) -> Array:
        """Positions, (N, n)."""
        return self.states(q) if self.zero is None else self.states(q) + self.zero

    def torques(self, tau: Array, shift: int) -> Array:
        """Torques of the states that are kept when they come `shift` samples later, (rows, n)."""
        own, other = aligned(len(tau), shift)
        out = tau[other] if self.late_joint is None else tau[own].copy()
        if self.late_joint is not None:
            out[:, self.late_joint] = tau[other, self.late_joint]
        return np.asarray(out[:, self.torque_order] * self.torque_factor)

    def apply(self, log: Log) -> Log:
        """The log read so; what was done stands in its notes."""
        shift = round(self.late / log.period)
        pieces = tuple(self._piece(p, shift) for p in log.pieces if len(p) > 2 * abs(shift))
        return replace(log, pieces=pieces, doubts=(), notes=(*log.notes, f"changed: {self.words}"))

    def _piece(self, p: Piece, shift: int) -> Piece:
        qd, qdd = (None if x is None else self.states(x) for x in (p.qd, p.qdd))
        own, _ = aligned(len(p), shift)
        return replace(Piece(p.t, self.positions(p.q), p.tau, qd, qdd, p.log)[own], tau=self.torques(p.tau, shift))


def aligned(rows: int, shift: int) -> tuple[slice, slice]:
    """The rows of states and those of torques that come `shift` samples later."""
    kept = rows - abs(shift)
    return (slice(0, kept), slice(shift, None)) if shift >= 0 else (slice(-shift, None), slice(0, kept))


class View:
    """A few samples of a log: states, measured torques and those the arm predicts."""

    def __init__(
        self, arm: Arm, q: Array, qd: Array, qdd: Array, tau: Array, period: float, gravity: Array | None = None
    ) -> None:
        self.arm, self.q, self.qd, self.qdd, self.tau, self.period = arm, q, qd, qdd, tau, period
        self.gravity = np.array(arm.gravity, dtype=float) if gravity is None else gravity
        self.own = np.asarray(arm.inverse_dynamics(q, qd, qdd))
        if gravity is not None:
            self.own = self.own + self.weight @ (gravity - np.array(arm.gravity, dtype=float))

    @classmethod
    def of(cls, arm: Arm, parts: list[Motion]) -> View:
        """The longest piece of a log, decimated."""
        part = max(parts, key=lambda p: len(p.t))
        step = max(1, len(part.t) // SAMPLES)
        q, qd, qdd, tau = (np.ascontiguousarray(x[::step]) for x in (part.q, part.qd, part.qdd, part.tau))
        return cls(arm, q, qd, qdd, tau, part.period * step)

    def read(self, how: Reading) -> View:
        """The same samples, read in another way."""
        shift = round(how.late / self.period)
        own, _ = aligned(len(self.q), shift)
        q, qd, qdd = how.positions(self.q)[own], how.states(self.qd)[own], how.states(self.qdd)[own]
        gravity = self.gravity if how.gravity is None else np.array(how.gravity)
        same = np.array_equal(gravity, np.array(self.arm.gravity, dtype=float))
        return View(self.arm, q, qd, qdd, how.torques(self.tau, shift), self.period, None if same else gravity)

    @cached_property
    def weight(self) -> Array:
        """Torques over gravity, (N, n, 3): by differences of the moments of all masses, so that no kernel is built."""
        masses = np.array([float(link.mass) for link in self.arm.links])
        centres = np.array([[float(x) for x in link.com] for link in self.arm.links])

        def moments(q: Array) -> Array:
            T = np.asarray(self.arm.link_poses(q))
            return np.asarray(masses @ (np.einsum("...ijk,ik->...ij", T[..., :3, :3], centres) + T[..., :3, 3]))

        steps = STEP * np.eye(self.q.shape[1])
        slopes = [(moments(self.q + d) - moments(self.q - d)) / (2 * STEP) for d in steps]
        return -np.stack(slopes, axis=1)

    def error(self, measured: int, joint: int, sign: float = 1.0) -> float:
        """Relative error of a measured torque by a joint's prediction, with offset and friction of that joint."""
        tau = sign * self.tau[:, measured]
        size = float(np.linalg.norm(tau))
        return _left(tau - self.own[:, joint], self.qd[:, joint]) / size if size else 0.0

    def scale(self, joint: int) -> float:
        """Measured over predicted torque of a joint beside offset and friction; 0 where that is not to be told."""
        qd, tau, own = self.qd[:, joint], self.tau[:, joint], self.own[:, joint]
        columns = np.column_stack([np.ones_like(qd), qd, np.sign(qd)])
        moved = own - columns @ np.linalg.lstsq(columns, own, rcond=1e-9)[0]  # what friction does not look like
        size = float(np.linalg.norm(tau - tau.mean()))
        if not size or np.linalg.norm(moved) <= 1e-9 * np.linalg.norm(own):
            return 0.0
        factor = float(moved @ tau) / float(moved @ moved)
        told = abs(factor) * float(np.linalg.norm(moved)) / size
        return factor if told > TOLD else 0.0

    @cached_property
    def errors(self) -> Array:
        """The error of each joint."""
        return np.array([self.error(j, j) for j in range(self.tau.shape[1])])

    @property
    def total(self) -> float:
        """The error over all joints, each counted alike."""
        return float(np.sqrt(np.mean(self.errors**2)))


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


def changed(log: Log, readings: Sequence[Reading]) -> Log:
    """A log read in these ways, one after the other."""
    for reading in readings:
        log = reading.apply(log)
    return log
