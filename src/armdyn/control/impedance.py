"""Operational-space impedance control about a moving reference pose; the inertia of the tool is not shaped.

Source: Khatib 1987 (operational space); Hogan 1985 (impedance).

Idea: with τ = ID(q, q̇, a₀) + Jᵀ(Λ (ẍ_ref - J̇q̇ - J a₀) + K e + D ė) the tool obeys Λ (ẍ - ẍ_ref) = K e + D ė + f,
with f the external wrench and Λ = (J H⁻¹Jᵀ + ρ)⁻¹ the operational-space inertia, which the regularization ρ keeps
finite near singularities. a₀ is an acceleration towards a reference posture. The term with Λ cancels its effect on
the tool: it acts only in the null space of the task and, near a singularity, in the directions in which the tool
cannot move. D follows from a damping ratio per direction, the stiffness and the effective inertia 1 / (J H⁻¹Jᵀ)ᵢᵢ of
the direction: a light wrist is damped lightly.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from armdyn.algebra import Scalar, sqrt
from armdyn.control.dynamics import Dynamics
from armdyn.control.feedback import less, plus, scaled, times, transposed
from armdyn.control.law import COMMAND, Q_REF, QD, ControlLaw, Entry, Q
from armdyn.control.square_root import solve_symmetric

Matrix = list[list[Scalar]]


def step(model: Dynamics, x: SimpleNamespace) -> dict[str, Any]:
    """The torques; q_ref is the reference posture."""
    J, pose = model("jacobian", x.q), model("pose", x.q)
    posture = [x.posture_stiffness * e - x.posture_damping * v for e, v in zip(less(x.q_ref, x.q), x.qd, strict=True)]
    twist = times(J, x.qd)
    drift = plus(times(model("jacobian_rate", x.q, x.qd), x.qd), times(J, posture))
    W = model("operational_space_inertia_inverse", x.q)
    W = [[w + x.regularization if i == j else w for j, w in enumerate(row)] for i, row in enumerate(W)]
    inertial = solve_symmetric(W, less(x.acceleration_ref, drift))
    springs = scaled(x.stiffness, pose_error(x.pose_ref, pose))
    damping = [2 * z * sqrt(k / W[i][i]) for i, (z, k) in enumerate(zip(x.damping_ratio, x.stiffness, strict=True))]
    wrench = plus(plus(inertial, springs), scaled(damping, less(x.twist_ref, twist)))
    tau = plus(model("inverse_dynamics", x.q, x.qd, posture), times(transposed(J), wrench))
    return {"tau": plus(tau, model.joint_forces(x.q, x.qd, tau))}


def pose_error(wanted: Matrix, pose: Matrix) -> list[Scalar]:
    """Translation and rotation from `pose` to `wanted`, in base axes; the rotation as axis times sine of the angle."""
    shift = [wanted[i][3] - pose[i][3] for i in range(3)]
    turn: list[Scalar] = [0, 0, 0]
    for a, b in zip(transposed(pose)[:3], transposed(wanted)[:3], strict=True):
        across = (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])
        turn = [t + c / 2 for t, c in zip(turn, across, strict=True)]
    return [*shift, *turn]


LAW = ControlLaw(
    "impedance",
    "Cartesian impedance control of the tool about a moving reference pose",
    "khatib_1987",
    measured=(Q, QD),
    reference=(
        Entry("pose_ref", (4, 4), "reference pose of the tool in the base frame"),
        Entry("twist_ref", (6,), "reference velocity of the tool, linear then angular, in base axes"),
        Entry("acceleration_ref", (6,), "reference acceleration of the tool, linear then angular, in base axes"),
        Q_REF,
    ),
    gains=(
        Entry("stiffness", (6,), "translation then rotation, N/m and N m/rad", lambda chain: [500.0] * 3 + [50.0] * 3),
        Entry("damping_ratio", (6,), "damping ratio per direction; 1 is critical damping", 1.0),
        Entry("posture_stiffness", (), "null-space stiffness towards q_ref, 1/s²", 20.0),
        Entry("posture_damping", (), "null-space damping, 1/s", 9.0),
        Entry("regularization", (), "1/kg, keeps the operational-space inertia finite near singularities", 1e-3),
    ),
    outputs=(COMMAND,),
    step=step,
    at_tool=True,
)
