"""Passive forces of an MJCF model: springs, fixed tendons, gravity compensation; notes on what is not carried over.

A spring of a joint gives -k (q - rest), so that the motor provides k q - k rest: `stiffness` and `offset` of the joint.
A fixed tendon, L = Σ c q, has a spring, a damper and an inertia; if a single joint moves it, they are that joint's,
with c or c² as a factor. As in MuJoCo springs, dampers and gravity compensation are passive forces: they act with
``friction=True`` and in simulations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from armdyn.algebra import exact
from armdyn.chain.joint import NO_FORCES, JointForces
from armdyn.files.urdf_tree import RawTendon

_SINGLE = (2, 3)  # the values of mjtJoint for slide and hinge


@dataclass
class Passive:
    """The springs of the joints, the share of every body's weight that is compensated, tendons, and notes."""

    springs: dict[int, JointForces] = field(default_factory=dict)
    compensated: list[Fraction] = field(default_factory=list)
    tendons: list[RawTendon] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def forces(self, j: int) -> JointForces:
        """The spring of a joint."""
        return self.springs.get(j, NO_FORCES)


def passive_forces(data: dict[str, Any], name: Callable[[str, int], str]) -> Passive:
    """The springs of the joints, the fixed tendons and the gravity compensation."""
    found = Passive()
    springs, dampers = (not {"passive", word} & set(data["disabled"]) for word in ("spring", "damper"))
    for j, kind in enumerate(data["jnt_type"]):
        stiffness = exact(data["jnt_stiffness"][j])
        if kind in _SINGLE and springs and stiffness:
            rest = exact(data["qpos_spring"][data["jnt_qposadr"][j]])
            found.springs[j] = JointForces(offset=-stiffness * rest, stiffness=stiffness)
    # Without springs and dampers MuJoCo leaves out all passive forces.
    found.compensated = [exact(x) if springs or dampers else Fraction(0) for x in data["body_gravcomp"]]
    for t in range(data["ntendon"]):
        said = _tendon(data, t)
        if not said:
            continue
        low, high = data["tendon_lengthspring"][t]
        first, number = data["tendon_adr"][t], data["tendon_num"][t]
        parts = range(first, first + number)
        fixed = all(data["wrap_type"][i] == data["wrap"]["JOINT"] for i in parts)
        if not fixed or (data["tendon_stiffness"][t] and low != high):
            why = "is slack over a range of lengths" if fixed else "is no fixed one"
            found.notes.append(f"tendon {name('tendon', t)!r} {why} and is not carried over: {', '.join(said)}")
            continue
        found.tendons.append(
            RawTendon(
                name("tendon", t),
                tuple((name("joint", data["wrap_objid"][i]), exact(data["wrap_prm"][i])) for i in parts),
                stiffness=exact(data["tendon_stiffness"][t] if springs else 0.0),
                rest=exact(low),
                damping=exact(data["tendon_damping"][t] if dampers else 0.0),
                armature=exact(_newer(data, "tendon_armature", t)),
                friction=exact(data["tendon_frictionloss"][t]),
            )
        )
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
