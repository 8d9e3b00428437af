"""The band of a motion: noise that grows with the speed does not raise the cut-offs, real motion does."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import lfilter

import armdyn
from armdyn import Log
from armdyn.identification.band import kept_band, motion_band
from armdyn.identification.model import Model
from armdyn.identification.processing import choose_processing

RATE = 1000.0


@pytest.fixture(scope="module")
def arm():
    return armdyn.load("planar3")


def moved(arm, seconds=15.0, seed=0, fast=0.0):
    """Times, states and torques of a motion up to 0.65 Hz, and of a fast swing of this amplitude at 9 Hz."""
    rng = np.random.default_rng(seed)
    t = np.arange(0, seconds, 1 / RATE)
    q, qd, qdd = np.zeros((3, len(t), arm.n))
    for w, size in [(2 * np.pi * 0.13 * k, 1 / k) for k in range(1, 6)] + [(2 * np.pi * 9, fast)]:
        a, b = size * rng.normal(size=(2, arm.n))
        s, c = np.sin(w * t)[:, None], np.cos(w * t)[:, None]
        q, qd, qdd = q + a * s + b * c, qd + w * (a * c - b * s), qdd - w**2 * (a * s + b * c)
    tau = np.asarray(arm.inverse_dynamics(q, qd, qdd)) + 0.5 * qd
    return t, q, qd, qdd, tau + 0.01 * np.abs(tau).max(axis=0) * rng.normal(size=tau.shape)


def jittered(q, qd, size=1.5e-3, memory=0.05, seed=1):
    """Positions of rows taken early or late, with some memory: noise in proportion to the speed, and coloured."""
    keep = np.exp(-1 / RATE / memory)
    late = lfilter([np.sqrt(1 - keep**2)], [1, -keep], np.random.default_rng(seed).normal(size=len(q)))
    return q + size * late[:, None] * qd


def cutoffs(arm, log):
    model = Model.of(arm)
    how = choose_processing(log, len(model.names), None, None)
    return how, *kept_band(how, model, arm, log)


def test_noise_of_the_speed_does_not_widen_the_band(arm):
    t, q, qd, _, tau = moved(arm)
    log = Log.of(t, jittered(q, qd), tau)
    before, after, note = cutoffs(arm, log)
    assert before.parallel > 20  # the spectrum of the positions has no floor
    assert after.parallel < 6
    assert after.positions == pytest.approx(2 * after.parallel)
    assert "the motion ends at" in note[0]
    other = moved(arm, seed=5)

    def error(**options):
        found = armdyn.identify(arm, log, friction="viscous", folds=2, **options)
        return np.linalg.norm(found.predict(*other[1:4]) - other[4]) / np.linalg.norm(other[4]), found

    best = min(error(parallel=cut, cutoff=2 * cut)[0] for cut in (1.5, 3.0, 6.0))
    own, found = error()
    assert own < 1.1 * best
    assert any("the motion ends at" in text for text in found.notes)
    assert error(parallel=before.parallel, cutoff=before.positions)[0] > 1.5 * best


def test_real_motion_keeps_its_band(arm):
    t, q, qd, _, tau = moved(arm)
    assert cutoffs(arm, Log.of(t, q, tau))[2] == ()
    t, q, qd, _, tau = moved(arm, fast=0.02)
    before, after, note = cutoffs(arm, Log.of(t, jittered(q, qd, 1e-6), tau))
    assert note == ()
    assert after is before
    assert after.parallel > 9  # the swing is in it


def test_a_cutoff_that_is_given_is_taken(arm):
    t, q, qd, _, tau = moved(arm)
    found = armdyn.identify(arm, Log.of(t, jittered(q, qd), tau), friction="viscous", folds=2, cutoff=30.0)
    assert found.processing.positions == 30.0
    assert not any("the motion ends at" in text for text in found.notes)


@pytest.mark.parametrize("noise", [0.0, 1e-5, 1e-3])
def test_the_end_of_a_motion(noise):
    t = np.arange(0, 20, 1e-3)
    waves = [np.sin(2 * np.pi * f * t + 5 * f**2) for f in np.arange(0.4, 1.35, 0.1)]
    q = np.sum(waves, axis=0) + noise * np.random.default_rng(0).normal(size=len(t))
    assert motion_band(q, 1000.0) == pytest.approx(1.3, abs=0.15)
