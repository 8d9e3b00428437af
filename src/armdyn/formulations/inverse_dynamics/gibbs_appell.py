"""Inverse dynamics by the Gibbs-Appell equations: τ_j = ∂G/∂q̈_j, gravity as an acceleration of the base.

Source: Provenzano et al., eqs. (1)-(3) and (12)-(14); Desoyer & Lugner and Mata et al. as cited there.

Idea: G = Σ ½ m r̈·r̈ + ½ ω̇·I ω̇ + ω̇·(ω × I ω) depends on q̈_j through ∂ω̇_i/∂q̈_j and ∂r̈_i/∂q̈_j alone, which are joint
j's unit motion in the frame of link i: carried outwards, never differentiated. The paper takes moments about mass
centres, for revolute joints; about the frame's origin the gradients are F = m dv + ω̇ × h + ω × (ω × h) and
N = J ω̇ + ω × J ω + h × dv, for either kind of joint.

Symbols (paper | code): ∂ω̇_i/∂q̈_j | u, ∂r̈_i/∂q̈_j | a, r̈_Oi less gravity | dv.

Cost: O(n²), 20M 18A per pair and more; here for comparison with the inertia matrix of the same paper.
"""

from __future__ import annotations

from armdyn.algebra import ZERO, Scalar, Z
from armdyn.algebra.spatial import MotionVector, Wrench, power, unit_motion
from armdyn.chain import Chain
from armdyn.formulations.inverse_dynamics.recursion import acceleration_matrix
from armdyn.formulations.steps import steps


def inverse_dynamics(chain: Chain, q: list[Scalar], qd: list[Scalar], qdd: list[Scalar]) -> list[Scalar]:
    """The joint forces for a motion, without rotors and friction."""
    tau: list[Scalar] = [0] * chain.n
    w, dw, dv = ZERO, ZERO, -chain.gravity_in_frame_0
    U = acceleration_matrix(w, dw)
    partials: list[MotionVector] = []
    for step, link, v_i, a_i in zip(steps(chain, q), chain.links, qd, qdd, strict=True):
        R = step.R
        dv = R.T @ (dv + U @ step.origin)
        w, dw = R.T @ w, R.T @ dw
        if step.revolute:
            dw = dw + w.cross(v_i * Z) + a_i * Z
            w = w + v_i * Z
        else:
            dv = dv + 2 * w.cross(v_i * Z) + a_i * Z
        U = acceleration_matrix(w, dw)
        partials = [step.motion_outward(one) for one in partials]  # eqs. (13), (14)
        partials.append(unit_motion(step.revolute))  # eq. (12)
        h = link.moment
        F = link.mass * dv + U @ h  # ∂G_i/∂r̈
        N = link.inertia @ dw + w.cross(link.inertia @ w) + h.cross(dv)  # ∂G_i/∂ω̇
        for j, partial in enumerate(partials):
            tau[j] = tau[j] + power(partial, Wrench(F, N))
    return tau


def bias(chain: Chain, q: list[Scalar], qd: list[Scalar], *, qdd: list[Scalar] | None = None) -> list[Scalar]:
    """C q̇ + g: inverse dynamics at zero acceleration, or at `qdd` for the rotating axes of a floating base."""
    return inverse_dynamics(chain, q, qd, [0] * chain.n if qdd is None else qdd)
