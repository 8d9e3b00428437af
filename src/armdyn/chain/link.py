"""Link: a rigid body given by its ten natural parameters."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from armdyn.algebra import ZERO, Mat3, Scalar, Sym3, Tally, Vec3
from armdyn.algebra.spatial import Body

NATURAL = ("m", "mcx", "mcy", "mcz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")


@dataclass(frozen=True, slots=True)
class Link:
    """Mass, first moment m c and inertia about the origin of the link's frame, in that frame."""

    mass: Scalar
    moment: Vec3
    inertia: Sym3
    name: str = field(default="", compare=False, kw_only=True)  # in `Arm.links`

    def __repr__(self) -> str:
        try:
            com = ", ".join(f"{float(x):.6g}" for x in self.com)
            return f"Link(mass={float(self.mass):.6g} kg, com=({com}) m)"
        except TypeError:  # symbols
            return f"Link{self.natural!r}"

    @classmethod
    def from_com(cls, mass: Scalar, com: Vec3, inertia: Sym3) -> Link:
        """A link from its centre of mass and the inertia about that centre."""
        return cls(mass, mass * com, inertia + mass * Sym3.steiner(com, com))

    @classmethod
    def from_natural(cls, parameters: tuple[Scalar, ...]) -> Link:
        """A link from its ten natural parameters in the order of `NATURAL`."""
        m, hx, hy, hz, *inertia = parameters
        return cls(m, Vec3(hx, hy, hz), Sym3(*inertia))

    @property
    def natural(self) -> tuple[Scalar, ...]:
        """(m, mcx, mcy, mcz, Ixx, Ixy, Iyy, Ixz, Iyz, Izz) about the frame's origin."""
        return (self.mass, *self.moment, *self.inertia.entries)

    @property
    def has_centre(self) -> bool:
        """Whether the centre of mass is known: the mass is not an input of a program, and not 0."""
        return isinstance(self.mass, int | float | Fraction | Tally) and self.mass != 0

    @property
    def com(self) -> Vec3:
        """Centre of mass; the origin for a massless link."""
        return self.moment * (1 / self.mass) if self.mass != 0 else ZERO

    @property
    def inertia_about_com(self) -> Sym3:
        """Inertia about the centre of mass."""
        c = self.com
        moved: Sym3 = self.mass * Sym3.steiner(c, c)
        return self.inertia - moved

    @property
    def body(self) -> Body:
        """The same link by its second moments ∫ x xᵀ dm."""
        return Body.of(self.mass, self.moment, self.inertia)

    def __add__(self, other: Link) -> Link:
        """Both bodies, fixed to one another."""
        return Link(self.mass + other.mass, self.moment + other.moment, self.inertia + other.inertia)

    def moved(self, R: Mat3, p: Vec3) -> Link:
        """The same body in a frame in which its own frame is placed at (R, p)."""
        h = R @ self.moment
        J = R.similarity(self.inertia) + 2 * Sym3.steiner(p, h) + self.mass * Sym3.steiner(p, p)
        return Link(self.mass, h + self.mass * p, J)


MASSLESS = Link(0, ZERO, Sym3(0, 0, 0, 0, 0, 0))
