"""The steps of one state by an explicit one-step method, under torques that Python computes, in few calls of NumPy.

The arithmetic is that of `stepper.PythonTorques` for arrays of states, operation by operation, so that one arm moves as
it does in a batch. The program is called through CPython's vectorcall (`codegen.fastcall`), positions and velocities
are views of one vector, and the stages' slopes are written where they are kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from armdyn.codegen import fastcall
from armdyn.codegen.compile import Compiled
from armdyn.kernels.kernel import Fast
from armdyn.programs.stepping import Scheme

Ask = Callable[[float, np.ndarray, np.ndarray], np.ndarray]


class OneCall(Fast):
    """A compiled program of one configuration: the call goes to its machine code, where Python allows it."""

    def __init__(self, compiled: Compiled) -> None:
        self._compiled = compiled
        fastcall.attach(self, compiled.addresses["entry"], compiled.code)

    def __call__(self, *arrays: np.ndarray) -> Any:
        """The gufunc takes what machine code does not."""
        return self._compiled(*arrays)


class OneState:
    """An explicit one-step method for one state (2 nv,) of a robot whose velocities are the rates of its coordinates.

    `stage` is what the program takes besides position, velocity and torque: the modes of the joints, if any can stick.
    """

    def __init__(self, compiled: Compiled, scheme: Scheme, nv: int, h: float) -> None:
        self.rates = OneCall(compiled)
        self.nv = nv
        slopes = np.empty((scheme.stages, 2 * nv))
        self._speeds, self._accelerations = list(slopes[:, :nv]), list(slopes[:, nv:])
        self._h = np.array(h)  # NumPy multiplies by an array of one number faster than by a number of Python

        def terms(weights: tuple[float, ...]) -> list[tuple[np.ndarray | None, np.ndarray]]:
            pairs = zip(weights, slopes, strict=False)
            return [(None if weight == 1 else np.array(weight), slope) for weight, slope in pairs if weight]

        self._rows = [(c * h, terms(row)) for c, row in scheme.rows[1:]]
        self._weights = terms(scheme.weights)

    def step(
        self, ask: Ask, t: float, y: np.ndarray, qdd: np.ndarray, modes: tuple[np.ndarray, ...]
    ) -> tuple[np.ndarray, list[np.ndarray]]:
        """The state after a step from y, whose acceleration is given, and the torques at the stages after the first."""
        n, torques = self.nv, []
        self._speeds[0][:], self._accelerations[0][:] = y[n:], qdd
        for i, (later, terms) in enumerate(self._rows, 1):
            moved = self._combined(y, terms)
            q, qd = moved[:n], moved[n:]
            tau = ask(t + later, q, qd)
            self._speeds[i][:], self._accelerations[i][:] = moved[n:], self.rates(q, qd, tau, *modes)[0]
            torques.append(tau)
        return self._combined(y, self._weights), torques

    def _combined(self, y: np.ndarray, terms: list[tuple[np.ndarray | None, np.ndarray]]) -> np.ndarray:
        """The sum y + h Σ weight · slope, in the order of `programs.stepping.combined`; a weight of 1 is None."""
        total: Any = None
        for weight, slope in terms:
            term = slope if weight is None else slope * weight
            total = term if total is None else term + total
        moved: np.ndarray = total * self._h + y
        return moved


def surely_finite(x: np.ndarray) -> bool:
    """Whether the square of a vector is finite, so that its numbers are; False says nothing."""
    return math.isfinite(x.dot(x))
