"""From a log to the rows of τ = Y π: filtered, differentiated, then both sides filtered alike and thinned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armdyn.errors import InputError
from armdyn.identification.log.filters import bandwidth, decimated, derivative, lowpass
from armdyn.identification.log.log import Log, Piece
from armdyn.identification.model.model import Model, matrix_of

Array = NDArray[np.float64]
PARALLEL = 5.0  # cut-off of the filter both sides of the model go through, in bandwidths of the motion
POSITIONS = 2.0  # cut-off of the positions' filter over that: ten bandwidths in all, Gautier's rule
ENOUGH = 2  # samples per parameter, each with n rows: friction turns round faster than the arm does
THIN = 2.5  # samples kept for one period of that cut-off: above 2, the filter's roll-off has room


@dataclass(frozen=True)
class Processing:
    """Cut-offs (Hz) and what to take for velocity, settled once on the training log and kept for every other."""

    positions: float | None  # None: the log's own velocities and accelerations are taken as they are
    parallel: float | None  # None: no filtering of the model, no thinning
    logged_velocity: bool
    dead_zone: float = 0.0  # rad/s or m/s: slower than this a joint's row does not count in the fit

    def early(self, rate: float) -> int:
        """Thinning before the model is evaluated: sixteen samples per period of the positions' cut-off are plenty."""
        return 1 if self.positions is None else max(1, int(rate / (16 * self.positions)))

    def thin(self, rate: float) -> int:
        """Thinning after the parallel filter."""
        return 1 if self.parallel is None else max(1, int(rate / (THIN * self.parallel)))

    @property
    def settling(self) -> float:
        """Seconds at either end of a piece where the filters have not settled."""
        slowest = [cut for cut in (self.positions, self.parallel) if cut is not None]
        return 0.5 / min(slowest) if slowest else 0.0


@dataclass(frozen=True, eq=False)
class Motion:
    """States and efforts of a piece on the joints' side, at the rate the model is evaluated at."""

    period: float
    t: Array
    q: Array
    qd: Array
    qdd: Array
    tau: Array


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of the model: Y (N, n, p), tau (N, n), the time and the piece of each, which count in a fit (N, n)."""

    Y: Array
    tau: Array
    t: Array
    piece: NDArray[np.int64]
    kept: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.t)

    def where(self, chosen: NDArray[np.bool_]) -> Rows:
        """Some of the samples."""
        return Rows(self.Y[chosen], self.tau[chosen], self.t[chosen], self.piece[chosen], self.kept[chosen])

    def segments(self, count: int) -> NDArray[np.int64]:
        """The number of the segment each sample belongs to: `count` stretches of equal length, in order."""
        return np.minimum(np.arange(len(self)) * count // len(self), count - 1)


def joint_side(log: Log, transmission: Any, zero: Any, gains: Any = None) -> Log:
    """The log as the joints see it: q = K⁻¹ q_motor + zero, τ = Kᵀ (gains · efforts)."""
    if transmission is None and zero is None and gains is None:
        return log
    gain = np.broadcast_to(np.asarray(1.0 if gains is None else gains, dtype=float), (log.n,))
    K = np.eye(log.n) if transmission is None else matrix_of(transmission, log.n)
    back = np.linalg.inv(K).T
    shift = np.zeros(log.n) if zero is None else np.asarray(zero, dtype=float)

    def turned(p: Piece) -> Piece:
        qd = None if p.qd is None else p.qd @ back
        qdd = None if p.qdd is None else p.qdd @ back
        return Piece(p.t, p.q @ back + shift, (p.tau * gain) @ K, qd, qdd)

    pieces = tuple(turned(p) for p in log.pieces)
    drive = log.drive if gains is None else "torque"
    return Log(pieces, log.period, log.joints, drive, log.notes, (), log.source)


def processing(
    log: Log, parameters: int, cutoff: float | None, parallel: float | bool | None, dead_zone: float = 0.0
) -> Processing:
    """Settled by the motion itself: five bandwidths for the model, twice that for positions, unless given.

    A slow motion in a short log would leave too few rows: the cut-offs rise until enough are kept.
    """
    if not any(np.ptp(p.q, axis=0).any() for p in log.pieces):
        raise InputError("nothing moves in this log: no joint's position ever changes")
    logged = all(p.qd is not None and p.qdd is not None for p in log.pieces)
    rates = [np.gradient(p.q, log.period, axis=0) for p in log.pieces]
    enough = ENOUGH * parameters / (THIN * log.duration)
    motion = max(PARALLEL * max(bandwidth(v, log.rate) for v in rates), enough)
    top = 0.45 * log.rate  # below half the sampling rate
    positions = None if logged and cutoff is None else min(cutoff or POSITIONS * motion, top)
    if parallel is False:
        model = None
    elif parallel is None or parallel is True:
        model = min(motion, top)
    else:
        model = float(parallel)
    if cutoff is not None and not 0 < cutoff < log.rate / 2:
        raise InputError(f"cutoff must lie between 0 and {log.rate / 2:.4g} Hz for this log, got {cutoff}")
    if not dead_zone >= 0:
        raise InputError(f"the dead zone is a velocity, at least 0; got {dead_zone}")
    return Processing(positions, model, _velocities_agree(log), dead_zone)


def _velocities_agree(log: Log) -> bool:
    """Whether the logged velocities are those of the positions: then one differentiation less is needed."""
    if any(p.qd is None for p in log.pieces):
        return False
    left = size = 0.0
    for p in log.pieces:
        assert p.qd is not None
        dq = (p.q[2:] - p.q[:-2]) / (2 * log.period)
        middle = (p.qd[2:] + 2 * p.qd[1:-1] + p.qd[:-2]) / 4
        left += float(((dq - middle) ** 2).sum())
        size += float((dq**2).sum())
    return left < 0.01 * size


def motions(log: Log, how: Processing) -> list[Motion]:
    """Filtered and differentiated pieces."""
    if how.positions is not None and how.positions >= 0.5 * log.rate:
        raise InputError(f"the log has {log.rate:.4g} Hz, too slow for a cut-off of {how.positions:.4g} Hz")
    return [_motion(piece, log.period, how) for piece in log.pieces]


def _motion(piece: Piece, period: float, how: Processing) -> Motion:
    if how.positions is None:
        assert piece.qd is not None
        assert piece.qdd is not None
        return Motion(period, piece.t, piece.q, piece.qd, piece.qdd, piece.tau)
    rate, cut = 1 / period, how.positions
    q = lowpass(piece.q, rate, cut)
    qd = lowpass(piece.qd, rate, cut) if how.logged_velocity and piece.qd is not None else derivative(q, period)
    qdd = derivative(qd, period)
    early = how.early(rate)
    tau = lowpass(piece.tau, rate, cut) if early > 1 else piece.tau
    every = slice(None, None, early)
    return Motion(early * period, piece.t[every], q[every], qd[every], qdd[every], tau[every])


def thinned(x: Array, part: Motion, how: Processing) -> Array:
    """A signal of a piece through the parallel filter, thinned, without the unsettled ends."""
    rate = 1 / part.period
    thin = how.thin(rate)
    if how.parallel is not None:
        x = decimated(x.reshape(len(x), -1), rate, how.parallel, thin).reshape(-1, *x.shape[1:])
    edge = int(np.ceil(how.settling * rate / thin))
    return x[edge : len(x) - edge] if len(x) > 4 * edge else x


def rows(model: Model, parts: list[Motion], how: Processing) -> Rows:
    """The rows of the model over all pieces; columns and torques go through the same filter."""
    Y = [thinned(model.regressor(p.q, p.qd, p.qdd), p, how) for p in parts]
    tau = [thinned(p.tau, p, how) for p in parts]
    t = [_times(p, how) for p in parts]
    piece = [np.full(len(own), number) for number, own in enumerate(t)]
    kept = [np.abs(thinned(p.qd, p, how)) >= how.dead_zone for p in parts]
    return Rows(*(np.concatenate(every) for every in (Y, tau, t, piece, kept)))


def _times(part: Motion, how: Processing) -> Array:
    own = part.t[:: how.thin(1 / part.period)]
    edge = int(np.ceil(how.settling / (how.thin(1 / part.period) * part.period)))
    return own[edge : len(own) - edge] if len(own) > 4 * edge else own
