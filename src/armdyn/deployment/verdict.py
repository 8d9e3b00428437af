"""Validation of an identified arm on held-out data, which decides whether its code is written.

All limits are defined here. The factor of two between the errors of fit and prediction is also the one at which
`identify` warns (`identification.report.warnings`): beyond it the model does not generalize to other motions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from armdyn.arm import Arm
from armdyn.identification.estimate.result import Estimate
from armdyn.identification.estimate.statistics import relative_error
from armdyn.identification.log.log import Log
from armdyn.identification.log.processing import joint_side, motions
from armdyn.identification.model.reading import changed

WORSE = 2.0  # the largest allowed ratio of the prediction error to the error of the fit
FLOOR = 0.02  # smaller relative torque errors are not compared: friction alone varies more
USELESS = 1.0  # the relative error of a joint above which predicting zero torque would be better


@dataclass(frozen=True)
class Check:
    """One check of the model: the value, its upper limit, and a sentence with both."""

    name: str
    value: float
    limit: float
    words: str

    @property
    def passed(self) -> bool:
        """Whether the value is within the limit; NaN fails."""
        return bool(self.value <= self.limit)


@dataclass(frozen=True)
class Verdict:
    """The checks of the model, and the figures that they are based on."""

    checks: tuple[Check, ...]
    figures: dict[str, Any]

    @property
    def carries_over(self) -> bool:
        """Whether the model passed every check."""
        return all(check.passed for check in self.checks)

    @property
    def failures(self) -> tuple[str, ...]:
        """The failed checks, as sentences."""
        return tuple(check.words for check in self.checks if not check.passed)


def verdict(estimate: Estimate, held_out: Log) -> Verdict:
    """The verdict on an estimate from a log that was not used for the fit."""
    shown = estimate.validation or estimate.validate(held_out)
    figures = {
        "fit_error": estimate.error,
        "left_out_error": float(np.sqrt(np.mean(estimate.folds**2))),
        "held_out_error": shown.error,
        "held_out_joint_errors": shown.joint_errors.tolist(),
        "held_out_r_squared": shown.r_squared.tolist(),
        "held_out_raw_error": shown.raw_error,
        "deployed_raw_error": _raw_error(estimate.arm, estimate, held_out),
        "prior_raw_error": _raw_error(estimate.prior, estimate, held_out),
        "smallest_eigenvalue": float(estimate.smallest_eigenvalues.min()),
        "condition": estimate.condition,
        "parameters": len(estimate.names),
        "rows": len(estimate.training.t),
    }
    return Verdict(tuple(checks(figures)), figures)


def _raw_error(arm: Arm, estimate: Estimate, log: Log) -> float:
    """The relative error of the arm's inverse dynamics with friction, over all samples of a log."""
    side = changed(joint_side(log, estimate.transmission, estimate.zero, estimate.gains), estimate.changes)
    parts = motions(side, estimate.processing, decimate=False)
    q, qd, qdd, tau = (np.concatenate([getattr(p, name) for p in parts]) for name in ("q", "qd", "qdd", "tau"))
    return relative_error(tau, np.asarray(arm.inverse_dynamics(q, qd, qdd, friction=True)))


def checks(figures: dict[str, Any]) -> Iterator[Check]:
    """The checks of the figures."""
    fit, carried = figures["fit_error"], WORSE * max(figures["fit_error"], FLOOR)
    for name, what in (("held_out", "held-out data"), ("left_out", "cross-validation over segments")):
        error = figures[f"{name}_error"]
        words = f"{what}: prediction error {_percent(error)}, error of fit {_percent(fit)}, limit {_percent(carried)}"
        yield Check(name, error, carried, words)
    deployed, prior = figures["deployed_raw_error"], figures["prior_raw_error"]
    raw = figures["held_out_raw_error"]
    words = f"error over all samples: {_percent(deployed)} for the code, {_percent(raw)} for the fitted model"
    yield Check("code", deployed, WORSE * max(raw, FLOOR), words)
    words = f"error over all samples: {_percent(deployed)} for the code, {_percent(prior)} for the arm as given"
    yield Check("prior", deployed, max(prior, FLOOR), words)
    worst = int(np.argmax(np.nan_to_num(figures["held_out_joint_errors"], nan=np.inf)))
    error = figures["held_out_joint_errors"][worst]
    words = (
        f"largest error: {_percent(error)}, at joint {worst + 1}; a prediction of zero torque has {_percent(USELESS)}"
    )
    yield Check("joints", error, USELESS, words)
    smallest = figures["smallest_eigenvalue"]
    words = f"every link must be physically consistent; the smallest pseudo-inertia eigenvalue is {smallest:.3g}"
    yield Check("bodies", -smallest, 0.0, words)


def _percent(x: float) -> str:
    return f"{100 * x:.2f} %"
