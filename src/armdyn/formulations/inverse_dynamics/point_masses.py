"""Recursive Newton-Euler algorithm with second moments and point masses on the joint axes. Ours.

Idea: as in `second_moments`, but the parameters that two links share on their common axis are divided between them so
that the program gets shorter. A point mass that stays with link i, where the common normal from the previous link meets
the axis, makes k_x of the previous link 0: that link saves k_x U x and two products of k × dv (5M 5A) for m dv of one
vector (3M 3A). A second moment along the axis makes P₂₃ of the previous link 0, unless the axes are at right angles:
3M 4A for 2M 2A. In total this saves 3M 4A per joint.

A link's reference point is where the common normal from the previous link meets its axis, not the origin of its frame;
for a prismatic joint it is the origin. The d of a last revolute joint then appears in no program.

No such mass or moment may exceed that of the whole arm (a tiny b would need a huge mass and lose precision), and none
is used if the parameters are run-time inputs.

Symbols: k first moment, P second moment about the reference point; e shift along z from a link's reference point to its
frame's origin.

Cost: (78n - 99)M (65n - 87)A for n ≥ 3 revolute joints in general position, before common subexpression elimination.
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
    """One body per link about its reference point, with k_x = 0 and P₂₃ = 0 where the next axis allows it."""
    own = [
        link.moved(IDENTITY, _shift_to_origin(joint) * Z).body
        for joint, link in zip(chain.joints, chain.links, strict=True)
    ]
    divisible = _are_numbers(own)
    most = sum(abs(body.mass) for body in own) if divisible else 0
    widest = sum(abs(body.P.trace) for body in own) if divisible else 0
    regrouped: list[Body] = []
    given: dict[int, Body] = {}
    for i in reversed(range(chain.bodies)):
        joint, parent, body = chain.joints[i], chain.parents[i], own[i] + given.get(i, NO_BODY)
        k, P = body.moment, body.P
        if joint.prismatic:
            regrouped.append(Body(body.mass, k, NO_MOMENTS))
            collect(given, parent, Body(0, ZERO, joint.rotation(0).similarity(P)))
            continue
        inner = chain.joints[parent] if parent >= 0 else joint
        axis, s = joint.axis, joint.normal_end + _shift_to_origin(inner) * Z
        m, second = body.mass, P.zz
        if divisible and _can_divide(chain, i):
            beside = own[parent] + given.get(parent, NO_BODY)
            m = _part_to_regroup(-(beside.moment.x + k.z * axis.x), s.x, m, most)
            left = beside.P + 2 * k.z * outer(axis, s) + m * outer(s, s)
            second = _part_to_regroup(-left.yz, axis.y * axis.z, second, widest)
        kept = Body(body.mass - m, Vec3(k.x, k.y, 0), Sym3(P.xx, P.xy, P.yy, P.xz, P.yz, P.zz - second))
        regrouped.append(kept)
        second_moment = second * outer(axis, axis) + 2 * k.z * outer(axis, s) + m * outer(s, s)
        collect(given, parent, Body(m, k.z * axis + m * s, second_moment))
    return seen_turning(chain, regrouped[::-1])


def _can_divide(chain: Chain, i: int) -> bool:
    """Whether a point mass at joint i can make k_x of its parent 0: for first children, but not of first links."""
    parent = chain.parents[i]
    if parent < 0 or chain.parents[parent] < 0 or not chain.joints[parent].revolute:
        return False
    return chain.children[parent][0] == i and not chain.joints[i].forked


def _shift_to_origin(joint: Joint) -> Scalar:
    """The shift along z from the link's reference point to the origin of its frame."""
    return joint.d if joint.revolute else 0


def _are_numbers(bodies: list[Body]) -> bool:
    """Whether the parameters are numbers, not run-time inputs."""
    return all(isinstance(x, int | float | Fraction) for b in bodies for x in (b.mass, *b.moment, *b.P.entries))


def _part_to_regroup(need: Scalar, lever: Scalar, whole: Scalar, most: Scalar) -> Scalar:
    """The part to regroup so that lever × part = need, if the rest is at most `most`; otherwise the whole."""
    if lever == 0:
        return whole
    part = need / lever
    return part if abs(whole - part) <= most else whole


def inverse_dynamics(chain: Chain, q: list[Scalar], qd: list[Scalar], qdd: list[Scalar]) -> list[Scalar]:
    """The joint forces for a motion, without rotors and friction."""
    walk = steps(chain, q)
    tau: list[Scalar] = []
    brought: dict[int, Wrench] = {}
    own = _wrenches(chain, walk, qd, qdd)
    for i in reversed(range(chain.bodies)):
        step = walk[i]
        wrench = brought.get(i, NO_WRENCH) + own[i]
        tau.append(wrench.along(step.revolute))
        if step.parent >= 0:
            collect(brought, step.parent, _inward(step, _shift_to_origin(chain.joints[step.parent]), wrench))
    return tau[::-1]


def _inward(step: Step, e: Scalar, wrench: Wrench) -> Wrench:
    """A wrench about a link's reference point, moved to the parent's, which is at -e from the parent's frame."""
    f, n = wrench.f, wrench.n
    d, b = 0 if step.revolute else step.d, step.b
    n = Vec3(n.x - d * f.y, n.y + d * f.x, n.z)
    f, n = step.R @ f, step.R @ n
    if step.forked:
        return Wrench(f, n + (step.fork + e * Z).cross(f))
    return Wrench(f, Vec3(n.x - e * f.y, n.y + e * f.x - b * f.z, n.z + b * f.y))


def _wrenches(chain: Chain, walk: list[Step], qd: list[Scalar], qdd: list[Scalar]) -> list[Wrench]:
    """The inertial wrench of every link about its reference point, parents before children."""
    base = at_rest(chain)
    moving: list[Moving] = []
    balances: list[Wrench] = []
    for step, body, v_i, a_i in zip(walk, bodies(chain), qd, qdd, strict=True):
        e = _shift_to_origin(chain.joints[step.parent]) if step.parent >= 0 else 0
        link = _outward(step, e, moving[step.parent] if step.parent >= 0 else base, v_i, a_i)
        moving.append(link)
        F = body.mass * link.dv + link.U @ body.moment
        balances.append(Wrench(F, moment(body, link.w, link.dw, link.U) + body.moment.cross(link.dv)))
    return balances


def _outward(step: Step, e: Scalar, before: Moving, rate: Scalar, acceleration: Scalar) -> Moving:
    """The motion of link i from that of its parent; accelerations are those of the reference points."""
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
    """C q̇ + g: inverse dynamics at zero acceleration, or at `qdd` for the rotating axes of a floating base."""
    return inverse_dynamics(chain, q, qd, [0] * chain.n if qdd is None else qdd)
