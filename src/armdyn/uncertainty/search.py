"""Branch and bound: upper and lower bounds of the largest value of a function over a region.

`Enclosure` compiles the bounds of chosen outputs on boxes in all variables, for thousands of boxes at once. The
theory is at the head of this folder.
"""

from __future__ import annotations

import math
import operator
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from itertools import pairwise, product
from typing import Any, Protocol, Self

import numpy as np

from armdyn.algebra import scalar
from armdyn.algebra.interval import Interval
from armdyn.codegen.compile import compile_program
from armdyn.errors import InputError, required
from armdyn.graph.program import Port, Program, interpret, trace

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
    extremes = [(float(values[order[0]]), points[order[0]])]
    extremes += [polished(problem, entry, sign, start) for start in points[order]]
    return max(extremes, key=lambda one: one[0])


def polished(problem: Any, entry: int, sign: float, start: Any) -> tuple[float, Any]:
    """A local maximum of sign × entry near a point."""
    required("scipy")
    from scipy.optimize import minimize

    def below(x: Any) -> tuple[float, Any]:
        return -sign * float(problem.values(x[None], entry)[0]), -sign * problem.gradient(x, entry)

    limits = list(zip(problem.low, problem.high, strict=True))
    result: Any = minimize(below, start, jac=True, method="L-BFGS-B", bounds=limits)
    reached = np.clip(result.x, problem.low, problem.high)
    return sign * float(problem.values(reached[None], entry)[0]), reached


EVALUATE: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "neg": operator.neg,
    "sin": scalar.sin,
    "cos": scalar.cos,
}


class OverBoxes:
    """Outputs of a program as functions of boxes, which are given by lower and upper ends (boxes, variables)."""

    kind = ""
    results: tuple[str, ...] = ()

    def __init__(self, program: Program) -> None:
        for node in program.order:
            if node.op not in ("const", "input", *EVALUATE):
                raise InputError(f"{program.name} contains {node.op}; {self.kind}s are for {', '.join(EVALUATE)}")
        self.program = program
        flat = [node for port in program.inputs for node in port.nodes]
        needed = {node.serial for node in program.order}
        self.used = np.array([node.serial in needed for node in flat])
        count = sum(len(port.nodes) for port in program.outputs)
        shapes = {"centre": (len(flat),), "radius": (len(flat),)}
        outputs = [(name, (count,)) for name in self.results]
        self._compiled = compile_program(trace(f"{program.name}_{self.kind}", self._over, shapes, outputs))

    def _over(self, centres: list[Any], radii: list[Any]) -> Any:
        """The results over any scalar."""
        boxes = [self._input(Interval(c, r)) for c, r in zip(centres, radii, strict=True)]
        sizes = np.cumsum([len(port.nodes) for port in self.program.inputs])[:-1]
        ports = [list(part) for part in np.split(np.array(boxes, dtype=object), sizes)]
        found = [x for port in interpret(self.program, EVALUATE, self._constant, *ports) for x in port]
        results = tuple(zip(*map(self._result, found), strict=True))
        return [list(one) for one in results] if len(self.results) > 1 else list(results[0])

    def _input(self, box: Interval) -> Any:
        return box

    def _constant(self, x: Fraction) -> Any:
        return x

    def _result(self, x: Any) -> tuple[Any, ...]:
        raise NotImplementedError

    def __call__(self, low: Any, high: Any) -> Any:
        """The results, (boxes, outputs) each."""
        centre = low + (high - low) / 2
        radius = np.maximum(high - centre, centre - low)
        return self._compiled(centre, np.nextafter(radius, np.inf))


class Enclosure(OverBoxes):
    """Chosen outputs of a program: the lower and the upper ends of their ranges over boxes."""

    kind = "bound"
    results = ("lower", "upper")

    def __init__(self, program: Program, entries: Sequence[tuple[int, int]]) -> None:
        """Select the outputs: pairs of an output's name and an index into it."""
        nodes = tuple(program.outputs[port].nodes[entry] for port, entry in entries)
        super().__init__(Program(program.name, program.inputs, (Port("entries", (len(nodes),), nodes),)))

    def _result(self, x: Any) -> tuple[Any, ...]:
        return (x if isinstance(x, Interval) else Interval(x)).ends


LINEAR = ("qdd",)  # every quantity is affine in these inputs
RATES = ("qd", "qdd")  # inputs whose extremes are often at the ends of their ranges


class BoundedQuantity:
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

    def __init__(self, problem: BoundedQuantity, entry: int, sign: float) -> None:
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
