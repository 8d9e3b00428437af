"""Fixed-step integration around a Python function of (t, q, qd): one call a stage, whole batches at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from armdyn.arm import Arm
from armdyn.chain import Chain
from armdyn.errors import InputError
from armdyn.kernels import Kernel
from armdyn.kernels.assemble import Options
from armdyn.simulation.fixed import Span
from armdyn.simulation.tableaus import AB4, EULER, RUNGE_KUTTA


@lru_cache(maxsize=64)
def _forward(chain: Chain, options: Options) -> Kernel:
    return Kernel(chain, "forward_dynamics", options=options)


@dataclass(frozen=True)
class PlainStepper:
    """An arm driven by a Python function."""

    arm: Arm
    torque: Callable[..., Any]
    options: Options
    wrench: np.ndarray | None
    method: str
    batch: tuple[int, ...]

    def lane(self, lane: int) -> PlainStepper:
        """The same for one state of the batch."""
        wrench = self.wrench if self.wrench is None or self.wrench.ndim == 1 else self.wrench[lane : lane + 1]
        return replace(self, batch=(), wrench=wrench)

    def rates(self, t: np.ndarray, state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(acceleration, torque) of states (count, times, 2n) at times (times,)."""
        pairs = [self._rate(float(moment), state[:, k]) for k, moment in enumerate(t)]
        return np.stack([a for a, _ in pairs], axis=1), np.stack([tau for _, tau in pairs], axis=1)

    def _rate(self, t: float, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        n = self.arm.n
        shape = (*self.batch, n)
        q, qd = y[:, :n], y[:, n:]
        tau = np.asarray(self.torque(t, q.reshape(shape), qd.reshape(shape)), float)
        if tau.shape[-1:] != (n,):
            raise InputError(f"the torque function gave shape {tau.shape}, expected (..., {n})")
        tau = np.broadcast_to(tau, shape).reshape(-1, n)
        forward = _forward(self.arm.chain, self.options)
        wrench = () if self.wrench is None else (self.wrench.reshape(-1, 6),)
        return np.asarray(forward(q, qd, tau, *wrench)), tau

    def _slope(self, t: float, y: np.ndarray) -> np.ndarray:
        return np.concatenate([y[:, self.arm.n :], self._rate(t, y)[0]], axis=1)

    def run(self, state: np.ndarray, span: Span, method: str | None = None) -> Iterator[np.ndarray]:
        """Stored states (count, 1, 2n), one row at a time."""
        name = method or self.method
        past: list[np.ndarray] = []
        t = span.t
        for row in range(span.rows):
            for k in range(span.every):
                t = span.t + (row * span.every + k) * span.h
                state = self._step(name, t, span.h, state, past)
            yield state[:, None].copy()

    def _step(self, method: str, t: float, h: float, y: np.ndarray, past: list[np.ndarray]) -> np.ndarray:
        n = self.arm.n
        first = self._slope(t, y)
        if method == EULER.name:
            v = y[:, n:] + h * first[:, n:]
            return np.concatenate([y[:, :n] + h * v, v], axis=1)
        if method == "AB4":
            past.insert(0, first)
            if len(past) >= len(AB4):
                del past[len(AB4) :]
                return y + h * sum(float(w) * k for w, k in zip(AB4, past, strict=True))
            method = "RK4"
        tableau = RUNGE_KUTTA[method]
        slopes = [first]
        for c, row in zip(tableau.c[1:], tableau.a[1:], strict=True):
            moved = y + h * sum(float(a) * k for a, k in zip(row, slopes, strict=True))
            slopes.append(self._slope(t + float(c) * h, moved))
        total: np.ndarray = y + h * sum(float(b) * k for b, k in zip(tableau.b, slopes, strict=True))
        return total
