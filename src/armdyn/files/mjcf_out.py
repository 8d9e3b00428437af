"""Writing MJCF: a model that MuJoCo compiles, with the same dynamics at the same q.

A body has the name and the frame of one of the frames on its joint's axis (a link of the URDF that the robot came from)
where there is one, and the chain's frame otherwise; the other frames become sites. Inertias are written by their
principal moments. MuJoCo refuses bodies without mass or inertia, so both are at least `FLOOR`, which is noted; it
refuses inertias that no body can have too, and so does this writer. What MJCF cannot hold is a note and a comment.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from armdyn.algebra import Z, exact
from armdyn.chain import Chain, Joint, Link, Placement
from armdyn.chain.chain import named_like_a_tool
from armdyn.chain.exactly import compose, inverse, moved, rotate
from armdyn.chain.joint import NUMBERS, WORDS, impossibility
from armdyn.errors import FileError
from armdyn.files.description import Description, Frame
from armdyn.files.text import quoted, write_text
from armdyn.files.urdf_out import joint_names, link_names
from armdyn.parameters import minimal_parameters

FLOOR = 2e-15  # kg and kg m²; MuJoCo's compiler refuses moving bodies at or below 1e-15
_ON_AXIS = 1e-9  # metres
_ROUNDING = 1e-12  # relative; rounding leaves this much of a violated triangle inequality
_REACH = 0.3  # metres: makes a mass, a first moment and an inertia comparable
_PROJECTIONS = 3000
_FAR = 1e9  # rad or m; MJCF has no joint with one limit
_WORLD = "world"
_HELD = ("offset", "stiffness")  # the joint forces that MJCF has: a spring about a position
_HERE = Placement()


def write(path: str | os.PathLike[str], arm: Description) -> tuple[str, ...]:
    """Write the arm as MJCF, whole or not at all; returns the notes on what MJCF cannot hold."""
    made, notes = text(arm)
    write_text(path, made)
    return notes


def text(arm: Description) -> tuple[str, tuple[str, ...]]:
    """The arm as the text of an MJCF model, and the notes on what it cannot hold."""
    seats, joints = _seats(arm), joint_names(arm.chain)
    notes = [*_unwritten(arm.chain, joints)]
    chain = _with_possible_bodies(arm.chain, seats, notes)
    arm = replace(arm, chain=chain)
    root, gravity, stand = Placement(), chain.gravity, chain.base
    if chain.floating:  # the position of a free body is its pose in the world: the base's frame becomes the world's
        root, gravity, stand = (
            inverse(chain.base),
            chain.gravity_in_frame_0,
            Placement(),
        )
        if chain.base != Placement():
            notes.append("a free body's pose is relative to the world: the world's frame is that of the floating base")
    bodies = [*_bodies(arm, seats, joints, stand, notes)]
    sites, motors = _sites(arm, seats, root, notes), [*_motors(chain, joints, notes)]
    lines = ["<!--", *(f"  {_comment(note)}" for note in notes), "-->"] if notes else []
    lines += [
        f"<mujoco model={quoted(arm.name or 'arm')}>",
        '  <compiler angle="radian" autolimits="true"/>',
        f'  <option gravity="{_words(gravity)}"/>',
        "  <worldbody>",
        *(f"    {line}" for line in sites.get(0, ())),
        *_nested(chain, bodies, sites, -1, 2),
        "  </worldbody>",
        *_section("equality", _equalities(chain, joints)),
        *_section("tendon", _tendons(chain, joints)),
        *_section("actuator", motors),
        "</mujoco>",
    ]
    return "\n".join(lines) + "\n", tuple(notes)


@dataclass(frozen=True)
class _Seat:
    """The name of a body, and its frame's placement in the chain's frame of that body."""

    name: str
    at: Placement = _HERE


def _seats(arm: Description) -> list[_Seat]:
    """What each body is called and where its frame is: that of a frame on the joint's axis where there is one."""
    chain, names = arm.chain, link_names(arm)[1:-1]
    seats = []
    for k, (joint, name) in enumerate(zip(chain.joints, names, strict=True), 1):
        here = [frame for frame in arm.frames if frame.link == k and frame.name != _WORLD and _fits(joint, frame)]
        tools = named_like_a_tool([frame.name for frame in here])
        here = [frame for frame in here if frame.name not in tools] or here
        seats.append(_Seat(here[0].name, here[0].placement) if here else _Seat(name))
    return seats


def _fits(joint: Joint, frame: Frame) -> bool:
    """Whether a frame can be that of the joint's body: on the axis of a revolute joint, at that of a floating base."""
    if joint.free:
        return frame.placement == Placement()
    x, y, _ = frame.placement.p
    return joint.prismatic or (abs(float(x)) < _ON_AXIS and abs(float(y)) < _ON_AXIS)


def _bodies(
    arm: Description,
    seats: list[_Seat],
    joints: list[str],
    stand: Placement,
    notes: list[str],
) -> Iterator[list[str]]:
    """The opening lines of every body: its frame in its parent's, its inertia and its joint."""
    chain = arm.chain
    for k, (joint, link, parent, seat) in enumerate(zip(chain.joints, chain.links, chain.parents, seats, strict=True)):
        if joint.free:
            standing, before = Placement(), Placement()
        else:
            R, p = joint.placement(0)
            standing, before = (
                Placement(R.matrix(), p),
                stand if parent < 0 else inverse(seats[parent].at),
            )
        at = compose(compose(before, standing), seat.at)
        carries = bool(chain.children[k])
        lifted = _gravcomp(chain, k, seat, notes)
        lines = [f'<body name={quoted(seat.name)} pos="{_words(at.p)}" quat="{_quaternion(at.R)}"{lifted}>']
        lines.append(_inertial(joint, link, seat, carries, notes))
        lines += _joint(joint, joints[k], inverse(seat.at), notes)
        yield lines


def _gravcomp(chain: Chain, k: int, seat: _Seat, notes: list[str]) -> str:
    """The attribute of a body whose weight is compensated; MuJoCo knows a share of it, at its centre of mass."""
    if not chain.compensated or (part := chain.compensated[k]).mass == 0:
        return ""
    link = chain.links[k]
    off = [float(link.mass * a - part.mass * b) for a, b in zip(part.moment, link.moment, strict=True)]
    if link.mass == 0 or max(map(abs, off)) > _ROUNDING * float(link.mass * part.mass):
        mass = float(part.mass)
        notes.append(f"the compensated weight of {mass:g} kg of {seat.name!r} is not at its centre of mass: left out")
        return ""
    return f' gravcomp="{float(part.mass / link.mass)!r}"'


def _tendons(chain: Chain, joints: list[str]) -> list[str]:
    """The tendons of several joints."""
    lines = []
    for k, tendon in enumerate(chain.tendons, 1):
        numbers = {"stiffness": tendon.stiffness, "damping": tendon.damping, "armature": tendon.armature}
        words = [f'{key}="{float(x)!r}"' for key, x in numbers.items() if x != 0]
        name = quoted(tendon.name or f"tendon{k}")
        rest = -math.nextafter(1, 0) if tendon.rest == -1 else float(tendon.rest)  # -1 asks MuJoCo to choose
        lines.append(f'<fixed name={name} springlength="{rest!r}" {" ".join(words)}>')
        lines += [f'  <joint joint={quoted(joints[i])} coef="{float(c)!r}"/>' for i, c in tendon.joints]
        lines.append("</fixed>")
    return lines


def _with_possible_bodies(chain: Chain, seats: list[_Seat], notes: list[str]) -> Chain:
    """The chain with bodies that MuJoCo takes and the same dynamics, where some of its own are impossible.

    Inertial parameters that no motion shows are free: the chain's own are moved along them to possible bodies, by
    alternating projections on the set of equal minimal parameters and on that of positive pseudo-inertias. If there
    are none, the chain stays as it is, and the impossible body is refused where it is written.
    """
    wrong = [k for k, link in enumerate(chain.links) if any(link.natural) and impossibility(link)]
    if not wrong:
        return chain
    scale = np.tile([1, *[1 / _REACH] * 3, *[1 / _REACH**2] * 6], chain.bodies)  # the ten parameters alike in kg
    given = np.array([float(x) for link in chain.links for x in link.natural]) * scale
    seen = np.array(minimal_parameters(chain).matrix, float) / scale
    _, sizes, directions = np.linalg.svd(seen)
    free = directions[(sizes > _ROUNDING * sizes[0]).sum() :]
    margin = 1e-4 * given[::10].mean()
    x = given
    for _ in range(_PROJECTIONS):
        x = _possible(x.reshape(-1, 10), margin).ravel()
        x = given + free.T @ (free @ (x - given))
        if np.linalg.eigvalsh(_pseudo_inertias(x.reshape(-1, 10))).min() > 0:
            names = ", ".join(repr(seats[k].name) for k in wrong)
            notes.append(
                f"no body can have the inertia of {names}: MJCF gets other inertial parameters, of several bodies, "
                "with the same inertia matrix and torques at this gravity; reaction forces in the joints differ"
            )
            numbers = (tuple(map(exact, body)) for body in (x / scale).reshape(-1, 10).tolist())
            return replace(chain, links=tuple(map(Link.from_natural, numbers)))
    return chain


def _pseudo_inertias(x: Any) -> Any:
    """The second moments [[Σ, h], [hᵀ, m]] of bodies, (k, 4, 4), from their ten parameters, (k, 10)."""
    m, hx, hy, hz, xx, xy, yy, xz, yz, zz = x.T
    half = (xx + yy + zz) / 2
    rows = [[half - xx, -xy, -xz, hx], [-xy, half - yy, -yz, hy], [-xz, -yz, half - zz, hz], [hx, hy, hz, m]]
    return np.moveaxis(np.array(rows), -1, 0)


def _possible(x: Any, margin: float) -> Any:
    """The ten parameters of the nearest bodies whose second moments are at least `margin` in every direction."""
    values, vectors = np.linalg.eigh(_pseudo_inertias(x))
    P = (vectors * np.maximum(values, margin)[:, None, :]) @ np.swapaxes(vectors, 1, 2)
    half = P[:, 0, 0] + P[:, 1, 1] + P[:, 2, 2]
    diagonal = [half - P[:, i, i] for i in range(3)]
    moments = [diagonal[0], -P[:, 0, 1], diagonal[1], -P[:, 0, 2], -P[:, 1, 2], diagonal[2]]
    return np.stack([P[:, 3, 3], *P[:, 3, :3].T, *moments], axis=1)


def _inertial(joint: Joint, link: Link, seat: _Seat, carries: bool, notes: list[str]) -> str:
    """The inertia of a body by its principal axes; an error where MuJoCo would refuse it or could not move it."""
    if not any(link.natural) and not carries and joint.rotor_inertia == 0:
        raise FileError(
            f"MJCF needs mass and inertia of every body that moves: {seat.name!r}, which nothing follows, has neither, "
            f"and joint {joint.name!r} no rotor inertia, so its acceleration is undetermined. Lock the joint "
            f"(lock={{{joint.name!r}: 'rest'}}), or add mass with "
            "with_payload(mass, com, inertia, frame=...)"
        )
    body = moved(link, inverse(seat.at))
    mass, com = float(body.mass), np.array([float(x) for x in body.com])
    J = np.array([[float(x) for x in row] for row in body.inertia_about_com.full.rows])
    if mass < 0 or (body.mass == 0 and any(body.moment)):
        raise FileError(f"MJCF cannot hold the body {seat.name!r}: {impossibility(link)}; see Arm.check")
    moments, axes = np.linalg.eigh(J)
    size = float(np.abs(moments).max())
    excess = moments[2] - moments[0] - moments[1]
    if moments[0] < -_ROUNDING * size or excess > _ROUNDING * size:
        reason = impossibility(link) or f"principal moments {moments.tolist()}"
        raise FileError(
            f"MJCF cannot hold the inertia of the body {seat.name!r}, because no body can have it: {reason}. See "
            "Arm.check; an identification with estimator='consistent' gives possible bodies"
        )
    raised = np.maximum(moments, 0.0)
    while raised[0] + raised[1] < raised[2]:  # by rounding alone
        raised[:2] = np.nextafter(raised[:2] + max(excess, 0.0) / 2, np.inf)
    if mass < FLOOR or raised[0] < FLOOR:
        raised, mass = np.maximum(raised, FLOOR), max(mass, FLOOR)
        if raised[0] + raised[1] < raised[2]:
            raised[:2] += FLOOR
        notes.append(f"body {seat.name!r} has no mass or a moment of inertia of 0: MuJoCo gets {FLOOR:g} instead")
    if np.linalg.det(axes) < 0:
        axes = -axes
    return (
        f'<inertial pos="{_floats(com)}" quat="{_floats(_quaternion_of(axes))}" mass="{mass!r}" '
        f'diaginertia="{_floats(raised)}"/>'
    )


def _joint(joint: Joint, name: str, seen: Placement, notes: list[str]) -> list[str]:
    """The joint of a body; `seen` is the joint's frame in the body's."""
    if joint.free:
        return [f"<freejoint name={quoted(name)}/>"]
    drive = {
        "armature": joint.rotor_inertia,
        "damping": joint.viscous,
        "frictionloss": joint.coulomb,
    }
    forces = joint.forces
    drive["stiffness"] = forces.stiffness
    words = [f'{key}="{float(value)!r}"' for key, value in drive.items() if value != 0]
    if forces.stiffness != 0 and forces.offset != 0:
        words.append(f'springref="{float(-forces.offset / forces.stiffness)!r}"')
    lower, upper = joint.limit.lower, joint.limit.upper
    if lower is not None or upper is not None:
        lower, upper = (
            -_FAR if lower is None else lower,
            _FAR if upper is None else upper,
        )
        if lower < upper:
            words.append(f'range="{lower!r} {upper!r}"')
        else:
            notes.append(f"joint {name!r} has no range in MJCF: its limits {lower:g} and {upper:g} leave none")
    if joint.limit.effort is not None and joint.limit.effort > 0 and joint.mimic is None:
        words.append(f'actuatorfrcrange="{-joint.limit.effort!r} {joint.limit.effort!r}"')
    kind = "slide" if joint.prismatic else "hinge"
    where = f'pos="{_words(seen.p)}" axis="{_words(rotate(seen.R, Z))}"'
    return [" ".join([f'<joint name={quoted(name)} type="{kind}" {where}', *words]) + "/>"]


def _sites(arm: Description, seats: list[_Seat], root: Placement, notes: list[str]) -> dict[int, list[str]]:
    """The frames that are no body, by the body that carries them; 0 is the world."""
    taken = {seat.name for seat in seats} | {_WORLD}
    frames = list(arm.frames)
    tool = arm.chain.tool_carrier
    at_tool = any(frame.link == tool and frame.placement == arm.chain.tool for frame in frames)
    if tool and not at_tool:
        frames.append(Frame(arm.tool_name or link_names(arm)[-1], tool, arm.chain.tool))
    found: dict[int, list[str]] = {}
    for frame in frames:
        seat = seats[frame.link - 1] if frame.link else _Seat(_WORLD, inverse(root))
        if frame.link and frame.name == seat.name:
            continue
        name, k = frame.name, 1
        while name in taken:
            name, k = f"{frame.name}_{k + 1}", k + 1
        if name != frame.name and not (frame.link == 0 and frame.name == _WORLD):
            notes.append(f"the frame {frame.name!r} is the site {name!r}: its name is taken")
        taken.add(name)
        at = compose(inverse(seat.at), frame.placement)
        if frame.link == 0 and frame.name == _WORLD and at == Placement():
            continue  # the world's own frame
        line = f'<site name={quoted(name)} pos="{_words(at.p)}" quat="{_quaternion(at.R)}"/>'
        found.setdefault(frame.link, []).append(line)
    return found


def _nested(
    chain: Chain,
    bodies: list[list[str]],
    sites: dict[int, list[str]],
    parent: int,
    depth: int,
) -> list[str]:
    """The bodies on a body, each inside of its parent, without recursion: chains may be long."""
    lines: list[str] = []
    roots = [k for k, above in enumerate(chain.parents) if above == parent][::-1]
    depths = dict.fromkeys(roots, depth)
    waiting: list[int | tuple[str, int]] = [*roots]
    while waiting:
        k = waiting.pop()
        if isinstance(k, tuple):
            lines.append("  " * k[1] + k[0])
            continue
        indent = "  " * depths[k]
        opening, *inner = bodies[k]
        lines.append(indent + opening)
        lines += [f"{indent}  {line}" for line in (*inner, *sites.get(k + 1, ()))]
        waiting.append(("</body>", depths[k]))
        for child in reversed(chain.children[k]):
            depths[child] = depths[k] + 1
            waiting.append(child)
    return lines


def _equalities(chain: Chain, joints: list[str]) -> Iterator[str]:
    for joint, name in zip(chain.joints, joints, strict=True):
        if joint.mimic is not None:
            leader, slope, zero = chain.leader(joint)
            ends = f"joint1={quoted(name)} joint2={quoted(joints[leader])}"
            yield f'<joint {ends} polycoef="{float(zero)!r} {float(slope)!r} 0 0 0"/>'


def _motors(chain: Chain, joints: list[str], notes: list[str]) -> Iterator[str]:
    for i in chain.independent:
        effort, name = chain.joints[i].limit.effort, joints[i]
        if effort is not None and effort <= 0:
            continue
        if chain.joints[i].servo is not None:
            yield _position(chain.joints[i], name, notes)
            continue
        most = "" if effort is None else f' ctrlrange="{-effort!r} {effort!r}"'
        yield f'<motor name={quoted(name)} joint={quoted(name)} gear="1"{most}/>'


def _position(joint: Joint, name: str, notes: list[str]) -> str:
    """The position servo of a joint; MuJoCo's knows no delay, dead band, encoder and lag of the velocity."""
    servo, most, ends = joint.servo, joint.limit.effort, joint.limit
    assert servo is not None
    left = {"delay": "s", "dead_band": "rad or m", "resolution": "rad or m", "lag": "s"}
    beyond = [f"{key} {float(getattr(servo, key)):.6g} {unit}" for key, unit in left.items() if getattr(servo, key)]
    if beyond:
        notes.append(f"MJCF does not hold of the servo of joint {name!r}: {', '.join(beyond)}")
    words = [f'kp="{float(servo.kp)!r}" kv="{float(servo.kd)!r}"']
    if ends.lower is not None and ends.upper is not None and ends.lower < ends.upper:
        words.append(f'ctrlrange="{ends.lower!r} {ends.upper!r}"')
    if most is not None:
        words.append(f'forcerange="{-most!r} {most!r}"')
    return " ".join([f"<position name={quoted(name)} joint={quoted(name)}", *words]) + "/>"


def _unwritten(chain: Chain, joints: list[str]) -> Iterator[str]:
    """What MJCF cannot hold of the joints: one note for each kind."""
    kept: dict[str, list[str]] = {}

    def keep(what: str, name: str, value: Any = None) -> None:
        kept.setdefault(what, []).append(name if value is None else f"{name} ({float(value):.6g})")

    for joint, name in zip(chain.joints, joints, strict=True):
        forces = joint.forces
        if joint.static > joint.coulomb:
            keep("static friction above Coulomb friction (N m or N)", name, joint.static)
        for field in NUMBERS:
            if field not in _HELD and getattr(forces, field) != 0:
                keep(WORDS[field], name, getattr(forces, field))
        if forces.offset != 0 and forces.stiffness == 0:
            keep("a constant force (N m or N)", name, forces.offset)
        if forces.ripples:
            keep("torque ripple", name)
        if joint.limit.velocity is not None and joint.mimic is None:
            keep("speed limits (rad/s or m/s)", name, joint.limit.velocity)
        if joint.limit.effort is not None and joint.limit.effort <= 0 and joint.mimic is None:
            keep("a motor of no torque (there is none in the model)", name)
    for what, names in kept.items():
        yield f"MJCF does not hold {what}: {', '.join(names)}"
    if chain.has_mimics:
        yield "mimic joints are equality constraints, which MuJoCo keeps softly; q has an entry for each of them"


def _section(name: str, lines: Iterable[str]) -> list[str]:
    inner = [f"    {line}" for line in lines]
    return [f"  <{name}>", *inner, f"  </{name}>"] if inner else []


def _comment(note: str) -> str:
    """A note as a part of an XML comment, which must not have two hyphens in a row."""
    while "--" in note:
        note = note.replace("--", "- -")
    quoted(note)  # an error for characters that XML cannot represent
    return note.replace("\n", " ")


def _words(values: Iterable[Any]) -> str:
    return " ".join(repr(float(x) + 0.0) for x in values)


def _floats(values: Any) -> str:
    return _words(values)


def _quaternion(R: Any) -> str:
    return _floats(_quaternion_of(np.array([[float(x) for x in row] for row in R.rows])))


def _quaternion_of(R: Any) -> Any:
    """The unit quaternion (w, x, y, z) of a rotation, from its largest entry (Shepperd 1978)."""
    trace = np.trace(R)
    diagonal = np.array([trace, R[0, 0], R[1, 1], R[2, 2]])
    k = int(np.argmax(diagonal))
    off = np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])
    q = np.zeros(4)
    if k == 0:
        q[0], q[1:] = 1 + trace, off
    else:
        i = k - 1
        q[0] = off[i]
        for j in range(3):
            q[j + 1] = 1 + 2 * R[i, i] - trace if j == i else R[i, j] + R[j, i]
    return q / np.linalg.norm(q)
