"""Random trees against Pinocchio: every quantity and the derivatives uncompiled, kernels of some of them compiled.

    python benchmarks/campaign_trees.py                    # 10000 trees uncompiled, 200 compiled
    python benchmarks/campaign_trees.py --trees 300 --compiled 6 --first 5000 --all
    nice python benchmarks/campaign_trees.py --record campaign.json     # can be interrupted, and goes on from there

Trees have up to 40 joints, revolute and prismatic, with branches, mimic joints, rotors, parallel and intersecting axes,
on the ground or floating. Mimic joints are judged by projection of the robot without them. Every quantity is computed
on floats by one of its formulations, the next one with the next tree; with `--all` by every one. What takes long on
large trees is left to small ones: the reference, and the minimal parameters behind the regressor. An error above the
tolerance (relative to 1 + the largest entry) is printed with its seed, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from armdyn.arm import Arm
from armdyn.chain import Chain
from armdyn.files.text import write_text
from armdyn.formulations import QUANTITIES
from random_trees import TreeKind, random_tree
from tree_judge import differences, pinocchio_says, random_motion

TOLERANCE = 1e-10
SMALL = 8  # bodies, up to which everything is computed
SLOW = ("regressor", "reference", "christoffel")  # quantities and formulations
PIECE = 10  # trees between two records
COMPILED = ("inertia_matrix", "bias", "gravity_load", "inverse_dynamics", "forward_dynamics", "dh_poses", "momentum")


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


def uncompiled(seed: int, most: int, every: bool) -> dict[str, float]:
    """The differences of one tree."""
    chain, motion = drawn(seed, most)

    def choice(quantity: str, formulations: list[Any]) -> list[Any]:
        if chain.bodies > SMALL:
            formulations = [f for f in formulations if not (f.reference_only or f.key in SLOW or quantity in SLOW)]
        return formulations if every or not formulations else [formulations[seed % len(formulations)]]

    return differences(chain, motion, choice=choice)


def compiled(seed: int, most: int, every: bool) -> dict[str, float]:
    """The same of compiled kernels, by the formulation that is chosen for them."""
    chain, (q, qd, qdd) = drawn(seed, most)
    arm, said = Arm(f"tree {seed}", chain, snap=0.0), pinocchio_says(chain, q, qd, qdd)
    said["forward_dynamics"] = qdd
    given = {"q": q, "qd": qd, "qdd": qdd, "tau": said["inverse_dynamics"]}
    found = {}
    for name in COMPILED:
        got = arm.kernel(name)(*(given[port] for port, _ in QUANTITIES[name].inputs))
        found[f"{name} compiled"] = float(np.abs(got - said[name]).max() / (1 + np.abs(said[name]).max()))
    return found


@dataclass
class Record:
    """How far a campaign has come, and the largest differences; a file keeps it, if there is one."""

    file: Path | None
    done: dict[str, int] = field(default_factory=lambda: {"uncompiled": 0, "compiled": 0})
    worst: dict[str, tuple[float, int]] = field(default_factory=dict)
    comparisons: int = 0
    wrong: int = 0
    seconds: float = 0.0

    @classmethod
    def at(cls, file: Path | None) -> Record:
        """What a file has, or nothing yet."""
        return cls(file, **json.loads(file.read_text())) if file is not None and file.exists() else cls(file)

    def add(self, seed: int, found: dict[str, float]) -> None:
        """The differences of one tree."""
        for name, error in found.items():
            self.comparisons += 1
            self.worst[name] = max(tuple(self.worst.get(name, (0.0, seed))), (error, seed))
            if not error < TOLERANCE:
                self.wrong += 1
                print(f"seed {seed}: {name} is off by {error:.2g}", flush=True)

    def keep(self) -> None:
        """Write the file."""
        if self.file is not None:
            write_text(self.file, json.dumps({k: v for k, v in asdict(self).items() if k != "file"}, indent=1) + "\n")

    def show(self) -> None:
        """The largest differences, quantity by quantity."""
        for name, (error, seed) in sorted(self.worst.items(), key=lambda one: -one[1][0]):
            print(f"{name:52s} {error:9.2e}  at seed {seed}")
        done = ", ".join(f"{count} {kind}" for kind, count in self.done.items())
        print(f"{done}; {self.comparisons} comparisons, {self.wrong} above {TOLERANCE:g}, {self.seconds:.0f} s")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trees", type=int, default=10_000)
    parser.add_argument("--compiled", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--joints", type=int, default=40, help="joints at most")
    parser.add_argument("--all", action="store_true", help="every formulation of every quantity")
    parser.add_argument("--record", type=Path, help="a file to go on from, written every 10 trees")
    asked = parser.parse_args()
    record = Record.at(asked.record)
    try:
        for kind, judge, count in (("uncompiled", uncompiled, asked.trees), ("compiled", compiled, asked.compiled)):
            while (done := record.done[kind]) < count:
                start = time.process_time()
                for seed in range(done, min(done + PIECE, count)):
                    record.add(asked.first + seed, judge(asked.first + seed, asked.joints, asked.all))
                    record.done[kind] += 1
                record.seconds += time.process_time() - start
                record.keep()
    except KeyboardInterrupt:
        print("interrupted")
    record.show()
    return 1 if record.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
