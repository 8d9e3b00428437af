"""Processor time of the first call of a kernel, nothing kept from before; of one source tree or of several in turns.

    python benchmarks/first_call.py [old/src new/src] [--repeats 5] [--stages] [--avx2] [--programs] [--together]

Every first call is made in a process of its own, forked after `import armdyn`, with ARMDYN_CACHE=off: it chooses the
formulation, makes the program, compiles and loads it and computes one row, and pays for importing LLVM. The best of
the repeats counts. `--stages` says where the time goes in the tree that comes first; `--avx2` compiles as a processor
without AVX-512 would; `--programs` measures the search alone, up to the finished program; `--together` calls
inertia matrix, inverse and forward dynamics one after the other in one process. Source is compiled to bytecode before.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import reduce
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ARMS = ("panda", "ur5", "puma560", "iiwa14", "RRRRRR", "RRRRRRR")  # the last two are general arms
QUANTITIES = {"inertia_matrix": 1, "inverse_dynamics": 3, "forward_dynamics": 3, "gravity_load": 1, "bias": 2}  # inputs
TOGETHER = "inertia_matrix+inverse_dynamics+forward_dynamics"
STAGES = {  # what is timed with --stages: the time inside, without that of other stages called from there
    "programs.search:tally": "tallies",
    "programs.search:trace": "tracing",
    "graph.simplify:to_polynomials": "rewriting: take apart",
    "graph.simplify:_Search.run": "rewriting: savings",
    "graph.simplify:_Search.__init__": "rewriting: index",
    "graph.simplify:rescale": "rewriting: scales",
    "graph.simplify:from_polynomials": "rewriting: put together",
    "programs.search:_distinct": "equal variants",
    "codegen.compile:kernel_module": "writing LLVM IR",
    "codegen.llvm.module:contract": "multiply-adds",
    "codegen.avx2:list_schedule": "scheduling",
    "codegen.avx2:allocate": "registers",
    "codegen.jit:object_code": "LLVM: object code",
    "codegen.jit:load": "loading",
    "codegen.compile:gufunc": "gufunc",
    "codegen.target:binding": "importing LLVM",
    "codegen.jit:key": "key of the cache",
}


def first_call(name: str, quantity: str) -> None:
    """One call of a kernel."""
    import numpy as np

    arm = _arm(name)
    start = time.process_time()
    for one in quantity.split("+"):
        if os.environ.get("FIRST_CALL_PROGRAMS"):
            assert getattr(arm, one).program
        else:
            getattr(arm, one)(*[np.full(arm.n, 0.3)] * QUANTITIES[one])
    print(json.dumps([f"{name} {quantity}", time.process_time() - start]), flush=True)


def _arm(name: str) -> Any:
    import armdyn

    return armdyn.generic_arm(name) if set(name) <= set("RP") else armdyn.load(name)


def stages(name: str, quantity: str) -> None:
    """One call of a kernel, with the time each stage takes for itself."""
    spent = dict.fromkeys((*STAGES.values(), "rest"), 0.0)
    running: list[str] = ["rest"]
    last = time.process_time()

    def switch() -> None:
        nonlocal last
        now = time.process_time()
        spent[running[-1]] += now - last
        last = now

    def timed(function: Callable[..., Any], stage: str) -> Callable[..., Any]:
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            switch()
            running.append(stage)
            try:
                return function(*args, **kwargs)
            finally:
                switch()
                running.pop()

        return wrapped

    arm = _arm(name)
    for place, stage in STAGES.items():
        module, _, names = place.partition(":")
        *owners, attribute = names.split(".")
        holder = reduce(getattr, owners, import_module(f"armdyn.{module}"))
        setattr(holder, attribute, timed(getattr(holder, attribute), stage))
    import numpy as np

    switch()
    spent.update(dict.fromkeys(spent, 0.0))
    for one in quantity.split("+"):
        getattr(arm, one)(*[np.full(arm.n, 0.3)] * QUANTITIES[one])
    switch()
    print(json.dumps([f"{name} {quantity}", spent]), flush=True)


def work(run: Callable[[str, str], None], only: str) -> None:
    """Every case in a process forked from this one."""
    import armdyn

    assert armdyn.catalogue()
    if os.environ.get("FIRST_CALL_AVX2"):
        compiler = import_module("armdyn.codegen.compile" if find_spec("armdyn.codegen") else "armdyn.backends.llvm")
        host, target = compiler.host, compiler.Target
        compiler.host = lambda: target(host().triple, "haswell", "+avx,+avx2,+fma", 4, True)
    for name in ARMS:
        for quantity in [TOGETHER] if os.environ.get("FIRST_CALL_TOGETHER") else QUANTITIES:
            if only in f"{name} {quantity}":
                child = os.fork()
                if not child:
                    run(name, quantity)
                    os._exit(0)
                if os.waitpid(child, 0)[1]:
                    raise SystemExit(f"{name} {quantity} failed")


def measured(tree: Path, option: str, only: str) -> dict[str, Any]:
    """What a worker with this source tree says about every case."""
    environment = {**os.environ, "PYTHONPATH": str(tree), "ARMDYN_CACHE": "off", "PYTHONHASHSEED": "0"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, __file__, option, "--only", only]
    output = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
    return dict(json.loads(line) for line in output.splitlines())


def compare(trees: list[Path], repeats: int, only: str) -> None:
    """Print the best of the repeats, tree by tree, and the ratio of the last tree to the first."""
    runs: dict[Path, list[dict[str, float]]] = {tree: [] for tree in trees}
    for tree in trees:
        compileall.compile_dir(tree, quiet=1)
    for _ in range(repeats):
        for tree in trees:
            runs[tree].append(measured(tree, "--worker", only))
    best = {tree: {case: min(run[case] for run in runs[tree]) for case in runs[tree][0]} for tree in trees}
    for case in (*best[trees[0]], "sum"):
        times = [sum(best[tree].values()) if case == "sum" else best[tree][case] for tree in trees]
        print(f"{case:64}", *(f"{seconds:8.3f}" for seconds in times), f"{times[-1] / times[0]:6.2f}")


def breakdown(tree: Path, repeats: int, only: str) -> None:
    """Print where the time goes: the best of the repeats of each case, summed."""
    total = dict.fromkeys((*STAGES.values(), "rest"), 0.0)
    runs = [measured(tree, "--stage-worker", only) for _ in range(repeats)]
    for case in runs[0]:
        for stage, seconds in min((run[case] for run in runs), key=lambda spent: sum(spent.values())).items():
            total[stage] += seconds
    whole = sum(total.values())
    for stage, seconds in sorted(total.items(), key=lambda pair: -pair[1]):
        print(f"{stage:28} {seconds:8.3f} s {100 * seconds / whole:6.1f} %")
    print(f"{'sum':28} {whole:8.3f} s")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    here = Path(__file__).parents[1] / "src"
    parser.add_argument("trees", nargs="*", type=Path, default=[here], help="source trees; by default this one")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--stages", action="store_true", help="where the time goes in the first tree")
    parser.add_argument("--avx2", action="store_true", help="compile for AVX2")
    parser.add_argument("--programs", action="store_true", help="no code, only the program")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--stage-worker", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--together", action="store_true", help="the first calls of three quantities in one process")
    given = parser.parse_args()
    if given.avx2:
        os.environ["FIRST_CALL_AVX2"] = "1"
    if given.programs:
        os.environ["FIRST_CALL_PROGRAMS"] = "1"
    if given.together:
        os.environ["FIRST_CALL_TOGETHER"] = "1"
    if given.worker or given.stage_worker:
        work(first_call if given.worker else stages, given.only)
    elif given.stages:
        breakdown(given.trees[0], given.repeats, given.only)
    else:
        compare(given.trees, given.repeats, given.only)


if __name__ == "__main__":
    main()
