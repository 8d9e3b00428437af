"""Detection of faulty time stamps and rows in a log; they are corrected where that is safe, and noted.

Faults in recorded data: outliers, frozen positions, repeated or lost rows, wrapped angles, saturated torques.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from armdyn.errors import InputError, choose, count, required
from armdyn.identification.clock import CLOCKS, MARGIN, MOVED_UP, SPREAD, UNEVEN, Clock, choose_clock

Array = NDArray[np.float64]
Numbers = NDArray[np.int64]
Mask = NDArray[np.bool_]
GAP, BRIDGED = 3.0, 0.025  # a log is split where a step exceeds both this many periods and this many seconds
SHORTEST = 16  # minimum length of a piece, in samples
BACK = 0.02  # seconds by which time stamps may run backwards because of jitter
ROUNDED = 0.1  # seconds to which stamps may be rounded
MAX_RUNS = 20  # times that the clock may restart within a log
SEPARATION = 1.0  # seconds inserted between two runs, so that the log is split there
BACKWARDS = 0.9  # fraction of steps back from which a clock counts down, or rows are reversed
MAX_SHORT_STEPS = 0.01  # fraction of far too short steps after sorting, up to which rows were only out of order
LONGEST_STEP = 0.4  # seconds; where the median step is longer, the time stamps are in another unit
UNITS = ((50.0, "milliseconds", 1e-3), (5e4, "microseconds", 1e-6), (np.inf, "nanoseconds", 1e-9))


@dataclass
class Clean:
    """Evenly sampled pieces of a log, its clock, notes on what was corrected, and what is doubtful.

    `rival` is the same over another clock, if the positions do not tell which of the two is right.
    """

    period: float
    pieces: list[dict[str, Array]]
    clock: str
    notes: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    rival: Clean | None = None


def clean(t: Array | None, signals: dict[str, Array], rate: float | None, preference: str = "auto") -> Clean:
    """Evenly sampled pieces without missing values; `rate` (Hz) overrides the time stamps.

    `preference` is one of CLOCKS.
    """
    choose("clock", preference, CLOCKS)
    notes: list[str] = []
    number = np.arange(len(signals["q"]))
    if t is None and rate is None:
        raise InputError("the log has no time column: give the sampling rate in Hz (rate=...)")
    if rate is not None:
        if not rate > 0:
            raise InputError(f"the sampling rate must be positive, got {rate}")
        t = number / rate
    assert t is not None
    signals = _without_empty(signals, notes)
    good = _finite(t, signals, notes)
    t, number, signals = t[good], number[good], {k: v[good] for k, v in signals.items()}
    t, number, signals = _forwards(_in_seconds(t, notes), number, signals, notes)
    t, signals = _in_order(t, signals, notes)
    t, number, signals = _without_repetition(t, number, signals, notes)
    signals = without_spikes(signals | {"q": unwrapped(signals["q"], notes)}, notes)
    stuck = held(signals["q"])
    if stuck.any():
        notes.append(
            f"{count(int(stuck.sum()), 'row')} with a frozen position while the arm moves: dropped, which leaves a gap"
        )
        t, number, signals = t[~stuck], number[~stuck], {k: v[~stuck] for k, v in signals.items()}
    if len(t) < SHORTEST:
        raise InputError(f"the log has {len(t)} usable rows, expected at least {SHORTEST}")
    t = _usable(t, signals, notes)
    clock = choose_clock(t, number, signals["q"], signals.get("qd"), repeated(signals), preference)
    rival = None if clock.rival is None else _timed(clock.rival, t, signals, list(notes))
    return replace(_timed(clock, t, signals, notes), rival=rival)


def _timed(clock: Clock, t: Array, signals: dict[str, Array], notes: list[str]) -> Clean:
    """The pieces of a log with these stamps over a clock."""
    _clock_notes(clock, t, notes)
    signals = {name: values[clock.kept] for name, values in signals.items()}
    period = _without_holes(clock.t, clock.period) if "command" in signals else clock.period
    t = _cut(clock.t, period, signals["q"], notes)
    doubts = [clock.doubt] if clock.doubt else []
    return Clean(period, _pieces(t, signals, period, notes), clock.name, notes, doubts)


def _without_holes(t: Array, period: float) -> float:
    """The period of rows of which some are missing: the usual step, if nearly all are multiples of it.

    Rows then stay where they are. Commands that hold for one usual step must not be stretched to the mean one.
    """
    steps = np.diff(t)
    usual = float(np.median(steps))
    counts = np.maximum(np.round(steps / usual), 1)
    even = np.abs(steps / usual - counts) < UNEVEN
    if (counts == 1).all() or even.mean() < 0.9:
        return period
    return float(steps[even].sum() / counts[even].sum())


def _forwards(
    t: Array, number: Numbers, signals: dict[str, Array], notes: list[str]
) -> tuple[Array, Numbers, dict[str, Array]]:
    """A log whose time runs backwards, in the order of its stamps, unless measured speeds say that of its rows.

    Reversed rows and a clock that counts down look the same: only speeds tell them apart.
    """
    steps = np.diff(t)
    if not len(steps) or np.mean(steps < 0) < BACKWARDS:
        return t, number, signals
    qd = signals.get("qd")
    along = 0.0 if qd is None else float((np.diff(signals["q"], axis=0) * (qd[1:] + qd[:-1])).sum())
    if along > 0:
        notes.append("time runs backwards, but the measured speeds go with the order of the rows: time was negated")
        return -t, number, signals
    told = "as the measured speeds confirm" if along < 0 else "no measured speeds tell whether time was negated instead"
    notes.append(f"time runs backwards: rows are sorted by time stamp, {told}")
    return t[::-1], number.max() - number[::-1], {name: values[::-1] for name, values in signals.items()}


def _in_order(t: Array, signals: dict[str, Array], notes: list[str]) -> tuple[Array, dict[str, Array]]:
    """The rows sorted by time stamp if some are out of order; runs in sequence if the clock restarts."""
    back = np.flatnonzero(np.diff(t) < -BACK)
    if not len(back):
        return t, signals
    order = np.argsort(t, kind="stable")
    steps = np.diff(t[order])
    usual = float(np.median(steps))
    if usual > 0 and np.mean(steps < 0.2 * usual) < MAX_SHORT_STEPS:
        notes.append(f"{count(len(back), 'row')} out of order (first: row {back[0] + 2}): sorted by time stamp")
        return t[order], {k: v[order] for k, v in signals.items()}
    if len(back) > MAX_RUNS:
        first = back[0]
        raise InputError(
            f"time runs backwards at {len(back)} rows (first: row {first + 2}, {float(t[first]):.6g} s, then"
            f" {float(t[first + 1]):.6g} s): give the sampling rate in Hz (rate=...) if the rows are in order"
        )
    notes.append(f"the clock restarts at row {', '.join(str(k + 2) for k in back)}: taken as consecutive runs")
    shift = np.zeros_like(t)
    for k in back:
        shift[k + 1 :] += t[k] - t[k + 1] + SEPARATION
    return t + shift, signals


def _without_repetition(
    t: Array, number: Numbers, signals: dict[str, Array], notes: list[str]
) -> tuple[Array, Numbers, dict[str, Array]]:
    """The log without rows that repeat the previous row and its time stamp."""
    again = _repeated(t, signals)
    if again.any():
        notes.append(
            f"{count(int(again.sum()), 'row')} with the time stamp and all values of the previous row: dropped"
        )
    keep = ~again
    return t[keep], (number - np.cumsum(again))[keep], {k: v[keep] for k, v in signals.items()}


def _cut(t: Array, period: float, q: Array, notes: list[str]) -> Array:
    """The times, with a gap where the positions jump although the time stamps are regular."""
    lost = jumps(t, q, period)
    if not len(lost):
        return t
    notes.append(
        f"the positions jump at {len(lost)} rows (first: row {lost[0] + 1}) although the time stamps are"
        " regular, as if rows were lost: the log is split there"
    )
    return t + SEPARATION * np.searchsorted(lost, np.arange(len(t)), side="right")


def _without_empty(signals: dict[str, Array], notes: list[str]) -> dict[str, Array]:
    """The signals without derivatives that have an empty column; an empty torque column is set to 0."""
    out = {}
    for name, values in signals.items():
        empty = ~np.isfinite(values).any(axis=0)
        if name == "q" or not empty.any() or (name == "tau" and empty.all()):
            out[name] = values
            continue
        columns = ", ".join(f"{name}{j + 1}" for j in np.flatnonzero(empty))
        consequence = "taken as not measured" if name == "tau" else f"{name} is not used"
        notes.append(f"{columns} has no values: {consequence}")
        if name == "tau":
            out[name] = np.where(empty, 0.0, values)
    return out


def _finite(t: Array, signals: dict[str, Array], notes: list[str]) -> NDArray[np.bool_]:
    good = np.isfinite(t)
    for values in signals.values():
        good &= np.isfinite(values).all(axis=1)
    missing = np.count_nonzero(~good)
    if missing == len(t):
        empty = [f"{k}{j + 1}" for k, v in signals.items() for j in np.flatnonzero(~np.isfinite(v).any(axis=0))]
        where = f" ({', '.join(empty)} in all of them)" if empty else ""
        raise InputError(f"every row of the log has a missing or infinite value{where}")
    if missing:
        first = int(np.argmin(good))
        notes.append(f"{missing} of {len(t)} rows have missing or infinite values (first: row {first + 1}): dropped")
    return good


def _repeated(t: Array, signals: dict[str, Array]) -> NDArray[np.bool_]:
    """Rows that repeat the previous row and its time stamp."""
    same = np.diff(t) == 0
    for values in signals.values():
        same &= (np.diff(values, axis=0) == 0).all(axis=1)
    return np.concatenate([[False], same])


def _in_seconds(t: Array, notes: list[str]) -> Array:
    """The time stamps in seconds; another unit is recognized by a step too long to record a motion."""
    steps = np.diff(t)
    step = float(np.median(steps[steps > 0])) if (steps > 0).any() else 0.0
    if step < LONGEST_STEP or np.count_nonzero(steps == 0) * 2 > len(steps):
        return t
    name, unit = next((name, unit) for most, name, unit in UNITS if step < most)
    notes.append(f"the time stamps are {step:.4g} apart: taken as {name} ({1 / (unit * step):.4g} Hz)")
    return np.asarray((t - t[0]) * unit)


def _usable(t: Array, signals: dict[str, Array], notes: list[str]) -> Array:
    """The time stamps, replaced by a period computed from positions and velocities if most of them are repeated."""
    steps = np.diff(t)
    still = np.count_nonzero(steps == 0)
    if still * 2 <= len(steps) or _in_bursts(steps):
        return t
    said = f"{still} of {len(steps)} time stamps repeat the previous one (too few digits?)"
    if "qd" not in signals:
        raise InputError(f"{said}: the time stamps cannot be used, give the sampling rate in Hz (rate=...)")
    v = (signals["qd"][1:] + signals["qd"][:-1]) / 2
    dq = np.diff(signals["q"], axis=0)
    fast = (v * v).sum(1) > np.mean((v * v).sum(1))  # slow samples carry no information about the period
    period = float(np.median((v * dq).sum(1)[fast] / (v * v).sum(1)[fast]))
    if not period > 0:
        raise InputError(f"{said}, and positions and velocities disagree: give the sampling rate in Hz (rate=...)")
    notes.append(f"{said}; from positions and velocities the period is {1e3 * period:.4g} ms ({1 / period:.4g} Hz)")
    return np.asarray(period * np.arange(len(t)), dtype=float)


def _in_bursts(steps: Array) -> bool:
    """Whether the rows were time-stamped in short bursts of similar length: the mean step is then the period.

    Stamps that are rounded coarsely come in bursts of the same length, or one row more.
    """
    longer = np.diff(np.flatnonzero(steps > 0))
    longest = ROUNDED if len(longer) and np.ptp(longer) <= 1 else BACK
    return len(longer) > 50 and float(np.percentile(longer, 95)) <= 20 and float(np.max(steps)) < longest


def _clock_notes(clock: Clock, t: Array, notes: list[str]) -> None:
    """Notes on which clock was taken, and by how much the positions are smoother over it."""
    dropped = len(t) - len(clock.t)
    if dropped:
        moved = {
            MOVED_UP: ", and the time stamps of the following rows moved up",
            SPREAD: ", and the others spread evenly over the same time",
        }
        notes.append(f"{count(dropped, 'row')} with all values of the previous row: dropped{moved.get(clock.name, '')}")
        if clock.name in moved:
            return
    if clock.name.startswith("stamps"):
        return
    stamps = t[: len(clock.t)] if clock.name == MOVED_UP else t[clock.kept]
    late = float(np.percentile(np.abs(stamps - clock.t), 95))
    how = "a steady clock" if clock.name.startswith("even") else f"a {clock.name}"
    if clock.smoother < np.exp(MARGIN):
        notes.append(f"the time stamps are off {how}, which is used, by {1e3 * late:.2g} ms")
        return
    notes.append(
        f"the time stamps jitter by {1e3 * late:.2g} ms, the positions do not: {how} is used, over which they are"
        f" {clock.smoother:.3g} times smoother"
    )


def _pieces(t: Array, signals: dict[str, Array], period: float, notes: list[str]) -> list[dict[str, Array]]:
    """The log split at long gaps; short gaps are bridged and unevenly sampled pieces are resampled."""
    steps = np.diff(t)
    cuts = np.flatnonzero(steps > max(GAP * period, BRIDGED)) + 1
    if len(cuts):
        longest = float(steps.max())
        notes.append(
            f"{count(len(cuts), 'gap')}, the longest {longest:.3g} s: the log is split into {len(cuts) + 1} pieces"
        )
    short_gaps = int(np.count_nonzero(steps > 1.5 * period)) - len(cuts)
    pieces, uneven, short = [], 0.0, 0
    for part in np.split(np.arange(len(t)), cuts):
        own = t[part]
        if min(len(part), (own[-1] - own[0]) / period + 1.5) < SHORTEST:  # few rows, or stamped in a burst
            short += len(part)
            continue
        piece = {k: v[part] for k, v in signals.items()}
        jitter = float(np.max(np.abs(np.diff(own) / period - 1)))
        numbers = np.arange(len(own))
        wander = float(np.abs(own - np.polyval(np.polyfit(numbers, own, 1), numbers)).max())
        if jitter > UNEVEN or wander > UNEVEN * period:
            uneven = max(uneven, jitter)
            even = np.arange(own[0], own[-1] + 1e-9 * period, period)
            piece = {k: _interpolated(even, own, v, period, k) for k, v in piece.items()}
            if "command" in piece:
                piece["measured"] = (np.abs(_nearest(even, own) - even) < 0.5 * period).astype(float)
            own = even
        pieces.append({"t": own, **piece})
    if uneven:
        bridged = f", {count(short_gaps, 'short gap')} bridged" if short_gaps else ""
        notes.append(
            f"the time steps are uneven (by up to {100 * uneven:.0f} %): resampled at {1 / period:.4g} Hz{bridged}"
        )
    if short:
        notes.append(f"{count(short, 'row')} in pieces shorter than {SHORTEST} samples: dropped")
    if not pieces:
        raise InputError(f"no piece of the log between gaps is {SHORTEST} samples long")
    return pieces


def _nearest(even: Array, t: Array) -> Array:
    """The stamp nearest to each time."""
    after = np.clip(np.searchsorted(t, even), 1, len(t) - 1)
    return np.where(even - t[after - 1] < t[after] - even, t[after - 1], t[after])


def _interpolated(even: Array, t: Array, values: Array, period: float, signal: str) -> Array:
    """Resampling by cubic splines; torques, which jump with friction, by a monotone interpolant without overshoot.

    A command holds until the next one; where rows are missing it goes on evenly.
    """
    required("scipy")
    from scipy.interpolate import CubicSpline, PchipInterpolator

    if signal == "command":
        held = values[np.maximum(np.searchsorted(t, even + 1e-9 * period, side="right") - 1, 0)]
        missing = np.abs(_nearest(even, t) - even) >= 0.5 * period
        held[missing] = np.stack([np.interp(even[missing], t, column) for column in values.T], axis=1)
        return np.asarray(held)

    apart = np.r_[
        True, np.diff(t) > (0.2 * period if signal != "tau" else 0.0)
    ]  # avoids extreme slopes between nearly equal times
    curve = PchipInterpolator if signal == "tau" else CubicSpline
    return np.asarray(curve(t[apart], values[apart], axis=0)(even))


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
                f"{count(int(bad.sum()), 'outlier')} in the {label} (first: row {first + 1},"
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
