"""The geometry constants of a robot as one vector: names, values, and the robot with other values.

The constants are those of `Joint`, in its order: Tz(shift) Rz(turn) Tx(b) Rx(β) Ry(γ) Tz(d) Rz(θ). Shift and turn are
listed only if the parent link carries several joints, and γ only if the axis is nearly parallel to the previous one
(Hayati & Mirmirani 1985), where b and β cannot describe every small error. A fixed base comes first, and the tool of a
robot with one tip last: three coordinates, and roll, pitch and yaw *relative to the current orientation*, so that no
placement is singular.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from armdyn.algebra import Angle, Mat3, Scalar, Vec3, cos, exact, sin
from armdyn.algebra.scalar import is_number
from armdyn.chain import exactly
from armdyn.chain.chain import Chain
from armdyn.chain.joint import Joint, Placement
from armdyn.errors import InputError

NEARLY_PARALLEL = 0.1  # sine of the angle between neighbouring axes below which γ is among the constants
LENGTHS = ("b", "d", "shift")
PLACEMENT = ("x", "y", "z", "roll", "pitch", "yaw")


@dataclass(frozen=True, slots=True)
class GeometryConstant:
    """One constant of joint `joint` (from 0) or, if that is None, of the placement of the base or the tool."""

    kind: str  # a field of `Joint`, or base_x … base_yaw, tool_x … tool_yaw
    joint: int | None = None

    @property
    def name(self) -> str:
        """``b_1``, ``beta_1``, ``theta_1``, counted from 1 like the minimal parameters; ``base_x``, ``tool_yaw``."""
        return self.kind if self.joint is None else f"{self.kind}_{self.joint + 1}"

    @property
    def is_length(self) -> bool:
        """Whether it is a length in metres; otherwise an angle in radians."""
        return self.kind in LENGTHS if self.joint is not None else self.kind[-1] in "xyz" and self.kind[-2] == "_"

    def of(self, chain: Chain) -> float:
        """Its value in this chain; the angles of base and tool are relative to their current orientation, hence 0."""
        if self.joint is None:
            place = chain.base if self.kind.startswith("base") else chain.tool
            return float(getattr(place.p, self.kind[-1])) if self.is_length else 0.0
        return float(getattr(chain.joints[self.joint], self.kind))


@lru_cache(maxsize=64)
def geometry_constants(chain: Chain) -> tuple[GeometryConstant, ...]:
    """The constants behind the entries of the geometry vector: base, joints from the base outwards, tool."""
    constants = [] if chain.floating else [GeometryConstant(f"base_{part}") for part in PLACEMENT]
    for i, (joint, parent) in enumerate(zip(chain.joints, chain.parents, strict=True)):
        if joint.free:
            continue
        forked = chain.parents.count(parent) > 1 or joint.forked
        skew = abs(float(joint.beta.sin)) > NEARLY_PARALLEL and joint.gamma.sin == 0
        kinds = ("shift", "turn") * forked + ("b", "beta") + ("gamma",) * (not skew) + ("d", "theta")
        constants += [GeometryConstant(kind, i) for kind in kinds]
    if len(chain.tips) == 1:
        constants += [GeometryConstant(f"tool_{part}") for part in PLACEMENT]
    return tuple(constants)


def geometry_values(chain: Chain) -> tuple[float, ...]:
    """The current values of the geometry constants."""
    return tuple(constant.of(chain) for constant in geometry_constants(chain))


def with_geometry(chain: Chain, values: Sequence[Scalar]) -> Chain:
    """The chain with other geometry constants, which may be numbers or inputs of a program.

    The inertial parameters of the links are unchanged in their own frames, which move with the joints.
    """
    constants = geometry_constants(chain)
    if len(values) != len(constants):
        raise InputError(f"this arm has {len(constants)} geometry constants, got {len(values)} values")
    given = dict(zip(constants, values, strict=True))
    joints = tuple(_joint(i, joint, given) for i, joint in enumerate(chain.joints))
    base = chain.base if chain.floating else _placed(chain.base, "base", given)
    tool = _placed(chain.tool, "tool", given) if len(chain.tips) == 1 else chain.tool
    return replace(chain, joints=joints, base=base, tool=tool)


def _joint(i: int, joint: Joint, given: dict[GeometryConstant, Scalar]) -> Joint:
    changes: dict[str, Any] = {}
    for kind in ("shift", "turn", "b", "beta", "gamma", "d", "theta"):
        constant = GeometryConstant(kind, i)
        if constant in given:
            x = given[constant]
            changes[kind] = _length(x) if kind in LENGTHS else _angle(x)
    return replace(joint, **changes)


def _placed(today: Placement, which: str, given: dict[GeometryConstant, Scalar]) -> Placement:
    x, y, z, *angles = (given[GeometryConstant(f"{which}_{part}")] for part in PLACEMENT)
    p = Vec3(_length(x), _length(y), _length(z))
    roll, pitch, yaw = map(_angle, angles)
    if all(map(is_number, angles)):
        return Placement(exactly.product(today.R, exactly.from_rpy(roll, pitch, yaw)), p)
    return Placement(today.R @ _rpy(roll, pitch, yaw), p)


def _length(x: Scalar) -> Scalar:
    return exact(x) if is_number(x) else x


def _angle(x: Scalar) -> Angle:
    return Angle.of(x) if is_number(x) else Angle(x, cos(x), sin(x))


def _rpy(roll: Angle, pitch: Angle, yaw: Angle) -> Mat3:
    """Rz(yaw) Ry(pitch) Rx(roll), of any scalar."""
    (cr, sr), (cp, sp), (cy, sy) = ((a.cos, a.sin) for a in (roll, pitch, yaw))
    return Mat3(
        Vec3(cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr),
        Vec3(sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr),
        Vec3(-sp, cp * sr, cp * cr),
    )
