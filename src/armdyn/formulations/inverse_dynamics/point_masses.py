"""Recursive Newton-Euler with second moments and a little left on every axis: ours.

Idea: as in `second_moments`, but what lies on the axis that two links share is divided between them so that
the programs get shorter. A point mass kept back where the common normal from the link before meets the axis
makes k_x of the link before 0: that link saves k_x U x and two products of k × dv (5M 5A) for m dv of one
vector (3M 3A). A second moment along the axis makes P₂₃ of the link before 0, unless the axes are at right
angles: 3M 4A for 2M 2A. Altogether 3M 4A less a joint.

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

from armdyn.algebra import IDENTITY, ZERO, Scalar, Sym3, Vec3, X, Z
from armdyn.chain import Chain, Joint
from armdyn.formulations.inverse_dynamics.recursion import acceleration_matrix
from armdyn.formulations.inverse_dynamics.second_moments import moment, seen_turning
from armdyn.formulations.moments import NONE, Body, outer
from armdyn.formulations.screws import along_axis
from armdyn.formulations.steps import Step, steps


def bodies(chain: Chain) -> list[Body]:
    """One body a link about its point of reference, with k_x and P₂₃ = 0 where the next axis can see to it."""
    own = [
        Body.of(link.moved(IDENTITY, _entry(joint) * Z)) for joint, link in zip(chain.joints, chain.links, strict=True)
    ]
    divisible = _known(own)
    most = sum(abs(body.mass) for body in own) if divisible else 0
    widest = sum(abs(body.P.trace) for body in own) if divisible else 0
    found: list[Body] = []
    given = Body(0, ZERO, NONE)
    for i in reversed(range(chain.n)):
        joint, body = chain.joints[i], own[i] + given
        k, P = body.moment, body.P
        if joint.prismatic:
            found.append(Body(body.mass, k, NONE))
            given = Body(0, ZERO, joint.rotation(0).similarity(P))
            continue
        inner = chain.joints[i - 1] if i > 0 else joint
        axis, s = joint.tilt @ Z, joint.b * X + _entry(inner) * Z
        m, second = body.mass, P.zz
        if divisible and i > 1 and inner.revolute:
            m = _wanted(-(own[i - 1].moment.x + k.z * axis.x), s.x, m, most)
            left = own[i - 1].P + 2 * k.z * outer(axis, s) + m * outer(s, s)
            second = _wanted(-left.yz, axis.y * axis.z, second, widest)
        kept = Body(body.mass - m, Vec3(k.x, k.y, 0), Sym3(P.xx, P.xy, P.yy, P.xz, P.yz, P.zz - second))
        found.append(kept)
        given = Body(m, k.z * axis + m * s, second * outer(axis, axis) + 2 * k.z * outer(axis, s) + m * outer(s, s))
    return seen_turning(chain, found[::-1])


def _entry(joint: Joint) -> Scalar:
    """The shift along z from the link's point of reference to the origin of its frame."""
    return joint.d if joint.revolute else 0


def _known(bodies: list[Body]) -> bool:
    """Whether the parameters are numbers, not inputs."""
    return all(isinstance(x, int | float | Fraction) for b in bodies for x in (b.mass, *b.moment, *b.P.entries))


def _wanted(need: Scalar, lever: Scalar, whole: Scalar, most: Scalar) -> Scalar:
    """What to hand over for lever × it = need, if what is then kept back is not too much; otherwise all."""
    if lever == 0:
        return whole
    part = need / lever
    return part if abs(whole - part) <= most else whole


def inverse_dynamics(chain: Chain, q: list[Scalar], qd: list[Scalar], qdd: list[Scalar]) -> list[Scalar]:
    """The joint forces of a motion, without rotors and friction."""
    walk = steps(chain, q)
    f, n, tau = ZERO, ZERO, []
    wrenches = _wrenches(chain, walk, qd, qdd)
    for i in reversed(range(chain.n)):
        step, (F, N) = walk[i], wrenches[i]
        f, n = f + F, n + N
        tau.append(along_axis(step, f, n))
        if i > 0:
            d, b, e = 0 if step.revolute else step.d, step.b, _entry(chain.joints[i - 1])
            n = Vec3(n.x - d * f.y, n.y + d * f.x, n.z)
            f, n = step.R @ f, step.R @ n
            n = Vec3(n.x - e * f.y, n.y + e * f.x - b * f.z, n.z + b * f.y)
    return tau[::-1]


def _wrenches(chain: Chain, walk: list[Step], qd: list[Scalar], qdd: list[Scalar]) -> list[tuple[Vec3, Vec3]]:
    """Force and moment about the point of reference that every link's own motion asks for, base to tip."""
    w, dw, dv = ZERO, ZERO, -chain.gravity_in_frame_0
    U = acceleration_matrix(w, dw)
    e: Scalar = 0
    found: list[tuple[Vec3, Vec3]] = []
    for step, body, v_i, a_i in zip(walk, bodies(chain), qd, qdd, strict=True):
        R = step.R
        dv = R.T @ (dv + step.b * Vec3(U.r1.x, U.r2.x, U.r3.x) + e * Vec3(U.r1.z, U.r2.z, U.r3.z))
        w, dw = R.T @ w, R.T @ dw
        if step.revolute:
            dw = Vec3(dw.x + w.y * v_i, dw.y - w.x * v_i, dw.z + a_i)
            w = Vec3(w.x, w.y, w.z + v_i)
            U = acceleration_matrix(w, dw)
        else:
            slide = 2 * v_i
            U = acceleration_matrix(w, dw)
            dv = Vec3(dv.x + slide * w.y, dv.y - slide * w.x, dv.z + a_i)
            dv = dv + step.d * Vec3(U.r1.z, U.r2.z, U.r3.z)
        e = _entry(step.joint)
        F = body.mass * dv + U @ body.moment
        found.append((F, moment(body, w, dw, U) + body.moment.cross(dv)))
    return found


def bias(chain: Chain, q: list[Scalar], qd: list[Scalar]) -> list[Scalar]:
    """C q̇ + g: the joint forces of a motion without acceleration."""
    return inverse_dynamics(chain, q, qd, [0] * chain.n)
