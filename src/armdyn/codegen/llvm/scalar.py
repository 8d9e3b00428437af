"""Programs as scalar C functions in LLVM IR, which call nothing but their own sine and cosine.

``void name(const T *input, ..., T *output, ...)`` with T double or float, as the C header declares it; the arrays must
not overlap. A module of such functions has no undefined symbols on a processor with hardware support for T.

Sine and cosine are accurate at every finite angle, without the C library. Up to `trig.LIMIT` the argument reduction is
that of the vector code. Beyond, the angle's significand is multiplied by the relevant bits of 2/π (Payne & Hanek,
Radian reduction for trigonometric functions, SIGNUM Newsletter 18, 1983), in 32-bit words: multiples of 4 quarter turns
are never computed, and the upper two bits of the product are the number of quarter turns. The truncation error is 2⁻¹³⁷
of a quarter turn in double precision (2⁻⁷⁰ in single), and no number of that precision is closer to a multiple of π/2
than about 2⁻⁶¹ (2⁻³⁰). Infinities and NaN give NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from armdyn.codegen.llvm.ir import Slot, VectorType, Writer, function, literal
from armdyn.codegen.llvm.straight_line import Emitter, ancestors, contract, trig_layers
from armdyn.codegen.llvm.trig import DOUBLE, LIMIT, SINGLE, TRIG, Tables, as_integer, reduced, turned
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


PRECISIONS = {
    "double": Precision("double", 8, DOUBLE, significand=52, words=6, zero_words=2),
    "float": Precision("float", 4, SINGLE, significand=23, words=3, zero_words=1),
}


class ScalarWriter(Writer):
    """Builds the body of a scalar function."""

    def __init__(self, precision: Precision) -> None:
        super().__init__(VectorType(1, precision.kind))
        self.precision = precision
        self.vector = precision.kind
        self.bits = f"i{8 * precision.size}"
        self.mask = "i1"
        self.suffix = f"f{8 * precision.size}"

    def constant(self, value: float | Fraction) -> str:
        """A number rounded to the precision."""
        return literal(self.number, value)

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


def scalar_trig(name: str, precision: Precision) -> str:
    """LLVM IR of ``void name(T x, T *out)``, sine and cosine of x, and of the argument reduction for large angles."""
    return _table(name, precision) + _sine_cosine(name, precision) + _reduction(name, precision)


def _sine_cosine(name: str, precision: Precision) -> str:
    w, kind = ScalarWriter(precision), precision.kind
    w.label("entry")
    upper, limit = _upper(w, "%x"), as_integer(kind, LIMIT) >> (8 * precision.size - 32)
    magnitude = w.let(f"and i32 {upper}, {0x7FFFFFFF}")
    w.do(f"br i1 {w.let(f'icmp uge i32 {magnitude}, {limit}')}, label %far, label %near, !prof !0")
    w.label("near")
    near, quarter = reduced(w, True, "%x", precision.tables)
    w.do("br label %both")
    w.label("far")
    large = w.let(f"call {w.bits} @{name}_reduction({kind} %x, ptr %out)")
    rest = w.load("%out", 0)
    w.do("br label %both")
    w.label("both")
    r = w.let(f"phi {kind} [{near}, %near], [{rest}, %far]")
    quadrant = w.let(f"phi {w.bits} [{quarter}, %near], [{large}, %far]")
    for slot, value in enumerate(turned(w, True, r, quadrant, precision.tables)):
        w.store(value, "%out", slot)
    w.do("ret void")
    head = f'internal void @{name}({kind} %x, ptr noalias %out) noinline #0 section ".text.{name}"'
    return function(head, w.lines)


def _upper(w: ScalarWriter, x: str) -> str:
    """The upper 32 bits of a number, which contain its sign and exponent."""
    bits = w.let(f"bitcast {w.vector} {x} to {w.bits}")
    return bits if w.precision.size == 4 else w.let(f"trunc i64 {w.let(f'lshr i64 {bits}, 32')} to i32")


def _reduction(name: str, precision: Precision) -> str:
    """``bits name_reduction(T x, T *r)``: the number of quarter turns, and the reduced argument."""
    w, kind = ScalarWriter(precision), precision.kind
    w.label("entry")
    upper = _upper(w, "%x")
    fraction = precision.significand % 32  # bits of the significand in the upper word
    exponent = w.let(f"and i32 {w.let(f'lshr i32 {upper}, {fraction}')}, {precision.exponents}")
    w.do(f"br i1 {w.let(f'icmp eq i32 {exponent}, {precision.exponents}')}, label %none, label %finite")
    w.label("none")
    w.store(w.let(f"fsub {kind} %x, %x"), "%r", 0)
    w.do(f"ret {w.bits} 0")
    w.label("finite")
    high = w.let(f"or i32 {w.let(f'and i32 {upper}, {2**fraction - 1}')}, {2**fraction}")
    low = [w.let(f"trunc i64 {w.let('bitcast double %x to i64')} to i32")] if precision.size == 8 else []
    product = _product(w, _window(w, name, exponent), [*low, high])
    r, quarters = _split(w, product)
    negative = w.let(f"icmp slt i32 {upper}, 0")
    w.store(w.let(f"select i1 {negative}, {kind} {w.let(f'fneg {kind} {r}')}, {kind} {r}"), "%r", 0)
    turns = w.let(f"select i1 {negative}, i32 {w.let(f'sub i32 0, {quarters}')}, i32 {quarters}")
    w.do(f"ret {w.bits} {w.let(f'zext i32 {turns} to i64') if precision.size == 8 else turns}")
    attributes = f'noinline cold #0 section ".text.{name}"'
    head = f"internal {w.bits} @{name}_reduction({kind} %x, ptr noalias %r) {attributes}"
    return function(head, w.lines)


def _window(w: ScalarWriter, name: str, exponent: str) -> list[str]:
    """The relevant words of 2/π, the lowest first: higher words contribute multiples of 4 quarter turns."""
    words = w.precision.words
    skip = w.let(f"add i32 {exponent}, {32 * w.precision.zero_words - 2 - w.precision.bias}")
    first = w.let(f"zext i32 {w.let(f'lshr i32 {skip}, 5')} to i64")
    shift = w.let(f"and i32 {skip}, 31")
    start = w.let(f"getelementptr i32, ptr @{name}_bits, i64 {first}")
    taken = [w.let(f"load i32, ptr {w.at(start, 4 * k)}, align 4") for k in range(words + 1)]
    shifted = [w.let(f"call i32 @llvm.fshl.i32(i32 {taken[k]}, i32 {taken[k + 1]}, i32 {shift})") for k in range(words)]
    return shifted[::-1]


def _product(w: ScalarWriter, bits: list[str], significand: list[str]) -> list[str]:
    """The words of the product, the lowest first; words above the window are not computed."""
    wide = [w.let(f"zext i32 {word} to i64") for word in bits]
    total: list[str | None] = [None] * len(bits)
    for row, word in enumerate(significand):
        factor = w.let(f"zext i32 {word} to i64")
        carry: str | None = None
        for k in range(row, len(bits)):
            value = w.let(f"mul i64 {wide[k - row]}, {factor}")
            for term in (carry, total[k]):
                value = value if term is None else w.let(f"add i64 {value}, {term}")
            total[k] = w.let(f"and i64 {value}, {0xFFFFFFFF}")
            carry = w.let(f"lshr i64 {value}, 32")
    return [w.let(f"trunc i64 {word} to i32") for word in total]


def _split(w: ScalarWriter, product: list[str]) -> tuple[str, str]:
    """The product as the nearest number of quarter turns and the remainder in radians."""
    kind, top = w.vector, product[-1]
    quarters = w.let(f"lshr i32 {w.let(f'add i32 {top}, {2**29}')}, 30")
    pairs = list(zip(product[1:], product, strict=False))[-4:]
    fraction = [w.let(f"call i32 @llvm.fshl.i32(i32 {high}, i32 {low}, i32 2)") for high, low in pairs]
    sign = w.let(f"ashr i32 {fraction[-1]}, 31")
    value = ""
    for word in fraction:  # a complement instead of a negation is off by one unit of the last word, which is negligible
        number = w.let(f"uitofp i32 {w.let(f'xor i32 {word}, {sign}')} to {kind}")
        value = (
            w.let(f"call {kind} @llvm.fma.{w.suffix}({kind} {value}, {kind} {w.constant(2.0**-32)}, {kind} {number})")
            if value
            else number
        )
    upper, lower = (part * 2.0**-32 for part in w.precision.tables.half_pi[:2])
    least = w.let(f"fmul {kind} {value}, {w.constant(lower)}")
    r = w.let(f"call {kind} @llvm.fma.{w.suffix}({kind} {value}, {kind} {w.constant(upper)}, {kind} {least})")
    below = w.let(f"icmp slt i32 {sign}, 0")
    return w.let(f"select i1 {below}, {kind} {w.let(f'fneg {kind} {r}')}, {kind} {r}"), quarters


def _table(name: str, precision: Precision) -> str:
    """The table of the bits of 2/π, as many words as the largest number needs."""
    largest = 32 * precision.zero_words - 2 + precision.exponents - 1 - precision.bias
    count = largest // 32 + precision.words + 1
    bits = two_over_pi(32 * (count - precision.zero_words))
    words = [(bits >> (32 * (count - 1 - k))) & 0xFFFFFFFF for k in range(count)]
    rows = ", ".join(f"i32 {word}" for word in words)
    return f'@{name}_bits = internal constant [{count} x i32] [{rows}], section ".rodata.{name}", align 4\n'


def two_over_pi(bits: int) -> int:
    """The first bits of the fraction of 2/π, by Machin's formula for π."""
    one = 1 << (bits + 64)

    def arctangent(inverse: int) -> int:
        total, term, k = 0, one // inverse, 0
        while term:
            total += (term // (2 * k + 1)) * (-1) ** k
            term //= inverse * inverse
            k += 1
        return total

    pi = Fraction(4 * (4 * arctangent(5) - arctangent(239)), one)
    return math.floor(2 / pi * (1 << bits))
