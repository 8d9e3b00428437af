"""Forward dynamics in O(n) from Saha's factors: U D Uᵀ q̈ = τ - b without ever forming U.

Source: Saha 1999, eqs. (32)-(36) and section 7 (the algorithm itself is Saha 1997).

Idea: column j of U is M̂ⱼ pⱼ / m̂ⱼ carried inwards, so U φ̂ = φ is a wrench collected from tip to base
and Uᵀ q̈ = D⁻¹ φ̂ an acceleration handed from base to tip. The wrenches behind b are collected on the
same way inwards, so b is never formed either.

Symbols (paper | code): φ = τ - C θ̇ | phi; m̂ᵢ | D; M̂ᵢ pᵢ | Pivot (n, f).

Cost quoted (section 7): (201n-335)M (193n-361)A.
"""

from __future__ import annotations

from armdyn.algebra import ZERO, Scalar, Vec3
from armdyn.chain import Chain
from armdyn.formulations.elimination import Matrix, inverted, upper
from armdyn.formulations.forward_dynamics.articulated import Pivot, articulated_bodies
from armdyn.formulations.inverse_dynamics import second_moments
from armdyn.formulations.inverse_dynamics.newton_euler_mlc import accounts
from armdyn.formulations.inverse_dynamics.recursion import wrenches
from armdyn.formulations.screws import along_axis, motion_outward, wrench_inward
from armdyn.formulations.steps import Step, steps


def factors(chain: Chain, q: list[Scalar]) -> tuple[list[Step], list[Pivot]]:
    """The joints' steps and pivots, base to tip."""
    walk = steps(chain, q)
    return walk, articulated_bodies(chain, walk, accounts(chain))[1]


def forward_dynamics(chain: Chain, q: list[Scalar], qd: list[Scalar], tau: list[Scalar]) -> list[Scalar]:
    """The accelerations of joint forces, rotors included."""
    walk, pivots = factors(chain, q)
    still: list[Scalar] = [0] * chain.n
    moving = wrenches(chain, q, qd, still, second_moments.bodies(chain), second_moments.moment)
    f, n = ZERO, ZERO
    phi: list[Scalar] = [0] * chain.n
    for i in reversed(range(chain.n)):  # U φ̂ = τ - b
        _, F, N = moving[i]
        f, n = f + F, n + N
        phi[i] = (tau[i] - along_axis(walk[i], f, n)) * pivots[i].r
        if i > 0:
            f, n = f + phi[i] * pivots[i].f, n + phi[i] * pivots[i].n
            f, n = wrench_inward(walk[i], f, n)
    dw, dv, qdd = ZERO, ZERO, []
    for step, p, phi_i in zip(walk, pivots, phi, strict=True):  # Uᵀ q̈ = D⁻¹ φ̂
        dw, dv = motion_outward(step, dw, dv)
        qdd.append(phi_i - p.r * (p.n.dot(dw) + p.f.dot(dv)))
        if step.revolute:
            dw = Vec3(dw.x, dw.y, dw.z + qdd[-1])
        else:
            dv = Vec3(dv.x, dv.y, dv.z + qdd[-1])
    return qdd


def alphas(walk: list[Step], pivots: list[Pivot]) -> Matrix:
    """α[j][i] = U_ij for i < j: M̂ⱼ pⱼ / m̂ⱼ carried inwards to every joint before, eq. (34)."""
    alpha: Matrix = []
    for j, p in enumerate(pivots):
        f, n = p.r * p.f, p.r * p.n
        column = []
        for i in reversed(range(j)):
            f, n = wrench_inward(walk[i + 1], f, n)
            column.append(along_axis(walk[i], f, n))
        alpha.append(column[::-1])
    return alpha


def inertia_factors(chain: Chain, q: list[Scalar]) -> tuple[Matrix, list[Scalar]]:
    """(U, D) of H = U D Uᵀ: D are the articulated bodies' inertias along their joints, rotors included."""
    walk, pivots = factors(chain, q)
    return upper(alphas(walk, pivots)), [p.D for p in pivots]


def inertia_inverse(chain: Chain, q: list[Scalar]) -> Matrix:
    """H⁻¹ = U⁻ᵀ D⁻¹ U⁻¹ in closed form, eqs. (36)-(41)."""
    walk, pivots = factors(chain, q)
    return inverted(alphas(walk, pivots), [p.r for p in pivots])
