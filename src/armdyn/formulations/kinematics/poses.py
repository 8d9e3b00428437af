"""Forward kinematics: poses, the Jacobian and its time derivative, in base axes.

Source: the definition. Idea: the pose of frame i in the base is the product of the placements up to i; joint i
contributes its axis (angular) and axis × lever (linear) to the velocity of the tool.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from armdyn.algebra import ZERO, Mat3, Scalar, Vec3, Z
from armdyn.chain import Chain, Placement
from armdyn.formulations import configuration
from armdyn.formulations.registry import definition

Frame = tuple[Mat3, Vec3]


def frames(chain: Chain, q: list[Scalar]) -> list[Frame]:
    """(R, p) of every link's frame in the base frame."""
    out: list[Frame] = []
    for joint, q_i, parent in zip(chain.joints, q, chain.parents, strict=True):
        R, p = out[parent] if parent >= 0 else (chain.base.R, chain.base.p)
        R_i, p_i = joint.placement(q_i)
        out.append((Mat3(*(R_i.inverse(row) for row in R.rows)), R @ p_i + p))
    return out


def at_frame(frame: Frame, fixed: Placement) -> Frame:
    """A frame fixed to a link, in the base frame."""
    R, p = frame
    return R @ fixed.R, R @ fixed.p + p


def homogeneous(frame: Frame) -> list[list[Scalar]]:
    """The 4 × 4 matrix of a frame."""
    R, p = frame
    return [[*row, x] for row, x in zip(R.rows, p, strict=True)] + [[0, 0, 0, 1]]


def link_poses(chain: Chain, q: list[Scalar]) -> list[Any]:
    """The (4 × 4) poses of the link frames in the base frame."""
    return [homogeneous(frame) for frame in frames(chain, q)]


def link_jacobians(
    chain: Chain, q: list[Scalar], at: Sequence[tuple[int, Placement]] = (), local: bool = False
) -> list[list[list[Scalar]]]:
    """The (6 × n) Jacobians of the link frames, or of the frames (k, placement on link k) `at`; k = 0 is the base."""
    placed = frames(chain, q)
    axes = [R @ Z for R, _ in placed]
    jacobians = []
    for k, fixed in at or [(k, Placement()) for k in range(1, chain.bodies + 1)]:
        J: list[list[Scalar]] = [[0] * chain.bodies for _ in range(6)]
        R, p = at_frame(placed[k - 1], fixed) if k else (fixed.R, fixed.p)
        for i in chain.path(k - 1):
            u, turns = axes[i], chain.joints[i].revolute
            twist = (u.cross(p - placed[i][1]), u) if turns else (u, ZERO)
            linear, angular = (R.T @ v for v in twist) if local else twist
            for row, x in zip(J, (*linear, *angular), strict=True):
                row[i] = x
        jacobians.append(J)
    return jacobians


def pose(chain: Chain, q: list[Scalar]) -> list[Any]:
    """The (4 × 4) pose of the tool in the base frame."""
    return homogeneous(at_frame(frames(chain, q)[-1], chain.tool))


def jacobian(chain: Chain, q: list[Scalar]) -> list[list[Scalar]]:
    """(6 × n): linear rows first, velocity of the tool's origin, in base axes."""
    placed = frames(chain, q)
    _, tip = at_frame(placed[-1], chain.tool)
    columns = []
    for joint, (R, p) in zip(chain.joints, placed, strict=True):
        u = R @ Z
        columns.append((*u.cross(tip - p), *u) if joint.revolute else (*u, 0, 0, 0))
    return [list(row) for row in zip(*columns, strict=True)]


def jacobian_rate(chain: Chain, q: list[Scalar], qd: list[Scalar]) -> list[list[Scalar]]:
    """(6 × n): the time derivative of the Jacobian along qd."""
    placed = frames(chain, q)
    _, tip = at_frame(placed[-1], chain.tool)
    axes = [R @ Z for R, _ in placed]
    rates: list[tuple[Vec3, Vec3]] = []  # w, v of the joint's own frame, parents before children
    for i, (joint, qd_i, parent) in enumerate(zip(chain.joints, qd, chain.parents, strict=True)):
        w, v = rates[parent] if parent >= 0 else (ZERO, ZERO)
        if parent >= 0:
            v = v + w.cross(placed[i][1] - placed[parent][1])
        if joint.prismatic:
            v = v + qd_i * axes[i]
        else:
            w = w + qd_i * axes[i]
        rates.append((w, v))
    w, v = rates[-1]
    tip_v = v + w.cross(tip - placed[-1][1])
    columns = []
    for joint, (_, p), u, (w_i, v_i) in zip(chain.joints, placed, axes, rates, strict=True):
        du = w_i.cross(u)
        columns.append((*(du.cross(tip - p) + u.cross(tip_v - v_i)), *du) if joint.revolute else (*du, 0, 0, 0))
    return [list(row) for row in zip(*columns, strict=True)]


def pose_error(chain: Chain, q: list[Scalar], goal: Any) -> list[Scalar]:
    """The twist from the tool to a goal pose, in the tool's axes."""
    return configuration.pose_error(*at_frame(frames(chain, q)[-1], chain.tool), goal)


def velocity(chain: Chain, q: list[Scalar], qd: list[Scalar]) -> list[Scalar]:
    """(6,): linear and angular velocity of the tool, in base axes."""
    return [_dot(row, qd) for row in jacobian(chain, q)]


def acceleration(chain: Chain, q: list[Scalar], qd: list[Scalar], qdd: list[Scalar]) -> list[Scalar]:
    """(6,): acceleration of the tool's origin (not the spatial one) and angular acceleration, in base axes."""
    rows = zip(jacobian(chain, q), jacobian_rate(chain, q, qd), strict=True)
    return [_dot(J, qdd) + _dot(dJ, qd) for J, dJ in rows]


def _dot(row: list[Scalar], values: list[Scalar]) -> Scalar:
    return sum((x * y for x, y in zip(row, values, strict=True)), 0)


POSE_ERROR = definition(pose_error, "quaternion with the largest pivot, halved angles")
VELOCITY = definition(velocity, "Jacobian times velocity")
ACCELERATION = definition(acceleration, "Jacobian and its rate")
POSE = definition(pose, "product of placements")
LINK_POSES = definition(link_poses, "product of placements")
JACOBIAN = definition(jacobian, "axes and levers")
LINK_JACOBIANS = definition(link_jacobians, "axes and levers")
JACOBIAN_RATE = definition(jacobian_rate, "axes, levers and their rates")
