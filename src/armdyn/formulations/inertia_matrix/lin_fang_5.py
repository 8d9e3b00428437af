"""Formulation 5: Formulation 1 started one frame further in, from the first moment about the previous frame.

Source: Lin & Fang 1999, Table V, eqs. (B3), (B5)-(B11); the composite bodies of Table VII. Kawasaki et
al.'s algorithm with its Steps 4.1 and 4.2 combined.

Idea: with ⁱ⁻¹hᵢ, the first moment of composite body i about the origin of frame i-1 and in its axes, the
wrench there costs one cross product with the constant axis.

Symbols (paper | code): ⁱ⁻¹hᵢ | h, ⁱkᵢ | k, uᵢ⟨i-1⟩ | step.axis, ⁱᵢ₋₁s⟨i-1⟩ | step.origin, f_j,i | f, t_j,i | t.

Cost claimed (Table VI, without composite bodies and h): (10n²-18n+14)M (6n²-6n+2)A for n revolute joints,
(10n²-18n+4)M (6n²-6n-7)A with joint 3 prismatic.

Errata: D_ji takes Kⱼ* and Kⱼ, not Kᵢ* and Kᵢ (Table V and eq. B11); -f × s belongs to Kᵢ* only, as in
eq. (B8), which makes the second pair 4M 4A less; in t_1,i the bracket closes after × f; Table VI prints
1016 M at n = 11 where its formula gives 1026. The paper does not treat the joints below s here: the torque of
eq. (29) along u_r replaces hᵢ × uᵢ.
"""

from __future__ import annotations

from armdyn.algebra import ZERO, Scalar, Vec3, on_hand
from armdyn.algebra.tally import stage
from armdyn.chain import Chain
from armdyn.formulations.composite_bodies.minimal import MinimalBody, composite_bodies
from armdyn.formulations.steps import Matrix, Step, filled, run_time, steps, wrench_inwards


def inertia_matrix(chain: Chain, q: list[Scalar]) -> Matrix:
    """D(q), column by column."""
    path = steps(chain, q)
    stage("composite bodies")
    bodies = composite_bodies(chain, path)
    stage("formulation")
    lever = path[1].free_offset if chain.n > 1 else ZERO  # ²₁s⟨2⟩, not counted (C4)
    return filled([_column(path, body, i, lever) for i, body in enumerate(bodies)])


def _column(path: list[Step], body: MinimalBody, i: int, lever: Vec3) -> list[Scalar]:
    """D_1i … D_ii."""
    column = [body.column.z if body.revolute else body.mass]  # Lin & Fang eq. (B6)
    f = t = ZERO
    for j in reversed(range(i)):
        step = path[j + 1]
        if j == i - 1:
            f, t = _first(step, body)
        elif j > 0:
            f, t = wrench_inwards(step, f, t)  # Lin & Fang eqs. (B9), (B10)
        elif path[0].revolute:
            t = step.R @ (t + lever.cross(f))
        else:
            f = step.R @ f
        column.append(t.z if path[j].revolute else f.z)  # Lin & Fang eq. (B11)
    return column[::-1]


def _first(step: Step, body: MinimalBody) -> tuple[Vec3, Vec3]:
    """f_i-1,i and t_i-1,i (Lin & Fang eqs. B7, B8)."""
    axis = step.axis
    if body.revolute:
        s, k = step.origin, body.column
        h = on_hand(lambda: step.R @ body.moment + body.mass * s)  # Lin & Fang eq. (B3)
        f = axis.cross(h - body.mass * s)
        return f, step.R @ k + s.cross(f)
    f = body.mass * axis
    if body.inner is not None:
        return f, step.R @ body.torque + step.origin.cross(f)
    h = on_hand(lambda: step.R @ body.moment + body.mass * step.origin)
    return run_time(f), h.cross(axis)
