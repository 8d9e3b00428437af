"""One contract for every backend: broadcasting, casting, out=, errors, bits that do not depend on the batch."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import armdyn
from armdyn.codegen import BACKENDS, tuning
from armdyn.codegen.compile import compile_program
from armdyn.codegen.llvm.module import kernel_module
from armdyn.codegen.llvm.straight_line import contract
from armdyn.codegen.target import avx2, baseline, binding, host
from armdyn.errors import InputError
from armdyn.graph.node import Graph
from armdyn.graph.program import Port, Program, evaluate, trace
from armdyn.kernels.kernel import Kernel

ARM = armdyn.generic_arm("RRPR", seed=3)
N = ARM.n
QUANTITIES = ("inertia_matrix", "bias", "kinetic_energy", "inertia_factors", "link_poses")
TARGETS = {
    "host": host(),
    "host without fma": dataclasses.replace(host(), fma=False),
    "any x86": baseline(),
} | ({"AVX2": avx2()} if avx2() else {})


def kernel(quantity: str, backend: str) -> Kernel:
    return KERNELS.setdefault((quantity, backend), ARM.kernel(quantity, backend=backend))


KERNELS: dict[tuple[str, str], Kernel] = {}


def inputs(quantity: str, *batch: int, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.uniform(-3, 3, (*batch, *shape)) for _, shape in kernel(quantity, "python").assembly.inputs]


def outputs(result: object) -> tuple[np.ndarray, ...]:
    return result if isinstance(result, tuple) else (result,)  # type: ignore[return-value]


def same(a: object, b: object) -> None:
    for x, y in zip(outputs(a), outputs(b), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-11, atol=1e-11)


def identical(a: object, b: object) -> None:
    for x, y in zip(outputs(a), outputs(b), strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("quantity", QUANTITIES)
def test_agrees_with_the_graph_evaluated_node_by_node(quantity: str, backend: str) -> None:
    k = kernel(quantity, backend)
    arrays = inputs(quantity, 5)
    got = outputs(k(*arrays))
    for row in range(5):
        expected = evaluate(k.program, *(a[row].ravel() for a in arrays))
        for value, flat in zip(got, expected, strict=True):
            np.testing.assert_allclose(np.ravel(value[row]), flat, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("quantity", QUANTITIES)
@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 7, 8, 9, 33])
def test_the_bits_of_a_row_do_not_depend_on_its_batch(quantity: str, count: int) -> None:
    k = kernel(quantity, "llvm")
    arrays = inputs(quantity, 40)
    whole = outputs(k(*arrays))
    part = outputs(k(*(a[3 : 3 + count] for a in arrays)))
    alone = [outputs(k(*(a[row] for a in arrays))) for row in range(3, 3 + count)]
    for i, value in enumerate(part):
        np.testing.assert_array_equal(value, whole[i][3 : 3 + count])
        np.testing.assert_array_equal(value, np.stack([single[i] for single in alone]))


def test_the_bits_do_not_depend_on_the_thread() -> None:
    k = kernel("bias", "llvm")
    q, qd = inputs("bias", 20_011)
    one = k(q, qd)
    with ThreadPoolExecutor(4) as pool:
        for result in pool.map(lambda _: k(q, qd), range(8)):
            np.testing.assert_array_equal(result, one)
    for count in (2, 3, 7):
        np.testing.assert_array_equal(k(q, qd, threads=count), one)
    armdyn.set_threads(2)
    try:
        np.testing.assert_array_equal(k(q, qd), one)
    finally:
        armdyn.set_threads(1)


@pytest.mark.parametrize("quantity", QUANTITIES)
def test_threads_work_for_every_shape(quantity: str) -> None:
    k = kernel(quantity, "llvm")
    arrays = inputs(quantity, 3, 5000)
    expected = k(*arrays)
    identical(k(*arrays, threads=3), expected)
    out = tuple(np.empty_like(x) for x in outputs(expected))
    assert outputs(k(*arrays, out=out if len(out) > 1 else out[0], threads=2))[0] is out[0]
    identical(out, expected)


@pytest.mark.parametrize("count", [1, 2])
def test_one_array_is_no_place_for_several_outputs(count: int) -> None:
    (q,) = inputs("inertia_factors", 9000)
    with pytest.raises(InputError, match="returns 2 arrays, out has 1"):
        kernel("inertia_factors", "llvm")(q, out=np.empty((9000, N, N)), threads=count)


def test_threads_leave_overlapping_arrays_right() -> None:
    k = kernel("bias", "llvm")
    q, qd = inputs("bias", 20_000)
    expected = k(q, qd)
    np.testing.assert_array_equal(k(q, qd, out=qd, threads=2), expected)


@pytest.mark.parametrize("count", [0, -1, 1.5, "2", True])
def test_a_number_of_threads_is_a_whole_number_from_one_on(count: object) -> None:
    with pytest.raises(InputError, match="threads must be a positive whole number"):
        kernel("bias", "llvm")(*inputs("bias", 2), threads=count)
    with pytest.raises(InputError, match="threads must be a positive whole number"):
        armdyn.set_threads(count)  # type: ignore[arg-type]


@pytest.mark.parametrize("quantity", QUANTITIES)
@pytest.mark.parametrize("batch", [(), (0,), (1,), (7,), (2, 3), (0, 3), (3, 1, 2)])
def test_any_batch(quantity: str, backend: str, batch: tuple[int, ...]) -> None:
    k = kernel(quantity, backend)
    got = outputs(k(*inputs(quantity, *batch)))
    for value, (_, shape) in zip(got, k.assembly.outputs, strict=True):
        assert np.shape(value) == (*batch, *shape)
        assert value.dtype == float


def test_batches_broadcast(backend: str) -> None:
    k = kernel("bias", backend)
    q, qd = inputs("bias", 6)
    identical(k(q[:, None], qd[None]), np.array([[k(a, b) for b in qd] for a in q]))
    identical(k(q[0], qd), np.array([k(q[0], b) for b in qd]))


def awkward(a: np.ndarray) -> dict[str, np.ndarray]:
    """The same numbers, stored in other ways."""
    spaced = np.zeros((2 * a.shape[0], 3 * a.shape[1]))
    spaced[::2, ::3] = a
    unaligned = np.frombuffer(b"\0" + a.tobytes(), dtype=float, offset=1).reshape(a.shape)
    fixed = a.copy()
    fixed.flags.writeable = False
    return {
        "Fortran order": np.asfortranarray(a),
        "spaced": spaced[::2, ::3],
        "backwards": a[::-1, ::-1].copy()[::-1, ::-1],
        "unaligned": unaligned,
        "read-only": fixed,
        "other byte order": a.astype(">f8"),
        "matrix subclass": a.view(type("Mine", (np.ndarray,), {})),
    }


@pytest.mark.parametrize("storage", list(awkward(np.ones((2, 2)))))
def test_any_storage(backend: str, storage: str) -> None:
    k = kernel("bias", backend)
    q, qd = inputs("bias", 9)
    identical(np.asarray(k(awkward(q)[storage], qd)), k(q, qd))
    identical(np.asarray(k(awkward(q)[storage][4], qd[4])), k(q, qd)[4])
    out = awkward(np.zeros_like(q))[storage]
    if out.flags.writeable:
        assert k(q, qd, out=out) is out
        identical(np.asarray(out), k(q, qd))


@pytest.mark.parametrize("kind", [np.int32, np.int64, np.int16, np.bool_])
def test_other_numbers_are_cast(backend: str, kind: type) -> None:
    k = kernel("bias", backend)
    q = np.arange(3 * N).reshape(3, N).astype(kind)
    identical(k(q, q), k(q.astype(float), q.astype(float)))
    identical(k(q[0].tolist(), tuple(q[0].tolist())), k(q[0].astype(float), q[0].astype(float)))


def test_out_may_be_float32(backend: str) -> None:
    k = kernel("bias", backend)
    q, qd = inputs("bias", 5)
    out = np.empty((5, N), dtype=np.float32)
    k(q, qd, out=out)
    identical(out, k(q, qd).astype(np.float32))


def test_out_may_be_an_input(backend: str) -> None:
    k = kernel("bias", backend)
    q, qd = inputs("bias", 9)
    expected = k(q, qd)
    store = np.concatenate([q, np.zeros((1, N))])
    identical(k(store[:-1], qd, out=store[1:]), expected)
    identical(k(q, qd, out=q), expected)


def test_several_outputs_go_into_several_arrays(backend: str) -> None:
    k = kernel("inertia_factors", backend)
    (q,) = inputs("inertia_factors", 3)
    out = np.empty((3, N, N)), np.empty((3, N))
    result = k(q, out=out)
    assert result[0] is out[0]
    assert result[1] is out[1]
    identical(result, k(q))


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ((np.zeros(3), np.zeros(N)), rf"bias .*n = {N}.* expects q of shape \(\.\.\., {N}\), got \(3,\)"),
        ((np.zeros(N), np.zeros((2, N + 1))), rf"expects qd of shape \(\.\.\., {N}\), got \(2, {N + 1}\)"),
        ((1.0, np.zeros(N)), r"expects q of shape .* got \(\)"),
        ((np.zeros(N),), r"takes 2 arrays \(q, qd\), got 1"),
        ((np.zeros(N), np.zeros(N), np.zeros(N)), r"takes 2 arrays \(q, qd\), got 3"),
        ((np.zeros((2, N)), np.zeros((3, N))), r"do not broadcast together: q \(2,\), qd \(3,\)"),
        ((np.zeros(N, complex), np.zeros(N)), "expects q as real numbers, got complex128"),
        ((["a"] * N, np.zeros(N)), "expects q as real numbers"),
        (([[1.0], [1.0, 2.0]], np.zeros(N)), "q is not an array of numbers"),
    ],
)
def test_errors_name_quantity_and_array(backend: str, arrays: tuple[object, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        kernel("bias", backend)(*arrays)


def test_a_wrong_out_is_refused(backend: str) -> None:
    k = kernel("bias", backend)
    q, qd = inputs("bias", 3)
    with pytest.raises(InputError, match=rf"expects out .* of shape \(3, {N}\), got \(2, {N}\)"):
        k(q, qd, out=np.empty((2, N)))
    with pytest.raises(InputError, match="returns 1 arrays, out has 2"):
        k(q, qd, out=(np.empty((3, N)), np.empty((3, N))))
    with pytest.raises(InputError, match="unknown option of bias 'speed'"):
        k(q, qd, speed=3)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_stays_in_its_row(backend: str, bad: float) -> None:
    k = kernel("bias", backend)
    q, qd = inputs("bias", 11)
    expected = k(q, qd)
    q[5, 1] = bad
    got = k(q, qd)
    rest = np.arange(11) != 5
    identical(got[rest], expected[rest])
    assert np.isnan(got[5]).any()


def test_the_same_bits_on_arrays_without_order() -> None:
    k = kernel("inertia_matrix", "llvm")
    (q,) = inputs("inertia_matrix", 50)
    mixed = np.random.default_rng(0).permutation(50)
    np.testing.assert_array_equal(k(q[mixed]), k(q)[mixed])


def test_an_arm_and_its_kernels_can_be_pickled_and_copied() -> None:
    k = kernel("bias", "llvm")
    arrays = inputs("bias", 3)
    expected = k(*arrays)
    for twin in (pickle.loads(pickle.dumps(k)), copy.copy(k), copy.deepcopy(k)):
        assert repr(twin) == repr(k)
        np.testing.assert_array_equal(twin(*arrays), expected)
    _ = ARM.bias
    arm = pickle.loads(pickle.dumps(ARM))
    np.testing.assert_array_equal(arm.bias(*arrays), ARM.bias(*arrays))


def test_a_large_batch_needs_no_memory_beyond_its_output() -> None:
    k = kernel("bias", "llvm")
    q, qd = inputs("bias", 100_000)
    out = np.empty_like(q)
    k(q, qd, out=out)
    tracemalloc.start()
    try:
        k(q, qd, out=out)
        k(q[:1], qd, out=out)
        k(q, qd, out=out, threads=2)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 200_000  # the output takes 3.2 MB


def test_arrays_of_no_numbers(backend: str) -> None:
    empty = ARM.kernel("bias", backend=backend)
    with pytest.raises(InputError, match="expects q of shape"):
        empty(np.zeros((4, 0)), np.zeros((4, 0)))
    assert empty(np.zeros((0, N)), np.zeros((1, N))).shape == (0, N)


def functions(x: list[object]) -> list[object]:
    a, b, c, d = x
    products = [a * b + c, a * b - c, c - a * b, a * b + c * d, a * 3 + b, b - a * 3]  # type: ignore[operator]
    others = [a / b, (a * a + b * b).sqrt(), a.sign(), b.positive(), -a, (a + b).sin(), a.cos(), 7]  # type: ignore
    return [*products, *others, (a.sin() + b).cos(), a * b]  # type: ignore


OPERATIONS = trace("operations", functions, {"x": (4,)}, [("y", (16,))])


@pytest.mark.parametrize("target", list(TARGETS))
def test_every_operation_on_every_kind_of_processor(target: str) -> None:
    ufunc = compile_program(OPERATIONS, TARGETS[target]).ufunc
    x = np.random.default_rng(5).uniform(-3, 3, (23, 4))
    got = ufunc(x)
    for row, values in enumerate(x):
        expected = np.array(evaluate(OPERATIONS, values)[0])
        np.testing.assert_allclose(got[row], expected, rtol=1e-14, atol=1e-15)
        np.testing.assert_array_equal(ufunc(values), got[row])
    with np.errstate(invalid="ignore"):
        zero = ufunc(np.array([0.0, np.nan, 1.0, 1.0]))
    assert zero[8] == 0
    assert np.isnan(zero[9])


@pytest.mark.parametrize("limit", ["PREFETCHED_FROM", "NON_TEMPORAL_FROM"])
@pytest.mark.parametrize("size", [64, 289, 530])
def test_large_results_with_constants_have_the_same_bits(
    size: int, limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of one and of several parts, of odd and even length, some squares of which are constants."""

    def sparse(x: list[object]) -> list[object]:
        return [k // 40 if k // 20 % 2 else x[0] * (k + 2) + x[1] for k in range(size)]  # type: ignore[operator]

    program = trace("sparse", sparse, {"x": (2,)}, [("y", (size,))])
    x = np.random.default_rng(0).uniform(-3, 3, (203, 2))
    expected = np.array([sparse(list(row)) for row in x])
    monkeypatch.setattr(tuning, limit, 64)
    ufunc = compile_program(program).ufunc
    for shift in (0, 1, 2, 4):  # on pairs of numbers, beside them, on cache lines or not
        room = np.full(203 * size + 8, np.nan)
        out = room[shift : shift + 203 * size].reshape(203, size)
        ufunc(x, out=out)
        np.testing.assert_allclose(out, expected, rtol=1e-14)
        np.testing.assert_array_equal(out, np.stack([ufunc(row) for row in x]))
        assert np.isnan(room[:shift]).all()
        assert np.isnan(room[shift + 203 * size :]).all()


@pytest.mark.parametrize("limit", ["PREFETCHED_FROM", "NON_TEMPORAL_FROM"])
@pytest.mark.parametrize("shift", [0, 1, 2, 3])
@pytest.mark.parametrize(("inputs", "size"), [(2, 4), (2, 6), (2, 7), (4, 4), (5, 7)])
def test_a_large_result_has_the_same_bits(
    inputs: int, size: int, shift: int, limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def columns(x: list[object]) -> list[object]:
        return [x[0] * k + x[1] for k in range(2, 2 + size)]  # type: ignore[operator]

    program = trace("columns", columns, {"x": (inputs,)}, [("y", (size,))])
    x = np.random.default_rng(0).uniform(-3, 3, (1003, inputs))
    expected = compile_program(program).ufunc(x)
    monkeypatch.setattr(tuning, limit, 64)
    room = np.zeros(1003 * size + 3)
    out = room[shift : shift + 1003 * size].reshape(1003, size)  # on pairs of numbers, or beside them
    compile_program(program).ufunc(x, out=out)
    np.testing.assert_array_equal(out, expected)
    assert np.count_nonzero(room) == 1003 * size


def test_options_of_a_call() -> None:
    q, qd, qdd = np.random.default_rng(0).uniform(-1, 1, (3, 5, N))
    wrench = np.arange(6.0)
    k = ARM.kernel("inverse_dynamics")
    plain = k(q, qd, qdd)
    pushed = k(q, qd, qdd, tool_wrench=wrench)
    assert np.abs(pushed - plain).max() > 1e-3
    identical(k(q, qd, qdd, wrench, tool_wrench=True), pushed)
    identical(k(q, qd, qdd, tool_wrench=np.tile(wrench, (5, 1))), pushed)
    for none in (None, False):
        identical(k(q, qd, qdd, tool_wrench=none, friction=False), plain)
    identical(k(q[0], qd[0], qdd[0], tool_wrench=wrench), pushed[0])
    out = np.empty((5, N))
    assert k(q, qd, qdd, tool_wrench=wrench, out=out, threads=2) is out
    identical(out, pushed)
    assert k.variant(tool_wrench=True) is k.variant(tool_wrench=True)
    with pytest.raises(InputError, match=r"expects wrench of shape \(\.\.\., 6\), got \(3,\)"):
        k(q, qd, qdd, tool_wrench=wrench[:3])


@pytest.mark.parametrize("quantity", ["inertia_matrix", "inertia_inverse"])
@pytest.mark.parametrize(("name", "size"), [("RRPR", 10), ("panda", 28), ("baxter", 153)])
def test_packed_is_the_upper_triangle_row_by_row(name: str, size: int, quantity: str) -> None:
    if name == "baxter" and quantity == "inertia_inverse":
        return
    arm = ARM if name == "RRPR" else armdyn.load(name)
    q = np.random.default_rng(4).uniform(-1, 1, (19, arm.n))
    rows, columns = np.triu_indices(arm.n)
    for dtype in ("float64", "float32"):
        whole = arm.kernel(quantity, dtype=dtype)
        packed = whole.variant(packed=True)
        assert packed(q).shape == (19, size)
        assert packed.program.operations == whole.program.operations
        assert packed(q).tobytes() == np.ascontiguousarray(whole(q)[:, rows, columns]).tobytes()
        assert packed(q[3]).tobytes() == packed(q)[3].tobytes()


def test_packed_as_an_option() -> None:
    q, (rows, columns) = np.array([0.1, -0.4, 0.2, 0.5]), np.triu_indices(N)
    for backend in BACKENDS:
        whole = ARM.kernel("inertia_matrix", backend=backend)
        np.testing.assert_array_equal(whole(q, packed=True), whole(q)[rows, columns])
    slopes = ARM.inertia_matrix(q, derivatives=("q",))
    np.testing.assert_allclose(
        ARM.inertia_matrix(q, derivatives=("q",), packed=True), slopes[rows, columns], atol=1e-15
    )
    with pytest.raises(InputError, match="packed must be True or False, got 2"):
        ARM.inertia_matrix(q, packed=2)
    with pytest.raises(InputError, match="unknown option of gravity_load 'packed'"):
        ARM.gravity_load(q, packed=True)


def test_other_processors_get_code_too() -> None:
    binding().initialize_all_targets()
    binding().initialize_all_asmprinters()
    wide = dataclasses.replace(baseline(), cpu="x86-64-v4", lanes=8, fma=True)
    arm64 = dataclasses.replace(wide, triple="aarch64-unknown-linux-gnu", cpu="generic", lanes=2)
    for target, register in ((wide, "zmm"), (arm64, "fmla")):
        with binding().parse_assembly(kernel_module(OPERATIONS, target)) as module:
            module.verify()
            text = target.machine().emit_assembly(module)
        assert register in text


def exact_value(program: Program, values: list[Fraction]) -> list[Fraction]:
    operations = {
        "add": lambda a, b: a + b,
        "sub": lambda a, b: a - b,
        "mul": lambda a, b: a * b,
        "neg": lambda a: -a,
        "fma": lambda a, b, c: a * b + c,
    }
    at = {node.serial: v for node, v in zip(program.inputs[0].nodes, values, strict=True)}
    for node in program.order:
        if node.op == "const":
            at[node.serial] = node.value
        elif node.op != "input":
            at[node.serial] = operations[node.op](*(at[a.serial] for a in node.args))
    return [at[node.serial] for node in program.outputs[0].nodes]


@given(st.lists(st.tuples(st.sampled_from(["add", "sub", "mul"]), st.integers(0, 40), st.integers(0, 40)), max_size=40))
@settings(max_examples=60)
def test_contraction_keeps_the_value_and_never_adds_work(steps: list[tuple[str, int, int]]) -> None:
    graph = Graph()
    nodes: list[object] = [graph.input(f"x{k}") for k in range(3)]
    for op, i, j in steps:
        nodes.append(graph.make(op, nodes[i % len(nodes)], nodes[j % len(nodes)]))
    ends = tuple(node if not isinstance(node, Fraction | int) else graph.const(node) for node in nodes[-4:])
    program = Program("p", (Port("x", (3,), tuple(nodes[:3])),), (Port("y", (4,), (*ends, *ends)[:4]),))  # type: ignore
    contracted = contract(program)
    values = [Fraction(3, 7), Fraction(-5, 11), Fraction(2, 3)]
    assert exact_value(contracted, values) == exact_value(program, values)

    def work(p: Program) -> int:
        return sum(node.op in ("add", "sub", "mul", "fma") for node in p.order)

    assert work(contracted) <= work(program)


def test_contraction_takes_a_product_that_only_sums_use() -> None:
    program = trace("p", lambda x: [x[0] * x[1] + x[2], x[2] - x[0] * x[1]], {"x": (3,)}, [("y", (2,))])
    ops = sorted(node.op for node in contract(program).order)
    assert ops.count("fma") == 2
    assert "mul" not in ops
    kept = trace("p", lambda x: [x[0] * x[1] + x[2], x[0] * x[1]], {"x": (3,)}, [("y", (2,))])
    assert "fma" not in [node.op for node in contract(kept).order]
