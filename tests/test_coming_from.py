"""Every row of docs/coming_from.md against the library it names."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

import armdyn
from oracles import robots

PAGE = (Path(__file__).parent.parent / "docs" / "coming_from.md").read_text()
ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in PAGE.splitlines()
    if line.startswith("| ") and "---" not in line
][1:]
FILE = next(path for path in robots() if path.stem == "ur5_robot")
PINOCCHIO = {}


@pytest.fixture(scope="module")
def state():
    """The arm, Pinocchio's model and data, and a state in which everything is computed."""
    arm = armdyn.load(FILE, snap=0)
    model = pin.buildModelFromUrdf(str(FILE))
    q, v, a = np.random.default_rng(0).uniform(-1, 1, (3, arm.n))
    return arm, model, model.createData(), q, v, a


def row(mine: str):
    """Registers the check of a row of the table, by the beginning of its first cell."""

    def register(function):
        PINOCCHIO[mine] = function
        return function

    return register


@row('armdyn.load("x.urdf")')
def _(arm, model, data, q, v, a):
    return [arm.n, list(arm.joint_names)], [model.nv, list(model.names)[1:]]


@row("arm.inertia_matrix(q)")
def _(arm, model, data, q, v, a):
    H = np.triu(pin.crba(model, data, q))
    return arm.inertia_matrix(q), H + np.triu(H, 1).T


@row("arm.bias(q, qd)")
def _(arm, model, data, q, v, a):
    return arm.bias(q, v), pin.nonLinearEffects(model, data, q, v)


@row("arm.gravity_load(q)")
def _(arm, model, data, q, v, a):
    return arm.gravity_load(q), pin.computeGeneralizedGravity(model, data, q)


@row("arm.coriolis_matrix(q, qd)")
def _(arm, model, data, q, v, a):
    C = pin.computeCoriolisMatrix(model, data, q, v)  # another matrix with the same C q̇
    return arm.coriolis_matrix(q, v) @ v, C @ v


@row("arm.inverse_dynamics(q, qd, qdd)")
def _(arm, model, data, q, v, a):
    return arm.inverse_dynamics(q, v, a), pin.rnea(model, data, q, v, a)


@row("arm.forward_dynamics(q, qd, tau)")
def _(arm, model, data, q, v, a):
    return arm.forward_dynamics(q, v, a), pin.aba(model, data, q, v, a)


@row("arm.inertia_inverse(q)")
def _(arm, model, data, q, v, a):
    W = np.triu(pin.computeMinverse(model, data, q))
    return arm.inertia_inverse(q), W + np.triu(W, 1).T


@row('arm.natural_regressor(q, qd, qdd, columns="urdf")')
def _(arm, model, data, q, v, a):
    return arm.natural_regressor(q, v, a, columns="urdf"), pin.computeJointTorqueRegressor(model, data, q, v, a)


@row('arm.natural_parameters("urdf")')
def _(arm, model, data, q, v, a):
    theirs = [inertia.toDynamicParameters() for inertia in list(model.inertias)[1:]]
    return arm.natural_parameters("urdf"), np.concatenate(theirs)


@row("arm.inverse_dynamics_derivatives")
def _(arm, model, data, q, v, a):
    pin.computeRNEADerivatives(model, data, q, v, a)
    by_q, by_v, H = arm.inverse_dynamics_derivatives(q, v, a)
    return [by_q, by_v, np.triu(H)], [data.dtau_dq, data.dtau_dv, np.triu(data.M)]


@row("arm.forward_dynamics_derivatives")
def _(arm, model, data, q, v, a):
    pin.computeABADerivatives(model, data, q, v, a)
    by_q, by_v, W = arm.forward_dynamics_derivatives(q, v, a)
    return [by_q, by_v, np.triu(W)], [data.ddq_dq, data.ddq_dv, np.triu(data.Minv)]


@row("arm.pose(q)")
def _(arm, model, data, q, v, a):
    pin.framesForwardKinematics(model, data, q)
    return arm.pose(q), data.oMf[model.getFrameId(arm.tool.name)].homogeneous


@row("arm.link_poses(q)")
def _(arm, model, data, q, v, a):
    pin.framesForwardKinematics(model, data, q)
    frames = [data.oMf[model.getFrameId(name)].homogeneous for name in arm.frame_names]
    return [arm.link_poses(q), arm.poses(q)], [[M.homogeneous for M in list(data.oMi)[1:]], frames]


@row("arm.jacobian(q)")
def _(arm, model, data, q, v, a):
    J = pin.computeFrameJacobian(model, data, q, model.getFrameId(arm.tool.name), pin.LOCAL_WORLD_ALIGNED)
    return arm.jacobian(q), J


def test_every_row_with_a_function_of_pinocchio_is_tested():
    named = [mine for mine, theirs, *_ in ROWS if re.search(r"`(pin\.|data\.|inertia\.)", theirs)]
    tested = [cell for cell in named if any(cell.startswith(f"`{key}") for key in PINOCCHIO)]
    assert named == tested
    assert len(tested) == len(PINOCCHIO)


@pytest.mark.parametrize("key", list(PINOCCHIO))
def test_rows_of_pinocchio(key, state):
    mine, theirs = PINOCCHIO[key](*state)
    for got, expected in zip(mine, theirs, strict=True) if isinstance(mine, list) else [(mine, theirs)]:
        if isinstance(got, int | list):
            assert got == expected
        else:
            np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-9)


def test_rows_of_the_robotics_toolbox():
    """A Puma 560 of its own, as a modified table here and there; friction and rotors are left out in both."""
    rtb = pytest.importorskip("roboticstoolbox")
    arm = armdyn.load("puma560")
    links = []
    for joint, link in zip(arm.chain.floats.joints, arm.chain.floats.links, strict=True):
        J = link.inertia_about_com
        inertia = [J.xx, J.yy, J.zz, J.xy, J.yz, J.xz]
        geometry = {"a": joint.b, "alpha": joint.beta.radians, "d": joint.d, "offset": joint.theta.radians}
        links.append(rtb.RevoluteMDH(**geometry, m=link.mass, r=list(link.com), I=inertia, G=0, Jm=0, B=0, Tc=0))
    robot = rtb.DHRobot(links, gravity=[0, 0, -9.81])  # as of version 1.5
    bare = armdyn.Arm("bare", arm.chain.__class__(
        tuple(j.__class__(j.kind, j.b, j.beta, j.d, j.theta, j.gamma, j.name) for j in arm.chain.joints),
        arm.chain.links, arm.chain.gravity,
    ), snap=0.0)  # fmt: skip
    q, v, a = np.random.default_rng(0).uniform(-1, 1, (3, 6))
    pairs = {
        "inertia": (bare.inertia_matrix(q), robot.inertia(q)),
        "bias": (bare.bias(q, v), robot.rne(q, v, 0 * q)),
        "gravload": (bare.gravity_load(q), robot.gravload(q)),
        "coriolis": (bare.coriolis_matrix(q, v) @ v, robot.coriolis(q, v) @ v),
        "rne": (bare.inverse_dynamics(q, v, a), robot.rne(q, v, a)),
        "accel": (bare.forward_dynamics(q, v, a), robot.accel(q, v, a)),
        "fkine": (bare.pose(q), robot.fkine(q).A),
        "fkine_all": (bare.link_poses(q), np.array(robot.fkine_all(q).A)[1:]),
        "jacob0": (bare.jacobian(q), robot.jacob0(q)),
    }
    for name, (mine, theirs) in pairs.items():
        np.testing.assert_allclose(mine, theirs, rtol=1e-6, atol=1e-7, err_msg=name)
    reached = robot.ikine_LM(bare.pose(q), q0=q + 0.1, tol=1e-12)
    np.testing.assert_allclose(bare.pose(reached.q), bare.pose(q), atol=1e-4)
    found = bare.inverse_kinematics(bare.pose(q), q + 0.1)
    np.testing.assert_allclose(robot.fkine(found.q).A, bare.pose(q), atol=1e-8)
