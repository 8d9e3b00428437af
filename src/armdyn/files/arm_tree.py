"""Selecting a part of an arm file: the arm is converted to the tree of links and joints that its URDF would have.

The links have the names that `armdyn.files.urdf_out` writes: ``base``, ``link1``, ... for the frames of the bodies,
``tool``, and every named frame of the arm. Placements and inertias remain exact. An arm file does not say which frame
on a body is the parent of a joint: if a frame is chosen as the base, all joints of its body are attached to it.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from armdyn.algebra import JointRotation, Mat3, Scalar, Vec3, exact
from armdyn.chain import Joint, Placement, Tendon
from armdyn.chain.canonical import compare, snapped, snapped_placement
from armdyn.chain.exactly import compose, inverse, moved
from armdyn.chain.joint import MASSLESS
from armdyn.files import urdf
from armdyn.files.description import Description, Frame, all_frames, of_arm_file, with_tool
from armdyn.files.urdf_out import joint_names, link_names
from armdyn.files.urdf_tree import RawJoint, RawLink, RawMimic, RawTendon, Tree, connected
from armdyn.options import Cut

_Z = (Fraction(0), Fraction(0), Fraction(1))


def cut(arm: Description, selection: Cut, label: str, snap: float, strict: bool | None = None) -> Description:
    """The requested part of an arm; `label` names its file in messages."""
    if replace(selection, floating=None) == Cut() and selection.floating in (None, arm.chain.floating):
        return of_arm_file(arm, label, strict)
    chain = snapped(arm.chain, snap)
    frames = tuple(replace(frame, placement=snapped_placement(frame.placement, snap)) for frame in all_frames(arm))
    whole = replace(arm, chain=chain, frames=frames)
    found = urdf.robot(_tree(whole, label, selection.base), selection, snap, chain.gravity, strict)
    tool = _named_tool(whole)
    if selection.tip is None and tool in {frame.name for frame in found.frames if frame.link}:
        found = replace(with_tool(found, tool), states_tool=arm.states_tool)
    bodies = {name: k for k, name in enumerate(link_names(whole)[:-1])}
    own = tuple(_own_frame(arm, frame, bodies.get(frame.name, 0)) for frame in found.link_frames)
    wanted = {frame.name for frame in arm.frames} | {selection.base, selection.tip} | _without_frames(whole)
    return replace(
        found,
        source=arm.source,
        link_frames=own,
        frames=tuple(frame for frame in found.frames if frame.name in wanted),
        snapped=compare(arm.chain, chain) + found.snapped,
        notes=(*arm.notes, *found.notes, *_massless_base(found)),
    )


def _own_frame(arm: Description, found: Frame, body: int) -> Frame:
    """The frame of a link as in the source of the arm file, from that of body `body` of the whole arm."""
    if not arm.link_frames or not body:
        return found
    own = arm.link_frames[body - 1]
    return Frame(own.name, found.link, compose(found.placement, own.placement))


def _named_tool(arm: Description) -> str:
    """The name of the tool among the links of the tree; "" if the arm has no tool."""
    chain = arm.chain
    here = [f.name for f in arm.frames if f.link == chain.tool_carrier and f.placement == chain.tool]
    return "" if not chain.tool_carrier else here[0] if here else link_names(arm)[-1]


def _without_frames(arm: Description) -> set[str]:
    """The link names of the bodies that have no named frame."""
    named = {frame.link for frame in arm.frames}
    return {name for k, name in enumerate(link_names(arm)[:-1]) if k not in named}


def _massless_base(found: Description) -> tuple[str, ...]:
    """A note if the floating base has no mass: an arm file gives no mass for its base."""
    chain = found.chain
    if not chain.floating or any(chain.links[0].natural):
        return ()
    name = next(frame.name for frame in found.frames if frame.link == 1)
    return (
        f"the floating base has no mass, because an arm file gives its base none, so its motion may be undetermined; "
        f"with_payload(mass, com, inertia, frame={name!r}) adds mass",
    )


def _tree(arm: Description, label: str, base: str | None) -> Tree:
    """The links and joints of the arm; a frame chosen as the base becomes the link of its body."""
    chain, names, calls = arm.chain, link_names(arm), joint_names(arm.chain)
    carriers = dict(enumerate(names[:-1]))  # body -> the link that its joints, frames and mass are attached to
    places = {k: Placement() for k in carriers}  # the placement of that link in the body's frame
    frames = [*arm.frames, *_tool(arm, names[-1])]
    for frame in frames:
        if frame.name == base:
            carriers[frame.link], places[frame.link] = frame.name, frame.placement
    links = {name: RawLink(name) for name in (*names[:-1], *(frame.name for frame in frames))}
    for k, link in enumerate(chain.links, 1):
        body = moved(link, inverse(places[k]))
        lifted = moved(chain.compensated[k - 1], inverse(places[k])) if chain.compensated else MASSLESS
        links[carriers[k]] = RawLink(carriers[k], body=body, compensated=lifted)
    joints = {}
    for i, joint in enumerate(chain.joints):
        k = chain.parents[i] + 1
        at = compose(inverse(places[k]), compose(chain.base if k == 0 else Placement(), _standing(joint)))
        joints[calls[i]] = _raw(joint, calls, calls[i], carriers[k], names[i + 1], at)
    for frame in frames:
        own = frame.name == carriers[frame.link]
        parent, seat = (names[frame.link], Placement()) if own else (carriers[frame.link], places[frame.link])
        at = compose(inverse(seat), frame.placement)
        key = f"frame {frame.name}"
        joints[key] = RawJoint(key, "fixed", parent, frame.name, placement=at)
    whole = connected(label, arm.name, links, joints)
    return replace(whole, format="arm file", tendons=tuple(_tendon(tendon, calls) for tendon in chain.tendons))


def _tendon(tendon: Tendon, calls: list[str]) -> RawTendon:
    numbers = map(exact, (tendon.stiffness, tendon.rest, tendon.damping, tendon.armature))
    return RawTendon(tendon.name, tuple((calls[i], exact(c)) for i, c in tendon.joints), *numbers)


def _tool(arm: Description, name: str) -> tuple[Frame, ...]:
    """The tool as a frame, unless there is none, or already a frame at its placement."""
    carrier, tool = arm.chain.tool_carrier, arm.chain.tool
    there = any(frame.link == carrier and frame.placement == tool for frame in arm.frames)
    return () if there or not carrier else (Frame(name, carrier, tool),)


def _standing(joint: Joint) -> Placement:
    """The joint's frame in its parent's at q = 0; whole numbers are plain integers."""
    if joint.free:
        return Placement()
    R = JointRotation(joint.beta, joint.gamma, joint.theta.cos, joint.theta.sin, joint.turn).matrix()
    return Placement(Mat3(*(Vec3(*map(_plain, row)) for row in R.rows)), joint.origin)


def _plain(x: Scalar) -> Scalar:
    return int(x) if isinstance(x, Fraction) and x.denominator == 1 else x


def _raw(joint: Joint, calls: list[str], name: str, parent: str, child: str, at: Placement) -> RawJoint:
    limit = {key: getattr(joint.limit, key) for key in ("lower", "upper", "velocity", "effort")}
    limited = joint.limit.lower is not None or joint.limit.upper is not None
    turning = "revolute" if limited else "continuous"
    follows = joint.mimic
    return RawJoint(
        name,
        kind="floating" if joint.free else "prismatic" if joint.prismatic else turning,
        parent=parent,
        child=child,
        axis=_Z,
        limit={key: exact(value) for key, value in limit.items() if value is not None},
        damping=exact(joint.viscous),
        friction=exact(joint.coulomb),
        mimic=RawMimic(calls[follows.joint], exact(follows.multiplier), exact(follows.offset)) if follows else None,
        line=0,
        armature=exact(joint.rotor_inertia),
        static=exact(joint.static),
        stribeck=exact(joint.stribeck),
        forces=joint.forces,
        servo=joint.servo,
        placement=at,
    )
