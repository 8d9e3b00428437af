"""Loop-closure constraints on the tool's origin: planes that it touches, or a fixed point at a measured distance.

Each closure gives the residuals of the tool origins, and their derivatives with respect to the origins and to its own
unknowns. The unknowns are increments: a step of zero leaves the closure unchanged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from armdyn.calibration.measured import Array, Poses


@dataclass(frozen=True, eq=False)
class Planes:
    """Every tool origin lies on one of several planes, with three unknowns per plane: two tilts and an offset."""

    which: Any  # (k,)
    normals: Array  # (m, 3)
    offsets: Array  # (m,)

    @classmethod
    def through(cls, points: Array, which: Any) -> Planes:
        """Fit each plane to its points by least squares."""
        normals, offsets = [], []
        for k in range(int(which.max()) + 1):
            centre = points[which == k].mean(axis=0)
            normal = np.linalg.svd(points[which == k] - centre)[2][-1]
            normals.append(normal)
            offsets.append(normal @ centre)
        return cls(which, np.array(normals), np.array(offsets))

    @property
    def unknowns(self) -> int:
        """Three per plane."""
        return 3 * len(self.offsets)

    def _tangents(self) -> Array:
        return np.stack([np.linalg.svd(normal[None])[2][1:] for normal in self.normals])  # (m, 2, 3)

    def residual(self, points: Array) -> tuple[Array, Array, Array]:
        """(k, 1) distances from the planes, with (k, 1, 3) and (k, 1, unknowns) derivatives."""
        normal, tangent = self.normals[self.which], self._tangents()[self.which]
        r = np.einsum("ki,ki->k", normal, points) - self.offsets[self.which]
        own = np.zeros((len(points), self.unknowns))
        rows = np.arange(len(points))
        for j in range(2):
            own[rows, 3 * self.which + j] = np.einsum("ki,ki->k", tangent[:, j], points)
        own[rows, 3 * self.which + 2] = -1.0
        return r[:, None], normal[:, None], own[:, None]

    def moved(self, step: Array) -> Planes:
        """The planes after a step in their unknowns."""
        each = step.reshape(-1, 3)
        normals = self.normals + np.einsum("mj,mji->mi", each[:, :2], self._tangents())
        size = np.linalg.norm(normals, axis=1)
        return Planes(self.which, normals / size[:, None], (self.offsets + each[:, 2]) / size)

    def of(self, poses: Poses) -> Planes:
        """The same planes for other poses."""
        return Planes(poses.plane, self.normals, self.offsets)


@dataclass(frozen=True, eq=False)
class BallBar:
    """Every tool origin is at a measured distance from one fixed point, whose three coordinates are unknown."""

    distance: Array  # (k,)
    centre: Array  # (3,)
    unknowns = 3

    @classmethod
    def around(cls, points: Array, distance: Array) -> BallBar:
        """Find the centre whose distances to the points best match the measured ones."""
        # |p|² - d² = 2 p·c - |c|²: linear in the centre and in |c|².
        A = np.column_stack([2 * points, -np.ones(len(points))])
        centre = np.linalg.lstsq(A, (points**2).sum(axis=1) - distance**2, rcond=None)[0][:3]
        bar = cls(distance, centre)
        for _ in range(20):
            r, _, own = bar.residual(points)
            bar = bar.moved(np.asarray(-np.linalg.lstsq(own[:, 0], r[:, 0], rcond=None)[0], float))
        return bar

    def residual(self, points: Array) -> tuple[Array, Array, Array]:
        """(k, 1) errors of the distance, with (k, 1, 3) derivatives with respect to the points and to the centre."""
        away = points - self.centre
        size = np.linalg.norm(away, axis=1)
        direction = away / np.maximum(size, 1e-12)[:, None]
        return (size - self.distance)[:, None], direction[:, None], -direction[:, None]

    def moved(self, step: Array) -> BallBar:
        """The ball bar after a step of its centre."""
        return BallBar(self.distance, self.centre + step)

    def of(self, poses: Poses) -> BallBar:
        """The same centre for other poses."""
        assert poses.distance is not None
        return BallBar(poses.distance, self.centre)


Closure = Planes | BallBar


def closure_of(poses: Poses, points: Array) -> Closure | None:
    """The closure of the measurements, fitted to the arm's own tool positions; None for poses and points."""
    if poses.plane is not None:
        return Planes.through(points, poses.plane)
    if poses.distance is not None:
        return BallBar.around(points, poses.distance)
    return None
