"""Writing URDF: a file that other programs can load, with the same dynamics.

The frame of link i is frame i of the arm, and every joint axis is its z axis. The tool and the named frames are
massless links on fixed joints; an element <armdyn> of the robot says which link the tool is. URDF cannot represent
gravity, which its readers take as (0, 0, -9.81). Rotor inertias and joint forces other than viscous and Coulomb
friction are written to an element <armdyn> of the joint, which armdyn reads back and other readers ignore. Numbers
are written unchanged: MuJoCo rejects links with physically impossible inertias (see `Arm.check`), Pinocchio accepts
them.
"""

from __future__ import annotations

import os

from armdyn.algebra import Scalar
from armdyn.chain import Chain, Joint, Link, Placement
from armdyn.chain.joint import MASSLESS
from armdyn.files.description import Description, to_rpy, tool_of
from armdyn.files.text import quoted, write_text
from armdyn.files.urdf_xml import EXPONENT, FORCES, SERVOS, TENDON

_UNLIMITED = 1e9  # URDF requires a number


def write(path: str | os.PathLike[str], arm: Description) -> None:
    """Write the arm as a URDF."""
    write_text(path, text(arm))


def text(arm: Description) -> str:
    """The arm as the text of a URDF."""
    chain = arm.chain
    (base, *links, tool), joints = link_names(arm), joint_names(chain)
    taken_joints = set(joints)
    carrier = chain.tool_carrier
    fixed = [(tool, links[carrier - 1], chain.tool)] if carrier else []
    fixed += [(frame.name, [base, *links][frame.link], frame.placement) for frame in arm.frames]
    stated = tool_of(chain, arm.frames, arm.tool_name)
    at_frame = stated is not None and stated.name in {frame.name for frame in arm.frames}
    lines = [
        '<?xml version="1.0"?>',
        f"<robot name={quoted(arm.name or 'arm')}>",
        *_robot_lines("" if stated is None else stated.name if at_frame else tool, chain, joints),
        f"  <link name={quoted(base)}/>",
    ]
    lifted = chain.compensated or (MASSLESS,) * chain.bodies
    every = zip(chain.joints, joints, chain.links, lifted, links, chain.parents, strict=True)
    for joint, joint_name, link, part, name, k in every:
        R, p = joint.placement(0)
        standing = (chain.base if k < 0 else Placement()) @ (Placement() if joint.free else Placement(R.matrix(), p))
        leader = None if joint.mimic is None else joints[joint.mimic.joint]
        lines += _joint_lines(joint, joint_name, standing, [base, *links][k + 1], name, leader)
        lines += [f"  <link name={quoted(name)}>", *inertial_lines(link), *_lifted_lines(part), "  </link>"]
    for name, parent, placement in fixed:
        lines += [f'  <joint name={quoted(_unused(name + "_joint", taken_joints))} type="fixed">']
        lines += [*_joint_ends(placement, parent, name), "  </joint>", f"  <link name={quoted(name)}/>"]
    return "\n".join([*lines, "</robot>"]) + "\n"


def _robot_lines(tool: str, chain: Chain, joints: list[str]) -> list[str]:
    """The element <armdyn> of the robot: the name of the tool, and tendons."""
    if not tool and not chain.tendons:
        return []
    head = f"  <armdyn tool={quoted(tool)}" if tool else "  <armdyn"
    lines = []
    for tendon in chain.tendons:
        numbers = " ".join(f'{key}="{_float(x)}"' for key in TENDON if (x := getattr(tendon, key)) != 0)
        names = quoted(" ".join(joints[i] for i, _ in tendon.joints))
        ratios = " ".join(_float(c) for _, c in tendon.joints)
        lines.append(f'    <tendon name={quoted(tendon.name)} joints={names} ratios="{ratios}" {numbers}/>')
    return [f"{head}>", *lines, "  </armdyn>"] if lines else [f"{head}/>"]


def _lifted_lines(part: Link) -> list[str]:
    """The part of a link whose weight is compensated: its mass, and its first moment in the link's frame."""
    if part == MASSLESS:
        return []
    moment = " ".join(map(_float, part.moment))
    return [f'    <armdyn compensated_mass="{_float(part.mass)}" compensated_moment="{moment}"/>']


def rotor_params(arm: Description) -> str:
    """The rotor inertias of the joints as an SRDF, from which Pinocchio reads them; "" if there are none.

    They are reflected to the joints, so that the gear ratio is 1.
    """
    named = zip(joint_names(arm.chain), arm.chain.joints, strict=True)
    rotors = [(name, joint.rotor_inertia) for name, joint in named if joint.rotor_inertia and joint.mimic is None]
    if not rotors:
        return ""
    lines = [f'    <joint name={quoted(name)} mass="{_float(inertia)}" gear_ratio="1"/>' for name, inertia in rotors]
    head = ['<?xml version="1.0"?>', f"<robot name={quoted(arm.name or 'arm')}>", "  <rotor_params>"]
    return "\n".join([*head, *lines, "  </rotor_params>", "</robot>"]) + "\n"


def link_names(arm: Description) -> list[str]:
    """The names of the base, the links and the tool, different from those of the arm's frames."""
    taken = {frame.name for frame in arm.frames}
    return [_unused(name, taken) for name in ("base", *(f"link{i + 1}" for i in range(arm.chain.bodies)), "tool")]


def joint_names(chain: Chain) -> list[str]:
    """Unique names of the joints; joint i is named ``joint<i>`` if it has no name."""
    taken: set[str] = set()
    return [_unused(joint.name or f"joint{i + 1}", taken) for i, joint in enumerate(chain.joints)]


def _unused(name: str, taken: set[str]) -> str:
    """`name`, or `name_2`, `name_3`, ... if it is taken; the result is added to `taken`."""
    k, found = 1, name
    while found in taken:
        k += 1
        found = f"{name}_{k}"
    taken.add(found)
    return found


def _joint_lines(
    joint: Joint, name: str, placement: Placement, parent: str, child: str, leader: str | None
) -> list[str]:
    if joint.free:
        ends = _joint_ends(placement, parent, child)
        return [f'  <joint name={quoted(name)} type="floating">', *ends, "  </joint>"]
    limit = joint.limit
    free = limit.lower is None and limit.upper is None
    kind = "continuous" if joint.revolute and free else joint.kind
    known = {"lower": limit.lower, "upper": limit.upper, "effort": limit.effort, "velocity": limit.velocity}
    if kind == "continuous":
        del known["lower"], known["upper"]
    limits = " ".join(
        f'{key}="{(-_UNLIMITED if key == "lower" else _UNLIMITED) if value is None else value!r}"'
        for key, value in known.items()
    )
    dynamics = f'    <dynamics damping="{_float(joint.viscous)}" friction="{_float(joint.coulomb)}"/>'
    return [
        f'  <joint name={quoted(name)} type="{kind}">',
        *_joint_ends(placement, parent, child),
        '    <axis xyz="0 0 1"/>',
        f"    <limit {limits}/>",
        *([dynamics] if joint.viscous != 0 or joint.coulomb != 0 else []),
        *_own_lines(joint),
        *([_mimic_line(joint, leader)] if leader is not None else []),
        "  </joint>",
    ]


def _own_lines(joint: Joint) -> list[str]:
    """The element <armdyn> with the properties of a joint that URDF cannot represent."""
    own = {key: getattr(joint, key) for key in FORCES if hasattr(joint, key)}
    own |= {key: getattr(joint.forces, key) for key in FORCES if hasattr(joint.forces, key)}
    words = [f'{key}="{_float(own[key])}"' for key in FORCES if key in own and own[key] != 0]
    ripples = " ".join(f"{r.per_turn} {_float(r.sine)} {_float(r.cosine)}" for r in joint.forces.ripples)
    if joint.forces.stribeck_exponent != 2:
        words.append(f'{EXPONENT}="{joint.forces.stribeck_exponent}"')
    if joint.servo is not None:
        law = {key: getattr(joint.servo, name) for key, name in SERVOS.items()}
        words += [f'{key}="{_float(x)}"' for key, x in law.items() if x != 0]
    words += [f'ripple="{ripples}"'] if ripples else []
    return [f"    <armdyn {' '.join(words)}/>"] if words else []


def _mimic_line(joint: Joint, leader: str) -> str:
    assert joint.mimic is not None
    multiplier, offset = _float(joint.mimic.multiplier), _float(joint.mimic.offset)
    return f'    <mimic joint={quoted(leader)} multiplier="{multiplier}" offset="{offset}"/>'


def _joint_ends(placement: Placement, parent: str, child: str) -> list[str]:
    rpy = " ".join(repr(angle + 0.0) for angle in to_rpy(placement.R))
    return [
        f"    <parent link={quoted(parent)}/>",
        f"    <child link={quoted(child)}/>",
        f'    <origin xyz="{_floats(*placement.p)}" rpy="{rpy}"/>',
    ]


def inertial_lines(link: Link) -> list[str]:
    """The <inertial> of a link in its own frame; none for a link without mass and inertia."""
    if all(x == 0 for x in link.natural):
        return []
    J = link.inertia_about_com
    names = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
    values = (J.xx, J.xy, J.xz, J.yy, J.yz, J.zz)
    inertia = " ".join(f'{name}="{_float(value)}"' for name, value in zip(names, values, strict=True))
    return [
        "    <inertial>",
        f'      <origin xyz="{_floats(*link.com)}" rpy="0 0 0"/>',
        f'      <mass value="{_float(link.mass)}"/>',
        f"      <inertia {inertia}/>",
        "    </inertial>",
    ]


def _float(x: Scalar) -> str:
    return repr(float(x))


def _floats(*values: Scalar) -> str:
    return " ".join(map(_float, values))
