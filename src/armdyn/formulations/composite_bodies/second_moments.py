"""Composite bodies by their second moments P = ∫ x xᵀ dm, on minimal parameters. Ours.

Idea: Lin & Fang 1999 split the first moment and the inertia of a composite body into a constant and
a varying part (eqs. 22-26) and let only what a joint really changes take part in the recursion. The
same split on P instead of J = tr(P)E - P is shorter, because P follows any affine map, and moving a
massless body by p adds p cᵀ + c pᵀ and nothing to the diagonal of other axes: 3M 3A where J takes
3M 4A. A turn about z leaves m̂, (k)_z and (P)₃₃ alone: these three go to the next link inwards once
and for all, off-line.

Below joint s, the first revolute joint not parallel to joint r, the first of all, P shrinks to the one
inertia that is felt there (Lin & Fang 1999, eqs. 36-40).

Symbols: m̂, k, K: mass, first and second moment, the constant part; ell, V: the varying part;
c = k + ell, P = K + V about the origin of frame i, in that frame. Of a revolute joint's body the
varying part has taken over all but (m̂, k_z, K₃₃).

Cost: 31M 32A a link of a general arm of revolute joints (Lin & Fang 1999, Table VII: 32M 33A).
"""

from __future__ import annotations

from dataclasses import dataclass

from armdyn.algebra import ZERO, JointRotation, Scalar, Sym3, Vec3, X, Z
from armdyn.chain import Chain, Joint, Link
from armdyn.formulations.composite_bodies.minimal import Axes, first_axes

NOTHING = Sym3(0, 0, 0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Moments:
    """Mass, first and second moment of a body about the origin of its frame."""

    mass: Scalar
    c: Vec3
    P: Sym3
    turning: Scalar = 0  # what of J₃₃ = P₁₁ + P₂₂ has been left out of P

    @property
    def wrench_of_turn(self) -> tuple[Vec3, Vec3]:
        """(force, moment) that a unit acceleration about z asks for: (z × c, J z)."""
        return Vec3(-self.c.y, self.c.x, 0), Vec3(-self.P.xz, -self.P.yz, self.P.xx + self.P.yy + self.turning)

    @property
    def wrench_of_slide(self) -> tuple[Vec3, Vec3]:
        """(force, moment) that a unit acceleration along z asks for: (m z, c × z)."""
        return Vec3(0, 0, self.mass), Vec3(self.c.y, -self.c.x, 0)


def second_moments(chain: Chain, q: list[Scalar]) -> list[Moments]:
    """Every composite body about the origin of its own frame, base to tip.

    Parameters that no joint can move are left out, so mass, (c)_z and (P)₃₃ of a revolute joint's
    body are not those of the body itself: what a joint cannot feel is not computed.
    """
    r, s, axes = first_axes(chain)
    varying = Moments(0, ZERO, NOTHING)
    bodies: list[Moments] = []
    for i, constant in reversed(list(enumerate(constants(chain, s, axes)))):
        joint, R = chain.joints[i], chain.joints[i].rotation(q[i])
        d = joint.extension(q[i])
        if i >= s:
            body, c, P = _general(joint, d, constant, varying)
            varying = _inwards(joint, R, c, P) if i > s else _first_turn(joint, R, c, P, axes[i - 1])
        elif i >= r:
            body, c, turning = _turning(joint, d, constant, varying, axes[i])
            varying = _past(joint, R @ c, turning, axes[i - 1]) if i > r else varying
        else:
            body = Moments(constant.mass, ZERO, NOTHING)  # only slides: nothing but the mass is felt
        bodies.append(body)
    return bodies[::-1]


def _general(joint: Joint, d: Scalar, constant: Moments, varying: Moments) -> tuple[Moments, Vec3, Sym3]:
    """Body i, and the first and second moments that vary once it has moved along z."""
    m, k, ell, V = constant.mass, constant.c, varying.c, varying.P
    if joint.revolute:
        body = Moments(m, Vec3(k.x + ell.x, k.y + ell.y, ell.z), constant.P + V, constant.turning)
        return body, body.c, shifted(body.P, Z, d, body.c)
    c = k + ell
    moved = Sym3(V.xx, V.xy, V.yy, V.xz + d * c.x, V.yz + d * c.y, V.zz + d * (2 * c.z + m * d))
    return Moments(m, c, NOTHING), ell + Z * (m * d), moved  # a slide does not feel P


def _inwards(joint: Joint, R: JointRotation, c: Vec3, P: Sym3) -> Moments:
    """A massless body, already moved along z, seen from the inner frame."""
    c = R @ c
    return Moments(0, c, shifted(R.similarity(P), X, joint.b, c))


# Every revolute joint inside joint s turns about the same direction u, so only the inertia about u is felt.


def _first_turn(joint: Joint, R: JointRotation, c: Vec3, P: Sym3, u: Vec3) -> Moments:
    """What `_inwards` gives, reduced to u: the inertia tr P - uᵀ R P Rᵀ u."""
    a = R.T @ u
    zz = a.z * a.z  # a constant, as the joint turns about z
    off = a.x * (a.x * (P.xx - P.yy) + 2 * (a.y * P.xy)) + 2 * a.z * (a.x * P.xz + a.y * P.yz)
    return _past(joint, R @ c, P.xx + zz * P.yy + (1 - zz) * P.zz - off, u)


def _turning(joint: Joint, d: Scalar, constant: Moments, varying: Moments, u: Vec3) -> tuple[Moments, Vec3, Scalar]:
    """Body i with r ≤ i < s, and the first moment and the inertia about u that vary once it has moved along z."""
    m, k, ell = constant.mass, constant.c, varying.c
    if joint.revolute:
        turning = constant.turning + varying.turning
        body = Moments(m, Vec3(k.x + ell.x, k.y + ell.y, ell.z), NOTHING, turning)
        return body, body.c, turning
    square, lift = u.x * u.x + u.y * u.y, m * d
    moved = 2 * (square * k.z - u.z * (u.x * k.x + u.y * k.y))
    moved = moved + square * (2 * ell.z + lift) - (2 * u.z) * (u.x * ell.x + u.y * ell.y)
    body = Moments(m, _felt(k, u) + _felt(ell, u), NOTHING)
    return body, ell + Z * lift, varying.turning + d * moved


def _felt(c: Vec3, u: Vec3) -> Vec3:
    """A first moment with one entry for which c × z has the same part along u."""
    if u.x == 0 and u.y == 0:
        return ZERO
    return Vec3(0, c.y - u.y / u.x * c.x, 0) if abs(u.x) >= abs(u.y) else Vec3(c.x - u.x / u.y * c.y, 0, 0)


def _past(joint: Joint, c: Vec3, turning: Scalar, u: Vec3) -> Moments:
    """The move along x of the inner frame, where c is seen already."""
    moved = (u.y * u.y + u.z * u.z) * c.x - u.x * (u.y * c.y + u.z * c.z)
    return Moments(0, c, NOTHING, turning + 2 * joint.b * moved)


def constants(chain: Chain, s: int, axes: Axes) -> list[Moments]:
    """m̂, k and what is left of K when some of it has been handed on, of every composite body, base to tip: off-line."""
    found: list[Moments] = []
    outer = Moments(0, ZERO, NOTHING)
    for i in reversed(range(chain.n)):
        link, joint = chain.links[i], chain.joints[i]
        mass, c, K = link.mass + outer.mass, link.moment + outer.c, of_inertia(link) + outer.P
        if joint.revolute and i < s:  # no P is carried from here on: one number, at run time, is as good as a constant
            handed, body = NOTHING, Moments(mass, c, NOTHING, K.xx + K.yy)
        elif joint.revolute:
            e = K.xx if i == s and _meets_at_right_angles(joint, axes.get(s - 1, Z)) else K.yy
            handed = Sym3(e, 0, e, 0, 0, K.zz)  # which no turn about z changes
            body = Moments(mass, c, Sym3(K.xx - e, K.xy, K.yy - e, K.xz, K.yz, 0), 2 * e)
        else:
            handed, body = K, Moments(mass, c, NOTHING)
        found.append(body)
        outer = _handed(joint, mass, c, handed)
    return found[::-1]


def _meets_at_right_angles(joint: Joint, u: Vec3) -> bool:
    """Whether P₁₁ stands alone in the inertia about u that `_first_turn` makes: best without a constant."""
    return bool((joint.tilt.T @ u).z == 0)


def _handed(joint: Joint, m: Scalar, k: Vec3, K: Sym3) -> Moments:
    """What of a body's constants goes to the inner body for good, about the inner frame."""
    b = X * joint.b
    if joint.revolute:
        R = JointRotation(joint.beta, joint.gamma, 1, 0)
        k = Z * k.z
        K, k = shifted(K, Z, joint.d, k + Z * (m * joint.d / 2)), k + Z * (m * joint.d)
    else:
        R = JointRotation(joint.beta, joint.gamma, joint.theta.cos, joint.theta.sin)
    k, K = R @ k, R.similarity(K)
    return Moments(m, k + b * m, shifted(K, X, joint.b, k + b * (m / 2)))


def shifted(P: Sym3, axis: Vec3, by: Scalar, c: Vec3) -> Sym3:
    """P + by (axis cᵀ + c axisᵀ), for an axis x or z."""
    if axis is X:
        return Sym3(P.xx + (2 * by) * c.x, P.xy + by * c.y, P.yy, P.xz + by * c.z, P.yz, P.zz)
    return Sym3(P.xx, P.xy, P.yy, P.xz + by * c.x, P.yz + by * c.y, P.zz + (2 * by) * c.z)


def of_inertia(link: Link) -> Sym3:
    """P = ½tr(J)E - J about the frame's origin."""
    J = link.inertia
    xx, yy, zz = (J.yy + J.zz - J.xx) / 2, (J.xx + J.zz - J.yy) / 2, (J.xx + J.yy - J.zz) / 2
    return Sym3(xx, -J.xy, yy, -J.xz, -J.yz, zz)
