"""The Coriolis matrix by Christoffel symbols, from the coupling vectors of composite bodies.

Source: Lin 1994, eqs. (5)-(7) (the symbols); Lin 1991, eqs. (45)-(47) (d_mj instead of derivatives).

Idea: with v_m(x) the velocity of a body point at a unit rate of joint m alone, d_mj = ∫ v_j × v_m dm over composite
body j (m < j) gives every symbol as a scalar product with an axis: for k ≤ j, Γ_m,jk = d_mj·u_k if m < j, -d_jm·u_k if
m > j, 0 if m = j. So C_mj = Σ_k Γ_m,jk q̇_k takes O(n²) operations without any derivative, and is exact.

Lin 1991 measures points from the base; here each d_mj is taken in frame j about its own origin, where v_j(x) = z × x:
d_mj = P(z × u_m) + (z × p) × a_m, with a_m the velocity of the origin of frame j, p and P = ∫ x xᵀ dm of composite
body j. Parameters that are invariant under the joint's motion are regrouped (`inverse_dynamics.second_moments`).

Symbols (paper | code): u_m | u, d_mj | d, composite first moment p | k.
"""

from __future__ import annotations

from itertools import accumulate

from armdyn.algebra import ZERO, Scalar, Vec3, Z
from armdyn.algebra.spatial import NO_BODY, Body, MotionVector, unit_motion
from armdyn.chain import Chain
from armdyn.formulations.inverse_dynamics.second_moments import bodies
from armdyn.formulations.registry import definition
from armdyn.formulations.steps import Step, collect, steps

Matrix = list[list[Scalar]]


def composites(walk: list[Step], links: list[Body]) -> list[Body]:
    """Composite body j (link j and all beyond it) about the origin of frame j."""
    bodies: list[Body] = []
    brought: dict[int, Body] = {}
    for i, (step, link) in reversed(list(enumerate(zip(walk, links, strict=True)))):
        bodies.append(link + brought.get(i, NO_BODY))
        collect(brought, step.parent, step.body_inward(bodies[-1]))
    return bodies[::-1]


def coupling(step: Step, body: Body, motion: MotionVector) -> Vec3:
    """d_mj = ∫ v_j × v_m dm over composite body j, in frame j."""
    u, a = motion.w, motion.v
    k = body.moment
    if step.revolute:
        across = Vec3(-u.y, u.x, 0)
        return body.P @ across + Vec3(-k.y, k.x, 0).cross(a)
    return Z.cross(u.cross(k) + body.mass * a)


def coriolis_matrix(chain: Chain, q: list[Scalar], qd: list[Scalar]) -> Matrix:
    """C with C q̇ + g = b and dH/dt - 2C skew-symmetric."""
    walk = steps(chain, q)
    n = chain.n
    paths = [chain.path(j) for j in range(n)]
    couplings: list[dict[int, Vec3]] = []  # couplings[j][m] = d_mj for m before j, in frame j
    axes: list[dict[int, Vec3]] = []  # axes[j][m] = u_m in frame j, 0 for a prismatic joint
    rates: list[dict[int, Vec3]] = []  # rates[j][m] = Σ_{k up to m} q̇_k u_k, the angular velocity of link m in frame j
    motions: list[dict[int, MotionVector]] = []
    for j, (step, body) in enumerate(zip(walk, composites(walk, bodies(chain)), strict=True)):
        before = motions[step.parent] if step.parent >= 0 else {}
        seen = {m: step.motion_outward(motion) for m, motion in before.items()}
        couplings.append({m: coupling(step, body, motion) for m, motion in seen.items()})
        seen[j] = unit_motion(step.revolute)
        motions.append(seen)
        axes.append({m: motion.w for m, motion in seen.items()})
        turned = accumulate((qd[m] * axes[j][m] for m in paths[j]), initial=ZERO)
        rates.append(dict(zip(paths[j], list(turned)[1:], strict=True)))
    C: Matrix = [[0] * n for _ in range(n)]
    for m in range(n):
        C[m][m], beyond = _outer_columns(walk, couplings, axes, rates, qd, m, C[m])
        for j in reversed(paths[m][:-1]):
            d = couplings[m][j]
            C[m][j] = beyond.dot(axes[m][j]) - d.dot(rates[m][j])
            beyond = beyond - qd[j] * d  # from now on minus Σ over k from j to before m of q̇_k d_km, all in frame m
    return C


def _outer_columns(
    walk: list[Step],
    couplings: list[dict[int, Vec3]],
    axes: list[dict[int, Vec3]],
    rates: list[dict[int, Vec3]],
    qd: list[Scalar],
    m: int,
    row: list[Scalar],
) -> tuple[Scalar, Vec3]:
    """Fill in row m of C at the joints beyond m; returns C_mm and Σ over k beyond m of q̇_k d_mk in frame m."""
    brought: dict[int, Vec3] = {}  # Σ over k beyond j of q̇_k d_mk, carried inwards to frame j
    for j in reversed(range(m + 1, len(walk))):
        if m in couplings[j]:
            d, beyond = couplings[j][m], brought.get(j, ZERO)
            row[j] = d.dot(rates[j][j]) + beyond.dot(axes[j][j])
            collect(brought, walk[j].parent, walk[j].R @ (beyond + qd[j] * d))
    beyond = brought.get(m, ZERO)
    return beyond.dot(axes[m][m]), beyond


def inertia_rate(chain: Chain, q: list[Scalar], qd: list[Scalar]) -> Matrix:
    """dH/dt = C + Cᵀ."""
    C = coriolis_matrix(chain, q, qd)
    n = range(chain.n)
    H: Matrix = [[0 for _ in n] for _ in n]
    for i in n:
        for j in range(i + 1):
            H[i][j] = H[j][i] = C[i][j] + C[j][i]
    return H


INERTIA_RATE = definition(inertia_rate, "C + Cᵀ")
