"""Program: a graph with named inputs and outputs, ready to be counted, evaluated or compiled.

It is shown as text, one line per node, or as a drawing in the dot language; `check` says whether it is well formed.

A `ColumnProgram` has matrices as results, computed column by column by one short program: solving one system for many
right-hand sides is the same arithmetic for each of them. Unrolled over all columns the program would be that many times
longer; here it stays one program of a column, which code generation vectorises over the columns.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from operator import attrgetter
from typing import Any

from armdyn.algebra.scalar import Operations
from armdyn.graph.node import LEAVES, OPERATIONS, Graph, Node
from armdyn.graph.passes import MalformedError, compiler_pass
from armdyn.values import cached_property


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


@compiler_pass("trace", counts=lambda made: counts(made), check=lambda made, *given: check(made))
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


def inline(program: Program, *arguments: Sequence[Any]) -> list[list[Any]]:
    """The outputs of a program applied to other nodes or numbers: one flat list per output."""
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


def counts(program: Program) -> str:
    """What debug mode says of a program."""
    nodes, ops = Counter(node.op for node in program.order), program.operations
    fused = f", {nodes['fma']} fused" if nodes["fma"] else ""
    return f"{program.name}: {len(program.order)} nodes, {ops}, {ops.trig} sines and cosines{fused}"


class MalformedProgramError(MalformedError):
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


@dataclass(frozen=True)
class StagedProgram:
    """A `ColumnProgram` in stages that leave values in memory, so that few are live in each.

    `first` computes numbers that `rights` takes as its last input; `rights` computes all right-hand sides, with the
    names and shapes of the results; `shared` what all columns share; `column` is applied to every column.
    """

    first: Program
    rights: Program
    shared: Program
    column: Program


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
