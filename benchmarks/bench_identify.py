"""How long identification takes: the whole run, the semidefinite fit alone, a designed excitation.

Run: python benchmarks/bench_identify.py [--quick]
"""

from __future__ import annotations

import platform
import sys
import time
from importlib.metadata import version

import numpy as np

import armdyn
from armdyn.identification.estimate import linear
from armdyn.identification.estimate.consistent import Problem
from armdyn.identification.estimate.threads import one_thread
from armdyn.identification.excitation.fourier import Basis
from armdyn.identification.model.model import Model


def simulated(arm: armdyn.Arm, seconds: float, rate: float = 125.0, seed: int = 0) -> armdyn.Log:
    rng = np.random.default_rng(seed)
    basis = Basis(seconds, 6)
    t = np.arange(round(seconds * rate)) / rate
    c = rng.normal(size=(basis.size, arm.n)) * 0.6 / np.sqrt(basis.size)
    q, qd, qdd = (b @ c for b in basis.at(t))
    tau = np.asarray(arm.inverse_dynamics(q, qd, qdd)) + 2.0 * np.tanh(qd / 0.02) + 3.0 * qd
    return armdyn.Log.of(t, q, tau + rng.normal(size=tau.shape), qd)


def semidefinite(arm: armdyn.Arm, log: armdyn.Log) -> float:
    """Seconds of one physically consistent fit on compressed data."""
    model = Model.of(arm)
    q, qd = log.array("q"), log.array("qd")
    Y = model.regressor(q, qd, np.gradient(qd, log.period, axis=0))
    R, z = linear.compress(Y, log.array("tau"), np.ones_like(q))
    problem = Problem.of(model, arm)
    with one_thread():
        problem.solve(R @ model.natural, z, 100.0)
        start = time.perf_counter()
        problem.solve(R @ model.natural, z, 100.0)
    return time.perf_counter() - start


def main(quick: bool = False) -> dict[str, float]:
    arm = armdyn.load("ur10")
    log = simulated(arm, 8.0 if quick else 27.5)
    results = {}
    start = time.perf_counter()
    armdyn.identify(arm, log, friction="coulomb" if quick else "auto", folds=2 if quick else 5)
    results["identify, whole run (s)"] = time.perf_counter() - start
    results["semidefinite fit (s)"] = semidefinite(arm, log)
    start = time.perf_counter()
    armdyn.excite(arm, 10.0, starts=1, harmonics=3) if quick else armdyn.excite(armdyn.load("panda"), 20.0)
    results["excite (s)"] = time.perf_counter() - start
    return results


if __name__ == "__main__":
    names = ("numpy", "scipy")
    print(platform.processor() or platform.machine(), *(f"{name} {version(name)}" for name in names), sep=", ")
    for name, value in main("--quick" in sys.argv).items():
        print(f"{name:28} {value:8.3f}")
