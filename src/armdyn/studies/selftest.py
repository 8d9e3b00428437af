"""Whether this installation computes correctly on this machine: what `armdyn selftest` runs, in about a minute.

It needs nothing but an installed armdyn: no tests, no other library. Compiled kernels of the catalogue are compared
with the reference formulation on plain floats in Python, which shares neither the chosen formulation nor the compiler
with them; the NumPy backend, which needs no compiler, likewise. Then the promises that depend on the machine: the same
bits alone and in a batch, code that another process reads from the cache, a simulated pendulum that keeps its energy.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from armdyn.arm import Arm, from_dh, load
from armdyn.codegen import cache
from armdyn.errors import ArmdynError
from armdyn.files import catalogue

QUANTITIES = ("inertia_matrix", "bias", "inverse_dynamics", "forward_dynamics")
TOLERANCE = 1e-9  # relative to the largest entry; forward dynamics loses the digits of the inertia matrix's condition
ENERGY = 1e-8  # relative change of a pendulum's energy in 2 s with steps of 1 ms, RK4

_IN_ANOTHER_PROCESS = """
import sys
import numpy as np
import armdyn
arm = armdyn.load("puma560")
H = arm.inertia_matrix(np.full(6, 0.3))
sys.stdout.write(H.tobytes().hex())
"""


@dataclass(frozen=True)
class CheckResult:
    """One check: its name, whether it passed, what was found, and how long it took in seconds."""

    name: str
    passed: bool
    detail: str
    seconds: float


def checks(names: Sequence[str] | None = None) -> list[tuple[str, Callable[[], str]]]:
    """The checks by name, for all arms of the catalogue or those named; each returns what it found, or raises."""
    arms = tuple(names) if names else catalogue()
    checked: list[tuple[str, Callable[[], str]]] = [
        (f"compiled kernels, {name}", partial(_of_the_catalogue, name)) for name in arms
    ]
    return [
        *checked,
        ("without the compiler", lambda: _compare(load("scara"), "numpy")),
        ("same bits alone and in a batch", lambda: _bits(load("puma560"))),
        ("cache on disk, two processes", _cache),
        ("energy of a pendulum", _energy),
    ]


def run(names: Sequence[str] | None = None) -> Iterator[CheckResult]:
    """Run the checks one by one; an exception is a failure with its message."""
    for name, check in checks(names):
        start = time.perf_counter()
        try:
            passed, detail = True, check()
        except (ArmdynError, AssertionError, OSError, ArithmeticError, ValueError) as error:
            passed, detail = False, f"{type(error).__name__}: {error}"
        yield CheckResult(name, passed, detail, time.perf_counter() - start)


def _of_the_catalogue(name: str) -> str:
    return _compare(load(name), None)


def _compare(arm: Arm, backend: str | None) -> str:
    """The largest relative difference to the reference formulation on plain floats, at two states."""
    rng = np.random.default_rng(0)
    states = rng.uniform(-1.5, 1.5, (3, 2, arm.n))
    worst = 0.0
    for quantity in QUANTITIES:
        kernel = arm.kernel(quantity, backend=backend) if backend else getattr(arm, quantity)
        inputs = states[: len(kernel.program.inputs)] if quantity != "inertia_matrix" else states[:1]
        got = kernel(*inputs)
        expected = _reference(arm, quantity, inputs)
        difference = float(np.max(np.abs(got - expected)) / np.max(np.abs(expected)))
        if not difference <= TOLERANCE:  # NaN must not pass
            raise AssertionError(f"{quantity} of {arm.name} differs from the reference by {difference:.1e}, relative")
        worst = max(worst, difference)
    return f"{len(QUANTITIES)} quantities within {worst:.1e} of the reference, relative"


def _reference(arm: Arm, quantity: str, inputs: np.ndarray) -> np.ndarray:
    """The same by the reference formulation in Python floats; forward dynamics by solving H q̈ = τ − b."""
    if quantity == "inverse_dynamics":
        q, qd, qdd = inputs
        return np.asarray(np.einsum("kij,kj->ki", _plain(arm, "inertia_matrix", q), qdd) + _plain(arm, "bias", q, qd))
    if quantity == "forward_dynamics":
        q, qd, tau = inputs
        H, b = _plain(arm, "inertia_matrix", q), _plain(arm, "bias", q, qd)
        return np.asarray(np.linalg.solve(H, (tau - b)[..., None])[..., 0])
    return _plain(arm, quantity, *inputs)


def _plain(arm: Arm, quantity: str, *inputs: np.ndarray) -> np.ndarray:
    kernel = arm.kernel(quantity, method="reference", backend="python")
    return np.stack([kernel(*(x[k] for x in inputs)) for k in range(len(inputs[0]))])


def _bits(arm: Arm) -> str:
    q = np.random.default_rng(1).uniform(-2, 2, (1001, arm.n))
    batch = arm.inertia_matrix(q)
    for k in (0, 1, 7, 500, 1000):
        if batch[k].tobytes() != arm.inertia_matrix(q[k]).tobytes():
            raise AssertionError(f"configuration {k} of 1001 has other bits alone than in its batch")
    return "5 of 1001 configurations compared bit by bit"


def _cache() -> str:
    """Two processes with a cache of their own: the second one reads what the first one wrote."""
    age = time.time() - os.stat(cache.__file__).st_mtime
    time.sleep(min(max(cache.SETTLED + 2 - age, 0.0), 2 * cache.SETTLED))  # just installed: not cached yet
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "ARMDYN_CACHE": folder}
        results = []
        for _ in range(2):
            done = subprocess.run(
                [sys.executable, "-c", _IN_ANOTHER_PROCESS],
                env=environment,
                capture_output=True,
                text=True,
                timeout=120,
            )
            if done.returncode:
                raise AssertionError(f"a process of its own failed: {done.stderr.strip().splitlines()[-1:]}")
            results.append(done.stdout)
            entries = [name for _, _, names in os.walk(folder) for name in names]
            if not entries:
                raise AssertionError(f"nothing was written to the cache {folder}")
    if results[0] != results[1]:
        raise AssertionError("code from the cache gives other bits than code just compiled")
    return f"{len(entries)} entries written, read again with the same bits"


def _energy() -> str:
    from armdyn.simulation.simulate import simulate

    rod = {"alpha": np.pi / 2, "mass": 1.0, "com": [0.5, 0, 0], "inertia": [0, 1 / 12, 1 / 12, 0, 0, 0]}
    arm = from_dh([rod], convention="modified", name="pendulum")
    run = simulate(arm, [0.3], duration=2.0, method="RK4", step=1e-3, friction=False)
    energy = arm.kinetic_energy(run.q, run.qd) + arm.potential_energy(run.q)
    change = float(np.max(np.abs(energy - energy[0])) / np.ptp(arm.potential_energy(run.q)))
    if not change <= ENERGY:
        raise AssertionError(f"the energy changes by {change:.1e} of the exchanged one (allowed {ENERGY:g})")
    return f"energy kept to {change:.1e} of what is exchanged, over 2 s"
