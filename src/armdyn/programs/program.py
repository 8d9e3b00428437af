"""The program of a quantity on an arm by a formulation, or of its derivatives: the shortest one found."""

from __future__ import annotations

import os
from functools import lru_cache

from armdyn.chain import Chain
from armdyn.formulations.registry import Options
from armdyn.graph.check import check
from armdyn.graph.columns import ColumnProgram
from armdyn.graph.program import Program
from armdyn.programs.collector import paused_collector
from armdyn.programs.derivatives import derivatives, derivatives_by_columns
from armdyn.programs.search import shortest

DEBUG = bool(os.environ.get("ARMDYN_DEBUG"))  # check every program before it is returned


@lru_cache(maxsize=64)
@paused_collector()
def compiled_program(chain: Chain, quantity: str, method: str, options: Options = Options()) -> Program | ColumnProgram:
    """The program to compile: the same as `program`, or a column program if that would be very long."""
    by_columns = derivatives_by_columns(chain, quantity, options) if options.derivatives else None
    if by_columns is None:
        return program(chain, quantity, method, options)
    if DEBUG:
        check(by_columns.head)
        check(by_columns.column)
    return by_columns


@lru_cache(maxsize=256)
@paused_collector()
def program(chain: Chain, quantity: str, method: str, options: Options = Options()) -> Program:
    """The graph of this arm's quantity, by this formulation."""
    make = derivatives if options.derivatives else shortest
    made = make(chain, quantity, method, options)
    return check(made) if DEBUG else made
