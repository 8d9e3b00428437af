"""From a log to the parameters of the arm that made it.

    python 07_identify_a_real_log.py [LOG.csv [ARM]]

LOG has columns t, q1 …, tau1 … (and qd1 … if there are). Without one, a UR10 whose links are not those of its
catalogue file is simulated, with noise, and logged.
"""

import sys

import numpy as np

import armdyn
from armdyn.simulation import fourier


def simulated(arm: armdyn.Arm) -> armdyn.Log:
    rng = np.random.default_rng(0)
    real = arm.with_payload(3.0, com=(0.02, 0.0, 0.06))
    sine, cosine = rng.uniform(-0.4, 0.4, (2, 4, arm.n))
    motion = fourier([0, -0.7, 0.9, -0.5, 0.5, 0], sine, cosine, frequency=0.1, duration=20)
    t = np.arange(0, 20, 0.01)
    q, qd, qdd = motion(t)
    tau = real.inverse_dynamics(q, qd, qdd) + 8.0 * qd + 5.0 * np.tanh(qd / 0.01)
    return armdyn.Log.of(t, q + rng.normal(0, 1e-5, q.shape), tau + rng.normal(0, 0.5, q.shape))


arm = armdyn.load(sys.argv[2] if len(sys.argv) > 2 else "ur10")
log = armdyn.Log.read(sys.argv[1]) if len(sys.argv) > 1 else simulated(arm)
print(f"{len(log)} samples, {log.rate:.0f} Hz, {log.duration:.1f} s", *log.notes, sep="\n  ")

fit, test = log.part(0, 0.7), log.part(0.7, 1)
for estimator in ("ordinary", "consistent"):
    found = armdyn.identify(arm, fit, estimator=estimator, friction="coulomb", folds=3, validate=test)
    possible = sum(found.smallest_eigenvalues > 0)
    print(f"\n{estimator}: {len(found.names)} parameters, {possible} of {arm.n} links are possible bodies")
    print(f"  torque error {100 * found.error:.2f} % where fitted, {100 * found.validation.error:.2f} % on the rest")

for warning in found.warnings:
    print("  note:", warning)
print("\nlink masses [kg]:", ", ".join(f"{float(link.mass):.2f}" for link in found.arm.links))
print("friction:", ", ".join(f"{k} {v:.2f}" for k, v in found.extras.items() if k.startswith("f")))
assert found.validation.error < 0.15
