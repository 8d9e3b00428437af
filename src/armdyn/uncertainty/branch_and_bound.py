"""Branch and bound: the largest value of a function over a region, from above and from below.

The region is covered by pieces with a bound each. A piece whose bound is no better than a value that was found is
done; of the others, the ones with the largest bounds are cut. Whenever the search stops, the largest bound left is one
of the whole region.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, Protocol, Self

import numpy as np

BATCH = 4096  # pieces: large enough for NumPy, small enough for the cache
MOST_OPEN = 6_000_000  # pieces, half a gigabyte; from here on those that are nearly done come first
MOST_KEPT = 1_000_000  # pieces of a side that waits; with more it starts again, with the bound that it had
SAMPLES = 20_000  # random points tried first
STARTS = 6  # of them improved by a local search
LEAST_SIZE = 0.1  # a gap is relative to the bound's size, but at least to this (N m for torques)
ENOUGH = 0.9  # of the gap: it is relative to the bound, which is larger than the value it is compared with


@dataclass(frozen=True)
class Pieces:
    """Pieces of a region, one row of every array each.

    `above` bounds the function on them; `along` says how to cut them, and is negative where that would not help.
    """

    above: Any
    along: Any

    def __len__(self) -> int:
        return len(self.above)

    def __getitem__(self, which: Any) -> Self:
        return replace(self, **{f.name: getattr(self, f.name)[which] for f in fields(self)})

    def and_also(self, other: Self) -> Self:
        """These pieces and others."""
        both = {f.name: np.concatenate([getattr(one, f.name) for one in (self, other)]) for f in fields(self)}
        return replace(self, **both)


class Region(Protocol):
    """What is searched."""

    def start(self) -> Pieces:
        """The first pieces."""

    def cut(self, pieces: Any, enough: float) -> Pieces:
        """The parts of pieces, with bounds no worse than theirs; a bound up to `enough` will do."""

    def best(self, pieces: Any) -> tuple[float, Any]:
        """The largest value among a point of each piece, and where it is."""

    def refined(self) -> Region | None:
        """The region with sharper bounds that cost more, where there are such."""


@dataclass(frozen=True)
class Search:
    """What a search came to: nothing exceeds `limit`, and `point` has the `value`."""

    limit: float
    value: float
    point: Any
    boxes: int

    @property
    def gap(self) -> float:
        """Between bound and value, relative to the bound."""
        return (self.limit - self.value) / max(abs(self.limit), LEAST_SIZE)


class Side:
    """The search for the largest value of one function; it goes on where it stopped."""

    def __init__(self, region: Region, found: tuple[float, Any], gap: float) -> None:
        self.region = region
        self.value, self.point = found
        self.gap = gap
        self.finished = self.value  # the largest bound among the pieces that are done
        self.proven = np.inf  # before it started again
        self.open = region.start()
        self.boxes = len(self.open)

    @property
    def enough(self) -> float:
        """A piece with a bound up to here is done."""
        return self.value + ENOUGH * self.gap * max(abs(self.value), LEAST_SIZE)

    @property
    def search(self) -> Search:
        """What it has come to."""
        limit = max(self.finished, float(self.open.above.max(initial=-np.inf)))
        return Search(min(limit, self.proven), self.value, self.point, self.boxes)

    def wait(self) -> None:
        """Hold little memory until it goes on."""
        if len(self.open) > MOST_KEPT:
            self.proven, self.finished, self.open = self.search.limit, self.value, self.region.start()

    def run(self, end: float, polish: Callable[[Any], tuple[float, Any]]) -> Search:
        """Search until the gap is closed or the clock shows `end`; `polish` improves a point."""
        while True:
            done = (self.open.above <= self.enough) | (self.open.along < 0)
            if done.any():
                self.finished = max(self.finished, float(self.open.above[done].max()))
                self.open = self.open[~done]
            if time.monotonic() > end or not (len(self.open) or self._refine()):
                return self.search
            self._round(polish)

    def _refine(self) -> bool:
        """Start again with sharper bounds, if those at hand did not close the gap and there are any."""
        region = self.region.refined() if self.finished > self.enough else None
        if region is None:
            return False
        self.proven, self.region, self.open = self.search.limit, region, region.start()
        self.finished = self.value
        return True

    def _round(self, polish: Callable[[Any], tuple[float, Any]]) -> None:
        count = min(len(self.open), max(BATCH, len(self.open) // 4))  # all are copied once a round
        order = np.argpartition(-self.open.above if len(self.open) < MOST_OPEN else self.open.above, count - 1)
        chosen, rest = self.open[order[:count]], self.open[order[count:]]
        parts = self.region.cut(chosen, self.enough)
        self.boxes += len(parts)
        value, point = self.region.best(parts)
        if value > self.value:
            self.value, self.point = max((value, point), polish(point), key=lambda one: one[0])
        self.open = parts.and_also(rest)


def found_by_search(problem: Any, entry: int, sign: float) -> tuple[float, Any]:
    """A large value of sign × entry and where it is: random points, the best improved by a local search."""
    rng = np.random.default_rng(0)
    points = rng.uniform(problem.low, problem.high, (SAMPLES, problem.variables))
    corners = rng.random((SAMPLES // 2, problem.variables)) < 0.5
    at_corner = np.where(corners, problem.low, problem.high)
    points[: SAMPLES // 2, problem.rates] = at_corner[:, problem.rates]
    values = sign * problem.values(points, entry)
    order = np.argsort(-values)[:STARTS]
    found = [(float(values[order[0]]), points[order[0]])]
    found += [polished(problem, entry, sign, start) for start in points[order]]
    return max(found, key=lambda one: one[0])


def polished(problem: Any, entry: int, sign: float, start: Any) -> tuple[float, Any]:
    """A local maximum of sign × entry near a point."""
    from scipy.optimize import minimize

    def below(x: Any) -> tuple[float, Any]:
        return -sign * float(problem.values(x[None], entry)[0]), -sign * problem.gradient(x, entry)

    limits = list(zip(problem.low, problem.high, strict=True))
    result: Any = minimize(below, start, jac=True, method="L-BFGS-B", bounds=limits)
    reached = np.clip(result.x, problem.low, problem.high)
    return sign * float(problem.values(reached[None], entry)[0]), reached
