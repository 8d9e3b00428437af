"""Straight-line code: the order of its instructions, and which value is in which register when.

A program of thousands of operations without a branch is what a general compiler is worst at. Here one
pass puts short programs into an order in which results are there when they are asked for, and one
pass gives every value its register:

- a register is taken from the value whose next use is farthest away (Belady's rule), rather from one
  that memory holds than from one that has to be stored first;
- inputs, sines, cosines and constants stay in memory, where an instruction takes one operand from;
- a fused multiply–add overwrites an argument that nobody needs any more, if there is one.
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Iterable
from dataclasses import dataclass
from heapq import heappop, heappush

REGISTERS = 16
BYTES = 32  # of a vector
MOVE = "vmovupd"  # rows of an array lie anywhere
NEVER = 1 << 60
SOON = 4  # instructions within which a second use is worth a register that nobody else wants
STORED = 5  # a value that memory holds too may be needed so many times sooner than one that would have to be stored
SHORT = 3000  # instructions up to which the order matters; longer code waits for its own bytes, and spills cost more
# What an instruction waits for: cycles until a result is there, and the pair of pipes that run it.
DELAY = {"vf": 4, "vmul": 3, "vadd": 3, "vsub": 3, "vperm": 4, "vdiv": 13, "vsqrt": 20}
PIPE = {"vf": 0, "vmul": 0, "vdiv": 0, "vsqrt": 0, "vadd": 1, "vsub": 1, "vunpck": 2, "vperm": 2, "vpsll": 2}
ANY_PIPE = 3
# Weights of an order, in cycles, by what ran fastest on the inertia matrices and dynamics of the catalogue's arms.
URGENT = 0.014  # a cycle that others have to wait for
CROWDED, FEW = 0.06, 9  # a further value, and how many may be alive before each counts again
AT_ONCE, FRESH = 0.0085, 22  # an instruction sooner, of so many

Place = tuple[str, int]  # array and offset in bytes
Operand = int | Place  # a register, or where in memory
Line = tuple[str, tuple[Operand, ...]]


@dataclass(frozen=True)
class Instruction:
    """value = operation(arguments); one argument, at a position in `from_memory`, may lie in memory."""

    value: int
    operation: str
    arguments: tuple[int, ...]
    from_memory: tuple[int, ...]

    @property
    def fused(self) -> bool:
        """Is this a multiply–add, which overwrites one of its arguments."""
        return self.operation.startswith("vf")

    @property
    def delay(self) -> int:
        """Cycles until the result is there."""
        return next((delay for name, delay in DELAY.items() if self.operation.startswith(name)), 1)

    @property
    def pipe(self) -> int:
        """Which pipes run it."""
        return next((pipe for name, pipe in PIPE.items() if self.operation.startswith(name)), ANY_PIPE)


def ordered(instructions: list[Instruction]) -> list[Instruction]:
    """The same instructions, in an order that lets them run side by side in few registers.

    The next one is that which can start first, were it not for three things: what many others wait for
    is brought forward, a further value costs something once many are alive, and what was just made is
    best used at once.
    """
    if len(instructions) > SHORT:
        return instructions
    made_of, users = _links(instructions)
    to_end = _to_end(instructions, users)
    missing, unused = [len(arguments) for arguments in made_of], [len(u) for u in users]
    there = [0.0] * len(instructions)  # when the arguments are
    made_at = [0] * len(instructions)
    pipes = [one.pipe for one in instructions]
    free = [0.0] * (ANY_PIPE + 1)  # when pipes are
    able = [k for k, count in enumerate(missing) if count == 0]
    alive = 0
    result: list[Instruction] = []
    while able:
        crowd = CROWDED * (1 + max(0, alive - FEW))
        most = 3 * (crowd + FRESH * AT_ONCE)  # that an instruction's three arguments may speak for it
        least, first, born = math.inf, -1, 0
        for k in able:
            cost = max(there[k], free[pipes[k]]) - URGENT * to_end[k]
            if cost - most >= least:
                continue
            further = 1 if users[k] else 0  # values alive
            for argument in made_of[k]:
                further -= unused[argument] == 1
                cost -= AT_ONCE * max(0, FRESH - len(result) + made_at[argument])
            cost += crowd * further
            if cost < least:
                least, first, born = cost, k, further
        able.remove(first)
        start = max(there[first], free[pipes[first]])
        free[pipes[first]] = start + (0.25 if pipes[first] == ANY_PIPE else 0.5)
        alive += born
        made_at[first] = len(result)
        result.append(instructions[first])
        for argument in made_of[first]:
            unused[argument] -= 1
        for k in users[first]:
            missing[k] -= 1
            there[k] = max(there[k], start + instructions[first].delay)
            if missing[k] == 0:
                insort(able, k)
    return result


def _links(instructions: list[Instruction]) -> tuple[list[list[int]], list[list[int]]]:
    """Of each instruction, by number, which ones it takes from, and which take from it."""
    number = {one.value: k for k, one in enumerate(instructions)}
    made_of = [sorted({number[a] for a in one.arguments if a in number}) for one in instructions]
    users: list[list[int]] = [[] for _ in instructions]
    for k, arguments in enumerate(made_of):
        for argument in arguments:
            users[argument].append(k)
    return made_of, users


def _to_end(instructions: list[Instruction], users: list[list[int]]) -> list[float]:
    """Cycles from the start of each to the end of the last that waits for it."""
    result = [0.0] * len(instructions)
    for k in reversed(range(len(instructions))):
        result[k] = instructions[k].delay + max((result[user] for user in users[k]), default=0)
    return result


class Allocation:
    """`lines` of code in which every value has its register, and the number of spill `slots` they use.

    `homes` says where memory holds values from the start, `outputs` where results go.
    """

    def __init__(self, instructions: list[Instruction], homes: dict[int, Place], outputs: dict[int, Place]) -> None:
        self.lines: list[Line] = []
        self.slots = 0
        self._homes, self._outputs = dict(homes), outputs
        self._registers: dict[int, int] = {}
        self._free = list(range(REGISTERS))
        self._given_back: list[int] = []  # spill slots
        self._uses: dict[int, list[int]] = {}  # of each value, the next one last
        self._at = 0  # the instruction in hand
        for at in range(len(instructions) - 1, -1, -1):
            for value in set(instructions[at].arguments):
                self._uses.setdefault(value, []).append(at)
        for value in (value for value in outputs if value in homes):
            self._emit(MOVE, homes[value], 0)
            self._emit(MOVE, 0, outputs[value])
        for self._at, one in enumerate(instructions):
            self._do(one)

    def _next(self, value: int) -> int:
        uses = self._uses.get(value)
        return uses[-1] if uses else NEVER

    def _do(self, one: Instruction) -> None:
        arguments = dict.fromkeys(one.arguments)
        for value in arguments:
            self._uses[value].pop()
        register, where = (self._overwritten if one.fused else self._anew)(one, arguments)
        self._write(one, where, register)
        for value in arguments:
            if self._next(value) == NEVER:
                self._forget(value)
        if one.value in self._outputs:
            self._homes[one.value] = self._outputs[one.value]
            self._emit(MOVE, register, self._outputs[one.value])
        if self._next(one.value) == NEVER:
            self._free.append(register)
        else:
            self._registers[one.value] = register

    def _anew(self, one: Instruction, arguments: Iterable[int]) -> tuple[int, dict[int, Operand]]:
        """A register for the result, perhaps that of an argument of no further use, and where the arguments are."""
        where = self._read(one, arguments)
        last = next((v for v in arguments if v in self._registers and self._next(v) == NEVER), None)
        return self._take(arguments) if last is None else self._registers.pop(last), where

    def _overwritten(self, one: Instruction, arguments: Iterable[int]) -> tuple[int, dict[int, Operand]]:
        """The register that a multiply–add works in, one of its arguments inside, and where the arguments are."""
        here = [value for value in arguments if value in self._registers]
        last = next((value for value in here if self._next(value) == NEVER), None)
        if last is not None:
            where = self._read(one, arguments)
            return self._registers.pop(last), where
        absent = [value for value in arguments if value not in self._registers]
        if absent:
            inside = max(absent, key=self._next)
            register = self._take(arguments)
            self._emit(MOVE, self._homes[inside], register)
            return register, {**self._read(one, [v for v in arguments if v != inside]), inside: register}
        where = self._read(one, arguments)
        inside = max(here, key=lambda value: (value in self._homes, self._next(value)))
        if inside in self._homes and self._next(inside) - self._at > SOON:
            return self._registers.pop(inside), where
        register = self._take(arguments)
        self._emit(MOVE, self._registers[inside], register)
        return register, {**where, inside: register}

    def _read(self, one: Instruction, arguments: Iterable[int]) -> dict[int, Operand]:
        """Where each argument is; all but one that memory alone holds are loaded first."""
        absent = [value for value in arguments if value not in self._registers]
        able = [v for v in absent if one.arguments.count(v) == 1 and one.arguments.index(v) in one.from_memory]
        stays = max(able, key=self._next, default=None)
        if stays is not None and self._free and self._next(stays) - self._at < SOON:
            stays = None
        for value in absent:
            if value != stays:
                register = self._take(one.arguments)
                self._emit(MOVE, self._homes[value], register)
                self._registers[value] = register
        return {v: self._registers[v] if v in self._registers else self._homes[v] for v in arguments}

    def _take(self, pinned: Iterable[int]) -> int:
        """A free register, if need be that of the value needed last."""
        if not self._free:
            value = max((value for value in self._registers if value not in pinned), key=self._distance)
            if value not in self._homes:
                self._homes[value] = ("spill", BYTES * self._slot())
                self._emit(MOVE, self._registers[value], self._homes[value])
            self._free.append(self._registers.pop(value))
        return self._free.pop()

    def _distance(self, value: int) -> int:
        """How far a value is from its next use; it is as good as farther off if nothing has to be stored."""
        return (self._next(value) - self._at) * (STORED if value in self._homes else 1)

    def _slot(self) -> int:
        if self._given_back:
            return heappop(self._given_back)
        self.slots += 1
        return self.slots - 1

    def _forget(self, value: int) -> None:
        """Give back what a value took that nobody needs any more."""
        if value in self._registers:
            self._free.append(self._registers.pop(value))
        array, offset = self._homes.get(value, ("", 0))
        if array == "spill":
            heappush(self._given_back, offset // BYTES)

    def _write(self, one: Instruction, where: dict[int, Operand], register: int) -> None:
        """The instruction, its operands in the order of assembly: a place in memory first, the result last."""
        operands = [where[value] for value in one.arguments]
        if not one.fused:
            if one.from_memory == (0, 1):  # either way round
                operands.sort(key=lambda operand: isinstance(operand, tuple))
            self._emit(one.operation, *reversed(operands), register)
            return
        a, b, c = operands
        if c == register:
            a, b = (b, a) if isinstance(a, tuple) else (a, b)
            self._emit(one.operation.format(231), b, a, register)  # += a b
            return
        other = b if a == register else a
        if isinstance(c, tuple):
            self._emit(one.operation.format(213), c, other, register)
        else:
            self._emit(one.operation.format(132), other, c, register)

    def _emit(self, operation: str, *operands: Operand) -> None:
        self.lines.append((operation, operands))
