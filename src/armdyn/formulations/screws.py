"""Carrying motions outwards and wrenches inwards over a joint, one screw at a time.

Frame i stands in frame i-1 at b along x of frame i-1 and d along z of frame i, so a lever is two
single products a shift: 4M 4A where the plain cross product takes 6M 6A.
"""

from __future__ import annotations

from armdyn.algebra import Scalar, Vec3
from armdyn.formulations.steps import Step


def wrench_inward(step: Step, f: Vec3, n: Vec3) -> tuple[Vec3, Vec3]:
    """Force and moment about the origin of frame i, seen from frame i-1."""
    b, d, R = step.b, step.d, step.R
    n = Vec3(n.x - d * f.y, n.y + d * f.x, n.z)
    f, n = R @ f, R @ n
    return f, Vec3(n.x, n.y - b * f.z, n.z + b * f.y)


def motion_outward(step: Step, w: Vec3, v: Vec3) -> tuple[Vec3, Vec3]:
    """Angular velocity and velocity of the origin of frame i-1, seen from frame i, the joint at rest."""
    b, d, R = step.b, step.d, step.R
    v = Vec3(v.x, v.y + b * w.z, v.z - b * w.y)
    w, v = R.T @ w, R.T @ v
    return w, Vec3(v.x + d * w.y, v.y - d * w.x, v.z)


def point_inward(step: Step, r: Vec3) -> Vec3:
    """A point given in frame i, given in frame i-1."""
    r = step.R @ Vec3(r.x, r.y, r.z + step.d)
    return Vec3(r.x + step.b, r.y, r.z)


def along_axis(step: Step, f: Vec3, n: Vec3) -> Scalar:
    """What a joint feels of a wrench: the moment about its axis, or the force along it."""
    return n.z if step.revolute else f.z
