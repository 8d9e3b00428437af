"""Interpretations of a log, and how well the given arm predicts the torques under each of them."""

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


class View:
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
    def of(cls, arm: Arm, parts: list[Motion]) -> View:
        """The longest piece of a log, decimated."""
        part = max(parts, key=lambda p: len(p.t))
        step = max(1, len(part.t) // SAMPLES)
        q, qd, qdd, tau = (np.ascontiguousarray(x[::step]) for x in (part.q, part.qd, part.qdd, part.tau))
        return cls(arm, q, qd, qdd, tau, part.period * step)

    def read(self, how: Reading) -> View:
        """The same samples under another interpretation."""
        shift = round(how.late / self.period)
        own, _ = aligned(len(self.q), shift)
        q, qd, qdd = how.positions(self.q)[own], how.states(self.qd)[own], how.states(self.qdd)[own]
        gravity = self.gravity if how.gravity is None else np.array(how.gravity)
        same = np.array_equal(gravity, np.array(self.arm.gravity, dtype=float))
        return View(self.arm, q, qd, qdd, how.torques(self.tau, shift), self.period, None if same else gravity)

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
