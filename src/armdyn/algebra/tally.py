"""Tally: a number that counts the operations done with it, as the papers count them.

A `Tally` is a number known only at run time. Plain numbers (int, float, Fraction) are constants of
the arm: operations among constants are off-line and free, 0 and ±1 fold, signs are free. Every other
operation on a tally counts as one multiplication, addition or division on the active counter.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from fractions import Fraction
from typing import Any

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
