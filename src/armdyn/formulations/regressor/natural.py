"""The regressor: joint forces as a linear function of the inertial parameters, τ = Y(q, q̇, q̈) x.

Source: Atkeson, An & Hollerbach 1986, for the wrench of one link; the transport is that of Lin & Fang
1999, Formulation 3.

Idea: the wrench (f, n) that moves a link is linear in its ten parameters. Instead of ten wrenches per link inwards,
carry every joint's unit motion (u, u × s) outwards to the link: an entry is then the power of one parameter's wrench on
one joint's unit motion. The terms of a link's motion (the matrix A = [ω̇×] + [ω×]², the accelerations) are computed once
per link.

Symbols: w, dw, a | ω, ω̇ and the acceleration of the frame's origin less gravity; (wi, vi) | the unit
motion of joint i in the link's frame.
"""

from __future__ import annotations

from collections.abc import Sequence

from armdyn.algebra import Scalar, Vec3, X, Z
from armdyn.algebra.spatial import MotionVector, unit_motion
from armdyn.chain import Chain
from armdyn.formulations.inverse_dynamics.recursion import Moving, acceleration_matrix, at_rest
from armdyn.formulations.steps import Step, steps
from armdyn.parameters import minimal_parameters

Matrix = list[list[Scalar]]


def natural_regressor(chain: Chain, q: list[Scalar], qd: list[Scalar], qdd: list[Scalar]) -> Matrix:
    """Y of the 10 n natural parameters: n rows, ten columns per link in Pinocchio's order."""
    Y: Matrix = [[] for _ in range(chain.n)]
    moving: list[Moving] = []
    motions: list[dict[int, MotionVector]] = []  # of the joints up to i, in the frame of link i
    for i, (step, qd_i, qdd_i) in enumerate(zip(steps(chain, q), qd, qdd, strict=True)):
        before = moving[step.parent] if step.parent >= 0 else at_rest(chain)
        carried = motions[step.parent] if step.parent >= 0 else {}
        a = step.R.T @ (before.dv + before.U @ step.origin)
        seen = {j: _carried(step, motion) for j, motion in carried.items()}
        seen[i] = unit_motion(step.revolute)
        motions.append(seen)
        w, dw, a = _joint_motion(step, before, a, qd_i, qdd_i)
        A = acceleration_matrix(w, dw)
        moving.append(Moving(w, dw, A, a))
        turning = _turning(w, dw)
        for j, row in enumerate(Y):
            if j not in seen:
                row += [0] * 10
                continue
            wi, vi = seen[j].w, seen[j].v
            first = A.T @ vi + a.cross(wi)  # f = A h, n = h × a for the first moment h
            row += [vi.dot(a), *first, *(wi.dot(column) for column in turning)]
    return Y


def regressor(chain: Chain, q: list[Scalar], qd: list[Scalar], qdd: list[Scalar]) -> Matrix:
    """Y of the minimal parameters: n rows, one column per parameter of `minimal_parameters`."""
    return in_minimal_parameters(chain, natural_regressor(chain, q, qd, qdd))


def in_minimal_parameters(chain: Chain, Y: Matrix) -> Matrix:
    """The regressor of the minimal parameters from that of the natural ones."""
    return combined(Y, minimal_parameters(chain).realisation)


def combined(Y: Matrix, realisation: Sequence[Sequence[Scalar]]) -> Matrix:
    """Y times the sparse matrix that maps minimal to natural parameters."""
    width = len(realisation[0])
    columns = [[(k, row[j]) for k, row in enumerate(realisation) if row[j] != 0] for j in range(width)]
    return [[sum((f * row[k] for k, f in column), 0) for column in columns] for row in Y]


def _carried(step: Step, motion: MotionVector) -> MotionVector:
    """A unit motion in the next frame: shift by b in this frame and by d in the next (12M 8A instead of 14M 10A)."""
    w = step.R.T @ motion.w
    v = step.R.T @ (motion.v + motion.w.cross(step.fork if step.forked else X * step.b))
    return MotionVector(w, v + w.cross(Z * step.d))


def _joint_motion(step: Step, before: Moving, a: Vec3, qd: Scalar, qdd: Scalar) -> tuple[Vec3, Vec3, Vec3]:
    """The link's ω, ω̇ and acceleration from its parent's; `a` is in the link's frame already."""
    w, dw = step.R.T @ before.w, step.R.T @ before.dw
    if step.revolute:
        return w + Z * qd, dw + w.cross(Z * qd) + Z * qdd, a
    return w, dw, a + w.cross(Z * qd) * 2 + Z * qdd


def _turning(w: Vec3, dw: Vec3) -> tuple[Vec3, ...]:
    """The moments J ω̇ + ω × J ω of a unit Jxx, Jxy, Jyy, Jxz, Jyz, Jzz."""
    xx, yy, zz = w.x * w.x, w.y * w.y, w.z * w.z
    xy, xz, yz = w.x * w.y, w.x * w.z, w.y * w.z
    return (
        Vec3(dw.x, xz, -xy),
        Vec3(dw.y - xz, dw.x + yz, xx - yy),
        Vec3(-yz, dw.y, xy),
        Vec3(dw.z + xy, zz - xx, dw.x - yz),
        Vec3(yy - zz, dw.z - xy, dw.y + xz),
        Vec3(yz, -xz, dw.z),
    )
