"""Nanoseconds per configuration beside other programs and a memory copy: `make bench`."""

from __future__ import annotations

import argparse

import armdyn
import peers
from armdyn.studies import speed

ARMS = ("puma560", "ur5", "panda", "RRRRRR", "RRRRRRR")


def arm(name: str) -> armdyn.Arm:
    return armdyn.generic_arm(name) if set(name) <= {"R", "P"} else armdyn.load(name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("arms", nargs="*", default=ARMS, help="catalogue names, files, or R and P for a general arm")
    parser.add_argument("--quantity", action="append", help="one of: " + ", ".join(speed.QUANTITIES))
    parser.add_argument("--batch", type=int, default=speed.BATCH)
    parser.add_argument("--seconds", type=float, default=0.3, help="how long each is measured")
    given = parser.parse_args()
    print(speed.machine())
    rows = speed.run(
        [arm(name) for name in given.arms], given.quantity or speed.QUANTITIES, given.batch, given.seconds,
        peers.PEERS, peers.BATCH_PEERS,
    )  # fmt: skip
    print(speed.table(rows))


if __name__ == "__main__":
    main()
