"""Program: a graph with named inputs and outputs, ready to be counted, evaluated or compiled."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from operator import attrgetter
from typing import Any

from armdyn.algebra.cached import cached_property
from armdyn.algebra.operations import Operations
from armdyn.graph.node import Graph, Node
from armdyn.graph.operations import OPERATIONS
from armdyn.graph.show import text


@dataclass(frozen=True)
class Port:
    """A named array of nodes, flattened in C order."""

    name: str
    shape: tuple[int, ...]
    nodes: tuple[Node, ...]


@dataclass(frozen=True, repr=False)
class Program:
    """Outputs as functions of inputs; it prints as code, one assignment per line."""

    name: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]

    def __repr__(self) -> str:
        sides = (", ".join(f"{p.name}{list(p.shape)}" for p in side) for side in (self.inputs, self.outputs))
        return f"<Program {self.name}: {' -> '.join(sides)}, {self.operations}>"

    def __str__(self) -> str:
        return text(self)

    @cached_property
    def order(self) -> tuple[Node, ...]:
        """Every node the outputs need, arguments before their users."""
        seen = {node for port in self.outputs for node in port.nodes}
        stack = list(seen)
        while stack:
            for argument in stack.pop().args:
                if argument not in seen:
                    seen.add(argument)
                    stack.append(argument)
        return tuple(sorted(seen, key=attrgetter("serial")))

    @cached_property
    def structure(self) -> tuple[Any, ...]:
        """The steps of the program, independent of serial numbers: equal for programs that do the same steps."""
        place = {node.serial: k for k, node in enumerate(self.order)}
        nodes = tuple(
            (
                node.op,
                node.value.as_integer_ratio() if node.op == "const" else node.value,
                *[place[a.serial] for a in node.args],
            )
            for node in self.order
        )
        return nodes, tuple(place[node.serial] for port in self.outputs for node in port.nodes)

    @cached_property
    def operations(self) -> Operations:
        """Operations as compiled: signs are free, a subtraction is an addition."""
        ops = Counter(node.op for node in self.order)
        return Operations(
            mul=ops["mul"], add=ops["add"] + ops["sub"], div=ops["div"] + ops["sqrt"], trig=ops["sin"] + ops["cos"]
        )


def trace(
    name: str,
    function: Callable[..., Any],
    inputs: Mapping[str, tuple[int, ...]],
    outputs: Sequence[tuple[str, tuple[int, ...]]],
) -> Program:
    """Run `function` on symbolic inputs, one nested list of nodes per input, and record its operations.

    The function returns one nested list (or scalar) per output, or a tuple of them where there are several.
    """
    graph = Graph()
    ports, arguments = [], []
    for port, shape in inputs.items():
        nodes = tuple(graph.input(f"{port}{k}") for k in range(math.prod(shape)))
        ports.append(Port(port, shape, nodes))
        arguments.append(nest(list(nodes), shape))
    results = function(*arguments)
    if len(outputs) == 1:
        results = (results,)
    filled = []
    for (port, shape), result in zip(outputs, results, strict=True):
        flat = [x if isinstance(x, Node) else graph.const(x) for x in flatten(result)]
        if len(flat) != math.prod(shape):
            raise ValueError(f"{name}: output {port} has {len(flat)} entries, expected shape {shape}")
        filled.append(Port(port, shape, tuple(flat)))
    return Program(name, tuple(ports), tuple(filled))


def nest(flat: list[Any], shape: tuple[int, ...]) -> Any:
    """A flat list as nested lists of a shape, in C order."""
    if not shape:
        return flat[0]
    if len(shape) == 1:
        return flat
    step = len(flat) // shape[0] if shape[0] else 0
    return [nest(flat[k * step : (k + 1) * step], shape[1:]) for k in range(shape[0])]


def flatten(x: Any) -> list[Any]:
    """Nested lists or tuples (or one scalar) as one flat list, in C order."""
    if isinstance(x, list | tuple):
        return [leaf for item in x for leaf in flatten(item)]
    return [x]


def evaluate(program: Program, *values: Sequence[float]) -> list[list[float]]:
    """The outputs for flat input values, one node at a time: the reference for every backend."""
    return interpret(program, {name: operation.evaluate for name, operation in OPERATIONS.items()}, float, *values)


def interpret(
    program: Program,
    functions: Mapping[str, Callable[..., Any]],
    constant: Callable[[Fraction], Any],
    *values: Sequence[Any],
) -> list[list[Any]]:
    """The outputs for flat inputs of any kind, given the function of each operation and the conversion of constants.

    The inputs may be intervals, symbols, tensors: whatever the functions work on.
    """
    at: dict[int, Any] = {}
    for port, flat in zip(program.inputs, values, strict=True):
        at.update((node.serial, x) for node, x in zip(port.nodes, flat, strict=True))
    for node in program.order:
        if node.op == "const":
            at[node.serial] = constant(node.value)
        elif node.op != "input":
            at[node.serial] = functions[node.op](*(at[a.serial] for a in node.args))
    return [[at[node.serial] for node in port.nodes] for port in program.outputs]
