"""All quantities and their formulations, in one table.

An algorithm is a pure function ``run(chain, q, ...)``, generic over the scalar type. See `Quantity` for the fields.
"""

from __future__ import annotations

from typing import Any

from armdyn.errors import choose
from armdyn.formulations.registry import QD, QD_REF, QDD, QDD_REF, TAU, Formulation, Options, Q, Quantity

RUNTIME = ("parameters",)  # quantities that the minimal parameters determine can take them as an input
FORCES = ("friction", "tool_wrench", "frame", *RUNTIME)

QUANTITIES: dict[str, Quantity] = {
    quantity.name: quantity
    for quantity in (
        Quantity(
            "inertia_matrix",
            inputs=(Q,),
            outputs=(("H", ("nv", "nv")),),
            methods_in="inertia_matrix.METHODS",
            summary="joint-space inertia matrix",
            doc="Joint-space inertia matrix H(q)",
            takes=RUNTIME,
            physics_in="inertia_matrix",
            in_c=True,
        ),
        Quantity(
            "inertia_inverse",
            inputs=(Q,),
            outputs=(("W", ("nv", "nv")),),
            methods_in="inertia_inverse.METHODS",
            summary="inverse of the inertia matrix",
            doc="Inverse of the inertia matrix",
            takes=RUNTIME,
        ),
        Quantity(
            "inertia_factors",
            inputs=(Q,),
            outputs=(("U", ("nv", "nv")), ("D", ("nv",))),
            methods_in="inertia_inverse.FACTORS",
            summary="H = U diag(D) Uᵀ",
            doc="(U, D) of H = U diag(D) Uᵀ, U unit upper triangular",
            takes=RUNTIME,
        ),
        Quantity(
            "inertia_rate",
            inputs=(Q, QD),
            outputs=(("dH", ("nv", "nv")),),
            methods_in="coriolis_matrix.christoffel.INERTIA_RATE",
            summary="time derivative of the inertia matrix",
            doc="Time derivative of the inertia matrix along qd",
            takes=RUNTIME,
        ),
        Quantity(
            "bias",
            inputs=(Q, QD),
            outputs=(("b", ("nv",)),),
            methods_in="bias.METHODS",
            summary="Coriolis, centrifugal and gravity forces",
            doc="Coriolis, centrifugal and gravity forces b(q, qd)",
            takes=RUNTIME,
            in_c=True,
        ),
        Quantity(
            "gravity_load",
            inputs=(Q,),
            outputs=(("g", ("nv",)),),
            methods_in="energies.GRAVITY",
            summary="gravity load",
            doc="Gravity load g(q)",
            takes=RUNTIME,
            in_c=True,
        ),
        Quantity(
            "coriolis_matrix",
            inputs=(Q, QD),
            outputs=(("C", ("nv", "nv")),),
            methods_in="coriolis_matrix.METHODS",
            summary="C with C q̇ + g = b",
            doc="C(q, qd) with C qd + g = b and dH/dt - 2C skew-symmetric",
            takes=RUNTIME,
        ),
        Quantity(
            "inverse_dynamics",
            inputs=(Q, QD, QDD),
            outputs=(("tau", ("nv",)),),
            methods_in="inverse_dynamics.METHODS",
            summary="joint forces for a motion",
            doc="Joint forces for a motion (q, qd, qdd); friction=, tool_wrench=",
            takes=FORCES,
            physics_in="inverse_dynamics",
            derivative_kernel=True,
            in_c=True,
        ),
        Quantity(
            "forward_dynamics",
            inputs=(Q, QD, TAU),
            outputs=(("qdd", ("nv",)),),
            methods_in="forward_dynamics.METHODS",
            summary="joint accelerations under joint forces",
            doc="Joint accelerations under joint forces (q, qd, tau); friction=, tool_wrench=",
            takes=FORCES,
            physics_in="forward_dynamics",
            derivative_kernel=True,
            inverse_of="inverse_dynamics",
            in_c=True,
        ),
        Quantity(
            "reference_dynamics",
            inputs=(Q, QD, QD_REF, QDD_REF),
            outputs=(("tau", ("nv",)),),
            methods_in="reference_dynamics.METHODS",
            summary="forces H q̈ᵣ + C q̇ᵣ + g of passivity-based control",
            doc="Joint forces H(q) qdd_ref + C(q, qd) qd_ref + g(q) of Slotine and Li's control law",
            takes=RUNTIME,
            physics_in="reference_dynamics",
        ),
        Quantity(
            "regressor",
            inputs=(Q, QD, QDD),
            outputs=(("Y", ("nv", "p")),),
            methods_in="regressor.METHODS",
            summary="regressor of the minimal parameters",
            doc="Regressor Y(q, qd, qdd) of the minimal parameters, one column per parameter",
            link_frames=True,
            massless=True,
        ),
        Quantity(
            "natural_regressor",
            inputs=(Q, QD, QDD),
            outputs=(("Y", ("nv", "10N")),),
            methods_in="regressor.NATURAL_METHODS",
            summary="regressor of the natural parameters",
            doc="Regressor Y(q, qd, qdd) of the natural parameters, ten columns per link",
            link_frames=True,
            massless=True,
        ),
        Quantity(
            "payload_parameters",
            inputs=(("mass", ()), ("com", (3,)), ("inertia", (6,))),
            outputs=(("values", ("p",)),),
            methods_in="payload.METHODS",
            summary="minimal parameters with a payload at the tool",
            doc="Minimal parameters of the arm with a payload (mass, com, inertia about com: xx, yy, zz, xy, xz, yz)",
            takes=("frame", *RUNTIME),
            physics_in="payload_parameters",
            link_frames=True,
            own_geometry=True,
            of_body=True,
            massless=True,
        ),
        Quantity(
            "momentum",
            inputs=(Q, QD),
            outputs=(("p", ("nv",)),),
            methods_in="energies.MOMENTUM",
            summary="joint momenta H q̇",
            doc="Joint momenta H(q) qd",
            takes=RUNTIME,
            physics_in="momentum",
        ),
        Quantity(
            "momentum_bias",
            inputs=(Q, QD),
            outputs=(("beta", ("nv",)),),
            methods_in="momentum_bias.METHODS",
            summary="Cᵀq̇ - g, the rate of the joint momenta without joint forces",
            doc="Cᵀ(q, qd) qd - g(q): plus the joint forces, this is the rate of the joint momenta",
            takes=RUNTIME,
        ),
        Quantity(
            "kinetic_energy",
            inputs=(Q, QD),
            outputs=(("T", ()),),
            methods_in="energies.KINETIC",
            summary="kinetic energy",
            doc="Kinetic energy T(q, qd)",
            takes=RUNTIME,
            physics_in="kinetic_energy",
        ),
        Quantity(
            "potential_energy",
            inputs=(Q,),
            outputs=(("V", ()),),
            methods_in="energies.POTENTIAL",
            summary="potential energy",
            doc="Potential energy V(q), zero at the base origin",
        ),
        Quantity(
            "friction",
            inputs=(QD,),
            outputs=(("tau", ("nv",)),),
            methods_in="energies.FRICTION",
            summary="viscous and dry friction",
            doc="Viscous and dry friction of the joints at velocities qd",
            massless=True,
        ),
        Quantity(
            "joint_forces",
            inputs=(Q, QD, ("load", ("nv",))),
            outputs=(("tau", ("nv",)),),
            methods_in="energies.JOINT_FORCES",
            summary="friction, springs, ripples and offsets",
            doc="Joint forces beyond rigid-body dynamics: friction (also with load), springs, ripples, offsets",
            massless=True,
        ),
        Quantity(
            "pose",
            inputs=(Q,),
            outputs=(("T", (4, 4)),),
            methods_in="kinematics.poses.POSE",
            summary="pose of the tool in the base frame",
            doc="Pose of the tool, or of a frame=, in the base frame",
            takes=("frame",),
            physics_in="pose",
            in_c=True,
            massless=True,
        ),
        Quantity(
            "link_poses",
            inputs=(Q,),
            outputs=(("T", ("N", 4, 4)),),
            methods_in="kinematics.poses.LINK_POSES",
            summary="poses of the links in the base frame",
            doc="Poses of the links in the base frame",
            link_frames=True,
            massless=True,
        ),
        Quantity(
            "jacobian",
            inputs=(Q,),
            outputs=(("J", (6, "nv")),),
            methods_in="kinematics.poses.JACOBIAN",
            summary="tool Jacobian",
            doc="Jacobian of the tool, or of a frame=, linear rows first, in base axes",
            takes=("frame",),
            physics_in="jacobian",
            in_c=True,
            massless=True,
        ),
        Quantity(
            "jacobian_rate",
            inputs=(Q, QD),
            outputs=(("dJ", (6, "nv")),),
            methods_in="kinematics.poses.JACOBIAN_RATE",
            summary="time derivative of the Jacobian",
            doc="Time derivative of the Jacobian along qd",
            takes=("frame",),
            physics_in="jacobian",
            massless=True,
        ),
        Quantity(
            "centre_of_mass",
            inputs=(Q,),
            outputs=(("c", (3,)),),
            methods_in="centroidal.CENTRE_OF_MASS",
            summary="centre of mass in the base frame",
            doc="Centre of mass of the whole robot in the base frame",
        ),
        Quantity(
            "centre_of_mass_jacobian",
            inputs=(Q,),
            outputs=(("J", (3, "nv")),),
            methods_in="centroidal.CENTRE_OF_MASS_JACOBIAN",
            summary="Jacobian of the centre of mass",
            doc="Jacobian of the centre of mass, in base axes",
        ),
        Quantity(
            "centroidal_momentum",
            inputs=(Q, QD),
            outputs=(("h", (6,)),),
            methods_in="centroidal.CENTROIDAL_MOMENTUM",
            summary="momentum about the centre of mass",
            doc="Momentum of the whole robot, linear and about its centre of mass, in base axes",
            link_frames=True,
        ),
        Quantity(
            "centroidal_momentum_matrix",
            inputs=(Q,),
            outputs=(("A", (6, "nv")),),
            methods_in="centroidal.CENTROIDAL_MOMENTUM_MATRIX",
            summary="matrix A: A q̇ is the momentum about the centre of mass",
            doc="Centroidal momentum matrix A(q): A qd is the momentum about the centre of mass, linear rows first",
            link_frames=True,
        ),
        Quantity(
            "operational_space_inertia_inverse",
            inputs=(Q,),
            outputs=(("W", (6, 6)),),
            methods_in="centroidal.OPERATIONAL",
            summary="acceleration of the tool per wrench, J H⁻¹ Jᵀ",
            doc="Inverse operational-space inertia: acceleration of the tool, or of a frame=, per wrench on it",
            takes=("frame",),
            physics_in="operational_space_inertia_inverse",
        ),
    )
}

# Derivatives with a name of their own: name -> quantity and the inputs to differentiate with respect to.
DERIVATIVES: dict[str, tuple[str, tuple[str, ...]]] = {
    f"{name}_derivatives": (name, tuple(port for port, _ in quantity.inputs))
    for name, quantity in QUANTITIES.items()
    if quantity.derivative_kernel
}


def taking(option: str) -> tuple[str, ...]:
    """The quantities that have a given option (a field of `Options`)."""
    return tuple(name for name, quantity in QUANTITIES.items() if option in quantity.takes)


def methods(quantity: str, arm: Any = None) -> tuple[str, ...]:
    """The keys of a quantity's formulations; with an arm, only of those that apply to it."""
    formulations = QUANTITIES[choose("quantity", quantity, QUANTITIES)].methods
    return tuple(m.key for m in formulations if arm is None or m.serves(arm.chain))


__all__ = ["DERIVATIVES", "QUANTITIES", "Formulation", "Options", "Quantity", "methods", "taking"]
