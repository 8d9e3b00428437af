"""Formulation 1: propagate each composite body's wrench inwards through the local frames.

Source: Lin & Fang 1999, Table I, eqs. (7)-(11), (18), (29)-(31); the composite bodies of Table VII.
Lilly & Orin's spatial composite-body method (their Method IV) without the spatial notation.

Idea: D_ji is the force or torque at joint j when joint i alone has unit acceleration: the force f and torque t of
composite body i, propagated from frame i to frame j. The shift from frame to frame is split into d along the outer z
and b along the inner x, so that a step takes 20M 12A instead of 22M 14A.

Symbols (paper | code): f_j,i⟨j⟩ | f, t_j,i⟨j⟩ | t, (t_j,i⁽ʳ⁾)_z | t_r, u_r⟨j⟩ | u, ²₁s⟨2⟩ | lever, D | D.

Cost claimed (Table VI, without composite bodies): (10n²-18n+10)M (6n²-10n+4)A for n revolute joints,
(10n²-18n)M (6n²-10n)A with joint 3 prismatic.

Errata: in eq. (31) the factor is (u_r⟨j⟩)_z, not (u_r⟨i⟩)_z.
"""

from __future__ import annotations

from armdyn.algebra import ZERO, Scalar, Vec3
from armdyn.algebra.tally import named, stage
from armdyn.chain import Chain
from armdyn.formulations.composite_bodies.minimal import Inner, MinimalBody, composite_bodies
from armdyn.formulations.steps import Matrix, Step, filled, run_time, steps, wrench_inwards


def inertia_matrix(chain: Chain, q: list[Scalar]) -> Matrix:
    """D(q), column by column."""
    path = steps(chain, q)
    stage("composite bodies")
    bodies = composite_bodies(chain, path)
    stage("formulation")
    lever = path[1].offset if chain.n > 1 and path[0].revolute else ZERO  # ²₁s⟨2⟩, counted once (C4)
    inners = [body.inner for body in bodies if body.inner is not None]  # i < s
    columns = []
    for i, body in enumerate(bodies):
        columns.append(_column(path, body, i, lever) if body.inner is None else _below_s(path, inners, body, i))
    return filled(columns)


def _column(path: list[Step], body: MinimalBody, i: int, lever: Vec3) -> list[Scalar]:
    """D_1i … D_ii."""
    f, t = body.force, run_time(body.torque)  # Lin & Fang eqs. (7), (8); the zero of t counts (C5)
    column = [t.z if path[i].revolute else f.z]
    for j in reversed(range(1, i)):
        f, t = wrench_inwards(path[j + 1], f, t)  # Lin & Fang eqs. (9), (10), (18)
        f, t = named(f"f_{i + 1}", f, j + 1), named(f"t_{i + 1}", t, j + 1)
        column.append(t.z if path[j].revolute else f.z)  # Lin & Fang eq. (11)
    if i > 0:
        R = path[1].R
        column.append((R @ (t + lever.cross(f))).z if path[0].revolute else (R @ f).z)
    return column[::-1]


def _below_s(path: list[Step], inners: list[Inner], body: MinimalBody, i: int) -> list[Scalar]:
    """D_1i … D_ii for i < s, where every revolute joint is parallel to joint r."""
    f, t_r = body.force, inners[i].torque  # Lin & Fang eq. (29)
    column = [body.column.z if body.revolute else body.mass]
    for j in reversed(range(i)):
        f, u = path[j + 1].R @ f, inners[j].u
        t_r = t_r + u.cross(path[j + 1].origin).dot(f)  # Lin & Fang eq. (30)
        column.append(u.z * t_r if path[j].revolute else f.z)  # Lin & Fang eq. (31)
    return column[::-1]
