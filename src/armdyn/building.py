"""Robots described in code: body by body (`Builder`), or by their screw axes (`from_screws`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypedDict, Unpack

import numpy as np

from armdyn.arm import Arm, load
from armdyn.chain.canonical import SNAP
from armdyn.chain.joint import NUMBERS, JointForces
from armdyn.errors import InputError, choose
from armdyn.files import arrays
from armdyn.files.made import DRIVE, KINDS, LIMITS, InCode, Maker, mimic

_GRAVITY = (0.0, 0.0, -9.81)
_UNIT = 1e-9  # how far the axis of a screw may be from a unit vector


class JointDetails(TypedDict, total=False):
    """What `Builder.body` takes of a joint, beside its kind and placement; SI units, rad or m."""

    axis: Any  # a vector in the body's frame, or "x", "y", "z"; z by default
    rpy: Any  # roll, pitch, yaw of the placement, where that is given as xyz
    joint_name: str  # the body's name with "_joint" by default
    lower: float
    upper: float
    velocity: float
    effort: float
    rotor_inertia: float  # reflected to the joint
    viscous: float
    coulomb: float
    static: float
    stribeck: float
    offset: float
    stiffness: float
    asymmetry: float
    load_friction: float
    mimic: Any  # (joint, multiplier, offset): the position is multiplier × that joint's + offset


class Builder:
    """A robot described body by body, in place of a URDF written by hand.

    >>> import armdyn
    >>> robot = armdyn.Builder("pendulum")
    >>> rod = (0.02, 0.02, 0.001, 0, 0, 0)
    >>> _ = robot.body("upper", axis="y", mass=1.5, com=(0, 0, -0.2), inertia=rod)
    >>> _ = robot.body("lower", "upper", axis="y", placement=(0, 0, -0.4), mass=1, com=(0, 0, -0.2), inertia=rod)
    >>> robot.frame("tip", "lower", (0, 0, -0.4)).build(tool="tip")
    <Arm pendulum: 2 joints RR, 2.5 kg>

    Parameters
    ----------
    name
        The robot's name.
    gravity
        In the axes of the root, m/s².
    root
        The name of the body that everything stands on.
    """

    def __init__(self, name: str = "robot", gravity: Any = _GRAVITY, root: str = "base") -> None:
        self.name = name
        self.gravity = arrays.vector(gravity, "gravity")
        self._maker = Maker(f"Builder {name!r}", root)

    def __repr__(self) -> str:
        return f"<Builder {self.name}: {', '.join(self._maker.links)}>"

    def body(
        self,
        name: str,
        parent: str | None = None,
        *,
        joint: str = "revolute",
        placement: Any = (0, 0, 0),
        mass: float = 0.0,
        com: Any = (0, 0, 0),
        inertia: Any = None,
        **details: Unpack[JointDetails],
    ) -> Builder:
        """Add a body on a joint; returns the builder, so that calls can be chained.

        Parameters
        ----------
        name
            The body's name; its frame is that of the joint, and is known to the arm by this name.
        parent
            The body that carries it; the root by default.
        joint
            "revolute", "prismatic", "continuous" (revolute without limits), "fixed", or "floating" for a free base.
        placement
            The body's frame in the parent's at q = 0: xyz (with ``rpy=`` if it is turned), a pose (4, 4) or an SE3
            object.
        mass, com, inertia
            The centre of mass in the body's frame; the inertia about it in the axes of that frame: (3, 3), or xx, yy,
            zz, xy, xz, yz. None is a point mass.
        **details
            The joint's axis (z by default), limits, rotor inertia, friction and mimic relation: see `JointDetails`.
        """
        choose(f"joint of body {name!r}", joint, KINDS)
        if not isinstance(name, str) or not name or name in self._maker.links:
            why = "is there already" if name in self._maker.links else "is no name"
            raise InputError(f"{name!r} cannot be added: it {why}; bodies and frames: {', '.join(self._maker.links)}")
        ends = (choose("parent body", parent or self._maker.root, self._maker.links), name)
        for key in details:
            choose(f"detail of body {name!r}", key, JointDetails.__annotations__)
        given: dict[str, Any] = dict(details)
        called = given.pop("joint_name", f"{name}_joint")
        if called in self._maker.joints:
            raise InputError(f"two joints are named {called!r}; joint_name= gives this one another name")
        if "mimic" in given:
            relation = given.pop("mimic")
            leader, *numbers = [relation] if isinstance(relation, str) else relation
            moving = [joint.name for joint in self._maker.joints.values() if joint.moving]
            given["mimic"] = mimic(choose(f"joint for body {name!r} to mimic", leader, moving), *numbers)
        forces: dict[str, Any] = {}
        for key in NUMBERS:
            if key in given:
                forces[key] = arrays.number(given.pop(key), f"{key} of body {name!r}")
        axis = given.pop("axis", "z")
        axis = np.eye(3)["xyz".index(choose("axis", axis, "xyz"))] if isinstance(axis, str) else axis
        at = _pose(placement, given.pop("rpy", (0, 0, 0)))
        limited = "lower" in given or "upper" in given
        kind = "continuous" if joint == "revolute" and not limited else joint
        _refuse_ignored(name, joint, {*given, *forces})
        self._maker.link(name, mass, com, inertia, massive=joint != "fixed" or mass != 0 or inertia is not None)
        self._maker.joint(called, kind, ends, at, axis, forces=JointForces(**forces), **given)
        return self

    def frame(self, name: str, body: str, placement: Any = (0, 0, 0), rpy: Any = (0, 0, 0)) -> Builder:
        """Add a named frame, fixed to a body."""
        if name in self._maker.links:
            raise InputError(f"{name!r} is there already; bodies and frames: {', '.join(self._maker.links)}")
        self._maker.frame(name, choose("body", body, self._maker.links), _pose(placement, rpy))
        return self

    def build(self, **options: Any) -> Arm:
        """The robot; the options are those of `armdyn.load`: base, tip, lock, snap, floating, tool, strict."""
        return load(InCode(self._maker.tree(self.name, ""), self.gravity, "armdyn.Builder"), **options)


def from_screws(
    M: Any,
    S: Any,
    G: Any = None,
    *,
    name: str = "arm",
    gravity: Any = _GRAVITY,
    joints: Sequence[str] | None = None,
    snap: float = SNAP,
) -> Arm:
    """Make an arm from screw axes, as in Lynch and Park, Modern Robotics.

    Parameters
    ----------
    M
        The home positions (n + 1, 4, 4), ``Mlist``: link frame i in link frame i - 1, and the tool in the last one. Or
        the tool's home pose (4, 4) in the space frame; then there are no link frames, and `G` must be left out.
    S
        The screw axes in the space frame, (6, n), ``Slist``: the columns are (ω, v), with ω of length 1 for a revolute
        joint, ω = 0 and v of length 1 for a prismatic one.
    G
        The spatial inertias (n, 6, 6), ``Glist``: in link frame i, rotational part first. Without them the arm has
        kinematics only.
    name, gravity, joints, snap
        The arm's name, gravity in the space frame, the names of the joints, and the angle to snap (`armdyn.load`).
    """
    axes = _numbers(S, "S")
    if axes.ndim != 2 or axes.shape[0] != 6 or axes.shape[1] == 0:
        turned = "; give its transpose" if axes.ndim == 2 and axes.shape[1] == 6 else ""
        raise InputError(f"S must have the shape (6, n), one screw axis per column, got {axes.shape}{turned}")
    n = axes.shape[1]
    home = _numbers(M, "M")
    if home.shape not in ((4, 4), (n + 1, 4, 4)):
        raise InputError(f"M must have the shape ({n + 1}, 4, 4) or (4, 4) for {n} joints, got {home.shape}")
    if G is not None and home.ndim == 2:
        raise InputError(f"with inertias, M must have the link frames too, ({n + 1}, 4, 4); got the tool's home only")
    names = [f"joint{i + 1}" for i in range(n)] if joints is None else list(joints)
    if len(names) != n or len(set(names)) != n:
        raise InputError(f"joints must be {n} different names, got {names}")
    bodies = None if G is None else _numbers(G, "G")
    if bodies is not None and bodies.shape != (n, 6, 6):
        raise InputError(f"G must have the shape ({n}, 6, 6), got {bodies.shape}")
    maker = Maker("screws", "space")
    parent, before, frame = "space", np.zeros(3), np.eye(4)
    for i, (joint, axis) in enumerate(zip(names, axes.T, strict=True)):
        kind, direction, point = _screw(joint, axis)
        if home.ndim == 3:
            frame = frame @ _checked(home[i], f"M[{i}]")
        child, seat = f"on {joint}", np.eye(4)
        seat[:3, 3] = point - before
        maker.link(child, massive=False)
        maker.joint(joint, kind, (parent, child), seat, direction)
        if home.ndim == 3:
            here = frame.copy()
            here[:3, 3] -= point
            link = f"link{i + 1}"
            if bodies is not None:
                maker.link(link, *_body(bodies[i], i))
                maker.joint(f"frame {link}", "fixed", (child, link), here)
            else:
                maker.frame(link, child, here)
        parent, before = child, point
    tool = frame @ _checked(home[n], f"M[{n}]") if home.ndim == 3 else _checked(home, "M")
    tool[:3, 3] -= before
    maker.frame("tool", parent, tool)
    arm = load(InCode(maker.tree(name, ""), arrays.vector(gravity, "gravity"), "screw axes"), tool="tool", snap=snap)
    placed = {frame.name: frame for frame in arm.frames}
    links = [placed[f"link{i + 1}"] for i in range(n)] if home.ndim == 3 else ()
    return replace(arm, named_links=tuple(links)) if links else arm


def _pose(placement: Any, rpy: Any) -> Any:
    at = arrays.placement(placement, rpy)
    pose = np.eye(4)
    pose[:3, :3] = [[float(x) for x in row] for row in at.R.rows]
    pose[:3, 3] = [float(x) for x in at.p]
    return pose


def _refuse_ignored(name: str, joint: str, given: set[str]) -> None:
    """An error for what a joint of this kind cannot have."""
    ignored = set()
    if joint in ("fixed", "floating"):
        ignored = given & {*DRIVE, *LIMITS, *NUMBERS, "mimic"}
    elif joint == "continuous":
        ignored = given & {"lower", "upper"}
    if ignored:
        raise InputError(f"body {name!r}: a {joint} joint has no {', '.join(sorted(ignored))}")


def _numbers(value: Any, what: str) -> Any:
    if isinstance(value, list | tuple):
        value = [arrays.as_matrix(item) for item in value]
    try:
        array = np.asarray(arrays.as_matrix(value), float)
    except (TypeError, ValueError):
        raise InputError(f"{what} must be an array of numbers, got {value!r:.80}") from None
    if not np.isfinite(array).all():
        raise InputError(f"{what} must be finite")
    return array


def _checked(pose: Any, what: str) -> Any:
    return np.array([[float(x) for x in row] for row in arrays.pose(pose, what)])


def _screw(joint: str, axis: Any) -> tuple[str, Any, Any]:
    """Kind, direction and a point of a unit screw axis (ω, v)."""
    turn, slide = axis[:3], axis[3:]
    size = np.linalg.norm(turn)
    if size == 0:
        if abs(np.linalg.norm(slide) - 1) > _UNIT:
            raise InputError(f"screw axis of {joint!r}: with ω = 0, v must be a unit vector, got {axis.tolist()}")
        return "prismatic", slide, np.zeros(3)
    if abs(size - 1) > _UNIT:
        raise InputError(f"screw axis of {joint!r}: ω must be a unit vector or 0, got {axis.tolist()}")
    pitch = float(turn @ slide)
    if abs(pitch) > _UNIT * max(1.0, float(np.linalg.norm(slide))):
        raise InputError(f"screw axis of {joint!r} has the pitch {pitch:g} m/rad; supported are pitch 0 and ω = 0")
    return "continuous", turn, np.cross(turn, slide)


def _body(spatial: Any, i: int) -> tuple[float, Any, Any]:
    """Mass, centre of mass and inertia about it, of a spatial inertia [[I, m[c]], [m[c]ᵀ, m 1]]."""
    mass = float(np.trace(spatial[3:, 3:])) / 3
    cross = spatial[:3, 3:]
    wrong = [
        np.abs(spatial - spatial.T).max(),
        np.abs(spatial[3:, 3:] - mass * np.eye(3)).max(),
        np.abs(cross + cross.T).max(),
    ]
    if max(wrong) > 1e-9 * np.abs(spatial).max():
        raise InputError(
            f"G[{i}] is no spatial inertia [[I, m[c]], [m[c]ᵀ, m 1]] with the rotational part first: {spatial.tolist()}"
        )
    moment = np.array([cross[2, 1], cross[0, 2], cross[1, 0]])
    com = moment / mass if mass else np.zeros(3)
    C = np.array([[0, -com[2], com[1]], [com[2], 0, -com[0]], [-com[1], com[0], 0]])
    rotational = (spatial[:3, :3] + spatial[:3, :3].T) / 2
    return mass, com, rotational + mass * (C @ C) if moment.any() else rotational
