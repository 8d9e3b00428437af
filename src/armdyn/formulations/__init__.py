"""Every quantity and every formulation of it, in one visible table.

An algorithm is ``run(chain, q, ...)``: pure, over any scalar. Rotor inertia and friction are added
outside, by `armdyn.kernels.assemble`.
"""

from __future__ import annotations

from armdyn.formulations import bias, inertia_matrix, reference
from armdyn.formulations.kinematics import poses
from armdyn.formulations.registry import QD, Formulation, Q, Quantity

_DEFINITION = "definition"


def _one(run: object, summary: str) -> tuple[Formulation, ...]:
    return (Formulation(_DEFINITION, run, "", summary),)  # type: ignore[arg-type]


QUANTITIES: dict[str, Quantity] = {
    quantity.name: quantity
    for quantity in (
        Quantity("inertia_matrix", (Q,), (("H", ("n", "n")),), inertia_matrix.METHODS, "joint-space inertia matrix"),
        Quantity("bias", (Q, QD), (("b", ("n",)),), bias.METHODS, "Coriolis, centrifugal and gravity forces"),
        Quantity("gravity_load", (Q,), (("g", ("n",)),), _one(reference.gravity_load, "∂V/∂q"), "gravity load"),
        Quantity(
            "kinetic_energy", (Q, QD), (("T", ()),), _one(reference.kinetic_energy, "½ q̇ᵀ H q̇"), "kinetic energy"
        ),
        Quantity(
            "potential_energy", (Q,), (("V", ()),), _one(reference.potential_energy, "-Σ m g·c"), "potential energy"
        ),
        Quantity("pose", (Q,), (("T", (4, 4)),), _one(poses.pose, "product of placements"), "tool in the base"),
        Quantity(
            "link_poses", (Q,), (("T", ("n", 4, 4)),), _one(poses.link_poses, "product of placements"), "links in base"
        ),
        Quantity("jacobian", (Q,), (("J", (6, "n")),), _one(poses.jacobian, "axes and levers"), "tool Jacobian"),
        Quantity(
            "jacobian_rate", (Q, QD), (("dJ", (6, "n")),), _one(poses.jacobian_rate, "moving levers"), "its rate"
        ),
    )
}
