"""The band of a motion: a cut-off frequency that noise in the positions cannot raise without bound.

The cut-off that `choose_processing` takes from the spectrum of the positions trusts that their noise is white. Noise
from a jittering clock grows with the speed and is coloured: there is no floor to find, and the band runs away (290 Hz
for a motion of 2 Hz). So two questions are asked of a cut-off f_p that is chosen like that:

1. Where is it safe? Everything above twice the motion's own band counts as noise, whatever its colour, and a joint
   bears as much of it in its accelerations as disturbs its torques by little beside what no model explains of them.
2. If f_p is higher, do the positions contain real motion up there? The model, fitted in the low band, predicts the
   torques in each half octave above it; where it leaves more than there was, the accelerations are noise.

Measured on 28 pairs of logs of ten arms: 24 keep f_p; 290, 288 and 45 Hz become 4.4, 5.2 and 2.4 Hz (held-out errors of
40, 44 and 22 % become 1.2, 1.0 and 8.6 %). Constants between these bounds make little difference: NOISE 0.001 to 0.005,
ENDED 20 to 40 dB, SHARE 0.90 to 0.99, TWICE 1.5 to 2.5. A cut-off from left-out segments in a common low band, from
likelihood, or one allowed noise for all joints ran away or was too low.

Choice between logged and differentiated accelerations by cross-validation, and between two clocks by the torques.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from armdyn.arm import Arm
from armdyn.identification import linear
from armdyn.identification.consistent import Problem
from armdyn.identification.fit import relative_error
from armdyn.identification.log import Log
from armdyn.identification.model import Model, Rows, rows
from armdyn.identification.processing import Motion, Processing, choose_processing, motions, with_model_cutoff

Array = NDArray[np.float64]
MOVES = 0.02  # of the largest range of motion, above which a joint counts
OCTAVE, BINS = 1 / 8, 3  # width of the bands in which the end of the motion is looked for, and bins at least
ENDED = 1e-3  # -30 dB: power of the velocity, over that of the strongest band, at which the motion has ended
SHARE = 0.95  # of the velocity's energy below that end, which lies in the band of the motion
TWICE = 2.0  # bands of the motion, above which everything in the positions counts as noise
NOISE = 0.003  # noise of the inertial torques over the torques that no model explains
LEAST_NOISE, MOST_NOISE = 1e-4, 0.03  # of the energy of the accelerations
LEAST_FIT, LEAST_SAFE, MOST_SAFE = 0.7, 1.5, 6.0  # Hz, whatever the band
WIDEST = 8.0  # bands of the motion, at most, that are safe without asking the torques
MOST_ADDED = 1.1  # energy of what the model leaves of the torques, over their own: half octaves without motion have 1
REGULARIZATION = 10.0
BLOCK = 4096  # rows of the regressor computed at a time


def kept_band(how: Processing, model: Model, prior: Arm, log: Log) -> tuple[Processing, tuple[str, ...]]:
    """The processing, its cut-off lowered if the positions contain only noise up there, and a note if so."""
    cutoff = how.parallel
    if cutoff is None or how.logged_acceleration:
        return how, ()
    piece = max(log.pieces, key=len)
    moving = np.ptp(piece.q, axis=0) > MOVES * np.ptp(piece.q, axis=0).max()
    bands = np.array([motion_band(q, log.rate) for q in piece.q[:, moving].T])
    band, enough = float(bands.max()), len(model.names) / (2.5 * log.duration)  # a joint has as many rows as parameters
    low = with_model_cutoff(log, how, max(TWICE * band, enough, LEAST_FIT), band)
    if cutoff <= (low.parallel or 0.0):
        return how, ()
    parts = motions(log, low)
    model = model.tuned(np.concatenate([p.qd for p in parts]), None)
    if not rows(model, parts, low).kept.any():  # nothing moves faster than the dead zone
        return how, ()
    allowed = _allowed_noise(model, prior, parts, low)[moving]
    reached = [_reach(q, log.rate, b, x) for q, b, x in zip(piece.q[:, moving].T, bands, allowed, strict=True)]
    least, most = max(TWICE * band, LEAST_SAFE, enough), max(WIDEST * band, MOST_SAFE)
    safe = float(np.clip(np.median(reached), least, most)) if least < most else least
    if cutoff <= safe or _real_above(cutoff, low, model, prior, log, parts):
        return how, ()
    note = (
        f"the motion ends at {band:.2g} Hz, and above {safe:.3g} Hz the accelerations are noise, which explains none of"
        f" the torques: the cut-off of the model is {safe:.3g} Hz, not the {cutoff:.3g} Hz of the positions' spectrum"
    )
    return with_model_cutoff(log, how, safe, band), (note,)


def _power(q: Array, rate: float, order: int) -> tuple[Array, Array]:
    """Frequencies (Hz), and the power of the derivative of this order (Hann window)."""
    power = np.abs(np.fft.rfft((q - q.mean()) * np.hanning(len(q)))) ** 2
    frequency = np.arange(len(power)) * rate / len(q)
    return frequency, power * (2 * np.pi * frequency) ** (2 * order)


def motion_band(q: Array, rate: float) -> float:
    """The frequency (Hz) below which most of a joint's motion lies, without what comes after its end."""
    frequency, power = _power(q, rate, 1)
    edges = [1]
    while edges[-1] < len(power):
        edges.append(max(edges[-1] + BINS, int(np.ceil(edges[-1] * 2**OCTAVE))))
    means = np.array([power[low:high].mean() for low, high in pairwise(edges)])
    peak = int(np.argmax(means))
    over = np.flatnonzero(means[peak:] < ENDED * means[peak])
    end = edges[peak + int(over[0])] if len(over) else len(power)
    energy = np.cumsum(power[:end])
    return float(frequency[max(int(np.argmax(energy >= SHARE * energy[-1])), 1)]) if energy[-1] > 0 else 0.0


def _reach(q: Array, rate: float, band: float, allowed: float) -> float:
    """The highest frequency (Hz) up to which the accelerations gain little energy over those of the motion."""
    frequency, power = _power(q, rate, 2)
    energy = np.cumsum(power)
    own = energy[min(int(np.searchsorted(frequency, TWICE * band, side="right")), len(energy)) - 1]
    return float(frequency[int(np.searchsorted(energy, (1 + allowed) * own, side="right")) - 1])


def _allowed_noise(model: Model, prior: Arm, parts: list[Motion], low: Processing) -> Array:
    """The share of noise in the energy of each joint's accelerations that its torques can bear."""
    fitted = rows(model, parts, low)
    solution = linear.weighted(fitted.Y, fitted.tau, fitted.kept)
    left = np.sqrt(np.mean((fitted.tau - fitted.Y @ solution.values) ** 2, axis=0))
    q, qdd = (np.concatenate([getattr(p, name) for p in parts]) for name in ("q", "qdd"))
    still = np.zeros_like(q)
    inertial = np.asarray(prior.inverse_dynamics(q, still, qdd)) - np.asarray(prior.inverse_dynamics(q, still, still))
    size = np.sqrt(np.mean(inertial**2, axis=0))
    share = NOISE * left / np.where(size > 0, size, 1.0)
    return np.where(size > 0, np.clip(share, LEAST_NOISE, MOST_NOISE), MOST_NOISE)


def _real_above(cutoff: float, low: Processing, model: Model, prior: Arm, log: Log, parts: list[Motion]) -> bool:
    """Whether a fit in the low band explains torques in every half octave above it, up to a cut-off."""
    fitted = rows(model, parts, low)
    weights = linear.weighted(fitted.Y, fitted.tau, fitted.kept).weights
    R, z = linear.compress(fitted.Y, fitted.tau, weights)
    values = model.natural @ Problem.of(model, prior, fitted).solve(R @ model.natural, z, REGULARIZATION)
    least = low.parallel or 0.0
    count = int(np.ceil(2 * np.log2(cutoff / least)))
    for k in range(count - 1, -1, -1):
        upper = cutoff / 2 ** (k / 2)
        lower = max(upper / np.sqrt(2), least)
        how = with_model_cutoff(log, low, upper, low.bandwidth)
        part = max(motions(log, how), key=lambda p: len(p.t))
        blocks = [slice(first, first + BLOCK) for first in range(0, len(part.t), BLOCK)]
        predicted = np.concatenate(
            [model.regressor(part.q[b], part.qd[b], part.qdd[b], part.log) @ values for b in blocks]
        )
        residual = part.tau - predicted
        frequency = np.arange(len(part.t) // 2 + 1) / (len(part.t) * part.period)
        inside = (frequency > lower) & (frequency <= upper)
        if not inside.any():
            continue
        energies = [_energies(x)[inside].sum(axis=0) for x in (residual, part.tau)]
        there = energies[1] > 0
        unexplained = np.maximum(energies[0][there], 1e-300) / np.where(there, energies[1], 1.0)[there]
        if there.any() and np.mean(np.log(unexplained)) > np.log(MOST_ADDED):
            return False
    return True


def _energies(x: Array) -> Array:
    """The energy of each column by frequency (Hann window)."""
    return np.asarray(np.abs(np.fft.rfft((x - x.mean(axis=0)) * np.hanning(len(x))[:, None], axis=0)) ** 2)


CLEARLY = 0.95  # ratio of the errors, differentiated / logged, below which the logged accelerations are not used


def judged(
    how: Processing, model: Model, side: Log, folds: int, width: float | Sequence[float] | None
) -> tuple[Processing, tuple[str, ...]]:
    """The processing, with or without the logged accelerations, that predicts left-out segments better, and a note."""
    if not how.logged_acceleration:
        return how, ()
    other = replace(how, logged_acceleration=False)
    logged, own = (_segment_error(model, side, way, folds, width) for way in (how, other))
    taken = logged * CLEARLY <= own
    said = (
        f"the logged accelerations are {'' if taken else 'not '}taken: with them left-out segments are predicted to"
        f" {100 * logged:.2f} %, with differentiated ones to {100 * own:.2f} %"
    )
    return (how if taken else other), (said,)


def _segment_error(
    model: Model, side: Log, how: Processing, folds: int, width: float | Sequence[float] | None
) -> float:
    """The relative prediction error of segments that are left out of weighted least squares in turn."""
    parts = motions(side, how)
    tuned = model.tuned(np.concatenate([p.qd for p in parts]), width)
    found = rows(tuned, parts, how)
    if len(found) < 2 * folds or not found.kept.any():
        return float("inf")
    weights = linear.weighted(found.Y, found.tau, found.kept).weights
    segment = found.segments(folds)
    predicted = np.empty_like(found.tau)
    for k in range(folds):
        out = segment == k
        predicted[out] = found.Y[out] @ _solved(found.where(~out), weights[~out])
    return relative_error(found.tau * found.kept, predicted * found.kept)


def _solved(found: Rows, weights: linear.Array) -> linear.Array:
    return linear.solve(*linear.compress(found.Y, found.tau, weights))


LESS = 0.005  # logarithm of the residuals, by which they must be smaller over another clock for it to be taken
TELLING = 0.02  # the same, below which torques do not tell either
APART, FAR_APART = 0.05, 0.2  # relative difference of the accelerations over two clocks that matters, or very much


def timed(model: Model, prior: Arm, first: Log, second: Log | None) -> tuple[Log, tuple[str, ...]]:
    """The log over that one of two clocks over which a fit explains its torques better, and a doubt if neither does.

    Stamps that wander as slowly as the arm moves look like motion, but torques know nothing of them. Both logs are
    processed alike and fitted by weighted least squares. A small doubt is one of the log; where the accelerations are
    as uncertain as the torques of an estimate may be, it is returned.
    """
    if second is None:
        return first, ()
    how = choose_processing(first, len(model.names), None, None)
    how = replace(kept_band(how, model, prior, first)[0], logged_velocity=False, logged_acceleration=False)
    parts = [motions(log, how) for log in (first, second)]
    if len(parts[0]) != len(parts[1]):
        return first, ()
    tuned = model.tuned(np.concatenate([p.qd for p in parts[0]]), None)
    found = [rows(tuned, own, how) for own in parts]
    if not all(own.kept.any() for own in found):
        return first, ()
    size = np.maximum(linear.deviations(found[0].tau, 0, found[0].kept.astype(float)), 1e-300)
    left = [np.log(np.maximum(_left(own) / size, 1e-9)).mean() for own in found]
    apart = _apart(*parts)
    taken, other = (first, second) if left[0] - LESS <= left[1] else (second, first)
    gain = abs(left[1] - left[0])
    if apart < APART:
        return taken, ()
    said = (
        f"the time stamps wander as slowly as the arm moves, and the accelerations over the {taken.clock} and the"
        f" {other.clock} differ by {100 * apart:.2g} %: the positions do not tell which is right"
    )
    if gain >= TELLING:  # hundredths of the residuals are many standard errors over thousands of rows
        told = f"{said}, the torques do: over the {taken.clock} a fit leaves {100 * (1 - np.exp(-gain)):.2g} % less"
        return replace(taken, notes=(*taken.notes, told)), ()
    doubt = f"{said}, nor do the torques: the {taken.clock} was taken; record the controller's own time"
    return (taken, (doubt,)) if apart >= FAR_APART else (replace(taken, doubts=(*taken.doubts, doubt)), ())


def _left(own: Rows) -> Array:
    """What weighted least squares leaves of each joint's torque."""
    solution = linear.weighted(own.Y, own.tau, own.kept)
    return linear.deviations(own.tau - own.Y @ solution.values, 0, own.kept.astype(float))


def _apart(first: list[Motion], second: list[Motion]) -> float:
    """The relative difference of two logs' accelerations, of the median joint that moves."""
    own, other = (np.concatenate([p.qdd for p in parts]) for parts in (first, second))
    t, at = (np.concatenate([p.t for p in parts]) for parts in (first, second))
    other = np.stack([np.interp(t, at, x) for x in other.T], axis=1)
    size = np.sqrt((own**2).mean(axis=0))
    moving = size > MOVES * size.max()
    return float(np.median((np.sqrt(((own - other) ** 2).mean(axis=0)) / np.maximum(size, 1e-300))[moving]))
