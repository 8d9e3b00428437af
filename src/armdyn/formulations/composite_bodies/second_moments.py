"""Composite bodies by their second moments P = ∫ x xᵀ dm, on minimal parameters. Ours.

Idea: Lin & Fang 1999 split the first moment and the inertia of a composite body into a constant and a varying part
(eqs. 22-26), so that only the parts that change with a joint take part in the recursion. The same split on P instead of
J = tr(P)E - P takes fewer operations, because P transforms under any affine map, and shifting a massless body by p adds
p cᵀ + c pᵀ and nothing to the diagonal entries of other axes: 3M 3A where J takes 3M 4A. Rotation about z leaves m̂,
(k)_z and (P)₃₃ unchanged: these three are regrouped with the parent link, off-line.

Below joint s, the first revolute joint not parallel to joint r, the first revolute joint of all, P reduces to the one
moment of inertia that acts there (Lin & Fang 1999, eqs. 36-40).

Symbols: m̂, k, K: mass, first and second moment, the constant part; ell, V: the varying part;
c = k + ell, P = K + V about the origin of frame i, in that frame. In the body of a revolute joint, the varying part
includes all constants but (m̂, k_z, K₃₃).

Cost: 31M 32A per link of a general arm of revolute joints (Lin & Fang 1999, Table VII: 32M 33A).
"""

from __future__ import annotations

from dataclasses import dataclass

from armdyn.algebra import ZERO, JointRotation, Scalar, Sym3, Vec3, X, Z
from armdyn.algebra.scalar import is_number
from armdyn.algebra.spatial import NO_MOMENTS, Body, Wrench, similarity_about_z, turn_about_z
from armdyn.chain import Chain, Joint
from armdyn.formulations.steps import collect


@dataclass(frozen=True, slots=True)
class SecondMoments(Body):
    """A body with part of its inertia about z stored outside P."""

    turning: Scalar = 0  # the part of J₃₃ = P₁₁ + P₂₂ that is not in P

    def __add__(self, other: Body) -> SecondMoments:
        turning = self.turning + (other.turning if isinstance(other, SecondMoments) else 0)
        return SecondMoments(self.mass + other.mass, self.moment + other.moment, self.P + other.P, turning)

    @property
    def wrench_of_turn(self) -> Wrench:
        """The wrench of a unit acceleration about z: (z × c, J z)."""
        c, P = self.moment, self.P
        return Wrench(Vec3(-c.y, c.x, 0), Vec3(-P.xz, -P.yz, P.xx + P.yy + self.turning))

    @property
    def wrench_of_slide(self) -> Wrench:
        """The wrench of a unit acceleration along z: (m z, c × z)."""
        return Wrench(Vec3(0, 0, self.mass), Vec3(self.moment.y, -self.moment.x, 0))


NOTHING = SecondMoments(0, ZERO, NO_MOMENTS)


@dataclass(frozen=True, slots=True)
class Regions:
    """Joints preceded only by prismatic ones; joints up to which all revolute axes are parallel, to u in frame i."""

    sliding: frozenset[int]
    axes: dict[int, Vec3]

    def is_general(self, i: int) -> bool:
        """Whether two revolute joints that are not parallel lie between the base and joint i, joint i included."""
        return i >= 0 and i not in self.axes and i not in self.sliding


def regions(chain: Chain) -> Regions:
    """The regions of a chain: on every path prismatic joints, then revolute ones of one direction, then the rest."""
    sliding: set[int] = {-1}
    axes: dict[int, Vec3] = {}
    for i, (joint, parent) in enumerate(zip(chain.joints, chain.parents, strict=True)):
        if parent in sliding:
            if joint.prismatic:
                sliding.add(i)
            else:
                axes[i] = Z
        elif parent in axes and joint.prismatic:
            axes[i] = joint.rotation(0).inverse(axes[parent])
        elif parent in axes:
            u = joint.tilt.T @ axes[parent]
            if u.x == 0 and u.y == 0:
                axes[i] = Z if u.z > 0 else -Z
    return Regions(frozenset(sliding), axes)


def second_moments(chain: Chain, q: list[Scalar]) -> list[SecondMoments]:
    """All composite bodies, each about the origin of its own frame, parents before children.

    Parameters without effect on any joint are left out, so mass, (c)_z and (P)₃₃ of a revolute joint's body are not
    those of the actual body.
    """
    region = regions(chain)
    brought: dict[int, SecondMoments] = {}
    bodies: list[SecondMoments] = []
    for i, constant in reversed(list(enumerate(constants(chain, region)))):
        joint, parent, R = chain.joints[i], chain.parents[i], chain.joints[i].rotation(q[i])
        d, varying = joint.extension(q[i]), brought.get(i, NOTHING)
        if region.is_general(i):
            body, c, P = _general(joint, d, constant, varying)
            first = not region.is_general(parent)
            moved = _first_turn(joint, R, c, P, region.axes[parent]) if first else _inwards(joint, R, c, P)
            collect(brought, parent, moved)
        elif i in region.axes:
            body, c, turning = _turning(joint, d, constant, varying, region.axes[i])
            if parent in region.axes:
                collect(brought, parent, _past(joint, R @ c, turning, region.axes[parent]))
        else:
            body = SecondMoments(constant.mass, ZERO, NO_MOMENTS)  # only prismatic joints: only the mass has an effect
        bodies.append(body)
    return bodies[::-1]


def _general(
    joint: Joint, d: Scalar, constant: SecondMoments, varying: SecondMoments
) -> tuple[SecondMoments, Vec3, Sym3]:
    """Body i, and its varying first and second moments after the shift along z."""
    m, k, ell, V = constant.mass, constant.moment, varying.moment, varying.P
    if joint.revolute:
        body = SecondMoments(m, Vec3(k.x + ell.x, k.y + ell.y, ell.z), constant.P + V, constant.turning)
        return body, body.moment, shifted(body.P, Z, d, body.moment)
    c = k + ell
    moved = Sym3(V.xx, V.xy, V.yy, V.xz + d * c.x, V.yz + d * c.y, V.zz + d * (2 * c.z + m * d))
    return SecondMoments(m, c, NO_MOMENTS), ell + Z * (m * d), moved  # P has no effect on a prismatic joint


def _inwards(joint: Joint, R: JointRotation, c: Vec3, P: Sym3) -> SecondMoments:
    """A massless body, already shifted along z, in the inner frame."""
    bare = R.unturned
    c = bare @ c
    P = shifted(bare.similarity(P), X, joint.b, c)
    if joint.forked:
        c, P = turn_about_z(c, joint.turn), similarity_about_z(P, joint.turn)
        P = shifted(P, Z, joint.shift, c)
    return SecondMoments(0, c, P)


# All revolute joints before joint s have the same direction u, so only the inertia about u has an effect.


def _first_turn(joint: Joint, R: JointRotation, c: Vec3, P: Sym3, u: Vec3) -> SecondMoments:
    """The result of `_inwards` reduced to u: the inertia tr P - uᵀ R P Rᵀ u."""
    a = R.T @ u
    zz = a.z * a.z  # a constant, as the joint rotates about z
    off = a.x * (a.x * (P.xx - P.yy) + 2 * (a.y * P.xy)) + 2 * a.z * (a.x * P.xz + a.y * P.yz)
    return _past(joint, R @ c, P.xx + zz * P.yy + (1 - zz) * P.zz - off, u)


def _turning(
    joint: Joint, d: Scalar, constant: SecondMoments, varying: SecondMoments, u: Vec3
) -> tuple[SecondMoments, Vec3, Scalar]:
    """Body i if all rotations are about u; its varying first moment and inertia about u after the shift along z."""
    m, k, ell = constant.mass, constant.moment, varying.moment
    if joint.revolute:
        turning = constant.turning + varying.turning
        body = SecondMoments(m, Vec3(k.x + ell.x, k.y + ell.y, ell.z), NO_MOMENTS, turning)
        return body, body.moment, turning
    square, lift = u.x * u.x + u.y * u.y, m * d
    moved = 2 * (square * k.z - u.z * (u.x * k.x + u.y * k.y))
    moved = moved + square * (2 * ell.z + lift) - (2 * u.z) * (u.x * ell.x + u.y * ell.y)
    body = SecondMoments(m, _felt(k, u) + _felt(ell, u), NO_MOMENTS)
    return body, ell + Z * lift, varying.turning + d * moved


def _felt(c: Vec3, u: Vec3) -> Vec3:
    """A first moment for which c × z has the same component along u, with at most one entry if u is constant."""
    if u.x == 0 and u.y == 0:
        return ZERO
    if not (is_number(u.x) and is_number(u.y)):
        return Vec3(c.x, c.y, 0)
    return Vec3(0, c.y - u.y / u.x * c.x, 0) if abs(u.x) >= abs(u.y) else Vec3(c.x - u.x / u.y * c.y, 0, 0)


def _past(joint: Joint, c: Vec3, turning: Scalar, u: Vec3) -> SecondMoments:
    """The shift to the parent's origin; c is in the parent's frame already."""
    if joint.forked:
        p = joint.normal_end
        return SecondMoments(0, c, NO_MOMENTS, turning + 2 * (p.dot(c) - u.dot(p) * u.dot(c)))
    moved = (u.y * u.y + u.z * u.z) * c.x - u.x * (u.y * c.y + u.z * c.z)
    return SecondMoments(0, c, NO_MOMENTS, turning + 2 * joint.b * moved)


def constants(chain: Chain, region: Regions) -> list[SecondMoments]:
    """m̂, k and the remainder of K after regrouping, for every composite body: off-line."""
    bodies: list[SecondMoments] = []
    brought: dict[int, SecondMoments] = {}
    for i in reversed(range(chain.bodies)):
        own, joint, parent = chain.links[i], chain.joints[i], chain.parents[i]
        outer = brought.get(i, NOTHING)
        mass, c, K = own.mass + outer.mass, own.moment + outer.moment, _of_inertia(own.inertia) + outer.P
        if joint.revolute and not region.is_general(i):  # a single run-time number costs no more than a constant
            regrouped, body = NO_MOMENTS, SecondMoments(mass, c, NO_MOMENTS, K.xx + K.yy)
        elif joint.revolute:
            first = not region.is_general(parent)
            e = K.xx if first and _meets_at_right_angles(joint, region.axes.get(parent, Z)) else K.yy
            regrouped = Sym3(e, 0, e, 0, 0, K.zz)  # invariant under rotation about z
            body = SecondMoments(mass, c, Sym3(K.xx - e, K.xy, K.yy - e, K.xz, K.yz, 0), 2 * e)
        else:
            regrouped, body = K, SecondMoments(mass, c, NO_MOMENTS)
        bodies.append(body)
        collect(brought, parent, _regrouped(joint, mass, c, regrouped))
    return bodies[::-1]


def _meets_at_right_angles(joint: Joint, u: Vec3) -> bool:
    """Whether P₁₁ appears alone in the inertia about u of `_first_turn`: then it is best without a constant."""
    return bool((joint.tilt.T @ u).z == 0)


def _regrouped(joint: Joint, m: Scalar, k: Vec3, K: Sym3) -> SecondMoments:
    """The part of a body's constants that is regrouped with its parent, about the parent's frame."""
    b = X * joint.b
    if joint.revolute:
        R = JointRotation(joint.beta, joint.gamma, 1, 0)
        k = Z * k.z
        K, k = shifted(K, Z, joint.d, k + Z * (m * joint.d / 2)), k + Z * (m * joint.d)
    else:
        R = JointRotation(joint.beta, joint.gamma, joint.theta.cos, joint.theta.sin)
    k, K = R @ k, R.similarity(K)
    k, K = k + b * m, shifted(K, X, joint.b, k + b * (m / 2))
    if joint.forked:
        k, K, by = turn_about_z(k, joint.turn), similarity_about_z(K, joint.turn), joint.shift
        k, K = k + Z * (m * by), shifted(K, Z, by, k + Z * (m * by / 2))
    return SecondMoments(m, k, K)


def shifted(P: Sym3, axis: Vec3, by: Scalar, c: Vec3) -> Sym3:
    """P + by (axis cᵀ + c axisᵀ), for an axis x or z."""
    if axis is X:
        return Sym3(P.xx + (2 * by) * c.x, P.xy + by * c.y, P.yy, P.xz + by * c.z, P.yz, P.zz)
    return Sym3(P.xx, P.xy, P.yy, P.xz + by * c.x, P.yz + by * c.y, P.zz + (2 * by) * c.z)


def _of_inertia(J: Sym3) -> Sym3:
    """P = ½tr(J)E - J, entry by entry: fewer operations than by the trace if the parameters are run-time inputs."""
    xx, yy, zz = (J.yy + J.zz - J.xx) / 2, (J.xx + J.zz - J.yy) / 2, (J.xx + J.yy - J.zz) / 2
    return Sym3(xx, -J.xy, yy, -J.xz, -J.yz, zz)
