"""Loading a robot from a file, a text, the catalogue or a Denavit-Hartenberg table."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

from armdyn import files
from armdyn.arm import Arm
from armdyn.chain.snap import SNAP
from armdyn.errors import InputError
from armdyn.files.cutting import Cut, Lock


def load(
    arm: str | os.PathLike[str],
    *,
    base: str | None = None,
    tip: str | None = None,
    lock: Lock = None,
    snap: float = SNAP,
    floating: bool | None = None,
    gravity: Any = None,
    allow_outside: bool = False,
) -> Arm:
    """The robot of a catalogue name (`armdyn.catalogue`), of the text of a URDF, or in a file.

    Parameters
    ----------
    arm
        A name of the catalogue, the text of a URDF, or the path of an arm file (.toml), a URDF (.urdf, .xml), a .xacro
        or MJCF (.xml, .mjcf).
    base, tip
        Cut one chain out of a tree: links or frames of the file. An arm file's links are called ``base``, ``link1``,
        ... and ``tool``, beside its frames. Without `tip` the whole robot is loaded, branches, mimic joints and all.
        A `base` below the root sees gravity as the root does, at the locked posture of the joints between.
    lock
        Joints to hold: ``{"finger_joint": 0.02}``, values in rad or m or "rest"; ``lock="rest"`` holds every joint
        beside the chain where it rests (zero, or mid-range where zero is outside its limits). See `Arm.notes`.
    snap
        Angles within `snap` of a right angle are taken as right; 0 takes every angle as written.
    floating
        True: the base floats. By default it does where the file says so; False holds it.
    gravity
        Another gravity vector, in the base's axes (m/s²).
    allow_outside
        Whether an MJCF model may include files from outside its own folder.
    """
    if not isinstance(snap, Real) or not 0 <= snap < 0.1:
        raise InputError(f"snap must be an angle from 0 to 0.1 rad, got {snap!r}")
    if floating not in (None, True, False):
        raise InputError(f"floating must be True, False or None, got {floating!r}")
    found = files.read(arm, Cut(base, tip, lock, floating), snap=snap, allow_outside=allow_outside)
    made = Arm(found.name, found.chain, snap, found.source, found.frames, found.snapped, found.notes)
    return made if gravity is None else made.with_gravity(gravity)


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
    """An arm from a Denavit-Hartenberg table.

    Parameters
    ----------
    rows
        One per joint, base to tip: ``(theta, d, a, alpha)`` of a revolute joint, or a mapping with these keys (those
        that are not given are zero) and, if you like, ``kind`` ("revolute", "prismatic"), ``name``, ``lower``,
        ``upper``, ``velocity``, ``effort``, ``mass``, ``com``, ``inertia`` (about the centre of mass: (3, 3), or xx,
        yy, zz, xy, xz, yz), ``rotor_inertia``, ``viscous``, ``coulomb``. q is added to theta (revolute) or d
        (prismatic). The link's data is given in the row's own frame.
    convention
        "standard": T = Rz(theta) Tz(d) Tx(a) Rx(alpha). "modified": T = Tx(a) Rx(alpha) Tz(d) Rz(theta), with a and
        alpha of the row before in the papers' numbering.
    base, tool
        Placements (4, 4) of the first frame in the base and of the tool in the last frame.
    """
    from armdyn.files import dh_table  # imported only if needed

    chain = dh_table.chain(rows, convention, gravity, base, tool)
    return Arm(name, chain, snap, f"{convention} Denavit-Hartenberg table")
