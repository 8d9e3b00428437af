"""Composite bodies about the base origin: the inertia matrix and the bias vector in one pass.

Source: Lin 1991, eqs. (12), (45)-(58), (62)-(67) and Fig. 3; its display equations are illegible in our copy and were
reconstructed from the text and the operation counts.

Idea: measure every point x from the base origin. A body point has the velocity v_m(x) = u_m × x - ŝ_m at a unit rate of
revolute joint m alone (ŝ_m = u_m × s_m, s_m the origin of frame m), and u_m for a prismatic one. Over composite body j
(links j to n), and for m ≤ j, all in frame j:
H_mj = ∫ v_m·v_j dm = u_m·a_j - ŝ_m·e_j and d_mj = ∫ v_j × v_m dm = G_j u_m - e_j × ŝ_m. With
σ_j = 2 Σ_{k<j} u_k q̇_k + u_j q̇_j (revolute joints only),
b_m = Σ_{j>m} d_mj·(q̇_j σ_j) - Σ_{j<m} d_jm·(q̇_j σ_j) - e_m·g.

Symbols (paper | code): û, ŝ | motion (w, s) with w = 0, s = -u for a prismatic joint; p_j first moment
| k; -(J_j - ½ tr(J_j) E) | P, the second moments ∫ x xᵀ dm; e_j = ∫ v_j dm | e; a_j | a; G_j | G.

Cost claimed (Table II): (12.5n²+5.5n+3)M (9n²+n)A beyond the inertia matrix, n revolute joints. Executed:
the n² terms are the same; docs/papers/lin-1991-table-2.md has the rest row by row.

E₀ coincides with E₁ at q₁ = 0, as the paper recommends. If the first joint is placed elsewhere, the reference point
moves with it, so base placements cost nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from armdyn.algebra import IDENTITY, ZERO, Mat3, Scalar, Sym3, Vec3, Z, on_hand
from armdyn.algebra.spatial import Body
from armdyn.algebra.tally import stage
from armdyn.chain import Chain, Link
from armdyn.formulations.steps import Step, steps

Matrix = list[list[Scalar]]
MotionVector = tuple[Vec3, Vec3]
NO_COUPLING = Mat3(ZERO, ZERO, ZERO)


@dataclass(frozen=True, slots=True)
class Seen:
    """Quantities in frame j: its own motion, those of the joints before it, composite body j, and its a and e."""

    step: Step
    own: MotionVector
    before: list[MotionVector]
    body: Body
    a: Vec3  # ∫ x × v_j dm, the moment about the base origin of a unit rate of joint j
    e: Vec3  # ∫ v_j dm

    @property
    def G(self) -> Mat3:
        """The matrix of u_m in d_mj."""
        k, P, a, (_, s) = self.body.moment, self.body.P, self.a, self.own
        if not self.step.revolute:
            return Mat3(Vec3(k.z, 0, -k.x), Vec3(0, k.z, -k.y), ZERO)
        return Mat3(
            Vec3(P.xy - k.y * s.y, on_hand(lambda: k.x * s.y) - P.xx, 0),  # k_x ŝ_y and k_y ŝ_x are available from a
            Vec3(P.yy + on_hand(lambda: k.y * s.x), -(P.xy + k.x * s.x), 0),
            Vec3(-a.y, a.x, -(on_hand(lambda: k.x * s.x) + on_hand(lambda: k.y * s.y))),
        )


def momentum(revolute: bool, body: Body, s: Vec3) -> tuple[Vec3, Vec3]:
    """(a, e) of composite body j."""
    k, P, m = body.moment, body.P, body.mass
    if not revolute:
        return Vec3(k.y, -k.x, 0), m * Z
    a = Vec3(k.z * s.y - P.xz, -(P.yz + k.z * s.x), P.xx + P.yy - (k.x * s.y - k.y * s.x))
    return a, Vec3(-k.y - m * s.x, k.x - m * s.y, 0)


def seen(chain: Chain, q: list[Scalar]) -> list[Seen]:
    """The quantities in every frame, base to tip: the common part of H and b."""
    walk = steps(chain, q)
    stage("motions")
    s = ZERO if walk[0].revolute else Vec3(0, 0, walk[0].d)
    levers: list[Vec3] = []
    own: list[MotionVector] = []
    before: list[list[MotionVector]] = []
    for j, step in enumerate(walk):
        if j > 0:
            s = step.offset if s is ZERO else step.R.T @ (s + step.origin)  # eq. (25)
        levers.append(s)
        # eqs. (26), (27); the axis of the previous frame is a row of R, already available
        carried = [*before[-1], own[-1]] if j > 0 else []
        before.append([(step.parent_axis if w is Z else step.R.T @ w, step.R.T @ lever) for w, lever in carried])
        own.append((Z, Vec3(-s.y, s.x, 0)) if step.revolute else (ZERO, -Z))
    stage("bodies")
    bodies: list[Body] = []
    for j in reversed(range(chain.n)):
        body = from_base(chain.links[j], levers[j])  # eqs. (28)-(30)
        if bodies:
            R, beyond = walk[j + 1].R, bodies[-1]
            body = body + Body(beyond.mass, R @ beyond.moment, R.similarity(beyond.P))
        bodies.append(body)
    return [
        Seen(step, motion, motions, body, *momentum(step.revolute, body, motion[1]))
        for step, motion, motions, body in zip(walk, own, before, reversed(bodies), strict=True)
    ]


def from_base(link: Link, s: Vec3) -> Body:
    """A link's moments about the base origin; its frame's origin is at s."""
    if not link.has_centre:
        return link.moved(IDENTITY, s).body
    about = Body.of(0, ZERO, link.inertia_about_com)
    r = s + link.com
    k = link.mass * r
    P = Sym3(k.x * r.x, k.x * r.y, k.y * r.y, k.x * r.z, k.y * r.z, k.z * r.z)
    return Body(link.mass, k, about.P + P)


def inertia_matrix_from(views: list[Seen]) -> Matrix:
    """H_mj = u_m·a_j - ŝ_m·e_j, eq. (62)."""
    n = len(views)
    H: Matrix = [[0] * n for _ in range(n)]
    for j, view in enumerate(views):
        for m, (w, s) in enumerate([*view.before, view.own]):
            H[m][j] = H[j][m] = w.dot(view.a) - s.dot(view.e)
    return H


def bias_from(views: list[Seen], qd: list[Scalar], gravity: Vec3) -> list[Scalar]:
    """C q̇ + g from the couplings d_mj, eqs. (53)-(58), (63)-(67)."""
    b: list[Scalar] = [0] * len(views)
    sigma, g = ZERO, gravity
    first = next((j for j, view in enumerate(views) if view.step.revolute), None)
    square: Scalar = 0  # q̇² of that joint
    rates: list[Vec3] = []  # q̇_m σ_m of the joints before, in frame j
    for j, (view, v) in enumerate(zip(views, qd, strict=True)):
        R, (w, _), e = view.step.R, view.own, view.e
        stage("gravity")
        g = R.T @ g
        b[j] = b[j] - e.dot(g)  # eq. (58)
        stage("rates")
        before = views[j - 1].own[0] * qd[j - 1] if j > 0 else ZERO
        sigma = R.T @ (sigma + before) + v * w  # eqs. (54), (56), (57)
        # The σ of the first revolute joint is along its own axis, which is in frame j already.
        rates = [square * view.before[m][0] if m == first else R.T @ rate for m, rate in enumerate(rates)]
        own = v * sigma
        square = own.z if j == first else square
        stage("couplings")
        G = view.G if view.before else NO_COUPLING
        for m, ((u, s), rate) in enumerate(zip(view.before, rates, strict=True)):
            d = G @ u - e.cross(s)  # eq. (46)
            b[m] = b[m] + d.dot(own)
            b[j] = b[j] - d.dot(rate)
        rates.append(own)
    return b


def bias(chain: Chain, q: list[Scalar], qd: list[Scalar]) -> list[Scalar]:
    """C q̇ + g."""
    return bias_from(seen(chain, q), qd, chain.gravity_in_frame_0)


def equations_of_motion(chain: Chain, q: list[Scalar], qd: list[Scalar]) -> tuple[Matrix, list[Scalar]]:
    """(H, b); their common part is computed once."""
    views = seen(chain, q)
    b = bias_from(views, qd, chain.gravity_in_frame_0)
    stage("inertia matrix")
    return inertia_matrix_from(views), b


def inverse_dynamics(chain: Chain, q: list[Scalar], qd: list[Scalar], qdd: list[Scalar]) -> list[Scalar]:
    """H q̈ + b; the common part of H and b is computed once."""
    views = seen(chain, q)
    tau = bias_from(views, qd, chain.gravity_in_frame_0)
    for i, row in enumerate(inertia_matrix_from(views)):
        for h, a in zip(row, qdd, strict=True):
            tau[i] = tau[i] + h * a
    return tau
