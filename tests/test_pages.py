"""Pages in notebooks and as files: plots of arms and motions, without plotly."""

from __future__ import annotations

import base64
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import armdyn
from armdyn.errors import InputError
from armdyn.pages.motion import positions, rates
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
def test_the_table_of_a_motion_is_whole_on_a_phone(browser, tmp_path):  # noqa: F811
    arm = armdyn.load("ur5")
    moved = armdyn.simulate(arm, arm.rest, torque=-arm.gravity_load(arm.rest), duration=0.1)
    moved.save(tmp_path / "motion.html")
    browser.size(390, 844)
    browser.open((tmp_path / "motion.html").as_uri())
    cut, charts = browser.run(
        """const cut = (e) => e.scrollWidth > e.clientWidth + 1 || e.getBoundingClientRect().right > innerWidth + 0.5;
        return [[...document.querySelectorAll("#bars th, #bars td")].filter((e) => e.offsetParent && cut(e)).length,
          [...document.querySelectorAll("canvas.trace")].map((e) => e.getAttribute("aria-label"))]"""
    )
    assert cut == 0
    assert charts == ["position [°]", "velocity [°/s]", "torque [N m]", "energy [J]"]


@pytest.fixture(scope="module")
def results(scara):
    uncertain = armdyn.Uncertain(scara, payload_mass=armdyn.Uniform(0, 3), link_masses=armdyn.Normal(1, 0.1))
    outcome = uncertain.sample(64).evaluate("gravity_load", [0.3, -0.4, 0.1, 0.2])
    shares = uncertain.sobol_indices(lambda samples: samples.evaluate("gravity_load", np.zeros(4)).values[:, 2:3], 64)
    bound = armdyn.bound(scara, "gravity_load", q=[(-1, 1)] * 4, payload=(0, 2), gap=0.2)
    plan = armdyn.calibration_poses(scara, 12, candidates=40)
    return {"outcome": outcome, "shares": shares, "bound": bound, "plan": plan}


def chart(view):
    return json.loads(re.search(r'id="data">(.*?)</script>', view.html)[1])["charts"][0]


def test_the_charts_of_results_are_their_numbers(scara, results):
    outcome, bound = results["outcome"], results["bound"]
    shown = chart(outcome.plot())
    np.testing.assert_allclose(shown["values"], np.median(outcome.values, axis=0), rtol=1e-6)
    np.testing.assert_allclose(shown["low"], np.quantile(outcome.values, 0.025, axis=0), rtol=1e-6, atol=1e-12)
    worst = outcome.values[np.abs(outcome.values).argmax(axis=0), np.arange(4)]
    np.testing.assert_allclose(shown["prior"], worst, rtol=1e-6)
    shown = chart(outcome.plot(limit=[10, 10, 20, 5]))
    np.testing.assert_allclose(shown["values"], 100 * np.median(outcome.values, axis=0) / [10, 10, 20, 5], rtol=1e-6)
    assert shown["y"] == "gravity_load [% of the limit]"
    shown = chart(bound.plot())
    assert (np.array(shown["low"]) <= shown["prior"]).all()
    assert (np.array(shown["values"]) <= shown["high"]).all()
    assert chart(results["shares"].plot())["names"][0] == "payload_mass"  # it alone moves the slide by more than 10 %
    np.testing.assert_allclose(chart(results["plan"].plot())["high"], 1e3 * results["plan"].deviations, rtol=1e-6)


def test_a_bound_shows_the_arm_in_its_worst_configurations(scara, results):
    bound = results["bound"]
    assert set(np.unique(bound.witness["payload"])) <= {0.0, 2.0}
    motion = json.loads(re.search(r'id="data">(.*?)</script>', bound.plot().html)[1])["motion"]
    side, k = np.unravel_index(np.abs(bound.found).argmax(), bound.found.shape)
    assert motion["labels"][0] == f"{['smallest', 'largest'][side]} {scara.joint_names[k]}"
    assert motion["tau"][k]["y"][0] == pytest.approx(bound.found[side, k], rel=1e-6)


def test_positions_are_drawn_in_degrees_and_the_slide_in_metres(scara, motion):
    """As in the table of the page; the third joint slides."""
    data = json.loads(re.search(r'id="data">(.*?)</script>', motion.animate().html)[1])["motion"]
    own = np.array([180 / np.pi, 180 / np.pi, 1, 180 / np.pi])
    pairs = [("position [°], [m]", motion.q), ("velocity [°/s], [m/s]", motion.qd)]
    for drawn, (label, values) in zip(data["charts"][:2], pairs, strict=True):
        assert drawn["y"] == label
        np.testing.assert_allclose([c["y"][-1] for c in drawn["curves"]], own * values[-1], rtol=1e-6, atol=1e-12)
    q = [[0.1, 0.2, 0.03, 0.4], [0.2, 0.3, 0.04, 0.5]]
    drawn = json.loads(re.search(r'id="data">(.*?)</script>', scara.animate(q).html)[1])["motion"]["charts"][0]
    assert drawn["y"] == "position [°], [m]"
    np.testing.assert_allclose([c["y"] for c in drawn["curves"]], (own * q).T, rtol=1e-6)


def test_the_positions_of_a_floating_base_stay_in_metres():
    arm, rows = armdyn.load("planar3", floating=True), np.arange(1.0, 11.0)[None]
    label, _, q = positions(arm, [], rows)
    assert label == "position of the base [m], quaternion; of the joints [°]"
    np.testing.assert_array_equal(q[:, :7], rows[:, :7])
    np.testing.assert_allclose(q[:, 7:], np.degrees(rows[:, 7:]))
    label, _, qd = rates(arm, [], rows[:, :9])
    assert label == "velocity [°/s], [m/s]"
    np.testing.assert_array_equal(qd[:, :3], rows[:, :3])
    np.testing.assert_allclose(qd[:, 3:], np.degrees(rows[:, 3:9]))


def test_results_have_a_unit_per_entry(scara, results):
    """In the label of the chart where all have the same, else with the names; the third joint slides."""
    forces = ("N m", "N m", "N", "N m")
    outcome, bound = results["outcome"], results["bound"]
    named = [f"{name} [{unit}]" for name, unit in zip(scara.joint_names, forces, strict=True)]
    assert outcome.units == forces
    assert chart(outcome.plot())["names"] == named
    assert chart(outcome.plot())["y"] == "gravity_load"
    table = outcome.table()
    assert [row[table.columns.index("unit")] for row in table.rows] == list(forces)
    inertia = armdyn.bound(scara, "inertia_matrix", q=[(-1, 1)] * 4, seconds=0.02)
    assert chart(inertia.plot())["names"][:3] == ["1, 1 [kg m²]", "1, 2 [kg m²]", "1, 3 [kg m]"]
    samples = armdyn.Uncertain(armdyn.load("planar3"), payload_mass=armdyn.Uniform(0, 3)).sample(16)
    shown = samples.evaluate("inertia_matrix", np.zeros((2, 3)))
    assert shown.units == ("kg m²",) * 18
    assert chart(shown.plot())["y"] == "inertia_matrix [kg m²]"
    plain = samples.outcome(shown.values)
    assert chart(plain.plot())["y"] == "value"
    assert plain.table().columns[:2] == ("entry", "mean")
    for page in (outcome.plot(), shown.plot(), plain.plot(), bound.plot(), inertia.plot()):
        assert "[SI]" not in page.html


@needs_browser
def test_pages_of_results_open(browser, tmp_path, results):  # noqa: F811
    for name, result in results.items():
        result.plot().save(tmp_path / f"{name}.html")
        browser.size(1280, 900)
        browser.open((tmp_path / f"{name}.html").as_uri())
        assert browser.errors() == []
        assert browser.violations() == []
        drawn = browser.run(
            """const c = document.querySelector("canvas.chart"), g = c.getContext("2d");
            return g.getImageData(0, 0, c.width, c.height).data.filter((x) => x > 0).length"""
        )
        assert drawn > 1000, name


def test_a_sweep_is_shown_by_entry(scara):
    pytest.importorskip("xarray")
    from armdyn.pages.results import sweep_page
    from armdyn.sweeps import Capability, Quantiles
    from armdyn.sweeps.ready import units

    def compute(arm, samples):
        return {"load": (("sample", "joint"), np.asarray(samples)[:, None] * [1.0, -1.0, 2.0, 0.5])}

    result = armdyn.sweep(scara, compute, 11, [Quantiles((0.0, 0.5, 1.0))])
    shown = chart(sweep_page(result))
    assert (shown["low"], shown["values"], shown["high"]) == ([0, -10, 0, 0], [5, -5, 10, 2.5], [10, 0, 20, 5])
    assert shown["y"] == "load_quantile"  # its unit is not known
    found = armdyn.sweep(scara, Capability((200, 100, 50, 10)), 8)
    data = json.loads(re.search(r'id="data">(.*?)</script>', sweep_page(found, units=units(scara)).html)[1])["charts"]
    assert [c["y"] for c in data if c["y"].startswith("p")] == ["position [m]", "payload [kg]"]
    q = next(c for c in data if c["y"] == "q")
    assert [name.split(" ")[-1] for name in q["names"]] == ["[rad]", "[rad]", "[m]", "[rad]"]


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
