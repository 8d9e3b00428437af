"""Single precision: float32 in, float32 out, the same bits alone and in any batch, on every kind of processor."""

from __future__ import annotations

import dataclasses
import pickle
from fractions import Fraction

import numpy as np
import pytest

import armdyn
from armdyn.codegen.compile import compile_program
from armdyn.codegen.llvm.ir import single
from armdyn.codegen.target import avx2, baseline, host
from armdyn.errors import InputError
from armdyn.graph.program import trace
from armdyn.programs.assemble import Options
from random_trees import TreeKind, random_tree
from test_long_programs import by_columns, motions
from test_trig import FUSED, angles, single_ulps

ARM = armdyn.load("puma560")
TARGETS = {"host": host(), "host without fma": dataclasses.replace(host(), fma=False), "any x86": baseline()}
TARGETS |= {"AVX2": avx2()} if avx2() else {}
QUANTITIES = ("inertia_matrix", "inverse_dynamics", "forward_dynamics", "kinetic_energy", "inertia_factors", "pose")
EPSILON = 2.0**-24


def outputs(result: object) -> tuple[np.ndarray, ...]:
    return result if isinstance(result, tuple) else (result,)


def arrays(kernel: armdyn.Kernel, *batch: int, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.uniform(-3, 3, (*batch, *shape)).astype(np.float32) for _, shape in kernel.assembly.inputs]


def near(got: object, exact: object, factor: float = 40.0) -> None:
    """Equal up to some roundings of the largest entry."""
    for a, b in zip(outputs(got), outputs(exact), strict=True):
        assert a.dtype == np.float32
        np.testing.assert_allclose(a, b, rtol=0, atol=factor * EPSILON * np.abs(b).max())


@pytest.mark.parametrize("target", list(TARGETS))
def test_sine_and_cosine_are_within_two_ulp(target):
    program = trace("sine_cosine", lambda x: [x[0].sin(), x[0].cos()], {"x": (1,)}, [("y", (2,))])
    ufunc = compile_program(program, TARGETS[target].of("float")).ufunc
    x = np.concatenate([angles(FUSED), np.float32([1e5, -1e5, 1.2e5, 1e6, 3e7, -1e8, 3e9, -1e30, 3e38, 1e-40])])
    found = ufunc(x[:, None])
    for got, exact in zip(found.T, (np.sin(x.astype(float)), np.cos(x.astype(float))), strict=True):
        assert got.dtype == np.float32
        assert single_ulps(got, exact) < 1.6  # 0.5 beyond the limit, by the C library in double precision
    np.testing.assert_array_equal(found[:33], np.stack([ufunc(one[None]) for one in x[:33]]))
    with np.errstate(all="ignore"):
        assert np.isnan(ufunc(np.float32([[np.nan], [np.inf], [-np.inf]]))).all()
    assert ufunc(np.float32([0.0])).tolist() == [0.0, 1.0]


@pytest.mark.parametrize("target", list(TARGETS))
@pytest.mark.parametrize("quantity", QUANTITIES)
def test_programs_on_every_kind_of_processor(quantity, target):
    kernel = getattr(ARM, quantity)
    made = compile_program(kernel.program, TARGETS[target].of("float"))
    x = arrays(kernel, 37)
    whole = made(*x)
    near(whole, kernel(*(one.astype(float) for one in x)), 200.0)
    for start, stop in ((0, 1), (3, 5), (5, 21), (2, 35)):
        for part, all_rows in zip(outputs(made(*(one[start:stop] for one in x))), outputs(whole), strict=True):
            np.testing.assert_array_equal(part, all_rows[start:stop])


@pytest.mark.parametrize("quantity", QUANTITIES)
def test_same_bits_alone_in_small_and_large_batches_strided_and_on_threads(quantity):
    kernel = getattr(ARM, quantity)
    x = arrays(kernel, 5003)
    whole = outputs(kernel(*x))
    for rows in (0, slice(0, 1), slice(7, 15), slice(1, 65), slice(0, 5003, 3)):
        for part, all_rows in zip(outputs(kernel(*(one[rows] for one in x))), whole, strict=True):
            np.testing.assert_array_equal(part, all_rows[rows])
    ways = [kernel(*x, threads=2), kernel(*map(np.asfortranarray, x)), kernel.variant(dtype="float32")(*x)]
    out = tuple(np.empty_like(one) for one in whole)
    kernel(*x, out=out if len(out) > 1 else out[0])
    for way in (*ways, out):
        for a, b in zip(outputs(way), whole, strict=True):
            assert a.dtype == np.float32
            np.testing.assert_array_equal(a, b)


def test_large_batches_beyond_the_cache_have_the_same_bits():
    q = arrays(ARM.inertia_matrix, 200_000)[0]
    whole = ARM.inertia_matrix(q)  # 29 MB: written with non-temporal stores
    np.testing.assert_array_equal(whole[-77:], ARM.inertia_matrix(q[-77:]))
    np.testing.assert_array_equal(whole[100_000:100_077], ARM.inertia_matrix(q[100_000:100_077]))


@pytest.mark.parametrize("backend", ["llvm", "numpy", "python"])
def test_types_are_promoted_as_by_numpy(backend):
    kernel = ARM.kernel("bias", backend=backend)
    q = arrays(kernel, 3)[0]
    for first in (np.float32, np.float16, np.float64, np.int16, np.int64):
        for second in (np.float32, np.float64, np.float16, np.int16):
            expected = np.add(q.astype(first), q.astype(second)).dtype
            if not np.issubdtype(expected, np.floating):
                expected = np.dtype(float)  # integers are computed in double precision
            found = kernel(q.astype(first), q.astype(second))
            assert found.dtype == max(expected, np.dtype(np.float32)), (first, second)
    assert kernel(q.tolist(), q.tolist()).dtype == np.float64
    assert kernel(q, q.tolist()).dtype == np.float64


def test_precision_may_be_chosen():
    q = arrays(ARM.inertia_matrix, 4)[0]
    chosen = ARM.kernel("inertia_matrix", dtype="float32")
    np.testing.assert_array_equal(chosen(q.astype(float)), ARM.inertia_matrix(q))
    np.testing.assert_array_equal(chosen(q.astype(float).tolist()), ARM.inertia_matrix(q))
    assert pickle.loads(pickle.dumps(chosen))(q.astype(float)).dtype == np.float32
    assert chosen.variant(parameters="runtime").dtype == "float32"
    wide = ARM.inertia_matrix(q, dtype=np.float64)
    np.testing.assert_array_equal(wide, ARM.inertia_matrix(q.astype(float)))
    assert wide.dtype == np.float64
    with pytest.raises(InputError, match="unknown dtype 'float16'; available: float32, float64"):
        ARM.kernel("bias", dtype=np.float16)
    with pytest.raises(InputError, match=r"expects q of shape \(\.\.\., 6\), got \(4, 5\)"):
        ARM.inertia_matrix(q[:, :5])


def test_derivatives_runtime_parameters_and_options_have_the_precision_of_their_inputs():
    q = arrays(ARM.bias, 20)[0]
    values = np.array(ARM.minimal_parameters.values, np.float32)
    near(ARM.bias(q, q, parameters=values), ARM.bias(q.astype(float), q.astype(float)), 400.0)
    assert ARM.bias(q, q, parameters=values.astype(float)).dtype == np.float64
    for got, exact in zip(
        ARM.inverse_dynamics_derivatives(q, q, q), ARM.inverse_dynamics_derivatives(*[q.astype(float)] * 3), strict=True
    ):
        near(got, exact, 200.0)


@pytest.mark.parametrize("target", list(TARGETS))
@pytest.mark.parametrize(("joints", "wrt"), [(7, ("qd", "tau")), (17, ("tau",))])
def test_programs_by_columns(joints, wrt, target, monkeypatch):
    chain = random_tree(TreeKind(joints), 2)
    made = by_columns(monkeypatch, chain, Options(derivatives=wrt))
    x = motions(chain, 19)
    narrow = [one.astype(np.float32) for one in x]
    compiled = compile_program(made, TARGETS[target].of("float"))
    whole = outputs(compiled(*narrow))
    exact = outputs(compile_program(made)(*(one.astype(float) for one in narrow)))
    for got, true, alone in zip(whole, exact, outputs(compiled(*(one[3:4] for one in narrow))), strict=True):
        assert got.dtype == np.float32
        assert np.linalg.norm(got - true) < 1e-4 * np.linalg.norm(true)
        np.testing.assert_array_equal(got[3:4], alone)


def test_constants_are_rounded_once():
    between = Fraction(float(np.float32(1.5))) + Fraction(1, 2**24)  # half way to the next float
    assert single(between + Fraction(1, 2**80)) == np.nextafter(np.float32(1.5), np.float32(2))
    assert np.float32(float(between + Fraction(1, 2**80))) == np.float32(1.5)  # what rounding twice would give
    rng = np.random.default_rng(3)
    for x in [*rng.uniform(-1e30, 1e30, 50), *10.0 ** rng.uniform(-46, 39, 50), 0.0, 1e39, -1e39, 2.0**-149, 3e-46]:
        with np.errstate(over="ignore"):
            assert single(float(x)) == float(np.float32(x))
