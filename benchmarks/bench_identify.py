"""How long identification takes, and how well measured logs are predicted beside FIGAROH's estimators.

Times: the whole run, the semidefinite fit alone, a designed excitation. Errors: ‖τ - τ̂‖ / ‖τ‖ of the part of a log that
was not fitted, by armdyn's default and by FIGAROH's estimators on the very rows that armdyn makes of the log (its
filters, viscous and Coulomb friction, rotors, offsets): least squares on base parameters found by its own double QR
decomposition, and weighted least squares with a variance per joint (Gautier 1997), written out here as there. Base
columns are chosen by FIGAROH's own function where the package is installed, otherwise by pivoted QR, which is said.
FloBaRoID's constrained estimate is written out too. One table has cut-offs, rows, errors by joint, processor time, and
whether the links are possible bodies, of the log that the tests ship and of the measured ones where they are.
Run: python benchmarks/bench_identify.py [--quick] [--table [DATA]]   (DATA: the folder of the measured logs)
"""

from __future__ import annotations

import platform
import sys
import time
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import armdyn
from armdyn.identification import linear
from armdyn.identification.consistent import Problem
from armdyn.identification.excitation import Basis
from armdyn.identification.fit import relative_error
from armdyn.identification.model import Model, filtered, pseudo_inertia
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
        base, who = sorted(pivots[np.abs(np.diag(R)) > 1e-8 * abs(R[0, 0])]), "FIGAROH (written out)"
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


class Result(NamedTuple):
    """One line of the table: a log, a method, and how it predicts the part that was not fitted."""

    log: str
    method: str
    cutoffs: tuple[float, float | None]  # Hz, of the positions and of the model
    rows: int
    error: float
    joints: np.ndarray
    seconds: float
    consistent: bool | None  # whether every link is a possible body; None: the method gives no links

    @property
    def line(self) -> str:
        positions, model = self.cutoffs
        cut = f"{positions:.3g}/{'none' if model is None else f'{model:.3g}'}"
        possible = {True: "yes", False: "no", None: "no links"}[self.consistent]
        joints = " ".join(f"{100 * error:.1f}" for error in self.joints)
        return (
            f"{self.log:22} {self.method:32} {cut:>10} {self.rows:6} {100 * self.error:7.2f} {self.seconds:7.2f}"
            f" {possible:>9}  {joints}"
        )


HEAD = (
    f"{'log':22} {'method':32} {'cut-offs':>10} {'rows':>6} {'error':>7} {'time':>7} {'possible':>9}  by joint\n"
    f"{'':22} {'':32} {'[Hz]':>10} {'':6} {'[%]':>7} {'[s]':>7} {'bodies':>9}  [%]"
)


def compared(name: str, arm: armdyn.Arm, fit: armdyn.Log, test: armdyn.Log, **options: Any) -> list[Result]:
    """The log that was not fitted, by armdyn's default and by FIGAROH's and FloBaRoID's estimators on its rows."""
    start = time.process_time()
    ours = armdyn.identify(arm, fit, validate=test, **options)
    seconds = time.process_time() - start
    assert ours.validation is not None
    cutoffs = ours.processing.positions, ours.processing.parallel
    count = len(ours.training.t)
    possible = bool((ours.smallest_eigenvalues > 0).all())
    shown = ours.validation
    out = [Result(name, "armdyn", cutoffs, count, shown.error, shown.joint_errors, seconds, possible)]
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

    def judged(method: str, values: np.ndarray, seconds: float, possible: bool | None) -> Result:
        predicted = Y_test @ values
        joints = np.array([relative_error(a, b) for a, b in zip(tau_test.T, predicted.T, strict=True)])
        return Result(name, method, cutoffs, len(Y), relative_error(tau_test, predicted), joints, seconds, possible)

    start = time.process_time()
    found, who = figaroh([f"p{k}" for k in range(Y.shape[-1])], Y, tau)
    seconds = time.process_time() - start
    out += [judged(f"{who}, {key}", values, seconds, None) for key, values in found.items()]
    start = time.process_time()
    values = flobaroid(arm, model, Y, tau)
    links = values[: model.links].reshape(-1, 10)
    possible = bool((np.linalg.eigvalsh(pseudo_inertia(links))[:, 0] > 0).all())
    out.append(judged("FloBaRoID (written out)", values, time.process_time() - start, possible))
    return out


def flobaroid(arm: armdyn.Arm, model: Model, Y: np.ndarray, tau: np.ndarray) -> np.ndarray:
    """FloBaRoID's constrained estimate: least squares without weights over possible bodies, close to the CAD's.

    It minimises ||Y x - tau||^2 over links with positive definite pseudo-inertia, by a semidefinite program, and among
    those that fit alike takes the one nearest to the a-priori parameters. Here the same set by its logarithmic barrier,
    whose weight is a thousandth of the noise's.
    """
    ones = np.full(tau.shape, 1.0)
    R, z = linear.compress(Y, tau, ones)
    noise = np.linalg.norm(tau - Y @ linear.solve(R, z)) / np.sqrt(tau.size)
    with one_thread():
        return Problem.of(model, arm).solve(R / noise, z / noise, 1e-3)


def table(results: Iterable[list[Result]]) -> list[Result]:
    """All results, printed as they come."""
    print(HEAD)
    every = []
    for group in results:
        for result in group:
            print(result.line, flush=True)
        every += group
    return every


def shipped() -> list[Result]:
    """The simulated log that the tests read: its last 30 %."""
    log = armdyn.Log.read(Path(__file__).parents[1] / "tests" / "data" / "ur5_log.csv")
    return compared("UR5 (simulated)", armdyn.load("ur5"), log.part(0, 0.7), log.part(0.7, 1))


def measured(folder: Path) -> Iterator[list[Result]]:
    """The measured logs: a KUKA LWR4's second run from its first, a UR10's last 30 %, a TX40's 70 to 83 %."""
    kuka = armdyn.load(folder / "kuka_lwr4/kuka_lwr4.urdf")
    runs = [armdyn.Log.read(folder / f"kuka_lwr4/run{k}.csv") for k in (1, 2)]
    yield compared("KUKA LWR4, run 2", kuka, *runs)
    yield compared("KUKA LWR4, run 1", kuka, *runs[::-1])
    log = armdyn.Log.read(folder / "ur10/exciting.csv")
    yield compared("UR10, last 30 %", armdyn.load("ur10"), log.part(0, 0.7), log.part(0.7, 1))
    gears = np.diag([32.0, 32.0, 45.0, -48.0, 45.0, 32.0])
    gears[5, 4] = 32.0
    log = armdyn.Log.read(folder / "tx40/pos_read_data.csv", effort=folder / "tx40/curr_data.csv", rate=5000)
    options = {"transmission": gears, "zero": [0, -np.pi / 2, np.pi / 2, 0, 0, 0]}
    tx40 = armdyn.load(folder / "tx40/tx40_mdh_modified.urdf")
    yield compared("TX40, 70 to 83 %", tx40, log.part(0, 0.7), log.part(0.7, 7.5 / 9), **options)


if __name__ == "__main__":
    names = ("numpy", "scipy")
    print(platform.processor() or platform.machine(), *(f"{name} {version(name)}" for name in names), sep=", ")
    if "--table" in sys.argv:
        after = sys.argv[sys.argv.index("--table") + 1 :]
        folder = Path(after[0]) if after else Path(__file__).parents[2] / "shared" / "data"
        if not folder.exists():
            print(f"no measured logs at {folder}: they are skipped")
        table(chain([shipped()], measured(folder) if folder.exists() else []))
    else:
        for name, value in main("--quick" in sys.argv).items():
            print(f"{name:28} {value:8.3f}")
