"""A program whose results are matrices, computed column by column by one short program.

Solving one system for many right-hand sides is the same arithmetic for each of them. Unrolled over all columns the
program would be that many times longer; here it stays one program of a column, which code generation vectorises over
the columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from armdyn.graph.derive import inline
from armdyn.graph.node import Node
from armdyn.graph.program import Port, Program, evaluate, trace


@dataclass(frozen=True)
class ColumnProgram:
    """`head` computes the numbers that all columns share, and a matrix per result; `column` is applied to its columns.

    The first output of `head` is `shared`; every other has the name and the shape (rows, columns) of a result, and
    holds its right-hand sides. `column` computes a column of the result from `shared` and a right-hand side.
    """

    name: str
    head: Program
    column: Program

    @property
    def inputs(self) -> tuple[Port, ...]:
        """The inputs."""
        return self.head.inputs

    @property
    def outputs(self) -> tuple[Port, ...]:
        """The results; their nodes are the right-hand sides."""
        return self.head.outputs[1:]

    @property
    def shared(self) -> Port:
        """The numbers that all columns share."""
        return self.head.outputs[0]

    @property
    def varying(self) -> list[Node]:
        """The shared numbers that a column's program reads: those that are not constant, or all if all are constant."""
        return [node for node in self.shared.nodes if node.op != "const"] or list(self.shared.nodes)

    def specialised(self, zeros: Sequence[bool]) -> Program:
        """The program of a column with zeros in some rows; its inputs are the varying entries of both inputs.

        Constant entries of `shared` become constants of the program, unless all of them are constant.
        """
        rows = len(zeros)
        varying = {node.serial: k for k, node in enumerate(self.varying)}

        def function(shared: list[Any], right: list[Any]) -> list[Any]:
            others = iter(right)
            all_shared = [shared[varying[n.serial]] if n.serial in varying else n.value for n in self.shared.nodes]
            return inline(self.column, all_shared, [0 if zero else next(others) for zero in zeros])[0]

        inputs = {"shared": (len(self.varying),), "right": (rows - sum(zeros),)}
        return trace(f"{self.name}_column", function, inputs, [("column", (rows,))])


def zero(nodes: Sequence[Node]) -> bool:
    """Whether all nodes are the constant 0."""
    return all(node.op == "const" and node.value == 0 for node in nodes)


def evaluate_columns(program: ColumnProgram, *values: Sequence[float]) -> list[list[float]]:
    """The results for flat input values, one node at a time: the reference for code generation."""
    shared, *rights = evaluate(program.head, *values)
    results = []
    for port, right in zip(program.outputs, rights, strict=True):
        width = port.shape[1]
        columns = [evaluate(program.column, shared, right[k::width])[0] for k in range(width)]
        results.append([x for row in zip(*columns, strict=True) for x in row])
    return results
