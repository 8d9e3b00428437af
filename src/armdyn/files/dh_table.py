"""A chain from a Denavit-Hartenberg table given in Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, cast

from armdyn.algebra import Angle, Mat3, Vec3
from armdyn.chain import Chain, Joint, Limit, Link, Placement
from armdyn.chain.joint import Kind
from armdyn.errors import InputError, choose
from armdyn.files import arrays
from armdyn.files.dh import to_modified

CONVENTIONS = ("standard", "modified")
_GEOMETRY = ("theta", "d", "a", "alpha")
_LIMIT = ("lower", "upper", "velocity", "effort")
_EXTRA = ("rotor_inertia", "viscous", "coulomb")
_KEYS = (*_GEOMETRY, "kind", "name", *_LIMIT, *_EXTRA, "mass", "com", "inertia")


def chain(rows: Sequence[Any], convention: str, gravity: Any, base: Any, tool: Any) -> Chain:
    """The chain of a table; see `armdyn.from_dh`."""
    choose("convention", convention, CONVENTIONS)
    if isinstance(rows, str | Mapping) or (not isinstance(rows, Sequence) and not hasattr(rows, "tolist")):
        raise InputError(f"rows must be a list of rows, got {rows!r}")
    tables = [_row(i, row) for i, row in enumerate(rows, 1)]
    if not tables:
        raise InputError("a Denavit-Hartenberg table needs at least one row, got none")
    joints = tuple(_joint(i, row) for i, row in enumerate(tables, 1))
    links = tuple(_link(i, row) for i, row in enumerate(tables, 1))
    make = to_modified if convention == "standard" else Chain
    return make(joints, links, arrays.vector(gravity, "gravity"), _placement(base, "base"), _placement(tool, "tool"))


def _row(i: int, row: Any) -> Mapping[str, Any]:
    if isinstance(row, Mapping):
        for key in row:
            choose(f"key of row {i}", key, _KEYS)
        return row
    try:
        values = list(row)
    except TypeError:
        values = []
    if isinstance(row, str) or len(values) != len(_GEOMETRY):
        raise InputError(f"row {i} must be (theta, d, a, alpha) or a mapping with these keys, got {row!r}")
    return dict(zip(_GEOMETRY, values, strict=True))


def _joint(i: int, row: Mapping[str, Any]) -> Joint:
    def number(key: str) -> Fraction:
        return arrays.number(row.get(key, 0), f"{key} of row {i}")

    limits = {key: float(arrays.number(row[key], f"{key} of row {i}")) for key in _LIMIT if row.get(key) is not None}
    return Joint(
        kind=cast(Kind, choose(f"kind of row {i}", row.get("kind", "revolute"), ("revolute", "prismatic"))),
        b=number("a"),
        beta=Angle.of(float(number("alpha"))),
        d=number("d"),
        theta=Angle.of(float(number("theta"))),
        name=str(row.get("name", f"joint{i}")),
        limit=Limit(**limits),
        rotor_inertia=number("rotor_inertia"),
        viscous=number("viscous"),
        coulomb=number("coulomb"),
    )


def _link(i: int, row: Mapping[str, Any]) -> Link:
    mass = arrays.number(row.get("mass", 0), f"mass of row {i}")
    com = arrays.vector(row.get("com", (0, 0, 0)), f"com of row {i}")
    return Link.from_com(mass, com, arrays.inertia(row.get("inertia")))


def _placement(matrix: Any, what: str) -> Placement:
    """A (4, 4) pose as an exact placement; None is the identity."""
    if matrix is None:
        return Placement()
    rows = arrays.pose(matrix, what)
    R = Mat3(*(Vec3(*row[:3]) for row in rows[:3]))
    return Placement(R, Vec3(*(row[3] for row in rows[:3])))
