"""Sliding frames along their axes where the frames' convention leaves it open.

Where two neighbouring axes are parallel, their common normal may stand anywhere along them, and the
last frame may stand anywhere along its axis. Nothing that is asked of an arm in joint space, and no
pose of its tool, depends on the choice, but every d that becomes 0 shortens a program.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

from armdyn.algebra import IDENTITY, Scalar, Z
from armdyn.chain.chain import Chain
from armdyn.chain.joint import Joint
from armdyn.chain.placement import Placement


def parallel(joint: Joint) -> bool:
    """Whether the joint's axis is parallel to the one before it."""
    return bool(joint.beta.sin == 0 and joint.gamma.sin == 0)


@lru_cache(maxsize=256)
def slid(chain: Chain) -> Chain:
    """The same arm with as many d's zero as the frames' convention allows."""
    if chain.n == 0:
        return chain
    joints, links = list(chain.joints), list(chain.links)
    for i in range(chain.n - 1, 0, -1):
        joint = joints[i]
        if parallel(joint) and joint.d != 0:
            e: Scalar = joint.beta.cos * joint.gamma.cos * joint.d
            joints[i - 1] = replace(joints[i - 1], d=joints[i - 1].d + e)
            links[i - 1] = links[i - 1].moved(IDENTITY, -e * Z)
            joints[i] = replace(joint, d=0 * joint.d)
    start = chain.n - 1
    while start > 0 and parallel(joints[start]):
        start -= 1
    e = joints[start].d
    joints[start] = replace(joints[start], d=0 * e)
    for k in range(start, chain.n):
        if k > start:
            e = joints[k].beta.cos * joints[k].gamma.cos * e
        links[k] = links[k].moved(IDENTITY, e * Z)
    tool = Placement(chain.tool.R, chain.tool.p + e * Z)
    return replace(chain, joints=tuple(joints), links=tuple(links), tool=tool)


def slid_outwards(chain: Chain) -> Chain:
    """The same arm with the d's of neighbouring parallel axes gathered in the outermost joint.

    What is carried from the tip inwards then meets the lengths while it is still short. Links that are
    not given by numbers, and chains that slide between parallel axes, are left alone.
    """
    known = all(isinstance(x, int | float | Fraction) for link in chain.links for x in link.natural)
    return _slid_outwards(chain) if known else chain


@lru_cache(maxsize=256)
def _slid_outwards(chain: Chain) -> Chain:
    joints, links = list(chain.joints), list(chain.links)
    for i in range(chain.n - 1):
        inner, outer = joints[i], joints[i + 1]
        if inner.revolute and outer.revolute and parallel(outer) and inner.d != 0:
            joints[i] = replace(inner, d=0 * inner.d)
            links[i] = links[i].moved(IDENTITY, inner.d * Z)
            joints[i + 1] = replace(outer, d=outer.d + outer.beta.cos * outer.gamma.cos * inner.d)
    return replace(chain, joints=tuple(joints), links=tuple(links))
