"""The report as one self-contained, interactive HTML page: the arm, its simulation, its numbers and its papers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from armdyn.pages.writer import ARM, POLICY, as_json, document, escape, facts, navigation, section, table

QUANTITY = {
    "inertia_matrix": "inertia matrix",
    "bias": "bias",
    "inverse_dynamics": "inverse dynamics",
    "forward_dynamics": "forward dynamics",
}
SCRIPTS = (*ARM, "costs.js", "graph.js", "report.js")


def page(data: dict[str, Any], citation: str, bar: str = "", scripts: Sequence[str] = (), policy: str = POLICY) -> str:
    """The whole page for the data of `collect`; `bar` and `scripts` add the studio's toolbar."""
    sections = [
        ("numbers", "Live numbers", NUMBERS),
        ("parameters", "Minimal parameters", _parameters(data["parameters"])),
        ("cost", "Operation counts of every formulation", _costs()),
        ("graph", "Expression graph", _graph(data["graphs"])),
        ("tables", "Joints and links", _tables(data["card"])),
        ("speed", "Speed", _speed(data["speed"], data["fall"])),
        ("cite", "How to cite", f"<p>The papers whose algorithms this page uses:</p><pre>{escape(citation)}</pre>"),
    ]
    body = (
        f"<main>{_header(data['card'])}{bar}"
        f"{navigation([('arm', 'The arm'), *((key, title) for key, title, _ in sections)])}"
        f"{STAGE}{_facts(data)}{''.join(section(*one) for one in sections)}"
        f"<footer>Made by armdyn {escape(data['version'])}. This page runs the arm's own programs as WebAssembly and "
        "makes no network requests. Space plays and pauses, r resets; in the 3D view the arrow keys rotate, + and − "
        "zoom, 0 resets the view.</footer></main>"
    )
    payload = {
        "robot": data["robot"],
        "costs": _with_errors(data["costs"], data["accuracy"]),
        "graphs": data["graphs"],
        "labels": QUANTITY,
    }
    return document(f"{data['card']['name']}, by armdyn", body, payload, (*SCRIPTS, *scripts), policy)


def _header(card: dict[str, Any]) -> str:
    source = f'<p class="muted">{escape(card["source"])}</p>' if card["source"] else ""
    return (
        f"<header><h1>{escape(card['name'])}</h1>"
        f'<button id="theme" type="button">Light / dark</button>{source}</header>'
    )


def _facts(data: dict[str, Any]) -> str:
    card = data["card"]
    best = {row["quantity"]: row for row in data["costs"] if row["best"]}
    mul, add, _ = best["inertia_matrix"]["compiled"]
    speed = {row["quantity"]: row for row in data["speed"]}
    return facts(
        [
            (f"{card['n']}", f"joints ({card['kinds']})"),
            (f"{card['mass_kg']:.2f} kg", "moving mass"),
            (f"{len(data['parameters']['names'])}", f"minimal parameters of {10 * len(card['links'])}"),
            (f"{mul}M {add}A", f"inertia matrix, by {best['inertia_matrix']['method']}"),
            (f"{speed['inverse_dynamics']['batch_ns']:.0f} ns", "inverse dynamics per configuration"),
            (f"{speed['forward_dynamics']['batch_ns']:.0f} ns", "forward dynamics per configuration"),
        ]
    )


STAGE = """
<section id="arm" class="stage">
  <div class="picture">
    <canvas id="arm-view" tabindex="0" role="img" aria-label="the arm in 3D: arrow keys rotate the view"></canvas>
    <div class="overlay" id="looks"></div>
  </div>
  <div class="panel">
    <div>
      <h3>Physics</h3>
      <div class="row">
        <button class="main" id="play" type="button">Play</button>
        <button id="reset" type="button">Reset</button>
        <button id="fall" type="button">Let go</button>
        <span id="clock"></span>
      </div>
      <div class="row"><span id="modes"></span><span id="speeds"></span></div>
      <p class="muted small" id="differs"></p>
      <p id="meter"></p>
    </div>
    <h3>Joints</h3>
    <p class="muted small">Drag a link, the gripper or a slider; drag the background to rotate the view.</p>
    <div id="sliders"></div>
    <details><summary>Payload, gravity, friction</summary><div id="conditions"></div></details>
  </div>
</section>
"""

NUMBERS = """
<div class="columns" id="traces"></div>
<div class="live-facts" id="live-facts"></div>
<div class="columns">
  <div><h3>Inertia matrix H(q) [kg m², kg m, kg]</h3><div id="heat"></div></div>
  <div>
    <h3>Motor torque and limit</h3><div id="bars"></div>
    <h3>Generalised momentum H(q) q̇</h3><div id="momentum"></div>
  </div>
</div>
"""


def _tables(card: dict[str, Any]) -> str:
    joints = [
        [j["name"], j["kind"], j["b"], j["beta"], j["d"], j["theta"], j["lower"], j["upper"], j["rotor_inertia"]]
        for j in card["joints"]
    ]
    links = [[k, link["mass"], *link["com"], *link["inertia"]] for k, link in enumerate(card["links"], 1)]
    odd = "".join(f'<p class="odd">warning: {escape(text)}</p>' for text in card["checks"])
    return (
        table(
            "Joints: frame i in its parent's frame by b along x, β about x, d along z, θ about z",
            ["joint", "kind", "b [m]", "β [rad]", "d [m]", "θ [rad]", "lower", "upper", "rotor inertia [kg m²]"],
            joints,
        )
        + "<br>"
        + table(
            "Links: centre of mass in the link's frame, inertia about the centre of mass",
            ["link", "mass [kg]", "cx [m]", "cy [m]", "cz [m]", "Ixx [kg m²]", "Iyy", "Izz", "Ixy", "Ixz", "Iyz"],
            links,
        )
        + (odd or '<p class="good">All plausibility checks passed.</p>')
    )


def _parameters(found: dict[str, Any]) -> str:
    rows = "".join(
        f'<tr data-links="{escape(as_json(links))}"><td>{_symbol(name)}</td><td>{value:.6g}</td>'
        f'<td>{_squares(links, found["bodies"])}</td><td class="formula">{_formula(text)}</td></tr>'
        for name, value, text, links in zip(
            found["names"], found["values"], found["expressions"], found["links"], strict=True
        )
    )
    return (
        f"<p>The {len(found['names'])} combinations of inertial parameters that determine this arm's motion "
        f"({escape(str(found['kind']))}). Point at one to highlight the links that contribute to it. "
        '<span class="muted" id="parameter-links"></span></p>'
        "<div class='scroll'><table id='parameter-table'><thead><tr><th>parameter</th><th>value [SI]</th><th>links</th>"
        f"<th class='text'>in terms of the natural parameters</th></tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _squares(links: list[int], bodies: int) -> str:
    """One small square per link, filled if the link contributes to the parameter."""
    text = f"link{'s' if len(links) > 1 else ''} {', '.join(str(k + 1) for k in links)}"
    boxes = "".join(f"<i{' class=on' if k in links else ''}></i>" for k in range(bodies))
    return f'<span class="squares" role="img" aria-label="{text}" title="{text}">{boxes}</span>'


def _symbol(name: str) -> str:
    """`U11-22_2` as U with subscripts."""
    head, _, index = name.partition("_")
    letters = head.rstrip("0123456789-xyz") or head
    indices = ", ".join(part for part in (head[len(letters) :], index) if part)
    return f"<i>{escape(letters)}</i><sub>{escape(indices)}</sub>"


_BELOW = str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789")


def _formula(text: str) -> str:
    """Typeset a plain formula: letters italic, indices as subscripts."""
    return re.sub(
        r"([A-Za-zα-ωκ])([₀-₉]+)([xyz]*)",
        lambda m: f"<i>{m[1]}</i><sub>{m[2].translate(_BELOW)}{m[3]}</sub>",
        escape(text),
    )


def operations(counts: Sequence[int]) -> str:
    """`79M 63A 4D`: multiplications, additions, divisions."""
    mul, add, div = counts
    return f"{mul}M {add}A" + (f" {div}D" if div else "")


def _with_errors(rows: list[dict[str, Any]], accuracy: list[dict[str, Any]]) -> list[dict[str, Any]]:
    errors = {(row["quantity"], row["method"]): row["error"] for row in accuracy}
    return [{**row, "error": errors.get((row["quantity"], row["method"]))} for row in rows]


def _costs() -> str:
    return (
        "<p>M multiplications, A additions, D divisions. The pale bar is <i>executed</i>: the paper's steps run "
        "literally on this arm, without operations on zeros of its geometry. The full bar is <i>compiled</i>: after "
        "constant folding, common subexpression elimination, rewriting and dead-code elimination. The shortest is "
        "used. The error is the largest difference from the reference implementation, relative to the largest "
        'entry.</p><div id="cost-chart"></div>'
    )


def _graph(found: list[dict[str, Any]]) -> str:
    if not found:
        return "<p>This robot's programs are too large to draw.</p>"
    used = ", ".join(f"{QUANTITY[g['quantity']]} by {g['method']}" for g in found)
    return (
        "<p>The program that the machine code is compiled from. Each dot is one operation, computed once from dots to "
        f'its left. Results have a ring. Shown: {escape(used)}.</p><div id="graph-chart"></div>'
    )


def _speed(speed: list[dict[str, Any]], fall: dict[str, Any]) -> str:
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
    return (
        table(
            "Measured in Python when this page was written: best of several, one thread, batches of 16384. The first "
            "call includes the choice of a formulation, the program search and the compilation (or loading from the "
            "cache on disk).",
            [
                *("quantity", "formulation", "per configuration [ns]", "copying the result [ns]", "one call [ns]"),
                "first call [ms]",
            ],
            rows,
        )
        + f"<p>{escape(fall['text'])}</p>"
    )
