"""Arrays as values: checks of arguments, equality of results that hold them."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, cast

import numpy as np

from armdyn.errors import InputError


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
