"""A chain from a Denavit-Hartenberg table given in Python."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, cast

from armdyn.algebra import ZERO, Angle, Mat3, Vec3
from armdyn.chain import Chain, Joint, Limit, Link, Placement
from armdyn.chain.joint import NUMBERS, JointForces, Kind
from armdyn.errors import InputError, choose
from armdyn.files import arrays
from armdyn.files.description import Frame
from armdyn.files.dh import along, to_modified

CONVENTIONS = ("standard", "modified")
_GEOMETRY = ("theta", "d", "a", "alpha")
_LIMIT = ("lower", "upper", "velocity", "effort")
_KEYS = (*_GEOMETRY, "kind", "name", "flip", *_LIMIT, "rotor_inertia", "viscous", "coulomb", "static", "stribeck",
         *NUMBERS, "mass", "com", "inertia")  # fmt: skip
_TURNED = Mat3(Vec3(1, 0, 0), Vec3(0, -1, 0), Vec3(0, 0, -1))  # half a turn about x


def chain(rows: Sequence[Any], convention: str, gravity: Any, base: Any, tool: Any) -> tuple[Chain, tuple[Frame, ...]]:
    """The chain of a table, and the frames of its links as in the table; see `armdyn.from_dh`."""
    choose("convention", convention, CONVENTIONS)
    if isinstance(rows, str | Mapping) or (not isinstance(rows, Sequence) and not hasattr(rows, "tolist")):
        raise InputError(f"rows must be a list of rows, got {rows!r}")
    tables = [_row(i, row) for i, row in enumerate(rows, 1)]
    if not tables:
        raise InputError("a Denavit-Hartenberg table needs at least one row, got none")
    joints = tuple(_joint(i, row) for i, row in enumerate(tables, 1))
    links = tuple(_link(i, row) for i, row in enumerate(tables, 1))
    names = [joint.name for joint in joints]
    if doubled := next((name for k, name in enumerate(names) if name in names[:k]), ""):
        raise InputError(f"two joints are named {doubled!r}: the joints of rows {', '.join(_rows_of(doubled, names))}")
    make = to_modified if convention == "standard" else Chain
    ends = [Placement() if end is None else arrays.posed(end, what) for end, what in ((base, "base"), (tool, "tool"))]
    made = make(joints, links, arrays.vector(gravity, "gravity"), *ends)
    flags = [_flag(i, row) for i, row in enumerate(tables, 1)]
    frames = []
    for k, (joint, flag) in enumerate(zip(joints, flags, strict=True), 1):
        at = along(joint.b, joint.beta) if convention == "standard" else Placement()
        frames.append(Frame(f"link{k}", k, Placement(_TURNED, ZERO) @ at if flag else at))
    return _flipped(made, flags), tuple(frames)


def _rows_of(name: str, names: list[str]) -> list[str]:
    return [str(k) for k, other in enumerate(names, 1) if other == name]


def _flag(i: int, row: Mapping[str, Any]) -> bool:
    flag = row.get("flip", False)
    if flag not in (True, False):
        raise InputError(f"flip of row {i} must be True or False, got {flag!r}")
    return bool(flag)


def _flipped(chain: Chain, flags: list[bool]) -> Chain:
    """The chain with joints that move the other way: q is subtracted. Their z axes, and their frames, are turned over.

    Rz(θ - q) Tz(d) = Rx(π) Rz(q - θ) Tz(-d) Rx(π), where the half turns join the β before and after.
    """
    joints, links, tool = list(chain.joints), list(chain.links), chain.tool
    for i, flag in enumerate(flags):
        if not flag:
            continue
        joint = joints[i]
        joints[i] = replace(joint, beta=_over(joint.beta), d=-joint.d, theta=joint.theta.opposite)
        links[i] = links[i].moved(_TURNED, ZERO)
        if i + 1 < len(joints):
            joints[i + 1] = replace(joints[i + 1], beta=_over(joints[i + 1].beta))
        else:
            tool = Placement(_TURNED, ZERO) @ tool
    return replace(chain, joints=tuple(joints), links=tuple(links), tool=tool)


def _over(angle: Angle) -> Angle:
    """The angle plus or minus half a turn."""
    return Angle.of(angle.radians - math.pi if angle.radians > 0 else angle.radians + math.pi)


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

    coulomb, shift = _coulomb(i, row.get("coulomb", 0))
    numbers: dict[str, Any] = {key: number(key) for key in NUMBERS}
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
        coulomb=coulomb,
        static=number("static"),
        stribeck=number("stribeck"),
        forces=JointForces(**(numbers | {"offset": numbers["offset"] + shift})),
    )


def _coulomb(i: int, value: Any) -> tuple[Fraction, Fraction]:
    """Coulomb friction, and the constant force that makes it different forwards and backwards.

    A pair (Tc+, Tc-) with Tc+ ≥ 0 ≥ Tc-, as in the Robotics Toolbox, is friction of (Tc+ - Tc-) / 2 about an offset of
    (Tc+ + Tc-) / 2.
    """
    if isinstance(value, str) or not hasattr(value, "__len__"):
        return arrays.number(value, f"coulomb of row {i}"), Fraction(0)
    pair = arrays.numbers(value, f"coulomb of row {i}")
    if len(pair) != 2 or pair[0] < 0 or pair[1] > 0:
        raise InputError(f"coulomb of row {i} must be a number, or a pair (Tc+, Tc-) with Tc+ ≥ 0 ≥ Tc-; got {value!r}")
    return (pair[0] - pair[1]) / 2, (pair[0] + pair[1]) / 2


def _link(i: int, row: Mapping[str, Any]) -> Link:
    mass = arrays.number(row.get("mass", 0), f"mass of row {i}")
    com = arrays.vector(row.get("com", (0, 0, 0)), f"com of row {i}")
    return Link.from_com(mass, com, arrays.inertia(row.get("inertia")))
