"""Fijany & Bejczy's composite bodies: every wrench in one frame, that of link 2 or of the end effector.

Source: Lin 1991, Appendix, eqs. (A7), (A8), (A10)-(A15), which restates Fijany & Bejczy's two algorithms with the
terms of prismatic joints that they lack.

Idea: the wrench of composite body j at a unit acceleration of joint j is formed in frame j, turned once into frame k,
and from there carried inwards by cross products with the distances, which are turned into frame k as well. The entries
with one joint then need no rotation. The bodies are Renaud's generalized links.

Symbols (paper | code): ᵏRⱼ | turns, ᵐ⁺¹ₘs⟨k⟩ | levers, f_Ej | f, t_Ej | t, k | frame: 2, or 0 for the last.

Cost claimed (Table I, n revolute joints): (4.5n²+115.5n-175)M (4n²+88n-134)A, for the better of the two frames.

Executed: k = 2 (4.5n²+93.5n-198)M (4n²+67n-136)A, k = n (4.5n²+96.5n-171)M (4n²+69n-122)A. The n² terms are the
paper's. The rows of the linear terms are not printed; here ᵏRⱼ takes 24M 12A by plane rotations, a wrench 15M 9A, a
distance 9M 6A.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from armdyn.algebra import IDENTITY, Mat3, Scalar, Vec3
from armdyn.algebra.tally import stage
from armdyn.chain import Chain
from armdyn.formulations.inertia_matrix.renaud import Augmented, generalized_links
from armdyn.formulations.steps import Matrix, Step, filled, run_time, steps


def variants(chain: Chain) -> Sequence[Mapping[str, Any]]:
    """The two frames that they recommend."""
    return {}, {"frame": 0}


def inertia_matrix(chain: Chain, q: list[Scalar], *, frame: int = 2) -> Matrix:
    """H(q), column by column; all wrenches in frame `frame`, or that of the last link."""
    path = steps(chain, q)
    stage("composite bodies")
    bodies = generalized_links(chain, path)
    stage("formulation")
    turns = _turns(path, min(frame or chain.n, chain.n) - 1)
    levers = [_product(turn, step.origin) for turn, step in zip(turns, path[1:], strict=False)]
    columns: list[list[Scalar]] = []
    for i, (step, body) in enumerate(zip(path, bodies, strict=True)):
        column = [body.J.zz if step.revolute else body.mass]  # Lin 1991 eq. (A12)
        if i > 0:
            f, t = (_product(turns[i], v) for v in _wrench(step.revolute, body))
            for j in reversed(range(i)):
                t = t + levers[j].cross(f)  # Lin 1991 eq. (A15)
                column.append(turns[j].T.r3.dot(t if path[j].revolute else f))  # Lin 1991 eq. (A13)
        columns.append(column[::-1])
    return filled(columns)


def _wrench(revolute: bool, body: Augmented) -> tuple[Vec3, Vec3]:
    """f_Ej and t_Ej in frame j (Lin 1991 eqs. A10, A11)."""
    c, J = body.c, body.J
    if revolute:
        return Vec3(-c.y, c.x, 0), Vec3(J.xz, J.yz, J.zz)
    return Vec3(0, 0, body.mass), Vec3(c.y, -c.x, 0)


def _turns(path: list[Step], k: int) -> list[Mat3]:
    """ᵏRⱼ of every frame, base to tip; those beside frame k are available (C1), the others take 24M 12A."""
    outer, inner = [IDENTITY], [IDENTITY]
    for step in path[k + 1 :]:
        rows = _available(step.R.matrix()) if len(outer) == 1 else Mat3(*(step.R.T @ row for row in outer[-1].rows))
        outer.append(rows)
    for step in reversed(path[1 : k + 1]):
        rows = _available(step.R.matrix().T) if len(inner) == 1 else Mat3(*(step.R @ row for row in inner[-1].rows))
        inner.append(rows)
    return [*inner[:0:-1], *outer]


def _available(M: Mat3) -> Mat3:
    return Mat3(*(run_time(row) for row in M.rows))


def _product(M: Mat3, v: Vec3) -> Vec3:
    """M v."""
    return run_time(v) if M is IDENTITY else M @ v
