"""Exact derivatives of programs: automatic differentiation on nodes, in forward or reverse mode.

Both modes give the same numbers up to rounding; forward mode (one sweep per input) costs less where there are
fewer inputs than outputs, reverse mode (one sweep per output) elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from armdyn.graph.node import Node, partial_derivatives
from armdyn.graph.program import Port, Program


def jacobian(program: Program, wrt: Sequence[str]) -> Program:
    """The partial derivatives of every output with respect to the named inputs: ports ``d{output}_d{input}``."""
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
    """(output serial, input serial) -> derivative, one sweep per input."""
    order = program.order
    partials = {node.serial: partial_derivatives(node) for node in order if node.args}
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
    """(output serial, input serial) -> derivative, one sweep per output."""
    order = program.order
    inputs = {node.serial for port in ports for node in port.nodes}
    reaches: set[int] = set(inputs)
    for node in order:
        if any(arg.serial in reaches for arg in node.args):
            reaches.add(node.serial)
    partials = {node.serial: partial_derivatives(node) for node in order if node.args and node.serial in reaches}
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


def jacobian_vector(program: Program, wrt: Sequence[str]) -> Program:
    """The derivative of every output along a direction: for each input in `wrt` a further input, its tangent.

    One forward sweep, linear in the tangents; the outputs are the tangents of the program's outputs.
    """
    ports = [port for port in program.inputs if port.name in wrt]
    tangents = _further(program, ports, "tangent")
    rate: dict[int, Any] = {}
    for port, tangent in zip(ports, tangents, strict=True):
        rate.update((x.serial, dx) for x, dx in zip(port.nodes, tangent.nodes, strict=True))
    for node in program.order:
        if any(arg.serial in rate for arg in node.args):
            terms = [
                rate[arg.serial] * partial
                for arg, partial in zip(node.args, partial_derivatives(node), strict=True)
                if arg.serial in rate
            ]
            rate[node.serial] = sum(terms[1:], terms[0])
    return _products("jacobian_vector", program, tangents, program.outputs, rate)


def vector_jacobian(program: Program, wrt: Sequence[str]) -> Program:
    """The gradient of a weighted sum of all outputs: for each output a further input, its weights (cotangent).

    One backward sweep, linear in the weights; the outputs are the gradients with respect to the inputs in `wrt`.
    """
    ports = [port for port in program.inputs if port.name in wrt]
    cotangents = _further(program, program.outputs, "cotangent")
    reaches = {node.serial for port in ports for node in port.nodes}
    for node in program.order:
        if any(arg.serial in reaches for arg in node.args):
            reaches.add(node.serial)
    weight: dict[int, Any] = {}
    for port, cotangent in zip(program.outputs, cotangents, strict=True):
        for y, w in zip(port.nodes, cotangent.nodes, strict=True):
            weight[y.serial] = weight.get(y.serial, 0) + w
    for node in reversed(program.order):
        if node.serial not in weight or node.serial not in reaches or not node.args:
            continue
        for arg, partial in zip(node.args, partial_derivatives(node), strict=True):
            if arg.serial in reaches:
                weight[arg.serial] = weight.get(arg.serial, 0) + weight[node.serial] * partial
    return _products("vector_jacobian", program, cotangents, ports, weight)


def _further(program: Program, ports: Sequence[Port], kind: str) -> list[Port]:
    """Ports for tangents or cotangents, with names that the program does not use yet."""
    graph = program.inputs[0].nodes[0].graph
    names = {port.name for port in program.inputs}
    found = []
    for port in ports:
        name = f"{port.name}_{kind}"
        while name in names:
            name += "_2"
        names.add(name)
        found.append(Port(name, port.shape, tuple(graph.input(f"{name}{k}") for k in range(len(port.nodes)))))
    return found


def _products(kind: str, program: Program, more: list[Port], ports: Sequence[Port], at: dict[int, Any]) -> Program:
    graph = program.inputs[0].nodes[0].graph
    outputs = []
    for port in ports:
        entries = [at.get(node.serial, 0) for node in port.nodes]
        nodes = tuple(e if isinstance(e, Node) else graph.const(e) for e in entries)
        outputs.append(Port(f"d{port.name}", port.shape, nodes))
    return Program(f"{program.name}_{kind}", (*program.inputs, *more), tuple(outputs))
