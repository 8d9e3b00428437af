"""Snapping: angles such as 1.5708 become right angles, lengths of 1e-9 m become zero, with a report of all changes."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

from armdyn.algebra import Angle, Mat3, Scalar, Vec3
from armdyn.chain.chain import Chain
from armdyn.chain.joint import Joint
from armdyn.chain.placement import Placement

SNAP = 1e-5  # radians; lengths use a hundredth of it, in metres


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

    def __str__(self) -> str:
        if not self.changes:
            return "nothing was snapped"
        angles = sum(s.unit == "rad" for s in self.changes)
        parts = []
        if angles:
            parts.append(f"{angles} angle{'s' * (angles > 1)} by at most {self.largest_angle:.1e} rad")
        if lengths := len(self.changes) - angles:
            parts.append(f"{lengths} length{'s' * (lengths > 1)} by at most {self.largest_length:.1e} m")
        return "snapped " + " and ".join(parts)


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
