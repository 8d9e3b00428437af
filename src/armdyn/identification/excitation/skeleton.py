"""A robot as line segments between the origins of its link frames and its tips, for distance checks."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armdyn.algebra.cached import cached_property
from armdyn.arm import Arm
from armdyn.files import Frame

Array = NDArray[np.float64]


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
