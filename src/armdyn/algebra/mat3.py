"""3×3 matrices of scalars: general ones given by their rows, and symmetric ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, overload

from armdyn.algebra.scalar import Scalar
from armdyn.algebra.vec3 import Vec3, X, Y, Z


@dataclass(frozen=True, slots=True)
class Mat3:
    """A matrix given by its three rows."""

    r1: Vec3
    r2: Vec3
    r3: Vec3
    __array_ufunc__ = None  # so that `array * self` calls `__rmul__` instead of making an array of objects

    @property
    def T(self) -> Mat3:
        """The transpose."""
        a, b, c = self.r1, self.r2, self.r3
        return Mat3(Vec3(a.x, b.x, c.x), Vec3(a.y, b.y, c.y), Vec3(a.z, b.z, c.z))

    @property
    def rows(self) -> tuple[Vec3, Vec3, Vec3]:
        """The three rows."""
        return self.r1, self.r2, self.r3

    @overload
    def __matmul__(self, other: Vec3) -> Vec3: ...
    @overload
    def __matmul__(self, other: Mat3) -> Mat3: ...
    def __matmul__(self, other: Any) -> Any:
        if isinstance(other, Vec3):
            return Vec3(self.r1.dot(other), self.r2.dot(other), self.r3.dot(other))
        columns = other.T
        return Mat3(columns @ self.r1, columns @ self.r2, columns @ self.r3)

    def __add__(self, other: Mat3) -> Mat3:
        return Mat3(self.r1 + other.r1, self.r2 + other.r2, self.r3 + other.r3)

    def __sub__(self, other: Mat3) -> Mat3:
        return Mat3(self.r1 - other.r1, self.r2 - other.r2, self.r3 - other.r3)

    def __mul__(self, factor: Scalar) -> Mat3:
        return Mat3(factor * self.r1, factor * self.r2, factor * self.r3)

    __rmul__ = __mul__

    def similarity(self, J: Sym3) -> Sym3:
        """A J Aᵀ."""
        AJ = self @ J.full
        full = AJ @ self.T
        return Sym3(full.r1.x, full.r1.y, full.r2.y, full.r1.z, full.r2.z, full.r3.z)


@dataclass(frozen=True, slots=True)
class Sym3:
    """A symmetric matrix, entries in Pinocchio's order: xx, xy, yy, xz, yz, zz."""

    xx: Scalar
    xy: Scalar
    yy: Scalar
    xz: Scalar
    yz: Scalar
    zz: Scalar
    __array_ufunc__ = None  # so that `array * self` calls `__rmul__` instead of making an array of objects

    @property
    def entries(self) -> tuple[Scalar, ...]:
        """The six entries xx, xy, yy, xz, yz, zz."""
        return self.xx, self.xy, self.yy, self.xz, self.yz, self.zz

    @property
    def full(self) -> Mat3:
        """The matrix with all nine entries."""
        return Mat3(Vec3(self.xx, self.xy, self.xz), Vec3(self.xy, self.yy, self.yz), Vec3(self.xz, self.yz, self.zz))

    @property
    def trace(self) -> Scalar:
        """The sum of the diagonal, tr J."""
        return self.xx + self.yy + self.zz

    def __matmul__(self, v: Vec3) -> Vec3:
        return self.full @ v

    def __add__(self, other: Sym3) -> Sym3:
        return Sym3(*(a + b for a, b in zip(self.entries, other.entries, strict=True)))

    def __sub__(self, other: Sym3) -> Sym3:
        return Sym3(*(a - b for a, b in zip(self.entries, other.entries, strict=True)))

    def __neg__(self) -> Sym3:
        return Sym3(*(-a for a in self.entries))

    def __mul__(self, factor: Scalar) -> Sym3:
        return Sym3(*(factor * a for a in self.entries))

    __rmul__ = __mul__

    @staticmethod
    def steiner(a: Vec3, b: Vec3) -> Sym3:
        """-([a×][b×] + [b×][a×])/2 = (a·b)E - (abᵀ + baᵀ)/2: `steiner(c, c)` moves an inertia by c."""
        xx, yy, zz = a.x * b.x, a.y * b.y, a.z * b.z
        if a is b:
            return Sym3(yy + zz, -a.x * a.y, xx + zz, -a.x * a.z, -a.y * a.z, xx + yy)
        return Sym3(
            yy + zz,
            -(a.x * b.y + a.y * b.x) / 2,
            xx + zz,
            -(a.x * b.z + a.z * b.x) / 2,
            -(a.y * b.z + a.z * b.y) / 2,
            xx + yy,
        )


IDENTITY = Mat3(X, Y, Z)
