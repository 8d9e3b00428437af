"""What files carry beyond URDF's own elements: rotors, vendors' friction, zero limits, planar joints, the ground."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pinocchio as pin
import pytest

import armdyn
from armdyn.errors import FileError, InputError

BODY = (
    '<inertial><origin xyz="0.1 -0.2 0.3"/><mass value="2"/>'
    '<inertia ixx="1" iyy="2" izz="2.5" ixy="0.1" ixz="-0.2" iyz="0.3"/></inertial>'
)


def robot(inside: str = "", second: str = "", beside: str = "", kind: str = "revolute", parent: str = "a") -> str:
    ground = f'<link name="{parent}"/>' if parent != "world" else ""
    return (
        f'<robot name="r" xmlns:drake="d">{ground}<link name="b">{BODY}</link><link name="c">{BODY}</link>'
        f'<joint name="j" type="{kind}"><parent link="{parent}"/><child link="b"/><origin xyz="0.1 0.2 0.3" '
        f'rpy="0.3 0.2 0.1"/><axis xyz="0 0 1"/>{inside}</joint>'
        f'<joint name="k" type="revolute"><parent link="b"/><child link="c"/><origin xyz="1 0 0" rpy="0.4 0 1"/>'
        f'<axis xyz="0 1 0"/>{second}</joint>{beside}</robot>'
    )


LIMIT = '<limit lower="-1" upper="1" effort="1" velocity="1"/>'


def transmission(joint: str, actuator: str) -> str:
    return (
        '<transmission name="t"><type>transmission_interface/SimpleTransmission</type>'
        f'<joint name="{joint}"/><actuator name="m">{actuator}</actuator></transmission>'
    )


def test_rotor_inertias_of_drake_are_on_the_diagonal():
    q = np.array([0.3, -0.4])
    plain = armdyn.load(robot())
    rotor = '<drake:rotor_inertia value="1.6e-5"/><drake:gear_ratio value="160"/>'
    arm = armdyn.load(robot(beside=transmission("k", rotor)))
    assert arm.notes == ()
    np.testing.assert_allclose(
        arm.inertia_matrix(q) - plain.inertia_matrix(q), np.diag([0, 1.6e-5 * 160**2]), atol=1e-14
    )
    direct = armdyn.load(robot(beside=transmission("j", '<drake:rotor_inertia value="0.25"/>')))
    assert direct.rotor_inertias.tolist() == [0.25, 0]
    both = armdyn.load(robot(second='<armdyn rotor_inertia="0.5"/>', beside=transmission("k", rotor)))
    assert both.rotor_inertias.tolist() == [0, 0.5]
    assert "makes 0.4096 kg m² at joint 'k'; 0.5 of <armdyn> is used" in both.notes[0]


@pytest.mark.parametrize(
    ("beside", "message"),
    [
        (transmission("k", "<drake:rotor_inertia/>"), "transmission 't': <drake:rotor_inertia> has no value"),
        (transmission("z", '<drake:rotor_inertia value="1"/>'), "needs one joint of the file for its rotor, got 'z'"),
        (transmission("k", '<drake:rotor_inertia value="-1"/>'), "is negative: -1"),
        (transmission("k", '<drake:rotor_inertia value="x"/>'), "expects finite decimal numbers, got 'x'"),
    ],
)
def test_rotors_that_cannot_be_read_are_errors(beside, message):
    with pytest.raises(FileError, match=message):
        armdyn.load(robot(beside=beside))


def test_gears_and_couplings_of_transmissions_are_notes():
    gear = transmission("k", "<mechanicalReduction> 50 </mechanicalReduction>")
    assert "mechanicalReduction in the transmissions of k is ignored" in armdyn.load(robot(beside=gear)).notes[0]
    one = transmission("k", "<mechanicalReduction>1</mechanicalReduction>")
    assert armdyn.load(robot(beside=one)).notes == ()
    wrist = (
        '<transmission name="w"><type>transmission_interface/DifferentialTransmission</type>'
        '<joint name="j"/><joint name="k"/></transmission>'
    )
    (note,) = armdyn.load(robot(beside=wrist)).notes
    assert note.endswith("transmissions that couple joints are ignored: j, k (DifferentialTransmission)")


def test_friction_as_franka_writes_it():
    arm = armdyn.load(robot('<dynamics D="1" K="7000" mu_coulomb="0.5" mu_viscous="16"/>'))
    joint = arm.joints[0]
    assert (joint.viscous, joint.coulomb) == (16, 0.5)
    assert len(arm.notes) == 1
    assert "unknown attribute 'D', 'K'" in arm.notes[0]
    both = armdyn.load(robot('<dynamics damping="0.003" friction="0.2" mu_coulomb="0.2" mu_viscous="16"/>'))
    assert (both.joints[0].viscous, both.joints[0].coulomb) == (Fraction(3, 1000), Fraction(1, 5))
    said = "URDF text: of friction that <dynamics> gives twice, URDF's own is used: "
    assert both.notes[0] == f"{said}joint 'j' damping 0.003, not mu_viscous 16"
    alike = armdyn.load(robot(*['<dynamics damping="0.003" mu_viscous="16"/>'] * 2))
    assert alike.notes[0] == f"{said}joint 'j' damping 0.003, not mu_viscous 16 (and 1 more)"


def test_zero_efforts_are_unknown_where_the_speed_is_too():
    zeros = '<limit lower="-1" upper="1" effort="0" velocity="0"/>'
    arm = armdyn.load(robot(zeros, '<limit lower="-2" upper="2" effort="0"/>'))
    assert arm.effort_limits.tolist() == arm.velocity_limits.tolist() == [np.inf, np.inf]
    assert arm.limits.tolist() == [[-1, 1], [-2, 2]]
    assert arm.notes == ('URDF text: effort="0" without a speed limit counts as unknown: j, k',)
    idle = armdyn.load(robot(second='<limit lower="-2" upper="2" effort="0" velocity="3"/>'))
    assert idle.effort_limits.tolist() == [np.inf, 0]
    assert idle.notes == ('URDF text: effort="0" beside a speed limit: these joints have no torque: k',)
    still = armdyn.load(robot(second='<limit lower="-2" upper="2" effort="7" velocity="0"/>'))
    assert still.velocity_limits.tolist() == [np.inf, 0]
    assert still.notes == (
        'URDF text: velocity="0" without effort="0" stays a speed limit of 0; leave it out if it is not known: k',
    )
    # a controller moves the arm whose exporter did not know the limits
    law = lambda t, q, qd: -20.0 * (q - 0.5) - 2.0 * qd  # noqa: E731
    run = armdyn.simulate(arm, [0.0, 0.0], torque=law, duration=0.2, saturate=True)
    assert np.abs(run.tau).max() > 1
    assert "saturated" not in run.message


def test_saturated_torques_are_said():
    """Joint j at its limit of 1.5 N m from the start until the proportional torque falls below it."""
    arm = armdyn.load(robot('<limit lower="-9" upper="9" effort="1.5" velocity="9"/>')).with_gravity((0, 0, 0))
    run = armdyn.simulate(
        arm, [0.0, 0.0], torque=lambda t, q, qd: 20 * (0.2 - q) * [1, 0] - 5 * qd, duration=2.0, saturate=True
    )
    full = np.abs(run.tau[:, 0]) >= 1.5 * (1 - 1e-9)
    assert 0.05 < full.mean() < 0.95
    assert run.status == "finished"
    assert run.message.endswith(f"; torques saturated, part of the time: j {100 * full.mean():.2g} %")
    free = armdyn.simulate(arm, [0.0, 0.0], torque=lambda t, q, qd: -qd, duration=0.1, saturate=True)
    assert "saturated" not in free.message


def test_the_world_need_not_be_defined():
    arm = armdyn.load(robot(parent="world"))
    assert arm == armdyn.load(robot(parent="world").replace('<link name="b">', '<link name="world"/><link name="b">'))
    assert arm.notes == ("URDF text: the link 'world', which the file does not define, is the ground",)
    with pytest.raises(FileError, match="unknown link 'wurld'"):
        armdyn.load(robot(parent="world").replace('"world"', '"wurld"'))


def test_planar_joints_are_chains():
    """Poses, inertia and gravity against Pinocchio's planar joint, whose velocities are in the turned axes."""
    text = robot(LIMIT, LIMIT, kind="planar")
    arm = armdyn.load(text, snap=0)
    assert [joint.name for joint in arm.joints] == ["j_x", "j_y", "j_theta", "k"]
    assert arm.kinds == "PPRR"
    assert arm.notes[0].startswith(
        "URDF text: joint 'j' is planar: read as j_x, j_y, j_theta, two slides across its axis and a turn about it; "
        "its lower, upper, velocity, effort are ignored"
    )
    model = pin.buildModelFromXML(text)
    data = model.createData()
    x, y, theta, last = q = np.array([0.3, -0.2, 0.7, 0.4])
    c, s = np.cos(theta), np.sin(theta)
    positions = np.array([x, y, c, s, last])
    G = np.eye(4)
    G[:2, :2] = [[c, s], [-s, c]]  # from the rates of x and y to the velocities in the turned axes
    H = pin.crba(model, data, positions)
    H = np.triu(H) + np.triu(H, 1).T
    np.testing.assert_allclose(arm.inertia_matrix(q), G.T @ H @ G, atol=1e-13)
    gravity = pin.computeGeneralizedGravity(model, data, positions)
    np.testing.assert_allclose(arm.gravity_load(q), G.T @ gravity, atol=1e-13)
    pin.framesForwardKinematics(model, data, positions)
    for name in ("b", "c"):
        pose = data.oMf[model.getFrameId(name)].homogeneous
        np.testing.assert_allclose(arm.pose(q, frame=name), pose, atol=1e-14)
    locked = armdyn.load(text, lock={"j": "rest"})
    assert [joint.name for joint in locked.joints] == ["k"]
    with pytest.raises(InputError, match="'j' has several values and can be locked only at 'rest'"):
        armdyn.load(text, lock={"j": 0.3})
    assert armdyn.load(text, lock={"j_x": 0.2}).kinds == "PRR"


@pytest.mark.parametrize("axis", ["1 0 0", "0 -1 0", "0.3 0.5 -0.2", "0 2 1"])
def test_a_planar_joint_moves_across_its_axis(axis: str):
    arm = armdyn.load(robot(kind="planar").replace('<axis xyz="0 0 1"/>', f'<axis xyz="{axis}"/>'), snap=0)
    first, second, turn = (arm.jacobian(np.zeros(4), frame="b")[:, k] for k in range(3))
    axis_in_base = arm.pose(np.zeros(4), frame="b")[:3, :3] @ np.array(axis.split(), float)
    axis_in_base /= np.linalg.norm(axis_in_base)
    np.testing.assert_allclose(turn[3:], axis_in_base, atol=1e-15)
    np.testing.assert_allclose(np.cross(first[:3], second[:3]), axis_in_base, atol=1e-15)
    assert [np.linalg.norm(v[:3]) for v in (first, second)] == pytest.approx([1, 1])
