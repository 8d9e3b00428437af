"""Dual: a value with its exact first derivatives, nestable for second ones."""

from __future__ import annotations

from itertools import count
from typing import Any

from armdyn.algebra import scalar
from armdyn.algebra.spatial import Mat3, Sym3, Vec3

_LEVELS = count(1)


class Dual:
    """value + Σ derivative_k ε_k with ε² = 0; values and derivatives may be of any scalar type.

    `level` distinguishes nested differentiations: a number of a lower level (for example, a constant of the arm with
    respect to which an outer differentiation is done) is a constant here.
    """

    __slots__ = ("level", "slopes", "value")
    __array_ufunc__ = None  # so that `array * self` calls `__rmul__` instead of making an array of objects

    def __init__(self, value: Any, slopes: tuple[Any, ...], level: int = 0) -> None:
        self.value = value
        self.slopes = slopes
        self.level = level

    @classmethod
    def variables(cls, values: list[Any]) -> list[Dual]:
        """The independent variables: variable k has slope 1 in direction k."""
        n, level = len(values), next(_LEVELS)
        return [cls(v, tuple(1 if j == k else 0 for j in range(n)), level) for k, v in enumerate(values)]

    @staticmethod
    def gradient(of: Any, variables: list[Dual]) -> tuple[Any, ...]:
        """The derivatives of a result with respect to these variables; zero where it does not depend on them."""
        known = isinstance(of, Dual) and bool(variables) and of.level == variables[0].level
        return of.slopes if known else (0,) * len(variables)

    def __repr__(self) -> str:
        return f"Dual({self.value!r}, {self.slopes!r})"

    def _chain(self, value: Any, slope: Any) -> Dual:
        return Dual(value, tuple(slope * s for s in self.slopes), self.level)

    def __add__(self, other: Any) -> Dual:
        if isinstance(other, Dual) and other.level >= self.level:
            if other.level > self.level:
                return other + self
            value = self.value + other.value
            return Dual(value, tuple(a + b for a, b in zip(self.slopes, other.slopes, strict=True)), self.level)
        return Dual(self.value + other, self.slopes, self.level)

    __radd__ = __add__

    def __neg__(self) -> Dual:
        return Dual(-self.value, tuple(-s for s in self.slopes), self.level)

    def __sub__(self, other: Any) -> Any:
        return self + (-other)

    def __rsub__(self, other: Any) -> Any:
        return (-self) + other

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, Dual) and other.level >= self.level:
            if other.level > self.level:
                return other * self
            a, b = self.value, other.value
            slopes = tuple(x * b + a * y for x, y in zip(self.slopes, other.slopes, strict=True))
            return Dual(a * b, slopes, self.level)
        if isinstance(other, Vec3 | Mat3 | Sym3):
            return NotImplemented  # a vector knows how to multiply itself
        return Dual(self.value * other, tuple(s * other for s in self.slopes), self.level)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Dual:
        if isinstance(other, Dual) and other.level >= self.level:
            if other.level > self.level:
                return other.__rtruediv__(self)
            ratio = self.value / other.value
            slopes = tuple((x - ratio * y) / other.value for x, y in zip(self.slopes, other.slopes, strict=True))
            return Dual(ratio, slopes, self.level)
        return Dual(self.value / other, tuple(s / other for s in self.slopes), self.level)

    def __rtruediv__(self, other: Any) -> Dual:
        ratio = other / self.value
        return self._chain(ratio, -(ratio / self.value))

    def cos(self) -> Dual:
        """Cosine."""
        return self._chain(scalar.cos(self.value), -scalar.sin(self.value))

    def sign(self) -> Any:
        """-1, 0 or 1."""
        return scalar.sign(self.value)

    def positive(self) -> Any:
        """1 where positive, NaN elsewhere."""
        return scalar.positive(self.value)

    def sin(self) -> Dual:
        """Sine."""
        return self._chain(scalar.sin(self.value), scalar.cos(self.value))
