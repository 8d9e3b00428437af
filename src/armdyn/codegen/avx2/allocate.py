"""Register allocation for straight-line code.

General compilers do badly on basic blocks of thousands of operations. Here one pass over the block assigns a register
to every value:

- the value whose next use is farthest away is evicted (Belady's rule), with a preference for values that are already in
  memory over those that have to be spilled;
- inputs, sines, cosines and constants stay in memory, from where an instruction can take one operand;
- a fused multiply–add overwrites an argument that is dead after it, if there is one.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush
from typing import NamedTuple

from armdyn.codegen import tuning
from armdyn.codegen.avx2.schedule import Instruction

REGISTERS = 16
BYTES = 32  # per vector
MOVE = "vmovupd"  # rows of an array may be unaligned
NEVER = 1 << 60


class Register(NamedTuple):
    """A vector register."""

    number: int


class Memory(NamedTuple):
    """A vector in memory: the array's name and the offset in bytes."""

    array: str
    offset: int


Operand = Register | Memory
Line = tuple[str, tuple[Operand, ...]]


class Allocation:
    """The instructions with registers assigned (`lines`), and the number of `spill_slots` they use.

    `memory` gives the locations of values that are in memory from the start, `outputs` those of the results.
    """

    def __init__(self, instructions: list[Instruction], memory: dict[int, Memory], outputs: dict[int, Memory]) -> None:
        self.lines: list[Line] = []
        self.spill_slots = 0
        self._memory, self._outputs = dict(memory), outputs
        self._registers: dict[int, Register] = {}
        self._free = list(map(Register, range(REGISTERS)))
        self._free_slots: list[int] = []
        self._uses: dict[int, list[int]] = {}  # positions of each value's uses, the next one last
        self._position = 0
        for position in range(len(instructions) - 1, -1, -1):
            for value in set(instructions[position].arguments):
                self._uses.setdefault(value, []).append(position)
        for value in (value for value in outputs if value in memory):
            self._emit(MOVE, memory[value], Register(0))
            self._emit(MOVE, Register(0), outputs[value])
        for self._position, one in enumerate(instructions):
            self._allocate(one)

    def _next_use(self, value: int) -> int:
        uses = self._uses.get(value)
        return uses[-1] if uses else NEVER

    def _allocate(self, one: Instruction) -> None:
        arguments = dict.fromkeys(one.arguments)
        for value in arguments:
            self._uses[value].pop()
        destination = self._destructive_destination if one.fused else self._destination
        register, locations = destination(one, arguments)
        self._encode(one, locations, register)
        for value in arguments:
            if self._next_use(value) == NEVER:
                self._release(value)
        if one.value in self._outputs:
            self._memory[one.value] = self._outputs[one.value]
            self._emit(MOVE, register, self._outputs[one.value])
        if self._next_use(one.value) == NEVER:
            self._free.append(register)
        else:
            self._registers[one.value] = register

    def _destination(self, one: Instruction, arguments: Iterable[int]) -> tuple[Register, dict[int, Operand]]:
        """A register for the result, possibly that of an argument that dies here; the arguments' locations."""
        locations = self._locations(one, arguments)
        last = next((v for v in arguments if v in self._registers and self._next_use(v) == NEVER), None)
        return self._take_register(arguments) if last is None else self._registers.pop(last), locations

    def _destructive_destination(
        self, one: Instruction, arguments: Iterable[int]
    ) -> tuple[Register, dict[int, Operand]]:
        """The register that a multiply–add overwrites, which holds one of its arguments; the arguments' locations."""
        held = [value for value in arguments if value in self._registers]
        last = next((value for value in held if self._next_use(value) == NEVER), None)
        if last is not None:
            locations = self._locations(one, arguments)
            return self._registers.pop(last), locations
        absent = [value for value in arguments if value not in self._registers]
        if absent:
            overwritten = max(absent, key=self._next_use)
            register = self._take_register(arguments)
            self._emit(MOVE, self._memory[overwritten], register)
            others = self._locations(one, [v for v in arguments if v != overwritten])
            return register, {**others, overwritten: register}
        locations = self._locations(one, arguments)
        overwritten = max(held, key=lambda value: (value in self._memory, self._next_use(value)))
        if overwritten in self._memory and self._next_use(overwritten) - self._position > tuning.NEAR_USE:
            return self._registers.pop(overwritten), locations
        register = self._take_register(arguments)
        self._emit(MOVE, self._registers[overwritten], register)
        return register, {**locations, overwritten: register}

    def _locations(self, one: Instruction, arguments: Iterable[int]) -> dict[int, Operand]:
        """The location of each argument; of those that are only in memory, all but one are loaded first."""
        absent = [value for value in arguments if value not in self._registers]
        able = [v for v in absent if one.arguments.count(v) == 1 and one.arguments.index(v) in one.from_memory]
        stays = max(able, key=self._next_use, default=None)
        if stays is not None and self._free and self._next_use(stays) - self._position < tuning.NEAR_USE:
            stays = None
        for value in absent:
            if value != stays:
                register = self._take_register(one.arguments)
                self._emit(MOVE, self._memory[value], register)
                self._registers[value] = register
        return {v: self._registers[v] if v in self._registers else self._memory[v] for v in arguments}

    def _take_register(self, pinned: Iterable[int]) -> Register:
        """A free register; if there is none, the value whose next use is farthest away is evicted."""
        if not self._free:
            value = max((value for value in self._registers if value not in pinned), key=self._distance)
            if value not in self._memory:
                self._memory[value] = Memory("spill", BYTES * self._take_spill_slot())
                self._emit(MOVE, self._registers[value], self._memory[value])
            self._free.append(self._registers.pop(value))
        return self._free.pop()

    def _distance(self, value: int) -> int:
        """The distance of a value's next use, weighted for eviction: more if the value need not be stored first."""
        return (self._next_use(value) - self._position) * (tuning.RELOAD_ADVANTAGE if value in self._memory else 1)

    def _take_spill_slot(self) -> int:
        if self._free_slots:
            return heappop(self._free_slots)
        self.spill_slots += 1
        return self.spill_slots - 1

    def _release(self, value: int) -> None:
        """Free the register and the spill slot of a dead value."""
        if value in self._registers:
            self._free.append(self._registers.pop(value))
        home = self._memory.get(value)
        if home is not None and home.array == "spill":
            heappush(self._free_slots, home.offset // BYTES)

    def _encode(self, one: Instruction, locations: dict[int, Operand], register: Register) -> None:
        """Emit the instruction with operands in AT&T order: a memory operand first, the result last."""
        operands = [locations[value] for value in one.arguments]
        if not one.fused:
            if one.from_memory == (0, 1):  # commutative
                operands.sort(key=lambda operand: isinstance(operand, Memory))
            self._emit(one.operation, *reversed(operands), register)
            return
        a, b, c = operands
        if c == register:
            a, b = (b, a) if isinstance(a, Memory) else (a, b)
            self._emit(one.operation.format(231), b, a, register)  # += a b
            return
        other = b if a == register else a
        if isinstance(c, Memory):
            self._emit(one.operation.format(213), c, other, register)
        else:
            self._emit(one.operation.format(132), other, c, register)

    def _emit(self, operation: str, *operands: Operand) -> None:
        self.lines.append((operation, operands))
