"""From a control law and an arm to programs: one for its step, one for its first memory."""

from __future__ import annotations

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
from armdyn.programs.budget import BUDGET


def check(law: ControlLaw, chain: Chain) -> None:
    """An error where the law is not for this robot."""
    if law.refusal(chain):
        raise InputError(f"the controller {law.name} {law.refusal(chain)}")


@lru_cache(maxsize=64)
def step_program(law: ControlLaw, chain: Chain, friction: bool = False) -> Program:
    """Memory and what is read -> outputs and the next memory (`NEXT` after its name)."""
    check(law, chain)
    inputs = (*sized(law.memory, chain), *sized(law.reads, chain))
    outputs = (*sized(law.outputs, chain), *sized(law.memory, chain, NEXT))
    return _traced(law.name, law.step, Dynamics(chain, friction), inputs, outputs)


@lru_cache(maxsize=64)
def start_program(law: ControlLaw, chain: Chain, friction: bool = False) -> Program:
    """Measurements and gains -> the first memory; an error where there is none to make."""
    check(law, chain)
    if not law.memory:
        raise InputError(f"the controller {law.name} remembers nothing: there is nothing to start from")
    inputs = sized(law.starts_from, chain)
    return _traced(f"{law.name}_start", law.start, Dynamics(chain, friction), inputs, sized(law.memory, chain))


def _traced(name: str, step: Step, model: Dynamics, inputs: Any, outputs: Any) -> Program:
    names = [port for port, _ in inputs]

    def function(*arguments: Any) -> Any:
        found = step(model, SimpleNamespace(**dict(zip(names, arguments, strict=True))))
        results = tuple(found[port.removesuffix(NEXT)] for port, _ in outputs)
        return results[0] if len(results) == 1 else results

    made = trace(name, function, dict(inputs), outputs)
    return simplify(made) if made.operations.total <= BUDGET.quick else made
