"""URDF text -> its links and joints, as plain frozen data. Nothing is trusted.

The XML parser is the standard library's; document types and entities are refused, depth and size are
limited, names are unique, and the joints form one tree. Only links, inertias and joints are kept:
meshes, materials, transmissions and extensions pass by without a word.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any
from xml.parsers import expat

from armdyn.errors import FileError

LARGEST_FILE = 32 * 2**20  # bytes; the largest URDF in the wild is below one megabyte
DEEPEST = 64
MOST_LINKS = 5000
KINDS = ("revolute", "continuous", "prismatic", "fixed", "floating", "planar")
_KEPT = {
    "link": ("inertial",),
    "inertial": ("origin", "mass", "inertia"),
    "joint": ("origin", "parent", "child", "axis", "limit", "dynamics", "mimic"),
    "robot": ("link", "joint"),
}
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_LONGEST_EXACT = 40  # characters: what is longer is read as a float

Triple = tuple[Fraction, Fraction, Fraction]
_ZERO: Triple = (Fraction(0), Fraction(0), Fraction(0))
_X: Triple = (Fraction(1), Fraction(0), Fraction(0))


@dataclass
class Element:
    """An XML element that matters, with the line it stands on."""

    tag: str
    attributes: dict[str, str]
    line: int
    children: list[Element] = field(default_factory=list)

    def child(self, tag: str) -> Element | None:
        """The first child with this tag."""
        return next((c for c in self.children if c.tag == tag), None)


@dataclass(frozen=True)
class RawLink:
    """A link as written: mass, centre of mass, the inertia's axes, and xx xy xz yy yz zz about the centre."""

    name: str
    massive: bool = False
    mass: Fraction = Fraction(0)
    xyz: Triple = _ZERO
    rpy: Triple = _ZERO
    inertia: tuple[Fraction, ...] = (Fraction(0),) * 6


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
    mimic: tuple[str, Fraction, Fraction] | None
    line: int

    @property
    def moving(self) -> bool:
        """Whether the joint moves at all."""
        return self.kind != "fixed"


@dataclass(frozen=True)
class Tree:
    """The links and joints of a robot, checked to be one tree."""

    name: str
    label: str
    root: str
    links: dict[str, RawLink]
    joints: dict[str, RawJoint]
    below: dict[str, list[RawJoint]]  # the joints that hang off a link
    above: dict[str, RawJoint]  # the joint a link hangs on


def read_tree(source: str | Path) -> Tree:
    """The tree of links and joints of a URDF file, or of a text that starts with `<`."""
    data, label = _bytes(source)
    robot = _Parser(label).parse(data)
    if len(robot.children) > 2 * MOST_LINKS:
        raise FileError(f"{label}: {len(robot.children)} links and joints; at most {MOST_LINKS} of each are read")
    links = _unique(label, "link", [_link(label, e) for e in robot.children if e.tag == "link"])
    joints = _unique(label, "joint", [_joint(label, e) for e in robot.children if e.tag == "joint"])
    if not links:
        raise FileError(f"{label}: a robot without links")
    name = robot.attributes.get("name") or (Path(label).stem if label != "URDF text" else "robot")
    return _tree(label, name, links, joints)


def _bytes(source: str | Path) -> tuple[bytes, str]:
    if isinstance(source, str) and source.lstrip("\ufeff \t\r\n").startswith("<"):
        data, label = source.lstrip("\ufeff \t\r\n").encode(), "URDF text"
        # A str is already decoded: what its declaration says about bytes no longer holds.
        data = re.sub(rb"""^(<\?xml[^>]*?)\s+encoding=(["'])[^"']*\2""", rb"\1", data)
    else:
        path = Path(source)
        label = path.name
        try:
            if path.stat().st_size > LARGEST_FILE:
                raise FileError(f"{label}: {path.stat().st_size} bytes; at most {LARGEST_FILE} are read as URDF")
            data = path.read_bytes()
        except (OSError, ValueError) as error:
            if isinstance(error, FileError):
                raise
            raise FileError(f"{path}: cannot be read ({getattr(error, 'strerror', error)})") from error
    if len(data) > LARGEST_FILE:
        raise FileError(f"{label}: {len(data)} bytes; at most {LARGEST_FILE} are read as URDF")
    return data, label


class _Parser:
    """Expat with everything dangerous refused; keeps what `_KEPT` allows in one another, skips the rest."""

    def __init__(self, label: str) -> None:
        self.label = label
        self.stack: list[Element] = []
        self.skipped = 0  # depth inside an element that is passed by
        self.robot: Element | None = None
        self.expat = expat.ParserCreate()
        self.expat.StartElementHandler = self._start
        self.expat.EndElementHandler = self._end
        self.expat.StartDoctypeDeclHandler = self._refuse("a document type (<!DOCTYPE>)")
        self.expat.EntityDeclHandler = self._refuse("an entity")
        self.expat.ExternalEntityRefHandler = self._refuse("an external entity")

    def parse(self, data: bytes) -> Element:
        try:
            self.expat.Parse(data, True)
        except expat.ExpatError as error:
            raise FileError(f"{self.label}: not well-formed XML: {error}") from None
        except (LookupError, ValueError) as error:
            if isinstance(error, FileError):
                raise
            raise FileError(f"{self.label}: not readable as XML: {error}") from None
        if self.robot is None:
            raise FileError(f"{self.label}: no <robot> in it")
        return self.robot

    def _refuse(self, what: str) -> Callable[..., Any]:
        def handler(*_: object) -> None:
            line = self.expat.CurrentLineNumber
            raise FileError(f"{self.label}, line {line}: {what} is refused; a URDF needs none")

        return handler

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        line = self.expat.CurrentLineNumber
        if len(self.stack) + self.skipped >= DEEPEST:
            raise FileError(f"{self.label}, line {line}: elements nested more than {DEEPEST} deep")
        if tag.startswith("xacro:"):
            raise FileError(f"{self.label}, line {line}: <{tag}>: this is a xacro file; expand it with `xacro` first")
        if self.robot is None:
            if tag != "robot":
                raise FileError(f"{self.label}, line {line}: expected <robot>, got <{tag}>")
            self.robot = Element(tag, attributes, line)
            self.stack.append(self.robot)
            return
        if self.skipped or tag not in _KEPT.get(self.stack[-1].tag, ()):
            self.skipped += 1
            return
        element = Element(tag, attributes, line)
        self.stack[-1].children.append(element)
        self.stack.append(element)

    def _end(self, tag: str) -> None:
        if self.skipped:
            self.skipped -= 1
        else:
            self.stack.pop()


def _numbers(label: str, where: str, element: Element | None, key: str, default: tuple[Fraction, ...]) -> Any:
    """The numbers of an attribute, as many as `default` has."""
    if element is None or key not in element.attributes:
        return default
    text = element.attributes[key]
    words = text.split()
    place = f"{label}, line {element.line}: {where}: {element.tag} {key}"
    if len(words) != len(default):
        raise FileError(f"{place} expects {len(default)} number{'s' * (len(default) > 1)}, got {text[:60]!r}")
    return tuple(_number(place, word) for word in words)


def _number(place: str, word: str) -> Fraction:
    if not _NUMBER.fullmatch(word):
        raise FileError(f"{place} expects finite decimal numbers, got {word[:60]!r}")
    value = float(word)
    if not math.isfinite(value):
        raise FileError(f"{place} expects finite decimal numbers, got {word[:60]!r}")
    if value == 0:  # also 1e-999999999, whose exact value nobody wants to write out
        return Fraction(0)
    return Fraction(word) if len(word) <= _LONGEST_EXACT else Fraction(repr(value))


def _one(label: str, where: str, element: Element | None, key: str, default: Fraction = Fraction(0)) -> Fraction:
    value: Fraction = _numbers(label, where, element, key, (default,))[0]
    return value


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
    where, origin, inertia = f"link {name!r}", inertial.child("origin"), inertial.child("inertia")
    return RawLink(
        name,
        massive=True,
        mass=_one(label, where, inertial.child("mass"), "value"),
        xyz=_numbers(label, where, origin, "xyz", _ZERO),
        rpy=_numbers(label, where, origin, "rpy", _ZERO),
        inertia=tuple(_one(label, where, inertia, key) for key in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")),
    )


def _joint(label: str, element: Element) -> RawJoint:
    name = _name(label, element)
    where, at = f"joint {name!r}", f"{label}, line {element.line}: joint {name!r}"
    kind = element.attributes.get("type")
    if kind not in KINDS:
        raise FileError(f"{at} is of unknown kind {kind!r}; known: {', '.join(KINDS)}")
    origin, dynamics = element.child("origin"), element.child("dynamics")
    axis = _numbers(label, where, element.child("axis"), "xyz", _X)
    if kind != "fixed" and not any(axis):
        raise FileError(f"{at} has the axis 0 0 0, which is no direction")
    limit = element.child("limit")
    bounds = {k: _one(label, where, limit, k) for k in ("lower", "upper", "velocity", "effort")} if limit else {}
    return RawJoint(
        name,
        kind,
        parent=_end(at, label, element, "parent"),
        child=_end(at, label, element, "child"),
        xyz=_numbers(label, where, origin, "xyz", _ZERO),
        rpy=_numbers(label, where, origin, "rpy", _ZERO),
        axis=axis,
        limit={k: v for k, v in bounds.items() if limit is not None and k in limit.attributes},
        damping=_one(label, where, dynamics, "damping"),
        friction=_one(label, where, dynamics, "friction"),
        mimic=_mimic(label, where, element.child("mimic")),
        line=element.line,
    )


def _end(at: str, label: str, element: Element, tag: str) -> str:
    end = element.child(tag)
    if end is None:
        raise FileError(f"{at} has no <{tag}>")
    return _name(label, end, "link")


def _mimic(label: str, where: str, element: Element | None) -> tuple[str, Fraction, Fraction] | None:
    if element is None:
        return None
    multiplier = _one(label, where, element, "multiplier", Fraction(1))
    return _name(label, element, "joint"), multiplier, _one(label, where, element, "offset")


def _unique(label: str, what: str, items: list[Any]) -> dict[str, Any]:
    table: dict[str, Any] = {}
    for item in items:
        if item.name in table:
            raise FileError(f"{label}: two {what}s are called {item.name!r}")
        table[item.name] = item
    return table


def _tree(label: str, name: str, links: dict[str, RawLink], joints: dict[str, RawJoint]) -> Tree:
    """The tree, or an error that says why these links and joints are none."""
    above: dict[str, RawJoint] = {}
    below: dict[str, list[RawJoint]] = {link: [] for link in links}
    for joint in joints.values():
        for end in (joint.parent, joint.child):
            if end not in links:
                raise FileError(f"{label}, line {joint.line}: joint {joint.name!r} names the unknown link {end!r}")
        if joint.child in above:
            other = above[joint.child].name
            raise FileError(f"{label}: link {joint.child!r} hangs on two joints, {other!r} and {joint.name!r}")
        above[joint.child] = joint
        below[joint.parent].append(joint)
    roots = [link for link in links if link not in above]
    if len(roots) > 1:
        raise FileError(f"{label}: more than one root link: {', '.join(map(repr, roots[:10]))}; one tree is expected")
    reached, waiting = set(roots), list(roots)
    while waiting:
        for joint in below[waiting.pop()]:
            reached.add(joint.child)
            waiting.append(joint.child)
    if len(reached) < len(links):
        circle = next(link for link in links if link not in reached)
        raise FileError(f"{label}: the joints run in a circle: link {circle!r} is above itself")
    return Tree(name, label, roots[0], links, joints, below, above)
