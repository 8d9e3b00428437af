"""The report of an identification: one HTML file that needs nothing else, in plain words."""

from __future__ import annotations

import os
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from armdyn.files.text import write_text
from armdyn.identification.model.model import TERMS

if TYPE_CHECKING:
    from armdyn.identification.estimate.result import Comparison, Estimate

STYLE = """
body{font:16px/1.5 system-ui,sans-serif;max-width:62rem;margin:2rem auto;padding:0 1rem;color:#1b1b1f;background:#fff}
table{border-collapse:collapse;margin:1rem 0}td,th{padding:.15rem .8rem .15rem 0;text-align:right}
td:first-child,th:first-child{text-align:left}th{border-bottom:1px solid #999;font-weight:600}
.warn{border-left:4px solid #c77700;padding:.2rem .8rem;margin:.5rem 0;background:#fff7e8}h2{margin-top:2.2rem}
"""


def write(estimate: Estimate, path: str | os.PathLike[str]) -> None:
    """Write the report, whole or not at all."""
    write_text(path, page(estimate))


def page(estimate: Estimate) -> str:
    """The report as text."""
    from plotly.offline import get_plotlyjs

    parts = [
        f"<h1>{escape(estimate.given.name)}: identified from {escape(estimate.training.source or 'a log')}</h1>",
        _summary(estimate),
        _warnings(estimate),
        _steps(estimate),
        "<h2>Errors by joint</h2>",
        _joints(estimate),
        _torques("Measured and predicted torque", estimate.training),
    ]
    if estimate.validation is not None:
        parts.append(_torques(f"The log that was not trained on: {estimate.validation.source}", estimate.validation))
    parts += [_parameters(estimate), _identifiable(estimate), _links(estimate), _extras(estimate)]
    title = escape(f"{estimate.given.name} identified")
    head = f'<meta charset="utf-8"><title>{title}</title><style>{STYLE}</style><script>{get_plotlyjs()}</script>'
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{"".join(parts)}</body></html>\n'


def _summary(e: Estimate) -> str:
    left = 100 * float(np.sqrt(np.mean(e.folds**2)))
    lines = [
        f"{len(e.names)} parameters ({e.model.rigid} of the rigid body) by the {e.estimator} estimator from"
        f" {len(e.training.t)} samples per joint.",
        f"The model explains the torques to {100 * e.error:.2f} %; segments left out in turn to {left:.2f} %.",
    ]
    if e.validation is not None:
        lines.append(
            f"A log it never saw is predicted to <b>{100 * e.validation.error:.2f} %</b>"
            f" ({100 * e.validation.raw_error:.2f} % with every sample unfiltered)."
        )
    if e.regularization is not None:
        lines.append(f"Regularization towards the prior arm: {e.regularization:g} noise variances.")
    lines.insert(1, f"Signals: {e.processing}.")
    if e.processing.dead_zone:
        lines.append(f"Rows slower than {e.processing.dead_zone:g} were left out of the fit, not of the errors.")
    if any(e.base_tilt):
        angle = np.degrees(np.hypot(*e.base_tilt))
        lines.append(f"The base is tilted by {angle:.2f} degrees; gravity is taken accordingly.")
    return "".join(f"<p>{line}</p>" for line in lines)


def _warnings(e: Estimate) -> str:
    said = [*e.notes, *e.warnings]
    if not said:
        return "<p>Nothing to warn of.</p>"
    return "<h2>Before you trust it</h2>" + "".join(f'<div class="warn">{escape(text)}</div>' for text in said)


def _table(head: list[str], rows: list[list[str]]) -> str:
    top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><tr>{top}</tr>{body}</table>"


def _steps(e: Estimate) -> str:
    if not e.steps:
        return ""
    text = (
        "<h2>What the model is made of</h2><p>Terms were added one at a time, as long as the log made one evident and"
        " segments left out were predicted better with it.</p>"
    )
    return text + _table(["model", "left-out error"], [[name, f"{error:.3f}"] for name, error in e.steps.items()])


def _joints(e: Estimate) -> str:
    shown = [("fitted", e.training)] if e.validation is None else [("not fitted", e.validation), ("fitted", e.training)]
    head = [
        "joint",
        *(f"{what}, {where}" for where, _ in shown for what in ("R²", "error %")),
        "rms residual",
        "√(1+2Σρ)",
    ]
    columns = [[f"{r:.4f}" for r in c.r_squared] for _, c in shown]
    numbers = [[f"{100 * x:.2f}" for x in c.joint_errors] for _, c in shown]
    pairs = [column for both in zip(columns, numbers, strict=True) for column in both]
    rms = [f"{s:.3g}" for s in np.sqrt((e.training.residual**2).mean(axis=0))]
    factors = [f"{f:.2f}" for f in e.autocorrelation_factors]
    names = [joint.name or str(k) for k, joint in enumerate(e.given.joints, 1)]
    rows = [list(row) for row in zip(names, *pairs, rms, factors, strict=True)]
    note = "<p>The last column says by how much deviations were enlarged because neighbouring residuals agree.</p>"
    return _table(head, rows) + note


def _figure(figure: Any) -> str:
    figure.update_layout(template="plotly_white", margin={"l": 60, "r": 20, "t": 40, "b": 40})
    return str(figure.to_html(full_html=False, include_plotlyjs=False))


def _torques(title: str, shown: Comparison) -> str:
    from plotly.graph_objects import Scatter
    from plotly.subplots import make_subplots

    n = shown.tau.shape[1]
    figure = make_subplots(rows=n, cols=1, shared_xaxes=True, vertical_spacing=0.02)
    t = shown.t - shown.t[0]
    curves = (("measured", shown.tau, "#444"), ("predicted", shown.predicted, "#0a6ebd"),
              ("residual", shown.residual, "#c44"))  # fmt: skip
    for j in range(n):
        for name, values, colour in curves:
            line = {"color": colour, "width": 1}
            figure.add_trace(
                Scatter(x=t, y=values[:, j], name=name, legendgroup=name, showlegend=j == 0, line=line), j + 1, 1
            )
        figure.update_yaxes(title_text=f"τ{j + 1} [N m, N]", row=j + 1, col=1)
    figure.update_xaxes(title_text="time [s]", row=n, col=1)
    figure.update_layout(height=160 * n + 80)
    return f"<h2>{escape(title)}</h2>{_figure(figure)}"


def _parameters(e: Estimate) -> str:
    from plotly.graph_objects import Figure, Scatter

    prior = e.model.natural @ e.model.prior(e.prior)
    figure = Figure()
    bars = {"type": "data", "array": 2 * e.deviations}
    figure.add_trace(Scatter(x=list(e.names), y=e.values, mode="markers", error_y=bars, name="identified (± 2 σ)"))
    figure.add_trace(Scatter(x=list(e.names), y=prior, mode="markers", marker_symbol="x", name="prior"))
    figure.update_yaxes(title_text="value [SI]")
    figure.update_layout(height=420)
    return f"<h2>Parameters</h2>{_figure(figure)}"


def _identifiable(e: Estimate) -> str:
    head = ["parameter", "value [SI]", "σ", "σ %", "owed to the log %"]
    rows = [
        [name, f"{v:.5g}", f"{d:.2g}", f"{100 * r:.1f}", f"{100 * s:.0f}"]
        for name, v, d, r, s in zip(
            e.names, e.values, e.deviations, e.relative_deviations, e.uncertainty.share, strict=True
        )
    ]
    text = (
        "<h2>What can be told and what cannot</h2><p>These combinations are all that the arm's motion can tell; the"
        " mass of the first link, say, moves no joint and is not among them. A parameter that owes little to the log"
        f" rests on the prior. Condition number (unit columns): {e.condition:.3g}.</p>"
    )
    return text + _table(head, rows)


def _links(e: Estimate) -> str:
    head = ["link", "mass [kg]", "prior mass [kg]", "smallest eigenvalue of the pseudo-inertia"]
    rows = [
        [str(k + 1), f"{m:.4g}", f"{float(link.mass):.4g}", f"{low:.3g}"]
        for k, (m, link, low) in enumerate(zip(e.natural[:, 0], e.prior.links, e.smallest_eigenvalues, strict=True))
    ]
    return "<h2>Links</h2><p>A negative eigenvalue is a body that cannot exist.</p>" + _table(head, rows)


def _extras(e: Estimate) -> str:
    said = {term.symbol: term.words for term in TERMS.values()}
    rows = [[name, f"{value:.5g}", said.get(name.rstrip("0123456789m"), "")] for name, value in e.extras.items()]
    return "<h2>Drives and friction</h2>" + _table(["parameter", "value", "meaning"], rows)
