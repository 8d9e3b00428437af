"""Guaranteed bounds of the rounding error of a quantity's C code, in float or double."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from armdyn.arm import Arm
from armdyn.errors import InputError, choose
from armdyn.formulations import QUANTITIES
from armdyn.kernels.emission import ERROR_BOXES, TRIG_ULPS
from armdyn.kernels.rounding import Analysis, assumptions, largest_errors, precision
from armdyn.ranges import ACCELERATION, of_input
from armdyn.values import ComparedByValue


@dataclass(frozen=True, eq=False)
class RoundingError(ComparedByValue):
    """Bound of the rounding error of every entry of a quantity, valid within `ranges` (n, 2) under `assumptions`."""

    quantity: str
    dtype: str
    bound: Any
    ranges: dict[str, Any]
    assumptions: tuple[str, ...]

    def __repr__(self) -> str:
        return f"<RoundingError of {self.quantity} in {self.dtype}: at most {float(np.max(self.bound)):.3g}>"


def rounding_error(
    arm: Arm,
    quantity: str,
    *,
    q: Any = None,
    qd: Any = None,
    qdd: Any = None,
    dtype: str = "float",
    trig_ulps: float = TRIG_ULPS,
    boxes: int = ERROR_BOXES,
    progress: Callable[[float, float, str], None] | None = None,
) -> RoundingError:
    """Bound the rounding error of the C code that `Arm.emit_c` writes for a quantity.

    Parameters
    ----------
    arm, quantity
        Any quantity without division.
    q, qd, qdd
        (n, 2) ranges. Defaults: the joint limits, the velocity limits, accelerations of up to 10 rad/s² or m/s².
    dtype
        "float" or "double".
    trig_ulps
        The largest error of the library's sine and cosine, in units in the last place.
    boxes
        The number of boxes that the position ranges are split into; more give a sharper bound and take longer.
    progress
        Called with (done, total, text).
    """
    choose("quantity", quantity, QUANTITIES)
    arm.must_suit("a bound of rounding errors")
    if boxes < 1:
        raise InputError(f"boxes must be at least 1, got {boxes}")
    program = arm.kernel(quantity).program
    given = {"q": q, "qd": qd, "qdd": qdd}
    ranges = {port.name: of_input(arm, port.name, given.get(port.name), ACCELERATION) for port in program.inputs}
    analysis = Analysis(program, precision(dtype, trig_ulps), np.concatenate(list(ranges.values())))
    found = largest_errors(analysis, len(next(iter(ranges.values()))), boxes, progress)
    bound = found[: len(program.outputs[0].nodes)].reshape(program.outputs[0].shape)
    return RoundingError(quantity, dtype, bound, ranges, assumptions(dtype, trig_ulps))
