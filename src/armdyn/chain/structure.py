"""Conditions that a chain must satisfy to be computable; mere implausibility is reported by `armdyn.chain.checks`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from armdyn.chain.joint import DRIVE, KINDS, Joint
from armdyn.chain.joint_forces import BELOW, NO_FORCES, NUMBERS, POSITIVE, JointForces
from armdyn.errors import InputError, choose

if TYPE_CHECKING:
    from armdyn.chain.chain import Chain


def must_be_computable(chain: Chain) -> None:
    """Raise an error for a chain that cannot be computed with."""
    if not chain.joints:
        raise InputError("a chain needs at least one joint, got none")
    if len(chain.links) != len(chain.joints):
        raise InputError(
            f"a chain has as many links as joints; got {len(chain.links)} links, {len(chain.joints)} joints"
        )
    for i, (joint, link) in enumerate(zip(chain.joints, chain.links, strict=True), 1):
        choose(f"kind of joint {joint.name or i}", joint.kind, KINDS)
        drive = (*(getattr(joint, name) for name in DRIVE), *_numbers(joint.forces))
        lengths = (joint.b, joint.d, joint.shift, *drive)
        angles = (joint.beta.radians, joint.gamma.radians, joint.theta.radians, joint.turn.radians)
        _must_be_finite(f"joint {joint.name or i}", (*lengths, *angles))
        _must_be_finite(f"link {i}", link.natural)
        if joint.forces != NO_FORCES:
            _forces_within_their_ranges(f"joint {joint.name or i}", joint.forces)
    _must_be_finite("gravity", tuple(chain.gravity))
    if not isinstance(chain.tool_link, int) or not 0 <= chain.tool_link <= len(chain.joints):
        raise InputError(
            f"tool_link must be a link from 1 to {len(chain.joints)}, or 0 for the only tip; got {chain.tool_link!r}"
        )
    _parents_come_first(chain)
    _free_joint_comes_first(chain)
    for i, joint in enumerate(chain.joints):
        if joint.mimic is not None:
            _follows_a_joint(chain.joints, i)
    if any(joint.forces.load_friction != 0 for joint in chain.joints):
        _load_friction_stands_alone(chain)


def _must_be_finite(where: str, numbers: tuple[Any, ...]) -> None:
    for x in numbers:
        if isinstance(x, float) and not math.isfinite(x):
            raise InputError(f"{where}: every number must be finite, got {x!r}")


def _numbers(forces: JointForces) -> tuple[Any, ...]:
    ripples = (x for ripple in forces.ripples for x in (ripple.sine, ripple.cosine))
    return *(getattr(forces, name) for name in NUMBERS), *ripples


def _forces_within_their_ranges(where: str, forces: JointForces) -> None:
    exponent = forces.stribeck_exponent
    if not isinstance(exponent, int) or exponent < 2 or exponent % 2:
        raise InputError(f"{where}: stribeck_exponent must be an even whole number, got {exponent!r}")
    for name in POSITIVE:
        value = getattr(forces, name)
        if value < 0 or value >= BELOW.get(name, math.inf):
            below = f" and below {BELOW[name]}" if name in BELOW else ""
            raise InputError(f"{where}: {name} must be at least 0{below}, got {float(value):g}")


def _load_friction_stands_alone(chain: Chain) -> None:
    """A gear's losses need the load of its own joint: not known where joints follow one another."""
    led = {chain.leader(joint)[0] for joint in chain.joints if joint.mimic is not None}
    for i, joint in enumerate(chain.joints):
        share = joint.forces.load_friction
        if share != 0 and (joint.mimic is not None or i in led):
            raise InputError(
                f"joint {_name(chain.joints, i)} has load_friction {float(share):g} and moves together with another "
                "joint (mimic); expected 0 there, because the load of such a joint is not its own"
            )


def _name(joints: tuple[Joint, ...], i: int) -> str:
    return repr(joints[i].name) if joints[i].name else str(i)


def _parents_come_first(chain: Chain) -> None:
    if len(chain.parents) != len(chain.joints):
        raise InputError(f"a chain has one parent per joint; got {len(chain.parents)} for {len(chain.joints)} joints")
    for i, parent in enumerate(chain.parents):
        if not isinstance(parent, int) or not -1 <= parent < i:
            raise InputError(
                f"the parent of joint {_name(chain.joints, i)} must come before it: expected a link from -1 (the base) "
                f"to {i - 1}, got {parent!r}"
            )


def _free_joint_comes_first(chain: Chain) -> None:
    for i, joint in enumerate(chain.joints):
        if not joint.free:
            continue
        if i > 0:
            raise InputError(f"joint {_name(chain.joints, i)} is free, and only the first joint of a robot can be")
        angles = (joint.beta, joint.gamma, joint.theta, joint.turn)
        if any(x != 0 for x in (joint.b, joint.d, joint.shift)) or any(a.radians != 0 for a in angles):
            raise InputError("a free joint has no constants: its frame is the floating base's own")
        if joint.rotor_inertia != 0 or joint.viscous != 0 or joint.breakaway != 0 or joint.forces != NO_FORCES:
            raise InputError("a free joint has neither rotor inertia nor friction, nor other forces")
    if chain.joints[0].free and any(parent < 0 for parent in chain.parents[1:]):
        loose = next(i for i, parent in enumerate(chain.parents) if i > 0 and parent < 0)
        raise InputError(
            f"joint {_name(chain.joints, loose)} stands on the ground (parent -1) and the base floats: expected every "
            "joint but the free one on a link"
        )


def _follows_a_joint(joints: tuple[Joint, ...], i: int) -> None:
    """An error unless mimic joint i follows, perhaps through other mimic joints, one that has a coordinate."""
    if joints[i].free:
        raise InputError("a free joint cannot mimic another one")
    seen, k = [i], i
    while (mimic := joints[k].mimic) is not None:
        k = mimic.joint
        if not isinstance(k, int) or not 0 <= k < len(joints) or joints[k].free:
            raise InputError(
                f"joint {_name(joints, seen[-1])} mimics joint {k!r}: expected one of the {len(joints)} joints, "
                "counted from 0, that is not free"
            )
        if k in seen:
            names = " -> ".join(_name(joints, j) for j in (*seen, k))
            raise InputError(f"mimic joints follow one another in a circle: {names}")
        seen.append(k)
        _must_be_finite(f"mimic joint {_name(joints, i)}", (mimic.multiplier, mimic.offset))
