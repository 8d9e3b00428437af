"""`simulate`: the motion of an arm under controllers, given torques, or no torques."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Unpack

import numpy as np

from armdyn.arm import Arm
from armdyn.errors import InputError, choose
from armdyn.options import ADAPTIVE, FIXED, Conditions, Integration, SimulateKeywords, flat_keywords
from armdyn.programs.assemble import Options
from armdyn.programs.stepping import METHODS, SCHEMES, listing_methods
from armdyn.simulation import adaptive
from armdyn.simulation.digital import Actuators, Digital, HeldTorques, law_function
from armdyn.simulation.drives import Drive, Saturated, drive, unsaturated
from armdyn.simulation.judge import (
    LONGEST,
    SHORTEST,
    UNSTABLE,
    UNSTABLE_LOOP,
    Ends,
    chosen_method,
    first_step,
    found_ends,
    met_limit,
)
from armdyn.simulation.programs import Plants
from armdyn.simulation.request import Progress, Setup, acting, efforts, positive, request
from armdyn.simulation.stepper import LawTorques, PythonTorques, Source, Stepper, breakaway
from armdyn.simulation.trajectory import Trajectory


@listing_methods
@flat_keywords(integration=Integration, conditions=Conditions)
def simulate(
    arm: Arm,
    q0: Any = None,
    qd0: Any = None,
    *,
    torque: Any = None,
    duration: float | None = None,
    times: Any = None,
    actuators: Actuators | None = None,
    plants: Plants | None = None,
    progress: Progress | None = None,
    integration: Integration = Integration(),
    conditions: Conditions = Conditions(),
    **keywords: Unpack[SimulateKeywords],
) -> Trajectory:
    """Simulate an arm, or a robot with a floating base, from (q0, qd0).

    Parameters
    ----------
    arm : Arm
        The arm. Its friction acts unless ``friction=False``; its joint limits end the run unless `limits` is given.
    q0, qd0 : array_like
        Initial positions and velocities, (n,) or a batch (..., n); by default the rest posture and zero. The entries of
        a floating base come first: position and quaternion, and velocities in its own axes.
    torque : None, array, Sampled, PD, PDGravity, ComputedTorque, Feedforward, Controller, Digital or function
        What drives the joints. An array may be a batch (..., n). A function gets (t, q, qd) and returns (..., n).
        With a floating base, (..., 6 + n) starts with force and moment on the base; (..., n) are joint torques only.
        `Digital` is a control law with internal state, called once per control period.
    duration, times : float, array_like
        Either the duration (stored every `step`), or the increasing times to store, the first being the start.
    method : str
        Fixed step, with the whole loop compiled: {FIXED}. Adaptive, by scipy: {ADAPTIVE}.
        "auto" is RK4, or ARK4, which treats controller gains and viscous friction implicitly, if the gains are too
        stiff for RK4 with this step; the result's `method` tells which was used.
    step : float or "auto"
        Longest step of the fixed-step methods, s; "auto" is 1 ms, or less if the method needs it to be stable, and a
        divisor of the control period and delay of `actuators`.
    rtol, atol : float, optional
        Tolerances of the adaptive methods, 1e-9 and 1e-11 by default; the fixed-step methods take none.
    friction : bool
        Whether the joints' friction acts.
    tool_wrench : array_like, optional
        Constant wrench (force, torque) of the environment on the tool, in base axes: (6,) or (..., 6).
    base_acceleration : array_like or function, optional
        Acceleration of a base that moves without turning (a vehicle, a lift), in base axes, m/s²: (3,), (..., 3), or a
        function of time that returns three numbers. Motion and energy are those relative to the base.
    limits : bool, "end", "stop" or float
        The effect of a joint limit: it ends the run (True, "end"), stops the joint without a rebound ("stop"), lets it
        rebound with this coefficient of restitution (a number from 0 to 1), or is ignored (False).
    saturate : bool, optional
        Clamp the torques to the effort limits; by default for controllers, but not for given torques.
    actuators : Actuators, optional
        Control period, delay, torque rate limit and sensor resolution and noise.
    plants : Plants, optional
        Arms simulated in place of `arm`, which remains the controller's model: one per lane on the last batch axis
        (`armdyn.Uncertain` samples them). Positions are the true ones; `q0` is the encoder reading.
    progress : function, optional
        Called with (done, total) from time to time.
    integration, conditions : armdyn.options.Integration, armdyn.options.Conditions
        The keywords above as records, to be used more than once.

    Returns
    -------
    Trajectory
        With a status and a message; results before an early end, including Ctrl-C, are kept.
    """
    method, step, rtol, atol = integration.method, integration.step, integration.rtol, integration.atol
    saturate = conditions.saturate
    _check(arm, method, rtol, atol)
    driven = _drive(arm, torque, saturate)
    if isinstance(torque, Digital):
        actuators = actuators or Actuators()
        saturate = saturate is not False
    start = arm.rest if q0 is None else q0
    if plants is not None:
        _check_plants(plants, arm, driven, method, actuators, conditions.base_acceleration is not None)
    given = {
        "batch": _batch(driven, plants), "duration": duration, "times": times, "limits": conditions.limits,
        "wrench": conditions.tool_wrench, "base": conditions.base_acceleration, "progress": progress,
    }  # fmt: skip
    longest = actuators.longest_step(LONGEST) if actuators and step == "auto" else LONGEST
    setup = request(arm, start, qd0, step=longest if step == "auto" else step, **given)
    options = acting(conditions.friction, conditions.tool_wrench, conditions.base_acceleration)
    varied = None if plants is None else plants.lanes(setup.batch)
    setting = _Setting(torque, driven, options, saturate, actuators, varied)
    setup = setting.at_true_positions(setup)
    with np.errstate(all="ignore"):
        if method in ADAPTIVE:
            return _adaptive(setup, setting.stepper(setup, method), setting.solver(setup, method, rtol, atol))
        if method == "auto":
            method = chosen_method(setting.stepper(setup, "RK4"), setup)
        if step != "auto":
            return _fixed(setup, setting.stepper(setup, method))
        h = first_step(setting.stepper(setup, method), setup)
        while True:
            setup = setting.at_true_positions(request(arm, start, qd0, step=h, **given))
            out = _fixed(setup, setting.stepper(setup, method))
            if out.status != UNSTABLE or h < SHORTEST:
                return out
            h /= 2


def _check(arm: Any, method: str, rtol: float | None, atol: float | None) -> None:
    if not isinstance(arm, Arm):
        raise InputError(f"simulate takes an Arm, got {arm!r}; armdyn.load(...) returns one")
    choose("integration method", method, ("auto", *METHODS))
    if method not in ADAPTIVE and not rtol is atol is None:
        has = "auto chooses a method with" if method == "auto" else f"{method} has"
        raise InputError(f"{has} a fixed step and takes no rtol or atol; adaptive: {', '.join(ADAPTIVE)}")


def _check_plants(
    plants: Plants, arm: Arm, driven: Drive | None, method: str, actuators: Any, accelerated: bool
) -> None:
    """Raise an error for options that are not available with plants."""
    if plants.arm.chain != arm.chain:
        raise InputError(f"the plants are those of {plants.arm.name} as it was, not of this {arm.name}")
    if accelerated and not plants.varying.gravity:
        raise InputError("plants= on an accelerated base need samples of gravity, too; give base_acceleration= without")
    if driven is None or actuators is not None:
        raise InputError("plants= need a compiled controller, given torques or none; no Python function, no actuators")
    if method in ADAPTIVE:
        raise InputError(f"{method} simulates one arm; with plants= use one of auto, {', '.join(FIXED)}")


def _batch(driven: Drive | None, plants: Plants | None) -> tuple[int, ...]:
    """The broadcast batch shape of torques and plants."""
    own = driven.batch if driven else ()
    if plants is None:
        return own
    try:
        return np.broadcast_shapes(own, (len(plants),))
    except ValueError:
        raise InputError(f"{len(plants)} plants and torques with a batch {own} do not go together") from None


@dataclass(frozen=True)
class _Setting:
    """The drive, actuators and external forces of a run, for any method."""

    torque: Any
    driven: Drive | None  # None: the torque is a Python function
    options: Options
    saturate: bool | None
    actuators: Actuators | None
    plants: Plants | None = None

    def at_true_positions(self, setup: Setup) -> Setup:
        """The request with true initial positions in place of encoder readings."""
        if self.plants is None or self.plants.offsets is None:
            return setup
        state = setup.state.copy()
        state[:, : setup.arm.n] += self.plants.offsets
        return replace(setup, state=state)

    def stepper(self, setup: Setup, method: str) -> Stepper:
        """The arm, to be stepped by a method."""
        if self.driven is None and self.actuators is None and method in FIXED and SCHEMES[method].implicit:
            raise InputError(f"{method} needs a controller with known gains; with a function use RK4, LSODA or Radau")
        inside, source = setup.inside if setup.limited else None, self._source(setup)
        plants = self.plants if isinstance(source, LawTorques) else None
        return Stepper(setup.arm.chain, source, self.options, setup.outside, method, inside, setup.stops, plants)

    def _source(self, setup: Setup) -> Source:
        """Where the torques come from."""
        arm, chain = setup.arm, setup.arm.chain
        effort = efforts(arm) if self.saturate else None  # for a function; a compiled law saturates by itself
        if self.actuators is None:
            if self.driven is not None:
                return LawTorques(self.driven.per_lane(setup.batch))
            most = None if effort is None else np.array([np.inf if x is None else x for x in effort])
            return PythonTorques(chain, self.torque, setup.batch, most)
        common = (self.actuators, effort, setup.batch, setup.step)
        if isinstance(self.torque, Digital):
            running = self.torque.running(arm)
            period = setup.step if self.actuators.period is None else self.actuators.period
            answer = partial(running.answer, dt=period) if running.pure else None
            return HeldTorques(chain, running, *common, digital=True, answer=answer)
        if self.driven is None:
            return HeldTorques(chain, self.torque, *common)
        unlimited, gains = unsaturated(self.driven), self.driven.gains(chain)
        law = law_function(chain, unlimited)
        function = law if unlimited is self.driven else law_function(chain, self.driven)
        return HeldTorques(chain, function, *common, stiffness=gains, answer=law)

    def solver(self, setup: Setup, method: str, rtol: float | None, atol: float | None) -> adaptive.Solver:
        """The adaptive method with its tolerances."""
        if self.actuators is not None:
            raise InputError(
                f"{method} has no fixed step during which torques are held; actuators= need one of {', '.join(FIXED)}"
            )
        if setup.stops:
            raise InputError(f"{method} ends at a joint limit; limits as stops need one of {', '.join(FIXED)}")
        tolerances = positive(1e-9 if rtol is None else rtol, "rtol"), positive(1e-11 if atol is None else atol, "atol")
        knots, held = (self.driven.knots, self.driven.held) if self.driven else ((), False)
        return adaptive.Solver(method, *tolerances, knots, held)


def _drive(arm: Arm, torque: Any, saturate: bool | None) -> Drive | None:
    """The compilable drive, with its torques clamped to the effort limits if requested."""
    driven = None if isinstance(torque, Digital) else drive(arm.chain, torque)
    limited = any(effort is not None for effort in efforts(arm))
    if driven and limited and (driven.controller if saturate is None else saturate):
        return replace(driven, law=Saturated(driven.law, efforts(arm)))
    return driven


def _fixed(setup: Setup, stepper: Stepper) -> Trajectory:
    """Step through the spans; stop when every lane has ended, or at Ctrl-C."""
    count, size = setup.state.shape
    states = np.full((count, len(setup.times), size), np.nan)
    good = np.zeros(states.shape[:2], dtype=bool)
    states[:, 0], good[:, 0] = setup.state, True
    row, status = 1, "finished"
    try:
        for stored, inside in _chunks(setup, stepper):
            rows = slice(row, row + stored.shape[1])
            states[:, rows], good[:, rows] = stored, inside
            row = rows.stop
            setup.progress(row - 1, len(setup.times) - 1)
            if not inside[:, -1].any():
                break
    except KeyboardInterrupt:
        status = "interrupted"
    return _finish(setup, stepper, states[:, :row], good[:, :row], status)


def _chunks(setup: Setup, stepper: Stepper) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    state = setup.state
    for span in setup.spans:
        for stored, inside in stepper.run(state, span):
            yield stored, inside
            state = stored[:, -1]


def _finish(setup: Setup, stepper: Stepper, states: np.ndarray, good: np.ndarray, status: str) -> Trajectory:
    """Determine how each lane ended; a single lane gets a row for the time at which it met a limit."""
    times = setup.times[: states.shape[1]]
    ends = found_ends(setup, stepper, times, states, good, status)
    if len(states) == 1 and not good[0].all():
        last = int(np.argmin(good[0]))
        states, times = states[:, :last], times[:last]
        if ends.times[0] > times[-1] and np.isfinite(ends.states).all() and ends.statuses[0] == "limit":
            states, times = np.concatenate([states, ends.states[:, None]], axis=1), np.append(times, ends.times[0])
    return _trajectory(setup, stepper, times, states, ends)


def _trajectory(setup: Setup, stepper: Stepper, times: np.ndarray, states: np.ndarray, ends: Ends) -> Trajectory:
    """The trajectory of the states, with accelerations, torques and energies."""
    arm = setup.arm
    qdd, tau = stepper.source.reported(stepper, times, states)
    q, qd = setup.layout.split(states)
    plants = stepper.plants
    energy = plants.energy(q, qd) if plants else np.asarray(arm.kinetic_energy(q, qd)) + arm.potential_energy(q)
    dead = ~np.all(np.isfinite(states), axis=-1)
    qdd, tau = np.array(np.broadcast_to(qdd, qd.shape)), np.array(np.broadcast_to(tau, qd.shape))
    qdd[dead] = tau[dead] = np.nan

    def shaped(x: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(x).reshape(*setup.batch, *x.shape[1:])

    overall, message = _words(ends.statuses, ends.messages, times)
    message += _saturation(arm, tau) if overall in ("finished", "limit") else ""
    messages = np.array(ends.messages, dtype=object).reshape(setup.batch)
    return Trajectory(
        arm, times, shaped(q), shaped(qd), shaped(qdd), shaped(tau), shaped(energy),
        overall, message, stepper.taken, ends.statuses.reshape(setup.batch), ends.times.reshape(setup.batch), messages,
        stepper.source.signals(),
    )  # fmt: skip


def _words(statuses: np.ndarray, messages: list[str], times: np.ndarray) -> tuple[str, str]:
    """One status and one sentence for all lanes."""
    kinds = [
        kind for kind in ("interrupted", UNSTABLE, UNSTABLE_LOOP, "diverged", "stalled", "limit") if kind in statuses
    ]
    if not kinds:
        return "finished", next((message for message in messages if message), f"reached t = {times[-1]:.6g} s")
    first = int(np.flatnonzero(statuses == kinds[0])[0])
    message = messages[first] or f"{kinds[0]} at t = {times[-1]:.6g} s"
    if len(statuses) > 1:
        counts = ", ".join(f"{int(np.sum(statuses == kind))} {kind}" for kind in kinds)
        message = f"{counts} of {len(statuses)} lanes; the first: {message}"
    return kinds[0], message


def _saturation(arm: Arm, tau: np.ndarray) -> str:
    """Which joints were at their torque limits, and for how large a part of the time; "" if none was."""
    most, own = arm.effort_limits, tau[..., tau.shape[-1] - arm.n :]
    if not own.size:  # a floating body without joints, or an empty batch
        return ""
    full = (most > 0) & (np.abs(np.abs(own) - most) <= 1e-9 * np.where(np.isfinite(most), most, 0))
    shares = full.reshape(-1, arm.n).mean(axis=0)
    said = [f"{name} {100 * part:.2g} %" for name, part in zip(arm.joint_names, shares, strict=True) if part > 0]
    return f"; torques saturated, part of the time: {', '.join(said)}" if said else ""


def _adaptive(setup: Setup, stepper: Stepper, solver: adaptive.Solver) -> Trajectory:
    """One lane after the other; Ctrl-C ends them all."""
    count, size = setup.state.shape
    states = np.full((count, len(setup.times), size), np.nan)
    states[:, 0] = setup.state
    ends = Ends.of(count, size, "interrupted", float(setup.times[-1]))
    reached = setup.times

    def watch(y: np.ndarray) -> float:
        q = setup.joints(y)
        return float(np.min(np.minimum(q - setup.bounds[:, 0], setup.bounds[:, 1] - q)))

    for lane, y0 in enumerate(setup.state):
        one = stepper.some(np.array([lane]))

        def right(t: float, y: np.ndarray, one: Stepper = one) -> np.ndarray:
            y = setup.layout.normalised(y)
            qdd, _ = one.rates(np.array([t]), y[None, None])
            return setup.layout.slope(y, np.asarray(qdd)[0, 0])

        def tick(t: float, lane: int = lane) -> None:
            setup.progress(lane + (t - setup.times[0]) / np.ptp(setup.times), count)

        motion: Any = adaptive.Phase(one, breakaway(setup.arm.chain, one.options)) if one.sticks else right
        t, y, status, message = solver.run(motion, y0, setup.times, watch if setup.limited else None, tick)
        if status == "diverged" and one.source.faults:
            message = one.source.faults[0][1]
        if status == "limit":
            message = met_limit(setup.joint_beyond(y[-1]), t[-1])
        ends.statuses[lane], ends.messages[lane], ends.times[lane] = status, message, t[-1]
        y = setup.layout.normalised(y)  # the solver keeps quaternions only to its tolerance
        if count == 1:
            states, reached = y[None], t
        else:
            keep = np.isin(t, setup.times)
            states[lane, : keep.sum()] = y[keep]
        if status == "interrupted":
            break
    return _trajectory(setup, stepper, reached, states, ends)
