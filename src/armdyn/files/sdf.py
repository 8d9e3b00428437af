"""Reading SDFormat (.sdf): the one model of a file, as the tree of links and joints that a URDF would have.

Poses may be relative to any link, joint or frame of the model. A joint that is not at the origin of its child gets a
link there; frames of the model become frames of the arm. What the format assumes where a file says nothing (a mass of
1 kg) is taken, with a note. The file is not trusted: document types are refused, and no other file is read.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

from armdyn.algebra import Mat3, Vec3, exact
from armdyn.chain.joint import NO_FORCES, JointForces
from armdyn.errors import FileError
from armdyn.files.description import from_rpy, to_rpy
from armdyn.files.text import read_bytes
from armdyn.files.urdf_tree import (
    COMPOSITE,
    MOST_LINKS,
    RawJoint,
    RawLink,
    RawMimic,
    Tree,
    as_chain,
    chain_note,
    connected,
    note_limits,
)

_KINDS = ("revolute", "continuous", "prismatic", "fixed", "ball")
_ENDLESS = 1e15  # limits beyond this are SDFormat's way to say that there are none
_MODEL = "__model__"
_LARGEST_NUMBER = 1e100
Element = ElementTree.Element


def read_tree(path: Path) -> Tree:
    """The tree of the model in an SDFormat file."""
    data = read_bytes(path)
    if re.search(rb"<!(DOCTYPE|ENTITY)", data):
        raise FileError(f"{path.name}: a document type (<!DOCTYPE>) is not allowed in SDFormat")
    try:
        root = ElementTree.fromstring(data)
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise FileError(f"{path.name}: not well-formed XML: {error}") from None
    models = [*root.findall("model"), *root.findall("world/model")]
    if root.tag != "sdf" or len(models) != 1:
        raise FileError(f"{path.name}: expected <sdf> with one <model>, got <{root.tag}> with {len(models)}")
    return _SdfModel(path.name, models[0], root.get("version", "")).tree()


class _SdfModel:
    """One model: its links, joints and frames by name, and their poses in the model's frame."""

    def __init__(self, label: str, model: Element, version: str) -> None:
        self.label, self.model = label, model
        self.old = bool(re.match(r"1\.[0-4]\b", version))  # axes are in the model's frame
        self.notes: list[str] = []
        for tag in ("model", "include"):
            if model.find(tag) is not None:
                raise FileError(f"{label}: a <{tag}> inside the model is not supported; expected links and joints")
        self.links, self.joints, self.frames = (self._named(tag) for tag in ("link", "joint", "frame"))
        if len(self.links) > MOST_LINKS:
            raise FileError(f"{label}: {len(self.links)} links; at most {MOST_LINKS} are read")
        self.poses: dict[str, Any] = {_MODEL: np.eye(4), "world": np.eye(4)}

    def _named(self, tag: str) -> dict[str, Element]:
        table: dict[str, Element] = {}
        for element in self.model.findall(tag):
            name = element.get("name", "")
            if not name:
                raise FileError(f"{self.label}: a <{tag}> without name")
            if name in table:
                raise FileError(f"{self.label}: two {tag}s are named {name!r}")
            table[name] = element
        return table

    def tree(self) -> Tree:
        """The whole tree."""
        links = {name: self._link(name, element) for name, element in self.links.items()}
        joints: dict[str, RawJoint] = {}
        for name, element in self.joints.items():
            for item in self._joint(name, element, links):
                joints[item.name] = item
        self.notes += note_limits(self.label, joints)
        if any(joint.parent == "world" for joint in joints.values()):
            links = {"world": RawLink("world"), **links}
        elif (self.model.findtext("static") or "").strip() not in ("true", "1"):
            self.notes.append(
                f"{self.label}: the model is fixed to nothing: its root is the ground; floating=True frees it"
            )
        for name in self.frames:
            holder = self._holder(name)
            at = np.linalg.inv(self._pose(holder)) @ self._pose(name)
            if name not in links:
                links[name] = RawLink(name, virtual=True)
                joints[f"frame {name}"] = RawJoint(f"frame {name}", "fixed", holder, name, **_seat(at))
        name = self.model.get("name") or Path(self.label).stem
        made = connected(self.label, name, links, joints, tuple(self.notes))
        return Tree(
            name, self.label, made.root, made.links, made.joints, made.below, made.above, made.notes, "SDFormat"
        )

    def _holder(self, frame: str) -> str:
        """The link that a frame is attached to."""
        seen = [frame]
        while True:
            at = self.frames[seen[-1]].get("attached_to", "") or next(iter(self.links), "")
            if at in self.links or at == "world":
                return at
            if at in self.joints:
                return self._end(at, "child")
            if at not in self.frames or at in seen:
                raise FileError(
                    f"{self.label}: frame {frame!r} is attached to {at!r}, which is no link, joint or frame"
                )
            seen.append(at)

    def _pose(self, name: str, seen: tuple[str, ...] = ()) -> Any:
        """The pose of a link, joint or frame in the model's frame."""
        if name in self.poses:
            return self.poses[name]
        if name in seen:
            raise FileError(f"{self.label}: poses are relative to one another in a circle: {' > '.join((*seen, name))}")
        for table in (self.links, self.joints, self.frames):
            if name in table:
                element = table[name]
                break
        else:
            raise FileError(f"{self.label}: a pose is relative to {name!r}, which the model does not have")
        usual = self._end(name, "child") if table is self.joints else element.get("attached_to", "") or _MODEL
        pose = element.find("pose")
        relative = usual if pose is None else pose.get("relative_to") or pose.get("frame") or usual
        self.poses[name] = self._pose(relative, (*seen, name)) @ self._matrix(pose, name)
        return self.poses[name]

    def _matrix(self, pose: Element | None, where: str) -> Any:
        if pose is None:
            return np.eye(4)
        quaternion = pose.get("rotation_format") == "quat_xyzw"
        values = self._numbers(pose.text or "0 0 0 0 0 0", 7 if quaternion else 6, f"{where}: pose")
        M = np.eye(4)
        if quaternion:
            x, y, z, w = np.array(values[3:]) / (math.hypot(*values[3:]) or 1.0)
            cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
            M[:3, :3] += 2 * (w * cross + cross @ cross)
        else:
            unit = math.pi / 180 if pose.get("degrees") in ("true", "1") else 1.0
            M[:3, :3] = [[float(x) for x in row] for row in from_rpy(*(unit * x for x in values[3:])).rows]
        M[:3, 3] = values[:3]
        return M

    def _numbers(self, text: str, count: int, where: str) -> list[float]:
        try:
            values = [float(word) for word in text.split()]
        except ValueError:
            values = []
        if len(values) != count or not all(abs(x) < _LARGEST_NUMBER for x in values):
            raise FileError(
                f"{self.label}: {where} expects {count} finite number{'s' * (count > 1)}, got {text[:60]!r}"
            )
        return values

    def _one(self, element: Element | None, path: str, usual: float, where: str) -> float:
        text = element.findtext(path) if element is not None else None
        if text is None or text.strip() in ("inf", "-inf"):
            return usual  # of a limit: none
        return self._numbers(text, 1, f"{where}: {path}")[0]

    def _link(self, name: str, element: Element) -> RawLink:
        where, inertial = f"link {name!r}", element.find("inertial")
        if inertial is None or inertial.find("mass") is None or inertial.find("inertia") is None:
            missing = "inertial" if inertial is None else "mass" if inertial.find("mass") is None else "inertia"
            self.notes.append(
                f"{self.label}: {where} has no <{missing}>: SDFormat's 1 kg and 1 kg m² about each axis stand for it"
            )
        at = self._matrix(inertial.find("pose") if inertial is not None else None, where)
        keys = {"ixx": 1.0, "ixy": 0.0, "ixz": 0.0, "iyy": 1.0, "iyz": 0.0, "izz": 1.0}
        return RawLink(
            name,
            massive=True,
            mass=exact(self._one(inertial, "mass", 1.0, where)),
            inertia=tuple(exact(self._one(inertial, f"inertia/{key}", usual, where)) for key, usual in keys.items()),
            **_seat(at),
        )

    def _end(self, joint: str, tag: str) -> str:
        end = (self.joints[joint].findtext(tag) or "").strip()
        if end not in self.links and end in self.frames:
            return self._holder(end)
        if end not in self.links and end != "world":
            raise FileError(f"{self.label}: joint {joint!r} has the {tag} {end!r}, which is no link of the model")
        return end

    def _joint(self, name: str, element: Element, links: dict[str, RawLink]) -> Iterator[RawJoint]:
        """The joint, and a fixed one from it to the child's frame if that is elsewhere."""
        kind = element.get("type", "")
        if kind not in _KINDS:
            raise FileError(f"{self.label}: joint {name!r} has the type {kind!r}; supported are {', '.join(_KINDS)}")
        parent, child = self._end(name, "parent"), self._end(name, "child")
        here = self._pose(name)
        seat = _seat(np.linalg.inv(self._pose(parent)) @ here)
        offset = np.linalg.inv(here) @ self._pose(child)
        if kind == "fixed":
            yield RawJoint(name, kind, parent, child, **_seat(np.linalg.inv(self._pose(parent)) @ self._pose(child)))
            return
        end = child
        if np.abs(offset - np.eye(4)).max() > 1e-15:
            end = f"{child} at {name}"
            links[end] = RawLink(end, virtual=True)
            yield RawJoint(f"{name} offset", "fixed", end, child, **_seat(offset))
        joint = self._moving(name, kind, parent, end, element, seat)
        if kind not in COMPOSITE:
            yield joint
            return
        more, chain = as_chain(joint)
        links |= {link.name: link for link in more}
        self.notes.append(chain_note(self.label, joint, chain))
        yield from chain

    def _moving(
        self, name: str, kind: str, parent: str, child: str, element: Element, seat: dict[str, Any]
    ) -> RawJoint:
        where, axis = f"joint {name!r}", element.find("axis")
        xyz = axis.find("xyz") if axis is not None else None
        direction = np.array(self._numbers((xyz.text if xyz is not None else None) or "0 0 1", 3, f"{where}: xyz"))
        if not direction.any():
            raise FileError(f"{self.label}: {where} has the axis 0 0 0; expected a nonzero vector")
        expressed = xyz.get("expressed_in", "") if xyz is not None else ""
        flag = axis.findtext("use_parent_model_frame") if axis is not None else None
        if (flag or ("1" if self.old else "0")).strip() in ("1", "true"):
            expressed = expressed or _MODEL
        if expressed:
            direction = self._pose(name)[:3, :3].T @ self._pose(expressed)[:3, :3] @ direction
        low, high = (self._one(axis, f"limit/{key}", sign * 1e16, where) for key, sign in (("lower", -1), ("upper", 1)))
        most = {key: self._one(axis, f"limit/{key}", -1.0, where) for key in ("velocity", "effort")}
        limit = {key: exact(x) for key, x in (("lower", low), ("upper", high)) if abs(x) < _ENDLESS}
        limit |= {key: exact(x) for key, x in most.items() if 0 <= x < _ENDLESS}
        stiffness, rest = (self._one(axis, f"dynamics/spring_{key}", 0.0, where) for key in ("stiffness", "reference"))
        return RawJoint(
            name,
            "revolute" if kind == "continuous" and "lower" in limit else kind,
            parent,
            child,
            axis=(exact(float(direction[0])), exact(float(direction[1])), exact(float(direction[2]))),
            limit=limit,
            damping=exact(self._one(axis, "dynamics/damping", 0.0, where)),
            friction=exact(self._one(axis, "dynamics/friction", 0.0, where)),
            forces=JointForces(offset=exact(-stiffness * rest), stiffness=exact(stiffness)) if stiffness else NO_FORCES,
            mimic=self._mimic(axis, where),
            **seat,
        )

    def _mimic(self, axis: Element | None, where: str) -> RawMimic | None:
        """SDFormat's q = multiplier × (q' - reference) + offset."""
        mimic = axis.find("mimic") if axis is not None else None
        if mimic is None:
            return None
        keys = (("multiplier", 1.0), ("offset", 0.0), ("reference", 0.0))
        multiplier, offset, reference = (Fraction(exact(self._one(mimic, key, usual, where))) for key, usual in keys)
        return RawMimic(mimic.get("joint", ""), multiplier, offset - multiplier * reference)


def _seat(M: Any) -> dict[str, Any]:
    """Position and rotation of a pose as xyz and rpy."""
    rpy = to_rpy(Mat3(*(Vec3(*(float(x) for x in row)) for row in M[:3, :3])))
    return {
        "xyz": tuple(exact(float(x) + 0.0) for x in M[:3, 3]),
        "rpy": tuple(exact(float(x)) for x in rpy),
    }
