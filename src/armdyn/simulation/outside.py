"""What acts on a simulated arm besides its drives: a wrench on the tool, and the acceleration of the base."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from armdyn.errors import InputError
from armdyn.values import real_array


@dataclass(frozen=True)
class Outside:
    """The numbers that follow the drive's inputs: the wrench (6), then the base's acceleration (3).

    Arrays are (size,) or (lanes, 1, 1, size), with axes for steps and stages; a function of time has no lanes.
    """

    wrench: np.ndarray | None = None
    base: np.ndarray | Callable[[float], Any] | None = None

    @classmethod
    def of(cls, wrench: np.ndarray | None, base: Any) -> Outside | None:
        """What acts, None where nothing does."""
        return None if wrench is None and base is None else cls(wrench, base)

    def at(self, t: np.ndarray) -> np.ndarray:
        """The numbers at times t: (..., size), with the lanes before the axes of t."""
        parts = [part for part in (self.wrench, self._acceleration(t)) if part is not None]
        shape = np.broadcast_shapes(t.shape, *(part.shape[:-1] for part in parts))
        return np.concatenate([np.broadcast_to(part, (*shape, part.shape[-1])) for part in parts], axis=-1)

    def _acceleration(self, t: np.ndarray) -> np.ndarray | None:
        if not callable(self.base):
            return self.base
        moments, back = np.unique(t, return_inverse=True)
        rows = [real_array(self.base(float(one)), "base_acceleration") for one in moments]
        if any(row.shape != (3,) or not np.isfinite(row).all() for row in rows):
            wrong = next(i for i, row in enumerate(rows) if row.shape != (3,) or not np.isfinite(row).all())
            raise InputError(
                f"base_acceleration as a function of time returns three finite numbers; at t = {moments[wrong]:g} s it "
                f"returned {rows[wrong].tolist()}"
            )
        return np.stack(rows)[back.reshape(t.shape)]

    def rows(self, t: float, count: int) -> np.ndarray:
        """The numbers at one time for every lane, (count, size)."""
        now = self.at(np.array([[t]]))
        return np.broadcast_to(now.reshape(-1, now.shape[-1]), (count, now.shape[-1]))

    def some(self, lanes: np.ndarray) -> Outside:
        """The same for some lanes."""

        def chosen(x: Any) -> Any:
            return x if x is None or callable(x) or x.ndim == 1 else x[lanes]

        return replace(self, wrench=chosen(self.wrench), base=chosen(self.base))
