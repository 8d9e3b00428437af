"""The report as one self-contained HTML page: opens offline, in light and dark, on a phone, on paper."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Sequence
from importlib.resources import files
from typing import Any

QUANTITY = {
    "inertia_matrix": "inertia matrix",
    "bias": "bias",
    "inverse_dynamics": "inverse dynamics",
    "forward_dynamics": "forward dynamics",
}


def page(data: dict[str, Any], citation: str) -> str:
    """The whole page for what `collect` found."""
    card = data["card"]
    sections = [
        ("arm", "The arm", _view()),
        ("tables", "Joints and links", _tables(card)),
        ("parameters", "Minimal parameters", _parameters(data["parameters"])),
        ("cost", "Operations and accuracy", _costs(data["costs"], data["accuracy"])),
        ("speed", "Speed", _speed(data["speed"])),
        ("inertia", "Inertia matrix along a motion", _map()),
        ("torques", "Torques along the motion", _chart("torques") + _chart("gravity")),
        ("fall", "Free fall", _fall(data["fall"])),
        (
            "cite",
            "How to cite",
            f"<p>The papers whose algorithms made this report:</p><pre>{html.escape(citation)}</pre>",
        ),
    ]
    nav = "".join(f'<a href="#{key}">{title}</a>' for key, title, _ in sections)
    body = "".join(f'<section id="{key}"><h2>{title}</h2>{text}</section>' for key, title, text in sections)
    payload = {
        "arm": data["view"],
        "figures": _figures(data),
        "map": {
            "t": data["motion"]["map_t"],
            "frames": data["motion"]["map"],
            "names": [joint["name"] for joint in card["joints"]],
            "floor": 1e-3,
        },
    }
    text = json.dumps(payload, separators=(",", ":")).replace("</", "<\\/")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f"<title>{html.escape(card['name'])}, by armdyn</title>"
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<style>{_asset('page.css')}</style></head><body><main>{_header(data)}<nav>{nav}</nav>{body}"
        f'<p class="muted">Made by armdyn {data["version"]}.</p></main>'
        f'<script type="application/json" id="data">{text}</script><script>{_plotly()}</script>'
        f"<script>{_asset('arm.js')}</script><script>{_asset('page.js')}</script></body></html>\n"
    )


def _asset(name: str) -> str:
    return files("armdyn.report").joinpath("assets", name).read_text(encoding="utf-8")


def _plotly() -> str:
    from plotly.offline import get_plotlyjs

    script: str = get_plotlyjs()
    return script


def _header(data: dict[str, Any]) -> str:
    card = data["card"]
    best = {row["quantity"]: row for row in data["costs"] if row["best"]}
    mul, add, _ = best["inertia_matrix"]["compiled"]
    speed = {row["quantity"]: row for row in data["speed"]}
    facts = [
        (f"{card['n']}", f"joints ({card['kinds']})"),
        (f"{card['mass_kg']:.2f} kg", "moving mass"),
        (f"{len(data['parameters']['names'])}", f"minimal parameters of {10 * card['n']}"),
        (f"{mul}M {add}A", f"inertia matrix, by {best['inertia_matrix']['method']}"),
        (f"{speed['inverse_dynamics']['batch_ns']:.0f} ns", "inverse dynamics a configuration"),
        (f"{speed['forward_dynamics']['batch_ns']:.0f} ns", "forward dynamics a configuration"),
    ]
    boxes = "".join(f'<div class="fact"><b>{a}</b><span>{html.escape(b)}</span></div>' for a, b in facts)
    source = f'<p class="muted">{html.escape(card["source"])}</p>' if card["source"] else ""
    return f'<header><h1>{html.escape(card["name"])}</h1>{source}<div class="facts">{boxes}</div></header>'


def _view() -> str:
    return (
        '<p class="muted">Drag to turn, scroll to zoom. '
        "Blue cylinders are revolute joints, orange boxes prismatic ones.</p>"
        '<div class="view"><canvas id="arm-view" aria-label="the arm in three dimensions"></canvas>'
        '<div><div id="sliders"></div><p class="muted" id="tip"></p></div></div>'
    )


def table(caption: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], marks: Iterable[bool] = ()) -> str:
    """An HTML table; cells are text or numbers, `marks` names the rows to stand out."""
    head = "".join(f"<th>{html.escape(c)}</th>" for c in columns)
    flags = list(marks)
    body = []
    for k, row in enumerate(rows):
        cells = "".join(f"<td>{_cell(cell)}</td>" for cell in row)
        body.append(f'<tr class="best">{cells}</tr>' if k < len(flags) and flags[k] else f"<tr>{cells}</tr>")
    kind = ' class="two"' if columns[1] in ("kind", "formulation") else ""
    return (
        f'<div class="scroll"><table{kind}><caption>{html.escape(caption)}</caption><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(body)}</tbody></table></div>"
    )


def _cell(x: Any) -> str:
    if x is None:
        return ""
    return f"{x:.6g}" if isinstance(x, float) else html.escape(str(x))


def _tables(card: dict[str, Any]) -> str:
    joints = [
        [j["name"], j["kind"], j["b"], j["beta"], j["d"], j["theta"], j["lower"], j["upper"], j["rotor_inertia"]]
        for j in card["joints"]
    ]
    links = [[k, link["mass"], *link["com"], *link["inertia"]] for k, link in enumerate(card["links"], 1)]
    odd = "".join(f'<p class="odd">odd: {html.escape(text)}</p>' for text in card["checks"])
    return (
        table(
            "Joints: frame i in frame i-1 by b along x, β about x, d along z, θ about z",
            ["joint", "kind", "b [m]", "β [rad]", "d [m]", "θ [rad]", "lower", "upper", "rotor inertia [kg m²]"],
            joints,
        )
        + "<br>"
        + table(
            "Links: centre of mass in the link's frame, inertia about the centre of mass",
            ["link", "mass [kg]", "cx [m]", "cy [m]", "cz [m]", "Ixx [kg m²]", "Iyy", "Izz", "Ixy", "Ixz", "Iyz"],
            links,
        )
        + (odd or '<p class="good">Nothing physically odd found.</p>')
    )


def _parameters(found: dict[str, Any]) -> str:
    rows = "".join(
        f'<tr><td>{_symbol(name)}</td><td>{value:.6g}</td><td class="formula">{_formula(text)}</td></tr>'
        for name, value, text in zip(found["names"], found["values"], found["expressions"], strict=True)
    )
    return (
        f"<p>All that can be known about this arm's inertia from its motion: {len(found['names'])} combinations "
        f"({html.escape(str(found['kind']))}).</p>"
        "<div class='scroll'><table><thead><tr><th>parameter</th><th>value [SI]</th>"
        f"<th class='text'>in the links' natural parameters</th></tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _symbol(name: str) -> str:
    """`U11-22_2` as U with its indices below."""
    head, _, index = name.partition("_")
    letters = head.rstrip("0123456789-xyz") or head
    indices = ", ".join(part for part in (head[len(letters) :], index) if part)
    return f"<i>{html.escape(letters)}</i><sub>{html.escape(indices)}</sub>"


_BELOW = str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789")


def _formula(text: str) -> str:
    """A plain formula typeset: letters italic, indices below the line."""
    return re.sub(
        r"([A-Za-zα-ωκ])([₀-₉]+)([xyz]*)",
        lambda m: f"<i>{m[1]}</i><sub>{m[2].translate(_BELOW)}{m[3]}</sub>",
        html.escape(text),
    )


def _ops(counts: Sequence[int]) -> str:
    mul, add, div = counts
    return f"{mul}M {add}A" + (f" {div}D" if div else "")


def _costs(rows: list[dict[str, Any]], accuracy: list[dict[str, Any]]) -> str:
    errors = {(row["quantity"], row["method"]): f"{row['error']:.1e}" for row in accuracy}
    body = [
        [
            QUANTITY[row["quantity"]],
            row["method"],
            _ops(row["published"]),
            _ops(row["compiled"]),
            row["total"],
            errors.get((row["quantity"], row["method"])),
        ]
        for row in rows
    ]
    columns = ["quantity", "formulation", "executed", "compiled", "compiled, all", "error to the reference"]
    return (
        "<p>M multiplications, A additions, D divisions. <i>Executed</i>: the paper's steps run literally on this "
        "arm, zeros of its geometry skipped. <i>Compiled</i>: folded, shared and stripped of dead code. The cheapest "
        "is used. The error is the largest difference from the plain definition, relative to the largest entry.</p>"
        + _chart("cost")
        + table("", columns, body, [r["best"] for r in rows])
    )


def _speed(speed: list[dict[str, Any]]) -> str:
    rows = [
        [
            QUANTITY[r["quantity"]],
            r["method"],
            f"{r['batch_ns']:.1f}",
            f"{r['copy_ns']:.1f}",
            f"{r['single_ns']:.0f}",
            f"{r['first_call_ms']:.0f}",
        ]
        for r in speed
    ]
    return table(
        "Measured when this page was made: best of several, one thread, batches of 16384",
        ["quantity", "formulation", "a configuration [ns]", "copying it [ns]", "one call [ns]", "first call [ms]"],
        rows,
    )


def _map() -> str:
    return (
        '<label class="slider"><span id="inertia-map-label">t</span>'
        '<input type="range" id="inertia-map-time" min="0" max="1" value="0" step="1"><output>kg m²</output></label>'
        + _chart("inertia-map")
    )


def _chart(key: str) -> str:
    return f'<div class="chart" id="chart-{key}"></div>'


def _fall(fall: dict[str, Any]) -> str:
    return (
        f"<p>Let go from the posture above without friction; the energy must stay. {html.escape(fall['message'])}</p>"
        + _chart("fall-q")
        + _chart("fall-energy")
    )


def _figures(data: dict[str, Any]) -> dict[str, Any]:
    names = [joint["name"] for joint in data["card"]["joints"]]
    motion, fall = data["motion"], data["fall"]
    inertia = [row for row in data["costs"] if row["quantity"] == "inertia_matrix"]
    methods = [row["method"] for row in inertia]

    def lines(t: list[float], curves: list[list[float]], y: str) -> dict[str, Any]:
        traces = [
            {"x": _short(t), "y": _short(c), "name": n, "mode": "lines"} for c, n in zip(curves, names, strict=True)
        ]
        return {"data": traces, "layout": {"xaxis": {"title": {"text": "time [s]"}}, "yaxis": {"title": {"text": y}}}}

    energy = lines(fall["t"], [fall["energy_error"]] * len(names), "change of energy [J]")
    energy["data"] = energy["data"][:1]
    energy["data"][0]["name"] = "energy"
    energy["layout"]["yaxis"]["exponentformat"] = "e"
    return {
        "chart-cost": {
            "data": [
                {"type": "bar", "name": label, "x": methods, "y": [sum(row[key]) for row in inertia]}
                for key, label in (("published", "executed literally"), ("compiled", "compiled"))
            ],
            "layout": {"barmode": "group", "yaxis": {"title": {"text": "operations, inertia matrix"}}, "xaxis": {}},
        },
        "chart-torques": lines(motion["t"], motion["torque"], "torque [N m], force [N]"),
        "chart-gravity": lines(motion["t"], motion["gravity_load"], "gravity load [N m], [N]"),
        "chart-fall-q": lines(fall["t"], fall["q"], "position [rad], [m]"),
        "chart-fall-energy": energy,
    }


def _short(values: list[float]) -> list[float]:
    return [float(f"{x:.6g}") for x in values]
