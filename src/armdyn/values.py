"""Values: attributes of frozen data computed once, fingerprints; checks and equality of arrays.

Up to Python 3.11 `functools.cached_property` holds a lock while it computes, one for all objects of a class. A process
that forks while a thread is inside leaves that lock held in the child forever, and threads that compute the same
attribute of different objects wait for one another. Here two threads may compute an attribute twice; both get the same
value.

A fingerprint is the same in every process and for equal numbers of any type.
"""

from __future__ import annotations

import functools
import hashlib
import sys
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

from armdyn.errors import InputError

if TYPE_CHECKING:
    from functools import cached_property as cached_property

    import numpy as np
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


class ComparedByValue:
    """Base of frozen dataclasses (with ``eq=False``) that hold arrays: `==` is one answer, NaN equals NaN.

    The equality that a dataclass writes for itself raises an error at its first array.
    """

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        names = (f.name for f in fields(cast(Any, self)) if f.compare)
        return all(same(getattr(self, name), getattr(other, name)) for name in names)


def same(a: Any, b: Any) -> bool:
    """Whether two values are equal, arrays by shape and entries, in lists and mappings too."""
    import numpy as np  # here, so that commands that need no arrays do not import it

    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        x, y = np.asarray(a), np.asarray(b)
        number = x.dtype.kind in "fc" and y.dtype.kind in "fc"
        return bool(np.array_equal(x, y, equal_nan=number))
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b) or (isinstance(a, float) and isinstance(b, float) and a != a and b != b)


def masked(array: object) -> bool:
    """Whether this is a masked array."""
    module = sys.modules.get("numpy.ma")  # there is no masked array before it is imported
    return module is not None and isinstance(array, module.MaskedArray)


def real_array(values: Any, what: str) -> np.ndarray:
    """The values as a float64 array; complex, masked and other arrays are refused, not converted lossily."""
    import numpy as np

    if masked(values):
        raise InputError(f"{what} must be plain numbers, got a masked array; see np.ma.filled")
    try:
        array = np.asarray(values)
        if np.can_cast(array.dtype, float, "same_kind"):
            return array.astype(float, copy=False)
    except (TypeError, ValueError):
        raise InputError(f"{what} must be numbers, got {values!r}") from None
    kind = "real numbers" if array.dtype.kind == "c" else "numbers"
    raise InputError(f"{what} must be {kind}, got {array.dtype}: {values!r}")


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
