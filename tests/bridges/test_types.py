"""What mypy, basedpyright and jedi see: right calls pass, wrong ones are found, names are completed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import armdyn

SOURCE = Path(armdyn.__file__).parent.parent
RIGHT = """
import numpy as np

import armdyn

arm = armdyn.load("ur5")
q = np.zeros(arm.n)
H = arm.inertia_matrix(q)
tau = arm.inverse_dynamics(q=q, qd=q, qdd=q)
J = arm.jacobian(q, frame="tool0", axes="local")
kernel = arm.kernel("bias", backend="numpy")
b = kernel(q, q)
names: tuple[str, ...] = arm.joint_names + arm.frame_names
motion = armdyn.simulate(arm, q0=q, duration=0.1)
motion.animate()
simulator = armdyn.Simulator(arm, step=1e-3)
simulator.step(q, 10)
same: bool = armdyn.load("ur5") == arm.with_payload(1.0, (0, 0, 0.1)).without_payload(1.0, (0, 0, 0.1))
keys: tuple[str, ...] = armdyn.methods("bias")
"""
WRONG = """
import armdyn

arm = armdyn.load("ur5")
arm.inertia_matrx([0.0] * 6)  # a name that an arm does not have
armdyn.load(snap="none")  # no path, and no number
armdyn.Simulator(arm, step="1 ms")  # no number
armdyn.simulate(arm, durration=1.0)  # a word that it does not know
arm.with_payload("heavy")  # no number
name: int = arm.name  # text
"""


def wrong_lines(text: str) -> set[int]:
    """The lines with a remark, which are those with an error."""
    return {k for k, line in enumerate(text.splitlines(), 1) if "#" in line}


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    right, wrong = tmp_path / "right.py", tmp_path / "wrong.py"
    right.write_text(RIGHT)
    wrong.write_text(WRONG)
    return right, wrong


def test_mypy(files, tmp_path):
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--cache-dir", str(tmp_path / "cache")]
    (tmp_path / "mypy.ini").write_text("[mypy]\n")
    command += ["--config-file", str(tmp_path / "mypy.ini"), "--follow-imports", "silent"]
    found = {}
    for file in files:
        done = subprocess.run([*command, str(file)], capture_output=True, text=True, env={"MYPYPATH": str(SOURCE)})
        found[file.stem] = {int(line) for line in re.findall(rf"{file.name}:(\d+): error", done.stdout)}
        assert done.stderr == ""
    assert found == {"right": set(), "wrong": wrong_lines(WRONG)}


def test_basedpyright(files):
    pytest.importorskip("basedpyright", reason="basedpyright is not installed")
    settings = files[0].parent / "pyrightconfig.json"
    settings.write_text(f'{{"extraPaths": ["{SOURCE}"], "typeCheckingMode": "standard"}}')
    command = [sys.executable, "-m", "basedpyright", "--project", str(settings), "--pythonpath", sys.executable]
    done = subprocess.run(command, capture_output=True, text=True)
    found = {
        name: {int(line) for line in re.findall(rf"{name}\.py:(\d+):\d+ - error", done.stdout)}
        for name in ("right", "wrong")
    }
    assert found == {"right": set(), "wrong": wrong_lines(WRONG)}, done.stdout


COMPLETIONS = [
    *[("armdyn.", name) for name in (
        "load", "simulate", "Simulator", "Builder", "identify", "time_optimal", "compare")],
    *[("arm = armdyn.load('ur5')\narm.", name) for name in (
        "inertia_matrix", "inverse_dynamics", "pose_error", "held_dynamics", "joint_names", "with_payload", "poses",
        "frame_names", "minimal_parameters", "kernel")],
    ("armdyn.load('ur5').kernel('bias').", "casadi"),
    ("armdyn.simulate(armdyn.load('ur5')).", "animate"),
    ("armdyn.Simulator(armdyn.load('ur5')).", "restore"),
]  # fmt: skip


@pytest.mark.parametrize(("code", "name"), COMPLETIONS)
def test_completion(code, name, tmp_path_factory):
    jedi = pytest.importorskip("jedi", reason="jedi is not installed")
    jedi.settings.cache_directory = str(tmp_path_factory.getbasetemp() / "jedi")  # of this process alone
    project = jedi.Project(SOURCE, added_sys_path=[str(SOURCE)])
    script = jedi.Script(f"import armdyn\n{code}", project=project)
    assert name in [found.name for found in script.complete()]
