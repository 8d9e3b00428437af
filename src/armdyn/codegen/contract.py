"""Contraction of products and sums into fused multiply–adds, decided on the graph.

LLVM's own contraction depends on the vector width, so it stays off: `contract` makes the decision explicit as `fma`
nodes, fma(a, b, c) = a·b + c rounded once, and every backend follows it. A product is contracted only if every use of
it is a sum that can absorb it, so that nothing is computed twice. Negations are free in hardware; they become `neg`
nodes on an argument.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from armdyn.graph.node import Graph, Node
from armdyn.graph.passes import compiler_pass
from armdyn.graph.program import Port, Program, check, counts


@compiler_pass("contract", counts=counts, check=lambda made, given: check(made), before=check)
def contract(program: Program) -> Program:
    """The same program with `fma` nodes."""
    absorbed = _absorbed(program)
    graph = Graph()
    made: dict[int, Node] = {}
    for port in program.inputs:  # unused inputs are not in `program.order`
        for node in port.nodes:
            made[node.serial] = graph.input(node.value)
    for node in program.order:
        if node.op == "input":
            made[node.serial] = graph.input(node.value)
        elif node.op == "const":
            made[node.serial] = graph.const(node.value)
        elif node.serial in absorbed:
            made[node.serial] = _fused(graph, node, absorbed[node.serial], made)
        else:
            made[node.serial] = graph.raw(node.op, tuple(made[a.serial] for a in node.args))

    def renewed(port: Port) -> Port:
        return Port(port.name, port.shape, tuple(made[node.serial] for node in port.nodes))

    return Program(program.name, tuple(map(renewed, program.inputs)), tuple(map(renewed, program.outputs)))


def _absorbed(program: Program) -> dict[int, int]:
    """The index of the absorbed product among the arguments of each sum that becomes an fma, by serial number."""
    users: dict[int, list[Node]] = defaultdict(list)
    for node in program.order:
        for argument in node.args:
            users[argument.serial].append(node)
    outputs = {node.serial for port in program.outputs for node in port.nodes}
    absorbed: dict[int, int] = {}
    for product in program.order:
        if product.op != "mul" or product.serial in outputs:
            continue
        sums = users[product.serial]
        free = all(user.op in ("add", "sub") and user.serial not in absorbed for user in sums)
        if free and len({user.serial for user in sums}) == len(sums):
            for user in sums:
                absorbed[user.serial] = 0 if user.args[0] is product else 1
    return absorbed


def _fused(graph: Graph, node: Node, product_at: int, made: dict[int, Node]) -> Node:
    product, other = node.args[product_at], node.args[1 - product_at]
    a, b = (made[argument.serial] for argument in product.args)
    c = made[other.serial]
    if node.op == "sub":
        if product_at == 0:
            c = _minus(graph, c)  # a·b - c
        else:
            a, b = (_minus(graph, a), b) if a.op == "const" else (a, _minus(graph, b))  # c - a·b
    return graph.raw("fma", (a, b, c))


def _minus(graph: Graph, node: Any) -> Node:
    if node.op == "const":
        return graph.const(-node.value)
    return node.args[0] if node.op == "neg" else graph.raw("neg", (node,))
