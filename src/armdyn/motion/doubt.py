"""Arms whose parameters are uncertain: every sample stands for an arm that the motion has to suit.

The samples' torques come from the nominal arm's kernels with parameters at run time, so that nothing is compiled per
sample. Names, limits, tool and grip are those of the nominal arm.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from armdyn.uncertainty import Samples

MANY = 20  # samples of an `Uncertain` arm, if a number is not given


@dataclass(frozen=True)
class SampledArm:
    """One sample, with what the limits of a motion need of an arm."""

    samples: Samples  # one of them

    @property
    def nominal(self) -> Any:
        """The arm as its controller knows it."""
        return self.samples.uncertain.arm

    @property
    def joints(self) -> Any:
        """The nominal arm's."""
        return self.nominal.joints

    @property
    def joint_names(self) -> tuple[str, ...]:
        """The nominal arm's."""
        return tuple(self.nominal.joint_names)

    @property
    def velocity_limits(self) -> np.ndarray:
        """The nominal arm's."""
        return np.asarray(self.nominal.velocity_limits)

    def gravity_load(self, q: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """The torques that hold the arm."""
        return self._evaluate("gravity_load", (q,), out)

    def inverse_dynamics(
        self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray, out: np.ndarray | None = None
    ) -> np.ndarray:
        """The torques of a motion, without friction."""
        return self._evaluate("inverse_dynamics", (q, np.broadcast_to(qd, q.shape), qdd), out)

    def joint_forces(self, q: np.ndarray, qd: np.ndarray, load: np.ndarray) -> np.ndarray:
        """Friction and other forces of the joints: the nominal arm's, and what this sample has more."""
        more = self.samples.more_friction(qd.reshape(-1, qd.shape[-1]))
        return np.asarray(self.nominal.joint_forces(q, qd, load) + more.reshape(qd.shape))

    def _evaluate(self, quantity: str, arrays: tuple[np.ndarray, ...], out: np.ndarray | None) -> np.ndarray:
        found: np.ndarray = np.asarray(self.samples.evaluate(quantity, *arrays).values)[0]
        if out is None:
            return found
        np.copyto(out, found)
        return found


def arms_of(samples: Samples) -> list[Any]:
    """The nominal arm, then all samples."""
    return [samples.uncertain.arm, *(SampledArm(samples[k : k + 1]) for k in range(len(samples)))]
