"""Joint: one joint in normal driving-axis (modified Denavit-Hartenberg) frames, including branching links.

A joint carries a link: a rigid body given by its ten natural parameters. Its joint forces besides speed-dependent
friction are offset, spring, ripple, asymmetry and load-dependent friction.

A link is physically consistent if its pseudo-inertia is positive semidefinite: its mass and its principal moments about
the centre of mass are not negative, and the moments obey the triangle inequality (`link_faults`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from fractions import Fraction
from typing import Literal

from armdyn.algebra import IDENTITY, ZERO, Angle, JointRotation, Mat3, Scalar, Sym3, Tally, Vec3, X, Z, cos, sign, sin
from armdyn.algebra.scalar import ZERO_ANGLE
from armdyn.algebra.spatial import Body, turn_about_z
from armdyn.chain.servo import Servo


@dataclass(frozen=True, slots=True)
class Ripple:
    """A periodic force over the joint's rotation: sine × sin(k q) + cosine × cos(k q), `per_turn` = k."""

    per_turn: int
    sine: Scalar = 0
    cosine: Scalar = 0

    def at(self, q: Scalar) -> Scalar:
        """The force at a position."""
        return self.sine * sin(self.per_turn * q) + self.cosine * cos(self.per_turn * q)


@dataclass(frozen=True, slots=True)
class JointForces:
    """The forces that the motor of a joint must provide in addition to velocity-dependent friction.

    `offset` is constant (N m or N), `stiffness` is that of a spring at rest at q = 0 (a cable), `ripples` are
    periodic in q; `asymmetry` is half the difference of viscous friction forwards and backwards, and
    `load_friction` (from 0, below 1) is the fraction of the load (the joint force without any of these forces) that a
    gear loses: friction of load_friction × |load|. `stribeck_exponent` (even) is that of the velocity in the Stribeck
    curve: 2 is Hess and Soom's; with 4 the change from static to Coulomb friction is more abrupt.

    A field that is one number is read, written, checked, listed and, with a `Term`, identified without being named
    again. Its metadata say whether it cannot be negative (`positive`), which number it stays `below`, and how it is
    called in `words`, if not by its name.
    """

    offset: Scalar = 0
    stiffness: Scalar = 0
    ripples: tuple[Ripple, ...] = ()
    asymmetry: Scalar = field(default=0, metadata={"words": "asymmetric viscous friction"})
    load_friction: Scalar = field(
        default=0, metadata={"positive": True, "below": 1, "words": "load-dependent friction"}
    )
    stribeck_exponent: int = 2

    def at(self, q: Scalar) -> Scalar:
        """The forces that depend only on the position."""
        force = self.offset + self.stiffness * q
        for ripple in self.ripples:
            force = force + ripple.at(q)
        return force

    def over_speed(self, qd: Scalar, side: Scalar) -> Scalar:
        """The forces that depend only on the speed, beside viscous and dry friction; `side` is its sign."""
        return self.asymmetry * (qd * side) if self.asymmetry != 0 else 0

    def lost(self, load: Scalar, side: Scalar) -> Scalar:
        """The friction of a load; `side` is the sign of the speed."""
        return self.load_friction * (load * sign(load)) * side

    def efficiency(self, force: Scalar, side: Scalar) -> Scalar:
        """The load that a force moves over that force: `efficiency × force` is the inverse of load + lost(load)."""
        return 1 if self.load_friction == 0 else 1 / (1 + self.load_friction * side * sign(force))


NO_FORCES = JointForces()
NUMBERS = tuple(f.name for f in fields(JointForces) if f.default == 0)  # the forces given by one number
POSITIVE = tuple(f.name for f in fields(JointForces) if f.metadata.get("positive"))
WORDS = {f.name: f.metadata.get("words", f.name.replace("_", " ")) for f in fields(JointForces)}
BELOW = {f.name: f.metadata["below"] for f in fields(JointForces) if "below" in f.metadata}


@dataclass(frozen=True, slots=True)
class Tendon:
    """A linear relation L = Σ c q of several joints (index, c), with a spring, a damper and an inertia.

    The motors must provide c (stiffness (L - rest) + damping L̇) at each of the joints: forces of joints, as friction
    is. `armature` is an inertia along L, and as rotor inertias are a part of the inertia matrix: armature c cᵀ.
    """

    joints: tuple[tuple[int, Scalar], ...]
    stiffness: Scalar = 0
    rest: Scalar = 0
    damping: Scalar = 0
    armature: Scalar = 0
    name: str = ""

    def along(self, x: Sequence[Scalar]) -> Scalar:
        """Σ c x, a length or its rate."""
        return sum((c * x[i] for i, c in self.joints), 0)

    def spread(self, force: Scalar, count: int) -> list[Scalar]:
        """C times a force along the tendon, for each of `count` joints."""
        share = dict(self.joints)
        return [share[i] * force if i in share else 0 for i in range(count)]


Kind = Literal["revolute", "prismatic", "free"]
KINDS: tuple[Kind, ...] = ("revolute", "prismatic", "free")
DRIVE = ("rotor_inertia", "viscous", "coulomb", "static", "stribeck")  # fields of a joint that cannot be negative


@dataclass(frozen=True, slots=True)
class Limit:
    """The limits of a joint in SI units (rad or m, per second, N m or N); None if unknown."""

    lower: float | None = None
    upper: float | None = None
    velocity: float | None = None
    effort: float | None = None


@dataclass(frozen=True, slots=True)
class Mimic:
    """A mimic joint follows another one: its position is multiplier × that of joint `joint` of the chain + offset."""

    joint: int
    multiplier: Scalar = 1
    offset: Scalar = 0


@dataclass(frozen=True, slots=True)
class Joint:
    """Frame i in its parent's frame: Tz(shift) Rz(turn) Tx(b) Rx(β) Ry(γ) Tz(d) Rz(θ).

    A revolute joint adds q to θ, a prismatic one adds q to d. γ is 0 except for nearly parallel axes. If a link carries
    several joints, its x axis can lie along only one common normal; the other joints have two more constants, `turn`
    and `shift` (about and along the parent's z axis; Khalil & Kleinfinger 1986), which are 0 in a serial chain.

    A free joint is a floating base: six degrees of freedom, no constants. Only the first joint can be free.

    Friction is `viscous` friction per unit of speed, and dry friction that falls from `static` (the breakaway force or
    torque; 0 counts as `coulomb`) to `coulomb` around the Stribeck speed `stribeck`. `forces` are all others: offset,
    spring, ripple, asymmetry of the viscous friction, load-dependent friction. `servo` is the joint's position
    controller where its motor takes positions; it changes no quantity of the arm.
    """

    kind: Kind
    b: Scalar
    beta: Angle
    d: Scalar
    theta: Angle
    gamma: Angle = ZERO_ANGLE
    name: str = ""
    limit: Limit = Limit()
    rotor_inertia: Scalar = 0
    viscous: Scalar = 0
    coulomb: Scalar = 0
    turn: Angle = ZERO_ANGLE
    shift: Scalar = 0
    mimic: Mimic | None = None
    static: Scalar = 0
    stribeck: Scalar = 0
    forces: JointForces = NO_FORCES
    servo: Servo | None = None

    def __repr__(self) -> str:
        if self.free:
            return f"Joint({self.name or '?'}, free)"
        numbers = {"b": self.b, "beta": self.beta.radians, "d": self.d, "theta": self.theta.radians}
        if self.gamma.radians:
            numbers["gamma"] = self.gamma.radians
        if self.forked:
            numbers.update(turn=self.turn.radians, shift=self.shift)
        shown = ", ".join(f"{key}={_shown(x)}" for key, x in numbers.items())
        return f"Joint({self.name or '?'}, {self.kind}, {shown})"

    @property
    def revolute(self) -> bool:
        """Whether the joint is revolute."""
        return self.kind == "revolute"

    @property
    def prismatic(self) -> bool:
        """Whether the joint is prismatic."""
        return self.kind == "prismatic"

    @property
    def free(self) -> bool:
        """Whether the joint is that of a floating base."""
        return self.kind == "free"

    @property
    def forked(self) -> bool:
        """Whether the joint has a turn or a shift: never in a serial chain, nor for one joint per link."""
        return bool(self.shift != 0 or self.turn.sin != 0 or self.turn.cos != 1)

    def rotation(self, q: Scalar) -> JointRotation:
        """The rotation from frame i to its parent's frame."""
        c, s = self.theta.plus(q) if self.revolute else (self.theta.cos, self.theta.sin)
        return JointRotation(self.beta, self.gamma, c, s, self.turn)

    def extension(self, q: Scalar) -> Scalar:
        """d, plus q for a prismatic joint."""
        return self.d + q if self.prismatic else self.d

    @property
    def breakaway(self) -> Scalar:
        """The largest dry friction of the joint at rest; a joint without dry friction has 0."""
        return self.static if self.static > 0 and self.stribeck > 0 else max(self.static, self.coulomb)

    def dry_friction(self, qd: Scalar) -> Scalar:
        """The magnitude of dry friction while sliding at `qd`: the Stribeck curve of Hess and Soom 1990.

        coulomb + (static - coulomb) / (1 + (qd / stribeck)²), or with another even exponent (`forces`); with
        `stribeck` 0 the joint has `coulomb` friction as soon as it moves.
        """
        if self.stribeck == 0 or self.breakaway == self.coulomb:
            return self.coulomb
        ratio = qd / self.stribeck
        square = power = ratio * ratio
        for _ in range(self.forces.stribeck_exponent // 2 - 1):
            power = power * square
        return self.coulomb + (self.breakaway - self.coulomb) / (1 + power)

    def friction(self, qd: Scalar) -> Scalar:
        """Viscous and dry friction at a speed; 0 at rest, where dry friction is any value up to `breakaway`."""
        direction = sign(qd)
        force = self.viscous * qd + self.dry_friction(qd) * direction
        return force + self.forces.over_speed(qd, direction)

    @property
    def tilt(self) -> Mat3:
        """The constant part of the rotation, Rz(turn) Rx(β) Ry(γ)."""
        return JointRotation(self.beta, self.gamma, 1, 0, self.turn).matrix()

    @property
    def axis(self) -> Vec3:
        """The joint's axis in the parent's frame: a constant."""
        return self.tilt @ Z

    @property
    def normal_end(self) -> Vec3:
        """Where the common normal from the parent's axis meets the joint's axis, in the parent's frame: a constant."""
        x = X * self.b
        return turn_about_z(x, self.turn) + Vec3(0, 0, self.shift) if self.forked else x

    @property
    def origin(self) -> Vec3:
        """The origin of frame i in the parent's at q = 0; constant for a revolute joint."""
        along: Vec3 = self.d * self.axis
        return self.normal_end + along

    def placement(self, q: Scalar) -> tuple[JointRotation, Vec3]:
        """(R, p): rotation and origin of frame i in its parent's; p = (b, -d Sβ, d Cβ) where γ = 0, without a fork."""
        R, d = self.rotation(q), self.extension(q)
        cg = self.gamma.cos
        p = Vec3(self.b + self.gamma.sin * d, -self.beta.sin * cg * d, self.beta.cos * cg * d)
        if not self.forked:
            return R, p
        c, s = self.turn.cos, self.turn.sin
        return R, Vec3(c * p.x - s * p.y, s * p.x + c * p.y, p.z + self.shift)

    def offset(self, q: Scalar, R: JointRotation) -> Vec3:
        """The same origin seen in frame i: (b Cθ, -b Sθ, d) where γ = 0, without a fork."""
        b = self.b * self.gamma.cos
        p = Vec3(b * R.c, -b * R.s, self.extension(q) + self.b * self.gamma.sin)
        return p + R.inverse(Vec3(0, 0, self.shift)) if self.forked else p


def named(joints: Iterable[Joint]) -> tuple[str, ...]:
    """The names of joints; "joint 3" for the third if it has none."""
    return tuple(joint.name or f"joint {k}" for k, joint in enumerate(joints, 1))


def _shown(x: Scalar) -> str:
    """A number with six digits, or the representation of any other scalar."""
    try:
        return f"{float(x):.6g}"
    except TypeError:
        return repr(x)


@dataclass(frozen=True, slots=True)
class Placement:
    """x_outer = R x_inner + p."""

    R: Mat3 = IDENTITY
    p: Vec3 = ZERO

    def __matmul__(self, inner: Placement) -> Placement:
        return Placement(self.R @ inner.R, self.R @ inner.p + self.p)

    @property
    def inverse(self) -> Placement:
        """The placement of the outer frame in the inner one."""
        return Placement(self.R.T, -(self.R.T @ self.p))


NATURAL = ("m", "mcx", "mcy", "mcz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")


@dataclass(frozen=True, slots=True)
class Link:
    """Mass, first moment m c and inertia about the origin of the link's frame, in that frame."""

    mass: Scalar
    moment: Vec3
    inertia: Sym3
    name: str = field(default="", compare=False, kw_only=True)  # in `Arm.links`

    def __repr__(self) -> str:
        try:
            com = ", ".join(f"{float(x):.6g}" for x in self.com)
            return f"Link(mass={float(self.mass):.6g} kg, com=({com}) m)"
        except TypeError:  # symbols
            return f"Link{self.natural!r}"

    @classmethod
    def from_com(cls, mass: Scalar, com: Vec3, inertia: Sym3) -> Link:
        """A link from its centre of mass and the inertia about that centre."""
        return cls(mass, mass * com, inertia + mass * Sym3.steiner(com, com))

    @classmethod
    def from_natural(cls, parameters: tuple[Scalar, ...]) -> Link:
        """A link from its ten natural parameters in the order of `NATURAL`."""
        m, hx, hy, hz, *inertia = parameters
        return cls(m, Vec3(hx, hy, hz), Sym3(*inertia))

    @property
    def natural(self) -> tuple[Scalar, ...]:
        """(m, mcx, mcy, mcz, Ixx, Ixy, Iyy, Ixz, Iyz, Izz) about the frame's origin."""
        return (self.mass, *self.moment, *self.inertia.entries)

    @property
    def has_centre(self) -> bool:
        """Whether the centre of mass is known: the mass is not an input of a program, and not 0."""
        return isinstance(self.mass, int | float | Fraction | Tally) and self.mass != 0

    @property
    def com(self) -> Vec3:
        """Centre of mass; the origin for a massless link."""
        return self.moment * (1 / self.mass) if self.mass != 0 else ZERO

    @property
    def inertia_about_com(self) -> Sym3:
        """Inertia about the centre of mass."""
        c = self.com
        moved: Sym3 = self.mass * Sym3.steiner(c, c)
        return self.inertia - moved

    @property
    def body(self) -> Body:
        """The same link by its second moments ∫ x xᵀ dm."""
        return Body.of(self.mass, self.moment, self.inertia)

    def __add__(self, other: Link) -> Link:
        """Both bodies, fixed to one another."""
        return Link(self.mass + other.mass, self.moment + other.moment, self.inertia + other.inertia)

    def moved(self, R: Mat3, p: Vec3) -> Link:
        """The same body in a frame in which its own frame is placed at (R, p)."""
        h = R @ self.moment
        J = R.similarity(self.inertia) + 2 * Sym3.steiner(p, h) + self.mass * Sym3.steiner(p, p)
        return Link(self.mass, h + self.mass * p, J)


MASSLESS = Link(0, ZERO, Sym3(0, 0, 0, 0, 0, 0))
ROUNDING = 1e-9  # of the largest principal moment: smaller violations are not reported


def link_faults(link: Link) -> Iterator[tuple[str, str]]:
    """Why this body is physically impossible: mass, definiteness, triangle inequality; empty if it is possible."""
    if not any(link.natural):
        yield "no inertia", "has neither mass nor inertia; a missing <inertial>?"
        return
    mass = float(link.mass)
    if mass < 0:
        yield "negative mass", f"negative mass {mass:g} kg"
    elif mass == 0:
        yield "mass", "zero mass, but an inertia or a first moment"
        if any(link.moment):
            yield "pseudo-inertia", "a first moment without mass: the pseudo-inertia is indefinite"
    yield from _of_inertia(principal_moments(link.inertia_about_com))


def impossibility(body: Link) -> str:
    """Why this payload is physically impossible, "" if it is possible; a payload without mass and inertia is."""
    return "; ".join(text for what, text in link_faults(body) if what != "no inertia")


def _of_inertia(moments: tuple[float, float, float]) -> Iterator[tuple[str, str]]:
    """Definiteness, and if that holds the triangle inequality."""
    small, middle, large = moments
    slack = ROUNDING * max(abs(small), abs(large))
    shown = ", ".join(f"{m:.4g}" for m in moments)
    if small < -slack:
        yield (
            "definiteness",
            f"inertia about the centre of mass is not positive semidefinite: principal moments {shown}",
        )
    elif large > small + middle + slack:
        text = f"principal moments {shown} violate the triangle inequality: {large:.4g} > {small + middle:.4g}"
        yield "triangle inequality", text


def principal_moments(J: Sym3) -> tuple[float, float, float]:
    """The eigenvalues of a symmetric matrix in rising order, by Jacobi's rotations."""
    a = [[float(x) for x in row] for row in J.full.rows]
    for _ in range(30):
        size = max(abs(x) for row in a for x in row)
        p, q = max(((0, 1), (0, 2), (1, 2)), key=lambda pair: abs(a[pair[0]][pair[1]]))
        if abs(a[p][q]) <= 1e-17 * size:
            break
        angle = 0.5 * math.atan2(2 * a[p][q], a[q][q] - a[p][p])
        c, s = math.cos(angle), math.sin(angle)
        for row in a:
            row[p], row[q] = c * row[p] - s * row[q], s * row[p] + c * row[q]
        a[p], a[q] = (
            [c * x - s * y for x, y in zip(a[p], a[q], strict=True)],
            [s * x + c * y for x, y in zip(a[p], a[q], strict=True)],
        )
    small, middle, large = sorted(a[k][k] for k in range(3))
    return small, middle, large
