"""Saha 1999: the factors U D Uᵀ, what they mean, the inverse, and the 3-link planar arm of section 6 term by term."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

import armdyn
from armdyn.algebra import ZERO, Angle, Sym3, Vec3
from armdyn.chain import Chain, Joint, Link
from armdyn.chain.chain import generic_chain
from armdyn.formulations.forward_dynamics.articulated import articulated_bodies
from armdyn.formulations.steps import steps
from dynamics_cases import CASES, at, close, motion

MASSES, LENGTHS = (Fraction(3), Fraction(2), Fraction(5, 4)), (Fraction(1), Fraction(4, 5), Fraction(3, 5))
THETA = (0.4, -1.1, 0.7)


def planar_arm() -> Chain:
    """Three rods in the X-Y plane, Fig. 3: mass centres half way, I = m l²/12, joint i at the end of link i-1."""
    joint = Joint("revolute", Fraction(0), Angle.of(0.0), Fraction(0), Angle.of(0.0))
    joints = (joint, replace(joint, b=LENGTHS[0]), replace(joint, b=LENGTHS[1]))
    links = []
    for m, length in zip(MASSES, LENGTHS, strict=True):
        about = m * length * length / 12
        links.append(Link.from_com(m, Vec3(length / 2, 0, 0), Sym3(0, 0, about, 0, 0, about)))
    return Chain(joints, tuple(links), ZERO)


@pytest.fixture(scope="module")
def paper() -> SimpleNamespace:
    """Section 6 as printed, misprints corrected: every symbol by its name."""
    m1, m2, m3 = map(float, MASSES)
    l1, l2, l3 = map(float, LENGTHS)
    t1, t2, t3 = THETA
    t12, t13, t23 = t1 + t2, t1 + t2 + t3, t2 + t3  # eq. (44)

    def at_angle(angle: float) -> np.ndarray:
        return np.array([np.cos(angle), np.sin(angle)])

    d1, d2, d3 = l1 / 2 * at_angle(t1), l2 / 2 * at_angle(t12), l3 / 2 * at_angle(t13)
    rho12 = l1 * at_angle(t1) + d2
    rho23 = l2 * at_angle(t12) + d3  # printed with θ₂₃ in its first component
    rho13 = l1 * at_angle(t1) + l2 * at_angle(t12) + d3
    I1, I2, I3 = (m * length**2 / 12 for m, length in ((m1, l1), (m2, l2), (m3, l3)))
    c2, c3, c23 = np.cos(t2), np.cos(t3), np.cos(t23)
    s = SimpleNamespace(**{k: v for k, v in locals().items() if k not in ("at_angle",)})
    s.m_hat3 = I3 + m3 * d3 @ d3
    s.alpha13 = (I3 + m3 * d3 @ rho13) / s.m_hat3
    s.alpha23 = (I3 + m3 * d3 @ rho23) / s.m_hat3
    s.m_hat2 = I2 + m2 * d2 @ d2 + I3 + m3 * rho23 @ rho23 - (I3 + m3 * d3 @ rho23) ** 2 / s.m_hat3
    mixed = I2 + m2 * d2 @ rho12 + I3 + m3 * rho13 @ rho23  # printed with "l₂" for I₂
    mixed -= (I3 + m3 * d3 @ rho13) * (I3 + m3 * d3 @ rho23) / s.m_hat3
    s.alpha12 = mixed / s.m_hat2
    s.m_hat1 = I1 + m1 * d1 @ d1 + I2 + m2 * rho12 @ rho12 + I3 + m3 * rho13 @ rho13
    s.m_hat1 -= (I3 + m3 * d3 @ rho13) ** 2 / s.m_hat3 + mixed**2 / s.m_hat2
    return s


def test_planar_inertia_matrix_term_by_term(paper):
    """Eqs. (43a)-(43f), both forms."""
    p = paper
    vectors = {
        (0, 0): p.I1 + p.m1 * p.d1 @ p.d1 + p.I2 + p.m2 * p.rho12 @ p.rho12 + p.I3 + p.m3 * p.rho13 @ p.rho13,
        (1, 0): p.I2 + p.m2 * p.d2 @ p.rho12 + p.I3 + p.m3 * p.rho23 @ p.rho13,
        (1, 1): p.I2 + p.m2 * p.d2 @ p.d2 + p.I3 + p.m3 * p.rho23 @ p.rho23,
        (2, 0): p.I3 + p.m3 * p.d3 @ p.rho13,
        (2, 1): p.I3 + p.m3 * p.d3 @ p.rho23,
        (2, 2): p.I3 + p.m3 * p.d3 @ p.d3,
    }
    m1, m2, m3, l1, l2, l3 = p.m1, p.m2, p.m3, p.l1, p.l2, p.l3
    tip = l1**2 + l2**2 + l3**2 / 3 + 2 * l1 * l2 * p.c2 + l1 * l3 * p.c23 + l2 * l3 * p.c3
    cosines = {
        (0, 0): m1 * l1**2 / 3 + m2 * (l1**2 + l2**2 / 3 + l1 * l2 * p.c2) + m3 * tip,
        (1, 0): m2 * (l2**2 / 3 + l1 * l2 * p.c2 / 2)
        + m3 * (l1 * l2 * p.c2 + l2**2 + l2 * l3 * p.c3 + l1 * l3 * p.c23 / 2 + l3**2 / 3),
        (1, 1): m2 * l2**2 / 3 + m3 * (l2**2 + l3**2 / 3 + l2 * l3 * p.c3),
        (2, 0): m3 * (l1 * l3 * p.c23 / 2 + l2 * l3 * p.c3 / 2 + l3**2 / 3),
        (2, 1): m3 * (l2 * l3 * p.c3 / 2 + l3**2 / 3),
        (2, 2): m3 * l3**2 / 3,
    }
    H = at(planar_arm(), "inertia_matrix", "denoc", np.array(THETA))
    for (i, j), value in vectors.items():
        assert H[i, j] == pytest.approx(value, rel=1e-14)
        assert H[j, i] == pytest.approx(cosines[i, j], rel=1e-14)


@pytest.mark.parametrize("method", armdyn.methods("inertia_factors"))
def test_planar_factors_term_by_term(paper, method):
    """Eq. (45) and the product of eq. (46)."""
    U, D = at(planar_arm(), "inertia_factors", method, np.array(THETA))
    p = paper
    close(U, [[1, p.alpha12, p.alpha13], [0, 1, p.alpha23], [0, 0, 1]], 1e-13)
    close(D, [p.m_hat1, p.m_hat2, p.m_hat3], 1e-13)
    product = [
        [p.m_hat1 + p.m_hat2 * p.alpha12**2 + p.m_hat3 * p.alpha13**2, 0, 0],
        [p.m_hat2 * p.alpha12 + p.m_hat3 * p.alpha13 * p.alpha23, p.m_hat2 + p.m_hat3 * p.alpha23**2, 0],
        [p.m_hat3 * p.alpha13, p.m_hat3 * p.alpha23, p.m_hat3],
    ]
    close(np.tril(at(planar_arm(), "inertia_matrix", "denoc", np.array(THETA))), product, 1e-13)


@pytest.mark.parametrize("method", armdyn.methods("inertia_inverse"))
def test_planar_inverse_term_by_term(paper, method):
    """Eq. (48) with the squares it lacks, and α′₁₃ = α₁₃ - α₁₂ α₂₃."""
    p = paper
    prime12, prime23, prime13 = p.alpha12, p.alpha23, p.alpha13 - p.alpha12 * p.alpha23
    r1, r2, r3 = 1 / p.m_hat1, 1 / p.m_hat2, 1 / p.m_hat3
    expected = [
        [r1, 0, 0],
        [-r1 * prime12, r1 * prime12**2 + r2, 0],
        [-r1 * prime13, r1 * prime12 * prime13 - r2 * prime23, r1 * prime13**2 + r2 * prime23**2 + r3],
    ]
    found = at(planar_arm(), "inertia_inverse", method, np.array(THETA))
    close(np.tril(found), expected, 1e-12)
    close(found @ at(planar_arm(), "inertia_matrix", "denoc", np.array(THETA)), np.eye(3), 1e-13)


@pytest.mark.parametrize("name", ["RRR", "RPR", "RRRRRR", "PRRPRP", "gamma"])
def test_articulated_bodies_are_what_a_free_chain_shows(name):
    """M̂ᵢ is the inertia of links i … n with joints i+1 … n free: the Schur complement of their inertia matrix.

    Six joints in place of joint i move the link's frame in every direction; what is left of their 6 × 6
    block once the other joints give way is M̂ᵢ itself, natural links assumed.
    """
    chain = CASES[name].floats
    q = list(motion(chain.n, 2)[0])
    walk = steps(chain, q)
    bodies, pivots = articulated_bodies(chain, walk, chain.links)
    matrices, Psi, m = at(CASES[name], "articulated_inertias", "denoc", np.array(q))
    linear_first = [3, 4, 5, 0, 1, 2]
    for i, (body, pivot) in enumerate(zip(bodies, pivots, strict=True)):
        full = composite_and_couplings(chain, q, i)
        A, B, C = full[:6, :6], full[:6, 6:], full[6:, 6:]
        schur = A - B @ np.linalg.solve(C, B.T) if len(C) else A
        J, H, M = (np.array([[float(x) for x in r] for r in m.rows]) for m in (body.I.full, body.H, body.M.full))
        close(np.block([[J, H], [H.T, M]]), schur, 1e-10)
        axis = 2 if walk[i].revolute else 5
        assert pytest.approx(schur[axis, axis], rel=1e-10) == pivot.D
        # the same as arrays of the arm, linear rows first; without rotors Ψ M̂ p = 0 and Ψ M̂ is symmetric
        close(matrices[i], schur[np.ix_(linear_first, linear_first)], 1e-10)
        close(m[i], schur[axis, axis], 1e-10)
        left = Psi[i] @ matrices[i]
        close(left[:, linear_first.index(axis)], np.zeros(6), 1e-10)
        close(left, left.T, 1e-10)


def composite_and_couplings(chain: Chain, q: list[float], i: int) -> np.ndarray:
    """The inertia matrix of links i … n for six free directions of frame i and joints i+1 … n."""
    size = 6 + chain.n - i - 1
    total = np.zeros((size, size))
    motions = np.zeros((6, size))  # twist (w, v) of the present frame, by coordinate
    motions[:, :6] = np.eye(6)
    for k in range(i, chain.n):
        joint, link = chain.joints[k], chain.links[k]
        if k > i:
            R, p = joint.placement(q[k])
            turn = np.array([[float(x) for x in row] for row in R.matrix().rows])
            w, v = motions[:3], motions[3:]
            v = v + np.cross(w.T, np.array([float(x) for x in p])).T
            motions = np.vstack([turn.T @ w, turn.T @ v])
            motions[2 if joint.revolute else 5, 6 + k - i - 1] += 1.0
        x, y, z = (float(v) for v in link.moment)
        hat = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
        J = np.array([[float(v) for v in row] for row in link.inertia.full.rows])
        spatial = np.block([[J, hat], [hat.T, float(link.mass) * np.eye(3)]])
        total += motions.T @ spatial @ motions
    return total


def test_psi_takes_the_joint_direction_away():
    """Ψ M̂ p = 0: with the rotor at rest nothing of the articulated body is felt along its own joint."""
    from armdyn.formulations.forward_dynamics.articulated import projected

    chain = generic_chain("RPR", 4).floats
    walk = steps(chain, [0.3, 0.2, -0.7])
    bodies, pivots = articulated_bodies(chain, walk, chain.links)
    for step, body, pivot in zip(walk, bodies, pivots, strict=True):
        left = projected(step, body, pivot)
        column = (
            (left.I.xz, left.I.yz, left.I.zz, *left.H.r3)
            if step.revolute
            else (*(row.z for row in left.H.rows), left.M.xz, left.M.yz, left.M.zz)
        )
        assert column == (0,) * 6
