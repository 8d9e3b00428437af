"""Making a robot's tree of links and joints in code: what the readers of objects in memory and `armdyn.Builder` share.

The tree is the one that the reader of URDF makes, so that selection, locks, frames, notes and errors are the same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from armdyn.algebra import Mat3, Vec3, exact
from armdyn.errors import InputError
from armdyn.files import arrays
from armdyn.files.description import to_rpy
from armdyn.files.urdf_tree import RawJoint, RawLink, RawMimic, Tree, Triple, connected

KINDS = ("revolute", "continuous", "prismatic", "fixed", "floating")
DRIVE = {  # what a caller may give of a joint: the names of `armdyn.from_dh`, and the fields of `RawJoint`
    "rotor_inertia": "armature",
    "viscous": "damping",
    "coulomb": "friction",
    "static": "static",
    "stribeck": "stribeck",
}
LIMITS = ("lower", "upper", "velocity", "effort")
_UNLIMITED = 1e30  # other libraries write a missing limit as infinity or the largest float


class Maker:
    """A tree in the making; `label` is what messages call it. Every number is checked as it is given."""

    def __init__(self, label: str, root: str) -> None:
        self.label, self.root = label, root
        self.links: dict[str, RawLink] = {root: RawLink(root)}
        self.joints: dict[str, RawJoint] = {}
        self.notes: list[str] = []

    def link(self, name: str, mass: Any = 0, com: Any = (0, 0, 0), inertia: Any = None, massive: bool = True) -> None:
        """Add a link, or the mass of one that is there; the inertia is about the centre of mass, in the link's axes."""
        where = f"of link {name!r}"
        c, J = arrays.vector(com, f"com {where}"), arrays.inertia(inertia)
        six = tuple(exact(x) for x in (J.xx, J.xy, J.xz, J.yy, J.yz, J.zz))
        xyz = (exact(c.x), exact(c.y), exact(c.z))
        m = arrays.number(mass, f"mass {where}")
        self.links[name] = RawLink(name, massive, mass=m, xyz=xyz, inertia=six) if massive else RawLink(name)

    def joint(
        self, name: str, kind: str, ends: tuple[str, str], at: Any = None, axis: Any = (0, 0, 1), **more: Any
    ) -> None:
        """Add a joint between two links; `at` is the pose (4, 4) of the child in the parent at q = 0.

        `more` are the drive (`DRIVE`), the limits (`LIMITS`), `mimic` (a `RawMimic`) and `forces`.
        """
        where = f"of joint {name!r}"
        pose = np.eye(4) if at is None else np.asarray(at, float)
        rows = arrays.pose(pose, f"placement {where}")
        p: Triple = (rows[0][3], rows[1][3], rows[2][3])
        direction = arrays.vector(axis, f"axis {where}")
        if not any(direction):
            raise InputError(f"the axis {where} is 0 0 0; expected a nonzero vector")
        drive: dict[str, Any] = {
            DRIVE[key]: arrays.number(more.pop(key), f"{key} {where}") for key in DRIVE if key in more
        }
        limit = {key: more.pop(key) for key in LIMITS if key in more}
        self.joints[name] = RawJoint(
            name,
            kind,
            ends[0],
            ends[1],
            xyz=p,
            rpy=_rpy(pose),
            axis=(exact(direction.x), exact(direction.y), exact(direction.z)),
            limit=_limits(limit, where),
            **drive,
            **more,
        )

    def frame(self, name: str, link: str, at: Any) -> None:
        """Add a named frame: a massless link on a fixed joint."""
        self.link(name, massive=False)
        self.joint(f"frame {name}", "fixed", (link, name), at)

    def tree(self, name: str, form: str) -> Tree:
        """The tree, checked; `form` is the format that `Arm.source` names."""
        made = connected(self.label, name, self.links, self.joints, tuple(self.notes))
        return replace(made, format=form)


def mimic(joint: str, multiplier: Any = 1, offset: Any = 0) -> RawMimic:
    """A mimic relation with checked numbers."""
    return RawMimic(joint, arrays.number(multiplier, "mimic multiplier"), arrays.number(offset, "mimic offset"))


def order_note(tree: Tree, names: Sequence[str], whose: str) -> tuple[str, ...]:
    """A note if the moving joints, depth first, are not in the order of `names`."""
    depth_first, waiting = [], [tree.root]
    while waiting:
        link = waiting.pop()
        if link in tree.above and tree.above[link].name in names:
            depth_first.append(tree.above[link].name)
        waiting += [joint.child for joint in reversed(tree.below[link])]
    if depth_first == list(names):
        return ()
    return (f"the joints are in depth-first order, {', '.join(depth_first)}; {whose} order is {', '.join(names)}",)


def _rpy(pose: Any) -> Triple:
    R = Mat3(*(Vec3(*(float(x) for x in row[:3])) for row in pose[:3]))
    roll, pitch, yaw = (exact(float(x)) for x in to_rpy(R))
    return roll, pitch, yaw


def _limits(given: Mapping[str, Any], where: str) -> dict[str, Fraction]:
    """The limits that limit: others are infinite or absurdly large."""
    out = {}
    for key, value in given.items():
        if value is None or (isinstance(value, float | int) and not abs(float(value)) < _UNLIMITED):
            if value is not None and math.isnan(float(value)):
                raise InputError(f"the {key} limit {where} is not a number")
            continue
        out[key] = arrays.number(value, f"{key} limit {where}")
    return out


@dataclass(frozen=True)
class InCode:
    """A robot described in code: its tree, gravity in the root's axes, and what `Arm.source` says."""

    tree: Tree
    gravity: Vec3
    source: str
