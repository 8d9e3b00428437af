"""Reading URDF: from a file's tree of links and joints to a robot in normal driving-axis frames.

The inertias of links behind fixed and locked joints are merged into the moving link that carries them; no mass that the
robot carries is dropped. The zero positions of the joints are those of the file. Angles are snapped before frames are
placed, because a right angle written as 1.5708 would tilt every frame after it.
"""

from __future__ import annotations

import math
import os
from fractions import Fraction

from armdyn.algebra import Angle, Mat3, Vec3, X, Y, Z
from armdyn.chain import Chain, Limit, Link, Mimic, Placement, Tendon
from armdyn.chain.canonical import SNAP, Snap, SnapReport, few_digits
from armdyn.chain.exactly import compose, from_rpy, moved, rotate, unit
from armdyn.chain.frames import PARALLEL, GivenBody, build
from armdyn.chain.joint import MASSLESS
from armdyn.files.cutting import PartOfTree, select
from armdyn.files.description import HOLLOW, Description, Frame, judged, merged, with_tool
from armdyn.files.urdf_tree import RawJoint, RawLink, RawTendon, Tree, read_tree
from armdyn.options import Cut, Lock

_HERE = Placement()
_TINY = 1e-100
_EMPTY = Link.from_natural((Fraction(0),) * 10)
GRAVITY = Vec3(Fraction(0), Fraction(0), Fraction(-981, 100))
_FLOATING = "floating_base"  # the name of a free joint that is not in the file


def read(
    source: str | os.PathLike[str],
    *,
    base: str | None = None,
    tip: str | None = None,
    lock: Lock = None,
    snap: float = SNAP,
    floating: bool | None = None,
) -> Description:
    """Read a robot from a URDF file, or a text that starts with `<`: the whole robot or one chain.

    Parameters
    ----------
    source
        Path of the file, or the text itself.
    base
        The base link; the root of the file by default. Gravity is (0, 0, -9.81) in the root's axes, rotated into the
        base's axes; the joints between are locked, at rest by default.
    tip
        The link whose frame is the tool: the robot is the chain from the base to it. By default the robot is the whole
        tree; if that is a single chain, the tool is the frame of the last moving link, unless the file states another.
    lock
        Joints to lock, with their values (rad or m) or "rest"; "rest" alone locks every joint beside the chain.
    snap
        Angles within this many radians of a multiple of π/2 are snapped to it, and lengths up to a hundredth of it, in
        metres, to zero. 0 takes every number as written.
    floating
        Whether the base floats; by default it does if a floating joint of the file carries all other joints.
    """
    return robot(read_tree(source), Cut(base, tip, lock, floating), snap)


def robot(tree: Tree, cut: Cut, snap: float = SNAP, gravity: Vec3 = GRAVITY, strict: bool | None = None) -> Description:
    """The robot of a tree; `gravity` is given in the root's axes, `strict` is that of `armdyn.load`."""
    chosen = select(tree, cut)
    walk = _Walk(tree, chosen, _Snapper(snap))
    walk.run()
    bodies = walk.bodies()
    last = chosen.tip or (chosen.moving[-1].child if chosen.moving else chosen.start)
    down = gravity if chosen.floating is not None else rotate(walk.root_in_base().R, gravity)
    tendons = tuple(map(walk.tendon, chosen.tendons))
    chain, own = build(bodies, walk.where[last][1], down, max(PARALLEL, snap), tendons)
    frames = tuple(Frame(name, k, compose(own[k - 1], at) if k else at) for name, (k, at) in sorted(walk.where.items()))
    notes = (*tree.notes, *chosen.notes, *_on_inertias(tree, walk, chain, strict))
    source = f"{tree.format} {tree.label}"
    asked, tool, links = chosen.tip is not None, chosen.tip or "", walk.own_links(frames)
    found = Description(tree.name, chain, source, frames, walk.snapper.report, notes, asked, tool, links)
    stated = chosen.tip is None and tree.tool in {frame.name for frame in frames if frame.link}
    return with_tool(found, tree.tool) if stated else found


def _on_inertias(tree: Tree, walk: _Walk, chain: Chain, strict: bool | None) -> tuple[str, ...]:
    """Notes on the inertias of the links that move, and of the bodies that they are merged into."""
    names = [name for name, (k, _) in walk.where.items() if k]
    massive = [name for name in names if tree.links[name].massive or tree.links[name].body is not None]
    of_body: dict[int, list[str]] = {}
    for name in massive:
        of_body.setdefault(walk.where[name][0], []).append(name)
    single = (chain.joint_names[k - 1] for k, carried in of_body.items() if len(carried) == 1)
    bodies = merged(chain, single)
    missing = []
    for k, link in enumerate(chain.links, 1):
        first = next(name for name in names if walk.where[name][0] == k)
        if not any(link.natural) and not tree.links[first].virtual and not of_body.get(k):
            missing.append(first)
    links = [(f"link {name!r}", tree.links[name].alone) for name in massive]
    hollow = _hollow(tree, [name for name in names if name not in missing])
    return (*judged(tree.label, [*links, *bodies], missing, strict), *([HOLLOW + ", ".join(hollow)] if hollow else []))


def _hollow(tree: Tree, names: list[str]) -> list[str]:
    """The links with a shape that end a branch without any mass: grippers and tools that somebody drew, not weighed."""
    parents = {joint.child: joint.parent for joint in tree.joints.values()}
    heavy: set[str | None] = {None}  # links that carry mass, their own or that of links on them
    for name, link in tree.links.items():
        at: str | None = name if any(link.alone.natural) else None
        while at not in heavy:
            heavy.add(at)
            at = parents.get(at or "")
    return [name for name in names if name not in heavy and tree.links[name].drawn and parents[name] in heavy]


class _Snapper:
    """Converts placements, axes and inertias with angles and lengths snapped, and records the changes."""

    def __init__(self, snap: float) -> None:
        self.snap = float(snap)
        self.changes: list[Snap] = []
        self.doubtful: list[Snap] = []

    @property
    def report(self) -> SnapReport:
        return SnapReport(tuple(self.changes), tuple(self.doubtful))

    def angle(self, where: str, what: str, given: float) -> Angle:
        taken = Angle.of(given, self.snap)
        if taken.radians != given:
            self.changes.append(Snap(where, what, given, taken.radians, "rad"))
        elif (nearest := few_digits(given)) is not None:
            self.doubtful.append(Snap(where, what, given, nearest, "rad"))
        return taken

    def length(self, where: str, what: str, given: Fraction) -> Fraction:
        if given != 0 and abs(given) <= self.snap / 100:
            self.changes.append(Snap(where, what, float(given), 0.0, "m"))
            return Fraction(0)
        return given

    def origin(self, joint: RawJoint) -> Placement:
        """The child's frame in the parent's, at q = 0."""
        if joint.placement is not None:
            return joint.placement
        where = f"joint {joint.name}"
        rpy = (self.angle(where, what, float(x)) for what, x in zip(("roll", "pitch", "yaw"), joint.rpy, strict=True))
        xyz = (self.length(where, what, x) for what, x in zip("xyz", joint.xyz, strict=True))
        return Placement(from_rpy(*rpy), Vec3(*xyz))

    def axis(self, joint: RawJoint) -> Vec3:
        """The unit vector along the joint's axis."""
        largest = max(map(abs, joint.axis))
        scale = 1 if largest > _TINY else largest  # the square of 1e-200 underflows
        v = unit(Vec3(*(x / scale for x in joint.axis)))
        nearest = max((X, Y, Z), key=lambda a: abs(v.dot(a)))
        nearest = nearest if v.dot(nearest) > 0 else -nearest
        off = v - nearest
        apart = math.sqrt(float(off.dot(off)))
        if apart > max(self.snap, 1e-16):
            return v
        if apart > 1e-16:
            self.changes.append(Snap(f"joint {joint.name}", "axis", apart, 0.0, "rad"))
        return nearest

    def inertial(self, link: RawLink) -> Link:
        """The inertia of the link, in its own frame."""
        if link.body is not None:
            return link.body
        if not link.massive:
            return _EMPTY
        where = f"link {link.name}"
        rpy = (self.angle(where, what, float(x)) for what, x in zip(("roll", "pitch", "yaw"), link.rpy, strict=True))
        return moved(link.alone, Placement(from_rpy(*rpy), Vec3(*link.xyz)))


class _Walk:
    """Traverses the tree from the base: assigns each link to the moving link that carries it, and sums the inertias."""

    def __init__(self, tree: Tree, chosen: PartOfTree, snapper: _Snapper) -> None:
        self.tree = tree
        self.chosen = chosen
        self.snapper = snapper
        free = chosen.floating is not None
        names = [*([chosen.floating or ""] if free else []), *(joint.name for joint in chosen.moving)]
        self.index = {name: k for k, name in enumerate(names, 1)}
        self.carried = [_EMPTY for _ in range(len(names) + 1)]
        self.compensated = [MASSLESS for _ in range(len(names) + 1)]
        self.origins: dict[str, Placement] = {}
        self.parents: dict[str, int] = {}
        self.where: dict[str, tuple[int, Placement]] = {}  # link of the file -> moving link (0: base), placement in it

    def run(self) -> None:
        """Place every link of the robot."""
        start = self.chosen.start
        self.where[start] = (1 if self.chosen.floating == "" else 0, _HERE)
        if self.chosen.floating == "":
            self.origins[""], self.parents[""] = _HERE, -1
        waiting = [start]
        while waiting:
            link = waiting.pop()
            k, at = self.where[link]
            if k:  # the inertia of a fixed base has no effect
                body, others = moved(self.snapper.inertial(self.tree.links[link]), at), self.carried[k]
                if (lifted := self.tree.links[link].compensated) is not MASSLESS:
                    self.compensated[k] = self.compensated[k] + moved(lifted, at)
                self.carried[k] = body if others is _EMPTY else others if body is _EMPTY else others + body
            for joint in self.tree.below[link]:
                if self._on_other_branch(joint):
                    continue
                origin = compose(at, self.snapper.origin(joint))
                if joint.name in self.index:
                    self.origins[joint.name], self.parents[joint.name] = origin, k - 1
                    self.where[joint.child] = (self.index[joint.name], _HERE)
                else:
                    self.where[joint.child] = (k, compose(origin, self._held(joint)))
                waiting.append(joint.child)

    def own_links(self, frames: tuple[Frame, ...]) -> tuple[Frame, ...]:
        """The frame of each body's own link: the child of its joint, or in MJCF the body that carries this joint."""
        named = {frame.name: frame for frame in frames}
        base = [self.chosen.start if self.chosen.floating == "" else self.tree.joints[self.chosen.floating].child] \
            if self.chosen.floating is not None else []  # fmt: skip
        found = []
        for k, name in enumerate([*base, *(joint.child for joint in self.chosen.moving)], 1):
            body = name.rpartition(" after ")[0] if self.tree.format == "MJCF" else ""
            found.append(named[body] if body in named and named[body].link == k else named[name])
        return tuple(found)

    def _on_other_branch(self, joint: RawJoint) -> bool:
        """Whether the joint moves another branch on the base, which is not a part of this robot."""
        return joint.moving and joint.name not in self.index and joint.name not in self.chosen.held

    def _held(self, joint: RawJoint) -> Placement:
        """The displacement of a fixed or locked joint."""
        if not joint.moving or self.chosen.held[joint.name] == 0:
            return _HERE
        value, axis = self.chosen.held[joint.name], self.snapper.axis(joint)
        if joint.kind == "prismatic":
            return Placement(_HERE.R, Fraction(repr(value)) * axis)
        return Placement(turn(axis, Angle.of(value, self.snapper.snap)), _HERE.p)

    def root_in_base(self) -> Placement:
        """The root of the file in the base's frame, with the joints between locked."""
        at, link = _HERE, self.chosen.start
        while link != self.tree.root:
            joint = self.tree.above[link]
            at = compose(compose(self.snapper.origin(joint), self._held(joint)), at)
            link = joint.parent
        return Placement(at.R.T, -rotate(at.R.T, at.p))

    def bodies(self) -> list[GivenBody]:
        """The moving links for `build`, base to tips."""
        found = []
        if self.chosen.floating is not None:
            name = self.chosen.floating
            found.append(
                GivenBody(
                    "free",
                    self.origins[name],
                    Z,
                    link=self.carried[1],
                    name=name or _FLOATING,
                    parent=-1,
                    compensated=self.compensated[1],
                )
            )
        return found + [self._body(joint) for joint in self.chosen.moving]

    def _body(self, joint: RawJoint) -> GivenBody:
        ends = {key: float(value) for key, value in joint.limit.items()}
        if joint.kind == "continuous":
            ends = {key: value for key, value in ends.items() if key in ("velocity", "effort")}
        mimic = self.chosen.leaders.get(joint.name)
        follows = Mimic(self.index[mimic.joint] - 1, mimic.multiplier, mimic.offset) if mimic else None
        return GivenBody(
            kind="prismatic" if joint.kind == "prismatic" else "revolute",
            placement=self.origins[joint.name],
            axis=self.snapper.axis(joint),
            link=self.carried[self.index[joint.name]],
            name=joint.name,
            limit=Limit(**ends),
            rotor_inertia=joint.armature,
            viscous=joint.damping,
            coulomb=joint.friction,
            static=joint.static,
            stribeck=joint.stribeck,
            forces=joint.forces,
            servo=joint.servo,
            compensated=self.compensated[self.index[joint.name]],
            parent=self.parents[joint.name],
            mimic=follows,
        )

    def tendon(self, tendon: RawTendon) -> Tendon:
        """A tendon of moving joints by their places."""
        return Tendon(
            tuple((self.index[name] - 1, c) for name, c in tendon.joints),
            tendon.stiffness,
            tendon.rest,
            tendon.damping,
            tendon.armature,
            tendon.name,
        )


def turn(axis: Vec3, angle: Angle) -> Mat3:
    """The rotation by an angle about a unit axis."""
    c, s = angle.cos, angle.sin
    columns = (c * e + s * axis.cross(e) + ((1 - c) * axis.dot(e)) * axis for e in (X, Y, Z))
    return Mat3(*columns).T
