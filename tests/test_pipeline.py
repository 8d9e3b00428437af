"""From a log to code: what is written, what the manifest says of it, and when no code is."""

from __future__ import annotations

import ctypes
import hashlib
import json
import shutil
import subprocess
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import armdyn
from armdyn.cli import app
from armdyn.deployment import verdict
from armdyn.errors import InputError
from armdyn.options import Drivetrain, Filtering, Fitting, Terms

LOG = Path(__file__).parent / "data" / "ur5_log.csv"
QUICK = {"friction": "stribeck", "regularization": 1.0, "folds": 2}  # nothing is searched for
FAST = {**QUICK, "friction": "coulomb", "estimator": "weighted", "regularization": None}
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
    report = (tmp_path / "out" / "report.html").read_text()
    assert "The model failed the validation on held-out data. No code was written." in report
    assert report.index("<nav") < report.index('id="verdict"') < report.index('id="arm"') < report.index('id="summary"')
    for check in said["checks"]:
        figures = f"<td>{100 * check['value']:.2f} %</td><td>at most {100 * check['limit']:.2f} %</td>"
        assert (figures if check["name"] != "bodies" else "<td>at least 0</td>") in report
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


def run_of(seed, period=1e-2, duration=6.0, shift=0.0, noise=2e-4):
    """The log of a smooth motion of three joints, recorded from `shift` on."""
    t = np.arange(0, duration, period)
    rng = np.random.default_rng(seed)
    rates, phases = rng.uniform(0.5, 4, (2, 3, 4))
    q = 0.3 * np.sin((t + shift)[:, None, None] * rates + phases).sum(axis=-1)
    q = q + noise * np.random.default_rng(int(1e3 * shift) + 1).standard_normal(q.shape)
    return armdyn.Log.of(t, q, np.cos(q))


def test_a_validation_with_the_motion_of_the_fit_is_noticed():
    fitted = run_of(0)
    for other, lag in (
        (run_of(0, shift=0.3), 0.3),
        (run_of(0, period=4e-3, shift=0.1), 0.1),
        (fitted.part(0.2, 0.5), 1.2),
    ):
        difference, found = verdict.difference_of_motions(fitted, other)
        assert difference < 0.02
        assert found == pytest.approx(lag, abs=0.021)
        (note,) = verdict.repeats(fitted, other)
        assert "the validation repeats the fit" in note
    assert verdict.difference_of_motions(fitted, run_of(1))[0] > 0.3
    assert verdict.repeats(fitted, run_of(1)) == ()
    at_rest = armdyn.Log.of(np.arange(100) / 100, np.ones((100, 3)), np.ones((100, 3)))
    assert verdict.repeats(fitted, at_rest) == ()


def test_the_same_log_for_fit_and_validation(tmp_path):
    done = armdyn.pipeline(LOG, "ur5", tmp_path, validate=LOG, targets=(), **FAST)
    assert "validate with a log of another motion" in done.verdict.notes[0]
    assert done.verdict.notes[0] in json.loads((tmp_path / "manifest.json").read_text())["verdict"]["notes"]
    assert "the validation repeats the fit" in (tmp_path / "report.html").read_text()
    assert "the validation repeats the fit" in (tmp_path / "README.md").read_text()


def test_code_of_an_earlier_run_is_removed(tmp_path):
    """What failed the validation leaves no code behind, and make's products do not keep a folder from being used."""
    options = {"quantities": ("gravity_load",), "build": False, "parameters": "baked", "force": True, **FAST}
    armdyn.pipeline(LOG, "ur5", tmp_path, targets=("c",), **options)
    (tmp_path / "c" / "test_ur5").write_text("built by make")
    assert json.loads((tmp_path / "c" / "manifest.json").read_text())["outputs"]["ur5.c"]
    armdyn.pipeline(LOG, "ur5", tmp_path, targets=("cpp",), **options)
    assert not (tmp_path / "c" / "ur5.c").exists()
    assert (tmp_path / "cpp" / "ur5.hpp").exists()
    armdyn.deploy("ur5", tmp_path / "cpp", "cpp", ("bias",), measure_stack=False, build=False)


def test_identify_and_pipeline_have_the_same_options():
    from armdyn.cli import command
    from armdyn.cli.options import LogOptions

    shown = {}
    for name in ("identify", "pipeline"):
        options = {p.name: p for p in command(name).params if p.param_type_name == "option"}
        shared = [one.name for record in (LogOptions, Terms, Filtering, Drivetrain, Fitting) for one in fields(record)]
        shown[name] = {one: (options[one].opts, options[one].default, options[one].help) for one in shared}
    assert shown["identify"] == shown["pipeline"]
    assert all(help for _, _, help in shown["identify"].values())


def split_log(tmp_path, log=LOG):
    """A log as two files: motion, and efforts with stamps of their own at another rate."""
    head, *rows = log.read_text().splitlines()
    numbers = np.loadtxt(rows, delimiter=",")
    names = head.split(",")
    assert names[0] == "t"
    motion, effort = tmp_path / "motion.csv", tmp_path / "effort.csv"
    np.savetxt(motion, numbers[:, :7], delimiter=",", header=",".join(names[:7]), comments="")
    later = numbers[100:-50:2, [0, *range(7, 13)]]
    np.savetxt(effort, later, delimiter=",", header="t," + ",".join(f"tau{k}" for k in range(1, 7)), comments="")
    return motion, effort, numbers


def test_efforts_of_their_own_file_are_joined_by_time_stamps(tmp_path):
    t = np.round(np.arange(0, 5, 0.01), 2)
    q = np.sin(np.outer(t, np.arange(1, 7)))
    whole = armdyn.Log.of(t, q, np.cos(q))
    whole.save(tmp_path / "whole.csv")
    motion, effort, numbers = split_log(tmp_path, tmp_path / "whole.csv")
    log = armdyn.Log.read(motion, effort=effort)
    assert "151 rows outside the times of effort.csv: not used" in log.notes
    assert np.allclose(log.array("q"), q[100:-51], atol=1e-9)
    assert np.allclose(log.array("tau")[::2], np.cos(q)[100:-51][::2], atol=1e-9), "where there is a stamp"
    middle = (np.cos(q)[100:-52:2] + np.cos(q)[102:-50:2]) / 2
    assert np.allclose(log.array("tau")[1::2], middle, atol=1e-9), "half-way between two stamps"
    np.savetxt(effort, numbers[:, 7:12], delimiter=",", header="a,b,c,d,e", comments="")
    with pytest.raises(InputError, match="5 columns of efforts, the log has 6 joints"):
        armdyn.Log.read(motion, effort=effort)
    np.savetxt(effort, numbers[5:, 7:13], delimiter=",", header="a,b,c,d,e,f", comments="")
    with pytest.raises(InputError, match=r"rows, the log has .* or time stamps in both files"):
        armdyn.Log.read(motion, effort=effort)
    numbers[:, 0] += 1e6
    np.savetxt(effort, numbers[:, [0, *range(7, 13)]], delimiter=",", header="t,a,b,c,d,e,f", comments="")
    with pytest.raises(InputError, match="no time in common"):
        armdyn.Log.read(motion, effort=effort)


def test_a_log_is_cropped(tmp_path):
    whole = armdyn.Log.read(LOG)
    t = whole.array("t")
    part = armdyn.Log.read(LOG, start=2.0, until=5.0)
    inside = (t - t[0] > 2.0 - 1e-9) & (t - t[0] < 5.0 + 1e-9)
    assert np.array_equal(part.array("q"), whole.array("q")[inside])
    assert any("used from 2 s to 5 s of" in note for note in part.notes)
    assert len(whole.between()) == len(whole)
    for start, until in ((5.0, 2.0), (-1.0, None), (1e9, None), (2.0, 2.0), (float("nan"), None)):
        with pytest.raises(InputError, match="0 <= from < until within it"):
            armdyn.Log.read(LOG, start=start, until=until)


def test_the_command_takes_the_options_of_the_log(tmp_path):
    """Efforts apart, cropped, with a dead zone: what the manifest says was used."""
    motion, effort, _ = split_log(tmp_path)
    words = ["pipeline", str(motion), "--urdf", "ur5", "--effort", str(effort), "--from", "1", "--until", "9"]
    words += ["--dead-zone", "0.01", "--friction", "coulomb", "--target", "c", "--quantity", "gravity_load", "--json"]
    done = CliRunner().invoke(app, [*words, "-o", str(tmp_path / "out")])
    assert done.exit_code in (0, 5), done.output
    about = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert about["inputs"]["effort"]["sha256"] == hashlib.sha256(effort.read_bytes()).hexdigest()
    assert about["settings"]["reading"]["until"] == 9
    assert about["settings"]["identify"]["dead_zone"] == 0.01
    assert about["settings"]["code"]["parameters"] == "runtime"
    assert any("used from 1 s to 9 s" in note for note in about["notes"])
