"""Every cell of the table of tasks in docs/coming_from.md: three libraries, one Puma, the same results."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

import armdyn

PAGE = (Path(__file__).parent.parent / "docs" / "coming_from.md").read_text()
TABLE = PAGE.split("## Tasks side by side")[1].split("\n## ")[0]
TASKS = [line.strip("| ").split(" | ") for line in TABLE.splitlines() if line.startswith("| ")][1:]


@pytest.fixture(scope="module")
def puma(tmp_path_factory):
    """One Puma without rotors and friction in three forms, with what the cells of the table of tasks use."""
    rtb = pytest.importorskip("roboticstoolbox")
    given = armdyn.load("puma560").given
    bare = {"rotor_inertia": 0, "viscous": 0, "coulomb": 0, "static": 0, "stribeck": 0}
    arm = armdyn.Arm("puma", replace(given, joints=tuple(replace(j, **bare) for j in given.joints)), snap=0.0)
    path = tmp_path_factory.mktemp("puma") / "puma.urdf"
    arm.to_urdf(path)
    model = pin.buildModelFromUrdf(str(path))
    data, tip = model.createData(), model.getFrameId("tool")
    links = []
    for joint, link in zip(arm.chain.floats.joints, arm.chain.floats.links, strict=True):
        J = link.inertia_about_com
        inertia = {"m": link.mass, "r": list(link.com), "I": [J.xx, J.yy, J.zz, J.xy, J.yz, J.xz]}
        geometry = {"a": joint.b, "alpha": joint.beta.radians, "d": joint.d, "offset": joint.theta.radians}
        links.append(rtb.RevoluteMDH(**geometry, **inertia, G=0, Jm=0, B=0, Tc=0))
    rng = np.random.default_rng(0)
    q, qd, tau = rng.uniform(-1, 1, (3, 6))

    def pose(q):
        pin.framesForwardKinematics(model, data, q)
        return data.oMf[tip]

    def ik(model, data, goal, q):
        for _ in range(20):
            e = pin.log6(pose(q).inverse() * pin.SE3(goal)).vector
            q = pin.integrate(model, q, np.linalg.solve(pin.computeFrameJacobian(model, data, q, tip), e))
        return q

    W = pin.computeMinverse(model, data, q).copy()
    Q, V, A = rng.uniform(-1, 1, (3, 50, 6))

    sim = armdyn.Simulator(arm, step=1e-3, method="semi_implicit_euler", friction=False, limits=False)
    return {
        "arm": arm, "model": model, "data": data, "tip": tip, "pool": pin.ModelPool(model, 2), "np": np, "pin": pin,
        "robot": rtb.DHRobot(links, gravity=[0, 0, -9.81]), "armdyn": armdyn, "q": q, "qd": qd, "tau": tau, "h": 1e-3,
        "goal": np.array(pose(q + 0.02).homogeneous), "Q": Q, "V": V, "A": A, "ik": ik, "pose": pose, "sim": sim,
        "Minv": np.triu(W) + np.triu(W, 1).T, "folder": path.parent,
        "J": pin.computeFrameJacobian(model, data, q, tip, pin.LOCAL_WORLD_ALIGNED),
    }  # fmt: skip


@pytest.mark.parametrize("task", TASKS, ids=[task[0] for task in TASKS])
def test_a_task_gives_the_same_in_every_library(task, puma, monkeypatch):
    monkeypatch.chdir(puma["folder"])
    results = []
    for cell in task[1:]:
        values = [eval(code, dict(puma)) for code in re.findall("`([^`]+)`", cell)]  # the last one is compared
        if values and not cell.startswith("a loop"):
            results.append(np.squeeze(np.asarray(values[-1], float)))
    expected = {"reduced robot": 5, "number of base parameters": 36}.get(task[0])
    assert expected is None or results[-1] == expected
    assert len(results) == 3 - sum(cell == "–" or cell.startswith("a loop") for cell in task[1:])
    for one in results[:-1]:
        np.testing.assert_allclose(one, results[-1], rtol=1e-4, atol=1e-4)


def test_the_table_has_the_usual_tasks():
    assert len(TASKS) >= 10
    assert all(task[3] != "–" for task in TASKS)
