"""The common data of all readers and writers of robot files: the tool of a robot, its inertias, exact numbers.

The tool is, in this order: the frame that the caller names (``tool=``, or the end of the chain that ``tip=`` selects);
the tool that the file states; the only frame named by convention (`TOOL_NAMES`, in their order); the end of the chain
if there is one tip. Otherwise the robot has no tool (docs/adr/0028-the-tool.md).

What a file says of its links' inertias: a mass below zero is an error unless ``strict=False``. A moving body without
mass and inertia, and an inertia that no body can have, are notes; ``strict=True`` makes them errors.

Between text and exact rationals nothing is lost (`rational`, `number_text`, `placement_text`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction

from armdyn.algebra import IDENTITY, Angle, Mat3, Scalar, exact
from armdyn.chain import Chain, Link, Placement, exactly
from armdyn.chain.canonical import SnapReport
from armdyn.chain.chain import listed, named_like_a_tool
from armdyn.chain.joint import impossibility
from armdyn.errors import FileError, choose

Named = Iterable[tuple[str, Link]]


@dataclass(frozen=True)
class Frame:
    """A named frame fixed to a link; link 0 is the base."""

    name: str
    link: int
    placement: Placement

    def __repr__(self) -> str:
        try:
            xyz = ", ".join(f"{float(x):.6g}" for x in self.placement.p)
            rpy = ", ".join(f"{angle:.6g}" for angle in to_rpy(self.placement.R))
        except TypeError:  # symbols
            return f"Frame({self.name}, on link {self.link})"
        return f"Frame({self.name}, on link {self.link} at xyz=({xyz}) m, rpy=({rpy}) rad)"


@dataclass(frozen=True)
class Description:
    """An arm as given in its file, with exact numbers.

    Nothing is snapped, except what a reader must snap before it places frames.
    """

    name: str
    chain: Chain
    source: str = ""
    frames: tuple[Frame, ...] = ()
    snapped: SnapReport = SnapReport()  # what the reader snapped
    notes: tuple[str, ...] = ()  # what the reader tolerated or decided
    # Whether the file, or the part of it that was selected, says what the tool is.
    states_tool: bool = field(default=False, compare=False)
    tool_name: str = ""  # the tool's name, if the file states one
    link_frames: tuple[Frame, ...] = ()  # of each body, the frame of its link in the file; empty: the body's own


OTHER_TOOL = "tool= (--tool) takes"  # what every note on a tool found by its name says


def with_tool(description: Description, tool: str | None = None) -> Description:
    """The robot with its tool by the rule above; `asked` is the frame that the caller names."""
    if tool is not None:
        moving = {frame.name: frame for frame in description.frames if frame.link}
        return _at(description, moving[choose("frame that moves, for tool,", tool, moving)])
    if description.states_tool:
        return description
    moving = {frame.name: frame for frame in description.frames if frame.link}
    named = named_like_a_tool(list(moving))
    if len(named) == 1:
        note = f"the tool is the frame {named[0]!r}, by its name; {OTHER_TOOL} another"
        return replace(_at(description, moving[named[0]]), notes=(note, *description.notes))
    if len(named) > 1:
        end = (
            "the tool is the end of the chain" if len(description.chain.tips) == 1 else "the robot has no default tool"
        )
        note = f"several frames are named like a tool ({listed(named)}): {end}; {OTHER_TOOL} one of them"
        return replace(description, notes=(note, *description.notes))
    return description


def all_frames(arm: Description) -> tuple[Frame, ...]:
    """The named frames, and those of links with a name of their own, unlike link1, that no frame has."""
    names = {frame.name for frame in arm.frames} | {f"link{frame.link}" for frame in arm.link_frames}
    return (*arm.frames, *(frame for frame in arm.link_frames if frame.name not in names))


def tool_of(chain: Chain, frames: Sequence[Frame], name: str = "") -> Frame | None:
    """The tool of a chain; without a name it gets that of the frame at its place, a conventional one first."""
    carrier = chain.tool_carrier
    if not carrier:
        return None
    here = [frame.name for frame in frames if frame.link == carrier and frame.placement == chain.tool]
    called = name or next(iter((*named_like_a_tool(here), *here)), "tool")
    return Frame(called, carrier, chain.tool)


def _at(description: Description, frame: Frame) -> Description:
    chain = replace(description.chain, tool=frame.placement, tool_link=frame.link)
    return replace(description, chain=chain, tool_name=frame.name, states_tool=True)


HOLLOW = "tips with a shape but without mass (a gripper or tool whose inertia is not in the file?): "


def judged(label: str, links: Named, missing: list[str], strict: bool | None) -> tuple[str, ...]:
    """Notes on links that move: "link 'hand'" and its body; `missing` are those without mass and inertia."""
    notes = []
    for name, link in links:
        if link.mass < 0 and strict is not False:
            raise FileError(
                f"{label}: {name} has the mass {float(link.mass):g} kg: no mass is below zero. strict=False loads it "
                "all the same, with a note (command line: --no-strict)"
            )
        if faults := impossibility(link):
            notes.append(f"{name} has an inertia that no body can have: {faults}")
    if missing:
        notes.append(f"without <inertial>, so that mass and inertia of these moving links are 0: {', '.join(missing)}")
    if strict and notes:
        raise FileError(f"{label}: strict=True refuses it: {'; '.join(notes)}")
    return tuple(notes)


def merged(chain: Chain, single: Iterable[str]) -> list[tuple[str, Link]]:
    """The bodies of a chain by the names of their joints, except those of one link, which are judged as that link."""
    alone = set(single)
    bodies = zip(chain.joint_names, chain.links, strict=True)
    return [(f"the body that joint {name!r} moves", link) for name, link in bodies if name not in alone]


def of_arm_file(arm: Description, label: str, strict: bool | None) -> Description:
    """An arm file's description with the notes on its links."""
    names = (f"link {k} ({name})" for k, name in enumerate(arm.chain.joint_names, 1))
    notes = judged(label, zip(names, arm.chain.links, strict=True), [], strict)
    return replace(arm, notes=(*arm.notes, *notes)) if notes else arm


_DIGITS = 2000  # the longest decimal that is accepted
_LARGEST = 10**100  # larger numbers are rejected


def rational(value: object) -> Fraction | None:
    """The exact number of a value in a file; None if it is not a finite number below 1e100.

    A decimal is taken literally. A string "p/q" is a fraction, for numbers that no decimal represents.
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        parts = value.split("/")
        if len(parts) != 2 or not all(p.removeprefix("-").isdecimal() and len(p) < _DIGITS for p in parts):
            return None
        number = Fraction(int(parts[0]), int(parts[1])) if int(parts[1]) else None
        return number if number is not None and abs(number) < _LARGEST else None
    if isinstance(value, Decimal):
        # 1e999999999 is short as text, but its digits would exhaust the memory
        if not value.is_finite() or (value and abs(value.adjusted()) > 330) or len(value.as_tuple().digits) > _DIGITS:
            return None
        return Fraction(value) if abs(value) < _LARGEST else None
    if isinstance(value, int | float) and abs(value) < _LARGEST:  # false for NaN
        return exact(value)
    return None


def decimal_text(x: Scalar) -> str | None:
    """The decimal that equals `x`: the shortest form of its float if that is exact, otherwise all digits.

    None if no finite decimal, or only a very long one, equals it.
    """
    value = exact(x)
    with suppress(OverflowError):  # a number that is too large for a float has no short form
        short = repr(float(value))
        if Fraction(short) == value:
            return short
    twos = fives = 0
    rest = value.denominator
    while rest % 2 == 0:
        rest, twos = rest // 2, twos + 1
    while rest % 5 == 0:
        rest, fives = rest // 5, fives + 1
    places = max(twos, fives)
    if rest != 1 or places > _DIGITS // 2:
        return None
    digits = str(abs(value.numerator) * 10**places // value.denominator).rjust(places + 1, "0")
    sign = "-" if value < 0 else ""
    return f"{sign}{digits[: len(digits) - places]}.{digits[len(digits) - places :] or '0'}"


def number_text(x: Scalar) -> str:
    """`x` as a TOML value that reads back exactly: a decimal, or the string "p/q"."""
    value = exact(x)
    return decimal_text(value) or f'"{value.numerator}/{value.denominator}"'


def numbers_text(xs: Sequence[Scalar]) -> str:
    """A TOML array of exact numbers."""
    return f"[{', '.join(number_text(x) for x in xs)}]"


def from_rpy(roll: float, pitch: float, yaw: float) -> Mat3:
    """Rz(yaw) Ry(pitch) Rx(roll), exact at right angles."""
    r, p, y = (Angle.of(float(x)) for x in (roll, pitch, yaw))
    return exactly.from_rpy(r, p, y)


def to_rpy(R: Mat3) -> tuple[float, float, float]:
    """Roll, pitch, yaw of a rotation; at pitch ±π/2 the yaw is 0."""
    (r11, r12, r13), (r21, r22, r23), (r31, r32, r33) = ([float(x) for x in row] for row in R.rows)
    horizontal = math.hypot(r11, r21)
    pitch = math.atan2(-r31, horizontal)
    if horizontal < 1e-12:
        return math.atan2(r12 if r31 < 0 else -r12, r13 if r31 < 0 else r22), pitch, 0.0
    yaw = math.atan2(r21, r11)
    if horizontal < 1e-6:  # roll and yaw are known only together: the roll is that of the rotation without this yaw
        cy, sy = math.cos(yaw), math.sin(yaw)
        return math.atan2(sy * r13 - cy * r23, cy * r22 - sy * r12), pitch, yaw
    return math.atan2(r32, r33), pitch, yaw


def rpy_of(R: Mat3) -> tuple[float, float, float] | None:
    """The shortest roll, pitch, yaw that give exactly `R`; None if there are none."""
    if R == IDENTITY:
        return 0.0, 0.0, 0.0
    angles = to_rpy(R)
    for digits in (*range(2, 17), 30):
        r, p, y = rounded = tuple(round(angle, digits) + 0.0 for angle in angles)
        near = all(abs(x - angle) < 1e-14 for x, angle in zip(rounded, angles, strict=True))
        if near and from_rpy(r, p, y) == R:
            return r, p, y
    return None


def placement_text(placement: Placement) -> str:
    """A TOML table {xyz, rpy} that reads back exactly, with the rotation matrix if no rpy does."""
    rpy = rpy_of(placement.R)
    if rpy is not None:
        return f"{{ xyz = {numbers_text(tuple(placement.p))}, rpy = [{', '.join(map(repr, rpy))}] }}"
    rows = ", ".join(numbers_text(tuple(row)) for row in placement.R.rows)
    return f"{{ xyz = {numbers_text(tuple(placement.p))}, rotation = [{rows}] }}"
