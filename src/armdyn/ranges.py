"""Ranges of positions, velocities and accelerations: as given, or from the arm's limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from armdyn.errors import InputError, choose


def pair(given: Any, name: str, shape: tuple[int, ...]) -> Any:
    """The given numbers as an array of lower and upper ends."""
    try:
        array = np.array(given, dtype=float)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must be numbers of shape {shape} (lower, upper), got {given!r}") from error
    if array.shape != shape or not np.isfinite(array).all() or (array[..., 0] > array[..., 1]).any():
        raise InputError(f"{name} must be finite, of shape {shape}, lower before upper; got {array.tolist()}")
    return array


ACCELERATION = 10.0  # rad/s² or m/s²: the default range for bounds of rounding errors


def for_rounding(arm: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """The known ranges (n, 2) of q, qd and qdd: as given, the limits, or `ACCELERATION`."""
    arm.must_suit("a bound of rounding errors")
    for name in given:
        choose("input with a range", name, ("q", "qd", "qdd"))
    known = {"q": arm.limits, "qd": arm.velocity_limits, "qdd": 0.0}
    names = [name for name, limits in known.items() if name in given or np.isfinite(limits).all()]
    return {name: of_input(arm, name, given.get(name), ACCELERATION) for name in names}


def of_input(arm: Any, name: str, given: Any, acceleration: float = 0.0) -> Any:
    """(n, 2) the range of one input: as given, or the limits; accelerations are up to `acceleration` in magnitude."""
    if given is not None:
        return pair(given, name, (arm.n, 2))
    speeds, most = arm.velocity_limits, np.full(arm.n, acceleration)
    symmetric = {key: np.stack([-ends, ends], axis=1) for key, ends in (("qd", speeds), ("qdd", most))}
    default = {"q": arm.limits, **symmetric}.get(name)
    if default is None:
        raise InputError(f"there is no range for the input {name}; q, qd and qdd have one")
    if not np.isfinite(default).all():
        unlimited = [arm.joint_names[k] for k in np.flatnonzero(~np.isfinite(default).all(axis=1))]
        raise InputError(
            f"{arm.name} has no limit of {name} for {', '.join(unlimited)}; give {name}= as an (n, 2) array"
        )
    return default
