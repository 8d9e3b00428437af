"""How each lane of a fixed-step run ended: at a limit, diverged, or because its step was too long."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from armdyn.programs.stepping import SCHEMES
from armdyn.simulation import sampled_loop, stability
from armdyn.simulation.actuators import HeldStepper
from armdyn.simulation.request import Request, Span, steps_in
from armdyn.simulation.state import Layout
from armdyn.simulation.sticking import Lanes, Steps

HALVINGS = 60  # of a step, which locates an event to the last bit
UNSTABLE = "unstable step"
UNSTABLE_LOOP = "unstable loop"
FEW = 16  # up to so many lanes are bisected; with more, positions are interpolated


@dataclass
class Ends:
    """Per lane: its status and message, when it ended, and the state there."""

    statuses: np.ndarray
    messages: list[str]
    times: np.ndarray
    states: np.ndarray  # (lanes, size), NaN where there is none beyond the last row

    @classmethod
    def of(cls, count: int, size: int, status: str, time: float) -> Ends:
        """All lanes with one status at one time."""
        return cls(
            np.full(count, status, dtype=object), [""] * count, np.full(count, time), np.full((count, size), np.nan)
        )


def found_ends(
    asked: Request, stepper: Steps, times: np.ndarray, states: np.ndarray, good: np.ndarray, status: str
) -> Ends:
    """How every lane ended; rows after its end become NaN."""
    rows = np.where(good.all(axis=1), len(times), np.argmin(good, axis=1))
    ends = Ends.of(len(states), states.shape[-1], status, float(times[-1]))
    over = np.flatnonzero(rows < len(times))
    finite = np.array([bool(np.isfinite(states[lane, rows[lane]]).all()) for lane in over], dtype=bool)
    for lane in over[~finite].tolist():
        t = float(times[rows[lane]])
        ends.statuses[lane], ends.times[lane] = "diverged", t
        ends.messages[lane] = f"the state was no longer finite at t = {t:.6g} s"
    _at_limits(asked, stepper, states, rows, over[finite], ends)
    _unstable(asked, stepper, times, states, rows, ends)
    if isinstance(stepper, HeldStepper):
        _unstable_loop(stepper, times, states, rows, ends)
    for lane in over.tolist():
        states[lane, rows[lane] :] = np.nan
    return ends


def _at_limits(
    asked: Request, stepper: Steps, states: np.ndarray, rows: np.ndarray, lanes: np.ndarray, ends: Ends
) -> None:
    """Locate the time at which each of these lanes met a limit; lanes of the same row together."""
    for row in np.unique(rows[lanes]).tolist():
        group = lanes[rows[lanes] == row]
        one = stepper.some(group)
        moments, found, joints = locate(asked, one, states[group, row - 1], row)
        for lane, t, state, joint in zip(group.tolist(), moments, found, joints, strict=True):
            ends.statuses[lane], ends.times[lane], ends.states[lane] = "limit", t, state
            ends.messages[lane] = met_limit(joint, t)


def met_limit(joint: str, t: float) -> str:
    """The message of a run that ended at a limit, with the alternatives."""
    rest = "which ends the run; limits=0.0 makes every limit a stop, limits=False ignores them"
    return f"{joint} met its limit at t = {t:.9g} s, {rest}"


def locate(asked: Request, some: Lanes, start: np.ndarray, row: int) -> tuple[list[float], np.ndarray, list[str]]:
    """(moments, states, joints) where lanes meet a limit after `start`, their states stored before row `row`."""
    t0 = float(asked.times[row - 1])
    gap = float(asked.times[row]) - t0
    steps = steps_in(gap, asked.step)
    h = gap / steps
    chunks = some.run(start, Span(t0, h, 1, steps), some.single_step)
    within = np.concatenate([start[:, None], *(rows for rows, _ in chunks)], axis=1)
    outside = ~asked.inside(within[:, 1:])
    step = np.where(outside.any(axis=1), np.argmax(outside, axis=1), steps - 1)
    lanes = np.arange(len(start))
    moments, found, beyond = np.zeros(len(start)), within[lanes, step], within[lanes, step + 1]
    for k in np.unique(step).tolist():
        group = lanes[step == k]
        find = _bisected if len(group) <= FEW else _interpolated
        moments[group], found[group], beyond[group] = find(
            asked, some.some(group), within[group, k], beyond[group], t0 + k * h, h
        )
    return moments.tolist(), found, [asked.joint_beyond(y) for y in beyond]


def _bisected(
    asked: Request, some: Lanes, start: np.ndarray, beyond: np.ndarray, t: float, h: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Lanes inside at t and beyond at t + h: (moment, last state inside, first beyond), to the last bit."""
    moments = np.full(len(start), t)
    reached, beyond = start.copy(), beyond.copy()
    part, done = h, moments.copy()
    for _ in range(HALVINGS):
        part /= 2
        if part <= 1e-15 * max(1.0, abs(t)):
            break
        # Lanes are at different times now; each takes one more part from its last state inside the limits.
        for moment in np.unique(done).tolist():
            group = np.flatnonzero(done == moment)
            moved = next(some.some(group).run(reached[group], Span(moment, part, 1, 1), some.single_step))[0][:, -1]
            good = asked.inside(moved)
            reached[group[good]], beyond[group[~good]] = moved[good], moved[~good]
            done[group[good]] = moment + part
    return done, reached, beyond


def _interpolated(
    asked: Request, some: Lanes, start: np.ndarray, beyond: np.ndarray, t: float, h: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same for many lanes, by cubic Hermite interpolation of the positions, with an error of order h⁴."""
    layout = asked.layout
    low, high = np.zeros(len(start)), np.ones(len(start))
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        inside = asked.inside(_cubic(layout, start, beyond, middle, h))
        low, high = np.where(inside, middle, low), np.where(inside, high, middle)
    return t + low * h, _cubic(layout, start, beyond, low, h), _cubic(layout, start, beyond, high, h)


def _cubic(layout: Layout, a: np.ndarray, b: np.ndarray, x: np.ndarray, h: float) -> np.ndarray:
    """States on the Hermite cubic from a (x = 0) to b (x = 1)."""
    x = x[:, None]
    (qa, va), (qb, vb) = layout.split(a), layout.split(b)
    q = qa * (1 + 2 * x) * (1 - x) ** 2 + qb * x**2 * (3 - 2 * x)
    q = q + h * (layout.rate(qa, va) * x * (1 - x) ** 2 - layout.rate(qb, vb) * x**2 * (1 - x))
    return layout.normalised(np.hstack([q, va + x * (vb - va)]))


def _unstable(
    asked: Request, stepper: Steps, times: np.ndarray, states: np.ndarray, rows: np.ndarray, ends: Ends
) -> None:
    """Lanes that ended, or went on, because their step was too long for the method."""
    if stepper.silent and not np.any(rows < len(times)):
        return  # a function is not called with states that did not occur
    early, others = _examined(rows, len(times))
    h = max(span.h for span in asked.spans)
    for lane in [*early.tolist(), *([] if stepper.silent else others.tolist())]:
        last = int(rows[lane])
        if last < 2:
            last = min(len(times), 1)
        known = states[lane, :last]
        verdict = stability.judge(
            stepper.some(np.array([lane])), SCHEMES[stepper.taken], h, times[:last], known, lane in early
        )
        if verdict:
            ends.statuses[lane] = UNSTABLE
            ends.messages[lane] = _advice(stepper, h, verdict)
    if UNSTABLE in ends.statuses[early]:  # lanes that were not examined are assumed to have ended in the same way
        first = next(lane for lane in early.tolist() if ends.statuses[lane] == UNSTABLE)
        for lane in np.flatnonzero(rows < len(times)).tolist():
            if lane not in early:
                ends.statuses[lane], ends.messages[lane] = UNSTABLE, ends.messages[first]


def _examined(rows: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Some lanes that ended early, and some of the others."""
    early = np.flatnonzero(rows < count)[: 2 * stability.LANES]
    others = np.flatnonzero(rows == count)
    return early, others[:: max(1, len(others) // stability.LANES)][: stability.LANES]


def _unstable_loop(stepper: HeldStepper, times: np.ndarray, states: np.ndarray, rows: np.ndarray, ends: Ends) -> None:
    """Lanes whose controller is too slow for its gains, or whose motors never catch up with it."""
    early, others = _examined(rows, len(times))
    for lane in [*early.tolist(), *others.tolist()]:
        if ends.statuses[lane] == UNSTABLE:
            continue
        last = max(int(rows[lane]), 1)
        known = stepper.loops(lane, times[:last], states[:, :last], lane in early)
        verdict = sampled_loop.judged(
            np.array([t for t, _ in known]), [loop for _, loop in known], stepper.timing, float(times[last - 1]),
            lane in early,
        )  # fmt: skip
        speeds = states[lane, :last, -stepper.idle.chain.nv :]
        message = verdict.words(stepper.timing) if verdict else stepper.chases_its_rate(lane, speeds)
        if message:
            ends.statuses[lane], ends.messages[lane] = UNSTABLE_LOOP, message


def _advice(stepper: Steps, h: float, verdict: stability.Verdict) -> str:
    """What was wrong, and what would help."""
    others = "" if stepper.taken == "ARK4" or stepper.silent else '; so would method="ARK4"'
    return (
        f"a step of {h:.3g} s is too long for {stepper.taken} from t = {verdict.t:.4g} s on: it amplifies motions "
        f"that die away (largest eigenvalue about {verdict.largest:.3g} 1/s); {verdict.step:.2g} s would do{others}"
    )
