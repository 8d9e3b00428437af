"""Reference motions: functions of time with exact first and second derivatives.

A reference is called with times of any shape and returns (q, qd, qdd), each (..., n).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from armdyn.errors import ComputationError, InputError

if TYPE_CHECKING:
    from armdyn.arm import Arm

Motion = tuple[np.ndarray, np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Reference:
    """A motion: `duration` in seconds, and a function of time that returns (q, qd, qdd)."""

    name: str
    duration: float
    motion: Callable[[np.ndarray], Motion]
    periodic: bool = False

    def __call__(self, t: Any) -> Motion:
        """Position, velocity and acceleration at times `t`; at rest before 0 and after the end unless periodic."""
        t = np.asarray(t, float)
        if self.periodic:
            return self.motion(t)
        q, qd, qdd = self.motion(np.clip(t, 0.0, self.duration))
        moving = ((t >= 0.0) & (t <= self.duration))[..., None]
        return q, np.where(moving, qd, 0.0), np.where(moving, qdd, 0.0)


def _ends(start: Any, end: Any, duration: float) -> tuple[np.ndarray, np.ndarray]:
    a, b = np.asarray(start, float), np.asarray(end, float)
    if a.shape != b.shape or a.ndim != 1:
        raise InputError(f"start and end must be vectors of one length, got shapes {a.shape} and {b.shape}")
    if not (np.isfinite(duration) and duration > 0):
        raise InputError(f"duration must be positive and finite, got {duration}")
    return a, b


def quintic(start: Any, end: Any, duration: float) -> Reference:
    """From rest to rest along a fifth-order polynomial: velocity and acceleration are zero at both ends."""
    a, b = _ends(start, end, duration)
    return Reference("quintic", float(duration), partial(_quintic, a, b, duration))


# The motions are functions of modules with their data before the time, not closures, so that references pickle.


def _quintic(a: np.ndarray, b: np.ndarray, duration: float, t: np.ndarray) -> Motion:
    s = (t / duration)[..., None]
    p = s**3 * (10 - 15 * s + 6 * s**2)
    v = 30 * s**2 * (1 - s) ** 2 / duration
    w = 60 * s * (1 - s) * (1 - 2 * s) / duration**2
    return a + (b - a) * p, (b - a) * v, (b - a) * w


def trapezoidal(start: Any, end: Any, duration: float, ramp: float = 0.25) -> Reference:
    """From rest to rest with a constant velocity between two ramps, each `ramp` of the duration."""
    a, b = _ends(start, end, duration)
    if not 0 < ramp <= 0.5:
        raise InputError(f"ramp must lie in (0, 0.5], got {ramp}")
    return Reference("trapezoidal", float(duration), partial(_trapezoidal, a, b, duration, ramp))


def _trapezoidal(a: np.ndarray, b: np.ndarray, duration: float, ramp: float, t: np.ndarray) -> Motion:
    s = (t / duration)[..., None]
    top = 1 / (1 - ramp)  # the cruising speed of a unit distance in unit time
    up, down = s < ramp, s > 1 - ramp
    p = np.where(up, top * s**2 / (2 * ramp), top * (s - ramp / 2))
    p = np.where(down, 1 - top * (1 - s) ** 2 / (2 * ramp), p)
    v = top * np.where(up, s / ramp, np.where(down, (1 - s) / ramp, 1.0)) / duration
    w = top / ramp * (np.where(up, 1.0, 0.0) - np.where(down, 1.0, 0.0)) / duration**2
    return a + (b - a) * p, (b - a) * v, (b - a) * w


def fourier(center: Any, sine: Any, cosine: Any, frequency: float, duration: float | None = None) -> Reference:
    """Q = center + Σ_k sine_k sin(kωt) + cosine_k cos(kωt), with ω = 2π·frequency and k = 1, 2, …; periodic."""
    c, a, b = np.asarray(center, float), np.asarray(sine, float), np.asarray(cosine, float)
    if a.shape != b.shape or a.ndim != 2 or a.shape[1:] != c.shape:
        raise InputError(f"sine and cosine must be (harmonics, {c.size}), got {a.shape} and {b.shape}")
    if not frequency > 0:
        raise InputError(f"frequency must be positive (Hz), got {frequency}")
    w = 2 * np.pi * frequency * np.arange(1, len(a) + 1)[:, None]
    motion = partial(_fourier, c, a, b, w)
    return Reference("fourier", float(duration if duration is not None else 1 / frequency), motion, periodic=True)


def _fourier(c: np.ndarray, a: np.ndarray, b: np.ndarray, w: np.ndarray, t: np.ndarray) -> Motion:
    phase = w * t[..., None, None]
    s, k = np.sin(phase), np.cos(phase)
    q = c + (a * s + b * k).sum(-2)
    return q, (w * (a * k - b * s)).sum(-2), -(w**2 * (a * s + b * k)).sum(-2)


def straight_line(arm: Arm, start: Any, end: Any, rotation: Any, speed: float, q0: Any = None) -> Reference:
    """The tool along a straight line at constant speed with constant orientation.

    `start` and `end` are points in the base frame, m; `rotation` is a 3 × 3 matrix, `speed` in m/s. Positions come from
    inverse kinematics solved to machine precision, velocities and accelerations from the Jacobian and its rate.
    """
    a, b = np.asarray(start, float), np.asarray(end, float)
    R = np.asarray(rotation, float)
    if a.shape != (3,) or b.shape != (3,) or R.shape != (3, 3):
        raise InputError(f"expected points (3,) and a rotation (3, 3), got {a.shape}, {b.shape}, {R.shape}")
    length = float(np.linalg.norm(b - a))
    if not (speed > 0 and length > 0):
        raise InputError(f"speed and length must be positive, got {speed} m/s and {length} m")
    duration = length / speed
    knots = np.linspace(0.0, duration, 201)
    path = _knots(arm, a, (b - a) / duration, R, knots, q0)
    return Reference("straight line", duration, partial(_along_line, arm, a, (b - a) / duration, R, knots, path))


def _along_line(
    arm: Arm, start: np.ndarray, v: np.ndarray, R: np.ndarray, knots: np.ndarray, path: np.ndarray, t: np.ndarray
) -> Motion:
    """The motion of `straight_line`; `path` holds the configurations at the times `knots`."""
    guess = np.stack([np.interp(t, knots, path[:, i]) for i in range(arm.n)], axis=-1)
    q = _newton(arm, start + np.multiply.outer(t, v), R, guess)
    twist = np.concatenate([v, np.zeros(3)])
    inverse = np.linalg.pinv(arm.jacobian(q))
    qd = inverse @ twist
    rate = (arm.jacobian_rate(q, qd) @ qd[..., None])[..., 0]
    return q, qd, -(inverse @ rate[..., None])[..., 0]


def _knots(arm: Arm, a: np.ndarray, v: np.ndarray, R: np.ndarray, t: np.ndarray, q0: Any) -> np.ndarray:
    """Configurations along the line, each solved from the previous one to stay on the same branch."""
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = R, a
    first = arm.inverse_kinematics(pose, q0)
    if not first.converged:
        raise ComputationError(f"the start of the line cannot be reached: {first.message}")
    rows = [_newton(arm, a, R, np.asarray(first.q))]
    for moment in t[1:]:
        rows.append(_newton(arm, a + v * moment, R, rows[-1]))
    return np.array(rows)


def _newton(arm: Arm, point: np.ndarray, R: np.ndarray, q: np.ndarray, rounds: int = 30) -> np.ndarray:
    """Solve pose(q) = (R, point) from a close guess; a whole batch at once."""
    best, least = q, np.inf
    for _ in range(rounds):
        pose = arm.pose(q)
        turn = R @ np.swapaxes(pose[..., :3, :3], -1, -2)
        skew = turn - np.swapaxes(turn, -1, -2)
        axial = np.stack([skew[..., 2, 1], skew[..., 0, 2], skew[..., 1, 0]], axis=-1)
        error = np.concatenate([point - pose[..., :3, 3], axial / 2], axis=-1)
        size = float(np.max(np.abs(error), initial=0.0))
        if size < least:
            best, least = q, size
        elif least < 1e-12:
            return best
        q = q + (np.linalg.pinv(arm.jacobian(q)) @ error[..., None])[..., 0]
    if least > 1e-10:
        raise ComputationError(f"the line leaves the arm's reach or meets a singularity (residual {least:.1e})")
    return best
