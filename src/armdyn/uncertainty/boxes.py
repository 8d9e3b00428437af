"""Programs over boxes: enclosures of chosen outputs, compiled, for thousands of boxes at once."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from armdyn.algebra import scalar
from armdyn.algebra.interval import Interval
from armdyn.codegen.compile import compile_program
from armdyn.errors import InputError
from armdyn.graph.program import Port, Program, trace

EVALUATE: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "neg": operator.neg,
    "sin": scalar.sin,
    "cos": scalar.cos,
}


class Enclosure:
    """Chosen outputs of a program as functions of boxes: (boxes, variables) centres and radii -> lower, upper ends."""

    def __init__(self, program: Program, entries: Sequence[tuple[int, int]]) -> None:
        """Take (output, entry of it) of everything that is asked for."""
        nodes = tuple(program.outputs[port].nodes[entry] for port, entry in entries)
        self.program = Program(program.name, program.inputs, (Port("entries", (len(nodes),), nodes),))
        for node in self.program.order:
            if node.op not in ("const", "input", *EVALUATE):
                raise InputError(f"{program.name} contains {node.op}; bounds are for {', '.join(EVALUATE)}")
        flat = [node for port in program.inputs for node in port.nodes]
        needed = {node.serial for node in self.program.order}
        self.used = np.array([node.serial in needed for node in flat])
        self._variables = [node.serial for node in flat]
        shapes = {"centre": (len(flat),), "radius": (len(flat),)}
        outputs = [("lower", (len(nodes),)), ("upper", (len(nodes),))]
        self._compiled = compile_program(trace(f"{program.name}_enclosure", self._over, shapes, outputs))

    def _over(self, centres: list[Any], radii: list[Any]) -> tuple[list[Any], list[Any]]:
        """The lower and the upper ends, over any scalar."""
        boxes = (Interval(c, r) for c, r in zip(centres, radii, strict=True))
        at: dict[int, Any] = dict(zip(self._variables, boxes, strict=True))
        for node in self.program.order:
            if node.op == "const":
                at[node.serial] = node.value
            elif node.op != "input":
                at[node.serial] = EVALUATE[node.op](*(at[a.serial] for a in node.args))
        found = [at[node.serial] for node in self.program.outputs[0].nodes]
        ends = [x.ends if isinstance(x, Interval) else Interval(x).ends for x in found]
        return [low for low, _ in ends], [high for _, high in ends]

    def __call__(self, low: Any, high: Any) -> tuple[Any, Any]:
        """The ends of the outputs, (boxes, outputs) each, for boxes given by their own ends."""
        centre = low + (high - low) / 2
        radius = np.maximum(high - centre, centre - low)
        lower, upper = self._compiled(centre, np.nextafter(radius, np.inf))
        return lower, upper
