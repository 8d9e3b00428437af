"""Recursive Newton-Euler algorithm with second moments. Ours.

Idea: with U = [ẇ×] + [w×][w×] the acceleration of a body point x is dv + U x, so the force on a body is m dv + U k and
the moment about the origin follows from A = U P, P = ∫ x xᵀ dm, as (A₃₂ - A₂₃, A₁₃ - A₃₁, A₂₁ - A₁₂) + k × dv. The
parameters that are invariant under rotation about z (m, k_z and P₃₃) are regrouped with the parent link (exactly,
off-line): the moment then takes 13M 13A where J ẇ + w × J w takes 22M 16A. A prismatic joint regroups all of P.

Symbols: k first moment, P second moment about the frame's origin.

Cost: (81n - 105)M (69n - 95)A for n ≥ 3 revolute joints in general position, before common subexpression elimination.
"""

from __future__ import annotations

from armdyn.algebra import ZERO, Mat3, Scalar, Sym3, Vec3
from armdyn.algebra.spatial import NO_BODY, NO_MOMENTS, Body, outer
from armdyn.chain import Chain, Joint
from armdyn.formulations.inverse_dynamics.recursion import recursion
from armdyn.formulations.steps import collect


def regroup(joint: Joint, body: Body) -> tuple[Body, Body]:
    """(the part that stays with the link, the part regrouped with its parent, in the parent's frame)."""
    P = body.P
    if joint.prismatic:
        return Body(body.mass, body.moment, NO_MOMENTS), Body(0, ZERO, joint.rotation(0).similarity(P))
    stays = Body(0, Vec3(body.moment.x, body.moment.y, 0), Sym3(P.xx, P.xy, P.yy, P.xz, P.yz, 0))
    axis, s = joint.axis, joint.origin
    second = P.zz * outer(axis, axis) + 2 * body.moment.z * outer(axis, s) + body.mass * outer(s, s)
    return stays, Body(body.mass, body.moment.z * axis + body.mass * s, second)


def bodies(chain: Chain) -> list[Body]:
    """One body per link, with regrouped parameters."""
    found: list[Body] = []
    given: dict[int, Body] = {}
    for i in reversed(range(chain.bodies)):
        stays, moved = regroup(chain.joints[i], chain.links[i].body + given.get(i, NO_BODY))
        found.append(stays)
        collect(given, chain.parents[i], moved)
    return seen_turning(chain, found[::-1])


def seen_turning(chain: Chain, bodies: list[Body]) -> list[Body]:
    """The same bodies; where a body only ever rotates about its own z, P is reduced to P₁₁ + P₂₂."""
    found = list(bodies)
    turning: list[bool] = []
    for i, (joint, parent) in enumerate(zip(chain.joints, chain.parents, strict=True)):
        parallel = joint.beta.sin == 0 and joint.gamma.sin == 0
        turning.append(parent < 0 or (turning[parent] and parallel))
        if turning[i]:
            P = found[i].P
            found[i] = Body(found[i].mass, found[i].moment, Sym3(P.xx + P.yy, 0, 0, 0, 0, 0))
    return found


def moment(body: Body, w: Vec3, dw: Vec3, U: Mat3) -> Vec3:
    """∫ x × U x dm, from A = U P."""
    P, (a, b, c) = body.P, U.rows
    return Vec3(
        c.x * P.xy + c.y * P.yy + (c.z - b.y) * P.yz - b.x * P.xz - b.z * P.zz,
        (a.x - c.z) * P.xz + a.y * P.yz - c.x * P.xx - c.y * P.xy + a.z * P.zz,
        b.x * P.xx + (b.y - a.x) * P.xy + b.z * P.xz - a.y * P.yy - a.z * P.yz,
    )


def inverse_dynamics(chain: Chain, q: list[Scalar], qd: list[Scalar], qdd: list[Scalar]) -> list[Scalar]:
    """The joint forces for a motion, without rotors and friction."""
    return recursion(chain, q, qd, qdd, bodies(chain), moment)


def bias(chain: Chain, q: list[Scalar], qd: list[Scalar], *, qdd: list[Scalar] | None = None) -> list[Scalar]:
    """C q̇ + g: inverse dynamics at zero acceleration, or at `qdd` for the rotating axes of a floating base."""
    return inverse_dynamics(chain, q, qd, [0] * chain.n if qdd is None else qdd)
