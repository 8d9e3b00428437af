"""The recursion that `newton_euler_mlc` and `second_moments` share: bodies with few parameters.

Idea: with U = [ẇ×] + [w×][w×] the acceleration of a body point x is dv + U x, so the force on a body
is m dv + U k. On an axis that two links share, U z is the same for both: a shift along x of frame
i-1 and one along z of frame i take 6M 6A for the acceleration and 4M 4A for the wrench.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from armdyn.algebra import ZERO, Mat3, Scalar, Vec3
from armdyn.chain import Chain
from armdyn.formulations.screws import along_axis, wrench_inward
from armdyn.formulations.steps import Step, steps


class HasMoments(Protocol):
    """A body with a mass and a first moment about its frame's origin."""

    @property
    def mass(self) -> Scalar:
        """The mass."""

    @property
    def moment(self) -> Vec3:
        """The first moment."""


B = TypeVar("B", bound=HasMoments)


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
    """The joint forces of a motion; `moment(body, w, dw, U)` is ∫ x × U x dm."""
    f, n, tau = ZERO, ZERO, []
    for step, F, N in reversed(wrenches(chain, q, qd, qdd, bodies, moment)):
        f, n = f + F, n + N
        tau.append(along_axis(step, f, n))
        f, n = wrench_inward(step, f, n)
    return tau[::-1]


def wrenches(
    chain: Chain,
    q: list[Scalar],
    qd: list[Scalar],
    qdd: list[Scalar],
    bodies: Sequence[B],
    moment: Callable[[B, Vec3, Vec3, Mat3], Vec3],
) -> list[tuple[Step, Vec3, Vec3]]:
    """What every link's own motion asks for, base to tip: (step, force, moment about the frame's origin)."""
    w, dw, dv = ZERO, ZERO, -chain.gravity_in_frame_0
    U = acceleration_matrix(w, dw)
    found: list[tuple[Step, Vec3, Vec3]] = []
    for step, body, v_i, a_i in zip(steps(chain, q), bodies, qd, qdd, strict=True):
        R = step.R
        dv = R.T @ (dv + step.b * Vec3(U.r1.x, U.r2.x, U.r3.x))
        w, dw = R.T @ w, R.T @ dw
        if step.revolute:
            dw = Vec3(dw.x + w.y * v_i, dw.y - w.x * v_i, dw.z + a_i)
            w = Vec3(w.x, w.y, w.z + v_i)
        else:
            slide = 2 * v_i
            dv = Vec3(dv.x + slide * w.y, dv.y - slide * w.x, dv.z + a_i)
        U = acceleration_matrix(w, dw)
        dv = dv + step.d * Vec3(U.r1.z, U.r2.z, U.r3.z)
        F = body.mass * dv + U @ body.moment
        N = moment(body, w, dw, U) + body.moment.cross(dv)
        found.append((step, F, N))
    return found
