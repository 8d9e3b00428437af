"""Every quantity and every formulation of it, in one visible table.

An algorithm is ``run(chain, q, ...)``: pure, over any scalar. Rotor inertia and friction are added
outside, by `armdyn.programs.assemble`; only forward dynamics and what inverts the inertia matrix take
the rotors in themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from armdyn.formulations import (
    bias,
    coriolis_matrix,
    energies,
    forward_dynamics,
    inertia_inverse,
    inertia_matrix,
    inverse_dynamics,
    reference,
    regressor,
)
from armdyn.formulations.coriolis_matrix import christoffel
from armdyn.formulations.kinematics import poses
from armdyn.formulations.registry import QD, QDD, TAU, Formulation, Q, Quantity, Size

Methods = tuple[Formulation, ...]


def _one(run: Callable[..., Any], summary: str) -> Methods:
    return (Formulation("definition", run, "", summary),)


def _recursive(run: Callable[..., Any], check: Callable[..., Any], summary: str) -> Methods:
    return (
        Formulation("recursive", run, "", summary),
        Formulation("definition", check, "", "the plain sum over links"),
    )


def _quantity(name: str, inputs: Any, output: str, shape: tuple[Size, ...], methods: Methods, summary: str) -> Quantity:
    return Quantity(name, inputs, ((output, shape),), methods, summary)


GRAVITY = _recursive(energies.gravity_load, reference.gravity_load, "forces carried inwards")
KINETIC = _recursive(energies.kinetic_energy, reference.kinetic_energy, "velocities carried outwards")
POTENTIAL = _recursive(energies.potential_energy, reference.potential_energy, "first moments carried inwards")
RATE = _one(christoffel.inertia_rate, "C + Cᵀ")

QUANTITIES: dict[str, Quantity] = {
    quantity.name: quantity
    for quantity in (
        _quantity("inertia_matrix", (Q,), "H", ("n", "n"), inertia_matrix.METHODS, "joint-space inertia matrix"),
        _quantity("inertia_inverse", (Q,), "W", ("n", "n"), inertia_inverse.METHODS, "the inertia matrix inverted"),
        Quantity(
            "inertia_factors", (Q,), (("U", ("n", "n")), ("D", ("n",))), inertia_inverse.FACTORS, "H = U diag(D) Uᵀ"
        ),
        _quantity("inertia_rate", (Q, QD), "dH", ("n", "n"), RATE, "time derivative of the inertia matrix"),
        _quantity("bias", (Q, QD), "b", ("n",), bias.METHODS, "Coriolis, centrifugal and gravity forces"),
        _quantity("gravity_load", (Q,), "g", ("n",), GRAVITY, "gravity load"),
        _quantity("coriolis_matrix", (Q, QD), "C", ("n", "n"), coriolis_matrix.METHODS, "C with C q̇ + g = b"),
        _quantity("inverse_dynamics", (Q, QD, QDD), "tau", ("n",), inverse_dynamics.METHODS, "forces of a motion"),
        _quantity("forward_dynamics", (Q, QD, TAU), "qdd", ("n",), forward_dynamics.METHODS, "accelerations of forces"),
        _quantity("regressor", (Q, QD, QDD), "Y", ("n", "p"), regressor.METHODS, "forces by minimal parameter"),
        _quantity(
            "natural_regressor", (Q, QD, QDD), "Y", ("n", "10n"), regressor.NATURAL_METHODS, "by natural parameter"
        ),
        _quantity("momentum", (Q, QD), "p", ("n",), _one(energies.momentum, "recursive"), "joint momenta H q̇"),
        _quantity("kinetic_energy", (Q, QD), "T", (), KINETIC, "kinetic energy"),
        _quantity("potential_energy", (Q,), "V", (), POTENTIAL, "potential energy"),
        _quantity(
            "friction", (QD,), "tau", ("n",), _one(energies.friction, "by joint"), "viscous and Coulomb friction"
        ),
        _quantity("pose", (Q,), "T", (4, 4), _one(poses.pose, "product of placements"), "tool in the base"),
        _quantity(
            "link_poses", (Q,), "T", ("n", 4, 4), _one(poses.link_poses, "product of placements"), "links in base"
        ),
        _quantity("jacobian", (Q,), "J", (6, "n"), _one(poses.jacobian, "axes and levers"), "tool Jacobian"),
        _quantity("jacobian_rate", (Q, QD), "dJ", (6, "n"), _one(poses.jacobian_rate, "moving levers"), "its rate"),
    )
}
