"""From a log of commands and positions to code: servos identified, position commands deployed."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from typer.testing import CliRunner

import armdyn
from armdyn.cli import app
from armdyn.deployment.servo_pipeline import verdict
from armdyn.errors import InputError
from armdyn.identification.servo import _start
from armdyn.identification.servo_fit import first_guess
from armdyn.identification.servo_model import ServoModel
from armdyn.identification.servo_result import commanded
from servo_logs import commands, record, with_servos


@pytest.fixture(scope="module")
def swing():
    """A pendulum of one joint with its servo, and the file of a log of it."""
    row = {"a": 0.3, "mass": 1.0, "com": (-0.1, 0, 0), "inertia": (0.01,) * 3 + (0,) * 3, "name": "swing"}
    arm = armdyn.from_dh([row], gravity=(0, -9.81, 0))
    return arm, with_servos(arm, [30.0], [1.2], 0.01, [0.02], [0.1], [0.2])


@pytest.fixture(scope="module")
def log(swing, tmp_path_factory):
    t, command = commands(1, 8.0, 100, np.random.default_rng(0), size=1.0)
    path = tmp_path_factory.mktemp("log") / "servo.csv"
    record(swing[1], t, command).save(path)
    return path


def test_the_command_holds_the_arm_still(swing):
    arm = swing[1]
    control = armdyn.controller(arm, "servo_feedforward", friction=True)
    q, qd, qdd = np.array([0.4]), np.array([0.7]), np.array([2.0])
    for v, a in ((0 * qd, 0 * qdd), (qd, qdd)):
        reference = {"q_ref": q, "qd_ref": v, "qdd_ref": a}
        found, _ = control.step(control.start(**reference), dt=0.01, **reference)
        torque = 30 * (found["command"] - q) - 1.2 * v  # what the servo makes of it
        np.testing.assert_allclose(torque, arm.inverse_dynamics(q, v, a, friction=True), atol=1e-12)


def test_a_log_of_commands_becomes_code(swing, log, tmp_path):
    done = armdyn.pipeline(log, swing[0], tmp_path / "out", targets=("c",), build=False)
    assert done.deployed
    assert done.verdict.carries_over, done.verdict.failures
    files = {path.relative_to(tmp_path / "out").as_posix() for path in done.files}
    assert {"arm.toml", "arm.urdf", "arm.xml", "parameters.json", "README.md", "manifest.json"} < files
    assert any(name.startswith("c/") and "controllers" in name for name in files)
    assert "servo_feedforward" in (tmp_path / "out/README.md").read_text()
    manifest = json.loads((tmp_path / "out/manifest.json").read_text())
    assert manifest["figures"]["held_out_ratio"] < 2
    assert manifest["inputs"]["log"]["sha256"]
    whole = armdyn.Log.read(log)
    assert "the validation repeats the fit" in verdict(done.estimate, whole, whole).notes[0]
    back = armdyn.load(tmp_path / "out/arm.toml")
    assert float(back.joints[0].servo.kp) == pytest.approx(30, rel=0.2)
    with pytest.raises(InputError, match="commands and no torques"):
        armdyn.pipeline(log, swing[0], tmp_path / "no", friction="coulomb")
    with pytest.raises(InputError, match="writes no control laws"):
        armdyn.pipeline(log, swing[0], tmp_path / "no", targets=("opencl",))
    assert not (tmp_path / "no").exists()


def test_servos_that_do_not_predict_are_not_deployed(swing, log, tmp_path):
    other = tmp_path / "other.csv"
    t, command = commands(1, 4.0, 100, np.random.default_rng(1), size=1.0)
    record(with_servos(swing[0], [12.0], [1.2], 0.01, [0.1], [0.5], [0.9]), t, command).save(other)
    (tmp_path / "arm.toml").write_text("")
    swing[0].save(tmp_path / "arm.toml")
    arguments = ["pipeline", str(log), "--urdf", str(tmp_path / "arm.toml"), "--validate", str(other)]
    done = CliRunner().invoke(app, [*arguments, "-o", str(tmp_path / "out"), "--target", "c"])
    assert done.exit_code == 5, done.output
    assert "times as much as in the fit" in " ".join(done.output.split())
    assert not (tmp_path / "out/c").exists()
    assert (tmp_path / "out/arm.toml").exists()


def test_damping_of_the_file_does_not_count_twice(swing, log):
    """The first guess takes all damping for the servo's: a URDF's round number on top of it led the fit astray."""
    sticky = tuple(replace(joint, viscous=Fraction(10)) for joint in swing[0].given.joints)
    arm = replace(swing[0], given=replace(swing[0].given, joints=sticky))
    data = armdyn.Log.read(log)
    model = ServoModel(arm)
    record = next(commanded(data, np.zeros(len(arm.minimal_parameters.names))))
    start = first_guess(model, [record], data.period, _start(model, arm, None))
    assert start.viscous[0] == 0
    assert start.kd[0] == pytest.approx(1.3, rel=0.5)
