"""Random trees against Pinocchio: every formulation of every quantity uncompiled, kernels of some of them compiled.

    python benchmarks/campaign_trees.py                    # 10000 trees uncompiled, 200 compiled
    python benchmarks/campaign_trees.py --trees 300 --compiled 6 --first 5000

Trees have up to 40 joints, revolute and prismatic, with branches, mimic joints, rotors, parallel and intersecting axes,
on the ground or floating. Mimic joints are judged by projection of the robot without them. An error above the tolerance
(relative to 1 + the largest entry) is printed with its seed, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from armdyn.arm import Arm
from armdyn.chain import Chain
from armdyn.formulations import QUANTITIES
from random_trees import TreeKind, random_tree
from tree_judge import differences, pinocchio_says, random_motion

TOLERANCE = 1e-10
COMPILED = ("inertia_matrix", "bias", "gravity_load", "inverse_dynamics", "forward_dynamics", "link_poses", "momentum")


def drawn(seed: int, most: int) -> tuple[Chain, Any]:
    """A tree and a motion of it; small trees are more frequent than large ones."""
    rng = random.Random(seed)
    kind = TreeKind(
        joints=rng.randint(2, max(2, round(most ** rng.random() + 2))),
        fork=rng.choice((0.0, 0.2, 0.4, 0.6)),
        prismatic=rng.choice((0.0, 0.2, 0.5)),
        mimic=rng.choice((0.0, 0.0, 0.3)),
        special=rng.choice((0.0, 0.5, 0.9)),
        floating=rng.random() < 0.4,
        rotors=rng.random() < 0.3,
    )
    while not (chain := random_tree(kind, seed)).n:
        seed += 10**6
    return chain, random_motion(chain, np.random.default_rng(seed))


def uncompiled(seed: int, most: int) -> dict[str, float]:
    """The differences of one tree."""
    return differences(*drawn(seed, most))


def compiled(seed: int, most: int) -> dict[str, float]:
    """The same of compiled kernels."""
    chain, (q, qd, qdd) = drawn(seed, most)
    arm, said = Arm(f"tree {seed}", chain, snap=0.0), pinocchio_says(chain, q, qd, qdd)
    said["forward_dynamics"] = qdd
    given = {"q": q, "qd": qd, "qdd": qdd, "tau": said["inverse_dynamics"]}
    found = {}
    for name in COMPILED:
        got = arm.kernel(name)(*(given[port] for port, _ in QUANTITIES[name].inputs))
        found[f"{name} compiled"] = float(np.abs(got - said[name]).max() / (1 + np.abs(said[name]).max()))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trees", type=int, default=10_000)
    parser.add_argument("--compiled", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--joints", type=int, default=40, help="joints at most")
    asked = parser.parse_args()
    worst: dict[str, tuple[float, int]] = {}
    wrong, start, checks = 0, time.perf_counter(), 0
    for judge, count in ((uncompiled, asked.trees), (compiled, asked.compiled)):
        for seed in range(asked.first, asked.first + count):
            for name, error in judge(seed, asked.joints).items():
                checks += 1
                worst[name] = max(worst.get(name, (0.0, seed)), (error, seed))
                if not error < TOLERANCE:
                    wrong += 1
                    print(f"seed {seed}: {name} is off by {error:.2g}")
    for name, (error, seed) in sorted(worst.items(), key=lambda one: -one[1][0]):
        print(f"{name:52s} {error:9.2e}  at seed {seed}")
    print(f"{checks} comparisons, {wrong} above {TOLERANCE:g}, {time.perf_counter() - start:.0f} s")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
