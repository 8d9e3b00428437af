"""Checks of array arguments: real numbers, not masked."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from armdyn.errors import InputError


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
