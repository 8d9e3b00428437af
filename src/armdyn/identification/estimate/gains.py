"""Gains: the ratio of torque to logged effort per joint, as identified by `identify_gains`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Gains:
    """The ratio of torque to logged effort per joint, with standard deviations."""

    values: Array
    deviations: Array
    warnings: tuple[str, ...] = ()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self.values, dtype=dtype)
