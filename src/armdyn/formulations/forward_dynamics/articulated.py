"""Articulated-body inertias: the apparent inertia of link i when the joints beyond it are free to move.

Source: Saha 1999, eqs. (34), (35); Featherstone 1983.

Idea: M̂ᵢ = Mᵢ + Bᵀ Ψ M̂ᵢ₊₁ B, where Ψ = 1 - M̂ p pᵀ / m̂ projects out the joint's own motion and m̂ = pᵀ M̂ p (plus the
rotor inertia, which acts on the joint alone). In the link's own frame and about its origin, p selects a column: M̂ p is
column z of the angular or of the linear part.

Symbols (paper | code): M̂ᵢ | Articulated (I, H, M): moment = I w + H v, force = Hᵀ w + M v; M̂ᵢ pᵢ |
(n, f) of a Pivot; m̂ᵢ | D; Ψᵢ M̂ᵢ | projected; B_{i+1,i} | shifts along z and x with a turn between.

The links may have natural parameters or those of `newton_euler_mlc`: the pivots m̂ are the same, and the latter take
fewer operations because links have no mass there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from armdyn.algebra import Mat3, Scalar, Sym3, Vec3
from armdyn.algebra.spatial import similarity_about_z
from armdyn.algebra.tally import index, named
from armdyn.chain import Chain, Link
from armdyn.formulations.coordinates import base_joints
from armdyn.formulations.elimination import least_pivots, reciprocal
from armdyn.formulations.steps import Step, collect


@dataclass(frozen=True, slots=True)
class Articulated:
    """moment = I w + H v, force = Hᵀ w + M v, about the frame's origin."""

    I: Sym3  # noqa: E741 - the papers' letter
    H: Mat3
    M: Sym3

    @classmethod
    def rigid(cls, link: Link) -> Articulated:
        """A rigid body: H = [mc×], M = m E."""
        m, h = link.mass, link.moment
        H = Mat3(Vec3(0, -h.z, h.y), Vec3(h.z, 0, -h.x), Vec3(-h.y, h.x, 0))
        return cls(link.inertia, H, Sym3(m, 0, m, 0, 0, m))

    @property
    def matrix(self) -> list[list[Scalar]]:
        """(force, moment) per (linear, angular) acceleration, 6 × 6."""
        upper = [[*m, *h] for m, h in zip(self.M.full.rows, self.H.T.rows, strict=True)]
        return upper + [[*h, *i] for h, i in zip(self.H.rows, self.I.full.rows, strict=True)]

    def __add__(self, other: Articulated) -> Articulated:
        return Articulated(self.I + other.I, self.H + other.H, self.M + other.M)


@dataclass(frozen=True, slots=True)
class Pivot:
    """M̂ p as moment n and force f, m̂ and 1/m̂."""

    n: Vec3
    f: Vec3
    D: Scalar
    r: Scalar


def pivot(step: Step, body: Articulated, least: Scalar, number: int) -> Pivot:
    """The articulated body along joint `number`: M̂ p and m̂, eq. (34)."""
    I, H, M = body.I, body.H, body.M  # noqa: E741
    if step.revolute:
        n, f, own = Vec3(I.xz, I.yz, I.zz), H.r3, I.zz
    else:
        n, f, own = Vec3(H.r1.z, H.r2.z, H.r3.z), Vec3(M.xz, M.yz, M.zz), M.zz
    D = named(f"mhat_{number + 1}", own + step.joint.rotor_inertia)
    return Pivot(n, f, D, reciprocal(D, least, number))


def projected(step: Step, body: Articulated, p: Pivot, name: str = "psi") -> Articulated:
    """Ψ M̂ = M̂ - M̂ p pᵀ M̂ / m̂: along the joint only the rotor's part remains, exactly 0 without a rotor."""
    left = step.joint.rotor_inertia * p.r
    rn, rf = named(f"{name}n", p.r * p.n), named(f"{name}f", p.r * p.f)  # of Ψ = 1 - ψ pᵀ
    I, H, M, n, f = body.I, body.H, body.M, p.n, p.f  # noqa: E741
    if step.revolute:
        I = Sym3(  # noqa: E741
            I.xx - rn.x * n.x, I.xy - rn.x * n.y, I.yy - rn.y * n.y, left * n.x, left * n.y, left * n.z
        )
        return Articulated(I, Mat3(H.r1 - rn.x * f, H.r2 - rn.y * f, left * f), _less(M, rf, f))
    columns = H.T
    M = Sym3(M.xx - rf.x * f.x, M.xy - rf.x * f.y, M.yy - rf.y * f.y, left * f.x, left * f.y, left * f.z)
    return Articulated(_less(I, rn, n), Mat3(columns.r1 - rf.x * n, columns.r2 - rf.y * n, left * n).T, M)


def _less(S: Sym3, a: Vec3, b: Vec3) -> Sym3:
    """S - a bᵀ for parallel a and b."""
    return S - Sym3(a.x * b.x, a.x * b.y, a.y * b.y, a.x * b.z, a.y * b.z, a.z * b.z)


def inward(step: Step, body: Articulated) -> Articulated:
    """Bᵀ M̂ B: the same inertia in the parent's frame about its origin."""
    body, R = _along_z(body, step.d), step.R.unturned
    body = Articulated(R.similarity(body.I), _turned(step, body.H), R.similarity(body.M))
    body = _along_x(body, step.b)
    if not step.forked:
        return body
    turn = step.R.turn
    I, M = similarity_about_z(body.I, turn), similarity_about_z(body.M, turn)  # noqa: E741
    return _along_z(Articulated(I, _about_z(body.H, turn.cos, turn.sin), M), step.shift)


def _along_z(body: Articulated, d: Scalar) -> Articulated:
    """The reference point moved by -d along z: H + [p×]M, then I + [p×]H'ᵀ + ([p×]Hᵀ)ᵀ."""
    I, H, M = body.I, body.H, body.M  # noqa: E741
    r1 = Vec3(H.r1.x - d * M.xy, H.r1.y - d * M.yy, H.r1.z - d * M.yz)
    r2 = Vec3(H.r2.x + d * M.xx, H.r2.y + d * M.xy, H.r2.z + d * M.xz)
    moved = Sym3(
        I.xx - d * (r1.y + H.r1.y),
        I.xy + d * (H.r1.x - r2.y),
        I.yy + d * (r2.x + H.r2.x),
        I.xz - d * H.r3.y,
        I.yz + d * H.r3.x,
        I.zz,
    )
    return Articulated(moved, Mat3(r1, r2, H.r3), M)


def _along_x(body: Articulated, b: Scalar) -> Articulated:
    """The same for -b along x."""
    I, H, M = body.I, body.H, body.M  # noqa: E741
    r2 = Vec3(H.r2.x - b * M.xz, H.r2.y - b * M.yz, H.r2.z - b * M.zz)
    r3 = Vec3(H.r3.x + b * M.xy, H.r3.y + b * M.yy, H.r3.z + b * M.yz)
    moved = Sym3(
        I.xx,
        I.xy - b * H.r1.z,
        I.yy - b * (r2.z + H.r2.z),
        I.xz + b * H.r1.y,
        I.yz + b * (H.r2.y - r3.z),
        I.zz + b * (r3.y + H.r3.y),
    )
    return Articulated(moved, Mat3(H.r1, r2, r3), M)


def _turned(step: Step, H: Mat3) -> Mat3:
    """R H Rᵀ without the turn at a branch, as two plane rotations of 12M each, 8 of them for entries off the plane."""
    beta, gamma, R = step.joint.beta, step.joint.gamma, step.R
    H = _about_z(H, R.c, R.s)
    if gamma.sin != 0:
        H = _cycled(_about_z(_cycled(_cycled(H)), gamma.cos, gamma.sin))
    return _cycled(_cycled(_about_z(_cycled(H), beta.cos, beta.sin)))


def _about_z(H: Mat3, c: Scalar, s: Scalar) -> Mat3:
    a, b, d, e = H.r1.x, H.r1.y, H.r2.x, H.r2.y
    t = s * (a - e) + c * (b + d)
    st, ct = s * t, c * t
    x, y = H.r1.z, H.r2.z
    u, v = H.r3.x, H.r3.y
    return Mat3(
        Vec3(a - st, ct - d, c * x - s * y),
        Vec3(ct - b, e + st, s * x + c * y),
        Vec3(c * u - s * v, s * u + c * v, H.r3.z),
    )


def _cycled(H: Mat3) -> Mat3:
    """The same matrix with axes x, y, z renamed z, x, y, so that x takes the place of z."""
    r1, r2, r3 = (Vec3(row.y, row.z, row.x) for row in (H.r2, H.r3, H.r1))
    return Mat3(r1, r2, r3)


def articulated_bodies(chain: Chain, walk: list[Step], links: Sequence[Link]) -> tuple[list[Articulated], list[Pivot]]:
    """M̂ᵢ and its pivot for every joint, base to tip, eqs. (34), (35)."""
    least, six = least_pivots(chain), base_joints(chain)
    bodies: list[Articulated] = []
    pivots: list[Pivot] = []
    brought: dict[int, Articulated] = {}
    for i in reversed(range(chain.n)):
        step, body = walk[i], Articulated.rigid(links[i])
        if i in brought:
            body = body + brought[i]
        bodies.append(_named(index(i), body))
        pivots.append(pivot(step, body, least[i], i - six))
        if step.parent >= 0:
            collect(brought, step.parent, inward(step, projected(step, body, pivots[-1], f"psi_{index(i)}")))
    return bodies[::-1], pivots[::-1]


def _named(number: str, body: Articulated) -> Articulated:
    """M̂ᵢ with its entries named in derivations."""
    named(f"Ihat_{number}", body.I), named(f"Mhat_{number}", body.M)
    for axis, row in zip("xyz", body.H.rows, strict=True):
        named(f"Hhat_{number}{axis}", row)
    return body
