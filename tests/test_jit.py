"""Machine code in this process: it lives as long as something refers to it, shares mappings, survives forks."""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import subprocess
import sys
import threading
import time
import weakref

import numpy as np
import pytest

import armdyn
from armdyn.codegen import elf, jit
from armdyn.codegen.compile import compile_program, load, object_code, shapes
from armdyn.codegen.target import host
from armdyn.errors import ComputationError
from armdyn.graph.program import trace

pooled = pytest.mark.skipif(not jit.can_share_mappings() or not host().x86, reason="no shared mappings on this system")
PROGRAM = trace("products", lambda x: [(a + 1) * a for a in x], {"x": (3,)}, [("y", (3,))])
X = np.arange(12.0).reshape(4, 3)


@pytest.fixture(params=["pool", "LLVM's loader"])
def loader(request, monkeypatch):
    if request.param != "pool":
        monkeypatch.setattr(jit, "can_share_mappings", lambda: False)
    elif not (jit.can_share_mappings() and host().x86):
        pytest.skip("no shared mappings on this system")
    return request.param


def alive() -> tuple[int, int]:
    gc.collect()
    return jit._JIT.pool.used, len(jit._JIT.objects)


def mappings() -> int:
    with open("/proc/self/maps", encoding="utf-8") as lines:
        return sum(1 for _ in lines)


def test_code_is_freed_when_nothing_refers_to_it(loader):
    before = alive()
    kernel = compile_program(PROGRAM)
    code = weakref.ref(kernel.code)
    np.testing.assert_array_equal(kernel(X), (X + 1) * X)
    assert alive() > before
    del kernel
    assert alive() == before
    assert code() is None


def test_a_gufunc_keeps_its_code(loader):
    before = alive()
    kernel = compile_program(PROGRAM)
    ufunc, code = kernel.ufunc, weakref.ref(kernel.code)
    del kernel
    gc.collect()
    assert code() is not None
    np.testing.assert_array_equal(ufunc(X), (X + 1) * X)
    del ufunc
    assert alive() == before


def test_an_array_function_on_another_thread_keeps_its_code(loader):
    """The last reference goes while the machine code runs."""
    before = alive()
    kernel = compile_program(PROGRAM)
    x = np.random.default_rng(0).uniform(-1, 1, (400_000, 3))
    results: list[np.ndarray] = []
    thread = threading.Thread(target=lambda call: results.extend(call(x) for _ in range(10)), args=(kernel.ufunc,))
    thread.start()
    del kernel
    other = trace("others", lambda x: [a - 1 for a in x], {"x": (3,)}, [("y", (3,))])
    code = object_code(other, host())
    for _ in range(50):
        load("other", *shapes(other), code, host())(X)  # which would take its place
    thread.join()
    for result in results:
        np.testing.assert_array_equal(result, (x + 1) * x)
    del thread
    assert alive() == before


def test_a_kernel_keeps_the_code_it_calls():
    """Two threads may compile at once, and one's code be attached while the other's is remembered."""
    kernel = armdyn.generic_arm("RR", seed=2).bias
    q = np.array([0.3, -0.7])
    expected = kernel(q, q)
    kernel._compiled = kernel._compile()
    attached = weakref.ref(kernel.compiled.code)
    kernel._compiled = None
    gc.collect()
    assert attached() is not None
    np.testing.assert_array_equal(kernel(q, q), expected)


def test_arms_that_come_and_go():
    arm = armdyn.generic_arm("RR", seed=2)
    q = np.array([0.3, -0.7])
    arm.bias(q, q)
    before = alive()
    for k in range(4):
        payload = arm.with_payload(0.1 * (k + 1), [0, 0, 0.1])
        assert np.isfinite(payload.bias(q, q)).all()
    del payload
    assert alive() == before


@pooled
def test_mappings_stay_few():
    code = object_code(PROGRAM, host())
    kernels = [load("k", *shapes(PROGRAM), code, host()) for _ in range(100)]
    before = mappings()
    kernels += [load("k", *shapes(PROGRAM), code, host()) for _ in range(900)]
    assert mappings() < before + 20
    for kernel in kernels[::100]:
        np.testing.assert_array_equal(kernel(X), (X + 1) * X)
    del kernels[::2], kernel
    gc.collect()
    assert mappings() < before + 20
    used = jit._JIT.pool.used
    kernels += [load("k", *shapes(PROGRAM), code, host()) for _ in range(400)]
    assert len(jit._JIT.pool.mappings) * jit.MAPPING_SIZE >= jit._JIT.pool.used > used  # in the gaps
    np.testing.assert_array_equal(kernels[-1](X), (X + 1) * X)


@pooled
def test_no_memory_is_a_clear_error(monkeypatch):
    def refuse(*arguments):
        ctypes.set_errno(12)
        return -1

    pool = jit.Pool()
    mapping, start, size = pool.put(b"\xc3")
    monkeypatch.setattr(mapping, "_libc", type("Libc", (), {"mprotect": staticmethod(refuse)}))
    free = dict(mapping.free)
    with pytest.raises(ComputationError, match=r"no memory for further machine code .*mprotect failed"):
        pool.put(b"\xc3")
    assert sum(mapping.free.values()) == sum(free.values())
    assert (start, size) == (0, jit.PAGE)


def test_more_kernels_than_memory_maps_are_a_clear_error(monkeypatch):
    monkeypatch.setattr(jit, "can_share_mappings", lambda: False)
    first = compile_program(PROGRAM)
    monkeypatch.setattr(jit, "MOST_OBJECTS", len(jit._JIT.objects))
    with pytest.raises(ComputationError, match="kernels are alive, at most"):
        compile_program(PROGRAM)
    del first
    gc.collect()
    compile_program(PROGRAM)


def test_a_full_loader_of_llvm_goes_with_its_last_object(monkeypatch):
    monkeypatch.setattr(jit, "can_share_mappings", lambda: False)
    monkeypatch.setattr(jit, "OBJECTS_PER_LOADER", 1)
    kernels, loaders = [], []
    for _ in range(3):
        kernels.append(compile_program(PROGRAM))
        loaders.append(weakref.ref(jit._JIT._loader))
    assert len({loader() for loader in loaders}) == 3
    del kernels[0]
    gc.collect()
    assert loaders[0]() is None
    for kernel in kernels:
        np.testing.assert_array_equal(kernel(X), (X + 1) * X)


@pooled
def test_free_pages_join_again():
    mapping = jit.Mapping(8 * jit.PAGE)
    starts = [mapping.take(2 * jit.PAGE) for _ in range(4)]
    assert mapping.take(jit.PAGE) is None
    for k in (1, 3, 0, 2):
        mapping.give(starts[k], 2 * jit.PAGE)
    assert mapping.free == {0: 8 * jit.PAGE}


@pooled
def test_garbage_collected_while_code_is_loaded(monkeypatch):
    """A `Code` dies inside `load`: its pages must not be given to the one that is loaded before they are free."""
    victims = [compile_program(PROGRAM)]
    real = elf.linked

    def collecting(code):
        victims.clear()
        gc.collect()
        return real(code)

    monkeypatch.setattr(jit, "linked", collecting)
    kernel = compile_program(PROGRAM)
    assert not jit._JIT._busy
    np.testing.assert_array_equal(kernel(X), (X + 1) * X)
    del kernel
    monkeypatch.undo()
    compile_program(PROGRAM)
    assert not jit._JIT._released


def test_objects_that_need_a_linker_are_left_to_llvm():
    text = (
        f'target triple = "{host().triple}"\ndeclare double @cos(double)\n'
        "define double @f(double %x) {\n  %y = call double @cos(double %x)\n  ret double %y\n}\n"
    )
    before = len(jit._JIT.objects)
    code = jit.load(jit.object_code(text, host()), ("f",), host())
    assert len(jit._JIT.objects) == before + 1
    assert ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(code.address("f"))(0.5) == np.cos(0.5)


def test_only_objects_for_this_processor_are_linked():
    with pytest.raises(elf.UnsupportedObjectError, match="not a relocatable ELF object"):
        elf.linked(b"\xcf\xfa\xed\xfe" + bytes(60))


def test_the_batch_function_in_c():
    kernel = compile_program(trace("both", lambda x, A: ([x[0] * a for a in A[1]], x[1]), {"x": (2,), "A": (2, 3)},
                                   [("y", (3,)), ("z", ())]))  # fmt: skip
    function = kernel.batch_function
    rng = np.random.default_rng(1)
    x, A, y, z = rng.random((11, 2)), rng.random((11, 2, 3)), np.empty((11, 3)), np.empty(11)
    assert function.contiguous_strides == (16, 48, 24, 8, 8, 24, 8, 8)
    arrays = (ctypes.c_void_p * 4)(*(a.ctypes.data for a in (x, A, y, z)))
    strides = (ctypes.c_ssize_t * 8)(*function.contiguous_strides)
    call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)(function.address)
    call(arrays, (ctypes.c_ssize_t * 1)(11), strides, function.context)
    np.testing.assert_array_equal(y, x[:, :1] * A[:, 1])
    np.testing.assert_array_equal(z, x[:, 1])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_fork_while_a_thread_compiles():
    """llvmlite's lock must not stay held in the child for ever."""
    stop = threading.Event()

    def compile_again() -> None:
        while not stop.is_set():
            object_code(PROGRAM, host())

    thread = threading.Thread(target=compile_again)
    thread.start()
    try:
        for _ in range(12):
            child = os.fork()
            if child == 0:
                signal.alarm(20)
                good = np.array_equal(compile_program(PROGRAM)(X), (X + 1) * X)
                os._exit(0 if good else 1)
            deadline = time.monotonic() + 15
            while (done := os.waitpid(child, os.WNOHANG))[0] == 0 and time.monotonic() < deadline:
                time.sleep(0.01)
            if done[0] == 0:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
            assert done == (child, 0), "the child hangs or fails"
    finally:
        stop.set()
        thread.join()


FORKS = """
import importlib.abc, os, signal, sys, threading, time
import armdyn
from armdyn.codegen import target

class Slow(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "llvmlite.binding":
            importing.set()
            time.sleep(1.0)

importing = threading.Event()
sys.meta_path.insert(0, Slow())
arm = armdyn.load("planar3")
thread = threading.Thread(target=lambda: arm.gravity_load([0.1, 0.2, 0.3]))
thread.start()
assert importing.wait(30)
child = os.fork()
if child == 0:
    signal.alarm(20)
    target.binding()
    arm.gravity_load([0.1, 0.2, 0.3])
    os._exit(0)
thread.join()
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_fork_while_another_thread_imports_the_compiler():
    """The child would find the import locked by a thread that it does not have, and wait for ever."""
    run = subprocess.run([sys.executable, "-W", "ignore", "-c", FORKS], capture_output=True, text=True, timeout=120)
    assert run.stdout.split() == ["0"], run.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="Linux alone refuses this")
def test_memory_that_may_not_be_written_and_executed_is_named(tmp_path):
    """As systemd's MemoryDenyWriteExecute does; nothing falls back to slow code by itself."""
    code = """
import ctypes, sys
if ctypes.CDLL(None).prctl(65, 1, 0, 0, 0):  # PR_SET_MDWE, since Linux 6.3
    sys.exit("too old")
import armdyn
arm = armdyn.load("planar3")
try:
    arm.gravity_load([0, 0, 0])
except armdyn.ArmdynError as error:
    print(error)
print(arm.kernel("gravity_load", backend="numpy")([0, 0, 0]).tolist())
"""
    environment = {**os.environ, "ARMDYN_CACHE": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    if "too old" in done.stderr:
        pytest.skip("this Linux has no such rule")
    message, values = done.stdout.splitlines()
    assert "MemoryDenyWriteExecute=yes" in message
    assert 'backend="numpy"), which takes about 35 times as long in batches and 170 times in single calls' in message
    assert "max_map_count" not in message
    assert values == str(armdyn.load("planar3").gravity_load([0, 0, 0]).tolist())
