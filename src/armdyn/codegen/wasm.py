"""Programs as a self-contained WebAssembly module, written directly in the binary format.

A module imports nothing. It exports its `memory`, one function per program, and `heap`, the first free byte of the
memory. A function takes one address (a multiple of 8) per input and per output: float64 arrays in C order, as in the C
output. Sine and cosine are our own, so that results are bitwise the same in every browser. WebAssembly has no fused
multiply–add, so the last bits may differ from those of compiled kernels.

A program's graph maps almost directly to the code of a stack machine: arguments are pushed before their users, and a
value that is used more than once is kept in a local variable. Register allocation is left to the browser.
The format is that of the WebAssembly Core Specification 1.0, section 5, and functions with two results (1.1).

The classical Runge-Kutta method is a function of such a module: one call advances a state by many steps. The state is
in the module's memory and is overwritten. The arithmetic of a stage is a program like any other, traced for the number
of joints, so that only the sequence of calls is written here.
"""

from __future__ import annotations

import math
import struct
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from armdyn.codegen.llvm.trig import COSINE, HALF_PI_PLAIN, LIMIT, ROUNDER, SINE, TWO_OVER_PI
from armdyn.graph import Node, Program

PAGE = 65536  # bytes
I32, I64, F64 = b"\x7f", b"\x7e", b"\x7c"
SECTIONS = {"type": 1, "function": 3, "memory": 5, "global": 6, "export": 7, "code": 10}
EXPORTED = {"function": b"\x00", "memory": b"\x02", "global": b"\x03"}
OPCODES = {
    "end": 0x0B, "call": 0x10, "select": 0x1B, "local.get": 0x20, "local.set": 0x21, "local.tee": 0x22,
    "f64.load": 0x2B, "f64.store": 0x39, "i32.const": 0x41, "i64.const": 0x42, "f64.const": 0x44,
    "f64.ne": 0x62, "f64.gt": 0x64, "f64.le": 0x65, "i64.add": 0x7C, "i64.and": 0x83, "i64.xor": 0x85, "i64.shl": 0x86,
    "f64.abs": 0x99, "f64.neg": 0x9A, "f64.sqrt": 0x9F, "f64.add": 0xA0, "f64.sub": 0xA1, "f64.mul": 0xA2,
    "f64.div": 0xA3, "f64.copysign": 0xA6, "i32.wrap_i64": 0xA7, "i64.reinterpret_f64": 0xBD,
    "f64.reinterpret_i64": 0xBF, "loop": 0x03, "if": 0x04, "br_if": 0x0D, "i32.sub": 0x6B,
}  # fmt: skip
ARITHMETIC = {op: f"f64.{op}" for op in ("add", "sub", "mul", "div", "neg", "sqrt")}
SINE_COSINE = 0  # the index of the first function


def unsigned(x: int) -> bytes:
    """Unsigned LEB128: seven bits per byte, the lowest first."""
    out = bytearray()
    while x > 0x7F:
        out.append(x & 0x7F | 0x80)
        x >>= 7
    return bytes([*out, x])


def signed(x: int) -> bytes:
    """Signed LEB128."""
    out = bytearray()
    while not -64 <= x < 64:
        out.append(x & 0x7F | 0x80)
        x >>= 7
    return bytes([*out, x & 0x7F])


def _vector(items: Sequence[bytes]) -> bytes:
    return unsigned(len(items)) + b"".join(items)


def _name(text: str) -> bytes:
    encoded = text.encode()
    return unsigned(len(encoded)) + encoded


@dataclass
class WasmFunction:
    """A function being written: its signature, its local variables and its instructions."""

    takes: tuple[bytes, ...]
    gives: tuple[bytes, ...] = ()
    kinds: list[bytes] = field(default_factory=list)  # of the local variables after the arguments
    code: bytearray = field(default_factory=bytearray)

    def local(self, kind: bytes = F64) -> int:
        """The index of a new local variable."""
        self.kinds.append(kind)
        return len(self.takes) + len(self.kinds) - 1

    def do(self, name: str, *immediates: int | float) -> None:
        """Append an instruction; immediates of constants are signed, all others (indices and offsets) unsigned."""
        self.code.append(OPCODES[name])
        if name == "f64.const":
            self.code += struct.pack("<d", *immediates)
        else:
            write = signed if name.endswith(".const") else unsigned
            self.code += b"".join(write(int(x)) for x in immediates)

    def load(self, address: int, k: int) -> None:
        """Push the k-th number of the array whose address is an argument."""
        self.do("local.get", address)
        self.do("f64.load", 3, 8 * k)

    @property
    def signature(self) -> bytes:
        """The entry of the type section."""
        return b"\x60" + _vector(self.takes) + _vector(self.gives)

    @property
    def body(self) -> bytes:
        """The entry of the code section."""
        runs: list[tuple[int, bytes]] = []
        for kind in self.kinds:
            if runs and runs[-1][1] == kind:
                runs[-1] = (runs[-1][0] + 1, kind)
            else:
                runs.append((1, kind))
        text = _vector([unsigned(count) + kind for count, kind in runs]) + bytes(self.code) + bytes([OPCODES["end"]])
        return unsigned(len(text)) + text


def module(
    programs: Mapping[str, Program], further: Mapping[str, WasmFunction] | None = None, scratch: int = 0
) -> bytes:
    """A module that exports every program under its name, followed by the `further` functions.

    A name that starts with an underscore is not exported. The functions are in the order of the mappings, after
    sine and cosine: `further` ones call programs by their index, and may use the first `scratch` bytes of the memory.
    """
    written = {**{name: _function(program) for name, program in programs.items()}, **(further or {})}
    functions = [sine_cosine(), *written.values()]
    signatures = list(dict.fromkeys(function.signature for function in functions))
    names = [
        _name(name) + EXPORTED["function"] + unsigned(k)
        for k, name in enumerate(written, SINE_COSINE + 1)
        if not name.startswith("_")
    ]
    names += [_name("memory") + EXPORTED["memory"] + b"\x00", _name("heap") + EXPORTED["global"] + b"\x00"]
    heap = I32 + b"\x00" + bytes([OPCODES["i32.const"]]) + signed(scratch) + bytes([OPCODES["end"]])
    sections = {
        "type": _vector(signatures),
        "function": _vector([unsigned(signatures.index(function.signature)) for function in functions]),
        "memory": _vector([b"\x00" + unsigned(_pages(programs.values(), scratch))]),
        "global": _vector([heap]),
        "export": _vector(names),
        "code": _vector([function.body for function in functions]),
    }
    encoded = [bytes([SECTIONS[key]]) + unsigned(len(text)) + text for key, text in sections.items()]
    return b"\0asm\1\0\0\0" + b"".join(encoded)


def _pages(programs: Iterable[Program], scratch: int) -> int:
    """Pages of memory for the inputs and outputs of all programs at once."""
    numbers = sum(len(port.nodes) for program in programs for port in (*program.inputs, *program.outputs))
    return math.ceil((scratch + 8 * numbers) / PAGE) or 1


def sine_cosine() -> WasmFunction:
    """`x -> sin x, cos x`, by the reduction and the polynomials of `llvm.trig`; NaN where |x| > `LIMIT`."""
    f = WasmFunction((F64,), (F64, F64))
    x, r, z, sine, cosine, quadrant = 0, f.local(), f.local(), f.local(), f.local(), f.local(I64)
    for name, *immediates in (
        *(("local.get", x), ("f64.const", math.nan), ("local.get", x), ("f64.abs",), ("f64.const", LIMIT)),
        *(("f64.le",), ("select",), ("local.tee", r)),
        *(("f64.const", TWO_OVER_PI), ("f64.mul",), ("f64.const", ROUNDER), ("f64.add",), ("local.tee", z)),
        *(("i64.reinterpret_f64",), ("local.set", quadrant)),
        *(("local.get", z), ("f64.const", ROUNDER), ("f64.sub",), ("local.set", z)),  # the multiple of π/2
    ):
        f.do(name, *immediates)
    for part in HALF_PI_PLAIN:
        f.do("local.get", r)
        f.do("local.get", z)
        f.do("f64.const", part)
        f.do("f64.mul")
        f.do("f64.sub")
        f.do("local.set", r)
    for name, *immediates in (("local.get", r), ("local.get", r), ("f64.mul",), ("local.set", z)):
        f.do(name, *immediates)
    _horner(f, SINE, z)
    for name, *immediates in (
        *(("local.get", z), ("local.get", r), ("f64.mul",), ("f64.mul",)),
        *(("local.get", r), ("f64.add",), ("local.set", sine)),
    ):
        f.do(name, *immediates)
    _horner(f, COSINE, z)
    f.do("local.set", cosine)
    for one, other, ahead in ((sine, cosine, 0), (cosine, sine, 1)):
        _turned(f, one, other, quadrant, ahead)
    return f


def _horner(f: WasmFunction, coefficients: Sequence[float], z: int) -> None:
    *lower, highest = coefficients
    f.do("f64.const", highest)
    for coefficient in reversed(lower):
        f.do("local.get", z)
        f.do("f64.mul")
        f.do("f64.const", coefficient)
        f.do("f64.add")


def _turned(f: WasmFunction, one: int, other: int, quadrant: int, ahead: int) -> None:
    """Push the value for the quadrant: the other one if it is odd, negated if its second bit is set."""
    for name, *immediates in (
        *(("local.get", other), ("local.get", one)),
        *(("local.get", quadrant), ("i64.const", 1), ("i64.and",), ("i32.wrap_i64",), ("select",)),
        *(("i64.reinterpret_f64",), ("local.get", quadrant), ("i64.const", ahead), ("i64.add",)),
        *(("i64.const", 2), ("i64.and",), ("i64.const", 62), ("i64.shl",), ("i64.xor",), ("f64.reinterpret_i64",)),
    ):
        f.do(name, *immediates)


def _function(program: Program) -> WasmFunction:
    """A program as a function of addresses: inputs first, then outputs."""
    ports = (*program.inputs, *program.outputs)
    writer = _Writer(program, WasmFunction((I32,) * len(ports)))
    for address, port in enumerate(program.outputs, len(program.inputs)):
        for k, node in enumerate(port.nodes):
            writer.function.do("local.get", address)
            writer.push(node)
            writer.function.do("f64.store", 3, 8 * k)
    return writer.function


class _Writer:
    """Writes the instructions that push a node's value, and tracks which nodes are in local variables."""

    def __init__(self, program: Program, function: WasmFunction) -> None:
        self.function = function
        self.inputs = {
            node.serial: (at, k) for at, port in enumerate(program.inputs) for k, node in enumerate(port.nodes)
        }
        self.uses: Counter[int] = Counter(arg.serial for node in program.order for arg in node.args)
        self.uses.update(node.serial for port in program.outputs for node in port.nodes)
        self.kept: dict[int, int] = {}  # serial of a node -> its local variable
        # Sine and cosine of the same angle are computed together: the other node of each pair.
        angles = {(node.op, node.args[0].serial): node for node in program.order if node.op in ("sin", "cos")}
        self.pair = {
            node.serial: angles.get(("cos" if op == "sin" else "sin", angle)) for (op, angle), node in angles.items()
        }

    def push(self, node: Node) -> None:
        """Push the value of a node on the stack; iterative, since graphs are too deep for recursion."""
        work = [(node, False)]
        while work:
            node, has_arguments = work.pop()
            if node.serial in self.kept:
                self.function.do("local.get", self.kept[node.serial])
            elif has_arguments or not node.args:
                self._value(node)
                if self.uses[node.serial] > 1 and node.serial not in self.kept:
                    self.kept[node.serial] = self.function.local()
                    self.function.do("local.tee", self.kept[node.serial])
            else:
                work.append((node, True))
                work.extend((argument, False) for argument in reversed(node.args))

    def _value(self, node: Node) -> None:
        """The instruction of one node, whose arguments are on the stack."""
        f = self.function
        if node.op == "const":
            f.do("f64.const", float(node.value))
        elif node.op == "input":
            f.load(*self.inputs[node.serial])
        elif node.op in ("sin", "cos"):
            self._sine_cosine(node)
        elif node.op in ("sign", "positive"):
            x = f.local()
            f.do("local.set", x)
            _SELECTED[node.op](f, x)
        else:
            f.do(ARITHMETIC[node.op])

    def _sine_cosine(self, node: Node) -> None:
        f, other = self.function, self.pair[node.serial]
        f.do("call", SINE_COSINE)
        sine, cosine = f.local(), f.local()
        f.do("local.set", cosine)
        f.do("local.set", sine)
        own, others = (sine, cosine) if node.op == "sin" else (cosine, sine)
        self.kept[node.serial] = own
        if other is not None:
            self.kept[other.serial] = others
        f.do("local.get", own)


def _sign(f: WasmFunction, x: int) -> None:
    """1 with the sign of x, or x itself where that is zero."""
    for name, *immediates in (
        *(("f64.const", 1.0), ("local.get", x), ("f64.copysign",), ("local.get", x)),
        *(("local.get", x), ("f64.const", 0.0), ("f64.ne",), ("select",)),
    ):
        f.do(name, *immediates)


def _positive(f: WasmFunction, x: int) -> None:
    """1 where x > 0, NaN elsewhere."""
    for name, *immediates in (
        *(("f64.const", 1.0), ("f64.const", math.nan)),
        *(("local.get", x), ("f64.const", 0.0), ("f64.gt",), ("select",)),
    ):
        f.do(name, *immediates)


_SELECTED = {"sign": _sign, "positive": _positive}


def can_be_stepped(program: Program) -> bool:
    """Whether a program gives the accelerations of coordinates `q` and velocities `qd`."""
    names = [port.name for port in program.inputs]
    return names[:2] == ["q", "qd"] and [(p.name, p.shape) for p in program.outputs] == [
        ("qdd", program.inputs[1].shape)
    ]


@dataclass(frozen=True)
class StepFunction:
    """What a module needs besides `program` to integrate it: the programs of the stages, one function, scratch memory.

    `advance(q, qd, ..., step, count)` takes the addresses of the program's inputs, the step in seconds and the number
    of steps. `index` is the program's index among the module's programs, `first` that of the first program added here.
    """

    program: Program
    index: int
    first: int
    stages: Sequence[Program]  # the arithmetic between the evaluations, and at the end of a step
    rates: Program | None = None  # of coordinates whose rates differ from the velocities, such as a quaternion

    @property
    def sizes(self) -> tuple[int, int]:
        """The numbers of coordinates and of velocities."""
        q, qd, *_ = self.program.inputs
        return len(q.nodes), len(qd.nodes)

    @property
    def room(self) -> tuple[list[int], list[int], list[int], list[int]]:
        """Scratch addresses: coordinates and velocities of the stages after the first, accelerations, rates."""
        (nq, nv), count = self.sizes, len(self.stages)
        at, places = 0, []
        for k, size in ((count - 1, nq), (count - 1, nv), (count, nv), (count if self.rates else 0, nq)):
            places.append([at + 8 * size * i for i in range(k)])
            at += 8 * size * k
        positions, velocities, accelerations, rates = places
        return positions, velocities, accelerations, rates

    @property
    def scratch(self) -> int:
        """Bytes: the stages, and the step's length."""
        (nq, nv), count = self.sizes, len(self.stages)
        return 8 * ((count - 1) * (nq + nv) + count * (nv + (nq if self.rates else 0)) + 1)

    @property
    def programs(self) -> dict[str, Program]:
        """The arithmetic of the stages, and of the coordinates."""
        made = {f"_{program.name}": program for program in self.stages}
        return made | ({"_rates": self.rates} if self.rates else {})

    @property
    def advance(self) -> WasmFunction:
        """The loop over steps."""
        count = len(self.program.inputs)
        f = WasmFunction((*(I32,) * count, F64, I32))
        step, left = count, count + 1
        length = self.scratch - 8
        f.do("i32.const", length)
        f.do("local.get", step)
        f.do("f64.store", 3, 0)
        f.do("local.get", left)
        f.do("if", 0x40)
        f.do("loop", 0x40)
        self._step(f, length)
        for name, *immediates in (
            *(("local.get", left), ("i32.const", 1), ("i32.sub",), ("local.tee", left)),
            *(("br_if", 0), ("end",), ("end",)),
        ):
            f.do(name, *immediates)
        return f

    def _step(self, f: WasmFunction, length: int) -> None:
        """One step: an evaluation per stage, and the program that goes on from there.

        The end of the step overwrites q and qd: velocities are written after the coordinates, and entries that others
        depend on (those of a quaternion) are read before any of them is written.
        """
        positions, velocities, accelerations, rates = self.room
        here: list[tuple[str, int]] = [("local.get", 0), ("local.get", 1)]
        others = [("local.get", k) for k in range(2, len(self.program.inputs))]
        at, slopes = here, []
        for k in range(len(self.stages)):
            self._call(f, self.index, [*at, *others, ("i32.const", accelerations[k])])
            if self.rates:
                self._call(f, self.first + len(self.stages), [*at, ("i32.const", rates[k])])
            slopes += [("i32.const", rates[k]) if self.rates else at[1], ("i32.const", accelerations[k])]
            last = k == len(self.stages) - 1
            at = here if last else [("i32.const", positions[k]), ("i32.const", velocities[k])]
            self._call(f, self.first + k, [*here, *slopes, ("i32.const", length), *at])

    @staticmethod
    def _call(f: WasmFunction, program: int, addresses: list[tuple[str, int]]) -> None:
        for name, address in addresses:
            f.do(name, address)
        f.do("call", SINE_COSINE + 1 + program)


def with_steps(
    programs: dict[str, Program], key: str, stages: Sequence[Program], rates: Program | None = None
) -> tuple[dict[str, Program], dict[str, WasmFunction], int]:
    """The arguments of `module` for these programs and `advance`, which integrates the one called `key`."""
    stepper = StepFunction(programs[key], list(programs).index(key), len(programs), stages, rates)
    return {**programs, **stepper.programs}, {"advance": stepper.advance}, stepper.scratch


__all__ = ["StepFunction", "can_be_stepped", "with_steps"]
