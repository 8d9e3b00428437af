"""The order and the registers of straight-line code: list scheduling, then register allocation.

List scheduling hides latencies and keeps register pressure low.

Register allocation: general compilers do badly on basic blocks of thousands of operations. Here one pass over the block
assigns a register to every value:

- the value whose next use is farthest away is evicted (Belady's rule), with a preference for values that are already in
  memory over those that have to be spilled;
- inputs, sines, cosines and constants stay in memory, from where an instruction can take one operand;
- a fused multiply–add overwrites an argument that is dead after it, if there is one.
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Iterable
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import NamedTuple

from armdyn.codegen import tuning
from armdyn.graph.passes import MalformedError, compiler_pass

# By the prefix of an instruction's mnemonic: latency in cycles, and the pair of execution ports that runs it.
LATENCY = {"vf": 4, "vmul": 3, "vadd": 3, "vsub": 3, "vperm": 4, "vdiv": 13, "vsqrt": 20}
PORT = {"vf": 0, "vmul": 0, "vdiv": 0, "vsqrt": 0, "vadd": 1, "vsub": 1, "vunpck": 2, "vperm": 2, "vpsll": 2}
ANY_PORT = 3


@dataclass(frozen=True)
class Instruction:
    """value = operation(arguments); one argument, at a position in `from_memory`, may be a memory operand."""

    value: int
    operation: str
    arguments: tuple[int, ...]
    from_memory: tuple[int, ...]

    @property
    def fused(self) -> bool:
        """Whether this is a fused multiply–add, which overwrites one of its arguments."""
        return self.operation.startswith("vf")

    @property
    def latency(self) -> int:
        """Cycles until the result is available."""
        return next((cycles for name, cycles in LATENCY.items() if self.operation.startswith(name)), 1)

    @property
    def port(self) -> int:
        """The execution ports that run it."""
        return next((port for name, port in PORT.items() if self.operation.startswith(name)), ANY_PORT)


def check_schedule(made: list[Instruction], given: list[Instruction]) -> None:
    """Raise an error unless the same instructions are there, each after those whose values it takes."""
    if sorted(map(repr, made)) != sorted(map(repr, given)):
        raise MalformedError("the schedule has lost or changed an instruction")
    computed, values = set[int](), {one.value for one in given}
    for one in made:
        early = [value for value in one.arguments if value in values and value not in computed]
        if early:
            raise MalformedError(f"{one} comes before the values {early} that it takes")
        computed.add(one.value)


@compiler_pass("schedule", counts=lambda made: f"{len(made)} instructions", check=check_schedule)
def list_schedule(instructions: list[Instruction]) -> list[Instruction]:
    """Reorder instructions to overlap their latencies with few live values; long code keeps its order."""
    if len(instructions) > tuning.LONGEST_SCHEDULED:
        return instructions
    state = _Schedule(instructions)
    return [instructions[state.issue(state.cheapest())] for _ in instructions]


class _Schedule:
    """The scheduler's state: ready instructions, when operands and execution ports are available, live values."""

    def __init__(self, instructions: list[Instruction]) -> None:
        self.arguments, self.users = _dependencies(instructions)
        self.latency = [one.latency for one in instructions]
        self.priority = [tuning.CRITICAL_PATH_WEIGHT * path for path in _critical_paths(self.latency, self.users)]
        self.pending_arguments = [len(arguments) for arguments in self.arguments]
        self.pending_users = [len(users) for users in self.users]
        self.operands_at = [0.0] * len(instructions)  # the cycle in which the last argument is available
        self.issued_at = [0] * len(instructions)  # position in the order
        self.ports = [one.port for one in instructions]
        self.port_free = [0.0] * (ANY_PORT + 1)
        self.ready = [k for k, count in enumerate(self.pending_arguments) if count == 0]
        self.live, self.issued = 0, 0

    def cheapest(self) -> int:
        """The ready instruction with the lowest cost, which is issued next.

        The cost is the earliest cycle in which the instruction can start, minus a bonus for its critical path, plus a
        penalty for live values that it adds, minus a bonus for arguments that were computed recently.
        """
        pressure = tuning.PRESSURE_WEIGHT * (1 + max(0, self.live - tuning.PRESSURE_FREE))
        most = 3 * (pressure + tuning.LOCALITY_WINDOW * tuning.LOCALITY_WEIGHT)  # the largest bonus of three arguments
        least, best = math.inf, -1
        recent = tuning.LOCALITY_WINDOW - self.issued
        operands_at, port_free, ports, priority = self.operands_at, self.port_free, self.ports, self.priority
        for k in self.ready:
            start, free = operands_at[k], port_free[ports[k]]
            cost = (start if start > free else free) - priority[k]
            if cost - most >= least:
                continue
            for argument in self.arguments[k]:
                if recent + self.issued_at[argument] > 0:
                    cost -= tuning.LOCALITY_WEIGHT * (recent + self.issued_at[argument])
            cost += pressure * self._pressure_change(k)
            if cost < least:
                least, best = cost, k
        return best

    def _pressure_change(self, k: int) -> int:
        """The change in the number of live values if an instruction is issued."""
        further = 1 if self.users[k] else 0
        for argument in self.arguments[k]:
            if self.pending_users[argument] == 1:
                further -= 1
        return further

    def issue(self, k: int) -> int:
        """Issue an instruction; returns its index."""
        self.ready.remove(k)
        port = self.ports[k]
        start = max(self.operands_at[k], self.port_free[port])
        self.port_free[port] = start + (0.25 if port == ANY_PORT else 0.5)
        self.live += self._pressure_change(k)
        self.issued_at[k] = self.issued
        self.issued += 1
        for argument in self.arguments[k]:
            self.pending_users[argument] -= 1
        for user in self.users[k]:
            self.pending_arguments[user] -= 1
            self.operands_at[user] = max(self.operands_at[user], start + self.latency[k])
            if self.pending_arguments[user] == 0:
                insort(self.ready, user)
        return k


def _dependencies(instructions: list[Instruction]) -> tuple[list[list[int]], list[list[int]]]:
    """The predecessors and the successors of each instruction, by index."""
    number = {one.value: k for k, one in enumerate(instructions)}
    arguments = [sorted({number[a] for a in one.arguments if a in number}) for one in instructions]
    users: list[list[int]] = [[] for _ in instructions]
    for k, of_one in enumerate(arguments):
        for argument in of_one:
            users[argument].append(k)
    return arguments, users


def _critical_paths(latency: list[int], users: list[list[int]]) -> list[float]:
    """The critical path of each instruction: cycles from its start to the end of the last that depends on it."""
    result = [0.0] * len(latency)
    for k in reversed(range(len(latency))):
        result[k] = latency[k] + max((result[user] for user in users[k]), default=0)
    return result


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


def check_allocation(
    made: Allocation, instructions: list[Instruction], memory: dict[int, Memory], outputs: dict[int, Memory]
) -> None:
    """Follow the values through registers and slots; raise an error where an instruction would take another value."""
    held: dict[Operand, int] = {home: value for value, home in memory.items()}
    waiting = iter(instructions)
    for operation, operands in made.lines:
        *sources, target = operands
        values = [held.get(source, NEVER) for source in sources]
        if operation == MOVE and len(sources) == 1:
            held[target] = values[0]
            continue
        one = next(waiting, None)
        if one is None:
            raise MalformedError(f"{operation} {operands} belongs to no instruction")
        if _taken(one, operation, values, held.get(target, NEVER)) != _orderless(one, list(one.arguments)):
            raise MalformedError(f"{one} takes the values {values}, in {operation} {operands}")
        held[target] = one.value
    wrong = [value for value, home in outputs.items() if held.get(home) != value]
    if wrong or next(waiting, None) is not None:
        raise MalformedError(f"the results {wrong} are not where they belong, or instructions are missing")


def _taken(one: Instruction, operation: str, values: list[int], target: int) -> list[int]:
    """The arguments that a line of assembly takes, in AT&T order; a multiply-add also takes its target."""
    if not one.fused:
        return _orderless(one, values[::-1])
    first, second = values
    if "231" in operation:
        return _orderless(one, [first, second, target])
    return _orderless(one, [target, second, first] if "213" in operation else [target, first, second])


def _orderless(one: Instruction, arguments: list[int]) -> list[int]:
    """The arguments, with the factors of a multiply-add, or what commutes, in ascending order."""
    if one.fused:
        return [*sorted(arguments[:2]), arguments[2]]
    return sorted(arguments) if one.from_memory == (0, 1) else arguments


@compiler_pass(
    "allocate",
    counts=lambda made: f"{len(made.lines)} lines, {made.spill_slots} spill slots",
    check=check_allocation,
)
def allocate(instructions: list[Instruction], memory: dict[int, Memory], outputs: dict[int, Memory]) -> Allocation:
    """The instructions with registers assigned."""
    return Allocation(instructions, memory, outputs)
