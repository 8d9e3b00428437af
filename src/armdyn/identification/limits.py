"""The limits of a trajectory: positions, velocities, accelerations, torques, a floor, distances between links.

A robot as line segments between the origins of its link frames and its tips, for distance checks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armdyn.arm import Arm
from armdyn.errors import InputError
from armdyn.files.description import Frame
from armdyn.values import cached_property

Array = NDArray[np.float64]
STEP = 1e-6  # rad or m, of finite differences of the violations of floor and clearance


@dataclass(frozen=True, eq=False)
class Limits:
    """The limits of every joint, reduced by the margin; inf if there is none."""

    arm: Arm
    lower: Array
    upper: Array
    velocity: Array
    acceleration: Array
    effort: Array
    plane: tuple[Array, float] | None
    clearance: float | None  # m between the axes of links that are not neighbours
    minimal: Array  # the arm's minimal parameters: the torque is Y times these, plus rotors and friction

    @classmethod
    def of(
        cls,
        arm: Arm,
        acceleration: float | Sequence[float] | None,
        plane: tuple[Sequence[float], float] | None,
        margin: float,
        clearance: float | None = None,
    ) -> Limits:
        """The arm's limits; joints without limits get half a turn (or metre) either way and 1 rad/s (or m/s)."""
        low, high = arm.limits[:, 0], arm.limits[:, 1]
        low, high = np.where(np.isfinite(low), low, -np.pi), np.where(np.isfinite(high), high, np.pi)
        middle, half = (low + high) / 2, (high - low) / 2
        velocity = np.where(np.isfinite(arm.velocity_limits), arm.velocity_limits, 1.0)
        most = np.full(arm.n, np.inf) if acceleration is None else np.broadcast_to(acceleration, (arm.n,)).astype(float)
        if (most <= 0).any() or (velocity <= 0).any() or (half <= 0).any():
            raise InputError("limits of velocity and acceleration must be positive, and lower < upper")
        if clearance is not None and not clearance > 0:
            raise InputError(f"the clearance between links must be positive, got {clearance}")
        ground = None
        if plane is not None:
            normal = np.asarray(plane[0], dtype=float)
            if normal.shape != (3,) or not np.linalg.norm(normal) > 0:
                raise InputError(f"the plane is (normal, distance) with a normal of three numbers, got {plane!r}")
            ground = (normal / np.linalg.norm(normal), float(plane[1]))
        lower, upper = middle - margin * half, middle + margin * half
        values, effort = np.array(arm.minimal_parameters.values), margin * arm.effort_limits
        return cls(arm, lower, upper, margin * velocity, margin * most, effort, ground, clearance, values)

    def torque(self, Y: Array, qd: Array, qdd: Array) -> Array:
        """Torques of the arm including rotors and friction; Y is the regressor of the rigid body."""
        return np.asarray(Y @ self.minimal + self.arm.rotor_inertias * qdd + self._friction(qd))

    def _friction(self, qd: Array) -> Array:
        viscous = np.array([float(j.viscous) for j in self.arm.joints])
        coulomb = np.array([float(j.coulomb) for j in self.arm.joints])
        return np.asarray(viscous * qd + coulomb * np.tanh(qd / 0.01))

    def room(self, q: Array, qd: Array, qdd: Array, middle: Array) -> float:
        """The factor by which the motion about `middle` can grow within the position, velocity, acceleration limits."""
        up, down = q - middle[:, None], middle[:, None] - q
        shares = [
            (up / np.maximum(self.upper - middle, 1e-12)[:, None]).max(),
            (down / np.maximum(middle - self.lower, 1e-12)[:, None]).max(),
            (np.abs(qd) / self.velocity).max(),
            (np.abs(qdd) / self.acceleration).max(),
        ]
        return 1 / max(float(max(shares)), 1e-12)

    def hold(self, q: Array, qd: Array, qdd: Array) -> bool:
        """Whether every limit holds at every sample."""
        q, qd, qdd = (s.reshape(-1, self.arm.n) for s in (q, qd, qdd))
        slack = 1 + 1e-9
        if (q < self.lower - 1e-9).any() or (q > self.upper + 1e-9).any() or (np.abs(qd) > slack * self.velocity).any():
            return False
        if (np.abs(qdd) > slack * self.acceleration).any():
            return False
        if np.isfinite(self.effort).any():
            tau = np.asarray(self.arm.inverse_dynamics(q, qd, qdd)) + self._friction(qd)
            if (np.abs(tau) > slack * self.effort).any():
                return False
        return not (self.intrusion(q) > 1e-18).any()

    @cached_property
    def skeleton(self) -> Skeleton:
        """The line segments that are checked against the floor and one another."""
        return Skeleton(self.arm)

    def intrusion(self, q: Array) -> Array:
        """The summed squared violations of floor and clearance, (N,)."""
        out = np.zeros(len(q))
        if self.plane is None and self.clearance is None:
            return out
        points = self.skeleton.points(q)
        if self.plane is not None:
            normal, distance = self.plane
            out += (np.maximum(distance - points[:, self.skeleton.moving] @ normal, 0) ** 2).sum(axis=1)
        if self.clearance is not None:
            out += self.skeleton.nearness(points, self.clearance)
        return out

    def penalty(self, q: Array, qd: Array, qdd: Array, Y: Array) -> tuple[float, Array, Array, Array, Array]:
        """The mean squared relative violation of the limits, and its gradients with respect to q, q̇, q̈ and Y."""
        N = len(q)
        half = (self.upper - self.lower) / 2
        over_q = (np.maximum(q - self.upper, 0) - np.maximum(self.lower - q, 0)) / half
        total, dq = float((over_q**2).sum()) / N, 2 * over_q / half / N
        parts = []
        for x, most in ((qd, self.velocity), (qdd, self.acceleration)):
            over = np.maximum(np.abs(x) / most - 1, 0)
            total += float((over**2).sum()) / N
            parts.append(2 * over * np.sign(x) / np.where(np.isfinite(most), most, 1.0) / N)
        dqd, dqdd = parts
        tau = self.torque(Y, qd, qdd)
        over = np.maximum(np.abs(tau) / self.effort - 1, 0)
        total += float((over**2).sum()) / N
        dtau = 2 * over * np.sign(tau) / np.where(np.isfinite(self.effort), self.effort, 1.0) / N
        dqd = dqd + dtau * np.array([float(j.viscous) for j in self.arm.joints])
        dqdd = dqdd + dtau * self.arm.rotor_inertias
        if self.plane is not None or self.clearance is not None:
            inside = self.intrusion(q)
            total += float(inside.sum()) / N
            near = np.flatnonzero(inside > 0)  # elsewhere the slope is 0
            for j, step in enumerate(STEP * np.eye(self.arm.n) if len(near) else ()):
                dq[near, j] += (self.intrusion(q[near] + step) - self.intrusion(q[near] - step)) / (2 * STEP) / N
        return total, dq, dqd, dqdd, dtau[..., None] * self.minimal


@dataclass(frozen=True, eq=False)
class Skeleton:
    """Points are the origins of the base and of the link frames, and the tips; a segment ends at each but the base."""

    arm: Arm

    @cached_property
    def _tips(self) -> tuple[Frame | None, ...]:
        """The frames at the tips; None stands for the tool if there is one tip."""
        if len(self.arm.chain.tips) == 1:
            return (None,)
        return tuple(frame for frame in self.arm.frames if frame.name in self.arm.tips)

    @cached_property
    def parents(self) -> list[int]:
        """The start point of the segment that ends at each point; -1 for the base."""
        bodies = [parent + 1 for parent in self.arm.parents]
        tool_link = self.arm.chain.tool_carrier
        return [-1, *bodies, *(tool_link if tip is None else tip.link for tip in self._tips)]

    def points(self, q: Array) -> Array:
        """The positions of the points in the base frame, (samples, points, 3)."""
        links = np.asarray(self.arm.dh_poses(q))[..., :3, 3]
        options: list[dict[str, Any]] = [{} if tip is None else {"frame": tip.name} for tip in self._tips]
        tips = [np.asarray(self.arm.pose(q, **at))[:, None, :3, 3] for at in options]
        return np.concatenate([np.zeros((len(q), 1, 3)), links, *tips], axis=1)

    @cached_property
    def moving(self) -> list[int]:
        """The points from the third joint of every branch on: those of the first two joints hardly change height."""
        return [k for k in range(len(self.parents)) if len(self._path(k)) > 3]

    @cached_property
    def separations(self) -> dict[tuple[int, int], float]:
        """The length in metres along the robot between two segments, by their end points; 0 for neighbours."""
        return {(a, b): self._between(a, b) for a, b in combinations(range(1, len(self.parents)), 2)}

    def _path(self, point: int) -> list[int]:
        """The points from this one to the base."""
        path = [point]
        while self.parents[path[-1]] >= 0:
            path.append(self.parents[path[-1]])
        return path

    def _between(self, a: int, b: int) -> float:
        above_a, above_b = self._path(a), self._path(b)
        if a in above_b:
            segments = above_b[1 : above_b.index(a)]
        elif b in above_a:
            segments = above_a[1 : above_a.index(b)]
        else:
            segments = sorted(set(above_a[1:]) ^ set(above_b[1:]))
        joints = self.arm.chain.floats.joints
        return sum(float(np.hypot(float(joints[k - 1].b), float(joints[k - 1].d))) for k in segments)

    def nearness(self, points: Array, clearance: float) -> Array:
        """The sum of squared violations of the clearance between segments: (samples,).

        Segments close to a common point are always near one another, so only separated segments are counted.
        """
        out, start = np.zeros(len(points)), self.parents
        for a, b in (pair for pair, length in self.separations.items() if length > 2 * clearance):
            near = segment_distance(points[:, start[a]], points[:, a], points[:, start[b]], points[:, b])
            out += np.maximum(clearance - near, 0) ** 2
        return out


def segment_distance(a: Array, b: Array, c: Array, d: Array) -> Array:
    """Distance between the segments ab and cd, (N, 3) each (Ericson, Real-Time Collision Detection, 5.1.9)."""
    u, v, w = b - a, d - c, a - c
    uu, vv, uv = ((x * y).sum(-1) for x, y in ((u, u), (v, v), (u, v)))
    uw, vw = (u * w).sum(-1), (v * w).sum(-1)
    safe_u, safe_v = np.maximum(uu, 1e-18), np.maximum(vv, 1e-18)
    cross = uu * vv - uv**2
    s = np.where(cross > 1e-12 * safe_u * safe_v, np.clip((uv * vw - vv * uw) / np.maximum(cross, 1e-300), 0, 1), 0.0)
    t = np.clip((uv * s + vw) / safe_v, 0, 1)
    s = np.clip((uv * t - uw) / safe_u, 0, 1)
    return np.asarray(np.linalg.norm(w + s[:, None] * u - t[:, None] * v, axis=-1))
