"""The text of inline assembly from instructions with registers assigned.

Long code is bound by instruction fetch. So an address register points to the middle of each of the most used windows of
memory: displacements then take one byte instead of four.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple

from armdyn.codegen.avx2.allocate import REGISTERS, Line, Memory, Operand, Register

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
