"""Walker & Orin's composite bodies about their centres of mass, in normal driving-axis frames.

Source: Walker & Orin 1982 (Method 3), as reformulated in normal driving-axis frames by Lin (quoted in
Lin 1991, Table I) and described in the introduction of Lin & Fang 1999.

Idea: composite body i has a mass, a centre of mass and an inertia about that centre. A unit acceleration of joint i
requires a force at the centre and a torque about it; both are propagated inwards, and each joint on the way takes its
component.

Symbols (paper | code): Mᵢ | mass, cᵢ | centre, Eᵢ | inertia, Fᵢ Nᵢ | F N, fⱼ nⱼ | f t.

Cost claimed: (11n²+53n-74)M (8n²+52n-62)A (Lin 1991, Table I); (12n²+56n-27)M (7n²+67n-53)A (Provenzano
et al., Table 1). The steps are printed in neither paper.

A composite body without mass has no centre; the frame's origin is taken, about which such a body must have no first
moment either.
"""

from __future__ import annotations

from dataclasses import dataclass

from armdyn.algebra import ZERO, Scalar, Sym3, Vec3, online
from armdyn.algebra.tally import stage
from armdyn.chain import Chain, Link
from armdyn.errors import InputError
from armdyn.formulations.steps import Matrix, Step, filled, run_time, steps

_NO_CENTRE = (
    "walker_orin needs centres of mass, and a body of this arm has a first moment but no mass; methods that do "
    "not: lin_fang_1 … lin_fang_5, lin_1991, renaud, gibbs_appell, denoc, meeting_frame"
)


@dataclass(frozen=True, slots=True)
class CompositeBody:
    """Mass, centre of mass, inertia about the centre; in frame i."""

    mass: Scalar
    centre: Vec3
    inertia: Sym3


def inertia_matrix(chain: Chain, q: list[Scalar], *, constant_tip: bool = True) -> Matrix:
    """H(q), column by column; without `constant_tip` the last link's numbers count as run-time numbers (C2)."""
    path = steps(chain, q)
    stage("composite bodies")
    bodies = _composite_bodies(chain, path, constant_tip)
    stage("formulation")
    columns = []
    for i, (step, body) in enumerate(zip(path, bodies, strict=True)):
        f, t = wrench(step.revolute, body)
        column = [t.z if step.revolute else f.z]
        for j in reversed(range(i)):
            f, t = _inwards(path[j + 1], f, t)
            column.append(t.z if path[j].revolute else f.z)
        columns.append(column[::-1])
    return filled(columns)


def _composite_bodies(chain: Chain, path: list[Step], constant_tip: bool) -> list[CompositeBody]:
    tip = one_body(chain.links[-1])
    bodies = [tip if constant_tip else at_run_time(tip)]
    for link, step in zip(chain.links[-2::-1], path[:0:-1], strict=True):
        own, outer = one_body(link), bodies[-1]
        centre = step.R @ outer.centre + step.origin
        moved = CompositeBody(outer.mass, centre, step.R.similarity_by_products(outer.inertia))
        bodies.append(joined(own, moved))
    return bodies[::-1]


def joined(own: CompositeBody, outer: CompositeBody) -> CompositeBody:
    """Two bodies, given in one frame, as one."""
    mass = own.mass + outer.mass
    if mass == 0 and own.mass != 0:
        raise InputError(_NO_CENTRE)
    common = (own.mass / mass) * own.centre + (outer.mass / mass) * outer.centre if mass != 0 else ZERO
    inertia = own.inertia + outer.inertia
    inertia = inertia + _moved(own.mass, own.centre - common) + _moved(outer.mass, outer.centre - common)
    return CompositeBody(mass, common, inertia)


def one_body(link: Link) -> CompositeBody:
    """A link alone."""
    if link.mass == 0 and any(x != 0 for x in link.moment):
        raise InputError(_NO_CENTRE)
    return CompositeBody(link.mass, link.com, link.inertia_about_com)


def at_run_time(body: CompositeBody) -> CompositeBody:
    """A body whose centre and inertia count as run-time numbers."""
    return CompositeBody(body.mass, run_time(body.centre), Sym3(*(online(x) for x in body.inertia.entries)))


def _moved(mass: Scalar, d: Vec3) -> Sym3:
    """-m [d×][d×]."""
    x, y, z = mass * d
    xx, yy, zz = x * d.x, y * d.y, z * d.z
    return Sym3(yy + zz, -(x * d.y), xx + zz, -(x * d.z), -(y * d.z), xx + yy)


def wrench(revolute: bool, body: CompositeBody) -> tuple[Vec3, Vec3]:
    """Force and torque about the frame's origin for a unit acceleration of the joint."""
    c, E = body.centre, body.inertia
    if revolute:
        F, N = Vec3(-(body.mass * c.y), body.mass * c.x, 0), Vec3(E.xz, E.yz, E.zz)
    else:
        F, N = Vec3(0, 0, body.mass), ZERO
    return F, N + c.cross(F)


def _inwards(step: Step, f: Vec3, t: Vec3) -> tuple[Vec3, Vec3]:
    f = step.R @ f
    return f, step.R @ t + step.origin.cross(f)
