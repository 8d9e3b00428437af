"""From a file to a URDF on a simulated log that is part of the repository (measured logs are elsewhere)."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import armdyn
from armdyn import Log
from armdyn.cli import app

DATA = Path(__file__).parent / "data"


def made():
    spec = importlib.util.spec_from_file_location("make_ur5_log", DATA / "make_ur5_log.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def log():
    return Log.read(DATA / "ur5_log.csv")


@pytest.fixture(scope="module")
def found(log):
    return armdyn.identify(armdyn.load("ur5"), log.part(0, 0.7), validate=log.part(0.7, 1))


def test_the_file_is_what_its_script_writes():
    names, rows = made().table()
    text = (DATA / "ur5_log.csv").read_text(encoding="utf-8").splitlines()
    assert text[0].split(",") == names
    np.testing.assert_allclose(np.loadtxt(text[1:], delimiter=","), rows, rtol=1e-3, atol=1e-6)


def test_uneven_stamps_are_said(log):
    assert log.rate == pytest.approx(100, rel=0.02)
    assert any("uneven" in note for note in log.notes)


def test_the_end_is_predicted_from_the_beginning(found):
    assert found.model.rigid == 36
    assert found.validation.error < 0.04
    assert found.validation.raw_error < 0.06
    assert (found.smallest_eigenvalues > 0).all()
    unknowing = armdyn.load("ur5")
    assert found.given == unknowing


def test_friction_and_masses_come_back(found):
    known = made()
    got = np.array([found.extras[f"fv{k}"] for k in range(1, 7)])
    np.testing.assert_allclose(got, known.VISCOUS, rtol=0.25)
    q = np.random.default_rng(0).uniform(-2, 2, (50, 6))
    expected = np.asarray(known.true_arm().gravity_load(q))
    for arm, share in ((found.arm, 0.05), (armdyn.load("ur5"), 1.0)):
        off = np.linalg.norm(np.asarray(arm.gravity_load(q)) - expected) / np.linalg.norm(expected)
        assert off < share
    assert off > 0.1  # the prior is that wrong


def test_from_the_command_line_to_a_urdf(tmp_path):
    arguments = ["identify", "ur5", str(DATA / "ur5_log.csv"), "-o", str(tmp_path), "--friction", "coulomb", "--json"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert json.loads(result.output)["error"] < 0.05
    again = armdyn.load(tmp_path / "arm.urdf")
    assert again.n == 6
    assert float(again.links[1].mass) == pytest.approx(float(made().true_arm().links[1].mass), rel=0.5)
