"""Formulation 2: propagate each joint's axis and lever outwards to the pivot frame of the composite body.

Source: Lin & Fang 1999, Table II, eqs. (19), (20), (32); the composite bodies of Table VII. New in that paper.

Idea: D_ji is a scalar and may be computed in frame i, where ĉᵢ and Ĵᵢ are available: only the axis uⱼ and the vector
from joint j have to be transformed there, for all j < i, in one pass to the tip.

Symbols (paper | code): uⱼ⟨i⟩ | u, ⁱⱼs⟨i⟩ | s, ĉᵢ | c, (Ĵᵢ)₁₃ … | J, m̂ᵢ | body.mass.

Cost claimed (Table VI, without composite bodies): (11.5n²-27.5n+16)M (8n²-18n+10)A for n revolute
joints; (11.5n²-40.5n+60)M (8n²-29n+46)A with joint 3 prismatic.

Errata: the second pair of polynomials is 3M 3A more than the sum of the rows of Table II. δᵢ of eq. (32) marks terms
that vanish by themselves; it is not needed in a program.
"""

from __future__ import annotations

from armdyn.algebra import Scalar, Vec3
from armdyn.algebra.tally import stage
from armdyn.chain import Chain
from armdyn.formulations.composite_bodies.minimal import MinimalBody, composite_bodies
from armdyn.formulations.steps import Matrix, Step, filled, steps


def inertia_matrix(chain: Chain, q: list[Scalar]) -> Matrix:
    """D(q), column by column, base to tip."""
    path = steps(chain, q)
    stage("composite bodies")
    bodies = composite_bodies(chain, path)
    stage("formulation")
    columns: list[list[Scalar]] = []
    motions: list[tuple[Vec3, Vec3]] = []  # (uⱼ, ⁱⱼs) of the previous joints, in frame i
    for i, (step, body) in enumerate(zip(path, bodies, strict=True)):
        if i > 0:
            motions = [_outwards(step, bodies[j].revolute, *motions[j]) for j in range(i - 1)]
            motions.append((step.parent_axis, step.free_offset))
        entries = [_entry(inner, body, u, s) for inner, (u, s) in zip(bodies, motions, strict=False)]
        columns.append([*entries, body.column.z if body.revolute else body.mass])
    return filled(columns)


def _outwards(step: Step, revolute: bool, u: Vec3, s: Vec3) -> tuple[Vec3, Vec3]:
    """Axis and lever from frame k-1 to frame k; a prismatic joint does not need its lever."""
    u = step.R.T @ u
    if revolute:
        s = step.R.T @ Vec3(s.x + step.b, s.y, s.z)
        s = Vec3(s.x, s.y, s.z + step.d)
    return u, s


def _entry(inner: MinimalBody, body: MinimalBody, u: Vec3, s: Vec3) -> Scalar:
    """D_ji of joint j (`inner`) and composite body i (`body`): Lin & Fang eq. (20)."""
    c, J, m = body.moment, body.column, body.mass
    if inner.revolute and body.revolute:
        return u.dot(Vec3(J.x - c.x * s.z, J.y - c.y * s.z, J.z + c.x * s.x + c.y * s.y))
    if body.revolute:
        return u.y * c.x - u.x * c.y
    if not inner.revolute:
        return m * u.z
    if body.inner is not None and inner.inner is not None:  # Lin & Fang eq. (32)
        return u.x * (m * s.y) - u.y * (m * s.x) + inner.inner.u.z * body.inner.torque
    return u.x * (m * s.y + c.y) - u.y * (m * s.x + c.x)
