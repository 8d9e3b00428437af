"""An arm's data sheet: joints, links, checks and source as plain data."""

from __future__ import annotations

from typing import Any

from armdyn.arm import Arm
from armdyn.chain import Joint, Tendon
from armdyn.chain.joint import DRIVE, NUMBERS
from armdyn.files.description import Frame, to_rpy


def card(arm: Arm) -> dict[str, Any]:
    """The data that `armdyn show` prints and the report tabulates, in SI units."""
    links = []
    for link in arm.links:
        J = link.inertia_about_com
        links.append(
            {
                "mass": float(link.mass),
                "com": [float(x) for x in link.com],
                "inertia": [float(x) for x in (J.xx, J.yy, J.zz, J.xy, J.xz, J.yz)],
            }
        )
    return {
        "name": arm.name,
        "n": arm.n,
        "kinds": "".join(joint.kind[0].upper() for joint in arm.joints),
        "mass_kg": sum(link["mass"] for link in links),
        "gravity": list(arm.gravity),
        "source": " ".join(arm.source.split()),
        "joints": [_joint(joint, name) for joint, name in zip(arm.joints, arm.joint_names, strict=True)],
        "links": links,
        "floating": arm.floating,
        "bodies": [
            _joint(joint, arm.chain.joint_names[i]) | _place(arm, i + 1) for i, joint in enumerate(arm.chain.joints)
        ],
        "tendons": [_tendon(tendon, arm.chain.joint_names) for tendon in arm.chain.tendons],
        "compensated_kg": [float(part.mass) for part in arm.chain.compensated],
        "tool": None if arm.tool is None else _frame(arm.tool),
        "tips": list(arm.tips),
        "frames": [{"name": frame.name, "link": frame.link} for frame in arm.frames],
        "checks": [str(finding) for finding in arm.check()],
    }


def _tendon(tendon: Tendon, names: tuple[str, ...]) -> dict[str, Any]:
    """A tendon with its joints by name and the numbers along it."""
    numbers = {key: float(getattr(tendon, key)) for key in ("stiffness", "rest", "damping", "armature")}
    return {"name": tendon.name, "ratios": {names[i]: float(c) for i, c in tendon.joints}, **numbers}


def _frame(frame: Frame) -> dict[str, Any]:
    """A frame with its link, and its placement there as a position and roll, pitch and yaw."""
    rpy = [angle + 0.0 for angle in to_rpy(frame.placement.R)]
    return {"name": frame.name, "link": frame.link, "xyz": [float(x) for x in frame.placement.p], "rpy": rpy}


def _place(arm: Arm, k: int) -> dict[str, Any]:
    """Where body k stands in the tree: the number of the link below it, the constants of a fork, what it follows."""
    joint, follows = arm.chain.joints[k - 1], None
    if joint.mimic is not None:
        i, multiplier, offset = arm.chain.leader(joint)
        leader = arm.chain.joint_names[i]
        follows = {"joint": leader, "multiplier": float(multiplier), "offset": float(offset)}
    place = {"link": k, "parent": arm.parents[k - 1] + 1, "turn": joint.turn.radians, "shift": float(joint.shift)}
    return place | {"follows": follows}


def _joint(joint: Joint, name: str) -> dict[str, Any]:
    return {
        "name": name,
        "kind": joint.kind,
        "b": float(joint.b),
        "beta": joint.beta.radians,
        "gamma": joint.gamma.radians,
        "d": float(joint.d),
        "theta": joint.theta.radians,
        "lower": joint.limit.lower,
        "upper": joint.limit.upper,
        "velocity": joint.limit.velocity,
        "effort": joint.limit.effort,
        **{name: float(getattr(joint, name)) for name in DRIVE},
        "stribeck_exponent": joint.forces.stribeck_exponent,
        **{name: float(getattr(joint.forces, name)) for name in NUMBERS},
        "ripples": [[r.per_turn, float(r.sine), float(r.cosine)] for r in joint.forces.ripples],
    }
