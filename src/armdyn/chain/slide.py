"""The canonical form of a robot: frames slid along their axes where the convention allows it, rotors merged.

If two neighbouring axes are parallel, their common normal may be anywhere along them, and the frame of a tip may be
anywhere along its axis. No joint-space quantity and no pose of the tool depends on the choice, but every d that becomes
0 shortens a program.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from armdyn.algebra import IDENTITY, Scalar, Z
from armdyn.algebra.scalar import is_number
from armdyn.chain.chain import Chain
from armdyn.chain.joint import Joint
from armdyn.chain.link import Link
from armdyn.chain.placement import Placement


def parallel(joint: Joint) -> bool:
    """Whether the joint's axis is parallel to the one before it."""
    return bool(joint.beta.sin == 0 and joint.gamma.sin == 0)


@lru_cache(maxsize=256)
def canonical(chain: Chain) -> Chain:
    """The same robot with as many d's zero as the convention allows, and the rotors of first joints in their links.

    A tool that is not at the only tip stays where it is in its link's frame, which may be another one: see `reframed`.
    """
    joints, links = list(chain.joints), list(chain.links)
    for i in range(chain.bodies - 1, 0, -1):
        joint, parent = joints[i], chain.parents[i]
        if may_slide(chain, i) and parallel(joint) and joint.d != 0:
            e: Scalar = joint.beta.cos * joint.gamma.cos * joint.d
            joints[parent] = replace(joints[parent], d=joints[parent].d + e)
            links[parent] = links[parent].moved(IDENTITY, -e * Z)
            joints[i] = replace(joint, d=0 * joint.d)
    tool = chain.tool
    for tip in chain.tips:
        e = _slide_tip(chain, tip, joints, links)
        if len(chain.tips) == 1:
            tool = Placement(tool.R, tool.p + e * Z)
    slid = replace(chain, joints=tuple(joints), links=tuple(links), tool=tool)
    return _first_rotors_in_links(slid)


def may_slide(chain: Chain, i: int) -> bool:
    """Whether the frame that joint i stands on may slide along its axis: a moving link with no other joint on it."""
    parent = chain.parents[i]
    return (
        parent >= 0 and not chain.joints[parent].free and chain.children[parent] == (i,) and not chain.joints[i].forked
    )


def _slide_tip(chain: Chain, tip: int, joints: list[Joint], links: list[Link]) -> Scalar:
    """Move the frames of the last parallel joints before a tip along their axes; how far the tip's own moved back."""
    group = [tip]
    while parallel(joints[group[-1]]) and may_slide(chain, group[-1]):
        group.append(chain.parents[group[-1]])
    start, *others = reversed(group)
    if joints[start].free:
        return 0
    e: Scalar = joints[start].d
    joints[start] = replace(joints[start], d=0 * e)
    links[start] = links[start].moved(IDENTITY, e * Z)
    for k in others:
        e = joints[k].beta.cos * joints[k].gamma.cos * e
        links[k] = links[k].moved(IDENTITY, e * Z)
    return e


def _first_rotors_in_links(chain: Chain) -> Chain:
    """The rotor of a turning joint on the fixed base, as part of its link, which turns about the same fixed axis."""
    joints, links = list(chain.joints), list(chain.links)
    for i, parent in enumerate(chain.parents):
        joint, J = joints[i], links[i].inertia
        if parent < 0 and joint.revolute and joint.rotor_inertia != 0:
            links[i] = replace(links[i], inertia=replace(J, zz=J.zz + joint.rotor_inertia))
            joints[i] = replace(joint, rotor_inertia=0)
    return replace(chain, joints=tuple(joints), links=tuple(links))


def slid_outwards(chain: Chain) -> Chain:
    """The same arm with the d's of neighbouring parallel axes gathered in the outermost joint.

    Recursions from the tip inwards then meet these lengths while their expressions are still short. Links or geometry
    that are not numbers, and chains with prismatic joints between parallel axes, are left unchanged.
    """
    known = all(is_number(x) for link in chain.links for x in link.natural)
    if not (known and chain.known_geometry):
        return chain
    # A floating base stands where its pose says, which is no constant; sliding leaves it alone.
    return replace(_slid_outwards(replace(chain, base=Placement())), base=chain.base)


@lru_cache(maxsize=256)
def _slid_outwards(chain: Chain) -> Chain:
    joints, links = list(chain.joints), list(chain.links)
    for i, parent in enumerate(chain.parents):
        inner, outer = joints[parent], joints[i]
        if may_slide(chain, i) and inner.revolute and outer.revolute and parallel(outer) and inner.d != 0:
            joints[parent] = replace(inner, d=0 * inner.d)
            links[parent] = links[parent].moved(IDENTITY, inner.d * Z)
            joints[i] = replace(outer, d=outer.d + outer.beta.cos * outer.gamma.cos * inner.d)
    return replace(chain, joints=tuple(joints), links=tuple(links))
