"""Who drives the joints: nobody, constants, samples, a Python function, or a controller.

A drive that can be compiled has a law, written over scalars like every other algorithm:
``law(chain, q, qd, u) -> tau``, where u is what the drive needs to know of the time. A law is frozen data, so
that what was compiled for it can be found again by its name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from armdyn.chain import Chain
from armdyn.errors import InputError, choose
from armdyn.kernels import Kernel
from armdyn.programs.assemble import assemble
from armdyn.simulation.references import Reference

Law = Callable[[Chain, list[Any], list[Any], list[Any]], list[Any]]


@dataclass(frozen=True)
class Drive:
    """A compilable drive: the size of u, u at times (steps, stages), and the law.

    `inputs` gives what broadcasts to (*batch, steps, stages, size). `held` values jump at the `knots`,
    others bend there.
    """

    size: int
    inputs: Callable[[np.ndarray], np.ndarray]
    law: Law
    batch: tuple[int, ...] = ()
    held: bool = False
    knots: tuple[float, ...] = ()


@dataclass(frozen=True, eq=False)
class Sampled:
    """Torques (..., k, n) at k times, held until the next sample or joined by straight lines; constant outside."""

    times: Any
    values: Any
    between: Literal["held", "linear"] = "linear"

    def at(self, t: np.ndarray) -> np.ndarray:
        """The torques at times `t`: (..., *t.shape, n)."""
        times, values = np.asarray(self.times, float), np.asarray(self.values, float)
        # A time that is a sample's but for rounding belongs to that sample.
        index = np.clip(np.searchsorted(times, t + 4 * np.spacing(np.abs(t)), side="right") - 1, 0, len(times) - 1)
        start: np.ndarray = values[..., index, :]
        if self.between == "held":
            return start
        after = np.minimum(index + 1, len(times) - 1)
        gap = np.where(after > index, times[after] - times[index], 1.0)
        part = np.clip((t - times[index]) / gap, 0.0, 1.0)[..., None]
        joined: np.ndarray = start + part * (values[..., after, :] - start)
        return joined


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


@dataclass(frozen=True, eq=False)
class Feedforward:
    """τ(t) = inverse dynamics of a reference at time t: open loop, nothing is measured."""

    reference: Reference


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
    if isinstance(torque, Feedforward):
        reference, forces = torque.reference, Kernel(chain, "inverse_dynamics")
        return Drive(n, lambda t: np.asarray(forces(*reference(t))), AsGiven())
    if isinstance(torque, Sampled):
        _check_samples(torque, n)
        knots = tuple(np.asarray(torque.times, float).tolist())
        batch = np.shape(torque.values)[:-2]
        return Drive(n, torque.at, AsGiven(), batch, torque.between == "held", knots)
    if torque is None:
        return Drive(0, lambda t: np.zeros((*t.shape, 0)), Nobody())
    if callable(torque):
        return None
    return _constant(torque, n)


def _constant(torque: Any, n: int) -> Drive:
    kinds = (
        f"torque must be None, {n} numbers, Sampled, PDGravity, ComputedTorque, Feedforward or a function of (t, q, qd)"
    )
    try:
        constant = np.asarray(torque, float)
    except (TypeError, ValueError):
        raise InputError(f"{kinds}; got {torque!r}") from None
    if constant.shape[-1:] != (n,):
        raise InputError(f"{kinds}; got an array of shape {constant.shape}")
    if not np.all(np.isfinite(constant)):
        raise InputError("torque contains NaN or infinity")
    return Drive(n, lambda t: constant[..., None, None, :], AsGiven(), constant.shape[:-1])


def _check_samples(torque: Sampled, n: int) -> None:
    times, values = np.asarray(torque.times, float), np.asarray(torque.values, float)
    if times.ndim != 1 or values.shape[-2:] != (len(times), n):
        raise InputError(
            f"sampled torques: expected times (k,) and values (..., k, {n}), got {times.shape}, {values.shape}"
        )
    if not np.all(np.isfinite(values)):
        raise InputError("sampled torques: the values contain NaN or infinity")
    if len(times) < 1 or np.any(np.diff(times) <= 0) or not np.all(np.isfinite(times)):
        raise InputError("sampled torques: the times must be finite and increasing")
    choose("way between samples", torque.between, ("held", "linear"))


@dataclass(frozen=True)
class Nobody:
    """The law of an arm left alone."""

    def __call__(self, chain: Chain, q: list[Any], qd: list[Any], u: list[Any]) -> list[Any]:
        """No torque at all."""
        return [0] * chain.n


@dataclass(frozen=True)
class AsGiven:
    """The law of torques known as functions of time."""

    def __call__(self, chain: Chain, q: list[Any], qd: list[Any], u: list[Any]) -> list[Any]:
        """The torques are u."""
        return u


@dataclass(frozen=True)
class PDGravityLaw:
    """τ = g(q) + kp (q_ref - q) + kd (q̇_ref - q̇), u = (q_ref, q̇_ref)."""

    kp: tuple[float, ...]
    kd: tuple[float, ...]

    def __call__(self, chain: Chain, q: list[Any], qd: list[Any], u: list[Any]) -> list[Any]:
        """The torques, over any scalar."""
        n = chain.n
        g = assemble(chain, "gravity_load", cheapest(chain, "gravity_load")).function(q)
        return [g[i] + self.kp[i] * (u[i] - q[i]) + self.kd[i] * (u[n + i] - qd[i]) for i in range(n)]


@dataclass(frozen=True)
class ComputedTorqueLaw:
    """τ = inverse dynamics of q̈_ref + kd (q̇_ref - q̇) + kp (q_ref - q), u = (q_ref, q̇_ref, q̈_ref)."""

    kp: tuple[float, ...]
    kd: tuple[float, ...]

    def __call__(self, chain: Chain, q: list[Any], qd: list[Any], u: list[Any]) -> list[Any]:
        """The torques, over any scalar."""
        n = chain.n
        inverse = assemble(chain, "inverse_dynamics", cheapest(chain, "inverse_dynamics")).function
        errors = [self.kd[i] * (u[n + i] - qd[i]) + self.kp[i] * (u[i] - q[i]) for i in range(n)]
        forces: list[Any] = inverse(q, qd, [u[2 * n + i] + e for i, e in enumerate(errors)])
        return forces


def _gains(value: Any, n: int, name: str) -> tuple[float, ...]:
    gains = np.asarray(value, float)
    if gains.shape not in ((), (1,), (n,)) or not np.all(np.isfinite(gains)):
        raise InputError(f"{name} must be one finite number or {n}, got {value!r}")
    gains = np.broadcast_to(gains, (n,))
    return tuple(float(x) for x in gains)


def _pd_gravity(chain: Chain, torque: PDGravity) -> Drive:
    n = chain.n
    law = PDGravityLaw(_gains(torque.kp, n, "kp"), _gains(torque.kd, n, "kd"))
    if isinstance(torque.target, Reference):
        reference = torque.target
        return Drive(2 * n, lambda t: np.concatenate(reference(t)[:2], axis=-1), law)
    posture = np.asarray(torque.target, float)
    if posture.shape != (n,):
        raise InputError(f"target must be a Reference or {n} numbers, got shape {posture.shape}")
    return Drive(2 * n, lambda t: np.concatenate([posture, np.zeros(n)]), law)


def _computed_torque(chain: Chain, torque: ComputedTorque) -> Drive:
    n = chain.n
    law = ComputedTorqueLaw(_gains(torque.kp, n, "kp"), _gains(torque.kd, n, "kd"))
    return Drive(3 * n, lambda t: np.concatenate(torque.reference(t), axis=-1), law)
