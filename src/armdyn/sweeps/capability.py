"""Torque capability over the workspace: what an arm can hold and push, posture by posture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from armdyn.arm import Arm
from armdyn.errors import InputError
from armdyn.uncertainty.points import unit_points

AXES = np.array(["x", "y", "z"])


def postures(arm: Arm, seed: int, first: int, count: int, kind: str = "sobol") -> np.ndarray:
    """Configurations (count, n) within the joint limits, found by their number; a turn where there is no limit."""
    low, high = np.clip(arm.limits, -np.pi, np.pi).T
    return np.asarray(low + (high - low) * unit_points(kind, seed, first, count, arm.n))


@dataclass(frozen=True)
class Capability:
    """Postures over the joint limits; `effort` are the motors' limits, N m, where the arm's are not meant.

    Per posture: where the tool is; `load_share`, the gravity load over the effort limit; `payload`, the largest point
    mass at the tool that the motors hold, kg; `force`, the largest force that the tool exerts in every direction, N;
    `limiting_joint`, from 1, which the payload depends on.
    """

    effort: tuple[float, ...] | None = None
    seed: int = 0

    def __call__(self, arm: Arm, samples: range) -> dict[str, Any]:
        """The study of some postures."""
        effort = np.array(arm.effort_limits if self.effort is None else self.effort, dtype=float)
        if effort.shape != (arm.n,) or not np.isfinite(effort).all():
            raise InputError(f"{arm.name}: expected {arm.n} finite effort limits, got {effort.tolist()}; give effort")
        q = postures(arm, self.seed, samples.start, len(samples))
        g, J = np.asarray(arm.gravity_load(q)), np.asarray(arm.jacobian(q))[:, :3]
        per_kg = -np.einsum("kxj,x->kj", J, np.array(arm.gravity))
        with np.errstate(all="ignore"):
            room = (effort - np.sign(per_kg) * g) / np.abs(per_kg)
            reach = (effort - np.abs(g)) / np.sqrt((J**2).sum(axis=1))
        room = np.where(np.abs(per_kg) > 1e-12, room, np.inf)
        holds = (np.abs(g) <= effort).all(axis=1)
        return {
            "q": (("sample", "joint"), q),
            "position": (("sample", "axis"), np.asarray(arm.pose(q))[:, :3, 3]),
            "load_share": (("sample", "joint"), np.abs(g) / effort),
            "payload": ("sample", np.where(holds, np.maximum(room.min(axis=1), 0.0), 0.0)),
            "force": ("sample", np.where(holds, np.maximum(np.nanmin(reach, axis=1), 0.0), 0.0)),
            "limiting_joint": ("sample", room.argmin(axis=1) + 1),
            "axis": ("axis", AXES),
        }
