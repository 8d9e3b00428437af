"""Writing new inertias to an existing URDF: the <inertial> of links is rewritten, every other byte stays.

A link of the arm is a moving link of the file with everything fixed to it. The change of its inertia is added to the
<inertial> of the moving link; the links fixed to it keep their numbers.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any
from xml.parsers import expat

from armdyn.algebra import ZERO, Sym3, Vec3
from armdyn.chain import Joint, Link
from armdyn.errors import FileError, InputError
from armdyn.files import urdf
from armdyn.files.description import Description, from_rpy
from armdyn.files.text import read_bytes, write_text
from armdyn.files.urdf_out import inertial_lines
from armdyn.files.urdf_tree import RawLink, read_tree
from armdyn.files.urdf_xml import without_late_declaration
from armdyn.options import Cut

_MASSLESS = '<inertial><mass value="0"/><inertia ixx="0" ixy="0" ixz="0" iyy="0" iyz="0" izz="0"/></inertial>'


def update(
    original: str | os.PathLike[str],
    out: str | os.PathLike[str],
    arm: Description,
    cut: Cut,
    snap: float,
) -> list[str]:
    """Write `original` to `out` with the arm's inertias; returns the names of the changed links."""
    before = urdf.robot(read_tree(original), cut, snap)
    _same_geometry(before, arm, str(original))
    changed = _changed_links(before, arm, os.fspath(original), cut.base)
    texts = {name: inertial_lines(link) or [_MASSLESS] for name, link in changed.items()}
    return rewritten(original, out, "link", "inertial", texts)


def rewritten(
    original: str | os.PathLike[str],
    out: str | os.PathLike[str],
    owner: str,
    part: str,
    texts: dict[str, list[str]],
) -> list[str]:
    """Write `original` to `out` with new lines for <part> in each <owner> named in `texts`; returns the names."""
    content = read_bytes(original)
    try:
        content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise FileError(f"{original}: only UTF-8 files can be updated in place: {error}") from error
    places = _Places(without_late_declaration(content)[0], owner, part).find()
    for name in sorted(texts, key=lambda name: places[name].start, reverse=True):  # from the end: offsets stay valid
        content = places[name].filled(content, texts[name])
    write_text(out, content.decode("utf-8"))
    return sorted(texts)


def _same_geometry(before: Description, arm: Description, where: str) -> None:
    def geometry(joint: Joint) -> tuple[Any, ...]:
        constants = joint.b, joint.beta, joint.gamma, joint.d, joint.theta, joint.turn, joint.shift
        return joint.name, joint.kind, *constants, joint.mimic

    ours, theirs = (([geometry(joint) for joint in d.chain.joints], d.chain.parents) for d in (arm, before))
    if ours != theirs:
        names = [", ".join(joint.name for joint in d.chain.joints) for d in (arm, before)]
        raise InputError(
            f"{where} is another arm: it has the joints {names[1]}, this arm {names[0]}; use the base, tip, "
            "lock and snap with which this arm was loaded"
        )


def _changed_links(before: Description, arm: Description, original: str, base: str | None) -> dict[str, Link]:
    """The moving links of the file whose inertias change, with the new inertias in their own frames."""
    tree = read_tree(original)
    places = {frame.name: frame.placement for frame in before.frames}
    changed = {}
    for joint, old, new in zip(arm.chain.joints, before.chain.links, arm.chain.links, strict=True):
        if old == new:
            continue
        name = tree.joints[joint.name].child if joint.name in tree.joints else base or tree.root
        back = places[name].inverse
        gain = Link.from_natural(tuple(n - o for n, o in zip(new.natural, old.natural, strict=True)))
        body = _own_body(tree.links[name]) + gain.moved(back.R, back.p)
        if body.mass == 0 and any(body.moment):
            raise InputError(f"link {name!r} would have a first moment without mass, which URDF cannot represent")
        changed[name] = body
    return changed


def _own_body(link: RawLink) -> Link:
    """The inertia of this link of the file alone, in its own frame."""
    xx, xy, xz, yy, yz, zz = link.inertia
    body = Link(link.mass, ZERO, Sym3(xx, xy, yy, xz, yz, zz))
    return body.moved(from_rpy(*map(float, link.rpy)), Vec3(*link.xyz))


@dataclass(frozen=True)
class _Place:
    """The byte range of a link's <inertial> (or a joint's <origin>) that is replaced; empty if there is none yet."""

    start: int
    end: int
    before: bytes = b""
    after: bytes = b""

    def filled(self, content: bytes, lines: list[str]) -> bytes:
        """The file with these lines in place of the range, with the same indentation."""
        line = content[content.rfind(b"\n", 0, self.start) + 1 : self.start]
        indent = line[: len(line) - len(line.lstrip())].decode()
        newline = "\r\n" if b"\r\n" in content else "\n"
        shift = len(lines[0]) - len(lines[0].lstrip())
        text = (newline + indent).join(line[shift:] for line in lines).encode()
        return content[: self.start] + self.before + text + self.after + content[self.end :]


class _Places:
    """Finds the byte ranges of <inertial> in the links of a URDF, or of <origin> in its joints."""

    def __init__(self, content: bytes, owner: str, part: str) -> None:
        self.content = content
        self.owner, self.part = owner, part
        self.found: dict[str, _Place] = {}
        self.path: list[str] = []
        self.link = ""
        self.started: set[str] = set()
        self.inside = False
        self.parser = expat.ParserCreate()
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end

    def find(self) -> dict[str, _Place]:
        self.parser.Parse(self.content, True)
        return self.found

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self.path.append(tag)
        at = self.parser.CurrentByteIndex
        if len(self.path) == 2 and tag == self.owner:
            self.link, end = attributes["name"], self._tag_end(at)
            empty = self.content[end - 2 : end] == b"/>"
            self.found[self.link] = _Place(end - 2, end, b">", f"</{tag}>".encode()) if empty else _Place(end, end)
        elif self.path[1:] == [self.owner, self.part] and self.link not in self.started:
            self.started.add(self.link)  # the first one counts
            end = self._tag_end(at)
            self.inside = self.content[end - 2 : end] != b"/>"  # an empty element ends where it starts
            self.found[self.link] = _Place(at, at if self.inside else end)

    def _end(self, tag: str) -> None:
        if self.path[1:] == [self.owner, self.part] and self.inside:
            self.inside = False
            at, start = self.parser.CurrentByteIndex, self.found[self.link].start
            self.found[self.link] = _Place(start, self._tag_end(max(at, start)))
        self.path.pop()

    def _tag_end(self, at: int) -> int:
        """The byte after the tag that starts at `at`; a > inside quotes does not end it."""
        quote = None
        for i in range(at, len(self.content)):
            c = self.content[i : i + 1]
            if quote is None and c in (b'"', b"'"):
                quote = c
            elif c == quote:
                quote = None
            elif quote is None and c == b">":
                return i + 1
        return len(self.content)
