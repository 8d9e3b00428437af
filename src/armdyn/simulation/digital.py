"""Controllers that are called once per control period, and models of the motors and sensors around them.

The controller is called every `period`. It gets the joint positions in whole encoder counts and velocities as their
differences, or both with noise. Its torques are clamped to the motors' limits, limited in rate, applied after `delay`
and held until the next. Between two changes of the torque the compiled loop takes its steps. `Digital` is a control law
with internal state, and observers; all their outputs and states are recorded.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from armdyn.arm import Arm
from armdyn.chain import Chain
from armdyn.codegen.compile import load_or_compile
from armdyn.control import Controller
from armdyn.errors import InputError
from armdyn.graph.program import trace
from armdyn.simulation.drives import AsGiven, Drive, Faults, Reference, asked_torque, drive, note_faults, source_of
from armdyn.simulation.judge import DEVIATION, Linear, examined, linearised
from armdyn.simulation.request import Layout, Span, force_rows, forces_of, positive
from armdyn.simulation.sampled_loop import SampledLoop, Timing, judged
from armdyn.simulation.stepper import LawTorques, Signals, Stepper, Stored, stages
from armdyn.values import cached_property

Torque = Callable[..., Any]
SWINGS = 3  # reversals of a torque at its rate limit that make an oscillation
GROWN = 1.2  # how much faster such a joint is in the second half of a run, if its oscillation grows
FINEST = Fraction(1, 10**6)  # s: the shortest step that an automatic choice takes for period and delay


@dataclass(frozen=True)
class Actuators:
    """Motors and sensors: control period and delay in seconds, largest torque rate per second, encoder resolution.

    What is not given is ideal; without a period the controller is called at every integration step. `rate`, `encoder`
    (rad or m per count) and the standard deviations of the noise on positions, velocities and measured torques are one
    number or one per joint. With an encoder, velocities are differences of its counts, without velocity noise. The same
    `seed` gives the same noise.
    """

    period: float | None = None
    delay: float = 0.0
    rate: Any = None
    encoder: Any = None
    position_noise: Any = None
    velocity_noise: Any = None
    torque_noise: Any = None
    seed: int = 0

    def checked(self, n: int, h: float) -> tuple[int, int, np.ndarray | None, np.ndarray | None]:
        """(steps per period, steps of delay, rate, encoder), checked against the step."""
        ticks = 1 if self.period is None else _steps(positive(self.period, "period", " of seconds"), h, "period")
        late = 0 if self.delay == 0 else _steps(positive(self.delay, "delay", " of seconds"), h, "delay")
        return ticks, late, _numbers(self.rate, n, "rate"), _numbers(self.encoder, n, "encoder")

    def longest_step(self, most: float) -> float:
        """The longest step up to `most` of which period and delay are whole numbers."""
        grid = Fraction(0)
        for name, seconds in (("period", self.period), ("delay", self.delay or None)):
            if seconds is not None:
                exact = Fraction(repr(positive(seconds, name, " of seconds")))
                grid = exact if not grid else Fraction(
                    math.gcd(grid.numerator * exact.denominator, exact.numerator * grid.denominator),
                    grid.denominator * exact.denominator,
                )  # fmt: skip
        if not grid:
            return most
        if grid < FINEST:
            raise InputError(
                f"the actuators' period of {self.period:g} s and delay of {self.delay:g} s are whole numbers of no "
                f"step above {float(FINEST):g} s"
            )
        return float(grid / math.ceil(grid / Fraction(repr(most))))

    def noises(self, n: int) -> tuple[np.ndarray, ...]:
        """Standard deviations of positions, velocities and torques, 0 where there is no noise."""
        names = ("position_noise", "velocity_noise", "torque_noise")
        deviations = (_numbers(getattr(self, name), n, name) for name in names)
        return tuple(np.zeros(n) if one is None else one for one in deviations)


def _steps(seconds: float, h: float, name: str) -> int:
    count = round(seconds / h)
    if count < 1 or abs(count * h - seconds) > 1e-6 * seconds:
        raise InputError(f"the actuators' {name} must be a whole number of steps of {h:g} s, got {seconds:g} s")
    return count


def _numbers(value: Any, n: int, name: str) -> np.ndarray | None:
    if value is None:
        return None
    numbers = np.asarray(value, float)
    if numbers.shape not in ((), (n,)) or not np.all(numbers > 0):
        raise InputError(f"the actuators' {name} must be one positive number or {n}, got {value!r}")
    return np.broadcast_to(numbers, (n,))


def law_function(chain: Chain, drive: Drive) -> Torque:
    """A compiled drive as a function of (t, q, qd)."""
    size = max(drive.size, 1)

    def law(q: Any, qd: Any, u: Any) -> Any:
        return forces_of(chain, drive.law(chain, q, qd, u[: drive.size]))

    def make() -> Any:
        return trace("law", law, {"q": (chain.nq,), "qd": (chain.nv,), "u": (size,)}, [("tau", (chain.nv,))])

    kernel = load_or_compile(("law", chain, drive.law, source_of(drive.law), drive.size), make)
    assert kernel is not None

    def torque(t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        u = drive.inputs(np.array([[t]]))
        u = u[..., 0, 0, :] if u.ndim > 1 else u
        return np.asarray(kernel(q, qd, u if u.shape[-1] else np.zeros(1)))

    return torque


@dataclass(frozen=True)
class HeldTorques:
    """The torques of a controller that is called at its own rate, and whose torques are held in between."""

    chain: Chain
    torque: Torque
    actuators: Actuators
    effort: tuple[float | None, ...] | None
    batch: tuple[int, ...]
    step: float  # of the integration, s; a last step may be shorter
    digital: bool = False  # the controller also gets the applied torques and its period
    stiffness: tuple[np.ndarray, np.ndarray] | None = None  # and damping per velocity, of a law that has them
    answer: Torque | None = None  # the law without its limits, where it may be evaluated at states that did not occur
    applied: list[tuple[float, np.ndarray]] = field(default_factory=list)  # start time and torques (count, n)
    clocks: list[_Clock] = field(default_factory=list)  # of the run, once it has begun
    faults: Faults = field(default_factory=dict)

    law = AsGiven()  # so held torques have no stiffness
    silent = False
    jumps = True

    @property
    def size(self) -> int:
        """The torques are the law's inputs."""
        return self.chain.nv

    @cached_property
    def most(self) -> np.ndarray:
        """The motors' limits."""
        return np.array([np.inf if x is None else x for x in self.effort or (None,) * self.chain.nv])

    def inputs(self, t: np.ndarray, state: np.ndarray) -> np.ndarray:
        """The torques that were applied; at a jump those after it."""
        return self._replayed().inputs(t, state)

    def some(self, lanes: np.ndarray) -> LawTorques:
        """The torques that were applied to some lanes."""
        return self._replayed().some(lanes)

    def repeatable(self, lanes: np.ndarray, row: int) -> LawTorques:
        """The same: they are known at every time."""
        return self.some(lanes)

    def _replayed(self) -> LawTorques:
        """The torques that were applied, as a function of time; none before the run."""
        if not self.applied:
            return LawTorques(Drive(self.chain.nv, lambda t: np.zeros((*t.shape, self.chain.nv)), AsGiven()))
        times = np.array([t for t, _ in self.applied])
        values = np.stack([tau for _, tau in self.applied], axis=1)

        def inputs(t: np.ndarray) -> np.ndarray:
            index = np.clip(np.searchsorted(times, t + 1e-12, side="right") - 1, 0, len(times) - 1)
            u: np.ndarray = values[:, index]
            return u

        return LawTorques(Drive(self.chain.nv, inputs, AsGiven(), batch=(values.shape[0],), held=True))

    def reported(self, stepper: Stepper, t: np.ndarray, state: np.ndarray) -> Stored:
        """(acceleration, torque) at the rows; at a jump of the torques, those after it."""
        return stepper.rates(t, state)

    def signals(self) -> Signals:
        """What a digital controller and its observers recorded."""
        return self.torque.signals() if isinstance(self.torque, Running) else {}

    @property
    def timing(self) -> Timing:
        """When the controller's torques act."""
        period = self.step if self.actuators.period is None else self.actuators.period
        return Timing(period, self.actuators.delay, self.actuators.encoder is not None)

    def unstable_loop(self, stepper: Stepper, lane: int, times: np.ndarray, states: np.ndarray, early: bool) -> str:
        """What is wrong if the controller is too slow for its gains, or its motors never catch up with it."""
        known = self._loops(stepper, lane, times, states, early)
        loops, moments = [loop for _, loop in known], np.array([t for t, _ in known])
        verdict = judged(moments, loops, self.timing, float(times[-1]), early)
        speeds = states[lane, :, -self.chain.nv :]
        return verdict.words(self.timing) if verdict else self._chases_its_rate(lane, speeds)

    def _loops(
        self, stepper: Stepper, lane: int, times: np.ndarray, states: np.ndarray, early: bool
    ) -> list[tuple[float, SampledLoop]]:
        """The sampled loop about some states of one lane; `states` are (count, times, size)."""
        answer = self.answer or (self.torque if early and not self.digital else None)
        one, loops = stepper.some(np.array([lane])), []
        if answer is None:
            return []
        rows = {*examined(len(times), early).tolist(), *examined(len(times), False).tolist()}
        for row in sorted(rows):
            t, there = float(times[row]), states[:, row]
            there = np.where(np.isfinite(there).all(axis=1, keepdims=True), there, there[lane])
            linear = linearised(one, t, there[lane])
            if linear is not None:
                loops.append((t, self._loop_about(stepper.layout, answer, t, there, lane, linear)))
        return loops

    def _loop_about(
        self, layout: Layout, answer: Torque, t: float, states: np.ndarray, lane: int, linear: Linear
    ) -> SampledLoop:
        """The linearised law beside the linearised arm."""
        chain, n = self.chain, self.chain.nv
        gains = np.zeros((n, 2 * n))
        for j in range(2 * n):
            shift = np.zeros((1, 2 * n))
            shift[0, j] = DEVIATION
            ends = []
            for sign in (1.0, -1.0):
                moved = np.vstack([layout.moved(y, sign * shift) for y in states])
                ends.append(asked_torque(chain, answer, t, *layout.split(moved), self.batch)[lane])
            gains[:, j] = (ends[0] - ends[1]) / (2 * DEVIATION)
        moving, m = linear.moving, len(linear.moving)
        columns = np.concatenate([moving, n + moving])
        proportional = np.hstack([-np.diag(x) for x in self.stiffness]) if self.stiffness is not None else gains
        B = np.vstack([np.zeros((m, m)), linear.inverse])
        rows = np.ix_(moving, columns)
        return SampledLoop(linear.J, B, gains[rows], np.asarray(proportional)[rows])

    def _chases_its_rate(self, lane: int, speeds: np.ndarray) -> str:
        """A message if the torque rate limit makes a joint swing more and more; `speeds` are (times, nv)."""
        if self.actuators.rate is None or len(self.applied) < 8 or len(speeds) < 8:
            return ""
        n = self.chain.n
        most = np.broadcast_to(np.asarray(self.actuators.rate, float), (n,)) * self.timing.period
        changes = np.diff(np.stack([tau[lane, -n:] for _, tau in self.applied]), axis=0)
        limited = np.abs(changes) >= most * (1 - 1e-9)
        early, later = (np.abs(part[:, -n:]).max(axis=0) for part in np.array_split(speeds, 2))
        for i, joint in enumerate(self.chain.joints[k] for k in self.chain.independent):
            turns = np.count_nonzero(np.diff(np.sign(changes[limited[:, i], i])))
            if limited[:, i].mean() > 0.5 and turns >= SWINGS and later[i] > GROWN * early[i]:
                return (
                    f"the sampled control loop is unstable: {joint.name or f'joint {i + 1}'} swings more and more, "
                    f"because its torque rate limit of {most[i] / self.timing.period:.4g} per second is met in "
                    f"{limited[:, i].mean():.0%} of the control periods, in both directions; lower gains or a higher "
                    "rate would do"
                )
        return ""

    def run(self, stepper: Stepper, state: np.ndarray, span: Span, method: str) -> Iterator[Stored]:
        """Stored states (count, 1, size) and whether all was well until then, one row at a time."""
        rest = span.rows == span.every == 1 and span.h < self.step  # at the end of a run, after whole steps
        h = self.step if rest else span.h
        ticks, late, _, _ = self.actuators.checked(self.chain.n, h)
        if not self.clocks:
            controller = _BehindMotors(self, Motors.of(self.actuators, self.chain, h, self.most))
            self.clocks.append(_Clock(controller, span.t, np.zeros((len(state), self.chain.nv))))
        clock, loop = self.clocks[0], stepper.loop(method)
        good = np.ones(len(state), dtype=bool)
        history = np.zeros((len(state), 0, state.shape[1]))
        offsets = span.h * stages(method)
        for k in range(span.rows * span.every):
            t = span.t + k * span.h
            if clock.acts(t, state, h, ticks, late):
                self.applied.append((t, clock.acting))
            clock.acted.append(clock.acting)
            u = stepper.with_outside(clock.acting[:, None, None], (t + offsets)[None])
            state = loop.run(state, 1, span.h, u, history)[1]
            good &= stepper.all_inside(state)
            if (k + 1) % span.every == 0:
                yield state[:, None].copy(), good[:, None].copy()
                good = np.ones(len(state), dtype=bool)


@dataclass
class _Clock:
    """When the controller is called and when its torques act."""

    controller: _BehindMotors
    due: float  # the time of the next call
    acting: np.ndarray
    waiting: list[tuple[float, np.ndarray]] = field(default_factory=list)  # when they will act, and torques
    acted: list[np.ndarray] = field(default_factory=list)  # the torques of the last period, step by step

    def acts(self, t: float, state: np.ndarray, h: float, ticks: int, late: int) -> bool:
        """Call the controller if it is due; whether other torques act from now on."""
        soon = t + 1e-6 * h
        if self.due <= soon:  # the first command acts without delay, as if issued before the start
            measured = np.mean(self.acted, axis=0) if self.acted else None
            first = self.controller.motors.last is None
            self.waiting.append((t if first else self.due + late * h, self.controller.command(t, state, measured)))
            self.acted = []
            self.due += ticks * h
        changed = False
        while self.waiting and self.waiting[0][0] <= soon:
            self.acting, changed = self.waiting.pop(0)[1], True
        return changed


@dataclass
class Motors:
    """Sensors and motors during a run, for states (count, size) and torques (count, nv)."""

    chain: Chain
    most: np.ndarray  # the effort limits
    rate: np.ndarray | None
    encoder: np.ndarray | None
    period: float
    noises: tuple[np.ndarray, ...]
    rng: np.random.Generator
    seen: np.ndarray | None = None  # positions at the last reading
    reading: tuple[np.ndarray, np.ndarray] | None = None  # of this control period
    last: np.ndarray | None = None  # the last torques

    @classmethod
    def of(cls, actuators: Actuators, chain: Chain, h: float, most: np.ndarray) -> Motors:
        """The motors at the start of a run with steps of h."""
        ticks, _, rate, encoder = actuators.checked(chain.n, h)
        rng = np.random.default_rng([actuators.seed, 0])
        return cls(chain, most, rate, encoder, ticks * h, actuators.noises(chain.n), rng)

    def copy(self) -> Motors:
        """The same, to go on from here a second time."""
        return replace(self, rng=copy.deepcopy(self.rng))

    def noisy(self, value: np.ndarray, deviation: np.ndarray) -> np.ndarray:
        """The value with measurement noise."""
        return value + deviation * self.rng.standard_normal(value.shape) if deviation.any() else value

    def read(self, state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Positions and velocities as measured, once per control period; a floating base is measured exactly."""
        if self.reading is None:
            q, qd = (np.array(x) for x in Layout.of(self.chain).split(state))
            joints, speeds = (x[:, x.shape[1] - self.chain.n :] for x in (q, qd))
            joints[:], speeds[:] = self.noisy(joints, self.noises[0]), self.noisy(speeds, self.noises[1])
            if self.encoder is not None:
                joints[:] = np.round(joints / self.encoder) * self.encoder
                speeds[:] = 0.0 if self.seen is None else (joints - self.seen) / self.period
                self.seen = joints
            self.reading = q, qd
        return self.reading

    def limited(self, tau: np.ndarray) -> np.ndarray:
        """The torques that the motors give for a command."""
        tau = np.clip(tau, -self.most, self.most)
        if self.rate is not None and self.last is not None:
            change = force_rows(self.chain, self.rate * self.period)
            change[: self.chain.nv - self.chain.n] = np.inf
            tau = np.clip(tau, self.last - change, self.last + change)
        self.last = np.asarray(tau)
        return self.last


@dataclass
class _BehindMotors:
    """The controller behind its sensors and motors."""

    source: HeldTorques
    motors: Motors

    def command(self, t: float, state: np.ndarray, acted: np.ndarray | None) -> np.ndarray:
        """The torques (count, nv) for states (count, size); `acted` are those of the last period, None at the start."""
        motors, chain = self.motors, self.motors.chain
        motors.reading = None
        q, qd = motors.read(state)
        function, batch = self.source.torque, self.source.batch
        if self.source.digital:
            measured = None if acted is None else motors.noisy(acted[:, -chain.n :], motors.noises[2])
            own = None if measured is None else measured.reshape(*batch, chain.n)
            function = partial(function, tau=own, dt=motors.period)
        tau = motors.limited(asked_torque(chain, function, t, q, qd, batch))
        note_faults(self.source.faults, chain, tau, t, q, qd)
        return tau


@dataclass(frozen=True, eq=False)
class Digital:
    """A controller that is called once per control period, with observers.

    Parameters
    ----------
    control : armdyn.control.Controller, or anything else that `simulate` takes as torque
        The controller that drives the joints.
    reference : Reference, posture or function, optional
        The reference of the control law: a joint motion, n numbers, or a function of t that returns the law's
        references by name. By default the initial posture. A law in task space gets the tool's pose along the motion.
    observers : sequence of armdyn.control.Controller
        Laws that only observe.
    memory : mapping, optional
        Initial values of entries of the control law's memory, by name, in place of the defaults.
    """

    control: Any
    reference: Any = None
    observers: Sequence[Controller] = ()
    memory: Mapping[str, Any] = field(default_factory=dict)

    def running(self, arm: Arm) -> Running:
        """The controller at the start of a run on an arm."""
        laws = [*((self.control,) if isinstance(self.control, Controller) else ()), *self.observers]
        for law in laws:
            if not isinstance(law, Controller):
                raise InputError(f"an observer is made with armdyn.controller(...), got {law!r}")
            if law.arm.n != arm.n:
                raise InputError(f"{law!r} is for {law.arm.n} joints, {arm.name} has {arm.n}")
        names = [law.law.name for law in laws]
        if len(set(names)) < len(names):
            raise InputError(f"controllers and observers must differ, got {', '.join(names)}")
        return Running(self, arm, None if isinstance(self.control, Controller) else _function(arm, self.control))


def _function(arm: Arm, control: Any) -> Callable[..., Any]:
    driven = drive(arm.chain, control)
    function: Callable[..., Any] = control if driven is None else law_function(arm.chain, driven)
    return function


@dataclass(eq=False)
class Running:
    """A digital controller during a run, with its memory and the recorded signals."""

    digital: Digital
    arm: Arm
    function: Callable[..., Any] | None
    first: np.ndarray | None = None
    memories: dict[str, dict[str, np.ndarray]] = field(default_factory=dict)
    recorded: dict[str, list[tuple[float, dict[str, np.ndarray]]]] = field(default_factory=dict)

    def __call__(self, t: float, q: np.ndarray, qd: np.ndarray, tau: np.ndarray | None, dt: float) -> Any:
        """The torques at a time; `tau` are those applied in the last period, None at the start."""
        if self.first is None:
            self.first = q
        for observer in self.digital.observers:
            self._asked(observer, t, {"q": q, "qd": qd, "tau": tau}, dt)
        control = self.digital.control
        if self.function is not None:
            return self.function(t, q, qd)
        given = {"q": q, "qd": qd, "tau": np.zeros_like(q) if tau is None else tau, **self._references(control, t)}
        return self._asked(control, t, given, dt)["tau"]

    @property
    def pure(self) -> bool:
        """Whether the law may be evaluated at any state: its memory is kept here, not inside a function."""
        return self.function is None

    def answer(self, t: float, q: np.ndarray, qd: np.ndarray, dt: float) -> Any:
        """The torques at other states with the memory that the law had at time t; nothing is recorded."""
        if self.function is not None:
            return self.function(t, q, qd)
        law: Controller = self.digital.control
        rows = [row for row in self.recorded.get(law.law.name, []) if row[0] < t - 1e-9 * max(1.0, abs(t))]
        kept = {entry.name for entry in law.law.memory}
        measured = {"q": q, "qd": qd, "tau": np.zeros_like(q)}
        start = law.start(**{entry.name: measured[entry.name] for entry in law.law.starts_from
                             if entry.name in measured}) if law.law.memory else {}  # fmt: skip
        memory = {name: x for name, x in rows[-1][1].items() if name in kept} if rows else start
        given = {**measured, **self._references(law, t)}
        reads = {entry.name: given[entry.name] for entry in (*law.law.measured, *law.law.reference)}
        return law.step(memory, dt=dt, **reads)[0]["tau"]

    def _asked(self, law: Controller, t: float, given: dict[str, Any], dt: float) -> dict[str, np.ndarray]:
        """One recorded step of a law; observers have no output before the first period has passed."""
        measured = {entry.name: given[entry.name] for entry in law.law.measured}
        if law.law.name not in self.memories:
            still = {name: np.zeros_like(given["q"]) if value is None else value for name, value in measured.items()}
            changed = self.digital.memory if law is self.digital.control else {}
            self.memories[law.law.name] = {**law.start(**still), **changed}
        if any(value is None for value in measured.values()):
            return {}
        reads = {entry.name: given[entry.name] for entry in (*law.law.measured, *law.law.reference)}
        outputs, memory = law.step(self.memories[law.law.name], dt=dt, **reads)
        self.memories[law.law.name] = memory
        self.recorded.setdefault(law.law.name, []).append((t, {**memory, **outputs}))
        return outputs

    def _references(self, law: Controller, t: float) -> Mapping[str, Any]:
        wanted, reference = [entry.name for entry in law.law.reference], self.digital.reference
        if not wanted:
            return {}
        if callable(reference) and not isinstance(reference, Reference):
            given: Mapping[str, Any] = reference(t)
            missing = [name for name in wanted if name not in given]
            if missing:
                raise InputError(
                    f"{law.law.name} follows {', '.join(wanted)}; the reference lacks {', '.join(missing)}"
                )
            return given
        if isinstance(reference, Reference):
            q, qd, qdd = reference(t)
        else:
            q = np.asarray(self.first if reference is None else reference, float)
            qd = qdd = np.zeros_like(q)
        joints = {"q_ref": q, "qd_ref": qd, "qdd_ref": qdd}
        return joints if set(wanted) <= set(joints) else {**joints, **tool_reference(law.model, q, qd, qdd)}

    def signals(self) -> Signals:
        """The recorded signals by law and name: t (times,), the others (..., times, *shape)."""
        found: Signals = {}
        for name, rows in self.recorded.items():
            found[name] = {"t": np.array([t for t, _ in rows])}
            for key, value in rows[0][1].items():
                batch = value.ndim - self._ranks(name)[key]
                found[name][key] = np.stack([row[key] for _, row in rows], axis=batch)
        return found

    def _ranks(self, name: str) -> dict[str, int]:
        laws = [self.digital.control, *self.digital.observers]
        law = next(one.law for one in laws if isinstance(one, Controller) and one.law.name == name)
        return {entry.name: len(entry.shape) for entry in (*law.memory, *law.outputs)}


def tool_reference(arm: Arm, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> dict[str, np.ndarray]:
    """The tool's pose, twist and acceleration along a motion of the joints."""
    J, rate = np.asarray(arm.jacobian(q)), np.asarray(arm.jacobian_rate(q, qd))
    twist = (J @ qd[..., None])[..., 0]
    acceleration = (J @ qdd[..., None] + rate @ qd[..., None])[..., 0]
    return {"pose_ref": np.asarray(arm.pose(q)), "twist_ref": twist, "acceleration_ref": acceleration}
