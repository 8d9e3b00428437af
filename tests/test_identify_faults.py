"""Faults of loggers: spikes, held positions, clipped and dead torques, coarse positions; found, mended or said."""

from __future__ import annotations

import numpy as np
import pytest

import armdyn
from armdyn import Log
from armdyn.errors import InputError
from armdyn.identification.cleaning import clipped, held, resolution
from armdyn.identification.excitation import Basis
from armdyn.identification.joint_faults import joint_faults
from armdyn.identification.model import Model
from armdyn.identification.processing import Spectrum, choose_processing, motions
from noisy_logs import RATE, recorded


@pytest.fixture(scope="module")
def arm():
    return armdyn.load("planar3")


def test_spikes_are_replaced_and_said(arm):
    t, q, _, tau = recorded(arm, 12.0)
    bad_q, bad_tau = q.copy(), tau.copy()
    bad_q[300, 1] += 0.5
    bad_tau[[100, 700, 701], [0, 2, 2]] = 1e4
    clean, mended = Log.of(t, q, tau), Log.of(t, bad_q, bad_tau)
    assert clean.notes == ()
    assert [note.split(" (first")[0] for note in mended.notes] == [
        "1 outlier in the positions",
        "3 outliers in the torques",
    ]
    assert "row 301, joint 2" in mended.notes[0]
    np.testing.assert_allclose(mended.array("q"), q, atol=0.01)
    assert np.abs(mended.array("tau")[[100, 700]] - tau[[100, 700]]).max() < 2
    untouched = np.delete(np.arange(len(t)), [100, 300, 700, 701])
    np.testing.assert_array_equal(mended.array("tau")[untouched], tau[untouched])


def test_held_positions_are_a_gap(arm):
    t, q, _, tau = recorded(arm, 12.0)
    stuck = q.copy()
    stuck[800:860] = q[800]
    log = Log.of(t, stuck, tau)
    assert any(note.startswith("59 rows with a frozen position") for note in log.notes)
    assert len(log.pieces) == 2
    resting = np.concatenate([q, np.repeat(q[-1:], 100, axis=0)])  # at rest, and no jump afterwards
    assert not held(resting).any()


def test_clipped_rows_are_left_out(arm):
    t, q, _, tau = recorded(arm, 12.0)
    most = 0.6 * np.abs(tau[:, 0]).max()
    cut = tau.copy()
    cut[:, 0] = np.clip(tau[:, 0], -most, most)
    assert not clipped(tau).any()
    np.testing.assert_array_equal(clipped(cut)[:, 0], np.abs(tau[:, 0]) >= most)
    t_other, q_other, _, tau_other = recorded(arm, 12.0, seed=1)
    options = {"friction": "coulomb", "validate": Log.of(t_other, q_other, tau_other)}
    whole = armdyn.identify(arm, Log.of(t, q, tau), **options)
    left = armdyn.identify(arm, Log.of(t, q, cut), **options)
    assert any("joint 1 is saturated" in text for text in left.warnings)
    assert left.validation.error < 1.5 * whole.validation.error
    assert not any("saturated" in text for text in whole.warnings)


def test_a_dead_channel_and_a_still_joint_are_said(arm):
    t, q, _, tau = recorded(arm, 12.0)
    q[:, 2], tau[:, 2] = 0.3, 0.0
    found = armdyn.identify(arm, Log.of(t, q, tau), friction="coulomb")
    assert any("joint 3 never changes" in text for text in found.warnings)
    assert any("joint 3 hardly moves" in text for text in found.warnings)
    assert found.extras["fc3"] == pytest.approx(0, abs=1e-6)
    with pytest.raises(InputError, match="no torque ever changes"):
        armdyn.identify(arm, Log.of(t, q, 0 * tau))


def test_coarse_positions_do_not_widen_the_band():
    """At a steady speed rounded positions have strong lines at the rate at which steps are passed."""
    t = np.arange(0, 20, 1 / RATE)
    q = np.abs((0.25 * t) % 2 - 1)  # to and fro
    coarse = np.round(q, 2)
    assert resolution(coarse) == pytest.approx(0.01)
    assert resolution(q) == 0
    assert Spectrum.of(coarse, RATE).bandwidth() < 3
    assert Spectrum.of(coarse, RATE).bandwidth() < 2 * Spectrum.of(q, RATE).bandwidth()


def test_a_log_that_is_wrong_is_said_to_be(arm):
    t, q, _, tau = recorded(arm, 12.0)
    slow = Log.of(t * 40, q, tau)  # 5 Hz: stamps in another unit, or a log of nothing
    found = armdyn.identify(arm, slow, friction="coulomb", validate=Log.of(t, q, -2 * tau))
    said = " ".join(found.warnings)
    assert "5 samples per second" in said
    assert "milliseconds" in said
    assert "the validation log is predicted with an error of" in said
    assert "of joint 1 (" in said


def test_one_torque_in_another_unit_and_one_zero_that_is_off_are_said():
    """What no arm explains: the same links turn up in the torques of several joints."""
    arm = armdyn.load("puma560")
    t, q, qd, tau = recorded(arm, 12.0)
    wrong = {"": (q, tau)}
    scaled, turned = tau.copy(), q.copy()
    scaled[:, 1] *= 1.4
    turned[:, 1] += np.radians(10)
    wrong |= {"the torque of joint 2 seems to be 1.": (q, scaled), "the zero of joint 2 seems to be off": (turned, tau)}
    for expected, (positions, torques) in wrong.items():
        found = armdyn.identify(arm, Log.of(t, positions, torques, qd), friction="coulomb", folds=2)
        said = [text for text in found.warnings if "explains" in text and "of what a fit leaves" in text]
        assert len(said) == bool(expected), said
        assert all(text.startswith(expected) for text in said), said
        if "zero" in expected:
            assert -12 < float(said[0].split("add ")[1].split()[0]) < -8


@pytest.fixture(scope="module")
def slow():
    """A motion below 0.2 Hz of a Puma with rotors, whose torques are known to 2 %."""
    arm, rng = armdyn.load("puma560"), np.random.default_rng(7)
    t, basis = np.arange(0, 40, 0.01), Basis(40.0, 7)
    motion = 0.9 * rng.normal(size=(basis.size, 6)) / np.sqrt(basis.size)
    q, qd, qdd = (b @ motion for b in basis.at(t))
    rigid = np.asarray(arm.inverse_dynamics(q, qd, qdd))
    size = rigid.std(axis=0) + 0.5
    tau = rigid + size * (0.2 * qd + 0.08 * np.tanh(qd / 0.01) + 0.05 * qdd + 0.02 * rng.normal(size=q.shape))
    return arm, t, q + 2e-5 * rng.normal(size=q.shape), tau


def late(t, tau, seconds=0.02):
    return np.stack([np.interp(t - seconds, t, x) for x in tau.T], axis=1)


def only(j, x, y):
    """The columns x, with y in place of one."""
    return np.where(np.arange(x.shape[1]) == j, y, x)


def lagged(t, tau):
    """Through a filter of first order, 3 Hz."""
    from scipy.signal import butter, lfilter

    b, a = butter(1, 3 * 2 * t[1])
    return lfilter(b, a, tau - tau[0], axis=0) + tau[0]


SLOW = {
    "": lambda t, q, tau: (q, tau),
    "all torques are about 20 ms late": lambda t, q, tau: (q, late(t, tau)),
    "all torques are about 20 ms early": lambda t, q, tau: (q, late(t, tau, -0.02)),
    "or went through a slow filter": lambda t, q, tau: (q, lagged(t, tau)),
    "the torque of joint 3 is about 20 ms late": lambda t, q, tau: (q, only(2, tau, late(t, tau))),
    "the torque of joint 2 seems to be 1.2": lambda t, q, tau: (q, only(1, tau, 1.25 * tau)),
    "the torque of joint 3 seems to be 0.5": lambda t, q, tau: (q, only(2, tau, 0.5 * tau)),
    "the zero of joint 2 seems to be off by about 9": lambda t, q, tau: (only(1, q, q + np.radians(10)), tau),
    "the positions of joint 3 seem to be 1.2": lambda t, q, tau: (only(2, q, 1.25 * q), tau),
}


@pytest.mark.parametrize("words", SLOW)
def test_faults_of_a_slow_motion_are_said(slow, words):
    """What a fit sees of torques that are late, filtered or in another unit, and of zeros and gear ratios."""
    arm, t, q, tau = slow
    log = Log.of(t, *SLOW[words](t, q, tau))
    model, how = Model.of(arm), choose_processing(log, 60, None, None)
    late_ones, wrong = joint_faults(model, motions(log, how), how)
    said = [*map(str, late_ones), *wrong]
    assert len(said) == bool(words), said
    assert all(words in text for text in said), said


def test_torques_that_are_late_are_shifted_on_request(slow):
    arm, t, q, tau = slow
    options = {"friction": "coulomb", "folds": 2}
    sound = armdyn.identify(arm, Log.of(t, q, tau), **options)
    fixed = armdyn.identify(arm, Log.of(t, q, late(t, tau)), fix=True, **options)
    assert fixed.changes[0].late == pytest.approx(0.02)
    assert fixed.error < 1.1 * sound.error
    assert any("changed: all torques are about 20 ms late" in note for note in fixed.notes)
