"""`simulate`: what an arm does when its joints are driven, or nobody drives them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from armdyn.arm import Arm
from armdyn.errors import InputError, choose
from armdyn.kernels.assemble import Options
from armdyn.simulation import adaptive
from armdyn.simulation.fixed import Span, Stepper
from armdyn.simulation.plain import PlainStepper
from armdyn.simulation.tableaus import ADAPTIVE, METHODS
from armdyn.simulation.torque import Drive, drive
from armdyn.simulation.trajectory import Trajectory

Progress = Callable[[float, float], None]


@dataclass(frozen=True)
class _Task:
    """A checked request."""

    arm: Arm
    state: np.ndarray  # (count, 2n)
    batch: tuple[int, ...]
    times: np.ndarray
    spans: tuple[Span, ...]
    bounds: np.ndarray  # (n, 2), infinite where there is no limit
    progress: Progress


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
    rtol: float = 1e-9,
    atol: float = 1e-11,
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
    torque : None, array, Sampled, PDGravity, ComputedTorque or function
        Who drives the joints. A function gets (t, q, qd) and gives (..., n).
    duration, times : float, array_like
        Either how long (stored every `step`), or the increasing times to store, the first being the start.
    method : str
        Fixed step, whole loop compiled: RK4, RK5, AB4, semi_implicit_euler. Adaptive, by scipy: DOP853, RK45,
        LSODA, Radau.
    step : float
        Step of the fixed-step methods, s.
    rtol, atol : float
        Tolerances of the adaptive ones.
    tool_wrench : array_like, optional
        Constant wrench (force, torque) of the surroundings on the tool, in base axes: (6,) or (..., 6).
    progress : function, optional
        Called with (done, total) now and then.

    Returns
    -------
    Trajectory
        With a status and a message; what was computed before an early end is kept.
    """
    choose("integration method", method, METHODS)
    task = _task(arm, q0, qd0, duration, times, step, limits, progress)
    wrench = _wrench(tool_wrench, task)
    options = Options(friction=friction, tool_wrench=wrench is not None)
    driven = drive(arm.chain, torque)
    stepper: Any
    if driven is None:
        stepper = PlainStepper(arm, torque, options, wrench, method, task.batch)
    else:
        stepper = Stepper(arm.chain, _per_lane(driven, task), options, wrench, method)
    if method in ADAPTIVE:
        return _adaptive(task, stepper, method, rtol, atol)
    return _fixed(task, stepper, method)


def _task(
    arm: Arm, q0: Any, qd0: Any, duration: Any, times: Any, step: float, limits: bool, progress: Progress | None
) -> _Task:
    n = arm.n
    q = np.asarray(q0, float)
    qd = np.zeros(n) if qd0 is None else np.asarray(qd0, float)
    for name, value in (("q0", q), ("qd0", qd)):
        if value.shape[-1:] != (n,):
            raise InputError(f"{name} of {arm.name} (n = {n}) must be (..., {n}), got {value.shape}")
        if not np.all(np.isfinite(value)):
            raise InputError(f"{name} contains NaN or infinity")
    batch = np.broadcast_shapes(q.shape[:-1], qd.shape[:-1])
    state = np.concatenate([np.broadcast_to(x, (*batch, n)).reshape(-1, n) for x in (q, qd)], axis=1)
    moments, spans = _schedule(duration, times, step)
    bounds = np.array(arm.limits, float) if limits else np.tile([-np.inf, np.inf], (n, 1))
    bounds = np.where(np.isnan(bounds), [-np.inf, np.inf], bounds)
    outside = np.any((state[:, :n] < bounds[:, 0]) | (state[:, :n] > bounds[:, 1]), axis=0)
    if outside.any():
        names = ", ".join(arm.joints[i].name or f"joint {i + 1}" for i in np.flatnonzero(outside))
        raise InputError(f"q0 lies outside the limits of {names}; limits=False ignores them")
    return _Task(arm, state, batch, moments, spans, bounds, progress or (lambda done, total: None))


def _schedule(duration: Any, times: Any, step: float) -> tuple[np.ndarray, tuple[Span, ...]]:
    """The times to store, and equal steps between them."""
    if (duration is None) == (times is None):
        raise InputError("give either duration or times")
    if not (isinstance(step, int | float) and math.isfinite(step) and step > 0):
        raise InputError(f"step must be a positive number of seconds, got {step!r}")
    if duration is not None:
        if not (math.isfinite(duration) and duration > 0):
            raise InputError(f"duration must be positive and finite, got {duration!r}")
        whole = math.floor(duration / step * (1 + 1e-12))
        moments = step * np.arange(whole + 1)
        rest = duration - moments[-1]
        spans = [Span(0.0, step, 1, whole)] if whole else []
        if rest > 1e-9 * step:
            spans.append(Span(float(moments[-1]), rest, 1, 1))
            moments = np.append(moments, duration)
        return moments, tuple(spans)
    moments = np.asarray(times, float)
    if moments.ndim != 1 or len(moments) < 2 or not np.all(np.isfinite(moments)) or np.any(np.diff(moments) <= 0):
        raise InputError("times must be at least two finite, increasing numbers")
    gaps = np.diff(moments)
    if np.ptp(gaps) <= 1e-9 * gaps[0]:
        every = max(1, math.ceil(gaps[0] / step * (1 - 1e-9)))
        gap = (moments[-1] - moments[0]) / len(gaps)
        return moments, (Span(float(moments[0]), gap / every, every, len(gaps)),)
    counts = [max(1, math.ceil(gap / step * (1 - 1e-9))) for gap in gaps]
    return moments, tuple(
        Span(float(t), float(gap / k), k, 1) for t, gap, k in zip(moments, gaps, counts, strict=False)
    )


def _wrench(tool_wrench: Any, task: _Task) -> np.ndarray | None:
    if tool_wrench is None:
        return None
    wrench = np.asarray(tool_wrench, float)
    if wrench.shape[-1:] != (6,) or not np.all(np.isfinite(wrench)):
        raise InputError(f"tool_wrench must be finite (..., 6): force, torque; got shape {wrench.shape}")
    if wrench.ndim == 1:
        return wrench
    return np.broadcast_to(wrench, (*task.batch, 6)).reshape(-1, 1, 1, 6)


def _per_lane(driven: Drive, task: _Task) -> Drive:
    """A drive with a batch of constants, its batch made one axis."""
    probe = driven.inputs(np.zeros((1, 1)))
    lead = probe.shape[:-3] if probe.ndim > 3 else ()
    if not lead:
        return driven
    count = len(task.state)

    def inputs(t: np.ndarray) -> np.ndarray:
        u = driven.inputs(t)
        return np.broadcast_to(u, (*task.batch, *u.shape[-3:])).reshape(count, *u.shape[-3:])

    return Drive(driven.size, inputs, driven.law, driven.duration)


def _fixed(task: _Task, stepper: Any, method: str) -> Trajectory:
    """Step through the spans; stop when every lane has ended, or at Ctrl-C."""
    n, count = task.arm.n, len(task.state)
    states = np.full((count, len(task.times), 2 * n), np.nan)
    states[:, 0] = task.state
    row, status = 1, "finished"
    with np.errstate(all="ignore"):
        try:
            for stored in _chunks(task, stepper):
                states[:, row : row + stored.shape[1]] = stored
                row += stored.shape[1]
                task.progress(row, len(task.times))
                if not np.any(_inside(task, stored[:, -1])):
                    break
        except KeyboardInterrupt:
            status = "interrupted"
        return _finish(task, stepper, method, states[:, :row], task.times[:row], status)


def _chunks(task: _Task, stepper: Any) -> Iterator[np.ndarray]:
    state = task.state
    for span in task.spans:
        for stored in stepper.run(state, span):
            yield stored
            state = stored[:, -1]


def _inside(task: _Task, state: np.ndarray) -> np.ndarray:
    """Whether states (..., 2n) are finite and within the limits."""
    q = state[..., : task.arm.n]
    within = np.all((q >= task.bounds[:, 0]) & (q <= task.bounds[:, 1]), axis=-1)
    inside: np.ndarray = np.all(np.isfinite(state), axis=-1) & within
    return inside


def _finish(task: _Task, stepper: Any, method: str, states: np.ndarray, times: np.ndarray, status: str) -> Trajectory:
    """Cut each lane where it ended, find the moment a limit was met, and work out what follows from the states."""
    inside = _inside(task, states)
    ends = np.where(inside.all(axis=1), states.shape[1], np.argmin(inside, axis=1))
    statuses = np.full(len(states), status, dtype=object)
    messages = ["" for _ in states]
    reached = times
    for lane in np.flatnonzero(ends < states.shape[1]).tolist():
        end = ends[lane]
        if not np.all(np.isfinite(states[lane, end])):
            statuses[lane], messages[lane] = "diverged", f"the state was no longer finite at t = {times[end]:.6g} s"
            states[lane, end:] = np.nan
            continue
        statuses[lane] = "limit"
        moment, state, joint = _locate(task, stepper, lane, states[lane, end - 1], times[end - 1], times[end])
        messages[lane] = f"{joint} met its limit at t = {moment:.9g} s"
        states[lane, end:] = np.nan
        if len(states) == 1:
            states = np.concatenate([states[:, :end], state[None, None]], axis=1)
            reached = np.append(times[:end], moment)
    if len(states) == 1 and statuses[0] == "diverged":
        states, reached = states[:, : ends[0]], times[: ends[0]]
    return _trajectory(task, stepper, method, reached, states, statuses, messages)


def _locate(
    task: _Task, stepper: Any, lane: int, state: np.ndarray, t0: float, t1: float
) -> tuple[float, np.ndarray, str]:
    """The moment between t0 and t1 at which a joint meets its limit: one step of the right size, by bisection."""
    n = task.arm.n
    method = "RK4" if stepper.method == "AB4" else stepper.method
    one = stepper.lane(lane)

    def after(h: float) -> np.ndarray:
        if h <= 0:
            return state
        steps = max(1, math.ceil(h / task.spans[0].h * (1 - 1e-9)))
        last: np.ndarray = list(one.run(state[None], Span(t0, h / steps, steps, 1), method))[-1][0, -1]
        return last

    low, high = 0.0, t1 - t0
    for _ in range(60):
        middle = (low + high) / 2
        if _inside(task, after(middle)):
            low = middle
        else:
            high = middle
    beyond = after(high)[:n]
    gap = np.maximum(beyond - task.bounds[:, 1], task.bounds[:, 0] - beyond)
    joint = int(np.argmax(gap))
    return t0 + low, after(low), task.arm.joints[joint].name or f"joint {joint + 1}"


def _trajectory(
    task: _Task,
    stepper: Any,
    method: str,
    times: np.ndarray,
    states: np.ndarray,
    statuses: np.ndarray,
    messages: list[str],
) -> Trajectory:
    arm, n = task.arm, task.arm.n
    with np.errstate(all="ignore"):
        qdd, tau = stepper.rates(times, states)
        q, qd = states[..., :n], states[..., n:]
        energy = np.asarray(arm.kinetic_energy(q, qd)) + np.asarray(arm.potential_energy(q))
    dead = ~np.all(np.isfinite(states), axis=-1)
    qdd, tau = np.array(np.broadcast_to(qdd, q.shape)), np.array(np.broadcast_to(tau, q.shape))
    qdd[dead] = tau[dead] = np.nan

    def shaped(x: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(x).reshape(*task.batch, *x.shape[1:])

    overall, message = _words(statuses, messages, times)
    return Trajectory(
        arm, times, shaped(q), shaped(qd), shaped(qdd), shaped(tau), shaped(energy),
        overall, message, method, statuses.reshape(task.batch),
    )  # fmt: skip


def _words(statuses: np.ndarray, messages: list[str], times: np.ndarray) -> tuple[str, str]:
    """One status and one sentence for all lanes."""
    kinds = [kind for kind in ("interrupted", "diverged", "limit") if kind in statuses]
    if not kinds:
        return "finished", f"reached t = {times[-1]:.6g} s"
    first = int(np.flatnonzero(statuses == kinds[0])[0])
    message = messages[first] or f"interrupted at t = {times[-1]:.6g} s"
    if len(statuses) > 1:
        counts = ", ".join(f"{int(np.sum(statuses == kind))} {kind}" for kind in kinds)
        message = f"{counts} of {len(statuses)} lanes; the first: {message}"
    return kinds[0], message


def _adaptive(task: _Task, stepper: Any, method: str, rtol: float, atol: float) -> Trajectory:
    n, arm = task.arm.n, task.arm
    states = np.full((len(task.state), len(task.times), 2 * n), np.nan)
    statuses, messages = np.full(len(task.state), "finished", dtype=object), []
    reached = task.times
    for lane, y0 in enumerate(task.state):
        one = stepper.lane(lane)

        def right(t: float, y: np.ndarray, one: Any = one) -> np.ndarray:
            qdd, _ = one.rates(np.array([t]), y[None, None])
            return np.concatenate([y[n:], np.asarray(qdd)[0, 0]])

        def watch(y: np.ndarray) -> float:
            return float(np.min(np.minimum(y[:n] - task.bounds[:, 0], task.bounds[:, 1] - y[:n])))

        def tick(t: float, lane: int = lane) -> None:
            task.progress(lane + (t - task.times[0]) / np.ptp(task.times), len(task.state))

        t, y, status, message = adaptive.solve(method, right, y0, task.times, rtol, atol, watch, tick)
        if status == "limit":
            gap = np.minimum(y[-1, :n] - task.bounds[:, 0], task.bounds[:, 1] - y[-1, :n])
            joint = int(np.argmin(gap))
            message = f"{arm.joints[joint].name or f'joint {joint + 1}'} met its limit at t = {t[-1]:.9g} s"
        statuses[lane] = status
        messages.append(message)
        if len(task.state) == 1:
            states, reached = y[None], t
        else:
            keep = np.isin(t, task.times)
            states[lane, : keep.sum()] = y[keep]
    return _trajectory(task, stepper, method, reached, states, statuses, messages)
