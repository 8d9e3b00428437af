"""Data sets of (q, qd, qdd, tau) for machine learning, in shards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from armdyn.arm import Arm
from armdyn.errors import InputError, choose
from armdyn.formulations.registry import Options
from armdyn.sweeps.capability import postures
from armdyn.uncertainty import Samples
from armdyn.uncertainty.points import unit_points

KINDS = ("float32", "float64")


@dataclass(frozen=True)
class DataSet:
    """Random motions within the limits and their torques; every chunk is a shard.

    `velocity` and `acceleration` are the largest magnitudes, one number or one per joint; by default the arm's velocity
    limits (1 for joints without one) and 5. With samples of an `Uncertain` arm every row has its own arm, and the
    uncertain parameters are columns too. With `friction` the torques include friction.
    """

    velocity: float | tuple[float, ...] | None = None
    acceleration: float | tuple[float, ...] = 5.0
    friction: bool = False
    dtype: str = "float64"
    seed: int = 0

    def __post_init__(self) -> None:
        choose("dtype", self.dtype, KINDS)

    def __call__(self, arm: Arm, samples: Any) -> dict[str, Any]:
        """One shard."""
        varied = isinstance(samples, Samples)
        if not varied and not isinstance(samples, range):
            raise InputError(f"samples must be a number of rows, or samples of an Uncertain arm; got {samples!r}")
        first = samples.first if isinstance(samples, Samples) else samples.start
        limit = np.where(np.isfinite(arm.velocity_limits), arm.velocity_limits, 1.0)
        speed = limit if self.velocity is None else np.array(self.velocity)
        u = unit_points("random", self.seed + 1, first, len(samples), 2 * arm.n)
        q = postures(arm, self.seed, first, len(samples), "random")
        qd, qdd = (2 * u[:, : arm.n] - 1) * speed, (2 * u[:, arm.n :] - 1) * np.array(self.acceleration)
        if isinstance(samples, Samples):
            plants = samples.plants
            true = q if plants.offsets is None else q + plants.offsets
            tau = plants.quantity("inverse_dynamics", true, qd, qdd, options=Options(friction=self.friction))
            tau = tau + samples.more_friction(qd) if self.friction else tau
        else:
            tau = arm.inverse_dynamics(q, qd, qdd, friction=True) if self.friction else arm.inverse_dynamics(q, qd, qdd)
        columns: dict[str, Any] = {"q": q, "qd": qd, "qdd": qdd, "tau": np.asarray(tau)}
        found: dict[str, Any] = {k: (("sample", "joint"), x.astype(self.dtype)) for k, x in columns.items()}
        if isinstance(samples, Samples):
            found["variables"] = (("sample", "variable"), samples.values.astype(self.dtype))
            found["variable"] = ("variable", np.array([v.name for v in samples.uncertain.variables]))
        return found
