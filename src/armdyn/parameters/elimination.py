"""Exact elimination: the independent columns of a matrix, and the others as combinations of them.

Source: Lin 1994, Theorem 1 (and its proof): of a system y = A(θ) x take the columns of A that are independent over all
θ; then A(θ) x = Ā(θ) w(x), with w the kept unknowns plus constant multiples of the others.

Idea: rows of A at random θ are reduced modulo a Mersenne prime, so that numbers do not grow and no tolerance is needed;
the constants are then recovered by rational reconstruction. The result is wrong only if a random row hits a root modulo
a prime of 127 bits or more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import count
from typing import Any

from armdyn.errors import ComputationError, InputError

PRIMES = tuple(2**k - 1 for k in (127, 521, 1279, 4423))
IDLE = 4  # consecutive dependent rows after which the search ends


@dataclass(frozen=True)
class Combinations:
    """Minimal linear combinations w = matrix · x; `kept` are the independent columns (from 0), one per combination."""

    kept: tuple[int, ...]
    matrix: tuple[tuple[Any, ...], ...]

    @property
    def count(self) -> int:
        """The number of independent columns."""
        return len(self.kept)


def minimal_combinations(
    sampler: Callable[[], Sequence[Sequence[Any]]], p: int, tolerance: float | None = None
) -> Combinations:
    """Minimal combinations of the p unknowns of y = A(θ) x; of dependent columns, the first are kept.

    `sampler` returns A (rows of p numbers) at a new random θ at every call. Rational entries are handled exactly; float
    entries need a relative `tolerance` to tell rounding from independence.
    """
    rows = _rows(sampler, p)
    if tolerance is not None:
        return _with_tolerance(rows, p, tolerance)
    drawn: list[list[Fraction]] = []

    def row(k: int, prime: int) -> list[int]:
        while k >= len(drawn):
            drawn.append([_rational(x) for x in next(rows)])
        return [x.numerator * pow(x.denominator, -1, prime) % prime for x in drawn[k]]

    return exact_combinations(row, p)


def _rows(sampler: Callable[[], Sequence[Sequence[Any]]], p: int) -> Iterator[Sequence[Any]]:
    while True:
        block = sampler()
        if len(block) == 0:
            raise InputError("the sampler returned a matrix without rows")
        for row in block:
            if len(row) != p:
                raise InputError(f"the sampler returned a row of {len(row)} numbers, expected p = {p}")
            yield row


def _rational(x: Any) -> Fraction:
    if isinstance(x, int | Fraction):
        return Fraction(x)
    raise InputError(f"exact elimination needs int or Fraction entries, got {x!r}; floats need a tolerance")


def exact_combinations(row: Callable[[int, int], list[int]], p: int) -> Combinations:
    """The same from `row(k, prime)`: the k-th random row, modulo a prime.

    The smallest prime shows which columns are independent, and which of them each other column combines. If the
    coefficients are too long for it, they are recomputed modulo larger primes, for those columns only.
    """
    pivots = _reduced(row, p, PRIMES[0])
    kept = tuple(sorted(pivots))
    matrix = {k: [Fraction(int(c == k)) for c in range(p)] for k in kept}
    for column in sorted(set(range(p)) - set(kept)):
        shares = [k for k in kept if pivots[k][column]]
        for k, multiple in zip(shares, _multiples(row, shares, column, pivots), strict=True):
            matrix[k][column] = multiple
    return Combinations(kept, tuple(tuple(matrix[k]) for k in kept))


def independent_columns(row: Callable[[int, int], list[int]], p: int) -> tuple[int, ...]:
    """The independent columns, without the coefficients of the others."""
    return tuple(sorted(_reduced(row, p, PRIMES[0])))


def _multiples(
    row: Callable[[int, int], list[int]], parts: list[int], column: int, pivots: dict[int, list[int]]
) -> list[Fraction]:
    """The rational coefficients of `column` as a combination of the columns `parts`."""
    residues = [pivots[k][column] for k in parts]
    for prime in PRIMES:
        if prime != PRIMES[0]:
            small = _reduced(lambda k, m: [row(k, m)[c] for c in (*parts, column)], len(parts) + 1, prime)
            residues = [small[k][-1] for k in range(len(parts))]
        fractions = [_read_back(x, prime) for x in residues]
        whole = [x for x in fractions if x is not None]
        if len(whole) == len(fractions):
            return whole
    raise ComputationError(f"no rational of {PRIMES[-1].bit_length() // 2} bits fits; the constants are too long")


def _reduced(row: Callable[[int, int], list[int]], p: int, prime: int) -> dict[int, list[int]]:
    """The reduced row echelon form, by pivot column: entry c is the coefficient of that pivot in column c."""
    pivots: dict[int, list[int]] = {}
    idle = 0
    for k in count():
        new = row(k, prime)
        for column, line in pivots.items():
            if new[column]:
                f = new[column]
                new = [(x - f * y) % prime for x, y in zip(new, line, strict=True)]
        column = next((c for c, x in enumerate(new) if x), -1)
        if column < 0:
            idle += 1
            if idle == IDLE:
                return pivots
            continue
        idle = 0
        f = pow(new[column], -1, prime)
        new = [x * f % prime for x in new]
        for other, line in pivots.items():
            if line[column]:
                f = line[column]
                pivots[other] = [(x - f * y) % prime for x, y in zip(line, new, strict=True)]
        pivots[column] = new
        if len(pivots) == p:
            return pivots
    raise AssertionError("unreachable: count() does not end")


def _read_back(x: int, prime: int) -> Fraction | None:
    """Rational reconstruction: the short rational that is x modulo the prime; None if there is none."""
    bound = 1 << (prime.bit_length() // 2 - 24)
    r0, r1, t0, t1 = prime, x, 0, 1
    while r1 >= bound:
        q = r0 // r1
        r0, r1, t0, t1 = r1, r0 - q * r1, t1, t0 - q * t1
    return Fraction(r1, t1) if 0 < abs(t1) < bound else None


def _with_tolerance(rows: Iterator[Sequence[Any]], p: int, tolerance: float) -> Combinations:
    """Gram-Schmidt: each column is orthogonalised against those kept before; its remainder decides if it is kept."""
    sample = [[float(x) for x in next(rows)] for _ in range(3 * p + 10)]
    columns = [list(column) for column in zip(*sample, strict=True)]
    basis: list[tuple[list[float], list[float]]] = []  # unit vector, its coefficients in the kept columns
    kept: list[int] = []
    expressed: list[list[float]] = []
    for k, column in enumerate(columns):
        size = _norm(column)
        rest, coefficients = list(column), [0.0] * len(kept)
        for _ in range(2):  # orthogonalising twice is enough
            for unit, of_kept in basis:
                f = sum(a * b for a, b in zip(rest, unit, strict=True))
                rest = [a - f * b for a, b in zip(rest, unit, strict=True)]
                coefficients = [c + f * d for c, d in zip(coefficients, _padded(of_kept, len(kept)), strict=True)]
        length = _norm(rest)
        if size > 0 and length > tolerance * size:
            kept.append(k)
            basis.append(([a / length for a in rest], [-c / length for c in coefficients] + [1 / length]))
            coefficients = [0.0] * (len(kept) - 1) + [1.0]
        expressed.append(coefficients)
    matrix = tuple(tuple(_padded(c, len(kept))[i] for c in expressed) for i in range(len(kept)))
    return Combinations(tuple(kept), matrix)


def _norm(v: list[float]) -> float:
    return float(sum(a * a for a in v) ** 0.5)


def _padded(v: list[float], size: int) -> list[float]:
    return v + [0.0] * (size - len(v))


Row = dict[int, Fraction]


def sparse(row: Sequence[Any]) -> Row:
    """The nonzero entries of a row, by column."""
    return {k: Fraction(x) for k, x in enumerate(row) if x != 0}


def plus(a: Mapping[int, Fraction], factor: Fraction, b: Mapping[int, Fraction]) -> Row:
    """A + factor · b."""
    total = dict(a)
    for k, x in b.items():
        value = total.get(k, 0) + factor * x
        if value == 0:
            del total[k]
        else:
            total[k] = Fraction(value)
    return total


def solved_for(rows: Sequence[Row], columns: Sequence[int]) -> dict[int, Row]:
    """Rows recombined so that each has a 1 in one of `columns` and 0 in the others.

    Dependent rows are left out, and so are columns without a row.
    """
    pivots: dict[int, Row] = {}
    for row in rows:
        for column, line in pivots.items():
            if column in row:
                row = plus(row, -row[column], line)
        pivot = next((c for c in columns if c in row), None)
        if pivot is None:
            continue
        row = {k: x / row[pivot] for k, x in row.items()}
        for column, line in pivots.items():
            if pivot in line:
                pivots[column] = plus(line, -line[pivot], row)
        pivots[pivot] = row
    return pivots
