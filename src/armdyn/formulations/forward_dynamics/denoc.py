"""Forward dynamics in O(n) from Saha's factors: U D Uᵀ q̈ = τ - b without ever forming U.

Source: Saha 1999, eqs. (32)-(36) and section 7 (the algorithm itself is Saha 1997).

Idea: column j of U is M̂ⱼ pⱼ / m̂ⱼ carried inwards, so U φ̂ = φ is solved by a wrench accumulated from tip to base and
Uᵀ q̈ = D⁻¹ φ̂ by an acceleration carried from base to tip. The wrenches of b are accumulated in the same inward pass, so
b is never formed either.

Symbols (paper | code): φ = τ - C θ̇ | phi; m̂ᵢ | D; M̂ᵢ pᵢ | Pivot (n, f).

Cost quoted (section 7): (201n-335)M (193n-361)A. Executed: (203n-260)M (178n-241)A, divisions among the M.
"""

from __future__ import annotations

from armdyn.algebra import Scalar
from armdyn.algebra.spatial import NO_MOTION, NO_WRENCH, MotionVector, Wrench
from armdyn.algebra.tally import index, named
from armdyn.chain import Chain
from armdyn.formulations.elimination import Matrix, factors_shown, inverted, upper
from armdyn.formulations.forward_dynamics.articulated import Pivot, articulated_bodies
from armdyn.formulations.inverse_dynamics import second_moments
from armdyn.formulations.inverse_dynamics.newton_euler_mlc import accounts
from armdyn.formulations.inverse_dynamics.recursion import motions, wrenches
from armdyn.formulations.steps import Step, collect, steps


def factors(chain: Chain, q: list[Scalar]) -> tuple[list[Step], list[Pivot]]:
    """The joints' steps and pivots, base to tip."""
    walk = steps(chain, q)
    return walk, articulated_bodies(chain, walk, accounts(chain))[1]


def forward_dynamics(chain: Chain, q: list[Scalar], qd: list[Scalar], tau: list[Scalar]) -> list[Scalar]:
    """The joint accelerations under joint forces, rotors included."""
    walk, pivots = factors(chain, q)
    still: list[Scalar] = [0] * chain.n
    moving = wrenches(motions(chain, walk, qd, still), second_moments.bodies(chain), second_moments.moment)
    brought: dict[int, Wrench] = {}
    phi: list[Scalar] = [0] * chain.n
    for i in reversed(range(chain.n)):  # U φ̂ = τ - b
        step, p = walk[i], pivots[i]
        wrench = brought.get(i, NO_WRENCH) + moving[i]
        phi[i] = (tau[i] - wrench.along(step.revolute)) * p.r
        if step.parent >= 0:
            wrench = Wrench(wrench.f + phi[i] * p.f, wrench.n + phi[i] * p.n)
            collect(brought, step.parent, step.wrench_inward(wrench))
    qdd: list[Scalar] = []
    accelerations: list[MotionVector] = []
    for step, p, phi_i in zip(walk, pivots, phi, strict=True):  # Uᵀ q̈ = D⁻¹ φ̂
        before = accelerations[step.parent] if step.parent >= 0 else NO_MOTION
        moved = step.motion_outward(before)
        qdd.append(phi_i - p.r * (p.n.dot(moved.w) + p.f.dot(moved.v)))
        accelerations.append(moved.along(step.revolute, qdd[-1]))
    return qdd


def alphas(walk: list[Step], pivots: list[Pivot]) -> Matrix:
    """α[j][i] = U_ij for i < j: M̂ⱼ pⱼ / m̂ⱼ carried inwards to every joint i, eq. (34); 0 on other branches."""
    alpha: Matrix = []
    for j, p in enumerate(pivots):
        wrench = Wrench(p.r * p.f, p.r * p.n)
        column: list[Scalar] = [0] * j
        outer, i = j, walk[j].parent
        while i >= 0:
            wrench = walk[outer].wrench_inward(wrench)
            column[i] = named(f"alpha_{index(i, j)}", wrench.along(walk[i].revolute))
            outer, i = i, walk[i].parent
        alpha.append(column)
    return alpha


def articulated_inertias(chain: Chain, q: list[Scalar]) -> tuple[list[Matrix], list[Matrix], list[Scalar]]:
    """(M̂, Ψ, m̂) of every body, eqs. (34), (35): 6 × 6, linear rows and columns first, in the body's frame.

    M̂ maps the acceleration of a body at rest to the wrench that it takes while the joints beyond are free to move;
    m̂ is its part along the joint, with the rotor. Ψ M̂ is what is left of it when the body's own joint is free too.
    """
    walk = steps(chain, q)
    bodies, pivots = articulated_bodies(chain, walk, chain.links)
    projections = []
    for step, p in zip(walk, pivots, strict=True):
        psi, along = [*(p.r * p.f), *(p.r * p.n)], 5 if step.revolute else 2  # p is a unit vector
        rows = range(6)
        projections.append([[(i == j) * 1 - (psi[i] if j == along else 0) for j in rows] for i in rows])
    return [body.matrix for body in bodies], projections, [p.D for p in pivots]


def inertia_factors(chain: Chain, q: list[Scalar]) -> tuple[Matrix, list[Scalar]]:
    """(U, D) of H = U D Uᵀ: D are the articulated-body inertias along the joints, rotors included."""
    walk, pivots = factors(chain, q)
    return upper(alphas(walk, pivots)), [p.D for p in pivots]


def inertia_inverse(chain: Chain, q: list[Scalar]) -> Matrix:
    """H⁻¹ = U⁻ᵀ D⁻¹ U⁻¹ in closed form, eqs. (36)-(41)."""
    walk, pivots = factors(chain, q)
    alpha = alphas(walk, pivots)
    factors_shown(alpha, [p.D for p in pivots])
    return inverted(alpha, [p.r for p in pivots])
