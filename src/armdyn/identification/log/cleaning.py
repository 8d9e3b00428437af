"""Detection of faulty time stamps and rows in a log; they are corrected where that is safe, and noted."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from armdyn.errors import InputError
from armdyn.identification.log.faults import held, jumps, repeated, unwrapped, without_spikes

Array = NDArray[np.float64]
Numbers = NDArray[np.int64]
GAP, BRIDGED = 3.0, 0.025  # a log is split where a step exceeds both this many periods and this many seconds
UNEVEN = 0.05  # jitter, in periods, above which a log is resampled
SHORTEST = 16  # minimum length of a piece, in samples
BACK = 0.02  # seconds by which time stamps may run backwards because of jitter
MAX_RUNS = 20  # times that the clock may restart within a log
SEPARATION = 1.0  # seconds inserted between two runs, so that the log is split there
MAX_SHORT_STEPS = 0.01  # fraction of far too short steps after sorting, up to which rows were only out of order
LONGEST_STEP = 0.4  # seconds; where the median step is longer, the time stamps are in another unit
UNITS = ((50.0, "milliseconds", 1e-3), (5e4, "microseconds", 1e-6), (np.inf, "nanoseconds", 1e-9))
WINDOW, WINDOWS = 7, 1500  # samples per local cubic fit, and number of fits, to estimate the noise of the positions


@dataclass
class Clean:
    """Evenly sampled pieces of a log, and notes on what was corrected."""

    period: float
    pieces: list[dict[str, Array]]
    notes: list[str] = field(default_factory=list)


def clean(t: Array | None, signals: dict[str, Array], rate: float | None) -> Clean:
    """Evenly sampled pieces without missing values; `rate` (Hz) overrides the time stamps."""
    notes: list[str] = []
    number = np.arange(len(signals["q"]))
    if t is None and rate is None:
        raise InputError("the log has no time column: give the sampling rate (rate=..., Hz)")
    if rate is not None:
        if not rate > 0:
            raise InputError(f"the sampling rate must be positive, got {rate}")
        t = number / rate
    assert t is not None
    signals = _without_empty(signals, notes)
    good = _finite(t, signals, notes)
    t, number, signals = t[good], number[good], {k: v[good] for k, v in signals.items()}
    t, signals = _in_order(_in_seconds(t, notes), signals, notes)
    t, number, signals = _without_repetition(t, number, signals, notes)
    signals = without_spikes(signals | {"q": unwrapped(signals["q"], notes)}, notes)
    stuck = held(signals["q"])
    if stuck.any():
        notes.append(
            f"{np.count_nonzero(stuck)} rows have a frozen position while the arm moves: dropped, which leaves a gap"
        )
        t, number, signals = t[~stuck], number[~stuck], {k: v[~stuck] for k, v in signals.items()}
    if len(t) < SHORTEST:
        raise InputError(f"the log has {len(t)} usable rows, expected at least {SHORTEST}")
    t = _cut(_usable(t, signals, notes), signals["q"], notes)
    t, period = _times(t, number, signals["q"], notes)
    return Clean(period, _pieces(t, signals, period, notes), notes)


def _in_order(t: Array, signals: dict[str, Array], notes: list[str]) -> tuple[Array, dict[str, Array]]:
    """The rows sorted by time stamp if some are out of order; runs in sequence if the clock restarts."""
    back = np.flatnonzero(np.diff(t) < -BACK)
    if not len(back):
        return t, signals
    order = np.argsort(t, kind="stable")
    steps = np.diff(t[order])
    usual = float(np.median(steps))
    if usual > 0 and np.mean(steps < 0.2 * usual) < MAX_SHORT_STEPS:
        notes.append(f"{len(back)} rows are out of order (first: row {back[0] + 2}): sorted by time stamp")
        return t[order], {k: v[order] for k, v in signals.items()}
    if len(back) > MAX_RUNS:
        first = back[0]
        raise InputError(
            f"time runs backwards at {len(back)} rows (first: row {first + 2}, {float(t[first]):.6g} s, then"
            f" {float(t[first + 1]):.6g} s): give the sampling rate (rate=..., Hz) if the rows are in order"
        )
    notes.append(f"the clock restarts at row {', '.join(str(k + 2) for k in back)}: taken as consecutive runs")
    shift = np.zeros_like(t)
    for k in back:
        shift[k + 1 :] += t[k] - t[k + 1] + SEPARATION
    return t + shift, signals


def _without_repetition(
    t: Array, number: Numbers, signals: dict[str, Array], notes: list[str]
) -> tuple[Array, Numbers, dict[str, Array]]:
    """The log without rows that repeat the previous row."""
    again = _repeated(t, signals)
    if again.any():
        notes.append(
            f"{np.count_nonzero(again)} rows repeat the time stamp and all values of the previous row: dropped"
        )
    keep = ~again
    t, number, signals = t[keep], (number - np.cumsum(again))[keep], {k: v[keep] for k, v in signals.items()}
    again = repeated(signals)
    if not again.any():
        return t, number, signals
    said = f"{np.count_nonzero(again)} rows repeat all values of the previous row: dropped"
    counted, keep = t[: np.count_nonzero(~again)], ~again
    fewer = (number - np.cumsum(again))[keep]
    t, number, signals = t[keep], number[keep], {k: v[keep] for k, v in signals.items()}
    if roughness(counted, signals["q"]) < 0.9 * roughness(t, signals["q"]):
        notes.append(f"{said}, and the time stamps of the following rows moved up")
        return counted, fewer, signals
    notes.append(said)
    return t, number, signals


def _cut(t: Array, q: Array, notes: list[str]) -> Array:
    """The times, with a gap where the positions jump although the time stamps are regular."""
    lost = jumps(t, q)
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
        raise InputError(f"{said}: the time stamps cannot be used, give the sampling rate (rate=..., Hz)")
    v = (signals["qd"][1:] + signals["qd"][:-1]) / 2
    dq = np.diff(signals["q"], axis=0)
    fast = (v * v).sum(1) > np.mean((v * v).sum(1))  # slow samples carry no information about the period
    period = float(np.median((v * dq).sum(1)[fast] / (v * v).sum(1)[fast]))
    if not period > 0:
        raise InputError(f"{said}, and positions and velocities disagree: give the sampling rate (rate=..., Hz)")
    notes.append(f"{said}; from positions and velocities the period is {1e3 * period:.4g} ms ({1 / period:.4g} Hz)")
    return np.asarray(period * np.arange(len(t)), dtype=float)


def _in_bursts(steps: Array) -> bool:
    """Whether the rows were time-stamped in short bursts of similar length: the mean step is then the period."""
    longer = np.diff(np.flatnonzero(steps > 0))
    return len(longer) > 50 and float(np.percentile(longer, 95)) <= 20 and float(np.max(steps)) < BACK


def _times(t: Array, number: Numbers, q: Array, notes: list[str]) -> tuple[Array, float]:
    """The sampling times and the period: the time stamps, or a steady clock where it fits the positions better.

    Either the time stamps jitter while the controller samples evenly, or the sampling itself is uneven. The positions
    distinguish the two cases: over the correct sampling times they are smooth.
    """
    lag = min(len(t) // 2, 200)
    period = float(np.median((t[lag:] - t[:-lag]) / (number[lag:] - number[:-lag])))
    steps = np.diff(t) / (period * np.diff(number))
    if np.percentile(np.abs(steps - 1), 99) <= UNEVEN and steps.min() > 0:
        return t, float(np.median(np.diff(t)))
    steady = _steady(t, number, period)
    if steps.min() <= 0 or roughness(steady, q) < 0.9 * roughness(t, q):
        late = float(np.percentile(np.abs(t - steady), 95))
        notes.append(f"the time stamps jitter by {1e3 * late:.2g} ms, the positions do not: a steady clock is used")
        return steady, period
    return t, period


def _steady(t: Array, number: Numbers, period: float) -> Array:
    """Evenly spaced times by row number, with jumps where rows were lost."""
    off = t - period * number
    wide = 15
    noise = 1.4826 * float(np.median(np.abs(np.diff(off)))) + 1e-3 * period
    cuts = []
    for k in np.flatnonzero(np.diff(off) > max(0.75 * period, 4 * noise)) + 1:
        jump = np.median(off[k : k + wide]) - np.median(off[max(k - wide, 0) : k])
        if jump > max(0.75 * period, 4 * noise):
            cuts.append(int(k))
    out = np.empty_like(t)
    for part in np.split(np.arange(len(t)), cuts):
        slope = float(np.polyfit(number[part], off[part], 1)[0]) if len(part) > 100 else 0.0
        line = slope * (number[part] - number[part].mean())
        out[part] = period * number[part] + line + np.mean(off[part])
    return np.maximum.accumulate(out)


def roughness(t: Array, q: Array) -> float:
    """Deviation of the positions from local cubic fits: their noise, if the times are correct."""
    starts = np.unique(np.linspace(0, len(t) - WINDOW, WINDOWS).astype(int))
    rows = starts[:, None] + np.arange(WINDOW)
    local = t[rows] - t[rows].mean(axis=1, keepdims=True)
    scale = np.maximum(np.abs(local).max(axis=1, keepdims=True), 1e-300)
    Q = np.linalg.qr((local / scale)[..., None] ** np.arange(4))[0]
    own = q[rows] - q[rows].mean(axis=1, keepdims=True)
    left = own - Q @ (np.swapaxes(Q, 1, 2) @ own)
    return float(np.sqrt(np.median((left**2).sum(axis=(1, 2)))))


def _pieces(t: Array, signals: dict[str, Array], period: float, notes: list[str]) -> list[dict[str, Array]]:
    """The log split at long gaps; short gaps are bridged and unevenly sampled pieces are resampled."""
    steps = np.diff(t)
    cuts = np.flatnonzero(steps > max(GAP * period, BRIDGED)) + 1
    if len(cuts):
        longest = float(steps.max())
        notes.append(f"{len(cuts)} gaps, the longest {longest:.3g} s: the log is split into {len(cuts) + 1} pieces")
    short_gaps = np.count_nonzero(steps > 1.5 * period) - len(cuts)
    pieces, uneven, short = [], 0.0, 0
    for part in np.split(np.arange(len(t)), cuts):
        if len(part) < SHORTEST:
            short += len(part)
            continue
        piece = {k: v[part] for k, v in signals.items()}
        own = t[part]
        jitter = float(np.max(np.abs(np.diff(own) / period - 1)))
        if jitter > UNEVEN:
            uneven = max(uneven, jitter)
            even = np.arange(own[0], own[-1] + 1e-9 * period, period)
            piece = {k: _interpolated(even, own, v, period, k) for k, v in piece.items()}
            own = even
        pieces.append({"t": own, **piece})
    if uneven:
        bridged = f", {short_gaps} short gaps bridged" if short_gaps else ""
        notes.append(
            f"the time steps are uneven (by up to {100 * uneven:.0f} %): resampled at {1 / period:.4g} Hz{bridged}"
        )
    if short:
        notes.append(f"{short} rows in pieces shorter than {SHORTEST} samples: dropped")
    if not pieces:
        raise InputError(f"no piece of the log between gaps is {SHORTEST} samples long")
    return pieces


def _interpolated(even: Array, t: Array, values: Array, period: float, signal: str) -> Array:
    """Resampling by cubic splines; torques, which jump with friction, by a monotone interpolant without overshoot.

    A command holds until the next one.
    """
    from scipy.interpolate import CubicSpline, PchipInterpolator

    if signal == "command":
        return np.asarray(values[np.maximum(np.searchsorted(t, even + 1e-9 * period, side="right") - 1, 0)])

    apart = np.r_[
        True, np.diff(t) > (0.2 * period if signal != "tau" else 0.0)
    ]  # avoids extreme slopes between nearly equal times
    curve = PchipInterpolator if signal == "tau" else CubicSpline
    return np.asarray(curve(t[apart], values[apart], axis=0)(even))
