"""How well servos are recovered from commands and positions, where the truth is known.

Four arms of 2 to 7 joints under position servos, simulated by `armdyn.simulate` (another integrator than the fit's,
exact sticking, torques computed every millisecond): logs of 50 to 500 Hz with an encoder of 12 bits, white noise of
0.2 mrad, delays of 5 to 20 ms. For each: the largest error of the combinations that the estimate calls determined, the
share of them within two deviations, the predicted positions of another motion over their noise, and the processor time.
Run (some minutes): python benchmarks/bench_servo.py [ARM ...] [--seconds 30] [--seed 1]
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

import armdyn
from armdyn.identification.servo_result import Combination, ServoEstimate

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from servo_logs import COUNT, commands, record, with_servos

CASES = {"double": (200.0, 0.01), "planar3": (50.0, 0.02), "ur5": (100.0, 0.015), "xarm7": (500.0, 0.005)}  # Hz, s
NOISE = 2e-4  # rad


def described(name: str) -> armdyn.Arm:
    if name != "double":
        return armdyn.load(name)
    row = {"a": 0.3, "mass": 1.0, "com": (-0.15, 0, 0), "inertia": (1e-3, 8e-3, 8e-3, 0, 0, 0)}
    return armdyn.from_dh([row | {"name": "upper"}, row | {"name": "lower"}], gravity=(0, -9.81, 0), name="double")


def truth(estimate: ServoEstimate, joints: dict[str, np.ndarray], combination: Combination) -> float:
    """The true value of a combination: a parameter, a sum of some, or such a sum over a kp."""
    arm = estimate.given
    values = dict(zip(arm.minimal_parameters.names, map(float, arm.minimal_parameters.values), strict=True))
    names = arm.joint_names
    values |= {f"{field} {names[i]}": float(x[i]) for field, x in joints.items() for i in range(arm.n)}
    used = [estimate.names[k] for k in np.flatnonzero(combination.gradient)]
    if "/ kp" not in combination.words:
        return sum(values[name] for name in used)
    below = next(name for name in used if name.startswith("kp "))
    return sum(values[name] for name in used if name != below) / values[below]


def judged(name: str, seconds: float, seed: int) -> tuple[float, float, float, float]:
    """Largest error (relative; of delays in units of 1/10 s), share covered, predictions over noise, seconds."""
    rate, delay = CASES[name]
    arm, rng = described(name), np.random.default_rng(seed)
    n = arm.n
    inertia = np.asarray(arm.inertia_matrix(np.zeros(n))).diagonal()
    weight = np.abs(np.asarray(arm.gravity_load(rng.uniform(-1, 1, (50, n))))).mean(axis=0)
    armature = np.maximum(0.2 * inertia, 0.005)
    kp = np.maximum(30 * weight + 20 * armature, 200 * (inertia + armature))
    kd = np.sqrt(kp * (inertia + armature))
    joints = {"kp": kp, "kd": kd, "armature": armature, "viscous": 0.1 * kd, "coulomb": 0.0025 * kp + 0.02 * weight}
    true = with_servos(arm, kp, kd, delay, *(joints[field] for field in ("armature", "viscous", "coulomb")))
    t, wanted = commands(n, seconds, rate, rng)
    log = record(true, t, wanted, noise=NOISE, seed=seed)
    t, wanted = commands(n, 8.0, rate, rng)
    other = record(true, t, wanted, noise=NOISE, seed=seed + 1)
    start = time.process_time()
    estimate = armdyn.identify_servo(arm, log)
    spent = time.process_time() - start
    joints["delay"] = np.full(n, delay)
    errors, covered = [], []
    for found in estimate.identifiable:
        right = truth(estimate, joints, found)
        size = 0.1 if found.words.startswith("delay") else abs(right)
        errors.append(abs(found.value - right) / size)
        covered.append(abs(found.value - right) < 2 * found.deviation)
    ahead = float(np.max(estimate.errors(other))) / float(np.hypot(NOISE, COUNT / np.sqrt(12)))
    print(
        f"{name:8} {n} joints, {rate:3.0f} Hz, {1e3 * delay:2.0f} ms: {len(errors):2} combinations, the worst off by"
        f" {100 * max(errors):5.2f} %, {100 * np.mean(covered):3.0f} % within two deviations; other motions"
        f" {ahead:.2f} times the noise; {spent:5.1f} s{'' if estimate.trusted else ', NOT TRUSTED'}",
        flush=True,
    )
    return max(errors), float(np.mean(covered)), ahead, spent


if __name__ == "__main__":
    given = dict(zip(sys.argv[1:], sys.argv[2:], strict=False))
    chosen = [name for name in sys.argv[1:] if name in CASES] or list(CASES)
    for case in chosen:
        judged(case, float(given.get("--seconds", 30)), int(given.get("--seed", 1)))
