"""Numbers from a caller's arrays, checked and made exact."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from armdyn.algebra import Angle, Sym3, Vec3, exact
from armdyn.chain import Link, Placement
from armdyn.chain.checks import impossibility
from armdyn.errors import InputError
from armdyn.files.numbers import from_rpy, to_rpy

_ROUNDING = 1e-12  # R J Rᵀ is as symmetric as its products were rounded


def _array(value: Any, what: str, *shapes: tuple[int, ...]) -> Any:
    try:
        array = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise InputError(f"{what} must be numbers, got {value!r}") from None
    if array.shape not in shapes:
        expected = " or ".join(map(str, shapes))
        raise InputError(f"{what} must have the shape {expected}, got {array.shape}")
    if not np.isfinite(array).all():
        raise InputError(f"{what} must be finite, got {value!r}")
    return array


def number(value: Any, what: str) -> Fraction:
    """A finite number, exact."""
    return exact(float(_array(value, what, ())))


def vector(value: Any, what: str) -> Vec3:
    """Three finite numbers, exact."""
    x, y, z = (exact(float(v)) for v in _array(value, what, (3,)))
    return Vec3(x, y, z)


def numbers(value: Any, what: str) -> list[Fraction]:
    """A list of finite numbers, exact."""
    length = np.size(value)
    return [exact(float(v)) for v in _array(value, what, (length,))]


def inertia(value: Any) -> Sym3:
    """A symmetric (3, 3) matrix or the six numbers xx, yy, zz, xy, xz, yz; None is zero."""
    if value is None:
        return Sym3(0, 0, 0, 0, 0, 0)
    array = _array(value, "inertia", (6,), (3, 3))
    if array.shape == (3, 3):
        if np.abs(array - array.T).max() > _ROUNDING * np.abs(array).max():
            raise InputError(f"inertia must be symmetric, got {array.tolist()}")
        array = ((array + array.T) / 2)[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
    xx, yy, zz, xy, xz, yz = (exact(float(v)) for v in array)
    return Sym3(xx, xy, yy, xz, yz, zz)


def payload(mass: Any, com: Any, inertia_about_com: Any) -> Link:
    """A body somebody holds: an error where no body has this mass and inertia."""
    body = Link.from_com(number(mass, "mass"), vector(com, "com"), inertia(inertia_about_com))
    if reason := impossibility(body):
        raise InputError(f"this payload is not possible: {reason}")
    return body


def pose(value: Any, what: str) -> list[list[Fraction]]:
    """The exact numbers of a (4, 4) pose: a rotation and a translation."""
    T = _array(value, what, (4, 4))
    off = np.abs(T[:3, :3] @ T[:3, :3].T - np.eye(3)).max()
    if off > 1e-9 or np.linalg.det(T[:3, :3]) < 0 or not np.array_equal(T[3], [0, 0, 0, 1]):
        raise InputError(f"{what} must be a pose: a rotation (R Rᵀ is off by {off:.1e}) and the last row 0 0 0 1")
    return [[exact(float(x)) for x in row] for row in T]


def placement(xyz: Any, rpy: Any) -> Placement:
    """A placement from an origin and roll, pitch, yaw."""
    roll, pitch, yaw = (float(v) for v in _array(rpy, "rpy", (3,)))
    return Placement(from_rpy(roll, pitch, yaw), vector(xyz, "xyz"))


def tidy(place: Placement, before: Placement) -> Placement:
    """The placement in numbers of usual length: decimals, and a rotation of three angles unless it is as `before`.

    The angles are rounded to 13 digits, so that an arm file can write them down.
    """
    R, p = place.R, Vec3(*(exact(float(x)) for x in place.p))
    if R != before.R:
        R = from_rpy(*(angle if Angle.of(angle).is_right else round(angle, 13) for angle in to_rpy(R)))
    return Placement(R, p)
