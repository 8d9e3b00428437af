"""Arm: what a user holds, a chain with its kernels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from armdyn.algebra import Vec3, exact
from armdyn.chain import Chain, Joint, Link
from armdyn.chain.snap import SNAP, snapped
from armdyn.kernels import Kernel


class KernelOf:
    """A quantity of the arm: a `Kernel` made at first use and kept on the arm."""

    def __init__(self, doc: str) -> None:
        self.__doc__ = doc

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, arm: Any, owner: type | None = None) -> Any:
        if arm is None:
            return self
        kernel = arm.kernel(self.name)
        arm.__dict__[self.name] = kernel
        return kernel


@dataclass(frozen=True, eq=False)
class Arm:
    """A robot arm: `given` is the chain as its file has it, `chain` the snapped one that is computed with."""

    name: str
    given: Chain
    snap: float = SNAP
    source: str = ""

    @cached_property
    def chain(self) -> Chain:
        """The chain computed with: exact constants, angles within `snap` of a right angle made right."""
        return snapped(self.given, self.snap)

    @property
    def n(self) -> int:
        """The number of joints."""
        return self.chain.n

    @property
    def joints(self) -> tuple[Joint, ...]:
        """The joints, base to tip."""
        return self.chain.joints

    @property
    def links(self) -> tuple[Link, ...]:
        """The links, base to tip."""
        return self.chain.links

    @property
    def gravity(self) -> tuple[float, float, float]:
        """Gravity in the base frame, m/s²."""
        x, y, z = self.chain.gravity
        return float(x), float(y), float(z)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Arm) and (self.name, self.given, self.snap) == (other.name, other.given, other.snap)

    def __hash__(self) -> int:
        return hash((self.name, self.given, self.snap))

    def kernel(self, quantity: str, method: str = "auto", backend: str = "python") -> Kernel:
        """A quantity by a chosen formulation on a chosen backend."""
        return Kernel(self.chain, quantity, method, backend)

    def with_gravity(self, gravity: Any) -> Arm:
        """The same arm under another gravity vector (base frame, m/s²); g - a₀ for an accelerating base."""
        return replace(self, given=replace(self.given, gravity=Vec3(*(exact(float(g)) for g in gravity))))

    inertia_matrix = KernelOf("Joint-space inertia matrix H(q): (..., n) -> (..., n, n).")
    bias = KernelOf("Coriolis, centrifugal and gravity forces b(q, qd): (..., n).")
    gravity_load = KernelOf("Gravity load g(q): (..., n).")
    kinetic_energy = KernelOf("Kinetic energy T(q, qd): (...,).")
    potential_energy = KernelOf("Potential energy V(q), zero at the base origin: (...,).")
    pose = KernelOf("Pose of the tool in the base: (..., 4, 4).")
    link_poses = KernelOf("Poses of the links in the base: (..., n, 4, 4).")
    jacobian = KernelOf("Jacobian of the tool, linear rows first, in base axes: (..., 6, n).")
    jacobian_rate = KernelOf("Time derivative of the Jacobian along qd: (..., 6, n).")
