"""Vectors, matrices and rotations; spatial quantities (motions, wrenches, bodies) and their transforms over a joint.

The placement of frame i in its parent's is ``Tz(shift) Rz(turn) Tx(b) Rx(β) Ry(γ) Tz(d) Rz(θ)``. A transform is
applied translation by translation and plane by plane: a translation along one axis takes two products (4M 4A for both
translations of a joint, where the general cross product takes 6M 6A); right angles and zero lengths cost nothing.
`shift` and `turn` are 0 except at forks.

Vectors have three scalars; 3×3 matrices are general, given by their rows, or symmetric.

The rotation of a joint in normal driving-axis frames is three plane rotations: R transforms vectors from frame i to its
parent's: ``R = Rx(β) Ry(γ) Rz(θ)``. γ is 0 except for nearly parallel axes, where it avoids an ill-conditioned common
normal. Rotating a vector costs 8M 4A: four multiplications and two additions per plane; right angles cost nothing. At a
fork a constant rotation about the parent's z axis comes first: ``R = Rz(turn) Rx(β) Ry(γ) Rz(θ)``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, overload

from armdyn.algebra.scalar import ZERO_ANGLE, Angle, Scalar
from armdyn.algebra.tally import on_hand


@dataclass(frozen=True, slots=True)
class Vec3:
    """A vector (x, y, z) of scalars of any type."""

    x: Scalar
    y: Scalar
    z: Scalar
    __array_ufunc__ = None  # so that `array * self` calls `__rmul__` instead of making an array of objects

    def __iter__(self) -> Iterator[Scalar]:
        return iter((self.x, self.y, self.z))

    def __add__(self, other: Vec3) -> Vec3:
        return Vec3(self.x + other.x, self.y + other.y, self.z + other.z)

    def __sub__(self, other: Vec3) -> Vec3:
        return Vec3(self.x - other.x, self.y - other.y, self.z - other.z)

    def __neg__(self) -> Vec3:
        return Vec3(-self.x, -self.y, -self.z)

    def __mul__(self, factor: Scalar) -> Vec3:
        return Vec3(factor * self.x, factor * self.y, factor * self.z)

    __rmul__ = __mul__

    def dot(self, other: Vec3) -> Scalar:
        """Scalar product."""
        return self.x * other.x + self.y * other.y + self.z * other.z

    def cross(self, other: Vec3) -> Vec3:
        """Vector product self × other."""
        a, b = self, other
        return Vec3(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x)


ZERO = Vec3(0, 0, 0)
X = Vec3(1, 0, 0)
Y = Vec3(0, 1, 0)
Z = Vec3(0, 0, 1)


@dataclass(frozen=True, slots=True)
class Mat3:
    """A matrix given by its three rows."""

    r1: Vec3
    r2: Vec3
    r3: Vec3
    __array_ufunc__ = None  # so that `array * self` calls `__rmul__` instead of making an array of objects

    @property
    def T(self) -> Mat3:
        """The transpose."""
        a, b, c = self.r1, self.r2, self.r3
        return Mat3(Vec3(a.x, b.x, c.x), Vec3(a.y, b.y, c.y), Vec3(a.z, b.z, c.z))

    @property
    def rows(self) -> tuple[Vec3, Vec3, Vec3]:
        """The three rows."""
        return self.r1, self.r2, self.r3

    @overload
    def __matmul__(self, other: Vec3) -> Vec3: ...
    @overload
    def __matmul__(self, other: Mat3) -> Mat3: ...
    def __matmul__(self, other: Any) -> Any:
        if isinstance(other, Vec3):
            return Vec3(self.r1.dot(other), self.r2.dot(other), self.r3.dot(other))
        columns = other.T
        return Mat3(columns @ self.r1, columns @ self.r2, columns @ self.r3)

    def __add__(self, other: Mat3) -> Mat3:
        return Mat3(self.r1 + other.r1, self.r2 + other.r2, self.r3 + other.r3)

    def __sub__(self, other: Mat3) -> Mat3:
        return Mat3(self.r1 - other.r1, self.r2 - other.r2, self.r3 - other.r3)

    def __mul__(self, factor: Scalar) -> Mat3:
        return Mat3(factor * self.r1, factor * self.r2, factor * self.r3)

    __rmul__ = __mul__

    def similarity(self, J: Sym3) -> Sym3:
        """A J Aᵀ."""
        AJ = self @ J.full
        full = AJ @ self.T
        return Sym3(full.r1.x, full.r1.y, full.r2.y, full.r1.z, full.r2.z, full.r3.z)


@dataclass(frozen=True, slots=True)
class Sym3:
    """A symmetric matrix, entries in Pinocchio's order: xx, xy, yy, xz, yz, zz."""

    xx: Scalar
    xy: Scalar
    yy: Scalar
    xz: Scalar
    yz: Scalar
    zz: Scalar
    __array_ufunc__ = None  # so that `array * self` calls `__rmul__` instead of making an array of objects

    @property
    def entries(self) -> tuple[Scalar, ...]:
        """The six entries xx, xy, yy, xz, yz, zz."""
        return self.xx, self.xy, self.yy, self.xz, self.yz, self.zz

    @property
    def full(self) -> Mat3:
        """The matrix with all nine entries."""
        return Mat3(Vec3(self.xx, self.xy, self.xz), Vec3(self.xy, self.yy, self.yz), Vec3(self.xz, self.yz, self.zz))

    @property
    def trace(self) -> Scalar:
        """The sum of the diagonal, tr J."""
        return self.xx + self.yy + self.zz

    def __matmul__(self, v: Vec3) -> Vec3:
        return self.full @ v

    def __add__(self, other: Sym3) -> Sym3:
        return Sym3(*(a + b for a, b in zip(self.entries, other.entries, strict=True)))

    def __sub__(self, other: Sym3) -> Sym3:
        return Sym3(*(a - b for a, b in zip(self.entries, other.entries, strict=True)))

    def __neg__(self) -> Sym3:
        return Sym3(*(-a for a in self.entries))

    def __mul__(self, factor: Scalar) -> Sym3:
        return Sym3(*(factor * a for a in self.entries))

    __rmul__ = __mul__

    @staticmethod
    def steiner(a: Vec3, b: Vec3) -> Sym3:
        """-([a×][b×] + [b×][a×])/2 = (a·b)E - (abᵀ + baᵀ)/2: `steiner(c, c)` moves an inertia by c."""
        xx, yy, zz = a.x * b.x, a.y * b.y, a.z * b.z
        if a is b:
            return Sym3(yy + zz, -a.x * a.y, xx + zz, -a.x * a.z, -a.y * a.z, xx + yy)
        return Sym3(
            yy + zz,
            -(a.x * b.y + a.y * b.x) / 2,
            xx + zz,
            -(a.x * b.z + a.z * b.x) / 2,
            -(a.y * b.z + a.z * b.y) / 2,
            xx + yy,
        )


IDENTITY = Mat3(X, Y, Z)


@dataclass(frozen=True, slots=True)
class JointRotation:
    """R = Rz(turn) Rx(β) Ry(γ) Rz(θ), with c, s the cosine and sine of θ."""

    beta: Angle
    gamma: Angle
    c: Scalar
    s: Scalar
    turn: Angle = ZERO_ANGLE

    @property
    def turned(self) -> bool:
        """Whether there is a rotation about the parent's z axis."""
        return bool(self.turn.sin != 0 or self.turn.cos != 1)

    @property
    def unturned(self) -> JointRotation:
        """The same without the rotation about the parent's z axis."""
        return JointRotation(self.beta, self.gamma, self.c, self.s) if self.turned else self

    def __matmul__(self, v: Vec3) -> Vec3:
        """R v: from frame i into its parent's."""
        x, y = self.c * v.x - self.s * v.y, self.s * v.x + self.c * v.y
        cg, sg, cb, sb = self.gamma.cos, self.gamma.sin, self.beta.cos, self.beta.sin
        x, z = cg * x + sg * v.z, cg * v.z - sg * x
        y, z = cb * y - sb * z, sb * y + cb * z
        return turn_about_z(Vec3(x, y, z), self.turn) if self.turned else Vec3(x, y, z)

    def inverse(self, v: Vec3) -> Vec3:
        """Rᵀ v: from the parent's frame into frame i."""
        if self.turned:
            v = turn_about_z(v, self.turn.opposite)
        cg, sg, cb, sb = self.gamma.cos, self.gamma.sin, self.beta.cos, self.beta.sin
        y, z = cb * v.y + sb * v.z, cb * v.z - sb * v.y
        x, z = cg * v.x - sg * z, cg * z + sg * v.x
        return Vec3(self.c * x + self.s * y, self.c * y - self.s * x, z)

    @property
    def T(self) -> InverseRotation:
        """The transpose, so that ``R.T @ v`` reads as in the papers."""
        return InverseRotation(self)

    def matrix(self) -> Mat3:
        """The nine entries; the papers take them as on hand (C1): free when counted."""
        matrix: Mat3 = on_hand(self._matrix)
        return matrix

    def _matrix(self) -> Mat3:
        columns = (self @ Vec3(1, 0, 0), self @ Vec3(0, 1, 0), self @ Vec3(0, 0, 1))
        return Mat3(*columns).T

    def similarity(self, J: Sym3) -> Sym3:
        """R J Rᵀ, plane by plane: 18M 14A (Lin & Fang 1999, eqs. 41-54, in their order of planes)."""
        J = _turn_z(J, self.c, self.s)
        if self.gamma.sin != 0:
            J = _turn_y(J, self.gamma.cos, self.gamma.sin)
        J = _turn_x(J, self.beta.cos, self.beta.sin)
        return _turn_z(J, self.turn.cos, self.turn.sin) if self.turned else J

    def similarity_by_products(self, J: Sym3) -> Sym3:
        """The same as plain products of 2 × 2 matrices, 36M 18A: how it was done before 1996."""
        J = _turn_z(J, self.c, self.s, _plane_by_products)
        if self.gamma.sin != 0:
            J = _turn_y(J, self.gamma.cos, self.gamma.sin, _plane_by_products)
        J = _turn_x(J, self.beta.cos, self.beta.sin, _plane_by_products)
        return _turn_z(J, self.turn.cos, self.turn.sin, _plane_by_products) if self.turned else J


def turn_about_z(v: Vec3, angle: Angle) -> Vec3:
    """Rz(angle) v, by a constant angle."""
    c, s = angle.cos, angle.sin
    return Vec3(c * v.x - s * v.y, s * v.x + c * v.y, v.z)


def similarity_about_z(J: Sym3, angle: Angle) -> Sym3:
    """Rz(angle) J Rz(angle)ᵀ, by a constant angle."""
    return _turn_z(J, angle.cos, angle.sin)


@dataclass(frozen=True, slots=True)
class InverseRotation:
    """The transpose of a joint rotation."""

    T: JointRotation

    def __matmul__(self, v: Vec3) -> Vec3:
        return self.T.inverse(v)


def _plane(a: Scalar, b: Scalar, h: Scalar, c: Scalar, s: Scalar) -> tuple[Scalar, Scalar, Scalar]:
    """[[c, -s], [s, c]] [[a, h], [h, b]] [[c, s], [-s, c]] as (a', b', h')."""
    t = s * (a - b) + 2 * (c * h)  # b' = b + s t, a' = a - s t, h' = c s (a - b) + (c² - s²) h
    st = s * t
    return a - st, b + st, c * t - h


def _plane_by_products(a: Scalar, b: Scalar, h: Scalar, c: Scalar, s: Scalar) -> tuple[Scalar, Scalar, Scalar]:
    """The same, one matrix product after the other."""
    a1, h1, h2, b2 = c * a - s * h, c * h - s * b, s * a + c * h, s * h + c * b
    return c * a1 - s * h1, s * h2 + c * b2, s * a1 + c * h1


Plane = Callable[[Scalar, Scalar, Scalar, Scalar, Scalar], tuple[Scalar, Scalar, Scalar]]


def _turn_z(J: Sym3, c: Scalar, s: Scalar, plane: Plane = _plane) -> Sym3:
    xx, yy, xy = plane(J.xx, J.yy, J.xy, c, s)
    return Sym3(xx, xy, yy, c * J.xz - s * J.yz, s * J.xz + c * J.yz, J.zz)


def _turn_y(J: Sym3, c: Scalar, s: Scalar, plane: Plane = _plane) -> Sym3:
    zz, xx, xz = plane(J.zz, J.xx, J.xz, c, s)
    return Sym3(xx, c * J.xy + s * J.yz, J.yy, xz, c * J.yz - s * J.xy, zz)


def _turn_x(J: Sym3, c: Scalar, s: Scalar, plane: Plane = _plane) -> Sym3:
    yy, zz, yz = plane(J.yy, J.zz, J.yz, c, s)
    return Sym3(J.xx, c * J.xy - s * J.xz, yy, s * J.xy + c * J.xz, yz, zz)


NO_MOMENTS = Sym3(0, 0, 0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class MotionVector:
    """Angular velocity w and velocity v of the frame's origin; or the same of accelerations."""

    w: Vec3
    v: Vec3

    def __add__(self, other: MotionVector) -> MotionVector:
        return MotionVector(self.w + other.w, self.v + other.v)

    def along(self, revolute: bool, rate: Scalar) -> MotionVector:
        """The same with a joint's own rate about or along z added."""
        w, v = self.w, self.v
        if revolute:
            return MotionVector(Vec3(w.x, w.y, w.z + rate), v)
        return MotionVector(w, Vec3(v.x, v.y, v.z + rate))


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


NO_MOTION = MotionVector(ZERO, ZERO)
NO_WRENCH = Wrench(ZERO, ZERO)
UNIT_TURN = MotionVector(Z, ZERO)
UNIT_SLIDE = MotionVector(ZERO, Z)


def unit_motion(revolute: bool) -> MotionVector:
    """The motion for a unit rate of a joint with axis z, in its own frame."""
    return UNIT_TURN if revolute else UNIT_SLIDE


def power(motion: MotionVector, wrench: Wrench) -> Scalar:
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

    def motion_outward(self, motion: MotionVector) -> MotionVector:
        """A motion of the parent's frame seen from frame i, the joint at rest: 20M 12A."""
        w, v, b, d = motion.w, motion.v, self.b, self.d
        R = self.R.unturned
        if self.forked:
            v = Vec3(v.x + self.shift * w.y, v.y - self.shift * w.x, v.z)
            w, v = turn_about_z(w, self.R.turn.opposite), turn_about_z(v, self.R.turn.opposite)
        v = Vec3(v.x, v.y + b * w.z, v.z - b * w.y)
        w, v = R.T @ w, R.T @ v
        return MotionVector(w, Vec3(v.x + d * w.y, v.y - d * w.x, v.z))

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
