"""Straight-line code: the common base of the two code generators for a program's arithmetic.

A block is one vector of configurations, one lane per configuration. `body(in, out, context)` reads one vector per
input number and writes one vector per distinct output number. Sines and cosines of all angles are computed first; the
rest has no branches. Callers with arrays pack and unpack these vectors (`loop`); integrators call `body` in a loop
of their own.

From rows to rows, a loop over blocks transposes in registers and never through memory:
`rows_to_rows(in0, …, out0, …, count, prefetching)` computes up to `count` blocks of contiguous arrays. It stops before
a block with an angle that may be too large for the polynomials, and returns how many blocks it has done. Uniform inputs
are passed as one vector per number, broadcast to all lanes.

`contract` decides on fused multiply-adds. LLVM's own contraction depends on the vector width, so it stays off: the
decision is explicit as `fma` nodes, fma(a, b, c) = a·b + c rounded once, and every backend follows it. A product is
contracted only if every use of it is a sum that can absorb it, so that nothing is computed twice. Negations are free in
hardware; they become `neg` nodes on an argument.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, ClassVar

from armdyn.codegen import tuning
from armdyn.codegen.llvm.ir import Slot, VectorType, Writer, framed, function, prefetch
from armdyn.codegen.llvm.trig import LIMIT, TRIG, all_below, fused
from armdyn.codegen.target import Target
from armdyn.graph.node import Graph, Node
from armdyn.graph.passes import MalformedError, compiler_pass
from armdyn.graph.program import Port, Program, check, counts
from armdyn.values import cached_property


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
        w = Writer(self.target.vector)
        w.label("entry")
        functions = self._write(w)
        w.do("ret void")
        head = f"internal void @{self.name}(ptr noalias %in, ptr noalias %out, ptr %context) noinline"
        return "".join(w.tables) + functions + framed(head, w)

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


def check_slots(code: StraightLine) -> StraightLine:
    """Return the code if every input, sine and result has a place of its own; raise an error otherwise."""
    results = {node.serial for port in code.contracted.outputs for node in port.nodes}
    if set(code.slots) != results or sorted(code.slots.values()) != list(range(len(results))):
        raise MalformedError(f"{code.contracted.name}: {code.slots} are not slots for {len(results)} results")
    places = list(code.inputs.values())
    if len(set(places)) < len(places) or len(places) < sum(len(port.nodes) for port in code.contracted.inputs):
        raise MalformedError(f"{code.contracted.name}: two inputs have the same slot")
    return code


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


def input_limits(program: Program) -> dict[int, float] | None:
    """A bound on the magnitude of each input that keeps all angles within `LIMIT`; None if none is found.

    If all angles are inputs, the bound is `LIMIT` itself. Otherwise half of it is tried, which leaves room for the
    other terms of an angle.
    """
    angles = [angle for layer in trig_layers(program) for angle in layer]
    limit = LIMIT if all(angle.op == "input" for angle in angles) else LIMIT / 2
    if any(_magnitude(angle, limit) > LIMIT for angle in angles):
        return None
    found = {node.serial for angle in angles for node in ancestors(angle)}
    inputs = enumerate(program.inputs)
    return {index: limit for index, port in inputs if found & {node.serial for node in port.nodes}}


def _magnitude(node: Node, largest: float) -> float:
    """A bound on |node| if no input is larger than `largest`."""
    bounds: dict[int, float] = {}
    for one in ancestors(node):
        parts = [bounds[a.serial] for a in one.args]
        if one.op in ("mul", "fma"):
            bounds[one.serial] = parts[0] * parts[1] + sum(parts[2:])
        elif one.op in ("add", "sub", "neg"):
            bounds[one.serial] = sum(parts)
        elif one.op == "const":
            bounds[one.serial] = abs(float(one.value))
        else:
            bounds[one.serial] = largest if one.op == "input" else math.inf
    return bounds[node.serial]


def rows_loop(
    program: Program,
    kind: VectorType,
    uniform: Collection[int],
    limits: dict[int, float],
    write_block: Callable[[Writer], Any],
) -> str:
    """LLVM IR of `rows_to_rows`; `write_block` writes the code of one block, from `%in0`, … to `%out0`, …."""
    steps = {f"in{k}": 0 if k in uniform else len(port.nodes) for k, port in enumerate(program.inputs)}
    results = {f"out{k}": len(port.nodes) for k, port in enumerate(program.outputs)}
    steps |= results
    w = Writer(kind)
    w.label("entry")
    w.do("br label %block")
    w.label("block")
    w.do("%done = phi i64 [0, %entry], [%next, %compute]")
    for array in steps:
        w.do(f"%{array} = phi ptr [%first_{array}, %entry], [%next_{array}, %compute]")
    within = "true"
    for index, limit in limits.items():
        within = w.let(f"and i1 {within}, {all_below(w, f'%in{index}', len(program.inputs[index].nodes), limit)}")
    w.do(f"br i1 {within}, label %within, label %end, !prof !2")
    w.label("within")
    w.do("br i1 %prefetching, label %prefetch, label %compute")
    w.label("prefetch")
    for array, size in results.items():
        prefetch(w, w.at(f"%{array}", tuning.PREFETCH_DISTANCE * w.bytes * size), w.bytes * size)
    w.do("br label %compute")
    w.label("compute")
    write_block(w)
    for array, size in steps.items():
        w.do(f"%next_{array} = getelementptr i8, ptr %{array}, i64 {w.bytes * size}")
    w.do("%next = add i64 %done, 1")
    w.do(f"br i1 {w.let('icmp ult i64 %next, %count')}, label %block, label %end")
    w.label("end")
    w.do("%blocks = phi i64 [%done, %block], [%next, %compute]")
    w.do("ret i64 %blocks")
    firsts = "".join(f"ptr %first_{array}, " for array in steps)
    head = f"internal i64 @rows_to_rows({firsts}i64 %count, i1 %prefetching) noinline"
    return "".join(w.tables) + function(head, w.lines)


@compiler_pass("contract", counts=counts, check=lambda made, given: check(made), before=check)
def contract(program: Program) -> Program:
    """The same program with `fma` nodes."""
    absorbed = _absorbed(program)
    graph = Graph()
    made: dict[int, Node] = {}
    for port in program.inputs:  # unused inputs are not in `program.order`
        for node in port.nodes:
            made[node.serial] = graph.input(node.value)
    for node in program.order:
        if node.op == "input":
            made[node.serial] = graph.input(node.value)
        elif node.op == "const":
            made[node.serial] = graph.const(node.value)
        elif node.serial in absorbed:
            made[node.serial] = _fused(graph, node, absorbed[node.serial], made)
        else:
            made[node.serial] = graph.raw(node.op, tuple(made[a.serial] for a in node.args))

    def renewed(port: Port) -> Port:
        return Port(port.name, port.shape, tuple(made[node.serial] for node in port.nodes))

    return Program(program.name, tuple(map(renewed, program.inputs)), tuple(map(renewed, program.outputs)))


def _absorbed(program: Program) -> dict[int, int]:
    """The index of the absorbed product among the arguments of each sum that becomes an fma, by serial number."""
    users: dict[int, list[Node]] = defaultdict(list)
    for node in program.order:
        for argument in node.args:
            users[argument.serial].append(node)
    outputs = {node.serial for port in program.outputs for node in port.nodes}
    absorbed: dict[int, int] = {}
    for product in program.order:
        if product.op != "mul" or product.serial in outputs:
            continue
        sums = users[product.serial]
        free = all(user.op in ("add", "sub") and user.serial not in absorbed for user in sums)
        if free and len({user.serial for user in sums}) == len(sums):
            for user in sums:
                absorbed[user.serial] = 0 if user.args[0] is product else 1
    return absorbed


def _fused(graph: Graph, node: Node, product_at: int, made: dict[int, Node]) -> Node:
    product, other = node.args[product_at], node.args[1 - product_at]
    a, b = (made[argument.serial] for argument in product.args)
    c = made[other.serial]
    if node.op == "sub":
        if product_at == 0:
            c = _minus(graph, c)  # a·b - c
        else:
            a, b = (_minus(graph, a), b) if a.op == "const" else (a, _minus(graph, b))  # c - a·b
    return graph.raw("fma", (a, b, c))


def _minus(graph: Graph, node: Any) -> Node:
    if node.op == "const":
        return graph.const(-node.value)
    return node.args[0] if node.op == "neg" else graph.raw("neg", (node,))
