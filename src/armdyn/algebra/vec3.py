"""Vectors of three scalars."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from armdyn.algebra.scalar import Scalar


@dataclass(frozen=True, slots=True)
class Vec3:
    """A vector (x, y, z) of scalars of any type."""

    x: Scalar
    y: Scalar
    z: Scalar
    __array_ufunc__ = None  # so that `array * self` calls `__rmul__` instead of making an array of objects

    def __iter__(self) -> Iterator[Scalar]:
        return iter((self.x, self.y, self.z))

    def __add__(self, other: Vec3) -> Vec3:
        return Vec3(self.x + other.x, self.y + other.y, self.z + other.z)

    def __sub__(self, other: Vec3) -> Vec3:
        return Vec3(self.x - other.x, self.y - other.y, self.z - other.z)

    def __neg__(self) -> Vec3:
        return Vec3(-self.x, -self.y, -self.z)

    def __mul__(self, factor: Scalar) -> Vec3:
        return Vec3(factor * self.x, factor * self.y, factor * self.z)

    __rmul__ = __mul__

    def dot(self, other: Vec3) -> Scalar:
        """Scalar product."""
        return self.x * other.x + self.y * other.y + self.z * other.z

    def cross(self, other: Vec3) -> Vec3:
        """Vector product self × other."""
        a, b = self, other
        return Vec3(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x)


ZERO = Vec3(0, 0, 0)
X = Vec3(1, 0, 0)
Y = Vec3(0, 1, 0)
Z = Vec3(0, 0, 1)
