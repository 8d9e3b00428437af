"""Signals: zero-phase filters with the cut-off that was asked for, derivatives, decimation, smooth signs."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from armdyn.errors import InputError

Array = NDArray[np.float64]
ORDER = 4


def lowpass(x: Array, rate: float, cutoff: float, order: int = ORDER) -> Array:
    """Zero-phase Butterworth filter along the first axis, -3 dB exactly at `cutoff` (Hz) after both passes.

    Two passes of a filter with its -3 dB point at f attenuate f by 6 dB; the single pass is therefore designed
    for a higher frequency: |H|⁴ = 1/2 at the cut-off, in the bilinear transform's warped frequency.
    """
    from scipy.signal import sosfiltfilt

    if not 0 < cutoff < rate / 2:
        raise InputError(f"the cut-off must lie between 0 and half the sampling rate ({rate / 2:.4g} Hz), got {cutoff}")
    pad = min(len(x) - 1, int(np.ceil(3 * rate / cutoff)))
    return np.asarray(sosfiltfilt(_sections(cutoff / rate, order), x, axis=0, padlen=pad))


@lru_cache(maxsize=32)
def _sections(cutoff: float, order: int) -> Array:
    """Second-order sections of the single pass; the cut-off in cycles per sample."""
    from scipy.signal import butter

    warped = np.tan(np.pi * cutoff) / (np.sqrt(2) - 1) ** (1 / (2 * order))
    return np.asarray(butter(order, 2 * np.arctan(warped) / np.pi, output="sos"))


def derivative(x: Array, period: float) -> Array:
    """Central derivative along the first axis: five points, fourth order; second order at the two ends."""
    out = np.gradient(x, period, axis=0, edge_order=2)
    if len(x) > 4:
        out[2:-2] = (8 * (x[3:-1] - x[1:-3]) - (x[4:] - x[:-4])) / (12 * period)
    return np.asarray(out)


def decimated(x: Array, rate: float, cutoff: float, factor: int) -> Array:
    """Low-pass at `cutoff`, then every `factor`-th sample: what both sides of τ = Y π go through alike."""
    return lowpass(x, rate, cutoff)[::factor]


def bandwidth(qd: Array, rate: float, share: float = 0.99) -> float:
    """The frequency (Hz) below which `share` of each joint's power of motion lies; the highest over the joints."""
    spectrum = np.abs(np.fft.rfft(qd * np.hanning(len(qd))[:, None], axis=0)) ** 2
    total = np.cumsum(spectrum, axis=0)
    moving = total[-1] > 1e-6 * total[-1].max()
    below = np.argmax(total >= share * total[-1], axis=0)[moving]
    return float(max(below.max(), 1) * rate / len(qd))


def smooth_sign(v: Array, width: float | Array) -> Array:
    """A sign without its jump: tanh(v / width); the plain sign where the width is 0."""
    scale = np.broadcast_to(np.asarray(width, dtype=float), v.shape)
    return np.where(scale > 0, np.tanh(v / np.where(scale > 0, scale, 1.0)), np.sign(v))
