"""The regressor: actuator forces as a linear function of the inertia parameters, τ = Y(q, q̇, q̈) x.

Source: Atkeson, An & Hollerbach 1986, for the wrench of one link; the transport is that of Lin & Fang
1999, Formulation 3.

Idea: the wrench (f, n) that moves a link is linear in its ten parameters. Instead of carrying ten
wrenches a link inwards, carry every joint's unit motion (u, u × s) outwards to the link: an entry is
then the power of one parameter's wrench on one joint's unit motion. What a link's motion contributes
(the matrix A = [ω̇×] + [ω×]², the accelerations) is worked out once a link.

Symbols: w, dw, a | ω, ω̇ and the acceleration of the frame's origin less gravity; (wi, vi) | the unit
motion of joint i, seen in the link's frame.
"""

from __future__ import annotations

from armdyn.algebra import ZERO, JointRotation, Mat3, Scalar, Vec3, X, Z
from armdyn.chain import Chain, Joint
from armdyn.formulations.inverse_dynamics.recursion import acceleration_matrix
from armdyn.parameters import minimal_parameters

Matrix = list[list[Scalar]]


def natural_regressor(chain: Chain, q: list[Scalar], qd: list[Scalar], qdd: list[Scalar]) -> Matrix:
    """Y of the 10 n natural parameters: n rows, ten columns a link in Pinocchio's order."""
    n = chain.n
    Y: Matrix = [[] for _ in range(n)]
    w, dw, a, A = ZERO, ZERO, -chain.gravity_in_frame_0, Mat3(ZERO, ZERO, ZERO)
    motions: list[tuple[Vec3, Vec3]] = []  # of joints 1 to i
    for i, (joint, q_i, qd_i, qdd_i) in enumerate(zip(chain.joints, q, qd, qdd, strict=True)):
        R, p = joint.placement(q_i)
        a = R.T @ (a + A @ p)
        motions = [_carried(R, X * joint.b, Z * joint.extension(q_i), motion) for motion in motions]
        w, dw, a = _joint_motion(joint, R.T @ w, R.T @ dw, a, qd_i, qdd_i)
        motions.append((Z, ZERO) if joint.revolute else (ZERO, Z))
        A = acceleration_matrix(w, dw)
        turning = _turning(w, dw)
        for row, (wi, vi) in zip(Y, motions, strict=False):
            first = A.T @ vi + a.cross(wi)  # f = A h, n = h × a for the first moment h
            row += [vi.dot(a), *first, *(wi.dot(column) for column in turning)]
        for row in Y[i + 1 :]:
            row += [0] * 10
    return Y


def regressor(chain: Chain, q: list[Scalar], qd: list[Scalar], qdd: list[Scalar]) -> Matrix:
    """Y of the minimal parameters: n rows, a column for every name of `minimal_parameters`."""
    realisation = minimal_parameters(chain).realisation
    columns = [[(k, row[j]) for k, row in enumerate(realisation) if row[j]] for j in range(len(realisation[0]))]
    return [
        [sum((f * row[k] for k, f in column), 0) for column in columns] for row in natural_regressor(chain, q, qd, qdd)
    ]


def _carried(R: JointRotation, b: Vec3, d: Vec3, motion: tuple[Vec3, Vec3]) -> tuple[Vec3, Vec3]:
    """A unit motion seen from the next frame: b stands in the present one, d in the next (12M 8A, not 14M 10A)."""
    w = R.T @ motion[0]
    return w, R.T @ (motion[1] + motion[0].cross(b)) + w.cross(d)


def _joint_motion(joint: Joint, w: Vec3, dw: Vec3, a: Vec3, qd: Scalar, qdd: Scalar) -> tuple[Vec3, Vec3, Vec3]:
    """The link's ω, ω̇ and acceleration from its parent's, in the link's frame."""
    if joint.revolute:
        return w + Z * qd, dw + w.cross(Z * qd) + Z * qdd, a
    return w, dw, a + w.cross(Z * qd) * 2 + Z * qdd


def _turning(w: Vec3, dw: Vec3) -> tuple[Vec3, ...]:
    """The moment J ω̇ + ω × J ω for a unit Jxx, Jxy, Jyy, Jxz, Jyz, Jzz."""
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
