"""Straight-line code in plain LLVM IR: scheduling and register allocation are left to LLVM.

Single calls of long programs get scalar code, because broadcasting to all lanes of a wide vector is slower there:
`single(in, out, context)` computes what `body` computes, bitwise equal, on scalars: a long program then moves an eighth
of the memory. Sines and cosines come from the vector function `trig`, several angles per vector.

Long straight-line code is split into a sequence of short functions that pass values through memory: LLVM's compile time
grows faster than linearly with a function's length, and LLVM spills more values in longer functions. A function loads a
value of an earlier one at its first use, and stores a value that a later one needs where it is computed: results at
their final location, all other values in temporary slots, which are reused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from armdyn.codegen import tuning
from armdyn.codegen.llvm.ir import Slot, Writer, function, literal
from armdyn.codegen.llvm.loop import (
    gathered,
    groups,
    narrow_columns,
    narrow_width,
    scattered,
    store_narrow,
    transpose,
    transpose_registers,
)
from armdyn.codegen.llvm.straight_line import (
    EMIT,
    Emitter,
    RowsToRows,
    StraightLine,
    ancestors,
    input_limits,
    rows_loop,
)
from armdyn.codegen.llvm.trig import TRIG, sine_cosine, trig_far, trig_loop
from armdyn.graph.node import LEAVES, Node
from armdyn.graph.passes import MalformedError, compiler_pass
from armdyn.values import cached_property


@dataclass(frozen=True)
class Division:
    """Functions as lists of nodes, where each value that a later one needs is stored, and how many temporary slots.

    A temporary slot is reused after the last function that needs its value.
    """

    functions: tuple[tuple[Node, ...], ...]
    stored: dict[int, Slot]
    temporaries: int


def check_division(made: Division, order: Sequence[Node], places: dict[int, Slot], results: dict[int, Slot]) -> None:
    """Follow the values through their slots; raise an error where a function would load another one."""
    held = {slot: serial for serial, slot in places.items()}
    for number, nodes in enumerate(made.functions):
        computed: set[int] = set()
        for node in nodes:
            for argument in node.args:
                if argument.serial in computed or argument.op == "const":
                    continue
                home = places.get(argument.serial) or made.stored.get(argument.serial)
                if home is None or held.get(home) != argument.serial:
                    raise MalformedError(f"function {number}: {argument} is not in its slot {home} for {node}")
            computed.add(node.serial)
            if node.serial in made.stored:
                home = made.stored[node.serial]
                if home.array == "%temporaries" and not 0 <= home.number < made.temporaries:
                    raise MalformedError(f"{node} is stored at {home}, beyond {made.temporaries} slots")
                held[home] = node.serial
    wrong = [serial for serial, slot in results.items() if serial in held.values() and held.get(slot) != serial]
    lost = {node.serial for node in order} - {node.serial for nodes in made.functions for node in nodes}
    if wrong or lost:
        raise MalformedError(f"results {wrong} are overwritten, nodes {sorted(lost)} are missing")


def _division_counts(made: Division) -> str:
    return f"{len(made.functions)} functions, {len(made.stored)} stored values, {made.temporaries} temporary slots"


@compiler_pass("split", counts=_division_counts, check=check_division)
def divide(order: Sequence[Node], places: dict[int, Slot], results: dict[int, Slot]) -> Division:
    """Divide the nodes into functions; `places` has values computed before, `results` those of the results."""
    size = tuning.NODES_PER_FUNCTION
    functions = tuple(tuple(order[start : start + size]) for start in range(0, len(order), size))
    last_use = _last_uses(functions)
    memory, stored = Temporaries(), dict[int, Slot]()
    for number, nodes in enumerate(functions):
        for node in nodes:
            if node.serial in results:
                stored[node.serial] = results[node.serial]
            elif last_use.get(node.serial, number) > number:
                stored[node.serial] = Slot("%temporaries", memory.take(until=last_use[node.serial]))
        memory.release(number)
    return Division(functions, stored, memory.size)


@dataclass(frozen=True)
class Parts:
    """LLVM IR of the functions, their names in order, and the number of temporary slots they share."""

    text: str
    names: tuple[str, ...]
    temporaries: int


def split(
    order: Sequence[Node],
    locations: dict[int, Slot],
    results: dict[int, Slot],
    arguments: str,
    emitter: Callable[[dict[int, Slot]], Emitter],
    name: str,
) -> Parts:
    """Split the nodes of `order` into functions `name_0`, `name_1`, … of `arguments`, which include `%temporaries`.

    `locations` gives the locations of values computed before, `results` those of the results; `emitter` makes the
    emitter of a function.
    """
    division = divide(order, locations, results)
    known, texts, names = dict(locations), [], []
    for number, nodes in enumerate(division.functions):
        emit = emitter(known)
        emit.w.label("entry")
        for node in nodes:
            value = emit.value(node)
            if node.serial in division.stored:
                known[node.serial] = division.stored[node.serial]
                emit.w.store(value, *known[node.serial])
        emit.w.do("ret void")
        names.append(f"@{name}_{number}")
        texts.append(function(f"internal void {names[-1]}({arguments}) noinline", emit.w.lines))
    return Parts("".join(texts), tuple(names), division.temporaries)


def _last_uses(parts: Sequence[Sequence[Node]]) -> dict[int, int]:
    """The index of the last part that uses each node."""
    return {argument.serial: number for number, nodes in enumerate(parts) for node in nodes for argument in node.args}


class Temporaries:
    """Temporary slots, each reused after the last part that needs it."""

    def __init__(self) -> None:
        self.size = 0
        self._free: list[int] = []
        self._ends: dict[int, list[int]] = {}

    def take(self, until: int) -> int:
        """A slot reserved until the end of a part."""
        if self._free:
            slot = self._free.pop()
        else:
            slot, self.size = self.size, self.size + 1
        self._ends.setdefault(until, []).append(slot)
        return slot

    def release(self, part: int) -> None:
        """Free the slots that were reserved until this part."""
        self._free.extend(self._ends.pop(part, ()))


class PlainCode(StraightLine):
    """The arithmetic of a block for any processor."""

    table: ClassVar[str] = "constants"

    @cached_property
    def constants(self) -> dict[Fraction, int]:
        """Every constant with its index in a table of vectors.

        An instruction can take it from there as a memory operand; for a splat constant LLVM would emit a separate
        broadcast into a register.
        """
        values = [node.value for node in self.contracted.order if node.op == "const"]
        return {value: place for place, value in enumerate(dict.fromkeys(values))}

    def _write(self, w: Writer) -> str:
        emit = self._emitter(w, self.inputs)
        sines: dict[int, Slot] = {}
        for level, angles in enumerate(self.trig_layers):
            angles_at, results = self._sine_arrays(w, level, len(angles))
            for number, angle in enumerate(angles):
                for node in ancestors(angle):
                    emit.value(node)
                w.store(emit.value(angle), angles_at, number)
            self._take_sines(w, angles_at, results, len(angles))
            sines |= self._sines_wanted(angles, results)
            emit.locations.update(sines)
        long = len(self.contracted.order) > tuning.LONGEST_FUNCTION
        functions = self._write_parts(w, emit, sines) if long else self._write_all(w, emit)
        w.constant_table(self.table, [literal(w.number, value) for value in self.constants])
        return functions + self.sine_functions()

    def _emitter(self, w: Writer, locations: dict[int, Slot]) -> Emitter:
        return Emitter(w, self.target.fma, locations, lambda node: w.load(f"@{self.table}", self.constants[node.value]))

    def _write_all(self, w: Writer, emit: Emitter) -> str:
        """Write all nodes into one function."""
        for node in self.contracted.order:
            name = emit.value(node)
            if node.serial in self.slots:
                w.store(name, "%out", self.slots[node.serial])
        return ""

    def _write_parts(self, w: Writer, emit: Emitter, sines: dict[int, Slot]) -> str:
        """Write calls to a sequence of functions; returns the LLVM IR of those functions."""
        at_hand = {**self.inputs, **sines}
        results = {serial: Slot("%out", slot) for serial, slot in self.slots.items()}
        made = [n for n in self.contracted.order if n.op not in LEAVES and n.serial not in at_hand]
        arrays = dict.fromkeys(["%in", "%out", "%temporaries", *(slot.array for slot in sines.values())])
        arguments = ", ".join(f"ptr noalias {array}" for array in arrays)
        parts = split(
            made, at_hand, results, arguments, lambda known: self._emitter(Writer(self.target.vector), known), self.name
        )
        done = {node.serial for node in made}
        for node in self.contracted.order:  # results that are inputs, sines or constants
            if node.serial in results and node.serial not in done:
                w.store(emit.value(node), *results[node.serial])
        w.stack_array("temporaries", parts.temporaries)
        for name in parts.names:
            w.do(f"call void {name}({arguments})")
        return parts.text

    def _sine_arrays(self, w: Writer, level: int, count: int) -> tuple[str, str]:
        """Allocate arrays on the stack for angles, and for their sines and cosines."""
        return w.stack_array(f"angles{level}", count), w.stack_array(f"trig{level}", 2 * count)

    def _take_sines(self, w: Writer, angles: str, results: str, count: int) -> None:
        w.do(f"call void @trig(ptr {angles}, ptr {results}, i64 {count}, ptr %context)")

    def sine_functions(self) -> str:
        """LLVM IR of the functions that compute sines and cosines, if the program has any."""
        if not self.trig_layers:
            return ""
        return trig_far(self.target.vector) + trig_loop(self.target.vector, self.target.fma)

    def rows_to_rows(self) -> RowsToRows | None:
        """Code from rows to rows with AVX-512, for short programs."""
        short = len(self.contracted.order) <= tuning.LONGEST_ROWS_TO_ROWS
        numbers = sum(len(port.nodes) for port in self.contracted.outputs)
        few = len(self.slots) <= tuning.MOST_RESULTS_SCHEDULED and numbers <= tuning.MOST_NUMBERS_BY_ROWS
        few = few and len(self.trig_layers) <= 1
        return self._rows_to_rows() if short and few and self.target.x86 and self.target.widest else None

    def _rows_to_rows(self) -> RowsToRows | None:
        limits = input_limits(self.contracted)
        if limits is None:
            return None
        text = rows_loop(
            self.contracted, self.target.vector, self.uniform, limits, lambda w: _RowsBlock(self, w).write()
        )
        return RowsToRows(text, self.uniform)


class _RowsBlock:
    """Writes a block from rows to rows: inputs are transposed before their first use, results in complete groups."""

    def __init__(self, code: PlainCode, w: Writer) -> None:
        self.code, self.w, self.program = code, w, code.contracted
        self.names: dict[int, str] = {}
        self.entry = {n.serial: (k, j) for k, p in enumerate(self.program.inputs) for j, n in enumerate(p.nodes)}

    def write(self) -> None:
        """Write the whole block."""
        wanted = {(node.op, node.args[0].serial): node.serial for node in self.program.order if node.op in TRIG}
        due = self._groups_due()
        for position, node in enumerate(self.program.order):
            if node.op in TRIG and node.serial not in self.names:
                pair = sine_cosine(self.w, self.code.target.fma, self.value(node.args[0]))
                for op, name in zip(TRIG, pair, strict=True):
                    self.names[wanted.get((op, node.args[0].serial), -1)] = name
            elif node.op in EMIT:
                self.names[node.serial] = EMIT[node.op](self.w, self.code.target.fma, *map(self.value, node.args))
            for array, start, nodes in due.get(position, ()):
                if len(nodes) > 1 and all(one.op == "const" for one in nodes):
                    self._store_constants(array, start, nodes)
                else:
                    self._store(array, start, [self.value(one) for one in nodes])
        self.w.constant_table("constants_rows", [literal(self.w.number, value) for value in self.code.constants])

    def _groups_due(self) -> dict[int, list[tuple[int, int, tuple[Node, ...]]]]:
        """Groups of results (array, first entry, nodes) by the position of the last node that is computed."""
        position = {node.serial: k for k, node in enumerate(self.program.order)}
        due: dict[int, list[tuple[int, int, tuple[Node, ...]]]] = {}
        for array, port in enumerate(self.program.outputs):
            size = self._tile(len(port.nodes))
            for start in groups(len(port.nodes), size):
                nodes = port.nodes[start : start + size]
                due.setdefault(max(position[n.serial] for n in nodes), []).append((array, start, nodes))
        return due

    def value(self, node: Node) -> str:
        """The name of a node's value; constants come from a table, inputs from their rows."""
        if node.op == "const":
            return self.w.load("@constants_rows", self.code.constants[node.value])
        if node.serial not in self.names:
            self._load(*self.entry[node.serial])
        return self.names[node.serial]

    def _load(self, array: int, entry: int) -> None:
        """Load an input together with the others of its group."""
        w, nodes = self.w, self.program.inputs[array].nodes
        width = self._tile(len(nodes))
        if array in self.code.uniform:
            self.names[nodes[entry].serial] = w.load(f"%in{array}", entry)
        elif width == 1:
            self.names[nodes[entry].serial] = gathered(w, self._places(f"%in{array}", entry, len(nodes)))
        else:
            start = next(start for start in groups(len(nodes), width) if start <= entry < start + width)
            places = self._places(f"%in{array}", start, len(nodes))
            columns = transpose(w, places) if width == w.lanes else narrow_columns(w, places, width)
            for node, name in zip(nodes[start : start + width], columns, strict=True):
                self.names.setdefault(node.serial, name)

    def _store(self, array: int, start: int, columns: list[str]) -> None:
        """Store a group of results, or a single one."""
        w, places = self.w, self._places(f"%out{array}", start, len(self.program.outputs[array].nodes))
        if len(columns) == 1:
            scattered(w, columns[0], places)
        elif len(columns) < w.lanes:
            store_narrow(w, columns, places)
        else:
            for row, place in zip(transpose_registers(w, columns), places, strict=True):
                w.do(f"store {w.vector} {row}, ptr {place}, align {w.size}")

    def _store_constants(self, array: int, start: int, nodes: tuple[Node, ...]) -> None:
        """Store a group of constant results; they need no transposition."""
        w = self.w
        numbers = ", ".join(f"{w.number} {literal(w.number, node.value)}" for node in nodes)
        for place in self._places(f"%out{array}", start, len(self.program.outputs[array].nodes)):
            w.do(f"store <{len(nodes)} x {w.number}> <{numbers}>, ptr {place}, align {w.size}")

    def _tile(self, size: int) -> int:
        """Numbers per row in a tile of rows of this size."""
        return self.code.lanes if size >= self.code.lanes else narrow_width(size)

    def _places(self, array: str, entry: int, width: int) -> list[str]:
        """The addresses of an entry in the row of each lane."""
        return [self.w.at(array, self.w.size * (entry + lane * width)) for lane in range(self.code.lanes)]


@dataclass(frozen=True)
class NarrowCode(PlainCode):
    """The scalar arithmetic of one configuration; `wide` is the number of lanes of the function `trig`."""

    wide: int = 1
    name: ClassVar[str] = "single"
    table: ClassVar[str] = "constants_single"

    def _sine_arrays(self, w: Writer, level: int, count: int) -> tuple[str, str]:
        """Arrays of whole wide vectors; the spare lanes of the last one are zero."""
        vectors = -(-count // self.wide)
        angles = w.stack_array(f"angles{level}", vectors * self.wide, w.size * self.wide)
        for spare in range(count, vectors * self.wide):
            w.store(w.constant(0), angles, spare)
        return angles, w.stack_array(f"trig{level}", 2 * vectors * self.wide, w.size * self.wide)

    def _take_sines(self, w: Writer, angles: str, results: str, count: int) -> None:
        super()._take_sines(w, angles, results, -(-count // self.wide))

    def sine_functions(self) -> str:
        """None: those of the vector program serve this one, too."""
        return ""

    def _sines_wanted(self, angles: tuple[Node, ...], results: str) -> dict[int, Slot]:
        """The locations of the sines and cosines: a vector of sines, a vector of cosines, and so on."""
        number = {angle.serial: k for k, angle in enumerate(angles)}
        found = {}
        for node in self.contracted.order:
            if node.op in TRIG and node.args[0].serial in number:
                vector, lane = divmod(number[node.args[0].serial], self.wide)
                found[node.serial] = Slot(results, (2 * vector + TRIG.index(node.op)) * self.wide + lane)
        return found
