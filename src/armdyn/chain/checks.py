"""Physical plausibility checks of an arm, with messages in plain words.

Published models often fail such checks and are still useful, so a finding is reported and never raised.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from armdyn.chain.canonical import SnapReport
from armdyn.chain.chain import Chain, contradicted
from armdyn.chain.frames import NEARLY, PARALLEL
from armdyn.chain.joint import DRIVE, Joint, Link, link_faults

_HEAVY = 1e5  # kg, kg m²: the heaviest robot arm moves a few tonnes
_LONG = 100.0  # metres: the longest robot arm, on a space station, has 17
_FAR = 1.0  # metres: a centre of mass nearer than this is never called far


WRONG = ("no inertia", "negative mass")  # what no robot has: a moving body without inertia, a mass below zero


@dataclass(frozen=True, slots=True)
class Implausibility:
    """Something implausible: the link or joint, the kind of problem, and its description."""

    where: str
    what: str
    text: str

    @property
    def wrong(self) -> bool:
        """Whether it makes results wrong; the rest is implausible, but computed with as it is."""
        return self.what in WRONG

    def __str__(self) -> str:
        return f"{self.where}: {self.text}"


def check(chain: Chain, snapped: SnapReport = SnapReport()) -> list[Implausibility]:
    """Everything implausible about the chain, link by link and joint by joint; an empty list if nothing is."""
    implausible: list[Implausibility] = []
    reach = _reach(chain)
    for i, (joint, link) in enumerate(zip(chain.joints, chain.links, strict=True), 1):
        here = f"link {i} ({joint.name})" if joint.name else f"link {i}"
        implausible += [Implausibility(here, what, text) for what, text in _of_link(link, reach)]
    if placeholder := _placeholder(chain):
        implausible.append(Implausibility("arm", "placeholder", placeholder))
    for i, (joint, parent) in enumerate(zip(chain.joints, chain.parents, strict=True), 1):
        before = chain.joints[parent] if parent >= 0 and not chain.joints[parent].free else None
        implausible += [
            Implausibility(f"joint {joint.name or i}", what, text) for what, text in _of_joint(joint, before)
        ]
    for k in contradicted(chain):
        joint, leader = chain.joints[k], chain.joints[chain.leader(chain.joints[k])[0]]
        text = f"its limits do not overlap the range of {leader.name or 'the joint'} that it mimics; they are ignored"
        implausible.append(Implausibility(f"joint {joint.name or k + 1}", "limits", text))
    return implausible + [
        Implausibility(s.where, "few digits", _few_digits(s.what, s.given, s.taken)) for s in snapped.doubtful
    ]


def _of_link(link: Link, reach: float) -> Iterator[tuple[str, str]]:
    yield from link_faults(link)
    if not any(link.natural):
        return
    mass, size = float(link.mass), max(abs(float(x)) for x in link.inertia.entries)
    if mass > _HEAVY:
        yield "magnitude", f"a mass of {mass:.3g} kg; other units?"
    elif size > _HEAVY:
        yield "magnitude", f"an inertia of {size:.3g} kg m²; other units?"
    far = math.hypot(*(float(x) for x in link.com))
    if far > max(_FAR, 2 * reach):
        yield "centre of mass", f"centre of mass {far:.3g} m from its frame, an arm of {reach:.3g} m; other units?"


def _placeholder(chain: Chain) -> str:
    bodies = [link.inertia_about_com for link in chain.links if any(link.inertia_about_com.entries)]
    if len(bodies) > 1 and all(J.xx == J.yy == J.zz and not any((J.xy, J.xz, J.yz)) for J in bodies):
        return "every link has the same inertia about all axes: placeholders, not a measured or designed arm?"
    return ""


def _of_joint(joint: Joint, before: Joint | None) -> Iterator[tuple[str, str]]:
    lower, upper = joint.limit.lower, joint.limit.upper
    if lower is not None and upper is not None and lower >= upper:
        fault = "are swapped" if lower > upper else "leave no room"
        yield "limits", f"limits {fault}: lower {lower:g}, upper {upper:g}"
    for name in ("velocity", "effort"):
        most = getattr(joint.limit, name)
        if most is not None and most < 0:
            yield "limits", f"negative {name} limit {most:g}"
    for name in DRIVE:
        value = getattr(joint, name)
        if value < 0:
            yield name, f"negative {name.replace('_', ' ')} {float(value):g}"
    if 0 < joint.static < joint.coulomb:
        yield "static", f"static friction {float(joint.static):g} below Coulomb friction {float(joint.coulomb):g}"
    for name in ("b", "d"):
        if abs(getattr(joint, name)) > _LONG:
            yield "magnitude", f"{name} of {float(getattr(joint, name)):.3g} m; other units?"
    if before is not None:
        apart = math.hypot(math.sin(joint.beta.radians) * math.cos(joint.gamma.radians), math.sin(joint.gamma.radians))
        if PARALLEL < apart < NEARLY:
            name = before.name or "the joint before"
            yield "nearly parallel", f"its axis is {apart:.2g} rad off parallel to that of {name}"


def _few_digits(what: str, given: float, taken: float) -> str:
    quarters = round(taken / (math.pi / 2))
    return (
        f"{what} {given:.7g} looks like {quarters}·π/2 written with few digits; "
        f"a snap of {1.1 * abs(given - taken):.1g} would take it so"
    )


def _reach(chain: Chain) -> float:
    """An upper bound of the arm's reach, with prismatic joints at their limits."""
    total = math.hypot(*(float(x) for x in chain.tool.p))
    for joint in chain.joints:
        total += math.hypot(float(joint.b), float(joint.d))
        if joint.prismatic:
            total += max((abs(end) for end in (joint.limit.lower, joint.limit.upper) if end is not None), default=0.0)
    return total
