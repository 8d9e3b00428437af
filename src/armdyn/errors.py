"""The exceptions of armdyn. Each message says what was got, what was expected and what is available."""

from __future__ import annotations

import functools
import importlib
import inspect
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ParamSpec, TypeVar

from armdyn.names import meant, meant_keyword

P = ParamSpec("P")
R = TypeVar("R")


class ArmdynError(Exception):
    """Base class of every error armdyn raises on purpose."""


class InputError(ArmdynError, ValueError):
    """A value, shape or name that cannot be computed with."""


class KeywordError(ArmdynError, TypeError):
    """A keyword that a function does not take."""


class FileError(ArmdynError, ValueError):
    """A file that cannot be read as what it claims to be."""


class ComputationError(ArmdynError, ArithmeticError):
    """The input is well formed but the result does not exist (for example, a singular inertia matrix)."""


def count(number: int, thing: str, things: str = "") -> str:
    """A number of things, as in "1 joint" and "2 joints"."""
    return f"{number} {thing if number == 1 else things or thing + 's'}"


def choose(what: str, got: object, available: Iterable[str]) -> str:
    """Return `got` if it is one of `available`; otherwise raise an error that lists them and suggests the closest."""
    names = list(available)
    if isinstance(got, str) and got in names:
        return got
    available = ", ".join(names) or "none"
    if name := meant(got, names):
        raise InputError(f"unknown {what} {got!r}: armdyn calls this {name!r}; available: {available}")
    raise InputError(f"unknown {what} {got!r}; available: {available}{did_you_mean(got, names)}")


def did_you_mean(got: object, names: list[str]) -> str:
    """A suggestion of the name that `got` is elsewhere, abbreviates or misspells; "" if there is none."""
    from difflib import get_close_matches  # imported only for an error

    if name := meant(got, names):
        return f"; armdyn calls this {name!r}"
    if not isinstance(got, str) or not got:
        return ""
    asked = got.lower().replace("-", "_").replace(" ", "_")
    begun = [name for name in names if name.lower().startswith(asked)]
    near = begun or get_close_matches(asked, names, n=1, cutoff=0.75)
    return f"; did you mean {near[0]!r}?" if near else ""


def called_elsewhere(name: str, available: Iterable[str]) -> str:
    """The end of a message on a missing attribute: what armdyn calls it, or a name like it; "" if nothing is known."""
    return did_you_mean(name, [x for x in available if not x.startswith("_")])


CORE = ("scipy",)  # comes with armdyn, but may be uninstalled for its size; all other libraries are extras


class MissingPackage(ArmdynError, ImportError):  # noqa: N818 - a public name
    """A library that a task needs is not installed."""


def required(package: str) -> Any:
    """Import a library, or raise an error that says how to install it."""
    try:
        return importlib.import_module(package)
    except ImportError as error:
        named = package if package in CORE else f'"armdyn[{package}]"'
        raise MissingPackage(f"{package} is not installed; install it with: pip install {named}") from error


def former(old: str, new: str, stacklevel: int = 3) -> None:
    """Warn that `old` is the former spelling of `new`: it works for two versions more, then it goes."""
    warnings.warn(f"{old} is now {new}", DeprecationWarning, stacklevel=stacklevel)


def former_names(module: str, names: Mapping[str, str]) -> Callable[[str], object]:
    """A module's `__getattr__`, by which its former names still work, with a warning."""

    def get(name: str) -> object:
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        former(f"{module}.{name}", names[name])
        return getattr(sys.modules[module], names[name])

    return get


def checked_keywords(function: Callable[P, R]) -> Callable[P, R]:
    """The same function; a call with a keyword that it does not take says which one is meant, and what there is."""
    parameters = inspect.signature(function).parameters.values()
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    known = frozenset(names)
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return function

    @functools.wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        if not known.issuperset(kwargs):
            unknown = next(name for name in kwargs if name not in known)
            name = meant_keyword(unknown, names)
            hint = f"; armdyn calls this {name}=" if name else did_you_mean(unknown, names)
            raise KeywordError(
                f"{function.__name__}() got an unexpected keyword argument {unknown!r}{hint}; "
                f"it takes {', '.join(names)}"
            )
        return function(*args, **kwargs)

    return called
