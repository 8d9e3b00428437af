"""The formulation chosen for an arm, cached on disk: the search runs once per machine, not once per process."""

from __future__ import annotations

from functools import lru_cache

from armdyn.chain import Chain
from armdyn.codegen.runtime import cache
from armdyn.formulations import QUANTITIES
from armdyn.formulations.registry import Options
from armdyn.programs import search


@lru_cache(maxsize=1024)
def auto(chain: Chain, quantity: str, options: Options = Options()) -> str:
    """The key of the formulation with the fewest compiled operations."""
    if len(QUANTITIES[quantity].methods) == 1:
        return search.auto(chain, quantity, options)
    return cache.get_or_compute(
        cache.key("auto", chain, quantity, options), lambda: search.auto(chain, quantity, options)
    )
