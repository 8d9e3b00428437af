"""What an arm's operations take on an Intel 8087, by the clock counts that Intel published for its instructions.

Source: the 8087's data sheet and the instruction tables made from it (clocks, for operands in registers and in memory
as short reals of 32 bits; an effective address takes the 8086's 6 clocks for a displacement alone, 12 at most).
Lin 1991 quotes a time of 17 ms at 5 MHz for recursive Newton-Euler of the Stanford arm; neither program nor parameters
are printed, so only the range of its operations' times can be computed.
"""

from __future__ import annotations

from armdyn.algebra import Operations

CLOCK = 5e6  # Hz
ADDRESS = (6, 12)
REGISTERS = {"mul": (90, 145), "add": (70, 100), "div": (193, 203)}  # FMUL, FADD, FDIV
MEMORY = {"mul": (110, 125), "add": (90, 120), "div": (215, 225)}  # the same with a short real in memory, without EA
LOAD, STORE = (38, 56), (84, 90)  # FLD, FSTP of a short real, without EA
TANGENT = (30, 540)  # FPTAN, from which sine and cosine follow


def milliseconds(operations: Operations) -> tuple[float, float]:
    """(least, most): all operands in registers; or each operation loads one, takes the other from memory, and stores.

    Sine and cosine are not among them: they take an FPTAN per angle and some operations more, by a method of choice.
    """
    counts = {"mul": operations.mul, "add": operations.add, "div": operations.div}
    least = sum(count * REGISTERS[name][0] for name, count in counts.items())
    around = LOAD[1] + STORE[1] + 3 * ADDRESS[1]
    most = sum(count * (MEMORY[name][1] + around) for name, count in counts.items())
    return 1e3 * least / CLOCK, 1e3 * most / CLOCK
