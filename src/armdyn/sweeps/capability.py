"""Torque capability over the workspace: the payload and force that an arm can sustain in each posture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from armdyn.arm import Arm
from armdyn.errors import InputError
from armdyn.uncertainty.points import unit_points

AXES = np.array(["x", "y", "z"])


def postures(arm: Arm, seed: int, first: int, count: int, kind: str = "sobol") -> np.ndarray:
    """Configurations (count, n) within `Arm.working_range`, addressed by index."""
    low, high = arm.working_range.T
    return np.asarray(low + (high - low) * unit_points(kind, seed, first, count, arm.n))


@dataclass(frozen=True)
class Capability:
    """Capability at postures within the joint limits; `effort` overrides the arm's effort limits, N m or N.

    Per posture: `position` of the tool; `load_share`, the gravity load divided by the effort limit; `payload`, the
    largest point mass at the tool that the motors hold, kg; `force`, the largest force that the tool can exert in every
    direction, N; `limiting_joint`, the joint (from 1) that limits the payload.
    """

    effort: tuple[float, ...] | None = None
    seed: int = 0

    def __call__(self, arm: Arm, samples: range) -> dict[str, Any]:
        """The results for some postures."""
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
