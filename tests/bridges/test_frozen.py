"""A program frozen with PyInstaller gives what Python gives, without an interpreter or files of this machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

pytest.importorskip("PyInstaller", reason="PyInstaller is not installed")
pytest.importorskip("mujoco")

PROGRAM = """
import json
import sys

import numpy as np

import armdyn

arm = armdyn.load("ur5")
q = np.full(6, 0.3)
run = armdyn.simulate(arm, q0=q, duration=0.02, step=1e-3)
own = armdyn.load(sys.argv[1])
found = [arm.inertia_matrix(q), run.q[-1], own.inertia_matrix(np.full(own.n, 0.2))]
frozen = getattr(sys, "frozen", False)
print(json.dumps({"numbers": [x.tolist() for x in found], "notes": own.notes, "frozen": frozen}))
"""
MODEL = """<mujoco model="two"><worldbody><body name="a"><joint name="j" axis="0 1 0"/>
<geom type="capsule" size="0.05" fromto="0 0 0 0.5 0 0"/><body name="b" pos="0.5 0 0"><joint name="k" axis="0 1 0"/>
<geom type="capsule" size="0.05" fromto="0 0 0 0.4 0 0"/></body></body></worldbody></mujoco>"""
# What SciPy, MuJoCo and NumPy import only where it is installed: a plain environment has none of it.
ABSENT = (
    *("torch", "jax", "jaxlib", "cupy", "dask", "distributed", "xarray", "sparse", "pandas", "matplotlib", "numba"),
    *("IPython", "tkinter", "PIL", "pytest", "setuptools", "sphinx", "glfw", "OpenGL", "ndonnx", "casadi", "sympy"),
)


def hooks() -> list[str]:
    """The folders that the entry point names, by which PyInstaller finds them in an installed package."""
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    module, name = project["entry-points"]["pyinstaller40"]["hook-dirs"].split(":")
    return getattr(import_module(module), name)()


def answer(*command: str, folder: Path) -> dict:
    """What the program prints, without this environment's modules and with a cache of its own."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    environment = {**kept, "ARMDYN_CACHE": str(folder / "cache")}
    run = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment, check=False)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


@pytest.mark.timeout(900)  # PyInstaller reads all of SciPy
def test_a_frozen_program_gives_the_same_bits(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "two.xml").write_text(MODEL)
    options = [f"--exclude-module={name}" for name in ABSENT]
    options += [f"--additional-hooks-dir={folder}" for folder in hooks()]
    build = [sys.executable, "-m", "PyInstaller", "--noconfirm", "--log-level=ERROR", *options, "program.py"]
    made = subprocess.run(build, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    frozen = answer(str(tmp_path / "dist" / "program" / "program"), "two.xml", folder=tmp_path)
    plain = answer(sys.executable, "program.py", "two.xml", folder=tmp_path)
    assert (frozen["frozen"], plain["frozen"]) == (True, False)
    assert frozen["numbers"] == plain["numbers"]
    assert plain["notes"] == []
    assert len(frozen["notes"]) == 1
    assert "compiled in this process" in frozen["notes"][0]
    kept = list((tmp_path / "cache").glob("*"))
    assert kept, "the frozen program kept no kernel, which takes its source"
