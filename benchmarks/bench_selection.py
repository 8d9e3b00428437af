"""Does `friction="auto"` predict other motions better than plain friction? Simulated logs of arms, drives and noises.

Each log is of an arm whose links differ from the file's, moved elsewhere for the test. Run (two minutes):
python benchmarks/bench_selection.py
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

import armdyn
from armdyn import Arm, Log
from armdyn.algebra import exact
from armdyn.chain import Link
from armdyn.identification.excitation import Basis
from armdyn.identification.model import natural_of, pseudo_inertia
from armdyn.identification.nonlinear import tilted


@dataclass(frozen=True)
class Case:
    """An arm, its motions and what its joints do; amounts of Stribeck, load, spring and ripple are 0 or 1."""

    arm: str
    seconds: float = 15.0
    amplitude: float = 0.6
    test_amplitude: float = 0.6
    harmonics: int = 5
    rate: float = 200.0
    noise: float = 0.02
    position_noise: float = 2e-5
    off: float = 0.3  # how far the links are from the file's
    stribeck: float = 0.0
    load: float = 0.0
    spring: float = 0.0
    ripple: float = 0.0
    base_tilt: tuple[float, float] = (0.0, 0.0)


CASES = (
    Case("ur5"),
    Case("ur5", stribeck=1),
    Case("iiwa14", seconds=6, noise=0.1),
    Case("panda", amplitude=0.15),
    Case("panda", load=1, stribeck=1),
    Case("puma560", noise=0.2, seconds=8),
    Case("kinova_gen3", spring=1, ripple=1),
    Case("scara"),
    Case("stanford", noise=0.1),
    Case("ur10", base_tilt=(0.03, -0.01)),
    Case("planar3", seconds=5),
    Case("xarm7", amplitude=0.3, seconds=5, noise=0.2, test_amplitude=0.9),
    Case("puma560", off=1.0),
    Case("ur5", noise=0.001),
    Case("panda", rate=100, position_noise=3e-4, noise=0.05),
    Case("iiwa14", amplitude=0.1, seconds=20, noise=0.05, test_amplitude=1.0),
    Case("ur10", harmonics=2, seconds=10, noise=0.3),
)


def moved_off(arm: Arm, rng: np.random.Generator, amount: float) -> Arm:
    """The arm with other, physically consistent, links."""
    links = []
    for link in arm.links:
        M = np.eye(4) + 0.3 * amount * rng.normal(size=(4, 4))
        M[3, :3] = 0
        M[:3, 3] *= 0.3
        P = np.exp(amount * rng.normal()) * M @ pseudo_inertia(np.array([float(x) for x in link.natural])) @ M.T
        links.append(Link.from_natural(tuple(exact(float(x)) for x in natural_of(P))))
    return replace(arm, given=replace(arm.given, links=tuple(links)))


def simulated(case: Case, seed: int) -> tuple[Arm, Log, Log]:
    """The arm as its file says, a log to fit and one without noise to predict."""
    return simulated_with_truth(case, seed)[:3]


def simulated_with_truth(case: Case, seed: int) -> tuple[Arm, Log, Log, Arm, dict[str, float]]:
    """The same, with the arm that was simulated and its plain drives by the names of their parameters."""
    rng = np.random.default_rng(seed)
    arm = armdyn.load(case.arm)
    true, n = moved_off(arm, rng, case.off), arm.n
    if any(case.base_tilt):
        true = tilted(true, *case.base_tilt)

    def motion(seconds: float, amplitude: float) -> list[np.ndarray]:
        basis, t = Basis(seconds, case.harmonics), np.arange(round(seconds * case.rate)) / case.rate
        c = rng.normal(size=(basis.size, n)) * amplitude / np.sqrt(basis.size)
        q, qd, qdd = (b @ c for b in basis.at(t))
        return [t, q + rng.uniform(-1, 1, n), qd, qdd]

    first = motion(case.seconds, case.amplitude)
    size = np.sqrt((np.asarray(true.inverse_dynamics(*first[1:])) ** 2).mean(axis=0)) + 0.5
    fv, fc, ia = (part * size * rng.uniform(0.3, 2, n) for part in (0.1, 0.1, 0.01))
    offset = 0.02 * size * rng.normal(size=n)
    fs, bump = case.stribeck * 0.1 * size * rng.uniform(0.3, 2, n), rng.uniform(0.05, 0.2, n)
    fl = case.load * rng.uniform(0, 0.1, n)
    k = case.spring * 0.05 * size * rng.normal(size=n) * (rng.random(n) < 0.4)
    ripple = case.ripple * 0.05 * size * (rng.random(n) < 0.4)

    def log(t: np.ndarray, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray, noise: float) -> Log:
        rigid = np.asarray(true.inverse_dynamics(q, qd, qdd))
        friction = fv * qd + np.sign(qd) * (fc + fs * np.exp(-((qd / bump) ** 2)) + fl * np.abs(rigid))
        tau = rigid + friction + ia * qdd + offset + k * q + ripple * np.cos(4 * q)
        white = rng.normal(size=q.shape)
        drift = np.cumsum(rng.normal(size=q.shape), axis=0)
        drift = (drift - drift.mean(axis=0)) / drift.std(axis=0)
        q = q + case.position_noise * rng.normal(size=q.shape)
        return Log.of(t, q, tau + noise * size * (white + 0.3 * drift), qd)

    symbols = {"Ia": ia, "fv": fv, "fc": fc, "off": offset}
    drives = {f"{symbol}{j + 1}": float(x[j]) for symbol, x in symbols.items() for j in range(n)}
    return arm, log(*first, case.noise), log(*motion(15.0, case.test_amplitude), 0.0), true, drives


def main(seeds: tuple[int, ...] = (300, 400)) -> list[float]:
    ratios = []
    for number, case in enumerate(CASES):
        for seed in seeds:
            arm, fit, test = simulated(case, seed + number)
            plain = armdyn.identify(arm, fit, friction="coulomb", validate=test).validation
            found = armdyn.identify(arm, fit, validate=test)
            assert plain is not None
            assert found.validation is not None
            ratios.append(found.validation.raw_error / plain.raw_error)
            print(f"{case.arm:12} {100 * plain.raw_error:7.2f} % {100 * found.validation.raw_error:7.2f} %"
                  f"{ratios[-1]:7.2f}  {', '.join(list(found.steps)[1:])}", flush=True)  # fmt: skip
    print(f"error over that with viscous and Coulomb friction: mean {np.exp(np.mean(np.log(ratios))):.2f}, "
          f"largest {max(ratios):.2f}, of {len(ratios)}")  # fmt: skip
    return ratios


if __name__ == "__main__":
    main()
