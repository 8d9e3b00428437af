"""From a chain, a quantity and a formulation to one function over scalars, extra physics included.

Rotor inertia, friction and a wrench at the tool are the quantity's `physics`, added outside every recursion and the
same on every route (docs/adr/0003-extra-physics.md).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

from armdyn.chain import Chain
from armdyn.chain.slide import canonical
from armdyn.errors import InputError, choose
from armdyn.formulations import QUANTITIES, taking
from armdyn.formulations.registry import Options, Physics, Run, Shapes
from armdyn.parameters import minimal_parameters, realise
from armdyn.programs.derivatives import by_duals, derivative_ports

NO_PARTS: Mapping[str, Run] = MappingProxyType({})


@dataclass(frozen=True)
class Assembly:
    """A function over scalars with the shapes of what goes in and comes out."""

    function: Callable[..., Any]
    inputs: Shapes
    outputs: Shapes


def assemble(
    chain: Chain,
    quantity: str,
    method: str,
    options: Options = Options(),
    parts: Mapping[str, Run] = NO_PARTS,
    physics: Physics | None = None,
) -> Assembly:
    """The function `(q, ...) -> nested lists` of this arm, quantity and formulation.

    `parts` are formulations of other quantities that this one is to be made of (H for `composite`);
    `physics` says what is made of the formulation, by default what the registry says.
    """
    entry = QUANTITIES[choose("quantity", quantity, QUANTITIES)]
    run = partial(entry.formulation(method, chain).run, **parts)
    _check(quantity, options)
    arm = reframed(chain, quantity, options)
    complete = physics or entry.physics
    runtime = options.parameters == "runtime"
    inputs = entry.input_shapes(chain)
    if options.tool_wrench:
        inputs = (*inputs, ("wrench", (6,)))
    if runtime:
        inputs = (*inputs, ("parameters", (len(minimal_parameters(chain)),)))

    def function(*arguments: Any) -> Any:
        given = list(arguments)
        real = realise(arm, given.pop()) if runtime else arm
        wrench = given.pop() if options.tool_wrench else None
        return complete(run, real, given, options, wrench)

    assembly = Assembly(function, inputs, entry.output_shapes(chain))
    return _differentiated(assembly, options.derivatives) if options.derivatives else assembly


def _differentiated(plain: Assembly, wrt: tuple[str, ...]) -> Assembly:
    function = by_duals(plain.function, plain.inputs, plain.outputs, wrt)
    return Assembly(function, plain.inputs, derivative_ports(plain.inputs, plain.outputs, wrt))


def reframed(chain: Chain, quantity: str, options: Options) -> Chain:
    """The arm with its frames where programs are shortest, unless they are asked for as given."""
    as_given = QUANTITIES[quantity].link_frames or options.frame or options.parameters != "baked"
    return chain if as_given else canonical(chain)


def _check(quantity: str, options: Options) -> None:
    """An error for an option that means nothing for this quantity."""
    takes = QUANTITIES[quantity].takes
    runtime = choose("parameters", options.parameters, ("baked", "runtime")) == "runtime"
    asked = {
        "friction": (options.friction, "friction"),
        "tool_wrench": (options.tool_wrench, "tool_wrench"),
        "frame": (options.frame is not None, "frame"),
        "parameters": (runtime, "run-time parameters"),
    }
    for option, (wanted, called) in asked.items():
        if wanted and option not in takes:
            raise InputError(f"{quantity} takes no {called}; available for {', '.join(taking(option))}")
    if options.frame and "tool_wrench" in takes and not options.tool_wrench:
        raise InputError(f"{quantity} takes a frame only with a tool_wrench, to say where it acts")


__all__ = ["Assembly", "Options", "assemble", "reframed"]
