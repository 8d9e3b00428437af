"""From one configuration to another as fast as possible, where the path is free.

The path is a natural cubic spline whose inner points are the variables. The time along it comes from the sweeps, and
its derivatives from differences: all neighbours of a path are computed in one call. Joint limits and the distance
between the arm's own segments are penalties during the search and conditions at its end. The search is local, so it
begins from the straight line and from lines bent at random.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from armdyn.errors import ComputationError, InputError, required
from armdyn.identification.limits import Skeleton
from armdyn.motion.constraints import MotionLimits
from armdyn.motion.path import Path, PathPiece, natural
from armdyn.motion.time_optimal import TimeOptimal, nominal_arm, quick_durations, time_optimal

GRID = 60  # steps during the search
DIFFERENCE = 1e-3  # rad or m: step of the derivatives
MARGIN = 1.02  # of the clearance, and inside the joint limits, during the search
PENALTY = 300.0
BEND = 0.15  # of the joints' ways, at least rad: how far lines are bent at random
IMPOSSIBLE = 1e3  # s: the time of a path along which the arm cannot be held


def fastest_path(
    arm: Any,
    start: Any,
    end: Any,
    *,
    limits: MotionLimits | None = None,
    payload: Any = None,
    points: int = 2,
    clearance: float | None = None,
    starts: int = 3,
) -> TimeOptimal:
    """The fastest motion from `start` to `end`, both at rest, with the path's form free as well.

    Parameters
    ----------
    arm, limits, payload
        As for `time_optimal`.
    start, end
        Configurations (n,).
    points
        Inner points of the spline, every joint of which is a variable.
    clearance
        The least distance (m) between segments of the arm that are not neighbours: twice the radius of its links.
    starts
        How many searches there are: the first from the straight line, the others from lines bent at random.
    """
    one = nominal_arm(arm)
    if isinstance(points, bool) or int(points) != points or points < 1:
        raise InputError(f"points is a whole number of inner points, at least 1; got {points!r}")
    if isinstance(starts, bool) or int(starts) != starts or starts < 1:
        raise InputError(f"starts is a whole number of searches, at least 1; got {starts!r}")
    ends = np.stack([np.asarray(x, float) for x in (start, end)])
    Path.of(ends, one)  # says what is wrong with the ends
    search = _FreePath(arm, one, ends, int(points), limits or MotionLimits(), payload, clearance)
    search.must_be_clear(ends, "an end of the motion")
    rng, found = np.random.default_rng(0), []
    for k in range(int(starts)):
        way = np.maximum(np.abs(ends[1] - ends[0]), 1.0)
        bend = 0.0 if k == 0 else BEND * way * rng.normal(size=(points, one.n))
        found.append(search.run(search.line + bend))
    for _, inner in sorted(found, key=lambda pair: pair[0]):
        path = search.path(inner)
        if search.violation(path.pieces[0]) <= 0:
            return _timed(arm, path, limits, payload)
    raise ComputationError(
        "no path was found on which joints stay within their limits"
        + (f" and segments {clearance:g} m apart" if clearance else "")
        + "; more starts or inner points may find one"
    )


def _timed(arm: Any, path: Path, limits: MotionLimits | None, payload: Any) -> TimeOptimal:
    found = time_optimal(arm, path, limits=limits, payload=payload)
    assert isinstance(found, TimeOptimal)
    return found


@dataclass(frozen=True)
class _FreePath:
    """The search over the inner points (points, n) of a spline."""

    arm: Any
    nominal: Any
    ends: np.ndarray
    points: int
    limits: MotionLimits
    payload: Any
    clearance: float | None

    @property
    def line(self) -> np.ndarray:
        """The inner points on the straight line."""
        share = np.linspace(0, 1, self.points + 2)[1:-1, None]
        return np.asarray(self.ends[0] + share * (self.ends[1] - self.ends[0]))

    def path(self, inner: np.ndarray) -> Path:
        """The spline through the inner points."""
        spline = natural(np.linspace(0, 1, self.points + 2), np.stack([self.ends[0], *inner, self.ends[1]]))
        return Path((PathPiece(spline, 0.0, 1.0),))

    def violation(self, piece: PathPiece, margin: float = 1.0) -> float:
        """How far joints leave their ranges and segments come too close, squared."""
        q = piece.at(np.linspace(0, 1, 2 * GRID + 1))
        low, high = self.nominal.limits.T
        bounded = np.isfinite(high - low)
        half = np.where(bounded, np.where(bounded, high - low, 1.0) / 2, 1.0)
        over = np.maximum(low - q, q - high) + (margin - 1) * half * bounded
        total = float((np.maximum(over / half, 0) ** 2).mean(0).sum())
        if self.clearance:
            skeleton = Skeleton(self.nominal)
            near = skeleton.nearness(skeleton.points(q), self.clearance * margin)
            total += float(near.mean()) / self.clearance**2
        return total

    def must_be_clear(self, q: np.ndarray, what: str) -> None:
        """Refuse configurations at which segments are too close."""
        if self.clearance is None:
            return
        if not np.isfinite(self.clearance) or self.clearance <= 0:
            raise InputError(f"clearance is a distance above 0 (m), got {self.clearance!r}")
        skeleton = Skeleton(self.nominal)
        near = skeleton.nearness(skeleton.points(q), self.clearance)
        if near.any():
            raise InputError(f"at {what} segments of {self.nominal.name} are closer than {self.clearance:g} m")

    def costs(self, candidates: np.ndarray) -> np.ndarray:
        """The times of paths through inner points (k, points · n), with penalties."""
        shape = (self.points, self.nominal.n)
        pieces = [self.path(x.reshape(shape)).pieces[0] for x in candidates]
        times = quick_durations(self.arm, pieces, self.limits, self.payload, GRID)
        times = np.where(np.isfinite(times), times, IMPOSSIBLE)
        return np.array([t * (1 + PENALTY * self.violation(p, MARGIN)) for t, p in zip(times, pieces, strict=True)])

    def run(self, inner: np.ndarray) -> tuple[float, np.ndarray]:
        """The least cost and its inner points, from these on."""
        required("scipy")
        from scipy.optimize import minimize

        size = inner.size

        def with_slope(x: np.ndarray) -> tuple[float, np.ndarray]:
            costs = self.costs(np.concatenate([x[None], x + DIFFERENCE * np.eye(size), x - DIFFERENCE * np.eye(size)]))
            return float(costs[0]), (costs[1 : size + 1] - costs[size + 1 :]) / (2 * DIFFERENCE)

        low, high = (np.tile(end, self.points) for end in self.nominal.limits.T)
        x = np.clip(inner.ravel(), low, high)
        found = minimize(
            with_slope, x, jac=True, method="L-BFGS-B", bounds=list(zip(low, high, strict=True)),
            options={"maxiter": 60, "ftol": 1e-5},
        )  # fmt: skip
        return float(found.fun), np.asarray(found.x).reshape(inner.shape)
