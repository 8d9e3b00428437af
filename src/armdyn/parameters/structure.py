"""The structure of an arm's geometry that determines its minimal parameters: r, s, δ and σ, from exact constants.

Source: Lin 1994, Theorems 4 and 5. Joint r is the first revolute joint from the base, joint s the nearest revolute
joint not parallel to it; up to s the axis u_r is constant in every frame.

A chain's constants are exact, and terms that cancel between neighbouring axes are exactly 0. A relation between axes
that are separated by oblique joints (two revolute axes that are parallel across an oblique prismatic one, say) holds
only up to the rounding of the angles between them. Directions are therefore compared with the tolerance `PARALLEL`, the
angle below which `chain.frames` treats axes as parallel, and points with the same fraction of the lengths that lead to
them: four orders of magnitude above that rounding, and far below any difference that a file can intend.

The inertia constants of a composite body are the part of its inertia that is independent of the motion.

Source: Lin & Fang 1999, App. C, eqs. (C1)-(C3); Lin 1994, eqs. (21), (23), (25).

Idea: the first moment and the inertia of composite body i (links i to n) about the origin of frame i are each the sum
of a constant and a varying part, ĉᵢ = kᵢ + lᵢ and Ĵᵢ = Uᵢ + Vᵢ. The part of composite body i+1 that is invariant under
the motion of joint i+1 goes into k and U.

Symbols (paper | code): m̂ᵢ | mass, kᵢ | k, Uᵢ | U, ⁱ⁺¹ᵢs | s, ⁱ⁺¹ᵢR_b | axis, b_{i+1} | b.

The two papers differ in (U)₃₃: rotation about z leaves diag(U₂₂, U₂₂, U₃₃) unchanged, and Lin 1994 adds all of it to
the next U, while Lin & Fang 1999 leave (U)₃₃ to the varying part V. Each set of minimal combinations follows from the
other by a unit triangular matrix (Lin 1994, Corollary 6); Lin & Fang's is the default, because their algorithms use it.
If γ is not 0, the constant rotation Rx(β)Ry(γ) replaces Rx(β).

The elements of minimal parameters, and the sets of them in Lin 1994, Theorems 4 and 5.

Symbols (paper | name here): (U_j)₃₃ | U33_j, (U_j)₁₁ - (U_j)₂₂ | U11-22_j, (k_j)_x | kx_j,
m̂_i | m_i, κ₁ᵢ, κ₂ᵢ of eqs. (53), (54) | kappa1_i, kappa2_i.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from armdyn.algebra import ZERO, JointRotation, Scalar, Sym3, Vec3, X, Y, Z
from armdyn.algebra.scalar import ZERO_ANGLE
from armdyn.algebra.spatial import parallel_axis
from armdyn.chain import Chain, Joint
from armdyn.chain.frames import PARALLEL

Path = tuple[Joint, ...]  # from the base outwards
Answers = tuple[bool, Vec3 | None, bool, bool, bool]  # beyond s, u_r, δ, δ of gravity, σ of gravity


@dataclass(frozen=True)
class Structure:
    """The conditions of Theorems 4 and 5 for every joint, on the path from the base to it."""

    beyond: tuple[bool, ...]  # at joint s or beyond it
    axis: tuple[Vec3 | None, ...]  # u_r in frame i, for r <= i < s
    delta: tuple[bool, ...]  # Theorem 5, revolute joints
    sigma: tuple[bool, ...]  # Theorem 5, prismatic joints between r and s
    delta_gravity: tuple[bool, ...]  # Theorem 4
    sigma_gravity: tuple[bool, ...]  # Theorem 4


def structure(chain: Chain) -> Structure:
    """δ, σ and u_r of every joint of a chain with exact constants; for a tree, path by path."""
    g = chain.gravity_in_frame_0
    found: dict[int, Answers] = {}
    for tip in chain.tips:
        numbers = chain.path(tip)
        joints = tuple(chain.joints[i] for i in numbers)
        found.update(zip(numbers, _floating(joints) if chain.floating else _path(joints, g), strict=True))
    rows = [found[i] for i in range(chain.bodies)]
    return Structure(
        beyond=tuple(row[0] for row in rows),
        axis=tuple(row[1] for row in rows),
        delta=tuple(row[2] for row in rows),
        sigma=tuple(row[1] is not None and not along_z(row[1]) for row in rows),
        delta_gravity=tuple(row[3] for row in rows),
        sigma_gravity=tuple(row[4] for row in rows),
    )


def _floating(joints: Path) -> list[Answers]:
    """Beyond a floating base, which can rotate and translate in every direction, all parameters have an effect."""
    return [(True, None, True, True, True) for _ in joints]


def _path(joints: Path, g: Vec3) -> list[Answers]:
    """The answers for the joints from the base to a tip."""
    n = len(joints)
    r = next((i for i, joint in enumerate(joints) if joint.revolute), n)
    s = next((i for i in range(r + 1, n) if joints[i].revolute and not along_z(_turned(joints, r, i))), n)
    vertical, held, pulled = _vertical(joints, r, g), _held(joints, r, s), _pulled(joints, g)
    return [
        (
            i >= s,
            first_axis(joints[: i + 1]) if r <= i < s else None,
            not (vertical and held[i]),
            is_nonzero(g) and not (i < s and vertical),
            pulled[i],
        )
        for i in range(n)
    ]


def is_nonzero(v: Vec3, size: Scalar = 0) -> bool:
    """Whether any component differs from 0 by more than the rounding of terms of `size`."""
    return any(abs(x) > PARALLEL * size for x in v)


def along_z(v: Vec3, size: Scalar = 1) -> bool:
    """Whether a vector is along the z axis, up to the rounding of terms of `size` (by default those of a direction)."""
    return bool(abs(v.x) <= PARALLEL * size and abs(v.y) <= PARALLEL * size)


def _straightened(u: Vec3) -> Vec3:
    """A direction with components at the level of rounding set to 0; symbols are unchanged."""
    return Vec3(*(0 if isinstance(x, int | float | Fraction) and abs(float(x)) <= PARALLEL else x for x in u))


def constant_rotation(joint: Joint) -> JointRotation:
    """The constant part of the joint's rotation, independent of q."""
    c, s = (1, 0) if joint.revolute else (joint.theta.cos, joint.theta.sin)
    return JointRotation(joint.beta, joint.gamma, c, s, joint.turn)


def first_axis(path: Path) -> Vec3:
    """u_r in the last frame of a path that ends between r and s: the revolute joints in between are parallel to it."""
    u = Z
    r = next(i for i, joint in enumerate(path) if joint.revolute)
    for joint in path[r + 1 :]:
        u = _straightened(constant_rotation(joint).T @ u)
        u = Vec3(0, 0, u.z) if joint.revolute else u
    return u


def _turned(joints: Path, r: int, i: int) -> Vec3:
    """u_r in frame i at q_i = 0; the revolute joints in between are parallel."""
    return constant_rotation(joints[i]).T @ first_axis(joints[:i])


def _vertical(joints: Path, r: int, g: Vec3) -> bool:
    """Whether gravity is along u_r (or there is no gravity)."""
    u = Z
    for joint in joints[r::-1]:
        u = constant_rotation(joint) @ u
    return not is_nonzero(u.cross(g), max(map(abs, g)))


def _held(joints: Path, r: int, s: int) -> tuple[bool, ...]:
    """For every joint: whether the joints before it cannot move a point of u_r sideways."""
    held, sideways = [], False
    lever, size = ZERO, 0  # from the last revolute joint, in the current frame; the sum of its lengths
    for i, joint in enumerate(joints[:s]):
        lever, size = constant_rotation(joint).T @ (lever + _normal(joint) * joint.b), size + abs(joint.b)
        if joint.revolute:
            sideways = sideways or (i > r and not along_z(lever, size))
            lever = ZERO
        held.append(not sideways)
        if joint.prismatic:
            sideways = sideways or not along_z(_axis_from(joints, r, i))
    return (*held, *(False for _ in joints[s:]))


def _normal(joint: Joint) -> Vec3:
    """The direction of the common normal in the parent's frame: its x axis, rotated at a branch."""
    return Vec3(joint.turn.cos, joint.turn.sin, 0)


def _axis_from(joints: Path, r: int, i: int) -> Vec3:
    """u_r in frame i if the joints in between are prismatic or parallel to r; z if there is no r."""
    if r == len(joints):
        return Z
    if i >= r:
        return first_axis(joints[: i + 1])
    u = Z
    for joint in joints[r:i:-1]:
        u = _straightened(constant_rotation(joint) @ u)
    return u


def _pulled(joints: Path, g: Vec3) -> tuple[bool, ...]:
    """For every joint: whether gravity has a component along its axis at some q.

    The directions of gravity in a frame, over all q, span a space. Rotation about z turns any component across z into
    the whole plane across z, and keeps the component along z.
    """
    size = max(map(abs, g)) or 1
    span, pulled = [g * (1 / size)] if is_nonzero(g) else [], []
    for joint in joints:
        span = [_straightened(constant_rotation(joint).T @ v) for v in span] if len(span) < 3 else span
        pulled.append(any(v.z != 0 for v in span))
        if joint.revolute:
            span = [X, Y] * any(not along_z(v) for v in span) + [Z] * pulled[-1]
    return tuple(pulled)


@dataclass(frozen=True, slots=True)
class Constants:
    """m̂, k and U of one composite body."""

    mass: Scalar
    k: Vec3
    U: Sym3

    def __add__(self, other: Constants) -> Constants:
        return Constants(self.mass + other.mass, self.k + other.k, self.U + other.U)


def inertia_constants(chain: Chain) -> tuple[Constants, ...]:
    """m̂ᵢ, kᵢ, Uᵢ of every composite body, base to tip (Lin & Fang 1999, App. C).

    They are exact for exact chains, and linear in the links' ten parameters, which may be of any scalar type.
    """
    return _inwards(chain, lambda U: (U.yy, 0))


def inertia_constants_1994(chain: Chain) -> tuple[Constants, ...]:
    """The same, but (U)₃₃ is propagated inwards too (Lin 1994, eq. 23)."""
    return _inwards(chain, lambda U: (U.yy, U.zz))


def _inwards(chain: Chain, kept: Callable[[Sym3], tuple[Scalar, Scalar]]) -> tuple[Constants, ...]:
    """Tips to base; `kept` returns (a, c): diag(a, a, c) is the part of U that goes into the parent's constants."""
    constants = [Constants(link.mass, link.moment, link.inertia) for link in chain.links]
    for i in reversed(range(chain.bodies)):
        if chain.parents[i] >= 0:
            parent = chain.parents[i]
            constants[parent] = constants[parent] + regrouped(chain.joints[i], constants[i], kept)
    return tuple(constants)


def regrouped(
    joint: Joint,
    outer: Constants,
    kept: Callable[[Sym3], tuple[Scalar, Scalar]] = lambda U: (U.yy, 0),
) -> Constants:
    """The part of the composite body beyond `joint` that is regrouped with the constants of its parent."""
    found = _past_revolute(joint, outer, kept) if joint.revolute else _past_prismatic(joint, outer)
    return _past_fork(joint, found) if joint.forked else found


def _past_fork(joint: Joint, body: Constants) -> Constants:
    """The constants in the parent's frame, past the rotation about and the shift along its z axis at a branch."""
    R, p = JointRotation(ZERO_ANGLE, ZERO_ANGLE, joint.turn.cos, joint.turn.sin), Z * joint.shift
    k = R @ body.k
    U = R.similarity(body.U) + Sym3.steiner(p, p) * body.mass + parallel_axis(p, k)
    return Constants(body.mass, k + p * body.mass, U)


def _past_revolute(joint: Joint, outer: Constants, kept: Callable[[Sym3], tuple[Scalar, Scalar]]) -> Constants:
    m, k_z = outer.mass, outer.k.z
    tilt = JointRotation(joint.beta, joint.gamma, 1, 0)
    axis = tilt @ Z
    s = X * joint.b + axis * joint.d
    a, c = kept(outer.U)
    U = (
        tilt.similarity(Sym3(1, 0, 1, 0, 0, 0)) * a
        + tilt.similarity(Sym3(0, 0, 0, 0, 0, 1)) * c
        + Sym3.steiner(s, s) * m
        + parallel_axis(s, axis) * k_z
    )  # eq. (C2)
    return Constants(m, s * m + axis * k_z, U)  # eq. (C1)


def _past_prismatic(joint: Joint, outer: Constants) -> Constants:
    m = outer.mass
    R = JointRotation(joint.beta, joint.gamma, joint.theta.cos, joint.theta.sin)
    b, k = X * joint.b, R @ outer.k
    U = R.similarity(outer.U) + Sym3.steiner(b, b) * m + parallel_axis(b, k)  # eq. (C3)
    return Constants(m, b * m + k, U)  # eq. (C1)


@dataclass(frozen=True, slots=True)
class Element:
    """One inertia constant (or a combination of a few) of composite body `link`, counted from 0."""

    kind: str
    link: int

    @property
    def name(self) -> str:
        """As in the paper, counted from 1: ``U33_1``, ``kx_2``, ``kappa1_3``."""
        return f"{self.kind}_{self.link + 1}"

    def of(self, constants: Constants, axis: Vec3 | None) -> Scalar:
        """The element's value; `axis` is u_r in the link's frame (needed by κ₁ and κ₂ alone)."""
        if axis is not None and self.kind in KAPPA:
            return KAPPA[self.kind](constants.k, axis)
        return PLAIN[self.kind](constants)


PLAIN: dict[str, Callable[[Constants], Scalar]] = {
    "m": lambda c: c.mass,
    "kx": lambda c: c.k.x,
    "ky": lambda c: c.k.y,
    "kz": lambda c: c.k.z,
    "U11-22": lambda c: c.U.xx - c.U.yy,
    "U12": lambda c: c.U.xy,
    "U13": lambda c: c.U.xz,
    "U23": lambda c: c.U.yz,
    "U33": lambda c: c.U.zz,
    "U11": lambda c: c.U.xx,
    "U22": lambda c: c.U.yy,
}
FREE = (
    "m",
    "kx",
    "ky",
    "kz",
    "U11",
    "U12",
    "U22",
    "U13",
    "U23",
    "U33",
)  # of a floating base: all ten of its composite body
KAPPA: dict[str, Callable[[Vec3, Vec3], Scalar]] = {
    "kappa1": lambda k, u: u.x * k.y - u.y * k.x,  # eq. (53)
    # eq. (54), with u_x² + u_y² for 1 - u_z², which suffers from cancellation if the axes are nearly parallel
    "kappa2": lambda k, u: (u.x * u.x + u.y * u.y) * k.z - u.z * (u.x * k.x + u.y * k.y),
}


def theorem_5(chain: Chain, at: Structure) -> tuple[Element, ...]:
    """The set for the actuator forces, in the order of Lin 1994, Theorem 5; the elements of a floating base come first.

    The theorem is for a chain; in a tree it holds for every path from the base to a tip (decision record 6).
    """
    revolute = [i for i, joint in enumerate(chain.joints) if joint.revolute]
    prismatic = [i for i, joint in enumerate(chain.joints) if joint.prismatic]
    first = [i for i in revolute if not at.beyond[i]]
    groups = (
        [(kind, 0) for kind in FREE if chain.floating],
        [(kind, i) for i in first for kind in ("U33", "kx", "ky")[: 3 if at.delta[i] else 1]],
        [(kind, i) for i in revolute if at.beyond[i] for kind in ("U11-22", "U33", "U12", "U13", "U23", "kx", "ky")],
        [("m", i) for i in prismatic],
        [(kind, i) for i in prismatic if at.beyond[i] for kind in ("kx", "ky", "kz")],
        [(kind, i) for i in prismatic if at.sigma[i] for kind in ("kappa1", "kappa2")],
    )
    return tuple(Element(kind, i) for group in groups for kind, i in group)


def theorem_4(chain: Chain, at: Structure) -> tuple[Element, ...]:
    """The set for the gravity load, in the order of Lin 1994, Theorem 4."""
    elements = []
    for i, joint in enumerate(chain.joints):
        if joint.revolute and at.delta_gravity[i]:
            elements += [Element("kx", i), Element("ky", i)]
        if joint.prismatic and at.sigma_gravity[i]:
            elements.append(Element("m", i))
    return tuple(elements)
