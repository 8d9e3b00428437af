"""Node: a scalar that writes down what is done with it.

Nodes are immutable and hash-consed: the same operation on the same arguments is the same object,
so common subexpressions are shared without a search. Constants are exact rationals; what folds to
a constant leaves the graph as a plain `Fraction`. Nodes are ordered by serial number, never by
`id()`: a graph traced twice, in any process, is the same.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from armdyn.graph.fold import Rule, rules
from armdyn.graph.operations import OPERATIONS

COMMUTATIVE = frozenset(name for name, operation in OPERATIONS.items() if operation.commutative)
NUMBERS = (int, float, Fraction)
_APPLICABLE: dict[tuple[str, ...], tuple[Rule, ...]] = {}  # by operation and the operations of its arguments


class Node:
    """One node of a graph: `op` is const, input, or the name of an operation in `OPERATIONS`."""

    __slots__ = ("args", "graph", "op", "serial", "value")

    def __init__(self, graph: Graph, op: str, args: tuple[Node, ...], value: Any, serial: int) -> None:
        self.graph = graph
        self.op = op
        self.args = args
        self.value = value  # the Fraction of a const, the name of an input, else None
        self.serial = serial

    def __repr__(self) -> str:
        if self.op == "const":
            return f"Node({float(self.value):g})"
        if self.op == "input":
            return f"Node({self.value})"
        return f"Node(#{self.serial} {self.op} {' '.join('#' + str(a.serial) for a in self.args)})"

    def __add__(self, other: Any) -> Any:
        if other.__class__ is not Node and not isinstance(other, NUMBERS):
            return NotImplemented  # a dual number knows how to add itself
        return self.graph.make("add", self, other)

    def __radd__(self, other: Any) -> Any:
        return self.graph.make("add", other, self)

    def __sub__(self, other: Any) -> Any:
        if other.__class__ is not Node and not isinstance(other, NUMBERS):
            return NotImplemented  # a dual number knows what to do
        return self.graph.make("sub", self, other)

    def __rsub__(self, other: Any) -> Any:
        return self.graph.make("sub", other, self)

    def __mul__(self, other: Any) -> Any:
        if other.__class__ is not Node and not isinstance(other, NUMBERS):
            return NotImplemented  # a vector knows how to multiply itself
        return self.graph.make("mul", self, other)

    def __rmul__(self, other: Any) -> Any:
        return self.graph.make("mul", other, self)

    def __truediv__(self, other: Any) -> Any:
        if other.__class__ is not Node and not isinstance(other, NUMBERS):
            return NotImplemented  # a dual number knows what to do
        return self.graph.make("div", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return self.graph.make("div", other, self)

    def __neg__(self) -> Any:
        return self.graph.make("neg", self)

    def sin(self) -> Any:
        """Sine."""
        return self.graph.make("sin", self)

    def cos(self) -> Any:
        """Cosine."""
        return self.graph.make("cos", self)

    def sqrt(self) -> Any:
        """Square root."""
        return self.graph.make("sqrt", self)

    def sign(self) -> Any:
        """-1, 0 or 1."""
        return self.graph.make("sign", self)

    def positive(self) -> Any:
        """1 where this is positive, NaN elsewhere."""
        return self.graph.make("positive", self)


class Graph:
    """A growing set of nodes."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self._table: dict[Any, Node] = {}

    def input(self, name: str) -> Node:
        """The run-time number called `name`."""
        return self._intern("input", (), name, ("input", name))

    def const(self, value: Any) -> Node:
        """A constant as a node (needed only as an argument or an output)."""
        value = value if value.__class__ is Fraction else Fraction(value)
        return self._intern("const", (), value, value.as_integer_ratio())

    def make(self, op: str, *operands: Any) -> Any:
        """`op` applied to nodes and numbers: folded, shared, or new."""
        args: tuple[Node, ...]
        kinds: tuple[str, ...]
        if len(operands) == 2:  # written out: most of tracing and rewriting is spent here
            a, b = operands
            a = a if a.__class__ is Node else self.const(a)
            b = b if b.__class__ is Node else self.const(b)
            args, kinds = (a, b), (op, a.op, b.op)
        else:
            args = tuple([a if a.__class__ is Node else self.const(a) for a in operands])
            kinds = (op, *[a.op for a in args])
        applicable = _APPLICABLE.get(kinds)
        if applicable is None:
            applicable = _APPLICABLE[kinds] = rules(*kinds)
        for fold in applicable:
            folded = fold(self, *args)
            if folded is not None:
                return folded.value if folded.__class__ is Node and folded.op == "const" else folded
        if op in COMMUTATIVE and args[0].serial > args[1].serial:
            args = args[::-1]
        return self.raw(op, args)

    def raw(self, op: str, args: tuple[Node, ...]) -> Node:
        """The shared node of an operation, without folding."""
        if len(args) == 2:
            return self._intern(op, args, None, (op, args[0].serial, args[1].serial))
        return self._intern(op, args, None, (op, *[a.serial for a in args]))

    def _intern(self, op: str, args: tuple[Node, ...], value: Any, key: Any) -> Node:
        node = self._table.get(key)
        if node is None:
            node = Node(self, op, args, value, len(self.nodes))
            self.nodes.append(node)
            self._table[key] = node
        return node
