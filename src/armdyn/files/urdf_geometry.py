"""Writing corrected geometry to an existing URDF: the <origin> of joints is rewritten, every other byte stays.

Each link of the file keeps its placement in the link frame of the arm. A joint whose constants changed gets the origin
(parent link ← arm's frame) · (arm's joint at 0) · (arm's frame ← child link). The change is applied to the numbers of
the file, so that joints which were not corrected keep every digit.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from armdyn.algebra import Mat3, Vec3
from armdyn.chain import Chain, Joint, Placement
from armdyn.errors import InputError
from armdyn.files import urdf
from armdyn.files.description import Description, from_rpy, to_rpy
from armdyn.files.urdf_tree import RawJoint, read_tree
from armdyn.files.urdf_update import rewritten
from armdyn.options import Cut

UNCHANGED = 1e-13  # metres and radians: smaller differences are due to rounding
SAME = 1e-3  # metres and radians: with larger differences, the arm was not read from this file


def update_geometry(
    original: str | os.PathLike[str],
    out: str | os.PathLike[str],
    given: Chain,
    corrected: Chain,
    cut: Cut,
    snap: float,
    base: bool = False,
) -> list[str]:
    """Write `original` to `out` with corrected joint origins; returns the names of the changed joints.

    `given` is the arm as it was read from the file, `corrected` the same with corrected geometry. With `base`, the
    correction of the base placement, which describes the pose of the measuring device, is applied to the first joint.
    """
    tree = read_tree(original)
    before = urdf.robot(tree, cut, snap)
    if [joint.name for joint in before.chain.joints] != [joint.name for joint in given.joints]:
        names = [", ".join(j.name for j in joints) for joints in (before.chain.joints, given.joints)]
        raise InputError(
            f"{original} is another arm: it has the joints {names[0]}, this arm {names[1]}; use the base, tip and "
            "lock with which this arm was loaded"
        )
    frames = {frame.name: _matrix(frame.placement) for frame in before.frames}
    lines = {}
    for i, joint in enumerate(given.joints):
        raw = tree.joints.get(joint.name)
        if raw is None:
            continue
        poses = (_at_zero(chain, i, base and chain is corrected, given) for chain in (given, corrected))
        old, new = (np.linalg.inv(frames[raw.parent]) @ at @ frames[raw.child] for at in poses)
        _must_be_the_same(original, raw, old)
        if np.abs(new - old).max() > UNCHANGED:
            lines[joint.name] = [_origin(_raw(raw) @ np.linalg.inv(old) @ new)]
    lines |= _tool(tree.joints.values(), before, frames, given, corrected)
    return rewritten(original, out, "joint", "origin", lines)


def _at_zero(chain: Chain, i: int, moved_base: bool, given: Chain) -> Any:
    """The pose of joint i at q = 0 in the frame of its parent."""
    here = _joint(chain.joints[i])
    if chain.parents[i] >= 0:
        return here
    return _matrix((chain if moved_base else given).base) @ here


def _tool(joints: Any, before: Description, frames: dict[str, Any], given: Chain, corrected: Chain) -> dict[str, Any]:
    """The new origin of the fixed joint of the tool's link, if there is one and the tool was corrected."""
    old, new = _matrix(given.tool), _matrix(corrected.tool)
    if np.abs(new - old).max() <= UNCHANGED or len(given.tips) != 1:
        return {}
    last = {frame.name for frame in before.frames if frame.link == given.bodies}
    parents = {joint.parent for joint in joints}
    for joint in joints:
        tip = joint.kind == "fixed" and joint.child in last and joint.parent in last and joint.child not in parents
        if tip and np.abs(frames[joint.child] - old).max() <= 1e-9:
            return {joint.name: [_origin(_raw(joint) @ np.linalg.inv(old) @ new)]}
    return {}


def _must_be_the_same(original: str | os.PathLike[str], raw: RawJoint, computed: Any) -> None:
    off = float(np.abs(_raw(raw) - computed).max())
    if off > SAME:
        raise InputError(
            f"{original}: the origin of joint {raw.name!r} differs by {off:.3g} (m, or in the axes) from this arm's: "
            "expected the file from which the arm was loaded, with the same base, tip and lock"
        )


def _raw(joint: RawJoint) -> Any:
    return _matrix(Placement(from_rpy(*map(float, joint.rpy)), Vec3(*joint.xyz)))


def _joint(joint: Joint) -> Any:
    R, p = joint.placement(0.0)
    return _matrix(Placement(R.matrix(), p))


def _matrix(at: Placement) -> Any:
    M = np.eye(4)
    M[:3, :3] = [[float(x) for x in row] for row in at.R.rows]
    M[:3, 3] = [float(x) for x in at.p]
    return M


def _origin(M: Any) -> str:
    rpy = to_rpy(Mat3(*(Vec3(*map(float, row)) for row in M[:3, :3])))
    xyz, angles = (" ".join(repr(float(x) + 0.0) for x in values) for values in (M[:3, 3], rpy))
    return f'<origin xyz="{xyz}" rpy="{angles}"/>'
