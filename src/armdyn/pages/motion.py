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
<section class="tab shown" aria-label="torques"><div class="scroll"><table class="joints" id="bars"></table></div></section>
<section class="time" aria-label="motion">
  <div class="row"><button class="main" id="play" type="button">Play</button><span id="speeds"></span>
  <input type="range" id="scrub" aria-label="time"><span id="clock"></span><span id="factor">&nbsp;</span></div>
  <div id="charts" class="many"></div>
</section>
"""  # noqa: E501


@dataclass(frozen=True)
class Animation:
    """A page that plays a motion; notebooks show it inline, `save` writes it to a file."""

    html: str = field(repr=False)
    title: str = ""

    def __repr__(self) -> str:
        """Short, because the page is long."""
        return f"<Animation {self.title[:60]!r}, {len(self.html) / 1000:.0f} kB: save(path) writes the page>"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page, whole or not at all."""
        write_text(path, self.html)

    def _repr_html_(self) -> str:
        """The page in an iframe, isolated from the notebook's scripts and styles."""
        text = base64.b64encode(self.html.encode()).decode()
        return f'<iframe src="data:text/html;base64,{text}" style="width:100%;height:720px;border:0"></iframe>'


Charts = Sequence[tuple[str, Sequence[str], Any]]  # label, names of the curves, values (times, curves)


def animation(arm: Arm, t: Any, q: Any, tau: Any, charts: Charts, title: str, message: str = "") -> Animation:
    """The page of a motion q(t) (times, n) with torques and charts."""
    return Animation(motion_page(title, message, motion(arm, t, q, tau, charts)), title)


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


def motion_page(title: str, message: str, data: dict[str, Any], sections: str = "", verdict: str = "") -> str:
    """A page with the moving arm, and further sections; charts in them are drawn from ``data["charts"]``.

    `verdict` is the markup of chips in the bar.
    """
    head = f'<header class="top"><h1>{escape(title)}</h1>{verdict}<span class="actions">'
    head += '<button id="theme" type="button">Theme</button></span></header>'
    more = f'<div class="below"><main>{sections}</main></div>' if sections else ""
    tab = "<script>document.body.dataset.tab='motion'</script>"
    told = f'<p class="muted small said">{escape(message)}</p>' if message else ""
    body = f'{tab}{head}{told}<{"div" if more else "main"} class="desk">{STAGE}</{"div" if more else "main"}>{more}'
    return document(title, body, data, (*ARM, "curves.js", "motion.js"))


def short(values: Any) -> list[float]:
    """Rounded to seven digits, which is enough for a plot and keeps the page small."""
    return [float(f"{x:.7g}") for x in values]
