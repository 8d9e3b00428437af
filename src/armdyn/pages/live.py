"""The data a page needs to draw and simulate an arm: shapes, limits, and a WebAssembly module of `programs`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from armdyn.arm import Arm
from armdyn.chain import Chain
from armdyn.chain.chain import limits
from armdyn.chain.joint import NO_FORCES
from armdyn.kernels.wasm_emission import wasm_module
from armdyn.pages.programs import programs, tool_link, under_any_gravity
from armdyn.pages.writer import packed
from armdyn.programs.stepping import RK4

LARGEST_TURN = 2 * np.pi  # the sliders of revolute joints cover at most one turn in each direction
LARGEST_SLIDE = 0.5  # metres in each direction for a prismatic joint without limits


def ranges(arm: Arm) -> np.ndarray:
    """(n, 2): the limits of each joint, ±180° or ±0.5 m where it has none."""
    rows = []
    for joint, limit in zip(_joints(arm.chain), limits(arm.chain), strict=True):
        default, widest = (np.pi, LARGEST_TURN) if joint.revolute else (LARGEST_SLIDE, np.inf)
        lower, upper = limit.lower, limit.upper
        if lower is None or upper is None or not lower < upper:
            lower, upper = -default, default
        rows.append((max(lower, -widest), min(upper, widest)))
    return np.array(rows).reshape(-1, 2)


def breakaway(chain: Chain) -> list[float]:
    """The largest dry friction at rest along each independent joint, that of mimic joints by their multipliers."""
    total = dict.fromkeys(chain.independent, 0.0)
    for i, joint in enumerate(chain.joints):
        leader, ratio = (i, 1) if joint.mimic is None else chain.leader(joint)[:2]
        if leader in total:
            total[leader] += abs(float(ratio)) * float(joint.breakaway)
    return list(total.values())


def _resists(chain: Chain) -> bool:
    """Whether any joint has friction, a spring or an offset, or joints are coupled."""
    return chain.coupled or any(j.viscous != 0 or j.breakaway > 0 or j.forces != NO_FORCES for j in chain.joints)


def _joints(chain: Chain) -> list[Any]:
    """The independent joints, those that do not mimic another."""
    return [chain.joints[i] for i in chain.independent]


def robot(arm: Arm, meshes: Sequence[dict[str, Any]] = (), spec: str = "") -> dict[str, Any]:
    """The data for `robot.js` and `live.js`: bodies, limits, a posture, the module, and meshes (`meshes.shapes`).

    `spec` is what `armdyn.load` was given, for the Python that the page exports; by default the arm's name.
    """
    chain, joints = arm.chain, _joints(arm.chain)
    low, high = ranges(arm).T
    names = arm.joint_names
    lift = 7 if chain.floating else 0
    made = programs(chain)
    base = ["x", "y", "z", "rotation x", "rotation y", "rotation z"] if chain.floating else []
    return {
        "name": arm.name,
        "load": spec or arm.name,
        "payloadFrame": _payload_frame(arm),
        "file": re.sub(r"[^\w-]", "_", arm.name) or "arm",
        "n": chain.n,
        "nv": chain.nv,
        "first": lift,
        "names": names,
        "coordinates": [*base, *names],
        "kinds": [joint.kind for joint in joints],
        "coordinateKinds": [*(["prismatic"] * 3 + ["revolute"] * 3 if base else []), *(j.kind for j in joints)],
        "lower": low,
        "upper": high,
        "effort": [*([None] * len(base)), *(joint.limit.effort for joint in joints)],
        "stops": arm.limits,
        "breakaway": breakaway(chain),
        "frictional": _resists(chain),
        "loadFriction": any(joint.forces.load_friction != 0 for joint in chain.joints),
        "home": arm.rest,
        "method": {"a": [[float(x) for x in row] for row in RK4.a], "b": [float(x) for x in RK4.b]},
        "gravity": list(arm.gravity),
        "tilts": under_any_gravity(chain) is not None,
        "masses": [float(link.mass) for link in chain.links],
        "centres": [[float(x) for x in link.com] for link in chain.links],
        "bodies": _bodies(chain),
        "toolBody": tool_link(chain),
        "base": _matrix(chain.base),
        "meshes": list(meshes),
        "stands": not chain.floating,
        "reach": _reach(chain, high),
        "functions": {
            key: {
                "inputs": [[port.name, len(port.nodes)] for port in program.inputs],
                "outputs": [[port.name, len(port.nodes)] for port in program.outputs],
            }
            for key, program in made.items()
        },
        "module": packed(wasm_module(made)),
    }


def _payload_frame(arm: Arm) -> str | None:
    """The name of the frame where the page's payload is, for a robot with several tips."""
    chain = arm.chain
    if chain.tool_carrier:  # the payload is at the tool
        return None
    at = tool_link(chain) + 1
    return next((f.name for f in arm.frames if f.link == at and f.placement == chain.tool), None)


def _bodies(chain: Chain) -> list[dict[str, Any]]:
    """Each body's parent, the constants of its joint, and the index of the coordinate that moves it (-1 for none)."""
    coordinate = {body: k for k, body in enumerate(chain.independent)}
    rows = []
    for i, (joint, parent) in enumerate(zip(chain.joints, chain.parents, strict=True)):
        mimic = joint.mimic
        rows.append(
            {
                "parent": parent,
                "kind": joint.kind,
                "b": float(joint.b),
                "shift": float(joint.shift),
                "turn": joint.turn.radians,
                "joint": coordinate.get(i if mimic is None else mimic.joint, -1),
                "multiplier": 1.0 if mimic is None else float(mimic.multiplier),
            }
        )
    return rows


def _matrix(placement: Any) -> list[float]:
    rows = [[*map(float, row), float(x)] for row, x in zip(placement.R.rows, placement.p, strict=True)]
    return [*(x for row in rows for x in row), 0.0, 0.0, 0.0, 1.0]


def _reach(chain: Chain, high: np.ndarray) -> float:
    """An estimate of the largest distance of a tip from the base, in metres."""
    top = dict(zip(chain.independent, high, strict=True))

    def length(i: int) -> float:
        joint = chain.joints[i]
        slide = abs(float(top.get(i, 0.0))) if joint.prismatic else 0.0
        return abs(float(joint.b)) + abs(float(joint.d)) + abs(float(joint.shift)) + slide

    furthest = max(sum(map(length, chain.path(tip))) for tip in chain.tips)
    tool = sum(float(x) ** 2 for x in chain.tool.p) ** 0.5
    return 0.8 * furthest + tool or 1.0
