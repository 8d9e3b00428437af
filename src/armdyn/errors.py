"""The errors armdyn raises: few, and each says what it got, what it expected and what is available."""

from __future__ import annotations

from collections.abc import Iterable


class ArmdynError(Exception):
    """Base class of every error armdyn raises on purpose."""


class InputError(ArmdynError, ValueError):
    """A value, shape or name that cannot be computed with."""


class FileError(ArmdynError, ValueError):
    """A file that cannot be read as what it claims to be."""


class ComputationError(ArmdynError, ArithmeticError):
    """The numbers are well formed but the answer does not exist (a singular inertia matrix, say)."""


def choose(what: str, got: object, available: Iterable[str]) -> str:
    """The name `got` if it is one of `available`; otherwise an error that lists them."""
    names = list(available)
    if isinstance(got, str) and got in names:
        return got
    raise InputError(f"unknown {what} {got!r}; available: {', '.join(names) or 'none'}")
