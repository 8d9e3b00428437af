"""Program -> straight-line AVX code, for x86 processors with AVX2 and fused multiply–adds.

The code stands in LLVM's function as one piece of inline assembly: calling conventions, object files
and everything around it remain LLVM's. `registers` says which value is where; here operations become
instructions, signs go into multiply–adds, and places in memory get their addresses.

Long code runs as fast as its bytes can be fetched, so the busiest windows of memory have an address
register in their middle: a displacement then takes one byte instead of four.
"""

from __future__ import annotations

import math
import struct
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import zip_longest

from armdyn.backends.llvm_text import double
from armdyn.backends.llvm_trig import COSINE, HALF_PI_FMA, LIMIT, ROUNDER, SINE, TWO_OVER_PI
from armdyn.backends.registers import BYTES, REGISTERS, Allocation, Instruction, Line, Operand, Place, ordered
from armdyn.graph.node import Node

LANES = 4
WINDOW = 256  # bytes that displacements of one byte reach around an address
ADDRESSES = 12  # registers that hold addresses
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
        return ",".join(["r"] * len(self.windows) + touched + ["~{memory}"])


def straight(order: Iterable[Node], homes: dict[int, Place], outputs: dict[int, Place]) -> Straight:
    """The code of a contracted program; `homes` places its inputs, sines and cosines, `outputs` its results."""
    written = _Lowered(order, homes, outputs)
    return _finished(written, ordered(written.instructions), outputs)


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
    groups = (code[start : start + TOGETHER] for start in range(0, len(code), TOGETHER))
    return [one for group in groups for turn in zip_longest(*group) for one in turn if one is not None]


def _sine_cosine(w: _Written, x: int) -> tuple[int, int, int]:
    """(sine, cosine, mask of lanes that are far off) of angle x."""
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
    zz = times(z, z)
    values = []
    for coefficients in (SINE, COSINE):
        even_odd = zip(coefficients[::2], coefficients[1::2], strict=True)
        *pairs, value = [fused(number(odd), z, number(even)) for even, odd in even_odd]
        for pair in reversed(pairs):
            value = fused(value, zz, pair)
        values.append(value)
    zr, near = times(z, r), fused(z, number(-0.5), number(1.0))
    sine, cosine = fused(zr, values[0], r), fused(zz, values[1], near)
    odd = add("vpsllq $$63,", (shifted,), ())  # the last bit of the quadrant says which is which
    second = add("vpsllq $$62,", (shifted,), ())  # and the one before with what sign
    results = []
    for one, other, sign in ((sine, cosine, second), (cosine, sine, add("vxorpd", (odd, second), (0, 1)))):
        minus = add("vandpd", (sign, number(-0.0)), (0, 1))
        value = add(CHOOSE, (one, other, odd), (1,))
        results.append(add("vxorpd", (value, minus), (0, 1)))
    return results[0], results[1], far


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
            self._fresh += 1
            self._numbers[spelling] = self._fresh
            self.homes[self._fresh] = self.constant(x)
        return self._numbers[spelling]

    def constant(self, x: float) -> Place:
        """The place of a number in the table of constants."""
        return "constants", BYTES * self.constants.setdefault(double(x), len(self.constants))


class _Lowered(_Written):
    """Operations as instructions; signs go into multiply–adds where they can."""

    def __init__(self, order: Iterable[Node], homes: dict[int, Place], outputs: Iterable[int]) -> None:
        nodes = list(order)
        super().__init__(homes, max((node.serial for node in nodes), default=0))
        signed = {a.serial for node in nodes if node.op != "fma" for a in node.args} | set(outputs)
        for node in nodes:
            if node.op == "const":
                self.homes[node.serial] = self.constant(float(node.value))
            elif node.serial not in self.homes and (node.op != "neg" or node.serial in signed):
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


def _unsigned(node: Node) -> tuple[int, bool]:
    return (node.args[0].serial, True) if node.op == "neg" else (node.serial, False)


def _windows(lines: list[Line]) -> list[Place]:
    """The busiest windows, at least one an array."""
    places = [operand for _, operands in lines for operand in operands if isinstance(operand, tuple)]
    busiest = [window for window, _ in Counter((array, offset // WINDOW) for array, offset in places).most_common()]
    first = list({array: (array, number) for array, number in reversed(busiest)}.values())
    return first + [window for window in busiest if window not in first][: max(0, ADDRESSES - len(first))]


def _spelled(lines: list[Line], windows: list[Place]) -> str:
    register = {window: k for k, window in enumerate(windows)}
    any_of = {array: (array, number) for array, number in windows}

    def spelled(operand: Operand) -> str:
        if isinstance(operand, int):
            return f"%ymm{operand}"
        array, offset = operand
        window = (array, offset // WINDOW)
        window = window if window in register else any_of[array]
        return f"{offset - WINDOW * window[1] - WINDOW // 2}(${register[window]})"

    return "\\0A".join(f"{operation} {', '.join(map(spelled, operands))}" for operation, operands in lines)
