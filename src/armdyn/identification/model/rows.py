"""The rows of τ = Y π from the motions of a log: both sides filtered alike and decimated."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from armdyn.identification.log.filters import decimated
from armdyn.identification.log.processing import Motion, Processing
from armdyn.identification.model.model import Model

Array = NDArray[np.float64]


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
    Y = [filtered(model.regressor(p.q, p.qd, p.qdd), p, how) for p in parts]
    tau = [filtered(p.tau, p, how) for p in parts]
    t = [_times(p, how) for p in parts]
    piece = [np.full(len(own), number) for number, own in enumerate(t)]
    kept = [np.abs(filtered(p.qd, p, how)) >= how.dead_zone for p in parts]
    return Rows(*(np.concatenate(every) for every in (Y, tau, t, piece, kept)))


def _times(part: Motion, how: Processing) -> Array:
    late = how.late(1 / part.period)
    own = part.t[::late] if how.parallel is not None and how.parallel < 0.45 / part.period else part.t
    edge = int(np.ceil(how.settling / (late * part.period)))
    return own[edge : len(own) - edge] if len(own) > 4 * edge else own
