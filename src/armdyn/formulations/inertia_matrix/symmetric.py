"""A symmetric matrix from its upper columns."""

from __future__ import annotations

from armdyn.algebra import Scalar

Matrix = list[list[Scalar]]


def filled(columns: list[list[Scalar]]) -> Matrix:
    """The full matrix; column i is D_1i … D_ii."""
    n = range(len(columns))
    return [[columns[max(i, j)][min(i, j)] for i in n] for j in n]
