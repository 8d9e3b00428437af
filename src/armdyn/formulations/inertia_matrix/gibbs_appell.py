"""GAH: the inertia matrix as the Hessian of the Gibbs function.

Source: Provenzano, Mata, Ceccarelli & Suñer, Steps 1-7, eqs. (3)-(20), for revolute joints. Extended here to prismatic
joints, whose accelerations enter the Gibbs function in the same way: ∂r̈_G/∂q̈ₖ is then the axis uₖ itself.

Idea: D_jk = ∂²G/∂q̈ⱼ∂q̈ₖ = Σ over links of m ∂r̈·∂r̈ + ∂ω̇·I ∂ω̇ (eq. 4); sums over links from j on become the
recursive first moments fᵢ and tensors φᵢ.

Symbols (paper | code): Mᵢ | mass, ⁱgᵢ | g, ⁱEᵢ | E, ⁱfᵢ | f, ⁱφᵢ | phi, ∂ω̇ⱼ/∂q̈ₖ | u, ʲr_Oi,Oi+1 | r, ʲr_Ok,Oj |
lever.

Cost claimed (Table 1): (11.5n²+19.5n-49)M (8.5n²+31.5n-69)A for n revolute joints.

Executed: rows (10), (11), (14), (15), (16), (20) as printed; (17) takes 30M 32A instead of 31M 40A, (18)
13M 8A instead of 13M 11A. The arrangement behind the printed totals is not given.

Errata: i of eqs. (6), (7), (9) runs from n-1 down to 1; the rotation of eq. (14) leads from frame j-1 to j.
"""

from __future__ import annotations

from armdyn.algebra import Scalar, Sym3, Vec3, online
from armdyn.algebra.spatial import parallel_axis
from armdyn.algebra.tally import stage
from armdyn.chain import Chain
from armdyn.formulations.steps import Matrix, Step, filled, run_time, steps


def inertia_matrix(chain: Chain, q: list[Scalar]) -> Matrix:
    """D(q)."""
    path = steps(chain, q)
    stage("eqs. (6)-(9)")  # nothing, unless a joint is prismatic
    origins = [step.origin for step in path]
    masses, f, phi = _sums(chain, path, origins)
    columns: list[list[Scalar]] = []
    axes: list[Vec3] = []  # ∂ω̇/∂q̈ₖ of the previous joints, in frame j
    pieces: list[Vec3] = []  # r_Oi,Oi+1 of the previous joints, in frame j
    for j, step in enumerate(path):
        if j > 0:
            stage("eq. (10)")
            pieces = [step.R.T @ r for r in [*pieces, run_time(origins[j])]]  # Provenzano et al. eq. (10)
            stage("eq. (14)")
            axes = [*(step.R.T @ u for u in axes), step.parent_axis]  # Provenzano et al. eqs. (13), (14)
        stage("eq. (11)")
        levers = _levers(pieces)
        stage("eq. (20)")
        column = [
            _entry(before.revolute, step.revolute, u, lever, masses[j], f[j], phi[j])
            for before, u, lever in zip(path, axes, levers, strict=False)
        ]
        columns.append([*column, phi[j].zz if step.revolute else masses[j]])  # Provenzano et al. eq. (19)
    return filled(columns)


def _sums(chain: Chain, path: list[Step], origins: list[Vec3]) -> tuple[list[Scalar], list[Vec3], list[Sym3]]:
    """Masses, first moments f and tensors φ of links i … n (Steps 1, 4 and 5)."""
    last = chain.links[-1]
    masses, f = [last.mass], [run_time(last.moment)]
    phi = [Sym3(*(online(x) for x in last.inertia.entries))]
    for i in reversed(range(chain.n - 1)):
        stage("eqs. (6)-(9)")
        link, step, r, M = chain.links[i], path[i + 1], origins[i + 1], masses[-1]
        g, E = link.moment + M * r, link.inertia + M * Sym3.steiner(r, r)  # Provenzano et al. eqs. (7)-(9), off-line
        stage("eq. (15)")
        outer = step.R @ f[-1]  # Provenzano et al. eq. (15)
        if i > 0:
            stage("eq. (17)")
            phi.append(E + step.R.similarity(phi[-1]) + parallel_axis(r, outer))  # Provenzano et al. eq. (17)
        else:
            stage("eq. (18)")
            about_axis = E.zz + _along(step, phi[-1]) + 2 * (r.x * outer.x + r.y * outer.y)
            phi.append(Sym3(0, 0, 0, 0, 0, about_axis))  # Provenzano et al. eq. (18)
        masses.append(link.mass + M)
        stage("eq. (16)")
        f.append(g + outer)  # Provenzano et al. eq. (16)
    return masses[::-1], f[::-1], phi[::-1]


def _along(step: Step, J: Sym3) -> Scalar:
    """(R J Rᵀ)₃₃; the last entry of R's third row is a constant."""
    u, z = step.parent_axis, step.axis.z
    return (
        u.x * (u.x * J.xx + 2 * (u.y * J.xy)) + u.y * u.y * J.yy + (2 * z) * (u.x * J.xz + u.y * J.yz) + (z * z) * J.zz
    )


def _levers(pieces: list[Vec3]) -> list[Vec3]:
    """r_Ok,Oj of all previous joints, from the vectors between neighbouring origins (Provenzano et al. eq. 11)."""
    levers: list[Vec3] = []
    for r in reversed(pieces):
        levers.append(r + levers[-1] if levers else r)
    return levers[::-1]


def _entry(turns: bool, revolute: bool, u: Vec3, lever: Vec3, mass: Scalar, f: Vec3, phi: Sym3) -> Scalar:
    """D_jk of joint k (axis u, `turns`) and the links from joint j on."""
    if turns and revolute:  # Provenzano et al. eq. (20): u·(φ - r̃ f̃)z
        return u.dot(
            Vec3(
                phi.xz - lever.z * f.x,
                phi.yz - lever.z * f.y,
                phi.zz + lever.x * f.x + lever.y * f.y,
            )
        )
    if revolute:  # uₖ·(uⱼ × f)
        return u.y * f.x - u.x * f.y
    if turns:  # uₖ·((M r + f) × uⱼ)
        return u.x * (mass * lever.y + f.y) - u.y * (mass * lever.x + f.x)
    return mass * u.z
