"""Pinocchio and MuJoCo as judges: arms cut out of URDF files and what they say about them."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import metadata
from pathlib import Path

import mujoco
import numpy as np
import pytest

import armdyn
from armdyn.files import urdf
from armdyn.kernels.kernel import Kernel

pin = pytest.importorskip("pinocchio", reason="Pinocchio, which this compares with, is not installed")


def robots() -> list[Path]:
    """Every URDF file of example-robot-data."""
    found = [Path(str(f.locate())) for f in metadata.files("example-robot-data") or () if f.suffix == ".urdf"]
    return sorted(found)


@dataclass(frozen=True)
class Cut:
    """One chain of a file: the joints of the arm, what it carries and must be locked, its base and its tip."""

    file: Path
    base: str
    tip: str
    joints: tuple[str, ...]
    lock: tuple[str, ...]

    @property
    def id(self) -> str:
        return f"{self.file.stem}:{self.tip}"

    def arm(self, value: float = 0.0) -> armdyn.Arm:
        lock = dict.fromkeys(self.lock, value)
        return arm_of(self.file, base=self.base, tip=self.tip, lock=lock)

    def text(self) -> str:
        """The file with every joint but the arm's made fixed, and nothing to see and no mass where nothing moves."""
        robot = ET.parse(self.file).getroot()
        joints = robot.findall("joint")
        carried = {j.find("child").get("link") for j in joints if j.get("name") in self.joints[:1]}
        for _ in joints:  # as deep as a tree of so many joints can be
            carried |= {j.find("child").get("link") for j in joints if j.find("parent").get("link") in carried}
        for joint in joints:
            if joint.get("name") not in self.joints:
                joint.set("type", "fixed")
        for link in robot.findall("link"):
            if link.get("name") not in carried:
                for inertial in link.findall("inertial"):
                    link.remove(inertial)
        return plain(robot)


def plain(robot: ET.Element) -> str:
    """The robot's links, inertias and joints alone, for judges that insist on reading meshes."""
    for element in list(robot):
        if element.tag not in ("link", "joint"):
            robot.remove(element)
    for link in robot.findall("link"):
        for part in link.findall("visual") + link.findall("collision"):
            link.remove(part)
    for joint in robot.findall("joint"):
        for part in joint.findall("mimic"):
            joint.remove(part)
    return ET.tostring(robot, encoding="unicode")


def arm_of(source: str | Path, **cut: object) -> armdyn.Arm:
    """The arm as written, nothing snapped."""
    found = urdf.read(source, snap=0, **cut)  # type: ignore[arg-type]
    return armdyn.Arm(found.name, found.chain, 0.0, found.source, found.frames)


@lru_cache
def cuts(file: Path, most: int = 2) -> tuple[Cut, ...]:
    """The longest chains of a file that end in different joints, at most `most`."""
    robot = ET.parse(file).getroot()
    joints = {j.get("name"): j for j in robot.findall("joint")}
    above = {j.find("child").get("link"): name for name, j in joints.items()}
    kind = {name: j.get("type") for name, j in joints.items()}
    moving = {
        n for n in joints if kind[n] in ("revolute", "continuous", "prismatic") and joints[n].find("mimic") is None
    }

    def support(link: str) -> list[str]:
        """The joints from the root, or from below the last floating one, to a link."""
        path: list[str] = []
        while link in above and kind[above[link]] not in ("floating", "planar"):
            path.insert(0, above[link])
            link = joints[above[link]].find("parent").get("link")
        return path

    supports = {name: support(j.find("child").get("link")) for name, j in joints.items()}
    inner = {a for name in moving for a in supports[name] if a != name}
    ends = sorted(moving - inner, key=lambda n: (-len([a for a in supports[n] if a in moving]), list(joints).index(n)))
    found = []
    for end in ends[:most]:
        own = [name for name in supports[end] if name in moving]
        base = joints[supports[end][0]].find("parent").get("link")
        carried = [n for n in joints if kind[n] != "fixed" and n not in own and own[0] in supports[n]]
        found.append(Cut(file, base, joints[end].find("child").get("link"), tuple(own), tuple(carried)))
    return tuple(found)


class Pinocchio:
    """What Pinocchio computes for a model of one chain; everything is given in the frame of `base`."""

    def __init__(self, model: pin.Model, base: str, tip: str, gravity: Sequence[float] = (0, 0, -9.81)) -> None:
        self.model, self.data = model, model.createData()
        self.base, self.tip = (model.getFrameId(name, pin.BODY) for name in (base, tip))
        pin.framesForwardKinematics(model, self.data, pin.neutral(model))
        self.at = self.data.oMf[self.base].copy()
        model.gravity.linear = self.at.rotation @ np.array(gravity)

    @classmethod
    def of(cls, text: str, base: str, tip: str) -> Pinocchio:
        return cls(pin.buildModelFromXML(text), base, tip)

    def configuration(self, q: np.ndarray) -> np.ndarray:
        """Continuous joints are (cos, sin) pairs there."""
        parts = [[np.cos(v), np.sin(v)] if self.model.nqs[i] == 2 else [v] for i, v in enumerate(q, 1)]
        return np.array([x for part in parts for x in part])

    def all(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> dict[str, np.ndarray]:
        model, data, x = self.model, self.data, self.configuration(q)
        H = np.triu(pin.crba(model, data, x))
        gravity = pin.computeGeneralizedGravity(model, data, x).copy()
        bias = pin.nonLinearEffects(model, data, x, qd).copy()
        tau = pin.rnea(model, data, x, qd, qdd).copy()
        pin.framesForwardKinematics(model, data, x)
        J = pin.computeFrameJacobian(model, data, x, self.tip, pin.LOCAL_WORLD_ALIGNED)
        turn = np.kron(np.eye(2), self.at.rotation.T)
        return {
            "pose": (self.at.inverse() * data.oMf[self.tip]).homogeneous,
            "jacobian": (turn @ J).reshape(6, -1),
            "inertia_matrix": H + np.triu(H, 1).T,
            "gravity_load": gravity,
            "bias": bias,
            "inverse_dynamics": tau,
        }


class Mujoco:
    """What MuJoCo computes for the same file."""

    def __init__(self, text: str, base: str, tip: str) -> None:
        keep = '<mujoco><compiler fusestatic="false" discardvisual="true"/></mujoco></robot>'
        self.model = mujoco.MjModel.from_xml_string(text.replace("</robot>", keep))
        self.data = mujoco.MjData(self.model)
        self.base, self.tip = (mujoco.mj_name2id(self.model, mujoco.mjtObj.mjOBJ_BODY, n) for n in (base, tip))
        self.base = max(self.base, 0)  # the root link is the world

    def all(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> dict[str, np.ndarray]:
        model, data, n = self.model, self.data, len(q)
        assert model.nv == n
        model.dof_damping[:] = model.dof_frictionloss[:] = model.dof_armature[:] = 0
        data.qpos[:] = q
        mujoco.mj_kinematics(model, data)
        R, p = data.xmat[self.base].reshape(3, 3).copy(), data.xpos[self.base].copy()
        model.opt.gravity[:] = R @ np.array([0, 0, -9.81])
        forces = {}
        for name, v, a in (("gravity_load", 0 * qd, 0), ("bias", qd, 0), ("inverse_dynamics", qd, qdd)):
            data.qvel[:], data.qacc[:] = v, 0
            mujoco.mj_forward(model, data)
            columns = [np.zeros(n) for _ in range(n)]
            for column, unit in zip(columns, np.eye(n), strict=True):
                mujoco.mj_mulM(model, data, column, unit)
            H = np.array(columns)
            forces[name] = data.qfrc_bias + H @ (a + np.zeros(n))
        J = np.zeros((6, n))
        mujoco.mj_jacBody(model, data, J[:3], J[3:], self.tip)
        pose = np.eye(4)
        pose[:3, :3] = R.T @ data.xmat[self.tip].reshape(3, 3)
        pose[:3, 3] = R.T @ (data.xpos[self.tip] - p)
        return {"pose": pose, "jacobian": np.kron(np.eye(2), R.T) @ J, "inertia_matrix": H, **forces}


INPUTS = {"bias": 2, "inverse_dynamics": 3}


def slowly(arm: armdyn.Arm, quantity: str) -> Kernel:
    """The plain kernel of the first formulation: compiling or choosing would take longer than all the rest."""
    return arm.kernel(quantity, method=armdyn.methods(quantity)[0], backend="python")


def relative(got: np.ndarray, expected: np.ndarray, scale: float | None = None) -> float:
    """The largest difference, relative to the largest entry expected."""
    assert got.shape == expected.shape
    size = float(np.max(np.abs(expected))) if scale is None else scale
    return float(np.max(np.abs(got - expected))) / max(size, 1e-12)


def disagreement(arm: armdyn.Arm, truth: dict[str, np.ndarray], *state: np.ndarray) -> dict[str, float]:
    """How far the arm is from the judge, quantity by quantity; forces are compared to the largest of them."""
    force = max(float(np.max(np.abs(truth[name]))) for name in ("gravity_load", "bias", "inverse_dynamics"))
    out = {}
    for name, expected in truth.items():
        got = slowly(arm, name)(*state[: INPUTS.get(name, 1)])
        scale = force if name in ("gravity_load", "bias", "inverse_dynamics") else None
        out[name] = relative(got, expected, scale)
    return out
