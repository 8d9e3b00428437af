"""The straight-line study as one self-contained page: table, path, errors, torques."""

from __future__ import annotations

from typing import Any

import numpy as np

from armdyn.pages.motion import motion, motion_page
from armdyn.pages.writer import escape, section, table
from armdyn.studies import puma_line as study


def charts(data: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Charts by title: errors over time, torques, and convergence, with logarithms for values that span decades."""
    return {
        "Errors of the tool": _errors(data),
        "Torques of the prescribed motion": _torques(data),
        "Convergence": _order(data),
    }


def _errors(data: dict[str, Any]) -> dict[str, Any]:
    units = {"position": "m", "velocity": "m/s", "acceleration": "m/s²"}
    curves = []
    for name, errors in data["errors"].items():
        for quantity in study.QUANTITIES if name == "exact" else ("position",):
            label = f"{quantity} [{units[quantity]}], torques {name}"
            curves.append({"name": label, "y": _logarithms(errors[quantity])})
    return {"x": _short(data["errors"]["exact"]["t"]), "y": "log₁₀ of the error", "curves": curves}


def _torques(data: dict[str, Any]) -> dict[str, Any]:
    names = [joint.name for joint in study.puma().joints]
    curves = [{"name": name, "y": _short(column)} for name, column in zip(names, data["tau"].T, strict=True)]
    return {"x": _short(data["t"]), "y": "torque [N m]", "curves": curves}


def _order(data: dict[str, Any]) -> dict[str, Any]:
    found = sorted(data["convergence"], key=lambda row: float(row["step"]))
    steps, errors = [row["step"] for row in found], [row["error"] for row in found]
    fifth = [errors[-1] * (step / steps[-1]) ** 5 for step in steps]
    curves = [("joint error at 5 s [rad]", errors), ("fifth order", fifth)]
    drawn = [{"name": name, "y": _logarithms(values)} for name, values in curves]
    return {"x": _logarithms(steps), "y": "log₁₀ of the error, over log₁₀ of the step [s]", "curves": drawn, "unit": ""}


def _logarithms(values: Any) -> list[float]:
    """Decimal logarithms, with zeros shown as 1e-16."""
    return _short(np.log10(np.maximum(np.asarray(values, dtype=float), 1e-16)))


def _short(values: Any) -> list[float]:
    return [float(f"{x:.6g}") for x in values]


HEADS = ["error", "", *(f"{m}, printed" for m in study.PRINTED), *(f"{m}, here" for m in study.METHODS)]


def rows(data: dict[str, Any]) -> list[list[str]]:
    """Table 2, as printed and as replicated: one row per number."""
    table = []
    for quantity, symbol in zip(study.QUANTITIES, ("r", "ṙ", "r̈"), strict=True):
        for k, kind in enumerate(("max", "mean")):
            printed = [f"{values[quantity][k]:.4e}" for values in study.PRINTED.values()]
            here = [f"{row[f'{quantity} (lengths)'][k]:.4e}" for row in data["table"]]
            table.append([f"{quantity}, Δ|{symbol}|", kind, *printed, *here])
        for k, kind in enumerate(("max", "mean")):
            here = [f"{row[quantity][k]:.4e}" for row in data["table"]]
            table.append([f"{quantity}, |Δ{symbol}|", kind, *[""] * len(study.PRINTED), *here])
    seconds = [*study.PRINTED_SECONDS.values(), *(row["seconds"] for row in data["table"])]
    none = [""] * len(study.PRINTED)
    operations = ["operations of an evaluation", "", *none, *(row["operations"] for row in data["table"])]
    return [*table, ["seconds, best of two", "", *(f"{x:.2f}" for x in seconds)], operations]


def findings(data: dict[str, Any]) -> list[str]:
    """The findings in sentences."""
    apart = max(row["difference_from_ours"] for row in data["table"])
    printed = [values["position"][0] for values in study.PRINTED.values()]
    sampled = data["sampled"]
    return [
        f"Inverse kinematics keeps the tool on the line within {data['residual']:.1e}.",
        f"The four methods agree within {apart:.1e} rad at the end of every interval; the printed largest position "
        f"errors differ by {max(printed) - min(printed):.1e} m.",
        f"Under feedforward torques alone the motion is unstable: errors grow {data['growth']:.1f}-fold per second. "
        f"The printed ratio of mean to maximum implies {data['printed_growth']:.1f}-fold growth per second.",
        f"With torques sampled every 0.1 s the tool ends up {sampled['linear']['position']:.2f} m off the line by "
        f"linear interpolation and {sampled['held']['position']:.2f} m by zero-order hold: the printed errors cannot "
        "come from such torques on this arm.",
        f"With fixed steps the measured order of convergence is {data['convergence'][-1]['order']:.2f} (nominal: 5).",
    ]


def page(data: dict[str, Any]) -> str:
    """The self-contained page."""
    notes = "".join(f"<li>{escape(text)}</li>" for text in findings(data))
    drawn = charts(data)
    canvases = "".join(
        f'<h3>{escape(title)}</h3><canvas class="chart" data-chart="{k}" role="img"></canvas>'
        for k, title in enumerate(drawn)
    )
    sections = section("findings", "Findings", f"<ul>{notes}</ul>")
    sections += section("table", "Table 2, as printed and as replicated", table("", HEADS, rows(data)))
    sections += section("charts", "Plots", canvases)
    names = [joint.name for joint in study.puma().joints]
    shown = motion(study.puma(), data["t"], data["q"], data["tau"], [("position [rad]", names, data["q"])])
    description = (
        "Replication of Provenzano, Mata, Ceccarelli and Suñer, section 4 and Table 2. Δ|r| is the difference of the "
        "lengths of the vectors, as the paper has it, |Δr| the length of their difference, in m, m/s and m/s²; torques "
        "are exact in time."
    )
    return motion_page("Puma along a straight line", description, {**shown, "charts": list(drawn.values())}, sections)
