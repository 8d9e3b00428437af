"""From minimal to natural parameters: links that have given minimal parameters."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from armdyn.algebra import Scalar
from armdyn.chain import Chain, Link
from armdyn.errors import InputError
from armdyn.parameters.minimal import MinimalParameters, minimal_parameters


def realise(chain: Chain, values: Sequence[Scalar], nearest: bool = False) -> Chain:
    """The chain with links that have these minimal parameters, in the order of their names.

    By default the links have many zeros, need not be physically consistent, and the values may be of any scalar type.
    With `nearest` the natural parameters are those nearest to the present ones (least squares in SI units), and the
    values must be numbers.
    """
    parameters = minimal_parameters(chain)
    if len(values) != len(parameters):
        raise InputError(f"this arm has {len(parameters)} minimal parameters, got {len(values)} values")
    if not nearest:
        return chain.with_links(parameters.links(values))
    return chain.with_links(_nearest(parameters, [Fraction(x) for x in values]))


def _nearest(parameters: MinimalParameters, values: list[Fraction]) -> tuple[Link, ...]:
    """Least squares: x₀ + Bᵀ (B Bᵀ)⁻¹ (w - B x₀), B the matrix; the realisation corrects the rounding error."""
    natural = [Fraction(x) for link in parameters.chain.links for x in link.natural]
    B = [[float(b) for b in row] for row in parameters.matrix]
    missing = [float(w - v) for w, v in zip(values, parameters.exact_values, strict=True)]
    weights = _solved([[_dot(a, b) for b in B] for a in B], missing)
    moved = [x + Fraction(_dot(column, weights)) for x, column in zip(natural, zip(*B, strict=True), strict=True)]
    nearly = parameters.chain.with_links(_links(moved))
    reached = MinimalParameters(nearly, "", parameters.combinations).exact_values
    left = [w - v for w, v in zip(values, reached, strict=True)]
    exactly = parameters.links(left)
    return tuple(a + b for a, b in zip(nearly.links, exactly, strict=True))


def _links(natural: Sequence[Scalar]) -> tuple[Link, ...]:
    return tuple(Link.from_natural(tuple(natural[k : k + 10])) for k in range(0, len(natural), 10))


def _dot(a: Sequence[float], b: Sequence[float]) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))


def _solved(A: list[list[float]], b: list[float]) -> list[float]:
    """A⁻¹ b for a symmetric positive definite A, by A = L Lᵀ."""
    L: list[list[float]] = []
    for i, row in enumerate(A):
        line: list[float] = []
        for j in range(i):
            line.append((row[j] - _dot(line, L[j][:j])) / L[j][j])
        L.append([*line, (row[i] - _dot(line, line)) ** 0.5])
    y: list[float] = []
    for line, x in zip(L, b, strict=True):
        y.append((x - _dot(line[:-1], y)) / line[-1])
    for i in reversed(range(len(y))):
        y[i] = (y[i] - sum(L[k][i] * y[k] for k in range(i + 1, len(y)))) / L[i][i]
    return y
