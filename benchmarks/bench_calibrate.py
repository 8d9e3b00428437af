"""Kinematic calibration of made-up arms with known errors: what is found, and how often the deviations cover it.

    python benchmarks/bench_calibrate.py [--runs 30] [--arms ur5,panda,…]

Every arm gets errors of a millimetre and a milliradian (standard deviation) in every constant that poses can tell, and
is measured at 40 random postures with a noise of 0.1 mm per axis (and 0.4 mrad), three of them off by a centimetre.
Shown are the share of corrections within 1.96 standard deviations of the truth (95 % expected), the error of the tool
at postures that were never measured, before and after, and how often just the three wrong poses were set aside.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from scipy.spatial.transform import Rotation

import armdyn
from armdyn.arm import Arm
from armdyn.calibration import Poses, calibrate
from armdyn.calibration.run import chosen
from armdyn.parameters.geometry import identifiable

NOISE = (1e-4, 4e-4)
COUNT = 40
WRONG = (3, 17, 29)
ARMS = ("ur5", "puma560", "panda", "iiwa14", "stanford", "scara", "RRRRRR", "RPRRRR")


def arm_of(name: str) -> Arm:
    """A catalogue's arm, or a general one of these kinds of joints."""
    return armdyn.generic_arm(name, 1) if set(name) <= {"R", "P"} else armdyn.load(name)


def configurations(arm: Arm, rng: np.random.Generator, count: int) -> np.ndarray:
    reach = np.array([2.6 if joint.revolute else 0.3 for joint in arm.joints])
    return rng.uniform(np.maximum(arm.limits[:, 0], -reach), np.minimum(arm.limits[:, 1], reach), (count, arm.n))


def one_run(arm: Arm, kind: str, seed: int) -> tuple[float, float, float, bool, float]:
    """Coverage, errors elsewhere before and after, whether the outliers are right, seconds."""
    rng = np.random.default_rng(seed)
    kept = identifiable(arm.chain, chosen(arm, "all", kind), kind == "pose")
    values = arm.geometry.copy()
    values[[arm.geometry_names.index(c.name) for c in kept]] += rng.normal(0, 1e-3, len(kept))
    real = arm.kernel("pose", parameters="geometry")
    q = configurations(arm, rng, COUNT)
    T = real(q, values)
    T[:, :3, 3] += rng.normal(0, NOISE[0], (COUNT, 3))
    T[:, :3, :3] = T[:, :3, :3] @ Rotation.from_rotvec(rng.normal(0, NOISE[1], (COUNT, 3))).as_matrix()
    T[WRONG, :3, 3] += 0.01
    start = time.perf_counter()
    found = calibrate(arm, Poses.of(q, T if kind == "pose" else T[:, :3, 3]), held_out=0)
    seconds = time.perf_counter() - start
    truth = dict(zip(arm.geometry_names, values - arm.geometry, strict=True))
    inside = np.mean([abs(c.correction - truth[c.name]) < 1.96 * c.deviation for c in found.corrections])
    elsewhere = configurations(arm, rng, 200)
    true = real(elsewhere, values)[:, :3, 3]
    errors = [np.sqrt(((real(elsewhere, g)[:, :3, 3] - true) ** 2).sum(axis=1).mean())
              for g in (arm.geometry, found.fit.geometry)]  # fmt: skip
    return float(inside), float(errors[0]), float(errors[1]), found.outliers == WRONG, seconds


def main() -> None:
    """A line per arm and kind of measurement."""
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--runs", type=int, default=30)
    options.add_argument("--arms", default=",".join(ARMS))
    asked = options.parse_args()
    print("arm        measured  constants  within 1.96 σ  before [mm]  after [mm]  outliers right  seconds")
    for name in asked.arms.split(","):
        arm = arm_of(name)
        for kind in ("pose", "point"):
            count = len(identifiable(arm.chain, chosen(arm, "all", kind), kind == "pose"))
            runs = np.array([one_run(arm, kind, seed) for seed in range(asked.runs)])
            inside, before, after, right, _ = runs.mean(axis=0)
            print(f"{name:10} {kind:8} {count:10} {100 * inside:12.1f} % {1e3 * before:12.2f} {1e3 * after:11.3f} "
                  f"{100 * right:13.0f} % {np.median(runs[:, 4]):8.2f}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
