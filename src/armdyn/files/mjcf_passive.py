"""Passive forces of an MJCF model: springs, and tendons of one joint; and notes on physics that is not carried over.

A spring of a joint gives -k (q - rest), so that the motor provides k q - k rest: `stiffness` and `offset` of the joint.
A fixed tendon of one joint, L = c q, is a spring, damper, rotor inertia and friction of that joint, with c or c² as a
factor. As in MuJoCo these are passive forces: they act with ``friction=True`` and in simulations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from armdyn.algebra import exact
from armdyn.chain.joint import NO_FORCES, JointForces

_SINGLE = (2, 3)  # the values of mjtJoint for slide and hinge


@dataclass
class Passive:
    """What springs and tendons add per joint, and notes."""

    stiffness: list[float]
    offset: list[float]
    damping: list[float]
    armature: list[float]
    friction: list[float]
    notes: list[str]

    def forces(self, j: int) -> JointForces:
        """The spring of a joint."""
        if not self.stiffness[j]:
            return NO_FORCES
        return JointForces(offset=exact(self.offset[j]), stiffness=exact(self.stiffness[j]))


def passive_forces(data: dict[str, Any], tendons: Sequence[str]) -> Passive:
    """The springs of the joints and the fixed tendons of one joint each."""
    count = data["njnt"]
    k, offset, damping, armature, friction = ([0.0] * count for _ in range(5))
    found = Passive(k, offset, damping, armature, friction, [])
    springs, dampers = (not {"passive", word} & set(data["disabled"]) for word in ("spring", "damper"))
    for j, kind in enumerate(data["jnt_type"]):
        if kind in _SINGLE and springs:
            stiffness, rest = data["jnt_stiffness"][j], data["qpos_spring"][data["jnt_qposadr"][j]]
            found.stiffness[j], found.offset[j] = stiffness, -stiffness * rest
    for t, name in enumerate(tendons):
        first, number = data["tendon_adr"][t], data["tendon_num"][t]
        said = _tendon(data, t)
        if not said:
            continue
        low, high = data["tendon_lengthspring"][t]
        one = number == 1 and data["wrap_type"][first] == data["wrap"]["JOINT"]
        j = data["wrap_objid"][first]
        if not one or (data["tendon_stiffness"][t] and low != high) or data["jnt_type"][j] not in _SINGLE:
            why = "couples joints" if number > 1 else "is slack over a range of lengths" if one else "is no fixed one"
            found.notes.append(f"tendon {name!r} {why} and is not carried over: {', '.join(said)}")
            continue
        c = data["wrap_prm"][first]
        if springs:
            found.stiffness[j] += data["tendon_stiffness"][t] * c * c
            found.offset[j] -= data["tendon_stiffness"][t] * c * low
        found.damping[j] += data["tendon_damping"][t] * c * c if dampers else 0.0
        found.armature[j] += _newer(data, "tendon_armature", t) * c * c
        found.friction[j] += data["tendon_frictionloss"][t] * abs(c)
    return found


def _newer(data: dict[str, Any], name: str, i: int) -> float:
    return float(data[name][i]) if data[name] else 0.0


def _tendon(data: dict[str, Any], t: int) -> list[str]:
    """The physics of a tendon in words; empty if it has none."""
    numbers = {
        "stiffness": data["tendon_stiffness"][t],
        "damping": data["tendon_damping"][t],
        "frictionloss": data["tendon_frictionloss"][t],
        "armature": _newer(data, "tendon_armature", t),
    }
    return [f"{name} {value:g}" for name, value in numbers.items() if value]


def lost(data: dict[str, Any], name: Callable[[str, int], str]) -> Iterator[str]:
    """Notes on physics that is not carried over: what, and how much."""
    compensated = {b: x for b, x in enumerate(data["body_gravcomp"]) if x and data["body_mass"][b]}
    if compensated:
        yield f"gravity compensation is not carried over: gravcomp {_listed(compensated, name, 'body')}"
    if data["disabled"]:
        yield f"the model's option flags disable {' and '.join(data['disabled'])}, so they are 0 here"
    for j, kind in enumerate(data["jnt_type"]):
        dof = data["jnt_dofadr"][j]
        numbers = {
            "stiffness": data["jnt_stiffness"][j],
            "damping": data["dof_damping"][dof],
            "frictionloss": data["dof_frictionloss"][dof],
            "armature": data["dof_armature"][dof],
        }
        said = [f"{key} {value:g}" for key, value in numbers.items() if value]
        if kind not in _SINGLE and said:
            word = "free" if kind == 0 else "ball"
            yield f"the {word} joint {name('joint', j)!r} loses {', '.join(said)}"
    for key, kind, what in (
        ("jnt_stiffnesspoly", "joint", "stiffness"),
        ("dof_dampingpoly", "joint", "damping"),
        ("tendon_stiffnesspoly", "tendon", "stiffness"),
        ("tendon_dampingpoly", "tendon", "damping"),
    ):
        rows = [row if isinstance(row, list) else [row] for row in data[key]]
        if any(x for row in rows for x in row):
            places = [i for i, row in enumerate(rows) if any(row)]
            yield f"polynomial {what} of {len(places)} {kind}s is not carried over, its linear part is"
    servos = {i: data["actuator_biasprm"][i] for i in range(data["nu"]) if data["actuator_biastype"][i]}
    if servos:
        shown = ", ".join(f"{name('actuator', i)} (bias {p[0]:g} {p[1]:+g} q {p[2]:+g} qd)" for i, p in servos.items())
        yield f"actuators with a bias, as position servos, are not carried over: {shown}"
    for key in ("actuator_armature", "actuator_damping"):
        values = {i: x for i, x in enumerate(data[key]) if x and not isinstance(x, list)}
        if values:
            what = key.removeprefix("actuator_")
            yield f"{what} of actuators is not carried over: {_listed(values, name, 'actuator')}"
    density, viscosity, *wind = data["fluid"]
    if density or viscosity:
        wind_said = f", wind {wind}" if any(wind) else ""
        yield f"fluid forces are not carried over: density {density:g}, viscosity {viscosity:g}{wind_said}"
    tied = [i for i in range(data["neq"]) if data["eq_active0"][i] and data["eq_type"][i] == data["eq"]["TENDON"]]
    if tied:
        yield f"equalities between tendons are not carried over: {', '.join(name('equality', i) for i in tied)}"
    limited = [t for t in range(data["ntendon"]) if data["tendon_limited"][t]]
    if limited:
        yield f"limits of tendons are not carried over: {', '.join(name('tendon', t) for t in limited)}"


def _listed(values: dict[int, float], name: Callable[[str, int], str], kind: str) -> str:
    """Values by name; one value that all share is written once."""
    if len(set(values.values())) == 1:
        value = next(iter(values.values()))
        return f"{value:g} of {', '.join(name(kind, i) for i in values)}"
    return ", ".join(f"{value:g} of {name(kind, i)}" for i, value in values.items())
