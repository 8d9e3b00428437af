"""The thresholds of the search for the shortest program, each with the measurements behind it."""

from __future__ import annotations

from dataclasses import dataclass

from armdyn.graph.simplify import REWRITING, Rewriting


@dataclass(frozen=True)
class Budget:
    """The thresholds of `armdyn.programs.search` and of derivative programs; those of rewriting are in `rewriting`.

    Measured on the catalogue's arms, general arms of 2 to 8 joints and 57 random arms of 3 to 12 joints with parallel
    and intersecting axes (docs/adr/0011-registry-and-search.md).
    """

    # Joints up to which every formulation is rewritten: for programs of a few dozen operations, tallies predict little.
    # Derivatives are tried both by recursion and by the chain rule.
    few_joints: int = 4
    # Joints above which programs may take seconds to trace.
    many_joints: int = 10
    # How many formulations with the smallest tallies are traced. The shortest program was among the first three for
    # constant parameters; with run-time parameters it was the fourth on RRPRR and PRRPRR (23 and 27 operations).
    formulations: int = 4
    # Ratio of lengths of short traced programs that rewriting does not make up for: 1.13 was seen. Above `short`
    # operations, and after a first round, `rewriting.near` is used instead.
    traced: float = 1.15
    short: int = 400
    # Operations added to every ratio: in programs of 100 operations, a difference of 8 was made up for after a first
    # round.
    slack: int = 8
    # Operations up to which tracing and rewriting all candidates takes less than a second. Above, the tallies decide
    # for an arm of many joints, and derivatives are not rewritten, which would gain less than one per cent.
    quick: int = 1500
    # Operations of the solution for the derivatives' columns above which they are not unrolled: for Talos (n = 38)
    # they are 89 000 of 109 000 and take 3 s to trace and 7 s to compile; for Baxter (n = 17) 5000
    # (docs/adr/0026-long-programs.md).
    written_out: int = 40_000
    rewriting: Rewriting = REWRITING


BUDGET = Budget()
