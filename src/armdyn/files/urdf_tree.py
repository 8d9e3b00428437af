"""The links and joints of a URDF as plain frozen data, checked to be one tree."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from armdyn.chain import Link, Placement
from armdyn.chain.joint_forces import NO_FORCES, NUMBERS, JointForces, Ripple
from armdyn.errors import FileError
from armdyn.files.urdf_xml import EXPONENT, INERTIA, Element, Notes, Reader, content, is_text, parse

MOST_LINKS = 2000  # the largest known robot has some 200; larger files are rejected within a second
KINDS = ("revolute", "continuous", "prismatic", "fixed", "floating", "planar")

Triple = tuple[Fraction, Fraction, Fraction]
_ZERO: Triple = (Fraction(0), Fraction(0), Fraction(0))
_X: Triple = (Fraction(1), Fraction(0), Fraction(0))
_XACRO = "; its xacro tags were ignored: expand the file with `xacro` first"


@dataclass(frozen=True)
class RawLink:
    """A link as written: mass, centre of mass, axes of the inertia, and xx xy xz yy yz zz about the centre of mass."""

    name: str
    massive: bool = False
    mass: Fraction = Fraction(0)
    xyz: Triple = _ZERO
    rpy: Triple = _ZERO
    inertia: tuple[Fraction, ...] = (Fraction(0),) * 6
    body: Link | None = None  # replaces the numbers above if the link does not come from a text


@dataclass(frozen=True)
class RawMimic:
    """A mimic relation: q = multiplier × q of `joint` + offset."""

    joint: str
    multiplier: Fraction = Fraction(1)
    offset: Fraction = Fraction(0)


@dataclass(frozen=True)
class RawJoint:
    """A joint as written."""

    name: str
    kind: str
    parent: str
    child: str
    xyz: Triple
    rpy: Triple
    axis: Triple
    limit: dict[str, Fraction]
    damping: Fraction
    friction: Fraction
    mimic: RawMimic | None
    line: int
    armature: Fraction = Fraction(0)  # from MJCF; in a URDF from <armdyn>, like the following fields
    static: Fraction = Fraction(0)
    stribeck: Fraction = Fraction(0)
    forces: JointForces = NO_FORCES
    placement: Placement | None = None  # replaces xyz and rpy if the joint does not come from a text

    @property
    def moving(self) -> bool:
        """Whether the joint is not fixed."""
        return self.kind != "fixed"

    @property
    def single(self) -> bool:
        """Whether the joint position is a single number."""
        return self.kind not in ("floating", "planar", "ball")


@dataclass(frozen=True)
class Tree:
    """The links and joints of a robot, checked to be one tree."""

    name: str
    label: str
    root: str
    links: dict[str, RawLink]
    joints: dict[str, RawJoint]
    below: dict[str, list[RawJoint]]  # link -> the joints of which it is the parent
    above: dict[str, RawJoint]  # link -> the joint of which it is the child
    notes: tuple[str, ...] = ()
    format: str = "URDF"  # the format of the file, for `Arm.source`
    tool: str = ""  # the link that the file states as the tool, in an element <armdyn> of the robot


def read_tree(
    source: str | os.PathLike[str],
    xacro: Mapping[str, Any] | None = None,
    package_dirs: Sequence[str | os.PathLike[str]] = (),
) -> Tree:
    """Read the tree of links and joints of a URDF or xacro file, or of a text that starts with `<`.

    `xacro` are the arguments of a xacro file, and `package_dirs` folders of packages that it refers to.
    """
    data, label, warnings = urdf_text(source, xacro, package_dirs)
    notes = Notes()
    for line in warnings:
        notes.add(f"{label}: xacro: {line}")
    robot = parse(data, label, notes)
    for tag in ("link", "joint"):
        count = sum(element.tag == tag for element in robot.children)
        if count > MOST_LINKS:
            raise FileError(f"{label}: {count} {tag}s; at most {MOST_LINKS} links and as many joints are read")
    links = _unique(label, "link", [_link(label, e) for e in robot.children if e.tag == "link"])
    joints = _unique(label, "joint", [_joint(label, e) for e in robot.children if e.tag == "joint"])
    hint = _XACRO if any("xacro tag" in note for note in notes.lines) else ""
    if not links:
        raise FileError(f"{label}: the robot has no links{hint}")
    name = robot.attributes.get("name") or (Path(label).stem if label != "URDF text" else "robot")
    stated = robot.child("armdyn")
    tool = "" if stated is None else stated.attributes.get("tool", "")
    return replace(connected(label, name, links, joints, notes.all, hint), tool=tool if tool in links else "")


def urdf_text(
    source: str | os.PathLike[str],
    xacro: Mapping[str, Any] | None = None,
    package_dirs: Sequence[str | os.PathLike[str]] = (),
) -> tuple[bytes, str, list[str]]:
    """The bytes of a URDF file, text or expanded .xacro file, its label, and what the macros warn of."""
    if is_text(source) or Path(source).suffix.lower() != ".xacro":
        return *content(source), []
    from armdyn.files.packages import Packages  # imported only if needed
    from armdyn.files.xacro import expanded

    text, warnings = expanded(source, xacro or {}, Packages.of(source, package_dirs))
    return content(text)[0], Path(source).name, warnings


def _name(label: str, element: Element, key: str = "name") -> str:
    name = element.attributes.get(key)
    if not name:
        raise FileError(f"{label}, line {element.line}: <{element.tag}> without {key}")
    return name


def _link(label: str, element: Element) -> RawLink:
    name = _name(label, element)
    inertial = element.child("inertial")
    if inertial is None:
        return RawLink(name)
    read, origin = Reader(label, f"link {name!r}"), inertial.child("origin")
    mass, inertia = (_needed(read, inertial, tag) for tag in ("mass", "inertia"))
    return RawLink(
        name,
        massive=True,
        mass=read.one(mass, "value", needed=True),
        xyz=read.triple(origin, "xyz", _ZERO),
        rpy=read.triple(origin, "rpy", _ZERO),
        inertia=tuple(read.one(inertia, key, needed=True) for key in INERTIA),
    )


def _needed(read: Reader, inertial: Element, tag: str) -> Element:
    found = inertial.child(tag)
    if found is None:
        raise FileError(f"{read.at(inertial)} has no <{tag}>; for a massless link, leave out <inertial>")
    return found


def _joint(label: str, element: Element) -> RawJoint:
    name = _name(label, element)
    read, at = Reader(label, f"joint {name!r}"), f"{label}, line {element.line}: joint {name!r}"
    kind = element.attributes.get("type")
    if kind not in KINDS:
        raise FileError(f"{at} has the unknown type {kind!r}; available: {', '.join(KINDS)}")
    origin, dynamics = element.child("origin"), element.child("dynamics")
    axis = read.numbers(element.child("axis"), "xyz", _X, needed=kind != "fixed")
    if kind != "fixed" and not any(axis):
        raise FileError(f"{at} has the axis 0 0 0; expected a nonzero vector")
    limit = element.child("limit")
    own = element.child("armdyn")
    bounds = {k: read.one(limit, k) for k in ("lower", "upper", "velocity", "effort")} if limit else {}
    return RawJoint(
        name,
        kind,
        parent=_end(at, label, element, "parent"),
        child=_end(at, label, element, "child"),
        xyz=read.triple(origin, "xyz", _ZERO),
        rpy=read.triple(origin, "rpy", _ZERO),
        axis=(axis[0], axis[1], axis[2]),
        limit={k: v for k, v in bounds.items() if limit is not None and k in limit.attributes},
        damping=read.one(dynamics, "damping"),
        friction=read.one(dynamics, "friction"),
        mimic=_mimic(label, read, element.child("mimic")),
        line=element.line,
        armature=read.one(own, "rotor_inertia"),
        static=read.one(own, "static"),
        stribeck=read.one(own, "stribeck"),
        forces=_forces(read, own),
    )


def _forces(read: Reader, own: Element | None) -> JointForces:
    if own is None:
        return NO_FORCES
    numbers: dict[str, Any] = {key: read.one(own, key) for key in NUMBERS}
    words = own.attributes.get("ripple", "").split()
    if len(words) % 3 or not all(per_turn.isdecimal() and int(per_turn) for per_turn in words[::3]):
        raise FileError(f"{read.at(own)} ripple expects triples (per turn, sine, cosine), got {' '.join(words)[:60]!r}")
    row = read.numbers(own, "ripple", (Fraction(0),) * len(words)) if words else ()
    triples = zip(row[::3], row[1::3], row[2::3], strict=True)
    ripples = tuple(Ripple(int(k), sine, cosine) for k, sine, cosine in triples)
    exponent = read.one(own, EXPONENT, Fraction(2))
    if exponent.denominator > 1 or exponent < 2 or exponent % 2:
        raise FileError(f"{read.at(own)} {EXPONENT} must be an even whole number, got {own.attributes[EXPONENT]!r}")
    return JointForces(ripples=ripples, stribeck_exponent=int(exponent), **numbers)


def _end(at: str, label: str, element: Element, tag: str) -> str:
    end = element.child(tag)
    if end is None:
        raise FileError(f"{at} has no <{tag}>")
    return _name(label, end, "link")


def _mimic(label: str, read: Reader, element: Element | None) -> RawMimic | None:
    if element is None:
        return None
    multiplier = read.one(element, "multiplier", Fraction(1))
    return RawMimic(_name(label, element, "joint"), multiplier, read.one(element, "offset"))


def _unique(label: str, what: str, items: list[Any]) -> dict[str, Any]:
    table: dict[str, Any] = {}
    for item in items:
        if item.name in table:
            raise FileError(f"{label}: two {what}s are named {item.name!r}")
        table[item.name] = item
    return table


def connected(
    label: str,
    name: str,
    links: dict[str, RawLink],
    joints: dict[str, RawJoint],
    notes: tuple[str, ...] = (),
    hint: str = "",
) -> Tree:
    """The tree of these links and joints, or an error that says why they do not form one."""
    above: dict[str, RawJoint] = {}
    below: dict[str, list[RawJoint]] = {link: [] for link in links}
    for joint in joints.values():
        for end in (joint.parent, joint.child):
            if end not in links:
                raise FileError(
                    f"{label}, line {joint.line}: joint {joint.name!r} names the unknown link {end!r}{hint}"
                )
        if joint.child in above:
            other = above[joint.child].name
            raise FileError(f"{label}: link {joint.child!r} is the child of two joints, {other!r} and {joint.name!r}")
        above[joint.child] = joint
        below[joint.parent].append(joint)
    roots = [link for link in links if link not in above]
    if len(roots) > 1:
        shown = ", ".join(map(repr, roots[:10]))
        raise FileError(f"{label}: more than one root link: {shown}; expected one tree{hint}")
    reached, waiting = set(roots), list(roots)
    while waiting:
        for joint in below[waiting.pop()]:
            reached.add(joint.child)
            waiting.append(joint.child)
    if len(reached) < len(links):
        looped = next(link for link in links if link not in reached)
        raise FileError(f"{label}: the joints form a loop: link {looped!r} is not connected to a root link")
    return Tree(name, label, roots[0], links, joints, below, above, notes)
