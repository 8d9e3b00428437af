"""Column programs: straight-line code for what all columns share (the head), then a short function over the columns.

The results of the head for one configuration form one row, the *work array*: the values that all columns share, then
the right-hand sides, one vector of columns after another, without rows that are zero in the whole vector.
`finish(work, result, …)` computes the results of one configuration from it, in C order. Batches and single calls use
the same function, so that their results are bitwise equal.
"""

from __future__ import annotations

from dataclasses import dataclass

from armdyn.codegen.contract import contract
from armdyn.codegen.llvm.blocks import groups
from armdyn.codegen.llvm.ir import Slot, Writer, double, function
from armdyn.codegen.llvm.straight_line import Emitter
from armdyn.codegen.target import Target
from armdyn.graph.columns import ColumnProgram, zero
from armdyn.graph.node import Node
from armdyn.graph.program import Port, Program

# A zero row is omitted per group of so many columns, on every processor: omitting a row changes how sums are rounded.
GROUP = 8

Rights = dict[int, tuple[Node, ...]]  # right-hand sides of a vector of columns: the rows that are not all zero


@dataclass(frozen=True)
class Vector:
    """As many columns of a result as there are lanes: the index of the result, the first column, right-hand sides."""

    result: int
    start: int
    rights: Rights

    @property
    def constant(self) -> bool:
        """Whether the right-hand sides are the same for every configuration."""
        return all(node.op == "const" for nodes in self.rights.values() for node in nodes)


class Columns:
    """A column program for a processor: the program of its head, and the functions over its columns."""

    def __init__(self, program: ColumnProgram, target: Target) -> None:
        self.program, self.target = program, target
        self.vectors = [v for k, port in enumerate(program.outputs) for v in _vectors(k, port, target.lanes)]
        self.head = Program(program.name, program.inputs, (self._work(),))

    def _work(self) -> Port:
        """The work array, padded to whole vectors."""
        shared = self.program.varying
        nodes = shared + shared[-1:] * (-len(shared) % self.target.lanes)
        self.first_right = len(nodes)
        for vector in (v for v in self.vectors if not v.constant):
            nodes += [node for row in vector.rights.values() for node in row]
        return Port("work", (len(nodes),), tuple(nodes))

    def text(self) -> str:
        """LLVM IR of the function `finish` and everything it needs."""
        lanes = self.target.lanes
        names: dict[tuple[int, tuple[int, ...]], str] = {}  # by the result's width and the non-zero rows
        texts, w, at = [], Writer(lanes), self.first_right
        w.label("entry")
        for number, vector in enumerate(self.vectors):
            width = self.program.outputs[vector.result].shape[1]
            kind = width, tuple(vector.rights)
            if kind not in names:
                names[kind] = f"@columns{len(names)}"
                texts.append(self._function(names[kind], *kind))
            if vector.constant:
                texts.append(_table(f"right{number}", vector, lanes))
                right = f"@right{number}"
            else:
                right, at = w.at("%work", 8 * at), at + lanes * len(vector.rights)
            place = w.at(f"%result{vector.result}", 8 * vector.start)
            w.do(f"call void {names[kind]}(ptr %work, ptr {right}, ptr {place})")
        w.do("ret void")
        results = ", ".join(f"ptr noalias %result{k}" for k in range(len(self.program.outputs)))
        return "".join(texts) + function(f"internal void @finish(ptr %work, {results}) noinline", w.lines)

    def _function(self, name: str, width: int, rows: tuple[int, ...]) -> str:
        """`name(shared, right, to)`: one vector of columns of a result that has `width` columns."""
        size = self.program.column.inputs[1].shape[0]
        program = contract(self.program.specialised([row not in rows for row in range(size)]))
        shared, right = ({node.serial: k for k, node in enumerate(port.nodes)} for port in program.inputs)
        w = Writer(self.target.lanes)
        w.label("entry")
        emit = _ColumnEmitter(w, self.target.fma, shared, {s: Slot("%right", k) for s, k in right.items()})
        places: dict[int, list[int]] = {}
        for row, node in enumerate(program.outputs[0].nodes):
            places.setdefault(node.serial, []).append(row)
        for node in program.order:
            if node.op == "input" and node.serial not in places:
                continue  # loaded where it is used
            value = emit.value(node)
            for row in places.get(node.serial, ()):
                _store(w, value, w.at("%to", 8 * row * width), width)
        w.do("ret void")
        head = f"internal void {name}(ptr noalias %shared, ptr noalias %right, ptr noalias %to) noinline"
        return function(head, w.lines)


class _ColumnEmitter(Emitter):
    """Emits the nodes of a column; a value that all columns share is loaded and broadcast at each use."""

    def __init__(self, w: Writer, fma: bool, shared: dict[int, int], right: dict[int, Slot]) -> None:
        super().__init__(w, fma, right, lambda node: w.constant(node.value))
        self.shared = shared

    def value(self, node: Node) -> str:
        """The name of a node's value."""
        if node.serial not in self.shared:
            return super().value(node)
        place = self.w.at("%shared", 8 * self.shared[node.serial])
        return self.w.broadcast(self.w.let(f"load double, ptr {place}, align 8"))


def _store(w: Writer, value: str, place: str, width: int) -> None:
    """Store a vector of columns to one row of a result with `width` columns."""
    kind = w.vector
    if width < w.lanes:
        kind, picks = f"<{width} x double>", ", ".join(f"i32 {k}" for k in range(width))
        value = w.let(f"shufflevector {w.vector} {value}, {w.vector} poison, <{width} x i32> <{picks}>")
    w.do(f"store {kind} {value}, ptr {place}, align 8")


def _vectors(result: int, port: Port, lanes: int) -> list[Vector]:
    """The columns of a result in vectors; the last may overlap the one before, and a single short one is padded."""
    rows, width = port.shape
    group, lanes_used = min(GROUP, width), min(lanes, width)
    spare = (port.nodes[0].graph.const(0),) * (lanes - lanes_used)
    found = []
    for first in groups(width, group):
        begins = [(row, row * width + first) for row in range(rows)]
        varying = [(row, k) for row, k in begins if not zero(port.nodes[k : k + group])]
        for start in groups(group, lanes_used):
            rights = {row: port.nodes[k + start : k + start + lanes_used] + spare for row, k in varying}
            found.append(Vector(result, first + start, rights))
    return found


def _table(name: str, vector: Vector, lanes: int) -> str:
    """A table of constant right-hand sides."""
    numbers = [double(node.value) for nodes in vector.rights.values() for node in nodes] or [double(0.0)]
    listed = ", ".join(f"double {number}" for number in numbers)
    return f"@{name} = internal constant [{len(numbers)} x double] [{listed}], align {8 * lanes}\n"
