"""What is said about rounding errors holds for the C code that is written, and is not far from what happens."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from typer.testing import CliRunner

import armdyn
from armdyn.algebra.interval import FORMATS, Interval, Rounded
from armdyn.errors import InputError
from armdyn.graph.program import interpret, trace
from armdyn.kernels.rounding import Analysis, largest_errors

needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="no C compiler on this machine")
KINDS = {"float": np.float32, "double": np.float64}


def computed(arm, quantity, dtype, where, inputs):
    """The C code's results for rows of inputs, compiled as the header asks for."""
    arm.emit_c(where, (quantity,), dtype=dtype)
    name = next(p.stem for p in where.glob("*.c") if not p.name.startswith("test_"))
    command = ["gcc", "-std=c99", "-O2", "-ffp-contract=off", "-shared", "-fPIC", "-o", "lib.so", f"{name}.c", "-lm"]
    subprocess.run(command, cwd=where, check=True)
    function = getattr(ctypes.CDLL(str(where / "lib.so")), f"{name}_{quantity}")
    rows = [np.ascontiguousarray(x) for x in inputs]
    out = np.empty_like(rows[0])
    size = rows[0].strides[0]
    for k in range(len(out)):
        function(*(ctypes.c_void_p(x.ctypes.data + k * size) for x in (*rows, out)))
    return out


def exactly(program, inputs):
    """The program in 40 digits at one configuration."""
    import mpmath

    with mpmath.workdps(40):
        functions = {
            "add": lambda a, b: a + b,
            "sub": lambda a, b: a - b,
            "mul": lambda a, b: a * b,
            "neg": lambda a: -a,
            "sin": mpmath.sin,
            "cos": mpmath.cos,
        }
        given = [[mpmath.mpf(float(x)) for x in row] for row in inputs]
        constant = lambda x: mpmath.mpf(x.numerator) / x.denominator  # noqa: E731
        return interpret(program, functions, constant, *given)[0]


@needs_gcc
@pytest.mark.parametrize(
    ("name", "quantity", "factor"), [("ur5", "gravity_load", 30), ("puma560", "inverse_dynamics", 100)]
)
def test_the_float_code_stays_within_its_bound(name, quantity, factor, tmp_path, rng):
    arm = armdyn.load(name)
    small = {"q": np.tile([-0.8, 0.8], (arm.n, 1))} if quantity == "inverse_dynamics" else {}
    found = armdyn.rounding_error(arm, quantity, **small, qd=np.tile([-1.0, 1.0], (arm.n, 1)), boxes=2000)
    inputs = [rng.uniform(box[:, 0], box[:, 1], (20_000, arm.n)).astype(np.float32) for box in found.ranges.values()]
    truth = arm.kernel(quantity)(*(x.astype(float) for x in inputs))  # off by 1e-9 of what is bounded
    off = np.abs(computed(arm, quantity, "float", tmp_path, inputs) - truth).max(axis=0)
    assert (off <= found.bound).all()
    assert (found.bound[off > 0] <= factor * off[off > 0]).all(), found.bound / off


@needs_gcc
def test_the_double_code_stays_within_its_bound(tmp_path, rng):
    arm = armdyn.load("puma560")
    small = np.tile([-0.8, 0.8], (6, 1))
    found = armdyn.rounding_error(arm, "inverse_dynamics", q=small, qd=small, dtype="double", boxes=500)
    inputs = [rng.uniform(box[:, 0], box[:, 1], (60, 6)) for box in found.ranges.values()]
    results = computed(arm, "inverse_dynamics", "double", tmp_path, inputs)
    program = arm.kernel("inverse_dynamics").program
    exact = [exactly(program, rows) for rows in zip(*inputs, strict=True)]
    off = np.array(
        [[abs(float(a - b)) for a, b in zip(r, e, strict=True)] for r, e in zip(results, exact, strict=True)]
    )
    assert (off <= found.bound).all()
    assert (off.max(axis=0) > 0).all()
    assert found.bound.max() < 1e-11


def test_a_coarser_format_or_library_is_noticed():
    arm = armdyn.load("planar3")
    q = np.tile([-1.0, 1.0], (3, 1))
    double, single, poor = (
        armdyn.rounding_error(arm, "gravity_load", q=q, dtype=dtype, trig_ulps=ulps, boxes=50).bound
        for dtype, ulps in (("double", 2), ("float", 2), ("float", 50))
    )
    assert np.allclose(single / double, 2.0**29, rtol=0.2)
    assert (poor > 3 * single).all()


def test_a_planted_error_in_the_bound_is_caught(rng):
    """Without the sine's own error, or with half a unit per operation, results escape."""
    program = trace("f", lambda q: [q[0].sin() + q[0].sin() * q[1]], {"q": (2,)}, [("f", (1,))])
    points = rng.uniform(0.5, 1.5, (200_000, 2)).astype(np.float32)
    functions = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "neg": np.negative, "sin": np.sin}
    value = interpret(program, functions, np.float32, list(points.T))[0][0]
    truth = interpret(program, functions, float, list(points.T.astype(float)))[0][0]
    off = np.abs(value - truth).max()

    def bound(**changes):
        analysis = Analysis(program, replace(FORMATS["float"], **changes), np.array([[0.5, 1.5]] * 2))
        return largest_errors(analysis, 2, 500)[0]

    assert off <= bound(trig_ulps=Fraction(1))
    assert off > bound(trig_ulps=Fraction(0), unit=Fraction(1, 2**26))


def test_the_pair_of_interval_and_error_holds_exact_results(rng):
    single = FORMATS["float"]
    for _ in range(300):
        x, y, c = (np.float32(v) for v in rng.uniform(-2, 2, 3))
        constant = Fraction(int(rng.integers(1, 99)), 100)
        a, b = (Rounded(Interval(float(v)), 0, single) for v in (x, y))
        found = (a * b + Rounded.constant(constant, single)) * a - b
        exact = (Fraction(float(x)) * Fraction(float(y)) + constant) * Fraction(float(x)) - Fraction(float(y))
        result = (x * y + np.float32(float(constant))) * x - y
        assert abs(Fraction(float(result)) - exact) <= Fraction(float(found.bound)), c


def test_what_divides_has_no_bound(tmp_path):
    arm = armdyn.load("planar3")
    q = np.tile([-1.0, 1.0], (3, 1))
    with pytest.raises(InputError, match="inertia_inverse_composite divides"):
        armdyn.rounding_error(arm, "inertia_inverse", q=q)
    with pytest.raises(InputError, match="unknown dtype 'half'; available: float, double"):
        armdyn.rounding_error(arm, "gravity_load", q=q, dtype="half")
    with pytest.raises(InputError, match=r"trig_ulps must be at least 0\.5"):
        armdyn.rounding_error(arm, "gravity_load", q=q, trig_ulps=0)
    with pytest.raises(InputError, match=r"no limit of q .*give q="):
        armdyn.rounding_error(arm, "gravity_load")


def test_the_header_says_it(tmp_path):
    from armdyn.cli import app

    command = ["emit", "ur5", "-o", str(tmp_path), "--dtype", "float", "--error-bound"]
    command += ["--quantity", "gravity_load", "--quantity", "forward_dynamics", "--range", "q:2=-1,1"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    header = (tmp_path / "ur5.h").read_text()
    assert "-ffp-contract=off" in header
    assert "sinf and cosf are off by at most 2 units" in header
    assert re.search(r"Rounding error: no bound. forward_dynamics\w* divides", header)
    assert "-1..1" in header
    numbers = re.search(r"Rounding error of g at most, entry by entry:\n \*   (.*)\n", header)
    assert numbers is not None
    written = np.array([float(x) for x in numbers[1].split()])
    arm = armdyn.load("ur5")
    limits = arm.limits
    limits[1] = -1, 1
    found = armdyn.rounding_error(arm, "gravity_load", q=limits).bound
    assert (written >= found).all()
    assert np.allclose(written, found, rtol=0.01)
    wrong = CliRunner().invoke(app, ["emit", "ur5", "-o", str(tmp_path), "--wasm", "--error-bound"])
    assert "C headers" in str(wrong.exception)
