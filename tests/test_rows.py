"""From rows to rows in plain LLVM IR, with AVX-512: the bits of the way by columns."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import armdyn
from armdyn.codegen.compile import compile_program
from armdyn.codegen.llvm.module import straight_line
from armdyn.codegen.llvm.plain import PlainCode
from armdyn.codegen.target import host
from armdyn.graph.program import trace
from random_programs import INPUTS, RECIPES, program_of

pytestmark = pytest.mark.skipif(host().lanes != 8, reason="this processor has no AVX-512")


def has_rows(program, uniform=()):
    return straight_line(program, host(), uniform).rows_to_rows() is not None


def both(program, uniform=()):
    """The program from rows to rows, and by way of columns."""
    assert has_rows(program, uniform)
    rows = compile_program(program, uniform=uniform)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(PlainCode, "rows_to_rows", lambda self: None)
        return rows, compile_program(program, uniform=uniform)


def agree(rows, columns, *x):
    got, wanted = rows(*x), columns(*x)
    pairs = zip(got, wanted, strict=True) if isinstance(got, tuple) else [(got, wanted)]
    for a, b in pairs:
        np.testing.assert_array_equal(a, b)


@settings(max_examples=25)
@given(recipe=RECIPES, seed=st.integers(0, 2**32 - 1))
def test_any_program(recipe, seed):
    program = program_of(recipe)
    if not has_rows(program):
        return
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2, 2, (43, INPUTS)) * 10.0 ** rng.integers(-3, 6, (43, 1))
    x[rng.integers(0, 43), rng.integers(0, INPUTS)] = rng.choice([np.nan, np.inf, -np.inf, 1e300, 1e5, -0.0, 5e-324])
    agree(*both(program), x)


@pytest.mark.parametrize("kinds", ["RR", "RPRRRR", "RRRRRRRR"])
@pytest.mark.parametrize("quantity", ["inertia_matrix", "inverse_dynamics", "kinetic_energy", "inertia_factors"])
def test_quantities_of_small_and_large_arms(kinds, quantity):
    """Fewer numbers per row than lanes, exactly as many, and more."""
    kernel = getattr(armdyn.generic_arm(kinds, seed=4), quantity)
    rng = np.random.default_rng(1)
    x = [rng.uniform(-3, 3, (61, *shape)) for _, shape in kernel.assembly.inputs]
    x[0][7, 0], x[0][30] = np.nan, 1e7
    agree(*both(kernel.program), *x)


def test_run_time_parameters_of_a_batch_and_of_each_row():
    arm = armdyn.generic_arm("RPRR", seed=1)
    program = arm.kernel("bias", parameters="runtime").program
    rows, columns = both(program, ("parameters",))
    rng = np.random.default_rng(2)
    x = [rng.uniform(-3, 3, (40, *port.shape)) for port in program.inputs[:-1]]
    values = arm.minimal_parameters.values * rng.uniform(0.9, 1.1, (40, len(arm.minimal_parameters)))
    agree(rows, columns, *x, values)
    agree(rows, columns, *x, values[0])
    np.testing.assert_array_equal(rows(*x, values[0])[3], rows(*(one[3] for one in x), values[0]))


@pytest.mark.parametrize("shift", [0, 8, 64, -64, 128, -8])
def test_a_result_on_its_input(shift):
    n = 24
    program = trace("turned", lambda x: [x[k] * x[(k + 8) % n] for k in range(n)], {"x": (n,)}, [("y", (n,))])
    before = np.random.default_rng(3).uniform(-2, 2, 40 * n)
    results = []
    for kernel in both(program):
        memory = before.copy()
        first = memory.ctypes.data + 160
        arguments, sizes, steps = np.array([first, first + shift]), np.array([32, n]), np.array([8 * n, 8 * n, 8, 8])
        loop = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)(kernel.addresses["loop"])
        loop(arguments.ctypes.data, sizes.ctypes.data, steps.ctypes.data, None)
        results.append(memory)
    np.testing.assert_array_equal(*results)


def test_long_programs_and_angles_of_any_size_go_by_columns():
    products = trace("products", lambda x: [(x[0] * x[1]).sin(), *x], {"x": (4,)}, [("y", (5,))])
    nested = trace("nested", lambda x: [x[0].sin().cos(), *x], {"x": (4,)}, [("y", (5,))])
    many = trace("many", lambda x: [x[0] * k + x[1] for k in range(2, 80)], {"x": (4,)}, [("y", (78,))])
    assert not any(map(has_rows, (products, nested, many)))
