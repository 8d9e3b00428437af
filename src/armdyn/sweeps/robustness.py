"""Monte Carlo robustness of a controlled motion: tracking performance under model errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from armdyn.arm import Arm
from armdyn.errors import InputError, choose
from armdyn.simulation import PD, ComputedTorque, PDGravity, quintic
from armdyn.uncertainty import Samples

CONTROLLERS = {"computed_torque": ComputedTorque, "pd_gravity": PDGravity, "pd": PD}


@dataclass(frozen=True)
class Robustness:
    """A motion from rest at `start` to rest at `end` (rad or m) in `duration` seconds, then `settle` seconds more.

    `controller` is "computed_torque", "pd_gravity" or "pd", with gains `kp` and `kd`: one number or one per joint. The
    results per sample are the largest tracking error and torque of each joint, the largest distance of the tool from
    its reference, and the final error; NaN if the simulation failed. With `trajectories` they include q and tau every
    `every` seconds.
    """

    start: tuple[float, ...]
    end: tuple[float, ...]
    duration: float = 1.0
    settle: float = 0.2
    controller: str = "computed_torque"
    kp: float | tuple[float, ...] = 100.0
    kd: float | tuple[float, ...] = 20.0
    step: float = 1e-3
    every: float = 0.01
    trajectories: bool = False

    def __post_init__(self) -> None:
        choose("controller", self.controller, CONTROLLERS)

    def __call__(self, arm: Arm, samples: Samples) -> dict[str, Any]:
        """The results for some samples."""
        if not isinstance(samples, Samples):
            raise InputError("Robustness needs samples of an Uncertain arm: give samples=Uncertain(...).sample(k)")
        motion = quintic(self.start, self.end, self.duration)
        rows = max(1, round((self.duration + self.settle) / self.every))
        t = (self.duration + self.settle) / rows * np.arange(rows + 1)
        control = CONTROLLERS[self.controller](motion, _gain(self.kp), _gain(self.kd))
        run = samples.simulate(np.array(self.start), torque=control, times=t, step=self.step)
        q, tau = _filled(run.q, len(t)), _filled(run.tau, len(t))
        wanted = motion(t)[0]
        error = np.abs(q - wanted)
        with np.errstate(all="ignore"):
            apart = np.asarray(arm.pose(q))[..., :3, 3] - np.asarray(arm.pose(wanted))[..., :3, 3]
        found: dict[str, Any] = {
            "tracking_error": (("sample", "joint"), error.max(axis=1)),
            "final_error": (("sample", "joint"), error[:, -1]),
            "largest_torque": (("sample", "joint"), np.abs(tau).max(axis=1)),
            "tool_error": ("sample", np.sqrt((apart**2).sum(axis=-1)).max(axis=1)),
        }
        if self.trajectories:
            found |= {"q": (("sample", "time", "joint"), q), "tau": (("sample", "time", "joint"), tau)}
            found["time"] = ("time", t)
        return found


def _gain(value: Any) -> Any:
    return value if isinstance(value, int | float) else np.array(value, dtype=float)


def _filled(values: np.ndarray, rows: int) -> np.ndarray:
    """Pad with NaN: unlike in a batch, a single simulation that ended early has fewer rows."""
    missing = rows - values.shape[1]
    return np.pad(values, ((0, 0), (0, max(missing, 0)), (0, 0)), constant_values=np.nan)[:, :rows]
