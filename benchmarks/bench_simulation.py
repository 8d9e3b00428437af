"""Steps a second of the compiled RK4 loop beside MuJoCo's rollout of the same arm, one thread."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import armdyn
import rollout
from armdyn.studies import speed

ARMS = ("puma560", "panda", "ur5")
STATES = (1, 4096)


def main(arguments: Sequence[str] | None = None) -> list[rollout.Row]:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("arms", nargs="*", default=ARMS, help="catalogue names or files")
    parser.add_argument("--states", type=int, action="append", help="states side by side; may be repeated")
    parser.add_argument("--work", type=int, default=40_960, help="steps of single states in one measurement")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--friction", action="store_true", help="with the joints' friction (frictionloss in MuJoCo)")
    given = parser.parse_args(arguments)
    rows = rollout.measure(
        [armdyn.load(name) for name in given.arms], given.states or STATES, given.work, given.repeats, given.friction
    )
    print(speed.machine())
    print(f"{'arm':12} {'states':>6} {'armdyn':>10} {'MuJoCo':>10}   RK4, steps a second and state; times as many")
    for row in rows:
        print(f"{row.arm:12} {row.states:6d} {1e9 / row.ours:10.0f} {1e9 / row.mujoco:10.0f} {row.ratio:8.1f}")
    return rows


if __name__ == "__main__":
    main()
