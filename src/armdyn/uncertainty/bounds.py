"""Guaranteed bounds of a quantity over a box of configurations, by branch and bound.

Interval enclosures or Taylor expansions bound the quantity on small boxes; `search` splits the ranges until
the bound is close to the best value found. The bounds are valid whenever the search stops.

`rounding_error` bounds the rounding error of a quantity's C code, in float or double.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from armdyn.arm import Arm
from armdyn.errors import InputError, choose
from armdyn.formulations import QUANTITIES
from armdyn.formulations.registry import result_units
from armdyn.kernels.emission import ERROR_BOXES
from armdyn.kernels.rounding import Analysis, assumptions, largest_errors, precision
from armdyn.options import Arithmetic, BoundKeywords, BoundSearch, RoundingKeywords, flat_keywords
from armdyn.ranges import ACCELERATION, of_input, pair
from armdyn.results import Result, ResultTable
from armdyn.uncertainty.expansions import Expansion, MotionRegion, Remainders, expandable
from armdyn.uncertainty.search import (
    LEAST_SIZE,
    BoundedQuantity,
    IntervalRegion,
    Region,
    Search,
    Side,
    found_by_search,
    polished,
)
from armdyn.values import ComparedByValue

if TYPE_CHECKING:
    from armdyn.pages.motion import View

SIGNS = (-1.0, 1.0)  # the minimum of an entry is found as the maximum of its negative
SHARPEST = {"gravity_load": "first_moments"}  # formulations with sharper enclosures than the cheapest one

Progress = Callable[[float, float, str], None]
Polish = Callable[[Any], tuple[float, Any]]


@dataclass(frozen=True, eq=False)
class Bound(ComparedByValue, Result):
    """Guaranteed bounds of every entry of a quantity, and the most extreme points that were found.

    `witness` holds these points by input: the first axis is 0 for the smallest and 1 for the largest value, followed by
    the axes of the quantity and of the input; "payload" are the masses, if a range of them was given. `found` are the
    values there: lower <= found[0], found[1] <= upper.
    """

    quantity: str
    lower: Any
    upper: Any
    found: Any
    witness: dict[str, Any]
    boxes: int
    seconds: float
    arm: Arm = field(repr=False, compare=False)

    def plot(self) -> View:
        """A page with the bounds, and the arm in the extreme configurations that were found."""
        from armdyn.pages.results import bound_page

        return bound_page(self)

    @property
    def gap(self) -> Any:
        """The distance between bound and witness, on the worse side, relative to the bound (at least to 0.1)."""
        below = (self.found[0] - self.lower) / np.maximum(np.abs(self.lower), LEAST_SIZE)
        above = (self.upper - self.found[1]) / np.maximum(np.abs(self.upper), LEAST_SIZE)
        return np.maximum(below, above)

    @property
    def units(self) -> tuple[str, ...]:
        """The unit of every entry, in order."""
        return _units(self.arm, self.quantity)

    def table(self) -> ResultTable:
        """The bounds of every entry."""
        smallest, largest = self.found
        numbers = {"lower": self.lower, "smallest found": smallest, "largest found": largest, "upper": self.upper}
        return _by_entry(self, self.units, {**numbers, "gap [%]": 100 * self.gap})

    def __repr__(self) -> str:
        worst = float(np.max(self.gap)) if np.size(self.gap) else 0.0
        return f"<Bound of {self.quantity}: gap at most {100 * worst:.2g} %, {self.boxes} boxes, {self.seconds:.1f} s>"


@flat_keywords(search=BoundSearch)
def bound(
    arm: Arm,
    quantity: str,
    *,
    q: Any = None,
    qd: Any = None,
    qdd: Any = None,
    payload: Any = None,
    progress: Progress | None = None,
    search: BoundSearch = BoundSearch(),
    **keywords: Unpack[BoundKeywords],
) -> Bound:
    """Bounds that no configuration within the ranges exceeds, and configurations that come close to them.

    Parameters
    ----------
    arm, quantity
        The quantity to bound: "gravity_load", "inverse_dynamics", "inertia_matrix", or any other without division.
    q, qd, qdd
        (n, 2) lower and upper ends of the ranges. Defaults: the joint limits, the velocity limits, accelerations 0.
    payload
        (2,) range of a point mass at the tool, kg. Torques are linear in it, so only its two ends are searched.
    gap
        The search of an entry ends when bound and witness are this close, relative to the bound (at least to 0.1).
    seconds
        Time limit for all entries together; the bounds are valid even if it is reached.
    progress
        Called with (done, total, text).
    search
        `gap` and `seconds` as a record of `armdyn.options`.
    """
    choose("quantity", quantity, QUANTITIES)
    gap, seconds = search.gap, search.seconds
    if payload is not None:
        ends = pair(payload, "payload", (2,))
        arms = [arm.with_payload(float(mass)) for mass in ends]
        return _hull(
            arm,
            ends,
            [bound(a, quantity, q=q, qd=qd, qdd=qdd, gap=gap, seconds=seconds / 2, progress=progress) for a in arms],
        )
    arm.must_suit("bounding a quantity over all configurations")
    kernel = arm.kernel(quantity, method=SHARPEST.get(quantity, "auto"))
    boxes = {name: of_input(arm, name, {"q": q, "qd": qd, "qdd": qdd}.get(name)) for name, _ in kernel.assembly.inputs}
    start = time.monotonic()
    problem = BoundedQuantity(kernel, boxes)
    searches = _searched(problem, gap, start + seconds, progress)
    shape = problem.shape
    limits, found = (np.array([[getattr(s, name) for s in side] for side in searches]) for name in ("limit", "value"))
    points = np.array([[s.point for s in side] for side in searches])
    return Bound(
        quantity,
        -limits[0].reshape(shape),
        limits[1].reshape(shape),
        np.stack([-found[0], found[1]]).reshape(2, *shape),
        problem.split(points.reshape(2, *shape, problem.variables)),
        sum(s.boxes for side in searches for s in side),
        time.monotonic() - start,
        arm,
    )


def _searched(problem: BoundedQuantity, gap: float, end: float, progress: Progress | None) -> list[list[Search]]:
    """Search both sides of every entry for an equal share of half the time; the unfinished ones share the rest."""
    count = math.prod(problem.shape)
    begun = time.monotonic()
    finished: dict[tuple[int, int], Search] = {}
    open_sides: dict[tuple[int, int], tuple[Side, Polish]] = {}

    def run(at: tuple[int, int], side: Side, polish: Polish, share: float) -> None:
        finished[at] = side.run(share, polish)
        if finished[at].gap > gap:
            side.wait()
            open_sides[at] = (side, polish)

    for entry in range(count):
        regions = _regions(problem, entry)
        for k, (sign, region) in enumerate(zip(SIGNS, regions, strict=True)):
            share = begun + (end - begun) / 2 * (2 * entry + k + 1) / (2 * count)
            polish = partial(polished, problem, entry, sign)
            run((entry, k), Side(region, found_by_search(problem, entry, sign), gap), polish, share)
            if progress:
                progress(2 * entry + k + 1, 2 * count, f"bound {2 * entry + k + 1} of {2 * count}")
    for k, (at, one) in enumerate(list(open_sides.items())):
        left = len(open_sides)
        if progress:
            progress(k, k + left, f"sharpening bound {k + 1} of {k + left}")
        now = time.monotonic()
        run(at, *one, now + (end - now) / left)
        open_sides.pop(at, None)
    return [[finished[entry, k] for entry in range(count)] for k in range(2)]


def _regions(problem: BoundedQuantity, entry: int) -> list[Region]:
    """The search regions for the smallest and the largest value of an entry."""
    if expandable(problem.kernel):
        expansion = Expansion(problem.kernel, entry, problem.ranges)
        if expansion.suits:
            remainders = Remainders(expansion)
            return [MotionRegion(expansion, sign, remainders) for sign in SIGNS]
    return [IntervalRegion(problem, entry, sign) for sign in SIGNS]


def _hull(arm: Arm, masses: Sequence[float], bounds: list[Bound]) -> Bound:
    """The bounds that hold for two arms together."""
    a, b = bounds
    take = np.stack([b.found[0] < a.found[0], b.found[1] > a.found[1]])
    witness = {}
    for name, points in a.witness.items():
        chosen = take.reshape(*take.shape, *(1,) * (points.ndim - take.ndim))
        witness[name] = np.where(chosen, b.witness[name], points)
    witness["payload"] = np.where(take, *reversed(masses))
    return Bound(
        a.quantity,
        np.minimum(a.lower, b.lower),
        np.maximum(a.upper, b.upper),
        np.where(take, b.found, a.found),
        witness,
        a.boxes + b.boxes,
        a.seconds + b.seconds,
        arm,
    )


@dataclass(frozen=True, eq=False)
class RoundingError(ComparedByValue, Result):
    """Bound of the rounding error of every entry of a quantity, valid within `ranges` (n, 2) under `assumptions`."""

    quantity: str
    dtype: str
    bound: Any
    ranges: dict[str, Any]
    assumptions: tuple[str, ...]
    units: tuple[str, ...]  # of every entry, in order

    def table(self) -> ResultTable:
        """The bound of every entry."""
        return _by_entry(self, self.units, {"largest rounding error": self.bound})

    def __repr__(self) -> str:
        return f"<RoundingError of {self.quantity} in {self.dtype}: at most {float(np.max(self.bound)):.3g}>"


def _units(arm: Arm, quantity: str) -> tuple[str, ...]:
    """The unit of every entry of a quantity, in order."""
    return result_units(arm.chain, quantity, *arm.kernel(quantity).ports[1][0])


def _by_entry(result: Bound | RoundingError, units: tuple[str, ...], columns: dict[str, Any]) -> ResultTable:
    """A row per entry of a quantity: its indices from 1, its unit, and its number in every column."""
    places = np.ndindex(*np.shape(next(iter(columns.values()))))
    rows = [
        (", ".join(str(k + 1) for k in at) or result.quantity, unit, *(float(x[at]) for x in columns.values()))
        for at, unit in zip(places, units, strict=True)
    ]
    return ResultTable.of(repr(result)[1:-1], ["entry", "unit", *columns], rows)


@flat_keywords(arithmetic=Arithmetic)
def rounding_error(
    arm: Arm,
    quantity: str,
    *,
    q: Any = None,
    qd: Any = None,
    qdd: Any = None,
    boxes: int = ERROR_BOXES,
    progress: Callable[[float, float, str], None] | None = None,
    arithmetic: Arithmetic = Arithmetic(),
    **keywords: Unpack[RoundingKeywords],
) -> RoundingError:
    """Bound the rounding error of the C code that `Arm.emit_c` writes for a quantity.

    Parameters
    ----------
    arm, quantity
        Any quantity without division.
    q, qd, qdd
        (n, 2) ranges. Defaults: the joint limits, the velocity limits, accelerations of up to 10 rad/s² or m/s².
    dtype
        "float" or "double".
    trig_ulps
        The largest error of the library's sine and cosine, in units in the last place.
    boxes
        The number of boxes that the position ranges are split into; more give a sharper bound and take longer.
    progress
        Called with (done, total, text).
    arithmetic
        `dtype` and `trig_ulps` as a record of `armdyn.options`.
    """
    dtype, trig_ulps = arithmetic.dtype, arithmetic.trig_ulps
    choose("quantity", quantity, QUANTITIES)
    arm.must_suit("a bound of rounding errors")
    if boxes < 1:
        raise InputError(f"boxes must be at least 1, got {boxes}")
    program = arm.kernel(quantity).program
    given = {"q": q, "qd": qd, "qdd": qdd}
    ranges = {port.name: of_input(arm, port.name, given.get(port.name), ACCELERATION) for port in program.inputs}
    analysis = Analysis(program, precision(dtype, trig_ulps), np.concatenate(list(ranges.values())))
    errors = largest_errors(analysis, len(next(iter(ranges.values()))), boxes, progress)
    bound = errors[: len(program.outputs[0].nodes)].reshape(program.outputs[0].shape)
    return RoundingError(quantity, dtype, bound, ranges, assumptions(dtype, trig_ulps), _units(arm, quantity))
