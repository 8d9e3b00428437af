"""From the robot as given to the one that is computed with: numbers snapped, frames slid, rotors merged.

Snapping: angles such as 1.5708 become right angles, lengths of 1e-9 m become zero, with a report of all changes.

If two neighbouring axes are parallel, their common normal may be anywhere along them, and the frame of a tip may be
anywhere along its axis. No joint-space quantity and no pose of the tool depends on the choice, but every d that becomes
0 shortens a program.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Literal

from armdyn.algebra import IDENTITY, Angle, Mat3, Scalar, Vec3, Z
from armdyn.algebra.scalar import is_number
from armdyn.chain.chain import Chain
from armdyn.chain.joint import Joint, Placement

SNAP = 1e-5  # radians; lengths use a hundredth of it, in metres
NOISE = 1e-6  # radians: what programs that write files leave of a right angle is smaller, or a rounding
ANGLES = ("roll", "pitch", "yaw", "beta", "theta", "turn")


@dataclass(frozen=True, slots=True)
class Snap:
    """One number that was snapped: where it stands, what was given and what is computed with."""

    where: str
    what: str
    given: float
    taken: float
    unit: Literal["rad", "m"]

    @property
    def change(self) -> float:
        """By how much the number was changed."""
        return abs(self.taken - self.given)

    def __str__(self) -> str:
        return f"{self.where}: {self.what} {self.given!r} taken as {self.taken!r} {self.unit}"


@dataclass(frozen=True, slots=True)
class SnapReport:
    """What was snapped, number by number, and the largest changes.

    `doubtful` are angles beyond the tolerance that look like a multiple of π/2 written with few digits.
    """

    changes: tuple[Snap, ...] = ()
    doubtful: tuple[Snap, ...] = ()

    def __add__(self, other: SnapReport) -> SnapReport:
        known = {(s.where, s.given) for s in self.doubtful}
        fresh = tuple(s for s in other.doubtful if (s.where, s.given) not in known)
        return SnapReport(self.changes + other.changes, self.doubtful + fresh)

    def __len__(self) -> int:
        return len(self.changes)

    @property
    def largest_angle(self) -> float:
        """The largest change of an angle, radians."""
        return max((s.change for s in self.changes if s.unit == "rad"), default=0.0)

    @property
    def largest_length(self) -> float:
        """The largest change of a length, metres."""
        return max((s.change for s in self.changes if s.unit == "m"), default=0.0)

    @property
    def uncertain(self) -> tuple[Snap, ...]:
        """Angles that were snapped although they are no rounding of a right angle: they may be meant as written."""
        return tuple(s for s in self.changes if s.unit == "rad" and s.what in ANGLES and _as_written(s))

    def __str__(self) -> str:
        if not self.changes:
            return "nothing was snapped"
        angles = sum(s.unit == "rad" for s in self.changes)
        texts = []
        if angles:
            texts.append(f"{angles} angle{'s' * (angles > 1)} by at most {self.largest_angle:.1e} rad")
        if lengths := len(self.changes) - angles:
            texts.append(f"{lengths} length{'s' * (lengths > 1)} by at most {self.largest_length:.1e} m")
        return "snapped " + " and ".join(texts)


def load_changes(chain: Chain, report: SnapReport, offset: float) -> tuple[float, ...]:
    """Per independent joint, a bound on how much the snapped numbers change its gravity torque, N m or N.

    A rotation of the bodies beyond a point by the angle δ, before or behind a joint, changes the torque by at most
    g δ Σ m r, because the derivative of the torque with respect to it is a double cross product with vectors no longer
    than r; a shift by ε changes it by at most g ε Σ m. The r are lengths along the arm plus radii of gyration, which
    are no smaller than a body's mean distance from its frame. `offset` is how far the points of the file (origins of
    links and joints) are from the frames of the bodies at most.
    """
    # A rotation whose entries differ by at most ε is one by at most 3 ε / √2; inertias turn about centres of mass.
    angles = sum(
        (3 / math.sqrt(2) if s.what == "rotation" else 1.0) * s.change
        for s in report.changes
        if s.unit == "rad" and not s.where.startswith("link ")
    )
    lengths = sum(s.change for s in report.changes if s.unit == "m")
    gravity = math.sqrt(float(chain.gravity.dot(chain.gravity)))
    changes = [0.0] * len(chain.joints)
    for i, link in enumerate(chain.links):
        mass, beyond = float(link.mass), offset
        if mass <= 0:
            continue
        inertia = link.inertia
        trace = max(float(inertia.xx + inertia.yy + inertia.zz), 0.0)
        beyond += max(math.sqrt(trace / (2 * mass)), _norm(link.com))
        for j in reversed(chain.path(i)):
            joint = chain.joints[j]
            if joint.free:
                continue
            if joint.prismatic:
                changes[j] += gravity * angles * mass
                ends = [abs(x) for x in (joint.limit.lower, joint.limit.upper) if x is not None]
                beyond += float(max(ends, default=0))
            else:
                changes[j] += gravity * mass * (angles * beyond + lengths)
            beyond += abs(float(joint.b)) + abs(float(joint.d)) + abs(float(joint.shift))
    totals = {i: changes[i] for i in chain.independent}
    for k, joint in enumerate(chain.joints):
        if joint.mimic is not None:
            leader, ratio, _ = chain.leader(joint)
            totals[leader] = totals.get(leader, 0.0) + abs(float(ratio)) * changes[k]
    return tuple(totals[i] for i in chain.independent)


def _norm(v: Vec3) -> float:
    return math.sqrt(float(v.dot(v)))


def _as_written(s: Snap) -> bool:
    """Whether an angle is further from its right angle than rounding or truncating to some digits explains."""
    nearest = abs(s.taken)
    cut = (f(nearest * 10**k) / 10**k for k in range(3, 16) for f in (round, math.floor))
    return s.change > NOISE and not any(abs(abs(s.given) - x) < 1e-15 for x in cut)


def few_digits(radians: float) -> float | None:
    """The multiple of π/2 that this angle is when written with two to four decimals, 1.571 say; else None."""
    nearest = round(radians / (math.pi / 2)) * (math.pi / 2)
    written = nearest != 0 and any(abs(radians - round(nearest, k)) < 1e-12 for k in (2, 3, 4))
    return nearest if written else None


def snapped(chain: Chain, snap: float) -> Chain:
    """The chain with angles within `snap` of a multiple of π/2 made exact and tiny lengths made zero."""

    def length(x: Scalar) -> Scalar:
        return _length(x, snap)

    def joint(j: Joint) -> Joint:
        return replace(
            j,
            b=length(j.b),
            d=length(j.d),
            shift=length(j.shift),
            turn=Angle.of(j.turn.radians, snap),
            beta=Angle.of(j.beta.radians, snap),
            theta=Angle.of(j.theta.radians, snap),
            gamma=Angle.of(j.gamma.radians, 0.0),
        )

    if not snap:
        return chain
    joints = tuple(joint(j) for j in chain.joints)
    base, tool = (snapped_placement(at, snap) for at in (chain.base, chain.tool))
    return replace(chain, joints=joints, base=base, tool=tool)


def snapped_placement(at: Placement, snap: float) -> Placement:
    """The placement with a rotation within `snap` of a right-angled one made exact and tiny lengths made zero."""
    return Placement(_squared(at.R, snap), Vec3(*(_length(x, snap) for x in at.p))) if snap else at


def _length(x: Scalar, snap: float) -> Scalar:
    return Fraction(0) if abs(x) <= snap / 100 else x


def _squared(R: Mat3, snap: float) -> Mat3:
    """The rotation made of zeros and ones where every entry is within `snap` of one."""
    nearest = Mat3(*(Vec3(*(Fraction(round(x)) for x in row)) for row in R.rows))
    return nearest if _apart(R, nearest) <= snap else R


def _apart(R: Mat3, other: Mat3) -> float:
    return max(abs(float(x)) for row in (R - other).rows for x in row)


def compare(given: Chain, taken: Chain) -> SnapReport:
    """What differs between a chain and the snapped chain: joints, base and tool."""
    changes, doubtful = [], []
    for i, (j, k) in enumerate(zip(given.joints, taken.joints, strict=True)):
        where = f"joint {j.name or i + 1}"
        for what in ("beta", "gamma", "theta", "turn"):
            a, b = getattr(j, what).radians, getattr(k, what).radians
            if a != b:
                changes.append(Snap(where, what, a, b, "rad"))
            elif (nearest := few_digits(b)) is not None:
                doubtful.append(Snap(where, what, a, nearest, "rad"))
        for what in ("b", "d", "shift"):
            a, b = getattr(j, what), getattr(k, what)
            if a != b:
                changes.append(Snap(where, what, float(a), float(b), "m"))
    for where in ("base", "tool"):
        p, q = getattr(given, where), getattr(taken, where)
        if p.R != q.R:
            changes.append(Snap(where, "rotation", _apart(p.R, q.R), 0.0, "rad"))
        changes += [Snap(where, "xyz", float(a), float(b), "m") for a, b in zip(p.p, q.p, strict=True) if a != b]
    return SnapReport(tuple(changes), tuple(doubtful))


def parallel(joint: Joint) -> bool:
    """Whether the joint's axis is parallel to the one before it."""
    return bool(joint.beta.sin == 0 and joint.gamma.sin == 0)


class _Links:
    """The links of a chain, and what is compensated of their weight, while their frames slide along their axes."""

    def __init__(self, chain: Chain) -> None:
        self.bodies = [list(chain.links), list(chain.compensated)]

    def slide(self, k: int, e: Scalar) -> None:
        """Link k in a frame in which its own stands at e along z."""
        for links in filter(None, self.bodies):
            links[k] = links[k].moved(IDENTITY, e * Z)

    def onto(self, chain: Chain) -> Chain:
        """The chain with these links."""
        links, compensated = map(tuple, self.bodies)
        return replace(chain, links=links, compensated=compensated)


@lru_cache(maxsize=256)
def canonical(chain: Chain) -> Chain:
    """The same robot with as many d's zero as the convention allows, and the rotors of first joints in their links.

    A tool that is not at the only tip stays where it is in its link's frame, which may be another one: see `reframed`.
    """
    joints, links = list(chain.joints), _Links(chain)
    for i in range(chain.bodies - 1, 0, -1):
        joint, parent = joints[i], chain.parents[i]
        if may_slide(chain, i) and parallel(joint) and joint.d != 0:
            e: Scalar = joint.beta.cos * joint.gamma.cos * joint.d
            joints[parent] = replace(joints[parent], d=joints[parent].d + e)
            links.slide(parent, -e)
            joints[i] = replace(joint, d=0 * joint.d)
    tool = chain.tool
    for tip in chain.tips:
        e = _slide_tip(chain, tip, joints, links)
        if len(chain.tips) == 1:
            tool = Placement(tool.R, tool.p + e * Z)
    slid = links.onto(replace(chain, joints=tuple(joints), tool=tool))
    return _first_rotors_in_links(slid)


def may_slide(chain: Chain, i: int) -> bool:
    """Whether the frame that joint i stands on may slide along its axis: a moving link with no other joint on it."""
    parent = chain.parents[i]
    return (
        parent >= 0 and not chain.joints[parent].free and chain.children[parent] == (i,) and not chain.joints[i].forked
    )


def _slide_tip(chain: Chain, tip: int, joints: list[Joint], links: _Links) -> Scalar:
    """Move the frames of the last parallel joints before a tip along their axes; how far the tip's own moved back."""
    group = [tip]
    while parallel(joints[group[-1]]) and may_slide(chain, group[-1]):
        group.append(chain.parents[group[-1]])
    start, *others = reversed(group)
    if joints[start].free:
        return 0
    e: Scalar = joints[start].d
    joints[start] = replace(joints[start], d=0 * e)
    links.slide(start, e)
    for k in others:
        e = joints[k].beta.cos * joints[k].gamma.cos * e
        links.slide(k, e)
    return e


def _first_rotors_in_links(chain: Chain) -> Chain:
    """The rotor of a turning joint on the fixed base, as part of its link, which turns about the same fixed axis."""
    joints, links = list(chain.joints), list(chain.links)
    for i, parent in enumerate(chain.parents):
        joint, J = joints[i], links[i].inertia
        if parent < 0 and joint.revolute and joint.rotor_inertia != 0:
            links[i] = replace(links[i], inertia=replace(J, zz=J.zz + joint.rotor_inertia))
            joints[i] = replace(joint, rotor_inertia=0)
    return replace(chain, joints=tuple(joints), links=tuple(links))


def slid_outwards(chain: Chain) -> Chain:
    """The same arm with the d's of neighbouring parallel axes gathered in the outermost joint.

    Recursions from the tip inwards then meet these lengths while their expressions are still short. Links or geometry
    that are not numbers, and chains with prismatic joints between parallel axes, are left unchanged.
    """
    known = all(is_number(x) for link in chain.links for x in link.natural)
    if not (known and chain.known_geometry):
        return chain
    # A floating base stands where its pose says, which is no constant; sliding leaves it alone.
    return replace(_slid_outwards(replace(chain, base=Placement())), base=chain.base)


@lru_cache(maxsize=256)
def _slid_outwards(chain: Chain) -> Chain:
    joints, links = list(chain.joints), _Links(chain)
    for i, parent in enumerate(chain.parents):
        inner, outer = joints[parent], joints[i]
        if may_slide(chain, i) and inner.revolute and outer.revolute and parallel(outer) and inner.d != 0:
            joints[parent] = replace(inner, d=0 * inner.d)
            links.slide(parent, inner.d)
            joints[i] = replace(outer, d=outer.d + outer.beta.cos * outer.gamma.cos * inner.d)
    return links.onto(replace(chain, joints=tuple(joints)))
