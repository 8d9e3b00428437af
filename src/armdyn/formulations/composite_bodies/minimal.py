"""Composite bodies from minimal linear combinations of the inertia parameters (the MLC algorithm).

Source: Lin & Fang 1999, Table VII and eqs. (22)-(55); the constants k, U come from App. C.

Idea: ĉᵢ = kᵢ + lᵢ and Ĵᵢ = Uᵢ + Vᵢ, where k and U are constants computed off-line and only the varying parts l and V
are propagated from the tip to the base. Joint r is the first revolute joint, joint s the first revolute joint not
parallel to it. Below s every revolute axis is parallel to u_r, so only the component of each tensor along u_r is
needed: a scalar instead of a similarity transformation.

Symbols (paper | code): lᵢ | ell, Vᵢ | V, (Vᵢ⁽ʳ⁾)₃₃ | V33, u_r⟨i⟩ | u, m̂ᵢdᵢ | lift, κ₁ᵢ κ₂ᵢ | kappa_1 kappa_2,
(tᵢᵢ⁽ʳ⁾)_z | Inner.torque.

Cost claimed (Table VII): (32n-47)M (33n-57)A for n revolute joints, (32n-45)M (33n-59)A with joint 3 prismatic.

Errata: in eq. (40) and in Table VII's second part the terms with (l)x and (l)y need the factor 2 and
both signs minus, as κ₂ of eq. (28) has them. 1 - u_z² is written u_x² + u_y², which does not cancel.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from armdyn.algebra import ZERO, Scalar, Sym3, Vec3, Z, on_hand, online
from armdyn.algebra.tally import named
from armdyn.chain import Chain
from armdyn.formulations.steps import Step, run_time
from armdyn.parameters import Constants, inertia_constants

NOTHING = Sym3(0, 0, 0, 0, 0, 0)
Axes = dict[int, Vec3]  # u_r in frame i
StepAndConstants = tuple[Step, Constants]


@dataclass(frozen=True, slots=True)
class Inner:
    """A composite body with i < s as it acts on the joints: u_r in frame i and the torque along it (none before r)."""

    u: Vec3
    torque: Scalar


@dataclass(frozen=True, slots=True)
class MinimalBody:
    """Composite body i in frame i: m̂, ĉ (without its z if the joint is revolute), the third column of Ĵ.

    If i < s, the column is (0, 0, Ĵ₃₃), only revolute joints have ĉ, and `inner` holds the rest.
    """

    revolute: bool
    mass: Scalar
    moment: Vec3
    column: Vec3
    inner: Inner | None = None

    @property
    def force(self) -> Vec3:
        """The force of a unit acceleration of joint i (Lin & Fang eq. 7)."""
        return Vec3(-self.moment.y, self.moment.x, 0) if self.revolute else Vec3(0, 0, self.mass)

    @property
    def torque(self) -> Vec3:
        """The torque of a unit acceleration of joint i (Lin & Fang eq. 8); below s, its part that acts on joints."""
        if self.inner is not None:
            return self.column if self.revolute else self.inner.torque * self.inner.u
        return self.column if self.revolute else Vec3(self.moment.y, -self.moment.x, 0)


def composite_bodies(chain: Chain, steps: list[Step]) -> list[MinimalBody]:
    """All composite bodies, base to tip; before the first revolute joint only the mass is computed."""
    r, s, axes = first_axes(chain)
    links = list(zip(steps, inertia_constants(chain), strict=True))
    for i, (_, const) in enumerate(links, 1):
        named(f"k_{i}", const.k), named(f"U_{i}", const.U)
    outer, ell, V33 = _down_to_s(links, s, axes)
    inner = _down_to_r(links, r, s, axes, ell, V33)
    before = [MinimalBody(False, const.mass, ZERO, ZERO, Inner(ZERO, 0)) for _, const in links[:r]]
    return [_counted_at_run_time(body) for body in (*before, *inner[::-1], *outer[::-1])]


def _down_to_s(links: list[StepAndConstants], s: int, axes: Axes) -> tuple[list[MinimalBody], Vec3, Scalar]:
    """Table VII, first part: bodies n … s, and their contribution to body s-1, l and (V⁽ʳ⁾)₃₃."""
    bodies: list[MinimalBody] = []
    ell, V, V33 = ZERO, NOTHING, 0
    for i in reversed(range(s, len(links))):
        step, const = links[i]
        body = _outer_body(step, const, ell, V)
        bodies.append(body)
        named(f"chat_{i + 1}", body.moment), named(f"Jhat_{i + 1}", body.column)
        lift = _lift(step, const)
        X = _lifted(step, const, body, ell, V, lift)
        ell = named(f"ell_{i}", _moment(step, body, ell, lift))
        if i > s:
            V = named(f"V_{i}", _pushed(step.R.similarity(X), step.b, ell))  # Lin & Fang eqs. (41)-(54)
        else:
            V33 = _inner_pushed(_quadratic(_turned(axes[s - 1], step), X), axes[s - 1], step.b, ell)
    return bodies, ell, V33


def _down_to_r(links: list[StepAndConstants], r: int, s: int, axes: Axes, ell: Vec3, V33: Scalar) -> list[MinimalBody]:
    """Table VII, second part: bodies s-1 … r, of which only the component along u_r is propagated."""
    bodies: list[MinimalBody] = []
    for i in reversed(range(r, s)):
        step, const = links[i]
        body = _inner_body(step, const, axes[i], ell, V33)
        bodies.append(body)
        named(f"chat_{i + 1}", body.moment), named(f"Jhat_{i + 1}", body.column)
        if i > r:
            lift = _lift(step, const)
            Y33 = _inner_lifted(step, const, body, ell, V33, lift)
            ell = named(f"ell_{i}", _moment(step, body, ell, lift))
            V33 = _inner_pushed(Y33, axes[i - 1], step.b, ell)
    return bodies


def _lift(step: Step, const: Constants) -> Scalar:
    """m̂d of a prismatic joint, computed once for l and X (C3)."""
    return 0 if step.revolute else const.mass * step.d


def first_axes(chain: Chain) -> tuple[int, int, Axes]:
    """(r, s, u_r in every frame i with r ≤ i < s): all three are constants of the chain; n stands for none."""
    r, u = chain.n, Z
    axes: Axes = {}
    for i, joint in enumerate(chain.joints):
        if r == chain.n:
            if joint.prismatic:
                continue
            r, u = i, Z
        elif joint.prismatic:
            u = joint.rotation(0).inverse(u)
        else:
            u = joint.tilt.T @ u
            if u.x != 0 or u.y != 0:
                return r, i, axes
            u = Z if u.z > 0 else -Z
        axes[i] = u
    return r, chain.n, axes


def _outer_body(step: Step, const: Constants, ell: Vec3, V: Sym3) -> MinimalBody:
    k, U = const.k, const.U
    if step.revolute:
        c = Vec3(k.x + ell.x, k.y + ell.y, 0)  # Lin & Fang eq. (22)
        return MinimalBody(True, const.mass, c, Vec3(U.xz + V.xz, U.yz + V.yz, U.zz + V.zz))  # Lin & Fang eq. (23)
    return MinimalBody(False, const.mass, k + ell, ZERO)


def _inner_body(step: Step, const: Constants, u: Vec3, ell: Vec3, V33: Scalar) -> MinimalBody:
    k = const.k
    if step.revolute:
        J33 = const.U.zz + V33
        return MinimalBody(True, const.mass, Vec3(k.x + ell.x, k.y + ell.y, 0), J33 * Z, Inner(u, u.z * J33))
    kappa_1 = u.x * k.y - u.y * k.x  # Lin & Fang eq. (27)
    return MinimalBody(
        False, const.mass, ZERO, ZERO, Inner(u, kappa_1 - u.y * ell.x + u.x * ell.y)
    )  # Lin & Fang eq. (29)


def _moment(step: Step, body: MinimalBody, ell: Vec3, lift: Scalar) -> Vec3:
    """The varying part of ĉᵢ₋₁."""
    if step.revolute:
        return step.R @ Vec3(body.moment.x, body.moment.y, ell.z)  # Lin & Fang eq. (24)
    return step.R @ Vec3(ell.x, ell.y, ell.z + lift)


def _lifted(step: Step, const: Constants, body: MinimalBody, ell: Vec3, V: Sym3, lift: Scalar) -> Sym3:
    """X: the tensor after the shift by d along z, before the rotation into frame i-1."""
    c, J, U, d = body.moment, body.column, const.U, step.d
    if step.revolute:  # Lin & Fang eq. (34)
        w = (2 * d) * ell.z
        return Sym3(V.xx + (U.xx - U.yy) + w, V.xy + U.xy, V.yy + w, J.x - d * c.x, J.y - d * c.y, J.z)
    w = d * (lift + 2 * c.z)  # Lin & Fang eq. (35)
    return Sym3(V.xx + w, V.xy, V.yy + w, V.xz - d * c.x, V.yz - d * c.y, V.zz)


def _pushed(Y: Sym3, b: Scalar, ell: Vec3) -> Sym3:
    """The last term of Lin & Fang eqs. (34), (35): the shift by b along x of frame i-1."""
    w = (2 * b) * ell.x
    return Sym3(Y.xx, Y.xy - b * ell.y, Y.yy + w, Y.xz - b * ell.z, Y.yz, Y.zz + w)


def _turned(u: Vec3, step: Step) -> Vec3:
    """u_r in frame s: constant in frame s-1, its z constant in frame s (Lin & Fang eq. 39)."""
    u = step.joint.tilt.T @ u
    if u.x == 0:  # joint s-1 is about u_r: a row of R, already available (C1)
        c, s = on_hand(lambda: (u.y * step.R.c, u.y * step.R.s))
        return Vec3(s, c, u.z)
    return Vec3(u.x * step.R.c + u.y * step.R.s, u.y * step.R.c - u.x * step.R.s, u.z)


def _quadratic(u: Vec3, X: Sym3) -> Scalar:
    """uᵀ X u with u_z constant (Lin & Fang eq. 55)."""
    return (
        u.x * (u.x * X.xx + 2 * (u.y * X.xy))
        + u.y * u.y * X.yy
        + (2 * u.z) * (u.x * X.xz + u.y * X.yz)
        + (u.z * u.z) * X.zz
    )


def _inner_lifted(step: Step, const: Constants, body: MinimalBody, ell: Vec3, V33: Scalar, lift: Scalar) -> Scalar:
    """(Y)₃₃ for i < s (Lin & Fang eq. 40, first part, with the errata corrected)."""
    if step.revolute or body.inner is None:
        return body.column.z
    u, k = body.inner.u, const.k
    square = u.x * u.x + u.y * u.y
    kappa_2 = square * k.z - u.z * (u.x * k.x + u.y * k.y)  # Lin & Fang eq. (28)
    varying = (2 * square) * ell.z - (2 * u.z * u.x) * ell.x - (2 * u.z * u.y) * ell.y
    return V33 + step.d * (2 * kappa_2 + square * lift + varying)


def _inner_pushed(Y33: Scalar, u: Vec3, b: Scalar, ell: Vec3) -> Scalar:
    """(V⁽ʳ⁾)₃₃ (Lin & Fang eqs. 38, 40, last part)."""
    return Y33 + (2 * b) * ((u.y * u.y + u.z * u.z) * ell.x - (u.x * u.y) * ell.y - (u.x * u.z) * ell.z)


def _counted_at_run_time(body: MinimalBody) -> MinimalBody:
    """ĉ and Ĵ count as run-time numbers, also those of the last link (C2); literal zeros stay."""
    c = Vec3(online(body.moment.x), online(body.moment.y), 0) if body.revolute else run_time(body.moment)
    inner = body.inner and Inner(body.inner.u, online(body.inner.torque))
    J = body.column
    column = run_time(J) if inner is None else Vec3(J.x, J.y, online(J.z))
    return replace(body, moment=c, column=column, inner=inner)
