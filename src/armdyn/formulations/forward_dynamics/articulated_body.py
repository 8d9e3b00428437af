"""The articulated-body method.

Source: Featherstone 1983.

Idea: in one pass from tip to base find, for every link, the inertia and the bias wrench it shows with
the joints beyond it free; then every joint's acceleration follows from that of the link before. Here
accelerations are those of points (not spatial ones), so no linear velocity is needed: the bias wrench
of a link is (w × J w, w × (w × h)), gravity is an acceleration of the base, and a shift by p brings
w × (w × p).

Symbols: c bias acceleration of a joint (dw, dv); Z bias wrench (n, f); u joint force less what the
bias wrench asks for; the rest as in `articulated`.

Cost quoted (Saha 1999, section 7): (199n-198)M (174n-173)A.
"""

from __future__ import annotations

from armdyn.algebra import ZERO, Scalar, Vec3
from armdyn.chain import Chain
from armdyn.formulations.forward_dynamics.articulated import articulated_bodies
from armdyn.formulations.inverse_dynamics.newton_euler_mlc import accounts
from armdyn.formulations.inverse_dynamics.recursion import acceleration_matrix
from armdyn.formulations.screws import along_axis, motion_outward, wrench_inward
from armdyn.formulations.steps import Step, steps

Pair = tuple[Vec3, Vec3]


def forward_dynamics(chain: Chain, q: list[Scalar], qd: list[Scalar], tau: list[Scalar]) -> list[Scalar]:
    """The accelerations of joint forces, rotors included."""
    walk, links = steps(chain, q), accounts(chain)
    bodies, pivots = articulated_bodies(chain, walk, links)
    rates, biases = _velocities(walk, qd)
    f, n = ZERO, ZERO
    u: list[Scalar] = [0] * chain.n
    for i in reversed(range(chain.n)):
        w, J, h = rates[i], links[i].inertia, links[i].moment
        f, n = f + w.cross(w.cross(h)), n + w.cross(J @ w)
        u[i] = (tau[i] - along_axis(walk[i], f, n)) * pivots[i].r
        if i > 0:
            p, body, (dw, dv) = pivots[i], bodies[i], biases[i]
            share = u[i] - p.r * (p.n.dot(dw) + p.f.dot(dv))
            n = n + body.I @ dw + body.H @ dv + share * p.n
            f = f + body.H.T @ dw + body.M @ dv + share * p.f
            f, n = wrench_inward(walk[i], f, n)
    dw, dv, qdd = ZERO, -chain.gravity_in_frame_0, []
    for step, p, u_i, c in zip(walk, pivots, u, biases, strict=True):
        dw, dv = motion_outward(step, dw, dv)
        dw, dv = dw + c[0], dv + c[1]
        qdd.append(u_i - p.r * (p.n.dot(dw) + p.f.dot(dv)))
        if step.revolute:
            dw = Vec3(dw.x, dw.y, dw.z + qdd[-1])
        else:
            dv = Vec3(dv.x, dv.y, dv.z + qdd[-1])
    return qdd


def _velocities(walk: list[Step], qd: list[Scalar]) -> tuple[list[Vec3], list[Pair]]:
    """Angular velocities of the links and the accelerations that velocities alone bring at each joint."""
    w = ZERO
    rates: list[Vec3] = []
    biases: list[Pair] = []
    for step, v in zip(walk, qd, strict=True):
        before = acceleration_matrix(w, ZERO)
        dv = step.R.T @ (step.b * Vec3(before.r1.x, before.r2.x, before.r3.x))
        w = step.R.T @ w
        if step.revolute:
            dw = Vec3(w.y * v, -(w.x * v), 0)
        else:
            slide = 2 * v
            dw, dv = ZERO, Vec3(dv.x + slide * w.y, dv.y - slide * w.x, dv.z)
        U = acceleration_matrix(w, ZERO)
        dv = dv + step.d * Vec3(U.r1.z, U.r2.z, U.r3.z)
        w = w + (Vec3(0, 0, v) if step.revolute else ZERO)
        rates.append(w)
        biases.append((dw, dv))
    return rates, biases
