"""Samples per second of a sweep on one thread, two threads and two Dask workers, and what the engine costs per chunk.

python benchmarks/bench_sweep.py [--quick]   prints the table of docs/howto/scaling.md; the best of several repeats.
"""

from __future__ import annotations

import platform
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import armdyn
from armdyn.sweeps import Moments, Quantiles, Robustness, sweep

REPEATS = 3
START, END = (0.0, -1.2, 1.0, 0.0, 0.5, 0.0), (0.4, -1.0, 1.2, 0.2, 0.5, 0.2)


def nothing(arm: armdyn.Arm, numbers: range) -> dict[str, Any]:
    """What costs nothing: all that is measured is the engine."""
    return {"x": np.zeros(len(numbers))}


def torques(arm: armdyn.Arm, samples: Any) -> dict[str, Any]:
    """The torques of 10 postures per sample."""
    q = np.linspace(-1.0, 1.0, 60).reshape(10, 6)
    return {"tau": (("sample", "posture", "joint"), samples.evaluate("inverse_dynamics", q, q, q).values)}


def best(run: Callable[[Path], Any], repeats: int) -> tuple[float, float]:
    """Seconds by the clock and of this process's CPU, the least of several runs, each with a folder of its own.

    The scheduler of a local cluster is part of this process: its CPU is what one client costs, whoever works.
    """
    times = []
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as folder:
            start = time.perf_counter(), time.process_time()
            run(Path(folder))
            times.append((time.perf_counter() - start[0], time.process_time() - start[1]))
    return min(t for t, _ in times), min(t for _, t in times)


def engine(client: Any, repeats: int, chunks: int) -> list[tuple[str, float, float]]:
    """Milliseconds per chunk, by the clock and of this process's CPU; chunks of one sample that costs nothing."""
    arm = armdyn.load("ur10")
    rows = []
    for runner, options in (("one thread", {"threads": 1}), ("two Dask workers", {"client": client})):
        for place in ("", "study.zarr", "study.parquet"):

            def run(folder: Path, options: Any = options, place: str = place) -> Any:
                return sweep(arm, nothing, chunks, out=folder / place if place else None, chunk=1, **options)

            wall, cpu = best(run, repeats)
            rows.append((f"{runner}, {place or 'memory'}", 1e3 * wall / chunks, 1e3 * cpu / chunks))
    return rows


def rates(client: Any, repeats: int, scale: int) -> list[tuple[str, list[float]]]:
    """Samples per second by study: of CPU on one thread; by the clock on one thread, two threads, two workers."""
    arm = armdyn.load("ur10")
    uncertain = armdyn.Uncertain(arm, payload_mass=armdyn.Uniform(0, 5), link_masses=armdyn.Normal(1, 0.05))
    motion = Robustness(START, END, duration=0.5, settle=0.0)
    long = Robustness(START, END, duration=0.5, settle=0.0, trajectories=True)
    reduce = [Quantiles(), Moments()]
    studies = (
        ("torques of 10 postures, reduced", torques, 32768 * scale, {"reduce": reduce, "chunk": 4096}, ""),
        ("motion of 0.5 s, reduced", motion, 1024 * scale, {"reduce": reduce, "chunk": 128}, ""),
        ("motion of 0.5 s, to Zarr", long, 1024 * scale, {"chunk": 128}, "motion.zarr"),
    )
    rows = []
    for name, compute, count, options, place in studies:
        found = []
        for runner in ({"threads": 1}, {"threads": 2}, {"client": client}):
            how = (compute, uncertain.sample(count), options | runner)

            def run(folder: Path, place: str = place, how: Any = how) -> Any:
                where = folder / place if place else None
                return sweep(arm, how[0], how[1], out=where, **how[2])

            best(run, 1)  # kernels are compiled, workers have their study
            wall, cpu = best(run, repeats)
            found += [count / cpu] * (not found) + [count / wall]
        rows.append((name, found))
    return rows


def main(quick: bool = False) -> None:
    """Measure and print."""
    import distributed

    repeats, scale, chunks = (1, 1, 20) if quick else (REPEATS, 2, 60)
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        print(f"armdyn {armdyn.__version__}, Python {platform.python_version()}, dask {distributed.__version__}")
        print(f"best of {repeats}; samples per second\n")
        heads = ("of one CPU", "one thread", "two threads", "two workers")
        print(f"{'study':34} " + " ".join(f"{head:>12}" for head in heads))
        for name, found in rates(client, repeats, scale):
            print(f"{name:34} " + " ".join(f"{rate:12,.0f}" for rate in found))
        print(f"\n{'the engine alone, ms per chunk':34} {'clock':>12} {'client CPU':>12}")
        for name, wall, cpu in engine(client, repeats, chunks):
            print(f"{name:34} {wall:12.2f} {cpu:12.2f}")


if __name__ == "__main__":
    main("--quick" in sys.argv[1:])
