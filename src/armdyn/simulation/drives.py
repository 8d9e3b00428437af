"""Drives of the joints: none, constant torques, samples, controllers in the compiled loop, references.

A compilable drive has a law over scalars, like every other algorithm: ``law(chain, q, qd, u) -> tau``. Its
time-dependent inputs are u; q and qd start with the pose and velocity of a floating base; tau may be for the joints
only. A law is frozen data, which identifies its compiled code in the cache. A controller is anything with a method
`drive(chain)`; its law may name its stiffness and damping for implicit methods. Targets, references and gains are those
of the n joints; nothing drives a floating base.

A reference is called with times of any shape and returns (q, qd, qdd), each (..., n).
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

import numpy as np

from armdyn.algebra import clamp
from armdyn.chain import Chain
from armdyn.control.feedback import pd, plus
from armdyn.errors import ComputationError, InputError, choose
from armdyn.formulations.elimination import eliminate, solve
from armdyn.kernels.kernel import Kernel
from armdyn.programs.assemble import assemble
from armdyn.simulation.request import force_rows, force_sizes, forces_of, joints_of
from armdyn.values import real_array

if TYPE_CHECKING:
    from armdyn.arm import Arm


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

    def per_lane(self, batch: tuple[int, ...]) -> Drive:
        """The same for states as rows: a batch of its own becomes one axis of lanes, those of the whole `batch`."""
        if not self.batch:
            return self
        count = math.prod(batch)

        def inputs(t: np.ndarray) -> np.ndarray:
            u = self.inputs(t)
            return np.broadcast_to(u, (*batch, *u.shape[-3:])).reshape(count, *u.shape[-3:])

        return Drive(self.size, inputs, self.law, (count,), self.held, self.knots)


@runtime_checkable
class TorqueLaw(Protocol):
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
    if isinstance(torque, TorqueLaw):
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
    return torques_given(chain, torque(t, q.reshape(*batch, chain.nq), qd.reshape(*batch, chain.nv)), t, batch)


def torques_given(chain: Chain, tau: Any, t: float, batch: tuple[int, ...]) -> np.ndarray:
    """What a function gave at a time as forces (count, nv).

    They are a copy: the function may fill the same array at every call.
    """
    if type(tau) is np.ndarray and tau.shape == (*batch, chain.nv) and (tau.dtype is DOUBLE or tau.dtype == float):
        return tau.copy().reshape(-1, chain.nv)
    if tau is None:
        raise InputError(
            f"the torque function gave None at t = {t:.6g} s, expected (..., {force_sizes(chain)}) numbers"
        )
    given = real_array(tau, f"what the torque function gave at t = {t:.6g} s")
    expected = f"(..., {force_sizes(chain)})" + (f" with the batch {batch}" if batch else "")
    refused = InputError(f"the torque function gave shape {given.shape}, expected {expected}, at t = {t:.6g} s")
    if given.shape[-1:] not in ((chain.n,), (chain.nv,)) or given.ndim > len(batch) + 1:
        raise refused
    try:
        return np.array(np.broadcast_to(force_rows(chain, given), (*batch, chain.nv))).reshape(-1, chain.nv)
    except ValueError:
        raise refused from None


DOUBLE = np.dtype(float)
FEW = 64  # numbers: with more, NumPy's test is the quicker one
Faults = dict[int, tuple[float, str]]  # per lane: when its torques were no numbers, and the message


def note_faults(faults: Faults, chain: Chain, tau: np.ndarray, t: float, q: np.ndarray, qd: np.ndarray) -> None:
    """Record the first time at which a function gave forces (count, nv) that are not finite.

    It is no fault of the function where the state itself has diverged: there even its squares are not finite.
    """
    if tau.size <= FEW and all(map(math.isfinite, tau.ravel().tolist())):  # quicker for one arm
        return
    if np.isfinite(tau).all():
        return
    names = [*(["the base"] * (chain.nv - chain.n))]
    names += [chain.joints[i].name or f"joint {k + 1}" for k, i in enumerate(chain.independent)]
    for lane in np.flatnonzero(~np.isfinite(tau).all(axis=1)).tolist():
        if np.isfinite(q[lane] ** 2).all() and np.isfinite(qd[lane] ** 2).all():
            k = int(np.argmin(np.isfinite(tau[lane])))
            faults.setdefault(lane, (t, f"the torque function gave {tau[lane, k]} for {names[k]} at t = {t:.6g} s"))


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


@dataclass(frozen=True, eq=False)
class PD:
    """τ = kp (q_ref - q) + kd (q̇_ref - q̇): towards a posture or along a reference."""

    target: Any
    kp: Any
    kd: Any

    def drive(self, chain: Chain) -> Drive:
        """The drive of this controller for an arm."""
        return _pd(self.target, PDLaw(_gains(self.kp, chain.n, "kp"), _gains(self.kd, chain.n, "kd")), chain.n)


@dataclass(frozen=True, eq=False)
class PDGravity:
    """τ = kp (q_ref - q) + kd (q̇_ref - q̇) + g(q): towards a posture or along a reference."""

    target: Any
    kp: Any
    kd: Any

    def drive(self, chain: Chain) -> Drive:
        """The drive of this controller for an arm."""
        return _pd(self.target, PDGravityLaw(_gains(self.kp, chain.n, "kp"), _gains(self.kd, chain.n, "kd")), chain.n)


@dataclass(frozen=True, eq=False)
class ComputedTorque:
    """τ = inverse dynamics of q̈_ref + kd (q̇_ref - q̇) + kp (q_ref - q): exact tracking of a reference.

    With a floating base the joints track their reference, while the base moves under their reactions.
    """

    reference: Reference
    kp: Any = 100.0
    kd: Any = 20.0

    def drive(self, chain: Chain) -> Drive:
        """The drive of this controller for an arm."""
        n, reference = chain.n, self.reference
        law = ComputedTorqueLaw(_gains(self.kp, n, "kp"), _gains(self.kd, n, "kd"))
        return Drive(3 * n, lambda t: np.concatenate(reference(t), axis=-1), law, controller=True)


@dataclass(frozen=True, eq=False)
class Feedforward:
    """τ(t) = inverse dynamics of a reference at time t: open loop, without feedback.

    The reference of a floating base starts with its pose (7) and velocity (6), and a force and moment act on it too.
    """

    reference: Reference

    def drive(self, chain: Chain) -> Drive:
        """The drive of this controller for an arm."""
        reference, forces = self.reference, Kernel(chain, "inverse_dynamics")
        return Drive(chain.nv, lambda t: np.asarray(forces(*reference(t))), AsGiven(), controller=True)


@dataclass(frozen=True)
class PDLaw:
    """τ = kp (q_ref - q) + kd (q̇_ref - q̇), u = (q_ref, q̇_ref)."""

    kp: tuple[float, ...]
    kd: tuple[float, ...]

    @property
    def stiffness(self) -> tuple[float, ...]:
        """-∂τ/∂q, without that of gravity compensation, which cancels the arm's own gravity."""
        return self.kp

    @property
    def damping(self) -> tuple[float, ...]:
        """-∂τ/∂q̇."""
        return self.kd

    def __call__(self, chain: Chain, q: list[Any], qd: list[Any], u: list[Any]) -> list[Any]:
        """The torques, over any scalar."""
        n = chain.n
        return pd(self.kp, self.kd, (u[:n], joints_of(chain, q)), (u[n:], joints_of(chain, qd)))


@dataclass(frozen=True)
class PDGravityLaw(PDLaw):
    """τ = g(q) + kp (q_ref - q) + kd (q̇_ref - q̇), u = (q_ref, q̇_ref)."""

    def __call__(self, chain: Chain, q: list[Any], qd: list[Any], u: list[Any]) -> list[Any]:
        """The torques, over any scalar."""
        g = assemble(chain, "gravity_load", cheapest(chain, "gravity_load")).function(q)
        return plus(joints_of(chain, g), super().__call__(chain, q, qd, u))


@dataclass(frozen=True)
class ComputedTorqueLaw:
    """τ = inverse dynamics of q̈_ref + kd (q̇_ref - q̇) + kp (q_ref - q), u = (q_ref, q̇_ref, q̈_ref)."""

    kp: tuple[float, ...]
    kd: tuple[float, ...]

    def __call__(self, chain: Chain, q: list[Any], qd: list[Any], u: list[Any]) -> list[Any]:
        """The torques, over any scalar."""
        n, angles, speeds = chain.n, joints_of(chain, q), joints_of(chain, qd)
        wanted = plus(u[2 * n :], pd(self.kp, self.kd, (u[:n], angles), (u[n : 2 * n], speeds)))
        if chain.floating:
            return _on_a_free_base(chain, q, qd, wanted)
        forces: list[Any] = assemble(chain, "inverse_dynamics", cheapest(chain, "inverse_dynamics")).function(
            q, qd, wanted
        )
        return forces


def _on_a_free_base(chain: Chain, q: list[Any], qd: list[Any], qdd: list[Any]) -> list[Any]:
    """The joint forces for these accelerations with an unactuated base.

    The base rows of H q̈ + b = 0 give its acceleration; the joint rows then give the forces.
    """
    H = assemble(chain, "inertia_matrix", cheapest(chain, "inertia_matrix")).function(q)
    b = assemble(chain, "bias", cheapest(chain, "bias")).function(q, qd)
    six = chain.nv - chain.n

    def pushed(row: list[Any], bias: Any) -> Any:
        return sum((h * a for h, a in zip(row[six:], qdd, strict=True)), bias)

    alpha, inverse, _ = eliminate(chain, [row[:six] for row in H[:six]])
    base = solve(alpha, inverse, [-pushed(row, x) for row, x in zip(H[:six], b[:six], strict=True)])
    return [
        sum((h * a for h, a in zip(row[:six], base, strict=True)), pushed(row, x))
        for row, x in zip(H[six:], b[six:], strict=True)
    ]


def _gains(value: Any, n: int, name: str) -> tuple[float, ...]:
    gains = np.asarray(value, float)
    if gains.shape not in ((), (1,), (n,)) or not np.all(np.isfinite(gains)):
        raise InputError(f"{name} must be one finite number or {n}, got {value!r}")
    gains = np.broadcast_to(gains, (n,))
    return tuple(float(x) for x in gains)


def _pd(target: Any, law: PDLaw, n: int) -> Drive:
    if isinstance(target, Reference):
        return Drive(2 * n, lambda t: np.concatenate(target(t)[:2], axis=-1), law, controller=True)
    posture = np.asarray(target, float)
    if posture.shape != (n,):
        raise InputError(f"target must be a Reference or {n} numbers, got shape {posture.shape}")
    return Drive(2 * n, lambda t: np.concatenate([posture, np.zeros(n)]), law, controller=True)


ReferenceMotion = tuple[np.ndarray, np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Reference:
    """A motion: `duration` in seconds, and a function of time that returns (q, qd, qdd)."""

    name: str
    duration: float
    motion: Callable[[np.ndarray], ReferenceMotion]
    periodic: bool = False

    def __call__(self, t: Any) -> ReferenceMotion:
        """Position, velocity and acceleration at times `t`; at rest before 0 and after the end unless periodic."""
        t = np.asarray(t, float)
        if self.periodic:
            return self.motion(t)
        q, qd, qdd = self.motion(np.clip(t, 0.0, self.duration))
        moving = ((t >= 0.0) & (t <= self.duration))[..., None]
        return q, np.where(moving, qd, 0.0), np.where(moving, qdd, 0.0)


def _ends(start: Any, end: Any, duration: float) -> tuple[np.ndarray, np.ndarray]:
    a, b = np.asarray(start, float), np.asarray(end, float)
    if a.shape != b.shape or a.ndim != 1:
        raise InputError(f"start and end must be vectors of one length, got shapes {a.shape} and {b.shape}")
    if not (np.isfinite(duration) and duration > 0):
        raise InputError(f"duration must be positive and finite, got {duration}")
    return a, b


def quintic(start: Any, end: Any, duration: float) -> Reference:
    """From rest to rest along a fifth-order polynomial: velocity and acceleration are zero at both ends."""
    a, b = _ends(start, end, duration)
    return Reference("quintic", float(duration), partial(_quintic, a, b, duration))


# The motions are functions of modules with their data before the time, not closures, so that references pickle.


def _quintic(a: np.ndarray, b: np.ndarray, duration: float, t: np.ndarray) -> ReferenceMotion:
    s = (t / duration)[..., None]
    p = s**3 * (10 - 15 * s + 6 * s**2)
    v = 30 * s**2 * (1 - s) ** 2 / duration
    w = 60 * s * (1 - s) * (1 - 2 * s) / duration**2
    return a + (b - a) * p, (b - a) * v, (b - a) * w


def trapezoidal(start: Any, end: Any, duration: float, ramp: float = 0.25) -> Reference:
    """From rest to rest with a constant velocity between two ramps, each `ramp` of the duration."""
    a, b = _ends(start, end, duration)
    if not 0 < ramp <= 0.5:
        raise InputError(f"ramp must lie in (0, 0.5], got {ramp}")
    return Reference("trapezoidal", float(duration), partial(_trapezoidal, a, b, duration, ramp))


def _trapezoidal(a: np.ndarray, b: np.ndarray, duration: float, ramp: float, t: np.ndarray) -> ReferenceMotion:
    s = (t / duration)[..., None]
    top = 1 / (1 - ramp)  # the cruising speed of a unit distance in unit time
    up, down = s < ramp, s > 1 - ramp
    p = np.where(up, top * s**2 / (2 * ramp), top * (s - ramp / 2))
    p = np.where(down, 1 - top * (1 - s) ** 2 / (2 * ramp), p)
    v = top * np.where(up, s / ramp, np.where(down, (1 - s) / ramp, 1.0)) / duration
    w = top / ramp * (np.where(up, 1.0, 0.0) - np.where(down, 1.0, 0.0)) / duration**2
    return a + (b - a) * p, (b - a) * v, (b - a) * w


def fourier(center: Any, sine: Any, cosine: Any, frequency: float, duration: float | None = None) -> Reference:
    """Q = center + Σ_k sine_k sin(kωt) + cosine_k cos(kωt), with ω = 2π·frequency and k = 1, 2, …; periodic."""
    c, a, b = np.asarray(center, float), np.asarray(sine, float), np.asarray(cosine, float)
    if a.shape != b.shape or a.ndim != 2 or a.shape[1:] != c.shape:
        raise InputError(f"sine and cosine must be (harmonics, {c.size}), got {a.shape} and {b.shape}")
    if not frequency > 0:
        raise InputError(f"frequency must be positive (Hz), got {frequency}")
    w = 2 * np.pi * frequency * np.arange(1, len(a) + 1)[:, None]
    motion = partial(_fourier, c, a, b, w)
    return Reference("fourier", float(duration if duration is not None else 1 / frequency), motion, periodic=True)


def _fourier(c: np.ndarray, a: np.ndarray, b: np.ndarray, w: np.ndarray, t: np.ndarray) -> ReferenceMotion:
    phase = w * t[..., None, None]
    s, k = np.sin(phase), np.cos(phase)
    q = c + (a * s + b * k).sum(-2)
    return q, (w * (a * k - b * s)).sum(-2), -(w**2 * (a * s + b * k)).sum(-2)


def straight_line(arm: Arm, start: Any, end: Any, rotation: Any, speed: float, q0: Any = None) -> Reference:
    """The tool along a straight line at constant speed with constant orientation.

    `start` and `end` are points in the base frame, m; `rotation` is a 3 × 3 matrix, `speed` in m/s. Positions come from
    inverse kinematics solved to machine precision, velocities and accelerations from the Jacobian and its rate.
    """
    a, b = np.asarray(start, float), np.asarray(end, float)
    R = np.asarray(rotation, float)
    if a.shape != (3,) or b.shape != (3,) or R.shape != (3, 3):
        raise InputError(f"expected points (3,) and a rotation (3, 3), got {a.shape}, {b.shape}, {R.shape}")
    length = float(np.linalg.norm(b - a))
    if not (speed > 0 and length > 0):
        raise InputError(f"speed and length must be positive, got {speed} m/s and {length} m")
    duration = length / speed
    knots = np.linspace(0.0, duration, 201)
    path = _knots(arm, a, (b - a) / duration, R, knots, q0)
    return Reference("straight line", duration, partial(_along_line, arm, a, (b - a) / duration, R, knots, path))


def _along_line(
    arm: Arm, start: np.ndarray, v: np.ndarray, R: np.ndarray, knots: np.ndarray, path: np.ndarray, t: np.ndarray
) -> ReferenceMotion:
    """The motion of `straight_line`; `path` holds the configurations at the times `knots`."""
    guess = np.stack([np.interp(t, knots, path[:, i]) for i in range(arm.n)], axis=-1)
    q = _newton(arm, start + np.multiply.outer(t, v), R, guess)
    twist = np.concatenate([v, np.zeros(3)])
    inverse = np.linalg.pinv(arm.jacobian(q))
    qd = inverse @ twist
    rate = (arm.jacobian_rate(q, qd) @ qd[..., None])[..., 0]
    return q, qd, -(inverse @ rate[..., None])[..., 0]


def _knots(arm: Arm, a: np.ndarray, v: np.ndarray, R: np.ndarray, t: np.ndarray, q0: Any) -> np.ndarray:
    """Configurations along the line, each solved from the previous one to stay on the same branch."""
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = R, a
    first = arm.inverse_kinematics(pose, q0)
    if not first.converged:
        raise ComputationError(f"the start of the line cannot be reached: {first.message}")
    rows = [_newton(arm, a, R, np.asarray(first.q))]
    for moment in t[1:]:
        rows.append(_newton(arm, a + v * moment, R, rows[-1]))
    return np.array(rows)


def _newton(arm: Arm, point: np.ndarray, R: np.ndarray, q: np.ndarray, rounds: int = 30) -> np.ndarray:
    """Solve pose(q) = (R, point) from a close guess; a whole batch at once."""
    best, least = q, np.inf
    for _ in range(rounds):
        pose = arm.pose(q)
        turn = R @ np.swapaxes(pose[..., :3, :3], -1, -2)
        skew = turn - np.swapaxes(turn, -1, -2)
        axial = np.stack([skew[..., 2, 1], skew[..., 0, 2], skew[..., 1, 0]], axis=-1)
        error = np.concatenate([point - pose[..., :3, 3], axial / 2], axis=-1)
        size = float(np.max(np.abs(error), initial=0.0))
        if size < least:
            best, least = q, size
        elif least < 1e-12:
            return best
        q = q + (np.linalg.pinv(arm.jacobian(q)) @ error[..., None])[..., 0]
    if least > 1e-10:
        raise ComputationError(f"the line leaves the arm's reach or meets a singularity (residual {least:.1e})")
    return best
