"""The report of a calibration: one self-contained HTML file."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from armdyn.files.text import write_text
from armdyn.pages.writer import BASE, document, escape, facts, navigation, section, table

if TYPE_CHECKING:
    from armdyn.calibration.result import Calibration

SCRIPTS = (*BASE, "charts.js", "curves.js", "plots.js")


def write(calibrated: Calibration, path: str | os.PathLike[str]) -> None:
    """Write the report, whole or not at all."""
    write_text(path, page(calibrated))


def page(calibrated: Calibration) -> str:
    """The report as HTML text."""
    charts: list[dict[str, Any]] = []
    sections = [
        ("summary", "Summary", _summary(calibrated)),
        ("corrections", "Corrections", _corrections(calibrated, charts)),
        ("residuals", "Residuals per pose", _residuals(calibrated, charts)),
        ("noise", "Measurement noise", _noise(calibrated)),
    ]
    title = f"{calibrated.given.name}: calibrated from {calibrated.poses.source or f'{len(calibrated.poses)} poses'}"
    body = (
        f'<main><header><h1>{escape(title)}</h1><button id="theme" type="button">Light / dark</button></header>'
        + navigation((key, name) for key, name, _ in sections)
        + "".join(section(*one) for one in sections)
        + "</main>"
    )
    return document(title, body, {"charts": charts}, SCRIPTS)


def correction_rows(calibrated: Calibration) -> list[list[str]]:
    """Name, value before, correction, deviation, unit and combination of every constant, in mm and mrad."""
    return [
        [
            c.name,
            f"{1e3 * c.before:.4f}",
            f"{1e3 * c.correction:+.4f}",
            f"{1e3 * c.deviation:.4f}",
            c.unit,
            calibrated.combinations[c.name],
        ]
        for c in calibrated.corrections
    ]


COLUMNS = ["constant", "before", "correction", "± σ", "unit", "combination"]


def _summary(calibrated: Calibration) -> str:
    first, *others = calibrated.lines()
    remarks = [line for line in others if line not in calibrated.notes]
    boxes = [
        (str(len(calibrated.poses)), f"{calibrated.poses.kind} measurements"),
        (str(len(calibrated.corrections)), "constants"),
    ]
    boxes += [
        (str(len(calibrated.outliers)), "outliers set aside"),
        (f"{calibrated.fit.condition:.3g}", "condition number"),
    ]
    warned = "".join(f'<div class="warn">{escape(note)}</div>' for note in calibrated.notes)
    return facts(boxes) + f"<p>{escape(first)}.</p>" + "".join(f"<p>{escape(line)}.</p>" for line in remarks) + warned


def _corrections(calibrated: Calibration, charts: list[dict[str, Any]]) -> str:
    sections = []
    for length, unit in ((True, "mm"), (False, "mrad")):
        shown = [c for c in calibrated.corrections if c.is_length is length]
        if shown:
            chart = {
                "y": f"correction [{unit}]",
                "names": [c.name for c in shown],
                "values": [_short(1e3 * c.correction) for c in shown],
                "deviations": [_short(2e3 * c.deviation) for c in shown],
                "prior": [0.0 for _ in shown],
                "legend": ["correction ± 2 σ", "nominal"],
            }
            sections.append(_chart(charts, chart, f"corrections in {unit} with two standard deviations"))
    text = (
        "<p>Constants with the same effect on the tool cannot be told apart and share one correction: the last column "
        "names the combination that was measured. Corrections larger than 2 σ are highlighted.</p>"
    )
    marks = [c.significant for c in calibrated.corrections]
    return "".join(sections) + text + table("", COLUMNS, correction_rows(calibrated), marks)


def _residuals(calibrated: Calibration, charts: list[dict[str, Any]]) -> str:
    parts = []
    for what, unit, scale, part in calibrated.parts():
        curves = [
            {"name": name, "y": [_short(scale * float(x)) for x in np.linalg.norm(fit.residual[:, part], axis=1)]}
            for name, fit in (("only base and tool fitted", calibrated.before), ("calibrated", calibrated.fit))
        ]
        numbers = list(range(1, len(calibrated.poses) + 1))
        chart = {"x": numbers, "unit": "pose", "y": f"{what} [{unit}]", "curves": curves}
        parts.append(f"<div>{_chart(charts, chart, f'{what} residual per pose')}</div>")
    return f'<div class="columns">{"".join(parts)}</div><p>Poses are numbered from 1, like the rows of the table.</p>'


def _noise(calibrated: Calibration) -> str:
    units = {True: "mm", False: "mrad"}
    rows = [[axis, f"{1e3 * x:.4g}", units["about" not in axis]] for axis, x in calibrated.noise.items()]
    return "<p>Estimated from the residuals of each axis.</p>" + table("", ["axis", "σ", "unit"], rows)


def _chart(charts: list[dict[str, Any]], chart: dict[str, Any], label: str) -> str:
    charts.append(chart)
    return f'<canvas class="chart" data-chart="{len(charts) - 1}" role="img" aria-label="{escape(label)}"></canvas>'


def _short(x: float) -> float:
    """Rounded to six digits, enough for a plot."""
    return float(f"{x:.6g}")
