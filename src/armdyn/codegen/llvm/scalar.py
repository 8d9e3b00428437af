"""Programs as scalar C functions in LLVM IR, which call nothing but their own sine and cosine.

``void name(const T *input, ..., T *output, ...)`` with T double or float, as the C header declares it; the arrays must
not overlap. A module of such functions has no undefined symbols on a processor with hardware support for T.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from armdyn.codegen.contract import contract
from armdyn.codegen.llvm.ir import Slot, Writer, double, function
from armdyn.codegen.llvm.straight_line import Emitter, ancestors, trig_layers
from armdyn.codegen.llvm.trig import DOUBLE, TRIG, Tables
from armdyn.graph.node import Node
from armdyn.graph.program import Program


@dataclass(frozen=True)
class Precision:
    """A floating-point type: its name in C and LLVM, its size in bytes, and the tables of its sine and cosine.

    The other fields describe the reduction of large angles (`scalar_trig`): bits of the significand after the leading
    one, 32-bit words of 2/π in one product, and zero words before the first word of 2/π in its table.
    """

    kind: str
    size: int
    tables: Tables
    significand: int
    words: int
    zero_words: int

    @property
    def exponents(self) -> int:
        """The largest biased exponent, that of infinities and NaN."""
        return (1 << (8 * self.size - 1 - self.significand)) - 1

    @property
    def bias(self) -> int:
        """Biased exponent minus this = exponent of the number's least significant bit."""
        return self.exponents // 2 + self.significand


def _hexadecimal(*numbers: str) -> tuple[float, ...]:
    return tuple(map(float.fromhex, numbers))


# Minimax in relative error on ±π/4; coefficients are rounded one by one and the remaining ones refitted: 2⁻²⁷·⁹ for the
# sine, 2⁻³³ for the cosine. The parts of π/2 have 24 bits each.
SINGLE = Tables(
    rounder=1.5 * 2.0**23,
    half_pi=_hexadecimal("0x1.921fb6p+0", "-0x1.777a5cp-25", "-0x1.ee59dap-50"),
    sine=_hexadecimal("-0x1.555546p-3", "0x1.110778p-7", "-0x1.995402p-13"),
    cosine=_hexadecimal("0x1p+0", "-0x1p-1", "0x1.55554ap-5", "-0x1.6c0c28p-10", "0x1.99e80cp-16"),
    sign_bit=31,
)
PRECISIONS = {
    "double": Precision("double", 8, DOUBLE, significand=52, words=6, zero_words=2),
    "float": Precision("float", 4, SINGLE, significand=23, words=3, zero_words=1),
}


class ScalarWriter(Writer):
    """Builds the body of a scalar function."""

    def __init__(self, precision: Precision) -> None:
        super().__init__(1)
        self.precision = precision
        self.vector = precision.kind
        self.bits = f"i{8 * precision.size}"
        self.mask = "i1"
        self.suffix = f"f{8 * precision.size}"

    def constant(self, value: float | Fraction) -> str:
        """A number rounded to the precision; LLVM writes single-precision literals with the digits of a double."""
        return double(float(np.float32(float(value)))) if self.precision.size == 4 else double(value)

    def integer(self, value: int) -> str:
        """An integer."""
        return str(value)

    def load(self, pointer: str, slot: int) -> str:
        """Load the number at an index of an array."""
        size = self.precision.size
        return self.let(f"load {self.vector}, ptr {self.at(pointer, slot * size)}, align {size}")

    def store(self, value: str, pointer: str, slot: int) -> None:
        """Store a number at an index of an array."""
        size = self.precision.size
        self.do(f"store {self.vector} {value}, ptr {self.at(pointer, slot * size)}, align {size}")


def scalar_function(name: str, program: Program, precision: Precision, sine_cosine: str) -> str:
    """LLVM IR of a program as the C function `name`, which calls the function `sine_cosine` for each angle.

    Each function has its own table of constants: LLVM would merge them into one pool, of which a linker cannot discard
    the unused parts.
    """
    contracted = contract(program)
    w = ScalarWriter(precision)
    w.label("entry")
    constants = dict.fromkeys(node.value for node in contracted.order if node.op == "const")
    places = {value: place for place, value in enumerate(constants)}

    def constant(node: Node) -> str:
        return w.load(f"@{name}_constants", places[node.value])

    inputs = {
        node.serial: Slot(f"%in{k}", place)
        for k, port in enumerate(contracted.inputs)
        for place, node in enumerate(port.nodes)
    }
    emit = Emitter(w, True, inputs, constant)
    for level, angles in enumerate(trig_layers(contracted)):
        _sines(w, emit, angles, f"trig{level}", contracted, sine_cosine)
    _straight_line(w, emit, contracted, constant)
    w.do("ret void")
    arguments = [f"ptr noalias readonly %in{k}" for k in range(len(contracted.inputs))]
    arguments += [f"ptr noalias writeonly %out{k}" for k in range(len(contracted.outputs))]
    head = f'void @{name}({", ".join(arguments)}) #0 section ".text.{name}"'
    rows = ", ".join(f"{w.vector} {w.constant(value)}" for value in places)
    data = (
        f"@{name}_constants = internal constant [{len(places)} x {w.vector}] [{rows}], "
        f'section ".rodata.{name}", align {precision.size}\n'
    )
    return (data if places else "") + function(head, w.lines)


def _sines(
    w: ScalarWriter, emit: Emitter, angles: tuple[Node, ...], results: str, program: Program, sine_cosine: str
) -> None:
    """Write the sines and cosines of some angles to the stack, in pairs."""
    size = w.precision.size
    w.lines.insert(1, f"  %{results} = alloca [{2 * len(angles)} x {w.vector}], align {size}")
    number = {angle.serial: k for k, angle in enumerate(angles)}
    for k, angle in enumerate(angles):
        for node in ancestors(angle):
            emit.value(node)
        place = w.at(f"%{results}", 2 * k * size)
        w.do(f"call void @{sine_cosine}({w.vector} {emit.value(angle)}, ptr {place})")
    for node in program.order:
        if node.op in TRIG and node.args[0].serial in number:
            emit.locations[node.serial] = Slot(f"%{results}", 2 * number[node.args[0].serial] + TRIG.index(node.op))


def _straight_line(w: ScalarWriter, emit: Emitter, program: Program, constant: Callable[[Node], str]) -> None:
    """Write all other nodes in the program's order; a result is stored as soon as it is computed."""
    wanted: dict[int, list[Slot]] = {}
    for k, port in enumerate(program.outputs):
        for place, node in enumerate(port.nodes):
            wanted.setdefault(node.serial, []).append(Slot(f"%out{k}", place))
    for node in program.order:
        slots = wanted.get(node.serial, [])
        if node.op == "const":
            for slot in slots:
                w.store(constant(node), *slot)
        elif node.op != "input" or slots:
            name = emit.value(node)
            for slot in slots:
                w.store(name, *slot)


def intrinsics(precision: Precision) -> str:
    """The declarations and metadata that the functions of a module may use."""
    kind, suffix = precision.kind, f"f{8 * precision.size}"
    return (
        f"declare {kind} @llvm.fma.{suffix}({kind}, {kind}, {kind})\n"
        f"declare {kind} @llvm.sqrt.{suffix}({kind})\n"
        "declare i32 @llvm.fshl.i32(i32, i32, i32)\n"
        '!0 = !{!"branch_weights", i32 1, i32 1000000}\n'
    )
