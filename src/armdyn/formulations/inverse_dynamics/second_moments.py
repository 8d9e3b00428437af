"""Recursive Newton-Euler with second moments: ours.

Idea: with U = [ẇ×] + [w×][w×] the acceleration of a body point x is dv + U x, so the force on a
body is m dv + U k and the moment about the origin follows from A = U P, P = ∫ x xᵀ dm, as
(A₃₂ - A₂₃, A₁₃ - A₃₁, A₂₁ - A₁₂) + k × dv. What a turn about z leaves unchanged, that is m, k_z and
P₃₃, is handed to the link before (exact, off-line): the moment then takes 13M 13A where J ẇ + w × J w
takes 22M and more. A prismatic joint hands all of P over. On an axis the two links share, U z is the
same for both, so a shift along x of frame i-1 and one along z of frame i take 6M 6A for the
acceleration and 4M 4A for the wrench.

Symbols: k first moment, P second moment about the frame's origin.

Cost: fewest operations of all inverse dynamics here; asserted in the tests.
"""

from __future__ import annotations

from dataclasses import dataclass

from armdyn.algebra import ZERO, Mat3, Scalar, Sym3, Vec3, X, Z
from armdyn.chain import Chain, Joint, Link
from armdyn.formulations.screws import along_axis, wrench_inward
from armdyn.formulations.steps import Step, steps

NONE = Sym3(0, 0, 0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Body:
    """Mass, first moment and second moments ∫ x xᵀ dm about the frame's origin."""

    mass: Scalar
    k: Vec3
    P: Sym3

    @classmethod
    def of(cls, link: Link) -> Body:
        """The same link: P = ½ tr(J) E - J."""
        J = link.inertia
        half = J.trace / 2
        return cls(link.mass, link.moment, Sym3(half - J.xx, -J.xy, half - J.yy, -J.xz, -J.yz, half - J.zz))

    def __add__(self, other: Body) -> Body:
        return Body(self.mass + other.mass, self.k + other.k, self.P + other.P)


def outer(a: Vec3, b: Vec3) -> Sym3:
    """½ (a bᵀ + b aᵀ)."""
    return Sym3(
        a.x * b.x,
        (a.x * b.y + a.y * b.x) / 2,
        a.y * b.y,
        (a.x * b.z + a.z * b.x) / 2,
        (a.y * b.z + a.z * b.y) / 2,
        a.z * b.z,
    )


def handed_over(joint: Joint, body: Body) -> tuple[Body, Body]:
    """(what stays with the link, what the link before may have as its own, in its frame)."""
    P = body.P
    if joint.prismatic:
        return Body(body.mass, body.k, NONE), Body(0, ZERO, joint.rotation(0).similarity(P))
    stays = Body(0, Vec3(body.k.x, body.k.y, 0), Sym3(P.xx, P.xy, P.yy, P.xz, P.yz, 0))
    axis = joint.tilt @ Z
    s = joint.b * X + joint.d * axis
    second = P.zz * outer(axis, axis) + 2 * body.k.z * outer(axis, s) + body.mass * outer(s, s)
    return stays, Body(body.mass, body.k.z * axis + body.mass * s, second)


def bodies(chain: Chain) -> list[Body]:
    """One body a link with as few parameters as a turn about its axis can tell apart."""
    found: list[Body] = []
    given = Body(0, ZERO, NONE)
    for joint, link in zip(reversed(chain.joints), reversed(chain.links), strict=True):
        stays, given = handed_over(joint, Body.of(link) + given)
        found.append(stays)
    found = found[::-1]
    for i, joint in enumerate(chain.joints):
        if i > 0 and (joint.beta.sin != 0 or joint.gamma.sin != 0):
            break
        P = found[i].P  # the link only ever turns about its own z: P₁₁ + P₂₂ is all that shows
        found[i] = Body(found[i].mass, found[i].k, Sym3(P.xx + P.yy, 0, 0, 0, 0, 0))
    return found


def acceleration_matrix(w: Vec3, dw: Vec3) -> Mat3:
    """U = [ẇ×] + [w×][w×]."""
    xx, yy, zz = w.x * w.x, w.y * w.y, w.z * w.z
    xy, xz, yz = w.x * w.y, w.x * w.z, w.y * w.z
    return Mat3(
        Vec3(-(yy + zz), xy - dw.z, xz + dw.y),
        Vec3(xy + dw.z, -(xx + zz), yz - dw.x),
        Vec3(xz - dw.y, yz + dw.x, -(xx + yy)),
    )


def moment(U: Mat3, P: Sym3) -> Vec3:
    """∫ x × U x dm, from A = U P."""
    a, b, c = U.r1, U.r2, U.r3
    return Vec3(
        c.x * P.xy + c.y * P.yy + (c.z - b.y) * P.yz - b.x * P.xz - b.z * P.zz,
        (a.x - c.z) * P.xz + a.y * P.yz - c.x * P.xx - c.y * P.xy + a.z * P.zz,
        b.x * P.xx + (b.y - a.x) * P.xy + b.z * P.xz - a.y * P.yy - a.z * P.yz,
    )


def inverse_dynamics(chain: Chain, q: list[Scalar], qd: list[Scalar], qdd: list[Scalar]) -> list[Scalar]:
    """The joint forces of a motion, without rotors and friction."""
    w, dw, dv = ZERO, ZERO, -chain.gravity_in_frame_0
    U = acceleration_matrix(w, dw)
    carried: list[tuple[Step, Vec3, Vec3]] = []
    for step, body, v_i, a_i in zip(steps(chain, q), bodies(chain), qd, qdd, strict=True):
        R = step.R
        dv = R.T @ (dv + step.b * Vec3(U.r1.x, U.r2.x, U.r3.x))
        w, dw = R.T @ w, R.T @ dw
        if step.revolute:
            dw = Vec3(dw.x + w.y * v_i, dw.y - w.x * v_i, dw.z + a_i)
            w = Vec3(w.x, w.y, w.z + v_i)
        else:
            slide = 2 * v_i
            dv = Vec3(dv.x + slide * w.y, dv.y - slide * w.x, dv.z + a_i)
        U = acceleration_matrix(w, dw)
        dv = dv + step.d * Vec3(U.r1.z, U.r2.z, U.r3.z)
        F = body.mass * dv + U @ body.k
        N = moment(U, body.P) + body.k.cross(dv)
        carried.append((step, F, N))
    f, n, tau = ZERO, ZERO, []
    for step, F, N in reversed(carried):
        f, n = f + F, n + N
        tau.append(along_axis(step, f, n))
        f, n = wrench_inward(step, f, n)
    return tau[::-1]


def bias(chain: Chain, q: list[Scalar], qd: list[Scalar]) -> list[Scalar]:
    """C q̇ + g: the joint forces of a motion without acceleration."""
    return inverse_dynamics(chain, q, qd, [0] * chain.n)
