"""Kinematic calibration: constants from measured poses, points, planes and a ball bar."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from typer.testing import CliRunner

import armdyn
from armdyn.arm import Arm
from armdyn.calibration import Poses, calibrate, calibration_poses, plan
from armdyn.calibration.model import ToolModel
from armdyn.calibration.run import chosen
from armdyn.cli import app
from armdyn.errors import InputError
from armdyn.files import arrays
from armdyn.files.description import Frame
from armdyn.parameters.geometry import identifiable, rational_rotation
from calibration_cases import NOISE, ball_bar, configurations, measured, on_plane, with_errors
from random_chains import any_chain

URDF = """<robot name="two"><link name="base"/><link name="upper"/><link name="lower"/><link name="hand"/>
<joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/>
  <origin xyz="0.1 0 0.3" rpy="0 0 0.2"/><axis xyz="0 0 1"/>
  <limit lower="-3" upper="3" effort="1" velocity="1"/></joint>
<joint name="elbow" type="revolute"><origin xyz="0.4 0 0.1" rpy="1.5707963267948966 0 0"></origin>
  <parent link="upper"/><child link="lower"/><axis xyz="0 0 1"/>
  <limit lower="-3" upper="3" effort="1" velocity="1"/></joint>
<joint name="wrist" type="fixed"><parent link="lower"/><child link="hand"/><origin xyz="0.3 0 0.05"/></joint>
</robot>
"""


def numerical_rank(arm: Arm, orientation: bool) -> int:
    """Of the stacked pose Jacobian at random configurations."""
    q = np.random.default_rng(1).uniform(-2, 2, (40, arm.n))
    T = arm.kernel("pose", backend="numpy")(q)
    dT = arm.kernel("pose", parameters="geometry", derivatives="geometry", backend="numpy")(q, arm.geometry)
    turned = np.einsum("kia,kibg->kabg", T[:, :3, :3], dT[:, :3, :3])
    turns = np.stack([turned[:, 2, 1], turned[:, 0, 2], turned[:, 1, 0]], axis=1)
    J = np.concatenate([dT[:, :3, 3], turns], axis=1)[:, : 6 if orientation else 3]
    s = np.linalg.svd(J.reshape(-1, J.shape[2]), compute_uv=False)
    return int((s > 1e-9 * s[0]).sum())


@pytest.mark.parametrize("seed", range(6))
def test_exact_rank_is_the_numerical_rank_of_the_stacked_jacobian(seed: int) -> None:
    arm = Arm("random", any_chain(random.Random(seed), 4), snap=0.0)
    for kind, orientation in (("pose", True), ("point", False)):
        kept = identifiable(arm.chain, chosen(arm, "all", kind), orientation)
        assert len(kept) == numerical_rank(arm, orientation)


def test_parallel_axes_get_the_second_angle_and_share_their_offsets() -> None:
    """4 R + 2 P + 6 of a serial arm's constants can be told from poses (Mooring, Roth & Driels 1991)."""
    for name, expected in (("ur5", 30), ("stanford", 28), ("scara", 20)):
        arm = armdyn.load(name)
        kept = {c.name for c in identifiable(arm.chain, chosen(arm, "all", "pose"))}
        assert len(kept) == expected
        assert name != "ur5" or ({"gamma_3", "gamma_4", "d_2"} <= kept and not {"d_3", "d_4", "d_6"} & kept)


def test_a_rational_rotation_is_exactly_orthogonal() -> None:
    for seed in range(4):
        R = rational_rotation(armdyn.generic_arm("R", seed).chain.joints[0].placement(0.3 * seed)[0].matrix())
        assert all(a.dot(b) == (a is b) for a in R.rows for b in R.rows)


@pytest.mark.parametrize(("name", "kind"), [("ur5", "pose"), ("stanford", "point")])
def test_known_errors_are_recovered_within_the_predicted_uncertainty(name: str, kind: str) -> None:
    arm, rng = armdyn.load(name), np.random.default_rng(5)
    true = with_errors(arm, rng)
    found = calibrate(arm, measured(true, configurations(arm, rng, 60), rng, kind))
    q = configurations(arm, rng, 100)
    off = true.pose(q)[:, :3, 3] - found.arm.pose(q)[:, :3, 3]
    assert np.sqrt((off**2).mean()) < NOISE[0]  # before: millimetres
    assert list(found.noise.values())[:3] == pytest.approx([NOISE[0]] * 3, rel=0.35)
    assert found.outliers == ()
    assert found.validation is not None
    before = np.sqrt((found.before.residual[:, :3] ** 2).mean())
    assert np.sqrt((found.validation.residual[:, :3] ** 2).mean()) < min(0.3 * before, 2 * NOISE[0])
    assert found.fit.residual[:, :3].std() < 1.2 * NOISE[0] < before


def test_deviations_cover_the_truth() -> None:
    """Only constants that stand alone are off, so that the truth of each correction is known."""
    arm, inside = armdyn.load("scara"), []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        kept = identifiable(arm.chain, chosen(arm, "all", "pose"))
        values = arm.geometry.copy()
        values[[arm.geometry_names.index(c.name) for c in kept]] += rng.normal(0, 1e-3, len(kept))
        poses = measured(arm.with_geometry(values), configurations(arm, rng, 40), rng)
        found = calibrate(arm, poses, held_out=0)
        truth = dict(zip(arm.geometry_names, values - arm.geometry, strict=True))
        inside += [abs(c.correction - truth[c.name]) < 1.96 * c.deviation for c in found.corrections]
    assert 0.89 < np.mean(inside) < 0.99


@pytest.mark.parametrize("robust", ["huber", "tukey"])
def test_wrong_poses_are_set_aside_and_listed(robust: str) -> None:
    arm, rng = armdyn.load("scara"), np.random.default_rng(1)
    poses = measured(with_errors(arm, rng), configurations(arm, rng, 50), rng)
    assert poses.position is not None
    poses.position[[3, 20, 41]] += 0.01
    found = calibrate(arm, poses, robust=robust, held_out=0)
    assert {3, 20, 41} <= set(found.outliers)
    assert len(found.outliers) <= 4
    kept = calibrate(arm, poses, robust="none", held_out=0)
    assert kept.outliers == ()
    assert kept.noise["x"] > 5 * found.noise["x"]
    assert "set aside as outliers: poses 4, 21, 42" in str(found)


def test_a_fifth_of_the_poses_are_no_outliers() -> None:
    """Backlash: a joint that was approached from the other side. Without those poses the rest would fit too well."""
    arm, rng = armdyn.load("scara"), np.random.default_rng(2)
    true, q = with_errors(arm, rng), configurations(arm, rng, 60)
    late = q + np.where(np.arange(60) < 12, 3e-3, 0.0)[:, None] * [1, 0, 0, 0]
    poses = measured(true, late, rng, "point")
    found = calibrate(arm, Poses(q, poses.position))
    assert found.outliers == ()
    assert found.fit.misfits > 6
    assert any("too many to be outliers" in note for note in found.notes)
    assert len(calibrate(arm, Poses(q, poses.position), robust="tukey", held_out=0).outliers) > 6


def test_the_corrected_arm_is_one_that_a_file_holds(tmp_path: Path) -> None:
    """Named frames follow: the tool's own is the corrected tool, those of the base stand with it, others stay."""
    arm, rng = armdyn.load("ur5"), np.random.default_rng(1)
    camera = Frame("camera", arm.n, arrays.placement([0.05, -0.02, 0.01], [0.1, 0.2, 0.3]))
    arm = replace(arm, frames=(*arm.frames, camera))
    true = with_errors(arm, rng).with_base([1.0, 0.0, 0.2], [0.0, 0.1, 0.7])
    q = configurations(arm, rng, 30)
    found = calibrate(arm, (q, true.pose(q)), held_out=0)
    assert np.abs(found.arm.pose(q, frame="tool0") - true.pose(q)).max() < 1e-9
    assert camera in found.arm.frames
    found.save(tmp_path / "arm.toml")
    again = armdyn.load(tmp_path / "arm.toml")
    assert np.abs(again.pose(q) - true.pose(q)).max() < 1e-9
    assert max(map(len, (tmp_path / "arm.toml").read_text().splitlines())) < 250


@pytest.mark.parametrize("scale", [0.5, 2.0])
def test_a_scaled_rotation_is_not_taken_for_one(scale: float) -> None:
    poses = np.tile(np.eye(4), (3, 1, 1))
    poses[1, :3, :3] *= scale
    with pytest.raises(InputError, match=r"pose 2: its 3 × 3 block is not a rotation"):
        Poses.of(np.zeros((3, 6)), poses)


def test_a_device_that_stands_anywhere_with_a_target_turned_anyhow() -> None:
    arm, rng = armdyn.load("scara"), np.random.default_rng(4)
    true = (
        with_errors(arm, rng)
        .with_base([3.0, -2.0, 1.0], [0.3, -0.5, 2.8])
        .with_tool([0.02, 0.01, 0.1], [2.5, 0.4, 1.0])
    )
    found = calibrate(arm, measured(true, configurations(arm, rng, 40), rng), held_out=0)
    q = configurations(arm, rng, 20)
    assert np.abs(found.arm.pose(q) - true.pose(q)).max() < 5 * max(NOISE)
    assert any("far from its measured placement" in note for note in found.notes)


def test_planes_tell_shape_but_not_size() -> None:
    """Scaling every length about a point of a plane keeps the plane touched: one length must be known."""
    arm, rng = armdyn.generic_arm("RRR", 2).with_tool([0.1, 0.05, 0.2]), np.random.default_rng(0)
    true = with_errors(arm, rng, but=("base",))
    for planes in (1, 3):
        found = calibrate(arm, on_plane(true, rng, 150, planes), held_out=0.2)
        assert found.fit.undetermined
        assert not any(name.startswith("base") for name in found.names)
        assert found.noise["plane"] == pytest.approx(NOISE[0], rel=0.3)
        assert found.before.residual.std() > 3 * NOISE[0]
        assert found.validation is not None
        assert found.validation.residual.std() < 2 * NOISE[0]
    # With a length known, what is told is right.
    known = calibrate(arm, on_plane(true, rng, 200, 3), parameters=("theta", "beta"), held_out=0)
    assert known.fit.free


def test_a_ball_bar_recovers_distances_it_never_saw() -> None:
    arm, rng = armdyn.generic_arm("RRR", 2).with_tool([0.1, 0.05, 0.2]), np.random.default_rng(3)
    true = with_errors(arm, rng, but=("base",))
    found = calibrate(arm, ball_bar(true, rng, 120))
    assert found.noise["ball bar"] == pytest.approx(NOISE[0], rel=0.3)
    assert found.validation is not None
    assert found.validation.residual.std() < 2 * NOISE[0] < found.before.residual.std()
    q = configurations(arm, rng, 50)
    away = [
        np.linalg.norm(a.pose(q)[:, None, :3, 3] - a.pose(q)[None, :, :3, 3], axis=-1) for a in (true, found.arm, arm)
    ]
    assert np.abs(away[0] - away[1]).max() < 0.2 * np.abs(away[0] - away[2]).max()


def test_a_tip_of_a_tree_is_calibrated_through_its_own_chain(tmp_path: Path) -> None:
    other = '<link name="left"/><joint name="beside" type="revolute"><parent link="upper"/><child link="left"/>'
    other += '<origin xyz="0 0.2 0"/><axis xyz="1 0 0"/><limit lower="-1" upper="1" effort="1" velocity="1"/></joint>'
    (tmp_path / "tree.urdf").write_text(URDF.replace("</robot>", f"{other}</robot>"))
    tree = armdyn.load(tmp_path / "tree.urdf")
    rng = np.random.default_rng(0)
    true = with_errors(tree, rng)
    q = rng.uniform(-2, 2, (30, tree.n))
    with pytest.raises(InputError, match="give the measured one as frame="):
        calibrate(tree, (q, true.pose(q, frame="hand")))
    found = calibrate(tree, (q, true.pose(q, frame="hand")), frame="hand", held_out=0)
    assert np.abs(found.arm.pose(q, frame="hand") - true.pose(q, frame="hand")).max() < 1e-9
    assert found.arm.chain.joints[tree.chain.bodies - 1].name  # the other branch is still there
    assert found.arm.n == tree.n


def test_the_users_urdf_gets_corrected_origins_and_keeps_every_other_byte(tmp_path: Path) -> None:
    (tmp_path / "two.urdf").write_text(URDF)
    arm, rng = armdyn.load(tmp_path / "two.urdf", tip="hand"), np.random.default_rng(0)
    true = with_errors(arm, rng, but=("base", "b_1"))
    q = rng.uniform(-2, 2, (30, 2))
    found = calibrate(arm, (q, true.pose(q)), robust="none", held_out=0)
    changed = found.update_urdf(tmp_path / "two.urdf", tmp_path / "new.urdf", tip="hand", move_base=True)
    assert changed == ["elbow", "shoulder", "wrist"]
    model = pin.buildModelFromUrdf(str(tmp_path / "new.urdf"))
    data = model.createData()
    for one in q[:5]:
        pin.framesForwardKinematics(model, data, one)
        assert np.abs(data.oMf[model.getFrameId("hand")].homogeneous - true.pose(one)).max() < 1e-9
    old, new = URDF, (tmp_path / "new.urdf").read_text()
    assert new.count("<origin") == old.count("<origin")
    assert new.count('rpy="0 0 0.2"') == 0
    strip = [line for line in new.splitlines() if "<origin" not in line]
    assert [line for line in old.splitlines() if "<origin" not in line] == strip
    scara = armdyn.load("scara")
    another = calibrate(scara, measured(scara, configurations(scara, rng, 40), rng), held_out=0)
    with pytest.raises(InputError, match="is another arm"):
        another.update_urdf(tmp_path / "two.urdf", tmp_path / "x.urdf")


def test_chosen_poses_beat_random_ones() -> None:
    arm = armdyn.load("scara")
    plan = calibration_poses(arm, 8, candidates=150)
    assert plan.gain > 1.0  # the best of fifty random choices
    assert ((plan.q >= arm.limits[:, 0]) & (plan.q <= arm.limits[:, 1])).all()
    assert len(plan.deviations) == len(plan.names) == 20
    high = calibration_poses(arm, 8, candidates=60, accept=lambda q: arm.pose(q)[:, 0, 3] > 0)
    assert (arm.pose(high.q)[:, 0, 3] > 0).all()
    with pytest.raises(InputError, match="20 constants need at least 4 pose measurements"):
        calibration_poses(arm, 2, candidates=20)


def test_tables_of_poses_and_what_is_wrong_with_them(tmp_path: Path) -> None:
    arm, rng = armdyn.load("scara"), np.random.default_rng(0)
    q = configurations(arm, rng, 30)
    T = arm.pose(q)
    path = tmp_path / "poses.csv"

    def table(columns: str, values: np.ndarray) -> Path:
        np.savetxt(path, values, delimiter=",", header=columns, comments="", fmt="%.17g")
        return path

    points = np.column_stack([q, T[:, :3, 3]])
    assert np.allclose(Poses.read(table("q1,q2,q3,q4,x,y,z", points), n=4).position, T[:, :3, 3])
    names = ",".join(joint.name for joint in arm.joints)
    assert Poses.read(table(f"{names},x,y,z", points), [j.name for j in arm.joints]).kind == "point"
    assert Poses.read(table("q1,q2,q3,q4,distance", points[:, :5]), n=4).kind == "ball bar"
    assert Poses.read(table("q1,q2,q3,q4,plane", np.column_stack([q, np.arange(30) % 2])), n=4).kind == "plane"
    for columns, values, message in (
        ("q1,q2,q3,x,y,z", points[:, 1:], "no column q4"),
        ("q1,q2,q3,q4,x,y", points[:, :6], "no column z"),
        ("q1,q2,q3,q4,x,y,z", np.column_stack([100 * q, T[:, :3, 3]]), "for degrees give degrees=True"),
        ("q1,q2,q3,q4,x,y,z", np.column_stack([q, 1e3 * T[:, :3, 3]]), "for millimetres give millimetres=True"),
        ("q1,q2,q3,q4,x,y,z,qx,qy,qz,qw", np.column_stack([points, np.ones((30, 4))]), "has length 1, got 2"),
    ):
        with pytest.raises(InputError, match=message):
            Poses.read(table(columns, values), n=4)
    with pytest.raises(InputError, match="has 3 joints, scara has 4"):
        calibrate(arm, (q[:, :3], T))
    with pytest.raises(InputError, match="equations for"):
        calibrate(arm, (q[:3], T[:3]))
    with pytest.raises(InputError, match="is not a rotation"):
        Poses.of(q, 2 * T)
    with pytest.raises(InputError, match="parameters of a calibration"):
        calibrate(arm, (q, T), parameters=("thetta",))


def test_the_command_writes_arm_urdf_data_and_report(tmp_path: Path) -> None:
    arm, rng = armdyn.load("scara"), np.random.default_rng(0)
    q = configurations(arm, rng, 40)
    poses = measured(with_errors(arm, rng), q, rng, "point")
    values = np.column_stack([q, 1e3 * poses.position])
    np.savetxt(tmp_path / "p.csv", values, delimiter=",", header="q1,q2,q3,q4,x,y,z", comments="")
    run = CliRunner().invoke(
        app, ["calibrate", "scara", str(tmp_path / "p.csv"), "--millimetres", "-o", str(tmp_path / "out")]
    )
    assert run.exit_code == 0, run.output
    assert "constants from 40 point measurements" in run.output
    assert "mm rms on held-out poses" in " ".join(run.output.split())  # lines are wrapped
    data = json.loads((tmp_path / "out" / "corrections.json").read_text())
    assert len(data["corrections"]) == 15
    again = armdyn.load(tmp_path / "out" / "arm.toml")
    assert np.abs(again.pose(q)[:, :3, 3] - poses.position).max() < 1e-3
    page = (tmp_path / "out" / "report.html").read_text()
    assert "correction [mm]" in page
    assert "base_x" in page
    plan = CliRunner().invoke(
        app, ["poses", "scara", "--count", "6", "--candidates", "40", "-o", str(tmp_path / "plan.csv")]
    )
    assert plan.exit_code == 0, plan.output
    assert (tmp_path / "plan.csv").read_text().startswith("q1,q2,q3,q4\n")


def test_chosen_poses_come_near_what_any_choice_can_reach() -> None:
    """Against the bound of Kiefer & Wolfowitz (1960) on the determinant of any design."""
    arm, count = armdyn.load("ur5"), 40
    drawn = np.random.default_rng(0).uniform(-np.pi, np.pi, (400, arm.n))
    found = calibration_poses(arm, count, candidates=drawn)
    model = ToolModel(arm)
    kept = identifiable(arm.chain, chosen(arm, "all", "pose"), True)
    J = plan._slopes(model, drawn, kept, True, (1e-4, 5e-4))
    weight, p = np.full(len(J), 1 / len(J)), len(kept)
    for _ in range(60):  # the multiplicative algorithm (Titterington 1976)
        M = np.einsum("k,kma,kmb->ab", weight, J, J, optimize=True)
        share = np.einsum("kma,ab,kmb->k", J, np.linalg.inv(M), J, optimize=True) / p
        weight = weight * share
    bound = np.linalg.slogdet(count * M)[1] + p * np.log(share.max())
    assert found.random < found.log_determinant < bound
    assert bound - found.log_determinant < 2 * p * np.log(1.02)  # deviations within 2 % of any choice's
