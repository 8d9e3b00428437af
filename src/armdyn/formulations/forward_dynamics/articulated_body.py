"""The articulated-body method.

Source: Featherstone 1983.

Idea: one pass from tip to base computes the articulated-body inertia and bias wrench of every link, with the joints
beyond it free; then every joint's acceleration follows from that of its parent. Here accelerations are those of points
(not spatial ones), so no linear velocity is needed: the bias wrench of a link is (w × J w, w × (w × h)), gravity is an
acceleration of the base, and a shift by p adds w × (w × p).

Symbols: c bias acceleration of a joint (dw, dv); Z bias wrench (n, f); u joint force less the component of the bias
wrench along the joint; the rest as in `articulated`.

Cost quoted (Saha 1999, section 7): (199n-198)M (174n-173)A.
"""

from __future__ import annotations

from armdyn.algebra import ZERO, Scalar, Vec3
from armdyn.algebra.spatial import NO_WRENCH, MotionVector, Wrench
from armdyn.chain import Chain
from armdyn.formulations.forward_dynamics.articulated import articulated_bodies
from armdyn.formulations.inverse_dynamics.newton_euler_mlc import accounts
from armdyn.formulations.inverse_dynamics.recursion import acceleration_matrix
from armdyn.formulations.steps import Step, collect, steps


def forward_dynamics(chain: Chain, q: list[Scalar], qd: list[Scalar], tau: list[Scalar]) -> list[Scalar]:
    """The joint accelerations under joint forces, rotors included."""
    walk, links = steps(chain, q), accounts(chain)
    bodies, pivots = articulated_bodies(chain, walk, links)
    rates, biases = _velocities(walk, qd)
    brought: dict[int, Wrench] = {}
    u: list[Scalar] = [0] * chain.n
    for i in reversed(range(chain.n)):
        step, w, J, h = walk[i], rates[i], links[i].inertia, links[i].moment
        wrench = brought.get(i, NO_WRENCH) + Wrench(w.cross(w.cross(h)), w.cross(J @ w))
        u[i] = (tau[i] - wrench.along(step.revolute)) * pivots[i].r
        if step.parent >= 0:
            p, body, dw, dv = pivots[i], bodies[i], biases[i].w, biases[i].v
            share = u[i] - p.r * (p.n.dot(dw) + p.f.dot(dv))
            n = wrench.n + body.I @ dw + body.H @ dv + share * p.n
            f = wrench.f + body.H.T @ dw + body.M @ dv + share * p.f
            collect(brought, step.parent, step.wrench_inward(Wrench(f, n)))
    base = MotionVector(ZERO, -chain.gravity_in_frame_0)
    qdd: list[Scalar] = []
    accelerations: list[MotionVector] = []
    for step, p, u_i, c in zip(walk, pivots, u, biases, strict=True):
        moved = step.motion_outward(accelerations[step.parent] if step.parent >= 0 else base) + c
        qdd.append(u_i - p.r * (p.n.dot(moved.w) + p.f.dot(moved.v)))
        accelerations.append(moved.along(step.revolute, qdd[-1]))
    return qdd


def _velocities(walk: list[Step], qd: list[Scalar]) -> tuple[list[Vec3], list[MotionVector]]:
    """The angular velocities of the links, and the velocity-product accelerations of each joint."""
    rates: list[Vec3] = []
    biases: list[MotionVector] = []
    for step, v in zip(walk, qd, strict=True):
        w = rates[step.parent] if step.parent >= 0 else ZERO
        before = acceleration_matrix(w, ZERO)
        lever = before @ step.fork if step.forked else step.b * Vec3(before.r1.x, before.r2.x, before.r3.x)
        dv = step.R.T @ lever
        w = step.R.T @ w
        if step.revolute:
            dw = Vec3(w.y * v, -(w.x * v), 0)
        else:
            slide = 2 * v
            dw, dv = ZERO, Vec3(dv.x + slide * w.y, dv.y - slide * w.x, dv.z)
        U = acceleration_matrix(w, ZERO)
        dv = dv + step.d * Vec3(U.r1.z, U.r2.z, U.r3.z)
        rates.append(w + (Vec3(0, 0, v) if step.revolute else ZERO))
        biases.append(MotionVector(dw, dv))
    return rates, biases
