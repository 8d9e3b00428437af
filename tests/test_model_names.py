"""Names in place of positions: joints, links, frames and inputs; the links' frames as in the file, as in Pinocchio."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

import armdyn
from armdyn.errors import InputError
from oracles import robots

FILES = {path.stem: path for path in robots()}
SHUFFLED = """
<robot name="two"><link name="base"/>
<joint name="right_joint" type="revolute"><parent link="base"/><child link="right"/><origin xyz="0 0.2 0.1"/>
<axis xyz="0 1 0"/>
<limit lower="-3" upper="3" effort="1" velocity="1"/></joint>
<link name="right"><inertial><mass value="1"/><origin xyz="0.1 0 0.02" rpy="0.1 0.2 0.3"/>
<inertia ixx="0.01" iyy="0.02" izz="0.025" ixy="0.001" ixz="0" iyz="0"/></inertial></link>
<joint name="left_joint" type="revolute"><parent link="base"/><child link="left"/>
<origin xyz="0.3 -0.2 0" rpy="0 1 0"/>
<axis xyz="1 0.5 0"/>
<limit lower="-3" upper="3" effort="1" velocity="1"/></joint>
<link name="left"><inertial><mass value="2"/><origin xyz="0.1 0.3 0"/>
<inertia ixx="0.03" iyy="0.02" izz="0.025" ixy="0.001" ixz="0" iyz="0"/></inertial></link>
<joint name="elbow" type="prismatic"><parent link="left"/><child link="hand"/><origin xyz="0 0 0.4" rpy="0.4 0 0"/>
<axis xyz="0 0 1"/><limit lower="-1" upper="1" effort="1" velocity="1"/></joint>
<link name="hand"><inertial><mass value="0.5"/><origin xyz="0 0.05 0"/>
<inertia ixx="0.001" iyy="0.002" izz="0.0025" ixy="0" ixz="0" iyz="0"/></inertial></link>
<link name="camera"/><joint name="mount" type="fixed"><parent link="left"/><child link="camera"/>
<origin xyz="0.1 0.2 0.3" rpy="1 2 3"/></joint>
</robot>"""


def both(text: str, floating: bool = False):
    """The arm and Pinocchio's model of a text, with a random state in the arm's order and in Pinocchio's."""
    arm = armdyn.load(text, snap=0, floating=floating)
    model = pin.buildModelFromXML(text, pin.JointModelFreeFlyer()) if floating else pin.buildModelFromXML(text)
    order = arm.order([name for name in model.names if name not in ("universe", "root_joint")])
    rng = np.random.default_rng(0)
    q = arm.postures(rng, 1)[0]
    qd, qdd = rng.uniform(-1, 1, (2, arm.chain.nv))
    return arm, model, model.createData(), order, (q, qd, qdd)


@pytest.mark.parametrize("name", ["ur5_robot", "xarm7", "two", "two floating"])
def test_the_regressor_in_the_links_frames_is_pinocchios(name):
    floating = name.endswith("floating")
    text = SHUFFLED if name.startswith("two") else FILES[name].read_text()
    arm, model, data, order, (q, qd, qdd) = both(text, floating)
    theirs = pin.computeJointTorqueRegressor(model, data, q[order.back_q], qd[order.back_qd], qdd[order.back_qd])
    mine = arm.natural_regressor(q, qd, qdd, columns="urdf")
    bodies = [0] * floating + [1 * floating + i for i in order.back_qd[6 * floating :] - 6 * floating]
    columns = np.concatenate([10 * k + np.arange(10) for k in bodies])
    np.testing.assert_allclose(mine[order.back_qd][:, columns], theirs, atol=1e-11)
    parameters = np.concatenate([inertia.toDynamicParameters() for inertia in list(model.inertias)[1:]])
    np.testing.assert_allclose(arm.natural_parameters("urdf")[columns], parameters, atol=1e-12)
    tau = arm.inverse_dynamics(q, qd, qdd) - np.r_[np.zeros(6 * floating), arm.rotor_inertias] * qdd
    np.testing.assert_allclose(mine @ arm.natural_parameters("urdf"), tau, atol=1e-9)
    own = arm.natural_regressor(q, qd, qdd)
    np.testing.assert_allclose(own @ arm.natural_parameters(), tau, atol=1e-9)
    assert name != "ur5_robot" or np.abs(own - mine).max() > 0.1
    with pytest.raises(InputError, match="unknown columns 'pinocchio'; available: bodies, urdf"):
        arm.natural_regressor(q, qd, qdd, columns="pinocchio")


@pytest.mark.parametrize("name", ["ur5_robot", "panda", "two", "two floating"])
def test_poses_and_jacobians_of_all_frames_are_pinocchios(name):
    floating = name.endswith("floating")
    text = SHUFFLED if name.startswith("two") else FILES[name].read_text()
    if name == "panda":
        text = text.replace('<mimic joint="panda_finger_joint1"/>', "")
    arm, model, data, order, (q, qd, _) = both(text, floating)
    theirs, rates = q[order.back_q], qd[order.back_qd]
    pin.forwardKinematics(model, data, theirs, rates)
    pin.updateFramePlacements(model, data)
    pin.computeJointJacobiansTimeVariation(model, data, theirs, rates)
    ids = [model.getFrameId(frame) for frame in arm.frame_names]
    np.testing.assert_allclose(arm.poses(q), [data.oMf[i].homogeneous for i in ids], atol=1e-13)
    for axes, reference in (("base", pin.LOCAL_WORLD_ALIGNED), ("local", pin.LOCAL)):
        J = arm.jacobians(q, axes=axes)
        expected = np.array([pin.getFrameJacobian(model, data, i, reference) for i in ids])
        np.testing.assert_allclose(J[..., order.back_qd], expected, atol=1e-12)
        for frame, i in list(zip(arm.frame_names, ids, strict=True))[-4:]:
            one = arm.jacobian(q, frame=frame, axes=axes)
            np.testing.assert_allclose(one, J[arm.frame_names.index(frame)], atol=1e-12)
            rate = pin.getFrameJacobianTimeVariation(model, data, i, reference)
            found = arm.jacobian_rate(q, qd, frame=frame, axes=axes)
            np.testing.assert_allclose(found[:, order.back_qd], rate, atol=1e-11)
    links = [model.getFrameId(link.name) for link in arm.links]
    np.testing.assert_allclose(arm.link_poses(q), [data.oMf[i].homogeneous for i in links], atol=1e-13)
    two = arm.poses(np.tile(q, (3, 1)), frames=[arm.frame_names[1], arm.frame_names[0]])
    assert two.shape == (3, 2, 4, 4)
    np.testing.assert_allclose(two[0], arm.poses(q)[[1, 0]], atol=1e-15)
    with pytest.raises(InputError, match="unknown frame 'nonsense'; available"):
        arm.poses(q, frames=["nonsense"])
    with pytest.raises(InputError, match="at least one frame"):
        arm.poses(q, frames=[])


def test_links_have_names_that_are_no_part_of_the_arm():
    arm = armdyn.load(FILES["ur5_robot"])
    assert [link.name for link in arm.links][-2:] == ["wrist_2_link", "wrist_3_link"]
    assert arm.links == arm.chain.links
    catalogue = armdyn.load("puma560")
    assert [link.name for link in catalogue.links] == [f"link{k}" for k in range(1, 7)]
    q = np.linspace(-1, 1, 6)
    np.testing.assert_allclose(catalogue.pose(q, frame="link4"), catalogue.link_poses(q)[3], atol=1e-15)


def test_a_standard_table_has_its_own_link_frames(tmp_path):
    rows = [(0.1, 0.3, 0.2, 0.5), (0.2, 0.1, 0.4, -1.0), (0.0, 0.2, 0.1, 0.7)]
    arm = armdyn.from_dh(rows)
    q = np.array([0.3, -0.4, 0.9])
    T, expected = np.eye(4), []
    for (theta, d, a, alpha), x in zip(rows, q, strict=True):
        c, s, ca, sa = np.cos(theta + x), np.sin(theta + x), np.cos(alpha), np.sin(alpha)
        T = T @ [[c, -s * ca, s * sa, a * c], [s, c * ca, -c * sa, a * s], [0, sa, ca, d], [0, 0, 0, 1]]
        expected.append(T)
    np.testing.assert_allclose(arm.link_poses(q), expected, atol=1e-14)
    assert np.abs(arm.dh_poses(q) - expected).max() > 0.1
    arm.save(tmp_path / "arm.toml")
    again = armdyn.load(tmp_path / "arm.toml")
    np.testing.assert_allclose(again.link_poses(q), expected, atol=1e-14)
    assert again == arm


def test_files_keep_the_links_frames(tmp_path):
    arm = armdyn.load(SHUFFLED)
    arm.save(tmp_path / "arm.toml")
    again = armdyn.load(tmp_path / "arm.toml")
    assert [link.name for link in again.links] == [link.name for link in arm.links]
    q = np.array([0.3, 0.4, 0.1])
    np.testing.assert_array_equal(again.link_poses(q), arm.link_poses(q))
    assert again.fingerprint == arm.fingerprint
    part = armdyn.load(tmp_path / "arm.toml", tip="hand")
    assert [link.name for link in part.links] == ["left", "hand"]
    np.testing.assert_allclose(part.link_poses(q[1:]), arm.link_poses(q)[1:], atol=1e-14)


def test_configurations_by_name():
    arm = armdyn.load("ur5")
    q = arm.q(elbow_joint=0.3, wrist_1_joint=[0.1, 0.2])
    assert q.shape == (2, 6)
    np.testing.assert_array_equal(q[:, 2:4], [[0.3, 0.1], [0.3, 0.2]])
    np.testing.assert_array_equal(q[:, [0, 1, 4, 5]], 0)
    np.testing.assert_array_equal(arm.q(arm.by_name(q)), q)
    np.testing.assert_array_equal(arm.q(), arm.rest)
    with pytest.raises(InputError, match=r"unknown joint 'elbow'; available: .*did you mean 'elbow_joint'"):
        arm.q(elbow=0.3)
    floats = armdyn.load("ur5", floating=True)
    pose = [1, 2, 3, 0, 0, 0, 1]
    np.testing.assert_array_equal(floats.q({"base": pose, "elbow_joint": 0.5})[[0, 6, 9]], [1, 1, 0.5])
    assert set(floats.by_name(floats.rest)) == {"base", *floats.joint_names}
    with pytest.raises(InputError, match="shape"):
        floats.q(base=[1, 2])
    with pytest.raises(InputError, match="shape"):
        arm.by_name([1, 2])


def test_orders_by_name():
    arm = armdyn.load(SHUFFLED)
    assert arm.joint_names == ("right_joint", "left_joint", "elbow")
    order = arm.order(["gripper", "elbow", "left_joint", "right_joint"])
    theirs, mine = np.array([9.0, 3.0, 2.0, 1.0]), np.array([1.0, 2.0, 3.0])
    np.testing.assert_array_equal(theirs[order.q], mine)
    np.testing.assert_array_equal(mine[order.back_q], theirs[1:])
    with pytest.raises(InputError, match="the order lacks the joints left_joint of two"):
        arm.order(["elbow", "right_joint"])
    with pytest.raises(InputError, match="must differ"):
        arm.order(["elbow", "elbow", "left_joint", "right_joint"])


def test_inputs_by_name():
    arm = armdyn.load("ur5")
    q, v, a = np.random.default_rng(0).uniform(-1, 1, (3, 6))
    expected = arm.inverse_dynamics(q, v, a)
    np.testing.assert_array_equal(arm.inverse_dynamics(q=q, qd=v, qdd=a), expected)
    np.testing.assert_array_equal(arm.inverse_dynamics(q, qdd=a, qd=v), expected)
    np.testing.assert_array_equal(arm.inverse_dynamics(q=q, qd=v, qdd=a, friction=True), expected)
    out = np.empty(6)
    assert arm.inverse_dynamics(qd=v, q=q, qdd=a, out=out) is out
    with pytest.raises(InputError, match="takes q, qd, qdd, in this order or by name; qdd missing"):
        arm.inverse_dynamics(q=q, qd=v)
    with pytest.raises(InputError, match="q is given twice"):
        arm.inverse_dynamics(q, v, a, q=q)
    parameters = arm.minimal_parameters.array if hasattr(arm.minimal_parameters, "array") else None
    values = np.array([float(x) for x in arm.minimal_parameters.values])
    np.testing.assert_allclose(arm.gravity_load(q, parameters=2 * values), 2 * arm.gravity_load(q), atol=1e-9)
    assert parameters is None or parameters.shape[0] == len(values)


def test_options_that_a_quantity_does_not_take_are_refused():
    arm = armdyn.load("panda")
    q = arm.rest
    with pytest.raises(InputError, match="unknown option of gravity_load 'frames'; available: q, out, threads, param"):
        arm.gravity_load(q, frames=("panda_link8",))
    with pytest.raises(InputError, match="unknown option of gravity_load 'axes'"):
        arm.gravity_load(q, axes="local")
    with pytest.raises(InputError, match="unknown option of jacobian 'Q'; available: q, out, threads, frame"):
        arm.jacobian(q, Q=q)
    with pytest.raises(InputError, match="unknown axes 'tool'; available: base, local"):
        arm.jacobian(q, axes="tool")
    with pytest.raises(InputError, match="takes no friction; available for"):
        arm.gravity_load(q, friction=True)


def test_generated_code_has_the_links_frames_too(tmp_path):
    """The constants of the C function are those of the arm's kernel, and not of the bodies' frames."""
    from armdyn.kernels.emission import package

    arm = armdyn.load(FILES["ur5_robot"])
    q = np.linspace(-1, 1, 6)
    function = package(arm.name, arm.chain, ["link_poses", "dh_poses"], links=arm.own_links).functions
    for name, one in function.items():
        np.testing.assert_allclose(one.outputs[0], getattr(arm, name)(one.inputs[0]), atol=1e-14)
    assert np.abs(arm.link_poses(q) - arm.dh_poses(q)).max() > 0.05
    assert [path.name for path in arm.emit_c(tmp_path, ["link_poses"])]


def test_configurations_by_name_say_what_they_expect():
    arm = armdyn.load("puma560")
    with pytest.raises(InputError, match=r"q expects positions by joint, .* got ndarray; by_name\(q\) gives"):
        arm.q(np.zeros(6))
    first, second, *_ = arm.joint_names
    with pytest.raises(InputError, match=r"broadcast to one batch, got \w+ \(2,\), \w+ \(3,\)"):
        arm.q({first: [0.1, 0.2], second: [0.1, 0.2, 0.3]})


# Link, and its frame in the one before at q = 0 (xyz, rpy), as in the files that the two arms were taken from.
QUARTER, HALF = np.pi / 2, np.pi
LINKS = {
    "iiwa14": [
        ("iiwa_link_1", (0, 0, 0.1575), (0, 0, 0)),
        ("iiwa_link_2", (0, 0, 0.2025), (QUARTER, 0, HALF)),
        ("iiwa_link_3", (0, 0.2045, 0), (QUARTER, 0, HALF)),
        ("iiwa_link_4", (0, 0, 0.2155), (QUARTER, 0, 0)),
        ("iiwa_link_5", (0, 0.1845, 0), (-QUARTER, HALF, 0)),
        ("iiwa_link_6", (0, 0, 0.2155), (QUARTER, 0, 0)),
        ("iiwa_link_7", (0, 0.081, 0), (-QUARTER, HALF, 0)),
    ],
    "kinova_gen3": [
        ("shoulder_link", (0, 0, 0.15643), (HALF, 0, 0)),
        ("half_arm_1_link", (0, 0.005375, -0.12838), (QUARTER, 0, 0)),
        ("half_arm_2_link", (0, -0.21038, -0.006375), (-QUARTER, 0, 0)),
        ("forearm_link", (0, 0.006375, -0.21038), (QUARTER, 0, 0)),
        ("spherical_wrist_1_link", (0, -0.20843, -0.006375), (-QUARTER, 0, 0)),
        ("spherical_wrist_2_link", (0, 0.00017505, -0.10593), (QUARTER, 0, 0)),
        ("bracelet_link", (0, -0.10593, -0.00017505), (-QUARTER, 0, 0)),
    ],
}


@pytest.mark.parametrize("name", LINKS)
def test_links_of_iiwa_and_kinova_are_called_and_placed_as_in_their_files(name):
    from scipy.spatial.transform import Rotation

    arm = armdyn.load(name)
    q = np.random.default_rng(7).uniform(-2, 2, 7)
    at = np.eye(4)
    for x, (link, xyz, rpy) in zip(q, LINKS[name], strict=True):
        step = np.eye(4)
        step[:3, :3] = (Rotation.from_euler("xyz", rpy) * Rotation.from_euler("z", x)).as_matrix()
        step[:3, 3] = xyz
        at = at @ step
        np.testing.assert_allclose(arm.pose(q, frame=link), at, atol=1e-12)
    assert [link.name for link in arm.links] == [link for link, _, _ in LINKS[name]]


@pytest.mark.parametrize(
    ("name", "stem", "cut"),
    [("panda", "panda", {"tip": "panda_link8", "lock": "rest"}), ("panda_hand", "panda", {}), ("ur5", "ur5_robot", {}),
     ("ur10", "ur10_robot", {}), ("xarm7", "xarm7", {}), ("baxter", "baxter", {})],
)  # fmt: skip
def test_links_of_the_catalogue_are_called_and_placed_as_in_their_files(name, stem, cut):
    arm, file = armdyn.load(name), armdyn.load(next(path for path in robots() if path.stem == stem), **cut)
    assert [link.name for link in arm.links] == [link.name for link in file.links]
    q = arm.postures(np.random.default_rng(6), 2)
    np.testing.assert_array_equal(arm.link_poses(q), file.link_poses(q))
    if name == "panda":
        assert arm.jacobian(q, frame="panda_link4").shape == (2, 6, 7)
