"""Reading MJCF through the compiled model of the `mujoco` package.

The compiled model is converted to the tree of a URDF, so that `base`, `tip`, `lock`, frames and error messages are the
same as for a URDF. Masses, inertias, axes, limits, armature, damping, friction, springs, position servos are read. A
body with several joints becomes several links, a joint away from the origin of its body gets a link there, and sites
become frames. Joint positions are counted as in MuJoCo: `ref` is included in the joint's placement. Gravity is the
model's, rotated into the base's axes. Contacts and plain motors are ignored; other physics that is not carried over is
noted (`mjcf_passive`, `mjcf_servos`).
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from armdyn.algebra import Mat3, Vec3, exact
from armdyn.chain.joint import MASSLESS, NO_FORCES, Link
from armdyn.errors import FileError
from armdyn.files import mjcf_compile, urdf
from armdyn.files.cutting import select
from armdyn.files.description import Description, to_rpy
from armdyn.files.mjcf_files import confined
from armdyn.files.mjcf_passive import lost, passive_forces
from armdyn.files.mjcf_servos import position_servos
from armdyn.files.text import read_bytes
from armdyn.files.urdf_tree import (
    COMPOSITE,
    PARALLELOGRAM,
    RawJoint,
    RawLink,
    RawMimic,
    RawTendon,
    Tree,
    as_chain,
    chain_note,
    connected,
)
from armdyn.options import Cut
from armdyn.processes import interpreter

_SECONDS, _MEMORY = 60, 4 * 2**30  # limits of the compiler; the largest MuJoCo Menagerie model takes 3 s and 0.6 GB
_HERE = "compiled in this process, without limits on time and memory: there is no interpreter to start another with"
_FREE, _BALL, _SLIDE, _HINGE = range(4)  # the values of mjtJoint


def read(
    path: str | os.PathLike[str], cut: Cut, snap: float, allow_outside: bool = False, strict: bool | None = None
) -> Description:
    """Read a robot from an MJCF file (.xml, .mjcf); `base` and `tip` are bodies or sites."""
    read_bytes(path)  # the same errors for missing and too large files as for other formats
    if not allow_outside:
        confined(Path(path))
    found = described(_compiled(path), os.path.basename(path), cut, snap, strict)
    return replace(found, name=found.name or os.path.splitext(os.path.basename(path))[0])


def described(data: dict[str, Any], label: str, cut: Cut, snap: float, strict: bool | None) -> Description:
    """The robot of a compiled model, from the data that `mjcf_compile.gathered` collects; "" where it has no name."""
    model = _CompiledModel(data)
    tree = model.tree(label)
    model.refuse_loops(tree, cut)
    gravity = Vec3(*(exact(float(g)) for g in model.numbers("gravity", label)))
    if "gravity" in data["disabled"]:
        gravity = Vec3(0, 0, 0)
    return replace(urdf.robot(tree, cut, snap, gravity, strict), name=data["name"])


def _compiled(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The data of the compiled model; the compiler runs in a separate process where an interpreter can be started."""
    data = _apart(path) if interpreter() else mjcf_compile.compiled(os.path.abspath(path)) | {"here": True}
    if "missing" in data:
        how = "pip install 'armdyn[mjcf]', or mujoco 3.1 or newer"
        raise FileError(f"{path}: reading MJCF needs MuJoCo's compiler: {how}")
    if "error" in data:
        raise FileError(f"{path}: MuJoCo cannot compile the model: {data['error']}")
    return data


def _apart(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The data of the model, compiled in another process with this one's module search path."""
    here = os.path.abspath(mjcf_compile.__file__)
    modules = json.dumps([os.path.abspath(folder) for folder in sys.path])
    with tempfile.TemporaryDirectory(prefix="armdyn-mjcf-") as folder:
        command = [sys.executable, "-I", here, os.path.abspath(path), str(_SECONDS), str(_MEMORY), modules]
        try:
            done = subprocess.run(
                command, cwd=folder, capture_output=True, timeout=_SECONDS + 10, check=False, stdin=subprocess.DEVNULL
            )
        except subprocess.TimeoutExpired:
            raise FileError(f"{path}: MuJoCo did not compile the model within {_SECONDS} s") from None
        except OSError as error:
            raise FileError(f"{path}: {sys.executable} cannot be started to compile the model ({error})") from error
    if done.returncode != 0:
        raise FileError(
            f"{path}: MuJoCo's compiler ended with code {done.returncode} (limits: {_SECONDS} s, "
            f"{_MEMORY // 2**30} GiB): {_last_line(done.stderr)}"
        )
    try:
        data: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        said = _last_line(done.stdout)
        raise FileError(
            f"{path}: {sys.executable} was started to compile the model and gave no data, but {said!r}: is it Python?"
        ) from None
    return data


def _last_line(text: bytes) -> str:
    lines = text.decode("utf-8", "replace").strip().splitlines()
    return lines[-1][:300] if lines else "no message"


class _CompiledModel:
    """The bodies and joints of a compiled model, as a tree."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data
        self.njnt, self.nbody, self.nsite, self.neq = (data[key] for key in ("njnt", "nbody", "nsite", "neq"))

    def numbers(self, name: str, where: str) -> list[float]:
        """An array of the model; an error if it is not finite."""
        values: list[float] = self.data[name]
        if not all(math.isfinite(x) for x in values):
            raise FileError(f"{where}: MJCF {name} must be finite, got {values}")
        return values

    def name(self, kind: str, i: int) -> str:
        """The name of an object, or its kind and number if it has none."""
        return self.data[f"{kind}_names"][i] or f"{kind}{i}"

    def joint(self, j: int) -> str:
        """The name of a joint."""
        return self.name("joint", j)

    def tree(self, label: str) -> Tree:
        """The whole tree, with limits, armatures, springs, servos and mimic relations."""
        self.links = {self.name("body", 0): RawLink(self.name("body", 0))}
        self.joints: dict[str, RawJoint] = {}
        self.passive = passive_forces(self.data, self.name)
        followers = {self.data["eq_obj1id"][i] for i in self._active("JOINT")}
        self.servos = position_servos(self.data, self.name, followers)
        for b in range(1, self.nbody):
            self._body(b)
        bodies = {self.name("body", b) for b in range(self.nbody)}
        for s in range(self.nsite):
            name, body = self.name("site", s), self.name("body", self.data["site_bodyid"][s])
            if name not in bodies and name not in self.links:
                self.links[name] = RawLink(name, virtual=True)
                at = np.asarray(self.data["site_pos"][s]), _rotation(self.data["site_quat"][s])
                self._add(RawJoint(f"site {name}", "fixed", body, name, **_seat(at)))
        notes = [f"{label}: {_HERE}"] if "here" in self.data else []
        notes += [f"{label}: {note}" for note in (*self.passive.notes, *self.servos.notes, *lost(self.data, self.name))]
        for joint in [joint for joint in self.joints.values() if joint.kind in COMPOSITE]:
            more, chain = as_chain(joint)
            self.links |= {link.name: link for link in more}
            parts = [part for j in self.joints.values() for part in (chain if j is joint else [j])]
            self.joints = {part.name: part for part in parts}
            notes.append(chain_note(label, joint, chain))
        tendons = tuple(self.passive.tendons)
        notes += [f"{label}: {note}" for note in _across_branches(tendons, self.joints.values())]
        whole = connected(label, label, self.links, self.joints, tuple(notes))
        return replace(whole, format="MJCF", tendons=tendons)

    def _add(self, joint: RawJoint) -> None:
        self.joints[joint.name] = joint

    def _mimic(self, j: int) -> RawMimic | None:
        """The mimic relation of a joint, from a linear equality constraint between two joints."""
        tied = [i for i in self._active("JOINT") if self.data["eq_obj1id"][i] == j and self.data["eq_obj2id"][i] >= 0]
        if not tied or any(self.data["eq_data"][tied[0]][2:5]):
            return None
        leader = self.data["eq_obj2id"][tied[0]]
        zero, slope = (exact(x) for x in self.data["eq_data"][tied[0]][:2])
        # MuJoCo's constraint: q - ref = zero + slope (q' - ref')
        ref, other = (exact(self.data["qpos0"][self.data["jnt_qposadr"][k]]) for k in (j, leader))
        return RawMimic(self.joint(leader), slope, ref + zero - slope * other)

    def _active(self, *kinds: str) -> list[int]:
        codes = [self.data["eq"][kind] for kind in kinds]
        found = range(self.neq)
        return [i for i in found if self.data["eq_active0"][i] and self.data["eq_type"][i] in codes]

    def refuse_loops(self, tree: Tree, cut: Cut) -> None:
        """Raise an error for equality constraints that close a kinematic loop or that are not linear."""
        chosen = select(tree, cut)
        moving = {joint.name for joint in chosen.moving}
        where = tree.label

        def carriers(link: str) -> set[str]:
            path = set()
            while link in tree.above:
                path.add(tree.above[link].name)
                link = tree.above[link].parent
            return path & moving

        for i in self._active("CONNECT", "WELD"):
            kind = "site" if self.data["eq_objtype"][i] == self.data["objects"]["SITE"] else "body"
            ends = [self.name(kind, self.data[key][i]) for key in ("eq_obj1id", "eq_obj2id")]
            if carriers(ends[0]) != carriers(ends[1]):
                raise FileError(
                    f"{where}: the MJCF equality {self.name('equality', i)!r} ties {ends[0]!r} to {ends[1]!r}: it "
                    f"closes a loop, and only tree-structured robots are supported. Lock the joints between them: "
                    f"{', '.join(sorted(carriers(ends[0]) ^ carriers(ends[1])))}; or {PARALLELOGRAM}"
                )
        for i in self._active("JOINT"):
            ends = [self.joint(k) for k in (self.data["eq_obj1id"][i], self.data["eq_obj2id"][i]) if k >= 0]
            if ends[0] in moving and ends[0] not in chosen.leaders:
                tied = f"ties the joints {' and '.join(map(repr, ends))}" if len(ends) > 1 else f"fixes {ends[0]!r}"
                raise FileError(
                    f"{where}: the MJCF equality {self.name('equality', i)!r} {tied} by a polynomial; only "
                    f"q = multiplier × q' + offset is supported. Lock {ends[0]!r}"
                )

    def _body(self, b: int) -> None:
        """The links of a body: one per joint, and then its own."""
        d = self.data
        name, parent = self.name("body", b), self.name("body", d["body_parentid"][b])
        at = np.asarray(d["body_pos"][b]), _rotation(d["body_quat"][b])
        for j in range(d["body_jntadr"][b], d["body_jntadr"][b] + d["body_jntnum"][b]):
            moved = f"{name} after {self.joint(j)}"
            self.links[moved] = RawLink(moved, virtual=True)
            self._add(self._moving(j, parent, moved, at))
            parent, at = moved, (-np.asarray(d["jnt_pos"][j]), np.eye(3))
        xx, yy, zz = (exact(x) for x in d["body_inertia"][b])
        zero = Fraction(0)
        self.links[name] = RawLink(
            name,
            massive=True,
            mass=exact(d["body_mass"][b]),
            xyz=_triple(d["body_ipos"][b]),
            rpy=_triple(_rpy(_rotation(d["body_iquat"][b]))),
            inertia=(xx, zero, zero, yy, zero, zz),
            compensated=self._compensated(b),
        )
        self._add(RawJoint(f"body {name}", "fixed", parent, name, **_seat(at)))

    def _compensated(self, b: int) -> Link:
        """The part of a body's mass whose weight `gravcomp` carries."""
        mass = exact(self.data["body_mass"][b]) * self.passive.compensated[b]
        com = Vec3(*_triple(self.data["body_ipos"][b]))
        return Link(mass, mass * com, MASSLESS.inertia) if mass else MASSLESS

    def _moving(self, j: int, parent: str, child: str, at: tuple[Any, Any]) -> RawJoint:
        d = self.data
        dof, axis, kind = d["jnt_dofadr"][j], np.asarray(d["jnt_axis"][j]), d["jnt_type"][j]
        p, R = at
        if kind == _FREE:  # the position of a free joint is the pose of its body
            p, R = np.zeros(3), np.eye(3)
        p, ref = p + R @ np.asarray(d["jnt_pos"][j]), d["qpos0"][d["jnt_qposadr"][j]]
        if kind == _SLIDE:
            p = p - ref * (R @ axis)
        elif kind == _HINGE:
            R = R @ _turn(axis, -ref)
        limit = {}
        if d["jnt_limited"][j]:
            limit = dict(zip(("lower", "upper"), map(exact, d["jnt_range"][j]), strict=True))
        if d["jnt_actfrclimited"][j]:
            limit["effort"] = exact(d["jnt_actfrcrange"][j][1])
        if j in self.servos.efforts:
            most = exact(self.servos.efforts[j])
            limit["effort"] = min(most, limit.get("effort", most))
        single = kind in (_SLIDE, _HINGE)
        return RawJoint(
            self.joint(j),
            _kind(kind, "lower" in limit),
            parent,
            child,
            axis=_triple(axis),
            limit=limit,
            damping=exact(d["dof_damping"][dof]),
            friction=exact(d["dof_frictionloss"][dof]),
            mimic=self._mimic(j),
            armature=exact(d["dof_armature"][dof]),
            forces=self.passive.forces(j) if single else NO_FORCES,
            servo=self.servos.laws.get(j),
            **_seat((p, R)),
        )


def _across_branches(tendons: Iterable[RawTendon], joints: Iterable[RawJoint]) -> Iterator[str]:
    """Notes on inertias along tendons between joints of which neither carries the other: MuJoCo has no such entry."""
    known = {joint.name: joint for joint in joints}
    above = {joint.child: joint for joint in known.values()}

    def carriers(name: str) -> set[str]:
        found, joint = {name}, known[name]
        while joint.parent in above:
            joint = above[joint.parent]
            found.add(joint.name)
        return found

    for tendon in tendons:
        names = [name for name, _ in tendon.joints]
        paths = [carriers(name) for name in names] if tendon.armature else []
        apart = any(
            not {a, b} & (one & two)
            for a, one in zip(names, paths, strict=False)
            for b, two in zip(names, paths, strict=False)
        )
        if apart:
            yield (
                f"tendon {tendon.name!r} has an armature and joins branches: its inertia couples the joints "
                f"{', '.join(names)} here; MuJoCo leaves that part of its inertia matrix out"
            )


def _kind(kind: int, limited: bool) -> str:
    """The URDF type of a joint, or "ball"."""
    turning = "revolute" if limited else "continuous"
    return {_FREE: "floating", _BALL: "ball", _SLIDE: "prismatic", _HINGE: turning}[kind]


def _triple(values: Any) -> Any:
    return tuple(exact(float(x)) for x in values)


def _seat(at: tuple[Any, Any]) -> dict[str, Any]:
    """Position and rotation as a joint's xyz and rpy."""
    return {"xyz": _triple(at[0]), "rpy": _triple(_rpy(at[1]))}


def _rpy(R: Any) -> tuple[float, float, float]:
    return to_rpy(Mat3(*(Vec3(*(float(x) for x in row)) for row in R)))


def _rotation(quaternion: Any) -> Any:
    """The rotation matrix of a unit quaternion (w, x, y, z)."""
    w, v = float(quaternion[0]), np.asarray(quaternion[1:])
    return _matrix(w, v)


def _turn(axis: Any, angle: float) -> Any:
    """The rotation by an angle about a unit axis."""
    return _matrix(float(np.cos(angle / 2)), np.sin(angle / 2) * np.asarray(axis))


def _matrix(w: float, v: Any) -> Any:
    cross = np.array([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0]])
    return np.eye(3) + 2 * (w * cross + cross @ cross)
