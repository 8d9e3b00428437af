"""The exceptions of armdyn. Each message says what was got, what was expected and what is available."""

from __future__ import annotations

from collections.abc import Iterable


class ArmdynError(Exception):
    """Base class of every error armdyn raises on purpose."""


class InputError(ArmdynError, ValueError):
    """A value, shape or name that cannot be computed with."""


class FileError(ArmdynError, ValueError):
    """A file that cannot be read as what it claims to be."""


class ComputationError(ArmdynError, ArithmeticError):
    """The input is well formed but the result does not exist (for example, a singular inertia matrix)."""


def choose(what: str, got: object, available: Iterable[str]) -> str:
    """Return `got` if it is one of `available`; otherwise raise an error that lists them and suggests the closest."""
    names = list(available)
    if isinstance(got, str) and got in names:
        return got
    raise InputError(f"unknown {what} {got!r}; available: {', '.join(names) or 'none'}{did_you_mean(got, names)}")


def did_you_mean(got: object, names: list[str]) -> str:
    """A suggestion of the name that `got` abbreviates or misspells; "" if there is none."""
    from difflib import get_close_matches  # imported only for an error

    if not isinstance(got, str) or not got:
        return ""
    asked = got.lower().replace("-", "_").replace(" ", "_")
    begun = [name for name in names if name.lower().startswith(asked)]
    near = begun or get_close_matches(asked, names, n=1, cutoff=0.75)
    return f"; did you mean {near[0]!r}?" if near else ""
