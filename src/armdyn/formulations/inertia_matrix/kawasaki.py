"""Kawasaki, Murata & Kanzaki's composite bodies on a minimal set of parameters.

Source: Lin & Fang 1999, Appendix B, eqs. (B1)-(B11), which repeats Kawasaki et al. 1996 with Steps 4.1 and 4.2
combined and the erratum of Step 4.2 corrected.

Idea: the minimal parameters of Mayeda and Khalil are natural parameters of other links with the same dynamics (masses
and z components of first moments are 0 where the parameters are redundant), so composite bodies are formed from these
links, about the origins of their frames. An arm with revolute joints only has no mass left, and all terms in m̂ go
(`masses`).

Symbols (paper | code): ⁱ⁻¹hᵢ | h, m̂ s | lift, L | L, f | f, t | t, Algorithm I | masses=True, Algorithm II |
masses=False.

Cost claimed (Table VIII, n revolute joints): I (11n²+15n-41)M (7n²+32n-66)A, II (11n²+9n-35)M (7n²+23n-57)A; one
body's L from the next takes 30M 37A or 27M 34A (section 4), both counted with the addition of the link's own five
entries.

Executed: every addition as printed, and 1M more than printed for both; D₁₂ takes it, or (L)₃₃ of body 1.

Errata: eq. (B11) and Table V take Kⱼ* and Kⱼ; Table VIII prints 194 M at n = 4, its formula gives 195.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from armdyn.algebra import ZERO, Scalar, Sym3, Vec3, online
from armdyn.algebra.tally import stage
from armdyn.chain import Chain
from armdyn.formulations.inverse_dynamics.newton_euler_mlc import accounts
from armdyn.formulations.steps import Matrix, Step, filled, run_time, steps

HALF = Fraction(1, 2)
Moments = tuple[Vec3, Vec3]  # ⁱ⁻¹hᵢ, the first moment about the origin of frame i-1 in its axes, and the m̂ s in it


@dataclass(frozen=True, slots=True)
class Composite:
    """Composite body i about the origin of frame i, in its axes."""

    mass: Scalar
    c: Vec3
    L: Sym3


def variants(chain: Chain) -> Sequence[Mapping[str, Any]]:
    """Algorithm II needs revolute joints throughout."""
    return ({}, {"masses": False}) if all(joint.revolute for joint in chain.joints) else ({},)


def inertia_matrix(chain: Chain, q: list[Scalar], *, masses: bool = True) -> Matrix:
    """D(q), column by column."""
    path = steps(chain, q)
    stage("composite bodies")
    bodies, moments = _composite_bodies(chain, path, masses)
    stage("formulation")
    return filled([_column(path, bodies[i], moments[i], i) for i in range(chain.n)])


def _composite_bodies(chain: Chain, path: list[Step], masses: bool) -> tuple[list[Composite], list[Moments]]:
    """The composite bodies (eq. B2), and ⁱ⁻¹hᵢ (eq. B3) with the m̂ s in it."""
    links = accounts(chain)
    first = next((i for i, step in enumerate(path) if step.revolute), chain.n)
    body = Composite(_mass(links[-1].mass, masses), run_time(links[-1].moment), _run_time(links[-1].inertia))
    bodies: list[Composite] = [body]
    moments: list[Moments] = []
    for i in reversed(range(chain.n - 1)):
        step, link, outer = path[i + 1], links[i], bodies[-1]
        s, h = step.origin, step.R @ outer.c
        lift = outer.mass * s if masses else ZERO
        about, h = (h + lift * HALF, h + lift) if masses else (h, h)
        moments.append((h, lift))
        if i < first:
            L = outer.L
        elif i == first:  # only (L)₃₃ is needed
            L = Sym3(0, 0, 0, 0, 0, _about_axis(step, outer.L, s, about) + link.inertia.zz)
        else:
            L = step.R.similarity(outer.L) + coupling(s, about) + link.inertia
        c = link.moment + h if i > 0 else ZERO
        bodies.append(Composite(_mass(link.mass + outer.mass, masses), c, L))
    return bodies[::-1], [(ZERO, ZERO), *moments[::-1]]


def _mass(mass: Scalar, masses: bool) -> Scalar:
    return online(mass) if masses else 0


def _run_time(J: Sym3) -> Sym3:
    return Sym3(*(online(x) for x in J.entries))


def coupling(s: Vec3, h: Vec3) -> Sym3:
    """-[s×][h×] - [h×][s×] in 9M 9A: doubling by addition."""
    xx, yy, zz = s.x * h.x, s.y * h.y, s.z * h.z
    a, b, d = yy + zz, xx + zz, xx + yy
    return Sym3(
        a + a, -(s.x * h.y + s.y * h.x), b + b, -(s.x * h.z + s.z * h.x), -(s.y * h.z + s.z * h.y), d + d
    )  # fmt: skip


def _about_axis(step: Step, L: Sym3, s: Vec3, h: Vec3) -> Scalar:
    """The entry (3,3) of R L Rᵀ, as in Lin & Fang eq. (55), and of the coupling."""
    u, z = step.parent_axis, step.R.beta.cos * step.R.gamma.cos  # the axis of joint i; its last component is constant
    turned = u.x * (u.x * L.xx + 2 * (u.y * L.xy)) + u.y * u.y * L.yy
    turned = turned + (2 * z) * (u.x * L.xz + u.y * L.yz) + (z * z) * L.zz
    return turned + ((2 * s.x) * h.x + (2 * s.y) * h.y)


def _column(path: list[Step], body: Composite, moments: Moments, i: int) -> list[Scalar]:
    """D_1i … D_ii."""
    column = [body.L.zz if path[i].revolute else body.mass]  # Lin & Fang eq. (B6)
    f = t = ZERO
    h, lift = moments
    for j in reversed(range(i)):
        step, last = path[j + 1], j == 0 and path[0].revolute
        if j < i - 1:
            f = _force(step, f, last)  # Lin & Fang eq. (B9)
            t = _moment(step, t, f, last)  # Lin & Fang eq. (B10)
        elif path[i].revolute:
            f = _around(step.axis, h if lift is ZERO else h - lift, last)  # Lin & Fang eq. (B7)
            t = _moment(step, Vec3(body.L.xz, body.L.yz, body.L.zz), f, last)  # Lin & Fang eq. (B8)
        else:
            f, t = run_time(body.mass * step.axis), h.cross(step.axis)
        column.append(t.z if path[j].revolute else f.z)  # Lin & Fang eq. (B11)
    return column[::-1]


def _around(axis: Vec3, h: Vec3, last: bool) -> Vec3:
    """The product u × h; in frame 1 without its third component."""
    return Vec3(axis.y * h.z - axis.z * h.y, axis.z * h.x - axis.x * h.z, 0) if last else axis.cross(h)


def _force(step: Step, f: Vec3, last: bool) -> Vec3:
    """R f; in frame 1 without its third component, which a revolute joint does not feel."""
    R = step.R
    if not last:
        return R @ f
    x, y = R.c * f.x - R.s * f.y, R.s * f.x + R.c * f.y
    x, z = R.gamma.cos * x + R.gamma.sin * f.z, R.gamma.cos * f.z - R.gamma.sin * x
    return Vec3(x, R.beta.cos * y - R.beta.sin * z, 0)


def _moment(step: Step, t: Vec3, f: Vec3, last: bool) -> Vec3:
    """R t + s × f for f in the inner frame; in frame 1 only its third component."""
    s = step.origin
    return Vec3(0, 0, step.parent_axis.dot(t) + (s.x * f.y - s.y * f.x)) if last else step.R @ t + s.cross(f)
