"""Reading MJCF through the compiled model of the `mujoco` package.

The compiled model is converted to the tree of a URDF, so that `base`, `tip`, `lock`, frames and error messages are the
same as for a URDF. Masses, inertias, axes, limits, armature, damping and frictionloss are read. A body with several
joints becomes several links, a joint away from the origin of its body gets a link there, and sites become frames. Joint
positions are counted as in MuJoCo: `ref` is included in the joint's placement. Gravity is the model's, rotated into the
base's axes. Springs, actuators and contacts are ignored.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from armdyn.algebra import Mat3, Vec3, exact
from armdyn.errors import FileError
from armdyn.files import mjcf_compile, urdf
from armdyn.files.cutting import Cut, select
from armdyn.files.description import Description
from armdyn.files.mjcf_files import confined
from armdyn.files.numbers import to_rpy
from armdyn.files.text import quoted, read_bytes
from armdyn.files.urdf_tree import RawMimic, Tree, read_tree

_SECONDS, _MEMORY = 60, 4 * 2**30  # limits of the compiler; the largest MuJoCo Menagerie model takes 3 s and 0.6 GB
_FREE, _BALL, _SLIDE, _HINGE = range(4)  # the values of mjtJoint


def read(path: str | os.PathLike[str], cut: Cut, snap: float, allow_outside: bool = False) -> Description:
    """Read a robot from an MJCF file (.xml, .mjcf); `base` and `tip` are bodies or sites."""
    read_bytes(path)  # the same errors for missing and too large files as for other formats
    if not allow_outside:
        confined(Path(path))
    model = _Model(_compiled(path))
    tree = model.tree(os.path.basename(path))
    model.refuse_loops(tree, cut)
    gravity = Vec3(*(exact(float(g)) for g in model.numbers("gravity", str(path))))
    found = urdf.robot(tree, cut, snap, gravity)
    return replace(found, name=model.data["name"] or os.path.splitext(os.path.basename(path))[0])


def _compiled(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The data of the compiled model; the compiler runs in a separate process."""
    here = os.path.abspath(mjcf_compile.__file__)
    with tempfile.TemporaryDirectory(prefix="armdyn-mjcf-") as folder:
        command = [sys.executable, "-I", here, os.path.abspath(path), str(_SECONDS), str(_MEMORY)]
        try:
            done = subprocess.run(
                command, cwd=folder, capture_output=True, timeout=_SECONDS + 10, check=False, stdin=subprocess.DEVNULL
            )
        except subprocess.TimeoutExpired:
            raise FileError(f"{path}: MuJoCo did not compile the model within {_SECONDS} s") from None
    if done.returncode != 0:
        raise FileError(
            f"{path}: MuJoCo's compiler ended with code {done.returncode} (limits: {_SECONDS} s, "
            f"{_MEMORY // 2**30} GiB): {_last_line(done.stderr)}"
        )
    data: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    if "missing" in data:
        raise FileError(f"{path}: reading MJCF needs the mujoco package: pip install 'armdyn[mjcf]'")
    if "error" in data:
        raise FileError(f"{path}: MuJoCo cannot compile the model: {data['error']}")
    return data


def _last_line(text: bytes) -> str:
    lines = text.decode("utf-8", "replace").strip().splitlines()
    return lines[-1][:300] if lines else "no message"


class _Model:
    """The bodies and joints of a compiled model, as a tree."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data
        self.njnt, self.nbody, self.nsite, self.neq = (data[key] for key in ("njnt", "nbody", "nsite", "neq"))
        self.lines: list[str] = []

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
        """The whole tree, with limits, armatures and mimic relations."""
        read = read_tree(self._text(label))
        joints = dict(read.joints)
        for j in range(self.njnt):
            joint = joints[self.joint(j)]
            limit = {}
            if self.data["jnt_limited"][j]:
                limit = dict(zip(("lower", "upper"), map(exact, self.data["jnt_range"][j]), strict=True))
            if self.data["jnt_actfrclimited"][j]:
                limit["effort"] = exact(self.data["jnt_actfrcrange"][j][1])
            joints[joint.name] = replace(
                joint,
                kind=_kind(self.data["jnt_type"][j], "lower" in limit),
                limit=limit,
                armature=exact(self.data["dof_armature"][self.data["jnt_dofadr"][j]]),
                mimic=self._mimic(j),
            )
        below = {link: [joints[joint.name] for joint in hang] for link, hang in read.below.items()}
        above = {link: joints[joint.name] for link, joint in read.above.items()}
        return replace(read, label=label, format="MJCF", joints=joints, below=below, above=above)

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
                    f"{', '.join(sorted(carriers(ends[0]) ^ carriers(ends[1])))}"
                )
        for i in self._active("JOINT"):
            ends = [self.joint(k) for k in (self.data["eq_obj1id"][i], self.data["eq_obj2id"][i]) if k >= 0]
            if ends[0] in moving and ends[0] not in chosen.leaders:
                tied = f"ties the joints {' and '.join(map(repr, ends))}" if len(ends) > 1 else f"fixes {ends[0]!r}"
                raise FileError(
                    f"{where}: the MJCF equality {self.name('equality', i)!r} {tied} by a polynomial; only "
                    f"q = multiplier × q' + offset is supported. Lock {ends[0]!r}"
                )

    def _text(self, label: str) -> str:
        """The whole tree as the text of a URDF."""
        self.lines = [f"<robot name={quoted(label)}>", f"<link name={quoted(self.name('body', 0))}/>"]
        for b in range(1, self.nbody):
            self._body(b)
        bodies = {self.name("body", b) for b in range(self.nbody)}
        for s in range(self.nsite):
            name, body = self.name("site", s), self.name("body", self.data["site_bodyid"][s])
            if name not in bodies:
                self._link(name)
                at = np.asarray(self.data["site_pos"][s]), _rotation(self.data["site_quat"][s])
                self._joint(f"site {name}", "fixed", body, name, at)
        return "\n".join([*self.lines, "</robot>"])

    def _body(self, b: int) -> None:
        """The links of a body: one per joint, and then its own."""
        d = self.data
        name, parent = self.name("body", b), self.name("body", d["body_parentid"][b])
        at = np.asarray(d["body_pos"][b]), _rotation(d["body_quat"][b])
        for j in range(d["body_jntadr"][b], d["body_jntadr"][b] + d["body_jntnum"][b]):
            moved = f"{name} after {self.joint(j)}"
            self._link(moved)
            self._moving(j, parent, moved, at)
            parent, at = moved, (-np.asarray(d["jnt_pos"][j]), np.eye(3))
        self._link(name, b)
        self._joint(f"body {name}", "fixed", parent, name, at)

    def _moving(self, j: int, parent: str, child: str, at: tuple[Any, Any]) -> None:
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
        extra = [
            f'<axis xyz="{_words(axis)}"/>',
            f'<dynamics damping="{d["dof_damping"][dof]!r}" friction="{d["dof_frictionloss"][dof]!r}"/>',
        ]
        written = "continuous" if kind == _BALL else _kind(kind, limited=False)  # URDF has no ball joint; see `tree`
        self._joint(self.joint(j), written, parent, child, (p, R), extra)

    def _joint(
        self, name: str, kind: str, parent: str, child: str, at: tuple[Any, Any], extra: list[str] | None = None
    ) -> None:
        self.lines += [
            f'<joint name={quoted(name)} type="{kind}">',
            f"<parent link={quoted(parent)}/><child link={quoted(child)}/>",
            f'<origin xyz="{_words(at[0])}" rpy="{_words(_rpy(at[1]))}"/>',
            *(extra or []),
            "</joint>",
        ]

    def _link(self, name: str, body: int | None = None) -> None:
        self.lines.append(f"<link name={quoted(name)}>")
        if body is not None:
            d = self.data
            inertia = zip(("ixx", "iyy", "izz"), d["body_inertia"][body], strict=True)
            entries = " ".join(f'{key}="{float(value)!r}"' for key, value in inertia)
            rpy = _words(_rpy(_rotation(d["body_iquat"][body])))
            self.lines += [
                f'<inertial><origin xyz="{_words(d["body_ipos"][body])}" rpy="{rpy}"/>',
                f'<mass value="{d["body_mass"][body]!r}"/><inertia {entries} ixy="0" ixz="0" iyz="0"/></inertial>',
            ]
        self.lines.append("</link>")


def _kind(kind: int, limited: bool) -> str:
    """The URDF type of a joint, or "ball"."""
    turning = "revolute" if limited else "continuous"
    return {_FREE: "floating", _BALL: "ball", _SLIDE: "prismatic", _HINGE: turning}[kind]


def _words(values: Any) -> str:
    return " ".join(repr(float(x)) for x in values)


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
