"""The programs of a control law for an arm: one for the step, one for the initial memory."""

from __future__ import annotations

import math
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

from armdyn.chain import Chain
from armdyn.control.dynamics import Dynamics
from armdyn.control.law import NEXT, ControlLaw, Step, sized
from armdyn.errors import InputError
from armdyn.graph import Program
from armdyn.graph.program import trace
from armdyn.graph.simplify import simplify
from armdyn.programs.search import BUDGET


def check(law: ControlLaw, chain: Chain) -> None:
    """Raise an error if the law does not apply to this robot."""
    if law.refusal(chain):
        raise InputError(f"the controller {law.name} {law.refusal(chain)}")


@lru_cache(maxsize=64)
def step_program(law: ControlLaw, chain: Chain, friction: bool = False) -> Program:
    """The step: memory and inputs -> outputs and the next memory (named with the suffix `NEXT`)."""
    check(law, chain)
    inputs = (*sized(law.memory, chain), *sized(law.reads, chain))
    outputs = (*sized(law.outputs, chain), *sized(law.memory, chain, NEXT))
    return _traced(law, law.name, law.step, Dynamics(chain, friction), inputs, outputs)


@lru_cache(maxsize=64)
def start_program(law: ControlLaw, chain: Chain, friction: bool = False) -> Program:
    """The start: measurements and gains -> initial memory; an error if the law has no memory."""
    check(law, chain)
    if not law.memory:
        raise InputError(f"the controller {law.name} has no memory, so it has no start program")
    inputs = sized(law.starts_from, chain)
    return _traced(law, f"{law.name}_start", law.start, Dynamics(chain, friction), inputs, sized(law.memory, chain))


def _traced(law: ControlLaw, name: str, step: Step, model: Dynamics, inputs: Any, outputs: Any) -> Program:
    names = [port for port, _ in inputs]
    zeros = {entry: [0] * math.prod(shape) if shape else 0 for entry, shape in sized(law.absent, model.chain)}

    def function(*arguments: Any) -> Any:
        found = step(model, SimpleNamespace(**zeros, **dict(zip(names, arguments, strict=True))))
        results = tuple(found[port.removesuffix(NEXT)] for port, _ in outputs)
        return results[0] if len(results) == 1 else results

    made = trace(name, function, dict(inputs), outputs)
    return simplify(made) if made.operations.total <= BUDGET.quick else made
