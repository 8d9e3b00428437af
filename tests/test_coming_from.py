"""Every row of docs/coming_from.md against the library it names."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

import armdyn
from oracles import robots

PAGE = (Path(__file__).parent.parent / "docs" / "coming_from.md").read_text()
ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in PAGE.split("\n## ")[0].splitlines()
    if line.startswith("| ") and line.count(" | ") == 3
][1:]
FILE = next(path for path in robots() if path.stem == "ur5_robot")
COLUMNS = ("armdyn", "pinocchio", "toolbox", "sympybotics")
CHECKS: dict[str, dict] = {library: {} for library in COLUMNS[1:]}


@pytest.fixture(scope="module")
def state():
    """The arm, Pinocchio's model and data, and a state in which everything is computed."""
    arm = armdyn.load(FILE, snap=0)
    model = pin.buildModelFromUrdf(str(FILE))
    q, v, a = np.random.default_rng(0).uniform(-1, 1, (3, arm.n))
    return arm, model, model.createData(), q, v, a


def row(mine: str, library: str = "pinocchio"):
    """Registers the check of a row of the table, by the beginning of its first cell: what both give."""

    def register(function):
        CHECKS[library][mine] = function
        return function

    return register


@pytest.mark.parametrize("library", CHECKS)
def test_every_row_is_tested(library):
    k = COLUMNS.index(library)
    named = [re.sub(r"^`|\[", "", cells[0]) for cells in ROWS if "`" in cells[k] and cells[k][0] != "–"]
    tested = [[key for key in CHECKS[library] if mine.startswith(key)] for mine in named]
    assert [len(keys) for keys in tested] == [1] * len(named), dict(zip(named, tested, strict=True))
    assert {key for keys in tested for key in keys} == set(CHECKS[library])


def close(pairs, tolerance):
    """Numbers to the tolerance, everything else equal."""
    mine, theirs = pairs
    for got, expected in zip(mine, theirs, strict=True) if isinstance(mine, list) else [(mine, theirs)]:
        if isinstance(got, int | list | str | armdyn.Arm):
            assert got == expected
        else:
            np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance)


@row('armdyn.load("x.urdf")')
def _(arm, model, data, q, v, a):
    return [arm.n, list(arm.joint_names)], [model.nv, list(model.names)[1:]]


@row("armdyn.load(model)")
def _(arm, model, data, q, v, a):
    return armdyn.load(model, snap=0).inverse_dynamics(q, v, a), pin.rnea(model, data, q, v, a)


@row("armdyn.Builder")
def _(arm, model, data, q, v, a):
    inertia = np.diag([0.02, 0.03, 0.04])
    mine = armdyn.Builder().body("a", axis="y", placement=(0, 0, 0.3), mass=2, com=(0.1, 0, 0), inertia=inertia)
    theirs = pin.Model()
    theirs.addJoint(0, pin.JointModelRY(), pin.SE3(np.eye(3), np.array([0, 0, 0.3])), "a_joint")
    theirs.appendBodyToJoint(1, pin.Inertia(2.0, np.array([0.1, 0, 0]), inertia), pin.SE3.Identity())
    x = (q[:1], v[:1], a[:1])
    return mine.build().inverse_dynamics(*x), pin.rnea(theirs, theirs.createData(), *x)


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


@row("arm.held_dynamics(q, qd, tau")
def _(arm, model, data, q, v, a):
    there = model.getFrameId("forearm_link")
    J = pin.computeFrameJacobian(model, data, q, there, pin.LOCAL_WORLD_ALIGNED)[:2]
    pin.forwardKinematics(model, data, q, v, 0 * v)
    drift = pin.getFrameClassicalAcceleration(model, data, there, pin.LOCAL_WORLD_ALIGNED).vector[:2]
    qdd = pin.forwardDynamics(model, data, q, v, a, J, drift)
    mine, wrench = arm.held_dynamics(q, v, a, frames=["forearm_link"], rows=(0, 1))
    return [mine, wrench[0, :2]], [qdd, data.lambda_c]


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


@pytest.mark.parametrize("key", CHECKS["pinocchio"])
def test_rows_of_pinocchio(key, state):
    close(CHECKS["pinocchio"][key](*state), 1e-9)


class Toolbox:
    """A Puma 560 of its own, as a modified table here and there; friction and rotors are left out in both."""

    def __init__(self, rtb):
        arm = armdyn.load("puma560")
        links = []
        for joint, link in zip(arm.chain.floats.joints, arm.chain.floats.links, strict=True):
            J = link.inertia_about_com
            inertia = [J.xx, J.yy, J.zz, J.xy, J.yz, J.xz]
            geometry = {"a": joint.b, "alpha": joint.beta.radians, "d": joint.d, "offset": joint.theta.radians}
            links.append(rtb.RevoluteMDH(**geometry, m=link.mass, r=list(link.com), I=inertia, G=0, Jm=0, B=0, Tc=0))
        self.rtb, self.robot = rtb, rtb.DHRobot(links, gravity=[0, 0, -9.81])  # as of version 1.5
        joints = (j.__class__(j.kind, j.b, j.beta, j.d, j.theta, j.gamma, j.name) for j in arm.chain.joints)
        self.arm = armdyn.Arm("bare", arm.chain.__class__(tuple(joints), arm.chain.links, arm.chain.gravity), snap=0.0)


@pytest.fixture(scope="module")
def puma():
    return Toolbox(pytest.importorskip("roboticstoolbox"))


BESIDE = {
    "arm.inertia_matrix(q)": lambda arm, robot, q, v, a: (arm.inertia_matrix(q), robot.inertia(q)),
    "arm.bias(q, qd)": lambda arm, robot, q, v, a: (arm.bias(q, v), robot.rne(q, v, 0 * q)),
    "arm.gravity_load(q)": lambda arm, robot, q, v, a: (arm.gravity_load(q), robot.gravload(q)),
    "arm.coriolis_matrix(q, qd)": lambda arm, robot, q, v, a: (
        arm.coriolis_matrix(q, v) @ v,
        robot.coriolis(q, v) @ v,
    ),
    "arm.inverse_dynamics(q, qd, qdd)": lambda arm, robot, q, v, a: (
        arm.inverse_dynamics(q, v, a),
        robot.rne(q, v, a),
    ),
    "arm.forward_dynamics(q, qd, tau)": lambda arm, robot, q, v, a: (
        arm.forward_dynamics(q, v, a),
        robot.accel(q, v, a),
    ),
    "arm.pose(q)": lambda arm, robot, q, v, a: (arm.pose(q), robot.fkine(q).A),
    "arm.link_poses(q)": lambda arm, robot, q, v, a: (arm.link_poses(q), np.array(robot.fkine_all(q).A)[1:]),
    "arm.jacobian(q)": lambda arm, robot, q, v, a: (arm.jacobian(q), robot.jacob0(q)),
}


@row('armdyn.load("x.urdf")', "toolbox")
def _(puma, q, v, a, tmp_path):
    puma.arm.to_urdf(tmp_path / "x.urdf")
    from roboticstoolbox.models.URDF.URDFRobot import URDF_read

    links, name, *_ = URDF_read(str(tmp_path / "x.urdf"))
    robot = puma.rtb.Robot(links, name=name)
    return [armdyn.load(tmp_path / "x.urdf").pose(q)], [robot.fkine(q, end=robot.links[-1].name).A]


@row("armdyn.load(model)", "toolbox")
def _(puma, q, v, a, tmp_path):
    return armdyn.load(puma.robot).inverse_dynamics(q, v, a), puma.robot.rne(q, v, a)


@row("armdyn.Builder", "toolbox")
def _(puma, q, v, a, tmp_path):
    ET = puma.rtb.ET
    link = puma.rtb.Link(
        puma.rtb.ETS([ET.tz(0.3), ET.Ry()]), name="a", m=2, r=[0.1, 0, 0], I=[0.02, 0.03, 0.04, 0, 0, 0]
    )
    mine = armdyn.Builder().body("a", axis="y", placement=(0, 0, 0.3), mass=2, com=(0.1, 0, 0),
                                 inertia=(0.02, 0.03, 0.04, 0, 0, 0))  # fmt: skip
    x = (q[:1], v[:1], a[:1])
    return mine.build().inverse_dynamics(*x), puma.rtb.Robot([link]).rne(*x)


@row("an arm file", "toolbox")
def _(puma, q, v, a, tmp_path):
    puma.arm.save(tmp_path / "puma.toml")
    return armdyn.load(tmp_path / "puma.toml").pose(q), puma.robot.fkine(q).A


for _key, _both in BESIDE.items():
    row(_key, "toolbox")(lambda puma, q, v, a, tmp_path, both=_both: both(puma.arm, puma.robot, q, v, a))


@row("arm.inverse_kinematics(pose)", "toolbox")
def _(puma, q, v, a, tmp_path):
    wanted = puma.arm.pose(q)
    reached = puma.robot.ikine_LM(wanted, q0=q + 0.1, tol=1e-14)
    found = puma.arm.inverse_kinematics(wanted, q + 0.1)
    return [puma.arm.pose(reached.q), puma.robot.fkine(found.q).A], [wanted, wanted]


@row("armdyn.simulate(arm, q0, ...)", "toolbox")
def _(puma, q, v, a, tmp_path):
    run = armdyn.simulate(puma.arm, q, duration=0.05, step=1e-3)
    theirs = puma.robot.fdyn(0.05, q, solver_args={"rtol": 1e-9, "atol": 1e-9})
    return run.q[-1], theirs.q[-1]


@pytest.mark.parametrize("key", CHECKS["toolbox"])
def test_rows_of_the_robotics_toolbox(key, puma, tmp_path):
    q, v, a = np.random.default_rng(0).uniform(-1, 1, (3, 6))
    close(CHECKS["toolbox"][key](puma, q, v, a, tmp_path), 1e-6)


class Documented:
    """The example of SymPyBotics' documentation: two joints about one point, and what it prints for them.

    Its parameters are the inertia L about the frame's origin, first moments l and mass of each link in the frames of
    the standard table, where its torques are those of a body that turns with ω = (q̇₁ cos q₂, q̇₂, q̇₁ sin q₂).
    """

    ROWS = ((np.pi / 2, 0, 0, -np.pi / 2), (-np.pi / 2, 0, 0, np.pi / 2))  # (theta, d, a, alpha)
    BASE = ("L_1yy + L_2zz", "L_2xx - L_2zz", "L_2xy", "L_2xz", "L_2yy", "L_2yz", "l_2x", "l_2z")  # without friction

    def __init__(self):
        rng = np.random.default_rng(4)
        self.L, self.l, self.m, rows = [], [], [], []
        for theta, d, a, alpha in self.ROWS:
            m, com, root = 1 + rng.random(), rng.normal(size=3), rng.normal(size=(3, 3))
            about = root @ root.T
            self.L.append(about + m * (com @ com * np.eye(3) - np.outer(com, com)))
            self.l.append(m * com)
            self.m.append(m)
            place = {"theta": theta, "d": d, "a": a, "alpha": alpha}
            rows.append({**place, "mass": m, "com": com, "inertia": about})
        self.arm = armdyn.from_dh(rows, convention="standard", snap=0)

    @staticmethod
    def pose(q):
        (s1, s2), (c1, c2) = np.sin(q), np.cos(q)
        return np.array([[-s1 * s2, -c1, s1 * c2, 0], [s2 * c1, -s1, -c1 * c2, 0], [c2, 0, s2, 0], [0, 0, 0, 1]])

    @staticmethod
    def jacobian(q):
        J = np.zeros((6, 2))
        J[3:, 0], J[3:, 1] = (0, 0, 1), (-np.cos(q[0]), -np.sin(q[0]), 0)
        return J

    def torque(self, q, v, a):
        s, c = np.sin(q[1]), np.cos(q[1])
        w = np.array([c * v[0], v[1], s * v[0]])
        dw = np.array([c * a[0] - s * v[0] * v[1], a[1], s * a[0] + c * v[0] * v[1]])
        n = self.L[1] @ dw + np.cross(w, self.L[1] @ w) + np.cross(self.l[1], 9.81 * np.array([c, 0, s]))
        return np.array([self.L[0][1, 1] * a[0] + c * n[0] + s * n[2], n[1]])

    def regressor(self, q, v, a):
        """Columns of the base parameters: derivatives of the torques, which are linear in L and l."""

        def by(**entries):
            other = Documented()
            other.L, other.l = [np.zeros((3, 3)), np.zeros((3, 3))], [np.zeros(3), np.zeros(3)]
            for place, value in entries.items():
                if place[0] == "L":
                    i, j = ("xyz".index(x) for x in place[2:])
                    other.L[int(place[1]) - 1][i, j] = other.L[int(place[1]) - 1][j, i] = value
                else:
                    other.l[int(place[1]) - 1]["xyz".index(place[2])] = value
            return other.torque(q, v, a)

        # what belongs to L_1yy + L_2zz is felt through L_1yy alone, and to L_2xx - L_2zz through L_2xx alone
        alone = ("L1yy", "L2xx", "L2xy", "L2xz", "L2yy", "L2yz", "l2x", "l2z")
        return np.stack([by(**{name: 1.0}) for name in alone], axis=-1)

    def base_parameters(self):
        (L1, L2), l2 = self.L, self.l[1]
        return np.array(
            [L1[1, 1] + L2[2, 2], L2[0, 0] - L2[2, 2], L2[0, 1], L2[0, 2], L2[1, 1], L2[1, 2], l2[0], l2[2]]
        )


@pytest.fixture(scope="module")
def documented():
    return Documented()


DERIVED = {
    "arm.inertia_matrix(q)": lambda x, q, v, a: (
        x.arm.inertia_matrix(q),
        np.stack([x.torque(q, 0 * v, e) - x.torque(q, 0 * v, 0 * e) for e in np.eye(2)], axis=-1),
    ),
    "arm.bias(q, qd)": lambda x, q, v, a: (x.arm.bias(q, v), x.torque(q, v, 0 * a)),
    "arm.gravity_load(q)": lambda x, q, v, a: (x.arm.gravity_load(q), x.torque(q, 0 * v, 0 * a)),
    "arm.inverse_dynamics(q, qd, qdd)": lambda x, q, v, a: (x.arm.inverse_dynamics(q, v, a), x.torque(q, v, a)),
    "arm.natural_regressor(q, qd, qdd)`": lambda x, q, v, a: (
        x.arm.natural_regressor(q, v, a) @ x.arm.natural_parameters(),
        x.torque(q, v, a),
    ),
    "arm.regressor(q, qd, qdd)": lambda x, q, v, a: (
        x.arm.regressor(q, v, a) @ x.arm.minimal_parameters.values,
        x.regressor(q, v, a) @ x.base_parameters(),
    ),
    "arm.minimal_parameters": lambda x, q, v, a: (len(x.arm.minimal_parameters), len(x.BASE)),
    "arm.pose(q)": lambda x, q, v, a: (x.arm.pose(q), x.pose(q)),
    "arm.jacobian(q)": lambda x, q, v, a: (x.arm.jacobian(q), x.jacobian(q)),
}


@row("an arm file", "sympybotics")
def _(x, q, v, a):
    """`RobotDef` takes the rows as (alpha, a, d, theta), standard or modified."""
    return armdyn.from_dh(Documented.ROWS, convention="standard").pose(q), x.pose(q)


for _key, _both in DERIVED.items():
    row(_key, "sympybotics")(_both)


@row("arm.emit_c(folder)", "sympybotics")
def _(x, q, v, a, tmp_path):
    if shutil.which("gcc") is None:
        pytest.skip("no C compiler on this machine")
    x.arm.emit_c(tmp_path, ["inverse_dynamics"])
    made = ["gcc", "-std=c99", "-shared", "-fPIC", "-o", tmp_path / "arm.so", tmp_path / "arm.c", "-lm"]
    subprocess.run(list(map(str, made)), check=True)
    tau = np.zeros(2)
    arrays = [one.ctypes.data_as(ctypes.POINTER(ctypes.c_double)) for one in (q, v, a, tau)]
    ctypes.CDLL(str(tmp_path / "arm.so")).arm_inverse_dynamics(*arrays)
    return tau, x.torque(q, v, a)


@pytest.mark.parametrize("key", CHECKS["sympybotics"])
def test_rows_of_sympybotics_by_its_documented_values(key, documented, tmp_path):
    q, v, a = np.random.default_rng(5).uniform(-1, 1, (3, 2))
    folder = (tmp_path,) if key == "arm.emit_c(folder)" else ()
    close(CHECKS["sympybotics"][key](documented, q, v, a, *folder), 1e-12)
