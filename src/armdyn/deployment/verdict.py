"""Whether an identified arm may drive a robot: what a log that was not fitted says of it.

Every limit stands here. The factor of two between fit and prediction is the one `identify` warns at
(`identification.report.warnings`): beyond it the model does not carry over to other motions.
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

WORSE = 2.0  # times the error of the fit that a prediction may be off
FLOOR = 0.02  # a relative torque error below which neither fit nor prior is a measure: friction alone varies more
USELESS = 1.0  # a joint's relative error above which no torque at all would be the better prediction


@dataclass(frozen=True)
class Check:
    """One thing asked of the model: the number found, the largest allowed, and both in words."""

    name: str
    value: float
    limit: float
    words: str

    @property
    def passed(self) -> bool:
        """Whether the number is allowed; what is not a number is not."""
        return bool(self.value <= self.limit)


@dataclass(frozen=True)
class Verdict:
    """What was asked of the model, and the errors it was asked about."""

    checks: tuple[Check, ...]
    figures: dict[str, Any]

    @property
    def carries_over(self) -> bool:
        """Whether the model passed every check."""
        return all(check.passed for check in self.checks)

    @property
    def failures(self) -> tuple[str, ...]:
        """What failed, in words."""
        return tuple(check.words for check in self.checks if not check.passed)


def verdict(estimate: Estimate, held_out: Log) -> Verdict:
    """The verdict on an estimate by a log that it was not fitted to."""
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
    """The relative error of an arm's own inverse dynamics, friction included, on every sample of a log."""
    side = changed(joint_side(log, estimate.transmission, estimate.zero, estimate.gains), estimate.changes)
    parts = motions(side, estimate.processing, decimate=False)
    q, qd, qdd, tau = (np.concatenate([getattr(p, name) for p in parts]) for name in ("q", "qd", "qdd", "tau"))
    return relative_error(tau, np.asarray(arm.inverse_dynamics(q, qd, qdd, friction=True)))


def checks(figures: dict[str, Any]) -> Iterator[Check]:
    """What is asked of the errors."""
    fit, carried = figures["fit_error"], WORSE * max(figures["fit_error"], FLOOR)
    for name, what in (("held_out", "the log that was held out"), ("left_out", "segments left out in turn")):
        error = figures[f"{name}_error"]
        words = f"{what}: predicted to {_percent(error)}, fitted to {_percent(fit)}, allowed {_percent(carried)}"
        yield Check(name, error, carried, words)
    deployed, prior = figures["deployed_raw_error"], figures["prior_raw_error"]
    raw = figures["held_out_raw_error"]
    words = f"sample by sample the code is off by {_percent(deployed)}, the fitted model by {_percent(raw)}"
    yield Check("code", deployed, WORSE * max(raw, FLOOR), words)
    words = f"the code's own prediction is off by {_percent(deployed)}, that of the arm as given by {_percent(prior)}"
    yield Check("prior", deployed, max(prior, FLOOR), words)
    worst = int(np.argmax(np.nan_to_num(figures["held_out_joint_errors"], nan=np.inf)))
    error = figures["held_out_joint_errors"][worst]
    words = f"joint {worst + 1} is off by {_percent(error)}; predicting no torque at all is off by {_percent(USELESS)}"
    yield Check("joints", error, USELESS, words)
    smallest = figures["smallest_eigenvalue"]
    words = f"every link must be a possible body; the smallest eigenvalue of a pseudo-inertia is {smallest:.3g}"
    yield Check("bodies", -smallest, 0.0, words)


def _percent(x: float) -> str:
    return f"{100 * x:.2f} %"
