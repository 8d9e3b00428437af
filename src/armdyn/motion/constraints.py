"""The limits of a motion along a path, as intervals of the path's acceleration u for each place and speed x.

Rows are linear in u and z = x²: lower(x) ≤ α u + β z ≤ upper(x). Their ends hold whatever else depends on the speed:
gravity, friction, motor curves. Load-dependent friction multiplies the load by 1 ± k, so its inverse moves the ends as
well. Norms, of the tool's acceleration or of a grasped body's force, are |A u + B z + C| ≤ r.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from armdyn.errors import InputError
from armdyn.motion.compiled import LimitRows
from armdyn.values import ComparedByValue

FLAT = 1e-9  # of a row's largest coefficient: below it, the row says nothing on u
STANDSTILL = 1e-6  # of the largest speed: friction at standstill is that of the slowest forward motion


@dataclass(frozen=True)
class Grip:
    """A body held between two pads: it must neither slip nor push them open.

    The pads press along `axis` of the tool's frame with `force` each; friction holds 2 · `friction` · `force` across.
    """

    mass: float = field(metadata={"unit": "kg"})
    force: float = field(metadata={"unit": "N"})
    friction: float = 0.3
    com: tuple[float, float, float] = (0.0, 0.0, 0.0)
    axis: tuple[float, float, float] = (0.0, 1.0, 0.0)


@dataclass(frozen=True, eq=False)
class MotionLimits(ComparedByValue):
    """What a motion must not exceed; None takes the arm's own limit, or no limit where it has none.

    `torque` is (n,) for ± that, (n, 2), or a function of the joint speeds (..., n) that gives (..., n, 2): a motor's
    curve. `power` bounds the sum over joints of torque × speed, with friction: what one supply gives all motors. `jerk`
    and `torque_rate` bound how fast accelerations and torques of the joints change (one number or (n,)).
    """

    torque: Any = field(default=None, metadata={"unit": "N m or N"})
    velocity: Any = field(default=None, metadata={"unit": "rad/s or m/s"})
    acceleration: Any = field(default=None, metadata={"unit": "rad/s² or m/s²"})
    tool_speed: float | None = field(default=None, metadata={"unit": "m/s"})
    tool_acceleration: float | None = field(default=None, metadata={"unit": "m/s²"})
    power: float | None = field(default=None, metadata={"unit": "W"})
    jerk: Any = field(default=None, metadata={"unit": "rad/s³ or m/s³"})
    torque_rate: Any = field(default=None, metadata={"unit": "N m/s or N/s"})
    grip: Grip | None = None


@dataclass(frozen=True)
class RateLimits:
    """What changes may be: of the joints' accelerations, and of the torques; infinite where there is no limit."""

    jerk: np.ndarray
    torque: np.ndarray

    @staticmethod
    def of(limits: MotionLimits, arms: Sequence[Any], friction: bool) -> RateLimits | None:
        """None if there are no such limits."""
        if limits.jerk is None and limits.torque_rate is None:
            return None
        if limits.torque_rate is not None and friction and any(_loses(arm) for arm in arms):
            raise InputError("torque_rate cannot be combined with load-dependent friction")
        n, given = arms[0].n, {"jerk": limits.jerk, "torque_rate": limits.torque_rate}
        jerk, torque = (_positive(np.inf if value is None else value, n, name) for name, value in given.items())
        return RateLimits(jerk, torque)


def _loses(arm: Any) -> bool:
    return any(float(j.forces.load_friction) for j in arm.joints)


@dataclass(frozen=True)
class LimitArrays:
    """Torque, velocity and acceleration limits as arrays."""

    torque: Any  # (n, 2), or a function of the speeds
    velocity: np.ndarray
    acceleration: np.ndarray

    @staticmethod
    def of(limits: MotionLimits, arm: Any) -> LimitArrays:
        """The limits given, the arm's own where none is."""
        n = arm.n
        torque = limits.torque
        if not callable(torque):
            torque = arm.effort_limits if torque is None else torque
            torque = np.asarray(torque, float)
            torque = np.stack([-torque, torque], axis=-1) if torque.ndim < 2 else torque
            torque = np.broadcast_to(torque, (n, 2)) if torque.shape in ((2,), (n, 2)) else torque
            if torque.shape != (n, 2) or not (torque[:, 0] <= torque[:, 1]).all():
                raise InputError(f"torque limits are ({n},) or ({n}, 2), lower then upper; got shape {torque.shape}")
        if not callable(torque) and (torque[:, 0] == torque[:, 1]).any():
            stuck = int(np.argmax(torque[:, 0] == torque[:, 1]))
            raise InputError(
                f"the torque limits of {arm.joint_names[stuck]} are both {torque[stuck, 1]:g}: there is no torque to "
                "move it with; lock the joint, or give limits=MotionLimits(torque=...)"
            )
        velocity = _positive(arm.velocity_limits if limits.velocity is None else limits.velocity, n, "velocity")
        acceleration = _positive(np.inf if limits.acceleration is None else limits.acceleration, n, "acceleration")
        for name in ("tool_speed", "tool_acceleration", "power"):
            value = getattr(limits, name)
            if value is not None and not value > 0:
                raise InputError(f"{name} must be above 0, got {value!r}")
        unlimited = not callable(torque) and np.isinf(torque).all() and np.isinf(acceleration).all()
        if unlimited and limits.tool_acceleration is None and limits.power is None:
            raise InputError(
                f"nothing limits the acceleration of {arm.name}: its file has no effort limits; give "
                "limits=MotionLimits(torque=...), acceleration= or tool_acceleration="
            )
        return LimitArrays(torque, velocity, acceleration)


def _positive(value: Any, n: int, name: str) -> np.ndarray:
    try:
        array = np.asarray(value, float)
    except (TypeError, ValueError):
        array = np.array(np.nan)
    array = np.full(n, array) if array.ndim == 0 else array
    if array.shape != (n,) or not (array > 0).all():
        raise InputError(f"{name} limits are one number or ({n},), above 0; got {value!r}")
    return array


Norm = tuple[np.ndarray, np.ndarray, np.ndarray, float]  # A, B, C and r of |A u + B z + C| <= r


@dataclass(frozen=True)
class Tool:
    """What the tool's motion is limited by: its speed, its acceleration, and the force on a body in its grip."""

    rate: np.ndarray  # (lanes, points) the tool's way per s
    norms: list[Norm]
    names: list[str]

    @staticmethod
    def along(arm: Any, limits: MotionLimits, q: np.ndarray, dq: np.ndarray, ddq: np.ndarray) -> Tool:
        """Along paths."""
        if limits.tool_speed is None and limits.tool_acceleration is None and limits.grip is None:
            return Tool(np.zeros(q.shape[:2]), [], [])
        norms: list[Norm] = []
        names: list[str] = []
        J, dJ = arm.jacobian(q), arm.jacobian_rate(q, dq)
        A = np.einsum("...ij,...j->...i", J, dq)
        B = np.einsum("...ij,...j->...i", J, ddq) + np.einsum("...ij,...j->...i", dJ, dq)
        if limits.tool_acceleration is not None:
            norms.append((A[..., :3], B[..., :3], np.zeros_like(A[..., :3]), limits.tool_acceleration))
            names.append("tool acceleration")
        if limits.grip is not None:
            norms += _grip(arm, limits.grip, q, A, B)
            names += ["slip in the grip", "force on the grip"]
        return Tool(np.linalg.norm(A[..., :3], axis=-1), norms, names)


def _grip(arm: Any, grip: Grip, q: np.ndarray, A: np.ndarray, B: np.ndarray) -> list[Norm]:
    """The force that accelerates the body and carries its weight, split along and across the pads' axis."""
    R = arm.pose(q)[..., :3, :3]
    lever = np.einsum("...ij,j->...i", R, np.asarray(grip.com, float))
    spin, turn = A[..., 3:], B[..., 3:]
    A = A[..., :3] + np.cross(spin, lever)
    B = B[..., :3] + np.cross(turn, lever) + np.cross(spin, np.cross(spin, lever))
    axis = np.asarray(grip.axis, float) / np.linalg.norm(grip.axis)
    parts = [
        grip.mass * np.einsum("...ji,...j->...i", R, x)
        for x in (A, B, np.broadcast_to(-np.array(arm.gravity), B.shape))
    ]
    along = [(x @ axis)[..., None] for x in parts]
    A, B, C = (x - y * axis for x, y in zip(parts, along, strict=True))
    return [(A, B, C, 2 * grip.friction * grip.force), (along[0], along[1], along[2], grip.force)]


def _speed_limits(
    velocity: np.ndarray, dq: np.ndarray, tool_speed: float | None, tool_rate: np.ndarray | None
) -> np.ndarray:
    """(lanes, points) the largest z that joint and tool speeds allow."""
    with np.errstate(divide="ignore"):
        by_joint = (velocity / np.abs(dq)).min(axis=-1) ** 2
        by_tool = np.inf if tool_speed is None or tool_rate is None else (tool_speed / tool_rate) ** 2
    most: np.ndarray = np.minimum(by_joint, by_tool)
    return most


def along(arms: Sequence[Any], limits: MotionLimits, curve: np.ndarray, friction: bool, fine: int) -> LimitRows | None:
    """The limits as `compiled` takes them, at points and `fine` - 1 places between two; curve is (3, lanes, points, n).

    None where friction is neither affine in the speed nor a kernel's.
    """
    q, dq, ddq = curve
    ends, still = LimitArrays.of(limits, arms[0]), np.zeros(q.shape[-1])
    torques = np.empty((3, len(arms), *q.shape))
    for k, arm in enumerate(arms):
        arm.inverse_dynamics(q, still, dq, out=torques[0, k])
        arm.inverse_dynamics(q, dq, ddq, out=torques[1, k])
        arm.gravity_load(q, out=torques[2, k])
    tool = Tool.along(arms[0], limits, q, dq, ddq)
    norms = np.zeros((len(tool.norms), 3, *q.shape[:2], 3))
    for k, (*parts, _) in enumerate(tool.norms):
        for i, part in enumerate(parts):
            norms[k, i, ..., : part.shape[-1]] = part
    fastest = _speed_limits(ends.velocity, dq[:, ::fine], limits.tool_speed, tool.rate[:, ::fine])
    rubs = friction and any(_rubs(arm) for arm in arms)
    kernels = all(hasattr(arm.joint_forces, "compiled") for arm in arms)
    drag = np.zeros((2, len(arms), *q.shape) if rubs else (2, 1, 1, *q.shape[1:]))
    affine = rubs and all(_affine(arm, q, dq, drag[:, k]) for k, arm in enumerate(arms))
    if rubs and not kernels and not affine:
        return None
    drag *= affine
    return LimitRows(
        q, dq, ddq, fine, torques, drag, affine, ends.torque, ends.velocity,
        ends.acceleration if np.isfinite(ends.acceleration).any() else None, fastest, norms,
        np.array([radius for *_, radius in tool.norms]), tool.rate if limits.tool_speed is not None else None,
        limits.tool_speed, tuple(arm.joint_forces for arm in arms) if rubs and kernels else (),
    )  # fmt: skip


def _affine(arm: Any, q: np.ndarray, dq: np.ndarray, out: np.ndarray) -> bool:
    """Whether friction and other joint forces are constant + viscous · ṡ at every place, and these two, to `out`.

    So it is with viscous and Coulomb friction and springs, not with Stribeck's.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        most = (arm.velocity_limits / np.abs(dq)).min(axis=-1)[..., None]
    most = np.where(np.isfinite(most), most, 1.0)
    load = np.zeros(q.shape[-1])
    shares = np.array([1.0, STANDSTILL, 0.5, 0.1, 1e-3])
    forces = [arm.joint_forces(q, dq * (share * most), load) for share in shares]
    out[1] = (forces[0] - forces[1]) / (most * (shares[0] - shares[1]))
    out[0] = forces[0] - out[1] * most
    size = max(float(np.abs(forces[0]).max()), 1e-300)
    line = [np.abs(out[0] + out[1] * (share * most) - force).max() for share, force in zip(shares, forces, strict=True)]
    return bool(max(line) <= 1e-12 * size)


def _rubs(arm: Any) -> bool:
    """Whether the arm has any joint forces, such as friction."""
    q, qd = (np.full(len(arm.joint_names), value) for value in (0.9, 0.7))
    return bool(np.any(arm.joint_forces(q, qd, 0 * q)))


class Constraints:
    """The limits at the points of a grid, q and its derivatives being (lanes, points, n)."""

    def __init__(
        self, arms: Sequence[Any], limits: MotionLimits, q: np.ndarray, dq: np.ndarray, ddq: np.ndarray, friction: bool
    ) -> None:
        self.arms, self.limits, self.q, self.dq, self.ddq = tuple(arms), limits, q, dq, ddq
        self.friction = friction
        arm, still = arms[0], np.zeros_like(q)
        self.ends = LimitArrays.of(limits, arm)
        self.names: list[str] = []
        alpha: list[np.ndarray] = []
        beta: list[np.ndarray] = []
        self.gravity: list[np.ndarray] = []
        self.loss: list[np.ndarray] = []
        for one in self.arms:
            g = one.gravity_load(q)
            a = one.inverse_dynamics(q, still, dq) - g
            b = one.inverse_dynamics(q, dq, ddq) - g
            alpha.append(a)
            beta.append(b)
            self.gravity.append(g)
            self.loss.append(np.array([float(j.forces.load_friction) if friction else 0.0 for j in one.joints]))
            self.names += [f"torque of {name}" for name in one.joint_names]
        if np.isfinite(self.ends.acceleration).any():
            alpha.append(dq)
            beta.append(ddq)
            self.names += [f"acceleration of {name}" for name in arm.joint_names]
        if limits.power is not None:
            if any(loss.any() for loss in self.loss):
                raise InputError("a limit of power cannot be combined with load-dependent friction")
            for a, b in zip(alpha[: len(arms)], beta[: len(arms)], strict=True):
                self.names.append("power")
                alpha.append((a * dq).sum(-1, keepdims=True))
                beta.append((b * dq).sum(-1, keepdims=True))
        self.alpha, self.beta = np.concatenate(alpha, -1), np.concatenate(beta, -1)
        self.size = np.abs(self.alpha).max(axis=1) + np.finfo(float).tiny  # (lanes, rows) to compare with
        tool = Tool.along(arm, limits, q, dq, ddq)
        self.norms, self.tool_rate = tool.norms, tool.rate
        self.names += tool.names
        self.fastest = self.speed_limits()
        self.tight = np.zeros((2, *self.alpha.shape))  # by how much the rows' ends are drawn in
        self.tight_norms = np.zeros((*q.shape[:2], len(self.norms)))
        self.fixed_ends: tuple[np.ndarray, np.ndarray] | None = None
        self.room = np.full(self.alpha.shape, np.inf)
        self.slowest = STANDSTILL * np.sqrt(np.where(np.isfinite(self.fastest), self.fastest, 1.0))
        low, high = self.as_lanes().row_ends(0, np.zeros((q.shape[0] * q.shape[1], 1)))
        low, high = low.reshape(self.alpha.shape), high.reshape(self.alpha.shape)
        self.room = (high - low) / 2  # half the range of every row at rest
        if not friction and not callable(self.ends.torque) and limits.power is None:
            self.fixed_ends = low, high  # they do not depend on the speed

    def speed_limits(self) -> np.ndarray:
        """(lanes, points) the largest z that joint and tool speeds allow."""
        return _speed_limits(self.ends.velocity, self.dq, self.limits.tool_speed, self.tool_rate)

    def row_ends(self, k: Any, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper ends of the rows at points `k` and speeds x (..., that is lanes and candidates)."""
        if self.fixed_ends is not None:
            below, above = (_spread(ends[:, k]) for ends in self.fixed_ends)
            return below + _spread(self.tight[0][:, k]), above - _spread(self.tight[1][:, k])
        q, dq = _spread(self.q[:, k]), _spread(self.dq[:, k])
        x = np.maximum(x, self.slowest[:, k, None])
        qd = dq * x[..., None]
        torque = self.ends.torque(qd) if callable(self.ends.torque) else self.ends.torque
        low, high, held = [], [], []
        for one, g, loss in zip(self.arms, self.gravity, self.loss, strict=True):
            weight = _spread(g[:, k])
            force = one.joint_forces(q, qd, np.zeros_like(qd)) if self.friction else np.zeros_like(qd)
            side = np.sign(qd) * loss
            held.append(weight + force)
            low.append(_load(torque[..., 0] - force, side) - weight)
            high.append(_load(torque[..., 1] - force, side) - weight)
        if np.isfinite(self.ends.acceleration).any():
            most = np.broadcast_to(self.ends.acceleration, qd.shape)
            low.append(-most)
            high.append(most)
        if self.limits.power is not None:
            for weight in held:
                high.append(self.limits.power / x[..., None] - (weight * dq).sum(-1, keepdims=True))
                low.append(np.full_like(high[-1], -np.inf))
        below, above = np.concatenate(low, -1), np.concatenate(high, -1)
        return below + _spread(self.tight[0][:, k]), above - _spread(self.tight[1][:, k])

    def interval(self, k: int, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The interval of u at point k for z (lanes, candidates); lower above upper where nothing is possible."""
        x = np.sqrt(np.maximum(z, 0))
        low, high = self.row_ends(k, x)
        alpha, fixed = _spread(self.alpha[:, k]), _spread(self.beta[:, k]) * z[..., None]
        flat = np.abs(alpha) <= FLAT * _spread(self.size)
        with np.errstate(divide="ignore", invalid="ignore"):
            one, two = (low - fixed) / alpha, (high - fixed) / alpha
        lower, upper = np.where(alpha > 0, one, two), np.where(alpha > 0, two, one)
        possible = (fixed >= low) & (fixed <= high)
        lower = np.where(flat, np.where(possible, -np.inf, np.inf), lower).max(-1)
        upper = np.where(flat, np.where(possible, np.inf, -np.inf), upper).min(-1)
        for i, (A, B, C, most) in enumerate(self.norms):
            first, second = _ball(A[:, k], B[:, k], C[:, k], most - self.tight_norms[:, k, i], z)
            lower, upper = np.maximum(lower, first), np.minimum(upper, second)
        return lower, upper

    def overrun(self, u: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """By how much rows (2, lanes, points, rows) and norms (lanes, points, norms) are exceeded; negative: the slack.

        The third array holds the same relative to half the allowed range and to the radius: rows, norms and speed.
        """
        shape, x = z.shape, np.sqrt(np.maximum(z, 0))
        low, high = (ends.reshape(*shape, -1) for ends in self.as_lanes().row_ends(0, x.reshape(-1, 1)))
        value = self.alpha * u[..., None] + self.beta * z[..., None]
        rows = np.stack([low - value, value - high])
        norms = [np.linalg.norm(A * u[..., None] + B * z[..., None] + C, axis=-1) for A, B, C, _ in self.norms]
        most = np.array([radius for *_, radius in self.norms])
        balls = np.stack(norms, -1) - most if norms else np.zeros((*shape, 0))
        half = np.where(np.isfinite(high - low), np.abs(high - low) / 2, np.maximum(np.abs(high), 1e-300))
        with np.errstate(invalid="ignore", divide="ignore"):
            relative = np.where(np.isfinite(rows.max(0)), rows.max(0) / half, -np.inf)
        with np.errstate(invalid="ignore"):
            fast = np.where(z > 0, z / self.fastest - 1, -1.0)[..., None]
        return rows, balls, np.concatenate([relative, balls / most if norms else balls, fast / 2], -1)

    def as_lanes(self) -> Constraints:
        """The same limits with one lane per point, so that all points are looked at in one call."""
        alone = copy(self)
        for name in ("q", "dq", "alpha", "beta", "slowest"):
            array = getattr(self, name)
            setattr(alone, name, array.reshape(-1, 1, *array.shape[2:]))
        alone.gravity = [g.reshape(-1, 1, g.shape[-1]) for g in self.gravity]
        alone.tight = np.zeros((2, *alone.alpha.shape))
        if self.fixed_ends is not None:
            low, high = self.fixed_ends
            alone.fixed_ends = low.reshape(alone.alpha.shape), high.reshape(alone.alpha.shape)
        return alone


def _spread(values: np.ndarray) -> np.ndarray:
    """(lanes, m) for every candidate speed, (lanes, 1, m)."""
    return values[:, None, :]


def _load(force: np.ndarray, side: np.ndarray) -> np.ndarray:
    """The load L whose force with load-dependent friction, L (1 + side · sign L), is `force`."""
    return force / (1 + side * np.sign(force)) if np.any(side) else force


def _ball(
    A: np.ndarray, B: np.ndarray, C: np.ndarray, radius: np.ndarray, z: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The interval of u in which |A u + B z + C| ≤ radius."""
    a, c = _spread(A), _spread(B) * z[..., None] + _spread(C)
    square, middle = (a * a).sum(-1), (a * c).sum(-1)
    rest = (c * c).sum(-1) - radius[:, None] ** 2
    root = middle**2 - square * rest
    with np.errstate(divide="ignore", invalid="ignore"):
        half = np.sqrt(root)
        low, high = (-middle - half) / square, (-middle + half) / square
    free = square <= 1e-30
    low = np.where(free, np.where(rest <= 0, -np.inf, np.inf), np.where(root >= 0, low, np.inf))
    high = np.where(free, np.where(rest <= 0, np.inf, -np.inf), np.where(root >= 0, high, -np.inf))
    return low, high
