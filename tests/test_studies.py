"""The studies of what the papers recommend: their claims on small cases, their commands, their stored tables."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import armdyn
from armdyn.cli import app
from armdyn.programs.stepping import AB4, RK4
from armdyn.studies import integrators, linear_solvers, smoothness
from pages import ROOT


def exponential(scheme, evaluations, rate=-1.0):
    """|error| after 1 s of q' = qd, qd' = rate qd, from q = 0 and qd = 1: one lane."""
    reached = integrators.integrated(scheme, [np.zeros(1)], [np.ones(1)], lambda q, qd: [rate * qd[0]], evaluations)
    return abs(reached[0, 0] - np.expm1(rate) / rate)


@pytest.mark.parametrize(("scheme", "order"), [(RK4, 4), (AB4, 4), (integrators.dop853(), 8)])
def test_errors_fall_with_the_order(scheme, order):
    few, many = (96, 192) if order == 8 else (240, 480)
    assert np.log2(exponential(scheme, few, -4.0) / exponential(scheme, many, -4.0)) == pytest.approx(order, abs=0.35)


def test_the_ratio_on_the_test_equation_is_that_of_the_error_constants():
    wanted = (1 / 120) / (251 / 720 / 4**4)
    assert exponential(RK4, 480) / exponential(AB4, 480) == pytest.approx(wanted, rel=0.1)
    assert exponential(RK4, 40, -30.0) < 1 < exponential(AB4, 40, -30.0)  # beyond AB4's stability, within RK4's


def test_equal_evaluations():
    for scheme in (RK4, AB4, integrators.dop853()):
        calls = []
        integrators.integrated(
            scheme, [np.zeros(1)], [np.ones(1)], lambda q, qd, calls=calls: calls.append(1) or [-qd[0]], 240
        )
        assert len(calls) == 240


def test_ab4_and_dop853_on_a_puma():
    rows = integrators.compare(("puma560",), starts=30, every=(120, 240))
    assert [row.motion for row in rows] == ["falling", "falling", "controlled", "controlled"]
    assert all(1 < row.gain[1] < 6.2 for row in rows)
    assert all(row.dop853 < row.ab4 for row in rows)
    assert all(row.lost == (0, 0, 0) for row in rows)


def test_rods_are_what_they_are_called():
    arm = smoothness.rods(4, 1000.0)
    assert [link.mass for link in arm.links] == pytest.approx([1, 10, 100, 1000])
    straight = arm.gravity_load(np.zeros(4))
    assert straight[3] == pytest.approx(1000 * 9.81 / 2)
    assert arm.inertia_matrix(np.zeros(4))[3, 3] == pytest.approx(1000 * (1 / 3 + 0.05**2 / 16))


def test_rounding_alone_parts_the_methods():
    """In double precision the steps are equal; in single precision the composite method needs more, or fails."""
    rows = smoothness.compare((6,), (1.0, 1e6))
    double = [row for row in rows if row.precision == "float64"]
    assert all(row.recursive == row.composite for row in double)
    easy, hard = (row for row in rows if row.precision == "float32")
    assert abs(easy.recursive - easy.composite) <= 1
    assert hard.recursive is not None
    assert hard.composite is None or hard.composite > 3 * hard.recursive
    assert hard.noise[1] > 100 * hard.noise[0]
    assert hard.condition > 1e7


@pytest.mark.parametrize("name", ["integrators", "smoothness", "linear-solvers"])
def test_the_command_prints_the_table(name, monkeypatch):
    study = {"integrators": integrators, "smoothness": smoothness, "linear-solvers": linear_solvers}[name]
    few = {
        "integrators": (("puma560",), ("falling",), 2, (60,)),
        "smoothness": ((3,), (1.0,), (("float64", 1e-6),)),
        "linear-solvers": ([armdyn.load("puma560")], 10),
    }
    found = study.compare(*few[name])
    monkeypatch.setattr(study, "compare", lambda: found)
    run = CliRunner().invoke(app, ["study", name], env={"COLUMNS": "80", "TERM": "dumb"})
    assert run.exit_code == 0, run.output
    assert max(map(len, run.output.splitlines())) <= 80
    assert all(sentence[:20] in " ".join(run.output.split()) for sentence in study.findings(found))
    rows = json.loads(CliRunner().invoke(app, ["study", name, "--json"]).output)
    assert len(rows) == len(found)
    refused = CliRunner().invoke(app, ["study", name, "--posture", "second"])
    assert refused.exit_code == 1
    assert "options of puma-line" in str(refused.exception)


@pytest.mark.parametrize("study", [integrators, smoothness, linear_solvers])
def test_the_stored_table_has_the_columns_of_today(study):
    name = study.__name__.rsplit(".", 1)[1]
    text = (ROOT / "docs" / "studies" / f"{name}.txt").read_text(encoding="utf-8")
    heads = [line[7:] for line in text.split("   * - ")[1].replace("     - ", "\n     - ").splitlines()]
    first = text.split("   * - ")[1].splitlines()
    assert [first[0], *(line.strip(" -") for line in first[1:])] == list(study.HEADS), heads
