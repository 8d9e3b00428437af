"""Program -> straight-line AVX code, for x86 processors with fused multiply–adds.

A program of thousands of operations without a branch is what a general compiler is worst at: LLVM
spends a second on one and moves a number about for almost every operation. Here the order of the
program stays, and one pass over it gives every value its register:

- a register is taken from the value whose next use is farthest away (Belady's rule), which is stored
  first if memory does not hold it yet;
- inputs, sines, cosines and constants stay in memory, where an instruction takes one operand from;
- a fused multiply–add overwrites an operand that nobody needs any more, if there is one.

Long straight-line code runs as fast as its bytes can be fetched, so the busiest places in memory
get an address register near enough for a displacement of one byte instead of four.

The code stands in LLVM's function as one piece of inline assembly: calling conventions, object files
and everything around it remain LLVM's.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from heapq import heappop, heappush

from armdyn.backends.llvm_text import double
from armdyn.graph.node import Node

REGISTERS = 16
BYTES = 32  # of a vector
NEVER = 1 << 60
SOON = 24  # instructions within which a second use is worth a register that nobody else wants
WINDOW = 8  # vectors that displacements of one byte reach around an address
ADDRESSES = 11  # registers that hold addresses

Place = tuple[str, int]  # array and slot
Operand = int | Place  # a register or a place in memory


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


class Allocator:
    """Gives values their registers and writes the instructions down, one after the other."""

    def __init__(self, instructions: list[Instruction], homes: dict[int, Place], outputs: dict[int, int]) -> None:
        self.homes = dict(homes)  # value -> where memory holds it
        self.outputs = outputs  # value -> slot
        self.registers: dict[int, int] = {}  # value -> register
        self.free = list(range(REGISTERS))
        self.given_back: list[int] = []  # spill slots
        self.slots = 0
        self.lines: list[tuple[str, tuple[Operand, ...]]] = []
        self.uses: dict[int, list[int]] = {}  # the next one last
        for at in range(len(instructions) - 1, -1, -1):
            for value in set(instructions[at].arguments):
                self.uses.setdefault(value, []).append(at)
        for value in [value for value in outputs if value in homes]:
            self._emit("vmovapd", homes[value], 0)
            self._emit("vmovapd", 0, ("out", outputs[value]))
        for at, instruction in enumerate(instructions):
            self._do(at, instruction)

    def _next(self, value: int) -> int:
        uses = self.uses.get(value)
        return uses[-1] if uses else NEVER

    def _do(self, at: int, one: Instruction) -> None:
        arguments = dict.fromkeys(one.arguments)
        for value in arguments:
            self.uses[value].pop()
        if one.fused:
            destination, where = self._overwritten(at, one, arguments)
        else:
            where = self._operands(at, one, arguments)
            dying = (value for value in arguments if value in self.registers and self._next(value) == NEVER)
            last = next(dying, None)
            destination = self._take(arguments) if last is None else self.registers.pop(last)
        self._write(one, where, destination)
        for value in arguments:
            if self._next(value) == NEVER:
                self._forget(value)
        if one.value in self.outputs:
            self.homes[one.value] = ("out", self.outputs[one.value])
            self._emit("vmovapd", destination, self.homes[one.value])
        if self._next(one.value) == NEVER:
            self.free.append(destination)
        else:
            self.registers[one.value] = destination

    def _operands(self, at: int, one: Instruction, arguments: Iterable[int]) -> dict[int, Operand]:
        """Where each argument is read; what cannot be read from memory is loaded first."""
        absent = [value for value in arguments if value not in self.registers]
        able = [v for v in absent if one.arguments.count(v) == 1 and one.arguments.index(v) in one.from_memory]
        kept = max(able, key=self._next, default=None)
        if kept is not None and self.free and self._next(kept) - at < SOON:
            kept = None
        for value in absent:
            if value != kept:
                register = self._take(arguments)
                self._emit("vmovapd", self.homes[value], register)
                self.registers[value] = register
        return {value: self.registers.get(value, self.homes.get(value, -1)) for value in arguments}

    def _overwritten(self, at: int, one: Instruction, arguments: dict[int, None]) -> tuple[int, dict[int, Operand]]:
        """The register a multiply–add works in, with one of its arguments in it, and where the arguments are."""
        here = [value for value in arguments if value in self.registers]
        dying = [value for value in here if self._next(value) == NEVER]
        absent = [value for value in arguments if value not in self.registers]
        if not dying and absent:
            holder = max(absent, key=self._next)
            register = self._take(arguments)
            self._emit("vmovapd", self.homes[holder], register)
            where = self._operands(at, one, [value for value in arguments if value != holder])
            return register, {**where, holder: register}
        where = self._operands(at, one, arguments)
        if dying:
            holder = dying[0]
            return self.registers.pop(holder), where
        holder = max(here, key=lambda value: (value in self.homes, self._next(value)))
        if holder in self.homes and self._next(holder) - at > SOON:
            return self.registers.pop(holder), where
        register = self._take(arguments)
        self._emit("vmovapd", self.registers[holder], register)
        return register, {**where, holder: register}

    def _take(self, pinned: Iterable[int]) -> int:
        """A free register, if need be that of the value needed last."""
        if not self.free:
            value = max(
                (value for value in self.registers if value not in pinned),
                key=lambda value: (self._next(value), value in self.homes),
            )
            if value not in self.homes:
                self.homes[value] = ("spill", self._slot())
                self._emit("vmovapd", self.registers[value], self.homes[value])
            self.free.append(self.registers.pop(value))
        return self.free.pop()

    def _slot(self) -> int:
        if self.given_back:
            return heappop(self.given_back)
        self.slots += 1
        return self.slots - 1

    def _forget(self, value: int) -> None:
        """Give back what a value took that nobody needs any more."""
        if value in self.registers:
            self.free.append(self.registers.pop(value))
        array, slot = self.homes.get(value, ("", 0))
        if array == "spill":
            heappush(self.given_back, slot)

    def _write(self, one: Instruction, where: dict[int, Operand], destination: int) -> None:
        operands = [where[value] for value in one.arguments]
        if not one.fused:
            if "mul" in one.operation or "add" in one.operation:
                operands.sort(key=lambda operand: isinstance(operand, tuple))
            self._emit(one.operation, *reversed(operands), destination)
            return
        a, b, c = operands
        if c == destination:
            a, b = (b, a) if isinstance(a, tuple) else (a, b)
            self._emit(one.operation.format(231), b, a, destination)
            return
        other = b if a == destination else a
        if isinstance(c, tuple):
            self._emit(one.operation.format(213), c, other, destination)
        else:
            self._emit(one.operation.format(132), other, c, destination)

    def _emit(self, operation: str, *operands: Operand) -> None:
        self.lines.append((operation, operands))


def addresses(lines: list[tuple[str, tuple[Operand, ...]]]) -> list[Place]:
    """The arrays' busiest windows, each array's first among them: what an address register points into."""
    count: Counter[Place] = Counter()
    for _, operands in lines:
        for operand in operands:
            if isinstance(operand, tuple):
                count[operand[0], operand[1] // WINDOW] += 1
    arrays = dict.fromkeys(array for array, _ in count)
    chosen = [next(place for place, _ in count.most_common() if place[0] == array) for array in arrays]
    others = [place for place, _ in count.most_common() if place not in chosen]
    return chosen + others[: max(0, ADDRESSES - len(chosen))]


def text(lines: list[tuple[str, tuple[Operand, ...]]], windows: list[Place]) -> list[str]:
    """The instructions as assembly; `$k` is the register that points into the middle of window k."""
    index = {window: k for k, window in enumerate(windows)}
    bases = {array: index[array, window] for array, window in reversed(windows)}

    def spelled(operand: Operand) -> str:
        if isinstance(operand, int):
            return f"%ymm{operand}"
        array, slot = operand
        k = index.get((array, slot // WINDOW), bases[array])
        return f"{BYTES * (slot - WINDOW * windows[k][1]) - BYTES * WINDOW // 2}(${k})"

    return [f"{operation} {', '.join(map(spelled, operands))}" for operation, operands in lines]


# The sign of a multiply–add's product and of its addend -> the instruction; {} is the order of its operands.
FUSED = {
    (False, False): "vfmadd{}pd",
    (False, True): "vfmsub{}pd",
    (True, False): "vfnmadd{}pd",
    (True, True): "vfnmsub{}pd",
}
PLAIN = {"add": ("vaddpd", (0, 1)), "mul": ("vmulpd", (0, 1)), "sub": ("vsubpd", (1,)), "div": ("vdivpd", (1,))}
GREATER, LESS = "vcmppd $$30,", "vcmppd $$17,"  # ordered, and no NaN raises a flag
CHOOSE = "vblendvpd"  # (a, b, mask): b where the mask is set


class Lowering:
    """A program's operations as instructions; signs go into multiply–adds where they can."""

    def __init__(self, order: Iterable[Node], homes: dict[int, Place], outputs: Iterable[int]) -> None:
        self.homes = dict(homes)
        self.constants: dict[str, int] = {}  # a number's spelling -> slot
        self.instructions: list[Instruction] = []
        nodes = list(order)
        plain = {a.serial for node in nodes if node.op != "fma" for a in node.args} | set(outputs)
        self.fresh = max((node.serial for node in nodes), default=0)
        for node in nodes:
            if node.op == "const":
                self.homes[node.serial] = self._constant(float(node.value))
            elif node.serial not in self.homes and (node.op != "neg" or node.serial in plain):
                self._lower(node)

    def _lower(self, node: Node) -> None:
        arguments = tuple(a.serial for a in node.args)
        if node.op == "fma":
            (a, minus_a), (b, minus_b), (c, minus_c) = (_unsigned(argument) for argument in node.args)
            self._add(node.serial, FUSED[minus_a != minus_b, minus_c], (a, b, c), (0, 1, 2))
        elif node.op in PLAIN:
            operation, from_memory = PLAIN[node.op]
            self._add(node.serial, operation, arguments, from_memory)
        elif node.op == "neg":
            self._add(node.serial, "vxorpd", (*arguments, self._number(-0.0)), (1,))
        elif node.op == "sqrt":
            self._add(node.serial, "vsqrtpd", arguments, (0,))
        elif node.op == "sign":
            (x,), zero = arguments, self._number(0.0)
            value = self._add(None, CHOOSE, (x, self._number(1.0), self._add(None, GREATER, (x, zero), (1,))), (1,))
            less = self._add(None, LESS, (x, zero), (1,))
            self._add(node.serial, CHOOSE, (value, self._number(-1.0), less), (1,))
        else:
            greater = self._add(None, GREATER, (*arguments, self._number(0.0)), (1,))
            self._add(node.serial, CHOOSE, (self._number(math.nan), self._number(1.0), greater), (1,))

    def _add(self, value: int | None, operation: str, arguments: tuple[int, ...], from_memory: tuple[int, ...]) -> int:
        if value is None:
            self.fresh += 1
            value = self.fresh
        self.instructions.append(Instruction(value, operation, arguments, from_memory))
        return value

    def _number(self, x: float) -> int:
        """A constant that no node is."""
        self.fresh += 1
        self.homes[self.fresh] = self._constant(x)
        return self.fresh

    def _constant(self, x: float) -> Place:
        return "constants", self.constants.setdefault(double(x), len(self.constants))


def _unsigned(node: Node) -> tuple[int, bool]:
    return (node.args[0].serial, True) if node.op == "neg" else (node.serial, False)
