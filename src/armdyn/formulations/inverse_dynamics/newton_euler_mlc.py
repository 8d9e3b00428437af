"""Recursive Newton-Euler algorithm on minimal linear combinations of the inertial parameters.

Source: Lin 1995 (ref. 15 of Lin & Fang 1999), which was not available: the recursion is our own; the combinations
are the inertia constants of Lin & Fang 1999, App. C.

Idea: of the constants m̂, k, U of composite body i, rotation about joint i leaves m̂, k_z and diag(U₂₂, U₂₂, 0)
unchanged; they are regrouped with the previous link. The rest, (k_x, k_y) and five entries of U - diag(U₂₂, U₂₂, 0),
are the parameters of link i. A prismatic joint leaves U unchanged, and its link keeps m̂ and k.

Symbols (paper | code): m̂ᵢ | mass, kᵢ | k, Uᵢ | U.
"""

from __future__ import annotations

from armdyn.algebra import ZERO, Mat3, Scalar, Sym3, Vec3
from armdyn.chain import Chain, Link
from armdyn.formulations.inverse_dynamics.recursion import recursion
from armdyn.formulations.steps import collect
from armdyn.parameters.structure import Constants, regrouped

NOTHING = Constants(0, ZERO, Sym3(0, 0, 0, 0, 0, 0))


def accounts(chain: Chain) -> list[Link]:
    """The links with the parameters that remain after regrouping."""
    links: list[Link] = []
    given: dict[int, Constants] = {}
    for i in reversed(range(chain.bodies)):
        joint, link = chain.joints[i], chain.links[i]
        body = Constants(link.mass, link.moment, link.inertia) + given.get(i, NOTHING)
        m, k, U = body.mass, body.k, body.U
        if joint.revolute:
            links.append(Link(0, Vec3(k.x, k.y, 0), Sym3(U.xx - U.yy, U.xy, 0, U.xz, U.yz, U.zz)))
            moved = regrouped(joint, body)
        else:
            links.append(Link(m, k, NOTHING.U))
            moved = Constants(0, ZERO, joint.rotation(0).similarity(U))
        collect(given, chain.parents[i], moved)
    return links[::-1]


def moment(link: Link, w: Vec3, dw: Vec3, A: Mat3) -> Vec3:
    """The moment of a rotating body: U ẇ + w × U w."""
    U = link.inertia
    return U @ dw + w.cross(U @ w)


def inverse_dynamics(chain: Chain, q: list[Scalar], qd: list[Scalar], qdd: list[Scalar]) -> list[Scalar]:
    """The joint forces for a motion, without rotors and friction."""
    return recursion(chain, q, qd, qdd, accounts(chain), moment)
