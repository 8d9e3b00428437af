"""Minimal parameters as formulas: the algorithm for the inertia constants, run on polynomials.

The scalars are polynomials in symbols with rational coefficients. A zero polynomial becomes the number 0, so that an
algorithm run on polynomials folds as it does on numbers; the square of a cosine is written 1 - sin², so that two equal
formulas are the same polynomial (a normal form).

Formulas are written in plain text and in LaTeX. A formula is a sum over natural parameters, each with its factor; a
common factor is written once: ``b₃² (m₃ + m₄)``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from itertools import pairwise
from typing import Any

from armdyn.algebra import Angle, Scalar, Vec3
from armdyn.chain import Chain, Joint, Link
from armdyn.parameters.structure import KAPPA, PLAIN, Element, Structure, first_axis, inertia_constants


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


_GEOMETRY, _NATURAL = 0, 1  # the first number of a symbol's order: natural parameters come last
_ANGLES = {"beta": "β", "gamma": "γ", "theta": "θ", "psi": "ψ"}  # ψ is the rotation at a branch
_SUBSCRIPT = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
_SUPERSCRIPT = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def length_symbol(name: str, i: int) -> Symbol:
    """The symbol of a length of joint i (from 0): b, d, or e for the shift at a branch."""
    return symbol((_GEOMETRY, i, *map(ord, name)), f"{name}{_below(i)}", f"{name}_{{{i + 1}}}")


def angle_symbols(name: str, i: int) -> tuple[Symbol, Symbol]:
    """The symbols of cosine and sine of an angle of joint i (from 0): β, γ, θ, or ψ for the rotation at a branch."""
    return cosine_and_sine((_GEOMETRY, i, ord(name[0])), f"{_ANGLES[name]}{_below(i)}", rf"\{name}_{{{i + 1}}}")


def natural_symbol(i: int, k: int) -> Symbol:
    """The k-th of link i's ten natural parameters (both from 0)."""
    n, below = i + 1, _below(i)
    if k == 0:
        return symbol((_NATURAL, i, k), f"m{below}", f"m_{{{n}}}")
    if k < 4:
        return symbol((_NATURAL, i, k), f"m{below}c{below}{'xyz'[k - 1]}", f"m_{{{n}}} c_{{{n}{'xyz'[k - 1]}}}")
    entry = ("xx", "xy", "yy", "xz", "yz", "zz")[k - 4]
    return symbol((_NATURAL, i, k), f"I{below}{entry}", f"I_{{{n}{entry}}}")


def _below(i: int) -> str:
    return str(i + 1).translate(_SUBSCRIPT)


@dataclass(frozen=True)
class Style:
    """How powers, products and brackets are written."""

    name: str
    power: Callable[[str, int], str]
    times: str
    bracket: str

    def of(self, s: Symbol) -> str:
        """The symbol's name in this style."""
        return s.latex if self.name == "latex" else s.text


def _plain_power(name: str, power: int) -> str:
    return name + str(power).translate(_SUPERSCRIPT)


def _latex_power(name: str, power: int) -> str:
    function, space, argument = name.partition(" ")
    return f"{function}^{{{power}}}{space}{argument}"


TEXT = Style("text", _plain_power, " ", "({})")
LATEX = Style("latex", _latex_power, r"\,", r"\left({}\right)")

Factor = tuple[tuple[Monomial, Any], ...]


def written(x: Any, style: Style = TEXT) -> str:
    """A polynomial (or number) as a formula."""
    shared: dict[Factor, list[tuple[bool, Symbol | None]]] = {}
    for natural, factor in _factors(x).items():
        negative = next(iter(factor.values())) < 0
        key = tuple((monomial, -c if negative else c) for monomial, c in factor.items())
        shared.setdefault(key, []).append((negative, natural))
    return _joined([_part(factor, names, style) for factor, names in shared.items()]) or "0"


def _factors(x: Any) -> dict[Symbol | None, dict[Monomial, Any]]:
    """The factor of every natural parameter, inner links first (None: the part without one)."""
    factors: dict[Symbol | None, dict[Monomial, Any]] = {}
    by_natural = sorted(terms_of(x), key=lambda item: ([s.order for s in item[0][-1:]], [s.order for s in item[0]]))
    for monomial, c in by_natural:
        natural = monomial[-1] if monomial and monomial[-1].order[0] == _NATURAL else None
        factors.setdefault(natural, {})[monomial[:-1] if natural else monomial] = c
    return {natural: _with_cosines(factor) for natural, factor in factors.items()}


def _with_cosines(factor: dict[Monomial, Any]) -> dict[Monomial, Any]:
    """The factor with every x - x sin² written as x cos²."""
    factor = dict(factor)
    for monomial, c in list(factor.items()):
        for sine in dict.fromkeys(monomial):
            rest = tuple(s for s in monomial if s is not sine)
            if monomial.count(sine) == 2 and monomial in factor and factor.get(rest) == -c:
                cosine = _cosine_of(sine)
                if cosine is not None:
                    del factor[monomial], factor[rest]
                    factor[tuple(sorted((*rest, cosine, cosine)))] = -c
    return factor


def _cosine_of(sine: Symbol) -> Symbol | None:
    for name in _ANGLES:
        cosine, other = angle_symbols(name, sine.order[1])
        if other is sine:
            return cosine
    return None


def _part(factor: Factor, names: list[tuple[bool, Symbol | None]], style: Style) -> str:
    """± factor (name ± name …), the sign of the first name in front."""
    negative = names[0][0]
    naturals = [(minus, natural) for minus, natural in names if natural is not None]
    if naturals and factor == ((ONE, 1),):
        return _joined([_signed(minus, style.of(natural)) for minus, natural in naturals])
    text = _joined([_term(monomial, c, style) for monomial, c in factor])
    if len(factor) > 1 and (naturals or negative):
        text = style.bracket.format(text)
    if naturals:
        name = _joined([_signed(minus != negative, style.of(natural)) for minus, natural in naturals])
        text += style.times + (style.bracket.format(name) if len(naturals) > 1 else name)
    return _signed(negative, text)


def _signed(minus: bool, text: str) -> str:
    return f"-{text}" if minus else text


def _term(monomial: Monomial, c: Any, style: Style) -> str:
    factors = []
    for s in dict.fromkeys(monomial):
        power, name = monomial.count(s), style.of(s)
        factors.append(style.power(name, power) if power > 1 else name)
    if abs(c) != 1 or not factors:
        factors.insert(0, f"{float(abs(c)):.10g}")
    return _signed(c < 0, style.times.join(factors))


def _joined(parts: list[str]) -> str:
    text = ""
    for part in parts:
        minus = part.startswith("-")
        text += (("-" if minus else "") if not text else (" - " if minus else " + ")) + part.removeprefix("-")
    return text


@dataclass(frozen=True)
class Expression:
    """One minimal parameter as a formula in the natural parameters, with numbers or symbols for the geometry."""

    name: str
    numbers: Any
    symbols: Any

    def __str__(self) -> str:
        return self.text

    @property
    def text(self) -> str:
        """Plain text with the arm's numbers."""
        return written(self.numbers)

    @property
    def latex(self) -> str:
        """LaTeX with the arm's numbers."""
        return written(self.numbers, LATEX)

    @property
    def symbolic(self) -> str:
        """Plain text with symbols b, d, β, … for nonzero lengths and for angles other than multiples of 90°."""
        return written(self.symbols)

    @property
    def symbolic_latex(self) -> str:
        """LaTeX with symbols for the geometry."""
        return written(self.symbols, LATEX)

    def row(self, chain: Chain) -> tuple[Fraction, ...]:
        """The row of the matrix for another arm of the same structure: the symbols are evaluated for its geometry."""
        values = dict(_geometry(chain))
        formula = self.symbols.evaluate(values) if isinstance(self.symbols, Polynomial) else self.symbols
        return row_of(formula, chain.bodies)


def element_polynomials(chain: Chain, at: Structure) -> dict[Element, Any]:
    """Every possible element as a polynomial in the natural parameters (and in symbols)."""
    links = tuple(
        Link.from_natural(tuple(Polynomial.of(natural_symbol(i, k)) for k in range(10))) for i in range(chain.bodies)
    )
    polynomials: dict[Element, Any] = {}
    for i, constants in enumerate(inertia_constants(replace(chain, links=links))):
        for kind in PLAIN:
            polynomials[Element(kind, i)] = Element(kind, i).of(constants, None)
        if at.sigma[i]:
            axis = first_axis(tuple(chain.joints[k] for k in chain.path(i)))
            for kind in KAPPA:
                polynomials[Element(kind, i)] = Element(kind, i).of(constants, axis)
    return polynomials


def row_of(formula: Any, bodies: int) -> tuple[Fraction, ...]:
    """The coefficients of the natural parameters, ten per body."""
    row = [Fraction(0)] * (10 * bodies)
    for (name,), c in terms_of(formula):
        _, link, k = name.order
        row[10 * link + k] = Fraction(c)
    return tuple(row)


def symbolic_chain(chain: Chain) -> Chain:
    """The chain with symbols for nonzero lengths and for angles other than multiples of 90°; without gravity."""

    def length(name: str, i: int, x: Scalar) -> Scalar:
        return 0 if x == 0 else Polynomial.of(length_symbol(name, i))

    def angle(name: str, i: int, a: Angle) -> Angle:
        return a if a.is_right else Angle(a.radians, *(Polynomial.of(s) for s in angle_symbols(name, i)))

    def joint(i: int, j: Joint) -> Joint:
        return replace(
            j,
            b=length("b", i, j.b),
            d=length("d", i, j.d),
            beta=angle("beta", i, j.beta),
            gamma=angle("gamma", i, j.gamma),
            theta=angle("theta", i, j.theta),
            turn=angle("psi", i, j.turn),
            shift=length("e", i, j.shift),
        )

    joints = tuple(joint(i, j) for i, j in enumerate(chain.joints))
    return Chain(joints, chain.links, Vec3(0, 0, 0), parents=chain.parents)


def _geometry(chain: Chain) -> Iterator[tuple[Symbol, Scalar]]:
    """The value of every possible symbol of the geometry."""
    for i, joint in enumerate(chain.joints):
        yield length_symbol("b", i), joint.b
        yield length_symbol("d", i), joint.d
        yield length_symbol("e", i), joint.shift
        angles = (("beta", joint.beta), ("gamma", joint.gamma), ("theta", joint.theta), ("psi", joint.turn))
        for name, angle in angles:
            cosine, sine = angle_symbols(name, i)
            yield cosine, angle.cos
            yield sine, angle.sin
