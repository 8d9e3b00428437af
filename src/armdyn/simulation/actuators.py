"""Models of motors and sensors: control period, delay, torque rate limit, encoder resolution and noise.

The controller is called every `period`. It gets the joint positions in whole encoder counts and velocities as their
differences, or both with noise. Its torques are clamped to the motors' limits, limited in rate, applied after `delay`
and held until the next. Between two changes of the torque the compiled loop takes its steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from armdyn.algebra.cached import cached_property
from armdyn.chain import Chain
from armdyn.codegen.compile import load_or_compile
from armdyn.errors import InputError
from armdyn.graph.program import trace
from armdyn.simulation.fixed import Stepper, loop_of
from armdyn.simulation.request import Span, positive
from armdyn.simulation.state import force_rows, forces_of
from armdyn.simulation.torque import AsGiven, Drive, asked_torque, source_of

Torque = Callable[..., Any]


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

    def noises(self, n: int) -> tuple[np.ndarray, ...]:
        """Standard deviations of positions, velocities and torques, 0 where there is no noise."""
        names = ("position_noise", "velocity_noise", "torque_noise")
        found = (_numbers(getattr(self, name), n, name) for name in names)
        return tuple(np.zeros(n) if one is None else one for one in found)


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
class HeldStepper:
    """An arm whose controller is called at its own rate; `idle` steps it under given torques."""

    idle: Stepper
    torque: Torque
    actuators: Actuators
    effort: tuple[float | None, ...] | None
    batch: tuple[int, ...]
    digital: bool = False  # the controller also gets the applied torques and its period
    applied: list[tuple[float, np.ndarray]] = field(default_factory=list)  # start time and torques (count, n)

    silent = False

    @property
    def options(self) -> Any:
        """The forces that act besides the torques."""
        return self.idle.options

    @property
    def taken(self) -> str:
        """The method used: a multistep method would need torques without jumps."""
        return "RK4" if self.idle.method == "AB4" else self.idle.method

    @property
    def method(self) -> str:
        """The same."""
        return self.taken

    def inertia(self, q: np.ndarray) -> np.ndarray:
        """H of postures (..., nq)."""
        return self.idle.inertia(q)

    def gains(self) -> tuple[np.ndarray, ...]:
        """Held torques have no stiffness."""
        return self.idle.gains()

    @cached_property
    def most(self) -> np.ndarray:
        """The motors' limits."""
        return np.array([np.inf if x is None else x for x in self.effort or (None,) * self.idle.chain.nv])

    def some(self, lanes: np.ndarray) -> Stepper:
        """Some lanes, under the torques that were applied to them."""
        return (self._replayed() if self.applied else self.idle).some(lanes)

    def _replayed(self) -> Stepper:
        times = np.array([t for t, _ in self.applied])
        values = np.stack([tau for _, tau in self.applied], axis=1)

        def inputs(t: np.ndarray) -> np.ndarray:
            index = np.clip(np.searchsorted(times, t + 1e-12, side="right") - 1, 0, len(times) - 1)
            u: np.ndarray = values[:, index]
            return u

        drive = replace(self.idle.drive, inputs=inputs, batch=(values.shape[0],), held=True)
        return replace(self.idle, drive=drive)

    def reported(self, t: np.ndarray, state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(acceleration, torque) at the rows; at a jump of the torques, those after it."""
        return self._replayed().rates(t, state)

    def run(self, state: np.ndarray, span: Span, method: str | None = None) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Stored states (count, 1, size) and whether all was well until then, one row at a time."""
        ticks, late, rate, encoder = self.actuators.checked(self.idle.chain.n, span.h)
        rng = np.random.default_rng([self.actuators.seed, len(self.applied)])
        controller = _Asked(self, rate, encoder, ticks * span.h, self.actuators.noises(self.idle.chain.n), rng)
        loop = loop_of(
            self.idle.chain, AsGiven(), self.idle.chain.nv, self.idle.options, method or self.taken, self.idle.stops
        )
        waiting: list[tuple[int, np.ndarray]] = []
        acting = np.zeros((len(state), self.idle.chain.nv))
        good = np.ones(len(state), dtype=bool)
        acted = [self.applied[-1][1]] if self.applied else []  # the torques of the last period, step by step
        for k in range(span.rows * span.every):
            t = span.t + k * span.h
            if k % ticks == 0:  # the first command acts without delay, as if issued before the start
                measured = np.mean(acted, axis=0) if acted else None
                waiting.append((k + late if k else 0, controller.command(t, state, measured)))
                acted = []
            while waiting and waiting[0][0] <= k:
                acting = waiting.pop(0)[1]
                self.applied.append((t, acting))
            acted.append(acting)
            u = acting if self.idle.wrench is None else self._with_wrench(acting)
            history = np.zeros((len(state), 0, state.shape[1]))
            state = loop.run(state, 1, span.h, u[:, None, None], history)[1]
            good &= self.idle.inside(state) if self.idle.inside else np.all(np.isfinite(state), axis=1)
            if (k + 1) % span.every == 0:
                yield state[:, None].copy(), good[:, None].copy()
                good = np.ones(len(state), dtype=bool)

    def _with_wrench(self, tau: np.ndarray) -> np.ndarray:
        assert self.idle.wrench is not None
        return np.hstack([tau, np.broadcast_to(self.idle.wrench.reshape(-1, 6), (len(tau), 6))])


@dataclass
class _Asked:
    """The controller with its sensors and motors."""

    stepper: HeldStepper
    rate: np.ndarray | None
    encoder: np.ndarray | None
    period: float
    noises: tuple[np.ndarray, ...]
    rng: np.random.Generator
    seen: np.ndarray | None = None  # positions at the last call
    last: np.ndarray | None = None  # torques of the last call

    def noisy(self, value: np.ndarray, deviation: np.ndarray) -> np.ndarray:
        """The value with measurement noise."""
        return value + deviation * self.rng.standard_normal(value.shape) if deviation.any() else value

    def command(self, t: float, state: np.ndarray, acted: np.ndarray | None) -> np.ndarray:
        """The torques (count, nv) for states (count, size); `acted` are those of the last period, None at the start."""
        chain, most = self.stepper.idle.chain, self.stepper.most
        q, qd = (np.array(x) for x in self.stepper.idle.layout.split(state))
        joints, speeds = (
            x[:, x.shape[1] - chain.n :] for x in (q, qd)
        )  # the state of a floating base is measured exactly
        joints[:], speeds[:] = self.noisy(joints, self.noises[0]), self.noisy(speeds, self.noises[1])
        if self.encoder is not None:
            joints[:] = np.round(joints / self.encoder) * self.encoder
            speeds[:] = 0.0 if self.seen is None else (joints - self.seen) / self.period
            self.seen = joints
        function, batch = self.stepper.torque, self.stepper.batch
        if self.stepper.digital:
            own = None if acted is None else self.noisy(acted[:, -chain.n :], self.noises[2]).reshape(*batch, chain.n)
            function = partial(function, tau=own, dt=self.period)
        tau = np.clip(asked_torque(chain, function, t, q, qd, batch), -most, most)
        if self.rate is not None and self.last is not None:
            change = force_rows(chain, self.rate * self.period)
            change[: chain.nv - chain.n] = np.inf
            tau = np.clip(tau, self.last - change, self.last + change)
        self.last = np.asarray(tau)
        return self.last
