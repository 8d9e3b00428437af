"""The rows of τ = Y π from the motions of a log: both sides pass the same filter and are decimated."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from armdyn.identification.log.filters import decimated
from armdyn.identification.log.processing import Motion, Processing
from armdyn.identification.model.model import Model

Array = NDArray[np.float64]
PERIODIC = 0.97  # autocorrelation of positions and velocities above which a motion is periodic
MAX_CLIPPED = 0.02  # largest contribution of saturated torques to a filtered row that is kept
MIN_OVERLAP = 0.3  # smallest fraction of the log that must overlap with itself at a lag


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of the model: Y (N, n, p), tau (N, n), times, numbers of the pieces, and which are fitted (N, n)."""

    Y: Array
    tau: Array
    t: Array
    piece: NDArray[np.int64]
    kept: NDArray[np.bool_]
    repeat: int = 0  # period of the motion in rows; 0 if it is not periodic

    def __len__(self) -> int:
        return len(self.t)

    def where(self, chosen: NDArray[np.bool_]) -> Rows:
        """The chosen samples."""
        return Rows(self.Y[chosen], self.tau[chosen], self.t[chosen], self.piece[chosen], self.kept[chosen])

    def segments(self, count: int) -> NDArray[np.int64]:
        """The cross-validation segment of each sample: `count` consecutive segments of equal length.

        A periodic motion is divided within its period, and the repetitions of a segment have the same number: a
        segment predicted from its own repetition would make any model look good.
        """
        length = self.repeat or len(self)
        return np.minimum(np.arange(len(self)) % length * count // length, count - 1)


def filtered(x: Array, part: Motion, how: Processing) -> Array:
    """A signal of a piece after the parallel filter and decimation, without the filter transients at its ends."""
    rate = 1 / part.period
    late = how.late(rate)
    if how.parallel is not None and how.parallel < 0.45 * rate:
        x = decimated(x.reshape(len(x), -1), rate, how.parallel, late).reshape(-1, *x.shape[1:])
    edge = int(np.ceil(how.settling * rate / late))
    return x[edge : len(x) - edge] if len(x) > 4 * edge else x


def rows(model: Model, parts: list[Motion], how: Processing) -> Rows:
    """The rows of the model over all pieces; regressor and torques pass the same filter."""
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
    """Which rows are fitted: those outside the dead zone and without saturated torques."""
    if part.counted is not None:
        return part.counted
    moving = np.abs(filtered(part.qd, part, how)) >= how.dead_zone
    if part.clipped is None:
        return np.asarray(moving)
    return np.asarray(moving & (np.abs(filtered(part.clipped.astype(float), part, how)) < MAX_CLIPPED))


def repeats_after(states: Array) -> int:
    """Period of a motion in rows, from the autocorrelation of positions and velocities; 0 if it is not periodic.

    A lag is considered if at least MIN_OVERLAP of the motion overlaps with itself; consecutive runs count as periods.
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
    possible = (
        (lags >= (gone[0] if len(gone) else rows)) & (lags <= (1 - MIN_OVERLAP) * rows) & (correlation > PERIODIC)
    )
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
