"""What a trajectory must keep to: positions, velocities, accelerations, torques, a plane the tool stays above."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from armdyn.arm import Arm
from armdyn.errors import InputError

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Limits:
    """Limits of every joint, the margin already taken off; inf where there is none."""

    arm: Arm
    lower: Array
    upper: Array
    velocity: Array
    acceleration: Array
    effort: Array
    plane: tuple[Array, float] | None
    minimal: Array  # the arm's own minimal parameters: the torque is Y times these, and the drives' part

    @classmethod
    def of(
        cls,
        arm: Arm,
        acceleration: float | Sequence[float] | None,
        plane: tuple[Sequence[float], float] | None,
        margin: float,
    ) -> Limits:
        """The arm's limits; joints without limits get half a turn (or metre) either way and 1 rad/s (or m/s)."""
        low, high = arm.limits[:, 0], arm.limits[:, 1]
        low, high = np.where(np.isfinite(low), low, -np.pi), np.where(np.isfinite(high), high, np.pi)
        middle, half = (low + high) / 2, (high - low) / 2
        velocity = np.where(np.isfinite(arm.velocity_limits), arm.velocity_limits, 1.0)
        most = np.full(arm.n, np.inf) if acceleration is None else np.broadcast_to(acceleration, (arm.n,)).astype(float)
        if (most <= 0).any() or (velocity <= 0).any() or (half <= 0).any():
            raise InputError("limits of velocity and acceleration must be positive, and lower < upper")
        ground = None
        if plane is not None:
            normal = np.asarray(plane[0], dtype=float)
            if normal.shape != (3,) or not np.linalg.norm(normal) > 0:
                raise InputError(f"the plane is (normal, distance) with a normal of three numbers, got {plane!r}")
            ground = (normal / np.linalg.norm(normal), float(plane[1]))
        values = np.array(arm.minimal_parameters.values)
        effort = margin * arm.effort_limits
        return cls(
            arm,
            middle - margin * half,
            middle + margin * half,
            margin * velocity,
            margin * most,
            effort,
            ground,
            values,
        )

    def _torque(self, Y: Array, qd: Array, qdd: Array) -> Array:
        viscous = np.array([float(j.viscous) for j in self.arm.joints])
        coulomb = np.array([float(j.coulomb) for j in self.arm.joints])
        drives = self.arm.rotor_inertias * qdd + viscous * qd + coulomb * np.tanh(qd / 0.01)
        return np.asarray(Y @ self.minimal + drives)

    def room(self, q: Array, qd: Array, qdd: Array, middle: Array) -> float:
        """By what the motion about `middle` may grow before a position, velocity or acceleration limit is met."""
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
            Y = np.asarray(self.arm.regressor(q, qd, qdd))
            if (np.abs(self._torque(Y, qd, qdd)) > slack * self.effort).any():
                return False
        if self.plane is not None:
            normal, distance = self.plane
            return bool((np.asarray(self.arm.pose(q))[:, :3, 3] @ normal >= distance - 1e-9).all())
        return True

    def penalty(self, q: Array, qd: Array, qdd: Array, Y: Array) -> tuple[float, Array, Array, Array, Array]:
        """Mean square of what is over the limits (in their units), its slopes in q, q̇, q̈, and in Y for torques."""
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
        tau = self._torque(Y, qd, qdd)
        over = np.maximum(np.abs(tau) / self.effort - 1, 0)
        total += float((over**2).sum()) / N
        dtau = 2 * over * np.sign(tau) / np.where(np.isfinite(self.effort), self.effort, 1.0) / N
        dqd = dqd + dtau * np.array([float(j.viscous) for j in self.arm.joints])
        dqdd = dqdd + dtau * self.arm.rotor_inertias
        if self.plane is not None:
            normal, distance = self.plane
            below = np.maximum(distance - np.asarray(self.arm.pose(q))[:, :3, 3] @ normal, 0)
            total += float((below**2).sum()) / N
            dq = dq - 2 * below[:, None] / N * np.einsum("k,nkj->nj", normal, np.asarray(self.arm.jacobian(q))[:, :3])
        return total, dq, dqd, dqdd, dtau[..., None] * self.minimal
