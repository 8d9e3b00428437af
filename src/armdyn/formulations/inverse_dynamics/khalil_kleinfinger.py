"""Khalil & Kleinfinger's customised Newton-Euler algorithm: everything about the origins of driving-axis frames.

Source: named in Lin 1991, Table II; Khalil & Kleinfinger 1987, whose steps that paper does not print. The recursion is
that of the established literature, in the same (modified Denavit-Hartenberg) frames.

Idea: with U = [ω̇×] + [ω×][ω×], a link's acceleration field is v̇ + U x, so the distance to the next frame and the
first moment take one matrix product each, and no mass centre is needed: 105M a link.

Symbols (paper | code): Uⱼ | U, MSⱼ | h, V̇ⱼ | dv, Fⱼ | F, Mⱼ | N.

Cost claimed (Table II, n revolute joints, at zero acceleration): (101n-129)M (90n-118)A.

Executed: (105n-113)M (86n-101)A. The print's arrangement is not determined: 105M a link are what natural parameters
take in this recursion, and minimal ones would save more than 4M of them.
"""

from __future__ import annotations

from armdyn.algebra import ZERO, Mat3, Scalar, Vec3
from armdyn.algebra.spatial import NO_WRENCH, Wrench
from armdyn.algebra.tally import stage
from armdyn.chain import Chain
from armdyn.formulations.inverse_dynamics.recursion import acceleration_matrix
from armdyn.formulations.steps import Step, collect, steps

Moving = tuple[Vec3, Vec3, Mat3, Vec3]  # ω, ω̇, U, and v̇ of the origin less gravity


def inverse_dynamics(chain: Chain, q: list[Scalar], qd: list[Scalar], qdd: list[Scalar]) -> list[Scalar]:
    """The joint forces for a motion, without rotors and friction."""
    walk = steps(chain, q)
    base: Moving = (ZERO, ZERO, acceleration_matrix(ZERO, ZERO), -chain.gravity_in_frame_0)
    moving: list[Moving] = []
    own: list[Wrench] = []
    stage("outwards")
    for step, link, rate, acceleration in zip(walk, chain.links, qd, qdd, strict=True):
        moving.append(_outwards(step, moving[step.parent] if step.parent >= 0 else base, rate, acceleration))
        w, dw, U, dv = moving[-1]
        h, J = link.moment, link.inertia
        F = link.mass * dv + U @ h
        N = J @ dw + w.cross(J @ w) + h.cross(dv)
        own.append(Wrench(F, N))
    stage("inwards")
    tau: list[Scalar] = []
    brought: dict[int, Wrench] = {}
    for i, step in reversed(list(enumerate(walk))):
        wrench = own[i] + brought.get(i, NO_WRENCH)
        tau.append(wrench.along(step.revolute))
        if step.parent >= 0:
            f = step.R @ wrench.f
            collect(brought, step.parent, Wrench(f, step.R @ wrench.n + step.origin.cross(f)))
    return tau[::-1]


def _outwards(step: Step, before: Moving, rate: Scalar, acceleration: Scalar) -> Moving:
    """The motion of link i from that of its parent and of joint i."""
    w, dw, U, dv = before
    dv = step.R.T @ (dv + U @ step.origin)
    w, dw = step.R.T @ w, step.R.T @ dw
    if step.revolute:
        dw = Vec3(dw.x + w.y * rate, dw.y - w.x * rate, dw.z + acceleration)
        w = Vec3(w.x, w.y, w.z + rate)
    else:
        slide = 2 * rate
        dv = Vec3(dv.x + slide * w.y, dv.y - slide * w.x, dv.z + acceleration)
    return w, dw, acceleration_matrix(w, dw), dv


def bias(chain: Chain, q: list[Scalar], qd: list[Scalar], *, qdd: list[Scalar] | None = None) -> list[Scalar]:
    """C q̇ + g: inverse dynamics at zero acceleration, or at `qdd` for the rotating axes of a floating base."""
    return inverse_dynamics(chain, q, qd, [0] * chain.n if qdd is None else qdd)
