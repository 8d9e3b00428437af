"""Program -> straight-line AVX code, for x86 processors with AVX2 and fused multiply–adds.

The code stands in LLVM's function as one piece of inline assembly: calling conventions, object files
and everything around it remain LLVM's. `registers` says which value is where; here operations become
instructions, signs go into multiply–adds, and places in memory get their addresses.

`straight` and `sines` are the two halves of a block whose numbers lie in columns. `whole` goes from
rows to rows in one piece: while some numbers are transposed or stored, others are multiplied.

Long code runs as fast as its bytes can be fetched, so the busiest windows of memory have an address
register in their middle: a displacement then takes one byte instead of four.
"""

from __future__ import annotations

import math
import struct
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from armdyn.codegen.llvm_block import groups
from armdyn.codegen.llvm_text import double
from armdyn.codegen.llvm_trig import COSINE, HALF_PI_FMA, LIMIT, ROUNDER, SINE, TRIG, TWO_OVER_PI
from armdyn.codegen.registers import BYTES, REGISTERS, Allocation, Instruction, Line, Operand, Place, ordered
from armdyn.graph.node import Node
from armdyn.graph.program import Program

LANES = 4
WINDOW = 256  # bytes that displacements of one byte reach around an address
# Registers that hold addresses. By way of the first six, instructions are often a byte shorter.
ADDRESSES = ("rax", "rcx", "rdx", "rsi", "rdi", "rbx", "r8", "r9", "r10", "r11", "r14", "r15")
MOST_ARRAYS = len(ADDRESSES) - 2  # beside constants and what is spilled
NARROW = 64  # results; more of them are better made one after the other, and go out on their own
TOGETHER = 2  # angles whose sines are taken at a time
MAGNITUDE = struct.unpack("<d", struct.pack("<Q", 2**63 - 1))[0]  # every bit but the sign: a NaN

# Does the product of a multiply–add change its sign, and the addend -> the instruction; {} is its operands' order.
FUSED = {
    (False, False): "vfmadd{}pd",
    (False, True): "vfmsub{}pd",
    (True, False): "vfnmadd{}pd",
    (True, True): "vfnmsub{}pd",
}
PLAIN = {"add": ("vaddpd", (0, 1)), "mul": ("vmulpd", (0, 1)), "sub": ("vsubpd", (1,)), "div": ("vdivpd", (1,))}
GREATER, LESS = "vcmppd $$30,", "vcmppd $$17,"  # ordered, and a NaN raises no flag
CHOOSE = "vblendvpd"  # (a, b, mask): b where the mask is set


@dataclass(frozen=True)
class Straight:
    """Code, the windows of memory whose middles its address registers `$0`, `$1`, … hold, and what it needs there."""

    text: str
    windows: list[Place]  # array and number of the window
    constants: list[str]  # as LLVM writes them
    spill_slots: int

    @property
    def constraints(self) -> str:
        """What the code takes and touches, as inline assembly declares it."""
        touched = [f"~{{ymm{k}}}" for k in range(REGISTERS)]
        addresses = [f"{{{register}}}" for register in ADDRESSES[: len(self.windows)]]
        return ",".join(addresses + touched + ["~{memory}"])


def straight(order: Iterable[Node], homes: dict[int, Place], outputs: dict[int, Place]) -> Straight:
    """The code of a contracted program; `homes` places its inputs, sines and cosines, `outputs` its results."""
    nodes = list(order)
    written = _Lowered(homes, max((node.serial for node in nodes), default=0))
    written.lower(nodes, outputs)
    code = written.instructions if len(outputs) > NARROW else ordered(written.instructions)
    return _finished(written, code, outputs)


def whole(program: Program, shared: Collection[int] = ()) -> Straight:
    """The code of a contracted program from rows `in0`, `in1`, … to rows `out0`, …, for angles within `LIMIT`.

    The inputs `shared` are the same for all configurations, and lie in columns.
    """
    written = _Whole(program, shared)
    return _finished(written, ordered(written.instructions), written.outputs)


def sines(angles: list[Place], array: str, far: Place) -> Straight:
    """Sine and cosine of every angle, side by side in `array`; `far` gets a mask of lanes beyond `LIMIT` or no number.

    The steps are those of `llvm_trig.sine_cosine`; a few angles go together, so that one does not wait for itself.
    """
    written = _Written(dict(enumerate(angles)), len(angles))
    outputs: dict[int, Place] = {}
    code: list[list[Instruction]] = []  # an angle each
    beyond: list[int] = []
    for x in range(len(angles)):
        start = len(written.instructions)
        sine, cosine, mask = _sine_cosine(written, x)
        code.append(written.instructions[start:])
        outputs |= {sine: (array, 2 * BYTES * x), cosine: (array, 2 * BYTES * x + BYTES)}
        beyond.append(mask if not beyond else written.add("vorpd", (beyond[-1], mask), (0, 1)))
        if len(beyond) > 1:
            code[-1].append(written.instructions[-1])
    outputs[beyond[-1]] = far
    return _finished(written, _in_turn(code), outputs)


def _in_turn(code: list[list[Instruction]]) -> list[Instruction]:
    """An instruction of each in turn, `TOGETHER` at a time."""
    few = (code[start : start + TOGETHER] for start in range(0, len(code), TOGETHER))
    return [one for some in few for turn in zip_longest(*some) for one in turn if one is not None]


def _sine_cosine(w: _Written, x: int, sine_cosine: tuple[int, int] = (-1, -1)) -> tuple[int, int, int]:
    """(sine, cosine, mask of lanes that are far off) of angle x; the first two may have their values given."""
    number, add = w.number, w.add

    def fused(a: int, b: int, c: int) -> int:
        return add("vfmadd{}pd", (a, b, c), (0, 1, 2))

    def times(a: int, b: int) -> int:
        return add("vmulpd", (a, b), (0, 1))

    magnitude = add("vandpd", (x, number(MAGNITUDE)), (0, 1))
    far = add("vpcmpgtq", (magnitude, number(LIMIT)), (1,))
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
    odd = add("vpsllq $$63,", (shifted,), ())  # the last bit of the quadrant says which is which
    second = add("vpsllq $$62,", (shifted,), ())  # and the one before with what sign
    minus = add("vandpd", (second, number(-0.0)), (0, 1))
    signs = (minus, add("vxorpd", (odd, minus), (0, 1)))
    results = []
    for one, other, sign, value in zip((sine, cosine), (cosine, sine), signs, sine_cosine, strict=True):
        results.append(add("vxorpd", (add(CHOOSE, (one, other, odd), (1,)), sign), (0, 1), value))
    return results[0], results[1], far


def _needed(instructions: list[Instruction], outputs: Iterable[int]) -> list[Instruction]:
    """Without those that no output needs."""
    needed = set(outputs)
    result = []
    for one in reversed(instructions):
        if one.value in needed:
            needed.update(one.arguments)
            result.append(one)
    return result[::-1]


def _gathered(arriving: list[Instruction], between: list[Instruction], leaving: list[Instruction]) -> list[Instruction]:
    """One list: what arrives stands before its first use, and what leaves behind its last argument."""
    at: dict[int, int] = {}
    for position, one in enumerate(between):
        at[one.value] = position
        for argument in one.arguments:
            at.setdefault(argument, position)
    for one in reversed(arriving):
        first = at.setdefault(one.value, len(between))
        for argument in one.arguments:
            at[argument] = min(first, at.get(argument, first))
    for one in leaving:
        at[one.value] = max(at.get(argument, 0) for argument in one.arguments)
    return sorted((*arriving, *between, *leaving), key=lambda one: at[one.value])


def _finished(written: _Written, instructions: list[Instruction], outputs: dict[int, Place]) -> Straight:
    code = Allocation(instructions, written.homes, outputs)
    windows = _windows(code.lines)
    return Straight(_spelled(code.lines, windows), windows, list(written.constants), code.slots)


class _Written:
    """Instructions, and where memory holds what they start from; values up to `fresh` are the caller's."""

    def __init__(self, homes: dict[int, Place], fresh: int) -> None:
        self.homes = dict(homes)
        self.constants: dict[str, int] = {}  # spelling -> place in the table
        self.instructions: list[Instruction] = []
        self._fresh = fresh
        self._numbers: dict[str, int] = {}

    def add(self, operation: str, arguments: tuple[int, ...], from_memory: tuple[int, ...], value: int = -1) -> int:
        """An instruction; the value it makes."""
        if value < 0:
            self._fresh = value = self._fresh + 1
        self.instructions.append(Instruction(value, operation, arguments, from_memory))
        return value

    def number(self, x: float) -> int:
        """A constant beside those of the program."""
        spelling = double(x)
        if spelling not in self._numbers:
            self._numbers[spelling] = self._placed(self.constant(x))
        return self._numbers[spelling]

    def _placed(self, home: Place) -> int:
        """A value that is in memory from the start."""
        self._fresh += 1
        self.homes[self._fresh] = home
        return self._fresh

    def constant(self, x: float) -> Place:
        """The place of a number in the table of constants."""
        return "constants", BYTES * self.constants.setdefault(double(x), len(self.constants))


class _Lowered(_Written):
    """Operations as instructions; signs go into multiply–adds where they can."""

    def lower(self, nodes: Sequence[Node], outputs: Iterable[int]) -> None:
        """Everything that is not there yet, arguments first."""
        signed = {a.serial for node in nodes if node.op != "fma" for a in node.args} | set(outputs)
        made = {one.value for one in self.instructions} | self.homes.keys()
        for node in nodes:
            if node.op == "const":
                self.homes[node.serial] = self.constant(float(node.value))
            elif node.serial not in made and (node.op != "neg" or node.serial in signed):
                self._lower(node)

    def _lower(self, node: Node) -> None:
        arguments = tuple(a.serial for a in node.args)
        if node.op == "fma":
            (a, minus_a), (b, minus_b), (c, minus_c) = (_unsigned(argument) for argument in node.args)
            self.add(FUSED[minus_a != minus_b, minus_c], (a, b, c), (0, 1, 2), node.serial)
        elif node.op in PLAIN:
            operation, from_memory = PLAIN[node.op]
            self.add(operation, arguments, from_memory, node.serial)
        elif node.op == "neg":
            self.add("vxorpd", (*arguments, self.number(-0.0)), (1,), node.serial)
        elif node.op == "sqrt":
            self.add("vsqrtpd", arguments, (0,), node.serial)
        elif node.op == "sign":
            (x,), zero = arguments, self.number(0.0)
            up = self.add(CHOOSE, (x, self.number(1.0), self.add(GREATER, (x, zero), (1,))), (1,))
            self.add(CHOOSE, (up, self.number(-1.0), self.add(LESS, (x, zero), (1,))), (1,), node.serial)
        elif node.op == "positive":
            greater = self.add(GREATER, (*arguments, self.number(0.0)), (1,))
            self.add(CHOOSE, (self.number(math.nan), self.number(1.0), greater), (1,), node.serial)
        else:
            raise ValueError(f"no instruction for {node.op}")


class _Whole(_Lowered):
    """Everything from rows to rows; `outputs` says where those go."""

    def __init__(self, program: Program, shared: Collection[int]) -> None:
        numbers = [node for port in (*program.inputs, *program.outputs) for node in port.nodes]
        super().__init__({}, max(node.serial for node in (*program.order, *numbers)))
        self.outputs: dict[int, Place] = {}
        self._angles: dict[int, dict[str, int]] = {}  # of each angle, the values of its sine and cosine
        for node in program.order:
            if node.op in TRIG:
                self._angles.setdefault(node.args[0].serial, {})[node.op] = node.serial
        for index, port in enumerate(program.inputs):
            columns = [node.serial for node in port.nodes]
            if index in shared:
                self.homes |= {value: (f"in{index}", BYTES * k) for k, value in enumerate(columns)}
            else:
                self._arrive(f"in{index}", columns)
        begin = len(self.instructions)
        self.lower(program.order, [node.serial for port in program.outputs for node in port.nodes])
        end = len(self.instructions)
        for index, port in enumerate(program.outputs):
            self._leave(f"out{index}", [node.serial for node in port.nodes])
        arriving, between, leaving = self.instructions[:begin], self.instructions[begin:end], self.instructions[end:]
        self.instructions = _needed(_gathered(arriving, between, leaving), self.outputs)

    def _arrive(self, array: str, columns: list[int]) -> None:
        for start in groups(len(columns), LANES):
            rows = [self._placed((array, 8 * (start + k * len(columns)))) for k in range(LANES)]
            made = {one.value for one in self.instructions}
            self._turned(rows, [-1 if value in made else value for value in columns[start : start + LANES]])

    def _leave(self, array: str, columns: list[int]) -> None:
        for start in groups(len(columns), LANES):
            for k, row in enumerate(self._turned(columns[start : start + LANES])):
                self.outputs[row] = (array, 8 * (start + k * len(columns)))

    def _turned(self, square: list[int], values: Iterable[int] = (-1,) * LANES) -> list[int]:
        """The columns of a square of numbers from its rows, or the rows from the columns."""
        add, (a, b, c, d) = self.add, square
        low, high = ([add(f"vunpck{side}pd", pair, (1,)) for pair in ((a, b), (c, d))] for side in "lh")
        inner = [add("vperm2f128 $$33,", (one, other), (1,)) for one, other in (low, high)]  # both halves that face
        pairs = ((low[0], inner[0]), (high[0], inner[1]), (inner[0], low[1]), (inner[1], high[1]))
        return [add("vblendpd $$12,", pair, (1,), value) for pair, value in zip(pairs, values, strict=True)]

    def _lower(self, node: Node) -> None:
        if node.op not in TRIG:
            super()._lower(node)
        elif wanted := self._angles.pop(node.args[0].serial, None):  # sine and cosine are made together
            sine, cosine = (wanted.get(op, -1) for op in TRIG)
            _sine_cosine(self, node.args[0].serial, (sine, cosine))


def _unsigned(node: Node) -> tuple[int, bool]:
    return (node.args[0].serial, True) if node.op == "neg" else (node.serial, False)


def _windows(lines: list[Line]) -> list[Place]:
    """The busiest windows, at least one an array; the busiest first."""
    places = [operand for _, operands in lines for operand in operands if isinstance(operand, tuple)]
    uses = Counter((array, offset // WINDOW) for array, offset in places)
    busiest = [window for window, _ in uses.most_common()]
    first = list({array: (array, number) for array, number in reversed(busiest)}.values())
    chosen = first + [window for window in busiest if window not in first][: max(0, len(ADDRESSES) - len(first))]
    for window in busiest:  # what is far from them all goes by the busiest of its array
        if window not in chosen:
            uses[next(one for one in first if one[0] == window[0])] += uses[window]
    return sorted(chosen, key=uses.__getitem__, reverse=True)


def _spelled(lines: list[Line], windows: list[Place]) -> str:
    register = {window: k for k, window in enumerate(windows)}
    any_of = {array: (array, number) for array, number in reversed(windows)}

    def spelled(operand: Operand) -> str:
        if isinstance(operand, int):
            return f"%ymm{operand}"
        array, offset = operand
        window = (array, offset // WINDOW)
        window = window if window in register else any_of[array]
        return f"{offset - WINDOW * window[1] - WINDOW // 2}(${register[window]})"

    return "\\0A".join(f"{operation} {', '.join(map(spelled, operands))}" for operation, operands in lines)
