"""From a log to code: what is written, what the manifest says of it, and when no code is."""

from __future__ import annotations

import ctypes
import hashlib
import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import armdyn
from armdyn.cli import app
from armdyn.deployment import verdict
from armdyn.errors import InputError

LOG = Path(__file__).parent / "data" / "ur5_log.csv"
QUICK = {"friction": "stribeck", "regularization": 1.0, "folds": 2}  # nothing is searched for
GOOD = {
    "fit_error": 0.03,
    "held_out_error": 0.05,
    "left_out_error": 0.05,
    "held_out_raw_error": 0.05,
    "deployed_raw_error": 0.06,
    "prior_raw_error": 0.4,
    "held_out_joint_errors": [0.1, 0.2],
    "smallest_eigenvalue": 1e-4,
}


@pytest.fixture(scope="module")
def robot(tmp_path_factory):
    """The catalogue's UR5 as a URDF of a user's own."""
    path = tmp_path_factory.mktemp("robot") / "my_ur5.urdf"
    armdyn.load("ur5").to_urdf(path)
    return path


def test_a_log_becomes_code(robot, tmp_path):
    arm = armdyn.load(robot, tip="tool")
    out, steps = tmp_path / "out", []
    done = armdyn.pipeline(
        LOG,
        arm,
        out,
        urdf=robot,
        cut={"tip": "tool"},
        targets=("c",),
        quantities=("inverse_dynamics",),
        progress=lambda k, n, text: steps.append(text),
        **QUICK,
    )
    assert done.deployed
    assert done.verdict.carries_over
    assert steps[0] == "reading the log"
    written = json.loads((out / "manifest.json").read_text())
    assert written["inputs"]["log"]["sha256"] == hashlib.sha256(LOG.read_bytes()).hexdigest()
    assert written["inputs"]["urdf"]["sha256"] == hashlib.sha256(robot.read_bytes()).hexdigest()
    assert written["versions"]["armdyn"] == armdyn.__version__
    assert written["verdict"]["forced"] is False
    files = {str(p.relative_to(out)) for p in out.rglob("*") if p.is_file()} - {"manifest.json"}
    assert set(written["outputs"]) == files
    for name, digest in written["outputs"].items():
        assert hashlib.sha256((out / name).read_bytes()).hexdigest() == digest, name
    assert {"arm.toml", "arm.urdf", "robot.urdf", "report.html", "README.md", "c/Makefile", "c/README.md"} < files
    again = armdyn.load(out / "robot.urdf", tip="tool")
    assert again.mass == pytest.approx(done.estimate.arm.mass, rel=1e-9)
    assert armdyn.load(out / "arm.toml").mass == pytest.approx(done.estimate.arm.mass, rel=1e-12)
    assert not done.estimate.left_behind
    if shutil.which("gcc"):
        predicts_as_identified(out / "c", done.estimate)


def predicts_as_identified(folder, estimate):
    """The code against the regression that was fitted: rotors, Stribeck friction and offsets have reached it."""
    (source,) = (path for path in folder.glob("*.c") if not path.name.startswith("test_"))
    subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-o", "lib.so", source.name, "-lm"], cwd=folder, check=True)
    function = ctypes.CDLL(str(folder / "lib.so"))[f"{source.stem}_inverse_dynamics"]
    rng = np.random.default_rng(0)
    q, qdd = rng.uniform(-1, 1, (2, 20, 6))
    qd = rng.uniform(0.3, 1, (20, 6)) * rng.choice([-1, 1], (20, 6))  # where the fitted sign has turned round
    values = np.array(estimate.arm.minimal_parameters.values)
    got = np.empty((20, 6))
    for row, state in zip(got, zip(q, qd, qdd, strict=True), strict=True):
        function(*(np.ascontiguousarray(x).ctypes.data_as(ctypes.c_void_p) for x in (*state, values, row)))
    truth = estimate.predict(q, qd, qdd)
    assert np.abs(got - truth).max() < 1e-3 * np.abs(truth).max()
    assert np.abs([estimate.extras[f"off{k}"] for k in range(1, 7)]).max() > 0.1  # the offsets are among what is proved


def test_no_code_where_the_model_does_not_carry_over(tmp_path):
    """A log whose end is of another robot: its torques have the other sign."""
    head, *rows = LOG.read_text().splitlines()
    numbers = np.loadtxt(rows, delimiter=",")
    numbers[round(0.7 * len(numbers)) :, 7:] *= -1
    log = tmp_path / "log.csv"
    np.savetxt(log, numbers, fmt="%.6g", delimiter=",", header=head, comments="")
    words = ["pipeline", str(log), "--urdf", "ur5", "--quantity", "gravity_load", "--target", "c"]
    words += ["--friction", "coulomb"]
    done = CliRunner().invoke(app, [*words, "-o", str(tmp_path / "out")])
    assert done.exit_code == 5, done.output
    assert "refused: no code was written" in done.output
    assert not (tmp_path / "out" / "c").exists()
    assert (tmp_path / "out" / "report.html").exists()
    said = json.loads((tmp_path / "out" / "manifest.json").read_text())["verdict"]
    assert not said["carries_over"]
    assert not said["deployed"]
    assert {check["name"] for check in said["checks"] if not check["passed"]} >= {"held_out", "joints"}
    assert "No code was written" in (tmp_path / "out" / "README.md").read_text()
    done = CliRunner().invoke(app, [*words, "--force", "--json", "-o", str(tmp_path / "forced")])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["verdict"]["forced"]
    assert (tmp_path / "forced" / "c" / "Makefile").exists()


@pytest.mark.parametrize(
    ("change", "failed"),
    [
        ({}, set()),
        ({"held_out_error": 0.07}, {"held_out"}),
        ({"held_out_error": float("nan")}, {"held_out"}),
        ({"left_out_error": 0.07}, {"left_out"}),
        ({"fit_error": 0.001, "held_out_error": 0.03, "left_out_error": 0.03}, set()),
        ({"deployed_raw_error": 0.11}, {"code"}),
        ({"deployed_raw_error": 0.5, "held_out_raw_error": 0.4}, {"prior"}),
        ({"deployed_raw_error": 0.015, "held_out_raw_error": 0.001, "prior_raw_error": 0.01}, set()),
        ({"held_out_joint_errors": [0.1, 1.2]}, {"joints"}),
        ({"held_out_joint_errors": [float("nan"), 0.1]}, {"joints"}),
        ({"smallest_eigenvalue": -1e-6}, {"bodies"}),
    ],
)
def test_the_limits(change, failed):
    checks = tuple(verdict.checks(GOOD | change))
    assert {check.name for check in checks if not check.passed} == failed
    assert verdict.Verdict(checks, {}).carries_over == (not failed)


def test_a_folder_that_has_something_is_left_alone(tmp_path):
    (tmp_path / "old.c").write_text("int x;")
    with pytest.raises(InputError, match=r"contains files of others, .*: old\.c"):
        armdyn.pipeline(LOG, armdyn.load("ur5"), tmp_path)
    with pytest.raises(InputError, match="unknown target 'ada'; available: c, cpp"):
        armdyn.pipeline(LOG, armdyn.load("ur5"), tmp_path / "new", targets=("ada",))
    with pytest.raises(InputError, match=r"between 0 and 1, got 1\.5"):
        armdyn.pipeline(LOG, armdyn.load("ur5"), tmp_path / "new", held_out=1.5)
    assert [path.name for path in tmp_path.iterdir()] == ["old.c"]
