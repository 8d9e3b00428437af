"""The report as one self-contained, interactive HTML page: the arm, its simulation, its numbers and its papers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from armdyn.pages.writer import ARM, POLICY, as_json, document, escape, facts, packed, table

QUANTITY = {
    "inertia_matrix": "inertia matrix",
    "bias": "bias",
    "inverse_dynamics": "inverse dynamics",
    "forward_dynamics": "forward dynamics",
}
SCRIPTS = (*ARM, "parameters.js", "share.js", "costs.js", "graph.js", "report.js")
TABS = ("Bench", "Matrices", "Parameters", "Model", "Cost", "Cite")  # their ids in lower case; share.js has the same


def page(data: dict[str, Any], citation: str, bar: str = "", scripts: Sequence[str] = (), policy: str = POLICY) -> str:
    """The whole page for the data of `collect`; `bar` and `scripts` add the studio's toolbar."""
    tabs = {
        "bench": BENCH,
        "matrices": MATRICES,
        "parameters": _parameters(data["parameters"]),
        "model": _tables(data["card"]),
        "cost": _costs() + _graph(data["graphs"]) + _speed(data["speed"], data["fall"]),
        "cite": "<h2>How to cite</h2><p>The papers whose algorithms this page uses:</p>"
        f'<pre tabindex="0">{escape(citation)}</pre>',
    }
    shown, focus = {"bench": " shown"}, {"bench": ""}  # what scrolls without controls inside takes the focus
    panels = "".join(
        f'<section id="{key}" class="tab{shown.get(key, "")}" role="tabpanel" aria-label="{key}"'
        f"{focus.get(key, ' tabindex=0')}>{content}</section>"
        for key, content in tabs.items()
    )
    motion = MOTION.format(falls=FALLS if data.get("falls") else "")
    body = (
        f'<a class="skip" href="#joints">Skip to the joints</a>{_header(data)}{bar}'
        f'<main class="desk">{PICTURE}{panels}{LOOKS}{motion}</main>{EXPORT}'
    )
    payload = {
        "version": data["version"],
        "robot": data["robot"],
        "parameters": data["parameters"],
        "costs": _with_errors(data["costs"], data["accuracy"]),
        "graphs": packed(as_json(data["graphs"]).encode()),
        "labels": QUANTITY,
    }
    if data.get("falls"):
        payload["falls"], scripts = data["falls"], (*scripts, "falls.js")
    name, tab = data["card"]["name"], "<script>document.body.dataset.tab='bench'</script>"
    return document(f"{name}, by armdyn", tab + body, payload, (*SCRIPTS, *scripts), policy)


def _header(data: dict[str, Any]) -> str:
    card = data["card"]
    source = f"<p>{escape(card['source'])}</p>" if card["source"] else ""
    tabs = "".join(
        f'<button type="button" role="tab" data-tab="{tab.lower()}" aria-controls="{tab.lower()}" '
        f'aria-selected="{"true" if k == 0 else "false"}" tabindex="{-1 if k else 0}">{tab}</button>'
        for k, tab in enumerate(TABS)
    )
    return (
        f'<header class="top"><h1 title="{escape(card["name"])}">{escape(card["name"])}</h1>'
        f'<details class="menu"><summary aria-label="about this arm and this page">i</summary>'
        f"<div>{source}{_facts(data)}<p>{ABOUT}</p>"
        f'<p class="muted">Made by armdyn {escape(data["version"])}.</p></div></details>'
        f'<div role="tablist" aria-label="views">{tabs}</div><span class="actions">'
        '<button type="button" id="copy" title="Copy a link to this state">Copy link</button>'
        '<button type="button" id="export">Export</button>'
        '<button type="button" id="theme" title="Light or dark">Theme</button></span></header>'
    )


def _facts(data: dict[str, Any]) -> str:
    card = data["card"]
    best = {row["quantity"]: row for row in data["costs"] if row["best"]}
    mul, add, _ = best["inertia_matrix"]["compiled"]
    speed = {row["quantity"]: row for row in data["speed"]}
    return facts(
        [
            (f"{card['n']}", _joints(card)),
            (f"{card['mass_kg']:.2f} kg", "moving mass"),
            (f"{len(data['parameters']['names'])}", f"minimal parameters of {10 * len(card['links'])}"),
            (f"{mul}M {add}A", f"inertia matrix, by {best['inertia_matrix']['method']}"),
            (f"{speed['inverse_dynamics']['batch_ns']:.0f} ns", "inverse dynamics per configuration"),
            (f"{speed['forward_dynamics']['batch_ns']:.0f} ns", "forward dynamics per configuration"),
        ]
    )


def _joints(card: dict[str, Any]) -> str:
    """`joints (RRRRRR)`, or their numbers by kind where there are many; whether the base floats."""
    kinds = card["kinds"]
    counts = ((kinds.count("R"), "revolute"), (kinds.count("P"), "prismatic"))
    told = kinds if len(kinds) <= 10 else ", ".join(f"{k} {name}" for k, name in counts if k)
    return f"{'joint' if card['n'] == 1 else 'joints'} ({told})" + (", floating base" if card["floating"] else "")


ABOUT = (
    "This page runs the arm's own programs as WebAssembly and makes no network requests. Drag a link or the gripper to "
    "move it, the background to rotate the view; on a touch screen two fingers rotate and zoom. Space plays and "
    "pauses, r resets; in the 3D view the arrow keys rotate, + and − zoom, 0 resets the view."
)
PICTURE = """
<section class="picture" aria-label="picture">
  <canvas id="arm-view" tabindex="0" role="img" aria-label="the arm in 3D: arrow keys rotate the view" aria-describedby="said"></canvas>
  <p id="said" class="unseen" role="status"></p>
</section>
"""  # noqa: E501
# Behind the table in the order of tabulation, over the picture to see.
LOOKS = '<section class="looks" id="looks" aria-label="view"></section>'
BENCH = """
<div id="joints" tabindex="-1"></div>
<div class="row conditions"><div id="conditions"></div><button type="button" id="pin" aria-pressed="false" title="Freeze this posture as a reference">Pin</button></div>
<figure class="inertia"><canvas id="H" role="img" aria-label="inertia matrix as colours; its numbers are under Matrices"></canvas>
<figcaption><b>H(q)</b><span>inertia matrix; blue is positive, orange negative, on a logarithmic scale</span><span id="H-told"></span></figcaption></figure>
"""  # noqa: E501
MOTION = """
<section class="time" aria-label="motion">
  <div class="row">
    <button id="fall" type="button" aria-pressed="false">Let go</button>
    <button id="hold" type="button" aria-pressed="false">Hold</button>
    <button id="goto" type="button" aria-pressed="false">Go to</button>
    <button id="play" type="button" aria-pressed="false">Play</button>
    <button id="reset" type="button">Reset</button>
    <span id="speeds"></span>
    <input type="range" id="scrub" min="-10" max="0" step="any" value="0" aria-label="the last ten seconds">
    <span id="clock">0.00 s</span><span id="factor">&nbsp;</span><span id="peak">&nbsp;</span>
  </div>
  {falls}<div class="row notes"><span id="told"></span><span id="readout"></span><span id="differs"></span></div>
  <div id="charts"></div>
</section>
"""
FALLS = '<div class="row" id="falling"></div>\n  '
MATRICES = """
<h2>Inertia matrix H(q) [kg m², kg m, kg]</h2><div id="heat"></div>
<h2>Measures</h2><div class="live-facts" id="live-facts"></div>
<h2 id="momentum-title">Generalised momentum H(q) q̇</h2><div id="momentum"></div>
"""
EXPORT = """
<dialog id="exported" aria-label="export"><div class="row"><span id="export-forms"></span></div>
<textarea id="export-text" readonly rows="9" spellcheck="false" aria-label="the posture as text"></textarea>
<div class="row"><button type="button" class="main" id="export-copy">Copy</button><button type="button" id="export-png">Picture (PNG)</button>
<button type="button" id="export-csv">Last seconds (CSV)</button><button type="button" id="export-close">Close</button></div></dialog>
"""  # noqa: E501


def _tables(card: dict[str, Any]) -> str:
    joints = [
        [j["name"], j["kind"], j["b"], j["beta"], j["d"], j["theta"], j["lower"], j["upper"], j["rotor_inertia"]]
        for j in card["joints"]
    ]
    links = [[k, link["mass"], *link["com"], *link["inertia"]] for k, link in enumerate(card["links"], 1)]
    odd = "".join(f'<p class="odd">warning: {escape(text)}</p>' for text in card["checks"])
    return (
        "<h2>Joints and links</h2>"
        + table(
            "Joints: frame i in its parent's frame by b along x, β about x, d along z, θ about z",
            [
                "joint",
                "kind",
                "b [m]",
                "β [rad]",
                "d [m]",
                "θ [rad]",
                "lower [rad, m]",
                "upper [rad, m]",
                "rotor inertia [kg m²]",
            ],
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
    counts = [sum(row.count(kind) for row in found["kinds"]) for kind in (1, 2, 0)]
    return (
        f"<p>Of {10 * found['bodies']} inertial parameters <b>{counts[0]}</b> determine the motion alone (●), "
        f"<b>{counts[1]}</b> only in combination (◐), <b>{counts[2]}</b> not at all (·): no measurement of the motion "
        'can determine these.</p><div id="grid"></div><p id="grid-told" class="muted">Point at a cell.</p>'
        f"<h2>Minimal parameters</h2><p>The {len(found['names'])} combinations of inertial parameters that determine "
        f"this arm's motion ({escape(str(found['kind']))}). Point at one to highlight its links.</p>"
        '<div id="parameter-table"></div>'
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
        "<h2>Operation counts of every formulation</h2><p>M multiplications, A additions, D divisions. The pale bar "
        "is <i>executed</i>: the paper's steps run "
        "literally on this arm, without operations on zeros of its geometry. The full bar is <i>compiled</i>: after "
        "constant folding, common subexpression elimination, rewriting and dead-code elimination. The shortest is "
        "used. The error is the largest difference from the reference implementation, relative to the largest "
        'entry.</p><div id="cost-chart"></div>'
    )


def _graph(found: list[dict[str, Any]]) -> str:
    if not found:
        return "<h2>Expression graph</h2><p>This robot's programs are too large to draw.</p>"
    used = ", ".join(f"{QUANTITY[g['quantity']]} by {g['method']}" for g in found)
    return (
        "<h2>Expression graph</h2><p>The program that the machine code is compiled from. Each dot is one operation, "
        "computed once from dots to "
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
        "<h2>Speed</h2>"
        + table(
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
