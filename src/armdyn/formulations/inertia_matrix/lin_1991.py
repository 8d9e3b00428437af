"""Composite bodies about one fixed point, the base origin.

Source: Lin 1991, eqs. (12)-(30) and Fig. 3 (the display equations are illegible in the scan; reconstructed from the
text, and checked against values and the printed operation counts).

Idea: measure every point x from the base origin. A unit rate of joint j alone gives the velocity field
vⱼ(x) = uⱼ × x - ŝⱼ, ŝⱼ = uⱼ × sⱼ (revolute), or vⱼ = uⱼ (prismatic), and H_mj = ∫ v_m·vⱼ dm over composite
body j. All vectors have the same origin, so from frame to frame they are only rotated, not shifted.
The linear momentum eⱼ = ∫ vⱼ dm and the angular momentum aⱼ = ∫ x × vⱼ dm give H_mj = u_m·aⱼ - ŝ_m·eⱼ, or u_m·eⱼ.

Symbols (paper | code): ⁱ₀s⟨i⟩ | s, ⁱ₀p⟨i⟩ | p, pⱼ (first moment) | h, J̃ = J - ½tr(J)E | J, uⱼ⟨k⟩ | u, ŝⱼ⟨k⟩ | v,
aⱼ | a, eⱼ | e. N_fR, the first revolute joint | r.

Cost claimed (Table I): (10.5n²+38.5n-85)M (6n²+39n-70)A for n revolute joints.

Executed: every multiplication as printed; (n-2)A fewer. The rows add up to the printed total if R J̃ Rᵀ takes 36M 19A;
its arrangement is illegible, two plane rotations take 36M 18A.

The base origin may be any point: here it is the origin of frame 1, so that s₁ = 0 also if joint 1 is prismatic.
"""

from __future__ import annotations

from armdyn.algebra import IDENTITY, ZERO, Scalar, Sym3, Vec3
from armdyn.algebra.tally import stage
from armdyn.chain import Chain, Link
from armdyn.formulations.steps import Matrix, Step, filled, run_time, steps

NOTHING = Sym3(0, 0, 0, 0, 0, 0)
Momentum = tuple[Vec3, Vec3]  # (a, e)


def inertia_matrix(chain: Chain, q: list[Scalar]) -> Matrix:
    """H(q)."""
    path = steps(chain, q)
    stage("composite bodies")
    origins = _origins(path)
    bodies = momenta(chain, path, origins)
    stage("formulation")
    columns: list[list[Scalar]] = []
    motions: list[tuple[bool, Vec3, Vec3]] = []  # (revolute, u, ŝ) of joints 1 … j, in frame j
    for j, (step, s, (a, e)) in enumerate(zip(path, origins, bodies, strict=True)):
        if j > 0:
            before, _, v = motions[-1]
            motions = [(turns, step.R.T @ w, step.R.T @ x) for turns, w, x in motions[:-1]]
            motions.append((before, step.parent_axis, step.R.T @ v))
        motions.append((step.revolute, Vec3(0, 0, 1), Vec3(-s.y, s.x, 0) if step.revolute else ZERO))
        columns.append([u.dot(a) - v.dot(e) if turns else u.dot(e) for turns, u, v in motions])
    return filled(columns)


def _origins(path: list[Step]) -> list[Vec3]:
    """The vector from the base origin to each frame's origin, in that frame's axes."""
    s = [ZERO]
    for i, step in enumerate(path[1:]):
        s.append(step.R.T @ (s[-1] + step.origin) if i > 0 else run_time(step.offset))
    return s


def momenta(chain: Chain, path: list[Step], origins: list[Vec3]) -> list[Momentum]:
    """(aⱼ, eⱼ) of every composite body at a unit rate of its joint, base to tip."""
    n = chain.n
    r = next((i for i, step in enumerate(path) if step.revolute), n)
    carried: list[Momentum] = []
    mass, h, J = 0, ZERO, NOTHING
    for j in reversed(range(n)):  # tip to base
        link, s = chain.links[j], origins[j]
        mass = mass + link.mass
        if j < r:  # neither first moment nor inertia is needed before the first revolute joint
            carried.append((ZERO, Vec3(0, 0, mass)))
            continue
        own_h, own_J = _from_base(link, s)
        if j == n - 1:
            h, J = own_h, own_J
        elif j > r:
            R = path[j + 1].R
            h, J = R @ h + own_h, R.similarity_by_products(J) + own_J
        else:  # the first revolute joint needs only (J)₃₃ of its body, and its first moment unless s = 0
            about_axis = _about_axis(own_J, path[j + 1], J)
            h = path[j + 1].R @ h + own_h if j > 0 else ZERO
            carried.append(_momentum(True, s, mass, h, NOTHING, about_axis))
            continue
        carried.append(_momentum(path[j].revolute, s, mass, h, J, -(J.xx + J.yy)))
    return carried[::-1]


def _from_base(link: Link, s: Vec3) -> tuple[Vec3, Sym3]:
    """First moment and J̃ = -∫ x xᵀ dm of one link about the base origin."""
    if not link.has_centre:  # massless, but it may still have moments
        moved = link.moved(IDENTITY, s)
        return moved.moment, _tilde(moved.inertia)
    p = s + link.com
    h = link.mass * p
    outer = Sym3(h.x * p.x, h.x * p.y, h.y * p.y, h.x * p.z, h.y * p.z, h.z * p.z)
    return h, _tilde(link.inertia_about_com) - outer  # Lin 1991 eq. (21): [a×][b×] = baᵀ - (a·b)E


def _tilde(inertia: Sym3) -> Sym3:
    """J - ½tr(J)E (Lin 1991 eq. 19)."""
    half = inertia.trace / 2
    return inertia - Sym3(half, 0, half, 0, 0, half)


def _about_axis(own: Sym3, step: Step, J: Sym3) -> Scalar:
    """(J)₃₃ of the first revolute joint's body: 12M 12A instead of a similarity transformation."""
    u = step.parent_axis
    return u.dot(J @ u) - J.trace - (own.xx + own.yy)


def _momentum(revolute: bool, s: Vec3, mass: Scalar, h: Vec3, J: Sym3, about_axis: Scalar) -> Momentum:
    if not revolute:
        return Vec3(h.y, -h.x, 0), Vec3(0, 0, mass)
    x, y = -s.y, s.x  # ŝⱼ = uⱼ × sⱼ
    a = Vec3(J.xz + h.z * y, J.yz - h.z * x, about_axis - (h.x * y - h.y * x))
    return a, Vec3(-h.y - mass * x, h.x - mass * y, 0)
