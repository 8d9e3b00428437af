"""Saha's matrix of convective inertia terms, C = Nᵀ(M Ṅ + Ω M N).

Source: Saha 1999, eq. (18).

Idea: column j of N holds the twists of all bodies at a unit rate of joint j alone; M times its rate plus Ω M times the
column itself are wrenches, carried inwards once per column. The matrix differs from that of Christoffel symbols, but
C q̇ is the same and dH/dt - 2C is skew-symmetric too, since ΩM + MΩ is.

Saha takes moments about mass centres. About the frame's origin, the moment of a column (u, and the velocity of the
origin, with rates du and da) is J du + ω × J u + h × da - m c² ω × u. The last term depends on the choice of reference
point: any factor in place of m c² preserves C q̇ and the skew symmetry, which is why C is not a function of the minimal
parameters. If the mass is 0, the factor is 0.
"""

from __future__ import annotations

from armdyn.algebra import ZERO, Scalar, Vec3, Z
from armdyn.algebra.spatial import NO_WRENCH, Wrench
from armdyn.chain import Chain
from armdyn.formulations.steps import Step, collect, steps

Matrix = list[list[Scalar]]


def coriolis_matrix(chain: Chain, q: list[Scalar], qd: list[Scalar]) -> Matrix:
    """C with C q̇ + g = b and dH/dt - 2C skew-symmetric."""
    walk = steps(chain, q)
    rates: list[Vec3] = []
    for step, v in zip(walk, qd, strict=True):
        w = rates[step.parent] if step.parent >= 0 else ZERO
        rates.append(step.R.T @ w + (v * Z if step.revolute else ZERO))
    columns = [_column(chain, walk, rates, qd, j) for j in range(chain.n)]
    return [list(row) for row in zip(*columns, strict=True)]


def _column(chain: Chain, walk: list[Step], rates: list[Vec3], qd: list[Scalar], j: int) -> list[Scalar]:
    """The joint forces of the wrenches M Ṅ_j + Ω M N_j of column j of N."""
    turn = rates[j].cross(Z)
    moving = {j: (Z, turn, ZERO) if walk[j].revolute else (ZERO, ZERO, turn)}  # u, du, da of link j and all beyond it
    own: dict[int, Wrench] = {}
    for k in range(j, chain.n):
        step, link, w = walk[k], chain.links[k], rates[k]
        if k > j and step.parent not in moving:
            continue
        if k > j:
            u, du, da = moving[step.parent]
            R, p, before = step.R, step.origin, rates[step.parent]
            da = R.T @ (da + du.cross(p) + u.cross(before.cross(p)))
            u, du = R.T @ u, R.T @ du
            if not step.revolute:
                da = da + u.cross(qd[k] * Z)
            moving[k] = u, du, da
        u, du, da = moving[k]
        J, h = link.inertia, link.moment
        about = h.dot(h) / link.mass if link.mass != 0 else 0  # m c²
        F = link.mass * da + du.cross(h) + u.cross(w.cross(h))
        own[k] = Wrench(F, J @ du + w.cross(J @ u - about * u) + h.cross(da))
    column: list[Scalar] = []
    brought: dict[int, Wrench] = {}
    for k in reversed(range(chain.n)):
        wrench = brought.get(k, NO_WRENCH)
        wrench = wrench + own[k] if k in own else wrench
        column.append(wrench.along(walk[k].revolute))
        collect(brought, walk[k].parent, walk[k].wrench_inward(wrench))
    return column[::-1]
