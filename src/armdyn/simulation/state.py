"""The layout of a state y = (q, q̇), and the kinematics of a floating base's pose.

A floating base has seven coordinates and six velocities. Its quaternion is integrated as four numbers and normalised
after every step. The exact motion preserves the length, so a method keeps its order under this projection onto the unit
quaternions (Hairer, Lubich and Wanner 2006, section IV.4; docs/adr/0025-floating-simulation.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from armdyn.chain import Chain
from armdyn.formulations.coordinates import pose_rate
from armdyn.programs.stepping import POSE, QUATERNION, TWIST


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
