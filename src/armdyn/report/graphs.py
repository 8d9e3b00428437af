"""A program's expression graph as data for the page: operations, arguments, stages."""

from __future__ import annotations

import re
from typing import Any

from armdyn.arm import Arm
from armdyn.graph.program import Program

SHOWN = ("inertia_matrix", "inverse_dynamics", "forward_dynamics")
MAX_NODES = 2500  # larger graphs are unreadable and make the page heavy


def graphs(arm: Arm) -> list[dict[str, Any]]:
    """The programs that the kernels are compiled from, if they are small enough to draw."""
    found = []
    for quantity in SHOWN:
        kernel = arm.kernel(quantity)
        if len(kernel.program.order) <= MAX_NODES:
            found.append({"quantity": quantity, "method": kernel.method, **graph(kernel.program, arm.n)})
    return found


def graph(program: Program, n: int) -> dict[str, Any]:
    """Nodes as [operation, arguments, stage, label], results as [node, name], and the names of the stages.

    The stage of a node is the joint nearest the base whose input it depends on, -1 for constants.
    """
    number = {node.serial: k for k, node in enumerate(program.order)}
    stages: list[int] = []
    nodes = []
    for node in program.order:
        index = re.search(r"\d+$", node.value) if node.op == "input" else None
        below = [stages[number[a.serial]] for a in node.args]
        stage = int(index[0]) if index else min((s for s in below if s >= 0), default=-1)
        stages.append(min(stage, n - 1))
        label = f"{float(node.value):.4g}" if node.op == "const" else _numbered(str(node.value or ""))
        nodes.append([node.op, [number[a.serial] for a in node.args], stages[-1], label])
    results = [
        [number[node.serial], port.name + _index(k, port.shape)]
        for port in program.outputs
        for k, node in enumerate(port.nodes)
    ]
    return {"nodes": nodes, "results": results, "stages": [f"joint {k + 1}" for k in range(n)]}


def _numbered(name: str) -> str:
    """`q0` as q1, because the page counts joints from one."""
    return re.sub(r"\d+$", lambda found: str(int(found[0]) + 1), name)


def _index(k: int, shape: tuple[int, ...]) -> str:
    parts: list[int] = []
    for size in reversed(shape):
        parts.insert(0, k % size + 1)
        k //= size
    return "".join(f"[{part}]" for part in parts)
