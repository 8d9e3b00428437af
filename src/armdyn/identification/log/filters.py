"""Signal processing: zero-phase filters with an exact cut-off, derivatives, decimation, spectra, smooth signs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from armdyn.errors import InputError
from armdyn.identification.log.faults import resolution

Array = NDArray[np.float64]
ORDER = 4
BANDS = 60  # of a spectrum, on a scale of logarithms
FLOOR = 4.0  # power over the median above it, below which a band is noise; white noise has 1.4


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
    """Low-pass filter at `cutoff`, then every `factor`-th sample; applied to both sides of τ = Y π."""
    return lowpass(x, rate, cutoff)[::factor]


@dataclass(frozen=True, eq=False)
class Spectrum:
    """The periodogram of a joint's positions (Hann window): frequencies (Hz), power, the level of the noise floor.

    `signal` marks the bins where the spectrum is above the noise floor; only these contain motion.
    """

    frequency: Array
    power: Array
    floor: float
    signal: NDArray[np.bool_]

    @classmethod
    def of(cls, q: Array, rate: float) -> Spectrum:
        """The spectrum of one joint's positions."""
        window = np.hanning(len(q))
        power = np.abs(np.fft.rfft((q - q.mean()) * window)) ** 2
        frequency = np.arange(len(power)) * rate / len(q)
        signal = _stands_out(power)
        floor = 0.0 if signal.all() else float(np.median(power[~signal])) / np.log(2)  # mean of exponential power
        step = resolution(q)
        if step:
            level = _stairs(q, step, window)
            signal &= np.arange(len(power)) < _reaches(power, FLOOR * level)
            floor = max(floor, level)
        return cls(frequency, power, floor, signal)

    def energy(self, order: int) -> Array:
        """The energy of the derivative of this order up to each frequency, without the noise floor."""
        own = np.where(self.signal, np.maximum(self.power - self.floor, 0.0), 0.0)
        return np.cumsum(own * (2 * np.pi * self.frequency) ** (2 * order))

    def noise(self, order: int, cutoff: float) -> float:
        """The energy of the derivative of this order of the noise floor, below a frequency."""
        below = self.frequency <= cutoff
        return float((self.floor * (2 * np.pi * self.frequency[below]) ** (2 * order)).sum())

    def bandwidth(self, share: float = 0.99) -> float:
        """The frequency (Hz) below which `share` of the velocity's energy lies."""
        total = self.energy(1)
        bin_ = int(np.argmax(total >= share * total[-1])) if total[-1] > 0 else 0
        return float(max(bin_, 1) * self.frequency[1])


def _stairs(q: Array, step: float, window: Array) -> float:
    """The power of what rounding to a coarse step adds: step²/12, spread up to the rate at which steps are passed."""
    passed = float(np.abs(np.diff(q)).mean()) / step  # per sample
    return float((window**2).sum()) * step**2 / 12 / min(1.0, 2 * passed)


def _reaches(power: Array, level: float) -> int:
    """The first bin of the first band above the peak that is below a level.

    At a steady speed stairs have lines far above their mean, at the rate at which steps are passed: no bin counts after
    the motion's own have come to an end.
    """
    first = max(int(np.argmax(power[1:])) + 1, 2)
    for low, high in pairwise(np.unique(np.geomspace(first, len(power), BANDS).astype(int))):
        if power[low:high].mean() < level:
            return int(low)
    return len(power)


def _stands_out(power: Array) -> NDArray[np.bool_]:
    """The bins below the peak, and the bands above it that exceed the median of everything higher by FLOOR times."""
    first = max(int(np.argmax(power[1:])) + 1, 2)
    out = np.arange(len(power)) < first
    for low, high in pairwise(np.unique(np.geomspace(first, len(power), BANDS).astype(int))):
        out[low:high] = power[low:high].mean() > FLOOR * np.median(power[low:])
    return out


def bandwidth(q: Array, rate: float, share: float = 0.99) -> float:
    """The highest bandwidth over the joints that move: `share` of each one's velocity lies below it."""
    spectra = [Spectrum.of(own, rate) for own in q.T]
    energy = np.array([s.energy(1)[-1] for s in spectra])
    moving = energy > 1e-6 * energy.max()
    return max((s.bandwidth(share) for s, moves in zip(spectra, moving, strict=True) if moves), default=rate / len(q))


def smooth_sign(v: Array, width: float | Array) -> Array:
    """A smooth sign, tanh(v / width); the plain sign if the width is 0."""
    scale = np.broadcast_to(np.asarray(width, dtype=float), v.shape)
    return np.where(scale > 0, np.tanh(v / np.where(scale > 0, scale, 1.0)), np.sign(v))
