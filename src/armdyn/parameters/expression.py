"""Minimal parameters as formulas: the algorithm for the inertia constants, run on polynomials."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from armdyn.algebra import Angle, Scalar, Vec3
from armdyn.chain import Chain, Joint, Link
from armdyn.parameters.constants import inertia_constants
from armdyn.parameters.elements import KAPPA, PLAIN, Element
from armdyn.parameters.polynomial import Polynomial, Symbol, terms_of
from armdyn.parameters.structure import Structure, first_axis
from armdyn.parameters.writing import LATEX, angle_symbols, length_symbol, natural_symbol, written


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
    found: dict[Element, Any] = {}
    for i, constants in enumerate(inertia_constants(replace(chain, links=links))):
        for kind in PLAIN:
            found[Element(kind, i)] = Element(kind, i).of(constants, None)
        if at.sigma[i]:
            axis = first_axis(tuple(chain.joints[k] for k in chain.path(i)))
            for kind in KAPPA:
                found[Element(kind, i)] = Element(kind, i).of(constants, axis)
    return found


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
