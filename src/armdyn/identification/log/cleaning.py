"""What can be wrong with a log's stamps and numbers, found, mended where that is safe, and said in words."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from armdyn.errors import InputError

Array = NDArray[np.float64]
GAP = 3.0  # a step of more than this many periods is a gap: the log is cut there
UNEVEN = 0.05  # jitter, in periods, above which a log is resampled
SHORTEST = 16  # samples of a piece worth keeping
DEGREES = 4 * np.pi  # nobody's joint travels more than two turns either way


@dataclass
class Clean:
    """Evenly sampled pieces of a log and what was found on the way."""

    period: float
    pieces: list[dict[str, Array]]
    notes: list[str] = field(default_factory=list)


def clean(t: Array | None, signals: dict[str, Array], rate: float | None) -> Clean:
    """Even pieces without missing values; `rate` (Hz) overrides the stamps."""
    notes: list[str] = []
    rows = len(signals["q"])
    index = np.arange(rows, dtype=float)
    if t is None and rate is None:
        raise InputError("the log has no column of time: give the sampling rate (rate=..., Hz)")
    if rate is not None:
        if not rate > 0:
            raise InputError(f"the sampling rate must be positive, got {rate}")
        t = index / rate
    assert t is not None
    good = _finite(t, signals, notes)
    t, signals = t[good], {k: v[good] for k, v in signals.items()}
    t = _stamps(t, signals, notes)
    keep = np.r_[True, np.diff(t) > 0]
    if not keep.all():
        notes.append(f"{np.count_nonzero(~keep)} rows repeat the stamp before them: dropped")
    t, signals = t[keep], {k: v[keep] for k, v in signals.items()}
    if len(t) < SHORTEST:
        raise InputError(f"the log has {len(t)} usable rows, expected at least {SHORTEST}")
    period = float(np.median(np.diff(t)))
    return Clean(period, _pieces(t, signals, period, notes), notes)


def _finite(t: Array, signals: dict[str, Array], notes: list[str]) -> NDArray[np.bool_]:
    good = np.isfinite(t)
    for values in signals.values():
        good &= np.isfinite(values).all(axis=1)
    missing = np.count_nonzero(~good)
    if missing == len(t):
        raise InputError("every row of the log has a missing or infinite value")
    if missing:
        first = int(np.argmin(good))
        notes.append(f"{missing} of {len(t)} rows have missing or infinite values (first: row {first + 1}): dropped")
    return good


def _stamps(t: Array, signals: dict[str, Array], notes: list[str]) -> Array:
    """Stamps that can be used; worked out from positions and velocities where the file's cannot."""
    steps = np.diff(t)
    back = np.flatnonzero(steps < 0)
    if len(back):
        raise InputError(f"time runs backwards at row {back[0] + 2}: {t[back[0]]!r} then {t[back[0] + 1]!r}")
    if np.count_nonzero(steps == 0) * 2 <= len(steps):
        return t
    said = f"{np.count_nonzero(steps == 0)} of {len(steps)} stamps repeat the one before (too few digits?)"
    if "qd" not in signals:
        raise InputError(f"{said}: the stamps cannot be used, give the sampling rate (rate=..., Hz)")
    v = (signals["qd"][1:] + signals["qd"][:-1]) / 2
    dq = np.diff(signals["q"], axis=0)
    fast = (v * v).sum(1) > np.mean((v * v).sum(1))  # slow samples tell nothing of the period
    period = float(np.median((v * dq).sum(1)[fast] / (v * v).sum(1)[fast]))
    if not period > 0:
        raise InputError(f"{said}, and positions and velocities disagree: give the sampling rate (rate=..., Hz)")
    notes.append(f"{said}; from positions and velocities the period is {1e3 * period:.4g} ms ({1 / period:.4g} Hz)")
    return np.asarray(period * np.arange(len(t)), dtype=float)


def _pieces(t: Array, signals: dict[str, Array], period: float, notes: list[str]) -> list[dict[str, Array]]:
    """Cut at gaps, resample what is uneven."""
    cuts = np.flatnonzero(np.diff(t) > GAP * period) + 1
    if len(cuts):
        longest = float(np.diff(t).max())
        notes.append(f"{len(cuts)} gaps, the longest {longest:.3g} s: the log is used in {len(cuts) + 1} pieces")
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
            piece = {k: _interpolated(even, own, v) for k, v in piece.items()}
            own = even
        pieces.append({"t": own, **piece})
    if uneven:
        notes.append(f"sampling is uneven (steps off by up to {100 * uneven:.0f} %): resampled at {1 / period:.4g} Hz")
    if short:
        notes.append(f"{short} rows in pieces shorter than {SHORTEST} samples: dropped")
    if not pieces:
        raise InputError(f"no piece of the log between gaps is {SHORTEST} samples long")
    return pieces


def _interpolated(even: Array, t: Array, values: Array) -> Array:
    from scipy.interpolate import PchipInterpolator

    return np.asarray(PchipInterpolator(t, values, axis=0)(even))


def unit_doubts(period: float, pieces: list[dict[str, Array]]) -> list[str]:
    """Signs of degrees in place of radians, in words."""
    doubts = []
    reach = max(float(np.ptp(p["q"], axis=0).max()) for p in pieces)
    if reach > DEGREES:
        doubts.append(f"a position ranges over {reach:.4g}: degrees, or the motor's side of a gear?")
    if "qd" in pieces[0]:
        slope = velocity_slope(period, pieces)
        for factor, said in (
            (180 / np.pi, "positions are in degrees and velocities in radians"),
            (np.pi / 180, "positions are in radians and velocities in degrees"),
        ):
            if abs(slope / factor - 1) < 0.1:
                doubts.append(f"positions change {slope:.3g} times as fast as the velocities say: {said}?")
        if not doubts and not 0.9 < slope < 1.1:
            doubts.append(f"positions change {slope:.3g} times as fast as the velocities say: check the units")
    return doubts


def velocity_slope(period: float, pieces: list[dict[str, Array]]) -> float:
    """dq/dt over the logged velocity, least squares over all joints: 1 where both agree."""
    top = bottom = 0.0
    for piece in pieces:
        dq = (piece["q"][2:] - piece["q"][:-2]) / (2 * period)
        top += float((dq * piece["qd"][1:-1]).sum())
        bottom += float((piece["qd"][1:-1] ** 2).sum())
    return top / bottom if bottom else 1.0
