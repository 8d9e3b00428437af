"""Fixed-step integration with the whole loop compiled: no Python in a step, one lane a state."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from armdyn.backends.llvm import Compiled
from armdyn.backends.llvm import compiled as machine_code
from armdyn.backends.llvm_integrate import Integrator, Scheme
from armdyn.chain import Chain
from armdyn.graph.program import Program, trace
from armdyn.kernels.assemble import Options, assemble
from armdyn.simulation.tableaus import AB4, EULER, RUNGE_KUTTA
from armdyn.simulation.torque import Drive, Law, cheapest

WORK = 200_000  # steps of single states between two looks at the keyboard and the clock


def _scheme(method: str) -> Scheme:
    if method == "AB4":
        return Scheme(((),), AB4[:1], past=AB4[1:])
    if method == EULER.name:
        return Scheme(EULER.a, EULER.b, velocity_first=True)
    tableau = RUNGE_KUTTA[method]
    return Scheme(tableau.a, tableau.b)


def _stage_times(method: str) -> np.ndarray:
    """The stages' times as fractions of a step; just inside the step, so that held samples stay held."""
    c = RUNGE_KUTTA[method].c if method in RUNGE_KUTTA else (0,)
    return np.array([min(float(x), 1 - 1e-9) for x in c])


@lru_cache(maxsize=64)
def closed_loop(chain: Chain, law: Law, size: int, options: Options, with_torque: bool) -> Program:
    """(q, qd, u) -> acceleration, and the torque behind it where it is asked for."""
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
    return machine_code(closed_loop(chain, law, size, options, True))


@lru_cache(maxsize=64)
def _loop(chain: Chain, law: Law, size: int, options: Options, method: str) -> Integrator:
    return Integrator(closed_loop(chain, law, size, options, False), _scheme(method))


@dataclass(frozen=True)
class Span:
    """`rows` states to store, `every` steps of size h apart, from time t."""

    t: float
    h: float
    every: int
    rows: int


@dataclass(frozen=True)
class Stepper:
    """An arm under a drive, ready to be stepped by a fixed-step method."""

    chain: Chain
    drive: Drive
    options: Options
    wrench: np.ndarray | None
    method: str

    def lane(self, lane: int) -> Stepper:
        """The same for one state of the batch."""

        def inputs(t: np.ndarray) -> np.ndarray:
            u = self.drive.inputs(t)
            return u[lane : lane + 1] if u.ndim > t.ndim + 1 else u

        wrench = self.wrench if self.wrench is None or self.wrench.ndim == 1 else self.wrench[lane : lane + 1]
        return replace(self, drive=replace(self.drive, inputs=inputs), wrench=wrench)

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
        compiled = _rates(self.chain, self.drive.law, self.drive.size, self.options)
        qdd, tau = compiled(state[..., :n], state[..., n:], u)
        return qdd, tau

    def run(self, state: np.ndarray, span: Span, method: str | None = None) -> Iterator[np.ndarray]:
        """Stored states (count, rows, 2n), chunk by chunk."""
        method = method or self.method
        count, size = state.shape
        history, row = np.zeros((count, 0, size)), 0
        loop = _loop(self.chain, self.drive.law, self.drive.size, self.options, method)
        if loop.scheme.past and span.rows:
            stored, history, row = self._start(state, span, len(loop.scheme.past))
            state = stored[:, -1]
            yield stored[:, span.every - 1 :: span.every]
        chunk = max(1, WORK // (max(count, 1) * span.every))
        while row < span.rows:
            rows = min(chunk, span.rows - row)
            steps = rows * span.every
            moments = span.t + span.h * (row * span.every + np.arange(steps)[:, None] + _stage_times(method))
            stored, state, history = loop.run(state, steps, span.h, self.inputs(moments), history, span.every)
            row += rows
            yield stored

    def _start(self, state: np.ndarray, span: Span, past: int) -> tuple[np.ndarray, np.ndarray, int]:
        """Begin a multistep method with Runge-Kutta: (states of every step, earlier derivatives, rows done)."""
        n = self.chain.n
        rows = min(span.rows, -(-past // span.every))
        steps = rows * span.every
        stored = np.concatenate(list(self.run(state, Span(span.t, span.h, 1, steps), "RK4")), axis=1)
        before = np.concatenate([state[:, None], stored[:, :-1]], axis=1)[:, -past:]
        t = span.t + span.h * np.arange(steps)[-past:]
        qdd, _ = self.rates(t, before)
        history = np.concatenate([before[..., n:], qdd], axis=-1)[:, ::-1]
        if steps < past:  # too short to need a history
            history = np.concatenate([history, np.zeros((len(state), past - steps, 2 * n))], axis=1)
        return stored, np.ascontiguousarray(history), rows
