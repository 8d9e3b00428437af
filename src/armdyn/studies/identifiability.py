"""Compare the numerical rank of the regressor with the number of minimal parameters.

The minimal parameters are derived from the arm's structure without a tolerance. This is an independent numerical check:
the singular values of a tall random regressor in the natural parameters, and the gap between the last one that counts
towards the rank and the first that does not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from armdyn.arm import Arm
from armdyn.values import ComparedByValue


@dataclass(frozen=True, eq=False)
class RankReport(ComparedByValue):
    """Singular values of a random regressor with normalised columns, and the gap at the number of parameters."""

    count: int  # number of minimal parameters, from the structure
    rank: int  # number of singular values before the widest gap
    last_kept: float
    first_dropped: float
    singular_values: NDArray[np.float64]

    @property
    def gap(self) -> float:
        """The last singular value kept divided by the first dropped; infinite if that is zero."""
        return self.last_kept / self.first_dropped if self.first_dropped > 0 else float("inf")

    @property
    def agrees(self) -> bool:
        """Whether the numerical rank equals the number of minimal parameters."""
        return self.count == self.rank

    def __str__(self) -> str:
        verdict = "in agreement with the structure" if self.agrees else f"but {self.count} from the structure"
        return (
            f"numerical rank {self.rank}, {verdict}; singular values {self.last_kept:.2g} | "
            f"{self.first_dropped:.2g}, a gap of {self.gap:.1g}"
        )


def rank_report(arm: Arm, samples: int | None = None, seed: int = 0) -> RankReport:
    """The numerical rank of `arm`'s regressor over random motions (by default 60 per joint)."""
    n = arm.n
    rng = np.random.default_rng(seed)
    q, qd, qdd = rng.uniform(-np.pi, np.pi, (3, samples or 60 * n, n))
    Y = np.asarray(arm.natural_regressor(q, qd, qdd)).reshape(-1, 10 * n)
    size = np.linalg.norm(Y, axis=0)
    nonzero = size > 1e-9 * size.max(initial=0.0)  # leaves out columns of rounding errors
    values = np.zeros(10 * n + 1)
    values[: nonzero.sum()] = np.linalg.svd(Y[:, nonzero] / size[nonzero], compute_uv=False)
    rank = _widest_gap(values)
    count = len(arm.minimal_parameters)
    kept = float(values[count - 1]) if count else float("nan")
    return RankReport(count, rank, kept, float(values[count]), values[:-1])


def _widest_gap(values: NDArray[np.float64]) -> int:
    """The number of values before the widest gap; values below the rounding error of the first are treated alike."""
    floor = np.maximum(values, values[0] * 1e-17)
    ratios = floor[:-1] / floor[1:]
    return int(np.argmax(ratios)) + 1 if values[0] > 0 else 0
