"""What a paper calls the values that its algorithm computes on the way, for derivations that can be read.

A formulation says `named("mhat_3", x)` where the paper has m̂₃. That is the identity and costs nothing, unless somebody
collects names (`naming`): then every scalar, vector, symmetric matrix or list of lists that passes is noted.

Names are written as SymPy typesets them: mhat_3 is m̂₃, alphaprime_12 is α′₁₂, f_3x__2 the x component of f₃ in
frame 2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from armdyn.algebra.spatial import Sym3, Vec3

T = TypeVar("T")
SYMMETRIC = ("xx", "xy", "yy", "xz", "yz", "zz")


Group = list[tuple[str, Any]]  # names and values that were noted together


class Names:
    """What was noted, in order: groups of named values, and matrices (label, rows) that are made of such values."""

    def __init__(self) -> None:
        self.notes: list[Group | tuple[str, list[list[Any]]]] = []
        self.spare: list[tuple[Any, str]] = []  # names of values that get one only where formulas would be too long


_ACTIVE: ContextVar[Names | None] = ContextVar("armdyn_names", default=None)


@contextmanager
def naming() -> Iterator[Names]:
    """Collect the names of values computed inside this block."""
    names = Names()
    token = _ACTIVE.set(names)
    try:
        yield names
    finally:
        _ACTIVE.reset(token)


def named(name: str, value: T, frame: int | None = None) -> T:
    """`value`, noted under its name if names are collected; entries of vectors and tensors get their axes."""
    names = _ACTIVE.get()
    if names is not None:
        entries: tuple[tuple[str, Any], ...] = (("", value),)
        if isinstance(value, Vec3):
            entries = tuple(zip("xyz", value, strict=True))
        elif isinstance(value, Sym3):
            entries = tuple(zip(SYMMETRIC, value.entries, strict=True))
        after = "" if frame is None else f"__{frame}"
        names.notes.append([(f"{name}{axis}{after}", entry) for axis, entry in entries])
    return value


def named_if_long(name: str, value: T) -> T:
    """`value`, which gets this name only if formulas without it would be too long to read."""
    names = _ACTIVE.get()
    if names is not None:
        names.spare.append((value, name))
    return value


def named_entries(name: str, matrix: list[list[Any]]) -> None:
    """Note the upper triangle of a symmetric matrix, entry by entry."""
    names = _ACTIVE.get()
    if names is not None:
        places = ((i, j) for i in range(len(matrix)) for j in range(i, len(matrix)))
        names.notes.append([(f"{name}_{index(i, j)}", matrix[i][j]) for i, j in places])


def named_matrix(name: str, matrix: Callable[[], list[list[Any]]]) -> None:
    """Note a matrix to be shown beside the results; it is made only if names are collected."""
    names = _ACTIVE.get()
    if names is not None:
        names.notes.append((name, matrix()))


def index(*places: int) -> str:
    """Indices counted from 1, as papers write them: 12, or 1,12 where one has two digits."""
    numbers = [str(place + 1) for place in places]
    return ("," if max(map(len, numbers), default=1) > 1 else "").join(numbers)
