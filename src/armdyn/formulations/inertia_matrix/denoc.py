"""DeNOC: the inertia matrix from the decoupled natural orthogonal complement.

Source: Saha 1999, eqs. (1)-(15), (19)-(22).

Idea: the links' twists at their mass centres are t = N_l N_d q̇, and I = N_dᵀ(N_lᵀ M N_l)N_d. The middle
matrix holds the extended masses M̃ᵢ of composite bodies, taken at the mass centre of link i (not of the
composite body); i_ij = pᵢᵀ M̃ᵢ B_ij pⱼ. The paper is coordinate-free; here body i is expressed in frame i.

Symbols (paper | code): dᵢ | link's com, pᵢ | (w, v), M̃ᵢ | a `Link` about that centre (four blocks J, [h×], [h×]ᵀ, m),
c_i+1,i | -a, pᵢᵀM̃ᵢ | (moment, force).

Cost claimed: none for the inertia matrix.

A link without mass has no mass centre: its frame's origin is taken, and its first moment, if any, enters M̃.
"""

from __future__ import annotations

from armdyn.algebra import ZERO, Scalar, Sym3, Vec3, Z
from armdyn.algebra.spatial import parallel_axis
from armdyn.algebra.tally import stage
from armdyn.chain import Chain, Link
from armdyn.formulations.steps import Matrix, Step, filled, steps

Twist = tuple[Vec3, Vec3]  # (w, v): angular velocity, velocity of the mass centre


def _momentum(body: Link, twist: Twist) -> tuple[Vec3, Vec3]:
    """(moment, force) = M̃ (w, v), about the point at which the body is given."""
    w, v = twist
    return body.inertia @ w + body.moment.cross(v), body.mass * v + w.cross(body.moment)


def inertia_matrix(chain: Chain, q: list[Scalar]) -> Matrix:
    """I(q), row by row, from the diagonal to the left."""
    path = steps(chain, q)
    twists = [_p(step, link) for step, link in zip(path, chain.links, strict=True)]
    stage("composite bodies")
    arms = _between_centres(chain, path)
    bodies = _extended_masses(chain, path, arms)
    stage("formulation")
    rows = []
    for i, body in enumerate(bodies):
        moment, force = _momentum(body, twists[i])  # pᵢᵀ M̃ᵢ
        row: list[Scalar] = [*(0 for _ in range(i)), _power(twists[i], moment, force)]
        outer, j = i, path[i].parent
        while j >= 0:
            R = path[outer].R
            force, moment = R @ force, R @ moment
            moment = moment + arms[outer].cross(force)  # Saha eq. (11): times B_j+1,j
            row[j] = _power(twists[j], moment, force)  # Saha eq. (22)
            outer, j = j, path[j].parent
        rows.append(row)
    return filled(rows)


def _p(step: Step, link: Link) -> Twist:
    """The joint's unit twist at the mass centre of its link (Saha eqs. 11, 13)."""
    return (Z, Z.cross(link.com)) if step.revolute else (ZERO, Z)


def _between_centres(chain: Chain, path: list[Step]) -> list[Vec3]:
    """The vector from the parent's mass centre to that of link i, in the parent's frame; zero for a first link."""
    centres = [link.com for link in chain.links]
    return [
        step.origin + step.R @ com - centres[step.parent] if step.parent >= 0 else ZERO
        for step, com in zip(path, centres, strict=True)
    ]


def _extended_masses(chain: Chain, path: list[Step], arms: list[Vec3]) -> list[Link]:
    """M̃ᵢ of all composite bodies, parents before children (Saha eq. 21)."""
    bodies = [_one(link) for link in chain.links]
    for i, step in reversed(list(enumerate(path))):
        if step.parent >= 0:
            own, outer, a = bodies[step.parent], bodies[i], arms[i]
            h = step.R @ outer.moment
            J = own.inertia + step.R.similarity(outer.inertia) + parallel_axis(a, h) + outer.mass * Sym3.steiner(a, a)
            bodies[step.parent] = Link(own.mass + outer.mass, own.moment + h + outer.mass * a, J)
    return bodies


def _one(link: Link) -> Link:
    """Mᵢ about the mass centre (Saha eq. 2)."""
    return Link(link.mass, ZERO if link.mass != 0 else link.moment, link.inertia_about_com)


def _power(twist: Twist, moment: Vec3, force: Vec3) -> Scalar:
    w, v = twist
    return w.dot(moment) + v.dot(force)
