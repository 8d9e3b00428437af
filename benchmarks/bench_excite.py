"""How much a designed motion tells, against the best of 200 random motions within the same limits.

For each arm: predicted standard deviations of all parameters (rigid body, rotors, friction, offsets) of the designed
motion over those of random Fourier motions as large as the limits allow, of each parameter the best of the 200; with
--verify, 30 simulated logs each are fitted as well, and the scatter of their parameters is compared.
Run (two minutes): python benchmarks/bench_excite.py [--verify]
"""

from __future__ import annotations

import sys
import time

import numpy as np

import armdyn
from armdyn.identification.estimate import linear
from armdyn.identification.estimate.threads import one_thread
from armdyn.identification.excitation.design import GRID, Design, designed
from armdyn.identification.excitation.fourier import Basis
from armdyn.identification.excitation.limits import Limits

ARMS = ("panda", "ur5", "iiwa14", "xarm7")


def random_deviations(design: Design, count: int, rng: np.random.Generator) -> np.ndarray:
    """Predicted standard deviations of random motions, (count, parameters)."""
    motions = (design.flat(design.random(rng), 2 * GRID) for _ in range(count))
    return np.array([design.information.deviations(*states) for states in motions])


def scatter(design: Design, states: list[np.ndarray], rng: np.random.Generator, runs: int = 30) -> np.ndarray:
    """Standard deviation of the parameters of `runs` simulated logs along a motion."""
    model, noise = design.information.model, design.information.noise
    Y = model.regressor(*states)
    truth = model.natural @ model.prior(design.arm)
    weights = np.broadcast_to(1 / noise, Y.shape[:2])
    fits = []
    for _ in range(runs):
        tau = Y @ truth + noise * rng.normal(size=Y.shape[:2])
        fits.append(linear.solve(*linear.compress(Y, tau, weights)))
    return np.std(fits, axis=0, ddof=1)


def main(
    arms: tuple[str, ...] = ARMS, count: int = 200, starts: int = 3, verify: bool = False
) -> dict[str, tuple[float, float]]:
    """By arm: the median and the worst parameter's ratio of standard deviations, random over designed."""
    out = {}
    for name in arms:
        arm = armdyn.load(name)
        start = time.perf_counter()
        found = armdyn.excite(arm, 20.0, starts=starts)
        seconds = time.perf_counter() - start
        rng = np.random.default_rng(1)
        with one_thread():
            design = designed(arm, Basis(20.0, 5), Limits.of(arm, None, None, 0.95), 1, "information", None, rng)
            chance = random_deviations(design, count, rng)
            step = max(1, len(found.t) // (2 * GRID))
            states = [np.ascontiguousarray(x[0, :-1:step]) for x in (found.q, found.qd, found.qdd)]
            own = design.information.deviations(*states) * np.sqrt(len(states[0]) / (2 * GRID))
            gain = chance.min(axis=0) / own
            best = chance[np.argmin((chance**2 / design.information.reference).sum(axis=1))]  # one motion, the best
            out[name] = (float(np.median(best / own)), float((best / own).min()))
            print(
                f"{name:8} {seconds:5.1f} s; over the best motion: median {out[name][0]:.2f}, worst {out[name][1]:.2f};"
                f" over the best of 200 for each parameter: median {np.median(gain):.2f}, worst {gain.min():.2f};"
                f" range of joint 1 {np.degrees(np.ptp(found.q[..., 0])):.0f} degrees", flush=True,
            )  # fmt: skip
            if verify:
                measured = scatter(design, states, rng) / design.information.deviations(*states)
                print(f"  scatter of 30 fits over prediction: median {np.median(measured):.2f}")
    return out


if __name__ == "__main__":
    main(verify="--verify" in sys.argv)
