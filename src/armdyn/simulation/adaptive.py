"""Adaptive integration: scipy's solvers on the compiled right-hand side, one state at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Right = Callable[[float, np.ndarray], np.ndarray]
Watch = Callable[[np.ndarray], float]  # positive inside the limits


def solve(
    method: str,
    right: Right,
    y0: np.ndarray,
    times: np.ndarray,
    rtol: float,
    atol: float,
    watch: Watch,
    tick: Callable[[float], None],
) -> tuple[np.ndarray, np.ndarray, str, str]:
    """(times reached, states there, status, message); what was computed before an early end is kept."""
    from scipy import integrate

    solver = getattr(integrate, method)(right, times[0], y0, times[-1], rtol=rtol, atol=atol)
    reached, states = [times[0]], [y0]
    place = 1
    try:
        while solver.status == "running":
            problem = solver.step()
            if solver.status == "failed" or not np.all(np.isfinite(solver.y)):
                return _ended(reached, states, "diverged", f"the step size vanished at t = {solver.t:.6g} s; {problem}")
            dense = solver.dense_output()
            hit = _crossing(dense, watch, solver.t_old, solver.t)
            until = solver.t if hit is None else hit
            while place < len(times) and times[place] <= until:
                reached.append(times[place])
                states.append(dense(times[place]))
                place += 1
            tick(solver.t)
            if hit is not None:
                if hit > reached[-1]:
                    reached.append(hit)
                    states.append(dense(hit))
                return _ended(reached, states, "limit", "")
    except KeyboardInterrupt:
        return _ended(reached, states, "interrupted", f"interrupted at t = {solver.t:.6g} s")
    return _ended(reached, states, "finished", f"reached t = {times[-1]:.6g} s")


def _ended(reached: list[Any], states: list[Any], status: str, message: str) -> tuple[np.ndarray, np.ndarray, str, str]:
    return np.array(reached), np.array(states), status, message


def _crossing(dense: Any, watch: Watch, a: float, b: float) -> float | None:
    """When the watched number becomes negative inside a step."""
    if watch(dense(b)) >= 0:
        return None
    if watch(dense(a)) < 0:
        return a
    from scipy.optimize import brentq

    return float(brentq(lambda t: watch(dense(t)), a, b, xtol=1e-13))
