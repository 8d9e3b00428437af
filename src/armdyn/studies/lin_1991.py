"""Lin 1991, Table II, by execution: the operations of the bias vector beyond those of the inertia matrix.

The steps of Fig. 3 that only the bias needs are executed with counting scalars (`Tally`), row by row, for n revolute
joints in general position and gravity in a general direction. docs/papers/lin-1991-table-2.md explains the rows.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from armdyn.algebra import Operations, Tally, Vec3, counting
from armdyn.chain.chain import generic_chain
from armdyn.formulations.bias import lin_1991

TILTED = Vec3(Fraction(3), Fraction(4), Fraction(-8))


def printed(n: int) -> Operations:
    """Table II, the row "Present": (12.5n²+5.5n+3)M (9n²+n)A."""
    return Operations(mul=(25 * n * n + 11 * n + 6) // 2, add=9 * n * n + n)


def executed(n: int) -> dict[str, Operations]:
    """The operations of every row for n ≥ 2 revolute joints."""
    chain = replace(generic_chain("R" * n), gravity=TILTED)
    numbers = [Tally(0.3 + 0.1 * k) for k in range(n)]
    views = lin_1991.seen(chain, numbers)
    rows = {
        "entries of R": Operations(mul=4 * (n - 1)),  # CβSθ, CβCθ, SβSθ, SβCθ: H takes them as given
        "first moment of body 1": Operations(mul=8, add=7),  # R p₂ + m₁ p: not needed for H
    }
    with counting() as counter:
        lin_1991.bias_from(views, numbers, chain.gravity_in_frame_0)
    rows.update((name, counter.operations(name)) for name in counter.stages if name)
    return rows


def total(n: int) -> Operations:
    """The sum over all rows."""
    return sum(executed(n).values(), Operations())
