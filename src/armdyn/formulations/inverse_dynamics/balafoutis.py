"""Balafoutis, Patel & Misra's Newton-Euler algorithm on augmented bodies.

Source: named in Lin 1991, Table II, with its idea in the introduction: the invariant terms of the augmented bodies
(Lin 1991 eqs. A5, A6) in the recursive Newton-Euler formulation. Balafoutis et al. 1988, whose steps are not printed
there.

Idea: the masses of all outer links, placed at the origin of frame i+1, make link i an augmented body with constant
first moment h* and second moments K*. Their inertia forces due to the acceleration s̈ of the link's origin act
together, so only the forces φ beyond m̂ s̈ are carried inwards; with U = [ω̇×] + [ω×][ω×] the link's own are U h* and
the moment is twice the skew part of U K*: 93M 81A a link, as printed.

Symbols (paper | code): augmented first moment and tensor | h, K, m̂ᵢ | mass.

Cost claimed (Table II, n revolute joints): (93n-69)M (81n-66)A.

Executed: (93n-102)M (80n-93)A at zero acceleration, (93n-88)M (81n-80)A at any: per link as printed; the print does
not use that the base is at rest in as many places.
"""

from __future__ import annotations

from dataclasses import dataclass

from armdyn.algebra import ZERO, Mat3, Scalar, Sym3, Vec3
from armdyn.algebra.spatial import Body, outer
from armdyn.algebra.tally import stage
from armdyn.chain import Chain
from armdyn.formulations.inverse_dynamics.recursion import acceleration_matrix
from armdyn.formulations.steps import Step, collect, steps


@dataclass(frozen=True, slots=True)
class LinkMotion:
    """The motion of a link in its own frame, and what its joint adds to the acceleration of its origin."""

    w: Vec3
    dw: Vec3
    U: Mat3
    dv: Vec3  # of the origin, less gravity
    slide: Vec3


def inverse_dynamics(chain: Chain, q: list[Scalar], qd: list[Scalar], qdd: list[Scalar]) -> list[Scalar]:
    """The joint forces for a motion, without rotors and friction."""
    walk = steps(chain, q)
    stage("outwards")
    still = acceleration_matrix(ZERO, ZERO)
    base = LinkMotion(ZERO, ZERO, still, -chain.gravity_in_frame_0, ZERO)
    moving: list[LinkMotion] = []
    for step, rate, acceleration in zip(walk, qd, qdd, strict=True):
        moving.append(_outwards(step, moving[step.parent] if step.parent >= 0 else base, rate, acceleration))
    stage("inwards")
    tau: list[Scalar] = []
    masses: dict[int, Scalar] = {}  # what the children of a link have brought
    augmented: dict[int, Body] = {}
    forces: dict[int, Vec3] = {}
    moments: dict[int, Vec3] = {}
    for i, step in reversed(list(enumerate(walk))):
        at = moving[i]
        body = chain.links[i].body
        body = body + augmented[i] if i in augmented else body
        mass = body.mass + masses.get(i, 0)
        force = at.U @ body.moment + forces.get(i, ZERO)
        moment = _moment(at.U, body.P) + body.moment.cross(at.dv) + moments.get(i, ZERO)
        tau.append(moment.z if step.revolute else force.z + mass * at.dv.z)
        if step.parent >= 0:
            s = step.origin
            force = step.R @ (force if step.revolute else force + mass * at.slide)
            collect(masses, step.parent, mass)
            collect(augmented, step.parent, Body(0, mass * s, mass * outer(s, s)))
            collect(forces, step.parent, force)
            collect(moments, step.parent, step.R @ moment + s.cross(force))
    return tau[::-1]


def _outwards(step: Step, before: LinkMotion, rate: Scalar, acceleration: Scalar) -> LinkMotion:
    """The motion of link i from that of its parent and of joint i."""
    R = step.R
    dv = R.T @ (before.dv + before.U @ step.origin)
    w, dw = R.T @ before.w, R.T @ before.dw
    slide = ZERO
    if step.revolute:
        dw = Vec3(dw.x + w.y * rate, dw.y - w.x * rate, dw.z + acceleration)
        w = Vec3(w.x, w.y, w.z + rate)
    else:
        twice = 2 * rate
        slide = Vec3(twice * w.y, -(twice * w.x), acceleration)
    return LinkMotion(w, dw, acceleration_matrix(w, dw), dv + slide, slide)


def _moment(U: Mat3, K: Sym3) -> Vec3:
    """∫ x × U x dm, twice the skew part of U K, in 15M 15A."""
    a, b, c = U.rows
    return Vec3(
        c.x * K.xy + c.y * K.yy + (c.z - b.y) * K.yz - b.x * K.xz - b.z * K.zz,
        (a.x - c.z) * K.xz + a.y * K.yz + a.z * K.zz - c.x * K.xx - c.y * K.xy,
        b.x * K.xx + (b.y - a.x) * K.xy + b.z * K.xz - a.y * K.yy - a.z * K.yz,
    )


def bias(chain: Chain, q: list[Scalar], qd: list[Scalar], *, qdd: list[Scalar] | None = None) -> list[Scalar]:
    """C q̇ + g: inverse dynamics at zero acceleration, or at `qdd` for the rotating axes of a floating base."""
    return inverse_dynamics(chain, q, qd, [0] * chain.n if qdd is None else qdd)
