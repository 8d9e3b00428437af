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
from armdyn.deployment.readme import line
from armdyn.errors import required
from armdyn.identification.fit import relative_error
from armdyn.identification.log import Log
from armdyn.identification.preflight import changed
from armdyn.identification.processing import joint_side, motions
from armdyn.identification.result import Estimate

WORSE = 2.0  # the largest allowed ratio of the prediction error to the error of the fit
FLOOR = 0.02  # smaller relative torque errors are not compared: friction alone varies more
SAME = 0.05  # the relative difference of positions below which two logs have the same motion
COVERED = 0.8  # the share of the shorter log that must overlap where the two are compared
COMPARED = 0.02  # s, the smallest period at which they are compared
USELESS = 1.0  # the relative error of a joint above which predicting zero torque would be better


@dataclass(frozen=True)
class Check:
    """One check of the model: the value, its upper limit, a sentence with both, and what is checked."""

    name: str
    value: float
    limit: float
    words: str
    about: str = ""

    @property
    def row(self) -> tuple[str, str, str, str]:
        """The check as a row of a table: what is checked, the result, the figure and its limit, with units."""
        result = "passed" if self.passed else "FAILED"
        if self.name == "bodies":
            return self.about, result, f"{-self.value + 0.0:.3g}", "at least 0"
        return self.about, result, _percent(self.value), f"at most {_percent(self.limit)}"

    @property
    def passed(self) -> bool:
        """Whether the value is within the limit; NaN fails."""
        return bool(self.value <= self.limit)


@dataclass(frozen=True)
class Verdict:
    """The checks of the model, and the figures that they are based on."""

    checks: tuple[Check, ...]
    figures: dict[str, Any]
    notes: tuple[str, ...] = ()  # limits of the validation itself

    @property
    def carries_over(self) -> bool:
        """Whether the model passed every check."""
        return all(check.passed for check in self.checks)

    @property
    def failures(self) -> tuple[str, ...]:
        """The failed checks, as sentences."""
        return tuple(check.words for check in self.checks if not check.passed)

    def sentence(self, what: str, deployed: bool) -> str:
        """The verdict in words; `what` was judged."""
        if self.carries_over:
            return f"{what} passed the validation on held-out data."
        code = "The code was written nevertheless, because `force` was set." if deployed else "No code was written."
        return f"{what} failed the validation on held-out data. {code}"

    def summary(self, deployed: bool) -> dict[str, Any]:
        """What the manifest says of the verdict."""
        checks = [
            {name: getattr(c, name) for name in ("name", "value", "limit", "passed", "words")} for c in self.checks
        ]
        forced = deployed and not self.carries_over
        summary = {"carries_over": self.carries_over, "deployed": deployed, "forced": forced}
        return {**summary, "checks": checks, "notes": list(self.notes)}

    def readme(self, what: str, deployed: bool) -> list[str]:
        """The first lines of the README of the folder: the verdict and a table of its checks."""
        said = self.sentence(what, deployed)
        rows = [f"| {c.name} | {'passed' if c.passed else '**failed**'} | {line(c.words)} |" for c in self.checks]
        return [said if self.carries_over else f"**{said}**", "", "| check | | result |", "|---|---|---|", *rows, ""]


def verdict(estimate: Estimate, held_out: Log, fitted: Log | None = None) -> Verdict:
    """The verdict on an estimate from a log that was not used for the fit; `fitted` is the one that was."""
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
    return Verdict(tuple(checks(figures)), figures, () if fitted is None else repeats(fitted, held_out))


def repeats(fitted: Log, held_out: Log) -> tuple[str, ...]:
    """A note if the motion for validation is that of the fit, so that the validation repeats the fit."""
    difference, lag = difference_of_motions(fitted, held_out)
    if not difference <= SAME:
        return ()
    return (
        f"the validation repeats the fit: its motion is that of the fit, {lag:+.2f} s later (positions differ by "
        f"{_percent(difference)}). It shows noise and repeatability, not whether the model holds for other motions; "
        "validate with a log of another motion",
    )


def difference_of_motions(fitted: Log, held_out: Log) -> tuple[float, float]:
    """The relative difference of the positions at the best lag of one log against the other, and this lag in s.

    The longest pieces of both are compared. The difference is relative to the motion about its mean, of all joints.
    """
    required("scipy")
    from scipy.signal import correlate

    pieces = [max(log.pieces, key=len) for log in (fitted, held_out)]
    period = max(fitted.period, held_out.period, COMPARED)
    a, b = (
        np.stack([np.interp(np.arange(piece.t[0], piece.t[-1], period), piece.t, column) for column in piece.q.T])
        for piece in pieces
    )
    a, b = a - b.mean(axis=1, keepdims=True), b - b.mean(axis=1, keepdims=True)
    ones_a, ones_b = np.ones(a.shape[1]), np.ones(b.shape[1])

    def sums(x: Any, y: Any) -> Any:
        return correlate(x, y, method="fft")

    overlap = sums(ones_a, ones_b)
    products = np.sum([sums(x, y) for x, y in zip(a, b, strict=True)], axis=0)
    own_a, own_b = sums((a**2).sum(axis=0), ones_b), sums(ones_a, (b**2).sum(axis=0))
    wide = overlap >= COVERED * min(a.shape[1], b.shape[1])
    if not wide.any() or not b.any():
        return np.inf, 0.0
    squares = np.where(
        wide & (own_b > 1e-9 * own_b.max()), (own_a + own_b - 2 * products) / np.maximum(own_b, 1e-300), np.inf
    )
    best = int(np.argmin(squares))
    return float(np.sqrt(max(squares[best], 0.0))), float((best - (b.shape[1] - 1)) * period)


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
        yield Check(name, error, carried, words, f"prediction error, {what}")
    deployed, prior = figures["deployed_raw_error"], figures["prior_raw_error"]
    raw = figures["held_out_raw_error"]
    words = f"error over all samples: {_percent(deployed)} for the code, {_percent(raw)} for the fitted model"
    yield Check("code", deployed, WORSE * max(raw, FLOOR), words, "the code's error over all held-out samples")
    words = f"error over all samples: {_percent(deployed)} for the code, {_percent(prior)} for the arm as given"
    yield Check("prior", deployed, max(prior, FLOOR), words, "the same, compared with the arm as given")
    worst = int(np.argmax(np.nan_to_num(figures["held_out_joint_errors"], nan=np.inf)))
    error = figures["held_out_joint_errors"][worst]
    words = (
        f"largest error: {_percent(error)}, at joint {worst + 1}; a prediction of zero torque has {_percent(USELESS)}"
    )
    yield Check("joints", error, USELESS, words, f"largest error of a joint: joint {worst + 1}; zero torque has 100 %")
    smallest = figures["smallest_eigenvalue"]
    words = f"every link must be physically consistent; the smallest pseudo-inertia eigenvalue is {smallest:.3g}"
    yield Check("bodies", -smallest, 0.0, words, "smallest eigenvalue of a link's pseudo-inertia [SI]")


def _percent(x: float) -> str:
    return f"{100 * x:.2f} %"
