"""What a quantity costs on an arm: as published and as compiled.

*As published*: the formulation's own steps executed on tallies, with the conventions of the papers
(docs/adr/0002-operations-and-folds.md), stage by stage. *As compiled*: the operations of the folded, shared
program. Neither counts rotors or friction, which are added outside of every formulation.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from armdyn.algebra import Operations, Tally, counting
from armdyn.chain import Chain
from armdyn.errors import InputError, choose
from armdyn.formulations import QUANTITIES
from armdyn.formulations.coordinates import Coordinates
from armdyn.formulations.registry import Options
from armdyn.formulations.substitution import substituted
from armdyn.programs.program import program


@dataclass(frozen=True, slots=True)
class Published(Operations):
    """Operations as published, and how they divide into the paper's stages."""

    stages: Mapping[str, Operations] = field(default_factory=lambda: MappingProxyType({}), compare=False)


@dataclass(frozen=True, slots=True)
class Cost:
    """Operations of one quantity by one formulation on one arm."""

    published: Published
    compiled: Operations


def cost(arm: Any, quantity: str, method: str = "auto") -> Cost:
    """Both counts of a quantity by a formulation, the cheapest if none is named; `arm` is an `Arm` or a `Chain`."""
    chain = getattr(arm, "chain", arm)
    if not isinstance(chain, Chain):
        raise InputError(f"cost takes an Arm, got {arm!r}; armdyn.load(...) gives one")
    chain = without_rotors(chain)
    if method == "auto":
        from armdyn.programs.choose import auto  # which counts, and so stands above this module

        method = auto(chain, choose("quantity", quantity, QUANTITIES))
    return Cost(published(chain, quantity, method), compiled(chain, quantity, method))


def published(chain: Chain, quantity: str, method: str) -> Published:
    """The operations the formulation executes, as the papers count them."""
    entry = QUANTITIES[choose("quantity", quantity, QUANTITIES)]
    run = entry.formulation(method, chain).run
    tree, inputs = substituted(
        Coordinates.of(chain), {name: _tallies(shape) for name, shape in entry.input_shapes(chain)}
    )
    with counting() as counter:
        run(tree, *inputs)
    total = counter.operations()
    stages = {name: counter.operations(name) for name in counter.stages if name}
    return Published(total.mul, total.add, total.div, total.trig, MappingProxyType(stages))


def compiled(chain: Chain, quantity: str, method: str) -> Operations:
    """The operations of the program, folded and shared."""
    return program(without_rotors(chain), quantity, method, Options()).operations  # remembered as others ask for it


def without_rotors(chain: Chain) -> Chain:
    """The same arm with rotors that weigh nothing."""
    if all(joint.rotor_inertia == 0 for joint in chain.joints):
        return chain
    return replace(chain, joints=tuple(replace(joint, rotor_inertia=0) for joint in chain.joints))


def _tallies(shape: tuple[int, ...]) -> Any:
    """Run-time numbers with nothing special about them."""
    return [Tally(0.3 + 0.1 * k) for k in range(math.prod(shape))]
