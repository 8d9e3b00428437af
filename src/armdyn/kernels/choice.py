"""The formulation chosen for an arm, cached on disk: the search runs once per machine, not once per process."""

from __future__ import annotations

import logging
import time
from functools import lru_cache

from armdyn.chain import Chain
from armdyn.codegen.runtime import cache
from armdyn.formulations import QUANTITIES
from armdyn.formulations.registry import Options
from armdyn.programs import search

LOG = logging.getLogger("armdyn")


@lru_cache(maxsize=1024)
def auto(chain: Chain, quantity: str, options: Options = Options()) -> str:
    """The key of the formulation with the fewest compiled operations."""
    if len(QUANTITIES[quantity].methods) == 1:
        chosen, why = search.auto(chain, quantity, options), "its only formulation"
    else:
        name, start = cache.key("auto", chain, quantity, options), time.perf_counter()
        searched = False

        def search_now() -> str:
            nonlocal searched
            searched = True
            return search.auto(chain, quantity, options)

        chosen = cache.get_or_compute(name, search_now)
        why = "fewest operations, searched now" if searched else "fewest operations, as found before (cache on disk)"
        why += f", {1e3 * (time.perf_counter() - start):.2f} ms"
    LOG.debug("%s of %d joints: method %s (%s)", quantity, chain.n, chosen, why)
    return chosen
