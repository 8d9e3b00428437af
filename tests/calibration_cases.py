"""Arms with known errors, and measurements of them with known noise."""

from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation

from armdyn.arm import Arm
from armdyn.calibration import Poses
from armdyn.calibration.closures import BallBar, Planes
from armdyn.calibration.fit import on_closure
from armdyn.calibration.model import ToolModel

NOISE = (1e-4, 4e-4)  # metres, radians


def with_errors(arm: Arm, rng: np.random.Generator, size: float = 1e-3, but: tuple[str, ...] = ()) -> Arm:
    """The arm with every geometry constant (but those of some kinds) off by a millimetre or milliradian or so."""
    off = [0.0 if name.split("_")[0] in but else 1.0 for name in arm.geometry_names]
    return arm.with_geometry(arm.geometry + rng.normal(0, size, len(off)) * off)


def configurations(arm: Arm, rng: np.random.Generator, count: int) -> np.ndarray:
    """Within the limits, and half a metre either way for sliding joints."""
    reach = np.array([2.6 if joint.revolute else 0.3 for joint in arm.joints])
    low, high = np.maximum(arm.limits[:, 0], -reach), np.minimum(arm.limits[:, 1], reach)
    return rng.uniform(low, high, (count, arm.n))


def measured(true: Arm, q: np.ndarray, rng: np.random.Generator, kind: str = "pose", noise=NOISE) -> Poses:
    """What a device with this noise says of the tool."""
    T = np.array(true.kernel("pose", backend="numpy")(q))
    T[:, :3, 3] += rng.normal(0, noise[0], (len(q), 3))
    T[:, :3, :3] = T[:, :3, :3] @ Rotation.from_rotvec(rng.normal(0, noise[1], (len(q), 3))).as_matrix()
    return Poses.of(q, T if kind == "pose" else T[:, :3, 3])


def on_plane(true: Arm, rng: np.random.Generator, count: int, planes: int = 1, noise: float = NOISE[0]) -> Poses:
    """Configurations of the true arm that touch planes across its workspace, each missed by the noise."""
    model, q = ToolModel(true), configurations(true, rng, count)
    which = np.arange(count) % planes
    points = true.pose(q)[:, :3, 3]
    normals = Rotation.random(planes, random_state=3).as_matrix()[:, 2]
    offsets = np.array([normals[k] @ points[which == k].mean(axis=0) for k in range(planes)])
    q = on_closure(model, q, model.today, Planes(which, normals, offsets))
    r = Planes(which, normals, offsets).residual(true.pose(q)[:, :3, 3])[0][:, 0]
    good = np.abs(r) < 1e-9
    planes_missed = Planes(
        np.arange(good.sum()), normals[which[good]], offsets[which[good]] + rng.normal(0, noise, good.sum())
    )
    return Poses.on_plane(on_closure(model, q[good], model.today, planes_missed), which[good])


def ball_bar(true: Arm, rng: np.random.Generator, count: int, noise: float = NOISE[0]) -> Poses:
    """Distances of the true tool from a fixed point, with noise."""
    q = configurations(true, rng, count)
    away = np.linalg.norm(true.pose(q)[:, :3, 3] - np.array([0.6, 0.2, 0.1]), axis=1)
    return Poses.ball_bar(q, away + rng.normal(0, noise, count))


__all__ = ["NOISE", "BallBar", "ball_bar", "configurations", "measured", "on_plane", "with_errors"]
