"""The cut-offs that `identify` takes by itself against the best fixed ones, known in hindsight.

Simulated logs of five arms: position noise from 1e-6 to 1e-3 rad, 100 Hz to 5 kHz, time stamps that jitter by up to
4 ms (the stamps alone, or the sampling itself). Each log is fitted with the cut-offs chosen from it and with a
grid of fixed ones; errors are those of the torques of another motion without noise.
Run (three minutes): python benchmarks/bench_cutoff.py [--quick]
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np

import armdyn
from armdyn import Log
from armdyn.identification.excitation import Basis

GRID = (1.5, 2.5, 4.0, 6.0, 9.0, 14.0, 20.0, 30.0, 45.0)  # Hz, of the model's filter; positions: twice that


@dataclass(frozen=True)
class Case:
    """A log: arm, rate (Hz), noise of positions (rad), jitter (s) of the stamps or of the sampling."""

    arm: str
    rate: float
    noise: float
    jitter: float = 0.0
    sampling: bool = False
    velocity: float | None = None  # noise of a logged velocity, rad/s
    torque: float = 0.02  # noise over rms torque
    harmonics: int = 5
    seconds: float = 10.0


CASES = (
    Case("ur5", 100, 1e-6),
    Case("ur5", 100, 1e-4),
    Case("ur5", 100, 1e-3),
    Case("ur5", 100, 1e-5, 0.003),
    Case("ur5", 100, 1e-5, 0.003, sampling=True),
    Case("panda", 1000, 1e-6),
    Case("panda", 1000, 7e-5),
    Case("panda", 1000, 1e-3),
    Case("panda", 1000, 7e-5, 0.001),
    Case("panda", 1000, 1e-5, 0.004),
    Case("panda", 1000, 1e-5, 0.0004, sampling=True),
    Case("panda", 1000, 1e-4, velocity=1e-3),
    Case("puma560", 250, 1e-5, torque=0.1),
    Case("puma560", 500, 1e-4, 0.002, harmonics=12),
    Case("puma560", 500, 1e-3, harmonics=12),
    Case("scara", 1000, 1e-4, 0.002),
    Case("scara", 200, 1e-6, harmonics=12),
    Case("stanford", 200, 1e-4, torque=0.1),
    Case("stanford", 500, 1e-6, 0.004),
    Case("stanford", 5000, 1e-4),
    Case("scara", 5000, 1e-3),
    Case("ur5", 5000, 1e-5, 0.001),
)


def motion(case: Case, n: int, t: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
    basis = Basis(case.seconds, case.harmonics)
    c = rng.normal(size=(basis.size, n)) * 0.6 / np.sqrt(basis.size)
    q, qd, qdd = (b @ c for b in basis.at(t))
    return [q + rng.uniform(-1, 1, n), qd, qdd]


def simulated(case: Case, seed: int) -> tuple[armdyn.Arm, Log, tuple[list[np.ndarray], np.ndarray]]:
    """Arm, log, and states and torques of another motion without noise."""
    rng = np.random.default_rng(seed)
    arm = armdyn.load(case.arm)
    even = np.arange(round(case.seconds * case.rate)) / case.rate
    late = rng.uniform(-case.jitter, case.jitter, len(even))
    taken = np.sort(even + late) if case.sampling else even
    stamps = taken if case.sampling else np.sort(even + late)
    states = motion(case, arm.n, taken, rng)
    size = np.sqrt((np.asarray(arm.inverse_dynamics(*states)) ** 2).mean(axis=0)) + 0.5

    def torque(q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
        return np.asarray(arm.inverse_dynamics(q, qd, qdd)) + 0.1 * size * qd

    tau = torque(*states) + case.torque * size * rng.normal(size=states[0].shape)
    q = states[0] + case.noise * rng.normal(size=tau.shape)
    qd = None if case.velocity is None else states[1] + case.velocity * rng.normal(size=tau.shape)
    other = motion(case, arm.n, np.arange(500) / 50, rng)
    return arm, Log.of(stamps, q, tau, qd), (other, torque(*other))


def error(arm: armdyn.Arm, log: Log, test: tuple[list[np.ndarray], np.ndarray], cut: float | None) -> float:
    options = {} if cut is None else {"parallel": cut, "cutoff": min(2 * cut, 0.45 * log.rate)}
    found = armdyn.identify(arm, log, estimator="weighted", friction="viscous", folds=2, **options)
    if cut is None:
        print(f"  {found.processing}", end="")
    return float(np.linalg.norm(found.predict(*test[0]) - test[1]) / np.linalg.norm(test[1]))


def main(cases: tuple[Case, ...] = CASES, seeds: tuple[int, ...] = (0,)) -> list[float]:
    """The error over that of the best fixed cut-off, case by case."""
    ratios = []
    for case in cases:
        for seed in seeds:
            arm, log, test = simulated(case, seed)
            print(case, *log.notes, sep="\n  ", flush=True)
            own = error(arm, log, test, None)
            fixed = {cut: error(arm, log, test, cut) for cut in GRID if cut < 0.45 * log.rate}
            best = min(fixed, key=lambda cut: fixed[cut])
            ratios.append(own / fixed[best])
            print(f"\n  {100 * own:.2f} %, best {100 * fixed[best]:.2f} % at {best:g} Hz: {ratios[-1]:.2f}", flush=True)
    print(f"error over that of the best fixed cut-off: median {np.median(ratios):.2f}, largest {max(ratios):.2f}")
    return ratios


if __name__ == "__main__":
    main(CASES[:1] if "--quick" in sys.argv else CASES)
