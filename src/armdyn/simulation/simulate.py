"""`simulate`: what an arm does when its joints are driven, or nobody drives them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from armdyn.arm import Arm
from armdyn.errors import InputError, choose
from armdyn.programs.assemble import Options
from armdyn.simulation import adaptive
from armdyn.simulation.fixed import Stepper
from armdyn.simulation.plain import PlainStepper
from armdyn.simulation.request import Progress, Request, Span, positive, request, steps_in
from armdyn.simulation.tableaus import ADAPTIVE, METHODS
from armdyn.simulation.torque import drive
from armdyn.simulation.trajectory import Trajectory


def simulate(
    arm: Arm,
    q0: Any,
    qd0: Any = None,
    *,
    torque: Any = None,
    duration: float | None = None,
    times: Any = None,
    method: str = "RK4",
    step: float = 1e-3,
    rtol: float | None = None,
    atol: float | None = None,
    friction: bool = True,
    tool_wrench: Any = None,
    limits: bool = True,
    progress: Progress | None = None,
) -> Trajectory:
    """Simulate an arm from (q0, qd0).

    Parameters
    ----------
    arm : Arm
        The arm; its friction acts unless ``friction=False``, its joint limits stop it unless ``limits=False``.
    q0, qd0 : array_like
        Initial positions and velocities, (n,) or a batch (..., n); velocities are zero if left out.
    torque : None, array, Sampled, PDGravity, ComputedTorque, Feedforward or function
        Who drives the joints; an array may be a batch (..., n). A function gets (t, q, qd) and gives (..., n).
    duration, times : float, array_like
        Either how long (stored every `step`), or the increasing times to store, the first being the start.
    method : str
        Fixed step, whole loop compiled: RK4, RK5, AB4, semi_implicit_euler. Adaptive, by scipy: DOP853, RK45,
        LSODA, Radau.
    step : float
        Longest step of the fixed-step methods, s.
    rtol, atol : float, optional
        Tolerances of the adaptive ones, 1e-9 and 1e-11 by default; the fixed-step methods take none.
    tool_wrench : array_like, optional
        Constant wrench (force, torque) of the surroundings on the tool, in base axes: (6,) or (..., 6).
    progress : function, optional
        Called with (done, total) now and then.

    Returns
    -------
    Trajectory
        With a status and a message; what was computed before an early end, Ctrl-C included, is kept.
    """
    choose("integration method", method, METHODS)
    if not isinstance(arm, Arm):
        raise InputError(f"simulate takes an Arm, got {arm!r}; armdyn.load(...) gives one")
    if method not in ADAPTIVE and not rtol is atol is None:
        raise InputError(f"{method} has a fixed step and takes no rtol or atol; adaptive: {', '.join(ADAPTIVE)}")
    driven = drive(arm.chain, torque)
    asked = request(
        arm, q0, qd0, batch=driven.batch if driven else (), duration=duration, times=times, step=step,
        limits=limits, wrench=tool_wrench, progress=progress,
    )  # fmt: skip
    options = Options(friction=friction, tool_wrench=asked.wrench is not None)
    inside = asked.inside if asked.limited else None
    stepper: Any
    if driven is None:
        stepper = PlainStepper(arm, torque, options, asked.wrench, method, asked.batch, inside)
    else:
        stepper = Stepper(arm.chain, asked.per_lane(driven), options, asked.wrench, method, inside)
    with np.errstate(all="ignore"):
        if method not in ADAPTIVE:
            return _fixed(asked, stepper)
        knots = driven.knots if driven else ()
        tolerances = positive(1e-9 if rtol is None else rtol, "rtol"), positive(1e-11 if atol is None else atol, "atol")
        return _adaptive(asked, stepper, adaptive.Solver(method, *tolerances, knots, bool(driven and driven.held)))


def _fixed(asked: Request, stepper: Any) -> Trajectory:
    """Step through the spans; stop when every lane has ended, or at Ctrl-C."""
    count, size = asked.state.shape
    states = np.full((count, len(asked.times), size), np.nan)
    good = np.zeros(states.shape[:2], dtype=bool)
    states[:, 0], good[:, 0] = asked.state, True
    row, status = 1, "finished"
    try:
        for stored, inside in _chunks(asked, stepper):
            rows = slice(row, row + stored.shape[1])
            states[:, rows], good[:, rows] = stored, inside
            row = rows.stop
            asked.progress(row - 1, len(asked.times) - 1)
            if not inside[:, -1].any():
                break
    except KeyboardInterrupt:
        status = "interrupted"
    return _finish(asked, stepper, states[:, :row], good[:, :row], status)


def _chunks(asked: Request, stepper: Any) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    state = asked.state
    for span in asked.spans:
        for stored, inside in stepper.run(state, span):
            yield stored, inside
            state = stored[:, -1]


def _finish(asked: Request, stepper: Any, states: np.ndarray, good: np.ndarray, status: str) -> Trajectory:
    """Cut each lane where it ended, and find the moment a limit was met."""
    times = asked.times[: states.shape[1]]
    ends = np.where(good.all(axis=1), len(times), np.argmin(good, axis=1))
    statuses, messages = np.full(len(states), status, dtype=object), [""] * len(states)
    event: tuple[float, np.ndarray] | None = None
    for lane in np.flatnonzero(ends < len(times)).tolist():
        end = ends[lane]
        first = "limit" not in statuses
        statuses[lane] = "limit" if asked.limited and np.isfinite(states[lane, end]).all() else "diverged"
        if statuses[lane] == "diverged":
            messages[lane] = f"the state was no longer finite at t = {times[end]:.6g} s"
        elif first:  # the message names one; in a batch there is no row for the moment of the others
            moment, state, joint = _locate(asked, stepper.lane(lane), states[lane, end - 1], int(end))
            messages[lane] = f"{joint} met its limit at t = {moment:.9g} s"
            event = moment, state
        states[lane, end:] = np.nan
    if len(states) == 1 and ends[0] < len(times):
        states, times = states[:, : ends[0]], times[: ends[0]]
        if event is not None and event[0] > times[-1]:
            states, times = np.concatenate([states, event[1][None, None]], axis=1), np.append(times, event[0])
    return _trajectory(asked, stepper, times, states, statuses, messages)


def _locate(asked: Request, one: Any, state: np.ndarray, row: int) -> tuple[float, np.ndarray, str]:
    """(moment, state, joint) where a joint meets its limit after `state`, the one stored before row `row`."""
    t0 = float(asked.times[row - 1])
    gap = float(asked.times[row]) - t0
    steps = steps_in(gap, asked.step)
    h = gap / steps
    within = np.concatenate([rows for rows, _ in one.run(state[None], Span(t0, h, 1, steps), one.single_step)], axis=1)[
        0
    ]
    outside = ~asked.inside(within)
    k = int(np.argmax(outside)) if outside.any() else steps - 1
    start, t = (within[k - 1], t0 + k * h) if k else (state, t0)

    def after(part: float) -> np.ndarray:
        last: np.ndarray = next(one.run(start[None], Span(t, part, 1, 1), one.single_step))[0][0, -1]
        return last

    low, high, reached, beyond = 0.0, h, start, within[k]
    while high - low > 1e-15 * max(1.0, abs(t)) and low < (middle := (low + high) / 2) < high:
        moved = after(middle)
        if asked.inside(moved):
            low, reached = middle, moved
        else:
            high, beyond = middle, moved
    return t + low, reached, asked.joint_beyond(beyond[: asked.arm.n])


def _trajectory(
    asked: Request, stepper: Any, times: np.ndarray, states: np.ndarray, statuses: np.ndarray, messages: list[str]
) -> Trajectory:
    """Work out what follows from the states."""
    arm, n = asked.arm, asked.arm.n
    qdd, tau = stepper.reported(times, states)
    q, qd = states[..., :n], states[..., n:]
    energy = np.asarray(arm.kinetic_energy(q, qd)) + np.asarray(arm.potential_energy(q))
    dead = ~np.all(np.isfinite(states), axis=-1)
    qdd, tau = np.array(np.broadcast_to(qdd, q.shape)), np.array(np.broadcast_to(tau, q.shape))
    qdd[dead] = tau[dead] = np.nan

    def shaped(x: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(x).reshape(*asked.batch, *x.shape[1:])

    overall, message = _words(statuses, messages, times)
    return Trajectory(
        arm, times, shaped(q), shaped(qd), shaped(qdd), shaped(tau), shaped(energy),
        overall, message, stepper.method, statuses.reshape(asked.batch),
    )  # fmt: skip


def _words(statuses: np.ndarray, messages: list[str], times: np.ndarray) -> tuple[str, str]:
    """One status and one sentence for all lanes."""
    kinds = [kind for kind in ("interrupted", "diverged", "stalled", "limit") if kind in statuses]
    if not kinds:
        return "finished", f"reached t = {times[-1]:.6g} s"
    first = int(np.flatnonzero(statuses == kinds[0])[0])
    message = messages[first] or f"{kinds[0]} at t = {times[-1]:.6g} s"
    if len(statuses) > 1:
        counts = ", ".join(f"{int(np.sum(statuses == kind))} {kind}" for kind in kinds)
        message = f"{counts} of {len(statuses)} lanes; the first: {message}"
    return kinds[0], message


def _adaptive(asked: Request, stepper: Any, solver: adaptive.Solver) -> Trajectory:
    """One lane after the other; Ctrl-C ends them all."""
    n, count = asked.arm.n, len(asked.state)
    states = np.full((count, len(asked.times), 2 * n), np.nan)
    states[:, 0] = asked.state
    statuses, messages = np.full(count, "interrupted", dtype=object), [""] * count
    reached = asked.times

    def watch(y: np.ndarray) -> float:
        return float(np.min(np.minimum(y[:n] - asked.bounds[:, 0], asked.bounds[:, 1] - y[:n])))

    for lane, y0 in enumerate(asked.state):
        one = stepper.lane(lane)

        def right(t: float, y: np.ndarray, one: Any = one) -> np.ndarray:
            qdd, _ = one.rates(np.array([t]), y[None, None])
            return np.concatenate([y[n:], np.asarray(qdd)[0, 0]])

        def tick(t: float, lane: int = lane) -> None:
            asked.progress(lane + (t - asked.times[0]) / np.ptp(asked.times), count)

        t, y, status, message = solver.run(right, y0, asked.times, watch if asked.limited else None, tick)
        if status == "limit":
            message = f"{asked.joint_beyond(y[-1, :n])} met its limit at t = {t[-1]:.9g} s"
        statuses[lane], messages[lane] = status, message
        if count == 1:
            states, reached = y[None], t
        else:
            keep = np.isin(t, asked.times)
            states[lane, : keep.sum()] = y[keep]
        if status == "interrupted":
            break
    return _trajectory(asked, stepper, reached, states, statuses, messages)
