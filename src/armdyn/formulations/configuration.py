"""Poses and configurations as manifolds: pose error, integration of a velocity, difference of two configurations.

Source: the logarithm and exponential of SE(3), as in Murray, Li & Sastry 1994, sections 2.3 and A.3.

Idea: a program has no branches, so nothing may divide by an angle that can be zero. The quaternion of a rotation comes
from the column of 4 q qᵀ with the largest pivot, selected by signs; square roots of the quaternion halve the angle
until a short series gives angle / sine. Where two selections are equally good, a tiny number decides, and where a
denominator may vanish the same number keeps it from doing so: the term has the factor 0 there.
"""

from __future__ import annotations

from typing import Any

from armdyn.algebra import Mat3, Scalar, Vec3, cos, sign, sin, sqrt
from armdyn.chain import Chain
from armdyn.formulations.coordinates import rotation
from armdyn.formulations.registry import definition

TINY = 1e-30  # within the range of float32, far below the rounding of any length or angle
HALVINGS = 4  # of the half-angle, at most π/2: up to 0.1 rad remain, for which the series is exact to rounding
# asin(s)/s = Σ (2n)! / (4ⁿ n!² (2n + 1)) s²ⁿ
ARCSINE = (1.0, 1 / 6, 3 / 40, 5 / 112, 35 / 1152, 63 / 2816, 231 / 13312)


def quaternion(R: Mat3) -> tuple[Vec3, Scalar]:
    """The unit quaternion (v, w) of a rotation, with w ≥ 0; exact to rounding for every angle."""
    (xx, xy, xz), (yx, yy, yz), (zx, zy, zz) = R.rows
    trace = xx + yy + zz
    diagonal = [1 + trace, *(1 + 2 * d - trace for d in (xx, yy, zz))]
    columns = [
        (diagonal[0], zy - yz, xz - zx, yx - xy),
        (zy - yz, diagonal[1], xy + yx, xz + zx),
        (xz - zx, xy + yx, diagonal[2], yz + zy),
        (yx - xy, xz + zx, yz + zy, diagonal[3]),
    ]
    best, pivot = columns[0], diagonal[0]
    for column, d in zip(columns[1:], diagonal[1:], strict=True):
        better = (1 + sign(d - pivot + TINY)) / 2
        best = tuple(b + better * (c - b) for b, c in zip(best, column, strict=True))
        pivot = pivot + better * (d - pivot)
    half = 1 / (2 * sqrt(pivot))
    half = half * sign(best[0] + TINY)
    w, x, y, z = (half * entry for entry in best)
    return Vec3(x, y, z), w


def logarithm(R: Mat3, p: Vec3) -> tuple[Vec3, Vec3]:
    """The twist (linear, angular) whose exponential is the pose; the angle is at most π."""
    v, w = quaternion(R)
    root, cosine = v, w
    for _ in range(HALVINGS):
        cosine = sqrt((1 + cosine) / 2)
        root = (1 / (2 * cosine)) * root
    s2 = root.dot(root)
    series: Scalar = ARCSINE[-1]
    for coefficient in reversed(ARCSINE[:-1]):
        series = series * s2 + coefficient
    turn = (2 ** (HALVINGS + 1) * series) * root
    angle2 = turn.dot(turn)
    # (θ/2) cot(θ/2) = w θ / (2 |v|), and θ/|v| = θ² / (turn · v), which is 2 at θ = 0
    ratio = (angle2 + 2 * TINY) / (turn.dot(v) + TINY)
    c = (1 - ratio * w / 2) / (angle2 + TINY)
    linear = p - 0.5 * turn.cross(p) + c * turn.cross(turn.cross(p))
    return linear, turn


def exponential(linear: Vec3, turn: Vec3) -> tuple[Vec3, Scalar, Vec3]:
    """The unit quaternion (v, w) and the translation of the pose whose logarithm is a twist."""
    angle2 = turn.dot(turn) + TINY
    half = sqrt(angle2) / 2
    sinc = sin(half) / half
    v, w = (sinc / 2) * turn, cos(half)
    b = sinc * sinc / 2  # (1 - cos θ)/θ²
    c = (1 - sinc * w) / angle2  # (θ - sin θ)/θ³
    return v, w, linear + b * turn.cross(linear) + c * turn.cross(turn.cross(linear))


def pose_error(R: Mat3, p: Vec3, goal: Any) -> list[Scalar]:
    """log(T⁻¹ goal) of the pose T = (R, p): linear then angular, in the axes of T."""
    wanted = Mat3(*(Vec3(*row[:3]) for row in goal[:3]))
    at = Vec3(*(row[3] for row in goal[:3]))
    linear, turn = logarithm(R.T @ wanted, R.T @ (at - p))
    return [*linear, *turn]


def integrate(chain: Chain, q: list[Scalar], v: list[Scalar]) -> list[Scalar]:
    """The configuration after a displacement v, of a floating base in its own axes."""
    if not chain.floating:
        return [x + d for x, d in zip(q, v, strict=True)]
    turned, w, moved = exponential(Vec3(*v[:3]), Vec3(*v[3:6]))
    p = Vec3(*q[:3]) + rotation(q[3:7]) @ moved
    a, b = Vec3(*q[3:6]), q[6]
    imaginary = b * turned + w * a + a.cross(turned)
    real = b * w - a.dot(turned)
    size = 1 / sqrt(imaginary.dot(imaginary) + real * real)
    return [*p, *(size * imaginary), size * real, *(x + d for x, d in zip(q[7:], v[6:], strict=True))]


def difference(chain: Chain, q0: list[Scalar], q1: list[Scalar]) -> list[Scalar]:
    """The displacement from q0 to q1: the inverse of `integrate`."""
    if not chain.floating:
        return [b - a for a, b in zip(q0, q1, strict=True)]
    R, other = rotation(q0[3:7]), rotation(q1[3:7])
    linear, turn = logarithm(R.T @ other, R.T @ (Vec3(*q1[:3]) - Vec3(*q0[:3])))
    return [*linear, *turn, *(b - a for a, b in zip(q0[7:], q1[7:], strict=True))]


INTEGRATE = definition(integrate, "exponential of the base's twist")
DIFFERENCE = definition(difference, "logarithm of the base's displacement")
