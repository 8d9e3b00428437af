"""Numbers and truths in every lane, as expressions that write LLVM assembly.

`Number` and `Truth` are values of a function being written: an operator writes one instruction. `Slots` is an
array of vectors on the stack. No fast-math flags: every lane computes what it would compute alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from armdyn.codegen.llvm.ir import Writer
from armdyn.codegen.llvm.trig import fused


@dataclass(frozen=True)
class Number:
    """One double per lane."""

    w: Writer
    name: str

    def _binary(self, operation: str, other: Number | float | Fraction) -> Number:
        right = other.name if isinstance(other, Number) else self.w.constant(other)
        return Number(self.w, self.w.let(f"{operation} {self.w.vector} {self.name}, {right}"))

    def _compare(self, how: str, other: Number | float) -> Truth:
        return Truth(self.w, self._binary(f"fcmp {how}", other).name)

    def __add__(self, other: Number | float) -> Number:
        return self._binary("fadd", other)

    def __sub__(self, other: Number | float) -> Number:
        return self._binary("fsub", other)

    def __rsub__(self, other: float) -> Number:
        return constant(self.w, other) - self

    def __mul__(self, other: Number | float | Fraction) -> Number:
        return self._binary("fmul", other)

    __rmul__ = __mul__

    def __truediv__(self, other: Number | float) -> Number:
        return self._binary("fdiv", other)

    def __neg__(self) -> Number:
        return Number(self.w, self.w.let(f"fneg {self.w.vector} {self.name}"))

    def __lt__(self, other: Number | float) -> Truth:
        return self._compare("olt", other)

    def __le__(self, other: Number | float) -> Truth:
        return self._compare("ole", other)

    def __gt__(self, other: Number | float) -> Truth:
        return self._compare("ogt", other)

    def __ge__(self, other: Number | float) -> Truth:
        return self._compare("oge", other)

    def sqrt(self) -> Number:
        """The square root."""
        kind = f"v{self.w.lanes}f64"
        return Number(self.w, self.w.let(f"call {self.w.vector} @llvm.sqrt.{kind}({self.w.vector} {self.name})"))

    def equals(self, other: Number | float) -> Truth:
        """Where both are the same number."""
        return self._compare("oeq", other)

    def least(self, other: Number) -> Number:
        """The lesser of both; this one where the other is not a number."""
        return (other < self).choose(other, self)

    def times_plus(self, fma: bool, factor: Number, term: Number) -> Number:
        """Self · factor + term, rounded once where the processor can."""
        return Number(self.w, fused(self.w, fma, self.name, factor.name, term.name))


@dataclass(frozen=True)
class Truth:
    """One bit per lane."""

    w: Writer
    name: str

    @property
    def _kind(self) -> str:
        return f"<{self.w.lanes} x i1>"

    def _binary(self, operation: str, other: str) -> Truth:
        return Truth(self.w, self.w.let(f"{operation} {self._kind} {self.name}, {other}"))

    def __and__(self, other: Truth) -> Truth:
        return self._binary("and", other.name)

    def __or__(self, other: Truth) -> Truth:
        return self._binary("or", other.name)

    def __invert__(self) -> Truth:
        return self._binary("xor", "<" + ", ".join(["i1 true"] * self.w.lanes) + ">")

    def or_bit(self, bit: str) -> Truth:
        """True in every lane where `bit` is, which is the same for all."""
        everywhere = "<" + ", ".join(["i1 true"] * self.w.lanes) + ">"
        return Truth(self.w, self.w.let(f"select i1 {bit}, {self._kind} {everywhere}, {self._kind} {self.name}"))

    def and_bit(self, bit: str) -> Truth:
        """False in every lane where `bit` is, which is the same for all."""
        return Truth(self.w, self.w.let(f"select i1 {bit}, {self._kind} {self.name}, {self._kind} zeroinitializer"))

    def choose(self, yes: Number | float, no: Number | float) -> Number:
        """`yes` where true, `no` elsewhere."""
        a, b = (x.name if isinstance(x, Number) else self.w.constant(x) for x in (yes, no))
        return Number(self.w, self.w.let(f"select {self._kind} {self.name}, {self.w.vector} {a}, {self.w.vector} {b}"))

    def any(self) -> str:
        """Whether it is true in a lane: one bit, to branch on."""
        bits = self.w.let(f"bitcast {self._kind} {self.name} to i{self.w.lanes}")
        return self.w.let(f"icmp ne i{self.w.lanes} {bits}, 0")


@dataclass(frozen=True)
class Slots:
    """An array of vectors on the stack, `first` slots into the scratch array `array`."""

    w: Writer
    array: str
    first: int = 0

    def __getitem__(self, slot: int) -> Number:
        return Number(self.w, self.w.load(f"%{self.array}", self.first + slot))

    def __setitem__(self, slot: int, value: Number | float) -> None:
        name = value.name if isinstance(value, Number) else self.w.constant(value)
        self.w.store(name, f"%{self.array}", self.first + slot)

    def truth(self, slot: int) -> Truth:
        """A truth that was stored as 1 or 0."""
        return self[slot] > 0.0


@dataclass(frozen=True)
class NamedSlots:
    """An array of vectors on the stack whose slots have names."""

    w: Writer
    array: str
    names: tuple[str, ...]

    def __getitem__(self, name: str) -> Number:
        return Slots(self.w, self.array)[self.names.index(name)]

    def __setitem__(self, name: str, value: Number | float) -> None:
        Slots(self.w, self.array)[self.names.index(name)] = value


def constant(w: Writer, value: float | Fraction) -> Number:
    """A number in every lane."""
    return Number(w, w.constant(value))


def lagrange(x: Number, k: int, nodes: dict[int, Fraction]) -> Number:
    """The k-th Lagrange polynomial of the nodes at x."""
    value = constant(x.w, 1.0)
    for other, c in nodes.items():
        if other != k:
            value = value * ((x - float(c)) * float(1 / (nodes[k] - c)))
    return value


def branch(w: Writer, condition: str, yes: str, no: str) -> None:
    """Go to one of two blocks."""
    w.do(f"br i1 {condition}, label %{yes}, label %{no}")


class Counter:
    """A 64-bit counter on the stack."""

    def __init__(self, w: Writer, name: str) -> None:
        self.w, self.name = w, f"%{name}"
        w.lines.insert(1, f"  {self.name} = alloca i64")

    def reset(self) -> None:
        """Back to 0."""
        self.w.do(f"store i64 0, ptr {self.name}")

    def next_is_below(self, limit: int) -> str:
        """Count on by one; whether the count is still below `limit`."""
        count = self.w.let(f"add i64 {self.w.let(f'load i64, ptr {self.name}')}, 1")
        self.w.do(f"store i64 {count}, ptr {self.name}")
        return self.w.let(f"icmp slt i64 {count}, {limit}")

    def is_below(self, limit: int) -> str:
        """Whether the count is below `limit`."""
        return self.w.let(f"icmp slt i64 {self.w.let(f'load i64, ptr {self.name}')}, {limit}")
