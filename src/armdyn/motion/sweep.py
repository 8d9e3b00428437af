"""The fastest speeds along a grid: backwards from where the end can be reached, forwards as fast as possible.

On a step of length Δ the acceleration u changes linearly, from one that is allowed at its beginning to one that is
allowed at its end, so that z = ṡ² moves by Δ (u₀ + u₁): the trapezoidal rule, of second order in Δ. Where a joint's
inertia along the path changes its sign, the limits at that point alone would allow any u; u₀ ≥ -z₀ / 2Δ and
u₁ ≤ z₁ / 2Δ keep z positive within the step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from armdyn.motion.constraints import Constraints

CANDIDATES, ROUNDS = 12, 8  # speeds looked at at once, and how often the interval around the best is divided again
ROUNDING = 1e-10  # of z: what may be missing by rounding
SLACK = 1e-7  # of z: the backward sweep knows its speeds to that
PEAK_ROUNDS = 6  # how often the largest value is looked for between its two neighbours

Test = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Speeds:
    """z at the points, u at the beginning and at the end of every step, the largest controllable z.

    `stuck` is the index of a point from which the end cannot be reached, -1 if there is none.
    """

    z: np.ndarray  # (lanes, points)
    u: np.ndarray  # (lanes, points - 1, 2)
    largest: np.ndarray  # (lanes, points)
    stuck: np.ndarray  # (lanes,)


def fastest(limits: Constraints, step: np.ndarray, start: np.ndarray, end: np.ndarray) -> Speeds:
    """The two sweeps; `step` (lanes,) is the grid's, `start` and `end` (lanes,) are z at the ends."""
    lanes, points = limits.fastest.shape
    low, high = np.zeros((lanes, points)), np.zeros((lanes, points))
    stuck = np.where(end > limits.fastest[:, -1] * (1 + 1e-9), points - 1, -1)
    low[:, -1] = high[:, -1] = np.minimum(end, limits.fastest[:, -1])
    for k in range(points - 2, -1, -1):
        least, most = _controllable(limits, k, step, low[:, k + 1], high[:, k + 1])
        stuck = np.where((stuck < 0) & (most < 0), k, stuck)
        low[:, k], high[:, k] = least, np.maximum(most, 0)
    stuck = np.where((stuck < 0) & (start > high[:, 0] * (1 + 1e-9)), 0, stuck)
    z, u = np.zeros((lanes, points)), np.zeros((lanes, points - 1, 2))
    z[:, 0] = np.minimum(start, high[:, 0])
    for k in range(points - 1):
        lower, upper = _interval(limits, k, z[:, k])
        lower = np.maximum(lower, -z[:, k] / (2 * step))
        begin = z[:, k] + step * lower, z[:, k] + step * upper
        z[:, k + 1] = _reached(limits, k + 1, step, begin, low[:, k + 1], high[:, k + 1])
        u[:, k] = _accelerations(limits, k + 1, step, z[:, k], z[:, k + 1], lower, upper)
        stuck = np.where((z[:, k] <= 0) & (z[:, k + 1] <= 0) & (stuck < 0), k, stuck)
    return Speeds(z, u, high, stuck)


def _interval(limits: Constraints, k: int, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The interval of u at point k, one z per lane."""
    lower, upper = limits.interval(k, z[:, None])
    return lower[:, 0], upper[:, 0]


def _controllable(
    limits: Constraints, k: int, step: np.ndarray, low_next: np.ndarray, high_next: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The least and the largest z at point k from which a step leads between `low_next` and `high_next`; -1 if none."""

    # A step ends at some z' between them: z + Δ u₀ may be at most the largest z' - Δ L', and must be at least the least
    # z' - Δ U'. Mostly these are at the two ends, but not where a joint's inertia along the path changes its sign.
    def ends(after: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        lower, upper = limits.interval(k + 1, after)
        upper = np.minimum(upper, after / (2 * step[:, None]))
        empty = lower > upper + 2 * ROUNDING * after / step[:, None]  # more than the room that `possible` asks for
        braked, driven = after - step[:, None] * lower, step[:, None] * upper - after
        return np.where(empty, -np.inf, braked), np.where(empty, -np.inf, driven)

    braked = _peak(lambda z: ends(z)[0], low_next, high_next)
    driven = -_peak(lambda z: ends(z)[1], low_next, high_next)
    most = limits.fastest[:, k]

    def possible(z: np.ndarray) -> np.ndarray:
        lower, upper = limits.interval(k, z)
        lower = np.maximum(lower, -z / (2 * step[:, None]))
        slack = ROUNDING * (z + high_next[:, None])
        fine = (upper - lower) * step[:, None] >= -ROUNDING * z
        fine &= z + step[:, None] * lower <= braked[:, None] + slack
        return np.asarray(fine & (z + step[:, None] * upper >= driven[:, None] - slack))

    top = _beyond(possible, most, np.maximum(braked, high_next))
    z = top[:, None] * np.linspace(0.0, 1.0, CANDIDATES) ** 2  # even in the speed
    good, rows = possible(z), np.arange(len(top))
    best = CANDIDATES - 1 - np.argmax(good[:, ::-1], axis=1)
    least = np.argmax(good, axis=1)
    high = _last(possible, z[rows, best], z[rows, np.minimum(best + 1, CANDIDATES - 1)])
    low = _last(possible, z[rows, least], z[rows, np.maximum(least - 1, 0)])
    none = ~good.any(axis=1)
    return np.where(none, 0.0, low), np.where(none, -1.0, high)


def _peak(test: Callable[[np.ndarray], np.ndarray], low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The largest value between `low` and `high`: of some candidates, and between the best one's two neighbours."""
    rows, parts, top = np.arange(len(low)), np.linspace(0.0, 1.0, CANDIDATES), np.full(len(low), -np.inf)
    for _ in range(PEAK_ROUNDS):
        z = low[:, None] + parts * (high - low)[:, None]
        values = test(z)
        best = np.argmax(values, axis=1)
        top = np.maximum(top, values[rows, best])
        inner = (best > 0) & (best < CANDIDATES - 1)
        if not inner.any():
            break
        low, high = (
            np.where(inner, z[rows, np.clip(best + side, 0, CANDIDATES - 1)], end)
            for side, end in ((-1, low), (1, high))
        )
    return top


def _beyond(possible: Test, most: np.ndarray, guess: np.ndarray) -> np.ndarray:
    """A z that is too large, or the largest that the speed limits allow."""
    top: np.ndarray = np.minimum(np.where(np.isfinite(guess) & (guess > 0), guess, 1.0), most)
    for _ in range(40):
        grow = possible(top[:, None])[:, 0] & (top < most)
        if not grow.any():
            break
        top = np.where(grow, np.minimum(4 * top, most), top)
    return top


def _last(possible: Test, good: np.ndarray, bad: np.ndarray) -> np.ndarray:
    """The last possible value between a possible one and its neighbour; `good` itself if the two are equal."""
    rows, parts = np.arange(len(good)), np.linspace(0.0, 1.0, CANDIDATES)
    for _ in range(ROUNDS):
        if (good == bad).all():
            break
        z = good[:, None] + parts * (bad - good)[:, None]
        fine = possible(z)
        fine[:, 0] = True
        all_fine = fine.all(axis=1)
        wrong = np.where(all_fine, CANDIDATES - 1, np.argmax(~fine, axis=1))
        good, bad = z[rows, np.where(all_fine, wrong, wrong - 1)], z[rows, wrong]
    return good


def _reached(
    limits: Constraints,
    k: int,
    step: np.ndarray,
    begin: tuple[np.ndarray, np.ndarray],
    low: np.ndarray,
    high: np.ndarray,
) -> np.ndarray:
    """The largest z at point k that a step reaches, `begin` being the range of z + Δ u₀ at its beginning."""
    braked, driven = (end[:, None] for end in begin)

    def slow_enough(z: np.ndarray) -> np.ndarray:
        upper = np.minimum(limits.interval(k, z)[1], z / (2 * step[:, None]))
        return np.asarray(z - step[:, None] * upper <= driven + SLACK * z)

    def possible(z: np.ndarray) -> np.ndarray:
        lower = limits.interval(k, z)[0]
        return np.asarray(slow_enough(z) & (z - step[:, None] * lower >= braked - SLACK * z))

    def largest(test: Test) -> np.ndarray:
        z, rows = low[:, None] + np.linspace(0.0, 1.0, CANDIDATES) * (high - low)[:, None], np.arange(len(low))
        good = test(z)
        none = ~good.any(axis=1)
        best = np.where(none, 0, CANDIDATES - 1 - np.argmax(good[:, ::-1], axis=1))
        reached = _last(test, z[rows, best], z[rows, np.minimum(best + 1, CANDIDATES - 1)])
        return np.asarray(np.where(none, np.nan, reached))

    if possible(high[:, None]).all():
        return high
    reached = largest(possible)
    if np.isnan(reached).any():  # between two candidates: the limit of acceleration decides
        reached = np.where(np.isnan(reached), largest(slow_enough), reached)
    return np.asarray(np.where(np.isnan(reached), low, reached))


def _accelerations(
    limits: Constraints,
    k: int,
    step: np.ndarray,
    z: np.ndarray,
    z_next: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
) -> np.ndarray:
    """(lanes, 2) u at the beginning and the end of the step to point k, as even as their intervals allow."""
    both = (z_next - z) / step
    least, most = _interval(limits, k, z_next)
    after = np.clip(both - np.clip(both / 2, lower, upper), least, np.minimum(most, z_next / (2 * step)))
    return np.stack([both - after, after], axis=-1)
