"""Operations of every quantity as compiled, on the catalogue's arms and on general ones: what a change must not raise.

    python benchmarks/operation_counts.py -o before.json
    python benchmarks/operation_counts.py --compare before.json

Nothing is kept from earlier runs: programs are assembled, rewritten and chosen anew. It takes some minutes.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ["ARMDYN_CACHE"] = "off"

import armdyn
from armdyn.formulations import QUANTITIES

GENERAL = ("RR", "RPR", "RRRR", "RRPRR", "RRRRRR", "RRPRRR", "PRRPRR", "RRRRRRR", "RRRRRRRR")
DERIVATIVES = {"inverse_dynamics": ("q", "qd", "qdd"), "forward_dynamics": ("q", "qd", "tau")}


def arms() -> Iterator[Any]:
    """The catalogue, then arms with nothing special about them."""
    yield from map(armdyn.load, armdyn.catalogue())
    for kinds in GENERAL:
        yield armdyn.generic_arm(kinds)


def counts(arm: Any) -> dict[str, dict[str, Any]]:
    """Quantity -> method and operations of its program."""
    found = {}
    for quantity in QUANTITIES:
        found[quantity] = _row(arm.kernel(quantity))
        if quantity in ("inverse_dynamics", "inertia_matrix", "forward_dynamics"):
            found[f"{quantity} run-time"] = _row(arm.kernel(quantity, parameters="runtime"))
        if quantity in DERIVATIVES:
            found[f"{quantity}_derivatives"] = _row(arm.kernel(quantity, derivatives=DERIVATIVES[quantity]))
    return found


def _row(kernel: Any) -> dict[str, Any]:
    start = time.process_time()
    operations, method = kernel.program.operations, kernel.method
    seconds = time.process_time() - start
    return {
        "method": method,
        "mul": operations.mul,
        "add": operations.add,
        "div": operations.div,
        "trig": operations.trig,
        "total": operations.total,
        "seconds": round(seconds, 3),
    }


def compare(before: dict[str, Any], now: dict[str, Any]) -> int:
    """Print what differs; the number of programs that have grown."""
    grown = 0
    for name, quantities in now.items():
        for quantity, row in quantities.items():
            old = before.get(name, {}).get(quantity)
            if old is None or (old["total"], old["method"]) == (row["total"], row["method"]):
                continue
            grown += row["total"] > old["total"]
            mark = "LONGER" if row["total"] > old["total"] else "shorter" if row["total"] < old["total"] else "same"
            change = f"{old['total']:6} {old['method']:16} -> {row['total']:6} {row['method']:16}"
            print(f"{name:20} {quantity:30} {change} {mark}")
    seconds = [sum(row["seconds"] for arm in data.values() for row in arm.values()) for data in (before, now)]
    print(f"{grown} longer; {seconds[0]:.1f} s before, {seconds[1]:.1f} s now")
    return grown


def main() -> None:
    """Count, write, compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, help="write the counts here (JSON)")
    parser.add_argument("--compare", type=Path, help="counts written earlier")
    given = parser.parse_args()
    now = {}
    for arm in arms():
        now[arm.name] = counts(arm)
        if not given.compare:
            print(arm.name, {quantity: row["total"] for quantity, row in now[arm.name].items()}, flush=True)
    if given.output:
        given.output.write_text(json.dumps(now, indent=1))
    if given.compare:
        sys.exit(compare(json.loads(given.compare.read_text()), now) > 0)


if __name__ == "__main__":
    main()
