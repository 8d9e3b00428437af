"""Parsing the XML of a URDF. The file is not trusted.

The XML parser is the standard library's; document types and entities are rejected, depth and size are limited. Only
links, inertias, joints and rotor inertias are kept; meshes, materials and extensions are ignored silently. What other
readers tolerate is accepted with a note: an XML declaration that is not at the beginning, left-over xacro tags, unknown
attributes, and repeated elements (the first one is used).
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any
from xml.parsers import expat

from armdyn.chain.joint import DRIVE, NUMBERS
from armdyn.chain.servo import SERVO
from armdyn.errors import FileError
from armdyn.files.text import BLANK, is_text, read_bytes

LARGEST_FILE = 32 * 2**20  # bytes; the largest known URDF is below one megabyte
LARGEST_NUMBER = 1e100  # larger numbers are meaningless for a robot, and their squares may overflow
DEEPEST = 64
_KEPT = {
    "link": ("inertial", "visual", "armdyn"),
    "inertial": ("origin", "mass", "inertia"),
    "joint": ("origin", "parent", "child", "axis", "limit", "dynamics", "mimic", "armdyn", "mechanicalReduction"),
    "transmission": ("type", "joint", "actuator"),
    "actuator": ("drake:rotor_inertia", "drake:gear_ratio", "mechanicalReduction"),
    "robot": ("link", "joint", "transmission", "armdyn", "loop_joint"),
    "loop_joint": ("link1", "link2"),
    "armdyn": ("tendon",),
}
INERTIA = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
# Properties of a joint that URDF does not define: attributes of an element <armdyn>, which other readers ignore.
FORCES = (*(name for name in DRIVE if name not in ("viscous", "coulomb")), *NUMBERS, "ripple")
EXPONENT = "stribeck_exponent"
SERVOS = {f"servo_{name}": name for name in SERVO}
TENDON = ("stiffness", "rest", "damping", "armature")
_KNOWN = {
    "origin": ("xyz", "rpy"),
    "mass": ("value",),
    "inertia": INERTIA,
    "axis": ("xyz",),
    "parent": ("link",),
    "child": ("link",),
    "limit": ("lower", "upper", "velocity", "effort"),
    "dynamics": ("damping", "friction", "mu_viscous", "mu_coulomb"),
    "mimic": ("joint", "multiplier", "offset"),
    "armdyn": (*FORCES, EXPONENT, *SERVOS, "compensated_mass", "compensated_moment"),
    "tendon": ("name", "joints", "ratios", *TENDON),
    "drake:rotor_inertia": ("value",),
    "drake:gear_ratio": ("value",),
}
_WORDED, _LONG = ("type", "mechanicalReduction"), 200  # elements whose text is kept, and its length
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_LONGEST_EXACT = 40  # characters: longer numbers are rounded to a float
_MOST_NOTES = 20


@dataclass
class XmlElement:
    """An XML element of the robot, with its line number."""

    tag: str
    attributes: dict[str, str]
    line: int
    children: list[XmlElement] = field(default_factory=list)
    text: str = ""  # of an element without children

    def child(self, tag: str) -> XmlElement | None:
        """The first child with this tag."""
        return next((c for c in self.children if c.tag == tag), None)


class Notes:
    """Notes about a file: the first few, and the number of the others."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.more = 0
        self.twice: dict[str, list[str]] = {}  # what joints say twice, and the joints, for one note

    def add(self, line: str) -> None:
        """Add a note."""
        if len(self.lines) < _MOST_NOTES:
            self.lines.append(line)
        else:
            self.more += 1

    @property
    def all(self) -> tuple[str, ...]:
        """The notes, and how many more there are."""
        return (*self.lines, *([f"and {self.more} more notes about this file"] if self.more else []))


def content(source: str | os.PathLike[str]) -> tuple[bytes, str]:
    """The bytes of a file, or of a text that starts with `<`, and its label in messages."""
    if isinstance(source, str) and is_text(source):
        data, label = source.lstrip(BLANK).encode("utf-8", "surrogatepass"), "URDF text"
        # A str is already decoded, so the encoding in its XML declaration no longer applies.
        data = re.sub(rb"""^(<\?xml[^>]*?)\s+encoding=(["'])[^"']*\2""", rb"\1", data)
    else:
        data, label = read_bytes(source), Path(source).name
    if len(data) > LARGEST_FILE:
        raise FileError(f"{label}: {len(data)} bytes; at most {LARGEST_FILE} are read as URDF")
    return data, label


def without_late_declaration(data: bytes) -> tuple[bytes, str | None, int]:
    """The bytes with a misplaced XML declaration replaced by blanks, its encoding, and its line (0: none).

    A declaration is misplaced if it is not at the beginning. All byte offsets stay the same as in the file.
    """
    head = data[:4096]
    found = re.search(rb"<\?xml\s[^>]*\?>", head)
    if found is None or found.start() == 0 or re.search(rb"<[A-Za-z]", head[: found.start()]):
        return data, None, 0
    if data[: found.start()] == b"\xef\xbb\xbf":  # only a byte order mark precedes it
        return data, None, 0
    encoding = re.search(rb"""encoding=["']([A-Za-z0-9._-]+)["']""", found[0])
    blank = re.sub(rb"[^\r\n]", b" ", found[0])
    line = data.count(b"\n", 0, found.start()) + 1
    cleaned = data[: found.start()] + blank + data[found.end() :]
    return cleaned, encoding[1].decode() if encoding else None, line


def parse(data: bytes, label: str, notes: Notes) -> XmlElement:
    """The element <robot> of a URDF, with its links and joints."""
    data, encoding, line = without_late_declaration(data)
    if line:
        notes.add(f"{label}, line {line}: the XML declaration should be at the very beginning of the file")
    robot = _Parser(label, notes, encoding).parse(data)
    _notice_oddities(label, robot, notes)
    return robot


class _Parser:
    """An expat parser that rejects everything dangerous, keeps the elements in `_KEPT` and skips all others."""

    def __init__(self, label: str, notes: Notes, encoding: str | None) -> None:
        self.label = label
        self.notes = notes
        self.stack: list[XmlElement] = []
        self.skipped = 0  # depth inside an ignored element
        self.robot: XmlElement | None = None
        self.expat = expat.ParserCreate(encoding)
        self.expat.StartElementHandler = self._start
        self.expat.EndElementHandler = self._end
        self.expat.CharacterDataHandler = self._read
        self.expat.StartDoctypeDeclHandler = self._refuse("a document type (<!DOCTYPE>)")
        self.expat.EntityDeclHandler = self._refuse("an entity")
        self.expat.ExternalEntityRefHandler = self._refuse("an external entity")

    def parse(self, data: bytes) -> XmlElement:
        try:
            self.expat.Parse(data, True)
        except expat.ExpatError as error:
            raise FileError(f"{self.label}: not well-formed XML: {error}") from None
        except (LookupError, ValueError) as error:
            if isinstance(error, FileError):
                raise
            raise FileError(f"{self.label}: not readable as XML: {error}") from None
        if self.robot is None:
            raise FileError(f"{self.label}: no element <robot>")
        return self.robot

    def _refuse(self, what: str) -> Callable[..., Any]:
        def handler(*_: object) -> None:
            line = self.expat.CurrentLineNumber
            raise FileError(f"{self.label}, line {line}: {what} is not allowed in a URDF")

        return handler

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        line = self.expat.CurrentLineNumber
        if len(self.stack) + self.skipped >= DEEPEST:
            raise FileError(f"{self.label}, line {line}: elements nested more than {DEEPEST} deep")
        if self.robot is None:
            if tag != "robot":
                hint = "; an MJCF model is read from a file that ends in .xml or .mjcf" if tag == "mujoco" else ""
                raise FileError(f"{self.label}, line {line}: expected <robot>, got <{tag}>{hint}")
            self.robot = XmlElement(tag, attributes, line)
            self.stack.append(self.robot)
            return
        if not self.skipped and tag.startswith("xacro:"):
            self.notes.add(f"{self.label}, line {line}: the xacro tag <{tag}> is ignored")
        if self.skipped or tag not in _KEPT.get(self.stack[-1].tag, ()):
            self.skipped += 1
            return
        element = XmlElement(tag, attributes, line)
        self.stack[-1].children.append(element)
        self.stack.append(element)

    def _read(self, text: str) -> None:
        if self.stack and not self.skipped and self.stack[-1].tag in _WORDED and len(self.stack[-1].text) < _LONG:
            self.stack[-1].text += text

    def _end(self, tag: str) -> None:
        if self.skipped:
            self.skipped -= 1
        else:
            self.stack.pop()


def _notice_oddities(label: str, robot: XmlElement, notes: Notes) -> None:
    """Add notes about unknown attributes and repeated elements."""
    unknown: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for part in (part for part in robot.children if part.tag != "transmission"):
        owner = f"{part.tag} {part.attributes.get('name', '?')!r}"
        for element in (part, *part.children):
            tags = [child.tag for child in element.children]
            for k, child in enumerate(element.children):
                if child.tag in tags[:k] and child.tag not in ("visual", "tendon"):
                    notes.add(f"{label}, line {child.line}: {owner}: a second <{child.tag}> is ignored")
        for element in (e for child in part.children for e in (child, *child.children)):
            odd = tuple(key for key in element.attributes if key not in _KNOWN.get(element.tag, element.attributes))
            if odd:
                unknown.setdefault((element.tag, odd), []).append(f"{label}, line {element.line}: {owner}")
    for (tag, odd), places in unknown.items():
        more = f" (and {len(places) - 1} more)" if len(places) > 1 else ""
        attributes, known = ", ".join(map(repr, odd)), ", ".join(_KNOWN[tag])
        notes.add(f"{places[0]}: <{tag}> has the unknown attribute {attributes}{more}; known: {known}")


@dataclass(frozen=True)
class Reader:
    """Reads the attributes of one link or joint of a file; errors give the location."""

    label: str
    where: str  # "link 'hand'"

    def at(self, element: XmlElement) -> str:
        """The location of an element, as the beginning of an error message."""
        return f"{self.label}, line {element.line}: {self.where}: <{element.tag}>"

    def numbers(
        self, element: XmlElement | None, key: str, default: tuple[Fraction, ...], needed: bool = False
    ) -> tuple[Fraction, ...]:
        """The numbers of an attribute, as many as in `default`; an absent attribute has the default unless `needed`."""
        if element is None:
            return default
        if key not in element.attributes:
            odd = [name for name in element.attributes if name not in _KNOWN[element.tag]]
            if needed or (odd and element.tag in ("origin", "axis")):
                got = f", but {', '.join(map(repr, element.attributes))}" if element.attributes else ""
                raise FileError(f"{self.at(element)} has no {key}{got}")
            return default
        text = element.attributes[key]
        words = text.split()
        place = f"{self.label}, line {element.line}: {self.where}: {element.tag} {key}"
        if len(words) != len(default):
            raise FileError(f"{place} expects {len(default)} number{'s' * (len(default) > 1)}, got {text[:60]!r}")
        return tuple(_number(place, word) for word in words)

    def triple(self, element: XmlElement | None, key: str, default: tuple[Fraction, ...]) -> Any:
        """Three numbers."""
        return self.numbers(element, key, default)

    def one(
        self, element: XmlElement | None, key: str, default: Fraction = Fraction(0), needed: bool = False
    ) -> Fraction:
        """One number."""
        return self.numbers(element, key, (default,), needed)[0]


def _number(place: str, word: str) -> Fraction:
    if not _NUMBER.fullmatch(word):
        hint = "; a xacro expression: expand the file with `xacro` first" if "$" in word else ""
        raise FileError(f"{place} expects finite decimal numbers, got {word[:60]!r}{hint}")
    value = float(word)
    if not math.isfinite(value):
        raise FileError(f"{place} expects finite decimal numbers, got {word[:60]!r}")
    if abs(value) > LARGEST_NUMBER:
        raise FileError(f"{place} expects numbers below {LARGEST_NUMBER:g}, got {word[:60]!r}")
    if value == 0:  # also for 1e-999999999, whose exact value would exhaust the memory
        return Fraction(0)
    return Fraction(word) if len(word) <= _LONGEST_EXACT else Fraction(repr(value))
