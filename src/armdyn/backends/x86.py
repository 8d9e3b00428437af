"""Program -> straight-line AVX code, for x86 processors with four lanes and fused multiply–adds.

The code stands in LLVM's function as one piece of inline assembly: calling conventions, object files
and everything around it remain LLVM's. `registers` says which value is where; here operations become
instructions, signs go into multiply–adds, and places in memory get their addresses.

Long code runs as fast as its bytes can be fetched, so the busiest windows of memory have an address
register in their middle: a displacement then takes one byte instead of four.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from armdyn.backends.llvm_text import double
from armdyn.backends.registers import BYTES, REGISTERS, Allocation, Instruction, Line, Operand, Place, ordered
from armdyn.graph.node import Node

LANES = 4
WINDOW = 256  # bytes that displacements of one byte reach around an address
ADDRESSES = 12  # registers that hold addresses

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
    lowered = _Lowered(order, homes, outputs)
    code = Allocation(ordered(lowered.instructions), lowered.homes, outputs)
    windows = _windows(code.lines)
    return Straight(_spelled(code.lines, windows), windows, list(lowered.constants), code.slots)


class _Lowered:
    """Operations as instructions; signs go into multiply–adds where they can."""

    def __init__(self, order: Iterable[Node], homes: dict[int, Place], outputs: Iterable[int]) -> None:
        self.homes = dict(homes)
        self.constants: dict[str, int] = {}  # spelling -> place in the table
        self.instructions: list[Instruction] = []
        nodes = list(order)
        self._fresh = max((node.serial for node in nodes), default=0)
        signed = {a.serial for node in nodes if node.op != "fma" for a in node.args} | set(outputs)
        for node in nodes:
            if node.op == "const":
                self.homes[node.serial] = self._constant(float(node.value))
            elif node.serial not in self.homes and (node.op != "neg" or node.serial in signed):
                self._lower(node)

    def _lower(self, node: Node) -> None:
        arguments = tuple(a.serial for a in node.args)
        if node.op == "fma":
            (a, minus_a), (b, minus_b), (c, minus_c) = (_unsigned(argument) for argument in node.args)
            self._add(FUSED[minus_a != minus_b, minus_c], (a, b, c), (0, 1, 2), node.serial)
        elif node.op in PLAIN:
            operation, from_memory = PLAIN[node.op]
            self._add(operation, arguments, from_memory, node.serial)
        elif node.op == "neg":
            self._add("vxorpd", (*arguments, self._number(-0.0)), (1,), node.serial)
        elif node.op == "sqrt":
            self._add("vsqrtpd", arguments, (0,), node.serial)
        elif node.op == "sign":
            (x,), zero = arguments, self._number(0.0)
            up = self._add(CHOOSE, (x, self._number(1.0), self._add(GREATER, (x, zero), (1,))), (1,))
            self._add(CHOOSE, (up, self._number(-1.0), self._add(LESS, (x, zero), (1,))), (1,), node.serial)
        elif node.op == "positive":
            greater = self._add(GREATER, (*arguments, self._number(0.0)), (1,))
            self._add(CHOOSE, (self._number(math.nan), self._number(1.0), greater), (1,), node.serial)
        else:
            raise ValueError(f"no instruction for {node.op}")

    def _add(self, operation: str, arguments: tuple[int, ...], from_memory: tuple[int, ...], value: int = -1) -> int:
        if value < 0:
            self._fresh = value = self._fresh + 1
        self.instructions.append(Instruction(value, operation, arguments, from_memory))
        return value

    def _number(self, x: float) -> int:
        """A constant beside those of the program."""
        self._fresh += 1
        self.homes[self._fresh] = self._constant(x)
        return self._fresh

    def _constant(self, x: float) -> Place:
        return "constants", BYTES * self.constants.setdefault(double(x), len(self.constants))


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
