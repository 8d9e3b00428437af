"""Programs as readable text, one line per node, or as a drawing in the dot language."""

from __future__ import annotations

from typing import TYPE_CHECKING

from armdyn.graph.node import Node
from armdyn.graph.operations import LEAVES, OPERATIONS

if TYPE_CHECKING:
    from armdyn.graph.program import Program


def text(program: Program) -> str:
    """The program as assignments, arguments before their users; a negation is written where it is used."""
    names = _names(program)
    lines = [f"# {program.name}: {program.operations}, {program.operations.trig} sines and cosines"]
    for port in program.inputs:
        lines.append(f"input {port.name}{list(port.shape)}: {' '.join(str(node.value) for node in port.nodes)}")
    for node in program.order:
        if node.op not in ("const", "input", "neg"):
            lines.append(f"{names[node.serial]} = {_expression(node, names)}")
    for port in program.outputs:
        lines.append(f"output {port.name}{list(port.shape)}: {' '.join(names[node.serial] for node in port.nodes)}")
    return "\n".join(lines) + "\n"


def dot(program: Program) -> str:
    """The program as a directed graph in the dot language, arguments pointing to their users."""
    names = _names(program)
    lines = [f'digraph "{program.name}" {{', "  rankdir=BT;"]
    for node in program.order:
        label = names[node.serial] if node.op in LEAVES else OPERATIONS[node.op].text
        shape = "box" if node.op in LEAVES else "ellipse"
        lines.append(f'  n{node.serial} [label="{label}", shape={shape}];')
        lines.extend(f"  n{argument.serial} -> n{node.serial};" for argument in node.args)
    for port in program.outputs:
        for k, node in enumerate(port.nodes):
            lines.append(f'  {port.name}_{k} [label="{port.name}{k}", shape=box];')
            lines.append(f"  n{node.serial} -> {port.name}_{k};")
    return "\n".join([*lines, "}"]) + "\n"


def _names(program: Program) -> dict[int, str]:
    """A short name per node, numbered in the program's order."""
    names: dict[int, str] = {}
    count = 0
    for node in program.order:
        if node.op == "const":
            names[node.serial] = f"{float(node.value):.12g}"
        elif node.op == "input":
            names[node.serial] = str(node.value)
        elif node.op == "neg":
            names[node.serial] = f"-{names[node.args[0].serial]}"
        else:
            names[node.serial] = f"t{count}"
            count += 1
    return names


def _expression(node: Node, names: dict[int, str]) -> str:
    arguments = [names[a.serial] for a in node.args]
    operation = OPERATIONS[node.op]
    return f" {operation.text} ".join(arguments) if operation.infix else f"{operation.text}({', '.join(arguments)})"
