"""Cutting an arm that has been built: it becomes the tree of links and joints that a URDF of it would have.

The tree's links are called as in the URDF that `armdyn.files.urdf_out` writes: ``base``, ``link1``, ... for the bodies'
own frames, ``tool``, and every named frame of the arm. Placements and bodies stay the exact numbers that they are. An
arm does not say which of the frames on a body carries a joint: with a frame as the base, all joints of its body stand
on it.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from armdyn.algebra import JointRotation, Mat3, Scalar, Vec3, exact
from armdyn.chain import Joint, Placement
from armdyn.chain.exactly import compose, inverse, moved
from armdyn.chain.snap import compare, snapped, snapped_placement
from armdyn.files import urdf
from armdyn.files.cutting import Cut
from armdyn.files.description import Description, Frame
from armdyn.files.urdf_out import joint_names, link_names
from armdyn.files.urdf_tree import RawJoint, RawLink, RawMimic, Tree, connected

_NONE = (Fraction(0),) * 3
_Z = (Fraction(0), Fraction(0), Fraction(1))


def cut(arm: Description, asked: Cut, label: str, snap: float) -> Description:
    """The part of an arm that is asked for; `label` is what messages call its file."""
    if not (asked.base or asked.tip or asked.lock) and asked.floating in (None, arm.chain.floating):
        return arm
    chain = snapped(arm.chain, snap)
    frames = tuple(replace(frame, placement=snapped_placement(frame.placement, snap)) for frame in arm.frames)
    whole = replace(arm, chain=chain, frames=frames)
    found = urdf.robot(_tree(whole, label, asked.base), asked, snap, chain.gravity)
    wanted = {frame.name for frame in arm.frames} | {asked.base, asked.tip} | _nameless(whole)
    return replace(
        found,
        source=arm.source,
        frames=tuple(frame for frame in found.frames if frame.name in wanted),
        snapped=compare(arm.chain, chain) + found.snapped,
        notes=(*arm.notes, *found.notes, *_massless_base(found)),
    )


def _nameless(arm: Description) -> set[str]:
    """The names of the bodies that no frame of the arm stands on."""
    named = {frame.link for frame in arm.frames}
    return {name for k, name in enumerate(link_names(arm)[:-1]) if k not in named}


def _massless_base(found: Description) -> tuple[str, ...]:
    """What to know of a base that floats and has no mass, because an arm file gives the base none."""
    chain = found.chain
    if not chain.floating or any(chain.links[0].natural):
        return ()
    name = next(frame.name for frame in found.frames if frame.link == 1)
    return (
        f"the floating base has no mass, because an arm file gives its base none, so its motion may be undetermined; "
        f"with_payload(mass, com, inertia, frame={name!r}) adds mass",
    )


def _tree(arm: Description, label: str, base: str | None) -> Tree:
    """The links and joints of the arm; a frame that is the base carries what its body carries."""
    chain, names, calls = arm.chain, link_names(arm), joint_names(arm.chain)
    carriers = dict(enumerate(names[:-1]))  # body -> the link that its joints, frames and mass stand on
    places = {k: Placement() for k in carriers}  # of that link in the body's frame
    frames = [*arm.frames, *_tool(arm, names[-1])]
    for frame in frames:
        if frame.name == base:
            carriers[frame.link], places[frame.link] = frame.name, frame.placement
    links = {name: RawLink(name) for name in (*names[:-1], *(frame.name for frame in frames))}
    for k, link in enumerate(chain.links, 1):
        body = moved(link, inverse(places[k]))
        links[carriers[k]] = RawLink(carriers[k], body=body)
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
        joints[key] = RawJoint(
            key, "fixed", parent, frame.name, _NONE, _NONE, _Z, {}, Fraction(0), Fraction(0), None, 0, placement=at
        )
    return replace(connected(label, arm.name, links, joints), format="arm file")


def _tool(arm: Description, name: str) -> tuple[Frame, ...]:
    """The tool of an arm with one tip as a frame, unless a frame stands there already."""
    last, tool = arm.chain.bodies, arm.chain.tool
    there = any(frame.link == last and frame.placement == tool for frame in arm.frames)
    return () if there or len(arm.chain.tips) != 1 else (Frame(name, last, tool),)


def _standing(joint: Joint) -> Placement:
    """The joint's frame in its parent's at q = 0, with plain integers where it is right-angled."""
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
        xyz=_NONE,
        rpy=_NONE,
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
        placement=at,
    )
