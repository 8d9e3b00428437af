"""The elements of minimal parameters, and the sets of them in Lin 1994, Theorems 4 and 5.

Symbols (paper | name here): (U_j)₃₃ | U33_j, (U_j)₁₁ - (U_j)₂₂ | U11-22_j, (k_j)_x | kx_j,
m̂_i | m_i, κ₁ᵢ, κ₂ᵢ of eqs. (53), (54) | kappa1_i, kappa2_i.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from armdyn.algebra import Scalar, Vec3
from armdyn.chain import Chain
from armdyn.parameters.constants import Constants
from armdyn.parameters.structure import Structure


@dataclass(frozen=True, slots=True)
class Element:
    """One inertia constant (or a combination of a few) of composite body `link`, counted from 0."""

    kind: str
    link: int

    @property
    def name(self) -> str:
        """As in the paper, counted from 1: ``U33_1``, ``kx_2``, ``kappa1_3``."""
        return f"{self.kind}_{self.link + 1}"

    def of(self, constants: Constants, axis: Vec3 | None) -> Scalar:
        """The element's value; `axis` is u_r in the link's frame (needed by κ₁ and κ₂ alone)."""
        if axis is not None and self.kind in KAPPA:
            return KAPPA[self.kind](constants.k, axis)
        return PLAIN[self.kind](constants)


PLAIN: dict[str, Callable[[Constants], Scalar]] = {
    "m": lambda c: c.mass,
    "kx": lambda c: c.k.x,
    "ky": lambda c: c.k.y,
    "kz": lambda c: c.k.z,
    "U11-22": lambda c: c.U.xx - c.U.yy,
    "U12": lambda c: c.U.xy,
    "U13": lambda c: c.U.xz,
    "U23": lambda c: c.U.yz,
    "U33": lambda c: c.U.zz,
    "U11": lambda c: c.U.xx,
    "U22": lambda c: c.U.yy,
}
FREE = (
    "m",
    "kx",
    "ky",
    "kz",
    "U11",
    "U12",
    "U22",
    "U13",
    "U23",
    "U33",
)  # of a floating base: all ten of its composite body
KAPPA: dict[str, Callable[[Vec3, Vec3], Scalar]] = {
    "kappa1": lambda k, u: u.x * k.y - u.y * k.x,  # eq. (53)
    # eq. (54), with u_x² + u_y² for 1 - u_z², which suffers from cancellation if the axes are nearly parallel
    "kappa2": lambda k, u: (u.x * u.x + u.y * u.y) * k.z - u.z * (u.x * k.x + u.y * k.y),
}


def theorem_5(chain: Chain, at: Structure) -> tuple[Element, ...]:
    """The set for the actuator forces, in the order of Lin 1994, Theorem 5; the elements of a floating base come first.

    The theorem is for a chain; in a tree it holds for every path from the base to a tip (decision record 6).
    """
    revolute = [i for i, joint in enumerate(chain.joints) if joint.revolute]
    prismatic = [i for i, joint in enumerate(chain.joints) if joint.prismatic]
    first = [i for i in revolute if not at.beyond[i]]
    groups = (
        [(kind, 0) for kind in FREE if chain.floating],
        [(kind, i) for i in first for kind in ("U33", "kx", "ky")[: 3 if at.delta[i] else 1]],
        [(kind, i) for i in revolute if at.beyond[i] for kind in ("U11-22", "U33", "U12", "U13", "U23", "kx", "ky")],
        [("m", i) for i in prismatic],
        [(kind, i) for i in prismatic if at.beyond[i] for kind in ("kx", "ky", "kz")],
        [(kind, i) for i in prismatic if at.sigma[i] for kind in ("kappa1", "kappa2")],
    )
    return tuple(Element(kind, i) for group in groups for kind, i in group)


def theorem_4(chain: Chain, at: Structure) -> tuple[Element, ...]:
    """The set for the gravity load, in the order of Lin 1994, Theorem 4."""
    found = []
    for i, joint in enumerate(chain.joints):
        if joint.revolute and at.delta_gravity[i]:
            found += [Element("kx", i), Element("ky", i)]
        if joint.prismatic and at.sigma_gravity[i]:
            found.append(Element("m", i))
    return tuple(found)
