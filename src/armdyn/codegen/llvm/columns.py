"""Column programs: straight-line code for what all columns share (the head), then a short function over the columns.

The results of the head for one configuration form one row, the *work array*: the values that all columns share, then
the right-hand sides, one vector of columns after another, without rows that are zero in the whole vector.
`finish(work, result, …)` computes the results of one configuration from it, in C order. Batches and single calls use
the same function, so that their results are bitwise equal.

NumPy's inner loop runs the head for a whole block, then the columns, one configuration at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from armdyn.codegen import tuning
from armdyn.codegen.llvm.ir import CACHE_LINE, Slot, VectorType, Writer, framed, function, literal
from armdyn.codegen.llvm.loop import Operand, axes, begin_block, groups, move, read_arguments
from armdyn.codegen.llvm.straight_line import Emitter, contract
from armdyn.codegen.target import Target
from armdyn.graph.node import Node
from armdyn.graph.program import ColumnProgram, Port, Program, zero

# A zero row is omitted per group of so many columns, on every processor: omitting a row changes how sums are rounded.
GROUP = {"double": 8, "float": 16}

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


class ColumnCode:
    """A column program for a processor: the program of its head, and the functions over its columns."""

    def __init__(self, program: ColumnProgram, target: Target) -> None:
        self.program, self.target = program, target
        self.vectors = [v for k, port in enumerate(program.outputs) for v in _vectors(k, port, target.vector)]
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
        texts, w, at = [], Writer(self.target.vector), self.first_right
        w.label("entry")
        for number, vector in enumerate(self.vectors):
            width = self.program.outputs[vector.result].shape[1]
            kind = width, tuple(vector.rights)
            if kind not in names:
                names[kind] = f"@columns{len(names)}"
                texts.append(self._function(names[kind], *kind))
            if vector.constant:
                texts.append(_table(w, f"right{number}", vector))
                right = f"@right{number}"
            else:
                right, at = w.at("%work", w.size * at), at + lanes * len(vector.rights)
            place = w.at(f"%result{vector.result}", w.size * vector.start)
            w.do(f"call void {names[kind]}(ptr %work, ptr {right}, ptr {place})")
        w.do("ret void")
        results = ", ".join(f"ptr noalias %result{k}" for k in range(len(self.program.outputs)))
        return "".join(texts) + function(f"internal void @finish(ptr %work, {results}) noinline", w.lines)

    def _function(self, name: str, width: int, rows: tuple[int, ...]) -> str:
        """`name(shared, right, to)`: one vector of columns of a result that has `width` columns."""
        size = self.program.column.inputs[1].shape[0]
        program = contract(self.program.specialised([row not in rows for row in range(size)]))
        shared, right = ({node.serial: k for k, node in enumerate(port.nodes)} for port in program.inputs)
        w = Writer(self.target.vector)
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
                _store(w, value, w.at("%to", w.size * row * width), width)
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
        w = self.w
        place = w.at("%shared", w.size * self.shared[node.serial])
        return w.broadcast(w.let(f"load {w.number}, ptr {place}, align {w.size}"))


def _store(w: Writer, value: str, place: str, width: int) -> None:
    """Store a vector of columns to one row of a result with `width` columns."""
    kind = w.vector
    if width < w.lanes:
        kind, picks = f"<{width} x {w.number}>", ", ".join(f"i32 {k}" for k in range(width))
        value = w.let(f"shufflevector {w.vector} {value}, {w.vector} poison, <{width} x i32> <{picks}>")
    w.do(f"store {kind} {value}, ptr {place}, align {w.size}")


def _vectors(result: int, port: Port, kind: VectorType) -> list[Vector]:
    """The columns of a result in vectors; the last may overlap the one before, and a single short one is padded."""
    rows, width = port.shape
    lanes = kind.lanes
    group, lanes_used = min(GROUP[kind.number], width), min(lanes, width)
    spare = (port.nodes[0].graph.const(0),) * (lanes - lanes_used)
    found = []
    for first in groups(width, group):
        begins = [(row, row * width + first) for row in range(rows)]
        varying = [(row, k) for row, k in begins if not zero(port.nodes[k : k + group])]
        for start in groups(group, lanes_used):
            rights = {row: port.nodes[k + start : k + start + lanes_used] + spare for row, k in varying}
            found.append(Vector(result, first + start, rights))
    return found


def _table(w: Writer, name: str, vector: Vector) -> str:
    """A table of constant right-hand sides."""
    numbers = [node.value for nodes in vector.rights.values() for node in nodes] or [0.0]
    listed = ", ".join(f"{w.number} {literal(w.number, number)}" for number in numbers)
    return f"@{name} = internal constant [{len(numbers)} x {w.number}] [{listed}], align {w.bytes}\n"


def columns_loop(
    kind: VectorType, arrays: Sequence[Operand], work: Operand, in_slots: int, out_slots: int, x86: bool
) -> str:
    """`loop(args, dimensions, steps, context)`: see `loop.inner_loop`.

    A block reads all its rows before it writes any. Results in C order are written in place, or by non-temporal stores
    if they are large and have no gaps between them; results with other strides go through a buffer on the stack.
    """
    results = [a for a in arrays if a.written]
    w = Writer(kind)
    w.label("entry")
    w.stack_array("in", in_slots)
    w.stack_array("out", out_slots)
    w.stack_array("work", work.size)
    for a in results:
        w.stack_array(
            f"staged{a.index}", -(-(a.size + 2 * CACHE_LINE // w.size) // w.lanes), CACHE_LINE
        )  # + a line at either end
    if x86:
        w.do("%flags = alloca i32")
        w.do("call void @llvm.x86.sse.stmxcsr(ptr %flags)")
    read_arguments(w, arrays)
    for a in results:
        _destination(w, a, sum(b.size for b in results), x86)
    begin_block(w)
    for a in (a for a in arrays if not a.written):
        move(w, a)
    w.do("call void @body(ptr %in, ptr %out, ptr %context)")
    begins = w.let("icmp eq i64 %i, 0")  # constants stay in the work array
    w.do(f"call void @rows{work.index}(ptr %out, ptr %work, i64 {w.size * work.size}, i1 {begins})")
    w.do(f"%configurations = call i64 @llvm.umin.i64(i64 %left, i64 {w.lanes})")
    w.do(f"br label %head{arrays[-1].index}")
    w.label(f"head{arrays[-1].index}")
    w.do("br label %configuration")
    _configuration(w, results, work)
    w.do(f"br i1 {w.let('icmp ult i64 %following, %configurations')}, label %configuration, label %done")
    w.label("done")
    w.do(f"%next = add i64 %i, {w.lanes}")
    w.do(f"br i1 {w.let('icmp slt i64 %next, %count')}, label %block, label %end")
    w.label("end")
    if x86:
        w.do("fence seq_cst")  # orders the non-temporal stores, for every thread
        w.do("call void @llvm.x86.sse.ldmxcsr(ptr %flags)")
    w.do("ret void")
    return framed("void @loop(ptr %args, ptr %dimensions, ptr %steps, ptr %context)", w)


def _destination(w: Writer, a: Operand, numbers: int, x86: bool) -> None:
    """%streamed: whether the results are written with non-temporal stores.

    They are if they have no gaps, are larger than the caches, and span at least two cache lines per configuration, so
    that each contains a whole line.
    """
    size = w.let(f"mul i64 %count, {w.size * numbers}")
    no_gaps = w.let(f"and i1 %contiguous{a.index}, {w.let(f'icmp eq i64 %step{a.index}, {w.size * a.size}')}")
    beyond_cache = w.let(f"icmp ugt i64 {size}, {tuning.NON_TEMPORAL_FROM}")
    possible = "true" if x86 and w.size * a.size >= 2 * CACHE_LINE else "false"
    w.do(f"%streamed{a.index} = and i1 {possible}, {w.let(f'and i1 {no_gaps}, {beyond_cache}')}")


def _configuration(w: Writer, results: Sequence[Operand], work: Operand) -> None:
    """The results of one configuration of a block."""
    last = results[-1].index
    w.label("configuration")
    w.do(f"%lane = phi i64 [0, %head{last}], [%following, %written{last}]")
    number = w.let("add i64 %i, %lane")
    w.do(f"%first = icmp eq i64 {number}, 0")
    w.do(f"%final = icmp eq i64 {w.let(f'add i64 {number}, 1')}, %count")
    places = {a.index: w.at(f"%base{a.index}", w.let(f"mul i64 {number}, %step{a.index}")) for a in results}
    to = []
    for a in results:
        phase = w.let(f"and i64 {w.let(f'ptrtoint ptr {places[a.index]} to i64')}, {CACHE_LINE - 1}")
        staged = w.at(f"%staged{a.index}", w.let(f"select i1 %streamed{a.index}, i64 {phase}, i64 0"))
        direct = w.let(f"xor i1 %streamed{a.index}, %contiguous{a.index}")  # streamed implies contiguous
        to.append(w.let(f"select i1 {direct}, ptr {places[a.index]}, ptr {staged}"))
    row = w.at("%work", w.let(f"mul i64 %lane, {w.size * work.size}"))
    w.do(f"call void @finish(ptr {row}, {', '.join(f'ptr {place}' for place in to)})")
    for a in results:
        w.do(f"br i1 %contiguous{a.index}, label %in_order{a.index}, label %copy{a.index}")
        w.label(f"copy{a.index}")
        row = f"ptr {places[a.index]}, i64 0, i64 0"
        w.do(f"call void @spread({row}, ptr %staged{a.index}, ptr @slots{a.index}, {axes(a)})")
        w.do(f"br label %written{a.index}")
        w.label(f"in_order{a.index}")
        w.do(f"br i1 %streamed{a.index}, label %stream{a.index}, label %written{a.index}")
        w.label(f"stream{a.index}")
        ends = f"i64 {w.size * a.size}, i1 %first, i1 %final"
        w.do(f"call void @stream(ptr {places[a.index]}, ptr %staged{a.index}, {ends})")
        w.do(f"br label %written{a.index}")
        w.label(f"written{a.index}")
    w.do("%following = add i64 %lane, 1")


def stream(kind: VectorType) -> str:
    """`stream(to, staged, bytes, first, last)`: one configuration's result by non-temporal stores of whole cache lines.

    The result has the same offset from a line boundary in `staged` as at its destination. Its last, incomplete line is
    moved to the start of `staged` and written with the next configuration's result; only the two ends of a batch are
    written by ordinary stores.
    """
    w = Writer(kind)
    w.label("entry")
    w.do(f"%phase = and i64 {w.let('ptrtoint ptr %to to i64')}, {CACHE_LINE - 1}")
    w.do(f"%line = getelementptr i8, ptr %to, i64 {w.let('sub i64 0, %phase')}")
    w.do("%end = add i64 %phase, %bytes")
    w.do(f"%whole = and i64 %end, -{CACHE_LINE}")
    split = w.let("icmp ne i64 %phase, 0")
    w.do(f"%start = select i1 {w.let(f'and i1 %first, {split}')}, i64 {CACHE_LINE}, i64 0")
    w.do("br label %before")
    _numbers(w, "before", "entry", "%phase", "%start", "lines")
    _lines(w)
    w.label("rest")
    w.do("br i1 %last, label %behind, label %keep")
    _numbers(w, "behind", "rest", "%whole", "%end", "out")
    w.label("keep")
    for k in range(CACHE_LINE // w.bytes):
        kept = w.at("%staged", w.let(f"add i64 %whole, {w.bytes * k}"))
        piece = w.let(f"load {w.vector}, ptr {kept}, align {w.bytes}")
        w.do(f"store {w.vector} {piece}, ptr {w.at('%staged', w.bytes * k)}, align {w.bytes}")
    w.do("br label %out")
    w.label("out")
    w.do("ret void")
    head = "internal void @stream(ptr %to, ptr %staged, i64 %bytes, i1 %first, i1 %last) noinline"
    return function(head, w.lines)


def _lines(w: Writer) -> None:
    """Copy the whole lines."""
    w.label("lines")
    w.do("%at = phi i64 [%start, %before], [%next, %copy]")
    w.do(f"br i1 {w.let('icmp slt i64 %at, %whole')}, label %copy, label %rest")
    w.label("copy")
    for k in range(CACHE_LINE // w.bytes):
        offset = w.let(f"add i64 %at, {w.bytes * k}") if k else "%at"
        piece = w.let(f"load {w.vector}, ptr {w.at('%staged', offset)}, align {w.bytes}")
        w.do(f"store {w.vector} {piece}, ptr {w.at('%line', offset)}, align {w.bytes}, !nontemporal !1")
    w.do(f"%next = add i64 %at, {CACHE_LINE}")
    w.do("br label %lines")


def _numbers(w: Writer, name: str, origin: str, start: str, end: str, after: str) -> None:
    """Copy the numbers between two offsets one by one."""
    w.label(name)
    w.do(f"%at_{name} = phi i64 [{start}, %{origin}], [%next_{name}, %one_{name}]")
    w.do(f"br i1 {w.let(f'icmp slt i64 %at_{name}, {end}')}, label %one_{name}, label %{after}")
    w.label(f"one_{name}")
    number = w.let(f"load {w.number}, ptr {w.at('%staged', f'%at_{name}')}, align {w.size}")
    w.do(f"store {w.number} {number}, ptr {w.at('%line', f'%at_{name}')}, align {w.size}")
    w.do(f"%next_{name} = add i64 %at_{name}, {w.size}")
    w.do(f"br label %{name}")
