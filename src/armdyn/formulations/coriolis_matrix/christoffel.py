"""The Coriolis matrix by Christoffel symbols, from the coupling vectors of composite bodies.

Source: Lin 1994, eqs. (5)-(7) (the symbols); Lin 1991, eqs. (45)-(47) (d_mj instead of derivatives).

Idea: with v_m(x) the velocity of a body point for unit rate of joint m alone, d_mj = ∫ v_j × v_m dm
over composite body j (m < j) gives every symbol as a scalar product with an axis: for k ≤ j,
Γ_m,jk = d_mj·u_k where m < j, -d_jm·u_k where m > j, 0 where m = j. So
C_mj = Σ_k Γ_m,jk q̇_k takes O(n²) operations, no derivative, and is exact.

Lin 1991 measures points from the base; here each d_mj is taken in frame j about its own origin,
where v_j(x) = z × x: d_mj = P(z × u_m) + (z × p) × a_m, with a_m the velocity of the origin of frame
j, p and P = ∫ x xᵀ dm of composite body j. Of a body, only what a turn of its joint does not leave
unchanged is kept (`inverse_dynamics.second_moments`).

Symbols (paper | code): u_m | u, d_mj | d, composite first moment p | k.
"""

from __future__ import annotations

from itertools import accumulate

from armdyn.algebra import ZERO, Scalar, Sym3, Vec3, Z
from armdyn.chain import Chain
from armdyn.formulations.inverse_dynamics.second_moments import bodies
from armdyn.formulations.moments import NONE, Body
from armdyn.formulations.screws import motion_outward
from armdyn.formulations.steps import Step, steps

Matrix = list[list[Scalar]]
Motion = tuple[Vec3, Vec3]  # angular velocity, velocity of the origin


def composites(walk: list[Step], links: list[Body]) -> list[Body]:
    """Composite body j, links j to n, about the origin of frame j, base to tip."""
    found: list[Body] = []
    outer = Body(0, ZERO, NONE)
    for step, link in zip(reversed(walk), reversed(links), strict=True):
        found.append(link + outer)
        outer = seen_from_before(step, found[-1])
    return found[::-1]


def seen_from_before(step: Step, body: Body) -> Body:
    """A body given in frame i, given in frame i-1: shifts along z and x with a turn between."""
    m, k, P, d, b = body.mass, body.moment, body.P, step.d, step.b
    k_z = k.z + m * d
    P = Sym3(P.xx, P.xy, P.yy, P.xz + d * k.x, P.yz + d * k.y, P.zz + d * (k.z + k_z))
    k, P = step.R @ Vec3(k.x, k.y, k_z), step.R.similarity(P)
    k_x = k.x + m * b
    return Body(m, Vec3(k_x, k.y, k.z), Sym3(P.xx + b * (k.x + k_x), P.xy + b * k.y, P.yy, P.xz + b * k.z, P.yz, P.zz))


def coupling(step: Step, body: Body, motion: Motion) -> Vec3:
    """d_mj = ∫ v_j × v_m dm over composite body j, in frame j."""
    u, a = motion
    k = body.moment
    if step.revolute:
        across = Vec3(-u.y, u.x, 0)
        return body.P @ across + Vec3(-k.y, k.x, 0).cross(a)
    return Z.cross(u.cross(k) + body.mass * a)


def coriolis_matrix(chain: Chain, q: list[Scalar], qd: list[Scalar]) -> Matrix:
    """C with C q̇ + g = b and dH/dt - 2C skew."""
    walk = steps(chain, q)
    n = chain.n
    couplings: list[list[Vec3]] = []  # couplings[j][m] = d_mj for m < j, in frame j
    axes: list[list[Vec3]] = []  # axes[j][m] = u_m in frame j for m ≤ j, 0 for a sliding joint
    rates: list[list[Vec3]] = []  # rates[j][m] = Σ_{k≤m} q̇_k u_k, the angular velocity of link m in frame j
    motions: list[Motion] = []
    for step, body in zip(walk, composites(walk, bodies(chain)), strict=True):
        motions = [motion_outward(step, *motion) for motion in motions]
        couplings.append([coupling(step, body, motion) for motion in motions])
        motions.append((Z, ZERO) if step.revolute else (ZERO, Z))
        axes.append([u for u, _ in motions])
        turned = [v * u for v, u in zip(qd, axes[-1], strict=False)]
        rates.append(list(accumulate(turned, initial=ZERO))[1:])
    C: Matrix = [[0] * n for _ in range(n)]
    for m in range(n):
        beyond = ZERO  # Σ over k > j of q̇_k d_mk, carried inwards to frame j
        for j in reversed(range(m + 1, n)):
            d = couplings[j][m]
            C[m][j] = d.dot(rates[j][j]) + beyond.dot(axes[j][j])
            beyond = walk[j].R @ (beyond + qd[j] * d)
        C[m][m] = beyond.dot(axes[m][m])
        for j in reversed(range(m)):
            d = couplings[m][j]
            C[m][j] = beyond.dot(axes[m][j]) - d.dot(rates[m][j])
            beyond = beyond - qd[j] * d  # from here on less Σ over j < k < m of q̇_k d_km, all in frame m
    return C


def inertia_rate(chain: Chain, q: list[Scalar], qd: list[Scalar]) -> Matrix:
    """dH/dt = C + Cᵀ."""
    C = coriolis_matrix(chain, q, qd)
    n = range(chain.n)
    H: Matrix = [[0 for _ in n] for _ in n]
    for i in n:
        for j in range(i + 1):
            H[i][j] = H[j][i] = C[i][j] + C[j][i]
    return H
