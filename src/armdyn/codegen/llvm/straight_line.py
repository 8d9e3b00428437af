"""Straight-line code: the common base of the two code generators for a program's arithmetic.

A block is one vector of configurations, one lane per configuration. `body(in, out, context)` reads one vector per
input number and writes one vector per distinct output number. Sines and cosines of all angles are computed first; the
rest has no branches. Callers with arrays pack and unpack these vectors (`blocks`); integrators call `body` in a loop
of their own.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from armdyn.algebra.cached import cached_property
from armdyn.codegen.llvm.ir import Slot, Writer, function
from armdyn.codegen.llvm.trig import TRIG, fused
from armdyn.codegen.target import Target
from armdyn.graph.node import Node
from armdyn.graph.program import Program


@dataclass(frozen=True)
class RowsToRows:
    """LLVM IR of a function `rows_to_rows` from rows of arrays to rows; see `rows`."""

    text: str
    uniform: tuple[int, ...]  # inputs that are the same for all configurations


@dataclass(frozen=True)
class StraightLine(ABC):
    """Generates the code of a contracted program for a processor.

    `uniform` are the indices of inputs that are usually the same for a whole batch: a hint, not a guarantee.
    """

    contracted: Program
    target: Target
    uniform: tuple[int, ...] = ()
    name: ClassVar[str] = "body"

    @property
    def lanes(self) -> int:
        """Configurations per vector."""
        return self.target.lanes

    @cached_property
    def slots(self) -> dict[int, int]:
        """Serial number of an output node -> its slot in `out`; entries with the same node share a slot."""
        outputs = [node.serial for port in self.contracted.outputs for node in port.nodes]
        return {serial: slot for slot, serial in enumerate(dict.fromkeys(outputs))}

    @cached_property
    def trig_layers(self) -> tuple[tuple[Node, ...], ...]:
        """See `trig_layers`."""
        return trig_layers(self.contracted)

    @cached_property
    def inputs(self) -> dict[int, Slot]:
        """Serial number of an input node -> its slot in `in`."""
        nodes = [node for port in self.contracted.inputs for node in port.nodes]
        return {node.serial: Slot("%in", number) for number, node in enumerate(nodes)}

    def text(self) -> str:
        """LLVM IR of the function `self.name` and everything it needs."""
        w = Writer(self.lanes)
        w.label("entry")
        functions = self._write(w)
        w.do("ret void")
        head = f"internal void @{self.name}(ptr noalias %in, ptr noalias %out, ptr %context) noinline"
        return "".join(w.tables) + functions + function(head, w.lines)

    @abstractmethod
    def _write(self, w: Writer) -> str:
        """Write the block's arithmetic into `w`; returns the LLVM IR of further functions that it calls."""

    def rows_to_rows(self) -> RowsToRows | None:
        """The same arithmetic as a loop from rows of arrays to rows, if that is faster."""
        return None

    def _sines_wanted(self, angles: tuple[Node, ...], results: str) -> dict[int, Slot]:
        """The locations of the sines and cosines: a pair per angle."""
        number = {angle.serial: k for k, angle in enumerate(angles)}
        return {
            node.serial: Slot(results, 2 * number[node.args[0].serial] + TRIG.index(node.op))
            for node in self.contracted.order
            if node.op in TRIG and node.args[0].serial in number
        }


def trig_layers(program: Program) -> tuple[tuple[Node, ...], ...]:
    """The angles in layers: those that depend on no sine or cosine, then those that depend on theirs, and so on."""
    depth: dict[int, int] = {}
    layers: dict[int, dict[int, Node]] = {}
    for node in program.order:
        depth[node.serial] = max((depth[a.serial] for a in node.args), default=0)
        if node.op in TRIG:
            layers.setdefault(depth[node.serial], {})[node.args[0].serial] = node.args[0]
            depth[node.serial] += 1
    return tuple(tuple(layers[level].values()) for level in sorted(layers))


def ancestors(node: Node) -> list[Node]:
    """A node and all nodes it depends on, in topological order."""
    done: dict[int, Node] = {}
    stack = [node]
    while stack:
        last = stack[-1]
        missing = [a for a in last.args if a.serial not in done]
        if missing:
            stack.extend(missing)
        else:
            done[stack.pop().serial] = last
    return list(done.values())


def _sign(w: Writer, x: str) -> str:
    """-1 or 1 where x is not zero; zeros and NaN are unchanged."""
    v = w.vector
    up = w.let(f"fcmp ogt {v} {x}, zeroinitializer")
    down = w.let(f"fcmp olt {v} {x}, zeroinitializer")
    value = w.let(f"select {w.mask} {up}, {v} {w.constant(1)}, {v} {x}")
    return w.let(f"select {w.mask} {down}, {v} {w.constant(-1)}, {v} {value}")


def _positive(w: Writer, x: str) -> str:
    """1 where x is positive, NaN elsewhere."""
    up = w.let(f"fcmp ogt {w.vector} {x}, zeroinitializer")
    return w.let(f"select {w.mask} {up}, {w.vector} {w.constant(1)}, {w.vector} {w.constant(math.nan)}")


# One entry per operation: (writer, whether the processor fuses multiply–adds, arguments) -> name of the result.
EMIT: dict[str, Callable[..., str]] = {
    "add": lambda w, fma, a, b: w.let(f"fadd {w.vector} {a}, {b}"),
    "sub": lambda w, fma, a, b: w.let(f"fsub {w.vector} {a}, {b}"),
    "mul": lambda w, fma, a, b: w.let(f"fmul {w.vector} {a}, {b}"),
    "div": lambda w, fma, a, b: w.let(f"fdiv {w.vector} {a}, {b}"),
    "neg": lambda w, fma, a: w.let(f"fneg {w.vector} {a}"),
    "fma": fused,
    "sqrt": lambda w, fma, a: w.let(f"call {w.vector} @llvm.sqrt.{w.suffix}({w.vector} {a})"),
    "sign": lambda w, fma, a: _sign(w, a),
    "positive": lambda w, fma, a: _positive(w, a),
}


class Emitter:
    """Emits nodes as LLVM IR; a value in memory is loaded at its first use.

    `constant` returns the operand of a constant node. `locations` gives the slots of values in memory.
    """

    def __init__(self, w: Writer, fma: bool, locations: dict[int, Slot], constant: Callable[[Node], str]) -> None:
        self.w, self.fma, self.constant = w, fma, constant
        self.locations: dict[int, Slot | str] = dict(locations)

    def value(self, node: Node) -> str:
        """The name of a node's value; the node is emitted at its first use."""
        location = self.locations.get(node.serial)
        if isinstance(location, str):
            return location
        if node.op == "const":
            name = self.w.constant(node.value)
        elif location is None:
            name = EMIT[node.op](self.w, self.fma, *map(self._operand, node.args))
        else:
            name = self.w.load(*location)
        self.locations[node.serial] = name
        return name

    def _operand(self, node: Node) -> str:
        return self.constant(node) if node.op == "const" else self.value(node)
