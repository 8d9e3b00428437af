"""The common recursion of `newton_euler_mlc` and `second_moments`, for bodies with regrouped parameters.

Idea: with U = [ẇ×] + [w×][w×] the acceleration of a body point x is dv + U x, so the force on a body is m dv + U k. On
the common axis of two links, U z is the same for both: a shift along x of frame i-1 and one along z of frame i take
6M 6A for the acceleration and 4M 4A for the wrench.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from armdyn.algebra import ZERO, Mat3, Scalar, Vec3
from armdyn.algebra.spatial import NO_WRENCH, Wrench
from armdyn.chain import Chain
from armdyn.formulations.steps import Step, collect, steps


class HasMoments(Protocol):
    """A body with a mass and a first moment about its frame's origin."""

    @property
    def mass(self) -> Scalar:
        """The mass."""

    @property
    def moment(self) -> Vec3:
        """The first moment."""


B = TypeVar("B", bound=HasMoments)


@dataclass(frozen=True, slots=True)
class Moving:
    """The motion of a link in its own frame: w, ẇ, U, and the acceleration of the frame's origin."""

    w: Vec3
    dw: Vec3
    U: Mat3
    dv: Vec3


def acceleration_matrix(w: Vec3, dw: Vec3) -> Mat3:
    """U = [ẇ×] + [w×][w×]."""
    xx, yy, zz = w.x * w.x, w.y * w.y, w.z * w.z
    xy, xz, yz = w.x * w.y, w.x * w.z, w.y * w.z
    return Mat3(
        Vec3(-(yy + zz), xy - dw.z, xz + dw.y),
        Vec3(xy + dw.z, -(xx + zz), yz - dw.x),
        Vec3(xz - dw.y, yz + dw.x, -(xx + yy)),
    )


def recursion(
    chain: Chain,
    q: list[Scalar],
    qd: list[Scalar],
    qdd: list[Scalar],
    bodies: Sequence[B],
    moment: Callable[[B, Vec3, Vec3, Mat3], Vec3],
) -> list[Scalar]:
    """The joint forces for a motion; `moment(body, w, dw, U)` is ∫ x × U x dm."""
    walk = steps(chain, q)
    return inward(walk, wrenches(motions(chain, walk, qd, qdd), bodies, moment))


def inward(walk: list[Step], own: Sequence[Wrench]) -> list[Scalar]:
    """The joint forces from the links' own wrenches, tips to base."""
    tau: list[Scalar] = []
    brought: dict[int, Wrench] = {}
    for i, step in reversed(list(enumerate(walk))):
        wrench = brought.get(i, NO_WRENCH) + own[i]
        tau.append(wrench.along(step.revolute))
        collect(brought, step.parent, step.wrench_inward(wrench))
    return tau[::-1]


def wrenches(
    moving: Sequence[Moving], bodies: Sequence[B], moment: Callable[[B, Vec3, Vec3, Mat3], Vec3]
) -> list[Wrench]:
    """The inertial wrench of every link, parents before children."""
    balances: list[Wrench] = []
    for link, body in zip(moving, bodies, strict=True):
        F = body.mass * link.dv + link.U @ body.moment
        balances.append(Wrench(F, moment(body, link.w, link.dw, link.U) + body.moment.cross(link.dv)))
    return balances


def motions(chain: Chain, walk: list[Step], qd: list[Scalar], qdd: list[Scalar]) -> list[Moving]:
    """The motions of all links, parents before children."""
    base = at_rest(chain)
    states: list[Moving] = []
    for step, rate, acceleration in zip(walk, qd, qdd, strict=True):
        states.append(outward(step, states[step.parent] if step.parent >= 0 else base, rate, acceleration))
    return states


def at_rest(chain: Chain) -> Moving:
    """The motion of the base, with gravity as an acceleration."""
    return Moving(ZERO, ZERO, acceleration_matrix(ZERO, ZERO), -chain.gravity_in_frame_0)


def outward(step: Step, before: Moving, rate: Scalar, acceleration: Scalar) -> Moving:
    """The motion of link i from that of its parent and of joint i."""
    R, U = step.R, before.U
    lever = U @ step.fork if step.forked else step.b * Vec3(U.r1.x, U.r2.x, U.r3.x)
    dv = R.T @ (before.dv + lever)
    w, dw = R.T @ before.w, R.T @ before.dw
    if step.revolute:
        dw = Vec3(dw.x + w.y * rate, dw.y - w.x * rate, dw.z + acceleration)
        w = Vec3(w.x, w.y, w.z + rate)
    else:
        slide = 2 * rate
        dv = Vec3(dv.x + slide * w.y, dv.y - slide * w.x, dv.z + acceleration)
    U = acceleration_matrix(w, dw)
    return Moving(w, dw, U, dv + step.d * Vec3(U.r1.z, U.r2.z, U.r3.z))
