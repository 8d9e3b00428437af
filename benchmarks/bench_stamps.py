"""Identification of logs whose stamps are faulty, against the best clock and cut-off known in hindsight.

Simulated logs of five arms, 100 Hz to 5 kHz, drawn at random: sampling that is itself uneven (stamps rounded, gaps
where a buffer was written), stamps early or late while the sampling is even, rounded stamps, lost rows, rows written
twice, and a clock that wanders. Positions have white noise, noise that grows with speed, or the steps of an encoder;
friction, and links that are off the prior by up to 30 %. Each log is identified from by default, and with every pair of
a fixed clock and a fixed cut-off; errors are those of the torques of another motion without noise.
Run (some four minutes for 40 logs): python benchmarks/bench_stamps.py [--logs 40] [--first 1000] [--quick]
"""

from __future__ import annotations

import sys
import time
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import armdyn
from armdyn import Arm, Log
from armdyn.algebra import exact
from armdyn.chain import Link
from armdyn.identification.excitation import Basis

ARMS = ("ur5", "panda", "puma560", "scara", "stanford")
FAULTS = ("uneven", "buffered", "jittering", "late", "rounded", "lost", "repeated", "wandering", "clean")
GRID = (1.2, 2.0, 3.5, 6.0, 10.0, 20.0)  # Hz, of the model's filter; positions: twice that
OPTIONS = {"estimator": "weighted", "friction": "coulomb", "folds": 2}


@dataclass(frozen=True, eq=False)
class Recorded:
    """The columns of a faulty log, the arm that is known beforehand, and a motion with its torques to predict."""

    fault: str
    prior: Arm
    t: np.ndarray
    q: np.ndarray
    tau: np.ndarray
    qd: np.ndarray | None
    test: tuple[np.ndarray, np.ndarray, np.ndarray]
    torques: np.ndarray
    words: str

    def log(self, clock: str = "auto") -> Log:
        return Log.of(self.t, self.q, self.tau, self.qd, clock=clock)


def recorded(seed: int, fault: str = "", seconds: float | None = None, arm: str = "") -> Recorded:
    """A log with the faults of this seed, unless a fault, the length or the arm are given."""
    rng = np.random.default_rng(seed)
    fault = fault or FAULTS[seed % len(FAULTS)]
    drawn = ARMS[int(rng.integers(len(ARMS)))]
    name = arm or drawn
    truth = armdyn.load(name)
    rate = float(np.exp(rng.uniform(np.log(100), np.log(5000))))
    seconds = seconds or float(min(rng.uniform(8, 30), 25_000 / rate))
    period = 1 / rate
    even = np.arange(round(seconds * rate)) * period
    taken, stamps = _clocks(fault, even, period, rng)
    basis = Basis(seconds, int(rng.integers(4, 13)))
    motion = rng.normal(size=(basis.size, truth.n)) * 0.6 / np.sqrt(basis.size)
    middle = rng.uniform(-1, 1, truth.n)
    q, qd, qdd = (b @ motion for b in basis.at(taken))
    q = q + middle
    size = np.sqrt((np.asarray(truth.inverse_dynamics(q, qd, qdd)) ** 2).mean(axis=0)) + 0.5
    viscous, coulomb = 0.1 * size, 0.05 * size * float(rng.choice([0.0, 1.0]))

    def torques(q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
        return np.asarray(truth.inverse_dynamics(q, qd, qdd)) + viscous * qd + coulomb * np.sign(qd)

    tau = torques(q, qd, qdd) + float(rng.choice([0.01, 0.03, 0.1])) * size * rng.normal(size=q.shape)
    white = float(10 ** rng.uniform(-6, -3.3))
    noisy = q + white * rng.normal(size=q.shape) + _off_in_time(len(q), period, rng)[:, None] * qd
    step = float(rng.choice([0.0, 2 * np.pi / 2**16]))
    noisy = np.round(noisy / step) * step if step else noisy
    speed = None if rng.uniform() < 0.6 else qd + 20 * white * rng.normal(size=q.shape)
    rows = _rows(fault, len(even), rng)
    stamps = stamps[: len(rows)] if fault == "repeated" else stamps[rows]
    if fault == "repeated":  # the rows written twice take stamps of their own: the log is longer by their time
        stamps = np.arange(len(rows)) * period * len(even) / len(rows)
    far = Basis(12.0, 9)
    other = rng.normal(size=(far.size, truth.n)) * 0.6 / np.sqrt(far.size)
    test = tuple(b @ other for b in far.at(np.arange(600) / 50))
    test = (test[0] + middle, test[1], test[2])
    return Recorded(
        fault, _off(truth, rng), stamps, noisy[rows], tau[rows], None if speed is None else speed[rows], test,
        torques(*test), f"{name}, {rate:.0f} Hz, {seconds:.0f} s, {fault}",
    )  # fmt: skip


def _clocks(fault: str, even: np.ndarray, period: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """When the rows were taken, and their stamps."""
    count = len(even)
    if fault in ("uneven", "buffered"):
        steps = period * rng.choice(
            [0.7, 0.8, 1.0, 1.1, 1.2, 1.5, 1.8], size=count, p=[0.1, 0.2, 0.3, 0.2, 0.1, 0.05, 0.05]
        )
        if fault == "buffered":
            steps[:: max(round(4.9 / period), 50)] += 7.5 * period
        taken = np.cumsum(steps) - steps[0]
        return taken * even[-1] / taken[-1], np.round(taken * even[-1] / taken[-1], 6)
    if fault == "jittering":
        return even, np.sort(even + rng.normal(size=count) * period * rng.uniform(0.1, 2))
    if fault == "late":
        delay = rng.exponential(size=count) * period * rng.uniform(0.1, 2)
        for start in range(count // 7, count, max(count // 5, 1)):  # a buffer is written: the rows wait
            wait = np.arange(min(12, count - start))
            delay[start : start + len(wait)] += np.maximum(9 * period - wait * period * 0.8, 0)
        return even, np.maximum.accumulate(even + delay)
    if fault == "rounded":
        return even, np.round(even / (3.3 * period)) * 3.3 * period
    if fault == "wandering":
        frequency = float(np.exp(rng.uniform(np.log(0.5), np.log(20))))
        phase = np.cumsum(rng.normal(size=count)) * np.sqrt(period) * 0.5
        wander = rng.uniform(0.0002, 0.0016) * np.sin(2 * np.pi * frequency * even + phase)
        return even, np.sort(even + wander)
    return even, even.copy()


def _off_in_time(count: int, period: float, rng: np.random.Generator) -> np.ndarray:
    """By how much each row was taken early or late (s), coloured: noise of the positions that grows with the speed."""
    from scipy.signal import lfilter

    size, memory = float(rng.choice([0.0, 1e-5, 1e-4])), float(rng.choice([0.0, 0.003, 0.02]))
    keep = float(np.exp(-period / memory)) if memory else 0.0
    return size * lfilter([np.sqrt(1 - keep**2)], [1.0, -keep], rng.normal(size=count))


def _rows(fault: str, count: int, rng: np.random.Generator) -> np.ndarray:
    rows = np.arange(count)
    if fault == "lost":
        gone = rng.uniform(size=count) < 0.005
        for start in rng.integers(count // 10, count, 3):
            gone[start : start + int(rng.integers(3, 40))] = True
        return rows[~gone]
    if fault == "repeated":
        return np.sort(np.concatenate([rows, rows[rng.uniform(size=count) < rng.uniform(0.005, 0.06)]]))
    return rows


def _off(arm: Arm, rng: np.random.Generator) -> Arm:
    """The arm with every link heavier or lighter by up to 30 %, or as it is."""
    if rng.uniform() < 0.4:
        return arm
    links = [Link.from_natural(tuple(x * exact(float(f)) for x in link.natural))
             for f, link in zip(rng.uniform(0.7, 1.3, len(arm.links)), arm.links, strict=True)]  # fmt: skip
    return replace(arm, given=replace(arm.given, links=tuple(links)))


def error(case: Recorded, log: Log, **options: Any) -> float:
    """The relative error of the torques of the other motion."""
    found = armdyn.identify(case.prior, log, **(OPTIONS | options))
    return float(np.linalg.norm(found.predict(*case.test) - case.torques) / np.linalg.norm(case.torques))


def judged(seed: int, fault: str = "", say: bool = True, grid: tuple[float, ...] = GRID) -> tuple[str, float, float]:
    """The fault, the error by default, and the best one known in hindsight."""
    case = recorded(seed, fault)
    log = case.log()
    start = time.perf_counter()
    own = error(case, log)
    seconds = time.perf_counter() - start
    fixed: dict[tuple[str, float], float] = {}
    for clock in ("stamps", "even"):
        other = case.log(clock)
        for cut in grid:
            if cut < 0.45 * other.rate:
                fixed[clock, cut] = error(case, other, parallel=cut, cutoff=min(2 * cut, 0.45 * other.rate))
    best = min(fixed, key=lambda key: fixed[key])
    if say:
        print(
            f"{seed:5} {case.words:38} {log.clock[:34]:34} {100 * own:7.3f} % best {100 * fixed[best]:7.3f} %"
            f" ({best[0]}, {best[1]:g} Hz) ratio {own / fixed[best]:6.2f}  {seconds:.1f} s",
            flush=True,
        )
    return case.fault, own, fixed[best]


def main(logs: int = 40, first: int = 1000) -> dict[str, list[float]]:
    """Ratios of the errors, by fault."""
    ratios: dict[str, list[float]] = {}
    for seed in range(first, first + logs):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fault, own, best = judged(seed)
        ratios.setdefault(fault, []).append(own / best)
    for fault, values in ratios.items():
        print(f"{fault:10} {len(values):3} logs: median {np.median(values):.3f}, largest {max(values):.3f}")
    every = np.concatenate(list(ratios.values()))
    print(
        f"all {len(every)}: median {np.median(every):.3f}, 90 % below {np.percentile(every, 90):.3f}, largest"
        f" {every.max():.3f}; {np.count_nonzero(every <= 1.3)} within 1.3"
    )
    return ratios


if __name__ == "__main__":
    given = dict(zip(sys.argv[1::2], sys.argv[2::2], strict=False))
    main(3 if "--quick" in sys.argv else int(given.get("--logs", 40)), int(given.get("--first", 1000)))
