"""A path q(s): smooth pieces, from waypoints, poses, splines, functions or trajectories.

The motion stops where two pieces meet. Waypoints are joined by one cubic spline, or by straight lines with blends: the
corner is replaced by a quintic curve with continuous curvature that stays within a given deviation of the corner.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from armdyn.errors import InputError, required
from armdyn.motion.via import read_via

Curve = Callable[[np.ndarray, int], np.ndarray]  # (s, order of the derivative) -> (..., n)
DIFFERENCE = 1e-4  # of a piece's length: step of the differences that differentiate a plain function
FEW = 60  # waypoints: more have their spline made by SciPy
STRAIGHT = 25  # poses between two via poses of the tool


@dataclass(frozen=True, eq=False)
class PathPiece:
    """A smooth part of a path: `curve` on the interval from `start` to `end` of its own parameter."""

    curve: Curve
    start: float
    end: float

    def at(self, s: np.ndarray, order: int = 0) -> np.ndarray:
        """q, or its derivative of this order in s, (..., n)."""
        return np.asarray(self.curve(np.asarray(s, float), order), float)


@dataclass(frozen=True, eq=False)
class Path:
    """Smooth pieces one after the other; the motion stops between two of them."""

    pieces: tuple[PathPiece, ...]

    @staticmethod
    def of(path: Any, arm: Any, *, blend: float | None = None) -> Path:
        """A path for an arm.

        Parameters
        ----------
        path
            A `Path`; a SciPy spline, or a function ``path(s, order)`` on [0, 1] (or ``path(s)``, which is
            differentiated by differences); waypoints (k, n); poses of the tool (k, 4, 4), which are joined by straight
            lines of the tool; a `Trajectory`, whose timing is dropped; the name of a CSV file of via points
            (`armdyn.motion.via`).
        blend
            For waypoints: straight lines whose corners are rounded within this distance (rad or m, over all joints); 0
            stops at every corner. By default one cubic spline through all of them.
        """
        n = arm.n
        if isinstance(path, Path):
            return path
        if isinstance(path, str | os.PathLike):
            return Path.of(read_via(path, arm), arm, blend=blend)
        if hasattr(path, "qd") and hasattr(path, "q"):
            return _smooth(_distinct(np.asarray(path.q, float), n, arm))
        if callable(path):
            return Path((_piece(path, n),))
        points = np.asarray(path, float)
        if points.ndim == 3 and points.shape[1:] == (4, 4):
            return _smooth(_of_poses(points, arm))
        points = _distinct(points, n, arm)
        return _smooth(points) if blend is None else _lines(points, blend)


def _distinct(points: np.ndarray, n: int, arm: Any) -> np.ndarray:
    """Waypoints without immediate repetitions; at least two, of the right width, finite, within the joint limits."""
    if points.ndim != 2 or points.shape[1] != n:
        raise InputError(
            f"a path expects waypoints of shape (k, {n}), poses (k, 4, 4), a spline or a function; "
            f"got an array of shape {points.shape}"
        )
    if not np.isfinite(points).all():
        raise InputError(f"waypoint {int(np.argwhere(~np.isfinite(points))[0, 0]) + 1} of the path is not finite")
    limits = arm.limits
    outside = (points < limits[:, 0] - 1e-9) | (points > limits[:, 1] + 1e-9)
    if outside.any():
        k, j = np.argwhere(outside)[0]
        low, high = limits[j]
        allowed = f"{low:g} to {high:g}"
        raise InputError(
            f"waypoint {k + 1} is outside the limits of {arm.joint_names[j]}: {points[k, j]:g}, allowed {allowed}"
        )
    moved = np.abs(np.diff(points, axis=0)).max(axis=1, initial=0.0) > 1e-12
    kept = points if moved.all() else points[np.concatenate([[True], moved])]
    if len(kept) < 2:
        raise InputError(f"a path needs at least two different points, got {len(points)} with {len(kept)} different")
    return kept


def _smooth(points: np.ndarray) -> Path:
    """One cubic spline through the waypoints over the length of the line that joins them, with natural ends."""
    required("scipy")
    from scipy.interpolate import CubicSpline

    along = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1))])
    along /= along[-1]
    spline = natural(along, points) if len(points) <= FEW else CubicSpline(along, points, bc_type="natural")
    return Path((PathPiece(spline, 0.0, 1.0),))


def natural(x: np.ndarray, y: np.ndarray) -> Any:
    """SciPy's natural cubic spline, made in a tenth of the time: few points need no sparse solver and no checks."""
    required("scipy")
    from scipy.interpolate import PPoly

    h = np.diff(x)[:, None]
    slope = np.diff(y, axis=0) / h
    bend = np.zeros_like(y)  # second derivatives
    if len(x) > 2:
        inner = h[1:-1, 0]
        matrix = np.diag(2 * (h[:-1, 0] + h[1:, 0])) + np.diag(inner, 1) + np.diag(inner, -1)
        bend[1:-1] = np.linalg.solve(matrix, 6 * np.diff(slope, axis=0))
    third = np.diff(bend, axis=0) / (6 * h)
    first = slope - h * (2 * bend[:-1] + bend[1:]) / 6
    return PPoly.construct_fast(np.stack([third, bend[:-1] / 2, first, y[:-1]]), x)


def _lines(points: np.ndarray, blend: float) -> Path:
    """Straight lines with corners rounded within `blend`; a piece of its own per line if `blend` is 0."""
    if not np.isfinite(blend) or blend < 0:
        raise InputError(f"blend must be a distance of at least 0 (rad or m), got {blend!r}")
    steps = np.diff(points, axis=0)
    lengths = np.linalg.norm(steps, axis=1)
    turns = steps / lengths[:, None]
    corner = np.r_[True, np.linalg.norm(np.diff(turns, axis=0), axis=1) > 1e-9, True]
    if blend == 0:
        kept = points[corner]
        return Path(tuple(_line(a, b) for a, b in pairwise(kept)))
    return Path((_blended(points[corner], blend),))


def _line(a: np.ndarray, b: np.ndarray) -> PathPiece:
    def curve(s: np.ndarray, order: int) -> np.ndarray:
        if order == 0:
            return np.asarray(a + s[..., None] * (b - a))
        return np.broadcast_to(b - a if order == 1 else np.zeros_like(a), (*s.shape, len(a)))

    return PathPiece(curve, 0.0, 1.0)


def _blended(points: np.ndarray, deviation: float) -> PathPiece:
    """Straight lines and quintic blends as one polynomial spline over the length.

    The blend between two lines of directions d and e, from -r to r around the corner c, is the quintic with the lines'
    positions and directions and no curvature at its ends: c + r (A(w) d + B(w) e) with w = s / r. Its middle is
    5 r / 16 · |e - d| from the corner, which is the largest deviation.
    """
    required("scipy")
    from scipy.interpolate import BPoly

    steps = np.diff(points, axis=0)
    lengths = np.linalg.norm(steps, axis=1)
    ways = steps / lengths[:, None]
    knots, values = [0.0], [[points[0], ways[0], np.zeros_like(points[0])]]
    along = np.r_[0.0, np.cumsum(lengths)]
    for k in range(1, len(points) - 1):
        bend = np.linalg.norm(ways[k] - ways[k - 1])
        reach = min(deviation * 16 / (5 * bend), 0.45 * lengths[k - 1], 0.45 * lengths[k])
        knots += [along[k] - reach, along[k] + reach]
        values += [[points[k] - reach * ways[k - 1], ways[k - 1], np.zeros_like(points[k])]]
        values += [[points[k] + reach * ways[k], ways[k], np.zeros_like(points[k])]]
    knots.append(along[-1])
    values.append([points[-1], ways[-1], np.zeros_like(points[-1])])
    spline = BPoly.from_derivatives(knots, values)
    return PathPiece(lambda s, order: spline(s, nu=order), 0.0, float(along[-1]))


def _of_poses(poses: np.ndarray, arm: Any) -> np.ndarray:
    """Configurations along straight lines of the tool through poses, by inverse kinematics from one to the next."""
    required("scipy")
    from scipy.spatial.transform import Rotation, Slerp

    if len(poses) < 2:
        raise InputError(f"a path needs at least two poses of the tool, got {len(poses)}")
    q = arm.inverse_kinematics(poses[0]).q
    rows: list[np.ndarray] = []
    for k, (first, second) in enumerate(pairwise(poses)):
        turn = Slerp([0.0, 1.0], Rotation.from_matrix([first[:3, :3], second[:3, :3]]))
        for w in np.linspace(0.0, 1.0, STRAIGHT)[1 if k else 0 :]:
            pose = np.eye(4)
            pose[:3, :3], pose[:3, 3] = turn(w).as_matrix(), (1 - w) * first[:3, 3] + w * second[:3, 3]
            found = arm.inverse_kinematics(pose, q)
            if not found:
                raise InputError(
                    f"the path leaves the reach of {arm.name} between poses {k + 1} and {k + 2}, at {100 * w:.0f} % of "
                    f"the way: {found.message}"
                )
            if rows and np.abs(found.q - q).max() > 0.5:
                raise InputError(
                    f"the tool's line between poses {k + 1} and {k + 2} passes a singular configuration at "
                    f"{100 * w:.0f} % of the way: the joints would jump by {np.abs(found.q - q).max():.2f} rad"
                )
            q = found.q
            rows.append(q)
    return _distinct(np.array(rows), arm.n, arm)


def _piece(path: Any, n: int) -> PathPiece:
    """A SciPy spline on its own interval, or a function on [0, 1]."""
    start, end = (float(path.x[0]), float(path.x[-1])) if hasattr(path, "x") else (0.0, 1.0)
    curve = path if _takes_order(path, start) else _differentiated(path, start, end)
    middle = np.asarray(curve(np.array([start, end]), 0), float)
    if middle.shape != (2, n):
        raise InputError(f"a path's function gives (..., {n}) for parameters (...,), got {middle.shape} for (2,)")
    return PathPiece(curve, start, end)


def _takes_order(path: Any, at: float) -> bool:
    try:
        path(np.array([at]), 1)
    except TypeError:
        return False
    return True


def _differentiated(path: Callable[[Any], Any], start: float, end: float) -> Curve:
    """A plain function with derivatives by central differences, one-sided at the ends."""
    h = DIFFERENCE * (end - start)

    def points(s: np.ndarray) -> np.ndarray:
        try:
            return np.asarray(path(s), float)
        except (TypeError, ValueError):  # a function of one number
            return np.array([path(float(x)) for x in s.ravel()], float).reshape(*s.shape, -1)

    def curve(s: np.ndarray, order: int) -> np.ndarray:
        if order == 0:
            return points(s)
        middle = np.clip(s, start + h, end - h)
        before, here, after = points(middle - h), points(middle), points(middle + h)
        second = (before - 2 * here + after) / h**2
        first = (after - before) / (2 * h) + second * (s - middle)[..., None]
        return np.asarray(second if order == 2 else first)

    return curve


def through(paths: Sequence[Any], arm: Any, blend: float | None) -> list[Path]:
    """A path for each entry."""
    return [Path.of(path, arm, blend=blend) for path in paths]
