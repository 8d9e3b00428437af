"""Sine and cosine of the kernels, measured against exact values."""

from __future__ import annotations

import ctypes
import dataclasses
import math
import shutil
import subprocess

import mpmath
import numpy as np
import pytest

from armdyn.codegen.compile import compile_program
from armdyn.codegen.llvm import trig
from armdyn.codegen.sines import ANYWHERE, FUSED, LANGUAGES, AngleReduction, steps, written
from armdyn.codegen.target import baseline, host
from armdyn.graph.program import trace

PROGRAM = trace("sine_cosine", lambda x: [x[0].sin(), x[0].cos()], {"x": (1,)}, [("y", (2,))])
TARGETS = {"host": host(), "host without fma": dataclasses.replace(host(), fma=False), "any x86": baseline()}


@pytest.fixture(params=list(TARGETS), scope="module")
def sine_cosine(request):
    ufunc = compile_program(PROGRAM, TARGETS[request.param]).ufunc

    def function(x):
        with np.errstate(all="ignore"):
            return ufunc(np.asarray(x, dtype=float)[..., None])

    return function


def ulps(got: float, exact: mpmath.mpf) -> float:
    return float(abs(mpmath.mpf(float(got)) - exact) / mpmath.mpf(math.ulp(float(exact))))


def worst(function, xs) -> float:
    with mpmath.workprec(
        1300 if np.abs(xs).max() > 1e9 else 200
    ):  # the largest doubles have 1024 bits before the point
        values = function(xs)
        return max(
            max(ulps(s, mpmath.sin(mpmath.mpf(float(x)))), ulps(c, mpmath.cos(mpmath.mpf(float(x)))))
            for x, (s, c) in zip(xs, values, strict=True)
        )


RNG = np.random.default_rng(2)
SAMPLES = {
    "a turn": RNG.uniform(-math.pi, math.pi, 600),
    "all magnitudes to the limit": RNG.choice([-1.0, 1.0], 600) * 10.0 ** RNG.uniform(-25, 5, 600),
    "near multiples of a quarter turn": np.concatenate(
        [np.nextafter(k * math.pi / 2, [-np.inf, np.inf, 0]) for k in range(-63661, 63661, 601)]
    ),
    "near odd multiples of an eighth": (2 * np.arange(-31000, 31000, 151) + 1) * (math.pi / 4),
    "denormals": np.array([5e-324, -5e-324, 1e-310, -2.2e-308, 2.2250738585072014e-308]),
    "about the limit": np.array([np.nextafter(trig.LIMIT, k) for k in (0, 1e9)] + [-trig.LIMIT, trig.LIMIT]),
    "beyond": RNG.choice([-1.0, 1.0], 100) * 10.0 ** RNG.uniform(5, 308, 100),
}
# The doubles nearest to multiples of pi/2 below 1e5, by the continued fraction of pi/2: the hardest to reduce.
HARDEST = [k * math.pi / 2 for k in (7, 14, 226, 355 * 2, 710, 33215 * 1, 52174, 62389)]


@pytest.mark.parametrize("name", list(SAMPLES))
def test_within_two_ulp(sine_cosine, name):
    assert worst(sine_cosine, SAMPLES[name]) < 2.0


def test_within_two_ulp_where_the_reduction_cancels_most(sine_cosine):
    xs = np.array([np.nextafter(x, way) for x in HARDEST for way in (x, -np.inf, np.inf)])
    assert worst(sine_cosine, xs) < 2.0


def test_zero(sine_cosine):
    for zero in (0.0, -0.0):
        assert sine_cosine([zero]).tolist() == [[0.0, 1.0]]


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("lane", range(5))
def test_what_is_not_finite_gives_nan_and_touches_no_other_lane(sine_cosine, bad, lane):
    x = np.linspace(-3, 3, 5)
    expected = sine_cosine(x)
    x[lane] = bad
    got = sine_cosine(x)
    assert np.isnan(got[lane]).all()
    np.testing.assert_array_equal(np.delete(got, lane, 0), np.delete(expected, lane, 0))


def test_a_huge_angle_touches_no_other_lane(sine_cosine):
    x = np.linspace(-3, 3, 9)
    expected = sine_cosine(x)
    x[4] = 1e22
    got = sine_cosine(x)
    np.testing.assert_array_equal(np.delete(got, 4, 0), np.delete(expected, 4, 0))
    assert got[4] == pytest.approx([math.sin(1e22), math.cos(1e22)], abs=1e-15)


def test_the_same_bits_alone_and_in_a_batch(sine_cosine):
    x = np.concatenate([SAMPLES["a turn"][:21], SAMPLES["beyond"][:6]])
    np.testing.assert_array_equal(sine_cosine(x), np.stack([sine_cosine(one) for one in x]))


def test_pi_over_two_is_cut_into_parts_that_add_up():
    with mpmath.workprec(400):
        for parts, rest in ((trig.HALF_PI_FMA, 2.0**-161), (trig.HALF_PI_PLAIN, 2.0**-156)):
            assert abs(sum(map(mpmath.mpf, parts)) - mpmath.pi / 2) < rest
    for part in trig.HALF_PI_PLAIN[:3]:
        assert (part / math.ulp(part)) % 2**20 == 0  # 33 bits: times k < 2**16 it is exact


@pytest.mark.parametrize(
    ("coefficients", "exact", "claimed"),
    [
        (trig.SINE, lambda r, p: (r + r**3 * p, mpmath.sin(r)), -57.8),
        (trig.COSINE, lambda r, p: (p, mpmath.cos(r)), -63.8),
    ],
)
def test_the_polynomials_are_as_near_as_they_claim(coefficients, exact, claimed):
    with mpmath.workprec(200):
        error = mpmath.mpf(0)
        for k in range(1, 1001):
            r = mpmath.pi / 4 * k / 1000
            value, true = exact(r, sum(mpmath.mpf(c) * r ** (2 * power) for power, c in enumerate(coefficients)))
            error = max(error, abs(value / true - 1))
        assert mpmath.log(error, 2) < claimed


def test_sines_of_sines():
    program = trace("nested", lambda x: [(x[0].sin() * 3).cos() + x[0].cos()], {"x": (1,)}, [("y", (1,))])
    x = np.linspace(-4, 4, 11)
    got = compile_program(program).ufunc(x[:, None])[:, 0]
    np.testing.assert_allclose(got, np.cos(3 * np.sin(x)) + np.cos(x), rtol=0, atol=1e-15)


def angles(reduction: AngleReduction) -> np.ndarray:
    """Angles of single precision within the reduction's limit: any, small ones, and those nearest to quarter turns."""
    rng, limit = np.random.default_rng(7), reduction.limit
    quarters = np.float32(np.arange(-int(limit / 1.6), int(limit / 1.6), 7) * (math.pi / 2))
    small = 10.0 ** rng.uniform(-30, 0, 20_000) * rng.choice([-1, 1], 20_000)
    x = np.concatenate([rng.uniform(-limit, limit, 200_000), rng.uniform(-7, 7, 200_000), small, quarters])
    return x.astype(np.float32)


def single_ulps(got: np.ndarray, exact: np.ndarray) -> float:
    """The largest error; what counts is the spacing of single precision at the exact value."""
    return float(np.max(np.abs(got - exact) / np.spacing(np.abs(exact).astype(np.float32)).astype(float)))


def assigned(reduction: AngleReduction, x: np.ndarray, fused: bool) -> tuple[np.ndarray, np.ndarray]:
    """Sine and cosine by the steps, in NumPy's single precision."""

    def fma(a, b, c):
        return np.float32(np.float64(a) * b + c) if fused else a * b + c

    def turned(k, a, b):
        return np.where(k & 2, -1, 1).astype(np.float32) * np.where(k & 1, b, a)

    operations = {"mul": np.multiply, "add": np.add, "fma": fma, "nearest": np.rint, "turned": turned}
    operations |= {"whole": lambda k: k.astype(np.int32), "after": lambda k: k + 1}
    known = {"x": x}
    for step in steps(reduction):
        arguments = [known[a] if isinstance(a, str) else np.float32(a) for a in step.arguments]
        known[step.name] = operations[step.operation](*arguments)
    return known["sine"], known["cosine"]


@pytest.mark.parametrize(
    ("reduction", "fused", "claimed"), [(FUSED, True, 1.54), (ANYWHERE, True, 1.73), (ANYWHERE, False, 1.73)]
)
def test_steps_in_single_precision_are_within_two_ulp(reduction, fused, claimed):
    x = angles(reduction)
    exact = np.sin(x.astype(float)), np.cos(x.astype(float))
    for got, true in zip(assigned(reduction, x, fused), exact, strict=True):
        assert got.dtype == np.float32
        assert single_ulps(got, true) < claimed


def test_constants_of_single_precision_are_numbers_of_single_precision_and_products_are_exact():
    constants = [a for r in (FUSED, ANYWHERE) for step in steps(r) for a in step.arguments if isinstance(a, float)]
    assert all(float(np.float32(a)) == a for a in constants)
    with mpmath.workprec(200):
        for reduction, rest in ((FUSED, 2.0**-74), (ANYWHERE, 2.0**-76)):
            assert abs(sum(map(mpmath.mpf, reduction.parts)) - mpmath.pi / 2) < rest
    quarters = ANYWHERE.limit * 2 / math.pi + 1
    for part in ANYWHERE.parts[:2]:
        significand = abs(part) / 2.0 ** (math.frexp(part)[1] - 24)
        trailing = int(significand) & -int(significand)
        assert quarters * significand / trailing < 2**24


@pytest.mark.skipif(not shutil.which("cc"), reason="there is no C compiler")
@pytest.mark.parametrize("flags", [["-ffp-contract=off"], ["-O2", "-ffp-contract=fast"]], ids=" ".join)
def test_steps_as_c(tmp_path, flags):
    body = "\n".join(written(LANGUAGES["c"]))
    loop = f"for (int i = 0; i < n; ++i) {{ const float x = xs[i]; {body} s[i] = sine; c[i] = cosine; }}"
    text = f"#include <math.h>\nvoid all(int n, const float *xs, float *s, float *c) {{ {loop} }}\n"
    (tmp_path / "sines.c").write_text(text)
    library = tmp_path / "sines.so"
    command = ["cc", "-std=c99", "-shared", "-fPIC", *flags, "-o", str(library), str(tmp_path / "sines.c"), "-lm"]
    subprocess.run(command, check=True)
    x = angles(ANYWHERE)
    got = np.empty_like(x), np.empty_like(x)
    ctypes.CDLL(str(library)).all(len(x), *(ctypes.c_void_p(a.ctypes.data) for a in (x, *got)))
    for one, expected in zip(got, assigned(ANYWHERE, x, fused=True), strict=True):
        np.testing.assert_array_equal(one, expected)
