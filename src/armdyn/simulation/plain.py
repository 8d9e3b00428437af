"""Fixed-step integration around a Python function of (t, q, qd): one call per stage, whole batches at once.

Where a joint comes to rest within a step, the step of that state is taken again by the compiled loop, with the
function's torques as they were at the stages: so a function is asked once per stage, in the order of time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from armdyn.algebra.frozen import cached_property
from armdyn.arm import Arm
from armdyn.programs.assemble import Options
from armdyn.programs.stepping import SCHEMES, combined
from armdyn.simulation.fixed import Inside, lockable_joints, locks_of, loop_of, rates_of
from armdyn.simulation.implicit_stage import Stops
from armdyn.simulation.programs import has_dry_friction
from armdyn.simulation.request import Span
from armdyn.simulation.state import Layout
from armdyn.simulation.sticking import Modes, breakaway, holding, settle
from armdyn.simulation.torque import AsGiven, asked_torque


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
