"""Straight-line code for x86 processors with AVX2 and fused multiply–adds, as inline assembly in LLVM functions.

Calling conventions, object files and everything around the arithmetic are left to LLVM.

Instruction selection folds negations into multiply–adds.
`sine_code` and `block_code` are the two halves of a block whose numbers are in columns. `rows_code` goes from rows to
rows in one piece, so that transposition, stores and arithmetic overlap.

The order of instructions and their registers are those of `registers`. Long code is bound by instruction fetch. So an
address register points to the middle of each of the most used windows of memory: displacements then take one byte
instead of four.
"""

from __future__ import annotations

import math
import struct
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import NamedTuple

from armdyn.codegen import tuning
from armdyn.codegen.llvm.ir import Slot, Writer, double
from armdyn.codegen.llvm.loop import groups
from armdyn.codegen.llvm.straight_line import Emitter, RowsToRows, StraightLine, ancestors, input_limits, rows_loop
from armdyn.codegen.llvm.trig import COSINE, HALF_PI_FMA, LIMIT, ROUNDER, SINE, TRIG, TWO_OVER_PI, trig_far
from armdyn.codegen.registers import (
    BYTES,
    REGISTERS,
    Instruction,
    Line,
    Memory,
    Operand,
    Register,
    allocate,
    list_schedule,
)
from armdyn.graph.node import Node
from armdyn.graph.program import Program

WINDOW = 256  # bytes in reach of one-byte displacements
# Registers that hold addresses. With one of the first six, instructions are often a byte shorter.
ADDRESS_REGISTERS = ("rax", "rcx", "rdx", "rsi", "rdi", "rbx", "r8", "r9", "r10", "r11", "r14", "r15")


class Window(NamedTuple):
    """A window of an array, by its index."""

    array: str
    number: int


@dataclass(frozen=True)
class InlineAssembly:
    """Code, the windows that its address registers `$0`, `$1`, … point to the middle of, constants, spill slots."""

    text: str
    windows: list[Window]
    constants: list[str]  # as LLVM literals
    spill_slots: int

    @property
    def constraints(self) -> str:
        """The constraint string of the inline assembly: operands and clobbers."""
        clobbers = [f"~{{ymm{k}}}" for k in range(REGISTERS)]
        addresses = [f"{{{register}}}" for register in ADDRESS_REGISTERS[: len(self.windows)]]
        return ",".join(addresses + clobbers + ["~{memory}"])


def assembled(lines: list[Line], constants: list[str], spill_slots: int) -> InlineAssembly:
    """The lines as inline assembly; chooses the windows."""
    windows = _windows(lines)
    return InlineAssembly(_text(lines, windows), windows, constants, spill_slots)


def _windows(lines: list[Line]) -> list[Window]:
    """The most used windows, at least one per array, in descending order of use."""
    places = [operand for _, operands in lines for operand in operands if isinstance(operand, Memory)]
    uses = Counter(Window(array, offset // WINDOW) for array, offset in places)
    busiest = [window for window, _ in uses.most_common()]
    first = list({window.array: window for window in reversed(busiest)}.values())
    chosen = first + [w for w in busiest if w not in first][: max(0, len(ADDRESS_REGISTERS) - len(first))]
    for window in busiest:  # other windows are addressed from the most used one of their array
        if window not in chosen:
            uses[next(one for one in first if one.array == window.array)] += uses[window]
    return sorted(chosen, key=uses.__getitem__, reverse=True)


def _text(lines: list[Line], windows: list[Window]) -> str:
    register = {window: k for k, window in enumerate(windows)}
    any_of = {window.array: window for window in reversed(windows)}

    def spelled(operand: Operand) -> str:
        if isinstance(operand, Register):
            return f"%ymm{operand.number}"
        window = Window(operand.array, operand.offset // WINDOW)
        window = window if window in register else any_of[operand.array]
        return f"{operand.offset - WINDOW * window.number - WINDOW // 2}(${register[window]})"

    return "\\0A".join(f"{operation} {', '.join(map(spelled, operands))}" for operation, operands in lines)


LANES = 4
ALL_BUT_SIGN = struct.unpack("<d", struct.pack("<Q", 2**63 - 1))[0]  # a bit mask; as a double it is a NaN

# (product negated, addend negated) -> the multiply–add; {} stands for the order of its operands.
FUSED = {
    (False, False): "vfmadd{}pd",
    (False, True): "vfmsub{}pd",
    (True, False): "vfnmadd{}pd",
    (True, True): "vfnmsub{}pd",
}
BINARY = {"add": ("vaddpd", (0, 1)), "mul": ("vmulpd", (0, 1)), "sub": ("vsubpd", (1,)), "div": ("vdivpd", (1,))}
GREATER, LESS = "vcmppd $$30,", "vcmppd $$17,"  # ordered, non-signalling comparisons
BLEND = "vblendvpd"  # (a, b, mask): b where the mask is set


def block_code(order: Iterable[Node], memory: dict[int, Memory], outputs: dict[int, Memory]) -> InlineAssembly:
    """The code of a contracted program; `memory` locates its inputs, sines and cosines, `outputs` its results."""
    nodes = list(order)
    selected = ArithmeticSelection(memory, max((node.serial for node in nodes), default=0))
    selected.select(nodes, outputs)
    many = len(outputs) > tuning.MOST_RESULTS_SCHEDULED
    code = selected.instructions if many else list_schedule(selected.instructions)
    return _allocated(selected, code, outputs)


def rows_code(program: Program, uniform: Collection[int] = ()) -> InlineAssembly:
    """The code of a contracted program from rows `in0`, `in1`, … to rows `out0`, …, for angles within `LIMIT`.

    The inputs `uniform` are the same for all configurations, and are given as columns.
    """
    selected = RowsSelection(program, uniform)
    return _allocated(selected, list_schedule(selected.instructions), selected.outputs)


def sine_code(angles: list[Memory], array: str, beyond: Memory) -> InlineAssembly:
    """Sines and cosines of the angles, in pairs in `array`; `beyond` gets a mask of lanes beyond `LIMIT` or NaN.

    The steps are those of `llvm.trig.sine_cosine`; a few angles are interleaved to overlap their latencies.
    """
    selected = InstructionSelection(dict(enumerate(angles)), len(angles))
    outputs: dict[int, Memory] = {}
    code: list[list[Instruction]] = []  # per angle
    masks: list[int] = []
    for x in range(len(angles)):
        start = len(selected.instructions)
        sine, cosine, mask = _sine_cosine(selected, x)
        code.append(selected.instructions[start:])
        outputs |= {sine: Memory(array, 2 * BYTES * x), cosine: Memory(array, 2 * BYTES * x + BYTES)}
        masks.append(mask if not masks else selected.add("vorpd", (masks[-1], mask), (0, 1)))
        if len(masks) > 1:
            code[-1].append(selected.instructions[-1])
    outputs[masks[-1]] = beyond
    return _allocated(selected, _interleaved(code), outputs)


def _interleaved(code: list[list[Instruction]]) -> list[Instruction]:
    """One instruction of each in turn, `tuning.ANGLES_INTERLEAVED` at a time."""
    step = tuning.ANGLES_INTERLEAVED
    few = (code[start : start + step] for start in range(0, len(code), step))
    return [one for some in few for turn in zip_longest(*some) for one in turn if one is not None]


def _sine_cosine(s: InstructionSelection, x: int, sine_cosine: tuple[int, int] = (-1, -1)) -> tuple[int, int, int]:
    """(sine, cosine, mask of lanes beyond the limit) of angle x; the numbers of the first two values may be given."""
    number, add = s.number, s.add

    def fused(a: int, b: int, c: int) -> int:
        return add("vfmadd{}pd", (a, b, c), (0, 1, 2))

    def times(a: int, b: int) -> int:
        return add("vmulpd", (a, b), (0, 1))

    magnitude = add("vandpd", (x, number(ALL_BUT_SIGN)), (0, 1))
    beyond = add("vpcmpgtq", (magnitude, number(LIMIT)), (1,))
    shifted = fused(x, number(TWO_OVER_PI), number(ROUNDER))
    k = add("vsubpd", (shifted, number(ROUNDER)), (1,))
    r = x
    for part in HALF_PI_FMA:
        r = fused(k, number(-part), r)
    z = times(r, r)
    sine, cosine = (number(coefficients[-1]) for coefficients in (SINE, COSINE))
    for coefficient in reversed(SINE[:-1]):
        sine = fused(sine, z, number(coefficient))
    for coefficient in reversed(COSINE[:-1]):
        cosine = fused(cosine, z, number(coefficient))
    sine = fused(times(z, r), sine, r)
    odd = add("vpsllq $$63,", (shifted,), ())  # the last bit of the quadrant: whether to exchange them
    second = add("vpsllq $$62,", (shifted,), ())  # the bit before: the sign
    minus = add("vandpd", (second, number(-0.0)), (0, 1))
    signs = (minus, add("vxorpd", (odd, minus), (0, 1)))
    results = []
    for one, other, sign, value in zip((sine, cosine), (cosine, sine), signs, sine_cosine, strict=True):
        results.append(add("vxorpd", (add(BLEND, (one, other, odd), (1,)), sign), (0, 1), value))
    return results[0], results[1], beyond


def _live(instructions: list[Instruction], outputs: Iterable[int]) -> list[Instruction]:
    """The instructions without dead code."""
    needed = set(outputs)
    result = []
    for one in reversed(instructions):
        if one.value in needed:
            needed.update(one.arguments)
            result.append(one)
    return result[::-1]


def _merged(loads: list[Instruction], arithmetic: list[Instruction], stores: list[Instruction]) -> list[Instruction]:
    """One list: transpositions of inputs come before their first use, those of results after their last argument."""
    at: dict[int, int] = {}
    for position, one in enumerate(arithmetic):
        at[one.value] = position
        for argument in one.arguments:
            at.setdefault(argument, position)
    for one in reversed(loads):
        first = at.setdefault(one.value, len(arithmetic))
        for argument in one.arguments:
            at[argument] = min(first, at.get(argument, first))
    for one in stores:
        at[one.value] = max(at.get(argument, 0) for argument in one.arguments)
    return sorted((*loads, *arithmetic, *stores), key=lambda one: at[one.value])


def _allocated(
    selected: InstructionSelection, instructions: list[Instruction], outputs: dict[int, Memory]
) -> InlineAssembly:
    code = allocate(instructions, selected.memory, outputs)
    return assembled(code.lines, list(selected.constants), code.spill_slots)


class InstructionSelection:
    """Selected instructions, and the locations of values in memory; values up to `last_value` are the caller's."""

    def __init__(self, memory: dict[int, Memory], last_value: int) -> None:
        self.memory = dict(memory)
        self.constants: dict[str, int] = {}  # literal -> index in the table
        self.instructions: list[Instruction] = []
        self._last_value = last_value
        self._numbers: dict[str, int] = {}

    def add(self, operation: str, arguments: tuple[int, ...], from_memory: tuple[int, ...], value: int = -1) -> int:
        """Append an instruction; returns the number of its value."""
        if value < 0:
            self._last_value = value = self._last_value + 1
        self.instructions.append(Instruction(value, operation, arguments, from_memory))
        return value

    def number(self, x: float) -> int:
        """The value of a constant that is not in the program."""
        spelling = double(x)
        if spelling not in self._numbers:
            self._numbers[spelling] = self._in_memory(self.constant(x))
        return self._numbers[spelling]

    def _in_memory(self, home: Memory) -> int:
        """A value that is in memory from the start."""
        self._last_value += 1
        self.memory[self._last_value] = home
        return self._last_value

    def constant(self, x: float) -> Memory:
        """The location of a number in the table of constants."""
        return Memory("constants", BYTES * self.constants.setdefault(double(x), len(self.constants)))


class ArithmeticSelection(InstructionSelection):
    """Selects instructions for arithmetic; negations are folded into multiply–adds where possible."""

    def select(self, nodes: Sequence[Node], outputs: Iterable[int]) -> None:
        """Select all nodes that have no value yet, arguments first."""
        signed = {a.serial for node in nodes if node.op != "fma" for a in node.args} | set(outputs)
        made = {one.value for one in self.instructions} | self.memory.keys()
        for node in nodes:
            if node.op == "const":
                self.memory[node.serial] = self.constant(float(node.value))
            elif node.serial not in made and (node.op != "neg" or node.serial in signed):
                self._select(node)

    def _select(self, node: Node) -> None:
        arguments = tuple(a.serial for a in node.args)
        if node.op == "fma":
            (a, minus_a), (b, minus_b), (c, minus_c) = (_unsigned(argument) for argument in node.args)
            self.add(FUSED[minus_a != minus_b, minus_c], (a, b, c), (0, 1, 2), node.serial)
        elif node.op in BINARY:
            operation, from_memory = BINARY[node.op]
            self.add(operation, arguments, from_memory, node.serial)
        elif node.op == "neg":
            self.add("vxorpd", (*arguments, self.number(-0.0)), (1,), node.serial)
        elif node.op == "sqrt":
            self.add("vsqrtpd", arguments, (0,), node.serial)
        elif node.op == "sign":
            (x,), zero = arguments, self.number(0.0)
            up = self.add(BLEND, (x, self.number(1.0), self.add(GREATER, (x, zero), (1,))), (1,))
            self.add(BLEND, (up, self.number(-1.0), self.add(LESS, (x, zero), (1,))), (1,), node.serial)
        elif node.op == "positive":
            greater = self.add(GREATER, (*arguments, self.number(0.0)), (1,))
            self.add(BLEND, (self.number(math.nan), self.number(1.0), greater), (1,), node.serial)
        else:
            raise ValueError(f"no instruction for {node.op}")


class RowsSelection(ArithmeticSelection):
    """Selects a whole program from rows to rows; `outputs` locates the results."""

    def __init__(self, program: Program, uniform: Collection[int]) -> None:
        numbers = [node for port in (*program.inputs, *program.outputs) for node in port.nodes]
        super().__init__({}, max(node.serial for node in (*program.order, *numbers)))
        self.outputs: dict[int, Memory] = {}
        self._angles: dict[int, dict[str, int]] = {}  # of each angle, the values of its sine and cosine
        for node in program.order:
            if node.op in TRIG:
                self._angles.setdefault(node.args[0].serial, {})[node.op] = node.serial
        for index, port in enumerate(program.inputs):
            columns = [node.serial for node in port.nodes]
            if index in uniform:
                self.memory |= {value: Memory(f"in{index}", BYTES * k) for k, value in enumerate(columns)}
            else:
                self._load_rows(f"in{index}", columns)
        begin = len(self.instructions)
        self.select(program.order, [node.serial for port in program.outputs for node in port.nodes])
        end = len(self.instructions)
        for index, port in enumerate(program.outputs):
            self._store_rows(f"out{index}", [node.serial for node in port.nodes])
        merged = _merged(self.instructions[:begin], self.instructions[begin:end], self.instructions[end:])
        self.instructions = _live(merged, self.outputs)

    def _load_rows(self, array: str, columns: list[int]) -> None:
        for start in groups(len(columns), LANES):
            rows = [self._in_memory(Memory(array, 8 * (start + k * len(columns)))) for k in range(LANES)]
            made = {one.value for one in self.instructions}
            self._transpose(rows, [-1 if value in made else value for value in columns[start : start + LANES]])

    def _store_rows(self, array: str, columns: list[int]) -> None:
        for start in groups(len(columns), LANES):
            for k, row in enumerate(self._transpose(columns[start : start + LANES])):
                self.outputs[row] = Memory(array, 8 * (start + k * len(columns)))

    def _transpose(self, square: list[int], values: Iterable[int] = (-1,) * LANES) -> list[int]:
        """Transpose a square tile: columns from rows, or rows from columns."""
        add, (a, b, c, d) = self.add, square
        low, high = ([add(f"vunpck{side}pd", pair, (1,)) for pair in ((a, b), (c, d))] for side in "lh")
        inner = [add("vperm2f128 $$33,", (one, other), (1,)) for one, other in (low, high)]  # the inner halves
        pairs = ((low[0], inner[0]), (high[0], inner[1]), (inner[0], low[1]), (inner[1], high[1]))
        return [add("vblendpd $$12,", pair, (1,), value) for pair, value in zip(pairs, values, strict=True)]

    def _select(self, node: Node) -> None:
        if node.op not in TRIG:
            super()._select(node)
        elif wanted := self._angles.pop(node.args[0].serial, None):  # sine and cosine are computed together
            sine, cosine = (wanted.get(op, -1) for op in TRIG)
            _sine_cosine(self, node.args[0].serial, (sine, cosine))


def _unsigned(node: Node) -> tuple[int, bool]:
    return (node.args[0].serial, True) if node.op == "neg" else (node.serial, False)


MOST_ARRAYS = len(ADDRESS_REGISTERS) - 2  # besides constants and spill slots


class Avx2Code(StraightLine):
    """The arithmetic of a block as AVX2 instructions; no angle may depend on another angle's sine or cosine."""

    def _write(self, w: Writer) -> str:
        locations = dict(self.inputs)
        for angles in self.trig_layers:
            locations |= self._sines(w, angles)
        memory = {value: _memory(slot) for value, slot in locations.items()}
        outputs = {value: Memory("out", BYTES * slot) for value, slot in self.slots.items()}
        _inline(w, block_code(self.contracted.order, memory, outputs), "body")
        return trig_far(self.target.vector) if self.trig_layers else ""

    def _sines(self, w: Writer, angles: tuple[Node, ...]) -> dict[int, Slot]:
        """Write the sines and cosines of angles (C library for lanes beyond the limit); returns their locations."""
        angles_at = w.stack_array("angles0", len(angles))
        results = w.stack_array("trig0", 2 * len(angles))
        emit = Emitter(w, self.target.fma, self.inputs, lambda node: w.constant(node.value))
        places = []
        for number, angle in enumerate(angles):
            location = emit.locations.get(angle.serial)
            if not isinstance(location, Slot):  # an input is read in place
                for node in ancestors(angle):
                    emit.value(node)
                location = Slot(angles_at, number)
                w.store(emit.value(angle), *location)
            places.append(location)
        beyond_at = w.stack_array("beyond", 1)
        code = sine_code([_memory(place) for place in places], results[1:], Memory("beyond", 0))
        _inline(w, code, "sines")
        beyond = w.let(f"load i{64 * w.lanes}, ptr {beyond_at}")
        w.do(f"br i1 {w.let(f'icmp ne i{64 * w.lanes} {beyond}, 0')}, label %far, label %near, !prof !0")
        w.label("far")
        for number, (array, slot) in enumerate(places):
            result = w.at(results, 2 * BYTES * number)
            w.do(f"call void @trig_far(ptr {w.at(array, BYTES * slot)}, ptr {result}, ptr %context)")
        w.do("br label %near")
        w.label("near")
        return self._sines_wanted(angles, results)

    def rows_to_rows(self) -> RowsToRows | None:
        """Code from rows to rows, for short programs whose arrays all have at least as many numbers as lanes."""
        program = self.contracted
        ports = (*program.inputs, *program.outputs)
        rows = [port for index, port in enumerate(ports) if index not in self.uniform]
        short = len(self.slots) <= tuning.MOST_RESULTS_SCHEDULED and len(program.order) <= tuning.LONGEST_ROWS_TO_ROWS
        if not short or len(ports) > MOST_ARRAYS or min(len(port.nodes) for port in rows) < self.lanes:
            return None
        limits = input_limits(program)
        if limits is None:
            return None
        code = rows_code(program, self.uniform)
        text = rows_loop(program, self.target.vector, self.uniform, limits, lambda w: _inline(w, code, "rows"))
        return RowsToRows(text, self.uniform)


def _memory(slot: Slot) -> Memory:
    return Memory(slot.array.removeprefix("%"), BYTES * slot.number)


def _inline(w: Writer, code: InlineAssembly, name: str) -> None:
    """Write a piece of inline assembly, with its constants and its spill slots."""
    w.stack_array(f"spill_{name}", code.spill_slots)
    w.constant_table(f"constants_{name}", code.constants)
    arrays = {"constants": f"@constants_{name}", "spill": f"%spill_{name}"}
    pointers = []
    for array, number in code.windows:
        middle = WINDOW * number + WINDOW // 2
        pointers.append("ptr " + w.at(arrays.get(array, f"%{array}"), middle))
    w.do(f'call void asm sideeffect "{code.text}", "{code.constraints}"({", ".join(pointers)})')
