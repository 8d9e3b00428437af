"""The straight-line study: what its page claims."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from typer.testing import CliRunner

from armdyn.cli import app
from armdyn.studies import puma_hypotheses as hypotheses
from armdyn.studies import puma_line as study
from armdyn.studies.puma_line_page import charts, findings, page


@pytest.fixture(scope="module")
def data():
    return study.data()


@pytest.mark.parametrize("posture", study.POSTURES)
def test_the_tool_stays_on_the_line_and_the_joints_within_their_limits(posture):
    assert study.residual(posture) < 1e-12
    t = np.linspace(0, study.SECONDS, 101)
    q, qd, qdd = study.line(posture)(t)
    low, high = study.puma().limits.T
    assert ((q >= low) & (q <= high)).all()
    motion = study.tool_motion(q, qd, qdd)
    speed = np.linalg.norm(motion["velocity"], axis=-1)
    assert np.abs(speed - np.linalg.norm(study.END - study.START) / 5).max() < 1e-12
    assert np.abs(motion["acceleration"]).max() < 1e-12
    assert speed[0] == pytest.approx(0.1, abs=2e-4)  # the paper's rounded end points


def test_the_orientation_is_zyz():
    R = study.rotation()
    assert np.allclose(R @ R.T, np.eye(3), atol=1e-15)
    assert R[2, 2] == pytest.approx(0.5)
    assert np.degrees(np.arctan2(R[1, 2], R[0, 2])) == pytest.approx(45)
    assert np.degrees(np.arctan2(R[2, 1], -R[2, 0])) == pytest.approx(90)


def test_only_the_shoulders_height_reaches_the_line_within_the_limits():
    pose = np.eye(4)
    pose[:3, :3] = study.rotation()
    for height, reached in ((0.0, True), (0.6718, False), (-0.6718, False)):
        arm = study.puma().with_base((0, 0, height))
        found = []
        for point in (study.START, study.END):
            pose[:3, 3] = point
            found.append(arm.inverse_kinematics(pose).converged)
        assert all(found) is reached


def test_methods_agree_and_the_errors_are_those_of_the_integrator(data):
    assert [row["method"] for row in data["table"]] == list(study.METHODS)
    for row in data["table"]:
        assert row["difference_from_ours"] < 1e-9
        assert row["position"][0] < 1e-5  # printed: 2.2e-3
        assert row["position"][1] < row["position"][0]
        assert row["position (lengths)"][0] <= row["position"][0] * (1 + 1e-9)
        assert row["evaluations"] > 300
    same = {study.accelerations(name).name for name in study.METHODS}
    assert same == set(study.METHODS)  # four programs, not one under four names


def test_the_error_falls_at_fifth_order_and_grows_with_time(data):
    for row in data["convergence"][1:]:
        assert row["order"] == pytest.approx(5, abs=0.3)
    assert 8 < data["growth"] < 12
    assert 11 < data["printed_growth"] < 14
    even = np.exp(np.log(7.0) * study.times())
    assert study.growth(even, study.times()) == pytest.approx(7.0)


def test_sampled_torques_lose_the_line(data):
    assert data["sampled"]["linear"]["position"] > 0.1
    assert data["sampled"]["held"]["position"] > data["sampled"]["linear"]["position"]


def test_the_page_is_whole(data, tmp_path):
    text = page(data)
    assert text.startswith("<!doctype html>")
    assert text.endswith("</body></html>\n")
    assert text.count("data-chart=") == len(charts(data)) == 3
    assert len(text) < 1_500_000
    assert 'src="http' not in text  # nothing is fetched
    assert "2.2442e-03" in text
    assert "position, Δ|r|" in text
    assert "position, |Δr|" in text
    assert all(sentence for sentence in findings(data))


def test_the_command(monkeypatch, data, tmp_path):
    monkeypatch.setattr(study, "data", lambda posture: data)
    run = CliRunner().invoke(app, ["study", "puma-line", "--json"])
    assert run.exit_code == 0
    assert json.loads(run.stdout)["table"][0]["method"] == "CRBM"
    run = CliRunner().invoke(app, ["study", "puma-line", "-o", str(tmp_path / "page.html")])
    assert run.exit_code == 0
    assert "2.2442e-03" in run.stdout
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == page(data)
    run = CliRunner().invoke(app, ["study", "moon"])
    assert "puma-line" in str(run.exception)


def test_lengths_differ_by_no_more_than_the_vectors(monkeypatch):
    """The reverse triangle inequality: 0 <= | |a| - |b| | <= |a - b|, whatever the motions."""
    rng = np.random.default_rng(1)
    motions = [{name: rng.normal(size=(20, 3)) for name in study.QUANTITIES} for _ in range(2)]
    run = SimpleNamespace(t=np.zeros(20), q=np.ones(20), qd=None, qdd=None)
    monkeypatch.setattr(study, "line", lambda posture: lambda t: (t, None, None))
    monkeypatch.setattr(study, "tool_motion", lambda q, qd, qdd: motions[int(q[0])])
    vectors, lengths = study.deviations(run), study.of_lengths(run)
    for name in study.QUANTITIES:
        assert (lengths[name] >= 0).all()
        assert (lengths[name] <= vectors[name]).all()
        assert lengths[name].max() > 0.1


def test_the_documentations_sentence_says_what_its_table_says():
    """The differences between methods: the text's numbers are the table's column."""
    studies = Path(__file__).parents[1] / "docs" / "studies"
    cells = [line.strip("* -") for line in (studies / "puma_line_postures.txt").read_text().splitlines()[3:]]
    rows = [cells[k : k + 7] for k in range(0, len(cells), 7)]
    apart = {row[0]: row[rows[0].index("methods apart, rad")] for row in rows[1:]}
    text = (studies / "puma_line_differences.txt").read_text()
    largest = max(apart.values(), key=float)
    assert f"within {largest} rad in every posture (within {apart['first']} rad in the first)" in text


def test_a_hypothesis_is_run_and_judged_by_its_fingerprints():
    """In the second posture single precision at the start has the print's size and all ratios but one."""
    printed = hypotheses.printed()
    np.testing.assert_allclose(printed, [0.66106, 8.7368, 0.08844, 0.06870, 0.08840], rtol=1e-4)
    named = {one.name: one for one in hypotheses.HYPOTHESES}
    single = hypotheses.outcome(named["start in single precision"], "second")
    assert 0.25 < single.size / 2.244e-3 < 4
    assert single.survives() == (True, False, True, True, True)
    exact = hypotheses.HypothesisResult("as printed", 2.244e-3, printed)
    assert hypotheses.table([exact])[1][-1] == "5 of 5"
    off = hypotheses.HypothesisResult("off", 1.0, tuple(1.3 * x for x in printed))
    assert off.survives() == (False,) * 5


def test_fixed_steps_of_a_hypothesis_are_of_fifth_order():
    whole, half = (hypotheses.outcome(hypotheses.Hypothesis("RK5", step=step), "first").size for step in (0.1, 0.05))
    assert 16 < whole / half < 64


def test_the_command_tries_hypotheses(monkeypatch):
    found = [hypotheses.HypothesisResult("as printed", 2.2e-3, hypotheses.printed())]
    monkeypatch.setattr(hypotheses, "outcomes", lambda posture: found)
    run = CliRunner().invoke(app, ["study", "puma-line", "--hypotheses", "--json"])
    assert run.exit_code == 0
    assert json.loads(run.stdout)[0]["kept"] == [True] * 5
    run = CliRunner().invoke(app, ["study", "puma-line", "--hypotheses"])
    assert "5 of 5" in run.stdout
