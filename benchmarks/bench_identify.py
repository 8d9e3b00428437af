"""How long identification takes, and how well measured logs are predicted beside FIGAROH's estimators.

Times: the whole run, the semidefinite fit alone, a designed excitation. Errors: ‖τ - τ̂‖ / ‖τ‖ of the part of a log that
was not fitted, by armdyn's default and by FIGAROH's estimators on the very rows that armdyn makes of the log (its
filters, viscous and Coulomb friction, rotors, offsets): least squares on base parameters found by its own double QR
decomposition, and weighted least squares with a variance per joint (Gautier 1997), written out here as there. Base
columns are chosen by FIGAROH's own function where the package is installed, otherwise by pivoted QR, which is said.
Run: python benchmarks/bench_identify.py [--quick] [--figaroh DATA]   (DATA: the folder of the measured logs)
"""

from __future__ import annotations

import platform
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

import armdyn
from armdyn.identification import linear
from armdyn.identification.consistent import Problem
from armdyn.identification.excitation import Basis
from armdyn.identification.fit import relative_error
from armdyn.identification.model import Model, filtered
from armdyn.identification.processing import Motion, joint_side, motions
from armdyn.identification.threads import one_thread


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


def figaroh(names: list[str], Y: np.ndarray, tau: np.ndarray) -> tuple[dict[str, np.ndarray], str]:
    """FIGAROH's two least squares: parameters of the columns of Y (N, n, columns), and who found the base columns."""
    rows, n, _ = Y.shape
    every = np.swapaxes(Y, 0, 1).reshape(n * rows, -1)  # joint by joint, as FIGAROH stacks them
    seen = np.flatnonzero((every**2).sum(axis=0) > 1e-6)  # it leaves out the others before anything else
    W, names = every[:, seen], [names[k] for k in seen]
    measured = tau.T.ravel()
    try:
        from figaroh.tools.qrdecomposition import QRDecomposer

        base, who = list(QRDecomposer()._identify_base_parameters(W, names)[0]), f"FIGAROH {version('figaroh')}"
    except ImportError:
        from scipy.linalg import qr

        _, R, pivots = qr(W / np.maximum(np.linalg.norm(W, axis=0), 1e-300), mode="economic", pivoting=True)
        base, who = sorted(pivots[np.abs(np.diag(R)) > 1e-8 * abs(R[0, 0])]), "FIGAROH's estimators, written out"
    W_b = W[:, base]
    plain = np.linalg.lstsq(W_b, measured, rcond=None)[0]
    left = (measured - W_b @ plain).reshape(n, rows)
    sigma = np.linalg.norm(left, axis=1) / np.sqrt(max(rows - len(base) / n, 1.0))
    scale = np.repeat(1 / sigma, rows)
    found = {}
    for key, fit in (
        ("ordinary", plain),
        ("weighted", np.linalg.lstsq(W_b * scale[:, None], measured * scale, rcond=None)[0]),
    ):
        found[key] = np.zeros(every.shape[1])
        found[key][seen[base]] = fit
    return found, who


def compared(name: str, arm: armdyn.Arm, fit: armdyn.Log, test: armdyn.Log, **options: Any) -> dict[str, float]:
    """Relative errors of the log that was not fitted, by estimator."""
    ours = armdyn.identify(arm, fit, validate=test, **options)
    assert ours.validation is not None
    out = {"armdyn": ours.validation.error}
    model = Model.of(arm, "coulomb", transmission=options.get("transmission"))
    sides = [joint_side(log, options.get("transmission"), options.get("zero")) for log in (fit, test)]
    parts = [motions(side, ours.processing) for side in sides]
    model = model.tuned(np.concatenate([p.qd for p in parts[0]]), None)

    def stacked(motion: list[Motion]) -> tuple[np.ndarray, np.ndarray]:
        columns = [
            filtered(
                np.concatenate([np.asarray(arm.natural_regressor(*s)), model.extras(*s)], axis=2),
                p, ours.processing,
            )
            for p in motion
            for s in [(p.q, p.qd, p.qdd)]
        ]  # fmt: skip
        return np.concatenate(columns), np.concatenate([filtered(p.tau, p, ours.processing) for p in motion])

    (Y, tau), (Y_test, tau_test) = (stacked(motion) for motion in parts)
    names = [f"p{k}" for k in range(Y.shape[-1])]
    found, who = figaroh(names, Y, tau)
    for key, values in found.items():
        out[f"{who}, {key}"] = relative_error(tau_test, Y_test @ values)
    print(f"{name:24}" + "; ".join(f"{key} {100 * error:.2f} %" for key, error in out.items()), flush=True)
    return out


def measured(folder: Path) -> None:
    """The measured logs: a KUKA LWR4's second run from its first, a UR10's last 30 %, a TX40's 70 to 83 %."""
    kuka = armdyn.load(folder / "kuka_lwr4/kuka_lwr4.urdf")
    runs = [armdyn.Log.read(folder / f"kuka_lwr4/run{k}.csv") for k in (1, 2)]
    compared("KUKA LWR4, run 2", kuka, *runs)
    compared("KUKA LWR4, run 1", kuka, *runs[::-1])
    log = armdyn.Log.read(folder / "ur10/exciting.csv")
    compared("UR10, last 30 %", armdyn.load("ur10"), log.part(0, 0.7), log.part(0.7, 1))
    gears = np.diag([32.0, 32.0, 45.0, -48.0, 45.0, 32.0])
    gears[5, 4] = 32.0
    log = armdyn.Log.read(folder / "tx40/pos_read_data.csv", effort=folder / "tx40/curr_data.csv", rate=5000)
    options = {"transmission": gears, "zero": [0, -np.pi / 2, np.pi / 2, 0, 0, 0]}
    tx40 = armdyn.load(folder / "tx40/tx40_mdh_modified.urdf")
    compared("TX40, 70 to 83 %", tx40, log.part(0, 0.7), log.part(0.7, 7.5 / 9), **options)


if __name__ == "__main__":
    names = ("numpy", "scipy")
    print(platform.processor() or platform.machine(), *(f"{name} {version(name)}" for name in names), sep=", ")
    if "--figaroh" in sys.argv:
        measured(Path(sys.argv[sys.argv.index("--figaroh") + 1]))
    else:
        for name, value in main("--quick" in sys.argv).items():
            print(f"{name:28} {value:8.3f}")
