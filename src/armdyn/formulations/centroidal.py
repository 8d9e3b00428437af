"""The whole robot as one body: centre of mass, its Jacobian, centroidal momentum.

Source: Orin, Goswami & Lee 2013 (centroidal momentum and its matrix).

Idea: column j of the centroidal momentum matrix is the momentum of composite body j at a unit rate of joint j, in base
axes, about the centre of mass of the whole robot. Its linear rows are the mass times the Jacobian of the centre of
mass. Linear rows come before angular ones. Rotors are not included.
"""

from __future__ import annotations

from armdyn.algebra import Scalar, Vec3
from armdyn.algebra.spatial import NO_MOTION, NO_WRENCH, Body, MotionVector, Wrench
from armdyn.chain import Chain
from armdyn.formulations.coriolis_matrix.christoffel import composites
from armdyn.formulations.elimination import Matrix
from armdyn.formulations.energies import first_moment
from armdyn.formulations.kinematics.poses import frames
from armdyn.formulations.registry import definition
from armdyn.formulations.steps import collect, steps


def centre_of_mass(chain: Chain, q: list[Scalar]) -> list[Scalar]:
    """The centre of mass in the base frame."""
    mass, k = first_moment(chain, q)
    return list(chain.base.R @ (k * (1 / mass)) + chain.base.p)


def centre_of_mass_jacobian(chain: Chain, q: list[Scalar]) -> Matrix:
    """(3 × n): the Jacobian of the centre of mass."""
    share = 1 / sum(link.mass for link in chain.links)
    return [[share * entry for entry in row] for row in centroidal_momentum_matrix(chain, q)[:3]]


def centroidal_momentum_matrix(chain: Chain, q: list[Scalar]) -> Matrix:
    """(6 × n): A, where A q̇ is the momentum about the centre of mass, linear rows first, in base axes."""
    centre = Vec3(*centre_of_mass(chain, q))
    bodies = composites(steps(chain, q), [link.body for link in chain.links])
    columns = []
    for joint, body, (R, p) in zip(chain.joints, bodies, frames(chain, q), strict=True):
        own = unit_momentum(joint.revolute, body)
        f = R @ own.f
        columns.append((*f, *(R @ own.n + (p - centre).cross(f))))
    return [list(row) for row in zip(*columns, strict=True)]


def unit_momentum(revolute: bool, body: Body) -> Wrench:
    """The momentum of a body at a unit rate of a joint with axis z, linear and about the frame's origin."""
    k, P = body.moment, body.P
    if revolute:
        return Wrench(Vec3(-k.y, k.x, 0), Vec3(-P.xz, -P.yz, P.xx + P.yy))
    return Wrench(Vec3(0, 0, body.mass), Vec3(k.y, -k.x, 0))


def centroidal_momentum(chain: Chain, q: list[Scalar], qd: list[Scalar]) -> list[Scalar]:
    """The momentum of the whole robot, linear and about its centre of mass, in base axes, by an inward recursion."""
    walk = steps(chain, q)
    motions: list[MotionVector] = []
    for step, rate in zip(walk, qd, strict=True):
        before = motions[step.parent] if step.parent >= 0 else NO_MOTION
        motions.append(step.motion_outward(before).along(step.revolute, rate))
    brought: dict[int, Wrench] = {}
    for i, step in reversed(list(enumerate(walk))):
        link, w, v = chain.links[i], motions[i].w, motions[i].v
        own = Wrench(link.mass * v + w.cross(link.moment), link.inertia @ w + link.moment.cross(v))
        collect(brought, step.parent, step.wrench_inward(brought.get(i, NO_WRENCH) + own))
    total = brought[-1]
    mass, k = first_moment(chain, q)
    about = total.n - (k * (1 / mass)).cross(total.f)
    return [*(chain.base.R @ total.f), *(chain.base.R @ about)]


CENTRE_OF_MASS = definition(centre_of_mass, "first moments carried inwards")
CENTRE_OF_MASS_JACOBIAN = definition(centre_of_mass_jacobian, "momenta of composite bodies")
CENTROIDAL_MOMENTUM = definition(centroidal_momentum, "momenta carried inwards")
CENTROIDAL_MOMENTUM_MATRIX = definition(centroidal_momentum_matrix, "momenta of composite bodies")
