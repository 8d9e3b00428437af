"""The arm file (TOML), read and written losslessly.

Every decimal is read as the exact rational number and written back as the same decimal: an arm that is written and read
back is identical. The less common keys are

- ``gamma`` of a joint: the small rotation about y for nearly parallel axes;
- ``moment`` (m·c) in place of ``com`` and ``inertia_at_origin`` (about the frame's origin) in place of ``inertia``, for
  links whose centre of mass no decimal represents, or whose source gives these;
- ``rotation`` (three rows) in place of ``rpy``; ``[[frame]]`` with name, link (0 is the base), xyz, rpy;
- ``name`` and ``frame = { xyz, rpy }`` of a link: what it is called where the numbers come from, and where its frame
  there is in the frame of this table; both are for output only;
- ``link`` and ``name`` of the tool: the link that carries it, from 1, if it is not the only tip, and what it is called;
- a string "p/q" in place of a number;
- ``parent`` of a joint: the parent joint by name or number (0 is the base), if it is not the previous joint; ``turn``
  and ``shift`` about and along the parent's z axis, for all but one of the joints of a branching link;
  ``mimic = { joint, multiplier, offset }``, with the name or number of the leader; ``kind = "free"`` of the first joint
  for a floating base; such a joint has only a name and a link;
- ``compensated = { mass, moment }`` of a joint: the part of its link whose weight something else carries;
- ``[[tendon]]`` with ``name``, ``joints`` (names or numbers), ``ratios`` c, and ``stiffness``, ``rest``, ``damping``,
  ``armature`` along Σ c q;
- ``servo = { kp, kd, delay, dead_band, resolution, lag }`` of a joint whose motor takes positions;
- ``static`` and ``stribeck`` (with ``stribeck_exponent``) friction of a joint, and its other forces by the names of
  `JointForces`: ``offset``, ``stiffness``, …, and ``ripple``, an array of tables ``{ per_turn, sine, cosine }``.

With ``convention = "standard"`` a joint has ``a`` and ``alpha`` in place of ``b`` and ``beta``, and the data of link i
is given in the standard frame i (far end of the link, on the axis of the next joint).
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from pathlib import Path
from typing import Any, NoReturn, cast

from armdyn.algebra import IDENTITY, ZERO, Angle, Mat3, Sym3, Vec3
from armdyn.algebra.scalar import ZERO_ANGLE
from armdyn.chain import Chain, Joint, JointForces, Limit, Link, Mimic, Placement, Ripple, Servo, Tendon
from armdyn.chain.joint import DRIVE, MASSLESS, NUMBERS, Kind
from armdyn.chain.servo import SERVO
from armdyn.errors import FileError, InputError
from armdyn.files.description import (
    Description,
    Frame,
    from_rpy,
    number_text,
    numbers_text,
    placement_text,
    rational,
    tool_of,
    with_tool,
)
from armdyn.files.dh import along, to_modified
from armdyn.files.text import read_bytes, write_text

_TOP = ("name", "convention", "source", "gravity", "base", "tool", "joint", "frame", "tendon")
_GEOMETRY = {"modified": ("b", "beta"), "standard": ("a", "alpha")}
_TREE = ("parent", "turn", "shift", "mimic", "compensated")
_TENDON = ("stiffness", "rest", "damping", "armature")
_JOINT = ("gamma", "d", "theta", "limit", *DRIVE, *NUMBERS, "ripple", "stribeck_exponent", "servo", "link")
_LIMIT = ("lower", "upper", "velocity", "effort")
_LINK = ("mass", "com", "inertia", "moment", "inertia_at_origin", "name", "frame")
LARGEST_FILE = 2**20  # bytes, so that an oversized file is rejected within a second; 60 joints take 60 kB
MOST_JOINTS = 500
# Dotted keys (a.b.c = 1) nest tables; the parser takes memory in proportion to the square of their parts.
_PARTS = 16
_NO_KEY = re.compile(
    r"""\"{3}(?:[^\\]|\\.)*?\"{3}|\'{3}.*?\'{3}|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|\#[^\n]*""", re.DOTALL
)  # strings and comments
_DOTTED = re.compile(rf'(?<![\w-])(?:(?:[\w-]++|"")[ \t]*+\.[ \t]*+){{{_PARTS}}}')
_GRAVITY = Vec3(Fraction(0), Fraction(0), Fraction(-981, 100))


def read(path: str | os.PathLike[str]) -> Description:
    """Read an arm file."""
    return parse(read_bytes(path), str(path), Path(path).stem)


def parse(content: bytes, where: str, name: str = "") -> Description:
    """The arm in the bytes of a file; `where` is the prefix of every error message."""
    if len(content) > LARGEST_FILE:
        raise FileError(f"{where}: {len(content)} bytes; arm files of at most {LARGEST_FILE} bytes are read")
    try:
        text = content.decode("utf-8")
        if long := _DOTTED.search(_NO_KEY.sub('""', text)):
            raise FileError(f"{where}: a key of more than {_PARTS} parts: {long[0][:40]}...; arm files have none")
        data = tomllib.loads(text, parse_float=Decimal)
    except (ValueError, RecursionError, InvalidOperation) as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"{where}: not valid TOML: {error}") from error
    top = Table(where, data)
    top.only(_TOP)
    convention = top.one_of("convention", _GEOMETRY, "modified")
    rows = top.require("joint")
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        top.fail("joint must be one or more tables [[joint]], base to tip")
    if len(rows) > MOST_JOINTS:
        top.fail(f"{len(rows)} joints; at most {MOST_JOINTS} are read")
    tables = [Table(_joint_place(where, i, row), row) for i, row in enumerate(rows, 1)]
    names = [row.get("name") for row in rows]
    if doubled := next((name for k, name in enumerate(names) if name and name in names[:k]), None):
        top.fail(f"two joints are named {doubled!r}")
    joints = tuple(_joint(table, convention, names) for table in tables)
    links = tuple(_link(table) for table in tables)
    gravity = top.vector("gravity") if top.has("gravity") else _GRAVITY
    base = top.table("base").placement() if top.has("base") else Placement()
    tool, link, called = _tool(top, len(rows)) if top.has("tool") else (Placement(), 0, "")
    if convention == "standard":
        if link:
            top.table("tool").fail(
                'link is for convention = "modified"; a standard table has its tool on the last link'
            )
        if top.has("tendon"):
            top.fail('tendons are for convention = "modified"')
        chain = to_modified(joints, links, gravity, base, tool)
    else:
        parents = tuple(_parent(table, i, names) for i, table in enumerate(tables))
        coupling = _tendons(top, names), _compensated(tables)
        chain = Chain(joints, links, gravity, base, tool, parents, link, *coupling)
    if top.has("tool") and not chain.tool_carrier:
        top.table("tool").fail(
            f"a robot with {len(chain.tips)} tips needs the link that carries its tool, as in link = 1"
        )
    about = top.text("name", name), chain, top.text("source", ""), _frames(top, chain)
    own = _link_frames(tables, joints if convention == "standard" else None)
    return Description(*about, states_tool=top.has("tool"), tool_name=called, link_frames=own)


def _link_frames(tables: list[Table], standard: tuple[Joint, ...] | None) -> tuple[Frame, ...]:
    """The frame of each link as it is called in the source; in a standard table, at the far end of the link."""
    found = []
    for k, joint in enumerate(tables, 1):
        table = joint.table("link")
        at = table.table("frame").placement() if table.has("frame") else Placement()
        if standard is not None:
            at = along(standard[k - 1].b, standard[k - 1].beta) @ at
        found.append(Frame(table.text("name", f"link{k}"), k, at))
    plain = all(frame == Frame(f"link{frame.link}", frame.link, Placement()) for frame in found)
    return () if plain else tuple(found)


def _tool(top: Table, joints: int) -> tuple[Placement, int, str]:
    """The tool's placement, the link that carries it (0: the only tip), and its name ("": that of a frame there)."""
    table = top.table("tool")
    link = table.content.get("link", 0)
    if not isinstance(link, int) or isinstance(link, bool) or not 0 <= link <= joints:
        table.fail(f"link must be a number from 1 to {joints}, got {link!r}")
    place = Table(table.where, {k: v for k, v in table.content.items() if k not in ("name", "link")}).placement()
    return place, link, table.text("name", "")


def _tendons(top: Table, names: list[Any]) -> tuple[Tendon, ...]:
    rows = top.content.get("tendon", [])
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        top.fail("tendon must be tables [[tendon]]")
    found = []
    for i, row in enumerate(rows, 1):
        table = Table(f"{top.where}: tendon {i}", row)
        table.only(("name", "joints", "ratios", *_TENDON))
        joints = table.require("joints")
        if not isinstance(joints, list):
            table.fail(f"joints must be an array of names or numbers, got {_brief(joints)}")
        places = [_number_of(Table(table.where, {"joints": joint}), "joints", names, 1) - 1 for joint in joints]
        ratios = table.numbers("ratios", len(joints), "one per joint")
        numbers = {key: table.number(key, Fraction(0)) for key in _TENDON}
        found.append(Tendon(tuple(zip(places, ratios, strict=True)), **numbers, name=table.text("name", "")))
    return tuple(found)


def _compensated(joints: list[Table]) -> tuple[Link, ...]:
    """The part of every link whose weight is compensated; empty where none is."""
    found = []
    for joint in joints:
        if not joint.has("compensated"):
            found.append(MASSLESS)
            continue
        table = joint.table("compensated")
        table.only(("mass", "moment"))
        found.append(Link(table.number("mass"), table.vector("moment"), MASSLESS.inertia))
    return tuple(found) if any(link is not MASSLESS for link in found) else ()


def _joint_place(where: str, i: int, row: dict[str, Any]) -> str:
    return f"{where}: joint {i}" + (f" ({row['name']})" if isinstance(row.get("name"), str) else "")


def _number_of(table: Table, key: str, names: list[Any], lowest: int) -> int:
    """The number of the joint, from 1, that a key gives by name or number."""
    value = table.require(key)
    if isinstance(value, str):
        if names.count(value) != 1:
            table.fail(f"{key} must name one joint, got {value!r}; available: {', '.join(map(str, names[:50]))}")
        return names.index(value) + 1
    if not isinstance(value, int) or isinstance(value, bool) or not lowest <= value <= len(names):
        table.fail(f"{key} must be the name of a joint or a number from {lowest} to {len(names)}, got {value!r}")
    return value


def _parent(table: Table, i: int, names: list[Any]) -> int:
    parent = _number_of(table, "parent", names, 0) - 1 if table.has("parent") else i - 1
    if parent >= i:
        table.fail(f"parent must come before its children, got {table.content['parent']!r}")
    return parent


def _mimic(table: Table, names: list[Any]) -> Mimic:
    table.only(("joint", "multiplier", "offset"))
    leader = _number_of(table, "joint", names, 1) - 1
    return Mimic(leader, table.number("multiplier", Fraction(1)), table.number("offset", Fraction(0)))


def _joint(table: Table, convention: str, names: list[Any]) -> Joint:
    length, twist = _GEOMETRY[convention]
    if table.content.get("kind") == "free":
        table.only(("name", "kind", "link", "compensated"))
        return Joint("free", Fraction(0), ZERO_ANGLE, Fraction(0), ZERO_ANGLE, name=table.text("name", ""))
    table.only(("name", "kind", length, twist, *_JOINT, *(_TREE if convention == "modified" else ())))

    def angle(key: str) -> Angle:
        return Angle.of(float(table.number(key)))

    drive: dict[str, Any] = {key: table.number(key, Fraction(0)) for key in DRIVE}
    return Joint(
        kind=cast(Kind, table.one_of("kind", ("revolute", "prismatic", "free"))),
        b=table.number(length),
        beta=angle(twist),
        d=table.number("d"),
        theta=angle("theta"),
        gamma=angle("gamma") if table.has("gamma") else ZERO_ANGLE,
        name=table.text("name", ""),
        limit=_limit(table.table("limit")) if table.has("limit") else Limit(),
        turn=angle("turn") if table.has("turn") else ZERO_ANGLE,
        shift=table.number("shift", Fraction(0)),
        mimic=_mimic(table.table("mimic"), names) if table.has("mimic") else None,
        forces=_forces(table),
        servo=_servo(table.table("servo")) if table.has("servo") else None,
        **drive,
    )


def _forces(table: Table) -> JointForces:
    numbers: dict[str, Any] = {key: table.number(key, Fraction(0)) for key in NUMBERS}
    rows = table.content.get("ripple", [])
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        table.fail(f"ripple must be an array of tables {{ per_turn, sine, cosine }}, got {rows!r}")
    exponent = table.content.get("stribeck_exponent", 2)
    if not isinstance(exponent, int) or exponent < 2 or exponent % 2:
        table.fail(f"stribeck_exponent must be an even whole number, got {exponent!r}")
    ripples = tuple(_ripple(Table(f"{table.where}: ripple", row)) for row in rows)
    return JointForces(ripples=ripples, stribeck_exponent=exponent, **numbers)


def _servo(table: Table) -> Servo:
    table.only(SERVO)
    try:
        return Servo(table.number("kp"), **{key: table.number(key, Fraction(0)) for key in SERVO[1:]})
    except InputError as error:
        table.fail(str(error))


def _ripple(table: Table) -> Ripple:
    table.only(("per_turn", "sine", "cosine"))
    per_turn = table.require("per_turn")
    if not isinstance(per_turn, int) or isinstance(per_turn, bool) or per_turn < 1:
        table.fail(f"per_turn must be a whole number from 1, got {per_turn!r}")
    return Ripple(per_turn, table.number("sine", Fraction(0)), table.number("cosine", Fraction(0)))


def _limit(table: Table) -> Limit:
    table.only(_LIMIT)
    return Limit(**{key: float(table.number(key)) for key in _LIMIT if table.has(key)})


def _link(joint: Table) -> Link:
    table = joint.table("link")
    table.only(_LINK)
    for one, other in (("com", "moment"), ("inertia", "inertia_at_origin")):
        if table.has(one) and table.has(other):
            table.fail(f"give {one} or {other}, not both")
    mass = table.number("mass")
    moment = table.vector("moment") if table.has("moment") else mass * table.vector("com")
    key = "inertia_at_origin" if table.has("inertia_at_origin") else "inertia"
    xx, yy, zz, xy, xz, yz = table.numbers(key, 6, "xx, yy, zz, xy, xz, yz")
    given = Sym3(xx, xy, yy, xz, yz, zz)
    if key == "inertia_at_origin":
        return Link(mass, moment, given)
    if table.has("moment"):
        table.fail("inertia is about the centre of mass: with moment, give inertia_at_origin")
    return Link.from_com(mass, table.vector("com"), given)


def _frames(top: Table, chain: Chain) -> tuple[Frame, ...]:
    rows = top.content.get("frame", [])
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        top.fail("frame must be tables [[frame]]")
    frames = []
    for i, row in enumerate(rows, 1):
        table = Table(f"{top.where}: frame {i}", row)
        table.only(("name", "link", "xyz", "rpy", "rotation"))
        link = table.require("link")
        if not isinstance(link, int) or isinstance(link, bool) or not 0 <= link <= chain.bodies:
            table.fail(f"link must be a number from 0 (the base) to {chain.bodies}, got {link!r}")
        place = Table(table.where, {k: v for k, v in row.items() if k not in ("name", "link")}).placement()
        frames.append(Frame(table.text("name"), link, place))
    names = [frame.name for frame in frames]
    if len(set(names)) < len(names):
        top.fail(f"two frames have the same name; got {', '.join(names)}")
    return tuple(frames)


def write(path: str | os.PathLike[str], arm: Description) -> None:
    """Write the arm to a file that reads back as the same arm."""
    write_text(path, text(arm))


def text(arm: Description) -> str:
    """The arm as the text of an arm file."""
    chain = arm.chain
    lines = [f"name = {_string(arm.name)}", 'convention = "modified"']
    if arm.source:
        lines.append(f"source = {_string(arm.source)}")
    lines.append(f"gravity = {numbers_text(tuple(chain.gravity))}")
    if chain.base != Placement():
        lines.append(f"base = {placement_text(chain.base)}")
    lines += _tool_lines(arm)
    for i, link in enumerate(chain.links):
        own = arm.link_frames[i] if arm.link_frames else Frame(f"link{i + 1}", i + 1, Placement())
        lines += ["", "[[joint]]", *_joint_lines(chain, i), f"link = {_link_text(link, own)}"]
        if chain.compensated and (part := chain.compensated[i]) != MASSLESS:
            moment = numbers_text(tuple(part.moment))
            lines.append(f"compensated = {{ mass = {number_text(part.mass)}, moment = {moment} }}")
    for tendon in chain.tendons:
        lines += ["", "[[tendon]]", *([f"name = {_string(tendon.name)}"] if tendon.name else [])]
        lines.append(f"joints = [{', '.join(_call(chain, i) for i, _ in tendon.joints)}]")
        lines.append(f"ratios = {numbers_text(tuple(c for _, c in tendon.joints))}")
        lines += [f"{key} = {number_text(x)}" for key in _TENDON if (x := getattr(tendon, key)) != 0]
    for frame in arm.frames:
        place = placement_text(frame.placement).strip("{} ").replace("], ", "]\n", 1)
        lines += ["", "[[frame]]", f"name = {_string(frame.name)}", f"link = {frame.link}", place]
    return "\n".join(lines) + "\n"


def _tool_lines(arm: Description) -> list[str]:
    """The tool; nothing if a reader of the file finds the same one without being told."""
    chain = arm.chain
    if not chain.tool_carrier:
        return []
    named = tool_of(chain, arm.frames)
    called = arm.tool_name if named is not None and arm.tool_name not in ("", named.name) else ""
    untold = replace(arm, chain=replace(chain, tool=Placement(), tool_link=0), states_tool=False)
    if chain.tool == Placement() and not called and with_tool(untold).chain == chain:
        return []
    link = [f"link = {chain.tool_link}"] if chain.tool_link else []
    name = [f"name = {_string(called)}"] if called else []
    return [f"tool = {{ {', '.join([*link, *name, placement_text(chain.tool).strip('{} ')])} }}"]


def _joint_lines(chain: Chain, i: int) -> list[str]:
    joint = chain.joints[i]
    lines = [f"name = {_string(joint.name)}"] if joint.name else []
    if joint.free:
        return [*lines, 'kind = "free"']
    if chain.parents[i] != i - 1:
        lines.append(f"parent = {_call(chain, chain.parents[i])}")
    if joint.mimic is not None:
        follows = (joint.mimic.multiplier, joint.mimic.offset)
        multiplier, offset = map(number_text, follows)
        leader = _call(chain, joint.mimic.joint)
        lines.append(f"mimic = {{ joint = {leader}, multiplier = {multiplier}, offset = {offset} }}")
    if joint.forked:
        lines += [f"turn = {_angle_text(joint, 'turn')}", f"shift = {number_text(joint.shift)}"]
    lines += [f'kind = "{joint.kind}"', f"b = {number_text(joint.b)}", f"beta = {_angle_text(joint, 'beta')}"]
    if joint.gamma.sin != 0:
        lines.append(f"gamma = {_angle_text(joint, 'gamma')}")
    lines += [f"d = {number_text(joint.d)}", f"theta = {_angle_text(joint, 'theta')}"]
    limits = [(key, getattr(joint.limit, key)) for key in _LIMIT]
    known = ", ".join(f"{key} = {float(value) + 0.0!r}" for key, value in limits if value is not None)
    if known:
        lines.append(f"limit = {{ {known} }}")
    for key in DRIVE:
        if getattr(joint, key) != 0:
            lines.append(f"{key} = {number_text(getattr(joint, key))}")
    if joint.servo is not None:
        law = [(key, getattr(joint.servo, key)) for key in SERVO]
        known = ", ".join(f"{key} = {number_text(x)}" for key, x in law if key == "kp" or x != 0)
        lines.append(f"servo = {{ {known} }}")
    return [*lines, *_forces_lines(joint.forces)]


def _forces_lines(forces: JointForces) -> list[str]:
    lines = [f"{key} = {number_text(getattr(forces, key))}" for key in NUMBERS if getattr(forces, key) != 0]
    if forces.stribeck_exponent != 2:
        lines.append(f"stribeck_exponent = {forces.stribeck_exponent}")
    rows = [
        f"{{ per_turn = {r.per_turn}, sine = {number_text(r.sine)}, cosine = {number_text(r.cosine)} }}"
        for r in forces.ripples
    ]
    return [*lines, *([f"ripple = [{', '.join(rows)}]"] if rows else [])]


def _call(chain: Chain, i: int) -> str:
    """The reference to a joint in the file: its name if that is unique, otherwise its number; 0 is the base."""
    names = [joint.name for joint in chain.joints]
    unique = i >= 0 and names[i] and names.count(names[i]) == 1
    return _string(names[i]) if unique else str(i + 1)


def _angle_text(joint: Joint, key: str) -> str:
    angle: Angle = getattr(joint, key)
    if Angle.of(angle.radians) != angle:
        raise FileError(f"joint {joint.name!r}: the cosine and sine of {key} are not those of {angle.radians!r} rad")
    return repr(angle.radians + 0.0)  # no negative zero


def _link_text(link: Link, own: Frame) -> str:
    """Centre of mass and the inertia about it, or moment and inertia at the origin if these are shorter."""
    mass = number_text(link.mass)
    natural = f"moment = {numbers_text(tuple(link.moment))}, inertia_at_origin = {_inertia_text(link.inertia)}"
    central = f"com = {numbers_text(tuple(link.com))}, inertia = {_inertia_text(link.inertia_about_com)}"
    short = central if link.mass * link.com == link.moment and len(central) <= len(natural) + 20 else natural
    name = f"name = {_string(own.name)}, " if own.name != f"link{own.link}" else ""
    frame = f", frame = {placement_text(own.placement)}" if own.placement != Placement() else ""
    return f"{{ {name}mass = {mass}, {short}{frame} }}"


def _inertia_text(J: Sym3) -> str:
    return numbers_text((J.xx, J.yy, J.zz, J.xy, J.xz, J.yz))


_ESCAPES = {'"': '\\"', "\\": "\\\\", "\t": "\\t", "\r": "\\r", "\b": "\\b", "\f": "\\f"}


def _string(value: str) -> str:
    """A TOML string; multi-line if the text has several lines."""

    def escape(c: str) -> str:
        return _ESCAPES.get(c) or (f"\\u{ord(c):04x}" if c != "\n" and (ord(c) < 32 or ord(c) == 127) else c)

    body = "".join(map(escape, value))
    return f'"""\n{body}"""' if "\n" in value else f'"{body}"'


@dataclass(frozen=True)
class Table:
    """A mapping from a file; `where` is its location ("arm.toml: joint 2 (elbow)"), which every error states."""

    where: str
    content: Mapping[str, Any]

    def fail(self, complaint: str) -> NoReturn:
        """Raise a `FileError` with the location."""
        raise FileError(f"{self.where}: {complaint}")

    def only(self, allowed: Iterable[str]) -> None:
        """Raise an error for unknown keys."""
        names = list(allowed)
        for key in self.content:
            if key not in names:
                from difflib import get_close_matches  # seldom needed, slow to import

                near = get_close_matches(key, names, 1)
                hint = f" (did you mean {near[0]!r}?)" if near else ""
                self.fail(f"unknown key {key!r}{hint}; expected {', '.join(names)}")

    def has(self, key: str) -> bool:
        """Whether the table has the key."""
        return key in self.content

    def require(self, key: str) -> Any:
        """The value of a required key."""
        if key not in self.content:
            have = ", ".join(self.content) or "nothing"
            self.fail(f"missing key {key!r}; found only {have}")
        return self.content[key]

    def text(self, key: str, default: str | None = None) -> str:
        """A string."""
        value = self.require(key) if default is None else self.content.get(key, default)
        if not isinstance(value, str):
            self.fail(f"{key} must be a string, got {value!r}")
        return value

    def one_of(self, key: str, available: Iterable[str], default: str | None = None) -> str:
        """One of the available strings."""
        value = self.require(key) if default is None else self.content.get(key, default)
        names = list(available)
        if value not in names:
            self.fail(f"unknown {key} {value!r}; available: {', '.join(names)}")
        return str(value)

    def number(self, key: str, default: Fraction | None = None) -> Fraction:
        """An exact finite number."""
        value = self.require(key) if default is None else self.content.get(key, default)
        return value if isinstance(value, Fraction) else self._number(key, value)

    def _number(self, key: str, value: object) -> Fraction:
        number = rational(value)
        if number is None:
            self.fail(f"{key} must be a finite number, got {_brief(value)}")
        return number

    def numbers(self, key: str, count: int, meaning: str) -> tuple[Fraction, ...]:
        """An array of `count` exact numbers."""
        value = self.require(key)
        if not isinstance(value, list) or len(value) != count:
            self.fail(f"{key} must be an array of {count} numbers ({meaning}), got {_brief(value)}")
        return tuple(self._number(f"{key}[{i}]", item) for i, item in enumerate(value))

    def vector(self, key: str) -> Vec3:
        """Three exact numbers."""
        return Vec3(*self.numbers(key, 3, "x, y, z"))

    def table(self, key: str) -> Table:
        """A table inside this one."""
        value = self.require(key)
        if not isinstance(value, dict):
            self.fail(f"{key} must be a table {{ ... }}, got {_brief(value)}")
        return Table(f"{self.where}: {key}", value)

    def placement(self) -> Placement:
        """The placement {xyz, rpy} or {xyz, rotation}; both parts optional."""
        self.only(("xyz", "rpy", "rotation"))
        if self.has("rpy") and self.has("rotation"):
            self.fail("give rpy or rotation, not both")
        R = IDENTITY
        if self.has("rpy"):
            roll, pitch, yaw = self.numbers("rpy", 3, "roll, pitch, yaw in radians")
            R = from_rpy(float(roll), float(pitch), float(yaw))
        elif self.has("rotation"):
            R = self._rotation()
        return Placement(R, self.vector("xyz") if self.has("xyz") else ZERO)

    def _rotation(self) -> Mat3:
        rows = self.require("rotation")
        if not isinstance(rows, list) or len(rows) != 3:
            self.fail(f"rotation must be three rows of three numbers, got {_brief(rows)}")
        inner = Table(self.where, {f"rotation[{i}]": row for i, row in enumerate(rows)})
        R = Mat3(*(inner.vector(key) for key in inner.content))
        product = R @ R.T
        off = max(
            abs(a - b) for r, s in zip(product.rows, IDENTITY.rows, strict=True) for a, b in zip(r, s, strict=True)
        )
        if off > Fraction(1, 10**9):
            self.fail(f"rotation is not a rotation matrix: R Rᵀ differs from the identity by {float(off):.1g}")
        if R.r1.cross(R.r2).dot(R.r3) < 0:
            self.fail("rotation is not a rotation matrix but a reflection: its determinant is -1")
        return R


def _brief(value: object) -> str:
    """A value as text for a message, shortened."""
    text = str(value) if isinstance(value, Decimal) else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
