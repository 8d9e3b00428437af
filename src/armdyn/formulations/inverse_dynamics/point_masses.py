"""Recursive Newton-Euler with second moments and a little left on every axis: ours.

Idea: as in `second_moments`, but what lies on the axis that two links share is divided between them so that
the programs get shorter. A point mass kept back where the common normal from the link before meets the axis
makes k_x of the link before 0: that link saves k_x U x and two products of k × dv (5M 5A) for m dv of one
vector (3M 3A). A second moment along the axis makes P₂₃ of the link before 0, unless the axes are at right
angles: 3M 4A for 2M 2A. Altogether 3M 4A less per joint.

A link's point of reference is where the common normal from the link before meets its axis, not the origin of
its frame; a prismatic joint keeps the origin. The d of a last revolute joint is then part of no program.

Nothing is kept back that is larger than the whole arm's (a tiny b would ask for a huge mass, and pay in
digits), nor where the parameters are known at run time only.

Symbols: k first moment, P second moment about the point of reference; e shift along z from a link's point of
reference to its frame's origin.

Cost: (78n - 99)M (65n - 87)A for n ≥ 3 revolute joints in general position, before common terms are sought.
"""

from __future__ import annotations

from fractions import Fraction

from armdyn.algebra import IDENTITY, ZERO, Scalar, Sym3, Vec3, Z
from armdyn.algebra.spatial import NO_BODY, NO_MOMENTS, NO_WRENCH, Body, Wrench, outer
from armdyn.chain import Chain, Joint
from armdyn.formulations.inverse_dynamics.recursion import Moving, acceleration_matrix, at_rest
from armdyn.formulations.inverse_dynamics.second_moments import moment, seen_turning
from armdyn.formulations.steps import Step, collect, steps


def bodies(chain: Chain) -> list[Body]:
    """One body per link about its point of reference, with k_x and P₂₃ = 0 where the next axis can see to it."""
    own = [link.moved(IDENTITY, _entry(joint) * Z).body for joint, link in zip(chain.joints, chain.links, strict=True)]
    divisible = _known(own)
    most = sum(abs(body.mass) for body in own) if divisible else 0
    widest = sum(abs(body.P.trace) for body in own) if divisible else 0
    found: list[Body] = []
    given: dict[int, Body] = {}
    for i in reversed(range(chain.bodies)):
        joint, parent, body = chain.joints[i], chain.parents[i], own[i] + given.get(i, NO_BODY)
        k, P = body.moment, body.P
        if joint.prismatic:
            found.append(Body(body.mass, k, NO_MOMENTS))
            collect(given, parent, Body(0, ZERO, joint.rotation(0).similarity(P)))
            continue
        inner = chain.joints[parent] if parent >= 0 else joint
        axis, s = joint.axis, joint.normal_end + _entry(inner) * Z
        m, second = body.mass, P.zz
        if divisible and _may_divide(chain, i):
            beside = own[parent] + given.get(parent, NO_BODY)
            m = _wanted(-(beside.moment.x + k.z * axis.x), s.x, m, most)
            left = beside.P + 2 * k.z * outer(axis, s) + m * outer(s, s)
            second = _wanted(-left.yz, axis.y * axis.z, second, widest)
        kept = Body(body.mass - m, Vec3(k.x, k.y, 0), Sym3(P.xx, P.xy, P.yy, P.xz, P.yz, P.zz - second))
        found.append(kept)
        second_moment = second * outer(axis, axis) + 2 * k.z * outer(axis, s) + m * outer(s, s)
        collect(given, parent, Body(m, k.z * axis + m * s, second_moment))
    return seen_turning(chain, found[::-1])


def _may_divide(chain: Chain, i: int) -> bool:
    """Whether a share kept back at joint i makes k_x of its parent 0: one child of each link but first ones."""
    parent = chain.parents[i]
    if parent < 0 or chain.parents[parent] < 0 or not chain.joints[parent].revolute:
        return False
    return chain.children[parent][0] == i and not chain.joints[i].forked


def _entry(joint: Joint) -> Scalar:
    """The shift along z from the link's point of reference to the origin of its frame."""
    return joint.d if joint.revolute else 0


def _known(bodies: list[Body]) -> bool:
    """Whether the parameters are numbers, not inputs."""
    return all(isinstance(x, int | float | Fraction) for b in bodies for x in (b.mass, *b.moment, *b.P.entries))


def _wanted(need: Scalar, lever: Scalar, whole: Scalar, most: Scalar) -> Scalar:
    """What to regroup for lever × it = need, if what is then kept back is not too much; otherwise all."""
    if lever == 0:
        return whole
    part = need / lever
    return part if abs(whole - part) <= most else whole


def inverse_dynamics(chain: Chain, q: list[Scalar], qd: list[Scalar], qdd: list[Scalar]) -> list[Scalar]:
    """The joint forces of a motion, without rotors and friction."""
    walk = steps(chain, q)
    tau: list[Scalar] = []
    brought: dict[int, Wrench] = {}
    own = _wrenches(chain, walk, qd, qdd)
    for i in reversed(range(chain.bodies)):
        step = walk[i]
        wrench = brought.get(i, NO_WRENCH) + own[i]
        tau.append(wrench.along(step.revolute))
        if step.parent >= 0:
            collect(brought, step.parent, _inward(step, _entry(chain.joints[step.parent]), wrench))
    return tau[::-1]


def _inward(step: Step, e: Scalar, wrench: Wrench) -> Wrench:
    """A wrench about a link's point of reference, about the parent's, at -e from the parent's frame."""
    f, n = wrench.f, wrench.n
    d, b = 0 if step.revolute else step.d, step.b
    n = Vec3(n.x - d * f.y, n.y + d * f.x, n.z)
    f, n = step.R @ f, step.R @ n
    if step.forked:
        return Wrench(f, n + (step.fork + e * Z).cross(f))
    return Wrench(f, Vec3(n.x - e * f.y, n.y + e * f.x - b * f.z, n.z + b * f.y))


def _wrenches(chain: Chain, walk: list[Step], qd: list[Scalar], qdd: list[Scalar]) -> list[Wrench]:
    """The wrench about the point of reference that every link's own motion asks for, parents before children."""
    base = at_rest(chain)
    moving: list[Moving] = []
    found: list[Wrench] = []
    for step, body, v_i, a_i in zip(walk, bodies(chain), qd, qdd, strict=True):
        e = _entry(chain.joints[step.parent]) if step.parent >= 0 else 0
        link = _outward(step, e, moving[step.parent] if step.parent >= 0 else base, v_i, a_i)
        moving.append(link)
        F = body.mass * link.dv + link.U @ body.moment
        found.append(Wrench(F, moment(body, link.w, link.dw, link.U) + body.moment.cross(link.dv)))
    return found


def _outward(step: Step, e: Scalar, before: Moving, rate: Scalar, acceleration: Scalar) -> Moving:
    """How link i moves, from how its parent does, accelerations being those of the points of reference."""
    R, U = step.R, before.U
    if step.forked:
        dv = R.T @ (before.dv + U @ (step.fork + e * Z))
    else:
        dv = R.T @ (before.dv + step.b * Vec3(U.r1.x, U.r2.x, U.r3.x) + e * Vec3(U.r1.z, U.r2.z, U.r3.z))
    w, dw = R.T @ before.w, R.T @ before.dw
    if step.revolute:
        dw = Vec3(dw.x + w.y * rate, dw.y - w.x * rate, dw.z + acceleration)
        w = Vec3(w.x, w.y, w.z + rate)
        return Moving(w, dw, acceleration_matrix(w, dw), dv)
    slide = 2 * rate
    U = acceleration_matrix(w, dw)
    dv = Vec3(dv.x + slide * w.y, dv.y - slide * w.x, dv.z + acceleration)
    return Moving(w, dw, U, dv + step.d * Vec3(U.r1.z, U.r2.z, U.r3.z))


def bias(chain: Chain, q: list[Scalar], qd: list[Scalar], *, qdd: list[Scalar] | None = None) -> list[Scalar]:
    """C q̇ + g: the joint forces of a motion without acceleration, or with that of a base whose axes turn."""
    return inverse_dynamics(chain, q, qd, [0] * chain.n if qdd is None else qdd)
