"""The check before identification: logs read wrongly are noticed, said in words, and mended on request."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import armdyn
from armdyn import Log
from armdyn.chain import Link
from armdyn.identification.preflight import Reading, preflight
from armdyn.identification.processing import choose_processing, motions
from armdyn.identification.threads import one_thread
from noisy_logs import recorded

DATA = Path(__file__).parent / "data"
ONES, SECOND = np.ones(6), np.where(np.arange(6) == 1, -1.0, 1.0)
SWAPPED = np.array([0, 2, 1, 3, 4, 5])
WRONG = {
    "all torques have the opposite sign": {"torque_factor": -ONES},
    "the torque of joint 2 has the opposite sign": {"torque_factor": SECOND},
    "joint 2 has the opposite direction": {"factor": SECOND, "torque_factor": SECOND},
    "joints 2 and 3 are exchanged": {"order": SWAPPED, "torque_order": SWAPPED},
    "the torques are in another order (tau6, tau5, tau4, tau3, tau2, tau1)": {"torque_order": np.arange(6)[::-1]},
    "times too large (in N mm?)": {"torque_factor": 1000 * ONES},
    "times too small (in kN m?)": {"torque_factor": ONES / 1000},
    "the torques are about 50 ms late": {"late": -0.05},
    "positions are in degrees": {"factor": np.rad2deg(ONES)},
}


@pytest.fixture(scope="module")
def arm():
    return armdyn.load("ur5")


@pytest.fixture(scope="module")
def log():
    return Log.read(DATA / "ur5_log.csv")


def found(arm, log):
    with one_thread():
        return preflight(arm, motions(log, choose_processing(log, 60, None, None)))


def test_nothing_is_said_of_a_good_log(arm, log):
    assert found(arm, log) == []


def test_motor_torques_are_called_that(arm, log):
    (finding,) = found(arm, Reading.of(6, "made wrong", "", torque_factor=ONES / 110).apply(log))
    ratio = re.search(r"times too small \(motor torques, before gears of about 1 : ([\d.]+)\?\)", str(finding))
    assert ratio
    assert 80 < float(ratio[1]) < 130
    assert "its own gear ratio" in str(finding)


@pytest.mark.parametrize("words", WRONG)
def test_a_wrong_reading_is_noticed(arm, log, words):
    wrong = Reading.of(6, "made wrong", "", **WRONG[words]).apply(log)
    findings = found(arm, wrong)
    assert len(findings) == 1
    assert words in str(findings[0])
    assert findings[0].after < 0.6 * findings[0].before or "late" in words or "mm" in words
    again = findings[0].reading.apply(wrong)
    assert found(arm, again) == []
    if "late" not in words:
        np.testing.assert_allclose(again.array("tau"), log.array("tau"), rtol=1e-9)
        np.testing.assert_allclose(again.array("q"), log.array("q"), rtol=1e-9)


def test_two_things_at_once(arm, log):
    wrong = Reading.of(6, "", "", torque_factor=-ONES, order=SWAPPED, torque_order=SWAPPED).apply(log)
    assert len(found(arm, wrong)) == 2


def test_identify_says_it_and_mends_it_on_request(arm, log):
    wrong = Reading.of(6, "made wrong", "", torque_factor=-ONES).apply(log)
    options = {"friction": "coulomb", "estimator": "weighted", "folds": 2}
    told = armdyn.identify(arm, wrong, **options)
    assert "all torques have the opposite sign" in told.warnings[0]
    mended = armdyn.identify(arm, wrong, fix=True, validate=wrong, **options)
    assert "changed: all torques have the opposite sign" in mended.notes
    right = armdyn.identify(arm, log, **options)
    np.testing.assert_allclose(mended.values, right.values, rtol=1e-6, atol=1e-9)
    assert mended.validation.error == pytest.approx(right.error, rel=1e-6)
    degrees = Reading.of(6, "", "", factor=np.rad2deg(ONES)).apply(log)
    mended = armdyn.identify(arm, degrees, fix=True, **options)
    np.testing.assert_allclose(mended.values, right.values, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("late", [0.05, -0.05])
def test_a_delay_is_told_by_a_fit_where_the_arm_as_given_is_far_off(late):
    """Links three times as heavy as the file's: what the arm predicts is wrong at any delay."""
    arm = armdyn.load("planar3").with_gravity((0.0, -9.81, 0.0))
    heavy = tuple(Link.from_natural(tuple(3 * x for x in link.natural)) for link in arm.given.links)
    true = replace(arm, given=replace(arm.given, links=heavy))
    t = np.arange(0, 20, 0.005)
    w = np.array([1.1, 2.3, 3.1])

    def states(t):
        a = np.outer(t, w)
        return (
            np.sin(a) + 0.3 * np.cos(2 * a),
            w * (np.cos(a) - 0.6 * np.sin(2 * a)),
            -(w**2) * (np.sin(a) + 1.2 * np.cos(2 * a)),
        )

    tau = np.asarray(true.inverse_dynamics(*states(t - late)))
    log = Log.of(t, states(t)[0], tau + 0.01 * np.random.default_rng(0).normal(size=tau.shape))
    said = [
        text
        for text in armdyn.identify(arm, log, friction="coulomb", folds=2).warnings
        if "the torques are about" in text
    ]
    assert len(said) == 1
    assert ("late" if late > 0 else "early") in said[0]
    fixed = armdyn.identify(arm, log, friction="coulomb", folds=2, fix=True)
    assert fixed.changes[0].late == pytest.approx(late, rel=0.25)


@pytest.mark.parametrize("late", [0.02, -0.02])
def test_a_short_delay_of_one_joint_is_said(late):
    arm = armdyn.load("planar3")
    t, q, qd, tau = recorded(arm, 12.0, seed=2)
    assert not any("with respect to the positions" in text for text in _fit(arm, t, q, qd, tau).warnings)
    tau[:, 1] = np.interp(t - late, t, tau[:, 1])
    found = _fit(arm, t, q, qd, tau)
    said = [text for text in found.warnings if "with respect to the positions" in text]
    assert len(said) == 1
    words = r"the torque of joint 2 is about (15|20|25) ms " + ("late" if late > 0 else "early")
    assert re.search(words, said[0])
    fixed = _fit(arm, t, q, qd, tau, fix=True)
    assert fixed.changes[0].late_joint == 1
    assert fixed.error < 0.6 * found.error


def _fit(arm, t, q, qd, tau, **options):
    return armdyn.identify(arm, Log.of(t, q, tau, qd), friction="coulomb", folds=2, **options)
