"""Rotor inertia, friction, a wrench at the tool and frames other than the tool, for all formulations of a quantity.

They are added outside the recursions (docs/adr/0003-extra-physics.md), except that forward dynamics and quantities that
invert the inertia matrix add the rotor inertias to the pivots. Each function is the `physics` of a `Quantity`: its
arguments are the formulation's `run`, the chain, the inputs, the options and the wrench's six numbers, or None.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from armdyn.algebra import Vec3, sign
from armdyn.chain import Chain, Link
from armdyn.errors import InputError
from armdyn.formulations import configuration, energies
from armdyn.formulations.elimination import with_rotors
from armdyn.formulations.kinematics import poses
from armdyn.formulations.kinematics.poses import homogeneous
from armdyn.formulations.registry import Options, Run


def resisted(chain: Chain, q: list[Any], options: Options, wrench: Any) -> list[Any]:
    """The joint forces that balance the wrench, -Jᵀ w."""
    balancing: list[Any] = [0] * chain.n
    if wrench is None:
        return balancing
    for m, frame in enumerate(options.frames or (options.frame,)):
        part, path = up_to_frame(chain, replace(options, frame=frame))
        if part is not None:
            pushes = energies.tool_forces(part, [q[i] for i in path], wrench[6 * m : 6 * m + 6])
            for i, pushed in zip(path, pushes, strict=True):
                balancing[i] = balancing[i] - pushed
    return balancing


def up_to_frame(chain: Chain, options: Options) -> tuple[Chain | None, tuple[int, ...]]:
    """The chain up to the tool, or the frame in its place, and its joints; None if that is fixed to the base."""
    if options.frame is None and not chain.tool_carrier:
        tips = ", ".join(chain.joints[i].name or str(i + 1) for i in chain.tips)
        raise InputError(
            f"the robot has {len(chain.tips)} tips and no tool; name a frame with frame= (the tips are "
            f"the links of joints {tips})"
        )
    if options.frame is None and not chain.tool_link:
        return chain, tuple(range(chain.bodies))
    k, placement = options.frame or (chain.tool_link, chain.tool)
    if k == 0:
        return None, ()
    path = chain.path(k - 1)
    joints, links = tuple(chain.joints[i] for i in path), tuple(chain.links[i] for i in path)
    return replace(chain, joints=joints, links=links, parents=(), tool=placement, tool_link=0), path


def inverse_dynamics(run: Run, chain: Chain, inputs: list[Any], options: Options, wrench: Any) -> Any:
    """Adds the rotors' inertia forces, the wrench, friction and the other joint forces."""
    q, qd, qdd = inputs
    added = resisted(chain, q, options, wrench)
    load = [
        t + joint.rotor_inertia * a + f
        for t, joint, a, f in zip(run(chain, q, qd, qdd), chain.joints, qdd, added, strict=True)
    ]
    if not options.friction:
        return load
    return [x + f for x, f in zip(load, energies.joint_forces(chain, q, qd, load), strict=True)]


def forward_dynamics(run: Run, chain: Chain, inputs: list[Any], options: Options, wrench: Any) -> Any:
    """Subtracts friction, the other joint forces and the wrench's from the motors' forces."""
    q, qd, tau = inputs
    added = resisted(chain, q, options, wrench)
    return run(chain, q, qd, [t - f for t, f in zip(driving(chain, q, qd, tau, options), added, strict=True)])


def driving(chain: Chain, q: list[Any], qd: list[Any], tau: list[Any], options: Options) -> list[Any]:
    """What friction and the other joint forces leave of the motors' forces."""
    if options.friction:
        states = zip(tau, chain.joints, q, qd, strict=True)
        pushed = [t - joint.forces.at(x) - joint.friction(v) for t, joint, x, v in states]
        tau = [joint.forces.efficiency(t, sign(v)) * t for t, joint, v in zip(pushed, chain.joints, qd, strict=True)]
    return tau


def held_dynamics(run: Run, chain: Chain, inputs: list[Any], options: Options, wrench: Any) -> Any:
    """With the tool held, or the frames asked for; the wrenches have zeros where a row is free."""
    q, qd, tau = inputs
    frames = options.frames or (options.frame,)
    rows, drift = [], []
    for frame, kept in zip(frames, rows_of(options, len(frames)), strict=True):
        if frame is not None and frame[0] == 0:
            raise InputError("held_dynamics: a frame of the base does not move, so it cannot be held")
        at = replace(options, frame=frame, frames=(), axes="base")
        J = jacobian(poses.jacobian, chain, [q], at, None)
        moving = frame_acceleration(poses.acceleration, chain, [q, qd, [0] * len(qd)], at, None)
        rows += [J[k] for k in kept]
        drift += [moving[k] for k in kept]
    qdd, forces = run(chain, q, qd, driving(chain, q, qd, tau, options), rows, drift, options.damping)
    found, given = [], iter(forces)
    for kept in rows_of(options, len(frames)):
        of_row = {k: next(given) for k in kept}
        found.append([of_row.get(k, 0) for k in range(6)])
    return qdd, found


def rows_of(options: Options, frames: int) -> tuple[tuple[int, ...], ...]:
    """The rows that are held of each frame, checked."""
    rows = options.rows or (tuple(range(6)),)
    rows = rows * frames if len(rows) == 1 else rows
    if len(rows) != frames:
        raise InputError(f"rows has {len(rows)} entries for {frames} frames; give rows for each, or the same for all")
    for kept in rows:
        if not kept or len(set(kept)) != len(kept) or not set(kept) <= set(range(6)):
            raise InputError(f"rows of a frame are different numbers 0 to 5, linear ones first; got {list(kept)}")
    return rows


def gears_lose(chain: Chain, options: Options) -> bool:
    """Whether friction depends on the load: joint forces are then not those of rigid bodies plus a separate term."""
    return options.friction and any(joint.forces.load_friction != 0 for joint in chain.joints)


def inertia_matrix(run: Run, chain: Chain, inputs: list[Any], options: Options, wrench: Any) -> Any:
    """Adds the rotor inertias to the diagonal."""
    return with_rotors(chain, run(chain, *inputs))


def equations_of_motion(run: Run, chain: Chain, inputs: list[Any], options: Options, wrench: Any) -> Any:
    """Adds the rotor inertias to the diagonal of H."""
    H, b = run(chain, *inputs)
    return with_rotors(chain, H), b


def reference_dynamics(run: Run, chain: Chain, inputs: list[Any], options: Options, wrench: Any) -> Any:
    """Adds the rotors' inertia forces."""
    qdd = inputs[-1]
    return [t + joint.rotor_inertia * a for t, joint, a in zip(run(chain, *inputs), chain.joints, qdd, strict=True)]


def momentum(run: Run, chain: Chain, inputs: list[Any], options: Options, wrench: Any) -> Any:
    """Adds the rotors' momenta."""
    _, qd = inputs
    return [p + joint.rotor_inertia * v for p, joint, v in zip(run(chain, *inputs), chain.joints, qd, strict=True)]


def kinetic_energy(run: Run, chain: Chain, inputs: list[Any], options: Options, wrench: Any) -> Any:
    """Adds the rotors' kinetic energies."""
    energy = run(chain, *inputs)
    for joint, v in zip(chain.joints, inputs[1], strict=True):
        energy = energy + joint.rotor_inertia / 2 * (v * v)
    return energy


def jacobian(run: Run, chain: Chain, inputs: list[Any], options: Options, wrench: Any) -> Any:
    """At the tool or the frame in its place; joints beyond it and on other branches do not move it."""
    part, path = up_to_frame(chain, options)
    found: list[list[Any]] = [[0] * chain.n for _ in range(6)]
    if part is not None:
        for row, moved in zip(found, run(part, *([x[i] for i in path] for x in inputs)), strict=True):
            for i, entry in zip(path, moved, strict=True):
                row[i] = entry
    return local(chain, inputs[0], options, found) if options.axes == "local" else found


def local(chain: Chain, q: list[Any], options: Options, rows: Any) -> Any:
    """Six rows in base axes, linear first, in the axes of the tool or the frame in its place."""
    part, path = up_to_frame(chain, options)
    if part is None:
        return rows  # nothing moves that frame
    R = [list(row[:3]) for row in poses.pose(part, [q[i] for i in path])[:3]]

    def turned(three: Any) -> list[list[Any]]:
        columns = list(zip(*three, strict=True))
        return [[sum((R[k][i] * x for k, x in enumerate(column)), 0) for column in columns] for i in range(3)]

    return [*turned(rows[:3]), *turned(rows[3:])]


def jacobian_rate(run: Run, chain: Chain, inputs: list[Any], options: Options, wrench: Any) -> Any:
    """At the tool or the frame in its place; in local axes, the derivative of the Jacobian in those."""
    in_base = replace(options, axes="base")
    rate = jacobian(run, chain, inputs, in_base, wrench)
    if options.axes == "base":
        return rate
    q, qd = inputs
    J = jacobian(poses.jacobian, chain, [q], in_base, wrench)
    w = Vec3(*(sum((x * v for x, v in zip(row, qd, strict=True)), 0) for row in J[3:]))
    turning = []  # d(RᵀJ)/dt = Rᵀ (dJ/dt - ω × J)
    for three in (slice(0, 3), slice(3, 6)):
        columns = zip(zip(*rate[three], strict=True), zip(*J[three], strict=True), strict=True)
        moved = [Vec3(*d) - w.cross(Vec3(*j)) for d, j in columns]
        turning += [list(row) for row in zip(*moved, strict=True)]
    return local(chain, q, options, turning)


def link_poses(run: Run, chain: Chain, inputs: list[Any], options: Options, wrench: Any) -> Any:
    """Of the bodies, or of the frames asked for."""
    if not options.frames:
        return run(chain, *inputs)
    placed = poses.frames(chain, inputs[0])
    found = (poses.at_frame(placed[k - 1], at) if k else (at.R, at.p) for k, at in options.frames)
    return [homogeneous(frame) for frame in found]


def link_jacobians(run: Run, chain: Chain, inputs: list[Any], options: Options, wrench: Any) -> Any:
    """Of the bodies, or of the frames asked for."""
    return run(chain, *inputs, at=options.frames, local=options.axes == "local")


def pose_error(run: Run, chain: Chain, inputs: list[Any], options: Options, wrench: Any) -> Any:
    """From the tool or the frame in its place."""
    part, path = up_to_frame(chain, options)
    if part is None and options.frame is not None:
        fixed = options.frame[1]
        return configuration.pose_error(fixed.R, fixed.p, inputs[1])
    return run(part, [inputs[0][i] for i in path], inputs[1])


def frame_velocity(run: Run, chain: Chain, inputs: list[Any], options: Options, wrench: Any) -> Any:
    """Of the tool or the frame in its place."""
    part, path = up_to_frame(chain, options)
    if part is None:
        return [0] * 6
    twist = run(part, *([x[i] for i in path] for x in inputs))
    if options.axes == "base":
        return twist
    return [row[0] for row in local(chain, inputs[0], options, [[x] for x in twist])]


frame_acceleration = frame_velocity  # likewise, of three inputs


def joint_wrenches(run: Run, chain: Chain, inputs: list[Any], options: Options, wrench: Any) -> Any:
    """At the frames asked for, in place of the bodies' own."""
    found = run(chain, *inputs)
    if not options.frames:
        return found
    moved = []
    for k, at in options.frames:
        if k == 0:
            raise InputError("joint_wrenches are of frames on links that move; the base has no joint")
        f, n = Vec3(*found[k - 1][:3]), Vec3(*found[k - 1][3:])
        moved.append([*(at.R.T @ f), *(at.R.T @ (n - at.p.cross(f)))])
    return moved


def natural_regressor(run: Run, chain: Chain, inputs: list[Any], options: Options, wrench: Any) -> Any:
    """With the columns of the links' parameters in the frames asked for, one per link, in place of the bodies'."""
    rows = [list(row) for row in run(chain, *inputs)]
    for k, at in options.frames:
        units = (Link.from_natural(tuple(int(i == j) for j in range(10))) for i in range(10))
        columns = [unit.moved(at.R, at.p).natural for unit in units]
        for row in rows:
            own = row[10 * k - 10 : 10 * k]
            row[10 * k - 10 : 10 * k] = [sum((y * t for y, t in zip(own, c, strict=True)), 0) for c in columns]
    return rows


def pose(run: Run, chain: Chain, inputs: list[Any], options: Options, wrench: Any) -> Any:
    """Of the tool or the frame in its place."""
    part, path = up_to_frame(chain, options)
    if part is None and options.frame is not None:
        fixed = options.frame[1]  # relative to the base, whereas `chain.base` places frame 0
        return homogeneous((fixed.R, fixed.p))
    return run(part, [inputs[0][i] for i in path])


def operational_space_inertia_inverse(run: Run, chain: Chain, inputs: list[Any], options: Options, wrench: Any) -> Any:
    """At the tool or the frame in its place."""
    return run(chain, *inputs, jacobian(poses.jacobian, chain, inputs, options, wrench))


def operational_space_inertia(run: Run, chain: Chain, inputs: list[Any], options: Options, wrench: Any) -> Any:
    """At the tool or the frame in its place, of a robot with enough degrees of freedom."""
    if chain.nv < 6:
        raise InputError(f"the operational-space inertia needs 6 degrees of freedom, this arm has {chain.nv}")
    return operational_space_inertia_inverse(run, chain, inputs, options, wrench)


def payload_parameters(run: Run, chain: Chain, inputs: list[Any], options: Options, wrench: Any) -> Any:
    """With the payload at the tool or the frame in its place."""
    if options.frame is None:
        up_to_frame(chain, options)  # raises an error if there is no tool
    return run(chain, *inputs, frame=options.frame)
