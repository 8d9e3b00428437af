"""Moving-block bootstrap of an identification: the scatter of its parameters under resampling of the log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armdyn.arm import Arm
from armdyn.errors import InputError
from armdyn.identification import Estimate, Log
from armdyn.identification.fit import ESTIMATORS, Setting, correlation_time
from armdyn.identification.model import Model, Rows, rows
from armdyn.identification.preflight import changed
from armdyn.identification.processing import joint_side, motions
from armdyn.uncertainty.points import unit_points

Array = NDArray[np.float64]
MAX_BLOCK_SHARE = 0.1  # of the log: with longer blocks all resamples would be alike


@dataclass(frozen=True, eq=False)
class Bootstrap:
    """Sample i is a fit to blocks of `block` rows, drawn with replacement in the i-th resample of the seed.

    Blocks preserve the correlation of neighbouring residuals (moving-block bootstrap, Künsch 1989). The regularization
    weight stays that of the estimate. Returns `values` by parameter, and the relative torque error of each fit.
    """

    model: Model
    prior: Arm
    estimator: str
    regularization: float | None
    Y: Array
    tau: Array
    kept: NDArray[np.bool_]
    block: int
    seed: int = 0

    @classmethod
    def of(cls, estimate: Estimate, log: Log, block: int | None = None, seed: int = 0) -> Bootstrap:
        """The bootstrap of an estimate, with the log that it was identified from."""
        if estimate.estimator not in ESTIMATORS:
            raise InputError(f"no bootstrap for the estimator {estimate.estimator}; available: {', '.join(ESTIMATORS)}")
        side = changed(joint_side(log, estimate.transmission, estimate.zero, estimate.gains), estimate.changes)
        found = rows(estimate.model, motions(side, estimate.processing), estimate.processing)
        if found.Y.shape[-1] != len(estimate.names):
            raise InputError("the log is not the one that the estimate was identified from")
        residual = found.tau - found.Y @ estimate.values
        longest = max(1, int(MAX_BLOCK_SHARE * len(found)))
        usual = int(np.ceil(2 * max(correlation_time(residual[:, j]) for j in range(residual.shape[1]))))
        chosen = min(usual, longest) if block is None else block
        if not 1 <= chosen <= len(found):
            raise InputError(f"block must be from 1 to the {len(found)} rows of the log, got {block!r}")
        fixed = (estimate.model, estimate.prior, estimate.estimator, estimate.regularization)
        return cls(*fixed, found.Y, found.tau, found.kept, chosen, seed)

    def __call__(self, arm: Arm, samples: range) -> dict[str, Any]:
        """The fits of some resamples."""
        fits = [self._fit(index) for index in samples]
        return {
            "values": (("sample", "parameter"), np.array([values for values, _ in fits])),
            "error": ("sample", np.array([error for _, error in fits])),
            "parameter": ("parameter", np.array(self.model.names)),
        }

    def _fit(self, index: int) -> tuple[Array, float]:
        count = len(self.Y)
        blocks = -(-count // self.block)
        start = np.floor(unit_points("random", self.seed, index, 1, blocks)[0] * count).astype(int)
        chosen = ((start[:, None] + np.arange(self.block)) % count).ravel()[:count]
        chosen = np.sort(chosen)  # keeps the segments of cross-validation and residuals in time order
        t = np.arange(count, dtype=float)
        drawn = Rows(self.Y[chosen], self.tau[chosen], t, np.zeros(count, dtype=np.int64), self.kept[chosen])
        setting = Setting(self.model, self.prior, regularization=self.regularization)
        values = ESTIMATORS[self.estimator](drawn, setting).values
        left = self.tau - self.Y @ values
        return values, float(np.sqrt((left**2).sum() / (self.tau**2).sum()))
