"""Bounds on boxes by interval arithmetic, for any quantity without division, in all of its variables.

The bound on a box is the smaller of the mean-value form, centred at the point that makes it sharpest (Baumann 1988),
and the enclosure of the value itself. A variable in which the gradient has constant sign is fixed at its better end.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise, product
from typing import Any

import numpy as np

from armdyn.kernels.enclosure import Enclosure
from armdyn.uncertainty.branch_and_bound import Pieces

LINEAR = ("qdd",)  # every quantity is affine in these inputs
RATES = ("qd", "qdd")  # inputs whose extremes are often at the ends of their ranges


class Problem:
    """A kernel with its ranges: values at points, and enclosures of one entry and its gradient over boxes."""

    def __init__(self, kernel: Any, boxes: dict[str, Any]) -> None:
        self.kernel = kernel
        self.ranges = boxes
        self.names = list(boxes)
        self.low, self.high = (np.concatenate([box[:, k] for box in boxes.values()]) for k in (0, 1))
        self.sizes = [len(box) for box in boxes.values()]
        self.variables = sum(self.sizes)
        self.shape = kernel.assembly.outputs[0][1]
        self.linear, self.rates = (
            np.concatenate([np.full(len(box), name in group) for name, box in boxes.items()])
            for group in (LINEAR, RATES)
        )
        self.slopes = kernel.variant(derivatives=tuple(self.names))
        self._enclosures: dict[int, tuple[Enclosure, Enclosure]] = {}

    def split(self, points: Any) -> dict[str, Any]:
        """The variables grouped by input."""
        ends = np.cumsum(self.sizes)[:-1]
        return dict(zip(self.names, np.split(points, ends, axis=-1), strict=True))

    def values(self, points: Any, entry: int) -> Any:
        """The entry at points (k, variables)."""
        result = self.kernel(*self.split(points).values())
        return result.reshape(len(points), -1)[:, entry]

    def gradient(self, point: Any, entry: int) -> Any:
        """The entry's gradient at one point."""
        found = self.slopes(*self.split(point).values())
        parts = found if isinstance(found, tuple) else (found,)
        return np.concatenate([part.reshape(-1, size)[entry] for part, size in zip(parts, self.sizes, strict=True)])

    def enclosures(self, entry: int) -> tuple[Enclosure, Enclosure]:
        """The entry and its gradient as functions of boxes."""
        if entry not in self._enclosures:
            slopes = [(k, entry * size + i) for k, size in enumerate(self.sizes) for i in range(size)]
            made = Enclosure(self.kernel.program, [(0, entry)]), Enclosure(self.slopes.program, slopes)
            self._enclosures[entry] = made
        return self._enclosures[entry]

    def boxes(self, used: Any) -> tuple[Any, Any]:
        """The ranges as boxes (boxes, variables), with angles split to at most half turns, as enclosures require."""
        pieces = []
        for k, (low, high) in enumerate(zip(self.low, self.high, strict=True)):
            count = max(1, math.ceil((high - low) / math.pi)) if used[k] and k < self.sizes[0] else 1
            pieces.append(list(pairwise(np.linspace(low, high, count + 1))))
        ends = np.array(list(product(*pieces)))
        return ends[..., 0], ends[..., 1]


@dataclass(frozen=True)
class Boxes(Pieces):
    """Boxes given by their ends (boxes, variables), each to be split along one variable."""

    low: Any
    high: Any

    def halves(self) -> tuple[Any, Any]:
        """The ends of every box's two halves."""
        row = np.arange(len(self))
        middle = (self.low[row, self.along] + self.high[row, self.along]) / 2
        left, right = self.high.copy(), self.low.copy()
        left[row, self.along] = right[row, self.along] = middle
        return np.concatenate([self.low, right]), np.concatenate([left, self.high])


class IntervalRegion:
    """Bounds of sign × entry over boxes of all variables."""

    def __init__(self, problem: Problem, entry: int, sign: float) -> None:
        self.problem, self.entry, self.sign = problem, entry, sign
        self.value, self.gradient = problem.enclosures(entry)
        self.uncut = problem.linear | ~self.value.used

    def start(self) -> Boxes:
        """The ranges, with angles split to half turns."""
        return self._bounded(*self.problem.boxes(self.value.used))

    def cut(self, pieces: Boxes, enough: float) -> Boxes:
        """Both halves of every box."""
        parts = self._bounded(*pieces.halves())
        return replace(parts, above=np.minimum(parts.above, np.tile(pieces.above, 2)))  # no worse than the whole

    def best(self, pieces: Boxes) -> tuple[float, Any]:
        """The centre with the largest value."""
        centres = (pieces.low + pieces.high) / 2
        values = self.sign * self.problem.values(centres, self.entry)
        k = int(np.argmax(values))
        return float(values[k]), centres[k]

    def refined(self) -> None:
        """None: there are no sharper bounds."""

    def _bounded(self, low: Any, high: Any) -> Boxes:
        """The boxes, reduced to their better ends where the entry is monotone, with bounds and variables to split."""
        down, up = self._signed(*self.gradient(low, high))
        low, high = np.where(down >= 0, high, low), np.where(up <= 0, low, high)
        with np.errstate(invalid="ignore", divide="ignore"):
            centre = (up * high - down * low) / (up - down)  # Baumann's point for the largest value
        centre = np.clip(np.where(up > down, centre, low), low, high)
        at = self._signed(*self.value(centre, centre))[1][:, 0]
        reach = np.maximum(np.maximum(up * (high - centre), down * (low - centre)), 0)
        mean_value = at + reach.sum(axis=1) * (1 + 1e-12)
        above = np.minimum(mean_value + np.abs(mean_value) * 1e-15, self._signed(*self.value(low, high))[1][:, 0])
        smear = np.maximum(np.abs(down), np.abs(up)) * (high - low)
        smear[:, self.uncut] = 0
        return Boxes(above, np.argmax(smear, axis=1), low, high)

    def _signed(self, low: Any, high: Any) -> tuple[Any, Any]:
        """The ends of sign × entry."""
        return (low, high) if self.sign > 0 else (-high, -low)
