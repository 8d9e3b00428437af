"""The numerical rank of the regressor beside the number of minimal parameters.

The minimal parameters come from the arm's structure, without a tolerance. This is the report beside
the answer: singular values of a long random regressor in the natural parameters, and how wide the gap
is between the last that counts and the first that does not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from armdyn.arm import Arm


@dataclass(frozen=True)
class RankReport:
    """Singular values of a random regressor, columns scaled to length 1, around the number of parameters."""

    count: int  # minimal parameters, from structure
    rank: int  # where the widest gap between singular values is
    last_kept: float
    first_dropped: float
    singular_values: NDArray[np.float64]

    @property
    def gap(self) -> float:
        """The last singular value kept over the first dropped; infinite where none is dropped."""
        return self.last_kept / self.first_dropped if self.first_dropped > 0 else float("inf")

    @property
    def agrees(self) -> bool:
        """Whether numbers and structure say the same."""
        return self.count == self.rank

    def __str__(self) -> str:
        verdict = "as structure says" if self.agrees else f"but structure says {self.count}"
        return (
            f"numerical rank {self.rank}, {verdict}; singular values {self.last_kept:.2g} | "
            f"{self.first_dropped:.2g}, a gap of {self.gap:.1g}"
        )


def rank_report(arm: Arm, samples: int | None = None, seed: int = 0) -> RankReport:
    """The numerical rank of `arm`'s regressor over random motions (by default 60 a joint)."""
    n = arm.n
    rng = np.random.default_rng(seed)
    q, qd, qdd = rng.uniform(-np.pi, np.pi, (3, samples or 60 * n, n))
    Y = np.asarray(arm.natural_regressor(q, qd, qdd)).reshape(-1, 10 * n)
    size = np.linalg.norm(Y, axis=0)
    felt = size > 1e-9 * size.max(initial=0.0)  # a column of rounding is none
    values = np.zeros(10 * n + 1)
    values[: felt.sum()] = np.linalg.svd(Y[:, felt] / size[felt], compute_uv=False)
    rank = _widest_gap(values)
    count = len(arm.minimal_parameters)
    kept = float(values[count - 1]) if count else float("nan")
    return RankReport(count, rank, kept, float(values[count]), values[:-1])


def _widest_gap(values: NDArray[np.float64]) -> int:
    """How many values stand before the widest gap; what is below rounding of the first is rounding."""
    floor = np.maximum(values, values[0] * 1e-17)
    ratios = floor[:-1] / floor[1:]
    return int(np.argmax(ratios)) + 1 if values[0] > 0 else 0
