"""Other programs that compute the same quantities, made from the same arm, where they are installed.

Each gives, by quantity, a function of one configuration; that is what they offer to Python.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from armdyn.arm import Arm
from armdyn.studies.speed import Calls


def _pinocchio_model(pin: Any, arm: Arm) -> Any:
    """A Pinocchio model with the arm's joints, links, rotors and gravity."""
    chain = arm.chain
    model = pin.Model()
    standing, parent = chain.base, 0
    for k, (joint, link) in enumerate(zip(chain.joints, chain.links, strict=True)):
        R, p = joint.placement(0)
        place = pin.SE3(_matrix(standing.R @ R.matrix()), _vector(standing.p + standing.R @ p))
        kind = pin.JointModelRZ() if joint.kind == "revolute" else pin.JointModelPZ()
        parent = model.addJoint(parent, kind, place, f"joint{k}")
        model.appendBodyToJoint(parent, _inertia(pin, link), pin.SE3.Identity())
        standing = type(standing)()
    model.gravity.linear = np.array(arm.gravity)
    model.armature[:] = arm.rotor_inertias
    return model


def pinocchio(arm: Arm) -> Calls:
    """Pinocchio's call for each quantity."""
    pin: Any = import_module("pinocchio")
    model = _pinocchio_model(pin, arm)
    data = model.createData()
    return {
        "inertia_matrix": lambda q: pin.crba(model, data, q),
        "inverse_dynamics": lambda q, qd, qdd: pin.rnea(model, data, q, qd, qdd),
        "forward_dynamics": lambda q, qd, tau: pin.aba(model, data, q, qd, tau),
        "regressor": lambda q, qd, qdd: pin.computeJointTorqueRegressor(model, data, q, qd, qdd),
        "inverse_dynamics_derivatives": lambda q, qd, qdd: pin.computeRNEADerivatives(model, data, q, qd, qdd),
        "forward_dynamics_derivatives": lambda q, qd, tau: pin.computeABADerivatives(model, data, q, qd, tau),
    }


def pinocchio_batches(arm: Arm) -> Calls:
    """Pinocchio's calls for a whole batch, on one thread: arrays (k, n) in, (k, n) out."""
    pin: Any = import_module("pinocchio")
    pool = pin.ModelPool(_pinocchio_model(pin, arm), 1)

    def transposed(function: Any) -> Callable[..., Any]:
        """Pinocchio has one configuration per column, in column-major arrays: the transpose is no copy."""

        def call(*arrays: Any) -> Any:
            out = np.empty_like(arrays[0])
            function(1, pool, *(array.T for array in arrays), out.T)
            return out

        return call

    return {
        "inverse_dynamics": transposed(pin.rneaInParallel),
        "forward_dynamics": transposed(pin.abaInParallel),
    }


def _matrix(R: Any) -> Any:
    return np.array([[float(x) for x in row] for row in R.rows])


def _vector(v: Any) -> Any:
    return np.array([float(x) for x in v])


def _inertia(pin: Any, link: Any) -> Any:
    """A link as Pinocchio wants it: mass, centre, inertia about the centre."""
    return pin.Inertia(float(link.mass), _vector(link.com), _matrix(link.inertia_about_com.full))


def mujoco(arm: Arm) -> Calls:
    """MuJoCo's calls; each is handed its configuration in the fields of its data."""
    mj: Any = import_module("mujoco")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "arm.urdf")
        arm.to_urdf(path)
        model = mj.MjModel.from_xml_path(path)
    model.opt.gravity[:] = arm.gravity
    model.dof_armature[:] = arm.rotor_inertias
    model.dof_damping[:] = model.dof_frictionloss[:] = 0  # friction is none of these quantities
    model.opt.disableflags = mj.mjtDisableBit.mjDSBL_CONTACT | mj.mjtDisableBit.mjDSBL_LIMIT
    data = mj.MjData(model)
    full = np.zeros((arm.n, arm.n))
    make = getattr(mj, "mj_makeM", mj.mj_crb)

    def inertia_matrix(q: Any) -> Any:
        data.qpos[:] = q
        mj.mj_kinematics(model, data)
        mj.mj_comPos(model, data)
        make(model, data)
        if hasattr(data, "qM"):
            mj.mj_fullM(model, full, data.qM)
        else:  # MuJoCo 4
            mj.mj_fullM(model, data, full)
        return full

    def inverse_dynamics(q: Any, qd: Any, qdd: Any) -> Any:
        data.qpos[:], data.qvel[:], data.qacc[:] = q, qd, qdd
        mj.mj_inverse(model, data)
        return data.qfrc_inverse

    def forward_dynamics(q: Any, qd: Any, tau: Any) -> Any:
        data.qpos[:], data.qvel[:], data.qfrc_applied[:] = q, qd, tau
        mj.mj_forward(model, data)
        return data.qacc

    return {
        "inertia_matrix": inertia_matrix,
        "inverse_dynamics": inverse_dynamics,
        "forward_dynamics": forward_dynamics,
    }


def robotics_toolbox(arm: Arm) -> Calls:
    """The Robotics Toolbox's calls, for a table of Denavit and Hartenberg's; its recursion is written in C."""
    rtb: Any = import_module("roboticstoolbox")
    if any(joint.gamma.radians for joint in arm.chain.joints):
        raise ValueError(f"{arm.name} has axes that four numbers a joint do not place")
    links = []
    for joint, link in zip(arm.chain.joints, arm.chain.links, strict=True):
        body = {"m": float(link.mass), "r": _vector(link.com), "I": _matrix(link.inertia_about_com.full)}
        body |= {"Jm": float(joint.rotor_inertia), "G": 1, "a": float(joint.b), "alpha": joint.beta.radians}
        if joint.revolute:
            links.append(rtb.RevoluteMDH(d=float(joint.d), offset=joint.theta.radians, **body))
        else:
            links.append(rtb.PrismaticMDH(theta=joint.theta.radians, offset=float(joint.d), **body))
    robot = rtb.DHRobot(links, gravity=_matrix(arm.chain.base.R).T @ np.array(arm.gravity))
    return {
        "inertia_matrix": robot.inertia,
        "inverse_dynamics": robot.rne,
        "forward_dynamics": robot.accel,
    }


PEERS: dict[str, Callable[[Arm], Calls]] = {
    "Pinocchio": pinocchio,
    "MuJoCo": mujoco,
    "Robotics Toolbox": robotics_toolbox,
}

# The calls of a peer that take a whole batch, in a column of their own.
BATCH_PEERS: dict[str, Callable[[Arm], Calls]] = {"Pinocchio, batch call": pinocchio_batches}
