"""The derivatives of inverse dynamics by a recursion in which motions and wrenches meet. Ours.

Source: none; docs/formulations/derivatives.rst derives it.

Idea: a point x of the arm beyond joint i moves by Δᵢx per unit of q_i, where Δᵢ is the joint's unit motion. In axes
that move along, the point's acceleration changes by d²(Δᵢx)/dt² per unit of q_i and by 2 d(Δᵢx)/dt per unit of q̇_i, so
the derivatives of the joint forces are integrals over composite bodies j:

    H_ij        = ∫ Δᵢx · Δⱼx dm
    ∂τ_j/∂q̇_i  = 2 ∫ Δⱼx · d(Δᵢx)/dt dm
    ∂τ_j/∂q_i   = ∫ Δⱼx · d²(Δᵢx)/dt² dm, plus the rotated wrench of body i for j < i.

For a pair of joints a < b, body b contributes wrenches, and axis a its unit motion and that motion's first and second
rates: five scalar products per pair. They are formed as in `meeting_frame`: motions go outwards and wrenches inwards to
a frame m in between.

Of the velocities of body b's points relative to link b, only three integrals are needed: h = ∫ ẋ dm, L = ∫ x × ẋ dm
and Q = ∫ (ẋ xᵀ + x ẋᵀ) dm.

Symbols: w, v, U, a: angular velocity, velocity of the frame's origin, acceleration matrix and acceleration of the
origin (dv in `Moving`); k, P: first and second moment; f, n: force and moment.

Cost: 2359M 1906A for a general 7R arm as compiled, 5.3 times inverse dynamics (the chain rule on its graph: 8.1).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from armdyn.algebra import ZERO, Mat3, Scalar, Sym3, Tally, Vec3, Z, counting
from armdyn.algebra.spatial import (
    NO_BODY,
    NO_MOMENTS,
    NO_MOTION,
    NO_WRENCH,
    UNIT_SLIDE,
    UNIT_TURN,
    Body,
    MotionVector,
    Wrench,
    power,
    similarity_about_z,
    turn_about_z,
)
from armdyn.chain import Chain, Joint
from armdyn.formulations.inverse_dynamics.recursion import Moving, motions
from armdyn.formulations.inverse_dynamics.second_moments import bodies, moment
from armdyn.formulations.steps import Step, all_move, collect, countable, inner_joints, pairs, steps

COSTS = (3, 3, 52, 52)  # transports per joint of an axis and of a load; operations per pair on the way, at a meeting
SHORT = 10  # joints up to which every meeting frame is counted; in longer arms the best is near the middle

Matrix = list[list[Scalar]]


@dataclass(frozen=True, slots=True)
class Flow:
    """The integrals h, L and Q of the velocities of a composite body's points relative to its first link."""

    h: Vec3
    L: Vec3
    Q: Sym3

    def __add__(self, other: Flow) -> Flow:
        return Flow(self.h + other.h, self.L + other.L, self.Q + other.Q)


NO_FLOW = Flow(ZERO, ZERO, NO_MOMENTS)


@dataclass(frozen=True, slots=True)
class Load:
    """The contribution of body b to a pair a < b.

    `unit`, `rate` and `turn` are the derivatives of its wrench with respect to q̈_b, q̇_b and q_b; `couple` is
    2∫ ẋ × Δ_b x dm, which multiplies the angular part of axis a.
    """

    unit: Wrench
    rate: Wrench
    turn: Wrench
    couple: Vec3


@dataclass(frozen=True, slots=True)
class Axis:
    """The contribution of joint a: its unit motion and that motion's first and second rates."""

    unit: MotionVector
    first: MotionVector
    second: MotionVector


def derivatives(
    chain: Chain, q: list[Scalar], qd: list[Scalar], qdd: list[Scalar], m: int | None = None
) -> tuple[Matrix, Matrix, Matrix]:
    """∂τ/∂q, ∂τ/∂q̇ and ∂τ/∂q̈ = H, meeting in frame m (1 ≤ m ≤ n), by default the cheapest."""
    walk = steps(chain, q)
    moving = motions(chain, walk, qd, qdd)
    velocities = origin_velocities(walk, moving, qd)
    loads = loads_inwards(walk, bodies(chain), moving, velocities, qd)
    axes = [axis(*one) for one in zip(walk, moving, velocities, strict=True)]
    if m is None:
        serial = chain.serial and all_move(q)
        m = meeting_frame(tuple(map(countable, chain.joints))) if serial else None
    inner = inner_joints(walk, *COSTS) if m is None else frozenset(range(m))
    return meet(walk, axes, loads, inner)


def meet(walk: list[Step], axes: list[Axis], loads: list[Load], inner: frozenset[int]) -> tuple[Matrix, Matrix, Matrix]:
    """The three matrices: axes go outwards over the inner joints, loads inwards over all others."""
    n = len(walk)
    by_q, by_qd, H = ([[0] * n for _ in range(n)] for _ in range(3))

    def put(a: int, b: int, axis: Axis, load: Load) -> None:
        """The entries of the pair a < b, axis and load in the same frame."""
        H[a][b] = H[b][a] = power(axis.unit, load.unit)
        by_qd[a][b] = power(axis.unit, load.rate)
        by_qd[b][a] = axis.unit.w.dot(load.couple) + 2 * power(axis.first, load.unit)
        by_q[a][b] = power(axis.unit, load.turn)
        by_q[b][a] = power(axis.second, load.unit) + axis.first.w.dot(load.couple)

    for k, (step, load) in enumerate(zip(walk, loads, strict=True)):
        H[k][k] = load.unit.along(step.revolute)
        by_qd[k][k] = load.rate.along(step.revolute)
        by_q[k][k] = load.turn.along(step.revolute)
    pairs(walk, inner, axes, loads, axis_outward, load_inward, put)
    return by_q, by_qd, H


@lru_cache(maxsize=256)
def meeting_frame(joints: tuple[Joint, ...]) -> int:
    """The m with the fewest operations for a chain, counted at a generic configuration."""
    x = Tally(0.7)
    full, flat = Vec3(x, x, x), Vec3(x, x, 0)
    walk = [Step.at(joint, x, i - 1) for i, joint in enumerate(joints)]
    general = Wrench(full, full)
    turn = (
        Axis(UNIT_TURN, MotionVector(flat, flat), MotionVector(full, full)),
        Load(Wrench(flat, full), general, general, full),
    )
    slide = (
        Axis(UNIT_SLIDE, MotionVector(ZERO, flat), MotionVector(ZERO, full)),
        Load(Wrench(x * Z, flat), Wrench(flat, full), general, flat),
    )
    axes, loads = zip(*(turn if joint.revolute else slide for joint in joints), strict=True)

    def cost(m: int) -> int:
        with counting() as counter:
            meet(walk, list(axes), list(loads), frozenset(range(m)))
        return counter.operations().total

    n = len(joints)
    near = range(1, n + 1) if n <= SHORT else range(n // 2 - 1, n // 2 + 3)
    return min(near, key=cost)


def axis_outward(step: Step, axis: Axis) -> Axis:
    """An axis of the parent's frame in frame i."""
    out = step.motion_outward
    return Axis(out(axis.unit), out(axis.first), out(axis.second))


def load_inward(step: Step, load: Load) -> Load:
    """A load of frame i in the parent's frame."""
    into = step.wrench_inward
    return Load(into(load.unit), into(load.rate), into(load.turn), step.R @ load.couple)


def origin_velocities(walk: list[Step], moving: list[Moving], qd: list[Scalar]) -> list[Vec3]:
    """The velocity of every frame's origin, parents before children."""
    velocities: list[Vec3] = []
    for step, rate in zip(walk, qd, strict=True):
        before = MotionVector(moving[step.parent].w, velocities[step.parent]) if step.parent >= 0 else NO_MOTION
        v = step.motion_outward(before).v
        velocities.append(v if step.revolute else Vec3(v.x, v.y, v.z + rate))
    return velocities


def column_z(U: Mat3) -> Vec3:
    """U z."""
    return Vec3(U.r1.z, U.r2.z, U.r3.z)


def axis(step: Step, link: Moving, v: Vec3) -> Axis:
    """The unit motion Δ of a joint in its own frame, Δ̇ = [V, Δ] and Δ̈."""
    w, a, across = link.w, link.dv, Vec3(link.w.y, -link.w.x, 0)
    if not step.revolute:
        return Axis(UNIT_SLIDE, MotionVector(ZERO, across), MotionVector(ZERO, column_z(link.U)))
    twice = 2 * v.z
    sway = Vec3(a.y + twice * w.x, twice * w.y - a.x, -2 * (w.x * v.x + w.y * v.y))
    return Axis(UNIT_TURN, MotionVector(across, Vec3(v.y, -v.x, 0)), MotionVector(column_z(link.U), sway))


def loads_inwards(
    walk: list[Step], links: list[Body], moving: list[Moving], velocities: list[Vec3], qd: list[Scalar]
) -> list[Load]:
    """The loads of all composite bodies, parents before children."""
    bodies: dict[int, Body] = {}
    flows: dict[int, Flow] = {}
    wrenches: dict[int, Wrench] = {}
    loads = []
    for i, step in reversed(list(enumerate(walk))):
        own, link = links[i], moving[i]
        body, flow, wrench = own + bodies.get(i, NO_BODY), flows.get(i, NO_FLOW), wrenches.get(i, NO_WRENCH)
        f = wrench.f + own.mass * link.dv + link.U @ own.moment
        n = wrench.n + moment(own, link.w, link.dw, link.U) + own.moment.cross(link.dv)
        wrench = Wrench(f, n)
        loads.append((turning if step.revolute else sliding)(body, flow, link, velocities[i], wrench))
        collect(flows, step.parent, flow_inward(step, joined(step, flow, body, qd[i])))
        collect(bodies, step.parent, step.body_inward(body))
        collect(wrenches, step.parent, step.wrench_inward(wrench))
    return loads[::-1]


def joined(step: Step, flow: Flow, body: Body, rate: Scalar) -> Flow:
    """The flow of a body relative to the link before its joint."""
    h, L, Q, k, P = flow.h, flow.L, flow.Q, body.moment, body.P
    if not step.revolute:
        x, y = rate * k.x, rate * k.y
        Q = Sym3(Q.xx, Q.xy, Q.yy, Q.xz + x, Q.yz + y, Q.zz + 2 * (rate * k.z))
        return Flow(Vec3(h.x, h.y, h.z + body.mass * rate), Vec3(L.x + y, L.y - x, L.z), Q)
    xy, xz, yz = (2 * rate) * P.xy, rate * P.xz, rate * P.yz
    Q = Sym3(Q.xx - xy, Q.xy + rate * (P.xx - P.yy), Q.yy + xy, Q.xz - yz, Q.yz + xz, Q.zz)
    L = Vec3(L.x - xz, L.y - yz, L.z + rate * (P.xx + P.yy))
    return Flow(Vec3(h.x - rate * k.y, h.y + rate * k.x, h.z), L, Q)


def flow_inward(step: Step, flow: Flow) -> Flow:
    """A flow of frame i in the parent's frame, about its origin."""
    flow, R, b = flow_along_z(flow, step.d), step.R.unturned, step.b
    h, L, Q = R @ flow.h, R @ flow.L, R.similarity(flow.Q)
    y, z = b * h.y, b * h.z
    L = Vec3(L.x, L.y - z, L.z + y)
    Q = Sym3(Q.xx + (2 * b) * h.x, Q.xy + y, Q.yy, Q.xz + z, Q.yz, Q.zz)
    if not step.forked:
        return Flow(h, L, Q)
    turn = step.R.turn
    return flow_along_z(Flow(turn_about_z(h, turn), turn_about_z(L, turn), similarity_about_z(Q, turn)), step.shift)


def flow_along_z(flow: Flow, d: Scalar) -> Flow:
    """A flow about a new origin, at -d along z."""
    h, L, Q = flow.h, flow.L, flow.Q
    x, y = d * h.x, d * h.y
    Q = Sym3(Q.xx, Q.xy, Q.yy, Q.xz + x, Q.yz + y, Q.zz + (2 * d) * h.z)
    return Flow(h, Vec3(L.x - y, L.y + x, L.z), Q)


def turning(body: Body, flow: Flow, link: Moving, v: Vec3, wrench: Wrench) -> Load:
    """The load of a revolute joint, Δx = z × x."""
    k, P, h, L, Q = body.moment, body.P, flow.h, flow.L, flow.Q
    w, v, a, (U1, U2, U3) = 2 * link.w, 2 * v, link.dv, link.U.rows
    xz, zx, yz, zy = Q.xz + L.y, Q.xz - L.y, Q.yz - L.x, Q.yz + L.x  # 2∫ ẋ xᵀ dm
    about = Q.xx + Q.yy
    unit = Wrench(Vec3(-k.y, k.x, 0), Vec3(-P.xz, -P.yz, P.xx + P.yy))
    rate = Wrench(
        Vec3(-w.z * k.x - 2 * h.y, 2 * h.x - w.z * k.y, w.x * k.x + w.y * k.y),
        Vec3(
            w.x * P.xy + w.y * P.yy + w.z * P.yz - xz,
            -(w.x * P.xx + w.y * P.xy + w.z * P.xz) - yz,
            about,
        ),
    )
    couple = Vec3(
        w.y * P.xx - w.x * P.xy - v.z * k.x - zx,
        w.y * P.xy - w.x * P.yy - v.z * k.y - zy,
        w.y * P.xz - w.x * P.yz + v.x * k.x + v.y * k.y + about,
    )
    p, r = U1.y + U2.x, U2.y - U1.x  # W = U Z - Z U is (p, r, U₂₃; r, -p, -U₁₃; U₃₂, -U₃₁, 0)
    f, n, s, e = wrench.f, wrench.n, body.mass, link.w
    force = Vec3(
        p * k.x + r * k.y + U2.z * k.z + s * a.y - w.x * h.z - f.y,
        r * k.x - p * k.y - U1.z * k.z - s * a.x - w.y * h.z + f.x,
        U3.y * k.x - U3.x * k.y + w.y * h.y + w.x * h.x,
    )
    torque = Vec3(
        U3.y * P.xy - U3.x * P.yy - r * P.xz + p * P.yz + U1.z * P.zz + k.z * a.x
        + e.y * (Q.yy + Q.zz) + e.x * (Q.xy - L.z) - n.y,
        p * P.xz + r * P.yz + U2.z * P.zz - U3.y * P.xx + U3.x * P.xy + k.z * a.y
        - e.x * (Q.xx + Q.zz) - e.y * (Q.xy + L.z) + n.x,
        r * (P.xx - P.yy) - 2 * p * P.xy - U1.z * P.xz - U2.z * P.yz - k.x * a.x - k.y * a.y
        - e.y * zx + e.x * zy,
    )  # fmt: skip
    return Load(unit, rate, Wrench(force, torque), couple)


def sliding(body: Body, flow: Flow, link: Moving, v: Vec3, wrench: Wrench) -> Load:
    """The load of a prismatic joint, Δx = z."""
    k, s, h, w = body.moment, body.mass, flow.h, link.w
    f, across, along = wrench.f, Vec3(link.w.y, -link.w.x, 0), column_z(link.U)
    momentum = s * v + w.cross(k) + h
    return Load(
        Wrench(s * Z, k.cross(Z)),
        Wrench((2 * s) * across, 2 * k.cross(across)),
        Wrench(s * along, k.cross(along) + Vec3(-f.y, f.x, 0)),
        2 * momentum.cross(Z),
    )
