"""C for controllers: compiles without a warning, as C++ too, runs clean under sanitizers, agrees with the kernels."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import armdyn
from armdyn.errors import InputError

GOLDEN = Path(__file__).parent / "golden"
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror"]
QUANTITIES = ("inertia_matrix", "inverse_dynamics", "forward_dynamics", "pose", "jacobian")

needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="no C compiler on this machine")


def _run(command, where):
    done = subprocess.run(command, cwd=where, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _build_and_test(where):
    name = next(where.glob("test_*.c")).name
    sources = sorted(path.name for path in where.glob("*.c"))
    _run(["gcc", "-std=c99", "-O0", *STRICT, "-fsanitize=address,undefined", "-o", "t", *sources, "-lm"], where)
    assert "0 failed" in _run(["./t"], where), name


@needs_gcc
@pytest.mark.parametrize("dtype", ["double", "float"])
@pytest.mark.parametrize("parameters", ["baked", "runtime"])
@pytest.mark.parametrize("name", armdyn.catalogue())
def test_catalogue(name, dtype, parameters, tmp_path):
    wanted = QUANTITIES if name == "puma560" else ("inverse_dynamics",)
    armdyn.load(name).emit_c(tmp_path, wanted, dtype=dtype, parameters=parameters)
    _build_and_test(tmp_path)


@needs_gcc
@pytest.mark.parametrize("kinds", ["R", "P", "PR", "RPR", "RRPR", "PRRPR", "RRRPRR", "RRRRRRR", "RPRPRPRP"])
def test_generic_arms(kinds, tmp_path):
    dtype, parameters = ("double", "runtime") if len(kinds) % 2 else ("float", "baked")
    armdyn.generic_arm(kinds).emit_c(tmp_path, ("inertia_matrix", "bias"), dtype=dtype, parameters=parameters)
    _build_and_test(tmp_path)


@needs_gcc
def test_compiles_as_cpp(tmp_path):
    armdyn.load("puma560").emit_c(tmp_path, parameters="runtime", friction=True)
    _run(["g++", *STRICT, "-c", "puma560.c", "-o", "x.o"], tmp_path)


@needs_gcc
@pytest.mark.parametrize(("dtype", "kind", "tolerance"), [("double", np.float64, 1e-13), ("float", np.float32, 2e-5)])
def test_agrees_with_the_kernels(dtype, kind, tolerance, tmp_path, rng):
    arm = armdyn.load("puma560")
    arm.emit_c(tmp_path, ("inverse_dynamics", "inertia_factors"), dtype=dtype, friction=True)
    _run(["gcc", "-std=c99", "-O2", "-shared", "-fPIC", "-o", "lib.so", "puma560.c", "-lm"], tmp_path)
    library = ctypes.CDLL(str(tmp_path / "lib.so"))

    def pointer(x):
        return x.ctypes.data_as(ctypes.c_void_p)

    for q, qd, qdd in rng.uniform(-2, 2, (20, 3, 6)).astype(kind):
        tau = np.empty(6, kind)
        library.puma560_inverse_dynamics(pointer(q), pointer(qd), pointer(qdd), pointer(tau))
        truth = arm.inverse_dynamics(q, qd, qdd, friction=True)
        assert np.max(np.abs(tau - truth)) < tolerance * np.max(np.abs(truth))
        U, D = np.empty((6, 6), kind), np.empty(6, kind)
        library.puma560_inertia_factors(pointer(q), pointer(U), pointer(D))
        H = U.astype(float) @ np.diag(D.astype(float)) @ U.astype(float).T
        assert np.allclose(H, arm.inertia_matrix(q), rtol=0, atol=20 * tolerance)


@needs_gcc
@pytest.mark.parametrize("kinds", ["RPR", "RRRRRR"])
def test_derivatives(kinds, tmp_path, rng):
    arm = armdyn.generic_arm(kinds)
    quantities = ("inverse_dynamics_derivatives", "forward_dynamics_derivatives")
    arm.emit_c(tmp_path, quantities, parameters="runtime" if kinds == "RPR" else "baked")
    _build_and_test(tmp_path)
    if kinds == "RPR":
        return
    source = next(p for p in tmp_path.glob("*.c") if not p.name.startswith("test_"))
    _run(["gcc", "-std=c99", "-O1", "-shared", "-fPIC", "-o", "lib.so", source.name, "-lm"], tmp_path)
    function = getattr(ctypes.CDLL(str(tmp_path / "lib.so")), f"{source.stem}_inverse_dynamics_derivatives")
    x = rng.uniform(-2, 2, (3, arm.n))
    out = np.empty((3, arm.n, arm.n))
    function(*(a.ctypes.data_as(ctypes.c_void_p) for a in (*x, *out)))
    for ours, truth in zip(out, arm.inverse_dynamics_derivatives(*x), strict=True):
        assert np.max(np.abs(ours - truth)) < 1e-12 * np.max(np.abs(truth))


def test_runtime_parameters_follow_a_payload(tmp_path, rng):
    """The same geometry with other minimal parameters is another arm: no new code is needed."""
    arm = armdyn.load("planar3")
    heavy = arm.with_payload(0.7, (0.1, 0.0, 0.0))
    kernel = arm.kernel("inverse_dynamics", parameters="runtime")
    q, qd, qdd = rng.normal(size=(3, 10, 3))
    values = np.array([float(v) for v in heavy.minimal_parameters.values])
    assert np.allclose(kernel(q, qd, qdd, values), heavy.inverse_dynamics(q, qd, qdd), rtol=1e-12, atol=1e-12)


def test_golden_files(tmp_path):
    """The text for one small arm, to the letter; ARMDYN_UPDATE_GOLDEN=1 writes it anew."""
    arm = armdyn.load("planar3")
    arm.emit_c(tmp_path, ("inertia_matrix", "gravity_load"), parameters="runtime")
    for path in sorted(tmp_path.iterdir()):
        golden = GOLDEN / path.name
        if os.environ.get("ARMDYN_UPDATE_GOLDEN"):
            GOLDEN.mkdir(exist_ok=True)
            golden.write_text(path.read_text())
        assert path.read_text() == golden.read_text(), f"{path.name} changed; ARMDYN_UPDATE_GOLDEN=1 accepts it"


def test_bad_requests_say_what_is_available(tmp_path):
    arm = armdyn.load("planar3")
    with pytest.raises(InputError, match="unknown dtype 'half'; available: double, float"):
        arm.emit_c(tmp_path, dtype="half")
    with pytest.raises(
        InputError, match="unknown quantity 'inertia': armdyn calls this 'inertia_matrix'; available: inertia_matrix"
    ):
        arm.emit_c(tmp_path, ("inertia",))
    with pytest.raises(InputError, match="unknown parameters 'later'"):
        arm.emit_c(tmp_path, parameters="later")
    assert list(tmp_path.iterdir()) == []
