"""DeNOC: the inertia matrix from the decoupled natural orthogonal complement.

Source: Saha 1999, eqs. (1)-(15), (19)-(22).

Idea: the links' twists at their mass centres are t = N_l N_d q̇, and I = N_dᵀ(N_lᵀ M N_l)N_d. The middle
matrix holds the extended masses M̃ᵢ of composite bodies, taken at the mass centre of link i (not of the
composite body); i_ij = pᵢᵀ M̃ᵢ B_ij pⱼ. The paper is free of frames; here body i is seen in frame i.

Symbols (paper | code): dᵢ | link's com, pᵢ | (w, v), M̃ᵢ | `Extended` (its four blocks are J, [h×], [h×]ᵀ, m),
c_i+1,i | -a, pᵢᵀM̃ᵢ | (moment, force).

Cost claimed: none for the inertia matrix.

A link without mass has no mass centre: its frame's origin is taken, and its first moment, if any, enters M̃.
"""

from __future__ import annotations

from dataclasses import dataclass

from armdyn.algebra import ZERO, Scalar, Sym3, Vec3, Z
from armdyn.algebra.spatial import parallel_axis
from armdyn.algebra.tally import stage
from armdyn.chain import Chain, Link
from armdyn.formulations.inertia_matrix.symmetric import Matrix, filled
from armdyn.formulations.steps import Step, steps

Twist = tuple[Vec3, Vec3]  # (w, v): angular velocity, velocity of the mass centre


@dataclass(frozen=True, slots=True)
class Extended:
    """The extended mass of a body about a point: mass, first moment and inertia."""

    mass: Scalar
    h: Vec3
    J: Sym3

    def __matmul__(self, twist: Twist) -> tuple[Vec3, Vec3]:
        """(moment, force) = M̃ (w, v)."""
        w, v = twist
        return self.J @ w + self.h.cross(v), self.mass * v + w.cross(self.h)


def inertia_matrix(chain: Chain, q: list[Scalar]) -> Matrix:
    """I(q), row by row from the diagonal to the left."""
    path = steps(chain, q)
    twists = [_p(step, link) for step, link in zip(path, chain.links, strict=True)]
    stage("composite bodies")
    arms = _between_centres(chain, path)
    bodies = _extended_masses(chain, path, arms)
    stage("formulation")
    rows = []
    for i, body in enumerate(bodies):
        moment, force = body @ twists[i]  # pᵢᵀ M̃ᵢ
        row = [_power(twists[i], moment, force)]
        for j in reversed(range(i)):
            R = path[j + 1].R
            force, moment = R @ force, R @ moment
            moment = moment + arms[j].cross(force)  # Saha eq. (11): times B_j+1,j
            row.append(_power(twists[j], moment, force))  # Saha eq. (22)
        rows.append(row[::-1])
    return filled(rows)


def _p(step: Step, link: Link) -> Twist:
    """The joint's unit twist at the mass centre of its link (Saha eqs. 11, 13)."""
    return (Z, Z.cross(link.com)) if step.revolute else (ZERO, Z)


def _between_centres(chain: Chain, path: list[Step]) -> list[Vec3]:
    """From the mass centre of link i to that of link i+1, in frame i."""
    pairs = zip(chain.links, chain.links[1:], path[1:], strict=False)
    return [step.origin + step.R @ outer.com - link.com for link, outer, step in pairs]


def _extended_masses(chain: Chain, path: list[Step], arms: list[Vec3]) -> list[Extended]:
    """M̃ᵢ of every composite body, base to tip (Saha eq. 21)."""
    bodies = [_one(chain.links[-1])]
    for link, step, a in zip(chain.links[-2::-1], path[:0:-1], arms[::-1], strict=True):
        own, outer = _one(link), bodies[-1]
        h = step.R @ outer.h
        J = own.J + step.R.similarity(outer.J) + parallel_axis(a, h) + outer.mass * Sym3.steiner(a, a)
        bodies.append(Extended(own.mass + outer.mass, own.h + h + outer.mass * a, J))
    return bodies[::-1]


def _one(link: Link) -> Extended:
    """Mᵢ about the mass centre (Saha eq. 2)."""
    return Extended(link.mass, ZERO if link.mass != 0 else link.moment, link.inertia_about_com)


def _power(twist: Twist, moment: Vec3, force: Vec3) -> Scalar:
    w, v = twist
    return w.dot(moment) + v.dot(force)
