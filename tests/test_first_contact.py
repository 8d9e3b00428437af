"""The first ten minutes of a new user: commands and lines of Python as they are typed, and what comes first in answer.

Every case stands for a habit that somebody has. Whoever changes what is printed changes the line here, knowingly.
"""

from __future__ import annotations

import ast
import re

import numpy as np
import pytest
from typer.testing import CliRunner

import armdyn
from armdyn.cli import app

RUN = CliRunner()

# What is typed | exit code | how the answer begins (of an error: what it says)
COMMANDS = [
    ("--help", 0, "Usage: armdyn COMMAND …"),
    ("--version", 0, f"armdyn {armdyn.__version__}"),
    ("list", 0, "Catalogue name joints mass [kg]"),
    ("show ur5", 0, "ur5 6 joints (RRRRRR), 16.994 kg gravity (0, 0, -9.81) m/s²"),
    ("show panda_hand", 0, "panda_hand 8 joints (RRRRRRRP), 16.822 kg"),
    ("show puma560 --degrees", 0, "puma560 6 joints (RRRRRR), 23.450 kg"),
    ("show ur6", 1, "no arm 'ur6': no such file, and the catalogue has baxter, iiwa14"),
    ("show robot.urdf", 1, "no arm 'robot.urdf': no such file, and the catalogue has"),
    ("check ur5", 0, "no problems found"),
    ("check puma560", 0, "warning: link 1 (waist): zero mass, but an inertia"),
    ("check puma560 --strict", 3, "warning: link 1 (waist): zero mass, but an inertia"),
    ("parameters scara", 0, "scara: 8 minimal parameters of 40 (theorem 5) parameter value [SI] formula"),
    ("parameters planar3 --symbolic", 0, "planar3: 9 minimal parameters of 30"),
    ("cost scara --quantity bias", 0, "scara: M multiplications, A additions, D divisions;"),
    ("cost ur5 --quantity mass_matrix", 1, "unknown quantity 'mass_matrix': armdyn calls this 'inertia_matrix'"),
    ("eval ur5 gravity_load", 0, "gravity_load of ur5 by recursive joint g unit"),
    ("eval ur5 gravity", 1, "unknown quantity 'gravity': armdyn calls this 'gravity_load'"),
    ("eval ur5 fkine", 1, "unknown quantity 'fkine': armdyn calls this 'pose'"),
    ("eval ur5 crba", 1, "unknown quantity 'crba': armdyn calls this 'inertia_matrix'"),
    ("eval ur5 pose --q 0,-90deg,90deg,0,0,0", 0, "pose of ur5 by definition T [rotation, and m] ="),
    ("eval ur5 pose --q 0,-90,90,0,0,0 --degrees", 0, "pose of ur5 by definition"),
    ("eval ur5 inertia_matrix --q 1,2", 1, "--q takes 6 numbers (shoulder_pan_joint, shoulder_lift_joint,"),
    ("eval ur5 gravity_load --q 0,a,0,0,0,0", 1, "--q: 'a' is not a number (expected e.g. 0.1,-1.2,pi/2,-90deg)"),
    ("eval ur5 jacobian --frame tool0", 0, "jacobian of ur5 by definition J [SI] 1 2 3 4 5 6"),
    ("eval ur5 jacobian --frame nowhere", 1, "unknown frame 'nowhere'; available:"),
    ("eval panda_hand pose --frame panda_leftfinger", 0, "pose of panda_hand by definition"),
    ("eval scara inverse_dynamics --qd 1,0,0,0 --friction", 0, "inverse_dynamics of scara by"),
    ("simulate planar3 --duration 0.1", 0, "planar3 by RK4: finished; reached t = 0.1 s at t = 0.1 s joint q [rad]"),
    ("simulate planar3 --duration 0.05 --qd 90,0,0 --degrees", 0, "planar3 by RK4: finished"),
    ("simulate planar3 --duration 0.05 -o motion.csv", 0, "planar3 by RK4: finished"),
    ("simulate ur5 --dt 0.01", 2, "No such option: --dt; it is --step here."),
    ("simulate ur5 --T 2", 2, "No such option: --T; it is --duration here."),
    ("simulate ur5 --duration x", 2, "Invalid value for '--duration'"),
    ("simulat ur5", 2, "No such command 'simulat'. Did you mean 'simulate'?"),
    ("convert ur5 ur5.toml", 0, "wrote ur5.toml: ur5, 6 joints"),
    ("convert ur5 ur5.step", 1, "cannot write 'ur5.step': expected a name that ends in"),
    ("emit planar3 -o c", 0, "wrote c/planar3.h"),
    ("deploy planar3", 2, "Missing option '-o' / '--output'"),
    ("deploy planar3 -o x --target rust", 1, "unknown target 'rust'; available: c, cpp"),
    ("bound planar3", 1, "planar3 has no limit of q for joint1, joint2, joint3; give --range q:1=LOW,HIGH"),
    ("identify ur5 missing.csv", 1, "missing.csv: no such log"),
    ("identify ur5", 2, "Missing argument 'LOG'"),
    ("sweep missing.toml", 1, "missing.toml: cannot be read"),
    (
        "study puma",
        1,
        "unknown study 'puma'; available: puma-line, integrators, smoothness, linear-solvers; did you",
    ),
    ("cache show", 0, ""),
]


@pytest.mark.parametrize(("typed", "code", "begins"), COMMANDS, ids=[typed for typed, *_ in COMMANDS])
def test_a_command(typed, code, begins, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = RUN.invoke(app, typed.split(), env={"COLUMNS": "80"})
    assert result.exit_code == code, result.output + repr(result.exception)
    if code in (0, 3):
        assert " ".join(result.stdout.split()).startswith(begins)
        assert "Traceback" not in result.output
        return
    error = result.exception
    assert isinstance(error, armdyn.ArmdynError | SystemExit), repr(error)  # what `main` prints in plain words
    said = result.output if isinstance(error, SystemExit) else str(error)
    assert begins in " ".join(said.split())


# What is typed, the last line an expression | its repr (a pattern), or the error and what it says
SNIPPETS = [
    ('armdyn.load("ur5")', r"<Arm ur5: 6 joints RRRRRR, 16\.99 kg>"),
    ('armdyn.load("ur5").tool', r"Frame\(tool0, on link 6 at xyz=\(0, 0, 0\.0823\) m, rpy=\(0, -?0, 3\.14159\) rad\)"),
    ('armdyn.cost(armdyn.load("puma560"), "bias")', r"<Cost: \d+M \d+A.* as published, \d+M \d+A.* compiled>"),
    (
        'armdyn.excite(armdyn.load("planar3"), duration=4, starts=1, plane=None)',
        r"<Excitation of planar3: 1 × 4 s, 401 samples, \d+ parameters, condition number [\d.]+>",
    ),
    ("armdyn.catalogue()[:3]", r"\('baxter', 'iiwa14', 'kinova_gen3'\)"),
    ('armdyn.load("ur6")', r"FileError: no arm 'ur6': no such file, and the catalogue has baxter"),
    ('armdyn.load("ur5", tool_frame="tool0")', r"KeywordError: .* armdyn calls this (tip|tool)="),
    ('arm = armdyn.load("ur5")\narm.joint_names[1]', r"'shoulder_lift_joint'"),
    ('arm = armdyn.load("ur5")\narm.inertia_matrix([0, 0, 0, 0, 0, 0]).shape', r"\(6, 6\)"),
    ('arm = armdyn.load("ur5")\narm.gravity_load(np.zeros((1000, 6))).shape', r"\(1000, 6\)"),
    (
        'arm = armdyn.load("ur5")\narm.inertia_matrix(np.zeros(5))',
        r"InputError: .*expects q of shape \(\.\.\., 6\), got \(5,\)",
    ),
    ('arm = armdyn.load("ur5")\nbool(np.isnan(arm.gravity_load([np.nan] * 6)).all())', r"True|False"),
    ('arm = armdyn.load("ur5")\narm.mass_matrix(np.zeros(6))', r"AttributeError: .*armdyn calls this 'inertia_matrix'"),
    ('arm = armdyn.load("ur5")\narm.fkine(np.zeros(6))', r"AttributeError: .*armdyn calls this 'pose'"),
    ('arm = armdyn.load("ur5")\narm.jacob0(np.zeros(6))', r"AttributeError: .*armdyn calls this 'jacobian'"),
    ("armdyn.rnea", r"AttributeError: .*an arm has it: armdyn.load\(\.\.\.\)\.inverse_dynamics"),
    ('armdyn.simulate(armdyn.load("planar3"), dt=0.001)', r"KeywordError: .*armdyn calls this step="),
    ('armdyn.simulate(armdyn.load("planar3"), duration=0.05).status', r"'finished'"),
    ('armdyn.methods("bias")[:2]', r"\('lin_1991', 'newton_euler'\)"),
    ('str(armdyn.cost(armdyn.load("puma560"), "inertia_matrix").compiled)', r"'79M 61A'"),
    ('len(armdyn.load("puma560").minimal_parameters)', r"36"),
    ('armdyn.load("scara").with_payload(2.0)', r"<Arm scara: 4 joints RRPR, 17\.9 kg>"),
    ('armdyn.load("scara").with_payload(-1.0)', r"InputError: "),
    ("armdyn.from_dh([(0, 0.3, 0, np.pi / 2), (0, 0, 0.5, 0)])", r"<Arm arm: 2 joints RR, 0 kg>"),
    ('armdyn.identify(armdyn.load("ur5"), "missing.csv")', r"FileError: missing.csv: no such log"),
    ('arm = armdyn.load("ur5")\narm.inverse_kinematics(arm.pose([0.1, -1, 1, 0, 1, 0])).message', r"'reached within"),
    ('arm = armdyn.load("scara")\narm.save("my.toml")\narmdyn.load("my.toml") == arm', r"True"),
]


@pytest.mark.parametrize(("typed", "answer"), SNIPPETS, ids=[typed.splitlines()[-1] for typed, _ in SNIPPETS])
def test_a_snippet(typed, answer, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tree = ast.parse(typed)
    names = {"armdyn": armdyn, "np": np}
    last = tree.body.pop()
    assert isinstance(last, ast.Expr)
    try:
        exec(compile(tree, "typed", "exec"), names)
        shown = repr(eval(compile(ast.Expression(last.value), "typed", "eval"), names))
    except Exception as error:
        shown = f"{type(error).__name__}: {error}"
    assert re.match(rf"{answer}", shown), shown
