"""Reference implementations to test the formulations against: short, obvious, and independent of them.

Source: the definitions. The inertia matrix is the sum of JᵀMJ over links, in base axes; the potential energy is
-Σ m g·c; gravity load and bias are exact derivatives of the energies, by dual numbers, not by finite differences.
"""

from __future__ import annotations

from armdyn.algebra import Dual, Scalar, Vec3
from armdyn.chain import Chain
from armdyn.formulations.kinematics.poses import frames

Matrix = list[list[Scalar]]


def inertia_matrix(chain: Chain, q: list[Scalar]) -> Matrix:
    """H = Σ over links of ∫ vᵢ·vⱼ dm, with vᵢ the velocity field of joint i alone."""
    n = chain.n
    placed = frames(chain, q)
    axes = [(joint.revolute, R.T.r3, p) for joint, (R, p) in zip(chain.joints, placed, strict=True)]
    H: Matrix = [[0 for _ in range(n)] for _ in range(n)]
    for k, (link, (R, p)) in enumerate(zip(chain.links, placed, strict=True)):
        # Unit rates in the link's frame: angular velocity w, velocity v of the frame's origin.
        rates = [
            (i, R.T @ u, R.T @ u.cross(p - s)) if revolute else (i, Vec3(0, 0, 0), R.T @ u)
            for i in chain.path(k)
            for revolute, u, s in (axes[i],)
        ]
        for a, (i, wi, vi) in enumerate(rates):
            for j, wj, vj in rates[: a + 1]:
                h = link.mass * vi.dot(vj) + link.moment.dot(vj.cross(wi) + vi.cross(wj)) + wi.dot(link.inertia @ wj)
                H[i][j] = H[i][j] + h
                if i != j:
                    H[j][i] = H[j][i] + h
    return H


def kinetic_energy(chain: Chain, q: list[Scalar], qd: list[Scalar]) -> Scalar:
    """½ q̇ᵀ H q̇, without rotors."""
    H = inertia_matrix(chain, q)
    total = 0
    for row, v in zip(H, qd, strict=True):
        for h, w in zip(row, qd, strict=True):
            total = total + h * v * w
    return total / 2


def potential_energy(chain: Chain, q: list[Scalar]) -> Scalar:
    """-Σ m g·c, zero at the base origin."""
    total = 0
    for link, (R, p) in zip(chain.links, frames(chain, q), strict=True):
        total = total - chain.gravity.dot(R @ link.moment + link.mass * p)
    return total


def gravity_load(chain: Chain, q: list[Scalar]) -> list[Scalar]:
    """∂V/∂q."""
    at = Dual.variables(q)
    return list(Dual.gradient(potential_energy(chain, list(at)), at))


def christoffel(chain: Chain, q: list[Scalar], qd: list[Scalar]) -> Matrix:
    """C with C_ij = Σ_k ½(∂H_ij/∂q_k + ∂H_ik/∂q_j - ∂H_jk/∂q_i) q̇_k."""
    n = range(chain.n)
    at = Dual.variables(q)
    dH = [[Dual.gradient(h, at) for h in row] for row in inertia_matrix(chain, list(at))]
    return [[sum((dH[i][j][k] + dH[i][k][j] - dH[j][k][i]) * qd[k] for k in n) / 2 for j in n] for i in n]


def bias(chain: Chain, q: list[Scalar], qd: list[Scalar], *, qdd: list[Scalar] | None = None) -> list[Scalar]:
    """C q̇ + g, from exact derivatives of the energies; plus H q̈ for the rotating axes of a floating base."""
    C, g = christoffel(chain, q, qd), gravity_load(chain, q)
    b = [sum((c * v for c, v in zip(row, qd, strict=True)), load) for row, load in zip(C, g, strict=True)]
    if qdd is None:
        return b
    H = inertia_matrix(chain, q)
    return [sum((h * a for h, a in zip(row, qdd, strict=True)), b_i) for row, b_i in zip(H, b, strict=True)]


def reference_dynamics(
    chain: Chain, q: list[Scalar], qd: list[Scalar], qd_ref: list[Scalar], qdd_ref: list[Scalar]
) -> list[Scalar]:
    """H q̈ᵣ + C q̇ᵣ + g, from exact derivatives of the energies."""
    H, C, g = inertia_matrix(chain, q), christoffel(chain, q, qd), gravity_load(chain, q)
    forces = []
    for h, c, load in zip(H, C, g, strict=True):
        inertial = sum((x * a for x, a in zip(h, qdd_ref, strict=True)), load)
        forces.append(sum((x * v for x, v in zip(c, qd_ref, strict=True)), inertial))
    return forces


def momentum_bias(chain: Chain, q: list[Scalar], qd: list[Scalar]) -> list[Scalar]:
    """∂T/∂q - ∂V/∂q."""
    at = Dual.variables(q)
    slopes = Dual.gradient(kinetic_energy(chain, list(at), qd), at)
    return [slope - load for slope, load in zip(slopes, gravity_load(chain, q), strict=True)]
