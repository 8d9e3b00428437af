"""Fixed-step integration with the whole loop compiled: no Python in a step, one lane per state."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Protocol

import numpy as np

from armdyn.algebra.frozen import cached_property
from armdyn.arm import Arm
from armdyn.chain import Chain
from armdyn.codegen.compile import Compiled, load_or_compile
from armdyn.graph.program import Program
from armdyn.kernels.kernel import Kernel
from armdyn.programs.assemble import Options
from armdyn.programs.stepping import ARK4, SCHEMES, combined
from armdyn.simulation.drives import AsGiven, Drive, Law, Saturated, asked_torque, source_of
from armdyn.simulation.integrator import Integrator
from armdyn.simulation.programs import Plants, Varying, closed_loop, frictions, has_dry_friction, lockable_loop
from armdyn.simulation.request import Layout, Locks, Span, Stops, forces_of
from armdyn.simulation.step import BLOCK_PIVOTS, PIVOTS

WORK = 200_000  # steps of single states per call, between which Ctrl-C and progress are handled
INSET = 1e-4  # of a step: more than rounding, so that a stage stays within the interval of a held value

Inside = Callable[[np.ndarray], np.ndarray]


def _stage_times(method: str, held: bool) -> np.ndarray:
    """The stages' times as fractions of a step; inside the step where held samples must stay held."""
    c = np.array([float(x) for x in SCHEMES[method].nodes])
    return np.clip(c, INSET, 1 - INSET) if held else c


@lru_cache(maxsize=64)
def rates_of(
    chain: Chain,
    law: Law,
    size: int,
    options: Options,
    can_lock: tuple[bool, ...] | None,
    varying: Varying | None = None,
) -> Compiled:
    """The accelerations and torques of states, compiled; with `can_lock` in modes that are given with them."""

    def make() -> Program:
        if can_lock:
            return lockable_loop(chain, law, size, options, False, can_lock, varying)
        return closed_loop(chain, law, size, options, True, varying)

    found = load_or_compile(("closed loop", chain, law, source_of(law), size, options, can_lock, varying), make)
    assert found is not None  # an arm without joints is refused before
    return found


@lru_cache(maxsize=64)
def loop_of(
    chain: Chain,
    law: Law,
    size: int,
    options: Options,
    method: str,
    stops: Stops | None = None,
    varying: Varying | None = None,
) -> Integrator:
    """The method's loop over steps, compiled."""
    implicit = method == ARK4.name
    locks = locks_of(chain, law, options, stops, varying)
    if implicit and isinstance(law, Saturated):
        law = law.law  # the stages find the saturated motors themselves
    if not implicit and not stops and not has_dry_friction(chain, options, varying):
        asked: tuple[Any, ...] = ("closed loop", chain, law, source_of(law), size, options, varying)
        return Integrator(asked, lambda: closed_loop(chain, law, size, options, False, varying), SCHEMES[method])
    staged, can_lock = implicit or stops is not None, lockable_joints(locks)
    asked = ("lockable loop", chain, law, source_of(law), size, options, staged, can_lock, varying)

    def make() -> Program:
        return lockable_loop(chain, law, size, options, staged, can_lock, varying)

    return Integrator(asked, make, SCHEMES[method], locks)


def locks_of(
    chain: Chain, law: Law, options: Options, stops: Stops | None = None, varying: Varying | None = None
) -> Locks:
    """The joint data that a loop needs."""
    viscous = tuple(float(friction.viscous) if options.friction else 0.0 for friction in frictions(chain))
    effort = law.effort if isinstance(law, Saturated) else (None,) * chain.nv
    inner, none = law.law if isinstance(law, Saturated) else law, (0.0,) * chain.nv
    stiffness, damping = (tuple(forces_of(chain, getattr(inner, name, none))) for name in ("stiffness", "damping"))
    if varying is None or not varying.friction:
        return Locks(tuple(breakaway(chain, options).tolist()), stiffness, damping, viscous, effort, stops)
    sizes = varying.sizes(chain)
    friction_at = sizes["inertial"] + sizes["gravity"] if options.friction else None
    dry = tuple(float(able and options.friction) for able in varying.dry)
    excess = tuple(float(f.breakaway - joint.coulomb) for f, joint in zip(frictions(chain), chain.joints, strict=True))
    return Locks(dry, stiffness, damping, viscous, effort, stops, friction_at, excess)


@lru_cache(maxsize=64)
def _inertia_matrix(chain: Chain) -> Kernel:
    return Kernel(chain, "inertia_matrix")


def lockable_joints(locks: Locks) -> tuple[bool, ...]:
    """The joints that can be held at rest."""
    return tuple(locks.can_lock(i) for i in range(len(locks.breakaway)))


@dataclass(frozen=True)
class Stepper:
    """An arm under a drive, ready to be stepped by a fixed-step method."""

    chain: Chain
    drive: Drive
    options: Options
    wrench: np.ndarray | None
    method: str
    inside: Inside | None = None  # of states, where there are limits to watch at every step
    stops: Stops | None = None
    plants: Plants | None = None  # one per lane, where they are not all the chain

    @property
    def single_step(self) -> str:
        """The method, or one of its order that needs no past."""
        return "RK4" if self.method == "AB4" else self.method

    @property
    def _varying(self) -> Varying | None:
        return None if self.plants is None else self.plants.varying

    @cached_property
    def layout(self) -> Layout:
        """Where positions and velocities lie in a state."""
        return Layout.of(self.chain)

    @cached_property
    def _program(self) -> Compiled:
        locks = locks_of(self.chain, self.drive.law, self.options, self.stops, self._varying)
        can_lock = lockable_joints(locks) if self.sticks else None
        return rates_of(self.chain, self.drive.law, self.drive.size, self.options, can_lock, self._varying)

    def _compiled_rates(self, *given: np.ndarray, lanes: np.ndarray | None = None) -> Any:
        """The program's value; `lanes` are the plants of the rows, where there is one row per state and time."""
        if self.plants is None:
            return self._program(*given)
        constants = self.plants.constants
        if lanes is None:  # rows (count, times, ...), or all of one lane
            return self._program(*given, constants[:, None] if given[0].ndim == 3 else constants)
        return self._program(*given, constants[lanes])

    @cached_property
    def _most(self) -> np.ndarray:
        varied = None if self.plants is None or not self.options.friction else self.plants.breakaway
        return breakaway(self.chain, self.options) if varied is None else varied

    @cached_property
    def sticks(self) -> bool:
        """Whether a joint has dry friction or a stop."""
        return self.stops is not None or has_dry_friction(self.chain, self.options, self._varying)

    @property
    def taken(self) -> str:
        """The method whose steps are taken: a multistep method's past does not reach across stick and slip."""
        return self.single_step if self.sticks else self.method

    silent = False  # it may be asked about any state

    def some(self, lanes: np.ndarray) -> Stepper:
        """The same for some states of the batch."""

        def inputs(t: np.ndarray) -> np.ndarray:
            u: np.ndarray = self.drive.inputs(t)[lanes]
            return u

        wrench = self.wrench if self.wrench is None or self.wrench.ndim == 1 else self.wrench[lanes]
        drive = replace(self.drive, inputs=inputs) if self.drive.batch else self.drive
        plants = None if self.plants is None else self.plants.some(lanes)
        return replace(self, drive=drive, wrench=wrench, plants=plants)

    def inputs(self, t: np.ndarray) -> np.ndarray:
        """What drive and wrench say at times t: (..., width)."""
        u = self.drive.inputs(t)
        if self.wrench is not None:
            shape = np.broadcast_shapes(u.shape[:-1], t.shape, self.wrench.shape[:-1])
            parts = [np.broadcast_to(part, (*shape, part.shape[-1])) for part in (u, self.wrench)]
            u = np.concatenate(parts, axis=-1)
        return u if u.shape[-1] else np.zeros(1)

    def rates(self, t: np.ndarray, state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(acceleration, torque) of states (count, times, size) at times (times,)."""
        u = self.inputs(t[:, None])  # a stage axis, as the loop has
        u = u[..., 0, :] if u.ndim > 1 else u
        q, qd = self.layout.split(state)
        if not self.sticks:
            qdd, tau = self._compiled_rates(q, qd, u)
            return qdd, tau
        (qdd, _, tau), _ = self._settled(*_rows(q, qd, u), lanes=np.repeat(np.arange(len(q)), q.shape[1]))
        return qdd.reshape(qd.shape), tau.reshape(qd.shape)

    def _settled(
        self, q: np.ndarray, qd: np.ndarray, u: np.ndarray, modes: Modes | None = None, lanes: Any = None
    ) -> tuple[tuple[np.ndarray, ...], Modes]:
        lanes = np.zeros(len(q), dtype=int) if lanes is None else lanes

        def evaluate(rows: np.ndarray, free: np.ndarray, side: np.ndarray) -> tuple[np.ndarray, ...]:
            state = q[rows], qd[rows], u[rows]
            found: tuple[np.ndarray, ...] = self._compiled_rates(*state, free, side, lanes=lanes[rows])
            return found

        most = self._most if self._most.ndim == 1 else self._most[lanes]
        return settle(evaluate, qd, holding(self.layout.beside(q), most, self.stops), modes)

    def settled(self, t: float, y: np.ndarray, modes: Modes | None = None) -> Modes:
        """The modes of one state (size,)."""
        return self._settled(*_rows(*self.layout.split(y[None]), self._input(t)), modes)[1]

    def forces(self, t: float, y: np.ndarray, modes: Modes) -> tuple[np.ndarray, np.ndarray]:
        """(acceleration, force left) of one state (size,) in given modes."""
        found = self._compiled_rates(*_rows(*self.layout.split(y[None]), self._input(t)), modes.free, modes.side)
        return np.asarray(found[0][0]), np.asarray(found[1][0])

    def around(
        self, t: float, y: np.ndarray, states: np.ndarray, released: bool
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Accelerations of `states` (k, size) in the modes of y, or with no joint held; what moves; torques of y."""
        n, u = self.chain.nv, self._input(t)
        every = _rows(*self.layout.split(np.vstack([y[None], states])), u)
        if not self.sticks:
            qdd, tau = self._compiled_rates(*every)
            return qdd[1:], np.ones(n), tau[0]
        modes = Modes(np.ones((1, n)), np.sign(every[1][:1])) if released else self.settled(t, y)
        shape = (len(every[0]), n)
        qdd, _, tau = self._compiled_rates(
            *every, np.broadcast_to(modes.free, shape), np.broadcast_to(modes.side, shape)
        )
        return qdd[1:], modes.free[0], tau[0]

    def inertia(self, q: np.ndarray) -> np.ndarray:
        """H of postures (..., nq)."""
        if self.plants is None:
            return np.asarray(_inertia_matrix(self.chain)(q))
        kernel = _inertia_matrix(self.chain).variant(parameters="runtime")
        return np.asarray(kernel(q, self.plants.parameters[0] if q.ndim == 1 else self.plants.parameters))

    def gains(self) -> tuple[np.ndarray, ...]:
        """Stiffness, damping, viscous friction and effort limit, per joint."""
        locks = locks_of(self.chain, self.drive.law, self.options)
        effort = np.array([np.inf if most is None else most for most in locks.effort])
        viscous = np.array(locks.viscous)
        if self.plants is not None and self.plants.viscous is not None and self.options.friction:
            viscous = self.plants.viscous.max(axis=0)
        return np.array(locks.stiffness), np.array(locks.damping), viscous, effort

    def _input(self, t: float) -> np.ndarray:
        u = self.inputs(np.array([[t]]))
        return u.reshape(1, u.shape[-1])

    reported = rates

    def unstable_loop(self, lane: int, times: np.ndarray, states: np.ndarray, early: bool) -> str:
        """Nothing: the torques are continuous."""
        return ""

    def run(self, state: np.ndarray, span: Span, method: str | None = None) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Stored states (count, rows, size) and whether all was well until then (count, rows), chunk by chunk."""
        method = method or self.taken
        loop = self._loop(method)
        past, total = len(loop.scheme.past), span.rows * span.every
        history = np.zeros((len(state), past, state.shape[1]))
        done, good = 0, np.ones(len(state), dtype=bool)
        while done < total:
            steps = 1 if done < past else _piece(done, total, span.every, len(state))
            if done < past:  # a multistep method is started by Runge-Kutta
                now = self._slope(span.t + span.h * done, state)
                history = np.concatenate([now[:, None], history[:, :-1]], axis=1)
                stored, state, _ = self._advance("RK4", state, span, done, steps, history[:, :0])
            else:
                stored, state, history = self._advance(method, state, span, done, steps, history)
            done += steps
            if steps % span.every == 0:
                yield self._thinned(stored, span.every if self.inside else 1)
                continue
            good = good & self._thinned(stored, 1)[1].all(axis=1)
            if done % span.every == 0:
                yield state[:, None], good[:, None]
                good = np.ones_like(good)

    def _advance(
        self, method: str, state: np.ndarray, span: Span, done: int, steps: int, history: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(states stored, last state, history) after so many steps; every step is stored where limits are watched."""
        loop, constants = self._loop(method), None if self.plants is None else self.plants.constants
        numbers = done + np.arange(steps)[:, None] + _stage_times(method, self.drive.held)
        every = 1 if self.inside else span.every if steps % span.every == 0 else steps
        return loop.run(state, steps, span.h, self.inputs(span.t + span.h * numbers), history, every, constants)

    def _loop(self, method: str) -> Integrator:
        return loop_of(self.chain, self.drive.law, self.drive.size, self.options, method, self.stops, self._varying)

    def _slope(self, t: float, state: np.ndarray) -> np.ndarray:
        """The derivative of states (count, size) at one time."""
        qdd, _ = self.rates(np.array([t]), state[:, None])
        return self.layout.slope(state, qdd[:, 0])

    def _thinned(self, stored: np.ndarray, every: int) -> tuple[np.ndarray, np.ndarray]:
        """Each `every`-th state, and whether all states up to it were inside."""
        rows = stored[:, every - 1 :: every]
        if self.inside is None:
            return rows, np.all(np.isfinite(rows), axis=-1)
        return rows, np.asarray(self.inside(stored).reshape(*rows.shape[:2], every).all(axis=-1))


def _rows(q: np.ndarray, qd: np.ndarray, u: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Arrays (..., k) as rows of one length."""
    shape = np.broadcast_shapes(q.shape[:-1], qd.shape[:-1], u.shape[:-1])
    q, qd, u = (np.broadcast_to(x, (*shape, x.shape[-1])).reshape(-1, x.shape[-1]) for x in (q, qd, u))
    return q, qd, u


def _piece(done: int, total: int, every: int, count: int) -> int:
    """How many steps at once: whole rows, or a part of one that has begun or is long."""
    most, into = max(1, WORK // max(count, 1)), done % every
    if into or every > most:
        return min(most, every - into)
    return min(most // every * every, total - done)


@dataclass(frozen=True)
class PlainStepper:
    """An arm driven by a Python function."""

    arm: Arm
    torque: Callable[..., Any]
    options: Options
    wrench: np.ndarray | None
    method: str
    batch: tuple[int, ...]
    inside: Inside | None = None
    effort: tuple[float | None, ...] | None = None  # the torques are clamped to it
    stops: Stops | None = None
    # The function's results at the rows: it may have internal state, so it is not called twice.
    said: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)

    @cached_property
    def layout(self) -> Layout:
        """Where positions and velocities lie in a state."""
        return Layout.of(self.arm.chain)

    @property
    def single_step(self) -> str:
        """The method, or one of its order that needs no past."""
        return "RK4" if self.method == "AB4" else self.method

    @cached_property
    def _most(self) -> np.ndarray:
        return breakaway(self.arm.chain, self.options)

    @cached_property
    def sticks(self) -> bool:
        """Whether a joint has dry friction or a stop."""
        return self.stops is not None or has_dry_friction(self.arm.chain, self.options)

    @cached_property
    def _rates(self) -> Any:
        can_lock = lockable_joints(locks_of(self.arm.chain, AsGiven(), self.options, self.stops))
        return rates_of(self.arm.chain, AsGiven(), self.arm.chain.nv, self.options, can_lock if self.sticks else None)

    @property
    def taken(self) -> str:
        """The method whose steps are taken: a multistep method's past does not reach across stick and slip."""
        return self.single_step if self.sticks else self.method

    silent = True  # a function may have internal state, so it is not called with states that did not occur

    def some(self, lanes: np.ndarray) -> PlainStepper:
        """The same for some states of the batch."""
        wrench = self.wrench if self.wrench is None or self.wrench.ndim == 1 else self.wrench[lanes]
        batch = () if len(lanes) == 1 else (len(lanes),)
        return replace(self, batch=batch, wrench=wrench, said=[])

    def rates(self, t: np.ndarray, state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(acceleration, torque) of states (count, times, size) at times (times,)."""
        pairs = [self._rate(float(moment), state[:, k]) for k, moment in enumerate(t)]
        return np.stack([a for a, _ in pairs], axis=1), np.stack([tau for _, tau in pairs], axis=1)

    def reported(self, t: np.ndarray, state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(acceleration, torque) at the stored rows, as they were on the way; only the last row is new."""
        pairs = list(self.said[: len(t)])
        for k in range(len(pairs), len(t)):
            try:
                pairs.append(self._rate(float(t[k]), state[:, k]))
            except KeyboardInterrupt:  # the second Ctrl-C, or a function that ends a simulation by one
                pairs.append((np.full_like(self.layout.split(state[:, k])[1], np.nan),) * 2)
        return np.stack([a for a, _ in pairs], axis=1), np.stack([tau for _, tau in pairs], axis=1)

    def _torque(self, t: float, y: np.ndarray) -> np.ndarray:
        """What the function says for states (count, size), with the wrench beside it."""
        tau = asked_torque(self.arm.chain, self.torque, t, *self.layout.split(y), self.batch)
        if self.effort is not None:
            most = np.array([np.inf if effort is None else effort for effort in self.effort])
            tau = np.clip(tau, -most, most)
        if self.wrench is None:
            return tau
        return np.hstack([tau, np.broadcast_to(self.wrench.reshape(-1, 6), (len(tau), 6))])

    def _rate(self, t: float, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        qdd, u, _ = self._began(t, y)
        return qdd, u[:, : self.arm.chain.nv]

    def _began(self, t: float, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, Modes | None]:
        """(acceleration, torque and wrench, modes) of states (count, size)."""
        u, (q, qd) = self._torque(t, y), self.layout.split(y)
        if not self.sticks:
            return np.asarray(self._rates(q, qd, u)[0]), u, None
        (qdd, _, _), modes = self._settled(q, qd, u, None)
        return qdd, u, modes

    def _settled(
        self, q: np.ndarray, qd: np.ndarray, u: np.ndarray, modes: Modes | None
    ) -> tuple[tuple[np.ndarray, ...], Modes]:
        def evaluate(rows: np.ndarray, free: np.ndarray, side: np.ndarray) -> tuple[np.ndarray, ...]:
            found: tuple[np.ndarray, ...] = self._rates(q[rows], qd[rows], u[rows], free, side)
            return found

        return settle(evaluate, qd, holding(self.layout.beside(q), self._most, self.stops), modes)

    def settled(self, t: float, y: np.ndarray, modes: Modes | None = None) -> Modes:
        """The modes of one state (size,)."""
        return self._settled(*self.layout.split(y[None]), self._torque(t, y[None]), modes)[1]

    def around(
        self, t: float, y: np.ndarray, states: np.ndarray, released: bool
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Accelerations of `states` (k, size) in the modes of y, or with no joint held; what moves; torques of y."""
        n, every = self.arm.chain.nv, np.vstack([y[None], states])
        u = np.vstack([self._torque(t, row[None]) for row in every])
        q, qd = self.layout.split(every)
        if not self.sticks:
            return np.asarray(self._rates(q, qd, u)[0])[1:], np.ones(n), u[0, :n]
        modes = Modes(np.ones((1, n)), np.sign(qd[:1]))
        if not released:
            modes = self._settled(q[:1], qd[:1], u[:1], None)[1]
        free, side = (np.broadcast_to(x, (len(every), n)) for x in (modes.free, modes.side))
        return np.asarray(self._rates(q, qd, u, free, side)[0])[1:], modes.free[0], u[0, :n]

    def inertia(self, q: np.ndarray) -> np.ndarray:
        """H of postures (..., nq)."""
        return np.asarray(self.arm.inertia_matrix(q))

    def gains(self) -> tuple[np.ndarray, ...]:
        """Stiffness, damping, viscous friction and effort limit, per joint: nothing is known of a function."""
        locks = locks_of(self.arm.chain, AsGiven(), self.options)
        none = np.full(self.arm.chain.nv, np.inf)
        return np.array(locks.stiffness), np.array(locks.damping), np.array(locks.viscous), none

    def forces(self, t: float, y: np.ndarray, modes: Modes) -> tuple[np.ndarray, np.ndarray]:
        """(acceleration, force left) of one state (size,) in given modes."""
        found = self._rates(*self.layout.split(y[None]), self._torque(t, y[None]), modes.free, modes.side)
        return np.asarray(found[0][0]), np.asarray(found[1][0])

    def unstable_loop(self, lane: int, times: np.ndarray, states: np.ndarray, early: bool) -> str:
        """Nothing: the torques are continuous."""
        return ""

    def run(self, state: np.ndarray, span: Span, method: str | None = None) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Stored states (count, 1, size) and whether all was well until then (count, 1), one row at a time."""
        name = method or self.taken
        past: list[np.ndarray] = []
        for row in range(span.rows):
            good = np.ones(len(state), dtype=bool)
            for k in range(span.every):
                t = span.t + (row * span.every + k) * span.h
                qdd, u, modes = self._began(t, state)
                if k == 0:
                    self.said.append((qdd, u[:, : self.arm.chain.nv]))
                state = self.layout.normalised(self._step(name, t, span.h, state, (qdd, u, modes), past))
                good &= self.inside(state) if self.inside else np.all(np.isfinite(state), axis=1)
            yield state[:, None].copy(), good[:, None]

    def _step(
        self,
        method: str,
        t: float,
        h: float,
        y: np.ndarray,
        began: tuple[np.ndarray, np.ndarray, Modes | None],
        past: list[np.ndarray],
    ) -> np.ndarray:
        qdd, u, modes = began
        first, scheme = self.layout.slope(y, qdd), SCHEMES[method]
        if scheme.past:
            past.insert(0, first)
            weights = (*scheme.b, *scheme.past)
            if len(past) >= len(weights):
                del past[len(weights) :]
                return np.asarray(combined(y, h, zip(map(float, weights), past, strict=True)))
            scheme = SCHEMES[self.single_step]
        slopes, torques = [first], [u]
        for c, row in zip(scheme.nodes[1:], scheme.a[1:], strict=True):
            moved = combined(y, h, zip(map(float, row), slopes, strict=True))
            torques.append(self._torque(t + float(c) * h, moved))
            given = (torques[-1],) if modes is None else (torques[-1], modes.free, modes.side)
            slopes.append(self.layout.slope(moved, self._rates(*self.layout.split(moved), *given)[0]))
        if scheme.velocity_first:
            q, qd = self.layout.split(y)
            v = combined(qd, h, [(1, qdd)])
            after = np.hstack([combined(q, h, [(1, self.layout.rate(q, v))]), v])
        else:
            after = combined(y, h, zip(map(float, scheme.b), slopes, strict=True))
        return self._at_rest(scheme.name, h, y, after, torques, modes)

    def _at_rest(
        self, method: str, h: float, y: np.ndarray, after: np.ndarray, torques: list[np.ndarray], modes: Modes | None
    ) -> np.ndarray:
        """The step again, where a joint came to rest within it."""
        if modes is None:
            return after
        q, qd = self.layout.split(after)
        turned = (modes.side * qd < 0) & ((self._most > 0) | (self.layout.split(y)[1] == 0))
        if self.stops is not None:
            turned = turned | holding(self.layout.beside(q), 0 * self._most, self.stops).able & (modes.free > 0)
        lanes = np.flatnonzero(np.any(turned, axis=1))
        if len(lanes):
            loop = loop_of(self.arm.chain, AsGiven(), self.arm.chain.nv, self.options, method, self.stops)
            u = np.stack(torques, axis=1)[lanes, None]
            after[lanes] = loop.run(y[lanes], 1, h, u, np.zeros((len(lanes), 0, self.layout.size)))[1]
        return after


Stored = tuple[np.ndarray, np.ndarray]  # stored states, and whether they are good
Evaluate = Callable[[np.ndarray, np.ndarray, np.ndarray], tuple[np.ndarray, ...]]


@dataclass(frozen=True)
class Modes:
    """Per state and joint: `free` is 1 if it moves, and `side` the sign of its sliding direction, 0 if it sticks."""

    free: np.ndarray
    side: np.ndarray


class Stiff(Protocol):
    """What bounds the fastest motion of an arm under its drive."""

    def inertia(self, q: np.ndarray) -> np.ndarray:
        """H of postures (..., nq)."""
        ...

    def gains(self) -> tuple[np.ndarray, ...]:
        """Stiffness, damping, viscous friction and effort limit, per joint."""
        ...


class Lanes(Stiff, Protocol):
    """Some states of a run, which can be asked and stepped alone: by adaptive methods, and where a run ended."""

    @property
    def layout(self) -> Layout:
        """Where positions and velocities lie in a state."""
        ...

    @property
    def options(self) -> Options:
        """The forces that act besides the torques."""
        ...

    @property
    def sticks(self) -> bool:
        """Whether a joint has dry friction or a stop."""
        ...

    @property
    def single_step(self) -> str:
        """The method, or one of its order that needs no past."""
        ...

    def some(self, lanes: np.ndarray) -> Lanes:
        """Some of these states."""
        ...

    def rates(self, t: np.ndarray, state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(acceleration, torque) of states (count, times, size) at times (times,)."""
        ...

    def settled(self, t: float, y: np.ndarray, modes: Modes | None = None) -> Modes:
        """The modes of one state (size,)."""
        ...

    def forces(self, t: float, y: np.ndarray, modes: Modes) -> tuple[np.ndarray, np.ndarray]:
        """(acceleration, force left) of one state (size,) in given modes."""
        ...

    def around(
        self, t: float, y: np.ndarray, states: np.ndarray, released: bool
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Accelerations of `states` (k, size) in the modes of y, or with no joint held; what moves; torques of y."""
        ...

    def run(self, state: np.ndarray, span: Span, method: str | None = None) -> Iterator[Stored]:
        """Stored states (count, rows, size) and whether all was well until then (count, rows), chunk by chunk."""
        ...


class Steps(Stiff, Protocol):
    """An arm under its drive, stepped from the beginning of a run to its end: a run asks for nothing else."""

    @property
    def silent(self) -> bool:
        """Whether it must not be asked about states that did not occur."""
        ...

    @property
    def taken(self) -> str:
        """The method whose steps are taken."""
        ...

    def some(self, lanes: np.ndarray) -> Lanes:
        """Some states of the batch."""
        ...

    def reported(self, t: np.ndarray, state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(acceleration, torque) at the stored rows (count, times, size)."""
        ...

    def unstable_loop(self, lane: int, times: np.ndarray, states: np.ndarray, early: bool) -> str:
        """What is wrong with a sampled control loop, by the states (count, times, size); "" if nothing is."""
        ...

    def run(self, state: np.ndarray, span: Span, method: str | None = None) -> Iterator[Stored]:
        """Stored states and whether all was well, chunk by chunk."""
        ...


def breakaway(chain: Chain, options: Options) -> np.ndarray:
    """The breakaway friction per joint; 0 without dry friction, or with friction off."""
    values = [float(friction.breakaway) if options.friction else 0.0 for friction in frictions(chain)]
    return np.array(values)


@dataclass(frozen=True)
class Holding:
    """Per state and joint at rest: whether it can be held, and the range of holding forces."""

    able: np.ndarray
    low: np.ndarray
    high: np.ndarray


def holding(q: np.ndarray, most: np.ndarray, stops: Stops | None = None) -> Holding:
    """The holding forces of dry friction and stops at positions q (rows, n)."""
    low, high = np.broadcast_to(-most, q.shape), np.broadcast_to(most, q.shape)
    able = high > 0
    if stops is not None:
        at_lower = q <= np.array([-np.inf if x is None else x for x in stops.lower])
        at_upper = q >= np.array([np.inf if x is None else x for x in stops.upper])
        able = able | at_lower | at_upper
        low, high = np.where(at_lower, -np.inf, low), np.where(at_upper, np.inf, high)
    return Holding(able, low, high)


def settle(
    evaluate: Evaluate, qd: np.ndarray, holds: Holding, modes: Modes | None = None
) -> tuple[tuple[np.ndarray, ...], Modes]:
    """The results of `evaluate(rows, free, side)` for states `qd` (rows, n) in consistent modes, and these modes.

    Its first two results must be the accelerations and the holding forces (`programs.lockable_loop`). The search starts
    from `modes`, by default with every joint locked that is at rest and can be held.
    """
    may = (qd == 0) & holds.able
    free = np.where(may, 0.0, 1.0) if modes is None else modes.free.copy()
    side = np.sign(qd) if modes is None else modes.side.copy()
    results = tuple(np.array(x) for x in evaluate(np.arange(len(qd)), free, side))
    for pivot in range(PIVOTS):
        left = results[1]
        breaks = may & (free == 0) & ((left > holds.high) | (left < holds.low))
        returns = may & (free == 1) & (left * side < 0)
        wrong = breaks | returns
        rows = np.flatnonzero(wrong.any(axis=1))
        if not len(rows):
            break
        if pivot + 1 >= BLOCK_PIVOTS:  # only the least index
            wrong &= np.cumsum(wrong, axis=1) == 1
        side = np.where(wrong & breaks, np.where(left > 0, 1.0, -1.0), np.where(wrong & returns, 0.0, side))
        free = np.where(wrong & breaks, 1.0, np.where(wrong & returns, 0.0, free))
        for whole, part in zip(results, evaluate(rows, free[rows], side[rows]), strict=True):
            whole[rows] = part
    return results, Modes(free, side)
