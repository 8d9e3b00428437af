"""Node: a scalar that records the operations applied to it.

Nodes are immutable and hash-consed: the same operation on the same arguments is the same object,
so common subexpressions are shared without a search. Constants are exact rationals; an operation that folds
to a constant gives a plain `Fraction`. Nodes are ordered by serial number, never by
`id()`: a graph traced twice, in any process, is the same.

`OPERATIONS` is the table of everything that backends and derivatives need to know about each operation. A program is a
list of nodes, arguments before their users (`Program.order`). A node is an input (`node.op` is "input", `node.value`
its name), a constant ("const", an exact `Fraction`) or one of these operations on `node.args`. To run a program in
another library, provide its function for every name here and walk the nodes, as `interpret` does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from armdyn.algebra.scalar import Rational
from armdyn.graph.fold import Rule, kind_of_constant, rules

LEAVES = ("const", "input")


@dataclass(frozen=True)
class Operation:
    """One operation: `text` is written between two arguments or in front of one, or is a function's name."""

    name: str
    arity: int
    text: str
    evaluate: Callable[..., Any]  # on floats
    # The derivative with respect to each argument, as nodes or numbers, given the node; None if not differentiable.
    partials: Callable[[Any], tuple[Any, ...]] | None
    commutative: bool = False

    @property
    def infix(self) -> bool:
        """Whether the text is written between the arguments."""
        return self.arity == 2


OPERATIONS: dict[str, Operation] = {
    operation.name: operation
    for operation in (
        Operation("add", 2, "+", lambda a, b: a + b, lambda node: (1, 1), commutative=True),
        Operation("sub", 2, "-", lambda a, b: a - b, lambda node: (1, -1)),
        Operation("mul", 2, "*", lambda a, b: a * b, lambda node: node.args[::-1], commutative=True),
        Operation("div", 2, "/", lambda a, b: a / b, lambda node: (1 / node.args[1], -(node / node.args[1]))),
        Operation("neg", 1, "-", lambda a: -a, lambda node: (-1,)),
        Operation("sin", 1, "sin", math.sin, lambda node: (node.args[0].cos(),)),
        Operation("cos", 1, "cos", math.cos, lambda node: (-node.args[0].sin(),)),
        Operation("sqrt", 1, "sqrt", math.sqrt, lambda node: (1 / (2 * node),)),
        # -1, 0 or 1; its derivative is 0 except at 0, where it does not exist.
        Operation("sign", 1, "sign", lambda a: math.copysign(1.0, a) if a else a, lambda node: (0,)),
        # 1 where the argument is positive, NaN elsewhere.
        Operation("positive", 1, "positive", lambda a: 1.0 if a > 0 else math.nan, lambda node: (0,)),
        # a·b + c, rounded once: introduced by code generation, after differentiation.
        Operation("fma", 3, "fma", lambda a, b, c: a * b + c, None),
    )
}


def partial_derivatives(node: Any) -> Iterable[Any]:
    """The derivatives of a node with respect to each of its arguments."""
    rule = OPERATIONS[node.op].partials
    if rule is None:
        raise ValueError(f"{node.op} has no derivative: differentiate before code generation introduces it")
    return rule(node)


COMMUTATIVE = frozenset(name for name, operation in OPERATIONS.items() if operation.commutative)
NUMBERS = frozenset((int, float, Fraction, Rational))


def _is_number(x: Any) -> bool:
    return x.__class__ in NUMBERS or isinstance(x, int | float | Fraction)


class _Applicable(dict[tuple[str, ...], tuple[Rule, ...]]):
    """The rules that apply, by operation and the kinds of its arguments."""

    def __missing__(self, kinds: tuple[str, ...]) -> tuple[Rule, ...]:
        found = self[kinds] = rules(*kinds)
        return found


_APPLICABLE = _Applicable()


class Node:
    """One node of a graph: `op` is const, input, or the name of an operation in `OPERATIONS`."""

    __slots__ = ("args", "graph", "kind", "op", "serial", "value")

    def __init__(self, graph: Graph, op: str, args: tuple[Node, ...], value: Any, serial: int) -> None:
        self.graph = graph
        self.op = self.kind = op  # the kind of a const is set by its graph; folding rules go by it
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
        if other.__class__ is not Node and not _is_number(other):
            return NotImplemented  # a dual number knows how to add itself
        return self.graph.binary("add", self, other)

    def __radd__(self, other: Any) -> Any:
        return self.graph.binary("add", other, self)

    def __sub__(self, other: Any) -> Any:
        if other.__class__ is not Node and not _is_number(other):
            return NotImplemented  # a dual number knows what to do
        return self.graph.binary("sub", self, other)

    def __rsub__(self, other: Any) -> Any:
        return self.graph.binary("sub", other, self)

    def __mul__(self, other: Any) -> Any:
        if other.__class__ is not Node and not _is_number(other):
            return NotImplemented  # a vector knows how to multiply itself
        return self.graph.binary("mul", self, other)

    def __rmul__(self, other: Any) -> Any:
        return self.graph.binary("mul", other, self)

    def __truediv__(self, other: Any) -> Any:
        if other.__class__ is not Node and not _is_number(other):
            return NotImplemented  # a dual number knows what to do
        return self.graph.binary("div", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return self.graph.binary("div", other, self)

    def __neg__(self) -> Any:
        return self.graph.unary("neg", self)

    def sin(self) -> Any:
        """Sine."""
        return self.graph.unary("sin", self)

    def cos(self) -> Any:
        """Cosine."""
        return self.graph.unary("cos", self)

    def sqrt(self) -> Any:
        """Square root."""
        return self.graph.unary("sqrt", self)

    def sign(self) -> Any:
        """-1, 0 or 1."""
        return self.graph.unary("sign", self)

    def positive(self) -> Any:
        """1 where this is positive, NaN elsewhere."""
        return self.graph.unary("positive", self)


class Graph:
    """A growing set of nodes."""

    def __init__(self) -> None:
        self._table: dict[Any, Node] = {}  # every node by its operation, arguments and value

    def __len__(self) -> int:
        return len(self._table)

    def input(self, name: str) -> Node:
        """The run-time number called `name`."""
        return self._table.get(("input", name)) or self._new("input", (), name, ("input", name))

    def const(self, value: Any) -> Node:
        """A constant as a node (needed only as an argument or an output)."""
        value = value if value.__class__ is Rational else Rational(value)
        key = value.as_integer_ratio()
        node = self._table.get(key)
        if node is None:
            node = self._new("const", (), value, key)
            node.kind = kind_of_constant(value)
        return node

    def make(self, op: str, *operands: Any) -> Any:
        """`op` applied to nodes and numbers: folded, shared, or new."""
        return (self.unary if len(operands) == 1 else self.binary)(op, *operands)

    def unary(self, op: str, a: Any) -> Any:
        """A function of one argument."""
        if a.__class__ is not Node:
            a = self.const(a)
        for fold in _APPLICABLE[op, a.kind]:
            folded = fold(self, a)
            if folded is not None:
                return folded.value if folded.__class__ is Node and folded.op == "const" else folded
        key = op, a.serial
        return self._table.get(key) or self._new(op, (a,), None, key)

    def binary(self, op: str, a: Any, b: Any) -> Any:
        """An operation on two arguments; most of tracing and rewriting is spent here."""
        if a.__class__ is not Node:
            a = self.const(a)
        if b.__class__ is not Node:
            b = self.const(b)
        for fold in _APPLICABLE[op, a.kind, b.kind]:
            folded = fold(self, a, b)
            if folded is not None:
                return folded.value if folded.__class__ is Node and folded.op == "const" else folded
        if a.serial > b.serial and op in COMMUTATIVE:
            a, b = b, a
        key = op, a.serial, b.serial
        return self._table.get(key) or self._new(op, (a, b), None, key)

    def raw(self, op: str, args: tuple[Node, ...]) -> Node:
        """The shared node of an operation, without folding."""
        key = (op, *[a.serial for a in args])
        return self._table.get(key) or self._new(op, args, None, key)

    def _new(self, op: str, args: tuple[Node, ...], value: Any, key: Any) -> Node:
        node = self._table[key] = Node(self, op, args, value, len(self._table))
        return node
