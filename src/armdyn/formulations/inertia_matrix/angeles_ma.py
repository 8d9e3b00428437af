"""Angeles & Ma's natural orthogonal complement: H = PᵀP.

Source: named in Provenzano et al., Table 1; Angeles & Ma 1988, whose steps that paper does not print.

Idea: the extended mass matrix M is factored link by link, M = Λ Λᵀ, off-line: Λ_k = diag(L_k, √m_k E) with the
Cholesky factor I_k = L_k L_kᵀ of the inertia about the mass centre. With the natural orthogonal complement T, which
maps joint rates to the links' twists, P = Λᵀ T and H = PᵀP: a triple (m, j, k) is 6M 6A, as the printed cubic terms
say.

Symbols (paper | code): the columns of T for link k | shares, P | columns.

Cost claimed (Provenzano et al., Table 1): (n³+17n²-21n+8)M (n³+14n²-16n+5)A.

Executed: (n³+18n²-35n+16)M (n³+12n²-24n+11)A: the cubic terms are as printed. The n² terms of the print fit 8M 5A for
a rotated vector and no multiplication by √m.

Links that are no bodies, with negative masses or inertias, keep the signs beside the roots; signs are free.
"""

from __future__ import annotations

from dataclasses import dataclass

from armdyn.algebra import ZERO, Mat3, Scalar, Vec3
from armdyn.algebra.scalar import is_number, sqrt
from armdyn.algebra.tally import stage
from armdyn.chain import Chain, Link
from armdyn.formulations.inertia_matrix.lin_cubic import must_have_centres, shares
from armdyn.formulations.steps import Matrix, filled, steps


def inertia_matrix(chain: Chain, q: list[Scalar]) -> Matrix:
    """H(q) = PᵀP."""
    must_have_centres(chain, "angeles_ma")
    factors = [Factor.of(link) for link in chain.links]
    P: list[list[tuple[Vec3, Vec3]]] = []  # for every link, the columns of the joints up to its own
    stage("complement")
    for link, factor, own in zip(chain.links, factors, shares(steps(chain, q)), strict=True):
        com = link.com
        P.append([(factor.L_t @ one.u if one.revolute else ZERO, factor.root * one.velocity(com)) for one in own])
    stage("product")
    return filled([[_product(P[j:], factors[j:], m, j) for m in range(j + 1)] for j in range(chain.n)])


def _product(P: list[list[tuple[Vec3, Vec3]]], factors: list[Factor], m: int, j: int) -> Scalar:
    """The product of columns m and j of P."""
    total: Scalar = 0
    for columns, factor in zip(reversed(P), reversed(factors), strict=True):
        (w, v), (x, y) = columns[m], columns[j]
        total = total + (w.dot(_signed(factor.signs, x)) + v.dot(factor.sign * y))
    return total


def _signed(signs: Vec3, v: Vec3) -> Vec3:
    return Vec3(signs.x * v.x, signs.y * v.y, signs.z * v.z)


@dataclass(frozen=True, slots=True)
class Factor:
    """Lᵀ and √m of one link, constants; the signs are 1 for a body and -1 where a mass or a pivot is negative."""

    L_t: Mat3
    root: Scalar
    signs: Vec3
    sign: Scalar

    @classmethod
    def of(cls, link: Link) -> Factor:
        """The Cholesky factor of the inertia about the mass centre; a vanishing pivot leaves its row 0."""
        J = link.inertia_about_com
        a, p = _root(J.xx)
        b, c = _over(J.xy, a, p), _over(J.xz, a, p)
        d, q = _root(J.yy - p * b * b)
        e = _over(J.yz - p * b * c, d, q)
        f, r = _root(J.zz - p * c * c - q * e * e)
        root, sign = _root(link.mass)
        return cls(Mat3(Vec3(a, b, c), Vec3(0, d, e), Vec3(0, 0, f)), root, Vec3(p, q, r), sign)


def _root(x: Scalar) -> tuple[Scalar, Scalar]:
    """√|x| and the sign of x."""
    if not is_number(x):
        return sqrt(x), 1
    return (0, 1) if x == 0 else (sqrt(abs(x)), 1 if x > 0 else -1)


def _over(x: Scalar, root: Scalar, sign: Scalar) -> Scalar:
    return 0 if is_number(root) and root == 0 else sign * x / root
