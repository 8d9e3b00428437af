"""The command line: every command documented, data as JSON, errors in a line or two without a traceback."""

from __future__ import annotations

import copy
import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

import armdyn
from armdyn.cli import COMMANDS, app

RUN = CliRunner()


def call(*words):
    result = RUN.invoke(app, [str(word) for word in words])
    assert result.exit_code == 0, result.output + repr(result.exception)
    return result.stdout


def shell(*words):
    """The installed command, as a user runs it."""
    environment = {**os.environ, "PYTHONWARNINGS": "error", "NO_COLOR": "1", "COLUMNS": "200"}
    command = [sys.executable, "-m", "armdyn", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_documented(name):
    text = RUN.invoke(app, [name, "--help"], env={"COLUMNS": "200", "TERM": "dumb"}).output
    if name in ("cache", "study"):
        assert "Commands" in text or "Arguments" in text
    else:
        assert f"armdyn {name}" in text.split("Example:")[1], "an example is missing"
    assert len(text.split("Usage")[1].strip().splitlines()) > 3


def test_all_commands_are_there():
    wanted = [
        "list",
        "show",
        "check",
        "convert",
        "compare",
        "parameters",
        "cost",
        "tables",
        "eval",
        "bound",
        "emit",
        "deploy",
        "bench",
        "simulate",
        "study",
        "sweep",
        "excite",
        "identify",
        "poses",
        "calibrate",
        "pipeline",
    ]
    assert set(COMMANDS) >= {*wanted, "report", "studio", "cache"}, "names that others rely on"


def test_list():
    rows = json.loads(call("list", "--json"))
    assert [row["name"] for row in rows] == list(armdyn.catalogue())
    assert "puma560" in call("list")


def test_show_and_check():
    data = json.loads(call("show", "puma560", "--json"))
    assert data["n"] == 6
    assert data["checks"]
    assert "wrist_bend" in call("show", "puma560")
    assert json.loads(call("check", "puma560", "--json")) == data["checks"]
    assert RUN.invoke(app, ["check", "puma560", "--strict"]).exit_code == 3
    assert RUN.invoke(app, ["check", "planar3", "--strict"]).exit_code == 0


def test_eval():
    q = [0.1, -0.5, 0.3, 0.0, 0.2, 1.0]
    data = json.loads(call("eval", "puma560", "inertia_matrix", "--q", ",".join(map(str, q)), "--json"))
    assert np.allclose(data["H"], armdyn.load("puma560").inertia_matrix(q), rtol=1e-14)
    factors = json.loads(call("eval", "puma560", "inertia_factors", "--json"))
    assert np.array(factors["U"]).shape == (6, 6)
    assert "by newton_euler" in call(
        "eval", "ur5", "inverse_dynamics", "--qd", "0,1,0,0,0,pi/2", "--method", "newton_euler"
    )


def test_eval_makes_no_program_where_the_code_is_known(monkeypatch):
    armdyn.load("scara").compile("inertia_factors")
    first = call("eval", "scara", "inertia_factors", "--json")

    def made(*asked):
        raise AssertionError(f"a program for {asked[1:]} is made")

    monkeypatch.setattr("armdyn.kernels.kernel.program", made)
    monkeypatch.setattr("armdyn.kernels.kernel.compiled_program", made)
    assert call("eval", "scara", "inertia_factors", "--json") == first


def test_eval_of_a_tree(tmp_path):
    robot, q = armdyn.load("panda_hand"), [0.1, -0.5, 0.3, -1.0, 0.2, 1.0, 0.4, 0.03]
    given = ("--q", ",".join(map(str, q)), "--json")
    pose = json.loads(call("eval", "panda_hand", "pose", "--frame", "panda_leftfinger", *given))["T"]
    np.testing.assert_allclose(pose, robot.pose(q, frame="panda_leftfinger"), atol=1e-15)
    moving = ("--qd", ",".join(["1"] * 8), "--friction")
    tau = json.loads(call("eval", "panda_hand", "inverse_dynamics", *given, *moving))["tau"]
    expected = robot.inverse_dynamics(q, np.ones(8), np.zeros(8), friction=True)
    np.testing.assert_allclose(tau, expected, atol=1e-13)
    call("convert", "panda_hand", tmp_path / "hand.urdf")
    load = json.loads(call("eval", tmp_path / "hand.urdf", "gravity_load", "--floating", "--json"))["g"]
    assert load[2] == pytest.approx(9.81 * robot.mass)  # an upright base carries it all


def test_convert(tmp_path):
    call("convert", "puma560", tmp_path / "arm.toml")
    assert armdyn.load(tmp_path / "arm.toml").chain == armdyn.load("puma560").chain
    call("convert", "ur5", tmp_path / "arm.urdf", "--quiet")
    assert armdyn.load(tmp_path / "arm.urdf").n == 6


def test_parameters():
    data = json.loads(call("parameters", "puma560", "--json"))
    assert len(data["names"]) == data["rank"]["rank"] == 36
    assert "b₂" in call("parameters", "planar3", "--symbolic")
    sets = {
        which: json.loads(call("parameters", "puma560", "--set", which, "--json")) for which in ("gravity", "inertia")
    }
    gravity, inertia = (set(found["names"]) for found in sets.values())
    assert (
        len(gravity)
        < len(inertia)
        < 36
        == len(json.loads(call("parameters", "puma560", "--set", "union", "--json"))["names"])
    )
    assert {found["kind"].split(",")[0] for found in sets.values()} == {"theorem 4", "theorem 3"}
    refused = RUN.invoke(app, ["parameters", "puma560", "--set", "gravity", "--rank"])
    assert refused.exit_code
    assert "m_{" in call("parameters", "planar3", "--latex")


def test_cost_of_a_tree():
    shown = " ".join(
        call("cost", "panda_hand", "--quantity", "forward_dynamics", "--quantity", "inertia_matrix").split()
    )
    assert "composite" in shown
    assert (
        "forward_dynamics by denoc, articulated_body needs a coordinate for every joint: this robot has mimic joints"
        in shown
    )
    assert "needs a serial chain: this robot branches" in shown


def test_cost():
    rows = json.loads(call("cost", "planar3", "--json"))["costs"]
    plain = {"inertia_matrix", "bias", "inverse_dynamics", "forward_dynamics"}
    derivatives = {"inverse_dynamics_derivatives", "forward_dynamics_derivatives"}
    assert {row["quantity"] for row in rows} == plain | derivatives
    assert {row["quantity"] for row in rows if row["published"] is None} == derivatives
    assert "lin_fang_5" in call("cost", "planar3", "--quantity", "inertia_matrix")


def test_emit(tmp_path):
    files = json.loads(call("emit", "planar3", "-o", tmp_path / "c", "--quantity", "bias", "--json"))
    assert [os.path.basename(path) for path in files] == ["planar3.h", "planar3.c", "test_planar3.c", "Makefile"]
    assert all(os.path.exists(path) for path in files)


def test_simulate(tmp_path):
    data = json.loads(call("simulate", "planar3", "--duration", "0.05", "--json"))
    assert data["status"] == "finished"
    assert len(data["t"]) == 51
    call("simulate", "planar3", "--duration", "0.05", "--hold", "-o", tmp_path / "run.csv", "--quiet")
    assert (tmp_path / "run.csv").read_text().startswith("t,q1,q2,q3,qd1")
    call("simulate", "planar3", "--duration", "0.02", "-o", tmp_path / "run.html")
    page = (tmp_path / "run.html").read_text()  # the page of `Trajectory.save`
    assert page.startswith("<!doctype html>")
    assert len(page) < 1_000_000


def test_bench():
    data = json.loads(call("bench", "planar3", "--quantity", "inertia_matrix", "--batch", 64, "--seconds", 0, "--json"))
    assert {row["way"] for row in data["rows"]} == {"batch", "call"}


def test_report(tmp_path):
    out = call("report", "planar3", "-o", tmp_path / "page.html")
    assert "planar3" in out
    assert "report:" in out
    plain = (tmp_path / "page.html").read_text()
    assert plain.rstrip().endswith("</html>")
    call("report", "planar3", "--gpu", "-q", "-o", tmp_path / "falls.html")
    assert ['id="falling"' in text for text in (plain, (tmp_path / "falls.html").read_text())] == [False, True]


def test_cache():
    assert "kernels" in call("cache", "show")
    json.loads(call("cache", "show", "--json"))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("show", "puma"), "puma560"),
        (
            ("eval", "puma560", "mass_matrix"),
            "unknown quantity 'mass_matrix': armdyn calls this 'inertia_matrix'; available:",
        ),
        (
            ("eval", "puma560", "bias", "--q", "1,2"),
            "--q takes 6 numbers (waist, shoulder, elbow, wrist_roll, wrist_bend, flange), got 2",
        ),
        (("eval", "puma560", "bias", "--q", "1,x"), "'x' is not a number"),
        (("eval", "puma560", "bias", "--method", "magic"), "unknown method of bias 'magic'; available:"),
        (("convert", "puma560", "arm.step"), "expected a name that ends in .toml, .urdf or .xml"),
        (("convert", "missing.urdf", "arm.toml"), "missing.urdf"),
        (("simulate", "puma560", "--duration", "-1"), "duration must be a positive"),
        (("simulate", "puma560", "--method", "Euler"), "available: auto, RK4"),
        (("emit", "puma560", "--dtype", "half"), "available: double, float"),
    ],
)
def test_errors_are_plain(words, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = shell(*words)
    assert done.returncode == 1
    assert message in " ".join(done.stderr.split()), done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) <= 4
    assert done.stdout == ""


def test_debug_shows_the_traceback():
    assert "Traceback" in shell("--debug", "show", "puma").stderr


def test_version_and_wrong_usage():
    assert shell("--version").stdout.strip() == f"armdyn {armdyn.__version__}"
    assert shell("show").returncode == 2


def test_simulate_says_which_drives_are_saturated():
    run = ("simulate", "panda", "--duration", "0.02", "--tau")
    assert "reached their torque limit: panda_joint1\n" in call(*run, "87,0,0,0,0,0,0")
    assert "largest torque" not in call(*run, "80,0,0,0,0,0,0")


def test_angles_in_degrees():
    radians = json.loads(call("eval", "puma560", "gravity_load", "--q", "0,-pi/2,0,0,pi/4,0.5", "--json"))["g"]
    typed = json.loads(call("eval", "puma560", "gravity_load", "--q", "0,-90deg,0,0,45°,0.5rad", "--json"))["g"]
    every = ("--q", "0,-90,0,0,45,0.5rad", "--degrees")
    assert typed == radians
    assert json.loads(call("eval", "puma560", "gravity_load", *every, "--json"))["g"] == radians
    scara = json.loads(call("eval", "scara", "pose", "--q", "90,0,0.1,0", "--degrees", "--json"))["T"]
    np.testing.assert_allclose(scara, armdyn.load("scara").pose([np.pi / 2, 0, 0.1, 0]), atol=1e-15)  # 0.1 m stays
    run = ("simulate", "planar3", "--duration", "0.01", "--json", "--qd", "90,0,0", "--degrees", "--no-friction")
    assert json.loads(call(*run))["qd"][0][0] == pytest.approx(np.pi / 2)
    assert re.search(r"panda_joint2.* -101.0", call("show", "panda", "--degrees"))
    floating = (
        "eval",
        "planar3",
        "potential_energy",
        "--floating",
        "--degrees",
        "--q",
        "0,0,0,0,0,0,1,90,0,0",
        "--json",
    )
    straight = armdyn.load("planar3", floating=True).potential_energy([0, 0, 0, 0, 0, 0, 1, np.pi / 2, 0, 0])
    assert json.loads(call(*floating))["V"] == pytest.approx(straight)  # a quaternion has no degrees


def test_degrees_are_refused_for_lengths():
    error = RUN.invoke(app, ["eval", "scara", "pose", "--q", "0,0,5deg,0"]).exception
    assert "--q: quill is in m, got 5 deg" in str(error)


def test_a_position_that_looks_like_degrees_gets_a_hint():
    far = RUN.invoke(app, ["eval", "puma560", "gravity_load", "--q", "0,-90,0,0,0,0"])
    assert far.exit_code == 0
    assert "shoulder at -90 rad is far outside its limits" in " ".join(far.stderr.split())
    assert "-90deg, or --degrees" in " ".join(far.stderr.split())
    assert RUN.invoke(app, ["eval", "puma560", "gravity_load", "--q", "0,-90deg,0,0,0,0"]).stderr == ""
    assert RUN.invoke(app, ["eval", "puma560", "gravity_load", "--q", "0,3.5,0,0,0,0"]).stderr == ""


def test_check_exits_with_1_for_what_makes_results_wrong(tmp_path):
    text = (
        '<robot name="r"><link name="base"/><link name="a"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" '
        'ixy="0" ixz="0" iyz="0"/></inertial></link><link name="b"/>'
        '<joint name="j" type="revolute"><parent link="base"/><child link="a"/><axis xyz="0 0 1"/>'
        '<limit lower="-1" upper="1" effort="1" velocity="1"/></joint>'
        '<joint name="finger" type="prismatic"><parent link="a"/><child link="b"/><axis xyz="0 0 1"/>'
        '<limit lower="0" upper="1" effort="1" velocity="1"/></joint></robot>'
    )
    (tmp_path / "r.urdf").write_text(text)
    done = RUN.invoke(app, ["check", str(tmp_path / "r.urdf")])
    assert done.exit_code == 1
    assert "wrong: link 2 (finger): has neither mass nor inertia" in " ".join(done.stdout.split())
    assert RUN.invoke(app, ["check", "puma560"]).exit_code == 0  # its impossible inertias are those of the paper


def test_sweep_names_the_extra_before_it_starts(monkeypatch, tmp_path):
    import importlib.util

    from armdyn.sweeps import reductions

    true = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name in ("zarr", "pyarrow") else true(name))
    with pytest.raises(armdyn.ArmdynError, match=r'this needs zarr; install with: pip install "armdyn\[scale\]"'):
        armdyn.sweep(armdyn.load("planar3"), lambda arm, samples: 1 / 0, 10, out=tmp_path / "x.zarr")
    with pytest.raises(armdyn.ArmdynError, match="this needs pyarrow"):
        reductions.require("x.parquet")
    reductions.require(None)


def test_the_log_says_what_is_compiled_and_why(caplog):
    arm = armdyn.load("planar3").with_payload(1.0 + np.random.default_rng().uniform())  # never seen before
    with caplog.at_level("DEBUG", logger="armdyn"):
        arm.inertia_matrix(np.zeros(3))
        copy.deepcopy(arm).inertia_matrix(np.zeros(3))
    text = "\n".join(record.getMessage() for record in caplog.records)
    assert re.search(r"inertia_matrix of 3 joints: operations of the shortest programs: \w+ \d+, \w+ \d+", text)
    assert re.search(r"inertia_matrix of 3 joints: method \w+ \(fewest operations, searched now, [\d.]+ ms\)", text)
    assert re.search(r"inertia_matrix.*: from the compiler in [\d.]+ ms", text)
    assert re.search(r"inertia_matrix.*: from this process in [\d.]+ ms", text)
