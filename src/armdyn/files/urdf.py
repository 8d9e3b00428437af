"""URDF in: a file's tree of links and joints -> a serial chain in normal driving-axis frames.

What is fixed is merged with its inertia, what is locked likewise; nothing that has mass and is
carried by the arm is dropped. The zero of every joint stays the file's own. Angles are snapped before
frames are placed, because a right angle written 1.5708 would tilt every frame after it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from numbers import Real
from pathlib import Path

from armdyn.algebra import ZERO, Angle, Mat3, Sym3, Vec3, X, Y, Z
from armdyn.chain import Limit, Link, Placement
from armdyn.chain.exactly import compose, from_rpy, moved, unit
from armdyn.chain.frames import PARALLEL, Body, build
from armdyn.chain.snap import SNAP, Snap, SnapReport, few_digits
from armdyn.errors import InputError, choose
from armdyn.files.description import Description, Frame
from armdyn.files.urdf_xml import RawJoint, RawLink, Tree, read_tree

_HERE = Placement()
_EMPTY = Link.from_natural((Fraction(0),) * 10)


def read(
    source: str | Path,
    *,
    base: str | None = None,
    tip: str | None = None,
    lock: Mapping[str, float] | None = None,
    snap: float = SNAP,
) -> Description:
    """Read an arm from a URDF file (or a text that starts with `<`).

    Parameters
    ----------
    source
        Path of the file, or the text itself.
    base
        Link that stands still; the file's root by default. Gravity is (0, 0, -9.81) in its frame.
    tip
        Link whose frame is the tool; needed where more than one chain of moving joints exists. By
        default the tool is the last moving link's frame.
    lock
        Joints to freeze, with their values (rad or m).
    snap
        Angles within this many radians of a multiple of π/2 are taken as that; lengths below a
        hundredth of it, in metres, as zero. 0 takes every number as written.
    """
    tree = read_tree(source)
    start = tree.root if base is None else choose(f"link of {tree.label} for base", base, tree.links)
    locked = _locked(tree, lock or {})
    path = _path(tree, start, tip, locked)
    walk = _Walk(tree, path, locked, _Snapper(snap))
    walk.run(start)
    last = path[-1].child if tip is None else tip
    bodies = [walk.body(joint, link) for joint, link in zip(path, walk.carried[1:], strict=True)]
    chain, own = build(bodies, tool=walk.where[last][1], parallel=max(PARALLEL, snap))
    frames = tuple(Frame(name, k, compose(own[k - 1], at) if k else at) for name, (k, at) in sorted(walk.where.items()))
    return Description(tree.name, chain, f"URDF {tree.label}", frames, walk.snapper.report)


def _locked(tree: Tree, lock: Mapping[str, float]) -> dict[str, float]:
    moving = [j.name for j in tree.joints.values() if j.moving]
    if not isinstance(lock, Mapping):
        raise InputError(f"lock must give every joint its value, as in {{'joint': 0.0}}; got {lock!r}")
    for name, value in lock.items():
        choose(f"joint of {tree.label} to lock", name, moving)
        if tree.joints[name].kind in ("floating", "planar"):
            raise InputError(f"joint {name!r} is {tree.joints[name].kind}: no single value can lock it")
        if not isinstance(value, Real) or not math.isfinite(value):
            raise InputError(f"joint {name!r} cannot be locked at {value!r}; a finite number is expected")
    return {name: float(value) for name, value in lock.items()}


def _path(tree: Tree, start: str, tip: str | None, locked: Mapping[str, float]) -> list[RawJoint]:
    """The moving joints of the arm, base to tip; everything else that it carries must stand still."""
    carrier = _carriers(tree, start, locked)
    if tip is None:
        inner = {joint.name for joint in carrier.values() if joint is not None}
        ends = [tree.joints[name] for name in tree.joints if name in carrier and name not in inner]
        if not ends:
            raise InputError(f"{tree.label}: no moving joint below link {start!r}; an arm needs at least one")
        if len(ends) > 1:
            raise InputError(f"{tree.label}: {_many(ends, carrier)}")
        path = _down_to(ends[0], carrier)
    else:
        path = _way_to(tree, start, choose(f"link of {tree.label} for tip", tip, tree.links), locked)
        _nothing_loose(tree, path, tip, carrier)
    for joint in path:
        where = f"{tree.label}: joint {joint.name!r}"
        if joint.kind in ("floating", "planar"):
            raise InputError(f"{where} is {joint.kind}; an arm has revolute and prismatic joints")
        if joint.mimic is not None:
            leader, factor, offset = joint.mimic
            raise InputError(
                f"{where} mimics {leader!r} (times {float(factor):g} plus {float(offset):g}); "
                f"lock it, as in lock={{{joint.name!r}: 0.0}}"
            )
    return path


def _carriers(tree: Tree, start: str, locked: Mapping[str, float]) -> dict[str, RawJoint | None]:
    """Every moving joint below a link, parents first, with the moving joint that carries it (None: the base)."""
    carriers: dict[str, RawJoint | None] = {}
    waiting: list[tuple[str, RawJoint | None]] = [(start, None)]
    while waiting:
        link, carrier = waiting.pop()
        for joint in tree.below[link]:
            if joint.moving and joint.name not in locked:
                carriers[joint.name] = carrier
                waiting.append((joint.child, joint))
            else:
                waiting.append((joint.child, carrier))
    return carriers


def _nothing_loose(tree: Tree, path: list[RawJoint], tip: str, carriers: Mapping[str, RawJoint | None]) -> None:
    """An error that names the moving joints which the arm carries beside its own."""
    own = {joint.name for joint in path}
    carried, loose = set(own), []
    for name, carrier in carriers.items():  # parents first
        if carrier is not None and carrier.name in carried and name not in own:
            carried.add(name)
            loose.append(name)
    if loose:
        raise InputError(
            f"{tree.label}: the arm to {tip!r} also carries the moving joints {', '.join(loose[:50])}; "
            f"lock them, as in lock={{{loose[0]!r}: 0.0}}, or choose another tip"
        )


def _down_to(joint: RawJoint, carriers: Mapping[str, RawJoint | None]) -> list[RawJoint]:
    """The moving joints from the base down to this one."""
    chain = [joint]
    while (carrier := carriers[chain[-1].name]) is not None:
        chain.append(carrier)
    return chain[::-1]


def _many(ends: list[RawJoint], carriers: Mapping[str, RawJoint | None]) -> str:
    """The chains to choose from, one a line."""
    lines = []
    for end in ends[:20]:
        names = [joint.name for joint in _down_to(end, carriers)]
        shown = names if len(names) <= 8 else [*names[:3], "...", *names[-3:]]
        lines.append(f"  tip={end.child!r}: {' > '.join(shown)}")
    more = [f"  and {len(ends) - 20} more"] if len(ends) > 20 else []
    head = f"{len(ends)} chains of moving joints; choose one with base and tip, or lock joints with lock={{...}}:"
    return "\n".join([head, *lines, *more])


def _way_to(tree: Tree, start: str, tip: str, locked: Mapping[str, float]) -> list[RawJoint]:
    """The moving joints from `start` down to `tip`."""
    path, link = [], tip
    while link != start:
        joint = tree.above.get(link)
        if joint is None:
            raise InputError(
                f"{tree.label}: tip {tip!r} is not below base {start!r}; the root of the file is {tree.root!r}"
            )
        if joint.moving and joint.name not in locked:
            path.append(joint)
        link = joint.parent
    if not path:
        raise InputError(f"{tree.label}: no moving joint between {start!r} and {tip!r}; an arm needs at least one")
    return path[::-1]


class _Snapper:
    """Reads placements and axes with angles and lengths snapped, and remembers what it changed."""

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
        """Where the child's frame stands in the parent's, at q = 0."""
        where = f"joint {joint.name}"
        rpy = (self.angle(where, what, float(x)) for what, x in zip(("roll", "pitch", "yaw"), joint.rpy, strict=True))
        xyz = (self.length(where, what, x) for what, x in zip("xyz", joint.xyz, strict=True))
        return Placement(from_rpy(*rpy), Vec3(*xyz))

    def axis(self, joint: RawJoint) -> Vec3:
        """The direction of the joint's axis, of length 1."""
        v = unit(Vec3(*joint.axis))
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
        """The link's body in its own frame."""
        if not link.massive:
            return _EMPTY
        where = f"link {link.name}"
        rpy = (self.angle(where, what, float(x)) for what, x in zip(("roll", "pitch", "yaw"), link.rpy, strict=True))
        xx, xy, xz, yy, yz, zz = link.inertia
        body = Link(link.mass, ZERO, Sym3(xx, xy, yy, xz, yz, zz))
        return moved(body, Placement(from_rpy(*rpy), Vec3(*link.xyz)))


class _Walk:
    """From the base outwards: which moving link carries each link of the file, and where; their bodies together."""

    def __init__(self, tree: Tree, path: list[RawJoint], locked: Mapping[str, float], snapper: _Snapper) -> None:
        self.tree = tree
        self.index = {joint.name: k for k, joint in enumerate(path, 1)}
        self.locked = locked
        self.snapper = snapper
        self.carried = [_EMPTY for _ in range(len(path) + 1)]
        self.origins: dict[str, Placement] = {}
        self.where: dict[str, tuple[int, Placement]] = {}  # link of the file -> moving link (0: base), place in it

    def run(self, start: str) -> None:
        self.where[start] = (0, _HERE)
        waiting = [start]
        while waiting:
            link = waiting.pop()
            k, at = self.where[link]
            if k:  # what the base carries moves nothing
                body, others = moved(self.snapper.inertial(self.tree.links[link]), at), self.carried[k]
                self.carried[k] = body if others is _EMPTY else others if body is _EMPTY else others + body
            for joint in self.tree.below[link]:
                if self._stands_apart(joint):
                    continue
                origin = compose(at, self.snapper.origin(joint))
                if joint.name in self.index:
                    self.origins[joint.name] = origin
                    self.where[joint.child] = (self.index[joint.name], _HERE)
                else:
                    self.where[joint.child] = (k, compose(origin, self._held(joint)))
                waiting.append(joint.child)

    def _stands_apart(self, joint: RawJoint) -> bool:
        """Whether the joint moves another limb on the base, which is none of this arm's business."""
        return joint.moving and joint.name not in self.index and joint.name not in self.locked

    def _held(self, joint: RawJoint) -> Placement:
        """The motion of a joint that is fixed or locked."""
        if not joint.moving or self.locked[joint.name] == 0:
            return _HERE
        value, axis = self.locked[joint.name], self.snapper.axis(joint)
        if joint.kind == "prismatic":
            return Placement(_HERE.R, Fraction(repr(value)) * axis)
        return Placement(turn(axis, Angle.of(value, self.snapper.snap)), _HERE.p)

    def body(self, joint: RawJoint, link: Link) -> Body:
        """What `build` needs to know of a moving link."""
        ends = {key: float(value) for key, value in joint.limit.items()}
        if joint.kind == "continuous":
            ends = {key: value for key, value in ends.items() if key in ("velocity", "effort")}
        return Body(
            kind="prismatic" if joint.kind == "prismatic" else "revolute",
            placement=self.origins[joint.name],
            axis=self.snapper.axis(joint),
            link=link,
            name=joint.name,
            limit=Limit(**ends),
            viscous=joint.damping,
            coulomb=joint.friction,
        )


def turn(axis: Vec3, angle: Angle) -> Mat3:
    """The rotation by an angle about an axis of length 1."""
    c, s = angle.cos, angle.sin
    columns = (c * e + s * axis.cross(e) + ((1 - c) * axis.dot(e)) * axis for e in (X, Y, Z))
    return Mat3(*columns).T
