"""Formulation 4: the wrenches of Formulation 1, all in the frame of the end effector.

Source: Lin & Fang 1999, Table IV; the composite bodies of Table VII. Proposed by Fijany & Bejczy.

Idea: once axes, levers and wrenches are all in frame n, moving a wrench from joint to joint is one cross product. Fewer
operations per pair, but many more per joint: it pays off for long arms only.

Symbols (paper | code): ⁱₙR | M (frame i into n), uᵢ⟨n⟩ | u, ⁱ⁺¹ᵢs⟨n⟩ | s, f_j,i⟨n⟩ | f, t_j,i⟨n⟩ | t.

Cost claimed (Table VI, without composite bodies): (4.5n²+48.5n-108)M (4n²+24n-56)A for n revolute
joints, (4.5n²+48.5n-114)M (4n²+24n-62)A with joint 3 prismatic.

Errata: the row for uᵢ⟨n⟩ recomputes the third column of ⁱₙR (8M 4A per joint), and the polynomials contain an error of
4M: executed, (4.5n²+40.5n-88)M (4n²+20n-48)A and 6M 6A less.
"""

from __future__ import annotations

from armdyn.algebra import IDENTITY, Mat3, Scalar, Vec3
from armdyn.algebra.tally import stage
from armdyn.chain import Chain
from armdyn.formulations.composite_bodies.minimal import composite_bodies
from armdyn.formulations.steps import Matrix, Step, filled, run_time, steps


def inertia_matrix(chain: Chain, q: list[Scalar]) -> Matrix:
    """D(q), column by column."""
    path = steps(chain, q)
    stage("composite bodies")
    bodies = composite_bodies(chain, path)
    stage("formulation")
    turns = _to_end_effector(path)
    levers = _levers(path, turns)
    columns = []
    for i, (body, M) in enumerate(zip(bodies, turns, strict=True)):
        column = [body.column.z if body.revolute else body.mass]
        if i > 0:
            f, t = _product(M, body.force), _product(M, body.torque)
            for j in reversed(range(i)):
                t = t + levers[j].cross(f)
                column.append(turns[j].T.r3.dot(t if path[j].revolute else f))  # Lin & Fang eq. (11)
        columns.append(column[::-1])
    return filled(columns)


def _to_end_effector(path: list[Step]) -> list[Mat3]:
    """ⁱₙR of every frame, base to tip: rows times the next rotation, 24M 12A per frame."""
    turns = [IDENTITY]
    for step in reversed(path[1:]):
        if len(turns) == 1:
            rows = step.R.matrix().T  # already available at run time (C1)
            turns.append(Mat3(*(run_time(row) for row in rows.rows)))
        else:
            turns.append(Mat3(*(step.R @ row for row in turns[-1].rows)))
    return turns[::-1]


def _levers(path: list[Step], turns: list[Mat3]) -> list[Vec3]:
    """ⁱ⁺¹ᵢs⟨n⟩: b along x of frame i and d along z of frame i+1."""
    levers = [path[-1].offset]
    for step, inner, outer in zip(path[-2:0:-1], turns[-3::-1], turns[-2::-1], strict=False):
        levers.append(inner.T.r1 * step.b + outer.T.r3 * step.d)
    return levers[::-1]


def _product(M: Mat3, v: Vec3) -> Vec3:
    """M v; a vector already in frame n counts as three run-time numbers."""
    return run_time(v) if M is IDENTITY else M @ v
