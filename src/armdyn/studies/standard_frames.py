"""Walker & Orin's method in standard Denavit-Hartenberg frames, to count what normal driving-axis frames save.

Frame i of link i lies at its outer end, joint i turns about the z axis of frame i-1. A composite body is therefore
formed in frame i and carried into frame i-1, where a unit acceleration of joint i is about z: n bodies are carried
inwards, one more than in frames on the joints, where the tip's body is where it is needed. The steps are those of
`walker_orin` otherwise. Revolute joints only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from armdyn.algebra import JointRotation, Operations, Scalar, Sym3, Tally, Vec3, counting, on_hand
from armdyn.algebra.scalar import ZERO_ANGLE
from armdyn.chain import Joint, Link
from armdyn.chain.chain import generic_chain
from armdyn.formulations.inertia_matrix.walker_orin import at_run_time, joined, one_body, wrench
from armdyn.formulations.steps import Matrix, filled, run_time
from armdyn.programs.cost import published


class _StandardStep:
    """From frame i to frame i-1: Rz(θ) Tz(d) Tx(a) Rx(α), with a and α given as b and β of the joint."""

    def __init__(self, joint: Joint, q: Scalar) -> None:
        c, s = joint.theta.plus(q)
        self.turn = JointRotation(ZERO_ANGLE, ZERO_ANGLE, c, s)
        self.tilt = JointRotation(joint.beta, ZERO_ANGLE, 1, 0)
        self.origin = run_time(on_hand(lambda: Vec3(joint.b * c, joint.b * s, joint.d)))  # as `free_offset` (C4)

    def __matmul__(self, v: Vec3) -> Vec3:
        return self.turn @ (self.tilt @ v)

    def similarity(self, J: Sym3) -> Sym3:
        return self.turn.similarity_by_products(self.tilt.similarity_by_products(J))


def inertia_matrix(joints: Sequence[Joint], links: Sequence[Link], q: Sequence[Scalar]) -> Matrix:
    """H(q) of a standard table (a and α as b and β of `joints`, `links` in the standard frames)."""
    path = [_StandardStep(joint, one) for joint, one in zip(joints, q, strict=True)]
    columns, outer = [], None
    for i in reversed(range(len(path))):
        body = at_run_time(one_body(links[i])) if outer is None else joined(one_body(links[i]), outer)
        centre = path[i] @ body.centre + path[i].origin
        outer = replace(body, centre=centre, inertia=path[i].similarity(body.inertia))
        f, t = wrench(True, outer)
        column = [t.z]
        for j in reversed(range(i)):
            f = path[j] @ f
            t = path[j] @ t + path[j].origin.cross(f)
            column.append(t.z)
        columns.append(column[::-1])
    return filled(columns[::-1])


def saved(kinds: str) -> Operations:
    """What the frames on the joints save, with the last link's numbers known at run time in both versions."""
    chain, table = generic_chain(kinds), generic_chain(f"R{kinds}").joints[1:]  # its first joint is special
    with counting() as counter:
        inertia_matrix(table, chain.links, [Tally(0.3 + 0.1 * k) for k in range(chain.n)])
    found = published(chain, "inertia_matrix", "walker_orin", constant_tip=False)
    return counter.operations() - Operations(found.mul, found.add, found.div, found.trig)
