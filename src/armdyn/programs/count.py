"""Operation counts as published: a formulation's own steps, executed on counting scalars, stage by stage.

The conventions are those of the papers (docs/adr/0002-operations-and-folds.md). Rotors and friction are not counted:
they are added outside the formulations.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Any

from armdyn.algebra import Operations, Tally, counting
from armdyn.chain import Chain
from armdyn.errors import choose
from armdyn.formulations import QUANTITIES
from armdyn.formulations.coordinates import Coordinates
from armdyn.formulations.registry import Shapes
from armdyn.formulations.substitution import substituted


@dataclass(frozen=True, slots=True)
class Published(Operations):
    """Operations as published, and their division into the paper's stages."""

    stages: Mapping[str, Operations] = field(default_factory=lambda: MappingProxyType({}), compare=False)

    def __reduce__(self) -> Any:  # a mapping proxy cannot be pickled
        return _published, (self.mul, self.add, self.div, self.trig, dict(self.stages))


def _published(mul: int, add: int, div: int, trig: int, stages: dict[str, Operations]) -> Published:
    return Published(mul, add, div, trig, MappingProxyType(stages))


def published(chain: Chain, quantity: str, method: str, **variant: Any) -> Published:
    """The operations that the formulation, or a `variant` of it, executes, counted as in the papers."""
    entry = QUANTITIES[choose("quantity", quantity, QUANTITIES)]
    run = partial(entry.formulation(method, chain).run, **variant)
    given = {name: _tallies(shape) for name, shape in entry.input_shapes(chain)}
    tree, inputs = substituted(Coordinates.of(chain), given)
    return _executed(run, tree, *inputs)


def tally(function: Callable[..., Any], inputs: Shapes) -> int:
    """The number of operations that a function of scalars executes; operations on constants do not count."""
    return _executed(function, *(_tallies(shape) for _, shape in inputs)).total


def _executed(function: Callable[..., Any], *arguments: Any) -> Published:
    with counting() as counter:
        function(*arguments)
    total = counter.operations()
    stages = {name: counter.operations(name) for name in counter.stages if name}
    return _published(total.mul, total.add, total.div, total.trig, stages)


def without_rotors(chain: Chain) -> Chain:
    """The same arm without rotor inertias."""
    if all(joint.rotor_inertia == 0 for joint in chain.joints):
        return chain
    return replace(chain, joints=tuple(replace(joint, rotor_inertia=0) for joint in chain.joints))


def _tallies(shape: tuple[int, ...]) -> Any:
    """Generic run-time numbers."""
    return [Tally(math.sqrt(k + 2) / 4) for k in range(math.prod(shape))]  # no sum or difference of them vanishes
