"""The rotation of a joint in normal driving-axis frames, as three plane rotations.

R transforms vectors from frame i to its parent's: ``R = Rx(β) Ry(γ) Rz(θ)``. γ is 0 except for nearly parallel
axes, where it avoids an ill-conditioned common normal. Rotating a vector costs 8M 4A: four
multiplications and two additions per plane; right angles cost nothing. At a fork a constant rotation about the
parent's z axis comes first: ``R = Rz(turn) Rx(β) Ry(γ) Rz(θ)``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from armdyn.algebra.angle import ZERO_ANGLE, Angle
from armdyn.algebra.mat3 import Mat3, Sym3
from armdyn.algebra.scalar import Scalar
from armdyn.algebra.tally import on_hand
from armdyn.algebra.vec3 import Vec3


@dataclass(frozen=True, slots=True)
class JointRotation:
    """R = Rz(turn) Rx(β) Ry(γ) Rz(θ), with c, s the cosine and sine of θ."""

    beta: Angle
    gamma: Angle
    c: Scalar
    s: Scalar
    turn: Angle = ZERO_ANGLE

    @property
    def turned(self) -> bool:
        """Whether there is a rotation about the parent's z axis."""
        return bool(self.turn.sin != 0 or self.turn.cos != 1)

    @property
    def unturned(self) -> JointRotation:
        """The same without the rotation about the parent's z axis."""
        return JointRotation(self.beta, self.gamma, self.c, self.s) if self.turned else self

    def __matmul__(self, v: Vec3) -> Vec3:
        """R v: from frame i into its parent's."""
        x, y = self.c * v.x - self.s * v.y, self.s * v.x + self.c * v.y
        cg, sg, cb, sb = self.gamma.cos, self.gamma.sin, self.beta.cos, self.beta.sin
        x, z = cg * x + sg * v.z, cg * v.z - sg * x
        y, z = cb * y - sb * z, sb * y + cb * z
        return turn_about_z(Vec3(x, y, z), self.turn) if self.turned else Vec3(x, y, z)

    def inverse(self, v: Vec3) -> Vec3:
        """Rᵀ v: from the parent's frame into frame i."""
        if self.turned:
            v = turn_about_z(v, self.turn.opposite)
        cg, sg, cb, sb = self.gamma.cos, self.gamma.sin, self.beta.cos, self.beta.sin
        y, z = cb * v.y + sb * v.z, cb * v.z - sb * v.y
        x, z = cg * v.x - sg * z, cg * z + sg * v.x
        return Vec3(self.c * x + self.s * y, self.c * y - self.s * x, z)

    @property
    def T(self) -> InverseRotation:
        """The transpose, so that ``R.T @ v`` reads as in the papers."""
        return InverseRotation(self)

    def matrix(self) -> Mat3:
        """The nine entries; the papers take them as on hand (C1): free when counted."""
        matrix: Mat3 = on_hand(self._matrix)
        return matrix

    def _matrix(self) -> Mat3:
        columns = (self @ Vec3(1, 0, 0), self @ Vec3(0, 1, 0), self @ Vec3(0, 0, 1))
        return Mat3(*columns).T

    def similarity(self, J: Sym3) -> Sym3:
        """R J Rᵀ, plane by plane: 18M 14A (Lin & Fang 1999, eqs. 41-54, in their order of planes)."""
        J = _turn_z(J, self.c, self.s)
        if self.gamma.sin != 0:
            J = _turn_y(J, self.gamma.cos, self.gamma.sin)
        J = _turn_x(J, self.beta.cos, self.beta.sin)
        return _turn_z(J, self.turn.cos, self.turn.sin) if self.turned else J

    def similarity_by_products(self, J: Sym3) -> Sym3:
        """The same as plain products of 2 × 2 matrices, 36M 18A: how it was done before 1996."""
        J = _turn_z(J, self.c, self.s, _plane_by_products)
        if self.gamma.sin != 0:
            J = _turn_y(J, self.gamma.cos, self.gamma.sin, _plane_by_products)
        J = _turn_x(J, self.beta.cos, self.beta.sin, _plane_by_products)
        return _turn_z(J, self.turn.cos, self.turn.sin, _plane_by_products) if self.turned else J


def turn_about_z(v: Vec3, angle: Angle) -> Vec3:
    """Rz(angle) v, by a constant angle."""
    c, s = angle.cos, angle.sin
    return Vec3(c * v.x - s * v.y, s * v.x + c * v.y, v.z)


def similarity_about_z(J: Sym3, angle: Angle) -> Sym3:
    """Rz(angle) J Rz(angle)ᵀ, by a constant angle."""
    return _turn_z(J, angle.cos, angle.sin)


@dataclass(frozen=True, slots=True)
class InverseRotation:
    """The transpose of a joint rotation."""

    T: JointRotation

    def __matmul__(self, v: Vec3) -> Vec3:
        return self.T.inverse(v)


def _plane(a: Scalar, b: Scalar, h: Scalar, c: Scalar, s: Scalar) -> tuple[Scalar, Scalar, Scalar]:
    """[[c, -s], [s, c]] [[a, h], [h, b]] [[c, s], [-s, c]] as (a', b', h')."""
    t = s * (a - b) + 2 * (c * h)  # b' = b + s t, a' = a - s t, h' = c s (a - b) + (c² - s²) h
    st = s * t
    return a - st, b + st, c * t - h


def _plane_by_products(a: Scalar, b: Scalar, h: Scalar, c: Scalar, s: Scalar) -> tuple[Scalar, Scalar, Scalar]:
    """The same, one matrix product after the other."""
    a1, h1, h2, b2 = c * a - s * h, c * h - s * b, s * a + c * h, s * h + c * b
    return c * a1 - s * h1, s * h2 + c * b2, s * a1 + c * h1


Plane = Callable[[Scalar, Scalar, Scalar, Scalar, Scalar], tuple[Scalar, Scalar, Scalar]]


def _turn_z(J: Sym3, c: Scalar, s: Scalar, plane: Plane = _plane) -> Sym3:
    xx, yy, xy = plane(J.xx, J.yy, J.xy, c, s)
    return Sym3(xx, xy, yy, c * J.xz - s * J.yz, s * J.xz + c * J.yz, J.zz)


def _turn_y(J: Sym3, c: Scalar, s: Scalar, plane: Plane = _plane) -> Sym3:
    zz, xx, xz = plane(J.zz, J.xx, J.xz, c, s)
    return Sym3(xx, c * J.xy + s * J.yz, J.yy, xz, c * J.yz - s * J.xy, zz)


def _turn_x(J: Sym3, c: Scalar, s: Scalar, plane: Plane = _plane) -> Sym3:
    yy, zz, yz = plane(J.yy, J.zz, J.yz, c, s)
    return Sym3(J.xx, c * J.xy - s * J.xz, yy, s * J.xy + c * J.xz, yz, zz)
