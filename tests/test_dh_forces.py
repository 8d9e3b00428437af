"""Denavit-Hartenberg rows with joint forces and flipped joints, poses as matrices and SE3 objects, hostile tables."""

from __future__ import annotations

import time
import tracemalloc

import numpy as np
import pinocchio as pin
import pytest
from scipy.spatial.transform import RigidTransform, Rotation

import armdyn
from armdyn.errors import FileError, InputError

RNG = np.random.default_rng(7)


def rz(x, d=0.0):
    T = np.eye(4)
    T[:2, :2] = [[np.cos(x), -np.sin(x)], [np.sin(x), np.cos(x)]]
    T[2, 3] = d
    return T


def rx(x, a=0.0):
    T = np.eye(4)
    T[1:3, 1:3] = [[np.cos(x), -np.sin(x)], [np.sin(x), np.cos(x)]]
    T[0, 3] = a
    return T


ROWS = [
    {"theta": 0.3, "d": 0.4, "a": 0.1, "alpha": np.pi / 2, "flip": True},
    {"theta": -0.7, "d": 0.1, "a": 0.5, "alpha": 0.4},
    {"theta": 0.2, "d": 0.3, "a": 0.2, "alpha": -np.pi / 2, "kind": "prismatic", "flip": True},
    {"theta": 0.9, "d": -0.2, "a": 0.3, "alpha": 1.1, "flip": True},
]
ROWS = [row | {"mass": 2.0 + k, "com": [0.1, -0.2, 0.3 * k], "inertia": [0.3, 0.4, 0.5, 0.01, -0.02, 0.03]}
        for k, row in enumerate(ROWS)]  # fmt: skip
END = rx(0.3, 0.2) @ rz(0.4, 0.1)


def by_the_definition(q, convention):
    """(frames, tool) by multiplying the elementary transforms, q subtracted where the joint is flipped."""
    T, frames = np.eye(4), []
    for row, x in zip(ROWS, q, strict=True):
        x = -x if row.get("flip") else x
        theta, d = (row["theta"], row["d"] + x) if row.get("kind") else (row["theta"] + x, row["d"])
        joint, link = rz(theta, d), rx(row["alpha"], row["a"])
        T = T @ joint @ link if convention == "standard" else T @ link @ joint
        frames.append(T)
    return frames, T @ END


@pytest.mark.parametrize("convention", ["standard", "modified"])
def test_flipped_joints_subtract_q(convention: str):
    arm = armdyn.from_dh(ROWS, convention, tool=END, snap=0)
    mirror = np.array([-1.0 if row.get("flip") else 1.0 for row in ROWS])
    plain = armdyn.from_dh(
        [{k: v for k, v in row.items() if k != "flip"} for row in ROWS], convention, tool=END, snap=0
    )
    q, qd, qdd = RNG.uniform(-1, 1, (3, 4))
    frames, tool = by_the_definition(q, convention)
    np.testing.assert_allclose(arm.pose(q), tool, atol=1e-14)
    potential = sum(9.81 * row["mass"] * (T @ [*row["com"], 1])[2] for row, T in zip(ROWS, frames, strict=True))
    assert arm.potential_energy(q) == pytest.approx(potential, abs=1e-12)
    np.testing.assert_allclose(
        arm.inverse_dynamics(q, qd, qdd),
        mirror * plain.inverse_dynamics(mirror * q, mirror * qd, mirror * qdd),
        atol=1e-12,
    )


def test_forces_of_rows():
    row = {"a": 0.3, "mass": 1.0, "viscous": 0.5, "coulomb": (0.8, -0.3), "offset": 0.2, "stiffness": 3.0}
    arm = armdyn.from_dh([row], gravity=(0, 0, 0))
    for speed, dry in ((2.0, 0.8), (-2.0, -0.3)):
        tau = arm.inverse_dynamics([0.4], [speed], [0.0], friction=True)
        assert tau[0] == pytest.approx(0.5 * speed + dry + 0.2 + 3.0 * 0.4)
    same = armdyn.from_dh([row | {"coulomb": 0.8}])
    assert float(same.joints[0].coulomb) == 0.8
    more = armdyn.from_dh([{"static": 0.9, "coulomb": 0.4, "stribeck": 0.1, "asymmetry": 0.2, "load_friction": 0.1}])
    joint = more.joints[0]
    values = (joint.static, joint.stribeck, joint.forces.asymmetry, joint.forces.load_friction)
    assert tuple(map(float, values)) == (0.9, 0.1, 0.2, 0.1)
    for wrong in ((-0.1, -0.3), (0.1, 0.3), (1, 2, 3), "x"):
        with pytest.raises(InputError, match="coulomb of row 1 must be"):
            armdyn.from_dh([{"coulomb": wrong}])
    with pytest.raises(InputError, match="flip of row 1 must be True or False, got 'yes'"):
        armdyn.from_dh([{"flip": "yes"}])


class Spatialmath:
    """As spatialmath's SE3: the matrix is the attribute A."""

    def __init__(self, matrix):
        self.A = matrix


def test_bases_and_tools_as_matrices_and_se3_objects():
    arm, q = armdyn.load("puma560"), np.array([0.3, -0.4, 0.5, 0.6, -0.7, 0.8])
    T = pin.SE3(pin.rpy.rpyToMatrix(0.1, -0.2, 0.3), np.array([0.4, 0.5, -0.6])).homogeneous
    scipy_pose = RigidTransform.from_components(T[:3, 3], Rotation.from_matrix(T[:3, :3]))
    for given in (T, T.tolist(), pin.SE3(T), Spatialmath(T), scipy_pose):
        np.testing.assert_allclose(arm.with_tool(given).pose(q), arm.pose(q) @ T, atol=1e-14)
        np.testing.assert_allclose(arm.with_base(given).pose(q), T @ arm.pose(q), atol=1e-14)
        rows = [(0.1, 0.2, 0.3, 0.4)]
        np.testing.assert_allclose(
            armdyn.from_dh(rows, base=given, tool=given).pose([0.2]),
            T @ armdyn.from_dh(rows).pose([0.2]) @ T,
            atol=1e-14,
        )
    same = arm.with_tool((0.1, 0.2, 0.3), (0, 0, 0.4)).pose(q)
    np.testing.assert_allclose(
        same, arm.pose(q) @ rz(0.4, 0.3) + arm.pose(q) @ [[0, 0, 0, 0.1], [0, 0, 0, 0.2], [0] * 4, [0] * 4]
    )
    with pytest.raises(InputError, match="the pose must be a pose: a rotation matrix R"):
        arm.with_tool(2 * np.eye(4))
    with pytest.raises(InputError, match="give a pose, or xyz and rpy"):
        arm.with_tool(T, (0, 0, 1))
    with pytest.raises(InputError, match="the pose must have the shape"):
        arm.with_base(np.eye(3))


# --- tables that must be refused


ARM = """[[joint]]
name = "a"
kind = "revolute"
b = 0
beta = 0
d = 0
theta = 0
link = { mass = 1, com = [0, 0, 0], inertia = [1, 1, 1, 0, 0, 0] }
"""


@pytest.mark.parametrize("key", ["a", '"a"', "'a'", "a ", "a-1_"])
def test_long_dotted_keys_are_refused_before_they_take_memory(key: str, tmp_path):
    path = tmp_path / "dotted.toml"
    for text in (".".join([key] * 50_000) + " = 1\n", "[" + ".".join([key] * 30_000) + "]\n"):
        path.write_text(ARM + text)
        tracemalloc.start()
        begun = time.perf_counter()
        with pytest.raises(FileError, match=r"dotted.toml: a key of more than 16 parts: "):
            armdyn.load(path)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 2**26  # the reader's buffer takes 32 MiB for a file of any size
        assert time.perf_counter() - begun < 5


def test_dots_in_strings_and_comments_are_no_keys(tmp_path):
    path = tmp_path / "long.toml"
    sentence = ".".join(["word"] * 20_000)
    source = f'source = """He said "x.y" \\" {sentence}\n{sentence}"""\n'
    path.write_text(f"# {sentence}\n{source}name = '{sentence[:500]}'\n{ARM}")
    assert sentence in armdyn.load(path).source
    path.write_text("x" * 900_000 + " " * 100_000 + "\n" + ARM)
    begun = time.perf_counter()
    with pytest.raises(FileError, match="not valid TOML"):
        armdyn.load(path)
    assert time.perf_counter() - begun < 5


def test_joints_of_one_name_are_refused(tmp_path):
    path = tmp_path / "twice.toml"
    path.write_text(ARM + ARM)
    with pytest.raises(FileError, match=r"twice.toml: two joints are named 'a'"):
        armdyn.load(path)
    with pytest.raises(InputError, match="two joints are named 'joint2': the joints of rows 1, 2"):
        armdyn.from_dh([{"name": "joint2"}, {}])


def test_numbers_beyond_a_float_are_refused():
    huge = 10**400
    arm = armdyn.load("scara")
    for call in (
        lambda: armdyn.from_dh([(0, huge, 0, 0)]),
        lambda: armdyn.load("scara", gravity=(0, 0, huge)),
        lambda: arm.with_payload(huge),
        lambda: arm.with_payload(1.0, (huge, 0, 0)),
        lambda: arm.with_gravity([0, 0, -huge]),
    ):
        with pytest.raises(InputError, match="numbers that a float can hold"):
            call()
    for snap in (1j, "x", -1, float("nan"), 0.2):
        with pytest.raises(InputError, match="snap must be an angle from 0 to"):
            armdyn.from_dh([(0, 0, 0, 0)], snap=snap)
        with pytest.raises(InputError, match="snap must be an angle from 0 to"):
            armdyn.load("scara", snap=snap)
