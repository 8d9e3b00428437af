"""Steps: each joint's transform at a configuration, computed once and used by all stages of a recursion.

A recursion goes from the base to the tips of a tree (outwards) or back (inwards) by its steps; step i leads from the
parent's frame to frame i. In an inward recursion, a parent sums the contributions of its children (`collect`).

Quantities of pairs of joints on one path (`pairs`): axes are carried outwards and body loads inwards, until they meet.
The inner joints are a connected part of the tree at its base. Axes are carried outwards over the inner joints and meet
each inner joint's own body on the way; body loads are carried inwards over all other joints and meet each joint's own
axis on the way; the remaining pairs meet in the outermost inner frames. Joints on different branches do not meet: their
entries are 0. In a chain the inner joints are those up to the meeting frame m.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Protocol, TypeVar

from armdyn.algebra import Angle, Scalar, Tally, Vec3, counting, on_hand, online
from armdyn.algebra.scalar import is_number
from armdyn.algebra.spatial import MotionVector, Transform, Wrench
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


Axis = TypeVar("Axis")
Load = TypeVar("Load")

_GENERIC = Fraction(7, 10)  # a generic constant, which does not fold


def pairs(
    walk: list[Step],
    inner: frozenset[int],
    axes: list[Axis],
    loads: list[Load],
    outward: Callable[[Step, Axis], Axis],
    inward: Callable[[Step, Load], Load],
    put: Callable[[int, int, Axis, Load], None],
) -> None:
    """Call `put(a, b, axis a, load b)`, both in one frame, for every joint b and every joint a between base and b."""
    met: dict[int, dict[int, Axis]] = {-1: {}}
    brought: dict[int, dict[int, Load]] = {}
    for k, step in enumerate(walk):
        if k in inner:
            seen = {a: outward(step, axis) for a, axis in met[step.parent].items()}
            for a, axis in seen.items():
                put(a, k, axis, loads[k])
            met[k] = {**seen, k: axes[k]}
    for k, step in reversed(list(enumerate(walk))):
        if k not in inner:
            beyond = brought.pop(k, {})
            for b, load in beyond.items():
                put(k, b, axes[k], load)
            carried = {b: inward(step, load) for b, load in {k: loads[k], **beyond}.items()}
            brought[step.parent] = {**carried, **brought.get(step.parent, {})}
    for k, beyond in brought.items():
        for b, load in beyond.items():
            for a, axis in met[k].items():
                put(a, b, axis, load)


def inner_joints(walk: list[Step], axis: int, load: int, passing: int, meeting: int) -> frozenset[int]:
    """The set of inner joints with the fewest operations in total.

    Every axis takes `axis` motions outwards and every body `load` wrenches inwards. A pair takes `passing` operations
    if an axis meets the body of a joint on its way, `meeting` operations in a meeting frame, and next to none if a load
    meets an axis on its way. The cost of a transport is counted joint by joint.
    """
    children: dict[int, list[int]] = {k: [] for k in range(-1, len(walk))}
    depth: dict[int, int] = {-1: 0}
    for k, step in enumerate(walk):
        children[step.parent].append(k)
        depth[k] = depth[step.parent] + (step.parent >= 0)
    size: dict[int, int] = {}
    outside: dict[int, int] = {}
    cost: dict[int, int] = {}
    best_inside: dict[int, bool] = {}
    for k in reversed(range(len(walk))):
        out, into = transport_costs(walk[k])
        size[k] = 1 + sum(size[c] for c in children[k])
        outside[k] = size[k] * load * into + sum(outside[c] for c in children[k])  # if k is not inner
        inside = depth[k] * (axis * out + passing) + sum(cost[c] for c in children[k])
        meet = outside[k] + size[k] * depth[k] * meeting
        best_inside[k], cost[k] = inside <= meet, min(inside, meet)
    inner: set[int] = set()
    for k, step in enumerate(walk):
        if best_inside[k] and (step.parent < 0 or step.parent in inner):
            inner.add(k)
    return frozenset(inner)


def countable(joint: Joint) -> Joint:
    """The joint with a generic number in place of every run-time constant."""

    def number(x: Scalar) -> Scalar:
        return x if is_number(x) else _GENERIC

    def angle(a: Angle) -> Angle:
        return a if is_number(a.cos) else Angle(0.7, _GENERIC, _GENERIC)

    b, d, shift = map(number, (joint.b, joint.d, joint.shift))
    beta, gamma, theta, turn = map(angle, (joint.beta, joint.gamma, joint.theta, joint.turn))
    return replace(joint, b=b, beta=beta, gamma=gamma, d=d, theta=theta, turn=turn, shift=shift)


def all_move(q: list[Scalar]) -> bool:
    """Whether no joint is fixed at a literal 0, as the six of a floating base are."""
    return not any(type(x) is int for x in q)


def transport_costs(step: Step) -> tuple[int, int]:
    """Operations to carry a motion outwards and a wrench inwards over this joint."""

    def number(x: Scalar) -> Scalar:
        return x if isinstance(x, int | Fraction) else Tally(0.7)

    x = Tally(0.7)
    full = Vec3(x, x, x)
    joint = countable(step.joint)
    R = replace(step.R, beta=joint.beta, gamma=joint.gamma, turn=joint.turn)
    step = replace(step, R=R, b=joint.b, shift=joint.shift)
    step = replace(step, R=replace(step.R, c=number(step.R.c), s=number(step.R.s)), d=number(step.d))
    with counting() as outward:
        step.motion_outward(MotionVector(full, full))
    with counting() as inward:
        step.wrench_inward(Wrench(full, full))
    return outward.operations().total, inward.operations().total


def with_rotors(chain: Chain, H: list[list[Scalar]]) -> list[list[Scalar]]:
    """H with the joints' rotor inertias on its diagonal, and the armatures of tendons."""
    turned = [
        [h + joint.rotor_inertia if i == j else h for j, h in enumerate(row)]
        for i, (joint, row) in enumerate(zip(chain.joints, H, strict=True))
    ]
    for tendon in chain.tendons:
        for i, c in tendon.joints if tendon.armature != 0 else ():
            for k, other in tendon.joints:
                turned[i][k] = turned[i][k] + tendon.armature * (c * other)
    return turned
