"""MJCF in, through the `mujoco` package's compiled model: masses, inertias, axes, armature, damping, frictionloss.

The compiled model is written down as the tree of a URDF and read like one, so that `base`, `tip`, `lock`,
frames and complaints are the same. A body with several joints becomes several links, a joint off its
body's origin gets a link of its own there, sites become frames. Every joint keeps its own zero (MuJoCo's
`ref` is a turn of the body at zero). Gravity is the model's, in the base's axes. Springs, actuators and
contacts are not part of an arm.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from armdyn.algebra import Mat3, Vec3, exact
from armdyn.chain import Limit
from armdyn.chain.snap import SNAP
from armdyn.errors import FileError
from armdyn.files import urdf
from armdyn.files.description import Description
from armdyn.files.numbers import to_rpy
from armdyn.files.text import quoted, read_bytes

_KINDS = {0: "floating", 1: "floating", 2: "prismatic", 3: "continuous"}  # of mjtJoint: free, ball, slide, hinge


def read(
    path: str | os.PathLike[str],
    *,
    base: str | None = None,
    tip: str | None = None,
    lock: Mapping[str, float] | None = None,
    snap: float = SNAP,
) -> Description:
    """Read an arm from an MJCF file (.xml, .mjcf); `base` and `tip` are bodies or sites."""
    read_bytes(path)  # the same complaints about files that are not there or absurdly large
    try:
        import mujoco
    except ImportError as error:
        raise FileError(f"{path}: reading MJCF takes the mujoco package: pip install 'armdyn[mjcf]'") from error
    try:
        model = mujoco.MjModel.from_xml_path(os.fspath(path))
    except ValueError as error:
        raise FileError(f"{path}: not a model that MuJoCo compiles: {error}") from error
    tree = _Tree(model, mujoco)
    tree.refuse_loops(str(path))
    found = urdf.read(tree.text(os.path.basename(path)), base=base, tip=tip, lock=lock, snap=snap)
    ids = {tree.joint(j): j for j in range(model.njnt)}
    joints = tuple(
        replace(
            joint,
            limit=_limit(model, ids[joint.name]),
            rotor_inertia=exact(float(model.dof_armature[model.jnt_dofadr[ids[joint.name]]])),
        )
        for joint in found.chain.joints
    )
    gravity = Vec3(*(exact(float(g)) for g in model.opt.gravity))
    name = str(model.names[: model.names.index(b"\0")], "utf-8") or os.path.splitext(os.path.basename(path))[0]
    chain = replace(found.chain, joints=joints, gravity=gravity)
    return replace(found, name=name, chain=chain, source=f"MJCF {os.path.basename(path)}")


def _limit(model: Any, j: int) -> Limit:
    """The range of a joint and of the force actuators may put on it, where they are limited."""
    lower, upper = map(float, model.jnt_range[j]) if model.jnt_limited[j] else (None, None)
    return Limit(lower, upper, effort=float(model.jnt_actfrcrange[j][1]) if model.jnt_actfrclimited[j] else None)


class _Tree:
    """The bodies and joints of a compiled model, as the text of a URDF."""

    def __init__(self, model: Any, mujoco: Any) -> None:
        self.model = model
        self.mujoco = mujoco
        self.lines: list[str] = []

    def _name(self, kind: str, i: int) -> str:
        named = self.mujoco.mj_id2name(self.model, getattr(self.mujoco.mjtObj, f"mjOBJ_{kind.upper()}"), i)
        return named or f"{kind}{i}"

    def joint(self, j: int) -> str:
        """The name of a joint."""
        return self._name("joint", j)

    def refuse_loops(self, where: str) -> None:
        """Complain about bodies tied to one another: such a thing is no chain."""
        loops = int(self.mujoco.mjtEq.mjEQ_CONNECT), int(self.mujoco.mjtEq.mjEQ_WELD)
        for i in range(self.model.neq):
            if self.model.eq_active0[i] and int(self.model.eq_type[i]) in loops:
                raise FileError(f"{where}: the equality {self._name('equality', i)!r} closes a loop; an arm is a chain")

    def text(self, label: str) -> str:
        """The whole tree."""
        m = self.model
        self.lines = [f"<robot name={quoted(label)}>", f"<link name={quoted(self._name('body', 0))}/>"]
        for b in range(1, m.nbody):
            self._body(b)
        for s in range(m.nsite):
            name, body = self._name("site", s), self._name("body", m.site_bodyid[s])
            if all(self._name("body", b) != name for b in range(m.nbody)):
                self._link(name)
                self._joint(f"site {name}", "fixed", body, name, (m.site_pos[s], _rotation(m.site_quat[s])))
        return "\n".join([*self.lines, "</robot>"])

    def _body(self, b: int) -> None:
        """A body: one link for every joint it has, and its own at the end."""
        m = self.model
        name, parent = self._name("body", b), self._name("body", m.body_parentid[b])
        at = m.body_pos[b], _rotation(m.body_quat[b])
        for j in range(m.body_jntadr[b], m.body_jntadr[b] + m.body_jntnum[b]):
            moved = f"{name} after {self.joint(j)}"
            self._link(moved)
            self._moving(j, parent, moved, at)
            parent, at = moved, (-m.jnt_pos[j], np.eye(3))
        self._link(name, b)
        self._joint(f"body {name}", "fixed", parent, name, at)

    def _moving(self, j: int, parent: str, child: str, at: tuple[Any, Any]) -> None:
        m = self.model
        dof, axis, kind = m.jnt_dofadr[j], m.jnt_axis[j], _KINDS[int(m.jnt_type[j])]
        p, R = at
        p, ref = p + R @ m.jnt_pos[j], float(m.qpos0[m.jnt_qposadr[j]])
        if kind == "prismatic":
            p = p - ref * (R @ axis)
        elif kind == "continuous":
            R = R @ _turn(axis, -ref)
        extra = [
            f'<axis xyz="{_words(axis)}"/>',
            f'<dynamics damping="{float(m.dof_damping[dof])!r}" friction="{float(m.dof_frictionloss[dof])!r}"/>',
            *self._mimic(j),
        ]
        self._joint(self.joint(j), kind, parent, child, (p, R), extra)

    def _mimic(self, j: int) -> list[str]:
        """A joint that an equality ties to another one mimics it."""
        m = self.model
        kind = int(self.mujoco.mjtEq.mjEQ_JOINT)
        tied = [i for i in range(m.neq) if int(m.eq_type[i]) == kind and m.eq_obj1id[i] == j]
        return [
            f'<mimic joint={quoted(self.joint(m.eq_obj2id[i]))} multiplier="{float(m.eq_data[i][1])!r}"/>'
            for i in tied
            if m.eq_obj2id[i] >= 0
        ][:1]

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
            m = self.model
            inertia = zip(("ixx", "iyy", "izz"), m.body_inertia[body], strict=True)
            entries = " ".join(f'{key}="{float(value)!r}"' for key, value in inertia)
            rpy = _words(_rpy(_rotation(m.body_iquat[body])))
            self.lines += [
                f'<inertial><origin xyz="{_words(m.body_ipos[body])}" rpy="{rpy}"/>',
                f'<mass value="{float(m.body_mass[body])!r}"/><inertia {entries} ixy="0" ixz="0" iyz="0"/></inertial>',
            ]
        self.lines.append("</link>")


def _words(values: Any) -> str:
    return " ".join(repr(float(x)) for x in values)


def _rpy(R: Any) -> tuple[float, float, float]:
    return to_rpy(Mat3(*(Vec3(*(float(x) for x in row)) for row in R)))


def _rotation(quaternion: Any) -> Any:
    """The matrix of a unit quaternion (w, x, y, z)."""
    w, v = float(quaternion[0]), np.asarray(quaternion[1:])
    return _matrix(w, v)


def _turn(axis: Any, angle: float) -> Any:
    """The rotation by an angle about a unit axis."""
    return _matrix(float(np.cos(angle / 2)), np.sin(angle / 2) * np.asarray(axis))


def _matrix(w: float, v: Any) -> Any:
    cross = np.array([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0]])
    return np.eye(3) + 2 * (w * cross + cross @ cross)
