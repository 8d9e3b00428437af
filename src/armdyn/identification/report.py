"""The report of an identification as one self-contained HTML file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from armdyn.errors import count
from armdyn.files.text import write_text
from armdyn.identification.model import TERMS
from armdyn.pages.motion import curve, motion, motion_page, short, units
from armdyn.pages.writer import escape, navigation, section, table

if TYPE_CHECKING:
    from armdyn.identification.result import Estimate, Prediction


def write(estimate: Estimate, path: str | os.PathLike[str]) -> None:
    """Write the report, whole or not at all."""
    write_text(path, page(estimate))


def page(estimate: Estimate, first: Sequence[tuple[str, str, str]] = ()) -> str:
    """The report as text; `first` are sections (key, title, markup) that stand above all others."""
    charts: list[dict[str, Any]] = []
    sections = [
        ("summary", "Summary", _summary(estimate) + _warnings(estimate)),
        ("steps", "Model selection", _steps(estimate)),
        ("joints", "Errors per joint", _joints(estimate)),
        ("torques", "Measured and predicted torque", _torques(estimate, estimate.training, charts)),
    ]
    if estimate.validation is not None:
        title = f"Validation log: {estimate.validation.source}"
        sections.append(("validation", title, _torques(estimate, estimate.validation, charts)))
    sections += [
        ("parameters", "Parameters", _parameters(estimate, charts)),
        ("identifiable", "Identifiability", _identifiable(estimate)),
        ("links", "Links", _links(estimate)),
        ("drives", "Drives and friction", _extras(estimate)),
    ]
    shown = [one for one in sections if one[2]]
    title = f"{estimate.given.name}: identified from {estimate.training.source or 'a log'}"
    listed = [*first, ("arm", "Motion", ""), *shown]
    above = navigation((key, name) for key, name, _ in listed) + "".join(section(*one) for one in first)
    text = "".join(section(*one) for one in shown)
    said = "The motion of the arm in the log; the bars show the measured torques."
    return motion_page(title, said, {**_motion(estimate), "charts": charts}, text, _verdict(estimate), above)


def _held_out(e: Estimate) -> float:
    """The error in percent on segments that were left out of the fit."""
    return 100 * float(np.sqrt(np.mean(e.folds**2)))


def _verdict(e: Estimate) -> str:
    """The errors, and whether anything speaks against the estimate, for the first screen."""
    errors = f"{100 * e.error:.2f} % torque error, held out {_held_out(e):.2f} %"
    if e.validation is not None:
        errors += f", validation log {100 * e.validation.error:.2f} %"
    kind, found = "verdict" if e.trusted else "doubtful", len(e.warnings)
    said = count(found, "warning") if found else "no warnings"
    said = said if e.trusted else f"not to be trusted: {said}"
    warned = "doubtful" if found else kind
    return f'<span class="chip {kind}">{errors}</span><a class="chip {warned}" href="#summary">{said}</a>'


def _motion(e: Estimate) -> dict[str, Any]:
    """Animation of the arm along the training log, with the measured and predicted torques below."""
    names = list(e.given.joint_names)
    log = e.training
    label = units(e.given, "N m", "N")
    under = [(f"measured torque {label}", names, log.tau), (f"predicted torque {label}", names, log.predicted)]
    return motion(e.given, log.t - log.t[0], log.q, log.tau, under)


def _summary(e: Estimate) -> str:
    lines = [
        f"{len(e.names)} parameters ({e.model.rigid} of the rigid body) by the {e.estimator} estimator from"
        f" {_rows(e)}.",
        f"Torque error of the model: {100 * e.error:.2f} %; in cross-validation on left-out segments:"
        f" {_held_out(e):.2f} %.",
    ]
    if e.validation is not None:
        lines.append(
            f"The validation log is predicted with an error of <b>{100 * e.validation.error:.2f} %</b>"
            f" ({100 * e.validation.raw_error:.2f} % over all samples, unfiltered)."
        )
    if e.regularization is not None:
        lines.append(f"Regularization towards the prior arm: {e.regularization:g} noise variances.")
    lines.insert(1, f"Signals: {e.processing}.")
    if e.processing.dead_zone:
        lines.append(
            f"Rows at speeds below {e.processing.dead_zone:g} were left out of the fit, but not of the errors."
        )
    if any(e.base_tilt):
        angle = np.degrees(np.hypot(*e.base_tilt))
        lines.append(f"The base is tilted by {angle:.2f} degrees; the gravity vector is rotated accordingly.")
    return "".join(f"<p>{line}</p>" for line in lines)


def _rows(e: Estimate) -> str:
    """How many rows each joint has, and why they are fewer than the samples of the log."""
    t = e.training.t
    spacing = f", {1000 * float(np.median(np.diff(t))):.3g} ms apart" if len(t) > 1 else ""
    text = f"{len(t)} rows per joint{spacing}"
    if e.processing.parallel is None:
        return text
    return (
        f"{text}: torques and model are low-pass filtered at {e.processing.parallel:.3g} Hz, after which rows in "
        "between would only repeat their neighbours; the settling of the filter at either end of a piece is left out"
    )


def _warnings(e: Estimate) -> str:
    said = [*e.notes, *e.warnings]
    if not said:
        return "<p>No warnings.</p>"
    return "<h3>Notes and warnings</h3>" + "".join(f'<div class="warn">{escape(text)}</div>' for text in said)


def _steps(e: Estimate) -> str:
    if not e.steps:
        return ""
    text = (
        "<p>Terms were added one at a time, as long as they were statistically significant and"
        " improved the prediction of left-out segments.</p>"
    )
    return text + table("", ["model", "left-out error"], [[name, f"{error:.3f}"] for name, error in e.steps.items()])


def _joints(e: Estimate) -> str:
    shown = [("fitted", e.training)] if e.validation is None else [("not fitted", e.validation), ("fitted", e.training)]
    head = [
        "joint",
        *(f"{what}, {where}" for where, _ in shown for what in ("R²", "error %")),
        f"rms residual {units(e.given, 'N m', 'N')}",
        "√(1+2Σρ)",
    ]
    columns = [[f"{r:.4f}" for r in c.r_squared] for _, c in shown]
    numbers = [[f"{100 * x:.2f}" for x in c.joint_errors] for _, c in shown]
    pairs = [column for both in zip(columns, numbers, strict=True) for column in both]
    rms = [f"{s:.3g}" for s in np.sqrt((e.training.residual**2).mean(axis=0))]
    factors = [f"{f:.2f}" for f in e.autocorrelation_factors]
    rows = [list(row) for row in zip(e.given.joint_names, *pairs, rms, factors, strict=True)]
    note = (
        "<p>The last column is the factor by which the standard deviations were increased"
        " because the residuals are autocorrelated.</p>"
    )
    return table("", head, rows) + note


def _chart(charts: list[dict[str, Any]], chart: dict[str, Any], label: str, kind: str = "") -> str:
    """A canvas for a chart, whose data are added to those of the page."""
    charts.append(chart)
    return (
        f'<canvas class="chart {kind}" data-chart="{len(charts) - 1}" role="img" aria-label="{escape(label)}"></canvas>'
    )


def _torques(e: Estimate, shown: Prediction, charts: list[dict[str, Any]]) -> str:
    """Measured and predicted torque of every joint over time, and below it the residual on a scale of its own."""
    t = shown.t - shown.t[0]
    parts = []
    for j, joint in enumerate(e.given.joints):
        name, unit = e.given.joint_names[j], "N m" if joint.revolute else "N"
        both = (("measured", shown.tau), ("predicted", shown.predicted))
        drawn = [{"name": label, **curve(t, y[:, j]), "strong": k == 0} for k, (label, y) in enumerate(both)]
        left = [{"name": "residual", **curve(t, shown.residual[:, j])}]
        above = _chart(charts, {"y": f"{name} [{unit}]", "curves": drawn}, f"torque of {name}")
        below = _chart(charts, {"y": f"residual [{unit}]", "curves": left}, f"residual of {name}", "residual")
        parts.append(f"<div>{above}{below}</div>")
    return f'<div class="columns">{"".join(parts)}</div>'


RESTS_ON_PRIOR = 0.5  # a parameter of which the log determines less than this share


def _worst_first(e: Estimate) -> list[int]:
    """The parameters in the order of what the log determines of them, the least first."""
    return [int(k) for k in np.lexsort((-np.asarray(e.relative_deviations), np.asarray(e.uncertainty.share)))]


def _parameters(e: Estimate, charts: list[dict[str, Any]]) -> str:
    """One chart per kind of parameter, because their magnitudes differ; in each the least determined come first."""
    prior = e.model.natural @ e.model.prior(e.prior)
    kinds: dict[str, list[int]] = {}
    for k in _worst_first(e):
        kinds.setdefault("{} [{}]".format(*e.model.kind(e.names[k], k)), []).append(k)
    parts = []
    for kind, rows in sorted(kinds.items(), key=lambda pair: min(pair[1])):
        chart = {
            "y": kind,
            "names": [e.names[k] + (" *" if e.uncertainty.share[k] < RESTS_ON_PRIOR else "") for k in rows],
            "values": short(e.values[rows]),
            "deviations": short(2 * e.deviations[rows]),
            "prior": short(prior[rows]),
        }
        parts.append(
            f"<div>{_chart(charts, chart, f'{kind}: identified, with two standard deviations, and prior')}</div>"
        )
    note = "<p>In each chart the least determined parameters come first; those with a star rest on the prior.</p>"
    return note + f'<div class="columns">{"".join(parts)}</div>'


def _identifiable(e: Estimate) -> str:
    head = ["parameter", "value [SI]", "σ", "σ %", "determined by the log %", ""]
    share, relative = e.uncertainty.share, e.relative_deviations
    rows = [
        [
            *(e.names[k], f"{e.values[k]:.5g}", f"{e.deviations[k]:.2g}", f"{100 * relative[k]:.1f}"),
            *(f"{100 * share[k]:.0f}", "rests on the prior" if share[k] < RESTS_ON_PRIOR else ""),
        ]
        for k in _worst_first(e)
    ]
    text = (
        "<p>Only these combinations of the inertial parameters affect the joint torques; the mass"
        " of the first link, for example, is often not among them. A parameter that is hardly determined by the log"
        f" rests on the prior. Condition number (unit columns): {e.condition:.3g}.</p>"
    )
    return text + table("", head, rows)


def _links(e: Estimate) -> str:
    head = ["link", "mass [kg]", "prior mass [kg]", "smallest eigenvalue of the pseudo-inertia"]
    rows = [
        [str(k + 1), f"{m:.4g}", f"{float(link.mass):.4g}", f"{low:.3g}"]
        for k, (m, link, low) in enumerate(zip(e.natural[:, 0], e.prior.links, e.smallest_eigenvalues, strict=True))
    ]
    return "<p>A link with a negative eigenvalue is physically impossible.</p>" + table("", head, rows)


def _extras(e: Estimate) -> str:
    rows = [
        [own.name, f"{value:.5g}", TERMS[own.term].words + where]
        for own, value in zip(e.model.extra_parameters, e.extras.values(), strict=True)
        for where in [
            f"; of motor {own.motor + 1}, between the joints it turns" if own.motor is not None
            else "" if own.log is None else f"; log {own.log + 1} less log 1"
        ]
    ]  # fmt: skip
    return table("", ["parameter", "value", "meaning"], rows)
