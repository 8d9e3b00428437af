"""Branch and bound: upper and lower bounds of the largest value of a function over a region.

The region is covered by pieces, each with an upper bound. A piece whose bound does not exceed the best value found is
done; of the others, those with the largest bounds are split. Whenever the search stops, the largest remaining bound
holds for the whole region.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, Protocol, Self

import numpy as np

BATCH = 4096  # pieces: large enough for NumPy, small enough for the cache
MOST_OPEN = 6_000_000  # pieces, half a gigabyte; above this, those with the smallest bounds are split first
MOST_KEPT = 1_000_000  # pieces kept by a suspended search; with more it restarts, keeping its bound
SAMPLES = 20_000  # random points tried first
STARTS = 6  # best of them, improved by a local search
LEAST_SIZE = 0.1  # a gap is relative to the bound, but at least to this (N m for torques)
ENOUGH = 0.9  # share of the gap aimed at, because the gap is relative to the bound and not to the smaller value


@dataclass(frozen=True)
class Pieces:
    """Pieces of a region, one per row of every array.

    `above` is an upper bound of the function; `along` is the variable to split, negative if splitting would not help.
    """

    above: Any
    along: Any

    def __len__(self) -> int:
        return len(self.above)

    def __getitem__(self, which: Any) -> Self:
        return replace(self, **{f.name: getattr(self, f.name)[which] for f in fields(self)})

    def and_also(self, other: Self) -> Self:
        """The concatenation of these pieces and others."""
        both = {f.name: np.concatenate([getattr(one, f.name) for one in (self, other)]) for f in fields(self)}
        return replace(self, **both)


class Region(Protocol):
    """A region to search."""

    def start(self) -> Pieces:
        """The first pieces."""

    def cut(self, pieces: Any, enough: float) -> Pieces:
        """Split pieces into parts, with bounds no worse than theirs; bounds below `enough` need not be sharper."""

    def best(self, pieces: Any) -> tuple[float, Any]:
        """The largest value at one point per piece, and that point."""

    def refined(self) -> Region | None:
        """The region with sharper but more expensive bounds, or None."""


@dataclass(frozen=True)
class Search:
    """The result of a search: the function never exceeds `limit`, and has the `value` at `point`."""

    limit: float
    value: float
    point: Any
    boxes: int

    @property
    def gap(self) -> float:
        """The distance between bound and value, relative to the bound."""
        return (self.limit - self.value) / max(abs(self.limit), LEAST_SIZE)


class Side:
    """A resumable search for the largest value of one function."""

    def __init__(self, region: Region, found: tuple[float, Any], gap: float) -> None:
        self.region = region
        self.value, self.point = found
        self.gap = gap
        self.finished = self.value  # the largest bound among the pieces that are done
        self.proven = np.inf  # the bound proven before a restart
        self.open = region.start()
        self.boxes = len(self.open)

    @property
    def enough(self) -> float:
        """A piece with a bound up to here is done."""
        return self.value + ENOUGH * self.gap * max(abs(self.value), LEAST_SIZE)

    @property
    def search(self) -> Search:
        """The result so far."""
        limit = max(self.finished, float(self.open.above.max(initial=-np.inf)))
        return Search(min(limit, self.proven), self.value, self.point, self.boxes)

    def wait(self) -> None:
        """Release memory until the search is resumed."""
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
        """Restart with sharper bounds, if there are any and the gap is not closed."""
        region = self.region.refined() if self.finished > self.enough else None
        if region is None:
            return False
        self.proven, self.region, self.open = self.search.limit, region, region.start()
        self.finished = self.value
        return True

    def _round(self, polish: Callable[[Any], tuple[float, Any]]) -> None:
        count = min(len(self.open), max(BATCH, len(self.open) // 4))  # every round copies all pieces
        order = np.argpartition(-self.open.above if len(self.open) < MOST_OPEN else self.open.above, count - 1)
        chosen, rest = self.open[order[:count]], self.open[order[count:]]
        parts = self.region.cut(chosen, self.enough)
        self.boxes += len(parts)
        value, point = self.region.best(parts)
        if value > self.value:
            self.value, self.point = max((value, point), polish(point), key=lambda one: one[0])
        self.open = parts.and_also(rest)


def found_by_search(problem: Any, entry: int, sign: float) -> tuple[float, Any]:
    """A large value of sign × entry and its point: random points, the best improved by a local search."""
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
