"""Rotor inertia, friction, a wrench at the tool and frames other than the tool, for all formulations of a quantity.

They are added outside the recursions (docs/adr/0003-extra-physics.md), except that forward dynamics and quantities that
invert the inertia matrix add the rotor inertias to the pivots. Each function is the `physics` of a `Quantity`: its
arguments are the formulation's `run`, the chain, the inputs, the options and the wrench's six numbers, or None.

`complete` gives the quantity of a robot with mimic joints or a floating base from the same quantity of its plain tree:
an axis of a result that runs over q̇ is projected with G (`Coordinates`), an axis over bodies loses the auxiliary bodies
of a floating base, and results that do not transform this way are corrected by `CORRECTIONS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from armdyn.algebra import Vec3, sign
from armdyn.chain import Chain, Link
from armdyn.errors import InputError
from armdyn.formulations import configuration, energies
from armdyn.formulations.coordinates import (
    Coordinates,
    Matrix,
    base_rate,
    base_rate_matrix,
    base_rate_slopes,
    times_base,
)
from armdyn.formulations.inertia_matrix import meeting_frame
from armdyn.formulations.kinematics import poses
from armdyn.formulations.kinematics.poses import homogeneous
from armdyn.formulations.registry import Options, Physics, Quantity, Run
from armdyn.formulations.regressor import natural
from armdyn.formulations.steps import with_rotors


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
    alone = replace(chain.uncoupled, joints=joints, links=links, parents=(), tool=placement, tool_link=0)
    return alone, path


def inverse_dynamics(run: Run, chain: Chain, inputs: list[Any], options: Options, wrench: Any) -> Any:
    """Adds the rotors' inertia forces, the wrench, friction and the other joint forces."""
    q, qd, qdd = inputs
    added = resisted(chain, q, options, wrench)
    load = [t + r + f for t, r, f in zip(run(chain, q, qd, qdd), rotor_forces(chain, qdd), added, strict=True)]
    if not options.friction:
        return load
    return [x + f for x, f in zip(load, energies.joint_forces(chain, q, qd, load), strict=True)]


def rotor_forces(chain: Chain, x: list[Any]) -> list[Any]:
    """What `with_rotors` adds to H, times x."""
    forces = [joint.rotor_inertia * a for joint, a in zip(chain.joints, x, strict=True)]
    for tendon in chain.tendons:
        if tendon.armature != 0:
            spread = tendon.spread(tendon.armature * tendon.along(x), len(forces))
            forces = [f + s for f, s in zip(forces, spread, strict=True)]
    return forces


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
        if chain.coupled:
            pushed = [t - f for t, f in zip(pushed, energies.couplings(chain, q, qd), strict=True)]
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
    return [t + r for t, r in zip(run(chain, *inputs), rotor_forces(chain, inputs[-1]), strict=True)]


def momentum(run: Run, chain: Chain, inputs: list[Any], options: Options, wrench: Any) -> Any:
    """Adds the rotors' momenta."""
    return [p + r for p, r in zip(run(chain, *inputs), rotor_forces(chain, inputs[1]), strict=True)]


def kinetic_energy(run: Run, chain: Chain, inputs: list[Any], options: Options, wrench: Any) -> Any:
    """Adds the rotors' kinetic energies."""
    energy = run(chain, *inputs)
    for joint, v in zip(chain.joints, inputs[1], strict=True):
        energy = energy + joint.rotor_inertia / 2 * (v * v)
    for tendon in chain.tendons:
        if tendon.armature != 0:
            rate = tendon.along(inputs[1])
            energy = energy + tendon.armature / 2 * (rate * rate)
    return energy


def jacobian(run: Run, chain: Chain, inputs: list[Any], options: Options, wrench: Any) -> Any:
    """At the tool or the frame in its place; joints beyond it and on other branches do not move it."""
    part, path = up_to_frame(chain, options)
    J: list[list[Any]] = [[0] * chain.n for _ in range(6)]
    if part is not None:
        for row, moved in zip(J, run(part, *([x[i] for i in path] for x in inputs)), strict=True):
            for i, entry in zip(path, moved, strict=True):
                row[i] = entry
    return local(chain, inputs[0], options, J) if options.axes == "local" else J


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
    placements = (poses.at_frame(placed[k - 1], at) if k else (at.R, at.p) for k, at in options.frames)
    return [homogeneous(frame) for frame in placements]


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


INVERSE = (
    *("forward_dynamics", "inertia_inverse", "inertia_factors", "held_dynamics"),
    *("operational_space_inertia", "operational_space_inertia_inverse"),
)


def complete(
    entry: Quantity, physics: Physics, run: Run, robot: Chain, inputs: list[Any], options: Options, wrench: Any
) -> Any:
    """The quantity with all physics, for any robot."""
    if robot.plain or not entry.of_motion or entry.of_configuration:
        return physics(run, robot, inputs, options, wrench)
    coordinates = Coordinates.of(robot)
    given = dict(zip((name for name, _ in entry.inputs), inputs, strict=True))
    tree, plain = substituted(coordinates, given)
    if options.frame is not None and options.frame[0] > 0:
        options = replace(options, frame=(options.frame[0] + coordinates.extra, options.frame[1]))
    beyond = tuple((k + coordinates.extra if k else k, at) for k, at in options.frames)
    options = replace(options, frames=beyond) if beyond else options
    if entry.name == "regressor":
        run = natural.natural_regressor
    if entry.name in INVERSE and coordinates.mimics:
        run = partial(run, coordinates=coordinates)
    if entry.name in ("bias", "equations_of_motion") and robot.floating:
        run = partial(run, qdd=coordinates.accelerations([0] * robot.nv, given["qd"]))
    result = physics(run, tree, plain, options, wrench)
    if robot.floating and entry.name in CORRECTIONS:
        result = CORRECTIONS[entry.name](result, tree, plain, given["qd"], options)
    if entry.name in INVERSE:
        return result
    if entry.name == "regressor":
        return natural.in_minimal_parameters(robot, _projected(coordinates, ("nv", "10N"), result))
    if entry.of_links:
        kept = result if options.frames else result[coordinates.extra :]
        return kept if entry.outputs[0][1][-1] != "nv" else [coordinates.columns(J) for J in kept]
    if len(entry.outputs) == 1:
        return _projected(coordinates, entry.outputs[0][1], result)
    return tuple(_projected(coordinates, shape, one) for (_, shape), one in zip(entry.outputs, result, strict=True))


def substituted(coordinates: Coordinates, given: dict[str, Any]) -> tuple[Chain, list[Any]]:
    """The plain tree at the base pose in q, and its inputs, from the robot's inputs by name."""
    change: dict[str, Callable[[Any], Any]] = {
        "q": coordinates.positions,
        "qd": coordinates.rates,
        "qdd": lambda a: coordinates.accelerations(a, given["qd"]),
        "tau": coordinates.lifted,
        "qd_ref": coordinates.rates,
        "qdd_ref": lambda a: coordinates.accelerations(a, given["qd"], given["qd_ref"]),
        "load": coordinates.lifted,
    }
    plain = [change[name](value) if name in change else value for name, value in given.items()]
    return (coordinates.placed(given["q"]) if "q" in given else coordinates.tree), plain


def _projected(coordinates: Coordinates, shape: tuple[int | str, ...], result: Any) -> Any:
    """A result of the plain tree in the robot's coordinates, by the names of its axes."""
    if shape[:1] == ("N",):
        return result[coordinates.extra :]
    if shape[1:] == ("10N",):
        result = [row[10 * coordinates.extra :] for row in result]
    if shape == ("nv",):
        return coordinates.forces(result)
    if shape[1:] == ("nv",):
        result = coordinates.columns(result)
    return coordinates.rows(result) if shape[:1] == ("nv",) else result


def derivatives(own: Run, robot: Chain, inputs: list[Any]) -> tuple[Matrix, Matrix, Matrix]:
    """∂τ/∂q, ∂τ/∂q̇ and H from a formulation's own derivatives of inverse dynamics.

    The columns of a floating base's pose are for displacements in its own axes, as in Pinocchio: a translation changes
    nothing, a rotation about axis k changes gravity, which acts like an acceleration, by e_k × g.
    """
    if robot.plain:
        matrices: tuple[Matrix, Matrix, Matrix] = own(robot, *inputs)
        return matrices
    coordinates, (q, qd, qdd) = Coordinates.of(robot), inputs
    tree, plain = substituted(coordinates, {"q": q, "qd": qd, "qdd": qdd})
    by_q, by_qd, H = own(tree, *plain)
    if robot.floating:
        by_qd = _difference(by_qd, times_base(H, base_rate_slopes(qd)))
        x, y, z = tree.gravity_in_frame_0
        turns = ((0, -z, y), (z, 0, -x), (-y, x, 0))  # e_k × g
        for row, h in zip(by_q, H, strict=True):
            row[:6] = [0, 0, 0, *(h[0] * a + h[1] * b + h[2] * c for a, b, c in turns)]
    project = coordinates.matrix
    return project(by_q), project(by_qd), project(H)


def _difference(A: Matrix, B: Matrix) -> Matrix:
    return [[a - b for a, b in zip(*rows, strict=True)] for rows in zip(A, B, strict=True)]


# Corrections for rates in the base's own axes, which rotate. H S and similar terms use the tree without rotors, since
# no rotor acts on the base.


def _accelerations(result: Any, tree: Chain, plain: list[Any], qd: list[Any], options: Options) -> Any:
    return [a + s for a, s in zip(result, base_rate(qd), strict=False)] + result[6:]


def _coriolis(result: Any, tree: Chain, plain: list[Any], qd: list[Any], options: Options) -> Any:
    """C - H S, which preserves C q̇ + g = b and the skew symmetry of dH/dt - 2C."""
    return _difference(result, times_base(meeting_frame.inertia_matrix(tree, plain[0]), base_rate_matrix(qd)))


def _inertia_rate(result: Any, tree: Chain, plain: list[Any], qd: list[Any], options: Options) -> Any:
    turned = times_base(meeting_frame.inertia_matrix(tree, plain[0]), base_rate_matrix(qd))
    return _difference(_difference(result, turned), [list(column) for column in zip(*turned, strict=True)])


def _jacobian_rate(result: Any, tree: Chain, plain: list[Any], qd: list[Any], options: Options) -> Any:
    J = jacobian(poses.jacobian, tree, plain[:1], options, None)
    return _difference(result, times_base(J, base_rate_matrix(qd)))


def _momentum_bias(result: Any, tree: Chain, plain: list[Any], qd: list[Any], options: Options) -> Any:
    """Cᵀq̇ - g with C - H S in place of C: subtracts Sᵀ p."""
    p, S = energies.momentum(tree, *plain), base_rate_matrix(qd)
    turned = [sum((row[j] * p_i for row, p_i in zip(S, p, strict=False)), 0) for j in range(len(S))]
    return [x - s for x, s in zip(result, turned, strict=False)] + result[len(S) :]


def _held(result: Any, tree: Chain, plain: list[Any], qd: list[Any], options: Options) -> Any:
    return _accelerations(result[0], tree, plain, qd, options), result[1]


CORRECTIONS: dict[str, Callable[..., Any]] = {
    "forward_dynamics": _accelerations,
    "held_dynamics": _held,
    "coriolis_matrix": _coriolis,
    "inertia_rate": _inertia_rate,
    "jacobian_rate": _jacobian_rate,
    "momentum_bias": _momentum_bias,
}
