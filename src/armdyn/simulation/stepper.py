"""An arm under its torques, stepped by a method: one `Stepper`, and the sources of torques that it may have.

`LawTorques` are those of a law in the compiled loop: no Python in a step, one lane per state. `PythonTorques` are a
function of (t, q, qd), called once per stage for a whole batch, in the order of time. Where a joint comes to rest
within its step, that state takes the step again in the compiled loop, with the torques as they were at the stages.
`digital.HeldTorques` come from a controller that is called once per control period.

`settle` finds which joints stick, for arrays of states, by the rules of the compiled loop: adaptive methods, Python
functions and the values that a trajectory reports need it. The theory is at the head of this folder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Protocol

import numpy as np

from armdyn.chain import Chain
from armdyn.codegen.compile import Compiled, load_or_compile
from armdyn.codegen.target import Target
from armdyn.graph.program import Program
from armdyn.kernels.kernel import Kernel
from armdyn.programs.assemble import Options
from armdyn.programs.stepping import SCHEMES, Scheme, combined
from armdyn.simulation.drives import (
    DOUBLE,
    AsGiven,
    Drive,
    Faults,
    Law,
    Saturated,
    asked_torque,
    note_faults,
    source_of,
    torques_given,
)
from armdyn.simulation.loop import Integrator
from armdyn.simulation.one_state import OneState, surely_finite
from armdyn.simulation.programs import (
    Plants,
    Varying,
    closed_loop,
    frictions,
    has_dry_friction,
    lockable_loop,
)
from armdyn.simulation.request import Layout, Locks, Outside, Span, Stops, forces_of
from armdyn.simulation.step import BLOCK_PIVOTS, PIVOTS, object_code
from armdyn.values import cached_property

WORK = 200_000  # steps of single states per call, between which Ctrl-C and progress are handled
INSET = 1e-4  # of a step: more than rounding, so that a stage stays within the interval of a held value

Inside = Callable[[np.ndarray], np.ndarray]
Stored = tuple[np.ndarray, np.ndarray]  # stored states (count, rows, size), and whether they are good (count, rows)
Evaluate = Callable[[np.ndarray, np.ndarray, np.ndarray], tuple[np.ndarray, ...]]
Signals = dict[str, dict[str, np.ndarray]]


# --- compiled programs of an arm under a law -------------------------------------------------------------------------


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

    compiled = load_or_compile(("closed loop", chain, law, source_of(law), size, options, can_lock, varying), make)
    assert compiled is not None  # an arm without joints is refused before
    return compiled


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
    scheme = SCHEMES[method]
    implicit = bool(scheme.implicit)
    locks = locks_of(chain, law, options, stops, varying)
    if implicit and isinstance(law, Saturated):
        law = law.law  # the stages find the saturated motors themselves
    if not implicit and not stops and not has_dry_friction(chain, options, varying):
        identity: tuple[Any, ...] = ("closed loop", chain, law, source_of(law), size, options, varying)
        return Integrator(
            identity,
            lambda target: object_code(closed_loop(chain, law, size, options, False, varying), scheme, target),
            scheme,
        )
    staged, can_lock = implicit or stops is not None, lockable_joints(locks)
    identity = ("lockable loop", chain, law, source_of(law), size, options, staged, can_lock, varying)

    def make(target: Target) -> bytes:
        program = lockable_loop(chain, law, size, options, staged, can_lock, varying)
        return object_code(program, scheme, target, locks)

    return Integrator((identity, locks), make, scheme)


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


def lockable_joints(locks: Locks) -> tuple[bool, ...]:
    """The joints that can be held at rest."""
    return tuple(locks.can_lock(i) for i in range(len(locks.breakaway)))


def breakaway(chain: Chain, options: Options) -> np.ndarray:
    """The breakaway friction per joint; 0 without dry friction, or with friction off."""
    values = [float(friction.breakaway) if options.friction else 0.0 for friction in frictions(chain)]
    return np.array(values)


@lru_cache(maxsize=64)
def _inertia_matrix(chain: Chain) -> Kernel:
    return Kernel(chain, "inertia_matrix")


# --- the modes of joints at rest -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Modes:
    """Per state and joint: `free` is 1 if it moves, and `side` the sign of its sliding direction, 0 if it sticks."""

    free: np.ndarray
    side: np.ndarray


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


# --- the stepper -----------------------------------------------------------------------------------------------------


class Source(Protocol):
    """Where the torques of a run come from, which decides how steps are taken and what may be asked."""

    @property
    def law(self) -> Law:
        """The law in the compiled programs."""
        ...

    @property
    def size(self) -> int:
        """How many inputs the law has."""
        ...

    @property
    def silent(self) -> bool:
        """Whether it must not be asked about states that did not occur."""
        ...

    @property
    def jumps(self) -> bool:
        """Whether torques jump between steps, so that a multistep method has no past."""
        ...

    @property
    def faults(self) -> Faults:
        """The lanes to which a function gave torques that are no numbers."""
        ...

    def inputs(self, t: np.ndarray, state: np.ndarray) -> np.ndarray:
        """The law's inputs for states (count, times, size) at times (times,): it broadcasts to (count, times, 1, m)."""
        ...

    def some(self, lanes: np.ndarray) -> Source:
        """The torques of some states of the batch."""
        ...

    def repeatable(self, lanes: np.ndarray, row: int) -> Source:
        """The same, such that the step from a stored row may be taken again."""
        ...

    def run(self, stepper: Stepper, state: np.ndarray, span: Span, method: str) -> Iterator[Stored]:
        """Stored states and whether all was well until then, chunk by chunk."""
        ...

    def reported(self, stepper: Stepper, t: np.ndarray, state: np.ndarray) -> Stored:
        """(acceleration, torque) at the stored rows (count, times, size)."""
        ...

    def unstable_loop(self, stepper: Stepper, lane: int, times: np.ndarray, states: np.ndarray, early: bool) -> str:
        """What is wrong with a sampled control loop, by the states (count, times, size); "" if nothing is."""
        ...

    def signals(self) -> Signals:
        """What the controllers have recorded, by law and name."""
        ...


@dataclass(frozen=True)
class Stepper:
    """An arm under its torques, ready to be stepped by a fixed-step method, or asked about its motion."""

    chain: Chain
    source: Source
    options: Options
    outside: Outside | None  # what acts besides the drive
    method: str
    inside: Inside | None = None  # of states, where there are limits to watch at every step
    stops: Stops | None = None
    plants: Plants | None = None  # one per lane, where they are not all the chain

    @property
    def single_step(self) -> str:
        """The method, or one of its order that needs no past."""
        return SCHEMES[self.method].single_step.name if self.method in SCHEMES else self.method

    @property
    def taken(self) -> str:
        """The method whose steps are taken: a multistep method's past reaches across no stick, slip or jump."""
        return self.single_step if self.sticks or self.source.jumps else self.method

    @property
    def _varying(self) -> Varying | None:
        return None if self.plants is None else self.plants.varying

    @cached_property
    def layout(self) -> Layout:
        """Where positions and velocities lie in a state."""
        return Layout.of(self.chain)

    @cached_property
    def sticks(self) -> bool:
        """Whether a joint has dry friction or a stop."""
        return self.stops is not None or has_dry_friction(self.chain, self.options, self._varying)

    @cached_property
    def most(self) -> np.ndarray:
        """The breakaway friction, per joint or (count, n)."""
        varied = None if self.plants is None or not self.options.friction else self.plants.breakaway
        return breakaway(self.chain, self.options) if varied is None else varied

    @cached_property
    def program(self) -> Compiled:
        """The accelerations and torques of states, compiled."""
        locks = locks_of(self.chain, self.source.law, self.options, self.stops, self._varying)
        can_lock = lockable_joints(locks) if self.sticks else None
        return rates_of(self.chain, self.source.law, self.source.size, self.options, can_lock, self._varying)

    def evaluate(self, *given: np.ndarray, lanes: np.ndarray | None = None) -> Any:
        """The program's value; `lanes` are the plants of the rows, where there is one row per state and time."""
        if self.plants is None:
            return self.program(*given)
        constants = self.plants.constants
        if lanes is None:  # rows (count, times, ...), or all of one lane
            return self.program(*given, constants[:, None] if given[0].ndim == 3 else constants)
        return self.program(*given, constants[lanes])

    def some(self, lanes: np.ndarray, row: int | None = None) -> Stepper:
        """The same for some states of the batch, alone; with a row, such that the step from there may be repeated."""
        outside = None if self.outside is None else self.outside.some(lanes)
        plants = None if self.plants is None else self.plants.some(lanes)
        source = self.source.some(lanes) if row is None else self.source.repeatable(lanes, row)
        return replace(self, source=source, outside=outside, plants=plants)

    def with_outside(self, u: np.ndarray, t: np.ndarray) -> np.ndarray:
        """The law's inputs u (..., m) at times t, with what acts besides."""
        if self.outside is not None:
            more = self.outside.at(t)
            shape = np.broadcast_shapes(u.shape[:-1], more.shape[:-1])
            columns = [np.broadcast_to(part, (*shape, part.shape[-1])) for part in (u, more)]
            u = np.concatenate(columns, axis=-1)
        return u if u.shape[-1] else np.zeros(1)

    def _inputs(self, t: np.ndarray, state: np.ndarray) -> np.ndarray:
        """The program's inputs u for states (count, times, size) at times (times,)."""
        u = self.with_outside(self.source.inputs(t, state), t[:, None])  # a stage axis, as the loop has
        return u[..., 0, :] if u.ndim > 1 else u

    def rates(self, t: np.ndarray, state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(acceleration, torque) of states (count, times, size) at times (times,)."""
        (q, qd), u = self.layout.split(state), self._inputs(t, state)
        if not self.sticks:
            qdd, tau = self.evaluate(q, qd, u)
            return qdd, tau
        (qdd, _, tau), _ = self.settle(*_rows(q, qd, u), lanes=np.repeat(np.arange(len(q)), q.shape[1]))
        return qdd.reshape(qd.shape), tau.reshape(qd.shape)

    def settle(
        self, q: np.ndarray, qd: np.ndarray, u: np.ndarray, modes: Modes | None = None, lanes: Any = None
    ) -> tuple[tuple[np.ndarray, ...], Modes]:
        """The program's values for rows of states in consistent modes, and these modes."""
        lanes = np.zeros(len(q), dtype=int) if lanes is None else lanes

        def evaluate(rows: np.ndarray, free: np.ndarray, side: np.ndarray) -> tuple[np.ndarray, ...]:
            values: tuple[np.ndarray, ...] = self.evaluate(q[rows], qd[rows], u[rows], free, side, lanes=lanes[rows])
            return values

        most = self.most if self.most.ndim == 1 else self.most[lanes]
        return settle(evaluate, qd, holding(self.layout.beside(q), most, self.stops), modes)

    def _one(self, t: float, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """A row of the program's inputs q, qd, u for one state (size,)."""
        state = y[None, None]
        return _rows(*self.layout.split(state), self._inputs(np.array([t]), state))

    def settled(self, t: float, y: np.ndarray, modes: Modes | None = None) -> Modes:
        """The modes of one state (size,)."""
        return self.settle(*self._one(t, y), modes)[1]

    def forces(self, t: float, y: np.ndarray, modes: Modes) -> tuple[np.ndarray, np.ndarray]:
        """(acceleration, force left) of one state (size,) in given modes."""
        qdd, left, _ = self.evaluate(*self._one(t, y), modes.free, modes.side)
        return np.asarray(qdd[0]), np.asarray(left[0])

    def around(
        self, t: float, y: np.ndarray, states: np.ndarray, released: bool
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Accelerations of `states` (k, size) in the modes of y, or with no joint held; what moves; torques of y."""
        n, every = self.chain.nv, np.vstack([y[None], states])[None]
        q, qd, u = _rows(*self.layout.split(every), self._inputs(np.full(every.shape[1], t), every))
        if not self.sticks:
            qdd, tau = self.evaluate(q, qd, u)
            return qdd[1:], np.ones(n), tau[0]
        modes = Modes(np.ones((1, n)), np.sign(qd[:1])) if released else self.settle(q[:1], qd[:1], u[:1])[1]
        free, side = (np.broadcast_to(x, (len(q), n)) for x in (modes.free, modes.side))
        qdd, _, tau = self.evaluate(q, qd, u, free, side)
        return qdd[1:], modes.free[0], tau[0]

    def inertia(self, q: np.ndarray) -> np.ndarray:
        """H of postures (..., nq)."""
        if self.plants is None:
            return np.asarray(_inertia_matrix(self.chain)(q))
        kernel = _inertia_matrix(self.chain).variant(parameters="runtime")
        return np.asarray(kernel(q, self.plants.parameters[0] if q.ndim == 1 else self.plants.parameters))

    def gains(self) -> tuple[np.ndarray, ...]:
        """Stiffness, damping, viscous friction and effort limit, per joint, as far as the law says them."""
        locks = locks_of(self.chain, self.source.law, self.options)
        effort = np.array([np.inf if most is None else most for most in locks.effort])
        viscous = np.array(locks.viscous)
        if self.plants is not None and self.plants.viscous is not None and self.options.friction:
            viscous = self.plants.viscous.max(axis=0)
        return np.array(locks.stiffness), np.array(locks.damping), viscous, effort

    def loop(self, method: str) -> Integrator:
        """The compiled loop of a method."""
        source = self.source
        return loop_of(self.chain, source.law, source.size, self.options, method, self.stops, self._varying)

    def run(self, state: np.ndarray, span: Span, method: str | None = None) -> Iterator[Stored]:
        """Stored states (count, rows, size) and whether all was well until then (count, rows), chunk by chunk."""
        return self.source.run(self, state, span, method or self.taken)

    def all_inside(self, state: np.ndarray) -> np.ndarray:
        """Whether states (..., size) are finite, and within the limits that end a run."""
        inside: np.ndarray = self.inside(state) if self.inside else np.all(np.isfinite(state), axis=-1)
        return inside


def _rows(q: np.ndarray, qd: np.ndarray, u: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Arrays (..., k) as rows of one length."""
    shape = np.broadcast_shapes(q.shape[:-1], qd.shape[:-1], u.shape[:-1])
    q, qd, u = (np.broadcast_to(x, (*shape, x.shape[-1])).reshape(-1, x.shape[-1]) for x in (q, qd, u))
    return q, qd, u


# --- sources of torques ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LawTorques:
    """The torques of a drive, whose law is part of the compiled loop: no Python in a step."""

    drive: Drive
    silent = False
    jumps = False

    @property
    def faults(self) -> Faults:
        """A law has none."""
        return {}

    @property
    def law(self) -> Law:
        """The drive's law."""
        return self.drive.law

    @property
    def size(self) -> int:
        """The number of the law's inputs."""
        return self.drive.size

    def inputs(self, t: np.ndarray, state: np.ndarray) -> np.ndarray:
        """The law's inputs depend on time alone."""
        return self.drive.inputs(t[:, None])

    def some(self, lanes: np.ndarray) -> LawTorques:
        """The torques of some states of the batch."""

        def inputs(t: np.ndarray) -> np.ndarray:
            u: np.ndarray = self.drive.inputs(t)[lanes]
            return u

        return LawTorques(replace(self.drive, inputs=inputs)) if self.drive.batch else self

    def repeatable(self, lanes: np.ndarray, row: int) -> LawTorques:
        """The same: a law may be asked at any time."""
        return self.some(lanes)

    def reported(self, stepper: Stepper, t: np.ndarray, state: np.ndarray) -> Stored:
        """(acceleration, torque) at the stored rows."""
        return stepper.rates(t, state)

    def unstable_loop(self, stepper: Stepper, lane: int, times: np.ndarray, states: np.ndarray, early: bool) -> str:
        """Nothing is wrong: the law acts at every moment."""
        return ""

    def signals(self) -> Signals:
        """A law in the loop records nothing."""
        return {}

    def run(self, stepper: Stepper, state: np.ndarray, span: Span, method: str) -> Iterator[Stored]:
        """Stored states (count, rows, size) and whether all was well until then (count, rows), chunk by chunk."""
        past, total = len(SCHEMES[method].past), span.rows * span.every
        starter = SCHEMES[method].single_step.name
        history = np.zeros((len(state), past, state.shape[1]))
        done, good = 0, np.ones(len(state), dtype=bool)
        while done < total:
            steps = 1 if done < past else _piece(done, total, span.every, len(state))
            if done < past:  # a multistep method is started by a one-step method
                qdd, _ = stepper.rates(np.array([span.t + span.h * done]), state[:, None])
                now = stepper.layout.slope(state, qdd[:, 0])
                history = np.concatenate([now[:, None], history[:, :-1]], axis=1)
                stored, state, _ = self._advance(stepper, starter, state, span, done, steps, history[:, :0])
            else:
                stored, state, history = self._advance(stepper, method, state, span, done, steps, history)
            done += steps
            if steps % span.every == 0:
                yield _thinned(stepper, stored, span.every if stepper.inside else 1)
                continue
            good = good & _thinned(stepper, stored, 1)[1].all(axis=1)
            if done % span.every == 0:
                yield state[:, None], good[:, None]
                good = np.ones_like(good)

    def _advance(
        self, stepper: Stepper, method: str, state: np.ndarray, span: Span, done: int, steps: int, history: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(states stored, last state, history) after so many steps; every step is stored where limits are watched."""
        constants = None if stepper.plants is None else stepper.plants.constants
        stage = stages(method)
        if self.drive.held:  # inside the step, where held samples must stay held
            stage = np.clip(stage, INSET, 1 - INSET)
        t = span.t + span.h * (done + np.arange(steps)[:, None] + stage)
        every = 1 if stepper.inside else span.every if steps % span.every == 0 else steps
        u = stepper.with_outside(self.drive.inputs(t), t)
        return stepper.loop(method).run(state, steps, span.h, u, history, every, constants)


def stages(method: str) -> np.ndarray:
    """The times of a method's stages as fractions of a step."""
    return np.array([float(x) for x in SCHEMES[method].nodes])


def _thinned(stepper: Stepper, stored: np.ndarray, every: int) -> Stored:
    """Each `every`-th state, and whether all states up to it were inside."""
    rows = stored[:, every - 1 :: every]
    if stepper.inside is None:
        return rows, np.all(np.isfinite(rows), axis=-1)
    return rows, np.asarray(stepper.inside(stored).reshape(*rows.shape[:2], every).all(axis=-1))


def _piece(done: int, total: int, every: int, count: int) -> int:
    """How many steps at once: whole rows, or a part of one that has begun or is long."""
    most, into = max(1, WORK // max(count, 1)), done % every
    if into or every > most:
        return min(most, every - into)
    return min(most // every * every, total - done)


@dataclass(frozen=True)
class PythonTorques:
    """The torques of a Python function of (t, q, qd)."""

    chain: Chain
    function: Callable[..., Any]
    batch: tuple[int, ...]
    effort: np.ndarray | None = None  # the torques are clamped to it
    # The function's results at the rows: it may have internal state, so it is not called twice.
    recorded: list[Stored] = field(default_factory=list)
    faults: Faults = field(default_factory=dict)

    law = AsGiven()
    silent = True
    jumps = False

    @property
    def size(self) -> int:
        """The torques are the law's inputs."""
        return self.chain.nv

    def at(self, t: float, y: np.ndarray) -> np.ndarray:
        """The torques (count, nv) for states (count, size)."""
        q, qd = y[:, : self.chain.nq], y[:, self.chain.nq :]
        tau = asked_torque(self.chain, self.function, t, q, qd, self.batch)
        if self.effort is not None:
            tau = np.clip(tau, -self.effort, self.effort)
        note_faults(self.faults, self.chain, tau, t, q, qd)
        return tau

    def _of_one(self, t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """The torques (nv,) for one state."""
        tau = self.function(t, q, qd)
        if type(tau) is np.ndarray and tau.shape == qd.shape and tau.dtype is DOUBLE:
            tau = tau.copy()
        else:
            tau = torques_given(self.chain, tau, t, ())[0]
        if self.effort is not None:
            tau = np.clip(tau, -self.effort, self.effort)
        if not surely_finite(tau):
            note_faults(self.faults, self.chain, tau[None], t, q[None], qd[None])
        return np.asarray(tau)

    def inputs(self, t: np.ndarray, state: np.ndarray) -> np.ndarray:
        """The torques at every time, in their order."""
        return np.stack([self.at(moment, state[:, k]) for k, moment in enumerate(t.tolist())], axis=1)[:, :, None]

    def some(self, lanes: np.ndarray) -> PythonTorques:
        """The torques of some states of the batch."""
        return replace(self, batch=() if len(lanes) == 1 else (len(lanes),), recorded=[], faults={})

    def repeatable(self, lanes: np.ndarray, row: int) -> PythonTorques:
        """Those that the function gave at the row, all along; zero where it was not asked."""
        tau = self.recorded[row][1][lanes] if row < len(self.recorded) else np.zeros((len(lanes), self.chain.nv))
        return replace(self.some(lanes), function=lambda t, q, qd: tau.reshape(qd.shape))

    def unstable_loop(self, stepper: Stepper, lane: int, times: np.ndarray, states: np.ndarray, early: bool) -> str:
        """Nothing is said of a function, which is not called with states that did not occur."""
        return ""

    def signals(self) -> Signals:
        """A function records nothing here."""
        return {}

    def reported(self, stepper: Stepper, t: np.ndarray, state: np.ndarray) -> Stored:
        """(acceleration, torque) at the stored rows, as they were on the way; only the last row is new."""
        pairs = list(self.recorded[: len(t)])
        for k in range(len(pairs), len(t)):
            try:
                qdd, u, _ = self._began(stepper, float(t[k]), state[:, k])
                pairs.append((qdd, u[:, : self.chain.nv]))
            except KeyboardInterrupt:  # the second Ctrl-C, or a function that ends a simulation by one
                pairs.append((np.full((len(state), self.chain.nv), np.nan),) * 2)
        return np.stack([a for a, _ in pairs], axis=1), np.stack([tau for _, tau in pairs], axis=1)

    def run(self, stepper: Stepper, state: np.ndarray, span: Span, method: str) -> Iterator[Stored]:
        """Stored states (count, 1, size) and whether all was well until then (count, 1), one row at a time."""
        scheme = SCHEMES[method]
        alone = not self.batch and stepper.plants is None and stepper.outside is None and not stepper.layout.floating
        if alone and not (scheme.past or scheme.implicit or scheme.velocity_first):
            yield from self._run_one(stepper, state[0], span, scheme)
            return
        past: list[np.ndarray] = []
        for row in range(span.rows):
            good = np.ones(len(state), dtype=bool)
            for k in range(span.every):
                t = span.t + (row * span.every + k) * span.h
                qdd, u, modes = self._began(stepper, t, state)
                if k == 0:
                    self.recorded.append((qdd, u[:, : self.chain.nv]))
                after = self._step(stepper, method, t, span.h, state, (qdd, u, modes), past)
                state = stepper.layout.normalised(after)
                good &= stepper.all_inside(state)
            yield state[:, None].copy(), good[:, None]

    def _run_one(self, stepper: Stepper, y: np.ndarray, span: Span, scheme: Scheme) -> Iterator[Stored]:
        """The same for one state without a wrench, by an explicit one-step method."""
        n = self.chain.nv
        one = OneState(stepper.program, scheme, n, span.h)
        for row in range(span.rows):
            good = True
            for k in range(span.every):
                t = span.t + (row * span.every + k) * span.h
                q, qd = y[:n], y[n:]
                tau = self._of_one(t, q, qd)
                qdd, modes = _began_one(stepper, one, q, qd, tau)
                if k == 0:
                    self.recorded.append((qdd[None], tau[None]))
                given = () if modes is None else (modes.free[0], modes.side[0])
                after, torques = one.step(self._of_one, t, y, qdd, given)
                if modes is not None and (stepper.stops is not None or (modes.side[0] * after[n:] < 0).any()):
                    stages = [x[None] for x in (tau, *torques)]
                    after = _at_rest(stepper, scheme.name, span.h, y[None], after[None], stages, modes)[0]
                y = after
                good = good and ((stepper.inside is None and surely_finite(y)) or bool(stepper.all_inside(y)))
            yield y[None, None].copy(), np.array([[good]])

    def _with_outside(self, stepper: Stepper, t: float, y: np.ndarray) -> np.ndarray:
        """The torques for states (count, size), with what acts besides."""
        tau = self.at(t, y)
        return tau if stepper.outside is None else np.hstack([tau, stepper.outside.rows(t, len(tau))])

    def _began(self, stepper: Stepper, t: float, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, Modes | None]:
        """(acceleration, torque and wrench, modes) of states (count, size)."""
        u, (q, qd) = self._with_outside(stepper, t, y), stepper.layout.split(y)
        if not stepper.sticks:
            return np.asarray(stepper.evaluate(q, qd, u)[0]), u, None
        (qdd, _, _), modes = stepper.settle(q, qd, u)
        return qdd, u, modes

    def _step(
        self,
        stepper: Stepper,
        method: str,
        t: float,
        h: float,
        y: np.ndarray,
        began: tuple[np.ndarray, np.ndarray, Modes | None],
        past: list[np.ndarray],
    ) -> np.ndarray:
        """The states after a step, by the arithmetic of `programs.stepping` over arrays."""
        (qdd, u, modes), layout, scheme = began, stepper.layout, SCHEMES[method]
        first = layout.slope(y, qdd)
        if scheme.past:
            past.insert(0, first)
            weights = (*scheme.b, *scheme.past)
            if len(past) >= len(weights):
                del past[len(weights) :]
                return np.asarray(combined(y, h, zip(map(float, weights), past, strict=True)))
            scheme = SCHEMES[stepper.single_step]
        slopes, torques = [first], [u]
        for c, row in scheme.rows[1:]:
            moved = combined(y, h, zip(row, slopes, strict=True))
            torques.append(self._with_outside(stepper, t + c * h, moved))
            given = (torques[-1],) if modes is None else (torques[-1], modes.free, modes.side)
            slopes.append(layout.slope(moved, stepper.evaluate(*layout.split(moved), *given)[0]))
        if scheme.velocity_first:
            q, qd = layout.split(y)
            v = combined(qd, h, [(1, qdd)])
            after = np.hstack([combined(q, h, [(1, layout.rate(q, v))]), v])
        else:
            after = combined(y, h, zip(scheme.weights, slopes, strict=True))
        return after if modes is None else _at_rest(stepper, scheme.name, h, y, after, torques, modes)


def _began_one(
    stepper: Stepper, one: OneState, q: np.ndarray, qd: np.ndarray, tau: np.ndarray
) -> tuple[np.ndarray, Modes | None]:
    """(acceleration, modes) of one state; without stops, joints mostly stay held, which takes one evaluation."""
    if not stepper.sticks:
        return one.rates(q, qd, tau)[0], None
    if stepper.stops is None:
        rests = (qd == 0) & (stepper.most > 0)
        free, side = np.where(rests, 0.0, 1.0), np.sign(qd)
        qdd, left, _ = one.rates(q, qd, tau, free, side)
        if not (rests & (np.abs(left) > stepper.most)).any():
            return qdd, Modes(free[None], side[None])
    results, modes = stepper.settle(q[None], qd[None], tau[None])
    return results[0][0], modes


def _at_rest(
    stepper: Stepper, method: str, h: float, y: np.ndarray, after: np.ndarray, torques: list[np.ndarray], modes: Modes
) -> np.ndarray:
    """The states after a step; where a joint came to rest within it, the compiled loop takes it again."""
    q, qd = stepper.layout.split(after)
    turned = (modes.side * qd < 0) & ((stepper.most > 0) | (stepper.layout.split(y)[1] == 0))
    if stepper.stops is not None:
        turned = turned | holding(stepper.layout.beside(q), 0 * stepper.most, stepper.stops).able & (modes.free > 0)
    lanes = np.flatnonzero(np.any(turned, axis=1))
    if len(lanes):
        u = np.stack(torques, axis=1)[lanes, None]
        none = np.zeros((len(lanes), 0, stepper.layout.size))
        after[lanes] = stepper.loop(method).run(y[lanes], 1, h, u, none)[1]
    return after
