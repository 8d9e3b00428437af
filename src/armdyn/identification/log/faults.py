"""Faults in recorded data: outliers, frozen positions, repeated or lost rows, wrapped angles, saturated torques."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
# A larger fraction of suspicious samples than these is taken to be a property of the signal, not a fault.
MAX_FAULTS = 0.02  # of all samples of a signal
MAX_TORQUE_FAULTS = 0.1  # of the torques, where a faulty fieldbus can corrupt many single samples

OUTLIER = 30.0  # deviation from the five-sample median, in standard deviations (estimated robustly), of an outlier
POSITION_OUTLIER = 20.0  # the same for a position, as a multiple of the 99th percentile of its steps
TORQUE_OUTLIER = 0.2  # the same for a torque, as a fraction of the range between its 1st and 99th percentiles
FROZEN_ROWS = 4  # minimum number of equal consecutive positions in a frozen stretch
JUMP = 5.0  # minimum step after a frozen stretch, as a multiple of the 99th percentile of the steps
MAX_REPEATS = 4  # longer runs of equal rows are an arm at rest, not repeated rows
MIN_REPEATED = 0.002  # minimum fraction of repeated rows in a log for them to be dropped
LOST_ROWS = 6.0  # change of the step, as a multiple of its 99th percentile, that indicates lost rows
SATURATED = 0.01  # minimum fraction of the samples at an extreme value for a torque to be saturated
CROWDED = 5.0  # minimum ratio of the samples at that extreme value to those within 1 % of the range of it
MIN_LEVELS = 100  # distinct values; a torque with fewer is quantized too coarsely to detect saturation


def without_spikes(signals: dict[str, Array], notes: list[str]) -> dict[str, Array]:
    """The signals with outliers in the positions and torques replaced by interpolation.

    A sample is an outlier if it is far from the median of its five-sample neighbourhood. In addition, a torque must
    deviate from that median by a fifth of the range between its 1st and 99th percentiles, or lie outside this range by
    half its width; a position must jump by far more than the joint moves in one sample.
    """
    out = dict(signals)
    for name, label, criterion, limit in (
        ("q", "positions", _jumping, MAX_FAULTS),
        ("tau", "torques", _beyond, MAX_FAULTS),
        ("tau", "torques", _isolated, MAX_TORQUE_FAULTS),
    ):
        x = out.get(name, np.empty((0, 1)))
        if len(x) < 50:
            continue
        off = np.abs(x - _median_of_five(x))
        bad = criterion(x, off) & (off > OUTLIER * 1.4826 * np.median(off, axis=0)) & (off > 0)
        if bad.any() and bad.mean(axis=0).max() <= limit:
            out[name] = _bridged(x, bad)
            first = int(np.argmax(bad.any(axis=1)))
            notes.append(
                f"{np.count_nonzero(bad)} outliers in the {label} (first: row {first + 1},"
                f" joint {int(np.argmax(bad[first])) + 1}): replaced by interpolation"
            )
    return out


def _jumping(q: Array, off: Array) -> Mask:
    low, high = np.percentile(q, (1, 99), axis=0)
    steps = np.percentile(np.abs(np.diff(q, axis=0)), 99, axis=0)
    return np.asarray((off > POSITION_OUTLIER * steps) & (off > 1e-3 * np.maximum(high - low, 1e-3)))


def _beyond(tau: Array, off: Array) -> Mask:
    low, high = np.percentile(tau, (1, 99), axis=0)
    return np.asarray((tau > high + (high - low) / 2) | (tau < low - (high - low) / 2))


def _isolated(tau: Array, off: Array) -> Mask:
    low, high = np.percentile(tau, (1, 99), axis=0)
    return np.asarray(off > TORQUE_OUTLIER * (high - low))


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
    """Rows in which a position is frozen while the arm moves: it stays exactly constant, then jumps."""
    out = np.zeros(len(q), dtype=bool)
    for own in q.T:
        steps = np.diff(own)
        same = steps == 0
        if np.count_nonzero(~same) < FROZEN_ROWS or not same.any():  # the joint is at rest, or no position repeats
            continue
        most = max(JUMP * float(np.percentile(np.abs(steps[~same]), 99)), 1e-9)
        edges = np.flatnonzero(np.diff(np.r_[False, same, False]))
        for first, last in zip(edges[::2], edges[1::2], strict=True):  # rows first to last are equal
            if last - first + 1 >= FROZEN_ROWS and last < len(steps) and abs(steps[last]) > most:
                out[first + 1 : last + 1] = True
    return out


def repeated(signals: dict[str, Array]) -> Mask:
    """Rows equal to the previous row, in short runs only: in long runs of equal rows the arm is at rest."""
    same = np.ones(len(signals["q"]), dtype=bool)
    same[0] = False
    for name, values in signals.items():
        if name == "command":  # it may change although the measured values are those of the previous row
            continue
        same[1:] &= (np.diff(values, axis=0) == 0).all(axis=1)
    edges = np.flatnonzero(np.diff(np.r_[False, same, False]))
    for first, last in zip(edges[::2], edges[1::2], strict=True):
        if last - first > MAX_REPEATS:
            same[first:last] = False
    return same if same.mean() >= MIN_REPEATED else np.zeros_like(same)


def unwrapped(q: Array, notes: list[str]) -> Array:
    """Positions without the jumps of a full turn (radians or degrees) of an angle wrapped to one turn."""
    out, found = q.copy(), {}
    for j, own in enumerate(q.T):
        steps = np.diff(own)
        for turn, name in ((2 * np.pi, "2 π"), (360.0, "360 degrees")):
            jumps = np.abs(steps) > turn / 2
            if not jumps.any() or jumps.mean() > MAX_FAULTS:
                continue
            most = max(JUMP * float(np.percentile(np.abs(steps[~jumps]), 99)), 0.01 * turn)
            if np.abs(np.abs(steps[jumps]) - turn).max() > min(most, turn / 4):
                continue
            out[:, j] = np.unwrap(own, period=turn)
            middle = (out[:, j].max() + out[:, j].min()) / 2
            out[:, j] -= turn * np.round(middle / turn)
            found[j] = name
            break
    if found:
        numbers = ", ".join(str(j + 1) for j in found)
        notes.append(f"the positions of joint {numbers} jump by {' or '.join(sorted(set(found.values())))}: unwrapped")
    return out


def jumps(t: Array, q: Array, period: float) -> NDArray[np.int64]:
    """Rows at which the positions jump although the time stamps are regular: rows before them were lost.

    A step is compared per period; stamps less than half a period apart count as that.
    """
    steps = np.diff(q, axis=0) / np.maximum(np.diff(t) / period, 0.5)[:, None]
    if len(steps) < 50:
        return np.empty(0, dtype=np.int64)
    off = np.abs(steps - _median_of_five(steps))
    usual = np.percentile(off, 99, axis=0)
    fast = np.percentile(np.abs(steps), 99, axis=0)
    lost = (off > LOST_ROWS * usual) & (off > fast) & (off > 1e-3 * np.maximum(np.ptp(q, axis=0), 1e-3))
    even = np.diff(t) < 2 * np.median(np.diff(t))
    found = np.flatnonzero(lost.any(axis=1) & even) + 1
    return found if len(found) <= MAX_FAULTS * len(q) else np.empty(0, dtype=np.int64)


def clipped(tau: Array) -> Mask:
    """Saturated torques, (N, n): many samples exactly at the smallest or largest value, few close to it.

    A torque that never changes was not measured, and all its samples count as saturated.
    """
    out = np.zeros(tau.shape, dtype=bool)
    for j, own in enumerate(tau.T):
        low, high = float(own.min()), float(own.max())
        reach = high - low
        out[:, j] = reach == 0
        for end in (low, high) if len(np.unique(own)) > MIN_LEVELS else ():
            at = np.abs(own - end) <= 1e-9 * reach
            beside = np.count_nonzero(np.abs(own - end) <= 0.01 * reach) - np.count_nonzero(at)
            if at.mean() >= SATURATED and np.count_nonzero(at) > CROWDED * beside:
                out[:, j] |= at
    return out


def resolution(q: Array) -> float:
    """Encoder resolution of one joint, if its position stays constant over at least half of the rows; otherwise 0."""
    steps = np.abs(np.diff(q))
    some = steps[steps > 1e-9 * max(float(np.abs(q).max()), 1e-300)]
    if not len(some) or 2 * len(some) > len(steps):
        return 0.0
    step = float(some.min())
    return step if np.percentile(np.abs(some / step - np.round(some / step)), 95) < 0.01 else 0.0
