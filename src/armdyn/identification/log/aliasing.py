"""What sampling has done to a log: torques folded down from above half the rate, and motions too fast for it."""

from __future__ import annotations

import numpy as np

from armdyn.identification.log.log import Log
from armdyn.identification.log.processing import Processing

NEAR = 0.8  # of half the sampling rate: what is logged above it tells what was folded down
FOLDED = 0.05  # of the torques in the pass band: a TX40 at 5 kHz has 0.014, thinned unfiltered 0.06 to 0.14
COARSE, FINE = 8.0, 20.0  # samples per period of the fastest motion: too few to differentiate, enough


def folded(log: Log, how: Processing) -> float:
    """What of the torques in the model's pass band is noise or was folded into it by sampling, over all joints.

    A spectrum that was folded is nearly flat, so that its level near half the rate is that everywhere.
    """
    piece = max(log.pieces, key=len)
    tau = (piece.tau - piece.tau.mean(axis=0)) * np.hanning(len(piece))[:, None]
    power = (np.abs(np.fft.rfft(tau, axis=0)) ** 2).sum(axis=1)
    frequency = np.arange(len(power)) * log.rate / len(piece)
    inside = frequency <= (log.rate if how.parallel is None else how.parallel)
    level = float(power[frequency > NEAR * log.rate / 2].mean())
    return float(np.sqrt(level * np.count_nonzero(inside) / max(float(power[inside].sum()), 1e-300)))


def sampling_doubts(log: Log, how: Processing) -> list[str]:
    """Doubts about the rate of a log, in words."""
    said = []
    per_period = log.rate / how.bandwidth if how.bandwidth else np.inf
    if per_period < COARSE:
        said.append(
            f"the log has {per_period:.2g} samples per period of its fastest motion ({how.bandwidth:.3g} Hz), too few"
            f" to differentiate positions: log at {FINE * how.bandwidth:.0f} Hz or more"
        )
    share = folded(log, how)
    if share > FOLDED:
        said.append(
            f"about {100 * share:.0f} % of the torques below the cut-off is noise, or vibration folded down by sampling"
            f" at {log.rate:.4g} Hz without an anti-aliasing filter (the torques still have energy near"
            f" {log.rate / 2:.4g} Hz): log faster, or filter the torques before thinning them"
        )
    return said
