"""Straight-line code for AVX2: the same bits as LLVM's, in any order, under any register pressure.

Processors with AVX-512 run it here too, though kernels get 8 lanes of plain LLVM IR there.
"""

from __future__ import annotations

import ctypes
import dataclasses
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import armdyn
from armdyn.codegen import avx2, registers
from armdyn.codegen.avx2 import Avx2Code
from armdyn.codegen.compile import compile_program
from armdyn.codegen.llvm.module import straight_line
from armdyn.codegen.llvm.plain import PlainCode
from armdyn.codegen.registers import Allocation, Instruction, Memory, Register, list_schedule
from armdyn.codegen.target import avx2 as this_avx2
from armdyn.graph.program import evaluate, trace
from random_programs import INPUTS, RECIPES, program_of

TARGET = this_avx2()
RUNTIME = ("parameters",)
runs_avx2 = pytest.mark.skipif(TARGET is None, reason="this processor has no AVX2 with fused multiply-adds")


def compiled(program):
    return compile_program(program, TARGET, RUNTIME)


def by_llvm(program, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr("armdyn.codegen.llvm.module.Avx2Code", PlainCode)
        return compiled(program)


def every_operation(x):
    a, b, c, d = x
    products = [a * b + c, a * b - c, c - a * b, a * b + c * d, a * 3 + b, b - a * 3, a * a + a, b - b * b]
    signs = [-a, -(a * b) - c, -(a + b) * c, (-a) * b, a.sign(), (a * b).sign(), b.positive(), (a - b).positive()]
    others = [a / b, 1 / c, a / 3, (a * a + b * b).sqrt(), (a + b).sin(), a.cos(), a.sin() * b.cos(), 7, c]
    others += [(2 * a - 3).sin(), (c + Fraction(1, 2)).cos()]
    return [*products, *signs, *others]


@runs_avx2
def test_every_operation(monkeypatch):
    program = trace("operations", every_operation, {"x": (4,)}, [("y", (27,))])
    assert isinstance(straight_line(program, TARGET), Avx2Code)
    x = np.random.default_rng(5).uniform(-3, 3, (23, 4))
    x[3], x[4, 0], x[5, 1], x[6] = 0.0, np.nan, np.inf, [1e6, -2e9, 3e22, 1e300]
    got = compiled(program)(x)
    np.testing.assert_array_equal(got, by_llvm(program, monkeypatch)(x))
    for values, row in zip(x[7:], got[7:], strict=True):
        np.testing.assert_allclose(row, evaluate(program, values)[0], rtol=1e-14, atol=1e-15)


@runs_avx2
@pytest.mark.parametrize("kinds", ["R", "P", "RPR", "RRRRRR"])
@pytest.mark.parametrize("quantity", ["forward_dynamics", "inverse_dynamics_derivatives", "inertia_factors", "pose"])
def test_the_same_bits_as_llvm(kinds, quantity, monkeypatch):
    kernel = getattr(armdyn.generic_arm(kinds), quantity)
    x = [np.random.default_rng(k).uniform(-3, 3, (9, *shape)) for k, (_, shape) in enumerate(kernel.assembly.inputs)]
    ours, theirs = compiled(kernel.program)(*x), by_llvm(kernel.program, monkeypatch)(*x)
    pairs = zip(ours, theirs, strict=True) if isinstance(ours, tuple) else [(ours, theirs)]
    for a, b in pairs:
        np.testing.assert_array_equal(a, b)


@runs_avx2
@settings(max_examples=60)
@given(recipe=RECIPES, count=st.integers(4, 16))
def test_any_program_with_few_registers(recipe, count):
    """Four registers are enough for anything: three arguments and a result."""
    program = program_of(recipe)
    x = np.random.default_rng(1).uniform(-2, 2, (5, INPUTS))
    wanted = compiled(program)(x)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(registers, "REGISTERS", count)
        np.testing.assert_array_equal(compiled(program)(x), wanted)


@st.composite
def codes(draw):
    size = draw(st.integers(1, 60))
    kinds = [("vmulpd", 2, (0, 1)), ("vsubpd", 2, (1,)), ("vfmadd{}pd", 3, (0, 1, 2)), ("vsqrtpd", 1, (0,))]
    instructions = []
    for k in range(size):
        operation, arity, from_memory = draw(st.sampled_from(kinds))
        values = [*range(3), *(one.value for one in instructions)]
        arguments = tuple(draw(st.sampled_from(values)) for _ in range(arity))
        instructions.append(Instruction(3 + k, operation, arguments, from_memory))
    return instructions


@settings(max_examples=200)
@given(codes())
def test_an_order_keeps_every_instruction_behind_its_arguments(code):
    result = list_schedule(code)
    assert sorted(one.value for one in result) == [one.value for one in code]
    there = set(range(3))
    for one in result:
        assert there.issuperset(one.arguments)
        there.add(one.value)


@settings(max_examples=200)
@given(codes(), st.integers(4, 16))
def test_the_lines_compute_what_the_instructions_say(code, count):
    """Lines are followed on names, so that a register or a slot used too early or for two values shows."""
    homes = {k: Memory("in", 32 * k) for k in range(3)}
    last = {one.value: Memory("out", 32 * k) for k, one in enumerate(code[-3:])}
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(registers, "REGISTERS", count)
        lines = Allocation(code, homes, last).lines
    memory = {place: value for value, place in homes.items()}
    held = {}
    pending = list(code)

    def read(operand):
        return held[operand] if isinstance(operand, Register) else memory[operand]

    for operation, operands in lines:
        *sources, target = operands
        if operation == registers.MOVE:
            value = read(sources[0])
            (held if isinstance(target, Register) else memory).__setitem__(target, value)
            continue
        one = pending.pop(0)
        values = [read(operand) for operand in sources]
        if one.fused:
            old = held[target]
            form = operation.removeprefix("vfmadd").removesuffix("pd")
            second, third = values[1], values[0]
            a, b, c = {"231": (second, third, old), "213": (second, old, third), "132": (old, third, second)}[form]
            assert sorted((a, b)) == sorted(one.arguments[:2])
            assert c == one.arguments[2]
        elif operation == "vmulpd":
            assert sorted(values) == sorted(one.arguments)
        else:
            assert values[::-1] == list(one.arguments)
        assert sum(isinstance(operand, Memory) for operand in sources) <= 1
        held[target] = one.value
    assert not pending
    assert all(memory[place] == value for value, place in last.items())


def test_a_value_with_no_instruction_is_refused():
    program = program_of(([("s", 0, 1)], [0]))
    with pytest.raises(ValueError, match="no instruction for sin"):
        avx2.block_code(program.order, {program.inputs[0].nodes[0].serial: Memory("in", 0)}, {})


@runs_avx2
def test_other_processors_are_left_to_llvm():
    program = program_of(([("+", 0, 1)], [0]))
    assert isinstance(straight_line(program, TARGET), Avx2Code)
    for other in ({"fma": False}, {"lanes": 8}, {"features": "+avx,+fma"}, {"triple": "aarch64-unknown-linux-gnu"}):
        assert isinstance(straight_line(program, dataclasses.replace(TARGET, **other)), PlainCode)


def in_columns(program, monkeypatch):
    """The same program for AVX2, without the code from rows to rows."""
    with monkeypatch.context() as patched:
        patched.setattr(Avx2Code, "rows_to_rows", lambda self: None)
        return compiled(program)


def has_rows(program):
    return straight_line(program, TARGET).rows_to_rows() is not None


@runs_avx2
@settings(max_examples=60)
@given(recipe=RECIPES, seed=st.integers(0, 2**32 - 1))
def test_rows_to_rows_give_the_bits_of_columns(recipe, seed):
    steps, wanted = recipe
    program = program_of((steps, [*wanted, *range(4)]))
    assert has_rows(program)
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2, 2, (23, INPUTS)) * 10.0 ** rng.integers(-3, 6, (23, 1))
    x[rng.integers(0, 23), rng.integers(0, INPUTS)] = rng.choice([np.nan, np.inf, -np.inf, 1e300, 1e5, -0.0, 5e-324])
    with pytest.MonkeyPatch.context() as patched:
        np.testing.assert_array_equal(compiled(program)(x), in_columns(program, patched)(x))


@runs_avx2
@pytest.mark.parametrize("spread", [1, 1e-4, 1e-10])
@pytest.mark.parametrize("size", [1e5, 0.99999e5, 5e4, 4.9999e4])
def test_large_angles_give_the_bits_of_columns(size, spread, monkeypatch):
    """As far as an angle may go here, and half as far if something is added to it."""
    plain = trace("plain", lambda x: [a.sin() for a in x], {"x": (4,)}, [("y", (4,))])
    moved = trace("moved", lambda x: [(a + 3).cos() - (2 - b).sin() for a, b in zip(x, x[1:] + x[:1], strict=True)],
                  {"x": (4,)}, [("y", (4,))])  # fmt: skip
    x = size + np.random.default_rng(2).uniform(-2, 2, (40, 4)) * spread
    x[::3] *= -1
    for program in (plain, moved):
        assert has_rows(program)
        got = compiled(program)(x)
        np.testing.assert_array_equal(got, in_columns(program, monkeypatch)(x))
        np.testing.assert_array_equal(got, by_llvm(program, monkeypatch)(x))


@runs_avx2
def test_angles_that_may_be_any_size_go_by_columns():
    products = trace("products", lambda x: [(x[0] * x[1]).sin(), *x], {"x": (4,)}, [("y", (5,))])
    roots = trace("roots", lambda x: [x[0].sqrt().cos(), *x], {"x": (4,)}, [("y", (5,))])
    few = trace("few", lambda x: [x[0] * x[1]], {"x": (4,)}, [("y", (1,))])
    assert not any(map(has_rows, (products, roots, few)))


def one_by_one(code):
    """An order in which each row is done before the next is begun."""
    maker = {one.value: one for one in code}
    used = {argument for one in code for argument in one.arguments}
    order = {}

    def make(value):
        if value in maker and value not in order:
            for argument in maker[value].arguments:
                make(argument)
            order[value] = maker[value]

    for one in code:
        if one.value not in used:
            make(one.value)
    return list(order.values())


@runs_avx2
@pytest.mark.parametrize("shift", [0, 8, 32, -32, 64, -8])
def test_a_result_on_its_input(shift, monkeypatch):
    """NumPy copies such arrays first; whoever calls the loop itself may not."""
    n = 24
    program = trace("turned", lambda x: [x[k] * x[(k + 8) % n] for k in range(n)], {"x": (n,)}, [("y", (n,))])
    assert has_rows(program)
    monkeypatch.setattr(avx2, "list_schedule", one_by_one)
    before = np.random.default_rng(3).uniform(-2, 2, 20 * n)
    results = []
    for kernel in (compiled(program), in_columns(program, monkeypatch)):
        memory = before.copy()
        first = memory.ctypes.data + 160
        arguments, sizes, steps = np.array([first, first + shift]), np.array([16, n]), np.array([8 * n, 8 * n, 8, 8])
        loop = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)(kernel.addresses["loop"])
        loop(arguments.ctypes.data, sizes.ctypes.data, steps.ctypes.data, None)
        results.append(memory)
    np.testing.assert_array_equal(*results)
    assert not np.array_equal(results[0], before)


@runs_avx2
@pytest.mark.parametrize("kinds", ["RRRR", "RPRRR", "PRRRRR"])
@pytest.mark.parametrize("quantity", ["inertia_matrix", "inverse_dynamics", "forward_dynamics", "bias"])
def test_parameters_for_a_whole_batch_give_the_bits_of_parameters_for_each_row(kinds, quantity):
    arm = armdyn.generic_arm(kinds, seed=1)
    program = arm.kernel(quantity, parameters="runtime").program
    *others, parameters = program.inputs
    assert straight_line(program, TARGET, RUNTIME).rows_to_rows().uniform == (len(others),)
    kernel = compiled(program)
    rng, count = np.random.default_rng(4), 62
    x = [rng.uniform(-3, 3, (count, *port.shape)) for port in others]
    x[0][5, 0], x[0][9, 1], x[0][14] = np.nan, 3e7, 1e5
    values = arm.minimal_parameters.values * rng.uniform(0.9, 1.1, (count, *parameters.shape))
    rows = list(zip(*x, strict=True))
    together = kernel(*x, values[0])
    np.testing.assert_array_equal(together, [kernel(*row, values[0]) for row in rows])
    assert np.isfinite(np.delete(together, 5, axis=0)).all()
    each = [kernel(*row, own) for row, own in zip(rows, values, strict=True)]
    np.testing.assert_array_equal(kernel(*x, values), each)


def test_a_kernel_says_which_inputs_are_uniform(monkeypatch):
    """What is shared by a batch is the kernel's to say; a program's input of the same name is nothing special."""
    seen = []
    monkeypatch.setattr(
        "armdyn.kernels.kernel.load_or_compile", lambda asked, make, uniform, number: seen.append(uniform)
    )
    armdyn.generic_arm("RR").kernel("bias", parameters="runtime")._compile()
    assert seen == [(*RUNTIME, "geometry")]
    assert straight_line(armdyn.generic_arm("RR").kernel("bias", parameters="runtime").program, TARGET).uniform == ()
