"""Loading a robot from a file, the text of a URDF, the catalogue or a Denavit-Hartenberg table."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Real
from typing import Any

from armdyn import files
from armdyn.arm import Arm
from armdyn.chain.canonical import SNAP
from armdyn.errors import InputError, checked_keywords
from armdyn.files.cutting import Cut, Lock
from armdyn.files.description import with_tool


@checked_keywords
def load(
    arm: Any,
    *,
    base: str | None = None,
    tip: str | None = None,
    lock: Lock = None,
    snap: float = SNAP,
    floating: bool | None = None,
    gravity: Any = None,
    allow_outside: bool = False,
    xacro: Mapping[str, Any] | None = None,
    package_dirs: Sequence[str | os.PathLike[str]] = (),
    tool: str | None = None,
    strict: bool | None = None,
) -> Arm:
    """Load a robot from the catalogue (`armdyn.catalogue`), a file, a text, or another library's model in memory.

    Parameters
    ----------
    arm
        A catalogue name, the text of a URDF or of an MJCF model, or the path of an arm file (.toml), URDF (.urdf,
        .xml), xacro (.xacro), SDFormat (.sdf) or MJCF model (.xml, .mjcf). Or a model in memory: a ``pinocchio.Model``,
        a ``mujoco.MjModel``, a ``DHRobot`` or ``ERobot`` of the Robotics Toolbox.
    base, tip
        The links or frames at the ends of one chain of the tree; in an arm file the links are ``base``, ``link1``, ...
        and ``tool``. Without `tip` the whole robot is loaded, with branches and mimic joints. For a `base` below the
        root, the joints between are locked, and gravity is rotated from the root's axes into the base's.
    lock
        Joints to lock, with values in rad or m, or "rest": ``{"finger_joint": 0.02}``. ``lock="rest"`` locks all joints
        beside the chain at their rest values: zero, or mid-range if zero is outside the limits. See `Arm.notes`.
    snap
        Angles within `snap` (rad) of a multiple of π/2 are snapped to it; 0 takes every angle as written.
    floating
        True for a floating base, False for a fixed one; by default as the file says.
    gravity
        The gravity vector in the base's axes, m/s², in place of the file's.
    allow_outside
        Whether an MJCF model may read files outside its own folder.
    xacro
        The arguments of a .xacro file: ``{"ur_type": "ur5e"}``.
    package_dirs
        Folders with ROS packages that a .xacro file refers to (``$(find name)``), or packages themselves. Without it
        are found the file's own package (the nearest folder above it with a ``package.xml``), the packages beside that,
        and those in ROS_PACKAGE_PATH and AMENT_PREFIX_PATH; no file outside of these is read.
    tool
        The frame that is the tool, by name: any frame that moves. By default it is `tip`, or what an arm file states,
        or the only frame named by convention (tool0, tcp, ee, flange, in this order), or the end of the chain; a robot
        with several tips may have none. See `Arm.tool`.
    strict
        By default a mass below zero is an error, while an inertia that no body can have and a moving link without any
        are notes. True makes all of these errors, False makes them notes.
    """
    _check_snap(snap)
    for name, flag in (("floating", floating), ("strict", strict)):
        if flag not in (None, True, False):
            raise InputError(f"{name} must be True, False or None, got {flag!r}")
    if tool is not None and not isinstance(tool, str):
        raise InputError(f"tool must be the name of a frame, got {tool!r}; Arm.with_tool moves the tool")
    cut = Cut(base, tip, lock, floating)
    read = files.read(
        arm, cut, snap=snap, allow_outside=allow_outside, xacro=xacro, package_dirs=package_dirs, strict=strict
    )
    robot = with_tool(read, tool)
    read_as = robot.snapped, robot.notes, robot.tool_name, robot.link_frames
    made = Arm(robot.name, robot.chain, snap, robot.source, robot.frames, *read_as)
    if made.snapped.uncertain:
        first = made.snapped.uncertain[0]
        note = (
            f"{first} although it is no rounding of it ({len(made.snapped.uncertain)} such angles): {made.snap_summary}"
        )
        made = replace(made, notes=(*made.notes, note))
    return made if gravity is None else made.with_gravity(gravity)


def as_arm(arm: Arm | str | os.PathLike[str], caller: str) -> Arm:
    """The arm itself, or the one that a catalogue name or a path stands for; `caller` is named in the error."""
    if isinstance(arm, Arm):
        return arm
    if isinstance(arm, str | os.PathLike):
        return load(arm)
    raise InputError(f"{caller} takes an Arm, a catalogue name or the path of a robot's file, got {arm!r}")


def _check_snap(snap: float) -> None:
    if not isinstance(snap, Real) or not 0 <= snap < 0.1:
        raise InputError(f"snap must be an angle from 0 to 0.1 rad, got {snap!r}")


@checked_keywords
def from_dh(
    rows: Sequence[Mapping[str, Any] | Sequence[float]],
    convention: str = "standard",
    *,
    name: str = "arm",
    gravity: Any = (0.0, 0.0, -9.81),
    base: Any = None,
    tool: Any = None,
    snap: float = SNAP,
) -> Arm:
    """Make an arm from a Denavit-Hartenberg table.

    Parameters
    ----------
    rows
        One row per joint, base to tip: ``(theta, d, a, alpha)`` of a revolute joint, or a mapping with these keys (zero
        by default) and optionally ``kind`` ("revolute", "prismatic"), ``name``, ``lower``, ``upper``, ``velocity``,
        ``effort``, ``mass``, ``com``, ``inertia`` (about the centre of mass: (3, 3), or xx, yy, zz, xy, xz, yz),
        ``rotor_inertia``, ``viscous``, ``coulomb``, ``static``, ``stribeck``, and the forces of `JointForces` that are
        one number (``offset``, ``stiffness``, ``asymmetry``, ``load_friction``). q is added to theta (revolute) or d
        (prismatic); with ``flip`` it is subtracted. ``com`` and ``inertia`` are given in the frame of the row. As in
        the Robotics Toolbox ``coulomb`` may be a pair (Tc+, Tc-): friction of (Tc+ - Tc-) / 2 and an offset of
        (Tc+ + Tc-) / 2, which also acts at rest.
    convention
        "standard": T = Rz(theta) Tz(d) Tx(a) Rx(alpha). "modified": T = Tx(a) Rx(alpha) Tz(d) Rz(theta), where a and
        alpha of row i are often printed as those of i - 1.
    base, tool
        Poses of the first frame in the base and of the tool in the last frame: (4, 4) matrices, or SE3 objects.
    """
    from armdyn.files import dh_table  # imported only if needed

    _check_snap(snap)
    chain, frames = dh_table.chain(rows, convention, gravity, base, tool)
    return Arm(name, chain, snap, f"{convention} Denavit-Hartenberg table", named_links=frames)


def generic_arm(kinds: str, seed: int = 0) -> Arm:
    """An arm with random geometry; `kinds` is a string of R (revolute) and P (prismatic)."""
    from armdyn.chain.chain import generic_chain

    return Arm(f"generic_{kinds}_{seed}", generic_chain(kinds, seed), snap=0.0, source="random geometry")
