"""Who drives the joints: nobody, constants, samples, a Python function, or a controller.

A drive that can be compiled has a law, written over scalars like every other algorithm:
``law(chain, q, qd, u) -> tau``, where u is what the drive needs to know of the time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from armdyn.chain import Chain
from armdyn.errors import InputError
from armdyn.kernels import Kernel
from armdyn.kernels.assemble import assemble
from armdyn.simulation.references import Reference

Law = Callable[[Chain, list[Any], list[Any], list[Any]], list[Any]]


@dataclass(frozen=True)
class Drive:
    """A compilable drive: the size of u, u at given times (..., size), and the law."""

    size: int
    inputs: Callable[[np.ndarray], np.ndarray]
    law: Law
    duration: float | None = None


@dataclass(frozen=True, eq=False)
class Sampled:
    """Torques at given times, held until the next sample or joined by straight lines."""

    times: Any
    values: Any
    between: Literal["held", "linear"] = "linear"

    def at(self, t: np.ndarray) -> np.ndarray:
        """The torques at times `t`: (..., n)."""
        times, values = np.asarray(self.times, float), np.asarray(self.values, float)
        if self.between == "held":
            index = np.clip(np.searchsorted(times, t, side="right") - 1, 0, len(times) - 1)
            held: np.ndarray = values[index]
            return held
        columns = [np.interp(t, times, values[:, i]) for i in range(values.shape[1])]
        return np.stack(columns, axis=-1)


@dataclass(frozen=True, eq=False)
class PDGravity:
    """τ = kp (q_ref - q) + kd (q̇_ref - q̇) + g(q): towards a posture or along a reference."""

    target: Any
    kp: Any
    kd: Any


@dataclass(frozen=True, eq=False)
class ComputedTorque:
    """τ = inverse dynamics of q̈_ref + kd (q̇_ref - q̇) + kp (q_ref - q): exact tracking of a reference."""

    reference: Reference
    kp: Any = 100.0
    kd: Any = 20.0


def cheapest(chain: Chain, quantity: str) -> str:
    """The formulation an arm's own kernel would take."""
    return Kernel(chain, quantity).method


def drive(chain: Chain, torque: Any) -> Drive | None:
    """The compilable drive a user asked for; None for a Python function."""
    n = chain.n
    if isinstance(torque, PDGravity):
        return _pd_gravity(chain, torque)
    if isinstance(torque, ComputedTorque):
        return _computed_torque(chain, torque)
    if isinstance(torque, Sampled):
        _check_samples(torque, n)
        return Drive(n, torque.at, as_given)
    if torque is None:
        return Drive(0, lambda t: np.zeros((*t.shape, 0)), nobody)
    if callable(torque):
        return None
    constant = np.asarray(torque, float)
    if constant.shape[-1:] != (n,):
        raise InputError(
            f"torque must be None, {n} numbers, Sampled, PDGravity, ComputedTorque or a function of (t, q, qd); "
            f"got an array of shape {constant.shape}"
        )
    if not np.all(np.isfinite(constant)):
        raise InputError("torque contains NaN or infinity")
    return Drive(n, lambda t: constant[..., None, None, :], as_given)


def _check_samples(torque: Sampled, n: int) -> None:
    times, values = np.asarray(torque.times, float), np.asarray(torque.values, float)
    if times.ndim != 1 or values.shape != (len(times), n):
        raise InputError(f"sampled torques: expected times (k,) and values (k, {n}), got {times.shape}, {values.shape}")
    if len(times) < 1 or np.any(np.diff(times) <= 0) or not np.all(np.isfinite(times)):
        raise InputError("sampled torques: the times must be finite and increasing")
    if torque.between not in ("held", "linear"):
        raise InputError(f"sampled torques: between must be 'held' or 'linear', got {torque.between!r}")


def nobody(chain: Chain, q: list[Any], qd: list[Any], u: list[Any]) -> list[Any]:
    """The law of an arm left alone."""
    return [0] * chain.n


def as_given(chain: Chain, q: list[Any], qd: list[Any], u: list[Any]) -> list[Any]:
    """The law of torques known as functions of time."""
    return u


def _gains(value: Any, n: int, name: str) -> tuple[float, ...]:
    gains = np.broadcast_to(np.asarray(value, float), (n,))
    if not np.all(np.isfinite(gains)):
        raise InputError(f"{name} must be finite, got {value!r}")
    return tuple(float(x) for x in gains)


@lru_cache(maxsize=64)
def _pd_law(chain: Chain, kp: tuple[float, ...], kd: tuple[float, ...]) -> Law:
    load = assemble(chain, "gravity_load", cheapest(chain, "gravity_load")).function
    n = chain.n

    def law(chain: Chain, q: list[Any], qd: list[Any], u: list[Any]) -> list[Any]:
        g = load(q)
        return [g[i] + kp[i] * (u[i] - q[i]) + kd[i] * (u[n + i] - qd[i]) for i in range(n)]

    return law


@lru_cache(maxsize=64)
def _computed_torque_law(chain: Chain, kp: tuple[float, ...], kd: tuple[float, ...]) -> Law:
    inverse = assemble(chain, "inverse_dynamics", cheapest(chain, "inverse_dynamics")).function
    n = chain.n

    def law(chain: Chain, q: list[Any], qd: list[Any], u: list[Any]) -> list[Any]:
        wanted = [u[2 * n + i] + kd[i] * (u[n + i] - qd[i]) + kp[i] * (u[i] - q[i]) for i in range(n)]
        forces: list[Any] = inverse(q, qd, wanted)
        return forces

    return law


def _pd_gravity(chain: Chain, torque: PDGravity) -> Drive:
    n = chain.n
    law = _pd_law(chain, _gains(torque.kp, n, "kp"), _gains(torque.kd, n, "kd"))
    if isinstance(torque.target, Reference):
        reference = torque.target
        return Drive(2 * n, lambda t: np.concatenate(reference(t)[:2], axis=-1), law, reference.duration)
    posture = np.asarray(torque.target, float)
    if posture.shape != (n,):
        raise InputError(f"target must be a Reference or {n} numbers, got shape {posture.shape}")
    return Drive(2 * n, lambda t: np.concatenate([posture, np.zeros(n)]), law)


def _computed_torque(chain: Chain, torque: ComputedTorque) -> Drive:
    n = chain.n
    law = _computed_torque_law(chain, _gains(torque.kp, n, "kp"), _gains(torque.kd, n, "kd"))
    return Drive(3 * n, lambda t: np.concatenate(torque.reference(t), axis=-1), law, torque.reference.duration)
