"""Whether an estimate is to be trusted: its doubts, the exit status, and what is not written then."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

import armdyn
from armdyn import Log
from armdyn.cli import app
from armdyn.errors import ComputationError
from armdyn.identification.doubts import doubts_of, warnings_of
from armdyn.identification.processing import motions
from noisy_logs import recorded

OPTIONS = {"friction": "coulomb", "folds": 2}


@pytest.fixture(scope="module")
def arm():
    return armdyn.load("planar3")


@pytest.fixture(scope="module")
def sound(arm):
    t, q, qd, tau = recorded(arm)
    return Log.of(t, q, tau, qd)


@pytest.fixture(scope="module")
def senseless(arm):
    """Torques of another motion."""
    t, q, qd, _ = recorded(arm)
    return Log.of(t, q, recorded(arm, seed=3)[3], qd)


def test_a_sound_log_is_trusted(arm, sound, tmp_path):
    found = armdyn.identify(arm, sound, **OPTIONS)
    assert found.trusted
    assert found.doubts == ()
    assert "not trusted" not in str(found).lower()
    found.to_urdf(tmp_path / "arm.urdf")


def test_half_of_the_torque_is_no_arm(arm, senseless, tmp_path):
    found = armdyn.identify(arm, senseless, **OPTIONS)
    assert not found.trusted
    assert any("of the torques are not explained by any arm" in text for text in found.doubts)
    assert set(found.doubts) <= set(found.warnings)
    assert "NOT TRUSTED" in repr(found)
    assert "not trusted: " in str(found)
    with pytest.raises(ComputationError, match=r"not to be trusted: .*force=True"):
        found.to_urdf(tmp_path / "arm.urdf")
    assert not list(tmp_path.iterdir())
    found.to_urdf(tmp_path / "arm.urdf", force=True)
    assert (tmp_path / "arm.urdf").exists()


def test_a_log_that_is_misread_is_not_trusted(arm, sound):
    wrong = Log.of(sound.array("t"), sound.array("q"), -sound.array("tau"))
    found = armdyn.identify(arm, wrong, **OPTIONS)
    assert "all torques have the opposite sign" in found.doubts[0]
    mended = armdyn.identify(arm, wrong, fix=True, **OPTIONS)
    assert mended.trusted


def test_a_validation_log_of_something_else_is_a_doubt(arm, sound, senseless):
    found = armdyn.identify(arm, sound, validate=senseless, **OPTIONS)
    assert any("the validation log is predicted with an error of" in text for text in found.doubts)


def test_the_command_line_refuses(arm, senseless, sound, tmp_path):
    senseless.save(tmp_path / "bad.csv")
    sound.save(tmp_path / "good.csv")
    out = tmp_path / "out"
    words = ["identify", "planar3", str(tmp_path / "bad.csv"), "--friction", "coulomb", "-o", str(out)]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 5, result.output
    assert "refused: the estimate is not trusted; no arm and no URDF are written" in " ".join(result.output.split())
    assert {path.name for path in out.iterdir()} == {"parameters.json", "report.html"}
    data = json.loads((out / "parameters.json").read_text())
    assert data["trusted"] is False
    assert data["doubts"]
    assert "from arm.urdf" not in " ".join(result.output.split())
    result = CliRunner().invoke(app, [*words, "--force"])
    assert result.exit_code == 0, result.output
    assert (out / "arm.urdf").exists()
    assert "was there before" not in result.output
    result = CliRunner().invoke(app, words)  # the forced arm is not mistaken for one of this log
    assert result.exit_code == 5, result.output
    assert "arm.urdf is not of this log: it was there before" in " ".join(result.output.split())
    result = CliRunner().invoke(app, ["identify", "planar3", str(tmp_path / "good.csv"), "--friction", "coulomb", "-q"])
    assert result.exit_code == 0, result.output


def test_errors_of_fit_and_prediction_are_compared_only_if_they_matter(arm, sound):
    found = armdyn.identify(arm, sound, **OPTIONS)
    exact = replace(found, training=replace(found.training, predicted=0.999 * found.training.tau))
    parts = motions(sound, found.processing)
    said = {left: warnings_of(replace(exact, folds=np.full(2, left)), parts) for left in (0.0, 0.015, 0.1)}
    assert [any("generalize" in text for text in texts) for texts in said.values()] == [False, False, True]
    assert not doubts_of(replace(exact, folds=np.full(2, 0.1)), [])
    assert "of this log and not of the arm" in doubts_of(replace(exact, folds=np.full(2, 0.3)), [])[0]


def test_a_link_heavier_than_the_arm_and_a_tilt_at_its_bound_are_doubts(arm, sound):
    found = armdyn.identify(arm, sound, **OPTIONS)
    natural = found.fit.natural.copy()
    natural[0] = 2.1 * sum(float(link.mass) for link in arm.links)
    heavy = replace(found, fit=replace(found.fit, natural=natural))
    assert "the mass of link 1" in doubts_of(heavy, [])[0]
    assert "base tilt is as large as it may be" in doubts_of(replace(found, base_tilt=(0.0, -0.1)), [])[0]


def test_rotor_inertias_are_where_pinocchio_reads_them(tmp_path):
    """The URDF with its SRDF gives the torques of the identified arm; what others miss is listed."""
    pin = pytest.importorskip("pinocchio")
    arm = armdyn.load("puma560")
    t, q, qd, tau = recorded(arm, 8.0, drive=lambda qd, qdd: 0.5 * qdd)
    found = armdyn.identify(arm, Log.of(t, q, tau, qd), **OPTIONS)
    assert found.trusted  # rotors, of which the given arm has none, look like early torques
    found.to_urdf(tmp_path / "arm.urdf")
    model = pin.buildModelFromUrdf(str(tmp_path / "arm.urdf"))
    states = np.random.default_rng(0).uniform(-1, 1, (3, 6))
    bare = pin.rnea(model, model.createData(), *states)
    assert pin.loadRotorParameters(model, str(tmp_path / "arm.srdf"), False)
    expected = found.arm.inverse_dynamics(*states)
    np.testing.assert_allclose(pin.rnea(model, model.createData(), *states), expected, atol=1e-9)
    assert np.abs(bare - expected).max() > 0.1
    assert set(found.beyond_urdf) == {f"off{k}" for k in range(1, 7) if found.extras[f"off{k}"]}


def test_what_differs_between_prediction_and_arm_near_standstill_is_said(arm):
    t, q, qd, tau = recorded(arm)
    log = Log.of(t, q, tau + 8 * np.tanh(qd / 0.3), qd)
    found = armdyn.identify(arm, log, width=0.3, **OPTIONS)
    said = [text for text in found.notes if "changes its sign over up to 0.3" in text]
    motion = motions(log, found.processing)[0]
    states = motion.q, motion.qd, motion.qdd
    apart = np.asarray(found.arm.inverse_dynamics(*states, friction=True)) - found.predict(*states)
    assert f"that is {100 * np.linalg.norm(apart) / np.linalg.norm(motion.tau):.2g} % of the torques" in said[0]
    exact = armdyn.identify(arm, log, width=0, **OPTIONS)
    assert not any("changes its sign" in text for text in exact.notes)
