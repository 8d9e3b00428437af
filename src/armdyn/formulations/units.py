"""The units of the inputs and outputs of quantities, as text for headers and read-me files."""

from __future__ import annotations

from armdyn.chain import Chain

_FORCE = "{force}"
# By the name of the port; a name with several meanings is qualified by its quantity.
_UNITS = {
    "q": "{q}",
    "qd": "{q}/s",
    "qdd": "{q}/s²",
    "tau": _FORCE,
    "b": _FORCE,
    "g": _FORCE,
    "wrench": "N and N m",
    "parameters": "SI",
    "J": "SI",
    "dJ": "SI",
    "c": "m",
    "pose.T": "rotation, and m",
    "link_poses.T": "rotation, and m",
    "dh_poses.T": "rotation, and m",
    "goal": "rotation, and m",
    "e": "m and rad",
    "q0": "{q}",
    "q1": "{q}",
    "q_next": "{q}",
    "frame_velocity.v": "m/s and rad/s",
    "frame_acceleration.a": "m/s² and rad/s²",
    "w": "N and N m",
    "kinetic_energy.T": "J",
    "V": "J",
    "U": "1",
    "mass": "kg",
    "com": "m, in the tool's axes",
    "inertia": "kg m²: xx, yy, zz, xy, xz, yz about com",
}

_PORTS = ("q", "qd", "qdd", "tau", "b", "g", "h")  # with one entry per coordinate or degree of freedom


def entry_units(chain: Chain, port: str) -> tuple[str, ...]:
    """The units of q, of a velocity or acceleration, or of joint forces, one per entry, a floating base's first."""
    text = _UNITS[port]
    kinds = [chain.joints[i].revolute for i in chain.independent]
    joints = [text.format(q="rad" if turns else "m", force="N m" if turns else "N") for turns in kinds]
    base = [text.format(q=q, force=force) for q, force in (("m", "N"), ("rad", "N m")) for _ in range(3)]
    if port == "q":
        base = ["m"] * 3 + ["1"] * 4
    return (*(base if chain.floating else ()), *joints)


def units(chain: Chain, quantity: str, port: str) -> str:
    """The unit of an input or output of a quantity; "SI" where its entries have several."""
    kinds = {chain.joints[i].revolute for i in chain.independent}
    mixed = len(kinds) > 1
    revolute = True in kinds
    q = "rad or m" if mixed else "rad" if revolute else "m"
    if chain.floating and port == "q":
        q = f"m, quaternion (x, y, z, w), {q}"
    force = "N m or N" if mixed or chain.floating else "N m" if revolute else "N"
    rate = f"({q})" if " " in q else q
    text = _UNITS.get(f"{quantity}.{port}", _UNITS.get(port, "SI"))
    return text.format(q=q if text == "{q}" else rate, force=force)
