"""Pinocchio and MuJoCo as judges of whole robots: the same URDF file read by them, joint by joint by name.

Derivatives of forward dynamics are Pinocchio's own where there are no mimic joints; those of a projection follow from
the projected derivatives of inverse dynamics, -(Gᵀ H G)⁻¹ Gᵀ (∂τ/∂x) G.

Mimic joints are judged by projection: the robot without them, its joints' rates G q̇, forces Gᵀτ, inertia Gᵀ H G.
"""

from __future__ import annotations

import site
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

import armdyn
from armdyn.files.urdf_xml import content
from armdyn.formulations import physics
from armdyn.formulations.elimination import eliminate, solve
from armdyn.formulations.inverse_dynamics.derivatives import derivatives
from armdyn.values import cached_property
from oracles import plain, relative

# The packages whose robots are judged; of pybullet_data's thousand random toys only the first.
PACKAGES = ("cmeel.prefix/share/example-robot-data", "rtbdata", "pybullet_data")
_METHODS = {"inertia_matrix": "denoc", "bias": "newton_euler"}  # those that serve trees
_SINGULAR = 1e-13  # of H scaled to a diagonal of ones: a massless tip, whose acceleration no force determines


def package_robots() -> list[Path]:
    """Every URDF file that the installed packages bring."""
    found: list[Path] = []
    for folder in site.getsitepackages():
        for package in PACKAGES:
            found += (Path(folder) / package).rglob("*.urdf")
    return sorted(f for f in found if "random_urdfs" not in f.parts or f.stem == "000")


def model_of(file: Path, floating: bool) -> Any:
    """The file as Pinocchio has it, without mimic joints and without anything to see."""
    text = plain(ET.fromstring(content(file)[0].lstrip()))
    if not floating or 'type="floating"' in text:
        return pin.buildModelFromXML(text)
    return pin.buildModelFromXML(text, pin.JointModelFreeFlyer())


@dataclass(frozen=True)
class Judge:
    """An arm and Pinocchio's model of the same file."""

    arm: armdyn.Arm
    model: Any

    @cached_property
    def projection(self) -> tuple[Any, Any]:
        """(G, β): Pinocchio's rates are G q̇; positions of joints with one number G q + β."""
        chain, first = self.arm.chain, 6 if self.arm.floating else 0
        place = {i: first + c for c, i in enumerate(chain.independent)}
        G, offset = np.zeros((self.model.nv, chain.nv)), np.zeros(self.model.nv)
        G[:first, :first] = np.eye(first)
        for i, joint in enumerate(chain.joints):
            if not joint.free:
                leader, factor, shift = chain.leader(joint) if joint.mimic else (i, 1, 0)
                row = self.model.joints[self.model.getJointId(joint.name)].idx_v
                G[row, place[leader]], offset[row] = float(factor), float(shift)
        return G, offset

    def configuration(self, q: Any) -> Any:
        """Our q as Pinocchio has it; a continuous joint is a cosine and a sine there."""
        G, offset = self.projection
        first, six = (7, 6) if self.arm.floating else (0, 0)
        angles, x = G[:, six:] @ q[first:] + offset, pin.neutral(self.model)
        x[:first] = q[:first]
        for joint in list(self.model.joints)[1:]:
            value = angles[joint.idx_v] if joint.nv == 1 else None
            if joint.nv == 1:
                x[joint.idx_q : joint.idx_q + joint.nq] = [np.cos(value), np.sin(value)] if joint.nq == 2 else [value]
        return x

    def says(self, q: Any, qd: Any, qdd: Any) -> dict[str, Any]:
        """Every quantity that is compared, by armdyn's names."""
        model, data, (G, _) = self.model, self.model.createData(), self.projection
        x, v, a = self.configuration(q), G @ qd, G @ qdd
        H = pin.crba(model, data, x)
        H = G.T @ (np.triu(H) + np.triu(H, 1).T) @ G
        bias = G.T @ pin.nonLinearEffects(model, data, x, v)
        tau = G.T @ pin.rnea(model, data, x, v, a)
        said: dict[str, Any] = {
            "inertia_matrix": H,
            "gravity_load": G.T @ pin.computeGeneralizedGravity(model, data, x),
            "bias": bias,
            "inverse_dynamics": tau,
            "natural_regressor": tau,
        }
        if self.arm.mass:
            said["centroidal_momentum"] = np.array(pin.computeCentroidalMomentum(model, data, x, v))
        pin.computeRNEADerivatives(model, data, x, v, a)
        slopes = {"q": G.T @ data.dtau_dq @ G, "qd": G.T @ data.dtau_dv @ G}
        said |= {f"inverse_dynamics_derivatives {name}": slope for name, slope in slopes.items()}
        if regular(H):
            said["forward_dynamics"] = qdd
            if G.shape[0] == G.shape[1]:
                pin.computeABADerivatives(model, data, x, v, pin.rnea(model, data, x, v, a))
                back = G.T  # a permutation of the joints
                slopes = {"q": -back @ data.ddq_dq @ G, "qd": -back @ data.ddq_dv @ G}
            else:
                slopes = {name: np.linalg.solve(H, slope) for name, slope in slopes.items()}
            said |= {f"forward_dynamics_derivatives {name}": -slope for name, slope in slopes.items()}
        pin.framesForwardKinematics(model, data, x)
        for name in self.tips:
            frame = model.getFrameId(name, pin.BODY)
            said[f"pose {name}"] = data.oMf[frame].homogeneous
            J = pin.computeFrameJacobian(model, data, x, frame, pin.LOCAL_WORLD_ALIGNED)
            said[f"jacobian {name}"] = J.reshape(6, -1) @ G
        return said

    @cached_property
    def tips(self) -> list[str]:
        """A frame on each of the outermost links, three at most."""
        found = {frame.link: frame.name for frame in self.arm.frames if frame.link - 1 in self.arm.chain.tips}
        return list(found.values())[:3]

    def ours(self, q: Any, qd: Any, qdd: Any, tau: Any, backend: str = "python") -> dict[str, Any]:
        """The same by armdyn, on the path that is asked for."""
        arm = self.arm

        def kernel(quantity: str, **options: Any) -> Any:
            method = "auto"
            if backend == "python":  # choosing would take longer than all the rest
                method = _METHODS.get(quantity, armdyn.methods(quantity)[0])
            return arm.kernel(quantity, method=method, backend=backend, **options)

        weights = np.concatenate([[float(x) for x in link.natural] for link in arm.links])
        found = {
            "inertia_matrix": kernel("inertia_matrix")(q),
            "gravity_load": kernel("gravity_load")(q),
            "bias": kernel("bias")(q, qd),
            "inverse_dynamics": kernel("inverse_dynamics")(q, qd, qdd),
            "natural_regressor": kernel("natural_regressor")(q, qd, qdd) @ weights,
        }
        if arm.mass:
            found["centroidal_momentum"] = kernel("centroidal_momentum")(q, qd)
        if regular(found["inertia_matrix"]):
            found["forward_dynamics"] = kernel("forward_dynamics")(q, qd, tau)
        found |= self._derivatives(q, qd, qdd, tau, backend)
        for name in self.tips:
            found[f"pose {name}"] = kernel("pose", frame=name)(q)
            found[f"jacobian {name}"] = kernel("jacobian", frame=name)(q)
        return found

    def _derivatives(self, q: Any, qd: Any, qdd: Any, tau: Any, backend: str) -> dict[str, Any]:
        """Derivatives of inverse and forward dynamics in q and q̇, columns in the tangent space of a floating base."""
        names = ("q", "qd")
        if backend == "llvm":
            inverse = self.arm.kernel("inverse_dynamics", derivatives=names)(q, qd, qdd)
            forward = self.arm.kernel("forward_dynamics", derivatives=names)(q, qd, tau)
        else:  # the same recursion and elimination on floats
            chain = self.arm.chain.floats
            *inverse, _ = physics.derivatives(derivatives, chain, [list(map(float, x)) for x in (q, qd, qdd)])
            H = self.arm.kernel("inertia_matrix", method="denoc", backend="python")(q)
            forward = ()
            if regular(H):
                alpha, reciprocals, _ = eliminate(chain, H.tolist())
                columns = (np.array(slope, float).T.tolist() for slope in inverse)
                forward = [-np.array([solve(alpha, reciprocals, one) for one in each]).T for each in columns]
        found = {f"inverse_dynamics_derivatives {x}": np.array(y, float) for x, y in zip(names, inverse, strict=True)}
        return found | {f"forward_dynamics_derivatives {x}": np.array(y) for x, y in zip(names, forward, strict=False)}

    def disagreement(self, seed: int = 0, backend: str = "python") -> dict[str, float]:
        """How far armdyn is from Pinocchio, quantity by quantity, relative to the largest number of its kind."""
        rng = np.random.default_rng(seed)
        q, qd, qdd = rng.uniform(-1, 1, self.arm.chain.nq), *rng.uniform(-1, 1, (2, self.arm.chain.nv))
        if self.arm.floating:
            q[3:7] /= np.linalg.norm(q[3:7])
        truth = self.says(q, qd, qdd)
        ours = self.ours(q, qd, qdd, truth["inverse_dynamics"], backend)
        forces = ("gravity_load", "bias", "inverse_dynamics", "natural_regressor")
        largest = max(float(np.max(np.abs(truth[name]), initial=0.0)) for name in forces)
        out: dict[str, float] = {}
        for name, expected in truth.items():
            scale = max(largest, 1e-9) if name in forces else None
            if name.startswith("inverse_dynamics_derivatives"):
                scale = max(largest, 1e-9, float(np.max(np.abs(expected), initial=0.0)))
            kind = name.split()[0]
            error = relative(np.asarray(ours[name]), np.asarray(expected), scale)
            if kind.startswith("forward_dynamics"):  # by its forces: H may be badly conditioned
                slope = truth[name.replace("forward", "inverse")]
                size = max(largest, 1e-9, float(np.max(np.abs(slope), initial=0.0)))
                error = relative(*(truth["inertia_matrix"] @ x for x in (ours[name], expected)), size)
            out[kind] = max(out.get(kind, 0.0), error)
        return out


def regular(H: Any) -> bool:
    """Whether an inertia matrix can be inverted."""
    size = np.sqrt(np.diag(H))
    return bool((size > 0).all() and np.linalg.eigvalsh(H / np.outer(size, size))[0] > _SINGULAR)


def judge(file: Path, floating: bool | None = None) -> Judge:
    """A judge of the whole robot in a file, nothing snapped."""
    arm = armdyn.load(file, snap=0, floating=floating)
    return Judge(arm, model_of(file, arm.floating))


def mujoco_says(file: Path, seed: int = 0) -> dict[str, float]:
    """How far inertia matrix and bias are from MuJoCo's, the base standing; an error of MuJoCo's where it refuses."""
    import mujoco

    text = plain(ET.fromstring(content(file)[0].lstrip()))
    keep = '<mujoco><compiler fusestatic="false" discardvisual="true"/></mujoco></robot>'
    model = mujoco.MjModel.from_xml_string(text.replace("</robot>", keep))
    model.dof_damping[:] = model.dof_frictionloss[:] = model.dof_armature[:] = 0
    judged, data = judge(file, False), mujoco.MjData(model)
    arm, chain, (G, offset) = judged.arm, judged.arm.chain, judged.projection
    joints = [joint.name for joint in chain.joints]
    order = [mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_JOINT, name) for name in joints]
    rows = [judged.model.joints[judged.model.getJointId(name)].idx_v for name in joints]
    G, offset = G[rows], offset[rows]
    q, qd = np.random.default_rng(seed).uniform(-1, 1, (2, arm.n))
    data.qpos[order], data.qvel[order] = G @ q + offset, G @ qd
    mujoco.mj_forward(model, data)
    H = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, H)
    expected = {"inertia_matrix": G.T @ H[np.ix_(order, order)] @ G, "bias": G.T @ data.qfrc_bias[order]}
    ours = {"inertia_matrix": (q,), "bias": (q, qd)}
    forces = max(np.abs(x).max() for x in expected.values())  # a bias of nothing but rounding has no size of its own
    scale = {"inertia_matrix": None, "bias": float(forces)}
    return {
        name: relative(arm.kernel(name, method=_METHODS[name], backend="python")(*given), expected[name], scale[name])
        for name, given in ours.items()
    }
