"""Fixed-step integration with the whole loop compiled: no Python in a step, one lane a state."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from armdyn.chain import Chain
from armdyn.codegen.compile import Compiled, load_or_compile
from armdyn.codegen.llvm_integrate import Integrator, Scheme
from armdyn.graph.program import Program, trace
from armdyn.programs.assemble import Options, assemble
from armdyn.simulation.request import Span
from armdyn.simulation.tableaus import AB4, EULER, RUNGE_KUTTA
from armdyn.simulation.torque import Drive, Law, cheapest

WORK = 200_000  # steps of single states between two looks at the keyboard and the clock
INSET = 1e-4  # of a step: beyond rounding, and a held value is the same all along

Inside = Callable[[np.ndarray], np.ndarray]


def _scheme(method: str) -> Scheme:
    if method == "AB4":
        return Scheme(((),), AB4[:1], past=AB4[1:])
    if method == EULER.name:
        return Scheme(EULER.a, EULER.b, velocity_first=True)
    tableau = RUNGE_KUTTA[method]
    return Scheme(tableau.a, tableau.b)


def _stage_times(method: str, held: bool) -> np.ndarray:
    """The stages' times as fractions of a step; inside the step where held samples must stay held."""
    c = np.array([float(x) for x in RUNGE_KUTTA[method].c]) if method in RUNGE_KUTTA else np.zeros(1)
    return np.clip(c, INSET, 1 - INSET) if held else c


@lru_cache(maxsize=64)
def closed_loop(chain: Chain, law: Law, size: int, options: Options, with_torque: bool) -> Program:
    """(q, qd, u) -> acceleration, and the torque behind it where it is asked for.

    Not simplified: that takes longer than compiling and its 3 to 10 % fewer operations make no faster loop.
    """
    n, width = chain.n, size + (6 if options.tool_wrench else 0)
    forward = assemble(chain, "forward_dynamics", cheapest(chain, "forward_dynamics"), options).function

    def function(q: list[Any], qd: list[Any], u: list[Any]) -> Any:
        tau = law(chain, q, qd, u[:size])
        qdd = forward(q, qd, tau, *((u[size:width],) if options.tool_wrench else ()))
        return (qdd, tau) if with_torque else qdd

    outputs = [("qdd", (n,)), ("tau", (n,))] if with_torque else [("qdd", (n,))]
    return trace("closed_loop", function, {"q": (n,), "qd": (n,), "u": (max(width, 1),)}, outputs)


@lru_cache(maxsize=64)
def _rates(chain: Chain, law: Law, size: int, options: Options) -> Compiled:
    found = load_or_compile(
        ("closed loop", chain, law, size, options), lambda: closed_loop(chain, law, size, options, True)
    )
    assert found is not None  # an arm without joints is refused before
    return found


@lru_cache(maxsize=64)
def _loop(chain: Chain, law: Law, size: int, options: Options, method: str) -> Integrator:
    def make() -> Program:
        return closed_loop(chain, law, size, options, False)

    return Integrator(("closed loop", chain, law, size, options), make, _scheme(method))


@dataclass(frozen=True)
class Stepper:
    """An arm under a drive, ready to be stepped by a fixed-step method."""

    chain: Chain
    drive: Drive
    options: Options
    wrench: np.ndarray | None
    method: str
    inside: Inside | None = None  # of states, where there are limits to watch at every step

    @property
    def single_step(self) -> str:
        """The method, or one of its order that needs no past."""
        return "RK4" if self.method == "AB4" else self.method

    @cached_property
    def _compiled_rates(self) -> Compiled:
        return _rates(self.chain, self.drive.law, self.drive.size, self.options)

    def lane(self, lane: int) -> Stepper:
        """The same for one state of the batch."""

        def inputs(t: np.ndarray) -> np.ndarray:
            u = self.drive.inputs(t)
            return u[lane : lane + 1]

        wrench = self.wrench if self.wrench is None or self.wrench.ndim == 1 else self.wrench[lane : lane + 1]
        drive = replace(self.drive, inputs=inputs) if self.drive.batch else self.drive
        return replace(self, drive=drive, wrench=wrench)

    def inputs(self, t: np.ndarray) -> np.ndarray:
        """What drive and wrench say at times t: (..., width)."""
        u = self.drive.inputs(t)
        if self.wrench is not None:
            shape = np.broadcast_shapes(u.shape[:-1], t.shape, self.wrench.shape[:-1])
            parts = [np.broadcast_to(part, (*shape, part.shape[-1])) for part in (u, self.wrench)]
            u = np.concatenate(parts, axis=-1)
        return u if u.shape[-1] else np.zeros(1)

    def rates(self, t: np.ndarray, state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(acceleration, torque) of states (count, times, 2n) at times (times,)."""
        n = self.chain.n
        u = self.inputs(t[:, None])  # a stage axis, as the loop has
        u = u[..., 0, :] if u.ndim > 1 else u
        qdd, tau = self._compiled_rates(state[..., :n], state[..., n:], u)
        return qdd, tau

    reported = rates

    def run(self, state: np.ndarray, span: Span, method: str | None = None) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Stored states (count, rows, 2n) and whether all was well until then (count, rows), chunk by chunk."""
        method = method or self.method
        loop = _loop(self.chain, self.drive.law, self.drive.size, self.options, method)
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
        loop = _loop(self.chain, self.drive.law, self.drive.size, self.options, method)
        numbers = done + np.arange(steps)[:, None] + _stage_times(method, self.drive.held)
        every = 1 if self.inside else span.every if steps % span.every == 0 else steps
        return loop.run(state, steps, span.h, self.inputs(span.t + span.h * numbers), history, every)

    def _slope(self, t: float, state: np.ndarray) -> np.ndarray:
        """The derivative of states (count, 2n) at one time."""
        qdd, _ = self.rates(np.array([t]), state[:, None])
        return np.concatenate([state[:, self.chain.n :], qdd[:, 0]], axis=1)

    def _thinned(self, stored: np.ndarray, every: int) -> tuple[np.ndarray, np.ndarray]:
        """Each `every`-th state, and whether all states up to it were inside."""
        rows = stored[:, every - 1 :: every]
        if self.inside is None:
            return rows, np.all(np.isfinite(rows), axis=-1)
        return rows, np.asarray(self.inside(stored).reshape(*rows.shape[:2], every).all(axis=-1))


def _piece(done: int, total: int, every: int, count: int) -> int:
    """How many steps at once: whole rows, or a part of one that has begun or is long."""
    most, into = max(1, WORK // max(count, 1)), done % every
    if into or every > most:
        return min(most, every - into)
    return min(most // every * every, total - done)
