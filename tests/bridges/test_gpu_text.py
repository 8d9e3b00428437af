"""CUDA through nvcc, OpenCL on PoCL, WGSL through wgpu: the folders of `armdyn deploy`, where the tools are."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import armdyn

nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="this machine has no nvcc")
DERIVATIVES = ("inverse_dynamics_derivatives", "forward_dynamics_derivatives")
LARGEST = ("ur5", "panda")  # a six-joint arm, and the seven-joint arm with the longest programs but one


def test_opencl_runs_on_pocl(tmp_path):
    if not Path("/usr/include/CL/cl.h").exists() or not list(Path("/").glob("etc/OpenCL/vendors/*.icd")):
        pytest.skip("this machine has no OpenCL headers or no driver")
    wanted = ("forward_dynamics", "jacobian")
    armdyn.deploy("panda_hand", tmp_path, "opencl", wanted)
    done = subprocess.run(["make", "test-device"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^on \w", done.stdout, re.MULTILINE)
    assert "6 passed, 0 failed" in done.stdout
    text = (tmp_path / "panda_hand.cl").read_text()
    (tmp_path / "panda_hand.cl").write_text(
        text.replace("out_J[0 * out_J_entry] = ", "out_J[0 * out_J_entry] = 1.0f + ")
    )
    done = subprocess.run(["make", "test-device"], cwd=tmp_path, capture_output=True, text=True)
    assert "jacobian: 300 of 300 configurations differ" in done.stdout


def test_wgsl_runs_through_wgpu(tmp_path):
    pytest.importorskip("wgpu")
    if not armdyn.gpu.devices():
        pytest.skip("no graphics device")
    armdyn.deploy("scara", tmp_path, "wgsl", ("inertia_matrix", "forward_dynamics"))
    assert json.loads((tmp_path / "manifest.json").read_text())["test"].endswith("3 passed, 0 failed")


REGISTERS = Path(__file__).parents[1] / "golden" / "registers.json"


@nvcc
@pytest.mark.parametrize("arm", LARGEST)
def test_nothing_is_spilled(arm, tmp_path):
    wanted = ("inertia_matrix", "inverse_dynamics", "forward_dynamics", "jacobian", *DERIVATIVES)
    armdyn.deploy(arm, tmp_path, "cuda", wanted, parameters="baked", friction=False, build=False)
    done = subprocess.run(["make", "resources"], cwd=tmp_path, capture_output=True, text=True, check=True)
    rows = re.findall(rf"{arm}_(\w+)_batch +(\d+) registers +(\d+) bytes spilled", done.stdout)
    assert {name for name, _, _ in rows} == set(wanted)
    assert {spilled for _, _, spilled in rows} == {"0"}
    found = {name: int(registers) for name, registers, _ in rows}
    known = json.loads(REGISTERS.read_text()) if REGISTERS.exists() else {}
    if os.environ.get("ARMDYN_UPDATE_GOLDEN"):
        REGISTERS.write_text(json.dumps({**known, arm: found}, indent=1, sort_keys=True) + "\n")
        return
    version = re.search(r"release (\S+),", subprocess.run(["nvcc", "--version"], capture_output=True, text=True).stdout)
    if version and version[1] == known["nvcc"]:  # another compiler gives other figures
        grown = {name: (known[arm][name], now) for name, now in found.items() if now > known[arm][name]}
        assert not grown, f"registers before and now, which may only fall: {grown}"


@nvcc
def test_the_test_program_compiles(tmp_path):
    armdyn.deploy("scara", tmp_path, "cuda", ("inertia_matrix",), build=False)
    subprocess.run(["nvcc", "-arch=sm_90", "-c", "-o", "test.o", "test_scara.cu"], cwd=tmp_path, check=True)
