"""Exact derivatives of programs: the chain rule on nodes, forwards (by inputs) or backwards (by outputs).

Both directions give the same numbers up to rounding; one sweep an input costs less where there are
fewer inputs than outputs, one sweep an output elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from armdyn.graph.node import Node
from armdyn.graph.program import Port, Program

# op -> the partial derivatives of the operation in each of its arguments, given the node itself.
PARTIALS: dict[str, Callable[[Node], tuple[Any, ...]]] = {
    "add": lambda node: (1, 1),
    "sub": lambda node: (1, -1),
    "mul": lambda node: (node.args[1], node.args[0]),
    "neg": lambda node: (-1,),
    "div": lambda node: (1 / node.args[1], -(node / node.args[1])),
    "sin": lambda node: (node.args[0].cos(),),
    "cos": lambda node: (-node.args[0].sin(),),
    "sqrt": lambda node: (1 / (2 * node),),
    "sign": lambda node: (0,),  # everywhere but at 0, where there is none
    "positive": lambda node: (0,),
}


def jacobian(program: Program, wrt: Sequence[str]) -> Program:
    """The partial derivatives of every output in the named inputs: ports ``d{output}_d{input}``."""
    names = [port.name for port in program.inputs]
    unknown = [name for name in wrt if name not in names]
    if unknown:
        raise ValueError(f"{program.name} has no input {', '.join(unknown)}; available: {', '.join(names)}")
    ports = [port for name in wrt for port in program.inputs if port.name == name]
    inputs, outputs = (sum(len(port.nodes) for port in side) for side in (ports, program.outputs))
    sweep = _backward if inputs > outputs else _forward
    return _assemble(program, ports, sweep(program, ports))


def _assemble(program: Program, ports: list[Port], slope: dict[tuple[int, int], Any]) -> Program:
    graph = program.inputs[0].nodes[0].graph
    outputs = []
    for out in program.outputs:
        for port in ports:
            entries = [slope.get((y.serial, x.serial), 0) for y in out.nodes for x in port.nodes]
            nodes = tuple(e if isinstance(e, Node) else graph.const(e) for e in entries)
            outputs.append(Port(f"d{out.name}_d{port.name}", out.shape + port.shape, nodes))
    return Program(f"{program.name}_derivatives", program.inputs, tuple(outputs))


def _forward(program: Program, ports: list[Port]) -> dict[tuple[int, int], Any]:
    """(output serial, input serial) -> derivative, one sweep an input."""
    order = program.order
    partials = {node.serial: PARTIALS[node.op](node) for node in order if node.args}
    wanted = {node.serial for port in program.outputs for node in port.nodes}
    slope: dict[tuple[int, int], Any] = {}
    for x in (node for port in ports for node in port.nodes):
        rate: dict[int, Any] = {x.serial: 1}
        for node in order:
            if not node.args:
                continue
            total: Any = 0
            for arg, partial in zip(node.args, partials[node.serial], strict=True):
                if arg.serial in rate:
                    total = total + rate[arg.serial] * partial
            if isinstance(total, Node) or total != 0:
                rate[node.serial] = total
        slope.update(((serial, x.serial), value) for serial, value in rate.items() if serial in wanted)
    return slope


def _backward(program: Program, ports: list[Port]) -> dict[tuple[int, int], Any]:
    """(output serial, input serial) -> derivative, one sweep an output."""
    order = program.order
    inputs = {node.serial for port in ports for node in port.nodes}
    reaches: set[int] = set(inputs)
    for node in order:
        if any(arg.serial in reaches for arg in node.args):
            reaches.add(node.serial)
    partials = {node.serial: PARTIALS[node.op](node) for node in order if node.args and node.serial in reaches}
    slope: dict[tuple[int, int], Any] = {}
    for y in {node.serial: node for port in program.outputs for node in port.nodes}.values():
        weight: dict[int, Any] = {y.serial: 1}
        for node in reversed(order):
            if node.serial not in weight or node.serial not in partials:
                continue
            for arg, partial in zip(node.args, partials[node.serial], strict=True):
                if arg.serial in reaches:
                    weight[arg.serial] = weight.get(arg.serial, 0) + weight[node.serial] * partial
        slope.update(((y.serial, x), weight[x]) for x in inputs if x in weight)
    return slope


def inline(program: Program, *arguments: Sequence[Any]) -> list[list[Any]]:
    """The outputs of a program on other nodes or numbers: one flat list an output."""
    at: dict[int, Any] = {}
    for port, flat in zip(program.inputs, arguments, strict=True):
        at.update((node.serial, x) for node, x in zip(port.nodes, flat, strict=True))
    graph = next(x.graph for flat in arguments for x in flat if isinstance(x, Node))
    for node in program.order:
        if node.op == "const":
            at[node.serial] = node.value
        elif node.args:
            at[node.serial] = graph.make(node.op, *(at[arg.serial] for arg in node.args))
    return [[at[node.serial] for node in port.nodes] for port in program.outputs]
