"""Steps: what each joint contributes at this configuration, worked out once and used by every stage.

A tree is walked from the base to its tips (or back) by its steps; step i leads from the parent's frame to frame i. What
a link hands inwards is added to what its parent has from other children (`collect`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeVar

from armdyn.algebra import Scalar, Vec3, on_hand, online
from armdyn.algebra.spatial import Transform
from armdyn.chain import Chain, Joint


@dataclass(frozen=True, slots=True)
class Step(Transform):
    """The joint and its transform with q put in; `parent` is the index of the link it stands on, -1 for the base."""

    joint: Joint
    parent: int

    @classmethod
    def at(cls, joint: Joint, q: Scalar, parent: int) -> Step:
        """The step of a joint at q."""
        return cls(joint.rotation(q), joint.b, joint.extension(q), joint.shift, joint, parent)

    @property
    def revolute(self) -> bool:
        """Whether the joint turns."""
        return self.joint.revolute

    @property
    def parent_axis(self) -> Vec3:
        """The axis uᵢ₋₁ of the joint before seen in frame i: a row of R, on hand and online (C1)."""
        return run_time(self.R.matrix().r3)

    @property
    def free_offset(self) -> Vec3:
        """`offset`, on hand and online: where a table of the papers does not charge for it (C4)."""
        return run_time(on_hand(lambda: self.offset))


def steps(chain: Chain, q: list[Scalar]) -> list[Step]:
    """One step per joint, parents before children."""
    return [Step.at(*one) for one in zip(chain.joints, q, chain.parents, strict=True)]


class Addable(Protocol):
    """What can be added to its like."""

    def __add__(self: A, other: A) -> A:
        """The sum."""


A = TypeVar("A", bound=Addable)


def collect(brought: dict[int, A], parent: int, one: A) -> None:
    """Add what one child brings to what its parent has from the others."""
    brought[parent] = brought[parent] + one if parent in brought else one


def run_time(v: Vec3) -> Vec3:
    """A vector whose three entries all count as numbers known only at run time."""
    return Vec3(online(v.x), online(v.y), online(v.z))


def wrench_inwards(step: Step, f: Vec3, t: Vec3) -> tuple[Vec3, Vec3]:
    """A wrench carried from frame i to frame i-1, by d along the outer z and b along the inner x: 20M 12A.

    Lin & Fang 1999, eqs. (9), (10), (18). The constant force of a prismatic joint counts as online (C5).
    """
    lifted = Vec3(t.x - step.d * f.y, t.y + step.d * f.x, t.z)
    f, t = step.R @ f, step.R @ lifted
    t = Vec3(t.x, t.y - step.b * f.z, t.z + step.b * f.y)
    return run_time(f), t
