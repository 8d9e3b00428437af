"""What a parallel machine could gain at most: the critical path of a program, with as many units as it can use.

Kasahara et al., as Lin 1991 quotes them, compute Walker & Orin's inertia matrix on several processors. No machine needs
fewer steps than the longest chain of operations that wait for each other (signs are free, a sine is one step), nor
more units than the widest step of a schedule that starts every operation as early as possible.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from armdyn.arm import Arm
from armdyn.graph.program import Program

FREE = ("const", "input", "neg", "sign", "positive")
QUANTITIES = ("inertia_matrix", "inverse_dynamics", "forward_dynamics")


@dataclass(frozen=True)
class Parallel:
    """Operations of a program, the steps of its longest chain, and the units of its widest step."""

    operations: int
    length: int
    width: int

    @property
    def gain(self) -> float:
        """How many times as fast as one unit the best parallel machine is."""
        return self.operations / self.length


def critical_path(program: Program) -> Parallel:
    """The program's steps when every operation starts as soon as its arguments are there."""
    step: dict[int, int] = {}
    for node in program.order:
        ready = max((step[argument.serial] for argument in node.args), default=0)
        step[node.serial] = ready + (node.op not in FREE)
    used = Counter(step[node.serial] for node in program.order if node.op not in FREE)
    return Parallel(sum(used.values()), max(used, default=0), max(used.values(), default=0))


def table(arms: list[Arm]) -> list[list[str]]:
    """A row per arm and quantity, by its shortest program."""
    rows = []
    for arm in arms:
        for quantity in QUANTITIES:
            kernel = arm.kernel(quantity)
            found = critical_path(kernel.program)
            rows.append([
                arm.name, quantity, kernel.method, str(found.operations), str(found.length), str(found.width),
                f"{found.gain:.1f}",
            ])  # fmt: skip
    return rows


HEADS = ("arm", "quantity", "method", "operations", "longest chain", "widest step", "largest gain")
