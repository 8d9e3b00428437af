"""The standing campaign of attacks: random robots, layouts, files, cache, writers, forks, motion and delivery.

    make campaign                 # ten minutes
    make campaign MINUTES=60
    python benchmarks/campaign.py --minutes 1 --seed 12345 --only files cache

The attacks (`attacks.py`) take turns until the time is over. Each case is drawn from its own seed, which is printed
when the case fails; the failing case is shrunk as far as it still fails and written to `out/campaign`. A table of what
was tried and what failed ends the run; the exit code is 1 if anything failed.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from attacks import ATTACKS, Failure


def run(minutes: float, seed: int, only: list[str], out: Path, console: Console) -> int:
    """Let the attacks take turns; the number of failures."""
    tried, spent = dict.fromkeys(only, 0), dict.fromkeys(only, 0.0)
    failures: dict[str, list[Failure]] = {name: [] for name in only}
    start = time.monotonic()
    end = start + 60 * minutes
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("campaign", total=60 * minutes)
        while time.monotonic() < end:
            name = min(only, key=spent.__getitem__)  # every attack gets the same share of the time
            case_seed = seed + tried[name]
            begun = time.monotonic()
            with tempfile.TemporaryDirectory() as folder:
                try:
                    failure = ATTACKS[name](case_seed, Path(folder))
                except Exception as error:  # an attack that is itself surprised has found something
                    failure = Failure(f"{type(error).__name__}: {error}", traceback.format_exc())
            tried[name] += 1
            spent[name] += time.monotonic() - begun
            bar.update(task, completed=time.monotonic() - start, description=name)
            if failure is not None:
                failures[name].append(failure)
                path = failure.write(out, f"{name}-{case_seed}")
                console.print(f"{name}, seed {case_seed}: {failure.message} ({path})", markup=False)
    table = Table("attack", "cases tried", "failed", "seconds", title=f"campaign, seeds from {seed}")
    for name in only:
        table.add_row(name, str(tried[name]), str(len(failures[name])), f"{spent[name]:.0f}")
    console.print(table)
    return sum(map(len, failures.values()))


def main() -> int:
    """Parse the command line, run, and tell by the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, help="the first seed; by default drawn, and printed")
    parser.add_argument("--only", nargs="+", choices=list(ATTACKS), default=list(ATTACKS))
    parser.add_argument("--out", type=Path, default=Path("out/campaign"))
    asked = parser.parse_args()
    seed = asked.seed if asked.seed is not None else int.from_bytes(os.urandom(4), "little")
    console = Console()
    console.print(f"attacks for {asked.minutes:g} minutes, seeds from {seed}: {', '.join(asked.only)}")
    return 1 if run(asked.minutes, seed, asked.only, asked.out, console) else 0


if __name__ == "__main__":
    sys.exit(main())
