"""A page on which an arm moves along a recorded motion."""

from __future__ import annotations

import base64
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from armdyn.arm import Arm
from armdyn.files.text import write_text
from armdyn.pages.live import robot
from armdyn.pages.writer import ARM, document, escape

FRAMES = 1500  # maximum samples stored in a page; more make no visible difference
STAGE = """
<section id="arm" class="stage">
  <div class="picture"><canvas id="arm-view" tabindex="0" role="img" aria-label="the arm along its motion"></canvas></div>
  <div class="panel">
    <div class="row"><button class="main" id="play" type="button">Play</button><span id="speeds"></span><span id="clock"></span></div>
    <label class="scrub"><span>time</span><input type="range" id="scrub" aria-label="time"></label>
    <h3>Torque and limit</h3><div id="bars"></div>
  </div>
</section>
<section><div class="columns" id="charts"></div></section>
"""  # noqa: E501


@dataclass(frozen=True)
class Animation:
    """A page that plays a motion; notebooks show it inline, `save` writes it to a file."""

    html: str

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
    return Animation(motion_page(title, message, motion(arm, t, q, tau, charts)))


def motion(arm: Arm, t: Any, q: Any, tau: Any, charts: Charts) -> dict[str, Any]:
    """The data for `motion.js`: the arm, the finite samples of its motion, and the curves below it."""
    every = np.unique(np.linspace(0, len(t) - 1, min(len(t), FRAMES)).astype(int))
    finite = every[np.isfinite(np.asarray(q)[every]).all(axis=1)]
    drawn = [
        {"y": label, "curves": [{"name": n, "y": y} for n, y in zip(names, _columns(values, finite), strict=True)]}
        for label, names, values in charts
    ]
    return {
        "robot": robot(arm),
        "motion": {
            "t": _short(np.asarray(t)[finite]),
            "q": _columns(q, finite),
            "tau": _columns(tau, finite),
            "charts": drawn,
        },
    }


def motion_page(title: str, message: str, data: dict[str, Any], sections: str = "") -> str:
    """A page with the moving arm, and further sections; charts in them are drawn from ``data["charts"]``."""
    body = (
        f'<main><header><h1>{escape(title)}</h1><button id="theme" type="button">Light / dark</button>'
        f'<p class="muted">{escape(message)}</p></header>{STAGE}{sections}</main>'
    )
    return document(title, body, data, (*ARM, "curves.js", "motion.js"))


def _columns(values: Any, rows: np.ndarray) -> list[list[float]]:
    return [_short(column) for column in np.asarray(values, dtype=float)[rows].T]


def _short(values: np.ndarray) -> list[float]:
    """Rounded to seven digits, which is enough for a plot and keeps the page small."""
    return [float(f"{x:.7g}") for x in values]
