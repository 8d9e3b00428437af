"""What a simulation was asked for: states as rows and their layout, times, steps, limits, joint data of a loop."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from armdyn.arm import Arm
from armdyn.chain import Chain
from armdyn.errors import InputError
from armdyn.formulations.coordinates import pose_rate
from armdyn.programs.assemble import Options
from armdyn.programs.stepping import POSE, QUATERNION, TWIST
from armdyn.values import real_array

Progress = Callable[[float, float], None]
ROUNDED = 1e-4  # tolerance of a quaternion's length, for numbers written with four digits
LARGEST = 2**31  # numbers stored; guards against a far too short step


@dataclass(frozen=True)
class Layout:
    """The state of a robot with `nq` coordinates and `nv` velocities."""

    nq: int
    nv: int

    @classmethod
    def of(cls, chain: Chain) -> Layout:
        """The layout of a robot's states."""
        return cls(chain.nq, chain.nv)

    @property
    def size(self) -> int:
        """The number of entries of a state."""
        return self.nq + self.nv

    @property
    def floating(self) -> bool:
        """Whether the first seven coordinates are a pose."""
        return self.nq != self.nv

    @property
    def shift(self) -> int:
        """The coordinate of the joint with velocity i has index i + shift."""
        return self.nq - self.nv

    def split(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(q, q̇) of states (..., nq + nv)."""
        return y[..., : self.nq], y[..., self.nq :]

    def beside(self, q: np.ndarray) -> np.ndarray:
        """One coordinate per velocity, (..., nv).

        Those of the joints are their own. Those of a floating base's six velocities are arbitrary entries of its pose,
        which nothing uses: the base has no stops, friction or gains.
        """
        return q[..., self.shift :]

    def rate(self, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """The rate of change of the coordinates."""
        if not self.floating:
            return qd
        pose, twist = (np.moveaxis(x, -1, 0) for x in (q[..., :POSE], qd[..., :TWIST]))
        moved = np.stack(np.broadcast_arrays(*pose_rate(list(pose), list(twist))), axis=-1)
        return np.concatenate([moved, qd[..., TWIST:]], axis=-1)

    def slope(self, y: np.ndarray, qdd: np.ndarray) -> np.ndarray:
        """The rate of change of states with accelerations q̈."""
        q, qd = self.split(y)
        return np.concatenate([self.rate(q, qd), qdd], axis=-1)

    def normalised(self, y: np.ndarray) -> np.ndarray:
        """States (or coordinates) with quaternions of length 1."""
        if not self.floating:
            return y
        y = np.array(y)
        y[..., QUATERNION] /= np.sqrt(np.sum(y[..., QUATERNION] ** 2, axis=-1, keepdims=True))
        return y

    def moved(self, y: np.ndarray, deviations: np.ndarray) -> np.ndarray:
        """States (k, size) beside y (size,): deviations (k, 2 nv) of positions, in the base's axes, and velocities."""
        q, qd = self.split(y)
        positions, velocities = deviations[:, : self.nv], deviations[:, self.nv :]
        by = self.rate(np.broadcast_to(q, (len(positions), self.nq)), positions)
        return self.normalised(np.hstack([q + by, qd + velocities]))

    def kinematics(self, qd: np.ndarray) -> np.ndarray:
        """(nv, nv) matrix K: the rate of a small position deviation x is K x plus the velocity deviation."""
        K = np.zeros((self.nv, self.nv))
        if self.floating:  # the deviation is in axes that turn with the base
            v, w = (np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]]) for x, y, z in (qd[:3], qd[3:6]))
            K[:3, :3] = K[3:6, 3:6] = -w
            K[:3, 3:6] = -v
        return K


def joints_of(chain: Chain, values: list[Any]) -> list[Any]:
    """The joint entries of coordinates, velocities or forces, which follow those of a floating base."""
    return values[len(values) - chain.n :]


def forces_of(chain: Chain, tau: Sequence[Any]) -> list[Any]:
    """Forces along all velocities; with joint forces only, zeros on a floating base."""
    return [0] * (chain.nv - chain.n) + list(tau) if len(tau) == chain.n else list(tau)


def force_rows(chain: Chain, tau: np.ndarray) -> np.ndarray:
    """The same for arrays (..., n) or (..., nv)."""
    if tau.shape[-1:] != (chain.n,) or not chain.floating:
        return tau
    return np.concatenate([np.zeros((*tau.shape[:-1], TWIST)), tau], axis=-1)


def force_sizes(chain: Chain) -> str:
    """How many forces may be given, in words."""
    return (
        f"{chain.n} (the joints') or {chain.nv} (force and moment on the base first)"
        if chain.floating
        else str(chain.n)
    )


@dataclass(frozen=True)
class Stops:
    """The joints' ends of travel, or None, and the coefficient of restitution."""

    lower: tuple[float | None, ...]
    upper: tuple[float | None, ...]
    restitution: float = 0.0

    def has(self, i: int) -> bool:
        """Whether a joint has a stop."""
        return self.lower[i] is not None or self.upper[i] is not None


@dataclass(frozen=True)
class Locks:
    """The joint data that the loop needs: dry friction, stiff terms, motor limits; one number per joint."""

    breakaway: tuple[float, ...]  # 0: no dry friction
    stiffness: tuple[float, ...]  # of the controller, for implicit schemes
    damping: tuple[float, ...]
    viscous: tuple[float, ...]
    effort: tuple[float | None, ...]  # None: no limit
    stops: Stops | None = None
    # Where friction differs from lane to lane (breakaway then only says which joints have dry friction): where viscous
    # friction, and Coulomb friction after it, begin among the constants; what static friction has above Coulomb's.
    friction_at: int | None = None
    excess: tuple[float, ...] = ()

    def can_lock(self, i: int) -> bool:
        """Whether a joint can be held at rest, by dry friction or a stop."""
        return self.breakaway[i] > 0 or (self.stops is not None and self.stops.has(i))


@dataclass(frozen=True)
class Span:
    """`rows` states to store, `every` steps of size h apart, from time t."""

    t: float
    h: float
    every: int
    rows: int


@dataclass(frozen=True)
class Outside:
    """The numbers that follow the drive's inputs: the wrench (6), then the base's acceleration (3).

    Arrays are (size,) or (lanes, 1, 1, size), with axes for steps and stages; a function of time has no lanes.
    """

    wrench: np.ndarray | None = None
    base: np.ndarray | Callable[[float], Any] | None = None

    @classmethod
    def of(cls, wrench: np.ndarray | None, base: Any) -> Outside | None:
        """What acts, None where nothing does."""
        return None if wrench is None and base is None else cls(wrench, base)

    def at(self, t: np.ndarray) -> np.ndarray:
        """The numbers at times t: (..., size), with the lanes before the axes of t."""
        parts = [part for part in (self.wrench, self._acceleration(t)) if part is not None]
        shape = np.broadcast_shapes(t.shape, *(part.shape[:-1] for part in parts))
        return np.concatenate([np.broadcast_to(part, (*shape, part.shape[-1])) for part in parts], axis=-1)

    def _acceleration(self, t: np.ndarray) -> np.ndarray | None:
        if not callable(self.base):
            return self.base
        moments, back = np.unique(t, return_inverse=True)
        rows = [real_array(self.base(float(one)), "base_acceleration") for one in moments]
        if any(row.shape != (3,) or not np.isfinite(row).all() for row in rows):
            wrong = next(i for i, row in enumerate(rows) if row.shape != (3,) or not np.isfinite(row).all())
            raise InputError(
                f"base_acceleration as a function of time returns three finite numbers; at t = {moments[wrong]:g} s it "
                f"returned {rows[wrong].tolist()}"
            )
        return np.stack(rows)[back.reshape(t.shape)]

    def rows(self, t: float, count: int) -> np.ndarray:
        """The numbers at one time for every lane, (count, size)."""
        now = self.at(np.array([[t]]))
        return np.broadcast_to(now.reshape(-1, now.shape[-1]), (count, now.shape[-1]))

    def some(self, lanes: np.ndarray) -> Outside:
        """The same for some lanes."""

        def chosen(x: Any) -> Any:
            return x if x is None or callable(x) or x.ndim == 1 else x[lanes]

        return replace(self, wrench=chosen(self.wrench), base=chosen(self.base))


@dataclass(frozen=True)
class Setup:
    """Checked arguments of a simulation: `state` has one row (q, qd) per lane, `batch` is the shape of the lanes."""

    arm: Arm
    state: np.ndarray  # (count, size)
    batch: tuple[int, ...]
    times: np.ndarray
    spans: tuple[Span, ...]
    step: float
    bounds: np.ndarray  # (n, 2), infinite where there is no limit
    outside: Outside | None  # what acts besides the drive
    stops: Stops | None
    progress: Progress

    @property
    def limited(self) -> bool:
        """Whether any joint has a limit that ends the run."""
        return self.stops is None and bool(np.isfinite(self.bounds).any())

    def inside(self, state: np.ndarray) -> np.ndarray:
        """Whether states (..., size) are finite and within the limits."""
        q = self.joints(state)
        within = ((q >= self.bounds[:, 0]) & (q <= self.bounds[:, 1])).all(axis=-1)
        inside: np.ndarray = np.isfinite(state).all(axis=-1) & within  # methods: NumPy's functions cost one state more
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
    base: Any,
    progress: Progress | None,
) -> Setup:
    """Check and complete the arguments; `batch` is the batch shape of the torques."""
    nq, nv = arm.chain.nq, arm.chain.nv
    q, qd = _positions(arm, q0), _vectors(np.zeros(nv) if qd0 is None else qd0, nv, "qd0")
    w = None if wrench is None else _vectors(wrench, 6, "tool_wrench (force, torque)")
    a = base if base is None or callable(base) else _vectors(base, 3, "base_acceleration")
    shapes = {
        "q0": q.shape[:-1],
        "qd0": qd.shape[:-1],
        "torque": batch,
        "tool_wrench": w.shape[:-1] if w is not None else (),
        "base_acceleration": a.shape[:-1] if isinstance(a, np.ndarray) else (),
    }
    try:
        whole = np.broadcast_shapes(*shapes.values())
    except ValueError:
        batches = ", ".join(f"{name} {shape}" for name, shape in shapes.items() if shape)
        raise InputError(f"the batches do not go together: {batches}") from None
    rows = [np.broadcast_to(x, (*whole, size)).reshape(-1, size) for x, size in ((q, nq), (qd, nv))]
    state = np.concatenate(rows, axis=1)
    moments, spans = schedule(duration, times, step, max(1, state.size))
    stops = _stops(arm, limits)
    bounds = np.array(arm.limits, float) if limits is not False else np.tile([-np.inf, np.inf], (arm.n, 1))
    joints = state[:, nq - arm.n : nq]
    outside = np.any((joints < bounds[:, 0]) | (joints > bounds[:, 1]), axis=0)
    if outside.any():
        names = ", ".join(arm.joint_names[i] for i in np.flatnonzero(outside))
        raise InputError(f"q0 lies outside the limits of {names}; limits=False ignores them")
    outside = Outside.of(*(_per_lane(x, whole) for x in (w, a)))
    return Setup(
        arm, state, whole, moments, spans, step, bounds, outside, stops, progress or (lambda done, total: None)
    )


def _per_lane(x: Any, batch: tuple[int, ...]) -> Any:
    """A batch of vectors with one axis of lanes, and axes for steps and stages."""
    if not isinstance(x, np.ndarray) or x.ndim == 1:
        return x
    return np.broadcast_to(x, (*batch, x.shape[-1])).reshape(-1, 1, 1, x.shape[-1])


def acting(friction: bool, wrench: Any, base: Any) -> Options:
    """The options of programs under what acts besides the drives."""
    return Options(friction=friction, tool_wrench=wrench is not None, base_acceleration=base is not None)


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
    expected = f"{name} must be a positive, finite number{unit}"
    given = value if isinstance(value, int | float | np.number) and not isinstance(value, bool) else math.nan
    try:
        number = float(given)
    except OverflowError:
        raise InputError(f"{expected}, got an integer that is too large") from None
    if not (math.isfinite(number) and number > 0):
        raise InputError(f"{expected}, got {value!r}")
    return number


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
    except OverflowError:
        raise InputError("times must be finite numbers, got an integer that is too large") from None
    if moments.ndim != 1 or len(moments) < 2 or not np.all(np.isfinite(moments)) or np.any(moments[1:] <= moments[:-1]):
        raise InputError(f"times must be at least two finite, increasing numbers, got shape {moments.shape}")
    if not math.isfinite(float(moments[-1]) - float(moments[0])):
        raise InputError(f"times must span a finite number of seconds, got {moments[0]:g} to {moments[-1]:g}")
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
    if not math.isfinite(gap / step):
        raise InputError(f"{gap:g} s cannot be divided into steps of {step:g} s")
    return max(1, math.ceil(gap / step * (1 - 1e-9)))
