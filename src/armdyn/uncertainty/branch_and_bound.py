"""Branch and bound: the largest value of one entry of a quantity over a box, from above and from below.

A box is bounded by the value at one point plus what the gradient's enclosure allows from there (the mean-value form, at
the point that makes it sharpest: Baumann 1988), and by the enclosure of the value itself. Where the gradient has one
sign in a variable, the variable moves to its better end. A box whose bound is no better than a value that was found is
done; the others are cut in two.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import pairwise, product
from typing import Any

import numpy as np

from armdyn.formulations import energies
from armdyn.graph.program import Program, trace
from armdyn.uncertainty.boxes import Enclosure

LINEAR = ("qdd",)  # inputs in which every quantity that takes them is affine
BOXES = 4096  # per round: large enough for NumPy, small enough for the cache
SAMPLES = 20_000  # random points tried first
STARTS = 6  # of them improved by a local search
LEAST_SIZE = 0.1  # a gap is relative to the bound's size, but at least to this (N m for torques)


class Problem:
    """A kernel with its ranges: values at points, and enclosures of one entry and its gradient over boxes."""

    def __init__(self, kernel: Any, boxes: dict[str, Any]) -> None:
        self.kernel = kernel
        self.names = list(boxes)
        self.low, self.high = (np.concatenate([box[:, k] for box in boxes.values()]) for k in (0, 1))
        self.sizes = [len(box) for box in boxes.values()]
        self.variables = sum(self.sizes)
        self.shape = kernel.assembly.outputs[0][1]
        self.linear = np.concatenate([np.full(len(box), name in LINEAR) for name, box in boxes.items()])
        self.slopes = kernel.variant(derivatives=tuple(self.names))
        self._enclosures: dict[int, tuple[Enclosure, Enclosure, Enclosure | None]] = {}
        self.limits = _gravity_limits(kernel) if kernel.quantity == "gravity_load" and kernel.chain.plain else None

    def split(self, points: Any) -> dict[str, Any]:
        """Variables by input."""
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

    def enclosures(self, entry: int) -> tuple[Enclosure, Enclosure, Enclosure | None]:
        """The entry, its gradient and, where one is known, a further bound of its square, as functions of boxes."""
        if entry not in self._enclosures:
            slopes = [(k, entry * size + i) for k, size in enumerate(self.sizes) for i in range(size)]
            limit = None if self.limits is None else Enclosure(self.limits, [(0, entry)])
            made = Enclosure(self.kernel.program, [(0, entry)]), Enclosure(self.slopes.program, slopes), limit
            self._enclosures = {entry: made}  # both sides of an entry follow one another
        return self._enclosures[entry]

    def boxes(self, used: Any) -> tuple[Any, Any]:
        """The ranges as boxes (boxes, variables), angles cut to half turns, which an enclosure can take."""
        pieces = []
        for k, (low, high) in enumerate(zip(self.low, self.high, strict=True)):
            count = max(1, math.ceil((high - low) / math.pi)) if used[k] and k < self.sizes[0] else 1
            pieces.append(list(pairwise(np.linspace(low, high, count + 1))))
        ends = np.array(list(product(*pieces)))
        return ends[..., 0], ends[..., 1]


def _gravity_limits(kernel: Any) -> Program:
    """The squares of what gravity could ask of each joint, whichever way it points."""
    chain = kernel.chain
    function = partial(energies.squared_gravity_limits, chain)
    return trace("gravity_limits", function, {"q": (chain.n,)}, [("limits", (chain.n,))])


@dataclass(frozen=True)
class Search:
    """What a search came to: a bound from above, the best value found, where it is, the boxes looked at."""

    limit: float
    value: float
    point: Any
    boxes: int

    @property
    def gap(self) -> float:
        """Between bound and value, relative to the bound."""
        return (self.limit - self.value) / max(abs(self.limit), LEAST_SIZE)

    def sharpened(self, other: Search) -> Search:
        """The better of both in each respect."""
        better = other if other.value > self.value else self
        return Search(min(self.limit, other.limit), better.value, better.point, self.boxes + other.boxes)


def maximum(problem: Problem, entry: int, sign: float, gap: float, seconds: float) -> Search:
    """The bound of sign × entry, until it is close or time is up; there is always one."""
    end = time.monotonic() + seconds
    best, point = found_by_search(problem, entry, sign)
    search = _Boxes(problem, entry, sign)
    enough = best + 0.9 * gap * max(abs(best), LEAST_SIZE)  # a gap is relative to the bound, not to the best value
    open_boxes = search.bounded(*problem.boxes(search.value.used), enough)
    done, finished = len(open_boxes), best
    while True:
        enough = best + 0.9 * gap * max(abs(best), LEAST_SIZE)
        close = open_boxes.above <= enough
        finished = max(finished, float(open_boxes.above[close].max(initial=best)))
        open_boxes = open_boxes[~close]
        if not len(open_boxes) or time.monotonic() > end:
            return Search(max(finished, float(open_boxes.above.max(initial=best))), best, point, done)
        order = np.argpartition(-open_boxes.above, min(BOXES, len(open_boxes) - 1))
        chosen, rest = open_boxes[order[:BOXES]], open_boxes[order[BOXES:]]
        parts = search.bounded(*chosen.halves(), enough)
        parts = replace(parts, above=np.minimum(parts.above, np.tile(chosen.above, 2)))  # no worse than the whole
        done += len(parts)
        values = sign * problem.values((parts.low + parts.high) / 2, entry)
        k = int(np.argmax(values))
        if values[k] > best:
            best, point = float(values[k]), (parts.low[k] + parts.high[k]) / 2
        open_boxes = parts.and_also(rest)


@dataclass(frozen=True)
class _Open:
    """Boxes that are not done: their ends (boxes, variables), a bound for each, the variable to cut next."""

    low: Any
    high: Any
    above: Any
    along: Any

    def __len__(self) -> int:
        return len(self.above)

    def __getitem__(self, which: Any) -> _Open:
        return _Open(self.low[which], self.high[which], self.above[which], self.along[which])

    def and_also(self, other: _Open) -> _Open:
        """These boxes and others."""
        return _Open(*(np.concatenate([getattr(o, f.name) for o in (self, other)]) for f in fields(self)))

    def halves(self) -> tuple[Any, Any]:
        """The ends of every box's two halves."""
        row = np.arange(len(self))
        middle = (self.low[row, self.along] + self.high[row, self.along]) / 2
        left, right = self.high.copy(), self.low.copy()
        left[row, self.along] = right[row, self.along] = middle
        return np.concatenate([self.low, right]), np.concatenate([left, self.high])


class _Boxes:
    """Bounds of sign × entry over many boxes."""

    def __init__(self, problem: Problem, entry: int, sign: float) -> None:
        self.value, self.gradient, self.limit = problem.enclosures(entry)
        self.sign = sign
        self.uncut = problem.linear | ~self.value.used

    def bounded(self, low: Any, high: Any, enough: float) -> _Open:
        """The boxes, moved to their better ends where the entry is monotone; their bounds; where to cut them."""
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
        if self.limit is not None:
            least, most = (np.sqrt(np.maximum(end[:, 0], 0)) * (1 + 1e-15) for end in self.limit(low, high))
            # Where the limit decides and may yet fall below what was found, cut what the limit depends on.
            decides = (most < above) & (least <= enough) & self.limit.used.any()
            smear = np.where(decides[:, None], (high - low) * self.limit.used, smear)
            above = np.minimum(above, most)
        return _Open(low, high, above, np.argmax(smear, axis=1))

    def _signed(self, low: Any, high: Any) -> tuple[Any, Any]:
        """The ends of sign × entry."""
        return (low, high) if self.sign > 0 else (-high, -low)


def found_by_search(problem: Problem, entry: int, sign: float) -> tuple[float, Any]:
    """A large value of sign × entry and where it is: random points, the best improved by a local search."""
    from scipy.optimize import minimize

    rng = np.random.default_rng(0)
    points = rng.uniform(problem.low, problem.high, (SAMPLES, problem.variables))
    points[: SAMPLES // 2, problem.linear] = np.where(
        rng.random((SAMPLES // 2, int(problem.linear.sum()))) < 0.5,
        problem.low[problem.linear],
        problem.high[problem.linear],
    )
    values = sign * problem.values(points, entry)
    order = np.argsort(-values)[:STARTS]
    best, where = float(values[order[0]]), points[order[0]]
    limits = list(zip(problem.low, problem.high, strict=True))

    def below(x: Any) -> tuple[float, Any]:
        return -sign * float(problem.values(x[None], entry)[0]), -sign * problem.gradient(x, entry)

    for start in points[order]:
        result: Any = minimize(below, start, jac=True, method="L-BFGS-B", bounds=limits)
        reached = np.clip(result.x, problem.low, problem.high)
        value = sign * float(problem.values(reached[None], entry)[0])
        if value > best:
            best, where = value, reached
    return best, where
