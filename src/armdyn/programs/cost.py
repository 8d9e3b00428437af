"""Operation counts of a quantity on an arm: as published and as compiled.

*As published*: the operations that the formulation executes (`count`). *As compiled*: the operations of the program
after constant folding, common subexpression elimination and rewriting. Neither counts rotors or friction, which are
added outside the formulations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from armdyn.algebra import Operations
from armdyn.chain import Chain
from armdyn.errors import InputError, checked_keywords, choose
from armdyn.formulations import QUANTITIES
from armdyn.programs.search import Published, auto, published, shortest, without_rotors
from armdyn.results import Result, ResultTable


@dataclass(frozen=True, slots=True)
class Cost(Result):
    """Operations of one quantity by one formulation on one arm."""

    published: Published
    compiled: Operations

    def __repr__(self) -> str:
        return f"<Cost: {self.published} as published, {self.compiled} compiled>"

    def table(self) -> ResultTable:
        """The counts."""
        rows = [
            (name, o.mul, o.add, o.div, o.trig)
            for name, o in (("executed, as published", self.published), ("compiled", self.compiled))
        ]
        columns = ["", "multiplications", "additions", "divisions", "sin, cos"]
        return ResultTable.of("Operations of one evaluation", columns, rows)


@checked_keywords
def cost(arm: Any, quantity: str, method: str = "auto") -> Cost:
    """Both counts of a quantity by a formulation, by default the cheapest; `arm` is an `Arm` or a `Chain`."""
    chain = getattr(arm, "chain", arm)
    if not isinstance(chain, Chain):
        raise InputError(f"cost takes an Arm, got {arm!r}; armdyn.load(...) returns one")
    chain = without_rotors(chain)
    if method == "auto":
        method = auto(chain, choose("quantity", quantity, QUANTITIES))
    return Cost(published(chain, quantity, method), compiled(chain, quantity, method))


def compiled(chain: Chain, quantity: str, method: str) -> Operations:
    """The operations of the compiled program."""
    return shortest(without_rotors(chain), quantity, method).operations


__all__ = ["Cost", "Published", "compiled", "cost", "published", "without_rotors"]
