"""What callers hand over as numbers: real ones, none of them masked."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from armdyn.errors import InputError


def masked(array: object) -> bool:
    """Is this a masked array."""
    module = sys.modules.get("numpy.ma")  # without it there are none
    return module is not None and isinstance(array, module.MaskedArray)


def real_array(values: Any, what: str) -> np.ndarray:
    """The values as an array of float64; complex, masked and other ones are refused instead of cut to fit."""
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
