"""Taylor remainder bounds of functions of joint angles, from their Fourier series.

Idea: an entry of the dynamics is a trigonometric polynomial of degree at most 2 in every revolute joint: positions are
of degree 1, and the dynamics are quadratic in them. Its values at five angles per joint determine it exactly,
f(q) = Σ f̂(a) exp(i a·q), |a_k| <= 2. The remainder of the Taylor expansion of exp(i a·δ) up to order p - 1 is at most
|a·δ|^p / p!, so that of f, on a box with radii r about any point, is at most Σ |f̂(a)| (Σ |a_k| r_k)^p / p!. This is a
polynomial in the radii whose coefficients are computed once for all boxes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np

DEGREE = 2
ANGLES = 2 * DEGREE + 1
FREQUENCIES = np.array([0, 1, 2, -2, -1])  # in the order of the discrete Fourier transform
MOST_JOINTS = 7  # 5^7 coefficients
SLACK = 1e-9  # relative; exceeds the rounding error of sums of nonnegative numbers
UNIT = 2.0**-53


def grid(joints: int) -> Any:
    """(5^joints, joints) angles at which samples determine a series."""
    angles = 2 * math.pi * np.arange(ANGLES) / ANGLES
    return _tuples(angles, joints)


def monomials(order: int, joints: int) -> list[tuple[int, ...]]:
    """The monomials of a homogeneous polynomial in the radii, as tuples of joints."""
    return list(combinations_with_replacement(range(joints), order))


def factorials(one: tuple[int, ...]) -> int:
    """The divisor of the partial derivative by these joints in a Taylor expansion."""
    return math.prod(math.factorial(one.count(k)) for k in set(one))


@dataclass(frozen=True)
class Series:
    """Fourier coefficients (5^joints, functions) of functions of angles, with error bounds (functions,)."""

    joints: int
    coefficients: Any
    error: Any  # (functions,)

    @classmethod
    def of(cls, samples: Any, joints: int, error: Any) -> Series:
        """The series of functions from their values on the `grid`, (5^joints, functions), with errors up to `error`.

        The transform is a product with a 5 x 5 matrix per joint, each with a rounding error of a few units of the
        largest value. Grid points are rounded too: a derivative is at most the degree times the largest value
        (Bernstein), which is at most 2^joints times the largest value on the grid.
        """
        turn = np.exp(-2j * math.pi * np.outer(FREQUENCIES, np.arange(ANGLES)) / ANGLES) / ANGLES
        table = samples.reshape(*[ANGLES] * joints, -1).astype(complex)
        for axis in range(joints):
            table = np.moveaxis(np.tensordot(turn, table, axes=(1, axis)), 0, axis)
        lost = joints * (40 * UNIT + 8 * UNIT * DEGREE * 2**joints) * np.abs(samples).max(axis=0, initial=0)
        return cls(joints, table.reshape(ANGLES**joints, -1), error + lost)

    def at(self, q: Any) -> Any:
        """The functions at one configuration (joints,)."""
        return np.real(np.exp(1j * _tuples(FREQUENCIES, self.joints) @ q) @ self.coefficients)

    def remainders(self, weights: Any, order: int) -> Any:
        """(combinations, monomials) remainder polynomials of linear combinations (combinations, functions)."""
        rows, starts, sizes = _half(self.joints)
        table = _remainder_table(sizes, order)
        amplitudes = np.abs(self.coefficients[rows] @ weights.T.astype(complex))
        together = 2 * np.add.reduceat(amplitudes, starts, axis=0)  # of the frequencies that differ only in signs
        how_many = 2 * np.diff([*starts, len(rows)])
        errors = how_many[:, None] * (np.abs(weights) @ self.error)
        return ((together + errors).T @ table) * (1 + SLACK)


def _tuples(values: Any, joints: int) -> Any:
    return np.array(list(product(values, repeat=joints))).reshape(-1, joints)


@lru_cache(maxsize=4)
def _half(joints: int) -> tuple[Any, Any, Any]:
    """Rows of one of every two conjugate nonzero frequencies, grouped by magnitudes.

    Also returns the start of each group and its magnitudes (groups, joints).
    """
    frequencies = _tuples(FREQUENCIES, joints)
    leading = np.array([next((x for x in row if x), 0) for row in frequencies])
    rows = np.flatnonzero(leading > 0)
    codes = np.abs(frequencies[rows]) @ 3 ** np.arange(joints)
    rows = rows[np.argsort(codes, kind="stable")]
    _, starts = np.unique(np.sort(codes), return_index=True)
    return rows, starts, np.abs(frequencies[rows[starts]]).astype(float)


def _remainder_table(sizes: Any, order: int) -> Any:
    """(groups, monomials): the remainder for coefficients of total size 1, Π |a_k|^e_k / e_k! for each monomial r^e."""
    columns = [
        np.prod([sizes[:, k] for k in one], axis=0) / factorials(one) for one in monomials(order, sizes.shape[1])
    ]
    return np.stack(columns, axis=1)
