"""Excitation: designed trajectories, their predicted parameter deviations, and a comparison with random ones."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from armdyn.arm import Arm

Array = NDArray[np.float64]
OTHERS = 200  # random trajectories, not used in the search, with which the result is compared


@dataclass(frozen=True, eq=False)
class Excitation:
    """One or several trajectories: t (N,), q, qd, qdd (m, N, n).

    `deviations` are the predicted standard deviations of the parameters `names`, for these samples and the assumed
    noise. `random_deviations` are those of the best of 200 random motions within the same limits, which are not used
    in the search. `condition` is the condition number of the regressor of the rigid body with unit columns.
    """

    arm: Arm
    t: Array
    q: Array
    qd: Array
    qdd: Array
    condition: float
    joints: tuple[str, ...]
    names: tuple[str, ...] = ()
    deviations: Array = field(default_factory=lambda: np.zeros(0))
    random_deviations: Array = field(default_factory=lambda: np.zeros(0))
    warnings: tuple[str, ...] = ()

    @property
    def gain(self) -> Array:
        """The ratio of the deviations of the best of 200 random motions to those of this trajectory."""
        return self.random_deviations / self.deviations

    def __repr__(self) -> str:
        return (
            f"<Excitation of {self.arm.name}: {len(self.q)} × {self.t[-1]:g} s, {len(self.t)} samples,"
            f" {len(self.names)} parameters, condition number {self.condition:.3g}>"
        )

    def __str__(self) -> str:
        worst = int(np.argmin(self.gain))
        most = np.unravel_index(int(np.argmax(np.abs(self.qdd))), self.qdd.shape)
        return (
            f"{self.arm.name}: {self.t[-1]:g} s, {len(self.names)} parameters; predicted deviations against the best of"
            f" {OTHERS} random motions: median {np.median(self.gain):.2f} times smaller, worst {self.gain[worst]:.2f}"
            f" ({self.names[worst]})\n  condition number {self.condition:.1f} (unit columns), velocities up to"
            f" {np.abs(self.qd).max():.3g} rad/s (m/s), accelerations up to {np.abs(self.qdd[most]):.3g} rad/s² (m/s²,"
            f" joint {most[2] + 1})"
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write CSV: t, q1 ... qd1 ... qdd1 ...; several trajectories get a first column `trajectory`."""
        from armdyn.files.text import write_text

        n, many = self.q.shape[2], len(self.q) > 1
        names = ["t", *(f"{s}{k + 1}" for s in ("q", "qd", "qdd") for k in range(n))]
        lines = [",".join(["trajectory", *names] if many else names)]
        for number, states in enumerate(zip(self.q, self.qd, self.qdd, strict=True), 1):
            for row in np.column_stack([self.t, *states]):
                numbers = ",".join(f"{x:.9g}" for x in row)
                lines.append(f"{number},{numbers}" if many else numbers)
        write_text(path, "\n".join(lines) + "\n")
