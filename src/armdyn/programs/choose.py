"""Which formulation takes the fewest operations on this arm.

Counting is cheap, tracing is not: every formulation is first executed on tallies, which gives the
operations before folding and sharing; only those that come near the best are traced, and the shortest
program wins. Arms with many joints are ranked by tallies alone, after a look at their first joints has
sorted out the formulations that are out of the question. The choice is remembered, on disk too.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from typing import TypeVar

from armdyn.algebra import Operations
from armdyn.chain import Chain
from armdyn.codegen.runtime import cache
from armdyn.errors import InputError
from armdyn.formulations import QUANTITIES
from armdyn.formulations.registry import Options
from armdyn.programs.cost import published
from armdyn.programs.program import program, traced

Count = TypeVar("Count")

NEAR = 1.3  # folding and sharing have not been seen to overtake more than this
FAR = 1.6  # what costs so much more on the first joints does not catch up on the others
CLOSE = 1.05  # rewriting a program has not been seen to overtake more than this
TRACED = 3  # programs at most
SHORT = 4  # joints; up to here every program is made, for so few operations say little beforehand
LONG = 10  # joints; above, programs take too long to trace for a choice


@lru_cache(maxsize=1024)
def auto(chain: Chain, quantity: str, options: Options = Options()) -> str:
    """The key of the formulation with the fewest compiled operations."""
    methods = [m for m in QUANTITIES[quantity].methods if m.serves(chain)]
    if not methods:
        raise InputError(f"{quantity} has no formulation for a robot that branches")
    if options.derivatives and QUANTITIES[quantity].inverse_of:
        return methods[0].key  # they are made from the other quantity, whatever the method
    if options.derivatives:
        for method in methods:
            if method.derivatives:
                return method.key  # a way of their own beats the chain rule
        options = replace(options, derivatives=())  # what is cheap to compute is cheap to differentiate
    keys = [m.key for m in methods if not m.reference_only]
    if len(keys) < 2:
        return keys[0] if keys else methods[0].key
    asked = cache.key("auto", chain, quantity, options, tuple(keys))
    return cache.get_or_compute(asked, lambda: _cheapest(chain, quantity, options, keys))


def _cheapest(chain: Chain, quantity: str, options: Options, keys: list[str]) -> str:
    if chain.n > LONG and chain.serial and chain.plain:
        keys = _within(FAR, _tallied(_first_joints(chain, LONG // 2), quantity, keys))
    if chain.n <= SHORT:
        return _shortest(chain, quantity, options, keys)
    counts = _tallied(chain, quantity, keys)
    near = _within(NEAR, counts)[:TRACED]
    if chain.n > LONG or len(near) == 1:
        return near[0]
    counts = _counted(near, lambda key: traced(chain, quantity, key, options).operations.total)
    return _shortest(chain, quantity, options, _within(CLOSE, counts))


def _shortest(chain: Chain, quantity: str, options: Options, keys: list[str]) -> str:
    ranks = _counted(keys, lambda key: _rank(program(chain, quantity, key, options).operations))
    return min(ranks, key=lambda key: ranks[key])


def _tallied(chain: Chain, quantity: str, keys: list[str]) -> dict[str, int]:
    return _counted(keys, lambda key: published(chain, quantity, key).total)


def _counted(keys: list[str], count: Callable[[str], Count]) -> dict[str, Count]:
    """The counts by key, without the formulations that refuse this arm (centres of mass of links without mass, say)."""
    counts = {}
    for key in keys:
        with suppress(InputError):
            counts[key] = count(key)
    return counts


def _within(ratio: float, counts: dict[str, int]) -> list[str]:
    """The keys that come within a ratio of the best, best first; equal counts keep their order."""
    ranked = sorted(counts, key=lambda key: counts[key])
    return [key for key in ranked if counts[key] <= ratio * counts[ranked[0]]]


def _rank(operations: Operations) -> tuple[int, int]:
    return operations.total, operations.mul


def _first_joints(chain: Chain, n: int) -> Chain:
    return replace(chain, joints=chain.joints[:n], links=chain.links[:n], parents=chain.parents[:n])
