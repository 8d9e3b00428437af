"""Steps: what each joint contributes at this configuration, worked out once and used by every stage.

A chain is walked base to tip (or back) by its steps; step i leads from frame i-1 to frame i.
"""

from __future__ import annotations

from dataclasses import dataclass

from armdyn.algebra import JointRotation, Scalar, Vec3, on_hand, online
from armdyn.chain import Chain, Joint


@dataclass(frozen=True, slots=True)
class Step:
    """The joint, its rotation R (frame i into i-1) and its d, with q put in."""

    joint: Joint
    R: JointRotation
    d: Scalar

    @property
    def revolute(self) -> bool:
        """Whether the joint turns."""
        return self.joint.revolute

    @property
    def b(self) -> Scalar:
        """The distance along x of frame i-1."""
        return self.joint.b

    @property
    def axis(self) -> Vec3:
        """The joint's own axis uᵢ seen in frame i-1: constant, (0, -Sβ, Cβ) where γ = 0."""
        beta, gamma = self.joint.beta, self.joint.gamma
        return Vec3(gamma.sin, -beta.sin * gamma.cos, beta.cos * gamma.cos)

    @property
    def parent_axis(self) -> Vec3:
        """The axis uᵢ₋₁ of the joint before seen in frame i: a row of R, on hand and online (C1)."""
        return run_time(self.R.matrix().r3)

    @property
    def origin(self) -> Vec3:
        """The origin of frame i in frame i-1: (b, -d Sβ, d Cβ) where γ = 0."""
        axis = self.axis
        return Vec3(self.b + self.d * axis.x, self.d * axis.y, self.d * axis.z)

    @property
    def offset(self) -> Vec3:
        """The same vector seen in frame i: (b Cθ, -b Sθ, d) where γ = 0."""
        b, gamma = self.b * self.joint.gamma.cos, self.joint.gamma
        return Vec3(b * self.R.c, -(b * self.R.s), self.d + self.b * gamma.sin)

    @property
    def free_offset(self) -> Vec3:
        """The same, on hand and online: where a table of the papers does not charge for it (C4)."""
        return run_time(on_hand(lambda: self.offset))


def steps(chain: Chain, q: list[Scalar]) -> list[Step]:
    """One step a joint, base to tip."""
    return [Step(j, j.rotation(q_i), j.extension(q_i)) for j, q_i in zip(chain.joints, q, strict=True)]


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
