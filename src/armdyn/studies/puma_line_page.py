"""The straight-line study as one self-contained page: table, path, errors, torques."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from armdyn.studies import puma_line as study

STYLE = """body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1d2733}
table{border-collapse:collapse;margin:1rem 0}
td,th{padding:.25rem .8rem;border-bottom:1px solid #d5dbe3;text-align:right;white-space:nowrap}
td:nth-child(-n+2),th:first-child{text-align:left}"""


def figures(data: dict[str, Any]) -> dict[str, Any]:
    """Plotly figures by name: the arm along the line, the errors, the torques, the order."""
    return {
        "The arm along the line": _arm(data),
        "Errors of the tool": _errors(data),
        "Torques of the prescribed motion": _torques(data),
        "Error and step": _order(data),
    }


def _arm(data: dict[str, Any]) -> Any:
    from plotly import graph_objects as go

    arm = study.puma()
    figure = go.Figure()
    chosen = np.linspace(0, len(data["t"]) - 1, 6).astype(int)
    for k in chosen:
        joints = np.vstack([[0, 0, 0], arm.link_poses(data["q"][k])[:, :3, 3], arm.pose(data["q"][k])[:3, 3]])
        late = (k - chosen[0]) / (chosen[-1] - chosen[0])
        color = f"rgb({int(59 + 165 * late)},{int(118 + 5 * late)},{int(209 - 152 * late)})"
        x, y, z = joints.T
        figure.add_scatter3d(
            x=x, y=y, z=z, mode="lines+markers", name=f"{data['t'][k]:.0f} s", line={"width": 7, "color": color},
            marker={"size": 3, "color": color},
        )  # fmt: skip
    x, y, z = np.array(data["path"]).T
    figure.add_scatter3d(x=x, y=y, z=z, mode="lines", name="tool", line={"width": 4, "color": "#1d2733"})
    figure.update_layout(height=560, scene={"aspectmode": "data"}, margin={"l": 0, "r": 0, "t": 10, "b": 0})
    return figure


def _errors(data: dict[str, Any]) -> Any:
    from plotly import graph_objects as go

    figure = go.Figure()
    units = {"position": "m", "velocity": "m/s", "acceleration": "m/s²"}
    for name, errors in data["errors"].items():
        for quantity in study.QUANTITIES if name == "exact" else ("position",):
            values = np.where(errors[quantity] > 0, errors[quantity], np.nan)
            label = f"{quantity} [{units[quantity]}], torques {name}"
            figure.add_scatter(x=errors["t"], y=values, mode="lines", name=label)
    figure.update_yaxes(type="log", exponentformat="power", title_text="error")
    figure.update_xaxes(title_text="time [s]")
    figure.update_layout(height=420, template="plotly_white")
    return figure


def _torques(data: dict[str, Any]) -> Any:
    from plotly import graph_objects as go

    figure = go.Figure()
    for k, joint in enumerate(study.puma().joints):
        figure.add_scatter(x=data["t"], y=data["tau"][:, k], mode="lines", name=joint.name)
    figure.update_layout(height=420, template="plotly_white", xaxis_title="time [s]", yaxis_title="torque [N m]")
    return figure


def _order(data: dict[str, Any]) -> Any:
    from plotly import graph_objects as go

    rows = data["convergence"]
    steps, errors = [row["step"] for row in rows], [row["error"] for row in rows]
    fifth = [errors[0] * (step / steps[0]) ** 5 for step in steps]
    figure = go.Figure()
    figure.add_scatter(x=steps, y=errors, mode="lines+markers", name="joint error at 5 s [rad]")
    figure.add_scatter(x=steps, y=fifth, mode="lines", name="fifth order", line={"dash": "dot"})
    figure.update_xaxes(type="log", title_text="step [s]", exponentformat="power")
    figure.update_yaxes(type="log", exponentformat="power")
    figure.update_layout(height=380, template="plotly_white")
    return figure


HEADS = ["error", "", *(f"{m}, printed" for m in study.PRINTED), *(f"{m}, here" for m in study.METHODS)]


def rows(data: dict[str, Any]) -> list[list[str]]:
    """Table 2, printed and done again: a row a number."""
    table = [
        [quantity, kind]
        + [f"{values[quantity][k]:.4e}" for values in study.PRINTED.values()]
        + [f"{row[quantity][k]:.4e}" for row in data["table"]]
        for quantity in study.QUANTITIES
        for k, kind in enumerate(("max", "mean"))
    ]
    seconds = [*study.PRINTED_SECONDS.values(), *(row["seconds"] for row in data["table"])]
    return [*table, ["seconds", "", *(f"{x:.2f}" for x in seconds)]]


def findings(data: dict[str, Any]) -> list[str]:
    """What the numbers say, in sentences."""
    apart = max(row["difference_from_ours"] for row in data["table"])
    printed = [values["position"][0] for values in study.PRINTED.values()]
    sampled = data["sampled"]
    return [
        f"Inverse kinematics keeps the tool on the line within {data['residual']:.1e}.",
        f"The four methods agree within {apart:.1e} rad at every interval's end; the printed largest position errors "
        f"differ by {max(printed) - min(printed):.1e} m.",
        f"Left to its torques the arm runs away from the line: an error grows {data['growth']:.1f}-fold a second. The "
        f"printed ratio of mean to maximum belongs to a growth of {data['printed_growth']:.1f}-fold a second.",
        f"Torques joined by lines between samples 0.1 s apart lead {sampled['linear']['position']:.2f} m away, held "
        f"ones {sampled['held']['position']:.2f} m: the printed errors cannot come from such torques on this arm.",
        f"With fixed steps halved the error falls at order {data['convergence'][-1]['order']:.2f} (claimed: 5).",
    ]


def page(data: dict[str, Any]) -> str:
    """The page, with everything it needs inside."""
    head = "".join(f"<th>{escape(name)}</th>" for name in HEADS)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows(data))
    notes = "".join(f"<li>{escape(text)}</li>" for text in findings(data))
    parts, library = [], True
    for title, figure in figures(data).items():
        parts.append(f"<h2>{escape(title)}</h2>" + figure.to_html(full_html=False, include_plotlyjs=library))
        library = False
    return (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'><title>Puma along a straight line</title>"
        f"<style>{STYLE}</style></head><body><h1>Puma along a straight line</h1>"
        "<p>Provenzano, Mata, Ceccarelli and Suñer, section 4 and Table 2, done again. Errors are lengths of the "
        "difference from the prescribed motion, in m, m/s and m/s²; torques exact in time.</p>"
        f"<ul>{notes}</ul><div style='overflow-x:auto'><table><tr>{head}</tr>{body}</table></div>"
        f"{''.join(parts)}</body></html>\n"
    )
