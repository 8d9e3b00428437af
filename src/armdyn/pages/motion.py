"""A page on which an arm moves along a recorded motion."""

from __future__ import annotations

import base64
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from armdyn.arm import Arm
from armdyn.files.text import write_text
from armdyn.pages.live import robot
from armdyn.pages.writer import ARM, document, escape

FRAMES = 1500  # maximum postures stored in a page; more make no visible difference
BINS = 400  # parts of a curve of which the least and the largest sample are stored
STAGE = """
<section class="picture" aria-label="picture"><canvas id="arm-view" tabindex="0" role="img" aria-label="the arm along its motion"></canvas></section>
<section class="tab shown" aria-label="torques">%s<div class="scroll" tabindex="0" role="group" aria-label="torques"><table class="joints" id="bars"></table></div></section>
<section class="time" aria-label="motion">
  <div class="row"><button class="main" id="play" type="button">Play</button><span id="speeds"></span>
  <input type="range" id="scrub" aria-label="time"><span id="clock"></span><span id="factor">&nbsp;</span></div>
  <div id="charts" class="many" tabindex="0" role="group" aria-label="curves"></div>
</section>
"""  # noqa: E501


@dataclass(frozen=True)
class View:
    """A self-contained page; notebooks show it inline, `save` writes it to a file."""

    html: str = field(repr=False)
    title: str = ""
    height: int = 720  # pixels in a notebook

    def __repr__(self) -> str:
        """Short, because the page is long."""
        kind = type(self).__name__
        return f"<{kind} {self.title[:60]!r}, {len(self.html) / 1000:.0f} kB: notebooks show it, save(path) writes it>"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page, whole or not at all."""
        write_text(path, self.html)

    def _repr_html_(self) -> str:
        """The page in an iframe, isolated from the notebook's scripts and styles."""
        text, style = base64.b64encode(self.html.encode()).decode(), f"width:100%;height:{self.height}px;border:0"
        return f'<iframe title="{escape(self.title)}" src="data:text/html;base64,{text}" style="{style}"></iframe>'


class Animation(View):
    """A page that plays a motion."""


Charts = Sequence[tuple[str, Sequence[str], Any]]  # label, names of the curves, values (times, curves)


def units(arm: Arm, turning: str, sliding: str) -> str:
    """The units of quantities along the joints: of revolute and of prismatic ones, and of a floating base."""
    kinds = {joint.revolute for joint in arm.joints} | ({True, False} if arm.floating else set())
    return ", ".join(f"[{unit}]" for kind, unit in ((True, turning), (False, sliding)) if kind in kinds)


def positions(arm: Arm, names: Sequence[str], q: Any) -> tuple[str, Sequence[str], np.ndarray]:
    """The chart of positions (times, nq): angles of revolute joints in degrees, as in the table beside it."""
    turns = [joint.revolute for joint in arm.joints]
    shown = np.array(q, dtype=float)
    shown[:, -arm.n :][:, turns] *= 180 / np.pi
    if not arm.floating:
        return f"position {units(arm, '°', 'm')}", names, shown
    kinds = [f"[{unit}]" for unit, turning in (("°", True), ("m", False)) if turning in turns]
    return f"position of the base [m], quaternion; of the joints {', '.join(kinds)}", names, shown


def rates(arm: Arm, names: Sequence[str], qd: Any) -> tuple[str, Sequence[str], np.ndarray]:
    """The chart of velocities (times, nv): those of revolute joints, and of a floating base, in degrees per second."""
    turns = ([False] * 3 + [True] * 3 if arm.floating else []) + [joint.revolute for joint in arm.joints]
    return f"velocity {units(arm, '°/s', 'm/s')}", names, np.where(turns, np.degrees(qd), qd)


def animation(arm: Arm, t: Any, q: Any, tau: Any, charts: Charts, title: str, message: str = "") -> Animation:
    """The page of a motion q(t) (times, n) with torques and charts."""
    return Animation(motion_page(title, message, motion(arm, t, q, tau, charts)), title)


PLOT_HEIGHT = 420  # pixels of a plot in a notebook


def postures(arm: Arm, q: np.ndarray) -> View:
    """A page of one posture, or of several (k, n) to scrub through, with their gravity loads."""
    rows = np.atleast_2d(q)
    data = motion(arm, np.arange(len(rows), dtype=float), rows, arm.gravity_load(rows), ())
    data["motion"]["postures"] = True  # no times, so nothing has a peak
    return View(motion_page(arm.name, "", data), arm.name, PLOT_HEIGHT)


def plots(title: str, message: str, t: Any, charts: Charts) -> View:
    """A page of curves over time, one chart for each of `charts`."""
    drawn = []
    for label, names, values in charts:
        rows = zip(names, np.asarray(values, dtype=float).T, strict=True)
        drawn.append({"y": label, "curves": [{"name": name, **curve(t, y)} for name, y in rows]})
    return chart_page(title, message, drawn)


def canvases(charts: Sequence[dict[str, Any]]) -> str:
    """The places of charts, which `curves.js` draws from the page's data."""
    kinds = ("chart" if "curves" in chart else "chart tall" for chart in charts)
    places = (
        f'<div><canvas class="{kind}" data-chart="{k}" role="img" aria-label="{escape(chart["y"])}"></canvas></div>'
        for k, (kind, chart) in enumerate(zip(kinds, charts, strict=True))
    )
    return f'<div class="columns">{"".join(places)}</div>'


def chart_page(title: str, message: str, charts: Sequence[dict[str, Any]], below: str = "") -> View:
    """A page of charts without an arm, and what stands below them."""
    head = f'<header class="top"><h1>{escape(title)}</h1><span class="muted small">{escape(message)}</span>'
    head += '<span class="actions"><button id="theme" type="button">Theme</button></span></header>'
    body = f'{head}<main class="plots">{canvases(charts)}{below}</main>'
    body += "<script>document.body.dataset.ready = 'yes'</script>"
    page = document(title, body, {"charts": charts}, ("base.js", "charts.js", "curves.js", "plots.js"))
    return View(page, title, PLOT_HEIGHT)


def motion(arm: Arm, t: Any, q: Any, tau: Any, charts: Charts) -> dict[str, Any]:
    """The data for `motion.js`: the arm, the finite samples of its motion, and the curves below it."""
    t, q, tau = (np.asarray(x, dtype=float) for x in (t, q, tau))
    finite = np.flatnonzero(np.isfinite(q).all(axis=1))
    every = finite[np.unique(np.linspace(0, len(finite) - 1, min(len(finite), FRAMES)).astype(int))]
    drawn = [
        {"y": label, "names": list(names), "curves": "tau"}
        if np.array_equal(values, tau)
        else {"y": label, "names": list(names), "curves": [curve(t, y) for y in np.asarray(values, dtype=float).T]}
        for label, names, values in charts
    ]
    return {
        "robot": robot(arm),
        "motion": {
            "t": short(t[every]),
            "q": [short(column) for column in q[every].T],
            "tau": [curve(t, column) for column in tau.T],
            "peaks": [_peak(t, column) for column in tau.T],
            "charts": drawn,
        },
    }


def curve(t: Any, y: Any) -> dict[str, list[float]]:
    """A curve for the page: all samples, or of many the least and the largest of each part, so that no peak is lost."""
    t, y = np.asarray(t, dtype=float), np.asarray(y, dtype=float)
    rows = np.flatnonzero(np.isfinite(y))
    if len(rows) > 2 * BINS:
        parts = np.array_split(rows, BINS)
        kept = [k for part in parts for k in (part[np.argmin(y[part])], part[np.argmax(y[part])])]
        rows = np.unique([rows[0], *kept, rows[-1]])
    return {"x": short(t[rows]), "y": short(y[rows])}


def _peak(t: np.ndarray, y: np.ndarray) -> list[float] | None:
    """The value of largest magnitude and its time, of all samples."""
    rows = np.flatnonzero(np.isfinite(y))
    if not len(rows):
        return None
    k = rows[np.argmax(np.abs(y[rows]))]
    return short([y[k], t[k]])


def motion_page(
    title: str, message: str, data: dict[str, Any], sections: str = "", verdict: str = "", above: str = ""
) -> str:
    """A page with the moving arm, and further sections; charts in them are drawn from ``data["charts"]``.

    `verdict` is the markup of chips in the bar, `above` that of sections which stand before the arm.
    """
    head = f'<header class="top"><h1>{escape(title)}</h1>{verdict}<span class="actions">'
    head += '<button id="theme" type="button">Theme</button></span></header>'
    more = f'<div class="below"><main>{sections}</main></div>' if sections else ""
    tab = "<script>document.body.dataset.tab='motion'</script>"
    told = f'<p class="muted small">{escape(message)}</p>' if message else ""
    place = "div" if more else "main"
    first = f'<div class="above">{above}</div>' if above else ""
    body = f'{tab}{head}{first}<{place} class="desk" id="arm">{STAGE % told}</{place}>{more}'
    return document(title, body, data, (*ARM, "curves.js", "motion.js"))


def short(values: Any) -> list[float]:
    """Rounded to seven digits, which is enough for a plot and keeps the page small."""
    return [float(f"{x:.7g}") for x in values]
