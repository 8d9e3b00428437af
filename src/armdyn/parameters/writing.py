"""Formulas in plain text and in LaTeX, from polynomials in the geometry and the natural parameters.

A formula is a sum over natural parameters, each with its factor; a common factor is written once: ``b₃² (m₃ + m₄)``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from armdyn.parameters.polynomial import ONE, Monomial, Symbol, cosine_and_sine, symbol, terms_of

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


PLAIN = Style("text", _plain_power, " ", "({})")
LATEX = Style("latex", _latex_power, r"\,", r"\left({}\right)")

Factor = tuple[tuple[Monomial, Any], ...]


def written(x: Any, style: Style = PLAIN) -> str:
    """A polynomial (or number) as a formula."""
    shared: dict[Factor, list[tuple[bool, Symbol | None]]] = {}
    for natural, factor in _factors(x).items():
        negative = next(iter(factor.values())) < 0
        key = tuple((monomial, -c if negative else c) for monomial, c in factor.items())
        shared.setdefault(key, []).append((negative, natural))
    return _joined([_part(factor, names, style) for factor, names in shared.items()]) or "0"


def _factors(x: Any) -> dict[Symbol | None, dict[Monomial, Any]]:
    """The factor of every natural parameter, inner links first (None: the part without one)."""
    found: dict[Symbol | None, dict[Monomial, Any]] = {}
    by_natural = sorted(terms_of(x), key=lambda item: ([s.order for s in item[0][-1:]], [s.order for s in item[0]]))
    for monomial, c in by_natural:
        natural = monomial[-1] if monomial and monomial[-1].order[0] == _NATURAL else None
        found.setdefault(natural, {})[monomial[:-1] if natural else monomial] = c
    return {natural: _with_cosines(factor) for natural, factor in found.items()}


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
