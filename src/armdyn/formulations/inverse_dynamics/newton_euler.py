"""Recursive Newton-Euler algorithm with natural parameters.

Source: Luh, Walker & Paul 1980, in normal driving-axis frames as Lin 1991 cites it (ref. 1).

Idea: propagate angular velocity, angular acceleration and the acceleration of the frame's origin from base to tip, with
gravity as an acceleration of the base; propagate forces and moments back.

Symbols: w, dw angular velocity and acceleration; dv acceleration of the origin less gravity; f, n
force and moment about the origin, all in the link's own frame. A link's inertia is about its
frame's origin, so its moment is J ẇ + w × J w + mc × dv.

Cost: linear in the number of joints.
"""

from __future__ import annotations

from armdyn.algebra import ZERO, Scalar, Vec3, Z
from armdyn.algebra.spatial import NO_WRENCH, Wrench
from armdyn.algebra.tally import named
from armdyn.chain import Chain
from armdyn.formulations.registry import definition
from armdyn.formulations.steps import Step, collect, steps


def inverse_dynamics(chain: Chain, q: list[Scalar], qd: list[Scalar], qdd: list[Scalar]) -> list[Scalar]:
    """The joint forces for a motion, without rotors and friction."""
    walk, wrenches = transmitted(chain, q, qd, qdd)
    return [wrench.along(step.revolute) for step, wrench in zip(walk, wrenches, strict=True)]


def joint_wrenches(chain: Chain, q: list[Scalar], qd: list[Scalar], qdd: list[Scalar]) -> list[list[Scalar]]:
    """(N × 6): the force and torque that each link gets through its joint, at and in the frame of its body."""
    return [[*wrench.f, *wrench.n] for wrench in transmitted(chain, q, qd, qdd)[1]]


def transmitted(chain: Chain, q: list[Scalar], qd: list[Scalar], qdd: list[Scalar]) -> tuple[list[Step], list[Wrench]]:
    """The steps over the joints, and the wrench that each joint transmits."""
    base = ZERO, ZERO, -chain.gravity_in_frame_0
    walk = steps(chain, q)
    moving: list[tuple[Vec3, Vec3, Vec3]] = []
    own: list[Wrench] = []
    for step, link, v_i, a_i in zip(walk, chain.links, qd, qdd, strict=True):
        w, dw, dv = moving[step.parent] if step.parent >= 0 else base
        R, p = step.R, step.origin
        dv = R.T @ (dv + dw.cross(p) + w.cross(w.cross(p)))
        w, dw = R.T @ w, R.T @ dw
        if step.revolute:
            dw = dw + w.cross(v_i * Z) + a_i * Z
            w = w + v_i * Z
        else:
            dv = dv + 2 * w.cross(v_i * Z) + a_i * Z
        k = len(moving) + 1
        w, dw, dv = named(f"omega_{k}", w), named(f"omegadot_{k}", dw), named(f"a_{k}", dv)
        J, h = named(f"J_{k}", link.inertia), named(f"h_{k}", link.moment)
        F = link.mass * dv + dw.cross(h) + w.cross(w.cross(h))
        N = J @ dw + w.cross(J @ w) + h.cross(dv)
        moving.append((w, dw, dv))
        own.append(Wrench(named(f"F_{k}", F), named(f"N_{k}", N)))
    wrenches: list[Wrench] = []
    brought: dict[int, Wrench] = {}
    for i, step in reversed(list(enumerate(walk))):
        wrench = brought.get(i, NO_WRENCH) + own[i]
        wrenches.append(wrench)
        named(f"f_{i + 1}", wrench.f), named(f"n_{i + 1}", wrench.n)
        f, n = step.R @ wrench.f, step.R @ wrench.n
        collect(brought, step.parent, Wrench(f, n + step.origin.cross(f)))
    return walk, wrenches[::-1]


def bias(chain: Chain, q: list[Scalar], qd: list[Scalar], *, qdd: list[Scalar] | None = None) -> list[Scalar]:
    """C q̇ + g: inverse dynamics at zero acceleration, or at `qdd` for the rotating axes of a floating base."""
    return inverse_dynamics(chain, q, qd, [0] * chain.n if qdd is None else qdd)


JOINT_WRENCHES = definition(joint_wrenches, "Newton-Euler, forces carried inwards")
