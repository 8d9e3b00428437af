"""Quantities of a robot with mimic joints or a floating base, from the same quantity of its plain tree.

An axis of a result that runs over q̇ is projected with G (`Coordinates`); an axis over bodies loses the auxiliary bodies
of a floating base. Results that do not transform this way are corrected by the functions below.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from armdyn.chain import Chain
from armdyn.formulations.coordinates import (
    Coordinates,
    Matrix,
    base_rate,
    base_rate_matrix,
    base_rate_slopes,
    times_base,
)
from armdyn.formulations.energies import momentum
from armdyn.formulations.inertia_matrix import meeting_frame
from armdyn.formulations.kinematics import poses
from armdyn.formulations.physics import jacobian as jacobian_at_frame
from armdyn.formulations.registry import Options, Physics, Quantity, Run
from armdyn.formulations.regressor.natural import in_minimal_parameters, natural_regressor

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
        run = natural_regressor
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
        return in_minimal_parameters(robot, _projected(coordinates, ("nv", "10N"), result))
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
    J = jacobian_at_frame(poses.jacobian, tree, plain[:1], options, None)
    return _difference(result, times_base(J, base_rate_matrix(qd)))


def _momentum_bias(result: Any, tree: Chain, plain: list[Any], qd: list[Any], options: Options) -> Any:
    """Cᵀq̇ - g with C - H S in place of C: subtracts Sᵀ p."""
    p, S = momentum(tree, *plain), base_rate_matrix(qd)
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
