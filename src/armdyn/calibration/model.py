"""Residuals of measured poses and their Jacobian with respect to the geometry constants, by compiled kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from armdyn.calibration.closures import Closure
from armdyn.calibration.measured import Array, Poses
from armdyn.chain.geometry import geometry_constants
from armdyn.errors import required

if TYPE_CHECKING:
    from armdyn.arm import Arm


class ToolModel:
    """A serial arm's tool pose as a function of its geometry constants."""

    def __init__(self, arm: Arm) -> None:
        self.arm = arm
        self.constants = geometry_constants(arm.chain)
        self.today = arm.geometry
        self._pose = arm.kernel("pose", parameters="geometry")
        self._slopes = arm.kernel("pose", parameters="geometry", derivatives=("geometry",))

    def pose(self, q: Array, geometry: Array) -> Array:
        """(k, 4, 4) tool poses."""
        return np.asarray(self._pose(q, geometry))

    def slopes(self, q: Array, geometry: Array, poses: Array) -> Array:
        """(k, 6, constants) derivatives: of the tool's origin in the base frame, and its rotation in the tool frame."""
        dT = np.asarray(self._slopes(q, geometry))
        dR = np.einsum("kia,kibg->kabg", poses[:, :3, :3], dT[:, :3, :3])
        turns = np.stack([dR[:, 2, 1], dR[:, 0, 2], dR[:, 1, 0]], axis=1)
        return np.concatenate([dT[:, :3, 3], turns], axis=1)

    def residual(self, poses: Poses, geometry: Array, closure: Closure | None, free: Any) -> tuple[Array, Array]:
        """(k, m) predicted minus measured values, and their (k, m, free constants + closure unknowns) Jacobian.

        For a pose m is 6: a position error along the base's axes, then a rotation vector about the tool's. For a point
        m is 3, for a closure 1.
        """
        T = self.pose(poses.q, geometry)
        J = self.slopes(poses.q, geometry, T)[:, :, free]
        if closure is not None:
            r, by_point, own = closure.residual(T[:, :3, 3])
            return r, np.concatenate([np.einsum("kmi,kig->kmg", by_point, J[:, :3]), own], axis=2)
        assert poses.position is not None
        r = T[:, :3, 3] - poses.position
        if poses.rotation is None:
            return r, J[:, :3]
        turn = rotation_vector(np.einsum("kia,kib->kab", poses.rotation, T[:, :3, :3]))
        J = np.concatenate([J[:, :3], np.einsum("kab,kbg->kag", _right_jacobian_inverse(turn), J[:, 3:])], axis=1)
        return np.concatenate([r, turn], axis=1), J


def rotation_vector(R: Array) -> Array:
    """(k, 3) rotation vectors (axis times angle) of (k, 3, 3) rotations."""
    required("scipy")
    from scipy.spatial.transform import Rotation

    return np.asarray(Rotation.from_matrix(R).as_rotvec())


def _right_jacobian_inverse(v: Array) -> Array:
    """J⁻¹ of log(exp(v) exp(e)) ≈ v + J⁻¹ e: E + ½[v×] + c [v×]², c = 1/θ² - (1 + cos θ)/(2 θ sin θ), 1/12 at θ = 0."""
    angle = np.linalg.norm(v, axis=1)
    safe = np.where(angle < 1e-4, 1.0, angle)
    with np.errstate(all="ignore"):
        c = np.where(angle < 1e-4, 1 / 12, 1 / safe**2 - (1 + np.cos(safe)) / (2 * safe * np.sin(safe)))
    x, y, z = v.T
    zero = np.zeros_like(x)
    cross = np.array([[zero, -z, y], [z, zero, -x], [-y, x, zero]]).transpose(2, 0, 1)
    return np.asarray(np.eye(3) + cross / 2 + c[:, None, None] * (cross @ cross))
