"""Long programs: split into functions, one lane wide in single calls, solved column by column."""

from __future__ import annotations

import random
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import armdyn
from armdyn.arm import Arm
from armdyn.codegen import fastcall, tuning
from armdyn.codegen.compile import Compiled, compile_program
from armdyn.codegen.llvm.module import single_call, straight_line
from armdyn.codegen.target import avx2, baseline, host
from armdyn.graph.program import ColumnProgram, Program, evaluate, evaluate_columns, trace
from armdyn.kernels.kernel import Kernel
from armdyn.programs.assemble import Options
from armdyn.programs.program import compiled_program, derivatives_by_columns, program
from armdyn.programs.search import BUDGET
from random_trees import TreeKind, pinocchio_model, random_tree
from tree_judge import random_motion

TARGETS = {"host": host(), "any x86": baseline()} | ({"AVX2": avx2()} if avx2() else {})
WRT = ("q", "qd", "tau")
KINDS = {
    "fixed": TreeKind(8, rotors=True),
    "floating": TreeKind(4, floating=True),
    "mimic": TreeKind(8, mimic=0.3),
    "floating with mimic joints": TreeKind(5, mimic=0.3, floating=True, rotors=True),
    "chain": TreeKind(5, fork=0.0),
    "one joint": TreeKind(1, prismatic=0.0, special=0.0),
}


def by_columns(monkeypatch, chain, options=Options(derivatives=WRT)) -> ColumnProgram:
    """The derivatives of forward dynamics by columns, however short they are."""
    monkeypatch.setattr("armdyn.programs.program.BUDGET", replace(BUDGET, written_out=0))
    made = derivatives_by_columns(chain, "forward_dynamics", options)
    assert made is not None
    return made


def motions(chain, count, seed=0):
    rng = np.random.default_rng(seed)
    each = [random_motion(chain, rng) for _ in range(count)]
    return [np.array(x) for x in zip(*each, strict=True)]


def called_singly(chain, made: Compiled) -> Kernel:
    """A kernel whose single calls go to this machine code."""
    kernel = Kernel(chain, "forward_dynamics", "auto", options=Options(derivatives=WRT))
    kernel._compiled = made
    fastcall.attach(kernel, made.addresses["entry"], made.code)
    return kernel


def relative(a, b) -> float:
    return float(np.max(np.abs(np.asarray(a) - np.asarray(b))) / max(1.0, np.max(np.abs(b))))


@pytest.mark.parametrize("kind", list(KINDS))
def test_columns_agree_with_the_program_written_out(kind, monkeypatch):
    chain = random_tree(KINDS[kind], 3)
    made = by_columns(monkeypatch, chain)
    whole = program(chain, "forward_dynamics", "composite", Options(derivatives=WRT))
    assert [(p.name, p.shape) for p in made.outputs] == [(p.name, p.shape) for p in whole.outputs]
    for x in zip(*motions(chain, 3), strict=True):
        values = [list(map(float, one)) for one in x]
        for ours, theirs in zip(evaluate_columns(made, *values), evaluate(whole, *values), strict=True):
            assert relative(ours, theirs) < 1e-10


@pytest.mark.parametrize(
    ("kind", "target"),
    [("one joint", "any x86"), ("fixed", "host"), *(("floating with mimic joints", t) for t in TARGETS)],
)
def test_machine_code_by_columns_has_the_same_bits_in_every_batch(kind, target, monkeypatch):
    chain = random_tree(KINDS[kind], 5)
    made = by_columns(monkeypatch, chain)
    x = motions(chain, 19)
    monkeypatch.setattr(tuning, "LONGEST_WIDE_SINGLE", 100)
    compiled = compile_program(made, TARGETS[target])
    kernel, whole = called_singly(chain, compiled), compiled(*x)
    for row in range(19):
        values = [one[row] for one in x]
        expected = evaluate_columns(made, *([float(v) for v in one] for one in values))
        for got, alone, single, true in zip(whole, compiled(*values), kernel(*values), expected, strict=True):
            np.testing.assert_array_equal(got[row], alone)
            np.testing.assert_array_equal(got[row], single)
            assert relative(got[row].ravel(), true) < 1e-10
    for size in (0, 1, 7, 8, 9):
        for got, of_all in zip(compiled(*(one[:size] for one in x)), whole, strict=True):
            np.testing.assert_array_equal(got, of_all[:size])


@pytest.mark.skipif(avx2() is None, reason="this processor has no AVX2")
def test_columns_have_the_same_bits_on_every_processor_that_fuses(monkeypatch):
    chain = random_tree(TreeKind(11, prismatic=0.0), 4)
    made, x = by_columns(monkeypatch, chain, Options(derivatives=("qd",))), motions(chain, 5)
    expected = compile_program(made, avx2())(*x)
    for target in (host(), replace(avx2(), lanes=2)):
        np.testing.assert_array_equal(compile_program(made, target)(*x), expected)


def test_columns_go_into_any_storage(monkeypatch):
    chain = random_tree(KINDS["floating"], 1)
    compiled = compile_program(by_columns(monkeypatch, chain))
    kernel, x, n = called_singly(chain, compiled), motions(chain, 21), chain.nv
    expected = kernel(*x)
    outs = {
        "Fortran": [np.asfortranarray(np.zeros((21, n, n))) for _ in WRT],
        "transposed": [np.zeros((21, n, n)).swapaxes(1, 2) for _ in WRT],
        "strided": [np.zeros((42, n, n))[::2] for _ in WRT],
        "reversed": [np.zeros((21, n, n))[::-1] for _ in WRT],
    }
    for out in outs.values():
        kernel(*x, out=tuple(out))
        for got, true in zip(out, expected, strict=True):
            np.testing.assert_array_equal(got, true)
    for got, true in zip(kernel(*(one[::-1][::-1] for one in map(np.asfortranarray, x))), expected, strict=True):
        np.testing.assert_array_equal(got, true)
    for got, true in zip(kernel(*x, threads=3), expected, strict=True):
        np.testing.assert_array_equal(got, true)
    singles = [x[0].astype(np.float32), *x[1:]]  # mixed: cast to double precision
    wide = kernel(*(one.astype(float) for one in singles))
    halves = tuple(np.zeros((21, n, n), np.float32) for _ in WRT)
    kernel(*singles, out=halves)
    for got, rounded, true in zip(kernel(*singles), halves, wide, strict=True):
        np.testing.assert_array_equal(got, true)
        np.testing.assert_array_equal(rounded, true.astype(np.float32))


@pytest.mark.parametrize("joints", [7, 8])  # n² odd and even
def test_large_results_by_columns_have_the_same_bits(joints, monkeypatch):
    chain = random_tree(TreeKind(joints), 2)
    made = by_columns(monkeypatch, chain, Options(derivatives=("qd",)))
    x, n = motions(chain, 37), chain.nv
    expected = compile_program(made)(*x)
    monkeypatch.setattr(tuning, "NON_TEMPORAL_FROM", 64)
    compiled = compile_program(made)
    for shift, count in ((shift, count) for shift in range(9) for count in (1, 2, 37)):
        room = np.full(count * n * n + 24, np.nan)
        first = shift + (-room.ctypes.data // 8) % 8
        out = room[first : first + count * n * n].reshape(count, n, n)
        compiled(*(one[:count] for one in x), out=out)
        np.testing.assert_array_equal(out, expected[:count])
        assert np.isnan(room[:first]).all()
        assert np.isnan(room[first + count * n * n :]).all()


def test_what_is_not_finite_stays_in_its_row(monkeypatch):
    chain = random_tree(KINDS["fixed"], 5)
    compiled, x = compile_program(by_columns(monkeypatch, chain)), motions(chain, 11)
    expected = compiled(*x)
    x[0][4, 2], x[2][7, 1] = np.nan, np.inf
    for got, true in zip(compiled(*x), expected, strict=True):
        rest = np.arange(11) != 4
        assert not np.isfinite(got[4]).all()
        np.testing.assert_array_equal(got[rest & (np.arange(11) != 7)], true[rest & (np.arange(11) != 7)])


def test_a_result_with_fewer_columns_than_a_vector(monkeypatch):
    def head(x):
        return [x[0] + 2, x[1]], [[x[2], 0, 1], [x[1], x[0], 0]]

    def column(shared, right):
        return [shared[0] * right[0] + shared[1] * right[1], right[1] - shared[0] * right[0]]

    whole = ColumnProgram(
        "few",
        trace("few", head, {"x": (3,)}, [("shared", (2,)), ("y", (2, 3))]),
        trace("few_column", column, {"shared": (2,), "right": (2,)}, [("column", (2,))]),
    )
    x = np.random.default_rng(0).uniform(-1, 1, (13, 3))
    expected = [evaluate_columns(whole, list(map(float, row)))[0] for row in x]
    for target in TARGETS.values():
        np.testing.assert_allclose(compile_program(whole, target)(x).reshape(13, 6), expected, rtol=1e-14, atol=1e-15)


def test_only_long_programs_go_by_columns():
    short = armdyn.load("panda")
    assert isinstance(compiled_program(short.chain, "forward_dynamics", "composite", Options(derivatives=WRT)), Program)


def test_a_large_robot_agrees_with_pinocchio():
    pin = pytest.importorskip("pinocchio", reason="Pinocchio, which this compares with, is not installed")
    chain = random_tree(TreeKind(17, fork=0.1, prismatic=0.0, floating=True), 11)
    robot = Arm("large", chain)
    kernel = robot.kernel("forward_dynamics", derivatives=WRT)
    assert isinstance(kernel.compiled_program, ColumnProgram)
    model = pinocchio_model(chain)
    data = model.createData()
    q, qd, tau = motions(chain, 3)
    batch = kernel(q, qd, tau)
    for row in range(3):
        pin.computeABADerivatives(model, data, q[row], qd[row], tau[row])
        inverse = np.triu(data.Minv) + np.triu(data.Minv, 1).T
        for ours, theirs in zip(batch, (data.ddq_dq, data.ddq_dv, inverse), strict=True):
            assert relative(ours[row], theirs) < 1e-9
        for ours, alone in zip(batch, kernel(q[row], qd[row], tau[row]), strict=True):
            np.testing.assert_array_equal(ours[row], alone)


@pytest.mark.parametrize("target", list(TARGETS))
def test_split_programs_have_the_bits_of_whole_ones(target, monkeypatch):
    """Results that are made, inputs, sines, constants, and used again; angles made of other angles."""
    rng = random.Random(7)

    def function(x):
        values = [*x, *(one.sin() for one in x), (x[0].cos() + x[1]).sin()]
        for _ in range(400):
            a, b = rng.sample(values, 2)
            values.append(rng.choice([lambda a, b: a * b / 3, lambda a, b: a - b, lambda a, b: a + b])(a, b))
        return [*values[::7], 4, x[1]]

    outputs = len(range(0, 409, 7)) + 2
    made = trace("random", function, {"x": (4,)}, [("y", (outputs,))])
    x = np.random.default_rng(2).uniform(-2, 2, (19, 4))
    x[3, 1] = 1e7  # beyond the polynomials of the sines
    whole = compile_program(made, TARGETS[target])(x)
    for name, value in {"LONGEST_FUNCTION": 20, "NODES_PER_FUNCTION": 30, "LONGEST_WIDE_SINGLE": 20}.items():
        monkeypatch.setattr(tuning, name, value)
    assert (single_call(straight_line(made, TARGETS[target])) is not None) == (TARGETS[target].lanes == 8)
    compiled = compile_program(made, TARGETS[target])
    np.testing.assert_array_equal(compiled(x), whole)
    kernel = called_singly(armdyn.generic_arm("RRRR").chain, compiled)
    np.testing.assert_array_equal(np.stack([kernel(row) for row in x]), whole)


OUTER = """
import threading
import numpy as np
from armdyn.codegen.compile import compile_program
from armdyn.graph.program import trace

size = 60
ports = {"q": (size,)}, [("h", (size, size))]
made = compile_program(trace("outer", lambda q: [[a * b for b in q] for a in q], *ports))
q = np.random.default_rng(0).normal(size=(20, size))
results = []
threading.stack_size(192 * 1024)
thread = threading.Thread(target=lambda: results.extend([made(q), made(q[3])]))
thread.start()
thread.join()
expected = q[:, :, None] * q[:, None, :]
assert np.array_equal(results[0], expected) and np.array_equal(results[1], expected[3])
"""


def test_large_arrays_are_not_on_the_stack():
    # 460 KiB of arrays per block with eight lanes, half as much with four, in a thread whose stack is 192 KiB.
    done = subprocess.run([sys.executable, "-X", "faulthandler", "-c", OUTER], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("target", TARGETS)
def test_arrays_on_the_heap_give_the_same_bits(target, monkeypatch):
    arm = armdyn.load("panda")
    for options in (Options(), Options(derivatives=("q",))):
        made = program(arm.chain, "forward_dynamics", "composite", options)
        with_stack = compile_program(made, TARGETS[target])
        monkeypatch.setattr(tuning, "LARGEST_FRAME", 0)
        with_heap = compile_program(made, TARGETS[target])
        monkeypatch.undo()
        x = motions(arm.chain, 21)
        for ours, theirs in zip(np.atleast_1d(with_heap(*x)), np.atleast_1d(with_stack(*x)), strict=True):
            assert np.array_equal(ours, theirs)
