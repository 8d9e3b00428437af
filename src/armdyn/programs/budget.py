"""How far the search for the shortest program goes: every threshold, with what it was measured on."""

from __future__ import annotations

from dataclasses import dataclass

from armdyn.graph.simplify import REWRITING, Rewriting


@dataclass(frozen=True)
class Budget:
    """The thresholds of `armdyn.programs.search` and of the derivatives' programs; those of rewriting are `rewriting`.

    Measured on the catalogue's arms, general arms of 2 to 8 joints and 57 random arms of 3 to 12 joints with parallel
    and intersecting axes (docs/adr/0011-registry-and-search.md).
    """

    # Joints up to which every formulation is rewritten: in programs of a few dozen operations, tallies say little.
    # Derivatives are sought both by recursion and by the chain rule.
    few_joints: int = 4
    # Joints above which programs may take seconds to trace.
    many_joints: int = 10
    # Formulations of least tallies that are traced. The shortest program was among the first three for constant
    # parameters; with run-time parameters it was the fourth on RRPRR and PRRPRR (23 and 27 operations).
    formulations: int = 4
    # Ratio of traced programs beyond which rewriting does not catch up, where they are short: 1.13 was seen. Above
    # `short` operations and after a first round, `rewriting.near` stands for it.
    traced: float = 1.15
    short: int = 400
    # Operations added to every ratio: in a program of 100 operations, 8 have been made up after a first round.
    slack: int = 8
    # Operations up to which tracing and rewriting all candidates takes less than a second. Above, the tallies decide
    # for an arm of many joints, and derivatives are not rewritten, which would gain below one per cent.
    quick: int = 1500
    # Operations of the derivatives' solutions, column by column, above which they are not written out: Talos's (n = 38)
    # are 89 000 of 109 000 and take 3 s to trace and 7 s to compile; those of Baxter (n = 17) 5000
    # (docs/adr/0026-long-programs.md).
    written_out: int = 40_000
    rewriting: Rewriting = REWRITING


BUDGET = Budget()
