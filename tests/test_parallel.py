"""The critical path of programs: the bound of any parallel machine."""

from __future__ import annotations

import armdyn
from armdyn.graph.program import trace
from armdyn.studies.parallel import HEADS, QUANTITIES, critical_path, table


def of(function, count):
    return critical_path(trace("t", function, {"x": (count,)}, [("y", ())]))


def test_chains_and_trees():
    chain = of(lambda x: ((x[0] * x[1]) * x[2]) * x[3], 4)
    assert (chain.operations, chain.length, chain.width) == (3, 3, 1)
    tree = of(lambda x: (x[0] * x[1]) + (x[2] * x[3]), 4)
    assert (tree.operations, tree.length, tree.width, tree.gain) == (3, 2, 2, 1.5)
    signs = of(lambda x: -(-x[0] * x[1]), 2)
    assert (signs.operations, signs.length) == (1, 1)
    assert of(lambda x: x[0], 1).length == 0
    assert of(lambda x: x[0].sin() * x[1].cos(), 2).length == 2


def test_forward_dynamics_waits_longest_and_no_bound_is_beaten():
    arms = [armdyn.load("puma560")]
    rows = table(arms)
    assert [row[1] for row in rows] == list(QUANTITIES)
    found = {row[1]: dict(zip(HEADS, row, strict=True)) for row in rows}
    for quantity, row in found.items():
        operations, length, width = (int(row[key]) for key in ("operations", "longest chain", "widest step"))
        assert operations <= length * width
        counted = arms[0].kernel(quantity).program.operations
        assert operations == counted.total + counted.trig
    assert int(found["forward_dynamics"]["longest chain"]) > int(found["inverse_dynamics"]["longest chain"])
