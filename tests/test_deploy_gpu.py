"""CUDA and OpenCL as text, run on the CPU: folders, sine and cosine, rows that are not finite."""

from __future__ import annotations

import ctypes
import json
import shutil
import subprocess

import numpy as np
import pytest

import armdyn
from armdyn.codegen.gpu import c_like
from armdyn.codegen.gpu.order import depth_first, few_live, most_live
from armdyn.codegen.sines import ANYWHERE, FUSED
from armdyn.errors import InputError
from armdyn.graph.program import trace
from single_precision import agree

COMPILERS = {"cuda": ["c++", "-std=c++17", "-x", "c++"], "opencl": ["cc", "-std=c99"]}
DIALECTS = {"cuda": c_like.CUDA, "opencl": c_like.OPENCL}
missing = [tool for tool in ("make", "cc", "c++") if shutil.which(tool) is None]
pytestmark = pytest.mark.skipif(bool(missing), reason=f"this machine has no {' and no '.join(missing)}")
RUN = """
{linkage} void run(long count, long row, const float *x, const float *y, float *z)
{{
    {call}
}}
"""
CALLS = {
    "cuda": "one_all_launch(count, x, {nx} * row, 1, y, {ny} * row, 1, z, {nz}, 1, 0);",
    "opencl": "armdyn_threads = 3; for (armdyn_thread = 0; armdyn_thread < 3; ++armdyn_thread)\n"
    "    one_all_batch(count, x, {nx} * row, 1, y, {ny} * row, 1, z, {nz}, 1);",
}


def on_the_cpu(program, target, folder):
    """A program with two inputs as a function of arrays, by the text of a target."""
    text = c_like.source("one", {"all": program}, {"all": ""}, DIALECTS[target])
    sizes = [len(port.nodes) for port in (*program.inputs, *program.outputs)]
    call = CALLS[target].format(**dict(zip(("nx", "ny", "nz"), sizes, strict=True)))
    linkage = 'extern "C"' if target == "cuda" else ""
    path = folder / f"{target}.c"
    path.write_text(text + RUN.format(linkage=linkage, call=call))
    command = [*COMPILERS[target], "-O1", "-Wall", "-Werror", "-shared", "-fPIC", "-o", f"{path}.so", str(path), "-lm"]
    subprocess.run(command, check=True)
    run = ctypes.CDLL(f"{path}.so").run

    def function(x, y):
        z = np.full((len(x), sizes[2]), np.nan, np.float32)
        pointers = [ctypes.c_void_p(np.ascontiguousarray(a, np.float32).ctypes.data) for a in (x, y)]
        run(ctypes.c_long(len(x)), ctypes.c_long(len(y) > 1), *pointers, ctypes.c_void_p(z.ctypes.data))
        return z

    return function


@pytest.mark.parametrize("target", ["cuda", "opencl"])
def test_the_text_runs_on_the_cpu(target, tmp_path):
    wanted = ("inertia_matrix", "forward_dynamics", "pose")
    armdyn.deploy("scara", tmp_path, target, wanted)
    assert json.loads((tmp_path / "manifest.json").read_text())["test"].endswith("8 passed, 0 failed")
    test = next(tmp_path.glob("test_scara.c*"))
    head, values = test.read_text().split("armdyn_pose_expected_T[] = {\n    ", 1)
    test.write_text(f"{head}armdyn_pose_expected_T[] = {{\n    7{values}")
    done = subprocess.run(["make", "test"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode != 0
    assert "pose: 60 of 300 configurations differ" in done.stdout
    assert "6 passed, 2 failed" in done.stdout
    assert "warning" not in done.stderr


@pytest.mark.parametrize("target", ["cuda", "opencl", "wgsl"])
def test_double_precision_is_refused(target, tmp_path):
    with pytest.raises(InputError, match="is written in single precision; got dtype double"):
        armdyn.deploy("scara", tmp_path / "x", target, dtype="double")


def test_run_time_parameters_are_in_the_header(tmp_path):
    armdyn.deploy("scara", tmp_path, "cuda", ("gravity_load",), build=False)
    text = (tmp_path / "scara.cuh").read_text()
    listed = text.split("#define SCARA_PARAMETERS {")[1].split("}")[0].split(", ")
    values = [float(x.rstrip("f")) for x in listed]
    np.testing.assert_allclose(values, np.float32(armdyn.load("scara").minimal_parameters.values), rtol=1e-7)


@pytest.mark.parametrize(("target", "reduction"), [("cuda", FUSED), ("opencl", ANYWHERE)])
def test_sine_and_cosine(target, reduction, tmp_path):
    program = trace("sines", lambda x, y: [x[0].sin() + 0 * y[0], x[0].cos()], {"x": (1,), "y": (1,)}, [("z", (2,))])
    sines = on_the_cpu(program, target, tmp_path)
    rng = np.random.default_rng(0)
    near = rng.integers(-2000, 2001, 100_000) * (np.pi / 2) * (1 + 1e-7 * rng.integers(-3, 4, 100_000))
    everywhere = rng.integers(0, 2**32, 400_000, dtype=np.uint64).astype(np.uint32).view(np.float32)
    edge = np.float32(reduction.limit) * np.float32([0.999999, 1, 1.000001, -1.000001])
    for angles, ulps in ((near, 2.0), (everywhere[np.isfinite(everywhere)], 3.0), (edge, 2.0)):
        x = angles.astype(np.float32)
        got = sines(x[:, None], np.ones((len(x), 1)))
        exact = np.stack([np.sin(x.astype(float)), np.cos(x.astype(float))], -1)
        normal = np.abs(exact) > np.finfo(np.float32).tiny
        assert (np.abs(got - exact) / np.spacing(np.abs(exact).astype(np.float32)))[normal].max() < ulps


@pytest.mark.parametrize("target", ["cuda", "opencl"])
def test_what_is_not_finite_stays_in_its_row(target, tmp_path):
    program = armdyn.load("scara").bias.program
    function = on_the_cpu(program, target, tmp_path)
    q, qd = np.random.default_rng(0).uniform(-1, 1, (2, 500, 4)).astype(np.float32)
    good = function(q, qd)
    agree(program, (q, qd), good)
    np.testing.assert_array_equal(function(q, qd[:1])[0], good[0])  # one row for all
    for value in (np.nan, np.inf, -np.inf):
        q[17, 1], qd[400, 0] = value, value
        got = function(q, qd)
        changed = np.flatnonzero((got != good).any(axis=1))
        assert list(changed) == [17, 400]
        assert np.isnan(got[17]).any()


@pytest.mark.parametrize("target", ["cuda", "opencl"])
@pytest.mark.parametrize("name", ["forward_dynamics_derivatives", "inverse_dynamics_derivatives"])
def test_long_programs_run_in_parts(name, target, tmp_path, monkeypatch):
    monkeypatch.setattr(c_like, "MOST_LIVE", 10)
    armdyn.deploy("scara", tmp_path, target, (name,))  # with its own test, of 300 configurations in two storages
    assert json.loads((tmp_path / "manifest.json").read_text())["test"].endswith("4 passed, 0 failed")
    text = next(path for path in tmp_path.glob("scara.c*")).read_text()
    parts = {"forward_dynamics_derivatives": 3, "inverse_dynamics_derivatives": 2}[name]
    assert f"scara_{name}_{parts}(" in text
    assert f"{name}_{parts + 1}(" not in text
    if name.startswith("forward"):
        assert "ARMDYN_ROLLED\n    for (int column" in text


def test_derivatives_column_by_column_keep_few_values_live():
    program = armdyn.load("panda").kernel("inverse_dynamics", derivatives=("q", "qd")).program
    rows = depth_first(program, [node for port in program.outputs for node in port.nodes])
    assert most_live(few_live(program)) < 0.9 * min(most_live(program.order), most_live(rows))


def test_the_order_keeps_few_values_live():
    program = armdyn.load("panda").forward_dynamics.program
    chosen = few_live(program)
    assert {node.serial for node in chosen} == {node.serial for node in program.order}
    seen: set[int] = set()
    for node in chosen:
        assert {argument.serial for argument in node.args} <= seen
        seen.add(node.serial)
    live: set[int] = set()
    most = 0
    for k, node in enumerate(chosen):  # the slow way
        later = {argument.serial for other in chosen[k:] for argument in other.args}
        live = {serial for serial in live if serial in later} | ({node.serial} if node.op != "const" else set())
        most = max(most, len(live))
    assert most_live(chosen) == most < 0.85 * most_live(program.order)
