"""Arm files and catalogue arms are cut as URDF files are: the same options, the same robot, the same messages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import armdyn
from armdyn.cli import app
from armdyn.errors import ComputationError, FileError, InputError
from oracles import relative, robots

CUTS: dict[str, tuple[str, dict[str, Any]]] = {
    "panda's arm": ("panda", {"tip": "panda_hand_tcp", "lock": "rest"}),
    "panda, a mimic joint and its leader held": ("panda", {"lock": {"panda_finger_joint1": 0.013}}),
    "panda's finger, which follows one beside the chain": ("panda", {"tip": "panda_rightfinger", "lock": "rest"}),
    "panda floating": ("panda", {"base": "panda_link3", "floating": True}),
    "baxter's arm": ("baxter", {"tip": "left_gripper", "lock": {"left_w0": 0.4, "*": "rest"}}),
    "talos's arm from its tilted chest": (
        "talos_reduced",
        {
            "base": "torso_2_link",
            "tip": "gripper_left_base_link",
            "lock": {"torso_1_joint": 0.3, "torso_2_joint": 0.2, "*": "rest"},
        },
    ),
    "romeo from its tilted neck": ("romeo", {"base": "NeckPitchLink", "lock": {"NeckPitch": 0.3, "NeckYaw": 0.2}}),
    "solo, a leg held": ("solo12", {"lock": {"FL_HAA": 0.3, "FL_HFE": -0.7, "FL_KFE": 1.1}}),
}


def robot(name: str) -> Path:
    return next(file for file in robots() if file.stem == name)


def difference(one: armdyn.Arm, other: armdyn.Arm) -> float:
    """The largest relative difference of inertia matrix, bias, gravity and the poses of all frames of `one`."""
    assert [joint.name for joint in one.joints] == [joint.name for joint in other.joints]
    assert {frame.name for frame in one.frames} <= {frame.name for frame in other.frames}
    rng = np.random.default_rng(0)
    q, qd = rng.uniform(-1, 1, one.chain.nq), rng.uniform(-1, 1, one.chain.nv)
    if one.floating:
        q[3:7] /= np.linalg.norm(q[3:7])

    def results(arm: armdyn.Arm) -> list[Any]:
        frames = [frame.name for frame in one.frames]
        poses = [arm.kernel("pose", backend="python", frame=frame)(q) for frame in frames]
        inertia, bias = (arm.kernel(*key, "python") for key in (("inertia_matrix", "denoc"), ("bias", "newton_euler")))
        return [inertia(q), bias(q, qd), bias(q, 0 * qd), np.array(arm.gravity), *poses]

    return max(relative(x, y) for x, y in zip(results(one), results(other), strict=True))


@pytest.mark.parametrize("case", CUTS)
def test_an_arm_file_is_cut_as_the_urdf_it_was_saved_from(case, tmp_path):
    name, cut = CUTS[case]
    path = tmp_path / "whole.toml"
    armdyn.load(robot(name), snap=0).save(path)
    given, saved = (armdyn.load(file, snap=0, **cut) for file in (robot(name), path))
    assert difference(given, saved) < 1e-12
    assert [joint.limit for joint in given.joints] == [joint.limit for joint in saved.joints]


def test_a_floating_arm_file_keeps_its_base_or_has_it_held(tmp_path):
    path = tmp_path / "solo.toml"
    armdyn.load(robot("solo12"), snap=0, floating=True).save(path)
    lock = {"FL_HAA": 0.3}
    floats = armdyn.load(path, snap=0, lock=lock)
    assert floats.floating
    assert difference(armdyn.load(robot("solo12"), snap=0, floating=True, lock=lock), floats) < 1e-12
    held = armdyn.load(path, snap=0, floating=False, tip="FR_FOOT", lock="rest")
    assert not held.floating
    assert "the floating joint 'floating_base' is locked at its origin (floating=False)" in held.notes
    assert armdyn.load(path, floating=True) == armdyn.load(path)


@pytest.mark.parametrize("name", ["puma560", "stanford", "ur5", "panda_hand"])
def test_a_catalogue_arm_is_cut_as_the_urdf_of_it(name, tmp_path):
    path = tmp_path / "arm.urdf"
    armdyn.load(name, snap=0).to_urdf(path)
    for cut in (
        {"tip": "link3", "lock": "rest"},
        {"base": "link1", "tip": "link4", "lock": "rest"},
        {"floating": True},
    ):
        given, of_urdf = (armdyn.load(file, snap=0, **cut) for file in (name, path))
        assert difference(given, of_urdf) < 1e-12
        assert [j.rotor_inertia for j in given.joints] == [j.rotor_inertia for j in of_urdf.joints]
        assert set(of_urdf.notes) <= set(given.notes)


def test_gravity_of_a_tilted_arm_file_is_that_of_its_root(tmp_path):
    """A base that lies on its side, under a gravity of its own, read from the second link, at a posture between."""
    path = tmp_path / "tilted.toml"
    whole = armdyn.load("ur5", snap=0).with_base(rpy=(0.4, 0.2, -0.3)).with_gravity((0.3, -1.2, -9.0))
    whole.save(path)
    arm = armdyn.load(
        path, snap=0, base="link2", tip="link6", lock={"shoulder_pan_joint": 0.7, "shoulder_lift_joint": -1.0}
    )
    posture = np.array([0.7, -1.0, 0.2, 0.3, 0.4, 0.5])
    assert relative(arm.gravity_load(posture[2:]), whole.gravity_load(posture)[2:]) < 1e-12


@pytest.mark.parametrize("name", ["puma560", "ur5", "iiwa14"])
def test_exact_constants_survive_a_cut(name):
    """A right-angled arm that is cut to the whole of it keeps its zeros, so that its programs do not grow."""
    whole = armdyn.load(name)
    arm = armdyn.load(name, tip=whole.tips[0] if whole.frames else "tool")
    for quantity in ("inertia_matrix", "inverse_dynamics"):
        assert armdyn.cost(arm, quantity).compiled == armdyn.cost(whole, quantity).compiled


def test_a_base_without_mass_is_told():
    arm = armdyn.load("panda", floating=True)
    assert arm.notes[-1].endswith("with_payload(mass, com, inertia, frame='base') adds mass")
    still = np.zeros(arm.chain.nv)
    assert armdyn.cost(arm, "forward_dynamics", method="composite").published.total > 0  # counted, though singular
    point = arm.with_payload(2.5, (0, 0, 0.1), frame="base")  # which nothing keeps from turning about the first axis
    with pytest.raises(ComputationError, match=r"nothing resists the floating base .* give its link a mass"):
        point.forward_dynamics(arm.rest, still, still)
    heavy = arm.with_payload(2.5, (0, 0, 0.1), np.eye(3) / 100, frame="base")
    assert heavy.mass == pytest.approx(arm.mass + 2.5)
    assert heavy.forward_dynamics(arm.rest, still, still)[:3] == pytest.approx([0, 0, -9.81])


@pytest.mark.parametrize(
    ("cut", "message"),
    [
        ({"tip": "panda_hand"}, "armdyn.load('panda_hand', tip='panda_hand', lock='rest') (command line: --tip"),
        ({"tip": "hand"}, "unknown link of panda_hand for tip 'hand'; available: base, link1"),
        ({"lock": {"panda_finger": 0}}, "unknown joint of panda_hand to lock 'panda_finger'; available: panda_joint1"),
        ({"lock": "rest"}, "select the chain, as in tip='panda_hand_tcp'"),
        ({"base": "panda_hand_tcp", "tip": "link2"}, "tip 'link2' is not below base 'panda_hand_tcp'"),
        ({"base": "panda_leftfinger"}, "no moving joint below link 'panda_leftfinger'"),
    ],
)
def test_errors_name_the_remedy(cut, message):
    with pytest.raises(InputError) as error:
        armdyn.load("panda_hand", **cut)
    assert message in str(error.value)


@pytest.mark.parametrize("cut", [{"lock": 0.0}, {"base": ""}, {"tip": 3}])
def test_what_is_no_cut_is_refused(cut):
    with pytest.raises(InputError, match=r"lock must map joints to values|unknown link of puma560"):
        armdyn.load("puma560", **cut)


def test_a_joint_locked_outside_its_limits_is_told():
    """As by somebody who thinks in degrees, of a URDF and of an arm file alike."""
    for file in ("panda_hand", robot("panda")):
        lock = {"panda_joint4": -90, "panda_finger_joint1": 0.05, "panda_joint2": 0.1}
        assert armdyn.load(file, lock=lock).notes[-2:] == (
            "panda_joint4 is locked at -90 rad, outside its limits -3.0718 to -0.0698, values are in radians",
            "panda_finger_joint1 is locked at 0.05 m, outside its limits 0 to 0.04",
        )


def test_what_is_no_file_is_told(tmp_path):
    with pytest.raises(FileError, match="is no file; expected a name of the catalogue or a file"):
        armdyn.load(tmp_path)
    with pytest.raises(FileError, match="'' is no file"):
        armdyn.load("")
    with pytest.raises(InputError, match="as str; got <class 'bytes'>"):
        armdyn.load(b"<robot/>")


def test_the_text_of_an_mjcf_model_without_joints_is_refused():
    with pytest.raises(InputError, match="MJCF text: no moving joint"):
        armdyn.load("<mujoco/>")


def test_the_command_line_cuts_a_catalogue_arm():
    shown = CliRunner().invoke(app, ["show", "panda_hand", "--tip", "panda_hand", "--lock", "rest", "--json"])
    assert shown.exit_code == 0, shown.output
    assert '"n": 7' in shown.stdout
    assert "locked beside the chain: panda_finger_joint1 at 0" in shown.stderr


def test_show_says_what_stands_on_what_and_what_follows():
    shown = CliRunner().invoke(app, ["show", "panda_hand"])
    rows = [line.split() for line in shown.stdout.splitlines()]
    assert ["panda_finger_joint2", "prismatic", "9", "7"] in [row[:4] for row in rows]
    assert "mimic joints: panda_finger_joint2 = 1 × panda_finger_joint1" in shown.stdout
    assert "tips: panda_leftfinger, panda_rightfinger" in shown.stdout
    assert " on a floating base, " in CliRunner().invoke(app, ["show", "panda_hand", "--floating"]).stdout
    assert "waist" in (arm := CliRunner().invoke(app, ["show", "puma560"]).stdout)
    assert "frame i in frame i-1" in arm
    body = json.loads(CliRunner().invoke(app, ["show", "baxter", "--json"]).stdout)["bodies"][9]
    assert (body["link"], body["parent"], body["follows"]["multiplier"]) == (10, 8, -1)
