"""Compare the linear solvers of `composite`: operations of the whole forward dynamics, and residuals."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from armdyn.algebra import Operations
from armdyn.arm import Arm, generic_arm, load
from armdyn.codegen.compile import compile_program
from armdyn.formulations.forward_dynamics.solvers import SOLVERS
from armdyn.graph.program import trace
from armdyn.programs.assemble import assemble


@dataclass(frozen=True)
class SolverRow:
    """One arm and solver: operations, and the largest and median residual force, relative to the largest force."""

    arm: str
    solver: str
    operations: Operations
    largest: float
    typical: float


def compare(arms: Iterable[Arm] | None = None, states: int = 2000, seed: int = 0) -> list[SolverRow]:
    """Run every solver on every arm at random states; residuals come from inverse dynamics of the accelerations."""
    rows = []
    for arm in arms or [*(load(name) for name in ("puma560", "ur5", "panda")), generic_arm("RRRRRR")]:
        rng = np.random.default_rng(seed)
        q, qd, tau = rng.uniform(-3, 3, (3, states, arm.n))
        tau = 10 * tau
        for name, solver in SOLVERS.items():
            made = assemble(arm.chain, "forward_dynamics", "composite", parts={"solver": solver})
            program = trace(name, made.function, dict(made.inputs), made.outputs)
            back = arm.inverse_dynamics(q, qd, compile_program(program)(q, qd, tau))
            scale = np.abs(tau).max() + np.abs(arm.bias(q, qd)).max(axis=-1)
            missed = np.abs(back - tau).max(axis=-1) / scale
            rows.append(SolverRow(arm.name, name, program.operations, float(missed.max()), float(np.median(missed))))
    return rows


TITLE = "Forward dynamics by composite with three linear solvers"
HEADS = ("arm", "solver", "forward dynamics", "error, median", "error, largest")
LEFT = 2  # columns that say what a row is about


def table(rows: Sequence[SolverRow]) -> list[list[str]]:
    """A line per row."""
    return [[r.arm, r.solver, str(r.operations), f"{r.typical:.1e}", f"{r.largest:.1e}"] for r in rows]


def findings(rows: Sequence[SolverRow]) -> list[str]:
    """What the rows say, in sentences."""
    arms = list(dict.fromkeys(row.arm for row in rows))
    fewest = {arm: min((r for r in rows if r.arm == arm), key=lambda r: r.operations.total).solver for arm in arms}
    best = [arm for arm in arms if fewest[arm] == "udu"]
    return [f"udu takes the fewest operations on {len(best)} of {len(arms)} arms; the errors are rounding for all."]
