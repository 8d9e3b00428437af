"""Helpers of the control laws: vectors and matrices of scalars, PD feedback, a smooth sign, a low-pass filter."""

from __future__ import annotations

from collections.abc import Sequence

from armdyn.algebra import Scalar, sqrt

Vector = Sequence[Scalar]


def less(a: Vector, b: Vector) -> list[Scalar]:
    """The difference a - b."""
    return [x - y for x, y in zip(a, b, strict=True)]


def plus(a: Vector, b: Vector) -> list[Scalar]:
    """The sum a + b."""
    return [x + y for x, y in zip(a, b, strict=True)]


def scaled(factors: Vector, a: Vector) -> list[Scalar]:
    """The element-wise product."""
    return [k * x for k, x in zip(factors, a, strict=True)]


def dot(a: Vector, b: Vector) -> Scalar:
    """The scalar product."""
    return sum((x * y for x, y in zip(a, b, strict=True)), 0)


def times(matrix: Sequence[Vector], a: Vector) -> list[Scalar]:
    """A matrix times a vector."""
    return [dot(row, a) for row in matrix]


def transposed(matrix: Sequence[Vector]) -> list[list[Scalar]]:
    """The transposed matrix."""
    return [list(column) for column in zip(*matrix, strict=True)]


def pd(kp: Vector, kd: Vector, position: tuple[Vector, Vector], velocity: tuple[Vector, Vector]) -> list[Scalar]:
    """Kp (q_ref - q) + kd (q̇_ref - q̇), from pairs (reference, measured)."""
    return plus(scaled(kd, less(*velocity)), scaled(kp, less(*position)))


def smooth_sign(v: Scalar, width: Scalar) -> Scalar:
    """The sign of v, linear within about ±width: v / √(v² + width²)."""
    return v / sqrt(v * v + width * width)


def low_pass(before: Scalar, now: Scalar, gain: Scalar) -> Scalar:
    """The next value of a first-order low-pass filter by backward Euler, stable for any gain = bandwidth · dt."""
    return (before + gain * now) * (1 / (1 + gain))  # signals with the same gain share the reciprocal
