"""Bounds of joint forces over ranges of positions, velocities and accelerations that split only the positions.

For a fixed configuration the largest force is known almost exactly (`expansions`). It is linear in the accelerations,
so each is at the end of its range given by the sign of H. It is quadratic in the velocities: convex squares are largest
at the ends of their ranges, and a concave one, -b x² on a range of half-width h, lies at most b h² above its chord. So
the force over all motions is at most the largest over the corners of the velocity box, plus Σ h_j² max(0, -B_jj).

A piece is a box of angles with one velocity corner. The force at this corner is expanded to third order about the
centre of the box; the remainder is bounded by the Fourier series (`modes`), once for all boxes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from itertools import product
from typing import Any

import numpy as np

from armdyn.kernels.enclosure import Enclosure
from armdyn.uncertainty.branch_and_bound import BATCH, Pieces
from armdyn.uncertainty.expansions import ORDER, Expansion
from armdyn.uncertainty.modes import SLACK, monomials

MOST_HALVINGS = 10  # down to 0.003 rad, so that the rounding of centres stays far below SLACK times the radius
MOST_CORNERS = 5000  # of the velocity boxes


@dataclass(frozen=True)
class Corners(Pieces):
    """Boxes of angles, each with one velocity corner: centres and numbers of halvings per side (pieces, n).

    They are split along an angle. `value` is the value at the centre.
    """

    centre: Any
    level: Any
    corner: Any
    value: Any


class Remainders:
    """A remainder polynomial in the radii that is valid for every motion seen so far."""

    def __init__(self, expansion: Expansion) -> None:
        self.expansion = expansion
        self.polynomial: Any = np.zeros(len(monomials(ORDER, expansion.joints)))
        self._known: set[tuple[float, ...]] = set()

    def grown(self, qd: Any, qdd: Any) -> bool:
        """Extend the polynomial to motions (motions, n); returns whether any of them was new."""
        new = [row for row in np.concatenate([qd, qdd], axis=1) if tuple(row) not in self._known]
        if not new:
            return False
        self._known.update(map(tuple, new))
        weights = self.expansion.weights(*np.split(np.array(new), 2, axis=1))
        rows = self.expansion.series.remainders(weights, ORDER)
        self.polynomial = np.maximum(self.polynomial, rows.max(axis=0))
        return True


class MotionRegion:
    """Bounds of sign × entry over boxes of angles, for all motions."""

    def __init__(self, expansion: Expansion, sign: float, remainders: Remainders, parts: int = 1) -> None:
        """The velocity ranges are split into `parts`; all of their corners are searched."""
        self.expansion, self.sign, self.remainders, self.parts = expansion, sign, remainders, parts
        self.n = n = expansion.n
        q = expansion.ranges["q"]
        self.middle, self.radius = (q[:, 0] + q[:, 1]) / 2, np.zeros(n)
        half = np.minimum((q[:, 1] - q[:, 0]) / 2, math.pi)  # at most one full turn
        self.radius[expansion.angles] = np.nextafter(half, np.inf)[expansion.angles]
        self.qd, self.qdd = (expansion.ranges.get(name, np.zeros((n, 2))) for name in ("qd", "qdd"))
        self.corners = self._corners()
        # Accelerations are computed as centre ± half-width of their range, which rounds the ends.
        ends = np.abs(self.qdd).max(axis=1) * 2.0**-50 @ np.abs(expansion.series.coefficients[:, :n]).sum(axis=0)
        self.lost = (expansion.lost(self.radius[expansion.angles]) + float(ends)) * (1 + SLACK)
        squares = (np.ptp(self.qd, axis=1) / (2 * parts)) ** 2 * (1 + SLACK)
        self._accelerating = self.qdd.mean(axis=1), np.ptp(self.qdd, axis=1) / 2, squares
        self._halvings = 0.5 ** np.arange(MOST_HALVINGS + 2)
        self.limit = expansion.limit
        self._seen: set[int] = set()

    def _corners(self) -> Any:
        """The corners (corners, n) of the velocity box; only one of two opposite corners, which are equivalent."""
        nodes = self.expansion.coefficients.outputs[1].nodes
        there = [
            pair for pair, node in zip(self.expansion.pairs, nodes, strict=True) if node.op != "const" or node.value
        ]
        matters = {joint for pair in there for joint in pair}
        cuts = [np.unique(np.linspace(low, high, self.parts + 1)) for low, high in self.qd]
        ends = [cuts[j].tolist() if j in matters else [self.qd[j, 0]] for j in range(self.n)]
        corners = np.array(list(product(*ends)))
        if not np.array_equal(self.qd[:, 0], -self.qd[:, 1]):
            return corners
        first = [next((x for j, x in enumerate(row) if j in matters and x), 0) >= 0 for row in corners]
        return corners[first]

    def start(self) -> Corners:
        """The whole range of angles, once for every corner."""
        count = len(self.corners)
        level = np.zeros((count, self.n), dtype=np.int8)
        return self._bounded(np.tile(self.middle, (count, 1)), level, np.arange(count, dtype=np.int16))

    def cut(self, pieces: Corners, enough: float) -> Corners:
        """Both halves of every box."""
        rows = np.arange(len(pieces))
        level = pieces.level.copy()
        level[rows, pieces.along] += 1
        shift = np.zeros_like(pieces.centre)
        shift[rows, pieces.along] = self.radius[pieces.along] * 0.5 ** level[rows, pieces.along]
        halves = []
        for centre in (pieces.centre - shift, pieces.centre + shift):
            for at in range(0, len(pieces), BATCH):
                some = slice(at, at + BATCH)
                part = self._bounded(centre[some], level[some], pieces.corner[some], enough)
                halves.append(
                    replace(part, above=np.minimum(part.above, pieces.above[some]))
                )  # no worse than the whole
        return Corners(*(np.concatenate([getattr(h, f.name) for h in halves]) for f in fields(Corners)))

    def best(self, pieces: Corners) -> tuple[float, Any]:
        """The largest value at a centre."""
        k = int(np.argmax(pieces.value))
        one = pieces[k : k + 1]
        _, value, _, key = self._evaluated(one.centre, one.level, one.corner)
        motion = {"q": one.centre, "qd": self.corners[one.corner], "qdd": self._accelerations(key[:, 0])}
        return float(value[0, 0]), np.concatenate([motion[name][0] for name in self.expansion.names])

    def refined(self) -> MotionRegion | None:
        """The same with the velocity ranges split in two, where chords are closer to concave squares."""
        parts = 2 * self.parts
        if not np.ptp(self.qd).any() or (parts + 1) ** int((np.ptp(self.qd, axis=1) > 0).sum()) > MOST_CORNERS:
            return None
        return MotionRegion(self.expansion, self.sign, self.remainders, parts)

    def _accelerations(self, keys: Any) -> Any:
        """(motions, n) accelerations decoded from the keys that the bound's program returns."""
        signs = keys.astype(int)[:, None] // 3 ** np.arange(self.n) % 3 - 1
        return self.qdd.mean(axis=1) + np.ptp(self.qdd, axis=1) / 2 * signs

    def _evaluated(self, centre: Any, level: Any, corner: Any) -> Any:
        """Evaluate the bound's program on these pieces."""
        radius = self.radius * self._halvings[level] * (1 + SLACK)
        given = self.remainders.polynomial, self.expansion.row_remainders, *self._accelerating
        return self.expansion.bound(centre, radius, self.corners[corner], np.array([self.sign]), *given)

    def _bounded(self, centre: Any, level: Any, corner: Any, enough: float = math.inf) -> Corners:
        """The pieces with their bounds, the values at their centres, and the angles to split."""
        above, value, each, key = self._evaluated(centre, level, corner)
        motions = np.unique(corner.astype(np.int64) * 3**self.n + key[:, 0].astype(np.int64))
        new = np.array([one for one in motions.tolist() if one not in self._seen], dtype=np.int64)
        if len(new):
            self._seen.update(new.tolist())
            keys = new % 3**self.n
            if self.remainders.grown(self.corners[new // 3**self.n], self._accelerations(keys)):
                above, value, each, key = self._evaluated(centre, level, corner)
        above = above[:, 0] + np.abs(above[:, 0] - value[:, 0]) * SLACK + self.lost
        if self.expansion.still:
            radius = self.radius * self._halvings[level] * (1 + SLACK)
            small = (radius <= math.pi / 2 + 1e-9).all(axis=1)  # as the interval enclosure requires
            low, high = self.expansion.enclosure(centre - radius, centre + radius)
            above = np.where(small, np.minimum(above, (high if self.sign > 0 else -low)[:, 0]), above)
        if self.limit is not None:
            above, each = self._limited(self.limit, centre, level, above, each, enough)
        each[level[:, self.expansion.angles] >= MOST_HALVINGS] = -1
        along = self.expansion.angles[np.argmax(each, axis=1)].astype(np.int8)
        along[each.max(axis=1) < 0] = -1
        return Corners(above, along, centre, level, corner, value[:, 0].astype(np.float32))

    def _limited(
        self, limit: Enclosure, centre: Any, level: Any, above: Any, each: Any, enough: float
    ) -> tuple[Any, Any]:
        """Bounds no larger than the force under the worst direction of gravity, and the angles to split.

        Where this limit is the active bound and may still fall below `enough`, the angles it depends on are split.
        """
        used = limit.used
        radius = self.radius * self._halvings[level] * (1 + SLACK) * used
        ends = limit(centre - radius, centre + radius)
        least, most = (np.sqrt(np.maximum(end[:, 0], 0)) * (1 + SLACK) for end in ends)
        most = np.where((radius <= math.pi / 2 + 1e-9).all(axis=1), most, np.inf)  # as the enclosure requires
        decides = (most < above) & (least <= enough) & used.any()
        each = np.where(decides[:, None], radius[:, self.expansion.angles], each)
        return np.minimum(above, most), each
