"""Inverse kinematics: damped least squares from several starting points; a missed pose is always reported.

Source: Levenberg-Marquardt with the damping in proportion to the squared error, after T. Sugihara,
"Solvability-unconcerned inverse kinematics by the Levenberg-Marquardt method", IEEE Trans. Robotics 27(5),
2011. The damping vanishes with the error, so the last steps are Gauss-Newton's and the residual
goes down to rounding. Joint limits are kept by projection: a joint at its limit that would exceed it
is left out of the step.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from armdyn.chain import Chain
from armdyn.errors import InputError
from armdyn.values import ComparedByValue, real_array

Arrays = Callable[..., Any]
_STEPS = 120  # the largest number of iterations of one search
_STARTS = 48  # parallel searches if the one from q0 fails
_LONGEST = 1.0  # the largest change of a joint in one step, rad or m


@dataclass(frozen=True, eq=False)
class InverseKinematics(ComparedByValue):
    """Configurations, whether they reach their poses, and the remaining errors; arrays for a batch of poses."""

    q: Any
    converged: Any  # bool, or (...,) of them
    message: str
    position_error: Any  # metres
    orientation_error: Any  # radians
    starts: Any  # how many searches it took

    def __bool__(self) -> bool:
        return bool(np.all(self.converged))


@dataclass(frozen=True)
class Task:
    """The problem to solve: the arm's functions, the joint limits, and the length equivalent to one radian."""

    pose: Arrays
    jacobian: Arrays
    lower: Any
    upper: Any
    size: float  # of the arm, metres: the length equivalent to one radian
    orientation: bool = True

    def miss(self, wanted: Any, q: Any) -> tuple[Any, Any]:
        """The remaining position and rotation-vector errors, (..., 3) each, in base axes."""
        T = self.pose(q)
        go = wanted[..., :3, 3] - T[..., :3, 3]
        if not self.orientation:
            return go, np.zeros_like(go)
        return go, rotation_vector(wanted[..., :3, :3] @ np.swapaxes(T[..., :3, :3], -1, -2))

    def error(self, wanted: Any, q: Any) -> Any:
        """The six errors, (..., 6), with metres converted to radians by the arm's size."""
        go, turn = self.miss(wanted, q)
        return np.concatenate([go / self.size, turn], axis=-1)

    def slope(self, q: Any) -> Any:
        """The Jacobian in the same units."""
        J = np.array(self.jacobian(q))
        J[..., :3, :] /= self.size
        if not self.orientation:
            J[..., 3:, :] = 0
        return J


def inverse(task: Task, pose: Any, q0: Any, tolerance: float, seed: int = 0) -> InverseKinematics:
    """Configurations near q0 that reach the poses (..., 4, 4), or those with the smallest error."""
    wanted, n = wanted_pose(pose), len(task.lower)
    start = np.clip(np.zeros(n), task.lower, task.upper) if q0 is None else real_array(q0, "q0")
    if start.shape[-1:] != (n,) or not np.isfinite(start).all():
        raise InputError(f"q0 must be {n} finite numbers, got {q0!r}")
    try:
        batch = np.broadcast_shapes(wanted.shape[:-2], start.shape[:-1])
    except ValueError:
        raise InputError(f"poses {wanted.shape} and q0 {start.shape} do not broadcast together") from None
    wanted, start = np.broadcast_to(wanted, (*batch, 4, 4)), np.broadcast_to(start, (*batch, n))
    rows, starts = wanted.reshape(-1, 4, 4), start.reshape(-1, n)
    q = _unwound(task, rows, _search(task, rows, np.clip(starts, task.lower, task.upper)), starts)
    searches = np.ones(len(q), dtype=int)
    for k in np.flatnonzero(~_reached(task, rows, q, tolerance)):
        q[k] = _many_starts(task, rows[k], q[k], starts[k], tolerance, seed)
        searches[k] += _STARTS
    return _result(task, wanted, q.reshape(*batch, n), searches.reshape(batch), tolerance)


def _many_starts(task: Task, wanted: Any, q: Any, q0: Any, tolerance: float, seed: int) -> Any:
    """The best of many searches from points within the joint limits, for poses not reached from q0."""
    rng = np.random.default_rng(seed)
    low = np.where(np.isfinite(task.lower), task.lower, np.minimum(q0, task.upper) - math.pi)
    high = np.where(np.isfinite(task.upper), task.upper, np.maximum(q0, task.lower) + math.pi)
    many = np.concatenate([q[None], _search(task, wanted, rng.uniform(low, high, (_STARTS, len(q0))))])
    many = _unwound(task, wanted, many, q0)
    reached = _reached(task, wanted, many, tolerance)
    if reached.any():
        many = many[reached]
        return many[np.argmin(np.linalg.norm(many - q0, axis=-1))]
    return many[np.argmin(np.linalg.norm(task.error(wanted, many), axis=-1))]


def _search(task: Task, wanted: Any, q: Any) -> Any:
    """Levenberg-Marquardt from every row of q at once."""
    e = task.error(wanted, q)
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
        e_trial = task.error(wanted, trial)
        better = np.einsum("ki,ki->k", e_trial, e_trial) < E
        q = np.where(better[:, None], trial, q)
        e = np.where(better[:, None], e_trial, e)
        damping = np.where(better, np.maximum(damping * 0.3, 1e-3), np.minimum(damping * 4.0, 1e12))
    return q


def _reached(task: Task, wanted: Any, q: Any, tolerance: float) -> Any:
    go, turn = task.miss(wanted, q)
    return (np.linalg.norm(go, axis=-1) <= tolerance) & (np.linalg.norm(turn, axis=-1) <= tolerance)


def _unwound(task: Task, wanted: Any, q: Any, q0: Any) -> Any:
    """The same pose with unlimited joints moved by full turns as near to q0 as possible."""
    free = np.isinf(task.lower) & np.isinf(task.upper)
    turns = np.round((q - q0) / math.tau) * math.tau
    near = np.where(free, q - turns, q)
    same = np.linalg.norm(task.error(wanted, near) - task.error(wanted, q), axis=-1) < 1e-9  # sliding does not wind
    return np.where(same[:, None], near, q)


def _result(task: Task, wanted: Any, q: Any, starts: Any, tolerance: float) -> InverseKinematics:
    go, turn = (np.linalg.norm(x, axis=-1) for x in task.miss(wanted, q))
    reached = (go <= tolerance) & (turn <= tolerance)
    where = "within the joint limits " if np.isfinite(task.lower).any() or np.isfinite(task.upper).any() else ""
    if q.ndim > 1:
        message = f"{int(reached.sum())} of {reached.size} poses reached"
        return InverseKinematics(q, reached, message, go, turn, starts)
    if reached:
        message = f"reached within {go:.1e} m and {turn:.1e} rad"
    else:
        message = (
            f"not reached: the best of {int(starts)} searches {where}misses the pose by {go:.3g} m and {turn:.3g} rad "
            f"(tolerance {tolerance:g})"
        )
    return InverseKinematics(q, bool(reached), message, float(go), float(turn), int(starts))


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
    """Poses (..., 4, 4), checked."""
    try:
        T = real_array(pose, "pose")
    except InputError as error:
        raise InputError(f"pose must be an array of numbers of the shape (..., 4, 4): {error}") from None
    if T.shape[-2:] != (4, 4):
        raise InputError(f"pose must have the shape (4, 4) or (..., 4, 4), got {T.shape}")
    R = T[..., :3, :3]
    if not np.isfinite(T).all() or not np.allclose(T[..., 3, :], [0, 0, 0, 1], atol=1e-12):
        raise InputError(f"pose must be finite with the last row 0 0 0 1, got {T.tolist()}")
    off = np.abs(R @ np.swapaxes(R, -1, -2) - np.eye(3)).max(initial=0.0)
    if off > 1e-6 or (np.linalg.det(R) < 0).any():
        raise InputError(f"the upper left of pose must be a rotation; R Rᵀ differs from the identity by {off:.1e}")
    return T


def reach(chain: Chain) -> float:
    """An upper bound of a robot's reach, in metres; 1 for a robot without lengths."""
    joints = sum(abs(float(x)) for joint in chain.joints for x in (joint.b, joint.d, joint.shift))
    return joints + sum(abs(float(x)) for x in chain.tool.p) or 1.0
