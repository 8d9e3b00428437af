"""Faults of loggers: values far off their neighbours, positions that were held, torques at the end of their range."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
FEW = 0.02  # the part of a signal's values that may be faults; with more, it is the signal that looks so
OFF = 30.0  # usual distances from the median of five neighbours
JUMP = 20.0  # usual largest steps of a position (99 %) that an isolated value must be off
HELD, AFTER = 4, 5.0  # rows of the same positions, and the step afterwards in usual largest steps, that tell a hold
CLIPPED, CROWDED = 0.01, 5.0  # part of the samples at an end of a torque's range, and over those in the 1 % beside it

LEVELS = 100  # different values below which a torque is too coarse to tell whether it stands at an end


def without_spikes(signals: dict[str, Array], notes: list[str]) -> dict[str, Array]:
    """Positions and torques with isolated values far off their neighbours replaced by interpolation.

    A torque must lie beyond what 98 % of its samples span by half of that, too; a position must jump as no joint does.
    """
    out = dict(signals)
    for name, words in (("q", "positions"), ("tau", "torques")):
        x = signals[name]
        if len(x) < 50:
            continue
        off = np.abs(x - _median_of_five(x))
        usual = 1.4826 * np.median(off, axis=0)
        low, high = np.percentile(x, (1, 99), axis=0)
        if name == "q":
            steps = np.percentile(np.abs(np.diff(x, axis=0)), 99, axis=0)
            bad = (off > JUMP * steps) & (off > 1e-3 * np.maximum(high - low, 1e-3))
        else:
            bad = (x > high + (high - low) / 2) | (x < low - (high - low) / 2)
        bad &= (off > OFF * usual) & (off > 0)
        if bad.any() and bad.mean(axis=0).max() <= FEW:
            out[name] = _bridged(x, bad)
            first = int(np.argmax(bad.any(axis=1)))
            notes.append(
                f"{np.count_nonzero(bad)} values of the {words} are far off their neighbours (first: row {first + 1},"
                f" joint {int(np.argmax(bad[first])) + 1}): replaced by interpolation"
            )
    return out


def _median_of_five(x: Array) -> Array:
    padded = np.pad(x, ((2, 2), (0, 0)), mode="edge")
    return np.asarray(np.median([padded[k : k + len(x)] for k in range(5)], axis=0))


def _bridged(x: Array, bad: Mask) -> Array:
    rows, out = np.arange(len(x)), x.copy()
    for j in np.flatnonzero(bad.any(axis=0)):
        good = ~bad[:, j]
        out[~good, j] = np.interp(rows[~good], rows[good], x[good, j])
    return out


def held(q: Array) -> Mask:
    """Rows in which all positions were held while the arm moved on: the same ones again and again, then a jump."""
    steps = np.diff(q, axis=0)
    same = (steps == 0).all(axis=1)
    out = np.zeros(len(q), dtype=bool)
    moving = steps[~same]
    if len(moving) < HELD or not same.any():  # nothing moves, or nothing repeats
        return out
    most = AFTER * np.percentile(np.abs(moving), 99, axis=0)
    edges = np.flatnonzero(np.diff(np.r_[False, same, False]))
    for first, last in zip(edges[::2], edges[1::2], strict=True):  # rows first ... last are alike
        if last - first + 1 >= HELD and last < len(steps) and (np.abs(steps[last]) > np.maximum(most, 1e-9)).any():
            out[first + 1 : last + 1] = True
    return out


def clipped(tau: Array) -> Mask:
    """Torques (N, n) that stand at the end of what was logged: many at the very same value, few near it.

    A torque that never changes was not measured: all of it counts.
    """
    out = np.zeros(tau.shape, dtype=bool)
    for j, own in enumerate(tau.T):
        low, high = float(own.min()), float(own.max())
        reach = high - low
        out[:, j] = reach == 0
        for end in (low, high) if len(np.unique(own)) > LEVELS else ():
            at = np.abs(own - end) <= 1e-9 * reach
            beside = np.count_nonzero(np.abs(own - end) <= 0.01 * reach) - np.count_nonzero(at)
            if at.mean() >= CLIPPED and np.count_nonzero(at) > CROWDED * beside:
                out[:, j] |= at
    return out


def resolution(q: Array) -> float:
    """The step that all of a joint's positions are multiples of, where few change from row to row; 0: none."""
    steps = np.abs(np.diff(q))
    some = steps[steps > 1e-9 * max(float(np.abs(q).max()), 1e-300)]
    if not len(some) or 2 * len(some) > len(steps):
        return 0.0
    step = float(some.min())
    return step if np.percentile(np.abs(some / step - np.round(some / step)), 95) < 0.01 else 0.0
