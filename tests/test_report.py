"""The report: its data, its page, and how it looks in a browser."""

from __future__ import annotations

import json
import re
import shutil
import subprocess

import numpy as np
import pytest

import armdyn
from armdyn.formulations import QUANTITIES
from armdyn.references import bibliography, citation
from armdyn.report import collect, page, summary

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")


@pytest.fixture(scope="module", params=["scara", "planar3"])
def found(request):
    return collect(armdyn.load(request.param))


def test_data_says_what_is_true(found):
    arm = armdyn.load(found["card"]["name"])
    assert len(found["parameters"]["names"]) == len(arm.minimal_parameters.names)
    assert all(row["error"] < 1e-12 for row in found["accuracy"])
    best = [row for row in found["costs"] if row["best"] and row["quantity"] == "inertia_matrix"]
    assert best
    assert best[0]["total"] == min(row["total"] for row in found["costs"] if row["quantity"] == "inertia_matrix")
    assert np.allclose(found["motion"]["map"][0], arm.inertia_matrix(_first(found, arm)), atol=1e-6)
    assert np.max(np.abs(found["fall"]["energy_error"])) < 1e-6
    assert all(row["batch_ns"] > 0 for row in found["speed"])
    json.dumps(found, allow_nan=False)


def _first(found, arm):
    """The posture of the motion's first moment, from the same formula written out."""
    from armdyn.report.collect import _home, ranges

    low, high = ranges(arm).T
    home = _home(arm)
    return home + 0.6 * np.minimum(np.minimum(high - home, home - low), 1.2) * np.sin(0.7 * np.arange(arm.n))


def test_progress_is_told():
    told = []
    collect(armdyn.load("planar3"), lambda done, total, text: told.append((done, total, text)))
    assert told[-1][:2] == (told[-1][1], told[-1][1])
    assert [done for done, _, _ in told] == sorted(done for done, _, _ in told)


def test_page_is_self_contained(found):
    text = page(found, citation())
    assert len(text) < 6_000_000
    assert not re.search(r'<(script|link|img)[^>]+(src|href)="https?:', text)
    for part in ('id="arm-view"', 'id="sliders"', 'id="chart-cost"', 'id="chart-inertia-map"', "lin_fang_1999"):
        assert part in text


def test_page_cannot_be_broken_by_a_name(found):
    hostile = json.loads(json.dumps(found))
    hostile["card"]["name"] = "</script><script>alert(1)</script>"
    hostile["card"]["joints"][0]["name"] = "</script><b>"
    text = page(hostile, "")
    assert "<script>alert(1)" not in text
    assert "</script><b>" not in text


def test_summary_prints(found):
    from rich.console import Console

    console = Console(record=True, width=120, force_terminal=False)
    console.print(summary(found))
    text = console.export_text()
    assert found["card"]["name"] in text
    assert "meeting_frame" in text
    assert "[ns" in text


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
def test_in_a_browser(found, tmp_path):
    """No console error, every figure drawn, sliders move the arm."""
    probe = """
    <script>
    addEventListener("load", () => setTimeout(() => {
      const view = document.getElementById("arm-view"), before = view.dataset.tip;
      const slider = document.getElementById("q1");
      slider.value = +slider.value + 0.4; slider.dispatchEvent(new Event("input"));
      const time = document.getElementById("inertia-map-time");
      time.value = 3; time.dispatchEvent(new Event("input"));
      const charts = [...document.querySelectorAll(".chart")];
      const drawn = ".main-svg path, .main-svg image, .main-svg rect";
      const empty = charts.filter((c) => !c.querySelector(drawn)).map((c) => c.id);
      const pixels = view.getContext("2d").getImageData(0, 0, view.width, view.height).data;
      const out = document.createElement("pre"); out.id = "probe";
      out.textContent = JSON.stringify({ready: document.body.dataset.ready, moved: before !== view.dataset.tip,
        charts: charts.length, empty, painted: pixels.some((x) => x > 0), errors: window.failures,
        label: document.getElementById("inertia-map-label").textContent});
      document.body.append(out);
    }, 300));
    </script>"""
    watch = "<script>window.failures = []; addEventListener('error', (e) => failures.push(e.message));</script>"
    text = page(found, citation()).replace("<head>", "<head>" + watch, 1).replace("</body>", probe + "</body>", 1)
    path = tmp_path / "report.html"
    path.write_text(text)
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
    flags += ["--disable-background-networking", "--disable-component-update", "--virtual-time-budget=6000"]
    flags += ["--window-size=420,900"]
    command = [CHROMIUM, *flags, f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", path.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    match = re.search(r'<pre id="probe">(.*?)</pre>', done.stdout, flags=re.DOTALL)
    assert match, done.stderr[-2000:]
    result = json.loads(match[1])
    assert result.pop("label").startswith("t = 0.")
    assert result == {"ready": "yes", "moved": True, "charts": 6, "empty": [], "painted": True, "errors": []}


def test_every_formulation_has_its_paper():
    known = bibliography()
    for quantity in QUANTITIES.values():
        for formulation in quantity.methods:
            for source in filter(None, (s.strip() for s in formulation.source.split(","))):
                assert source in known, f"{quantity.name} {formulation.key}: no entry {source} in references.bib"


def test_citation():
    assert citation("inertia_matrix", "lin_fang_1").startswith("@article{lin_fang_1999,")
    assert "saha_1999" in citation("inertia_matrix")
    assert citation().count("@") >= 8
