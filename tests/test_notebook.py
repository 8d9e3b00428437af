"""What a notebook shows: small tables and curves with units, and pages of an arm."""

from __future__ import annotations

import re
import sys
import webbrowser
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

import armdyn
from armdyn.html import LONGEST, curves, table

ARM = armdyn.load("planar3")
SCARA = armdyn.load("scara")


def well_formed(html):
    """The elements of an HTML fragment, which must nest as XML does."""
    return ElementTree.fromstring(f"<div>{html}</div>".replace(' xmlns="http://www.w3.org/2000/svg"', ""))


RESULTS = {
    "arm": (lambda: SCARA, ("b [m]", "mass [kg]", "quill")),
    "cost": (lambda: armdyn.cost(ARM, "inertia_matrix"), ("multiplications", "sin, cos", "compiled")),
    "kernel": (lambda: SCARA.gravity_load, ("gravity_load", "N m or N", "rad or m", "(4,)")),
    "trajectory": (lambda: armdyn.simulate(ARM, duration=0.1), ("rad/s", "N m", "joint1", "polyline")),
    "controller": (lambda: armdyn.controller(ARM, "computed_torque"), ("measured positions", "gain", "SI units")),
    "bound": (lambda: armdyn.bound(SCARA, "gravity_load", seconds=0.1), ("lower", "unit", "gap [%]")),
}


@pytest.mark.parametrize("kind", RESULTS)
def test_a_result_is_a_small_table(kind):
    make, words = RESULTS[kind]
    html = make()._repr_html_()
    assert well_formed(html).find(".//table") is not None
    text = html.replace("&lt;", "<")
    assert all(word in text for word in words), text
    assert len(html) < 30_000
    assert not re.search(r">-0<", html)


def test_the_numbers_are_those_of_the_result():
    found = armdyn.cost(armdyn.load("puma560"), "inertia_matrix", method="lin_fang_1")
    rows = [[cell.text for cell in row] for row in well_formed(found._repr_html_()).iter("tr")]
    assert rows[1][1:3] == ["188", "149"]
    motion = armdyn.simulate(ARM, qd0=[1.0, 0, 0], duration=0.2, friction=False)
    rows = [[cell.text for cell in row] for row in well_formed(motion._repr_html_()).iter("tr")]
    assert rows[1][:3] == ["joint1", f"{motion.q[-1, 0]:.6g}", "rad"]


@pytest.mark.parametrize(
    ("quantity", "units"),
    [
        ("gravity_load", ["N m", "N m", "N", "N m"]),
        ("inertia_matrix", [("kg", "kg m", "kg m²")[(i != 2) + (j != 2)] for i in range(4) for j in range(4)]),
        ("potential_energy", ["J"]),
        ("frame_velocity", ["m/s"] * 3 + ["rad/s"] * 3),
    ],
)
def test_the_bounds_of_a_scara_have_a_unit_per_entry(quantity, units):
    """Its third joint is prismatic."""
    speeds = {"qd": np.tile([-1.0, 1.0], (4, 1))} if quantity == "frame_velocity" else {}
    bound = armdyn.bound(SCARA, quantity, **speeds, seconds=0.02)
    head, *rows = ([cell.text for cell in row] for row in well_formed(bound._repr_html_()).iter("tr"))
    assert [row[head.index("unit")] for row in rows] == units
    assert "SI" not in " ".join(head)


def test_an_estimate_is_a_table_best_first():
    rng = np.random.default_rng(0)
    t = np.arange(0, 4, 0.01)
    phases = rng.uniform(0, 6, (3, 3))
    q = sum(0.4 * np.sin((k + 1) * t[:, None] + phases[k]) for k in range(3))
    qd, qdd = np.gradient(q, t, axis=0), np.gradient(np.gradient(q, t, axis=0), t, axis=0)
    tau = ARM.inverse_dynamics(q, qd, qdd) + 0.01 * rng.standard_normal(q.shape)
    estimate = armdyn.identify(ARM, armdyn.Log.of(t, q, tau, qd))
    rows = [[cell.text for cell in row] for row in well_formed(estimate._repr_html_()).iter("tr")][1:]
    assert len(rows) == min(LONGEST, len(estimate.names))
    shares = [float(row[4]) for row in rows]
    assert shares == sorted(shares)


def test_names_from_files_are_escaped_and_long_tables_shortened():
    html = table("<b>", ["a<i>"], [["<script>"]])
    assert "<script>" not in html
    assert "<b>" not in html
    assert "and 40 more" in table("", ["k"], [[k] for k in range(LONGEST + 40)])


def test_curves_keep_a_peak_of_one_sample():
    t = np.arange(60_000) / 1000
    y = np.zeros((60_000, 1))
    y[31_417] = 150.0
    picture = curves("torque", ["joint"], t.tolist(), y.tolist())
    assert ">150<" in picture
    assert ",14.0" in picture  # a point at the top of the frame
    assert len(picture) < 20_000
    assert curves("x", ["a"], [0.0], [[1.0]]) == ""


def test_long_names_below_curves_are_whole():
    """The names of a UR5's joints take two lines, none wider than the picture."""
    names = list(armdyn.load("ur5").joint_names)
    picture = well_formed(curves("position [rad]", names, [0.0, 1.0], [[0.0] * 6, [1.0] * 6])).find("svg")
    texts = [text for text in picture.iter("text") if len(text)]
    rows = [[span.text for span in text] for text in texts]
    assert [name for row in rows for name in row] == names
    assert [len(row) for row in rows] == [4, 2]
    assert int(picture.get("height")) > int(texts[-1].get("y"))


def test_a_batch():
    batch = armdyn.simulate(ARM, np.zeros((2, 3)), duration=0.02)
    assert "batch (2,)" in batch._repr_html_()


def test_the_page_of_an_arm(tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)  # another test may have imported it
    page = ARM.report(tmp_path / "arm.html")
    assert (tmp_path / "arm.html").read_text(encoding="utf-8") == page.html
    assert page.html.startswith("<!doctype html>")
    assert "planar3" in page.html
    assert "<iframe" in page._repr_html_()
    ARM.show()
    assert len(opened) == 1
    assert opened[0].startswith("file://")


def test_animate_moves_through_configurations():
    q = np.linspace(0, 1, 50)[:, None] * [1.0, 0.5, -0.5]
    assert ARM.animate(q).html.startswith("<!doctype html>")
    assert ARM.animate(q, np.linspace(0, 3, 50)).html != ARM.animate(q).html
    with pytest.raises(armdyn.ArmdynError, match=r"animate expects q of shape \(k, 3\), got \(50, 2\)"):
        ARM.animate(q[:, :2])
    with pytest.raises(armdyn.ArmdynError, match="50 increasing times"):
        ARM.animate(q, np.zeros(50))
