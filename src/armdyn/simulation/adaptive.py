"""Adaptive integration: scipy's solvers on the compiled right-hand side, one state at a time.

Torques may jump or have kinks at knots (sampled torques do); no step crosses one, so that the error estimate and the
order hold on either side. Dry friction is treated the same way: between two events the modes of the joints (which ones
stick, and the direction in which the others slide) are constant and the right-hand side is smooth. The time at which a
sliding joint comes to rest or a sticking joint breaks away is located on the dense output, and the solver restarts
there.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from armdyn.errors import ArmdynError, required
from armdyn.simulation.stepper import Modes, Stepper

Right = Callable[[float, np.ndarray], np.ndarray]
Watch = Callable[[np.ndarray], float]  # positive inside the limits
Tick = Callable[[float], None]
PATIENCE = 400  # steps allowed without progress before the run counts as stalled
CRAWL = 1e-5  # of the whole time: what counts as progress
LOOKS = 9  # checks of limits and modes per step, so that a joint cannot leave and return unnoticed
EXCESS = 1e-12  # of the breakaway force: tolerance for rounding at a sticking joint


@dataclass
class Phase:
    """The motion of one state in constant modes: its right-hand side, and its distance from the next event."""

    one: Stepper
    most: np.ndarray  # the breakaway forces
    modes: Modes | None = None
    began: np.ndarray | None = None  # the velocities when these modes began
    moment: Callable[[float], float] = float  # the time that forces are asked for: between the knots, not at them

    def settle(self, t: float, y: np.ndarray, modes: Modes | None = None) -> None:
        """Find the modes of a state."""
        self.modes = self.one.settled(self.moment(t), y, modes)
        self.began = self.speeds(y).copy()

    def speeds(self, y: np.ndarray) -> np.ndarray:
        """The velocities of a state."""
        return self.one.layout.split(y)[1]

    def right(self, t: float, y: np.ndarray) -> np.ndarray:
        """The derivative of the state."""
        y = self.one.layout.normalised(y)
        return self.one.layout.slope(y, self._forces(t, y)[0])

    def _forces(self, t: float, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(acceleration, force left) in the modes in force."""
        assert self.modes is not None
        return self.one.forces(self.moment(t), y, self.modes)

    def distances(self, t: float, y: np.ndarray) -> np.ndarray:
        """The distance of each joint from the end of its mode: speed if it slides, friction margin if it sticks."""
        assert self.modes is not None
        free, side = self.modes.free[0], self.modes.side[0]
        _, left = self._forces(t, y)
        margin = self.most * (1 + EXCESS) - np.abs(left)
        distances: np.ndarray = np.where(free == 0, margin, np.where(side != 0, side * self.speeds(y), np.inf))
        return distances

    def distance(self, t: float, y: np.ndarray) -> float:
        """The smallest distance from the end of a mode."""
        return float(np.min(self.distances(t, y)))

    def end(self, t: float, y: np.ndarray, stuck: bool) -> np.ndarray:
        """The state after an event, with the modes that follow; `stuck`: no time has passed since the last event."""
        assert self.modes is not None
        joint = int(np.argmin(self.distances(t, y)))
        free, side = self.modes.free.copy(), self.modes.side.copy()
        y = y.copy()
        if free[0, joint] == 0:
            free[0, joint], side[0, joint] = 1.0, np.sign(self._forces(t, y)[1][joint])
            self.settle(t, y, Modes(free, side))
            return y
        self.speeds(y)[joint] = 0.0
        free[0, joint] = side[0, joint] = 0.0
        self.settle(t, y, Modes(free, side))
        if stuck:  # keep it at rest until another event
            self.modes = Modes(free, side)
        return y

    def state(self, y: np.ndarray) -> np.ndarray:
        """An intermediate state, with the velocity of sticking joints set to 0."""
        if self.modes is None:
            return y
        y = np.array(y)
        self.speeds(y)[self.modes.free[0] == 0] = 0.0
        return y


@dataclass
class _Record:
    """The states reached so far, and why the run ended."""

    times: np.ndarray
    y: np.ndarray
    reached: list[float] = field(default_factory=list)
    states: list[np.ndarray] = field(default_factory=list)
    ended: tuple[str, str] | None = None
    steps: int = 0
    mark: float = -np.inf  # the time of the last progress

    def stalled(self, t: float) -> bool:
        """Count a step; whether too many steps have made too little progress."""
        self.steps += 1
        if t - self.mark > CRAWL * (self.times[-1] - self.times[0]):
            self.steps, self.mark = 0, t
        return self.steps > PATIENCE

    def keep(self, dense: Any, until: float) -> None:
        """Store the states due until a time."""
        while len(self.reached) < len(self.times) and self.times[len(self.reached)] <= until:
            t = float(self.times[len(self.reached)])
            self.reached.append(t)
            self.states.append(dense(t))


@dataclass(frozen=True)
class Solver:
    """One of scipy's solvers with its tolerances; `held` torques jump at the knots, others only have kinks."""

    method: str
    rtol: float
    atol: float
    knots: Sequence[float] = ()
    held: bool = False

    def run(
        self, right: Right | Phase, y0: np.ndarray, times: np.ndarray, watch: Watch | None, tick: Tick
    ) -> tuple[np.ndarray, np.ndarray, str, str]:
        """(times reached, states there, status, message); what was computed before an early end is kept."""
        start, end = float(times[0]), float(times[-1])
        record = _Record(times, y0, [start], [y0])
        ends = [start, *(float(t) for t in self.knots if start < t < end), end]
        try:
            for a, b in pairwise(ends):
                self._between(a, b, right, record, watch, tick)
                if record.ended:
                    break
        except KeyboardInterrupt:
            record.ended = "interrupted", f"interrupted after t = {record.reached[-1]:.6g} s"
        status, message = record.ended or ("finished", f"reached t = {end:.6g} s")
        return np.array(record.reached), np.array(record.states), status, message

    def _between(
        self, a: float, b: float, right: Right | Phase, record: _Record, watch: Watch | None, tick: Tick
    ) -> None:
        """From one knot to the next, event by event."""
        inset = 1e-9 * (b - a) if self.held else 0.0  # a stage at the end of an interval must not see the next sample

        def moment(t: float) -> float:
            return min(max(t, a + inset), b - inset)

        if not isinstance(right, Phase):
            self._smooth(a, b, lambda t, y: right(moment(t), y), record, watch, tick, None)
            return
        right.moment = moment
        right.settle(a, record.y)
        t: float | None = a
        while t is not None and not record.ended:
            started = t
            t = self._smooth(t, b, right.right, record, watch, tick, right)
            if t is not None and not record.ended:
                record.y = right.end(t, record.y, t - started < 1e-12 * (b - a))

    def _smooth(
        self, a: float, b: float, right: Right, record: _Record, watch: Watch | None, tick: Tick, motion: Phase | None
    ) -> float | None:
        """Integrate while the modes last; returns the time when they end, or None at b."""
        required("scipy")
        from scipy import integrate

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # LSODA warns about what its status reports too
            solver = _attempt(
                lambda: getattr(integrate, self.method)(right, a, record.y, b, rtol=self.rtol, atol=self.atol)
            )
            while not record.ended and (solver is None or solver.status == "running"):
                stepped = solver is not None and _attempt(lambda: (solver.step(),)) is not None
                if not stepped or solver.status == "failed" or not np.all(np.isfinite(solver.y)):
                    t = a if solver is None else solver.t
                    record.ended = "diverged", f"the solver found no small enough step at t = {t:.6g} s"
                    return None
                event = _advance(solver, record, watch, motion, fresh=bool(solver.t_old == a))
                if not record.ended and record.stalled(solver.t):
                    record.ended = "stalled", STALLED.format(t=solver.t)
                tick(solver.t if event is None else event)
                if event is not None:
                    return event
        return None


STALLED = (
    "steps became too short at t = {t:.6g} s: the forces chatter there or grow without bound; "
    "a fixed-step method may continue"
)


def _advance(solver: Any, record: _Record, watch: Watch | None, motion: Phase | None, fresh: bool) -> float | None:
    """Record a step; a joint limit ends the run, an event cuts the step and its time is returned."""
    dense = solver.dense_output()
    state = (lambda t: motion.state(dense(t))) if motion else dense
    hit = _crossing(lambda t: watch(state(t)), solver.t_old, solver.t) if watch else None
    over = _crossing(lambda t: motion.distance(t, state(t)), solver.t_old, solver.t, fresh) if motion else None
    if over is not None and (hit is None or over <= hit):
        record.keep(state, over)
        record.y = state(over)
        return over
    record.y = state(solver.t) if motion else solver.y
    record.keep(state, solver.t if hit is None else hit)
    if hit is not None:
        record.ended = "limit", ""
        if hit > record.reached[-1]:
            record.reached.append(hit)
            record.states.append(state(hit))
    return None


def _attempt(act: Callable[[], Any]) -> Any:
    """The result, or None if numbers that are not finite break the solver's linear algebra."""
    try:
        return act()
    except ArmdynError:
        raise
    except (ValueError, np.linalg.LinAlgError):
        return None


def _crossing(watch: Callable[[float], float], a: float, b: float, fresh: bool = False) -> float | None:
    """When the watched number first becomes negative within a step; `fresh`: at a it is 0 up to rounding."""
    moments = np.linspace(a, b, LOOKS)
    beyond = [watch(t) < 0 for t in moments]
    if not any(beyond[fresh:]):
        return None
    k = beyond.index(True, int(fresh))
    if k == 0 or beyond[k - 1]:
        return a
    required("scipy")
    from scipy.optimize import brentq

    return float(brentq(watch, moments[k - 1], moments[k], xtol=1e-14))
