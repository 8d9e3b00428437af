"""Adaptive integration: scipy's solvers on the compiled right-hand side, one state at a time.

Torques may jump or bend at knots (sampled torques do); no step goes across one, so that the error
estimate and the order hold on either side. Where the right-hand side jumps by itself, to and fro (Coulomb
friction of a joint about to rest), steps shrink without end: that is noticed and said.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from armdyn.errors import ArmdynError

Right = Callable[[float, np.ndarray], np.ndarray]
Watch = Callable[[np.ndarray], float]  # positive inside the limits
Tick = Callable[[float], None]
PATIENCE = 400  # steps that may pass with next to no time going by
CRAWL = 1e-5  # of the whole time
LOOKS = 9  # at the limits in a step, so that a joint cannot go beyond and come back unseen


@dataclass
class _Record:
    """What has been reached so far, and why it ended."""

    times: np.ndarray
    y: np.ndarray
    reached: list[float] = field(default_factory=list)
    states: list[np.ndarray] = field(default_factory=list)
    ended: tuple[str, str] | None = None
    steps: int = 0
    mark: float = -np.inf  # the time when patience was last restored

    def stalled(self, t: float) -> bool:
        """Have too many steps brought too little."""
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
    """One of scipy's solvers with its tolerances; `held` torques jump at the knots, others only bend."""

    method: str
    rtol: float
    atol: float
    knots: Sequence[float] = ()
    held: bool = False

    def run(
        self, right: Right, y0: np.ndarray, times: np.ndarray, watch: Watch | None, tick: Tick
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

    def _between(self, a: float, b: float, right: Right, record: _Record, watch: Watch | None, tick: Tick) -> None:
        """From one knot to the next."""
        from scipy import integrate

        inset = 1e-9 * (b - a) if self.held else 0.0  # a stage at the very end must not see the next sample

        def within(t: float, y: np.ndarray) -> np.ndarray:
            return right(min(max(t, a + inset), b - inset), y)

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # LSODA says by warnings what its status says too
            solver = _attempt(
                lambda: getattr(integrate, self.method)(within, a, record.y, b, rtol=self.rtol, atol=self.atol)
            )
            while not record.ended and (solver is None or solver.status == "running"):
                stepped = solver is not None and _attempt(lambda: (solver.step(),)) is not None
                if not stepped or solver.status == "failed" or not np.all(np.isfinite(solver.y)):
                    t = a if solver is None else solver.t
                    record.ended = "diverged", f"no step is small enough any more at t = {t:.6g} s"
                    return
                _advance(solver, record, watch)
                if not record.ended and record.stalled(solver.t):
                    record.ended = "stalled", STALLED.format(t=solver.t)
                tick(solver.t)


STALLED = (
    "steps became too short at t = {t:.6g} s: the forces jump to and fro there (Coulomb friction of a joint about to "
    "rest?) or grow without bound; a fixed-step method or friction=False may go on"
)


def _advance(solver: Any, record: _Record, watch: Watch | None) -> None:
    """Take a step into the record; a limit ends it."""
    dense = solver.dense_output()
    hit = _crossing(dense, watch, solver.t_old, solver.t) if watch else None
    record.y = solver.y
    record.keep(dense, solver.t if hit is None else hit)
    if hit is not None:
        record.ended = "limit", ""
        if hit > record.reached[-1]:
            record.reached.append(hit)
            record.states.append(dense(hit))


def _attempt(act: Callable[[], Any]) -> Any:
    """None where numbers that are not finite break the solver's linear algebra."""
    try:
        return act()
    except ArmdynError:
        raise
    except (ValueError, np.linalg.LinAlgError):
        return None


def _crossing(dense: Any, watch: Watch, a: float, b: float) -> float | None:
    """When the watched number first becomes negative inside a step."""
    moments = np.linspace(a, b, LOOKS)
    beyond = [watch(dense(t)) < 0 for t in moments]
    if not any(beyond):
        return None
    k = beyond.index(True)
    if k == 0:
        return a
    from scipy.optimize import brentq

    return float(brentq(lambda t: watch(dense(t)), moments[k - 1], moments[k], xtol=1e-13))
