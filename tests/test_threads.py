"""What a call accepts, and large batches on several threads."""

from __future__ import annotations

import os
import signal
import threading
import time

import numpy as np
import pytest

import armdyn
from armdyn.codegen import BACKENDS
from armdyn.errors import InputError
from armdyn.kernels import kernel
from armdyn.simulation import Sampled

ARM = armdyn.generic_arm("RR", seed=3)
MANY = np.zeros((9000, 2))
Q = np.zeros(2)
PARTS = 8


class Slow:
    """A function whose parts last until they are released, and write at their end."""

    inputs = outputs = (("x", (2,)),)

    def __init__(self) -> None:
        self.begun, self.ended, self.lock = 0, 0, threading.Lock()
        self.released = threading.Event()

    def __call__(self, x, out):
        with self.lock:
            self.begun += 1
        self.released.wait(60)
        out[0][...] = 1
        with self.lock:
            self.ended += 1


@pytest.fixture
def interrupts():
    """Ctrl-C raises KeyboardInterrupt, also where the tests run in the background and a shell has switched it off."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.skipif(os.name == "nt", reason="signals are sent another way there")
@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.usefixtures("interrupts")
def test_after_an_interrupt_no_part_writes_any_more(times):
    function, out = Slow(), np.zeros((20_000, 2))

    def interrupt() -> None:
        while function.begun < PARTS:  # the part on the main thread included
            time.sleep(0.01)
        for _ in range(times):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.05)
        function.released.set()

    sender = threading.Thread(target=interrupt)
    sender.start()
    with pytest.raises(KeyboardInterrupt):
        kernel.shared(function, (np.zeros((20_000, 2)),), out, PARTS)
    at_once = out.copy()
    assert function.begun - function.ended <= 1  # the part on this thread is the one that was interrupted
    sender.join()
    time.sleep(0.5)
    np.testing.assert_array_equal(out, at_once)


def test_after_an_error_no_part_writes_any_more():
    out = np.zeros((20_000, 2))
    ended = []

    class Failing(Slow):
        def __call__(self, x, out):
            if np.shares_memory(out[0], first):
                raise ValueError("the first part fails")
            super().__call__(x, out)
            ended.append(1)

    function, first = Failing(), out[:1]
    threading.Timer(0.3, function.released.set).start()
    with pytest.raises(ValueError, match="the first part fails"):
        kernel.shared(function, (np.zeros((20_000, 2)),), out, 4)
    assert function.begun == function.ended


@pytest.mark.parametrize("count", [None, 0, 1.5, True, "2"])
def test_set_threads_takes_whole_numbers(count):
    with pytest.raises(InputError, match="threads must be a positive whole number"):
        armdyn.set_threads(count)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("out", [[np.zeros((9000, 2))], [1, 2], 3, "x"])
def test_out_must_be_an_array(out, count, backend):
    with pytest.raises(InputError, match=r"expects out \(b\) of shape \(9000, 2\), got"):
        ARM.kernel("bias", backend=backend)(MANY, Q, out=out, threads=count)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("count", [1, 2])
def test_complex_numbers_are_refused(count, backend):
    for q in (MANY + 0j, [1j, 0], np.zeros(2, complex)):
        with pytest.raises(InputError, match="expects q as real numbers, got complex128"):
            ARM.kernel("bias", backend=backend)(q, Q, threads=count)


def test_complex_states_and_poses_are_refused():
    """NumPy would drop the imaginary part with a warning."""
    z, pose = np.zeros(2, complex), ARM.pose(Q)
    calls = {
        "q0": lambda: armdyn.simulate(ARM, z, duration=0.01),
        "qd0": lambda: armdyn.simulate(ARM, Q, z, duration=0.01),
        "torque": lambda: armdyn.simulate(ARM, Q, torque=z, duration=0.01),
        "sampled torques": lambda: armdyn.simulate(ARM, Q, torque=Sampled([0.0, 1.0], [z, z]), duration=0.01),
        "pose": lambda: ARM.inverse_kinematics(pose + 0j),
    }
    for what, call in calls.items():
        with pytest.raises(InputError, match=f"{what} must be real numbers, got complex128"):
            call()
    with pytest.raises(InputError, match="q0 must be plain numbers, got a masked array"):
        armdyn.simulate(ARM, np.ma.array(Q), duration=0.01)
    with pytest.raises(InputError, match="q0 must be real numbers"):
        ARM.inverse_kinematics(pose, z)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("count", [1, 2])
def test_masked_arrays_are_refused(count, backend):
    masked = np.ma.array(np.zeros((3, 2)), mask=[[0, 1], [0, 0], [0, 0]])
    kernel = ARM.kernel("bias", backend=backend)
    for arguments, out in (((masked, Q), None), ((Q, masked), None), ((np.zeros((3, 2)), Q), masked)):
        with pytest.raises(InputError, match="bias takes plain arrays, got a masked one"):
            kernel(*arguments, out=out, threads=count)
    with pytest.raises(InputError, match="got a masked one"):
        kernel(np.ma.array([0.1, 0.2]), Q)


@pytest.mark.parametrize("count", [1, 2])
def test_arrays_of_64_axes(count):
    """NumPy's most: the gufunc takes them, the other backends say what they can."""
    x = np.zeros((1,) * 62 + (9000, 2))
    assert ARM.kernel("bias")(x, Q, threads=count).shape == x.shape
    for backend in ("numpy", "python"):
        with pytest.raises(InputError, match="at most 32 batch axes, got 63"):
            ARM.kernel("bias", backend=backend)(x, Q, threads=count)
