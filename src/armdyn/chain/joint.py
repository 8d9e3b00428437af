"""Joint: one revolute or prismatic joint in normal driving-axis (modified Denavit-Hartenberg) frames."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from armdyn.algebra import Angle, JointRotation, Mat3, Scalar, Vec3
from armdyn.algebra.angle import ZERO_ANGLE

Kind = Literal["revolute", "prismatic"]


@dataclass(frozen=True, slots=True)
class Limit:
    """What a joint may do; None where unknown. SI units (rad or m, per second, N m or N)."""

    lower: float | None = None
    upper: float | None = None
    velocity: float | None = None
    effort: float | None = None


@dataclass(frozen=True, slots=True)
class Joint:
    """Frame i in frame i-1: move b along x, turn β about x, γ about y, move d along and turn θ about z.

    A revolute joint adds q to θ, a prismatic one adds q to d. γ is 0 but for nearly parallel axes.
    """

    kind: Kind
    b: Scalar
    beta: Angle
    d: Scalar
    theta: Angle
    gamma: Angle = ZERO_ANGLE
    name: str = ""
    limit: Limit = Limit()
    rotor_inertia: Scalar = 0
    viscous: Scalar = 0
    coulomb: Scalar = 0

    def __repr__(self) -> str:
        numbers = {"b": self.b, "beta": self.beta.radians, "d": self.d, "theta": self.theta.radians}
        if self.gamma.radians:
            numbers["gamma"] = self.gamma.radians
        shown = ", ".join(f"{key}={_shown(x)}" for key, x in numbers.items())
        return f"Joint({self.name or '?'}, {self.kind}, {shown})"

    @property
    def revolute(self) -> bool:
        """Whether the joint turns."""
        return self.kind == "revolute"

    @property
    def prismatic(self) -> bool:
        """Whether the joint slides."""
        return self.kind == "prismatic"

    def rotation(self, q: Scalar) -> JointRotation:
        """The rotation that carries frame i into frame i-1."""
        c, s = self.theta.plus(q) if self.revolute else (self.theta.cos, self.theta.sin)
        return JointRotation(self.beta, self.gamma, c, s)

    def extension(self, q: Scalar) -> Scalar:
        """d, with q added where the joint slides."""
        return self.d + q if self.prismatic else self.d

    @property
    def tilt(self) -> Mat3:
        """The constant part of the rotation, Rx(β) Ry(γ)."""
        return JointRotation(self.beta, self.gamma, 1, 0).matrix()

    def placement(self, q: Scalar) -> tuple[JointRotation, Vec3]:
        """(R, p): rotation and origin of frame i in frame i-1; p = (b, -d Sβ, d Cβ) where γ = 0."""
        R, d = self.rotation(q), self.extension(q)
        cg = self.gamma.cos
        return R, Vec3(self.b + self.gamma.sin * d, -self.beta.sin * cg * d, self.beta.cos * cg * d)

    def offset(self, q: Scalar, R: JointRotation) -> Vec3:
        """The same origin seen in frame i: (b Cθ, -b Sθ, d) where γ = 0."""
        b = self.b * self.gamma.cos
        return Vec3(b * R.c, -b * R.s, self.extension(q) + self.b * self.gamma.sin)


def _shown(x: Scalar) -> str:
    """A number in six digits; any other scalar as it shows itself."""
    try:
        return f"{float(x):.6g}"
    except TypeError:
        return repr(x)
