"""Renaud's generalized links: composite bodies about local origins, with the invariant terms precomputed.

Source: Lin 1991, Appendix and Fig. A1, eqs. (A1)-(A8) (most of them illegible in the scan); Renaud 1984, 1986.

Idea: the link's own moments and the terms of the fixed distance to the next frame are constants of the
arm (the "augmented body"); only the varying terms are propagated. An entry is u·(Ĵ's third column) plus ŝ·(u × ĉ).

Symbols (paper | code): uⱼ⟨k⟩ | u, ʲŝ⟨k⟩ | v, ĉⱼ | c, Ĵⱼ | J, the invariant terms (A5), (A6) | `Augmented`.

Cost claimed (Table I): (13.5n²+22.5n-68)M (9n²+26n-64)A for n revolute joints.

Executed: 1M 1A less for each of n-2 similarity transformations. The rows add up to the printed total if R Ĵ Rᵀ takes
37M 19A; its arrangement is illegible, two plane rotations take 36M 18A.

Errata: earlier works took the distance to a prismatic joint's frame as constant (Lin's own remark).
"""

from __future__ import annotations

from dataclasses import dataclass

from armdyn.algebra import ZERO, Scalar, Sym3, Vec3, online
from armdyn.algebra.tally import stage
from armdyn.chain import Chain
from armdyn.formulations.steps import Matrix, Step, filled, run_time, steps


@dataclass(frozen=True, slots=True)
class Augmented:
    """Mass, first moment and inertia of a composite body, or only their invariant part."""

    mass: Scalar
    c: Vec3
    J: Sym3


def inertia_matrix(chain: Chain, q: list[Scalar]) -> Matrix:
    """H(q), column by column, base to tip."""
    path = steps(chain, q)
    stage("composite bodies")
    bodies = generalized_links(chain, path)
    stage("formulation")
    columns: list[list[Scalar]] = []
    motions: list[tuple[Vec3, Vec3]] = []
    for j, (step, body) in enumerate(zip(path, bodies, strict=True)):
        if j > 0:
            motions = [_outwards(step, before.revolute, *m) for before, m in zip(path, motions, strict=False)]
            axis, lever = step.parent_axis, step.axis
            v = step.R.T @ Vec3(-(step.d * lever.y), step.b + step.d * lever.x, 0) if path[j - 1].revolute else ZERO
            motions.append((axis, run_time(v)))
        entries = [_entry(before.revolute, step, body, u, v) for before, (u, v) in zip(path, motions, strict=False)]
        columns.append([*entries, body.J.zz if step.revolute else body.mass])
    return filled(columns)


def generalized_links(chain: Chain, path: list[Step]) -> list[Augmented]:
    """ĉ and Ĵ of every composite body from the first revolute joint on, base to tip."""
    r = next((i for i, step in enumerate(path) if step.revolute), chain.n)
    last = chain.links[-1]
    J = Sym3(*(online(x) for x in last.inertia.entries))
    links = [Augmented(last.mass, run_time(last.moment), J)]
    for j in reversed(range(chain.n - 1)):
        step, outer, link = path[j + 1], links[-1], chain.links[j]
        mass = link.mass + outer.mass
        if j < r:
            links.append(Augmented(mass, ZERO, outer.J))
            continue
        c, s = step.R @ outer.c, step.origin
        k, E = link.moment + outer.mass * s, link.inertia + outer.mass * _steiner(s)  # Lin 1991 eqs. (A5), (A6)
        if j == r:  # only (Ĵ)₃₃ is needed
            u = step.parent_axis
            J33 = E.zz + u.dot(outer.J @ u) + ((2 * s.x) * c.x + (2 * s.y) * c.y)
            links.append(Augmented(mass, k + c, Sym3(0, 0, 0, 0, 0, J33)))
        else:
            links.append(Augmented(mass, k + c, E + step.R.similarity_by_products(outer.J) + _coupling(s, c)))
    return links[::-1]


def _steiner(s: Vec3) -> Sym3:
    """-[s×][s×]; constant for a revolute joint."""
    xx, yy, zz = s.x * s.x, s.y * s.y, s.z * s.z
    return Sym3(yy + zz, -(s.x * s.y), xx + zz, -(s.x * s.z), -(s.y * s.z), xx + yy)


def _coupling(s: Vec3, c: Vec3) -> Sym3:
    """-[s×][c×] - [c×][s×] in 9M 9A: doubling by addition."""
    xx, yy, zz = s.x * c.x, s.y * c.y, s.z * c.z
    a, b, d = yy + zz, xx + zz, xx + yy
    return Sym3(
        a + a, -(s.x * c.y + s.y * c.x), b + b, -(s.x * c.z + s.z * c.x), -(s.y * c.z + s.z * c.y), d + d
    )  # fmt: skip


def _outwards(step: Step, revolute: bool, u: Vec3, v: Vec3) -> tuple[Vec3, Vec3]:
    """Axis and velocity of an earlier joint from frame k-1 to frame k: 8M 4A and 14M 10A."""
    turned = step.R.T @ u
    return turned, step.R.T @ (v + u.cross(step.origin)) if revolute else v


def _entry(turns: bool, step: Step, body: Augmented, u: Vec3, v: Vec3) -> Scalar:
    """H_mj (Lin 1991 eq. A1)."""
    c, J = body.c, body.J
    if turns and step.revolute:
        return u.dot(Vec3(J.xz, J.yz, J.zz)) + (c.x * v.y - c.y * v.x)
    if step.revolute:
        return u.y * c.x - u.x * c.y
    if turns:
        return body.mass * v.z + (u.x * c.y - u.y * c.x)
    return body.mass * u.z
