"""Fixed-step integration around a Python function of (t, q, qd): one call a stage, whole batches at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from armdyn.arm import Arm
from armdyn.errors import InputError
from armdyn.kernels import Kernel
from armdyn.programs.assemble import Options
from armdyn.simulation.fixed import Inside
from armdyn.simulation.request import Span
from armdyn.simulation.tableaus import AB4, EULER, RUNGE_KUTTA


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
    # What the function said at the rows: it may have a memory, and is not asked twice.
    said: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)

    @property
    def single_step(self) -> str:
        """The method, or one of its order that needs no past."""
        return "RK4" if self.method == "AB4" else self.method

    @cached_property
    def _forward(self) -> Kernel:
        return Kernel(self.arm.chain, "forward_dynamics", options=self.options)

    def lane(self, lane: int) -> PlainStepper:
        """The same for one state of the batch."""
        wrench = self.wrench if self.wrench is None or self.wrench.ndim == 1 else self.wrench[lane : lane + 1]
        return replace(self, batch=(), wrench=wrench, said=[])

    def rates(self, t: np.ndarray, state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(acceleration, torque) of states (count, times, 2n) at times (times,)."""
        pairs = [self._rate(float(moment), state[:, k]) for k, moment in enumerate(t)]
        return np.stack([a for a, _ in pairs], axis=1), np.stack([tau for _, tau in pairs], axis=1)

    def reported(self, t: np.ndarray, state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(acceleration, torque) at the stored rows, as they were on the way; only the last row is new."""
        pairs = list(self.said[: len(t)])
        for k in range(len(pairs), len(t)):
            try:
                pairs.append(self._rate(float(t[k]), state[:, k]))
            except KeyboardInterrupt:  # the second Ctrl-C, or a function that ends a simulation by one
                pairs.append((np.full_like(state[:, k, : self.arm.n], np.nan),) * 2)
        return np.stack([a for a, _ in pairs], axis=1), np.stack([tau for _, tau in pairs], axis=1)

    def _rate(self, t: float, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        n = self.arm.n
        shape = (*self.batch, n)
        q, qd = y[:, :n], y[:, n:]
        tau = np.asarray(self.torque(t, q.reshape(shape), qd.reshape(shape)), float)
        if tau.shape[-1:] != (n,):
            raise InputError(f"the torque function gave shape {tau.shape}, expected (..., {n})")
        tau = np.broadcast_to(tau, shape).reshape(-1, n)
        wrench = () if self.wrench is None else (self.wrench.reshape(-1, 6),)
        return np.asarray(self._forward(q, qd, tau, *wrench)), tau

    def _slope(self, t: float, y: np.ndarray) -> np.ndarray:
        return np.concatenate([y[:, self.arm.n :], self._rate(t, y)[0]], axis=1)

    def run(self, state: np.ndarray, span: Span, method: str | None = None) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Stored states (count, 1, 2n) and whether all was well until then (count, 1), one row at a time."""
        name = method or self.method
        past: list[np.ndarray] = []
        for row in range(span.rows):
            good = np.ones(len(state), dtype=bool)
            for k in range(span.every):
                t = span.t + (row * span.every + k) * span.h
                rate = self._rate(t, state)
                if k == 0:
                    self.said.append(rate)
                state = self._step(name, t, span.h, state, rate[0], past)
                good &= self.inside(state) if self.inside else np.all(np.isfinite(state), axis=1)
            yield state[:, None].copy(), good[:, None]

    def _step(
        self, method: str, t: float, h: float, y: np.ndarray, qdd: np.ndarray, past: list[np.ndarray]
    ) -> np.ndarray:
        n = self.arm.n
        first = np.concatenate([y[:, n:], qdd], axis=1)
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
