"""Allocated instructions -> the text of inline assembly.

Long code runs as fast as its bytes can be fetched, so the busiest windows of memory have an address
register in their middle: a displacement then takes one byte instead of four.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple

from armdyn.codegen.avx2.allocate import REGISTERS, Line, Memory, Operand, Register

WINDOW = 256  # bytes that displacements of one byte reach around an address
# Registers that hold addresses. With one of the first six, instructions are often a byte shorter.
ADDRESS_REGISTERS = ("rax", "rcx", "rdx", "rsi", "rdi", "rbx", "r8", "r9", "r10", "r11", "r14", "r15")


class Window(NamedTuple):
    """256 bytes of an array, by number."""

    array: str
    number: int


@dataclass(frozen=True)
class InlineAssembly:
    """Code, the windows of memory whose middles its address registers `$0`, `$1`, … hold, and what it needs there."""

    text: str
    windows: list[Window]
    constants: list[str]  # as LLVM writes them
    spill_slots: int

    @property
    def constraints(self) -> str:
        """Operands and clobbers, as inline assembly declares them."""
        clobbers = [f"~{{ymm{k}}}" for k in range(REGISTERS)]
        addresses = [f"{{{register}}}" for register in ADDRESS_REGISTERS[: len(self.windows)]]
        return ",".join(addresses + clobbers + ["~{memory}"])


def assembled(lines: list[Line], constants: list[str], spill_slots: int) -> InlineAssembly:
    """The lines as text, with windows chosen."""
    windows = _windows(lines)
    return InlineAssembly(_spelled(lines, windows), windows, constants, spill_slots)


def _windows(lines: list[Line]) -> list[Window]:
    """The busiest windows, at least one per array; the busiest first."""
    places = [operand for _, operands in lines for operand in operands if isinstance(operand, Memory)]
    uses = Counter(Window(array, offset // WINDOW) for array, offset in places)
    busiest = [window for window, _ in uses.most_common()]
    first = list({window.array: window for window in reversed(busiest)}.values())
    chosen = first + [w for w in busiest if w not in first][: max(0, len(ADDRESS_REGISTERS) - len(first))]
    for window in busiest:  # what is in no chosen window is addressed from the busiest of its array
        if window not in chosen:
            uses[next(one for one in first if one.array == window.array)] += uses[window]
    return sorted(chosen, key=uses.__getitem__, reverse=True)


def _spelled(lines: list[Line], windows: list[Window]) -> str:
    register = {window: k for k, window in enumerate(windows)}
    any_of = {window.array: window for window in reversed(windows)}

    def spelled(operand: Operand) -> str:
        if isinstance(operand, Register):
            return f"%ymm{operand.number}"
        window = Window(operand.array, operand.offset // WINDOW)
        window = window if window in register else any_of[operand.array]
        return f"{operand.offset - WINDOW * window.number - WINDOW // 2}(${register[window]})"

    return "\\0A".join(f"{operation} {', '.join(map(spelled, operands))}" for operation, operands in lines)
