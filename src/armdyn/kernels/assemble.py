"""From a chain, a quantity and a formulation to one function over scalars, extra physics included.

Rotor inertia, friction and a wrench at the tool are added here, outside every recursion.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from armdyn.chain import Chain
from armdyn.errors import choose
from armdyn.formulations import QUANTITIES
from armdyn.graph.program import Program, trace


@dataclass(frozen=True)
class Options:
    """What can be asked of a kernel beyond quantity and formulation."""

    friction: bool = False
    tool_wrench: bool = False
    frame: str | None = None
    parameters: str = "baked"


@dataclass(frozen=True)
class Assembly:
    """A function over scalars with the shapes of what goes in and comes out."""

    function: Callable[..., Any]
    inputs: tuple[tuple[str, tuple[int, ...]], ...]
    outputs: tuple[tuple[str, tuple[int, ...]], ...]


def assemble(chain: Chain, quantity: str, method: str, options: Options = Options()) -> Assembly:
    """The function `(q, ...) -> nested lists` of this arm, quantity and formulation."""
    entry = QUANTITIES[choose("quantity", quantity, QUANTITIES)]
    methods = {formulation.key: formulation for formulation in entry.methods}
    run = methods[choose(f"method of {quantity}", method, methods)].run
    n = chain.n

    def function(*inputs: Any) -> Any:
        result = run(chain, *inputs)
        if quantity == "inertia_matrix":
            return [
                [h + chain.joints[i].rotor_inertia if i == j else h for j, h in enumerate(row)]
                for i, row in enumerate(result)
            ]
        if quantity == "kinetic_energy":
            for joint, v in zip(chain.joints, inputs[1], strict=True):
                result = result + joint.rotor_inertia * v * v / 2
        return result

    inputs = tuple((name, entry.shape(shape, n)) for name, shape in entry.inputs)
    outputs = tuple((name, entry.shape(shape, n)) for name, shape in entry.outputs)
    return Assembly(function, inputs, outputs)


@lru_cache(maxsize=256)
def program(chain: Chain, quantity: str, method: str, options: Options = Options()) -> Program:
    """The graph of this arm's quantity, by this formulation."""
    assembly = assemble(chain, quantity, method, options)
    return trace(f"{quantity}_{method}", assembly.function, dict(assembly.inputs), assembly.outputs)
