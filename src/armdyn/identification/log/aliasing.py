"""Effects of the sampling rate: torques aliased from above the Nyquist frequency, and motions sampled too coarsely."""

from __future__ import annotations

import numpy as np

from armdyn.identification.log.log import Log
from armdyn.identification.log.processing import Processing

NEAR_NYQUIST = 0.8  # of the Nyquist frequency; the spectrum above it gives the level of noise and aliasing
MAX_ALIASED = 0.05  # of the torques in the pass band: 0.014 for a TX40 at 5 kHz, 0.06 to 0.14 decimated unfiltered
COARSE = 8.0  # samples per period of the fastest motion, below which positions cannot be differentiated
RECOMMENDED = 20.0  # samples per period of the fastest motion


def folded(log: Log, how: Processing) -> float:
    """Fraction (rms) of the torques in the pass band of the model filter that is noise or aliased, over all joints.

    The spectrum of aliased noise is nearly flat, so its level near the Nyquist frequency holds at all frequencies.
    """
    piece = max(log.pieces, key=len)
    tau = (piece.efforts - piece.efforts.mean(axis=0)) * np.hanning(len(piece))[:, None]
    power = (np.abs(np.fft.rfft(tau, axis=0)) ** 2).sum(axis=1)
    frequency = np.arange(len(power)) * log.rate / len(piece)
    inside = frequency <= (log.rate if how.parallel is None else how.parallel)
    level = float(power[frequency > NEAR_NYQUIST * log.rate / 2].mean())
    return float(np.sqrt(level * np.count_nonzero(inside) / max(float(power[inside].sum()), 1e-300)))


def sampling_doubts(log: Log, how: Processing) -> list[str]:
    """Messages about a sampling rate that is too low."""
    said = []
    per_period = log.rate / how.bandwidth if how.bandwidth else np.inf
    if per_period < COARSE:
        said.append(
            f"the log has {per_period:.2g} samples per period of its fastest motion ({how.bandwidth:.3g} Hz), too few"
            f" to differentiate the positions: record at {RECOMMENDED * how.bandwidth:.0f} Hz or more"
        )
    share = folded(log, how)
    if share > MAX_ALIASED:
        said.append(
            f"about {100 * share:.0f} % of the torques below the cut-off frequency is noise, or vibration aliased by"
            f" sampling at {log.rate:.4g} Hz without an anti-aliasing filter (the torques still have energy near"
            f" {log.rate / 2:.4g} Hz): record at a higher rate, or filter the torques before decimating them"
        )
    return said
