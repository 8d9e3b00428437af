"""Momentum bias: the rate of the joint momenta p = H q̇ without joint forces, Cᵀq̇ - g.

Source: De Luca & Mattone 2003 (the momentum observer, ṗ = τ + Cᵀq̇ - g); the recursion is ours.

Idea: with C by Christoffel symbols, Cᵀq̇ = ½ ∂(q̇ᵀH q̇)/∂q, so that the momentum bias is ∂L/∂q of the Lagrangian. A
displacement of joint i moves everything beyond it rigidly: the twist V = (w, v) of frame i, in its own axes, changes by
V × s, with s the joint's unit twist. Hence ∂T/∂q_i is the product of the momentum h of all links beyond joint i with
V × s. One outward sweep for the velocities and one inward sweep for the momenta: no Coriolis matrix, no derivative.

Symbols: (w, v) | the twist of frame i; h = (f, n) | linear and angular momentum beyond joint i, about frame i.
"""

from __future__ import annotations

from armdyn.algebra import Scalar
from armdyn.algebra.spatial import NO_MOTION, NO_WRENCH, MotionVector, Wrench
from armdyn.chain import Chain
from armdyn.formulations import reference
from armdyn.formulations.energies import gravity_load as gravity
from armdyn.formulations.inverse_dynamics.newton_euler_mlc import accounts
from armdyn.formulations.registry import Formulation, Run
from armdyn.formulations.steps import collect, steps


def momentum_bias(chain: Chain, q: list[Scalar], qd: list[Scalar], *, gravity_load: Run = gravity) -> list[Scalar]:
    """Cᵀq̇ - g = ∂L/∂q."""
    walk = steps(chain, q)
    motions: list[MotionVector] = []
    for step, rate in zip(walk, qd, strict=True):
        before = motions[step.parent] if step.parent >= 0 else NO_MOTION
        motions.append(step.motion_outward(before).along(step.revolute, rate))
    slopes: list[Scalar] = []
    brought: dict[int, Wrench] = {}
    links = accounts(chain)
    for i, step in reversed(list(enumerate(walk))):
        link, w, v = links[i], motions[i].w, motions[i].v
        own = Wrench(link.mass * v + w.cross(link.moment), link.inertia @ w + link.moment.cross(v))
        h = brought.get(i, NO_WRENCH) + own
        # V × s is (w × z; v × z) for a revolute joint, (0; w × z) for a prismatic one
        slides = w.y * h.f.x - w.x * h.f.y
        slopes.append(w.y * h.n.x - w.x * h.n.y + v.y * h.f.x - v.x * h.f.y if step.revolute else slides)
        collect(brought, step.parent, step.wrench_inward(h))
    return [slope - load for slope, load in zip(reversed(slopes), gravity_load(chain, q), strict=True)]


METHODS = (
    Formulation(
        "recursive",
        momentum_bias,
        "de_luca_2003",
        "velocities outwards, momenta inwards",
        made_of=("gravity_load",),
    ),
    Formulation("reference", reference.momentum_bias, "", "derivatives of the energies", reference_only=True),
)
