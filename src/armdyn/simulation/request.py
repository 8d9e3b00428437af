"""Checked arguments of a simulation: states as rows, times, steps, limits."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from armdyn.arm import Arm
from armdyn.errors import InputError
from armdyn.programs.stepping import QUATERNION
from armdyn.simulation.implicit_stage import Stops
from armdyn.simulation.state import Layout
from armdyn.simulation.torque import Drive
from armdyn.values import real_array

Progress = Callable[[float, float], None]
ROUNDED = 1e-4  # tolerance of a quaternion's length, for numbers written with four digits
LARGEST = 2**31  # numbers stored; guards against a far too short step


@dataclass(frozen=True)
class Span:
    """`rows` states to store, `every` steps of size h apart, from time t."""

    t: float
    h: float
    every: int
    rows: int


@dataclass(frozen=True)
class Request:
    """A checked request: `state` has one row (q, qd) per lane, `batch` is the shape the lanes came in."""

    arm: Arm
    state: np.ndarray  # (count, size)
    batch: tuple[int, ...]
    times: np.ndarray
    spans: tuple[Span, ...]
    step: float
    bounds: np.ndarray  # (n, 2), infinite where there is no limit
    wrench: np.ndarray | None  # (6,) or (count, 1, 1, 6)
    stops: Stops | None
    progress: Progress

    @property
    def limited(self) -> bool:
        """Whether any joint has a limit that ends the run."""
        return self.stops is None and bool(np.isfinite(self.bounds).any())

    def inside(self, state: np.ndarray) -> np.ndarray:
        """Whether states (..., size) are finite and within the limits."""
        q = self.joints(state)
        within = np.all((q >= self.bounds[:, 0]) & (q <= self.bounds[:, 1]), axis=-1)
        inside: np.ndarray = np.all(np.isfinite(state), axis=-1) & within
        return inside

    @property
    def layout(self) -> Layout:
        """Where positions and velocities lie in a state."""
        return Layout.of(self.arm.chain)

    def joints(self, state: np.ndarray) -> np.ndarray:
        """The joints' positions (..., n) of states."""
        nq = self.layout.nq
        return state[..., nq - self.arm.n : nq]

    def joint_beyond(self, state: np.ndarray) -> str:
        """The name of the joint that is furthest beyond its limit in a state, or nearest to it."""
        q = self.joints(state)
        k = int(np.argmax(np.maximum(q - self.bounds[:, 1], self.bounds[:, 0] - q)))
        return self.arm.joint_names[k]

    def per_lane(self, drive: Drive) -> Drive:
        """A drive with a batch of its own, as one axis of lanes."""
        if not drive.batch:
            return drive
        count = len(self.state)

        def inputs(t: np.ndarray) -> np.ndarray:
            u = drive.inputs(t)
            return np.broadcast_to(u, (*self.batch, *u.shape[-3:])).reshape(count, *u.shape[-3:])

        return Drive(drive.size, inputs, drive.law, (count,), drive.held, drive.knots)


def request(
    arm: Arm,
    q0: Any,
    qd0: Any,
    *,
    batch: tuple[int, ...],
    duration: Any,
    times: Any,
    step: float,
    limits: Any,
    wrench: Any,
    progress: Progress | None,
) -> Request:
    """Check and complete the arguments; `batch` is the batch shape of the torques."""
    nq, nv = arm.chain.nq, arm.chain.nv
    q, qd = _positions(arm, q0), _vectors(np.zeros(nv) if qd0 is None else qd0, nv, "qd0")
    w = None if wrench is None else _vectors(wrench, 6, "tool_wrench (force, torque)")
    shapes = {
        "q0": q.shape[:-1],
        "qd0": qd.shape[:-1],
        "torque": batch,
        "tool_wrench": w.shape[:-1] if w is not None else (),
    }
    try:
        whole = np.broadcast_shapes(*shapes.values())
    except ValueError:
        said = ", ".join(f"{name} {shape}" for name, shape in shapes.items() if shape)
        raise InputError(f"the batches do not go together: {said}") from None
    parts = [np.broadcast_to(x, (*whole, size)).reshape(-1, size) for x, size in ((q, nq), (qd, nv))]
    state = np.concatenate(parts, axis=1)
    moments, spans = schedule(duration, times, step, max(1, state.size))
    stops = _stops(arm, limits)
    bounds = np.array(arm.limits, float) if limits is not False else np.tile([-np.inf, np.inf], (arm.n, 1))
    joints = state[:, nq - arm.n : nq]
    outside = np.any((joints < bounds[:, 0]) | (joints > bounds[:, 1]), axis=0)
    if outside.any():
        names = ", ".join(arm.joint_names[i] for i in np.flatnonzero(outside))
        raise InputError(f"q0 lies outside the limits of {names}; limits=False ignores them")
    if w is not None and w.ndim > 1:
        w = np.broadcast_to(w, (*whole, 6)).reshape(-1, 1, 1, 6)
    return Request(arm, state, whole, moments, spans, step, bounds, w, stops, progress or (lambda done, total: None))


def _stops(arm: Arm, limits: Any) -> Stops | None:
    """Joint limits as stops, if requested and if there are any."""
    if isinstance(limits, bool | np.bool_) or limits == "end":
        return None
    number = 0.0 if limits == "stop" else limits
    if isinstance(number, str) or not isinstance(number, int | float | np.number) or not 0 <= number <= 1:
        raise InputError(
            f'limits must be True or "end", "stop", a coefficient of restitution from 0 to 1, or False; got {limits!r}'
        )
    base = [None] * (arm.chain.nv - arm.n)
    ends = [[*base, *(float(x) if math.isfinite(x) else None for x in side)] for side in np.array(arm.limits, float).T]
    if not any(x is not None for side in ends for x in side):
        return None
    return Stops(tuple(ends[0]), tuple(ends[1]), float(number))


def efforts(arm: Arm) -> tuple[float | None, ...]:
    """The effort limit along every velocity, or None; a floating base has no motors."""
    return (*(None,) * (arm.chain.nv - arm.n), *(joint.limit.effort for joint in arm.joints))


def _positions(arm: Arm, values: Any) -> np.ndarray:
    """Checked initial coordinates, with the quaternion of a floating base normalised."""
    if not arm.floating:
        return _vectors(values, arm.n, "q0")
    q = _vectors(values, arm.chain.nq, "q0 of a floating base (x, y, z, quaternion x, y, z, w, joints)")
    lengths = np.linalg.norm(q[..., QUATERNION], axis=-1)
    if np.any(np.abs(lengths - 1) > ROUNDED):
        worst = float(np.ravel(lengths)[np.argmax(np.abs(lengths - 1))])
        raise InputError(
            "q0 of a floating base is (x, y, z, quaternion x, y, z, w, joints) with a quaternion of length 1; "
            f"got one of length {worst:.6g}"
        )
    return Layout.of(arm.chain).normalised(q)


def _vectors(values: Any, n: int, name: str) -> np.ndarray:
    array = real_array(values, name)
    if array.shape[-1:] != (n,):
        raise InputError(f"{name} must be (..., {n}), got shape {array.shape}")
    if not np.all(np.isfinite(array)):
        raise InputError(f"{name} contains NaN or infinity")
    return array


def positive(value: Any, name: str, unit: str = "") -> float:
    """A positive, finite number, or an error that names it."""
    number = value if isinstance(value, int | float | np.number) and not isinstance(value, bool) else math.nan
    if not (math.isfinite(number) and number > 0):
        raise InputError(f"{name} must be a positive, finite number{unit}, got {value!r}")
    return float(number)


def schedule(duration: Any, times: Any, step: Any, size: int) -> tuple[np.ndarray, tuple[Span, ...]]:
    """The times to store, and equal steps between them; `size` numbers are stored per time."""
    if (duration is None) == (times is None):
        raise InputError("give either duration (seconds) or times (increasing, the first is the start)")
    step = positive(step, "step", " of seconds")
    if duration is not None:
        return _evenly(positive(duration, "duration", " of seconds"), step, size)
    try:
        moments = np.asarray(times, float)
    except (TypeError, ValueError):
        raise InputError(f"times must be numbers, got {times!r}") from None
    if moments.ndim != 1 or len(moments) < 2 or not np.all(np.isfinite(moments)) or np.any(np.diff(moments) <= 0):
        raise InputError(f"times must be at least two finite, increasing numbers, got shape {moments.shape}")
    gaps = np.diff(moments)
    if np.ptp(gaps) <= 1e-9 * gaps[0]:
        gap = float(moments[-1] - moments[0]) / len(gaps)
        every = steps_in(gap, step)
        return moments, (Span(float(moments[0]), gap / every, every, len(gaps)),)
    counts = [steps_in(gap, step) for gap in gaps]
    return moments, tuple(
        Span(float(t), float(gap / k), k, 1) for t, gap, k in zip(moments, gaps, counts, strict=False)
    )


def _evenly(duration: float, step: float, size: int) -> tuple[np.ndarray, tuple[Span, ...]]:
    if duration / step * size > LARGEST:
        raise InputError(
            f"{duration:g} s in steps of {step:g} s would store {duration / step * size:.1e} numbers; "
            "give times= to store fewer, or a longer step"
        )
    whole = math.floor(duration / step * (1 + 1e-12))
    moments = step * np.arange(whole + 1)
    rest = duration - float(moments[-1])
    spans = [Span(0.0, step, 1, whole)] if whole else []
    if rest > 1e-9 * step:
        spans.append(Span(float(moments[-1]), rest, 1, 1))
        moments = np.append(moments, duration)
    return moments, tuple(spans)


def steps_in(gap: float, step: float) -> int:
    """The smallest number of equal steps, none longer than `step`, in a gap."""
    return max(1, math.ceil(gap / step * (1 - 1e-9)))
