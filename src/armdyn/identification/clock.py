"""The clock of a log: when its rows were taken, from the time stamps and from the smoothness of the positions.

Either the stamps jitter while the controller samples evenly, or the sampling itself is uneven, or something between: a
stamp is late because a buffer was written, rows are inserted that repeat the previous one, rows are lost. The positions
tell which: over the times at which they were really taken they are smooth. Candidate clocks are compared by what local
quintics leave of the positions, over windows of several lengths: a short one does not see stamps that wander slowly,
and the motion itself fills a long one. Where no window decides, because the stamps wander as slowly as the arm moves,
the second clock is kept as a rival, for the torques to decide.

Measured on 30 simulated logs with faulty stamps: held-out torque error over that of the best fixed cut-off and clock in
hindsight larger by 0.4 % in the median, by 3 % in 90 % and by 14 % at most; stamps always 1.1, 47 and 542 %, an even
clock always 0.9, 69 and 542 %. Windows of 7 rows lose up to 450 %.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Numbers = NDArray[np.int64]
CLOCKS = ("auto", "stamps", "even")
UNEVEN = 0.05  # jitter, in periods, above which a log is resampled
WINDOWS = {41: 400, 161: 200, 641: 100}  # how many windows of how many rows
DEGREE = 5  # of the polynomials of the positions
UNDECIDED = 0.5  # logarithm by which one of two clocks must be smoother for the other to be no rival
MARGIN = 0.1  # logarithm by which another clock must be smoother than the stamps; 0 to 0.4 make no difference
MOVING = 0.02  # of the largest mean step, above which a joint moves
BREAK_ROWS = 15  # rows before and after a step whose median offsets decide whether time was lost,
LATE_ROWS = 64  # and rows after it over which the median must stay: a buffer written late catches up sooner
BREAK, BREAK_NOISE = 0.75, 4.0  # periods, and deviations of the offsets, above which it was
LOCAL = (16, 256)  # rows of the local means of clocks that wander
LAG = 200  # rows over which the period is measured
LONG = 20.0  # periods; windows across a longer gap say nothing
VELOCITY_LAGS = (8, 64)  # rows over which logged velocities are integrated


@dataclass(frozen=True, eq=False)
class Clock:
    """The times of the rows that are kept, and which clock that is.

    `number` counts the samples, lost ones included; `smoother` is the factor by which the positions are smoother than
    over the stamps of all rows; `rival` is the other one of stamps and an even clock, if the positions do not tell.
    """

    name: str
    t: Array
    kept: NDArray[np.int64]
    number: Numbers
    smoother: float = 1.0
    doubt: str = ""
    rival: Clock | None = None

    @property
    def period(self) -> float:
        """The sampling period."""
        return period_of(self.t, self.number)


def period_of(t: Array, number: Numbers) -> float:
    """The median period, over many rows so that neither jitter nor rounded stamps matter."""
    lag = min(len(t) // 2, LAG)
    return float(np.median((t[lag:] - t[:-lag]) / (number[lag:] - number[:-lag])))


def choose_clock(t: Array, number: Numbers, q: Array, qd: Array | None, again: Mask, preference: str = "auto") -> Clock:
    """The clock of a log over which its positions are smoothest; `again` marks rows that repeat the previous one.

    `preference` is one of CLOCKS: the stamps and evenly spaced clocks are compared, or only clocks of one kind.
    """
    every = np.arange(len(t))
    stamps = Clock("stamps", np.maximum.accumulate(t), every, number)
    steps = np.diff(t) / (stamps.period * np.diff(number))
    even = _line(stamps.t, number, _breaks(stamps.t, number))
    regular = np.percentile(np.abs(steps - 1), 99) <= UNEVEN and steps.min() > 0
    steady = np.abs(stamps.t - even).max() <= UNEVEN * stamps.period
    if regular and steady and not again.any() and preference != "even":
        return stamps
    candidates = [c for c in _candidates(stamps, again) if preference in ("auto", c.name.split()[0])]
    gaps = np.flatnonzero(np.diff(even) > LONG * stamps.period)
    as_stamped = _roughnesses(stamps, q, gaps)
    scores = np.array([_rougher(_roughnesses(c, q, gaps), as_stamped) for c in candidates])
    best = int(np.argmin(scores))
    if preference != "even" and scores[best] > scores[0] - MARGIN:
        best = 0
    best, doubt = _slower_or_faster(candidates, scores, best, q, qd)
    chosen = candidates[best]
    close = [c for c, score in zip(candidates, scores, strict=True) if abs(score - scores[best]) < UNDECIDED]
    rival = next((c for c in close if {c.name, chosen.name} == {"stamps", EVEN}), None)
    return replace(chosen, smoother=float(np.exp(-scores[best])), doubt=doubt, rival=rival)


def _roughnesses(clock: Clock, q: Array, gaps: Numbers) -> Array:
    """The roughness of the positions over a clock, for each length of the windows."""
    before = np.searchsorted(clock.kept, gaps)
    return np.array([roughness(clock.t, q[clock.kept], before, rows) for rows in WINDOWS])


def _rougher(own: Array, other: Array) -> float:
    """The logarithm by which a clock is rougher than another, over the windows that tell most."""
    differences = own - other
    return float(differences[int(np.argmax(np.abs(differences)))])


def _candidates(stamps: Clock, again: Mask) -> Iterator[Clock]:
    """The clocks that are compared, the stamps first; the first word of a name is its kind."""
    t, number = stamps.t, stamps.number
    breaks = _breaks(t, number)
    smooth = {EVEN: _line(t, number, breaks)}
    smooth |= {f"wandering clock (mean of {rows} rows)": _line(t, number, breaks, rows) for rows in LOCAL}
    every, kept = stamps.kept, np.flatnonzero(~again)
    yield stamps
    for name, times in smooth.items():
        yield Clock(name, times, every, number)
    if not again.any():
        return
    less = "without repeated rows"
    yield Clock(f"stamps {less}", t[kept], kept, number[kept])
    for name, times in smooth.items():
        yield Clock(f"{name} {less}", times[kept], kept, number[kept])
    afresh = (number - np.cumsum(again))[kept]
    yield Clock(SPREAD, _line(t[kept], afresh, np.searchsorted(kept, breaks).tolist()), kept, afresh)
    yield Clock(MOVED_UP, _line(t[: len(kept)], afresh, [k for k in breaks if k < len(kept)]), kept, afresh)


EVEN = "even clock"
SPREAD = "even clock without repeated rows, the others spread over the same time"
MOVED_UP = "even clock without repeated rows, the others moved up"


def _slower_or_faster(candidates: list[Clock], scores: Array, best: int, q: Array, qd: Array | None) -> tuple[int, str]:
    """The choice between two clocks that differ in their speed only, which positions cannot tell apart."""
    at = {candidate.name: k for k, candidate in enumerate(candidates)}
    if candidates[best].name not in (SPREAD, MOVED_UP) or abs(scores[at[SPREAD]] - scores[at[MOVED_UP]]) > MARGIN:
        return best, ""
    if qd is not None:
        pair = (at[SPREAD], at[MOVED_UP])
        return min(pair, key=lambda k: _disagreement(candidates[k], q, qd)), ""
    share = candidates[at[SPREAD]].period / candidates[at[MOVED_UP]].period - 1
    return at[SPREAD], (
        f"rows repeat the previous one, and only velocities could tell whether the log took the time of its stamps (as"
        f" assumed) or was {100 * share:.2g} % shorter: record velocities, or give the sampling rate (rate=...)"
    )


def _disagreement(clock: Clock, q: Array, qd: Array) -> float:
    """How far the positions are from the integral of the logged velocities, over short times; its logarithm."""
    own, speed = q[clock.kept], qd[clock.kept]
    path = np.concatenate([0 * own[:1], np.cumsum((speed[1:] + speed[:-1]) / 2 * np.diff(clock.t)[:, None], axis=0)])
    off = own - path
    lags = [lag for lag in VELOCITY_LAGS if lag < len(off)]
    return float(np.mean([np.log(max(float(np.sqrt(np.mean((off[k:] - off[:-k]) ** 2))), 1e-300)) for k in lags]))


def _breaks(t: Array, number: Numbers) -> list[int]:
    """The rows before which time was lost.

    A buffer that is written late is no loss: the stamps after it fall back to where they were.
    """
    period = period_of(t, number)
    off = t - period * number
    noise = 1.4826 * float(np.median(np.abs(np.diff(off)))) + 1e-3 * period
    least = max(BREAK * period, BREAK_NOISE * noise)
    breaks: list[int] = []
    for k in np.flatnonzero(np.diff(off) > least) + 1:
        before = off[max(k - BREAK_ROWS, breaks[-1] if breaks else 0) : k]
        if min(np.median(off[k : k + rows]) for rows in (BREAK_ROWS, LATE_ROWS)) - np.median(before) > least:
            breaks.append(int(k))
    return breaks


def _line(t: Array, number: Numbers, breaks: Sequence[int], local: int = 0) -> Array:
    """Evenly spaced times by row number, with breaks where time was lost; or these and a local mean of the offsets."""
    period = period_of(t, number)
    off = t - period * number
    out = np.empty_like(t)
    for part in np.split(np.arange(len(t)), breaks):
        if not len(part):
            continue
        if 0 < local < len(part):
            sums = np.cumsum(np.concatenate([[0.0], off[part]]))
            first = np.maximum(np.arange(len(part)) - local // 2, 0)
            last = np.minimum(first + local, len(part))
            smooth = (sums[last] - sums[first]) / (last - first)
        else:
            slope = float(np.polyfit(number[part], off[part], 1)[0]) if len(part) > 100 else 0.0
            smooth = np.mean(off[part]) + slope * (number[part] - number[part].mean())
        out[part] = period * number[part] + smooth
    return np.maximum.accumulate(out)


def roughness(t: Array, q: Array, gaps: Numbers | None = None, window: int = min(WINDOWS)) -> float:
    """Logarithm of what local quintics, over windows of so many rows, leave of the positions; mean of moving joints.

    Windows across a gap (the rows before the gaps are given) are left out, unless few are left then.
    """
    rows = min(window, len(t))
    starts = np.unique(np.linspace(0, len(t) - rows, WINDOWS[window]).astype(int))
    if gaps is not None and len(gaps):
        whole = np.searchsorted(gaps, starts) == np.searchsorted(gaps, starts + rows - 1)
        starts = starts[whole] if 4 * np.count_nonzero(whole) > len(starts) else starts
    steps = np.abs(np.diff(q, axis=0)).mean(axis=0)
    q = q[:, steps > MOVING * steps.max()] if steps.max() > 0 else q
    chosen = starts[:, None] + np.arange(rows)
    local = t[chosen] - t[chosen].mean(axis=1, keepdims=True)
    scale = np.maximum(np.abs(local).max(axis=1, keepdims=True), 1e-300)
    Q = np.linalg.qr((local / scale)[..., None] ** np.arange(DEGREE + 1))[0]
    own = q[chosen] - q[chosen].mean(axis=1, keepdims=True)
    left = own - Q @ (np.swapaxes(Q, 1, 2) @ own)
    rounding = 1e-9 * np.maximum(np.ptp(q, axis=0), 1e-9)
    return float(np.mean(np.log(np.sqrt((left**2).mean(axis=(0, 1))) + rounding)))
