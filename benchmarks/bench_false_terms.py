"""How often `friction="auto"` adds a term that is not there, and whether deviations cover after selection.

Simulated logs of arms with viscous friction, Coulomb friction that is a sign, rotors and offsets, and nothing else:
every term that is added at a joint is false. The part of joints with a false term should be at most 5 %. Of the
parameters, the truth should lie within two predicted standard deviations for at least 90 %.
Run (some minutes): python benchmarks/bench_false_terms.py [SEEDS]
"""

from __future__ import annotations

import sys
from collections import Counter

import numpy as np

import armdyn
from bench_selection import Case, simulated_with_truth

CASES = (
    Case("ur5", rate=1000.0, seconds=10.0),
    Case("panda", rate=1000.0, seconds=10.0, noise=0.005),
    Case("iiwa14", rate=1000.0, seconds=10.0, noise=0.01, harmonics=8),
    Case("puma560", rate=1000.0, seconds=10.0, noise=0.002),
    Case("scara", rate=1000.0, seconds=10.0, noise=0.01),
    Case("xarm7", rate=500.0, seconds=10.0, noise=0.05),
    Case("kinova_gen3", rate=200.0, seconds=15.0, noise=0.01),
    Case("ur10", rate=125.0, seconds=20.0, noise=0.01),
)


def main(seeds: int = 3, cases: tuple[Case, ...] = CASES) -> tuple[float, float]:
    """The part of joints with a false term, and of parameters within two deviations of the truth."""
    joints, false, inside, counted = 0, 0, 0, 0
    kinds: Counter[str] = Counter()
    for number, case in enumerate(cases):
        for seed in range(seeds):
            arm, fit, _, true, drives = simulated_with_truth(case, 7000 + 100 * number + seed)
            found = armdyn.identify(arm, fit)
            added = list(found.steps)[1:]
            at = {step.split(" of joint ")[-1] for step in added}
            kinds.update(step.split(" of joint ")[0] for step in added)
            joints, false = joints + arm.n, false + len(at)
            truth = dict(zip(found.model.extra_names, np.zeros(len(found.model.extra_names)), strict=True)) | drives
            links = np.array([[float(x) for x in link.natural] for link in true.links]).ravel()
            expected = found.model.natural @ np.concatenate([links, list(truth.values())])
            off = np.abs(found.values - expected) <= 2 * found.deviations
            inside, counted = inside + int(off.sum()), counted + len(off)
            print(f"{case.arm:12} {case.rate:5.0f} Hz: {len(at)} of {arm.n} joints, {100 * off.mean():.0f} % inside; "
                  f"{', '.join(added)}", flush=True)  # fmt: skip
    print(f"false terms at {false} of {joints} joints ({100 * false / joints:.1f} %): {dict(kinds)}; "
          f"{100 * inside / counted:.1f} % of {counted} parameters within two deviations")  # fmt: skip
    return false / joints, inside / counted


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
