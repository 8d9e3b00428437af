"""One configuration a call: the same answers as the gufunc, and nothing lost, kept or broken on the way."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import pickle
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest

import armdyn
from armdyn.codegen import fastcall
from armdyn.codegen.fastcall import KERNEL
from armdyn.errors import InputError
from armdyn.kernels.kernel import Kernel

ARM = armdyn.generic_arm("RPRR", seed=1)
N = ARM.n
QUANTITIES = ("inertia_matrix", "bias", "kinetic_energy", "inertia_factors", "link_poses", "inverse_dynamics")


def outputs(result):
    return result if isinstance(result, tuple) else (result,)


def made(quantity):
    kernel = ARM.kernel(quantity)
    arrays = [np.random.default_rng(0).uniform(-3, 3, shape) for _, shape in kernel.assembly.inputs]
    assert kernel.compiled
    return kernel, arrays


def entry(kernel):
    return ctypes.c_void_p.from_address(id(kernel) + KERNEL["vectorcall"]).value


def test_this_interpreter_takes_the_fast_way():
    kernel, _ = made("bias")
    assert fastcall.supported(Kernel)
    assert entry(kernel)


@pytest.mark.parametrize("quantity", QUANTITIES)
def test_same_bits_type_and_shape_as_the_gufunc(quantity):
    kernel, arrays = made(quantity)
    fast, general = outputs(kernel(*arrays)), outputs(kernel.compiled.ufunc(*arrays))
    for a, b in zip(fast, general, strict=True):
        assert type(a) is type(b)
        assert (a.shape, a.dtype, a.flags.c_contiguous, a.flags.owndata) == (b.shape, b.dtype, True, b.flags.owndata)
        np.testing.assert_array_equal(a, b)
    assert not np.isscalar(fast[0]) or quantity == "kinetic_energy"


def test_the_fast_way_is_taken_only_for_plain_arrays():
    kernel, (q, qd) = made("bias")
    seen = []

    class Watched(Kernel):
        def __call__(self, *arrays, **keywords):
            seen.append(arrays)
            return super().__call__(*arrays, **keywords)

    watched = Watched(ARM.chain, "bias", kernel.method)
    watched(q, qd)
    seen.clear()
    fastcall.attach(watched, kernel.compiled.addresses["entry"], kernel.compiled.code)
    expected = kernel.compiled.ufunc(q, qd)
    np.testing.assert_array_equal(watched(q, qd), expected)
    assert not seen
    fixed = q.copy()
    fixed.flags.writeable = False
    plain = [
        fixed,
        np.repeat(q, 2)[::2],
        q[::-1].copy()[::-1],
        np.tile(q, (3, 1)).T[:, 1],
        pickle.loads(pickle.dumps(q)),
        pickle.loads(pickle.dumps(q)) + 0.0,
        q.astype("<f8"),
    ]
    for array in plain:
        np.testing.assert_array_equal(watched(array, qd), expected)
        assert not seen
    others = [
        q.tolist(),
        tuple(q),
        q.astype(">f8"),
        np.frombuffer(b"\0" + q.tobytes(), dtype=float, offset=1),
        q.view(type("Mine", (np.ndarray,), {})),
        np.tile(q, (2, 1))[::-1],
    ]
    for count, other in enumerate(others, 1):
        np.testing.assert_array_equal(np.atleast_2d(watched(other, qd))[0], expected)
        assert len(seen) == count
    with pytest.raises(InputError, match="float64 is the widest"):
        watched(q.astype(np.longdouble), qd)
    seen.pop()
    watched(q, qd, out=np.empty(N))
    watched(*(q, qd))
    assert len(seen) == len(others)
    watched(q, qd, threads=1)
    assert len(seen) == len(others) + 1
    single = q.astype(np.float32)
    np.testing.assert_array_equal(watched(single, qd), kernel.compiled.ufunc(single, qd))
    assert len(seen) == len(others) + 2


def batches(shape, fixed=()):
    rng = np.random.default_rng(2)
    return [rng.uniform(-3, 3, (N,) if k in fixed else (*shape, N)) for k in range(3)]


@pytest.mark.parametrize("fixed", [(), (0,), (1, 2)])
@pytest.mark.parametrize("shape", [(1,), (3,), (8,), (17,), (2, 5), (1, 1, 3), (2, 1, 2, 1, 2, 1, 2, 1)])
@pytest.mark.parametrize("quantity", ["inverse_dynamics", "inertia_factors", "kinetic_energy"])
def test_a_small_batch_has_the_bits_of_the_gufunc_and_of_single_calls(quantity, shape, fixed):
    kernel, arrays = made(quantity)
    arrays = batches(shape, fixed)[: len(arrays)]
    seen = []  # no other `__call__` for the class: assigning one ends its fast path since Python 3.12
    sys.setprofile(lambda frame, event, arg: seen.append(event) if frame.f_code is Kernel.__call__.__code__ else None)
    try:
        results = outputs(kernel(*arrays))
    finally:
        sys.setprofile(None)
    assert not seen
    for a, b in zip(results, outputs(kernel.compiled.ufunc(*arrays)), strict=True):
        assert (a.shape, a.dtype, a.flags.c_contiguous, a.flags.owndata) == (b.shape, b.dtype, True, b.flags.owndata)
        np.testing.assert_array_equal(a, b)
    last = tuple(size - 1 for size in shape)
    single = outputs(kernel(*(x if x.ndim == 1 else x[last] for x in arrays)))
    if any(x.ndim > 1 for x in arrays):
        for a, b in zip(results, single, strict=True):
            np.testing.assert_array_equal(a[last], b)


def test_other_batches_go_to_the_gufunc():
    kernel, _ = made("inverse_dynamics")
    q, qd, qdd = batches((4,))
    column = q[:, None]
    for arrays in ((column, qd, qdd), (q[:0], qd[:0], qdd[:0]), (q[::2], qd[::2], qdd[::2]), (q[:1], qd, qdd)):
        np.testing.assert_array_equal(kernel(*arrays), kernel.compiled.ufunc(*arrays))
    with pytest.raises(InputError, match="inverse_dynamics"):
        kernel(q, qd[:3], qdd)
    with pytest.raises(InputError, match="inverse_dynamics"):
        kernel(q[:, :-1], qd, qdd)
    many = np.zeros((1,) * 20 + (2, N))
    np.testing.assert_array_equal(kernel(many, many, many), kernel.compiled.ufunc(many, many, many))
    large = np.random.default_rng(0).uniform(-3, 3, (50_000, N))
    np.testing.assert_array_equal(kernel(large, large, large), kernel.compiled.ufunc(large, large, large))


def test_results_into_an_array():
    kernel, _ = made("inverse_dynamics")
    for shape in ((), (1,), (5,), (2, 3)):
        q, qd, qdd = batches(shape)
        expected, out = kernel(q, qd, qdd), np.full((*shape, N), np.nan)
        assert kernel(q, qd, qdd, out=out) is out
        np.testing.assert_array_equal(out, expected)
        assert kernel(q, qd, qdd, out=q) is q  # the same memory: through the gufunc
        np.testing.assert_array_equal(q, expected)
    q, qd, qdd = batches((4,))
    room = np.zeros((5, N))
    room[:4] = q
    expected = kernel(q, qd, qdd)
    np.testing.assert_array_equal(kernel(room[:4], qd, qdd, out=room[1:]), expected)  # overlapping memory
    wide = np.zeros((4, 2 * N))
    np.testing.assert_array_equal(kernel(q, qd, qdd, out=wide[:, ::2]), expected)
    fixed = np.zeros((4, N))
    fixed.flags.writeable = False
    for out in (fixed, np.zeros((3, N)), np.zeros((4, N), int), "text"):
        with pytest.raises((InputError, ValueError, TypeError)):
            kernel(q, qd, qdd, out=out)


def test_errors_come_from_the_general_way():
    kernel, (q, qd) = made("bias")
    for arrays in ((), (q,), (q, qd, q), (q[:-1], qd), (None, qd), (q, "text"), (q, np.zeros((N, 1)))):
        with pytest.raises(InputError, match="bias"):
            kernel(*arrays)
    with pytest.raises(InputError, match="speed"):
        kernel(q, qd, speed=1)
    np.testing.assert_array_equal(kernel(q, qd), kernel.compiled.ufunc(q, qd))


@pytest.mark.parametrize("quantity", QUANTITIES)
def test_nothing_is_leaked(quantity):
    kernel, arrays = made(quantity)

    def counts():
        things = [kernel, type(kernel), np.ndarray, np.dtype(float), "__call__", "out", *arrays, *given.values()]
        return [sys.getrefcount(thing) for thing in things]

    batch = [np.stack([a] * 3) for a in arrays]
    result = kernel(*batch)
    given = {} if isinstance(result, tuple) else {"out": result}

    def calls(times):
        for _ in range(times):
            kernel(*arrays)
            kernel(*batch)
            kernel(*batch, **given)
            kernel(*(a.tolist() for a in arrays))
            with contextlib.suppress(InputError):
                kernel(None, *arrays[1:])

    calls(20)
    gc.collect()
    before = counts()
    calls(200)
    gc.collect()
    assert all(abs(b - a) < 20 for a, b in zip(before, counts(), strict=True))


def test_a_kernel_is_let_go():
    kernel, arrays = made("bias")
    kernel(*arrays)
    gone = weakref.ref(kernel)
    del kernel
    gc.collect()
    assert gone() is None


def test_a_kernel_is_an_ordinary_object():
    kernel, (q, qd) = made("bias")
    assert isinstance(kernel, Kernel)
    assert callable(kernel)
    assert kernel.quantity == "bias"
    assert kernel.method in armdyn.methods("bias")
    assert kernel.program.operations.mul > 0
    assert "bias" in repr(kernel)
    assert kernel in {kernel}
    kernel.note = "kept"
    assert kernel.__dict__["note"] == "kept"
    np.testing.assert_array_equal(kernel.__call__(q, qd), kernel(q, qd))
    assert ARM.bias is ARM.bias


def test_many_threads_at_once():
    kernel, _ = made("inertia_factors")
    rows = np.random.default_rng(1).uniform(-3, 3, (8, N))
    expected = [kernel(row) for row in rows]
    wrong = []

    def work(k):
        for _ in range(2000):
            for a, b in zip(kernel(rows[k]), expected[k], strict=True):
                if not np.array_equal(a, b):
                    wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_results_do_not_share_memory():
    kernel, arrays = made("inertia_matrix")
    first = kernel(*arrays)
    kept = first.copy()
    second = kernel(*(a + 1 for a in arrays))
    second[...] = 0
    np.testing.assert_array_equal(first, kept)


def test_where_the_proof_fails_the_gufunc_answers(monkeypatch):
    class Other(Kernel):
        """A class whose layout is not proved."""

    monkeypatch.setattr(fastcall, "_array_layout_holds", lambda: False)
    kernel = Other(ARM.chain, "bias", ARM.bias.method)
    arrays = made("bias")[1]
    np.testing.assert_array_equal(kernel(*arrays), ARM.kernel("bias")(*arrays))
    assert not entry(kernel)
    assert not fastcall.supported(Other)


SCRIPT = """
import numpy as np, armdyn
from armdyn.codegen import fastcall
from armdyn.kernels.kernel import Kernel
arm = armdyn.generic_arm("RPRR", seed=1)
q = np.arange(4.0)
same = arm.bias(q, q).tolist() == arm.bias(q[None], q)[0].tolist()
print(fastcall.supported(Kernel), same, Kernel.__base__.__name__)
"""


@pytest.mark.parametrize(("switch", "expected"), [("", "True True Fast"), ("off", "False True _PythonBase")])
def test_it_can_be_switched_off(switch, expected):
    environment = {**os.environ, "ARMDYN_FASTCALL": switch}
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.strip() == expected


def watched_calls(arm, quantity):
    """A kernel, and the list of its calls that reach Python."""
    seen = []

    class Watched(Kernel):
        def __call__(self, *arrays, **keywords):
            seen.append(keywords)
            return super().__call__(*arrays, **keywords)

    frames = {name: (frame.link, frame.placement) for name, frame in arm.all_frames.items()}
    return Watched(arm.chain, quantity, frames=frames), seen


@pytest.mark.parametrize("called_before", [False, True])
def test_calls_with_keywords_are_remembered(called_before):
    arm = armdyn.load("ur5")
    q, v, a, w, other = np.random.default_rng(3).uniform(-1, 1, (5, 6))
    jacobian, seen = watched_calls(arm, "jacobian")
    if called_before:
        jacobian(q)
    local, base, there = (jacobian.variant(axes=axes)(q) for axes in ("local", "base", "local"))
    seen.clear()
    for axes, expected in (("local", local), ("base", base), ("local", there)) * 3:
        np.testing.assert_array_equal(jacobian(q, axes=axes), expected)
    assert len(seen) == 2  # each once
    for name in arm.frame_names:  # more than are remembered: the oldest are forgotten, none is confused
        np.testing.assert_array_equal(jacobian(q, frame=name), jacobian.variant(frame=name)(q))
    for name in (*arm.frame_names, *arm.frame_names):
        np.testing.assert_array_equal(jacobian(q, frame=name), jacobian.variant(frame=name)(q))

    inverse, seen = watched_calls(arm, "inverse_dynamics")
    plain = inverse.variant()(q, v, a)
    pushed = inverse.variant(tool_wrench=True)(q, v, a, w)
    seen.clear()
    for _ in range(3):
        np.testing.assert_array_equal(inverse(q=q, qd=v, qdd=a), plain)
        np.testing.assert_array_equal(inverse(q, v, qdd=a), plain)
        np.testing.assert_array_equal(inverse(q, v, a, tool_wrench=w), pushed)
        np.testing.assert_array_equal(inverse(q, v, qdd=a, tool_wrench=w), pushed)
    assert len(seen) == 4
    for _ in range(2):  # these are not: another order, another kind of value, an array to write to
        np.testing.assert_array_equal(inverse(qdd=a, q=q, qd=v), plain)
        np.testing.assert_array_equal(inverse(q, v, a, tool_wrench=w.tolist()), pushed)
        np.testing.assert_array_equal(inverse(q, v, a, w, tool_wrench=True), pushed)
        np.testing.assert_array_equal(inverse(q, v, qdd=a, out=np.empty(6)), plain)
    assert len(seen) == 4 + 2 + 2 + 1 + 2 * 2  # the last ones twice: Python calls itself with `out`
    with pytest.raises(InputError, match="takes q, qd, qdd, in this order or by name; qd missing"):
        inverse(q, qdd=a)
    with pytest.raises(InputError, match=r"expects qdd of shape \(..., 6\), got \(2,\)"):
        inverse(q, v, qdd=a[:2])
    single = inverse(q.astype("f4"), v.astype("f4"), qdd=a.astype("f4"))
    assert single.dtype == np.float32
    many = inverse(np.tile(q, (9, 1)), v, qdd=a)
    np.testing.assert_array_equal(many, np.tile(plain, (9, 1)))
    names = [*arm.frame_names[-3:]]
    wrenches = {names[0]: w, names[1]: other, names[2]: v}
    joined = inverse.variant(tool_wrench=tuple(names))(q, v, a, np.concatenate([w, other, v]))
    for _ in range(3):
        np.testing.assert_array_equal(inverse(q, v, a, tool_wrench=wrenches), joined)
        with pytest.raises(InputError, match=r"the wrench at '.*' must be"):
            inverse(q, v, a, tool_wrench={names[0]: w[:3], names[1]: np.zeros(9), names[2]: v})


def test_remembered_calls_leak_nothing_and_survive_copies_of_their_names():
    kernel = armdyn.load("ur5").kernel("jacobian")
    q = np.zeros(6)
    for k in range(200):  # names and values that exist once only
        kernel(q, **{"".join(["ax", "es"]): "".join(["lo", "cal"]) if k % 2 else "base"})
    gc.collect()
    assert len(kernel.__dict__["_remembered"]._kept) <= 8
    array = np.zeros(6)
    before = sys.getrefcount(array)
    for _ in range(100):
        kernel(q=array)
    assert sys.getrefcount(array) == before
    gone = weakref.ref(kernel)
    del kernel
    gc.collect()
    assert gone() is None


def test_wrenches_by_frame_are_those_of_one_array_however_they_are_stored():
    arm = armdyn.load("ur5")
    q, qd, qdd = np.random.default_rng(12).uniform(-1, 1, (3, 6))
    names = arm.frame_names[:3]
    wrenches = np.random.default_rng(13).normal(size=(3, 6))
    expected = arm.kernel("inverse_dynamics", tool_wrench=tuple(names))(q, qd, qdd, wrenches.ravel())
    ways = {
        "plain": list(wrenches),
        "strided": list(np.repeat(wrenches, 2, axis=1)[:, ::2]),
        "lists": wrenches.tolist(),
        "backwards": [x[::-1].copy()[::-1] for x in wrenches],
        "one of them a list": [*wrenches[:2], wrenches[2].tolist()],
        "pickled": pickle.loads(pickle.dumps(list(wrenches))),
    }
    for way, rows in ways.items():
        for _ in range(2):  # the first call finds the kernel, the next ones remember it
            got = arm.inverse_dynamics(q, qd, qdd, tool_wrench=dict(zip(names, rows, strict=True)))
            np.testing.assert_array_equal(got, expected, err_msg=way)
    with pytest.raises(InputError, match=r"must be \(force, torque\), of the shape \(\.\.\., 6\); got \(3,\)"):
        arm.inverse_dynamics(q, qd, qdd, tool_wrench=dict(zip(names, [*wrenches[:2], np.zeros(3)], strict=True)))
