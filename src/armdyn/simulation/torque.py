"""Who drives the joints: nobody, constants, samples, a Python function, or a controller.

A drive that can be compiled has a law, written over scalars like every other algorithm:
``law(chain, q, qd, u) -> tau``, where u is what the drive needs to know of the time; q and qd begin with the pose and
velocity of a floating base, and tau may be that of the joints alone. A law is frozen data, so
that what was compiled for it can be found again by its name. A controller is anything with a method
``drive(chain) -> Drive``; `controllers` has those that come with armdyn.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np

from armdyn.algebra import clamp
from armdyn.chain import Chain
from armdyn.errors import InputError, choose
from armdyn.kernels import Kernel
from armdyn.kernels.arguments import real_array
from armdyn.simulation.state import force_rows, force_sizes, forces_of

Law = Callable[[Chain, list[Any], list[Any], list[Any]], list[Any]]


@dataclass(frozen=True)
class Drive:
    """A compilable drive: the size of u, u at times (steps, stages), and the law.

    `inputs` gives what broadcasts to ``(*batch, steps, stages, size)``. `held` values jump at the `knots`,
    others bend there. A controller's torques are clamped to the motors' effort limits unless told otherwise.
    A law may have `stiffness` (-∂τ/∂q) and `damping` (-∂τ/∂q̇), one number per joint, which implicit methods take in.
    """

    size: int
    inputs: Callable[[np.ndarray], np.ndarray]
    law: Law
    batch: tuple[int, ...] = ()
    held: bool = False
    knots: tuple[float, ...] = ()
    controller: bool = False


@runtime_checkable
class Controller(Protocol):
    """What `simulate` takes as a controller."""

    def drive(self, chain: Chain) -> Drive:
        """The drive of this controller for an arm."""
        ...


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

    def drive(self, chain: Chain) -> Drive:
        """Torques as functions of time."""
        _check_samples(self, chain)
        knots = tuple(np.asarray(self.times, float).tolist())
        batch = np.shape(self.values)[:-2]
        return Drive(chain.nv, lambda t: force_rows(chain, self.at(t)), AsGiven(), batch, self.between == "held", knots)


def cheapest(chain: Chain, quantity: str) -> str:
    """The formulation an arm's own kernel would take."""
    return Kernel(chain, quantity).method


def drive(chain: Chain, torque: Any) -> Drive | None:
    """The compilable drive a user asked for; None for a Python function."""
    if isinstance(torque, Controller):
        return torque.drive(chain)
    if torque is None:
        return Drive(0, lambda t: np.zeros((*t.shape, 0)), Nobody())
    if callable(torque):
        return None
    return _constant(torque, chain)


def source_of(law: Law) -> bytes:
    """What shapes a law beyond its numbers and armdyn's own source: the file that it comes from, else its code."""
    inner = law.law if isinstance(law, Saturated) else law
    kind = type(inner)
    if kind.__module__.split(".")[0] == "armdyn":
        return b""
    try:
        with open(inspect.getfile(kind), "rb") as file:
            return file.read()
    except (TypeError, OSError):
        code = kind.__call__.__code__
        return repr((code.co_code, code.co_consts, code.co_names)).encode()


def _constant(torque: Any, chain: Chain) -> Drive:
    kinds = (
        f"torque must be None, {force_sizes(chain)} numbers, Sampled, PD, PDGravity, ComputedTorque, "
        "Feedforward, another controller or a function of (t, q, qd)"
    )
    try:
        constant = real_array(torque, "torque")
    except InputError as error:
        raise InputError(f"{kinds}; {error}") from None
    if constant.shape[-1:] not in ((chain.n,), (chain.nv,)):
        raise InputError(f"{kinds}; got an array of shape {constant.shape}")
    if not np.all(np.isfinite(constant)):
        raise InputError("torque contains NaN or infinity")
    rows = force_rows(chain, constant)
    return Drive(chain.nv, lambda t: rows[..., None, None, :], AsGiven(), constant.shape[:-1])


def asked_torque(
    chain: Chain, torque: Callable[..., Any], t: float, q: Any, qd: Any, batch: tuple[int, ...]
) -> np.ndarray:
    """The forces (count, nv) that a function of (t, q, qd) gives for rows of q and qd, which it sees in their batch."""
    tau = np.asarray(torque(t, q.reshape(*batch, chain.nq), qd.reshape(*batch, chain.nv)), float)
    if tau.shape[-1:] not in ((chain.n,), (chain.nv,)):
        raise InputError(f"the torque function gave shape {tau.shape}, expected (..., {force_sizes(chain)})")
    return np.broadcast_to(force_rows(chain, tau), (*batch, chain.nv)).reshape(-1, chain.nv)


def _check_samples(torque: Sampled, chain: Chain) -> None:
    times, values = real_array(torque.times, "sampled times"), real_array(torque.values, "sampled torques")
    if times.ndim != 1 or values.shape[-2:] not in ((len(times), chain.n), (len(times), chain.nv)):
        raise InputError(
            f"sampled torques: expected times (k,) and values (..., k, {force_sizes(chain)}), "
            f"got {times.shape}, {values.shape}"
        )
    if not np.all(np.isfinite(values)):
        raise InputError("sampled torques: the values contain NaN or infinity")
    if len(times) < 1 or np.any(np.diff(times) <= 0) or not np.all(np.isfinite(times)):
        raise InputError("sampled torques: the times must be finite and increasing")
    choose("interpolation between samples", torque.between, ("held", "linear"))


@dataclass(frozen=True)
class Nobody:
    """The law of an arm left alone."""

    def __call__(self, chain: Chain, q: list[Any], qd: list[Any], u: list[Any]) -> list[Any]:
        """No torque at all."""
        return [0] * chain.nv


@dataclass(frozen=True)
class AsGiven:
    """The law of torques known as functions of time."""

    def __call__(self, chain: Chain, q: list[Any], qd: list[Any], u: list[Any]) -> list[Any]:
        """The torques are u."""
        return u


@dataclass(frozen=True)
class Saturated:
    """Another law with its torques clamped to the motors' limits; None where there is none."""

    law: Law
    effort: tuple[float | None, ...]

    def __call__(self, chain: Chain, q: list[Any], qd: list[Any], u: list[Any]) -> list[Any]:
        """The torques, over any scalar."""
        torques = forces_of(chain, self.law(chain, q, qd, u))
        return [t if most is None else clamp(t, most) for t, most in zip(torques, self.effort, strict=True)]
