"""Bodies by their moments: mass, first moment and second moments ∫ x xᵀ dm about the frame's origin."""

from __future__ import annotations

from dataclasses import dataclass

from armdyn.algebra import Scalar, Sym3, Vec3
from armdyn.chain import Link

NONE = Sym3(0, 0, 0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Body:
    """Mass, first moment and second moments ∫ x xᵀ dm about the frame's origin."""

    mass: Scalar
    moment: Vec3
    P: Sym3

    @classmethod
    def of(cls, link: Link) -> Body:
        """The same link: P = ½ tr(J) E - J."""
        J = link.inertia
        half = J.trace / 2
        return cls(link.mass, link.moment, Sym3(half - J.xx, -J.xy, half - J.yy, -J.xz, -J.yz, half - J.zz))

    def __add__(self, other: Body) -> Body:
        return Body(self.mass + other.mass, self.moment + other.moment, self.P + other.P)


def outer(a: Vec3, b: Vec3) -> Sym3:
    """½ (a bᵀ + b aᵀ)."""
    return Sym3(
        a.x * b.x,
        (a.x * b.y + a.y * b.x) / 2,
        a.y * b.y,
        (a.x * b.z + a.z * b.x) / 2,
        (a.y * b.z + a.z * b.y) / 2,
        a.z * b.z,
    )
