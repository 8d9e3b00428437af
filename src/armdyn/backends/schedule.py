"""In which order a program is written out, so that few values are alive at a time."""

from __future__ import annotations

from armdyn.graph.node import Node
from armdyn.graph.program import Program


def scheduled(program: Program) -> tuple[Node, ...]:
    """Every node before its users and as near to them as a depth-first walk from the outputs brings it.

    Of two arguments the one whose own evaluation holds more values goes first (Sethi and Ullman's rule
    for trees, taken over to a graph with sharing).
    """
    need = _registers(program)
    done: dict[int, Node] = {}
    for port in program.outputs:
        for output in port.nodes:
            stack: list[tuple[Node, bool]] = [(output, False)]
            while stack:
                node, arguments_done = stack.pop()
                if node.serial in done:
                    continue
                if arguments_done:
                    done[node.serial] = node
                    continue
                stack.append((node, True))
                first_last = sorted(node.args, key=lambda a: (need[a.serial], a.serial))
                stack.extend((argument, False) for argument in first_last)
    return tuple(done.values())


def _registers(program: Program) -> dict[int, int]:
    """How many values the evaluation of each node holds at once, sharing left out of account."""
    need: dict[int, int] = {}
    for node in program.order:
        wants = sorted((need[a.serial] for a in node.args), reverse=True)
        need[node.serial] = max([1, *(want + position for position, want in enumerate(wants))])
    return need
