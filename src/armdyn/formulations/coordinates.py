"""The map from the coordinates of a robot with mimic joints or a floating base to the joints of a plain tree.

Formulations know only revolute and prismatic joints with one coordinate each. Any other robot is replaced by a plain
tree:

- A mimic joint moves by q_k = α q_j + β, so that the rates of all joints are G q̇ with a constant matrix G. Forces are
  Gᵀτ, the inertia matrix is Gᵀ H G.
- A floating base is carried by six massless joints, three prismatic and three revolute, along and about the base's x, y
  and z axes. Their positions are always exactly 0, and the tree's base has the pose of the free joint, so that their
  transforms fold away. Their rates are the base's velocity (linear and angular, in its own axes) and their forces the
  wrench on it. Their accelerations differ from the derivatives of the velocity's components: q̈ of the robot is that of
  the six joints plus s(q̇), s = (v × ω; ω_y ω_z, -ω_x ω_z, ω_x ω_y), because the axes rotate with the base.

The pose of a floating base is (x, y, z, quaternion x, y, z, w), as for Pinocchio's free-flyer joint.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from armdyn.algebra import Angle, Mat3, Scalar, Vec3
from armdyn.algebra.scalar import ZERO_ANGLE
from armdyn.chain import Chain, Joint, Placement
from armdyn.chain.joint import MASSLESS

Matrix = list[list[Scalar]]

_RIGHT = Angle.of(1.5707963267948966)
# The z axis of each of the six is the x axis of the previous one: x, y, z, x, y, z in turn.
SLIDE = Joint("prismatic", 0, ZERO_ANGLE, 0, _RIGHT, _RIGHT, name="base")
SIX = (*(SLIDE,) * 3, *(replace(SLIDE, kind="revolute"),) * 3)


@dataclass(frozen=True)
class Coordinates:
    """A robot, its plain tree, and the coordinate that each joint of the tree follows."""

    robot: Chain
    tree: Chain
    follows: tuple[tuple[int, Scalar, Scalar], ...]  # per joint of the tree: index in q̇, multiplier, offset

    @classmethod
    def of(cls, robot: Chain) -> Coordinates:
        """The coordinates of a robot."""
        first = len(SIX) if robot.floating else 0
        place = {i: first + c for c, i in enumerate(robot.independent)}
        follows: list[tuple[int, Scalar, Scalar]] = [(c, 1, 0) for c in range(first)]
        for i, joint in enumerate(robot.joints):
            if joint.mimic is not None:
                leader, multiplier, offset = robot.leader(joint)
                follows.append((place[leader], multiplier, offset))
            elif not joint.free:
                follows.append((place[i], 1, 0))
        return cls(robot, plain_tree(robot), tuple(follows))

    @property
    def extra(self) -> int:
        """The number of the tree's links that are not the robot's: five for a floating base."""
        return self.tree.bodies - self.robot.bodies

    @property
    def mimics(self) -> bool:
        """Whether there are mimic joints."""
        return self.robot.has_mimics

    def placed(self, q: list[Scalar]) -> Chain:
        """The plain tree with its base at the pose in q."""
        if not self.robot.floating:
            return self.tree
        return replace(self.tree, base=self.robot.base @ Placement(rotation(q[3:7]), Vec3(*q[:3])))

    def positions(self, q: list[Scalar]) -> list[Scalar]:
        """The positions of the tree's joints; exactly 0 for the six of a floating base."""
        if not self.robot.floating:
            return [a * q[c] + b for c, a, b in self.follows]
        six = len(SIX)
        return [0] * six + [a * q[c + 1] + b for c, a, b in self.follows[six:]]

    def rates(self, v: list[Scalar]) -> list[Scalar]:
        """G v: the rates of the tree's joints."""
        return [a * v[c] for c, a, _ in self.follows]

    def accelerations(self, a: list[Scalar], v: list[Scalar], x: list[Scalar] | None = None) -> list[Scalar]:
        """The accelerations of the tree's joints: G a less S(v) x for a floating base; the motion x is v by default."""
        found = self.rates(a)
        if self.robot.floating:
            for k, row in enumerate(base_rate_matrix(v) if x is not None else ()):
                found[k] = found[k] - sum((s * x_i for s, x_i in zip(row, x or (), strict=False)), 0)
            for k, s in enumerate(base_rate(v) if x is None else ()):
                found[k] = found[k] - s
        return found

    def lifted(self, tau: list[Scalar]) -> list[Scalar]:
        """Forces of the tree's joints that are equivalent to tau: those of mimic joints are zero."""
        led = self.robot.independent
        own = {c: i for i, c in enumerate(i + self.extra for i in led)}
        six = len(SIX) if self.robot.floating else 0
        return tau[:six] + [tau[six + own[i]] if i in own else 0 for i in range(six, self.tree.bodies)]

    def forces(self, rows: list[Scalar]) -> list[Scalar]:
        """Gᵀ f."""
        projected: list[Scalar] = [0] * self.robot.nv
        for (c, a, _), x in zip(self.follows, rows, strict=True):
            projected[c] = projected[c] + a * x
        return projected

    def rows(self, M: Matrix) -> Matrix:
        """Gᵀ M."""
        return [list(row) for row in zip(*(self.forces(list(column)) for column in zip(*M, strict=True)), strict=True)]

    def columns(self, M: Matrix) -> Matrix:
        """M G."""
        return [self.forces(list(row)) for row in M]

    def matrix(self, M: Matrix) -> Matrix:
        """Gᵀ M G."""
        return self.columns(self.rows(M)) if self.mimics else M


def plain_tree(robot: Chain) -> Chain:
    """The tree with a coordinate for every joint: mimic joints are independent, a free joint becomes six."""
    if robot.plain:
        return robot
    joints = tuple(replace(joint, mimic=None) for joint in robot.joints)
    if not robot.floating:
        return replace(robot, joints=joints)
    by = len(SIX) - 1
    parents = (*range(-1, by), *(parent + by for parent in robot.parents[1:]))
    tool_link = robot.tool_link + by if robot.tool_link else 0
    links = (MASSLESS,) * by + robot.links
    tendons = tuple(replace(t, joints=tuple((i + by, c) for i, c in t.joints)) for t in robot.tendons)
    return replace(
        robot,
        joints=(*SIX, *joints[1:]),
        links=links,
        parents=parents,
        tool_link=tool_link,
        tendons=tendons,
        compensated=(MASSLESS,) * by + robot.compensated if robot.compensated else (),
    )


def base_joints(tree: Chain) -> int:
    """How many joints of a plain tree are those of a floating base: six or none."""
    return len(SIX) if tree.joints[: len(SIX)] == SIX else 0


def rotation(quaternion: list[Scalar]) -> Mat3:
    """The rotation matrix of a unit quaternion (x, y, z, w)."""
    x, y, z, w = quaternion
    tx, ty, tz = 2 * x, 2 * y, 2 * z
    xx, yy, zz = tx * x, ty * y, tz * z
    xy, xz, yz = tx * y, tx * z, ty * z
    wx, wy, wz = tx * w, ty * w, tz * w
    return Mat3(
        Vec3(1 - (yy + zz), xy - wz, xz + wy),
        Vec3(xy + wz, 1 - (xx + zz), yz - wx),
        Vec3(xz - wy, yz + wx, 1 - (xx + yy)),
    )


def base_rate(v: list[Scalar]) -> tuple[Scalar, ...]:
    """s(q̇): the robot's base accelerations minus those of the six joints."""
    x, y, z, wx, wy, wz = v[:6]
    return y * wz - z * wy, z * wx - x * wz, x * wy - y * wx, wy * wz, -(wx * wz), wx * wy


def base_rate_matrix(v: list[Scalar]) -> Matrix:
    """The 6 × 6 matrix S(q̇) with s = S q̇."""
    wx, wy, wz = v[3:6]
    return [
        [0, wz, -wy, 0, 0, 0],
        [-wz, 0, wx, 0, 0, 0],
        [wy, -wx, 0, 0, 0, 0],
        [0, 0, 0, 0, wz, 0],
        [0, 0, 0, -wz, 0, 0],
        [0, 0, 0, wy, 0, 0],
    ]


def base_rate_slopes(v: list[Scalar]) -> Matrix:
    """∂s/∂q̇, 6 × 6."""
    x, y, z, wx, wy, wz = v[:6]
    return [
        [0, wz, -wy, 0, -z, y],
        [-wz, 0, wx, z, 0, -x],
        [wy, -wx, 0, -y, x, 0],
        [0, 0, 0, 0, wz, wy],
        [0, 0, 0, -wz, 0, -wx],
        [0, 0, 0, wy, wx, 0],
    ]


def times_base(M: Matrix, S: Matrix) -> Matrix:
    """M with S (6 × 6) on the right of its first six columns, and 0 in all others."""
    six = range(len(S))
    return [[sum((row[k] * S[k][j] for k in six), 0) for j in six] + [0] * (len(row) - len(S)) for row in M]


def tangent_map(q: list[Scalar]) -> Matrix:
    """7 × 6: derivative of a floating base's pose with respect to a displacement in its own axes, as in Pinocchio."""
    x, y, z, w = q[3:7]
    R = rotation(q[3:7])
    half = [[w, -z, y], [z, w, -x], [-y, x, w], [-x, -y, -z]]
    return [[*row, 0, 0, 0] for row in R.rows] + [[0, 0, 0, *(entry / 2 for entry in row)] for row in half]


def pose_rate(pose: list[Scalar], twist: list[Scalar]) -> list[Scalar]:
    """The seven rates of a floating base's pose from its velocity in its own axes."""
    x, y, z, w = pose[3:7]
    wx, wy, wz = (rate / 2 for rate in twist[3:6])
    linear = rotation(pose[3:7]) @ Vec3(*twist[:3])
    turn = [w * wx - z * wy + y * wz, z * wx + w * wy - x * wz, x * wy - y * wx + w * wz, -(x * wx + y * wy + z * wz)]
    return [*linear, *turn]
