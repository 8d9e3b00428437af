"""The structure of an arm's geometry that determines its minimal parameters: r, s, δ and σ, from exact constants.

Source: Lin 1994, Theorems 4 and 5. Joint r is the first revolute joint from the base, joint s the nearest revolute
joint not parallel to it; up to s the axis u_r is constant in every frame.

A chain's constants are exact, and terms that cancel between neighbouring axes are exactly 0. A relation between axes
that are separated by oblique joints (two revolute axes that are parallel across an oblique prismatic one, say) holds
only up to the rounding of the angles between them. Directions are therefore compared with the tolerance `PARALLEL`, the
angle below which `chain.frames` treats axes as parallel, and points with the same fraction of the lengths that lead to
them: four orders of magnitude above that rounding, and far below any difference that a file can intend.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from armdyn.algebra import ZERO, JointRotation, Scalar, Vec3, X, Y, Z
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
