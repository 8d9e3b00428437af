"""Conversion of the caller's arrays to exact numbers, with checks."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from armdyn.algebra import Angle, Mat3, Sym3, Vec3, exact
from armdyn.chain import Link, Placement
from armdyn.chain.joint import impossibility
from armdyn.errors import InputError
from armdyn.files.description import from_rpy, to_rpy

_ROUNDING = 1e-12  # relative; a computed R J Rᵀ is symmetric only up to rounding


def _array(value: Any, what: str, *shapes: tuple[int, ...]) -> Any:
    try:
        array = np.asarray(value, dtype=float)
    except OverflowError:
        raise InputError(f"{what} must be numbers that a float can hold, up to 1.8e308") from None
    except (TypeError, ValueError):
        raise InputError(f"{what} must be numbers, got {value!r}") from None
    if array.shape not in shapes:
        expected = " or ".join(map(str, shapes))
        raise InputError(f"{what} must have the shape {expected}, got {array.shape}")
    if not np.isfinite(array).all():
        raise InputError(f"{what} must be finite, got {value!r}")
    return array


def number(value: Any, what: str) -> Fraction:
    """A finite number as an exact rational."""
    return exact(float(_array(value, what, ())))


def vector(value: Any, what: str) -> Vec3:
    """Three finite numbers as an exact vector."""
    x, y, z = (exact(float(v)) for v in _array(value, what, (3,)))
    return Vec3(x, y, z)


def numbers(value: Any, what: str) -> list[Fraction]:
    """A list of finite numbers as exact rationals."""
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
    """The body of a payload; an error if its mass and inertia are physically impossible."""
    body = Link.from_com(number(mass, "mass"), vector(com, "com"), inertia(inertia_about_com))
    if reason := impossibility(body):
        raise InputError(f"this payload is not possible: {reason}")
    return body


def pose(value: Any, what: str) -> list[list[Fraction]]:
    """The exact numbers of a (4, 4) pose, or of another library's SE3 object: a rotation and a translation."""
    T = _array(as_matrix(value), what, (4, 4))
    R, last = T[:3, :3], T[3]
    off, determinant = np.abs(R @ R.T - np.eye(3)).max(), np.linalg.det(R)
    if off > 1e-9 or determinant < 0 or not np.array_equal(last, [0, 0, 0, 1]):
        raise InputError(
            f"{what} must be a pose: a rotation matrix R, and the last row 0 0 0 1; got R with determinant "
            f"{determinant:.3g}, R Rᵀ off the identity by {off:.1e}, and the last row {last.tolist()}"
        )
    return [[exact(float(x)) for x in row] for row in T]


def as_matrix(value: Any) -> Any:
    """The matrix of an SE3 object of Pinocchio, spatialmath or SciPy; any other value as it is."""
    for name in ("homogeneous", "A"):
        if hasattr(value, name) and not isinstance(value, np.ndarray):
            return getattr(value, name)
    return value.as_matrix() if hasattr(value, "as_matrix") else value


def posed(value: Any, what: str) -> Placement:
    """The placement of a (4, 4) pose or an SE3 object."""
    rows = pose(value, what)
    return Placement(Mat3(*(Vec3(*row[:3]) for row in rows[:3])), Vec3(*(row[3] for row in rows[:3])))


def placement(xyz: Any, rpy: Any) -> Placement:
    """A placement from an origin and roll, pitch, yaw, or from a (4, 4) pose or an SE3 object given as `xyz`."""
    given = as_matrix(xyz)
    if np.ndim(given) == 2:
        if np.any(_array(rpy, "rpy", (3,))):
            raise InputError(f"give a pose, or xyz and rpy, not a pose and rpy; got rpy {rpy!r}")
        return posed(given, "the pose")
    roll, pitch, yaw = (float(v) for v in _array(rpy, "rpy", (3,)))
    return Placement(from_rpy(roll, pitch, yaw), vector(xyz, "xyz"))


def tidy(place: Placement, before: Placement) -> Placement:
    """The placement with short numbers: decimals, and a rotation of roll, pitch, yaw unless it equals `before`.

    The angles are rounded to 13 decimals, so that an arm file can represent the rotation exactly.
    """
    R, p = place.R, Vec3(*(exact(float(x)) for x in place.p))
    if R != before.R:
        R = from_rpy(*(angle if Angle.of(angle).is_right else round(angle, 13) for angle in to_rpy(R)))
    return Placement(R, p)
