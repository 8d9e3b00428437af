"""Formulation 3: propagate each joint's unit motion (axis and velocity) outwards to the pivot frame.

Source: Lin & Fang 1999, Table III, eq. (21); the composite bodies of Table VII. Renaud's generalized
links, extended to prismatic joints by Lin 1991.

Idea: as Formulation 2, with the velocity ŝ = u × s of the frame's origin in place of the lever s:
an entry is then two dot products.

Symbols (paper | code): uⱼ⟨i⟩ | u, ⁱⱼŝ⟨i⟩ | v, ĉᵢ | c, (Ĵᵢ)₁₃ … | J.

Cost claimed (Table VI, without composite bodies): (12.5n²-28.5n+16)M (8n²-18n+10)A for n revolute
joints; (12.5n²-43.5n+65)M (8n²-29n+45)A with joint 3 prismatic.

Errata: in D_ji the second bracket is the scalar -ĉ_y ŝ_x + ĉ_x ŝ_y added to the dot product; in the third
term (Kⱼ*Kᵢ) the vector is (ĉ_y, -ĉ_x, 0), as in eq. (21); the index of dSβ is j+1; the recursion carries ŝ
(its hat is missing) and costs Kⱼ*. The second pair of polynomials is 1M more than execution takes. The
paper does not treat the joints below s here; they are done as in its eq. (32).
"""

from __future__ import annotations

from armdyn.algebra import ZERO, Scalar, Vec3
from armdyn.algebra.tally import stage
from armdyn.chain import Chain
from armdyn.formulations.composite_bodies.minimal import MinimalBody, composite_bodies
from armdyn.formulations.steps import Matrix, Step, filled, run_time, steps


def inertia_matrix(chain: Chain, q: list[Scalar]) -> Matrix:
    """D(q), column by column, base to tip."""
    path = steps(chain, q)
    stage("composite bodies")
    bodies = composite_bodies(chain, path)
    stage("formulation")
    columns: list[list[Scalar]] = []
    motions: list[tuple[Vec3, Vec3]] = []  # (uⱼ, ⁱⱼŝ) of the previous joints, in frame i
    for i, (step, body) in enumerate(zip(path, bodies, strict=True)):
        if i > 0:
            motions = [_outwards(step, bodies[j].revolute, *motions[j]) for j in range(i - 1)]
            motions.append((step.parent_axis, _first_velocity(step) if bodies[i - 1].revolute else ZERO))
        entries = [_entry(inner, body, u, v) for inner, (u, v) in zip(bodies, motions, strict=False)]
        columns.append([*entries, body.column.z if body.revolute else body.mass])
    return filled(columns)


def _first_velocity(step: Step) -> Vec3:
    """ʲ⁺¹ⱼŝ⟨j+1⟩: R rotates z × s = (d Sβ, b, 0); counted as a run-time vector (C4)."""
    axis = step.axis
    return run_time(step.R.T @ Vec3(-(step.d * axis.y), step.b + step.d * axis.x, 0))


def _outwards(step: Step, revolute: bool, u: Vec3, v: Vec3) -> tuple[Vec3, Vec3]:
    """Axis and velocity from frame k-1 to frame k; a prismatic joint moves every point by its axis."""
    b, d = step.b, step.d
    turned = step.R.T @ u
    if revolute:
        v = step.R.T @ Vec3(v.x, v.y + u.z * b, v.z - u.y * b)
        v = Vec3(v.x + turned.y * d, v.y - turned.x * d, v.z)
    return turned, v


def _entry(inner: MinimalBody, body: MinimalBody, u: Vec3, v: Vec3) -> Scalar:
    """D_ji of joint j (`inner`) and composite body i (`body`): Lin & Fang eq. (21)."""
    c, J, m = body.moment, body.column, body.mass
    if inner.revolute and body.revolute:
        return u.dot(J) + (c.x * v.y - c.y * v.x)
    if body.revolute:
        return u.y * c.x - u.x * c.y
    if not inner.revolute:
        return m * u.z
    if body.inner is not None and inner.inner is not None:
        return m * v.z + inner.inner.u.z * body.inner.torque
    return m * v.z + (u.x * c.y - u.y * c.x)
