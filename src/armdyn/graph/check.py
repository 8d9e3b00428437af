"""Whether a program is well formed."""

from __future__ import annotations

import math
from fractions import Fraction

from armdyn.graph.node import Node
from armdyn.graph.operations import LEAVES, OPERATIONS
from armdyn.graph.program import Program


class MalformedProgramError(ValueError):
    """A program that violates a rule every backend relies on: a bug in armdyn."""


def check(program: Program) -> Program:
    """Return the program if it is well formed; raise an error otherwise.

    Every operation is known and has its number of arguments, arguments come before their users and
    from the same graph, constants are rational, inputs are declared, ports are as large as their
    shapes say, and no operation occurs twice.
    """
    graph = program.order[0].graph if program.order else None
    declared = {node.serial for port in program.inputs for node in port.nodes}
    seen: set[tuple[object, ...]] = set()
    for node in program.order:
        _check_node(program, node)
        if node.graph is not graph:
            raise MalformedProgramError(f"{program.name}: {node} belongs to another graph")
        if node.op == "input" and node.serial not in declared:
            raise MalformedProgramError(f"{program.name}: {node} is not among the inputs")
        made = (node.op, node.value, *(a.serial for a in node.args))
        if made in seen:
            raise MalformedProgramError(f"{program.name}: {node} occurs twice")
        seen.add(made)
    for port in (*program.inputs, *program.outputs):
        if len(port.nodes) != math.prod(port.shape):
            raise MalformedProgramError(
                f"{program.name}: {port.name} has {len(port.nodes)} entries for shape {port.shape}"
            )
    return program


def _check_node(program: Program, node: Node) -> None:
    if node.op not in (*LEAVES, *OPERATIONS):
        known = ", ".join((*LEAVES, *OPERATIONS))
        raise MalformedProgramError(f"{program.name}: unknown operation {node.op!r}; available: {known}")
    expected = 0 if node.op in LEAVES else OPERATIONS[node.op].arity
    if len(node.args) != expected:
        raise MalformedProgramError(f"{program.name}: {node.op} takes {expected} arguments, got {len(node.args)}")
    if any(a.serial >= node.serial for a in node.args):
        raise MalformedProgramError(f"{program.name}: {node} comes before one of its arguments")
    if node.op == "const" and not isinstance(node.value, Fraction):
        raise MalformedProgramError(f"{program.name}: constant {node.value!r} is not a rational number")
