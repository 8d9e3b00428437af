"""How far the C code of a quantity is off at most, in float or double."""

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


@dataclass(frozen=True)
class RoundingError:
    """How far every entry of a quantity is off at most, valid within `ranges` (n, 2) under `assumptions`."""

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
    """Bound how far the C code that `Arm.emit_c` writes for a quantity is off at most.

    Parameters
    ----------
    arm, quantity
        Any quantity without division.
    q, qd, qdd
        (n, 2) ranges. By default the joint limits; velocities within their limits; accelerations of up to 10 rad/s²
        or m/s².
    dtype
        "float" or "double".
    trig_ulps
        How many units in the last place the library's sine and cosine are off at most.
    boxes
        Into how many boxes the positions' ranges are cut; more are sharper and take longer.
    progress
        Called with (done, total, text).
    """
    choose("quantity", quantity, QUANTITIES)
    arm.require_fixed_base("a bound of rounding errors")
    if boxes < 1:
        raise InputError(f"boxes must be at least 1, got {boxes}")
    program = arm.kernel(quantity).program
    given = {"q": q, "qd": qd, "qdd": qdd}
    ranges = {port.name: of_input(arm, port.name, given.get(port.name), ACCELERATION) for port in program.inputs}
    analysis = Analysis(program, precision(dtype, trig_ulps), np.concatenate(list(ranges.values())))
    found = largest_errors(analysis, len(next(iter(ranges.values()))), boxes, progress)
    bound = found[: len(program.outputs[0].nodes)].reshape(program.outputs[0].shape)
    return RoundingError(quantity, dtype, bound, ranges, assumptions(dtype, trig_ulps))
