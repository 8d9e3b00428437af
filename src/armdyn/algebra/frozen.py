"""Frozen data: attributes computed once without a lock, and fingerprints.

Up to Python 3.11 `functools.cached_property` holds a lock while it computes, one for all objects of a class. A process
that forks while a thread is inside leaves that lock held in the child forever, and threads that compute the same
attribute of different objects wait for one another. Here two threads may compute an attribute twice; both get the same
value.

A fingerprint is the same in every process and for equal numbers of any type.
"""

from __future__ import annotations

import functools
import hashlib
from dataclasses import MISSING, fields, is_dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from functools import cached_property
else:

    class cached_property(functools.cached_property):  # noqa: N801
        """An attribute that is computed on first access."""

        def __get__(self, instance: Any, owner: Any = None) -> Any:
            """The value, computed and kept in the instance's dictionary."""
            if instance is None:
                return self
            kept = instance.__dict__
            if self.attrname not in kept:
                kept[self.attrname] = self.func(instance)
            return kept[self.attrname]


__all__ = ["cached_property"]


def fingerprint(*data: Any) -> str:
    """64 hexadecimal digits that are equal for equal data (0 and Fraction(0) are equal) and for no other.

    A field that has its default value does not count, so that a new field changes only what uses it; nor does a field
    that is not compared.
    """
    return hashlib.sha256(_canonical(data).encode()).hexdigest()


def _canonical(x: Any) -> str:
    if x is None or isinstance(x, str):
        return repr(x)
    if isinstance(x, bytes):
        return hashlib.sha256(x).hexdigest()
    if isinstance(x, tuple):
        return f"({','.join(map(_canonical, x))})"
    if is_dataclass(x) and not isinstance(x, type):
        texts = ((name, _canonical(getattr(x, name)), default) for name, default in _defaults(type(x)))
        return f"{type(x).__name__}({','.join(f'{name}={text}' for name, text, default in texts if text != default)})"
    return str(Fraction(x))


@lru_cache(maxsize=256)
def _defaults(kind: Any) -> tuple[tuple[str, str | None], ...]:
    """The fields of a dataclass, each with the text of its default value."""
    factories = ((f.name, f.default, f.default_factory) for f in fields(kind) if f.compare)
    made = ((name, x if make is MISSING else make()) for name, x, make in factories)
    return tuple((name, None if x is MISSING else _canonical(x)) for name, x in made)
