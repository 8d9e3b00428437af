"""Position servos of an MJCF model: actuators with the force kp (c - q) - kv qd at a joint, as `<position>` makes them.

Other actuators with a bias are noted: several at one joint, those with a gear, a filter or a limit of the force that is
not symmetric, and those at tendons have no record in an arm.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from armdyn.algebra import exact
from armdyn.chain.servo import Servo

_SINGLE = (2, 3)  # the values of mjtJoint for slide and hinge
_FIXED, _AFFINE, _NO_DYNAMICS = 0, 1, 0  # of mjtGain, mjtBias and mjtDyn
_ROUNDING = 1e-9  # rad or m


@dataclass
class Servos:
    """Joint by joint the servo and the limit of its actuator's force; notes on what is left out."""

    laws: dict[int, Servo] = field(default_factory=dict)
    efforts: dict[int, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def position_servos(data: dict[str, Any], name: Callable[[str, int], str], followers: set[int]) -> Servos:
    """The servos of all joints but those that follow others."""
    found = Servos()
    kinds = data["transmissions"].values()
    ends = [data["actuator_trnid"][i][0] if data["actuator_trntype"][i] in kinds else -1 for i in range(data["nu"])]
    left, ranges = [], []
    for i, j in enumerate(ends):
        gain, bias = data["actuator_gainprm"][i], data["actuator_biasprm"][i]
        if not data["actuator_biastype"][i]:
            continue
        if ends.count(j) > 1 or j in followers or not _is_servo(data, i, j):
            left.append(f"{name('actuator', i)} (bias {bias[0]:g} {bias[1]:+g} q {bias[2]:+g} qd)")
            continue
        found.laws[j] = Servo(exact(gain[0]), exact(abs(bias[2])))
        if data["actuator_forcelimited"][i]:
            found.efforts[j] = data["actuator_forcerange"][i][1]
        if data["actuator_ctrllimited"][i] and not _as_joint(data, i, j):
            low, high = data["actuator_ctrlrange"][i]
            ranges.append(f"{low:g} to {high:g} of {name('actuator', i)}")
    if left:
        found.notes.append(
            "actuators with a bias that are no plain position servo of a joint are not carried over: " + ", ".join(left)
        )
    if ranges:
        found.notes.append(f"ranges of servos' commands are not carried over: {', '.join(ranges)}")
    return found


def _is_servo(data: dict[str, Any], i: int, j: int) -> bool:
    """Whether an actuator's force is kp (c - q) - kv qd at a joint of one degree of freedom."""
    kp, bias = data["actuator_gainprm"][i][0], data["actuator_biasprm"][i]
    plain = data["actuator_gaintype"][i] == _FIXED and data["actuator_dyntype"][i] == _NO_DYNAMICS
    low, high = data["actuator_forcerange"][i] if data["actuator_forcelimited"][i] else (-1.0, 1.0)
    return (
        j >= 0
        and data["jnt_type"][j] in _SINGLE
        and plain
        and data["actuator_biastype"][i] == _AFFINE
        and data["actuator_gear"][i][0] == 1
        and bias[0] == 0
        and kp > 0
        and bias[1] == -kp
        and bias[2] <= 0
        and low == -high < 0
    )


def _as_joint(data: dict[str, Any], i: int, j: int) -> bool:
    """Whether the range of the commands is that of the joint."""
    pairs = zip(data["actuator_ctrlrange"][i], data["jnt_range"][j], strict=True)
    return bool(data["jnt_limited"][j]) and all(abs(a - b) <= _ROUNDING for a, b in pairs)
