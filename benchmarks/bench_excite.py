"""How much a designed motion tells, against the best of 200 random motions within the same limits.

For each arm: predicted standard deviations of all parameters (rigid body, rotors, friction, offsets) of the best of
200 random Fourier motions as large as the limits allow, over those of the designed motion; and the same for the best of
the 200 of each parameter, which no single motion is. With --verify, 30 simulated logs of both motions are fitted as
well, and the scatter of their parameters is compared.
Run (two minutes): python benchmarks/bench_excite.py [ARM ...] [--verify]
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


def random_deviations(
    design: Design, count: int, rng: np.random.Generator
) -> tuple[np.ndarray, list[list[np.ndarray]]]:
    """Predicted standard deviations of random motions, (count, parameters), and the motions."""
    motions = [design.flat(design.random(rng), 2 * GRID) for _ in range(count)]
    return np.array([design.information.deviations(*states) for states in motions]), motions


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
    arms: tuple[str, ...] = ARMS, count: int = 200, starts: int = 6, verify: bool = False
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
            chance, motions = random_deviations(design, count, rng)
            step = max(1, len(found.t) // (2 * GRID))
            states = [np.ascontiguousarray(x[0, :-1:step]) for x in (found.q, found.qd, found.qdd)]
            own = design.information.deviations(*states) * np.sqrt(len(states[0]) / (2 * GRID))
            gain = chance.min(axis=0) / own
            first = int(np.argmin((chance**2 / chance.min(axis=0) ** 2).sum(axis=1)))  # one motion, the best
            best = chance[first]
            out[name] = (float(np.median(best / own)), float((best / own).min()))
            print(
                f"{name:8} {seconds:5.1f} s; over the best motion: median {out[name][0]:.2f}, worst {out[name][1]:.2f};"
                f" over the best of 200 for each parameter: median {np.median(gain):.2f}, worst {gain.min():.2f};"
                f" range of joint 1 {np.degrees(np.ptp(found.q[..., 0])):.0f} degrees", flush=True,
            )  # fmt: skip
            if verify:
                ours, theirs = scatter(design, states, rng), scatter(design, motions[first], rng)
                held = ours / design.information.deviations(*states)
                ratio = theirs / ours * np.sqrt(2 * GRID / len(states[0]))
                print(f"  30 fits each: scatter over prediction {np.median(held):.2f}; random over designed: "
                      f"median {np.median(ratio):.2f}")  # fmt: skip
    return out


if __name__ == "__main__":
    main(tuple(a for a in sys.argv[1:] if a[0] != "-") or ARMS, verify="--verify" in sys.argv)
