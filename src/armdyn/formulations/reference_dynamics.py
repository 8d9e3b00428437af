"""Reference dynamics: the joint forces H(q) q̈ᵣ + C(q, q̇) q̇ᵣ + g(q) of passivity-based and adaptive control.

Source: Slotine & Li 1987 (the control law); Niemeyer & Slotine 1991 (a recursive computation); this recursion is ours.

Idea: the Christoffel symbols are symmetric, so C(q, x) y is the polar form of the quadratic form C(q, x) x. In the
recursion of `inverse_dynamics.second_moments`, every product of two velocities is therefore symmetrised, with one
factor from the arm's motion and one from the reference motion: U = [ẇ×] + ½([w×][x×] + [x×][w×]). Two angular
velocities are carried outwards, all else is unchanged, and dH/dt - 2C is skew-symmetric by construction.

Symbols: w, x | the angular velocity of a link in the arm's motion and in the reference motion.
"""

from __future__ import annotations

from dataclasses import dataclass

from armdyn.algebra import ZERO, Mat3, Scalar, Vec3
from armdyn.chain import Chain
from armdyn.formulations import reference
from armdyn.formulations.inverse_dynamics.recursion import Moving, at_rest, inward, wrenches
from armdyn.formulations.inverse_dynamics.second_moments import bodies, moment
from armdyn.formulations.registry import Formulation
from armdyn.formulations.steps import Step, steps


@dataclass(frozen=True, slots=True)
class _Pair(Moving):
    """The state of a link in both motions; `x` is the angular velocity in the reference motion."""

    x: Vec3


def reference_dynamics(
    chain: Chain, q: list[Scalar], qd: list[Scalar], qd_ref: list[Scalar], qdd_ref: list[Scalar]
) -> list[Scalar]:
    """H q̈ᵣ + C(q, q̇) q̇ᵣ + g, C by Christoffel symbols, without rotors."""
    walk = steps(chain, q)
    base = at_rest(chain)
    moving: list[_Pair] = []
    for step, rates in zip(walk, zip(qd, qd_ref, qdd_ref, strict=True), strict=True):
        before = moving[step.parent] if step.parent >= 0 else _Pair(base.w, base.dw, base.U, base.dv, ZERO)
        moving.append(_outward(step, before, *rates))
    return inward(walk, wrenches(moving, bodies(chain), moment))


def _outward(step: Step, before: _Pair, rate: Scalar, rate_ref: Scalar, acceleration: Scalar) -> _Pair:
    """The motion of link i from that of its parent and of joint i."""
    R, U = step.R, before.U
    lever = U @ step.fork if step.forked else step.b * Vec3(U.r1.x, U.r2.x, U.r3.x)
    dv = R.T @ (before.dv + lever)
    w, x, dw = R.T @ before.w, R.T @ before.x, R.T @ before.dw
    across = Vec3(w.y * rate_ref + x.y * rate, -(w.x * rate_ref + x.x * rate), 0)  # w × z q̇ᵣ + x × z q̇
    if step.revolute:
        dw = Vec3(dw.x + across.x / 2, dw.y + across.y / 2, dw.z + acceleration)
        w, x = Vec3(w.x, w.y, w.z + rate), Vec3(x.x, x.y, x.z + rate_ref)
    else:
        dv = Vec3(dv.x + across.x, dv.y + across.y, dv.z + acceleration)
    U = _polar_matrix(w, x, dw)
    return _Pair(w, dw, U, dv + step.d * Vec3(U.r1.z, U.r2.z, U.r3.z), x)


def _polar_matrix(w: Vec3, x: Vec3, dw: Vec3) -> Mat3:
    """[ẇ×] + ½([w×][x×] + [x×][w×])."""
    xx, yy, zz = w.x * x.x, w.y * x.y, w.z * x.z
    xy, xz, yz = (w.x * x.y + w.y * x.x) / 2, (w.x * x.z + w.z * x.x) / 2, (w.y * x.z + w.z * x.y) / 2
    return Mat3(
        Vec3(-(yy + zz), xy - dw.z, xz + dw.y),
        Vec3(xy + dw.z, -(xx + zz), yz - dw.x),
        Vec3(xz - dw.y, yz + dw.x, -(xx + yy)),
    )


METHODS = (
    Formulation(
        "second_moments",
        reference_dynamics,
        "slotine_li_1987",
        "recursive, both motions at once, with regrouped second moments",
    ),
    Formulation("reference", reference.reference_dynamics, "", "derivatives of the energies", reference_only=True),
)
