"""Drives of the joints: none, constant torques, samples, a Python function, or a controller.

A compilable drive has a law over scalars, like every other algorithm: ``law(chain, q, qd, u) -> tau``. Its
time-dependent inputs are u; q and qd start with the pose and velocity of a floating base; tau may be for the joints
only. A law is frozen data, which identifies its compiled code in the cache. A controller is anything with a method
``drive(chain) -> Drive``; `controllers` has those of armdyn.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np

from armdyn.algebra import clamp
from armdyn.chain import Chain
from armdyn.errors import InputError, choose
from armdyn.kernels.kernel import Kernel
from armdyn.simulation.state import force_rows, force_sizes, forces_of
from armdyn.values import real_array

Law = Callable[[Chain, list[Any], list[Any], list[Any]], list[Any]]


@dataclass(frozen=True)
class Drive:
    """A compilable drive: the size of u, u at times (steps, stages), and the law.

    `inputs` returns an array that broadcasts to ``(*batch, steps, stages, size)``. `held` values jump at the `knots`,
    others have kinks there. By default the torques of a controller are clamped to the effort limits. A law may have
    `stiffness` (-∂τ/∂q) and `damping` (-∂τ/∂q̇), one number per joint, for implicit methods.
    """

    size: int
    inputs: Callable[[np.ndarray], np.ndarray]
    law: Law
    batch: tuple[int, ...] = ()
    held: bool = False
    knots: tuple[float, ...] = ()
    controller: bool = False

    def gains(self, chain: Chain) -> tuple[np.ndarray, np.ndarray] | None:
        """Stiffness and damping along every velocity, or None for a law that does not give them."""
        law = self.law.law if isinstance(self.law, Saturated) else self.law
        if not (hasattr(law, "stiffness") and hasattr(law, "damping")):
            return None
        return np.array(forces_of(chain, law.stiffness), float), np.array(forces_of(chain, law.damping), float)


@runtime_checkable
class Controller(Protocol):
    """The protocol of controllers for `simulate`."""

    def drive(self, chain: Chain) -> Drive:
        """The drive of this controller for an arm."""
        ...


@dataclass(frozen=True, eq=False)
class Sampled:
    """Torques (..., k, n) at k times, held until the next sample or linearly interpolated; constant outside."""

    times: Any
    values: Any
    between: Literal["held", "linear"] = "linear"

    def at(self, t: np.ndarray) -> np.ndarray:
        """The torques at times `t`: (..., shape of t, n)."""
        times, values = np.asarray(self.times, float), np.asarray(self.values, float)
        # A time that equals a sample's up to rounding belongs to that sample.
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
    """The formulation that the arm's kernel uses."""
    return Kernel(chain, quantity).method


def drive(chain: Chain, torque: Any) -> Drive | None:
    """The compilable drive for a `torque` argument; None for a Python function."""
    if isinstance(torque, Controller):
        return torque.drive(chain)
    if torque is None:
        return Drive(0, lambda t: np.zeros((*t.shape, 0)), Nobody())
    if callable(torque):
        return None
    return _constant(torque, chain)


def unsaturated(drive: Drive) -> Drive:
    """The drive without the limits of the motors."""
    return replace(drive, law=drive.law.law) if isinstance(drive.law, Saturated) else drive


def source_of(law: Law) -> bytes:
    """The source file (or the bytecode) of a law defined outside armdyn, for the cache key."""
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
    """The forces (count, nv) from a function of (t, q, qd), which gets the rows of q and qd in their batch shape."""
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
    """The law of an unactuated arm."""

    def __call__(self, chain: Chain, q: list[Any], qd: list[Any], u: list[Any]) -> list[Any]:
        """Zero torques."""
        return [0] * chain.nv


@dataclass(frozen=True)
class AsGiven:
    """The law of torques given as functions of time."""

    def __call__(self, chain: Chain, q: list[Any], qd: list[Any], u: list[Any]) -> list[Any]:
        """The torques are u."""
        return u


@dataclass(frozen=True)
class Saturated:
    """Another law with its torques clamped to the effort limits; None for no limit."""

    law: Law
    effort: tuple[float | None, ...]

    def __call__(self, chain: Chain, q: list[Any], qd: list[Any], u: list[Any]) -> list[Any]:
        """The torques, over any scalar."""
        torques = forces_of(chain, self.law(chain, q, qd, u))
        return [t if most is None else clamp(t, most) for t, most in zip(torques, self.effort, strict=True)]
