"""One program for several quantities of one state, which shares what they have in common.

Two are made and the shorter one is taken: the quantities' own shortest programs side by side, in which equal operations
are shared, and their formulations traced together, in which more are equal, rewritten afterwards. Accelerations come
from the program of their derivatives if both are asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from armdyn.chain import Chain
from armdyn.formulations.registry import Options, Shapes
from armdyn.graph.program import Program, flatten, inline, nest, trace
from armdyn.graph.simplify import simplify
from armdyn.programs.assemble import Assembly, assemble
from armdyn.programs.program import FORWARD, accelerations_and_derivatives, program
from armdyn.programs.search import BUDGET, paused_collector, remembered

Part = tuple[str, str, Options]  # quantity, formulation, options
ADDED = ("wrench", "parameters", "geometry")  # inputs that options add: the last ones, in this order


def joint_inputs(parts: Iterable[Shapes]) -> Shapes:
    """The inputs of all parts, each once."""
    inputs: dict[str, tuple[int, ...]] = {}
    for ports in parts:
        inputs.update(ports)
    own = [name for name in inputs if name not in ADDED]
    return tuple((name, inputs[name]) for name in (*own, *(name for name in ADDED if name in inputs)))


def joint_values(parts: Sequence[Assembly], given: Mapping[str, Any]) -> tuple[Any, ...]:
    """The results of all parts at the inputs `given` by name."""
    results: list[Any] = []
    for part in parts:
        made = part.function(*(given[name] for name, _ in part.inputs))
        results.extend([made] if len(part.outputs) == 1 else made)
    return tuple(results)


@remembered
@paused_collector()
def joint_program(chain: Chain, name: str, parts: tuple[Part, ...], inputs: Shapes, outputs: Shapes) -> Program:
    """The program of all parts, with these inputs and outputs."""
    pieces = _pieces(chain, parts)

    def beside(*arguments: Any) -> Any:
        given = {port: flatten(x) for (port, _), x in zip(inputs, arguments, strict=True)}
        found = (
            nest(flat, port.shape)
            for one, own in pieces
            for port, flat in list(zip(one.outputs, inline(one, *(given[p.name] for p in one.inputs)), strict=True))[
                own
            ]
        )
        return _alone(tuple(found))

    made = trace(name, beside, dict(inputs), outputs)
    if made.operations.total > BUDGET.quick:
        return made
    candidates = [simplify(made)]
    if not any(options.derivatives for _, _, options in parts):
        assembled = [assemble(chain, *part) for part in parts]

        def together(*arguments: Any) -> Any:
            return _alone(joint_values(assembled, dict(zip(dict(inputs), arguments, strict=True))))

        candidates.append(simplify(trace(name, together, dict(inputs), outputs)))
    return min(candidates, key=lambda one: one.operations.total)


def _pieces(chain: Chain, parts: Sequence[Part]) -> list[tuple[Program, slice]]:
    """For every part a program, and which of its outputs are the part's."""
    pieces: dict[int, tuple[Program, slice]] = {}
    for k, (quantity, _, options) in enumerate(parts):
        plain = (quantity, replace(options, derivatives=()))
        values = [j for j, (one, _, own) in enumerate(parts) if (one, own) == plain]
        if quantity == FORWARD and options.derivatives and values:
            both = accelerations_and_derivatives(chain, options)
            if both is not None:
                pieces |= {k: (both, slice(1, None))} | {j: (both, slice(0, 1)) for j in values}
    return [pieces.get(k) or (program(chain, *part), slice(None)) for k, part in enumerate(parts)]


def _alone(results: tuple[Any, ...]) -> Any:
    return results[0] if len(results) == 1 else results
