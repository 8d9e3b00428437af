"""A parallelogram cut into mimic joints has the dynamics of the loop closed by constraint forces."""

from __future__ import annotations

import re

import numpy as np
import pytest

import armdyn
from armdyn.errors import FileError
from pages import ROOT

pin = pytest.importorskip("pinocchio")
FILE = ROOT / "examples" / "palletiser.urdf"


def opened():
    """The same machine as an open tree with seven independent joints, as a Pinocchio model: the crank on the turret,
    one wrist joint."""
    text = re.sub(r"\n\s*<mimic [^>]*/>", "", FILE.read_text())
    text = re.sub(r'(<joint name="crank_joint".*?<parent link=")lower_arm', r"\1turret", text, flags=re.S)
    crank = text.index('<joint name="crank_joint"')
    text = text[:crank] + text[crank:].replace('xyz="0 0 0"', 'xyz="0.3 0 0.5"', 1)  # where the lower arm's axis is
    text = re.sub(r'  <joint name="wrist_follows_lower".*?</joint>\n', "", text, flags=re.S)
    text = text.replace('  <link name="wrist_level"/>\n', "").replace('"wrist_level"', '"wrist"')
    model = pin.buildModelFromXML(text)
    return model, model.createData()


def closure(model, data, q, qd):
    """J and accelerations J̇ q̇ of the constraints: the rod's end on the upper arm's, in the plane; a level wrist."""
    pin.forwardKinematics(model, data, q, qd, np.zeros(model.nv))
    rows, rates, gap = [], [], []
    for joint, end, sign in (("rod_joint", [0, 0, 1.2], 1.0), ("upper", [-0.4, 0, 0], -1.0)):
        k = model.getJointId(joint)
        name = f"end of {joint}"
        if not model.existFrame(name):
            model.addFrame(pin.Frame(name, k, 0, pin.SE3(np.eye(3), np.array(end)), pin.FrameType.OP_FRAME))
        f = model.getFrameId(name)
        data = model.createData()
        pin.computeJointJacobians(model, data, q)
        pin.forwardKinematics(model, data, q, qd, np.zeros(model.nv))
        pin.updateFramePlacements(model, data)
        around = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
        rows.append(sign * pin.getFrameJacobian(model, data, f, around)[:3])
        rates.append(sign * pin.getFrameClassicalAcceleration(model, data, f, around).linear)
        gap.append(sign * data.oMf[f].translation)
    plane = np.array([[np.cos(q[0]), np.sin(q[0]), 0], [0, 0, 1]])  # the joints' axes are normal to it
    level = np.zeros((1, model.nv))
    level[0, [index(model, name) for name in ("lower", "upper", "wrist_follows_upper")]] = 1
    J = np.vstack([plane @ sum(rows), level])
    return J, np.append(plane @ sum(rates), 0.0), sum(gap)


def index(model, name):
    return model.joints[model.getJointId(name)].idx_v


def test_the_cut_loop_moves_as_the_closed_one(rng):
    robot = armdyn.load(FILE, snap=0)
    assert robot.joint_names == ("turn", "lower", "upper", "rotate")
    model, _ = opened()
    assert model.nv == 7
    # columns: how the seven joints follow the four
    names = ["turn", "lower", "upper", "crank_joint", "rod_joint", "wrist_follows_upper", "rotate"]
    follow = np.zeros((7, 4))
    for name, row in zip(
        names,
        [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 1, 1, 0], [0, 0, -1, 0], [0, -1, -1, 0], [0, 0, 0, 1]],
        strict=True,
    ):
        follow[index(model, name)] = row
    for _ in range(5):
        q, qd, tau = rng.uniform(-1, 1, 4), rng.uniform(-2, 2, 4), rng.uniform(-500, 500, 4)
        full, speed = follow @ q, follow @ qd
        J, rate, gap = closure(model, model.createData(), full, speed)
        assert np.abs(gap).max() < 1e-14  # the loop is closed
        assert np.abs(J @ follow).max() < 1e-12  # and stays so
        data = model.createData()
        H = pin.crba(model, data, full)
        H = np.triu(H) + np.triu(H, 1).T
        b = pin.nonLinearEffects(model, data, full, speed)
        motors = np.zeros(7)  # on the axes of turret, lower arm, crank and flange
        motors[[index(model, n) for n in ("turn", "lower", "crank_joint", "rotate")]] = tau
        kkt = np.block([[H, J.T], [J, np.zeros((3, 3))]])
        closed = np.linalg.solve(kkt, np.concatenate([motors - b, -rate]))[:7]
        ours = robot.forward_dynamics(q, qd, follow.T @ motors)
        np.testing.assert_allclose(follow @ ours, closed, rtol=1e-10, atol=1e-10 * np.abs(closed).max())


def test_a_loop_tag_of_a_urdf_is_a_note_that_says_what_to_do(tmp_path):
    path = tmp_path / "loop.urdf"
    tag = '<loop_joint name="closing" type="revolute"><link1 link="rod"/><link2 link="upper_arm"/></loop_joint>'
    path.write_text(FILE.read_text().replace("</robot>", f"{tag}</robot>"))
    (note,) = [note for note in armdyn.load(path).notes if "closing" in note]
    assert "rod" in note
    assert "upper_arm" in note
    assert "<mimic>" in note


def test_a_loop_of_an_mjcf_model_is_refused_with_the_remedy():
    with pytest.raises(FileError, match=r"closes a loop.*Lock the joints.*parallelogram.*mimic"):
        armdyn.load(
            """<mujoco><worldbody><body name="a"><joint name="j"/><geom size=".1" pos=".2 0 0"/>
            <body name="b" pos="1 0 0"><joint name="k"/><geom size=".1" pos=".2 0 0"/></body></body>
            <body name="c" pos="0 1 0"><joint name="l"/><geom size=".1" pos=".2 0 0"/></body></worldbody>
            <equality><connect name="tie" body1="b" body2="c" anchor="0 1 0"/></equality></mujoco>"""
        )
