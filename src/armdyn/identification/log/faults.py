"""Faults of loggers: values far off their neighbours, positions that were held, torques at the end of their range."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
FEW = 0.02  # the part of a signal's values that may be faults; with more, it is the signal that looks so
MANY = 0.1  # the same of torques: a bus that loses bits
OFF = 30.0  # usual distances from the median of five neighbours
JUMP = 20.0  # usual largest steps of a position (99 %) that an isolated value must be off
HELD, AFTER = 4, 5.0  # rows of the same positions, and the step afterwards in usual largest steps, that tell a hold
AGAIN, SOME = (
    4,
    0.005,
)  # rows in a row that are the one before once more, and the part of the log, that are worth dropping
LOST = 6.0  # usual largest changes of the step (99 %) that tell lost rows
ALONE = 0.2  # of a torque's span, from which a value alone is an outlier
CLIPPED, CROWDED = 0.01, 5.0  # part of the samples at an end of a torque's range, and over those in the 1 % beside it

LEVELS = 100  # different values below which a torque is too coarse to tell whether it stands at an end


def without_spikes(signals: dict[str, Array], notes: list[str]) -> dict[str, Array]:
    """Positions and torques with isolated values far off their neighbours replaced by interpolation.

    A torque must be off by a fifth of what 98 % of its samples span, too, or lie beyond that by half of it; a position
    must jump as no joint does.
    """
    out = dict(signals)
    for name, words, far, most in (
        ("q", "positions", _jumping, FEW),
        ("tau", "torques", _beyond, FEW),
        ("tau", "torques", _alone, MANY),
    ):
        x = out[name]
        if len(x) < 50:
            continue
        off = np.abs(x - _median_of_five(x))
        bad = far(x, off) & (off > OFF * 1.4826 * np.median(off, axis=0)) & (off > 0)
        if bad.any() and bad.mean(axis=0).max() <= most:
            out[name] = _bridged(x, bad)
            first = int(np.argmax(bad.any(axis=1)))
            notes.append(
                f"{np.count_nonzero(bad)} values of the {words} are far off their neighbours (first: row {first + 1},"
                f" joint {int(np.argmax(bad[first])) + 1}): replaced by interpolation"
            )
    return out


def _jumping(q: Array, off: Array) -> Mask:
    low, high = np.percentile(q, (1, 99), axis=0)
    steps = np.percentile(np.abs(np.diff(q, axis=0)), 99, axis=0)
    return np.asarray((off > JUMP * steps) & (off > 1e-3 * np.maximum(high - low, 1e-3)))


def _beyond(tau: Array, off: Array) -> Mask:
    low, high = np.percentile(tau, (1, 99), axis=0)
    return np.asarray((tau > high + (high - low) / 2) | (tau < low - (high - low) / 2))


def _alone(tau: Array, off: Array) -> Mask:
    low, high = np.percentile(tau, (1, 99), axis=0)
    return np.asarray(off > ALONE * (high - low))


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
    """Rows in which a position was held while the arm moved on: the same one again and again, then a jump."""
    out = np.zeros(len(q), dtype=bool)
    for own in q.T:
        steps = np.diff(own)
        same = steps == 0
        if np.count_nonzero(~same) < HELD or not same.any():  # nothing moves, or nothing repeats
            continue
        most = max(AFTER * float(np.percentile(np.abs(steps[~same]), 99)), 1e-9)
        edges = np.flatnonzero(np.diff(np.r_[False, same, False]))
        for first, last in zip(edges[::2], edges[1::2], strict=True):  # rows first ... last are alike
            if last - first + 1 >= HELD and last < len(steps) and abs(steps[last]) > most:
                out[first + 1 : last + 1] = True
    return out


def repeated(signals: dict[str, Array]) -> Mask:
    """Rows that are the row before once more, a few at a time: at rest, where many are alike, none counts."""
    same = np.ones(len(signals["q"]), dtype=bool)
    same[0] = False
    for values in signals.values():
        same[1:] &= (np.diff(values, axis=0) == 0).all(axis=1)
    edges = np.flatnonzero(np.diff(np.r_[False, same, False]))
    for first, last in zip(edges[::2], edges[1::2], strict=True):
        if last - first > AGAIN:
            same[first:last] = False
    return same if same.mean() >= SOME else np.zeros_like(same)


def unwrapped(q: Array, notes: list[str]) -> Array:
    """Positions without jumps of a whole turn (radians or degrees), which a position between -π and π makes."""
    out, found = q.copy(), {}
    for j, own in enumerate(q.T):
        steps = np.diff(own)
        for turn, name in ((2 * np.pi, "2 π"), (360.0, "360 degrees")):
            jumps = np.abs(steps) > turn / 2
            if not jumps.any() or jumps.mean() > FEW:
                continue
            most = max(AFTER * float(np.percentile(np.abs(steps[~jumps]), 99)), 0.01 * turn)
            if np.abs(np.abs(steps[jumps]) - turn).max() > min(most, turn / 4):
                continue
            out[:, j] = np.unwrap(own, period=turn)
            middle = (out[:, j].max() + out[:, j].min()) / 2
            out[:, j] -= turn * np.round(middle / turn)
            found[j] = name
            break
    if found:
        who = ", ".join(str(j + 1) for j in found)
        notes.append(f"the positions of joint {who} jump by {' or '.join(sorted(set(found.values())))}: unwrapped")
    return out


def jumps(t: Array, q: Array) -> NDArray[np.int64]:
    """Rows (the first after it) where positions jump as no motion does, though the stamps go on: rows were lost."""
    steps = np.diff(q, axis=0)
    if len(steps) < 50:
        return np.empty(0, dtype=np.int64)
    off = np.abs(steps - _median_of_five(steps))
    usual = np.percentile(off, 99, axis=0)
    fast = np.percentile(np.abs(steps), 99, axis=0)
    lost = (off > LOST * usual) & (off > fast) & (off > 1e-3 * np.maximum(np.ptp(q, axis=0), 1e-3))
    even = np.diff(t) < 2 * np.median(np.diff(t))
    found = np.flatnonzero(lost.any(axis=1) & even) + 1
    return found if len(found) <= FEW * len(q) else np.empty(0, dtype=np.int64)


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
