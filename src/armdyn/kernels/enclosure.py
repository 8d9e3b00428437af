"""Programs over boxes: enclosures of chosen outputs, compiled, for thousands of boxes at once."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from armdyn.algebra import scalar
from armdyn.algebra.interval import Interval
from armdyn.codegen.compile import compile_program
from armdyn.errors import InputError
from armdyn.graph.program import Port, Program, interpret, trace

EVALUATE: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "neg": operator.neg,
    "sin": scalar.sin,
    "cos": scalar.cos,
}


class OverBoxes:
    """Outputs of a program as functions of boxes, which are given by lower and upper ends (boxes, variables)."""

    kind = ""
    results: tuple[str, ...] = ()

    def __init__(self, program: Program) -> None:
        for node in program.order:
            if node.op not in ("const", "input", *EVALUATE):
                raise InputError(f"{program.name} contains {node.op}; {self.kind}s are for {', '.join(EVALUATE)}")
        self.program = program
        flat = [node for port in program.inputs for node in port.nodes]
        needed = {node.serial for node in program.order}
        self.used = np.array([node.serial in needed for node in flat])
        count = sum(len(port.nodes) for port in program.outputs)
        shapes = {"centre": (len(flat),), "radius": (len(flat),)}
        outputs = [(name, (count,)) for name in self.results]
        self._compiled = compile_program(trace(f"{program.name}_{self.kind}", self._over, shapes, outputs))

    def _over(self, centres: list[Any], radii: list[Any]) -> Any:
        """The results over any scalar."""
        boxes = [self._input(Interval(c, r)) for c, r in zip(centres, radii, strict=True)]
        sizes = np.cumsum([len(port.nodes) for port in self.program.inputs])[:-1]
        ports = [list(part) for part in np.split(np.array(boxes, dtype=object), sizes)]
        found = [x for port in interpret(self.program, EVALUATE, self._constant, *ports) for x in port]
        results = tuple(zip(*map(self._result, found), strict=True))
        return [list(one) for one in results] if len(self.results) > 1 else list(results[0])

    def _input(self, box: Interval) -> Any:
        return box

    def _constant(self, x: Fraction) -> Any:
        return x

    def _result(self, x: Any) -> tuple[Any, ...]:
        raise NotImplementedError

    def __call__(self, low: Any, high: Any) -> Any:
        """The results, (boxes, outputs) each."""
        centre = low + (high - low) / 2
        radius = np.maximum(high - centre, centre - low)
        return self._compiled(centre, np.nextafter(radius, np.inf))


class Enclosure(OverBoxes):
    """Chosen outputs of a program: the lower and the upper ends of their ranges over boxes."""

    kind = "bound"
    results = ("lower", "upper")

    def __init__(self, program: Program, entries: Sequence[tuple[int, int]]) -> None:
        """Select the outputs: pairs of an output's name and an index into it."""
        nodes = tuple(program.outputs[port].nodes[entry] for port, entry in entries)
        super().__init__(Program(program.name, program.inputs, (Port("entries", (len(nodes),), nodes),)))

    def _result(self, x: Any) -> tuple[Any, ...]:
        return (x if isinstance(x, Interval) else Interval(x)).ends
