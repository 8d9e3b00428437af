"""Tally: a number that counts the operations done with it, as the papers count them.

A `Tally` is a number known only at run time. Plain numbers (int, float, Fraction) are constants of
the arm: operations among constants are off-line and free, 0 and ±1 fold, signs are free. Every other
operation on a tally counts as one multiplication, addition or division on the active counter.

A formulation also says what its paper calls the values that it computes on the way, for derivations that can be read:
`named("mhat_3", x)` where the paper has m̂₃. That is the identity and costs nothing, unless somebody collects names
(`naming`): then every scalar, vector, symmetric matrix or list of lists that passes is noted. Names are written as
SymPy typesets them: mhat_3 is m̂₃, alphaprime_12 is α′₁₂, f_3x__2 the x component of f₃ in frame 2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import fields, is_dataclass
from fractions import Fraction
from typing import Any, TypeVar

from armdyn.algebra.scalar import Operations, Rational


class OperationCounter:
    """Operations by stage."""

    def __init__(self) -> None:
        self.stages: dict[str, dict[str, int]] = {}
        self._free = 0
        self.stage("")

    def stage(self, name: str) -> None:
        """Count what follows under `name`."""
        self._row = self.stages.setdefault(name, {"mul": 0, "add": 0, "div": 0, "trig": 0})

    def operations(self, stage: str | None = None) -> Operations:
        """The count of one stage, or of all."""
        rows = self.stages.items()
        return sum((Operations(**row) for name, row in rows if stage in (None, name)), Operations())


_ACTIVE: ContextVar[OperationCounter | None] = ContextVar("armdyn_counter", default=None)


def active() -> OperationCounter | None:
    """The counter in force, or None outside of `counting`."""
    return _ACTIVE.get()


@contextmanager
def counting() -> Iterator[OperationCounter]:
    """Count the operations on tallies made inside this block."""
    counter = OperationCounter()
    token = _ACTIVE.set(counter)
    try:
        yield counter
    finally:
        _ACTIVE.reset(token)


def stage(name: str) -> None:
    """Count what follows under `name`; nothing happens outside of `counting`."""
    counter = active()
    if counter is not None:
        counter.stage(name)


def on_hand(compute: Callable[[], Any]) -> Any:
    """The result of `compute`, not counted: the papers assume that some products are available."""
    counter = active()
    if counter is None:
        return compute()
    counter._free += 1
    try:
        return compute()
    finally:
        counter._free -= 1


def _count(kind: str) -> None:
    counter = _ACTIVE.get()
    if counter is not None and not counter._free:
        counter._row[kind] += 1


class Tally:
    """A run-time number and the operations done with it."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value: Any = value.value if value.__class__ is Tally else value

    def __repr__(self) -> str:
        return f"Tally({float(self.value)!r})"

    def __float__(self) -> float:
        return float(self.value)

    def __add__(self, other: Any) -> Any:
        if other.__class__ is Tally:
            _count("add")
            return Tally(self.value + other.value)
        if other == 0:
            return self
        _count("add")
        return Tally(self.value + other)

    __radd__ = __add__

    def __neg__(self) -> Tally:
        return Tally(-self.value)

    def __sub__(self, other: Any) -> Any:
        return self + (-other)

    def __rsub__(self, other: Any) -> Any:
        return (-self) + other

    def __mul__(self, other: Any) -> Any:
        if other.__class__ is Tally:
            _count("mul")
            return Tally(self.value * other.value)
        if other.__class__ is Rational or other.__class__ is Fraction:
            numerator, denominator = other.as_integer_ratio()
            other = numerator / denominator if denominator != 1 else numerator  # floats multiply faster
        elif not isinstance(other, int | float):
            return NotImplemented  # a vector knows how to multiply itself
        if other == 0:
            return 0
        if other == 1:
            return self
        if other == -1:
            return -self
        _count("mul")
        return Tally(self.value * other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        if isinstance(other, Tally):
            _count("div")
            return Tally(self.value / other.value)
        return self * (1 / other)

    def __rtruediv__(self, other: Any) -> Any:
        if other == 0:
            return 0
        _count("div")
        return Tally(other / self.value if other == other else other)  # NaN / 0 is NaN, for Python an error

    def cos(self) -> Tally:
        """Cosine, counted as one trigonometric function."""
        _count("trig")
        return Tally(math.cos(self.value))

    def sin(self) -> Tally:
        """Sine, counted as one trigonometric function."""
        _count("trig")
        return Tally(math.sin(self.value))

    def sign(self) -> Tally:
        """-1, 0 or 1; free."""
        return Tally((self.value > 0) - (self.value < 0))

    def positive(self) -> float:
        """1 where positive, NaN elsewhere; free."""
        return 1 if self.value > 0 else math.nan


def online(x: Any) -> Any:
    """`x`, to be counted as a number known only at run time.

    The papers treat some constants as run-time numbers (conventions C1 to C5 of the counting
    record). This is the identity on floats and nodes; under a tally it makes a constant countable.
    """
    return x if active() is None or isinstance(x, Tally) else Tally(x)


T = TypeVar("T")
Group = list[tuple[str, Any]]  # names and values that were noted together


class Names:
    """What was noted, in order: groups of named values, and matrices (label, rows) that are made of such values."""

    def __init__(self) -> None:
        self.notes: list[Group | tuple[str, list[list[Any]]]] = []
        self.spare: list[tuple[Any, str]] = []  # names of values that get one only where formulas would be too long


_NAMES: ContextVar[Names | None] = ContextVar("armdyn_names", default=None)


@contextmanager
def naming() -> Iterator[Names]:
    """Collect the names of values computed inside this block."""
    names = Names()
    token = _NAMES.set(names)
    try:
        yield names
    finally:
        _NAMES.reset(token)


def named(name: str, value: T, frame: int | None = None) -> T:
    """`value`, noted under its name if names are collected; entries of vectors and tensors get their axes."""
    names = _NAMES.get()
    if names is not None:
        axes = [axis.name for axis in fields(value)] if is_dataclass(value) else []  # those of Vec3 or Sym3
        entries = [(axis, getattr(value, axis)) for axis in axes] or [("", value)]
        after = "" if frame is None else f"__{frame}"
        names.notes.append([(f"{name}{axis}{after}", entry) for axis, entry in entries])
    return value


def named_if_long(name: str, value: T) -> T:
    """`value`, which gets this name only if formulas without it would be too long to read."""
    names = _NAMES.get()
    if names is not None:
        names.spare.append((value, name))
    return value


def named_entries(name: str, matrix: list[list[Any]]) -> None:
    """Note the upper triangle of a symmetric matrix, entry by entry."""
    names = _NAMES.get()
    if names is not None:
        places = ((i, j) for i in range(len(matrix)) for j in range(i, len(matrix)))
        names.notes.append([(f"{name}_{index(i, j)}", matrix[i][j]) for i, j in places])


def named_matrix(name: str, matrix: Callable[[], list[list[Any]]]) -> None:
    """Note a matrix to be shown beside the results; it is made only if names are collected."""
    names = _NAMES.get()
    if names is not None:
        names.notes.append((name, matrix()))


def index(*places: int) -> str:
    """Indices counted from 1, as papers write them: 12, or 1,12 where one has two digits."""
    numbers = [str(place + 1) for place in places]
    return ("," if max(map(len, numbers), default=1) > 1 else "").join(numbers)
