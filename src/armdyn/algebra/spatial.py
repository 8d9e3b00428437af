"""Spatial quantities: motions, wrenches, bodies, and their transforms over a joint.

The placement of frame i in its parent's is ``Tz(shift) Rz(turn) Tx(b) Rx(β) Ry(γ) Tz(d) Rz(θ)``. A transform is
applied translation by translation and plane by plane: a translation along one axis takes two products (4M 4A for both
translations of a joint, where the general cross product takes 6M 6A); right angles and zero lengths cost nothing.
`shift` and `turn` are 0 except at forks.
"""

from __future__ import annotations

from dataclasses import dataclass

from armdyn.algebra.mat3 import Sym3
from armdyn.algebra.rotation import JointRotation, similarity_about_z, turn_about_z
from armdyn.algebra.scalar import Scalar
from armdyn.algebra.vec3 import ZERO, Vec3, Z

NO_MOMENTS = Sym3(0, 0, 0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Motion:
    """Angular velocity w and velocity v of the frame's origin; or the same of accelerations."""

    w: Vec3
    v: Vec3

    def __add__(self, other: Motion) -> Motion:
        return Motion(self.w + other.w, self.v + other.v)

    def along(self, revolute: bool, rate: Scalar) -> Motion:
        """The same with a joint's own rate about or along z added."""
        w, v = self.w, self.v
        if revolute:
            return Motion(Vec3(w.x, w.y, w.z + rate), v)
        return Motion(w, Vec3(v.x, v.y, v.z + rate))


@dataclass(frozen=True, slots=True)
class Wrench:
    """Force f and moment n about the frame's origin."""

    f: Vec3
    n: Vec3

    def __add__(self, other: Wrench) -> Wrench:
        return Wrench(self.f + other.f, self.n + other.n)

    def along(self, revolute: bool) -> Scalar:
        """The joint force at a joint with axis z: the moment about its axis, or the force along it."""
        return self.n.z if revolute else self.f.z


NO_MOTION = Motion(ZERO, ZERO)
NO_WRENCH = Wrench(ZERO, ZERO)
UNIT_TURN = Motion(Z, ZERO)
UNIT_SLIDE = Motion(ZERO, Z)


def unit_motion(revolute: bool) -> Motion:
    """The motion for a unit rate of a joint with axis z, in its own frame."""
    return UNIT_TURN if revolute else UNIT_SLIDE


def power(motion: Motion, wrench: Wrench) -> Scalar:
    """w·n + v·f."""
    return motion.w.dot(wrench.n) + motion.v.dot(wrench.f)


@dataclass(frozen=True, slots=True)
class Body:
    """Mass, first moment and second moments P = ∫ x xᵀ dm about the frame's origin."""

    mass: Scalar
    moment: Vec3
    P: Sym3

    @classmethod
    def of(cls, mass: Scalar, moment: Vec3, inertia: Sym3) -> Body:
        """A body from its inertia about the frame's origin: P = ½ tr(J) E - J."""
        J = inertia
        half = J.trace / 2
        return cls(mass, moment, Sym3(half - J.xx, -J.xy, half - J.yy, -J.xz, -J.yz, half - J.zz))

    def __add__(self, other: Body) -> Body:
        return Body(self.mass + other.mass, self.moment + other.moment, self.P + other.P)


NO_BODY = Body(0, ZERO, NO_MOMENTS)


def outer(a: Vec3, b: Vec3) -> Sym3:
    """½ (a bᵀ + b aᵀ): what a point mass at a = b has of P, and moving a first moment b by a adds twice."""
    return Sym3(
        a.x * b.x,
        (a.x * b.y + a.y * b.x) / 2,
        a.y * b.y,
        (a.x * b.z + a.z * b.x) / 2,
        (a.y * b.z + a.z * b.y) / 2,
        a.z * b.z,
    )


def parallel_axis(a: Vec3, b: Vec3) -> Sym3:
    """-[a×][b×] - [b×][a×]: what moving a body with first moment b by a adds to its inertia, but for m a² terms."""
    xx, yy, zz = a.x * b.x, a.y * b.y, a.z * b.z
    return Sym3(
        2 * (yy + zz),
        -(a.x * b.y + a.y * b.x),
        2 * (xx + zz),
        -(a.x * b.z + a.z * b.x),
        -(a.y * b.z + a.z * b.y),
        2 * (xx + yy),
    )


@dataclass(frozen=True, slots=True)
class Transform:
    """The placement of frame i in its parent's, and the transforms of motions, wrenches, points and bodies."""

    R: JointRotation  # carries frame i into its parent's, the fork's turn included
    b: Scalar
    d: Scalar
    shift: Scalar

    @property
    def forked(self) -> bool:
        """Whether there is a rotation about or a translation along the parent's z."""
        return bool(self.R.turned or self.shift != 0)

    @property
    def axis(self) -> Vec3:
        """The axis z of frame i in the parent's frame: constant, (0, -Sβ, Cβ) where γ and turn are 0."""
        beta, gamma = self.R.beta, self.R.gamma
        u = Vec3(gamma.sin, -beta.sin * gamma.cos, beta.cos * gamma.cos)
        return turn_about_z(u, self.R.turn) if self.R.turned else u

    @property
    def fork(self) -> Vec3:
        """Where the common normal with the axis i ends, in the parent's frame: (b, 0, 0) in a chain."""
        x = Vec3(self.b, 0, 0)
        return turn_about_z(x, self.R.turn) + Vec3(0, 0, self.shift) if self.forked else x

    @property
    def origin(self) -> Vec3:
        """The origin of frame i in the parent's: (b, -d Sβ, d Cβ) where γ = 0, in a chain."""
        axis, fork = self.axis, self.fork
        if self.forked:
            return Vec3(fork.x + self.d * axis.x, fork.y + self.d * axis.y, fork.z + self.d * axis.z)
        return Vec3(self.b + self.d * axis.x, self.d * axis.y, self.d * axis.z)

    @property
    def offset(self) -> Vec3:
        """The same vector seen in frame i: (b Cθ, -b Sθ, d) where γ = 0, in a chain."""
        R = self.R
        b = self.b * R.gamma.cos
        p = Vec3(b * R.c, -(b * R.s), self.d + self.b * R.gamma.sin)
        return p + R.inverse(Vec3(0, 0, self.shift)) if self.forked else p

    def motion_outward(self, motion: Motion) -> Motion:
        """A motion of the parent's frame seen from frame i, the joint at rest: 20M 12A."""
        w, v, b, d = motion.w, motion.v, self.b, self.d
        R = self.R.unturned
        if self.forked:
            v = Vec3(v.x + self.shift * w.y, v.y - self.shift * w.x, v.z)
            w, v = turn_about_z(w, self.R.turn.opposite), turn_about_z(v, self.R.turn.opposite)
        v = Vec3(v.x, v.y + b * w.z, v.z - b * w.y)
        w, v = R.T @ w, R.T @ v
        return Motion(w, Vec3(v.x + d * w.y, v.y - d * w.x, v.z))

    def wrench_inward(self, wrench: Wrench) -> Wrench:
        """A wrench in frame i seen from the parent's frame, about its origin: 20M 12A."""
        f, n, b, d = wrench.f, wrench.n, self.b, self.d
        R = self.R.unturned
        n = Vec3(n.x - d * f.y, n.y + d * f.x, n.z)
        f, n = R @ f, R @ n
        n = Vec3(n.x, n.y - b * f.z, n.z + b * f.y)
        if self.forked:
            f, n = turn_about_z(f, self.R.turn), turn_about_z(n, self.R.turn)
            n = Vec3(n.x - self.shift * f.y, n.y + self.shift * f.x, n.z)
        return Wrench(f, n)

    def point_inward(self, r: Vec3) -> Vec3:
        """A point given in frame i, given in the parent's."""
        r = self.R.unturned @ Vec3(r.x, r.y, r.z + self.d)
        r = Vec3(r.x + self.b, r.y, r.z)
        return turn_about_z(r, self.R.turn) + Vec3(0, 0, self.shift) if self.forked else r

    def first_moment_inward(self, mass: Scalar, k: Vec3) -> Vec3:
        """The first moment of a body about the origin of frame i, about that of the parent's."""
        k = self.R.unturned @ Vec3(k.x, k.y, k.z + mass * self.d)
        k = Vec3(k.x + mass * self.b, k.y, k.z)
        if not self.forked:
            return k
        k = turn_about_z(k, self.R.turn)
        return Vec3(k.x, k.y, k.z + mass * self.shift)

    def body_inward(self, body: Body) -> Body:
        """A body given in frame i, given in the parent's: the parallel-axis theorem along z and x, a turn between."""
        R, b = self.R.unturned, self.b
        body = moved_along_z(body, self.d)
        m, k, P = body.mass, R @ body.moment, R.similarity(body.P)
        k_x = k.x + m * b
        P = Sym3(P.xx + b * (k.x + k_x), P.xy + b * k.y, P.yy, P.xz + b * k.z, P.yz, P.zz)
        body = Body(m, Vec3(k_x, k.y, k.z), P)
        if not self.forked:
            return body
        turn = self.R.turn
        return moved_along_z(Body(m, turn_about_z(body.moment, turn), similarity_about_z(body.P, turn)), self.shift)


def moved_along_z(body: Body, d: Scalar) -> Body:
    """The body seen from a frame in which its own stands at d along z."""
    m, k, P = body.mass, body.moment, body.P
    k_z = k.z + m * d
    P = Sym3(P.xx, P.xy, P.yy, P.xz + d * k.x, P.yz + d * k.y, P.zz + d * (k.z + k_z))
    return Body(m, Vec3(k.x, k.y, k_z), P)
