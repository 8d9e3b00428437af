"""Inverse kinematics: damped least squares from several starts at once, never a silent miss.

Source: Levenberg-Marquardt with the damping in proportion to the squared error, after T. Sugihara,
"Solvability-unconcerned inverse kinematics by the Levenberg-Marquardt method", IEEE Trans. Robotics 27(5),
2011. The damping vanishes with the error, so the last steps are Gauss-Newton's and the residual
goes down to rounding. Joint limits are kept by projection: a joint at its limit that wants to go
further is left out of the step.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from armdyn.errors import InputError

Arrays = Callable[..., Any]
_STEPS = 120  # of one search
_STARTS = 48  # searches side by side, after the first one from q0 alone
_LONGEST = 1.0  # rad or m a joint may go in one step


@dataclass(frozen=True)
class InverseKinematics:
    """A configuration, whether it reaches the pose, and by how much it misses."""

    q: Any
    converged: bool
    message: str
    position_error: float  # metres
    orientation_error: float  # radians
    starts: int  # how many searches it took

    def __bool__(self) -> bool:
        return self.converged


@dataclass(frozen=True)
class Task:
    """What to solve: the arm's functions, the wanted pose, the box of joint limits, what counts as reached."""

    pose: Arrays
    jacobian: Arrays
    wanted: Any
    lower: Any
    upper: Any
    size: float  # of the arm, metres: what one radian is worth
    orientation: bool = True

    def miss(self, q: Any) -> tuple[Any, Any]:
        """Position and rotation vector still to go, (..., 3) each, in base axes."""
        T = self.pose(q)
        go = self.wanted[:3, 3] - T[..., :3, 3]
        if not self.orientation:
            return go, np.zeros_like(go)
        return go, rotation_vector(self.wanted[:3, :3] @ np.swapaxes(T[..., :3, :3], -1, -2))

    def error(self, q: Any) -> Any:
        """The six errors, (..., 6), metres made radians by the arm's size."""
        go, turn = self.miss(q)
        return np.concatenate([go / self.size, turn], axis=-1)

    def slope(self, q: Any) -> Any:
        """The Jacobian in the same units."""
        J = np.array(self.jacobian(q))
        J[..., :3, :] /= self.size
        if not self.orientation:
            J[..., 3:, :] = 0
        return J


def solve(task: Task, q0: Any, tolerance: float, seed: int = 0) -> InverseKinematics:
    """The configuration nearest to q0 that reaches the pose, or the one that misses it least."""
    starts = 1
    q = _search(task, np.clip(q0, task.lower, task.upper)[None])
    if not _reached(task, q, tolerance).any():
        rng = np.random.default_rng(seed)
        low = np.where(np.isfinite(task.lower), task.lower, np.minimum(q0, task.upper) - math.pi)
        high = np.where(np.isfinite(task.upper), task.upper, np.maximum(q0, task.lower) + math.pi)
        q = np.concatenate([q, _search(task, rng.uniform(low, high, (_STARTS, len(q0))))])
        starts += _STARTS
    q = _unwound(task, q, q0)
    reached = _reached(task, q, tolerance)
    if reached.any():
        q = q[reached]
        best = q[np.argmin(np.linalg.norm(q - q0, axis=-1))]
    else:
        best = q[np.argmin(np.linalg.norm(task.error(q), axis=-1))]
    return _result(task, best, bool(reached.any()), starts, tolerance)


def _search(task: Task, q: Any) -> Any:
    """Levenberg-Marquardt from every row of q at once."""
    e = task.error(q)
    damping = np.full(len(q), 1.0)
    for _ in range(_STEPS):
        E = np.einsum("ki,ki->k", e, e)
        if (E < 1e-30).all():
            break
        J = task.slope(q)
        pull = np.einsum("kij,ki->kj", J, e)
        stuck = ((q <= task.lower) & (pull < 0)) | ((q >= task.upper) & (pull > 0))
        J = np.where(stuck[:, None, :], 0.0, J)
        A = np.swapaxes(J, -1, -2) @ J
        A += (damping * E + 1e-15)[:, None, None] * np.eye(q.shape[-1])
        step = np.linalg.solve(A, np.where(stuck, 0.0, pull)[..., None])[..., 0]
        step *= (_LONGEST / np.maximum(_LONGEST, np.abs(step).max(axis=-1)))[:, None]
        trial = np.clip(q + step, task.lower, task.upper)
        e_trial = task.error(trial)
        better = np.einsum("ki,ki->k", e_trial, e_trial) < E
        q = np.where(better[:, None], trial, q)
        e = np.where(better[:, None], e_trial, e)
        damping = np.where(better, np.maximum(damping * 0.3, 1e-3), np.minimum(damping * 4.0, 1e12))
    return q


def _reached(task: Task, q: Any, tolerance: float) -> Any:
    go, turn = task.miss(q)
    return (np.linalg.norm(go, axis=-1) <= tolerance) & (np.linalg.norm(turn, axis=-1) <= tolerance)


def _unwound(task: Task, q: Any, q0: Any) -> Any:
    """The same pose with the turns of joints without limits as near to q0 as they can be."""
    free = np.isinf(task.lower) & np.isinf(task.upper)
    turns = np.round((q - q0) / math.tau) * math.tau
    near = np.where(free, q - turns, q)
    same = np.linalg.norm(task.error(near) - task.error(q), axis=-1) < 1e-9  # a sliding joint does not wind
    return np.where(same[:, None], near, q)


def _result(task: Task, q: Any, reached: bool, starts: int, tolerance: float) -> InverseKinematics:
    go, turn = (float(np.linalg.norm(x)) for x in task.miss(q))
    if reached:
        message = f"reached within {go:.1e} m and {turn:.1e} rad"
    else:
        where = "within the joint limits " if np.isfinite(task.lower).any() or np.isfinite(task.upper).any() else ""
        message = (
            f"not reached: the best of {starts} searches {where}misses the pose by {go:.3g} m and {turn:.3g} rad "
            f"(tolerance {tolerance:g})"
        )
    return InverseKinematics(q, reached, message, go, turn, starts)


def rotation_vector(R: Any) -> Any:
    """The rotation vectors (..., 3) of rotation matrices (..., 3, 3); exact to rounding at 0 and at π."""
    trace = np.trace(R, axis1=-2, axis2=-1)
    d = np.diagonal(R, axis1=-2, axis2=-1)
    # 4 × (outer product of the quaternion (w, x, y, z) with itself), whose best column gives the quaternion.
    K = np.empty((*R.shape[:-2], 4, 4))
    K[..., 0, 0] = 1 + trace
    for i, (j, k) in enumerate(((1, 2), (2, 0), (0, 1))):
        K[..., i + 1, i + 1] = 1 + 2 * d[..., i] - trace
        K[..., 0, i + 1] = K[..., i + 1, 0] = R[..., k, j] - R[..., j, k]
        K[..., j + 1, k + 1] = K[..., k + 1, j + 1] = R[..., j, k] + R[..., k, j]
    best = np.argmax(np.diagonal(K, axis1=-2, axis2=-1), axis=-1)
    quaternion = np.take_along_axis(K, best[..., None, None], axis=-1)[..., 0]
    quaternion = quaternion * np.where(quaternion[..., :1] < 0, -1.0, 1.0)
    half = np.linalg.norm(quaternion[..., 1:], axis=-1, keepdims=True)
    angle = 2 * np.arctan2(half, quaternion[..., :1])
    # For no turn at all the ratio is 2 w / w: the vector part is then 0 and any finite factor does.
    return quaternion[..., 1:] * np.divide(angle, half, out=np.zeros_like(half), where=half > 0)


def wanted_pose(pose: Any) -> Any:
    """A (4, 4) pose, checked."""
    T = np.asarray(pose, dtype=float)
    if T.shape != (4, 4):
        raise InputError(f"pose must have the shape (4, 4), got {T.shape}")
    R = T[:3, :3]
    if not np.isfinite(T).all() or not np.allclose(T[3], [0, 0, 0, 1], atol=1e-12):
        raise InputError(f"pose must be finite with the last row 0 0 0 1, got {T.tolist()}")
    off = np.abs(R @ R.T - np.eye(3)).max()
    if off > 1e-6 or np.linalg.det(R) < 0:
        raise InputError(f"the upper left of pose must be a rotation; R Rᵀ differs from the identity by {off:.1e}")
    return T
