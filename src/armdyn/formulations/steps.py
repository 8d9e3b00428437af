"""Steps: each joint's transform at a configuration, computed once and used by all stages of a recursion.

A recursion goes from the base to the tips of a tree (outwards) or back (inwards) by its steps; step i leads from the
parent's frame to frame i. In an inward recursion, a parent sums the contributions of its children (`collect`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeVar

from armdyn.algebra import Scalar, Vec3, on_hand, online
from armdyn.algebra.spatial import Transform
from armdyn.chain import Chain, Joint


@dataclass(frozen=True, slots=True)
class Step(Transform):
    """A joint and its transform at q; `parent` is the index of the link it is mounted on, -1 for the base."""

    joint: Joint
    parent: int

    @classmethod
    def at(cls, joint: Joint, q: Scalar, parent: int) -> Step:
        """The step of a joint at q."""
        return cls(joint.rotation(q), joint.b, joint.extension(q), joint.shift, joint, parent)

    @property
    def revolute(self) -> bool:
        """Whether the joint is revolute."""
        return self.joint.revolute

    @property
    def parent_axis(self) -> Vec3:
        """The axis uᵢ₋₁ of the previous joint in frame i: a row of R, already available at run time (C1)."""
        return run_time(self.R.matrix().r3)

    @property
    def free_offset(self) -> Vec3:
        """`offset` as already available at run time, where a table in the papers does not count it (C4)."""
        return run_time(on_hand(lambda: self.offset))


def steps(chain: Chain, q: list[Scalar]) -> list[Step]:
    """One step per joint, parents before children."""
    return [Step.at(*one) for one in zip(chain.joints, q, chain.parents, strict=True)]


class Addable(Protocol):
    """A type with addition."""

    def __add__(self: A, other: A) -> A:
        """The sum."""


A = TypeVar("A", bound=Addable)


def collect(brought: dict[int, A], parent: int, one: A) -> None:
    """Add the contribution of one child to the sum of its parent."""
    brought[parent] = brought[parent] + one if parent in brought else one


def run_time(v: Vec3) -> Vec3:
    """A vector whose three entries all count as run-time numbers."""
    return Vec3(online(v.x), online(v.y), online(v.z))


def wrench_inwards(step: Step, f: Vec3, t: Vec3) -> tuple[Vec3, Vec3]:
    """A wrench transformed from frame i to frame i-1, by d along the outer z and b along the inner x: 20M 12A.

    Lin & Fang 1999, eqs. (9), (10), (18). The constant force of a prismatic joint counts as a run-time number (C5).
    """
    lifted = Vec3(t.x - step.d * f.y, t.y + step.d * f.x, t.z)
    f, t = step.R @ f, step.R @ lifted
    t = Vec3(t.x, t.y - step.b * f.z, t.z + step.b * f.y)
    return run_time(f), t


Matrix = list[list[Scalar]]


def filled(columns: list[list[Scalar]]) -> Matrix:
    """The full matrix; column i is D_1i … D_ii."""
    n = range(len(columns))
    return [[columns[max(i, j)][min(i, j)] for i in n] for j in n]
