"""Pages in notebooks and as files: plots of arms and motions, without plotly."""

from __future__ import annotations

import base64
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import armdyn
from armdyn.errors import InputError
from browser import browser, needs_browser  # noqa: F401


@pytest.fixture(scope="module")
def scara():
    return armdyn.load("scara")


@pytest.fixture(scope="module")
def motion(scara):
    return armdyn.simulate(scara, [0.3, -0.4, 0.1, 0.2], np.ones(4), duration=0.5, limits="stop")


def test_plots_are_small_pages_with_short_texts(scara, motion):
    for view in (scara.plot(), scara.plot(np.zeros((3, 4))), motion.plot(), motion.animate()):
        assert len(repr(view)) < 200
        assert len(view.html) < 300_000
        assert "height:420px" in view._repr_html_() or view.height == 720
    with pytest.raises(InputError, match="page, plotly"):
        scara.plot(engine="matplotlib")


def test_plots_do_not_need_plotly():
    code = """
import sys
sys.modules["plotly"] = None
import armdyn
from armdyn.errors import InputError
arm = armdyn.load("planar3")
arm.plot(), armdyn.simulate(arm, arm.rest, duration=0.05).plot()
try:
    arm.plot(engine="plotly")
except InputError as error:
    print(error)
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "armdyn[plot]" in said


@needs_browser
def test_a_plot_shows_the_posture_and_its_gravity_load(browser, tmp_path):  # noqa: F811
    arm, q = armdyn.load("puma560"), np.array([0.1, -0.4, 0.3, 0.2, 0.5, 0.0])
    arm.plot(q).save(tmp_path / "arm.html")
    browser.size(900, 420)
    browser.open((tmp_path / "arm.html").as_uri())
    shown = browser.run(
        """return [...document.querySelectorAll("#bars td.gravity")].map((e) => +e.textContent.replace("−", "-"))"""
    )
    np.testing.assert_allclose(shown, arm.gravity_load(q), rtol=6e-3, atol=1e-3)
    tool = browser.run("return Array.from(armdyn.arm.arrays.tool)")
    np.testing.assert_allclose(tool, arm.pose(q).ravel(), atol=1e-6)
    assert browser.errors() == []


@needs_browser
def test_pages_of_motions_are_accessible(browser, tmp_path, motion):  # noqa: F811
    for size, view in (((1280, 800), motion.animate()), ((390, 844), motion.animate()), ((900, 420), motion.plot())):
        view.save(tmp_path / "page.html")
        browser.size(*size)
        browser.open((tmp_path / "page.html").as_uri())
        assert browser.violations() == []


@needs_browser
def test_a_converted_notebook_shows_every_plot(browser, tmp_path, monkeypatch):  # noqa: F811
    nbformat = pytest.importorskip("nbformat")
    nbconvert = pytest.importorskip("nbconvert")
    pytest.importorskip("ipykernel")
    cells = ["import armdyn\narm = armdyn.load('planar3')", "arm.plot()"]
    cells += ["motion = armdyn.simulate(arm, arm.rest, [1.0, 0, 0], duration=0.2)\nmotion.plot()", "motion.animate()"]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in cells])
    nbconvert.preprocessors.ExecutePreprocessor(timeout=120, kernel_name="python3").preprocess(notebook)
    monkeypatch.setenv("JUPYTER_PATH", str(Path(nbconvert.__file__).parents[4] / "share/jupyter"))  # its templates
    text, _ = nbconvert.HTMLExporter().from_notebook_node(notebook)
    frames = re.findall(r'<iframe [^>]*?src="(data:text/html;base64,[^"]+)"', text)
    assert len(frames) == 3
    for k, address in enumerate(frames):
        path = tmp_path / f"{k}.html"
        path.write_bytes(base64.b64decode(address.partition(",")[2]))
        browser.open(path.as_uri())  # what a frame shows
        assert browser.errors() == []


@needs_browser
@pytest.mark.parametrize("dark", [False, True])
def test_curves_of_a_motion_are_drawn_in_a_notebooks_frame(browser, tmp_path, motion, dark):  # noqa: F811
    """As in a notebook that was converted to HTML: in an iframe with the page as its address."""
    path = tmp_path / "notebook.html"
    path.write_text(f"<!doctype html><body data-ready='yes'>{motion.plot()._repr_html_()}</body>", encoding="utf-8")
    browser.theme("dark" if dark else "light")
    browser.size(900, 460)
    browser.open(path.as_uri())
    browser.wait("setTimeout(arguments[0], 500)")
    browser.screenshot(tmp_path / "notebook.png")
    motion.plot().save(tmp_path / "plot.html")
    browser.open((tmp_path / "plot.html").as_uri())
    drawn = browser.wait(
        """const done = arguments[0];
        setTimeout(() => done([...document.querySelectorAll("canvas")].map((c) => {
          const { data } = c.getContext("2d").getImageData(0, 0, c.width, c.height), colours = new Set();
          for (let k = 0; k < data.length; k += 4) if (data[k + 3] === 255) colours.add(data.slice(k, k + 3).join());
          return colours.size; })), 300);"""
    )
    browser.theme("light")
    assert len(drawn) == 4
    assert min(drawn) > 1
    assert browser.errors() == []
