"""The rows of τ = Y π from the motions of a log: both sides filtered alike and decimated."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from armdyn.identification.log.filters import decimated
from armdyn.identification.log.processing import Motion, Processing
from armdyn.identification.model.model import Model

Array = NDArray[np.float64]
SAME = 0.97  # correlation of positions and velocities with those a lag later, above which a motion repeats itself
TOUCHED = 0.02  # of a filtered row: what torques at the end of their range may have part in it
RUN = 0.3  # part of the log that must overlap with itself


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of the model: Y (N, n, p), tau (N, n), the time and the piece of each, which count in a fit (N, n)."""

    Y: Array
    tau: Array
    t: Array
    piece: NDArray[np.int64]
    kept: NDArray[np.bool_]
    repeat: int = 0  # rows after which the motion comes again; 0 where it does not

    def __len__(self) -> int:
        return len(self.t)

    def where(self, chosen: NDArray[np.bool_]) -> Rows:
        """Some of the samples."""
        return Rows(self.Y[chosen], self.tau[chosen], self.t[chosen], self.piece[chosen], self.kept[chosen])

    def segments(self, count: int) -> NDArray[np.int64]:
        """The number of the segment each sample belongs to: `count` stretches of equal length, in order.

        Where the motion repeats itself, of its period: the same stretch of another run tells nothing new, so that a
        segment predicted from its own repetition would make any model look good.
        """
        length = self.repeat or len(self)
        return np.minimum(np.arange(len(self)) % length * count // length, count - 1)


def filtered(x: Array, part: Motion, how: Processing) -> Array:
    """A signal of a piece through the model's filter, decimated, without the unsettled ends."""
    rate = 1 / part.period
    late = how.late(rate)
    if how.parallel is not None and how.parallel < 0.45 * rate:
        x = decimated(x.reshape(len(x), -1), rate, how.parallel, late).reshape(-1, *x.shape[1:])
    edge = int(np.ceil(how.settling * rate / late))
    return x[edge : len(x) - edge] if len(x) > 4 * edge else x


def rows(model: Model, parts: list[Motion], how: Processing) -> Rows:
    """The rows of the model over all pieces; columns and torques go through the same filter."""
    Y = [filtered(model.regressor(p.q, p.qd, p.qdd, p.log), p, how) for p in parts]
    tau = [filtered(p.tau, p, how) for p in parts]
    t = [_times(p, how) for p in parts]
    piece = [np.full(len(own), number) for number, own in enumerate(t)]
    kept = [kept_rows(p, how) for p in parts]
    states = [np.hstack([filtered(p.q, p, how), filtered(p.qd, p, how)]) for p in parts]
    repeat = repeats_after(np.concatenate(states))
    joined = [np.concatenate(every) for every in (Y, tau, t)]
    return Rows(joined[0], joined[1], joined[2], np.concatenate(piece), np.concatenate(kept), repeat)


def kept_rows(part: Motion, how: Processing) -> NDArray[np.bool_]:
    """Which rows count: not those below the dead zone, nor those with torques at the end of their range in them."""
    if part.counted is not None:
        return part.counted
    moving = np.abs(filtered(part.qd, part, how)) >= how.dead_zone
    if part.clipped is None:
        return np.asarray(moving)
    return np.asarray(moving & (np.abs(filtered(part.clipped.astype(float), part, how)) < TOUCHED))


def repeats_after(states: Array) -> int:
    """The rows after which a motion comes again, 0 where it does not, by correlating positions and velocities.

    A lag counts if at least RUN of the motion overlaps with itself there; runs one after the other count like periods.
    """
    centred = states - states.mean(axis=0)
    size = np.sqrt((centred**2).mean(axis=0))
    S = centred[:, size > 1e-3 * size.max()] / size[size > 1e-3 * size.max()]
    rows = len(S)
    spectrum = np.fft.rfft(S, 2 * rows, axis=0)
    product = np.fft.irfft((np.abs(spectrum) ** 2).sum(axis=1))[:rows]
    energy = np.cumsum((S**2).sum(axis=1))
    before, after = energy[::-1], energy[-1] - np.concatenate([[0.0], energy[:-1]])
    correlation = product / np.maximum(np.sqrt(before * after), 1e-300)
    lags = np.arange(rows)
    gone = np.flatnonzero(correlation < 0.5)
    possible = (lags >= (gone[0] if len(gone) else rows)) & (lags <= (1 - RUN) * rows) & (correlation > SAME)
    if not possible.any():
        return 0
    first = int(np.argmax(possible))
    near = slice(first, first + max(1, first // 10))
    return first + int(np.argmax(np.where(possible, correlation, 0.0)[near]))


def _times(part: Motion, how: Processing) -> Array:
    late = how.late(1 / part.period)
    own = part.t[::late] if how.parallel is not None and how.parallel < 0.45 / part.period else part.t
    edge = int(np.ceil(how.settling / (late * part.period)))
    return own[edge : len(own) - edge] if len(own) > 4 * edge else own
