"""List scheduling: an order of instructions that hides their latencies and keeps register pressure low."""

from __future__ import annotations

import math
from bisect import insort
from dataclasses import dataclass

from armdyn.codegen import tuning

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
