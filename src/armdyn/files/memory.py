"""Robots that are already in memory: models of Pinocchio, MuJoCo and the Robotics Toolbox.

Which library an object belongs to is read off its type, so nothing is imported that the caller has not imported.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from armdyn.chain import Placement
from armdyn.chain.joint import JointForces
from armdyn.errors import FileError, InputError
from armdyn.files import arm_tree, arrays, dh_table, mjcf, mjcf_compile, urdf
from armdyn.files.description import Description, Frame
from armdyn.files.made import InCode, Maker, mimic, order_note
from armdyn.options import Cut

Reader = Callable[[Any, Cut, float, "bool | None"], Description]
_TEXT = "MJCF text"


def library(given: Any) -> str:
    """The type of a robot in memory: "pinocchio.Model", "mujoco.MjModel", "DHRobot", "Robot"; "" for anything else."""
    for kind in type(given).__mro__:
        package = kind.__module__.split(".")[0]
        if (package, kind.__name__) in _KINDS:
            return _KINDS[package, kind.__name__]
    return ""


def is_mjcf(text: str) -> bool:
    """Whether a text that starts with ``<`` is MJCF: its first element is mujoco."""
    from armdyn.files.text import is_text

    head = text.find("<mujoco")
    return is_text(text) and head >= 0 and "<robot" not in text[:head] and "<sdf" not in text[:head]


def read(given: Any, cut: Cut, snap: float, strict: bool | None = None) -> Description:
    """Read a robot that is in memory; an error for an object of any other type."""
    if not (kind := library(given)):
        raise InputError(
            "an arm must be a catalogue name, a path or the text of a URDF or MJCF model, or a pinocchio.Model, a "
            f"mujoco.MjModel, a DHRobot or an ERobot in memory; got {type(given).__name__}: {given!r:.80}"
        )
    return _READERS[kind](given, cut, snap, strict)


def read_mjcf(text: str, cut: Cut, snap: float, strict: bool | None = None) -> Description:
    """Read the text of an MJCF model; it may refer to no files."""
    with tempfile.TemporaryDirectory(prefix="armdyn-mjcf-") as folder:
        path = Path(folder) / "model.xml"
        path.write_text(text, encoding="utf-8")
        try:
            found = mjcf.read(path, cut, snap, False, strict)
        except (FileError, InputError) as error:
            raise type(error)(str(error).replace(str(path), _TEXT).replace(path.name, _TEXT)) from None
    notes = tuple(note.replace(path.name, _TEXT) for note in found.notes)
    name = "robot" if found.name == path.stem else found.name
    return replace(found, name=name, source=_TEXT, notes=notes)


def _mujoco(model: Any, cut: Cut, snap: float, strict: bool | None) -> Description:
    found = mjcf.described(mjcf_compile.gathered(model), "mujoco.MjModel", cut, snap, strict)
    return replace(found, name=found.name if found.name != "MuJoCo Model" else "robot", source="mujoco.MjModel")


def _pinocchio(model: Any, cut: Cut, snap: float, strict: bool | None) -> Description:
    """A Pinocchio model: its joints, the bodies that are fixed to them, armature, friction, limits and frames."""
    links = _pinocchio_links(model)
    maker = Maker("pinocchio.Model", links[0])
    for j in range(model.njoints):
        body = model.inertias[j]
        moving = j > 0
        maker.link(links[j], body.mass, body.lever, body.inertia, massive=moving or body.mass != 0)
    for j in range(1, model.njoints):
        ends = (links[model.parents[j]], links[j])
        _pinocchio_joint(maker, model, j, ends)
    for frame in model.frames:
        name = frame.name
        if frame.type.name in ("BODY", "OP_FRAME", "SENSOR") and name not in maker.links:
            maker.frame(name, links[frame.parentJoint], frame.placement.homogeneous)
    tree = maker.tree(model.name or "robot", "")
    moving_joints = [name for name in maker.joints if maker.joints[name].kind not in ("fixed", "floating")]
    notes = (*tree.notes, *order_note(tree, moving_joints, "Pinocchio's"))
    gravity = arrays.vector(model.gravity.linear, "gravity")
    found = urdf.robot(replace(tree, notes=notes), cut, snap, gravity, strict)
    return replace(found, source="pinocchio.Model")


def _pinocchio_links(model: Any) -> list[str]:
    """A name for the body of each joint: that of a body frame at the joint's frame, else the joint's with "link"."""
    names = ["", *([""] * (model.njoints - 1))]
    taken: set[str] = set()
    for frame in model.frames:
        j = frame.parentJoint
        here = np.array_equal(frame.placement.homogeneous, np.eye(4))
        if not names[j] and here and frame.type.name == "BODY" and frame.name not in taken:
            names[j] = frame.name
            taken.add(frame.name)
    others = {frame.name for frame in model.frames}
    for j, name in enumerate(names):
        if not name:
            called = f"{model.names[j]} link" if j else "universe"
            while called in taken or (called in others and j):
                called += "_2"
            names[j] = called
            taken.add(called)
    return names


def _pinocchio_joint(maker: Maker, model: Any, j: int, ends: tuple[str, str]) -> None:
    """One joint; a composite one, a translation, a universal joint and one of Euler angles become several."""
    joint, name = model.joints[j], model.names[j]
    at = model.jointPlacements[j].homogeneous
    if joint.shortname() == "JointModelFreeFlyer":
        maker.joint(name, "floating", ends, at)
        return
    singles = _singles(joint, name, maker.label)
    known = joint.nv == len(singles)  # a mimic joint has no place in the arrays
    if len(singles) > 1:
        maker.notes.append(f"joint {name!r} has {len(singles)} degrees of freedom: read as one joint for each")
    link, row = ends[0], joint.idx_q
    for k, (kind, axis, before, unbounded) in enumerate(singles):
        called = name if len(singles) == 1 else f"{name}_{k + 1}"
        child = ends[1] if k == len(singles) - 1 else f"{called} link"
        if child not in maker.links:
            maker.link(child, massive=False)
        more: dict[str, Any] = {}
        if known:
            v = joint.idx_v + k
            drive = {"rotor_inertia": model.armature, "viscous": model.damping, "coulomb": model.friction}
            more |= {key: float(values[v]) for key, values in drive.items()}
            limits = {"velocity": model.velocityLimit, "effort": model.effortLimit}
            more |= {key: _limit(values[v]) for key, values in limits.items()}
            if not unbounded:
                more |= {"lower": model.lowerPositionLimit[row], "upper": model.upperPositionLimit[row]}
        elif (follows := _mimicked(model, j)) is not None:
            more["mimic"] = follows
        row += 2 if unbounded else 1
        limited = any(abs(more.get(key, np.inf)) < 1e30 for key in ("lower", "upper"))
        shown = "continuous" if kind == "revolute" and not limited else kind
        maker.joint(called, shown, (link, child), at @ before, axis, **more)
        link, at = child, np.eye(4)


def _limit(value: Any) -> float | None:
    """A limit of speed or effort; Pinocchio's models made in code have none as infinity or the largest float."""
    return float(value) if np.isfinite(value) and value < 1e30 else None


def _singles(joint: Any, name: str, label: str) -> list[tuple[str, Any, Any, bool]]:
    """The revolute and prismatic joints that a joint consists of: kind, axis, placement before it, unbounded or not."""
    kind = joint.shortname()
    if kind in ("JointModelPlanar", "JointModelSpherical", "JointModelEllipsoid") or kind.startswith("JointModelH"):
        shown = kind.removeprefix("JointModel").lower()
        raise InputError(
            f"{label}: joint {name!r} is {shown}; supported are revolute and prismatic joints, and chains "
            "of them. Build the model with such joints, or load the robot's own file"
        )
    x, y, z = np.eye(3)
    if kind in _CHAINS:
        what, axes = _CHAINS[kind]
        return [(what, {"x": x, "y": y, "z": z}[axis], np.eye(4), False) for axis in axes]
    made = joint.extract() if hasattr(joint, "extract") else joint
    if kind == "JointModelComposite":
        out = []
        for k, part in enumerate(made.joints):
            first, *rest = _singles(part, name, label)
            before = made.jointPlacements[k].homogeneous @ first[2]
            out += [(first[0], first[1], before, first[3]), *rest]
        return out
    if kind == "JointModelUniversal":
        return [("revolute", axis, np.eye(4), False) for axis in (made.axis1, made.axis2)]
    data = joint.createData()  # a single joint: its axis is its motion subspace, which a mimic joint scales
    q = np.zeros(1 if kind == "JointModelMimic" else joint.nq)
    q[0] = joint.nq == 2
    joint.calc(data, q)
    motion = np.asarray(data.S, float).reshape(6) / (made.scaling if kind == "JointModelMimic" else 1.0)
    linear, angular = motion[:3], motion[3:]
    if linear.any() and angular.any():
        raise InputError(f"{label}: joint {name!r} is helical; supported are revolute and prismatic joints")
    return [
        ("prismatic", linear, np.eye(4), False) if linear.any() else ("revolute", angular, np.eye(4), joint.nq == 2)
    ]


_CHAINS = {"JointModelTranslation": ("prismatic", "xyz"), "JointModelSphericalZYX": ("revolute", "zyx")}


def _mimicked(model: Any, j: int) -> Any:
    pairs = dict(zip(map(int, model.mimicking_joints), map(int, model.mimicked_joints), strict=True))
    made = model.joints[j].extract()
    return mimic(model.names[pairs[j]], made.scaling, made.offset) if j in pairs else None


def _dh_robot(robot: Any, cut: Cut, snap: float, strict: bool | None) -> Description:
    """A robot of Denavit-Hartenberg links; the motor's friction and inertia are referred to the joint."""
    conventions = {"modified" if link.mdh else "standard" for link in robot.links}
    if len(conventions) > 1:
        raise InputError("DHRobot: its links mix the standard and the modified convention; expected one of them")
    rows = []
    for k, link in enumerate(robot.links, 1):
        turning = bool(link.isrevolute)
        moved = {"theta": link.offset} if turning else {"theta": link.theta}
        d = link.d if turning else link.offset
        row = {"kind": "revolute" if turning else "prismatic", "a": link.a, "alpha": link.alpha, "d": d, **moved}
        rows.append(row | {"name": f"joint{k}", "flip": bool(link.isflip)} | _rtb_body(link) | _rtb_drive(link))
    convention = conventions.pop()
    ends = arrays.as_matrix(robot.base), arrays.as_matrix(robot.tool)
    chain, links = dh_table.chain(rows, convention, robot.gravity, *ends)
    frames = (Frame("base", 0, Placement()), *links)
    whole = Description(robot.name or "robot", chain, "roboticstoolbox.DHRobot", frames, notes=_rtb_notes(robot))
    return arm_tree.cut(whole, cut, "DHRobot", snap, strict)


def _rtb_body(link: Any) -> dict[str, Any]:
    return {"mass": link.m or 0, "com": np.zeros(3) if link.r is None else link.r, "inertia": link.I}


def _rtb_drive(link: Any) -> dict[str, Any]:
    """Inertia and friction of the motor, seen at the joint, and its range."""
    ratio = abs(float(link.G or 0))
    pair = ratio * np.asarray(link.Tc if link.Tc is not None else (0, 0), float)
    drive: dict[str, Any] = {"rotor_inertia": ratio**2 * float(link.Jm or 0), "viscous": ratio**2 * float(link.B or 0)}
    drive |= {"coulomb": (pair[0] - pair[1]) / 2, "offset": (pair[0] + pair[1]) / 2}
    if link.qlim is not None:
        drive["lower"], drive["upper"] = (float(end) for end in np.ravel(link.qlim)[:2])
    return drive


def _rtb_notes(robot: Any) -> tuple[str, ...]:
    odd = [link.name for link in robot.links if link.isjoint and link.Tc is not None and link.Tc[0] != -link.Tc[1]]
    if not odd or not any(abs(float(link.G or 0)) for link in robot.links):
        return ()
    return (
        f"Coulomb friction differs by direction at {', '.join(odd)}: read as a symmetric one and a constant offset, "
        "which, unlike the Toolbox's, also acts at rest",
    )


def _robot(robot: Any, cut: Cut, snap: float, strict: bool | None) -> Description:
    """A robot of elementary transforms (ERobot): every link is a constant transform, and then its joint."""
    names = {link.name for link in robot.links}
    root = "base" if "base" not in names else "base frame"
    maker = Maker("roboticstoolbox.Robot", root)
    joints: dict[int, str] = {}
    for link in robot.links:
        at = np.eye(4) if link.Ts is None else np.asarray(link.Ts, float)
        if link.parent is None:
            at = np.asarray(arrays.as_matrix(robot.base), float) @ at
        maker.link(link.name, **_rtb_body(link), massive=bool(link.m) or bool(link.isjoint))
        ends = (root if link.parent is None else link.parent.name, link.name)
        if not link.isjoint:
            maker.joint(f"fixed {link.name}", "fixed", ends, at)
            continue
        name = joints[link.jindex] = getattr(link, "_joint_name", None) or f"{link.name}_joint"
        drive = _rtb_drive(link)
        forces = JointForces(offset=arrays.number(drive.pop("offset"), f"offset of joint {name!r}"))
        moved = link.v.kind if hasattr(link.v, "kind") else link.v.axis  # "Rx" or "tz"; axis before version 1.4
        axis = np.eye(3)["xyz".index(moved[-1].lower())] * (-1 if link.v.isflip else 1)
        kind = "prismatic" if moved[0] == "t" else "revolute" if "lower" in drive else "continuous"
        maker.joint(name, kind, ends, at, axis, forces=forces, **drive)
    ends_of_chains = [link.name for link in robot.links if not link.children]
    tool = np.asarray(arrays.as_matrix(robot.tool), float)
    stated = len(ends_of_chains) == 1 and not np.array_equal(tool, np.eye(4)) and "tool" not in maker.links
    if stated:
        maker.frame("tool", ends_of_chains[0], tool)
    tree = maker.tree(robot.name or "robot", "")
    notes = (*tree.notes, *_rtb_notes(robot), *order_note(tree, [joints[k] for k in sorted(joints)], "the Toolbox's"))
    tree = replace(tree, notes=notes, tool="tool" if stated else "")
    found = urdf.robot(tree, cut, snap, arrays.vector(robot.gravity, "gravity"), strict)
    return replace(found, source="roboticstoolbox.Robot")


def _in_code(robot: InCode, cut: Cut, snap: float, strict: bool | None) -> Description:
    return replace(urdf.robot(robot.tree, cut, snap, robot.gravity, strict), source=robot.source)


_KINDS = {  # package and type -> what messages call it
    ("pinocchio", "Model"): "pinocchio.Model",
    ("mujoco", "MjModel"): "mujoco.MjModel",
    ("roboticstoolbox", "DHRobot"): "DHRobot",
    ("roboticstoolbox", "Robot"): "Robot",
    ("armdyn", "InCode"): "InCode",
}
_READERS: dict[str, Reader] = {
    "pinocchio.Model": _pinocchio,
    "mujoco.MjModel": _mujoco,
    "DHRobot": _dh_robot,
    "Robot": _robot,
    "InCode": _in_code,
}
