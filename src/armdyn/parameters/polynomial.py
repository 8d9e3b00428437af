"""Polynomials as a symbolic scalar type, for parameters with symbols in them.

A polynomial in symbols with rational coefficients. A zero polynomial becomes the number 0, so that an algorithm run on
polynomials folds as it does on numbers; the square of a cosine is written 1 - sin², so that two equal formulas are the
same polynomial (a normal form).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import pairwise
from typing import Any


@dataclass(frozen=True, eq=False)
class Symbol:
    """A named number, one object per name; `order` sorts the symbols of a product."""

    order: tuple[int, ...]
    text: str
    latex: str
    sine: Symbol | None = None  # for a cosine: the sine of the same angle

    def __lt__(self, other: Symbol) -> bool:
        return self.order < other.order


@cache
def symbol(order: tuple[int, ...], text: str, latex: str) -> Symbol:
    """The symbol of this name."""
    return Symbol(order, text, latex)


@cache
def cosine_and_sine(order: tuple[int, ...], text: str, latex: str) -> tuple[Symbol, Symbol]:
    """Symbols for the cosine and the sine of an angle."""
    sine = Symbol((*order, 1), f"sin({text})", rf"\sin {latex}")
    return Symbol((*order, 0), f"cos({text})", rf"\cos {latex}", sine), sine


Monomial = tuple[Symbol, ...]
ONE: Monomial = ()


class Polynomial:
    """Σ coefficient · product of symbols; never 0 (that is the number 0)."""

    __slots__ = ("terms",)

    def __init__(self, terms: dict[Monomial, Any]) -> None:
        self.terms = terms

    @classmethod
    def of(cls, name: Symbol) -> Polynomial:
        """The polynomial that is one symbol."""
        return cls({(name,): Fraction(1)})

    def __repr__(self) -> str:
        terms = " + ".join(" ".join([f"{float(c):g}", *(s.text for s in m)]) for m, c in self.terms.items())
        return f"Polynomial({terms})"

    def __add__(self, other: Any) -> Any:
        terms = dict(self.terms)
        for monomial, c in terms_of(other):
            total = terms.get(monomial, 0) + c
            if total == 0:
                del terms[monomial]
            else:
                terms[monomial] = total
        return Polynomial(terms) if terms else 0

    __radd__ = __add__

    def __neg__(self) -> Polynomial:
        return Polynomial({monomial: -c for monomial, c in self.terms.items()})

    def __sub__(self, other: Any) -> Any:
        return self + (-other)

    def __rsub__(self, other: Any) -> Any:
        return (-self) + other

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, Polynomial):
            terms: dict[Monomial, Any] = {}
            for a, x in self.terms.items():
                for b, y in other.terms.items():
                    for monomial, c in _product(a, b, x * y):
                        terms[monomial] = terms.get(monomial, 0) + c
            kept = {monomial: c for monomial, c in terms.items() if c != 0}
            return Polynomial(kept) if kept else 0
        if hasattr(other, "__array_ufunc__"):
            return NotImplemented  # a vector multiplies its components itself
        if other == 0:
            return 0
        return self if other == 1 else Polynomial({monomial: c * other for monomial, c in self.terms.items()})

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        return self * (1 / Fraction(other))

    def evaluate(self, values: Mapping[Symbol, Any]) -> Any:
        """The polynomial with the symbols in `values` replaced by numbers."""
        total: Any = 0
        for monomial, c in self.terms.items():
            term = c
            for name in monomial:
                term = term * values[name] if name in values else Polynomial.of(name) * term
            total = total + term
        return total


def terms_of(x: Any) -> Iterable[tuple[Monomial, Any]]:
    """(product of symbols, coefficient) of a polynomial or a number."""
    if isinstance(x, Polynomial):
        return x.terms.items()
    return ((ONE, x),) if x != 0 else ()


def _product(a: Monomial, b: Monomial, c: Any) -> list[tuple[Monomial, Any]]:
    """The terms of c · a · b with every squared cosine written as 1 - sin²."""
    monomial = tuple(sorted(a + b)) if a and b else a + b
    for k, (x, y) in enumerate(pairwise(monomial)):
        if x is y and x.sine is not None:
            rest = monomial[:k] + monomial[k + 2 :]
            return [*_product(rest, ONE, c), *_product(rest, (x.sine, x.sine), -c)]
    return [(monomial, c)]
