"""How much a designed motion tells, against the best of 200 random motions within the same limits.

For each arm: predicted standard deviations of all parameters (rigid body, rotors, friction, offsets) of the best of
200 random Fourier motions (other ones than the design saw, with 5 to 20 harmonics) as large as the limits allow, over
those of the designed motion; and the same for the best of
the 200 of each parameter, which no single motion is. With --verify, 30 simulated logs of both motions are fitted as
well, and the scatter of their parameters is compared.
Run (two minutes): python benchmarks/bench_excite.py [ARM ...] [--verify]
"""

from __future__ import annotations

import sys
import time

import numpy as np

import armdyn
from armdyn.identification import linear
from armdyn.identification.excitation import Basis, ExcitationDesign, best_of_chance, designed
from armdyn.identification.limits import Limits
from armdyn.identification.threads import one_thread

ARMS = ("panda", "ur5", "iiwa14", "xarm7")


def scatter(design: ExcitationDesign, states: list[np.ndarray], rng: np.random.Generator, runs: int = 30) -> np.ndarray:
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
        start = time.process_time()
        found = armdyn.excite(arm, 20.0, starts=starts)
        seconds = time.process_time() - start
        rng = np.random.default_rng(1)
        with one_thread():
            design = designed(arm, Basis(20.0, 20), Limits.of(arm, None, None, 0.95), 1, "information", None, rng)
            motion, best, least = best_of_chance(design, count, rng)
            states = [np.ascontiguousarray(x[0, :-1]) for x in (found.q, found.qd, found.qdd)]
            per_sample = np.sqrt(len(states[0]) / design.fine)
            own = design.information.deviations(*states) * per_sample
            gain, ratio, worst = least / own, best / own, int(np.argmin(best / own))
            out[name] = (float(np.median(ratio)), float(ratio[worst]))
            print(
                f"{name:8} {seconds:5.1f} s of CPU; over the best motion: median {out[name][0]:.2f}, worst"
                f" {out[name][1]:.3f} ({design.information.names[worst]}); over the best of {count} for each parameter:"
                f" median {np.median(gain):.2f}, worst {gain.min():.2f}; range of joint 1"
                f" {np.degrees(np.ptp(found.q[..., 0])):.0f} degrees", flush=True,
            )  # fmt: skip
            if verify:
                ours, theirs = scatter(design, states, rng), scatter(design, design.flat(motion, design.fine), rng)
                held, scattered = ours / design.information.deviations(*states), theirs / ours / per_sample
                print(f"  30 fits each: scatter over prediction {np.median(held):.2f}; random over designed: "
                      f"median {np.median(scattered):.2f}")  # fmt: skip
    return out


if __name__ == "__main__":
    main(tuple(a for a in sys.argv[1:] if a[0] != "-") or ARMS, verify="--verify" in sys.argv)
