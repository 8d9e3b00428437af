"""The links and joints of a URDF as plain frozen data, checked to be one tree."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from armdyn.algebra import ZERO, Sym3, Vec3
from armdyn.chain import Link, Placement, Servo
from armdyn.chain.joint import MASSLESS, NO_FORCES, NUMBERS, JointForces, Ripple
from armdyn.errors import FileError, InputError, choose
from armdyn.files.text import is_text
from armdyn.files.urdf_xml import EXPONENT, INERTIA, SERVOS, TENDON, Notes, Reader, XmlElement, content, parse

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
    virtual: bool = False  # made by a reader between the joints of one body
    drawn: bool = False  # has a shape to be seen: more than a frame
    compensated: Link = MASSLESS  # the part of its mass whose weight something else carries

    @property
    def alone(self) -> Link:
        """The link's body, in the axes of its inertia about its centre of mass unless `body` is given."""
        if self.body is not None:
            return self.body
        xx, xy, xz, yy, yz, zz = self.inertia
        return Link(self.mass, ZERO, Sym3(xx, xy, yy, xz, yz, zz))


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
    xyz: Triple = _ZERO
    rpy: Triple = _ZERO
    axis: Triple = _X
    limit: Mapping[str, Fraction] = field(default_factory=dict)
    damping: Fraction = Fraction(0)
    friction: Fraction = Fraction(0)
    mimic: RawMimic | None = None
    line: int = 0
    armature: Fraction = Fraction(0)  # from MJCF; in a URDF from <armdyn>, like the following fields
    static: Fraction = Fraction(0)
    stribeck: Fraction = Fraction(0)
    forces: JointForces = NO_FORCES
    servo: Servo | None = None
    placement: Placement | None = None  # replaces xyz and rpy if the joint does not come from a text
    part_of: str = ""  # the planar or ball joint of the file that this one is a part of

    @property
    def moving(self) -> bool:
        """Whether the joint is not fixed."""
        return self.kind != "fixed"

    @property
    def single(self) -> bool:
        """Whether the joint position is a single number."""
        return self.kind != "floating"


@dataclass(frozen=True)
class RawTendon:
    """A linear relation Σ c q of joints (name, c) with a spring, a damper, an inertia and dry friction along it."""

    name: str
    joints: tuple[tuple[str, Fraction], ...]
    stiffness: Fraction = Fraction(0)
    rest: Fraction = Fraction(0)
    damping: Fraction = Fraction(0)
    armature: Fraction = Fraction(0)
    friction: Fraction = Fraction(0)

    def of_joint(self, joint: RawJoint) -> RawJoint:
        """A tendon of one joint as a part of that joint: q times c, forces times c."""
        ((_, c),) = self.joints
        more = joint.forces
        if self.stiffness:
            k = self.stiffness * c
            more = replace(more, offset=more.offset - k * self.rest, stiffness=more.stiffness + k * c)
        return replace(
            joint,
            damping=joint.damping + self.damping * c * c,
            armature=joint.armature + self.armature * c * c,
            friction=joint.friction + self.friction * abs(c),
            forces=more,
        )


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
    tendons: tuple[RawTendon, ...] = ()


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
    links = _unique(label, "link", [_link(label, e, notes) for e in robot.children if e.tag == "link"])
    joints = _unique(label, "joint", [_joint(label, e, notes) for e in robot.children if e.tag == "joint"])
    if notes.twice:
        values = "; ".join(
            f"{where[0]} {text}" + (f" (and {len(where) - 1} more)" if where[1:] else "")
            for text, where in notes.twice.items()
        )
        notes.add(f"{label}: of friction that <dynamics> gives twice, URDF's own is used: {values}")
    _note_loops(label, robot, notes)
    joints = _with_rotors(label, robot, joints, notes)
    for line in note_limits(label, joints):
        notes.add(line)
    if "world" not in links and any(joint.parent == "world" for joint in joints.values()):
        links["world"] = RawLink("world")
        notes.add(f"{label}: the link 'world', which the file does not define, is the ground")
    for joint in [joint for joint in joints.values() if joint.kind in COMPOSITE]:
        more, chain = as_chain(joint)
        joints = _unique(label, "joint", [k for j in joints.values() for k in (chain if j is joint else [j])])
        links |= {link.name: link for link in more}
        notes.add(chain_note(label, joint, chain))
    hint = _XACRO if any("xacro tag" in note for note in notes.lines) else ""
    if not links:
        raise FileError(f"{label}: the robot has no links{hint}")
    name = robot.attributes.get("name") or (Path(label).stem if label != "URDF text" else "robot")
    stated = robot.child("armdyn")
    tool = "" if stated is None else stated.attributes.get("tool", "")
    whole = connected(label, name, links, joints, notes.all, hint)
    return replace(whole, tool=tool if tool in links else "", tendons=_tendons(label, stated, joints))


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


def _name(label: str, element: XmlElement, key: str = "name") -> str:
    name = element.attributes.get(key)
    if not name:
        raise FileError(f"{label}, line {element.line}: <{element.tag}> without {key}")
    return name


def _link(label: str, element: XmlElement, notes: Notes) -> RawLink:
    name = _name(label, element)
    inertial, drawn = element.child("inertial"), element.child("visual") is not None
    lifted = _lifted(Reader(label, f"link {name!r}"), element.child("armdyn"))
    if inertial is None:
        return RawLink(name, drawn=drawn, compensated=lifted)
    read, origin = Reader(label, f"link {name!r}"), inertial.child("origin")
    mass, inertia = inertial.child("mass"), inertial.child("inertia")
    if mass is None:
        raise FileError(f"{read.at(inertial)} has no <mass>; for a massless link, leave out <inertial>")
    kilograms = read.one(mass, "value", needed=True)
    if inertia is None:
        notes.add(
            f"{read.at(inertial)} has no <inertia>: taken as a point mass of {float(kilograms):g} kg at its origin"
        )
    return RawLink(
        name,
        compensated=lifted,
        massive=True,
        mass=kilograms,
        xyz=read.triple(origin, "xyz", _ZERO),
        rpy=read.triple(origin, "rpy", _ZERO),
        inertia=tuple(read.one(inertia, key, needed=inertia is not None) for key in INERTIA),
        drawn=drawn,
    )


def _lifted(read: Reader, own: XmlElement | None) -> Link:
    """The part of a link whose weight something else carries."""
    mass = read.one(own, "compensated_mass")
    return Link(mass, Vec3(*read.triple(own, "compensated_moment", _ZERO)), MASSLESS.inertia) if mass else MASSLESS


def _tendons(label: str, stated: XmlElement | None, joints: Mapping[str, RawJoint]) -> tuple[RawTendon, ...]:
    """The tendons in an element <armdyn> of the robot."""
    found = []
    for element in stated.children if stated is not None else ():
        if element.tag != "tendon":
            continue
        name = element.attributes.get("name", "")
        read, names = Reader(label, f"tendon {name!r}"), element.attributes.get("joints", "").split()
        for joint in names:
            choose(f"joint of {read.at(element)}", joint, joints)
        ratios = read.numbers(element, "ratios", (Fraction(0),) * len(names), needed=True)
        numbers = {key: read.one(element, key) for key in TENDON}
        found.append(RawTendon(name, tuple(zip(names, ratios, strict=True)), **numbers))
    return tuple(found)


def _joint(label: str, element: XmlElement, notes: Notes) -> RawJoint:
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
    bounds = {k: v for k, v in bounds.items() if limit is not None and k in limit.attributes}
    return RawJoint(
        name,
        kind,
        parent=_end(at, label, element, "parent"),
        child=_end(at, label, element, "child"),
        xyz=read.triple(origin, "xyz", _ZERO),
        rpy=read.triple(origin, "rpy", _ZERO),
        axis=(axis[0], axis[1], axis[2]),
        limit=bounds,
        damping=_friction(read, dynamics, "damping", "mu_viscous", notes),
        friction=_friction(read, dynamics, "friction", "mu_coulomb", notes),
        mimic=_mimic(label, read, element.child("mimic")),
        line=element.line,
        armature=read.one(own, "rotor_inertia"),
        static=read.one(own, "static"),
        stribeck=read.one(own, "stribeck"),
        forces=_forces(read, own),
        servo=_servo(read, own),
    )


def _friction(read: Reader, dynamics: XmlElement | None, key: str, other: str, notes: Notes) -> Fraction:
    """URDF's own attribute, or where it is missing the one that Franka's files have."""
    standard, vendors = read.one(dynamics, key), read.one(dynamics, other)
    if dynamics is None or key not in dynamics.attributes:
        return vendors
    if other in dynamics.attributes and standard != vendors:
        notes.twice.setdefault(f"{key} {float(standard):g}, not {other} {float(vendors):g}", []).append(read.where)
    return standard


def _note_loops(label: str, robot: XmlElement, notes: Notes) -> None:
    """Joints that close loops are extensions of URDF: what they say is lost, and how it can be kept."""
    for element in robot.children:
        if element.tag == "loop_joint":
            name = element.attributes.get("name", "")
            links = " and ".join(repr(end.attributes["link"]) for end in element.children if "link" in end.attributes)
            between = f" between {links}" if links else ""
            notes.add(f"{label}: <loop_joint> {name!r} closes a loop{between}, which is not computed: {PARALLELOGRAM}")


def _with_rotors(label: str, robot: XmlElement, joints: dict[str, RawJoint], notes: Notes) -> dict[str, RawJoint]:
    """The joints with the rotor inertias of <transmission>, times the gear ratio squared; notes on what is ignored."""
    geared, coupled = [], []
    for element in (child for child in robot.children if child.tag == "transmission"):
        names = [child.attributes.get("name", "?") for child in element.children if child.tag == "joint"]
        kind = next((c.text for c in element.children if c.tag == "type"), element.attributes.get("type", ""))
        where = f"transmission {element.attributes.get('name', '?')!r}"
        if len(names) > 1 and kind.strip().startswith("transmission_interface/"):
            coupled.append(f"{', '.join(names)} ({kind.strip().split('/')[-1]})")
        inner = [inside for child in element.children for inside in child.children]
        if any(c.tag == "mechanicalReduction" and c.text.strip() not in ("", "1", "1.0") for c in inner):
            geared += names
        for actuator in (child for child in element.children if child.tag == "actuator"):
            read, rotor = Reader(label, where), actuator.child("drake:rotor_inertia")
            ratio = read.one(actuator.child("drake:gear_ratio"), "value", Fraction(1), needed=True)
            if rotor is None:
                continue
            inertia = read.one(rotor, "value", needed=True) * ratio**2
            if len(names) != 1 or names[0] not in joints:
                got = ", ".join(map(repr, names)) or "none"
                raise FileError(f"{read.at(rotor)} needs one joint of the file for its rotor, got {got}")
            if inertia < 0:
                raise FileError(f"{read.at(rotor)} is negative: {float(inertia):g}")
            joint = joints[names[0]]
            if joint.armature and joint.armature != inertia:
                given = f"{float(joint.armature):g} of <armdyn>"
                notes.add(f"{read.at(rotor)} makes {float(inertia):g} kg m² at joint {joint.name!r}; {given} is used")
            else:
                joints[joint.name] = replace(joint, armature=inertia)
    if geared:
        shown = ", ".join(dict.fromkeys(geared))
        notes.add(
            f"{label}: mechanicalReduction in the transmissions of {shown} is ignored: torques and limits are those of "
            "the joints, and rotor inertias are not in the file"
        )
    if coupled:
        notes.add(f"{label}: transmissions that couple joints are ignored: {'; '.join(coupled)}")
    return joints


def note_limits(label: str, joints: dict[str, RawJoint]) -> list[str]:
    """Zero efforts, which exporters write for unknown ones, count as missing unless there is a speed limit: notes.

    A zero speed beside a torque limit, or alone, is kept and noted.
    """
    unknown, idle, still = [], [], []
    for name, joint in joints.items():
        if not joint.moving:
            continue
        if joint.limit.get("effort") != 0:
            if joint.limit.get("velocity") == 0:
                still.append(name)
            continue
        if joint.limit.get("velocity"):
            idle.append(name)
            continue
        kept = {key: value for key, value in joint.limit.items() if key not in ("effort", "velocity")}
        joints[name] = replace(joint, limit=kept)
        unknown.append(name)
    words = {
        'effort="0" without a speed limit counts as unknown': unknown,
        'effort="0" beside a speed limit: these joints have no torque': idle,
        'velocity="0" without effort="0" stays a speed limit of 0; leave it out if it is not known': still,
    }
    return [f"{label}: {what}: {', '.join(names)}" for what, names in words.items() if names]


PARALLELOGRAM = "in a parallelogram, cut the loop and let the joints that follow <mimic> (docs/tutorials/robots)"
COMPOSITE = {"planar": ("x", "y", "theta"), "ball": ("x", "y", "z")}  # kinds that become chains, and their joints


def as_chain(joint: RawJoint) -> tuple[list[RawLink], list[RawJoint]]:
    """A planar or ball joint as three joints with massless links between: x, y, turn; or turns about x, y, z.

    A planar joint slides along two axes across its own axis, and then turns about it; a ball joint turns about the x
    axis, then about the y axis that is turned with it, then about the z axis.
    """
    names = [f"{joint.name}_{suffix}" for suffix in COMPOSITE[joint.kind]]
    if joint.kind == "planar":
        axes = [*_across(joint.axis), joint.axis]
        kinds = ["prismatic", "prismatic", "continuous"]
    else:
        axes = [_X, (Fraction(0), Fraction(1), Fraction(0)), (Fraction(0), Fraction(0), Fraction(1))]
        kinds = ["continuous"] * 3
    ends = [joint.parent, *(f"{name} link" for name in names[:2]), joint.child]
    seats: list[dict[str, Any]] = [{"xyz": joint.xyz, "rpy": joint.rpy, "placement": joint.placement}, {}, {}]
    chain = [
        RawJoint(name, kind, ends[k], ends[k + 1], axis=axes[k], line=joint.line, part_of=joint.name, **seats[k])
        for k, (name, kind) in enumerate(zip(names, kinds, strict=True))
    ]
    return [RawLink(name, virtual=True) for name in ends[1:3]], chain


def _across(axis: Triple) -> tuple[Triple, Triple]:
    """Two axes that form a right-handed frame with the third: x and y for z."""
    a, b, c = axis
    if not a and not b:
        first = _X
    elif not b and not c:
        first = (Fraction(0), Fraction(1), Fraction(0))
    elif not a and not c:
        first = (Fraction(0), Fraction(0), Fraction(1))
    else:
        first = (b, -a, Fraction(0))
    d, e, f = first
    return first, (b * f - c * e, c * d - a * f, a * e - b * d)


def chain_note(label: str, joint: RawJoint, chain: list[RawJoint]) -> str:
    """What became of a planar or ball joint, and what of it is not carried over."""
    names = ", ".join(part.name for part in chain)
    lost = [key for key in ("lower", "upper", "velocity", "effort") if key in joint.limit]
    lost += [key for key, value in (("damping", joint.damping), ("friction", joint.friction)) if value]
    ignored = f"; its {', '.join(lost)} {'is' if len(lost) == 1 else 'are'} ignored" if lost else ""
    how = {
        "planar": "two slides across its axis and a turn about it",
        "ball": "turns about x, y and z in this order, singular where the second is ±π/2",
    }
    return f"{label}: joint {joint.name!r} is {joint.kind}: read as {names}, {how[joint.kind]}{ignored}"


def _servo(read: Reader, own: XmlElement | None) -> Servo | None:
    if own is None or not any(key in own.attributes for key in SERVOS):
        return None
    try:
        return Servo(**{name: read.one(own, key, needed=name == "kp") for key, name in SERVOS.items()})
    except InputError as error:
        raise FileError(f"{read.at(own)}: {error}") from error


def _forces(read: Reader, own: XmlElement | None) -> JointForces:
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


def _end(at: str, label: str, element: XmlElement, tag: str) -> str:
    end = element.child(tag)
    if end is None:
        raise FileError(f"{at} has no <{tag}>")
    return _name(label, end, "link")


def _mimic(label: str, read: Reader, element: XmlElement | None) -> RawMimic | None:
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
