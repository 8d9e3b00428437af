"""Sine and cosine of a vector of angles, as LLVM IR.

Argument reduction (Cody & Waite): k·π/2 is the multiple of π/2 nearest to x, and r = x - k·π/2 lies within ±π/4. With
fused multiply–adds the subtraction takes three parts of π/2, of 53 bits each: the first step is exact, since both terms
are multiples of 2⁻⁵³ and their difference is below 1. Without them it takes four parts of 33 bits, whose products with
k < 2¹⁶ are exact. Then one polynomial each gives the sine and cosine of r, and the last two bits of k say whether to
exchange them and which signs to change.

The polynomials are minimax in relative error on ±π/4 (Remez; coefficients are rounded one by one and the remaining ones
refitted): 2⁻⁵⁷·⁹ for the sine, 2⁻⁶³·⁹ for the cosine. With rounding, the error is at most 2 ulp for |x| up to `LIMIT`
(measured in tests/test_trig.py). Lanes beyond, or not finite, call the C library one by one. The sign of a zero is not
preserved.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace

from armdyn.codegen.llvm.ir import LIBRARY, VectorType, Writer, double, function, single, splat

TRIG = ("sin", "cos")
LIMIT = 1e5
TWO_OVER_PI = float.fromhex("0x1.45f306dc9c883p-1")
ROUNDER = 1.5 * 2.0**52  # adding it leaves the nearest integer in the last bits
HALF_PI_FMA = tuple(map(float.fromhex, ("0x1.921fb54442d18p+0", "0x1.1a62633145c07p-54", "-0x1.f1976b7ed8fbcp-110")))
HALF_PI_PLAIN = tuple(
    map(
        float.fromhex,
        ("0x1.921fb54400000p+0", "0x1.0b4611a600000p-34", "0x1.3198a2e000000p-69", "0x1.b839a252049c1p-104"),
    )
)
# sin r = r + r³·S(r²), cos r = C(r²), lowest power first.
SINE = tuple(
    map(
        float.fromhex,
        (
            "-0x1.5555555555548p-3",
            "0x1.111111110f730p-7",
            "-0x1.a01a019be9210p-13",
            "0x1.71de35552a6a5p-19",
            "-0x1.ae5e4b82bead3p-26",
            "0x1.5d8b55201b850p-33",
        ),
    )
)
COSINE = tuple(
    map(
        float.fromhex,
        (
            "0x1p+0",
            "-0x1p-1",
            "0x1.555555555554bp-5",
            "-0x1.6c16c16c15015p-10",
            "0x1.a01a019c8f253p-16",
            "-0x1.27e4f7f191267p-22",
            "0x1.1ee9dbced03ffp-29",
            "-0x1.8fa68464b3d10p-37",
        ),
    )
)


@dataclass(frozen=True)
class Tables:
    """The constants of the sine and cosine of one precision."""

    rounder: float
    half_pi: tuple[float, ...]
    sine: tuple[float, ...]
    cosine: tuple[float, ...]
    sign_bit: int


DOUBLE = Tables(ROUNDER, HALF_PI_FMA, SINE, COSINE, 63)
DOUBLE_PLAIN = Tables(ROUNDER, HALF_PI_PLAIN, SINE, COSINE, 63)
# Minimax in relative error on ±π/4; coefficients are rounded one by one and the remaining ones refitted: 2⁻²⁷·⁹ for the
# sine, 2⁻³³ for the cosine. The parts of π/2 have 24 bits each.
SINGLE = Tables(
    rounder=1.5 * 2.0**23,
    half_pi=tuple(map(float.fromhex, ("0x1.921fb6p+0", "-0x1.777a5cp-25", "-0x1.ee59dap-50"))),
    sine=tuple(map(float.fromhex, ("-0x1.555546p-3", "0x1.110778p-7", "-0x1.995402p-13"))),
    cosine=tuple(map(float.fromhex, ("0x1p+0", "-0x1p-1", "0x1.55554ap-5", "-0x1.6c0c28p-10", "0x1.99e80cp-16"))),
    sign_bit=31,
)
# Without fused multiply-adds, single precision is reduced in double precision, by two parts of 33 bits.
SINGLE_PLAIN = replace(SINGLE, half_pi=HALF_PI_PLAIN[:2])
TABLES = {("double", True): DOUBLE, ("double", False): DOUBLE_PLAIN}
TABLES |= {("float", True): SINGLE, ("float", False): SINGLE_PLAIN}


def fused(w: Writer, fma: bool, a: str, b: str, c: str) -> str:
    """a·b + c: rounded once if the processor has fused multiply–adds, otherwise twice; never left to the compiler."""
    v = w.vector
    if fma:
        return w.let(f"call {v} @llvm.fma.{w.suffix}({v} {a}, {v} {b}, {v} {c})")
    return w.let(f"fadd {v} {w.let(f'fmul {v} {a}, {b}')}, {c}")


def _polynomial(w: Writer, fma: bool, coefficients: tuple[float, ...], z: str) -> str:
    """The polynomial in z by Horner's scheme: coefficients are memory operands, so that it needs few registers."""
    *lower, value = map(w.constant, coefficients)
    for coefficient in reversed(lower):
        value = fused(w, fma, value, z, coefficient)
    return value


def sine_cosine(w: Writer, fma: bool, x: str) -> tuple[str, str]:
    """Sine and cosine of the vector `x`, valid where |x| <= `LIMIT`."""
    tables = TABLES[w.number, fma]
    return turned(w, fma, *reduced(w, fma, x, tables), tables)


def reduced(w: Writer, fma: bool, x: str, tables: Tables) -> tuple[str, str]:
    """`x` reduced to ±π/4, and an integer whose last two bits are the number of quarter turns subtracted."""
    v = w.vector
    shifted = fused(w, fma, x, w.constant(TWO_OVER_PI), w.constant(tables.rounder))
    k = w.let(f"fsub {v} {shifted}, {w.constant(tables.rounder)}")
    quadrant = w.let(f"bitcast {v} {shifted} to {w.bits}")
    if w.number == "float" and not fma:
        return _reduced_in_double(w, x, k, tables), quadrant
    r = x
    for part in tables.half_pi:
        r = fused(w, fma, k, w.constant(-part), r)
    return r, quadrant


def _reduced_in_double(w: Writer, x: str, k: str, tables: Tables) -> str:
    """`x` less k quarter turns, rounded once: the first product and difference are exact in double precision."""
    wide = w.vector.replace("float", "double")
    r, turns = (w.let(f"fpext {w.vector} {number} to {wide}") for number in (x, k))
    for part in tables.half_pi:
        lanes = splat("double", double(part), w.lanes) if wide != "double" else double(part)
        r = w.let(f"fsub {wide} {r}, {w.let(f'fmul {wide} {turns}, {lanes}')}")
    return w.let(f"fptrunc {wide} {r} to {w.vector}")


def turned(w: Writer, fma: bool, r: str, quadrant: str, tables: Tables) -> tuple[str, str]:
    """Sine and cosine of `r` plus `quadrant` quarter turns, |r| <= π/4."""
    v, bits = w.vector, w.bits
    z = w.let(f"fmul {v} {r}, {r}")
    sine = fused(w, fma, w.let(f"fmul {v} {z}, {r}"), _polynomial(w, fma, tables.sine, z), r)
    cosine = _polynomial(w, fma, tables.cosine, z)

    odd = w.let(f"shl {bits} {quadrant}, {w.integer(tables.sign_bit)}")
    swap = w.let(f"icmp slt {bits} {odd}, zeroinitializer")
    results = []
    for one, other, ahead in ((sine, cosine, 0), (cosine, sine, 1)):
        value = w.let(f"select {w.mask} {swap}, {v} {other}, {v} {one}")
        turn = w.let(f"add {bits} {quadrant}, {w.integer(ahead)}") if ahead else quadrant
        second = w.let(f"and {bits} {turn}, {w.integer(2)}")
        sign = w.let(f"shl {bits} {second}, {w.integer(tables.sign_bit - 1)}")
        changed = w.let(f"xor {bits} {w.let(f'bitcast {v} {value} to {bits}')}, {sign}")
        results.append(w.let(f"bitcast {bits} {changed} to {v}"))
    return results[0], results[1]


def _beyond(w: Writer, x: str) -> str:
    """i1: whether any lane of `x` is beyond `LIMIT` or NaN. Compared as integers, so that a NaN raises no flag."""
    as_bits = w.let(f"bitcast {w.vector} {x} to {w.bits}")
    magnitude = w.let(f"and {w.bits} {as_bits}, {w.integer(_without_sign(w))}")
    far = w.let(f"icmp sgt {w.bits} {magnitude}, {w.integer(as_integer(w.number, LIMIT))}")
    mask = w.let(f"bitcast <{w.lanes} x i1> {far} to i{w.lanes}")
    return w.let(f"icmp ne i{w.lanes} {mask}, 0")


def as_integer(number: str, value: float) -> int:
    """The bits of a number of "double" or "float"."""
    code = "<d" if number == "double" else "<f"
    return int.from_bytes(struct.pack(code, value if number == "double" else single(value)), "little")


def _without_sign(w: Writer) -> int:
    return (1 << (8 * w.size - 1)) - 1


def all_below(w: Writer, first: str, vectors: int, limit: float) -> str:
    """i1: whether all numbers of consecutive vectors are below `limit`, judged by their upper 32 bits; a NaN is not."""
    words = w.bytes // 4
    kind = f"<{words} x i32>"
    upper = "<" + ", ".join(["i32 0, "[: 7 * (w.size // 8)] + f"i32 {0x7FFFFFFF}"] * w.lanes) + ">"
    largest = "zeroinitializer"
    for k in range(vectors):
        bits = w.let(f"load {kind}, ptr {w.at(first, w.bytes * k)}, align {w.size}")
        magnitude = w.let(f"and {kind} {bits}, {upper}")
        largest = w.let(f"call {kind} @llvm.umax.v{words}i32({kind} {largest}, {kind} {magnitude})")
    far = w.let(f"icmp uge {kind} {largest}, {splat('i32', as_integer(w.number, limit) >> (8 * w.size - 32), words)}")
    mask = w.let(f"bitcast <{words} x i1> {far} to i{words}")
    return w.let(f"icmp eq i{words} {mask}, 0")


def trig_loop(kind: VectorType, fma: bool) -> str:
    """`trig(angles, results, count, context)`: sines and cosines of `count` vectors, in pairs in `results`."""
    w = Writer(kind)
    step = w.bytes
    w.label("entry")
    w.do("br label %loop")
    w.label("loop")
    w.do("%k = phi i64 [0, %entry], [%next, %done]")
    angle = w.at("%angles", w.let(f"mul i64 %k, {step}"))
    result = w.at("%results", w.let(f"mul i64 %k, {2 * step}"))
    x = w.load(angle, 0)
    for slot, value in enumerate(sine_cosine(w, fma, x)):
        w.store(value, result, slot)
    w.do(f"br i1 {_beyond(w, x)}, label %far, label %done, !prof !0")
    w.label("far")
    w.do(f"call void @trig_far(ptr {angle}, ptr {result}, ptr %context)")
    w.do("br label %done")
    w.label("done")
    w.do("%next = add i64 %k, 1")
    w.do(f"br i1 {w.let('icmp ult i64 %next, %count')}, label %loop, label %out")
    w.label("out")
    w.do("ret void")
    head = "internal void @trig(ptr noalias %angles, ptr noalias %results, i64 %count, ptr %context) noinline"
    return function(head, w.lines)


def trig_far(kind: VectorType) -> str:
    """`trig_far`: lanes beyond `LIMIT`, one at a time, by the C library's sine and cosine."""
    w = Writer(kind)
    w.label("entry")
    for name in ("sin", "cos"):
        w.do(f"%{name} = load ptr, ptr {w.at('%context', 8 * LIBRARY.index(name))}")
    w.do("br label %lane")
    w.label("lane")
    w.do("%l = phi i64 [0, %entry], [%next, %done]")
    place, whole = w.let(f"mul i64 %l, {w.size}"), w.whole
    x = w.let(f"load {w.number}, ptr {w.at('%angle', place)}")
    magnitude = w.let(f"and {whole} {w.let(f'bitcast {w.number} {x} to {whole}')}, {_without_sign(w)}")
    w.do(f"br i1 {w.let(f'icmp sgt {whole} {magnitude}, {as_integer(w.number, LIMIT)}')}, label %ask, label %done")
    w.label("ask")
    exact = x if w.number == "double" else w.let(f"fpext float {x} to double")
    for slot, name in enumerate(("sin", "cos")):
        value = w.let(f"call double %{name}(double {exact})")
        if w.number == "float":
            value = w.let(f"fptrunc double {value} to float")
        w.do(f"store {w.number} {value}, ptr {w.at(w.at('%result', place), w.bytes * slot)}")
    w.do("br label %done")
    w.label("done")
    w.do("%next = add i64 %l, 1")
    w.do(f"br i1 {w.let(f'icmp ult i64 %next, {w.lanes}')}, label %lane, label %out")
    w.label("out")
    w.do("ret void")
    return function("internal void @trig_far(ptr %angle, ptr %result, ptr %context) noinline cold", w.lines)
