"""Filters have the cut-off that was asked for; derivatives have their order."""

from __future__ import annotations

import numpy as np
import pytest

from armdyn import Log
from armdyn.errors import InputError
from armdyn.identification.processing import Processing, Spectrum, bandwidth, derivative, lowpass, motions, smooth_sign

RATE = 500.0


def gain(frequency, cutoff, order):
    t = np.arange(int(20 * RATE)) / RATE
    x = np.sin(2 * np.pi * frequency * t)
    middle = slice(len(t) // 4, 3 * len(t) // 4)
    y = lowpass(x, RATE, cutoff, order)
    basis = np.stack([np.sin(2 * np.pi * frequency * t), np.cos(2 * np.pi * frequency * t)], 1)[middle]
    in_phase, quadrature = np.linalg.lstsq(basis, y[middle], rcond=None)[0]
    assert abs(quadrature) < 1e-6  # zero phase
    return in_phase


@pytest.mark.parametrize("order", [2, 4, 6])
@pytest.mark.parametrize("cutoff", [3.0, 20.0, 110.0])
def test_the_cut_off_is_the_one_asked_for(cutoff, order):
    assert gain(cutoff, cutoff, order) == pytest.approx(np.sqrt(0.5), abs=1e-6)
    assert gain(cutoff / 3, cutoff, order) > 0.98
    assert gain(min(3 * cutoff, 240.0), cutoff, order) < 0.05


def test_a_constant_passes_unchanged():
    np.testing.assert_allclose(lowpass(np.full((300, 2), 7.0), RATE, 5.0), 7.0, rtol=1e-9)


def test_an_impossible_cut_off():
    with pytest.raises(InputError, match="half the sampling rate"):
        lowpass(np.zeros(100), RATE, 250.0)


def test_the_derivative_is_of_fourth_order_inside():
    errors = []
    for h in (0.02, 0.01):
        t = np.arange(0, 2, h)
        errors.append(np.abs(derivative(np.sin(3 * t), h) - 3 * np.cos(3 * t))[2:-2].max())
    assert np.log2(errors[0] / errors[1]) == pytest.approx(4, abs=0.1)


def test_bandwidth_of_a_sine():
    t = np.arange(5000) / RATE
    q = np.stack([np.sin(2 * np.pi * 1.5 * t), 1e-9 * np.sin(2 * np.pi * 50 * t)], 1)
    assert bandwidth(q, RATE) == pytest.approx(1.5, abs=0.25)


@pytest.mark.parametrize("noise", [1e-6, 1e-4, 1e-3])
@pytest.mark.parametrize("rate", [100.0, 1000.0, 5000.0])
def test_noise_does_not_widen_the_motion(noise, rate):
    t = np.arange(int(20 * rate)) / rate
    rng = np.random.default_rng(0)
    q = 0.5 * np.sin(2 * np.pi * 0.4 * t) + 0.1 * np.sin(2 * np.pi * 1.5 * t + 1)
    spectrum = Spectrum.of(q + noise * rng.normal(size=q.shape), rate)
    assert spectrum.bandwidth() == pytest.approx(1.5, abs=0.15)
    measured = spectrum.floor * len(t) / (np.hanning(len(t)) ** 2).mean() / len(t) ** 2
    assert np.sqrt(measured) == pytest.approx(noise, rel=0.1)


def test_motions_are_decimated_to_sixteen_rows_per_period_of_the_cut_off():
    t = np.arange(2000) / 1000.0
    q = np.stack([np.sin(3 * t), np.cos(2 * t)], axis=1)
    log, how = Log.of(t, q, -q), Processing(5.0, None)  # 16 rows in 0.2 s: every twelfth of a thousand per second
    (thin,), (whole,) = motions(log, how), motions(log, how, decimate=False)
    assert thin.period == pytest.approx(0.012)
    assert whole.period == pytest.approx(0.001)
    for name in ("t", "q", "qd", "qdd"):
        assert np.array_equal(getattr(thin, name), getattr(whole, name)[::12]), name
    assert len(thin.tau) == len(thin.t) == 167


def test_smooth_sign():
    v = np.array([-1.0, -1e-3, 0.0, 1e-3, 1.0])
    np.testing.assert_array_equal(smooth_sign(v, 0.0), np.sign(v))
    np.testing.assert_allclose(smooth_sign(v, 1e-3), np.tanh(v / 1e-3))
