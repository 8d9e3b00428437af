"""Controllers compiled into the loop: PD, PD with gravity compensation, computed torque, feedforward.

A controller has a method `drive(chain)`. Its law is a function of scalars, with its time-dependent inputs as u, so that
it becomes part of the compiled step and implicit methods know its stiffness and damping. Targets, references and gains
are those of the n joints; nothing drives a floating base.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from armdyn.chain import Chain
from armdyn.control.feedback import pd, plus
from armdyn.errors import InputError
from armdyn.formulations.elimination import eliminate, solve
from armdyn.kernels.kernel import Kernel
from armdyn.programs.assemble import assemble
from armdyn.simulation.references import Reference
from armdyn.simulation.state import joints_of
from armdyn.simulation.torque import AsGiven, Drive, cheapest


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
